"""Throughput over sizes, and where it falls: sizes.py BUILD_DIRECTORY [--eager BYTES,...] [--tiny BYTES,...] [--rounds N]

Two namespaces, veth, MTU 1500, streams with window 64, and half round trips beside them. Sizes are four to a doubling,
and both sides of each limit: a tiny message, a packet, two packets, the eager bytes. A *cliff* is a size whose
throughput is less than nine tenths of that of the next smaller one. With several values of a limit each round
measures every one at a size before it goes on to the next, so that they meet the same minute.
"""

import argparse
import itertools
import json
import pathlib
import statistics
import sys
from dataclasses import dataclass

import contenders
import netns

MOST = 4 << 20
PACKET = 1472 - 32 - 16  # of a message, at MTU 1500
FALL = 0.9
FIRST_PORT, PORTS = 7100, 800


@dataclass(frozen=True)
class Limits:
    eager: int
    tiny: int

    @property
    def name(self):
        return f"{self.eager >> 10} KiB/{self.tiny} B"

    @property
    def environment(self):
        return {"PULLMAN_EAGER_BYTES": str(self.eager), "PULLMAN_TINY_BYTES": str(self.tiny)}


def sizes(limits):
    regular = {round(2 ** (power / 4)) for power in range(4 * 3, 4 * MOST.bit_length() - 3)}
    edges = {PACKET, 2 * PACKET} | {limit for one in limits for limit in (one.eager, one.tiny)}
    beside = {edge + step for edge in edges for step in (0, 1)}
    return sorted(size for size in regular | beside if 8 <= size <= MOST)


def measure(pair, perf, task, limits, port):
    pair.environment = limits.environment
    try:
        return perf.run(pair, task, port)
    except contenders.DidNotFinish as problem:
        print(f"{task.name}, {limits.name}: {problem}", file=sys.stderr, flush=True)
        return None


def rounds(options, chosen, at):
    """{(test, size, limits): [figure of each round, or None]}"""
    perf = contenders.Perf("Pullman", "", options.build.resolve() / "bench/pullman-perf", "--driver", "udp")
    keys = {"bandwidth": "mb_per_s", "latency": "p50_us"}
    found = {}
    ports = itertools.cycle(range(FIRST_PORT, FIRST_PORT + PORTS))
    with netns.Pair() as pair:
        for number in range(options.rounds):
            for test, size, limits in itertools.product(options.only, at, chosen):
                task = contenders.Task(test, size, seconds=options.seconds)
                row = measure(pair, perf, task, limits, next(ports))
                found.setdefault((test, size, limits), []).append(row and row[keys[test]])
                pair.programs = [program for program in pair.programs if program.poll() is None]
            print(f"round {number + 1} of {options.rounds}", file=sys.stderr, flush=True)
    return found


def cliffs(rounds_at):
    """[(smaller, larger, ratio)], where more is better: medians of the ratios of figures that were taken one right
    after the other, since a machine's pace may change from minute to minute."""
    at = sorted(rounds_at)
    falls = []
    for a, b in zip(at, at[1:]):
        ratios = [y / x for x, y in zip(rounds_at[a], rounds_at[b]) if x and y]
        if ratios and statistics.median(ratios) < FALL:
            falls.append((a, b, statistics.median(ratios)))
    return falls


def median(figures):
    """Of those that there are."""
    known = [figure for figure in figures if figure is not None]
    return statistics.median(known) if known else float("nan")


def report(options, chosen, at, found):
    units = {"bandwidth": "streams, MB/s", "latency": "half round trip, us"}
    for test in options.only:
        print(f"\n{units[test]}; eager bytes/tiny bytes\n{'bytes':>8} " + " ".join(f"{one.name:>16}" for one in chosen))
        singles = {one: {size: found[test, size, one] for size in at} for one in chosen}
        for size in at:
            print(f"{size:>8} " + " ".join(f"{median(singles[one][size]):>16.2f}" for one in chosen))
        if test == "latency":
            continue
        for one in chosen:
            falls = cliffs(singles[one])
            print(f"{one.name}: " + ("no cliff" if not falls else "; ".join(
                f"{b} has {ratio:.2f} of {a}" for a, b, ratio in falls)))


def numbers(words):
    return [int(word) for word in words.split(",")]


def parse():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--eager", type=numbers, default=[64 << 10], help="limits to try, in bytes (65536)")
    arguments.add_argument("--tiny", type=numbers, default=[768], help="limits to try, in bytes (768)")
    arguments.add_argument("--only", type=lambda words: words.split(","), default=["bandwidth"],
                           help="bandwidth, latency (bandwidth)")
    arguments.add_argument("--sizes", type=numbers, help="these instead, in bytes")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=0.2, help="per measurement (0.2)")
    arguments.add_argument("--json", type=pathlib.Path, help="writes every single figure there")
    return arguments.parse_args()


def main():
    options = parse()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    why_not = netns.possible()
    if why_not:
        sys.exit(f"cannot measure here: {why_not}")
    chosen = [Limits(eager, tiny) for eager, tiny in itertools.product(options.eager, options.tiny)]
    at = options.sizes or sizes(chosen)
    found = rounds(options, chosen, at)
    report(options, chosen, at, found)
    if options.json:
        options.json.write_text(json.dumps([{"test": test, "bytes": size, "eager": one.eager, "tiny": one.tiny,
                                             "rounds": values} for (test, size, one), values in found.items()]) + "\n")


if __name__ == "__main__":
    main()
