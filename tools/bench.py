"""Speed as ratios over the bare thing: bench.py BUILD_DIRECTORY [--runs N] [--seconds S] [--json]

Two namespaces, veth, MTU 1500. Pullman and bare datagrams take turns, so that whatever else the machine
does hits both alike; medians of the runs. Then the micro-benchmarks.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys

import netns

PORT = 7100
STEADY = 2.0  # between the least and the greatest ratio of single runs; beyond it there is no verdict


class Figure:
    def __init__(self, name, options, key, unit, wanted, more_is_better):
        self.name, self.options, self.key, self.unit = name, options, key, unit
        self.wanted = wanted  # ratio over bare, or None
        self.more_is_better = more_is_better

    def verdict(self, ratio, spread):
        if self.wanted is None:
            return ""
        if spread > STEADY:
            return "unsteady: the machine is busy, this says nothing"
        good = ratio >= self.wanted if self.more_is_better else ratio <= self.wanted
        sign = ">=" if self.more_is_better else "<="
        return f"{sign} {self.wanted} {'met' if good else 'MISSED'}"


FIGURES = [
    Figure("half round trip, 64 B", ["--test", "latency", "--size", "64"], "p50_us", "us", 1.25, False),
    Figure("stream, 1 MiB", ["--test", "bandwidth", "--size", "1M"], "mb_per_s", "MB/s", 0.85, True),
    Figure("both ways, 1 MiB", ["--test", "bidirectional", "--size", "1M"], "mb_per_s", "MB/s", None,
           True),
    Figure("rate, 64 B", ["--test", "rate", "--size", "64"], "messages_per_s", "/s", None, True),
]


def measure(pair, build, figure, seconds, *more):
    """One run of one figure."""
    perf = build / "bench/pullman-perf"
    server = pair.start_server(0, perf, "--port", PORT, "--patience", 20, *more)
    client = subprocess.run(
        pair.command(1, perf, "--port", PORT, "--patience", 20, "--format", "json", "--duration",
                     seconds, *figure.options, *more, pair.hosts[0]),
        capture_output=True, text=True, timeout=120, check=False)
    server.wait(60)
    if client.returncode != 0:
        sys.exit(f"{figure.name}: {client.stderr}\n{netns.text_of(server)}")
    return json.loads(client.stdout.splitlines()[-1])


def compare(pair, build, figure, runs, seconds):
    """Medians of runs that take turns, and how far the ratios spread."""
    ours, bare = [], []
    for _ in range(runs):
        bare.append(measure(pair, build, figure, seconds, "--raw")[figure.key])
        ours.append(measure(pair, build, figure, seconds)[figure.key])
    ratio = statistics.median(ours) / statistics.median(bare)
    each = sorted(a / b for a, b in zip(ours, bare))
    return {"figure": figure.name, "unit": figure.unit, "pullman": statistics.median(ours),
            "bare": statistics.median(bare), "ratio": ratio, "least": each[0], "most": each[-1],
            "runs": runs, "wanted": figure.verdict(ratio, each[-1] / each[0])}


def over_fabric(build, options):
    if not options.json:
        print(f"{'over fabric':<24} {'Pullman':>12} {'bare':>12} {'ratio':>7}  {'of single runs':<16} wanted")
    with netns.Pair() as pair:
        for figure in FIGURES:
            row = compare(pair, build, figure, options.runs, options.seconds)
            if options.json:
                print(json.dumps(row), flush=True)
                continue
            print(f"{row['figure']:<24} {row['pullman']:>12.2f} {row['bare']:>12.2f} {row['ratio']:>7.3f}  "
                  f"{row['least']:.3f} .. {row['most']:.3f}   {row['wanted']} ({row['unit']})",
                  flush=True)


def micro(build):
    programs = [p for p in sorted((build / "bench").rglob("micro-*")) if p.is_file() and
                p.stat().st_mode & 0o111]
    for program in programs:
        print(f"\n{program.name}", flush=True)
        subprocess.run([program, "--benchmark_color=false"], check=True, stderr=subprocess.DEVNULL)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--runs", type=int, default=7)
    arguments.add_argument("--seconds", type=float, default=1)
    arguments.add_argument("--json", action="store_true", help="the ratios only, one object per line")
    options = arguments.parse_args()
    netns.exit_on_signals()
    build = options.build.resolve()
    why_not = netns.possible()
    if why_not:
        print(f"skipped ({why_not}): ratios over bare datagrams")
    else:
        over_fabric(build, options)
    if not options.json:
        micro(build)


if __name__ == "__main__":
    main()
