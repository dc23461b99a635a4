"""What rails are worth, measured: failover.py BUILD_DIRECTORY [--quick] [--cuts N] [--only WORD ...] [--json FILE]

Two namespaces with two veth rails, a verified stream or a ping-pong over them (pullman-perf), and cuts, many in one
run. A table for each thing asked: what was asked, what was seen, with which command. Wants a quiet machine.
"""

import argparse
import csv
import json
import math
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass

import netns
import railnet

PORT = 7100
GBIT = 1000  # of a shaped rail, Mb/s
# A cut and its mend, and then time for the rail to be used again before the other one is cut.
PERIOD, CUT_FOR = 1.2, 0.5
CUTS_PER_RUN = 50


@dataclass
class Row:
    what: str
    asked: str
    met: bool  # None: nothing was asked
    seen: str
    command: str


def nearest_rank(values, fraction):
    ordered = sorted(values)
    return ordered[max(0, math.ceil(fraction * len(ordered)) - 1)]


def spread(values, digits=2):
    """Median, and least to greatest."""
    return f"{statistics.median(values):.{digits}f} ({min(values):.{digits}f} .. {max(values):.{digits}f})"


def gigabits(row):
    return row["mb_per_s"] * 8e-3


class Bench:
    """Runs pullman-perf in a place, and remembers the command."""

    def __init__(self, build, options):
        self.perf = build / "bench/pullman-perf"
        self.options = options
        self.command = ""

    def run(self, place, *words, nics=None, seconds):
        """One run; the client's result."""
        more = ["--nic", nics] if nics else []
        common = [self.perf, "--port", PORT, "--patience", 30, *more]
        server = place.start_server(0, *common)
        mine = [*map(str, words), "--duration", f"{seconds:g}", *more]
        self.command = "pullman-perf " + " ".join(word if len(word) < 40 else word[:24] + ",..." for word in mine)
        client = subprocess.run(place.command(1, *common, *words, "--duration", f"{seconds:g}", "--format", "json",
                                              place.hosts[0]), capture_output=True, text=True,
                                timeout=60 + 3 * seconds, check=False)
        server.wait(60)
        if not client.stdout:
            sys.exit(f"{self.command}: {client.stderr}\n{netns.text_of(server)}")
        return json.loads(client.stdout.splitlines()[-1])

    def cut_run(self, place, cuts, *words, seconds):
        return self.run(place, "--test", "failover", "--cut", ",".join(cuts), *words, seconds=seconds)


