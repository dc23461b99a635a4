"""Speed as ratios over the bare thing: bench.py BUILD_DIRECTORY [--runs N] [--seconds S] [--driver NAME] [--json]

Two namespaces, veth, MTU 1500. Pullman and bare datagrams take turns, so that whatever else the machine
does hits both alike; medians of the runs. Then the micro-benchmarks.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
from dataclasses import dataclass

import netns
import verdict

PORT = 7100


@dataclass
class Figure:
    name: str
    options: list
    key: str
    unit: str
    ratio: float = None  # wanted over bare
    value: float = None  # wanted by itself
    more_is_better: bool = True

    def verdict(self, ours, ratios):
        """What was asked, and whether it was met."""
        if self.value is not None:
            return verdict.judge(ours, least=self.value)
        if self.ratio is None:
            return ""
        return verdict.judge(ratios, **{"least" if self.more_is_better else "most": self.ratio})


def latency(size, key, ratio):
    return Figure(f"half round trip, {size} B, {key[:3]}", ["--test", "latency", "--size", size], key, "us",
                  ratio=ratio, more_is_better=False)


def stream(ratio):
    return Figure("stream, 1 MiB", ["--test", "bandwidth", "--size", "1M"], "mb_per_s", "MB/s", ratio=ratio)


def rate(size, window, value=None):
    return Figure(f"rate, {size} B, window {window}", ["--test", "rate", "--size", size, "--window", window],
                  "messages_per_s", "/s", value=value)


BOTH_WAYS = Figure("both ways, 1 MiB", ["--test", "bidirectional", "--size", "1M"], "mb_per_s", "MB/s")
FIGURES = {
    "udp": [latency(8, "p50_us", 1.10), latency(64, "p50_us", 1.10), latency(64, "p99_us", 1.15), stream(0.75),
            BOTH_WAYS, rate(8, 64, 3e6), rate(8, 1024, 5e6), rate(64, 64)],
    "fabric": [latency(64, "p50_us", 1.25), stream(0.85), BOTH_WAYS, rate(64, 64)],
}


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


def compare(pair, build, driver, figure, runs, seconds):
    """Medians of runs that take turns, and of the ratios of two runs, one right after the other: a machine's pace may
    change from minute to minute. And where that may lie."""
    ours, bare = [], []
    for _ in range(runs):
        bare.append(measure(pair, build, figure, seconds, "--driver", driver, "--raw")[figure.key])
        ours.append(measure(pair, build, figure, seconds, "--driver", driver)[figure.key])
    each = [a / b for a, b in zip(ours, bare)]
    least, most = verdict.interval(each)
    return {"driver": driver, "figure": figure.name, "unit": figure.unit, "pullman": statistics.median(ours),
            "bare": statistics.median(bare), "ratio": statistics.median(each), "least": least, "most": most,
            "runs": runs, "wanted": figure.verdict(ours, each)}


def over_bare(build, driver, options):
    if not options.json:
        print(f"\n{'over ' + driver:<28} {'Pullman':>12} {'bare':>12} {'ratio':>7}  {'may lie':<16} wanted")
    with netns.Pair() as pair:
        for figure in FIGURES[driver]:
            row = compare(pair, build, driver, figure, options.runs, options.seconds)
            if options.json:
                print(json.dumps(row), flush=True)
                continue
            print(f"{row['figure']:<28} {row['pullman']:>12.2f} {row['bare']:>12.2f} {row['ratio']:>7.3f}  "
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
    arguments.add_argument("--driver", choices=list(FIGURES), help="this one only, and no micro-benchmarks")
    arguments.add_argument("--json", action="store_true", help="the ratios only, one object per line")
    options = arguments.parse_args()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    build = options.build.resolve()
    why_not = netns.possible()
    if why_not:
        print(f"skipped ({why_not}): ratios over bare datagrams")
    else:
        for driver in FIGURES:
            if options.driver in (None, driver):
                over_bare(build, driver, options)
    if not options.json and options.driver is None:
        micro(build)


if __name__ == "__main__":
    main()