def goodput(bench):
    runs, seconds = (2, 1) if bench.options.quick else (5, 10)
    for mtu in (1500, 9000):
        for rates, asked in (((GBIT, GBIT), 1.9), ((GBIT, GBIT // 4), 1.18)):
            with railnet.Rails(2, rates, mtu) as place:
                seen = [gigabits(bench.run(place, "--test", "bandwidth", "--size", "1M", seconds=seconds))
                        for _ in range(runs)]
            yield Row(f"1 MiB stream, {rates[0] / 1000:g} + {rates[1] / 1000:g} Gb/s, MTU {mtu}", f">= {asked} Gb/s",
                      statistics.median(seen) >= asked, spread(seen, 4), bench.command)


def alternating(kind, count):
    """Cuts of one rail and then the other; their times vary, so that they meet the stream anywhere."""
    for i in range(count):
        at = 1 + i * PERIOD + random.uniform(0, 0.1)
        yield f"veth{i % 2}{kind}@{at:.4f}-{at + CUT_FOR:.4f}"


def cuts_of(bench, kind, count):
    """The results of so many cuts, and the totals of what went wrong."""
    cuts, wrong = [], 0
    with railnet.Rails(2, GBIT) as place:
        while count > len(cuts):
            here = min(CUTS_PER_RUN, count - len(cuts))
            result = bench.cut_run(place, alternating(kind, here), "--size", "64K", seconds=1 + here * PERIOD)
            cuts += result["cuts"]
            wrong += result["errors"]
    return cuts, wrong


def alone(bench, seconds):
    """Goodput in MB/s of one rail by itself."""
    with railnet.Rails(2, GBIT) as place:
        return bench.run(place, "--test", "failover", "--size", "64K", nics="veth0", seconds=seconds)["mb_per_s"]


def gaps(bench):
    baseline = alone(bench, 2)
    for kind, text, most in (("", "link down", 5), (":silent", "silent both ways", 20),
                             (":deaf", "silent towards the sender", 20), (":mute", "silent from the sender", 20)):
        cuts, wrong = cuts_of(bench, kind, bench.options.cuts)
        command = bench.command
        seen = [cut["gap_ms"] for cut in cuts if cut["gap_ms"] is not None]
        worst = nearest_rank(seen, 0.99)
        yield Row(f"gap, {text}, {len(seen)} cuts, p99", f"<= {most} ms", worst <= most,
                  f"p50 {nearest_rank(seen, 0.5):.2f}, p99 {worst:.2f}, max {max(seen):.2f} ms", command)
        later = [cut["later_gap_ms"] for cut in cuts if cut["later_gap_ms"] is not None]
        yield Row(f"pause later than 50 ms after the cut, {text}", "", None,
                  f"p50 {nearest_rank(later, 0.5):.2f}, p99 {nearest_rank(later, 0.99):.2f}, max {max(later):.2f} ms",
                  command)
        after = [cut["after_mb_per_s"] / baseline for cut in cuts if cut["after_mb_per_s"]]
        yield Row(f"goodput from 50 ms after the cut on, {text}", ">= 0.95 of one rail alone",
                  statistics.median(after) >= 0.95, spread(after, 3), command)
        again = [cut["reinstated_ms"] for cut in cuts if cut["reinstated_ms"] is not None]
        yield Row(f"used again after the mend, {text}", "<= 1000 ms, each",
                  len(again) == len(cuts) and max(again) <= 1000,
                  f"{spread(again, 0)} ms; {len(cuts) - len(again)} never" if again else "never", command)
        yield Row(f"lost, duplicated, misordered or corrupted, {text}", "0", wrong == 0, str(wrong), command)


def random_cuts(count):
    """Of any kind and length, of either rail, and now and then of both."""
    free = [0.5, 0.5]
    for _ in range(count):
        rail = random.randrange(2)
        at = free[rail] + random.uniform(0.01, 0.6)
        free[rail] = at + random.uniform(0.005, 0.5)
        yield f"veth{rail}{random.choice(('', ':silent', ':deaf', ':mute'))}@{at:.4f}-{free[rail]:.4f}"


def randomly(bench):
    count = 20 if bench.options.quick else 10 * bench.options.cuts
    made, keys = 0, ("lost", "duplicated", "misordered", "corrupted")
    wrong, sent_twice = dict.fromkeys(keys, 0), 0
    with railnet.Rails(2, GBIT) as place:
        for size in ("64", "64K", "1M", "3000"):
            cuts = list(random_cuts(math.ceil(count / 4)))
            seconds = max(float(cut.split("-")[1]) for cut in cuts) + 0.5
            result = bench.cut_run(place, cuts, "--size", size, seconds=seconds)
            made += sum(cut["at_ms"] is not None for cut in result["cuts"])
            sent_twice += result["sent_twice"]
            for key in keys:
                wrong[key] += result[key]
    yield Row(f"{made} random cuts and mends under load: {', '.join(keys)}", "0", not any(wrong.values()),
              f"{', '.join(str(wrong[key]) for key in keys)} ({sent_twice} packets sent twice)", bench.command)


def ping_pong(bench):
    pairs, seconds = (3, 0.3) if bench.options.quick else (15, 1)
    ratios = []
    with railnet.Rails(2) as place:
        for _ in range(pairs):
            one, two = (bench.run(place, "--test", "latency", "--size", 64, nics=nics, seconds=seconds)["p50_us"]
                        for nics in ("veth0", None))
            ratios.append(two / one)
    yield Row("64 B ping-pong, two healthy rails over one", "<= 1.05", statistics.median(ratios) <= 1.05,
              spread(ratios, 3), bench.command)


def flap(bench):
    runs, seconds = (1, 2) if bench.options.quick else (5, 6)
    ratios = []
    for _ in range(runs):
        baseline = alone(bench, seconds)
        with railnet.Rails(2, GBIT) as place, tempfile.TemporaryDirectory() as folder:
            cuts = [f"veth1@{0.1 * i:.2f}-{0.1 * i + 0.05:.2f}" for i in range(10 * seconds)]
            bench.cut_run(place, cuts, "--size", "64K", "--output", folder + "/flap", seconds=seconds)
            with open(folder + "/flap.csv", encoding="ascii") as file:
                rows = [row for row in csv.DictReader(file) if 1000 <= int(row["ms"]) < seconds * 1000]
        other, = (name for name in rows[0] if "veth0" in name)
        # Of what the other rail sent, and of all that arrived.
        ratios.append((statistics.mean(float(row[other]) for row in rows) / baseline,
                       statistics.mean(float(row["mb_per_s"]) for row in rows) / baseline))
    for what, index in (("sent over the other rail", 0), ("arrived over both", 1)):
        seen = [ratio[index] for ratio in ratios]
        yield Row(f"a rail flaps at 10 Hz: {what}, over one rail alone", ">= 0.98",
                  statistics.median(seen) >= 0.98, spread(seen, 3), bench.command)


MEASUREMENTS = {"goodput": goodput, "gaps": gaps, "random": randomly, "latency": ping_pong, "flap": flap}


def show(row):
    verdict = "" if row.met is None else "met" if row.met else "**missed**"
    print(f"| {row.what} | {row.asked} | {row.seen} | {verdict} | `{row.command}` |", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--quick", action="store_true", help="few and short runs: to see that it works")
    arguments.add_argument("--cuts", type=int, help="of each kind (100; quick: 10)")
    arguments.add_argument("--only", nargs="+", choices=list(MEASUREMENTS), default=list(MEASUREMENTS))
    arguments.add_argument("--json", type=pathlib.Path, help="the same rows, for programs")
    arguments.add_argument("--seed", type=int, default=1, help="of when and what is cut")
    options = arguments.parse_args()
    options.cuts = options.cuts or (10 if options.quick else 100)
    random.seed(options.seed)
    netns.exit_on_signals()
    netns.compare_like_with_like()
    why_not = netns.possible()
    if why_not:
        sys.exit(f"failover is measured in network namespaces: {why_not}")
    bench = Bench(options.build.resolve(), options)
    print("| what | asked | seen | verdict | command |\n|---|---|---|---|---|", flush=True)
    rows = []
    for name in options.only:
        for row in MEASUREMENTS[name](bench):
            rows.append(row)
            show(row)
    if options.json:
        options.json.write_text(json.dumps([vars(row) for row in rows], indent=1) + "\n")


if __name__ == "__main__":
    main()
