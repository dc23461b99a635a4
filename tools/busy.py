"""Where others compute on the processors: busy.py BUILD_DIRECTORY [--runs N] [--seconds S] [--loops N] [--only TASK]

Two namespaces, veth, MTU 1500, and beside them programs that compute without end, one for each processor. Pullman and
plain TCP sockets (an end that waits polls, or sleeps) in turn: half round trips of 64 bytes and of 128 KiB, and a
stream of 1 MiB. Medians and 99th percentiles of half round trips, and goodput; for each run Pullman's figure over TCP's.
"""

import argparse
import os
import pathlib
import statistics
import sys

import contenders
import netns

TASKS = {"64": contenders.Task("latency", 64), "128K": contenders.Task("latency", 128 << 10),
         "stream": contenders.Task("bandwidth", 1 << 20)}
FIGURES = {"latency": ("p50_us", "p99_us"), "bandwidth": ("mb_per_s",)}
TCP = ("TCP, polls", "TCP, sleeps")
FIRST_PORT = 7100


def everybody(build):
    perf, peers = build / "bench/pullman-perf", build / "bench/peers"
    return {"Pullman": contenders.Perf("Pullman", "", perf, "--driver", "udp"),
            "TCP, polls": contenders.Perf("TCP, polls", "", peers, "--driver", "sockets"),
            "TCP, sleeps": contenders.Perf("TCP, sleeps", "", peers, "--driver", "sleeping")}


def one_run(pair, who, task, port):
    """{contender: its row}; a contender that did not finish is missing."""
    rows = {}
    for number, (name, contender) in enumerate(who.items()):
        try:
            rows[name] = contender.run(pair, task, port + number)
        except contenders.DidNotFinish as problem:
            print(f"{name}: {problem}", file=sys.stderr, flush=True)
    return rows


def words(values):
    return f"{statistics.median(values):9.2f} ({min(values):.2f} to {max(values):.2f})" if values else f"{'-':>9}"


def report(name, figure, runs):
    for who in ("Pullman", *TCP):
        print(f"{name:>8} {figure:>9} {who:16} {words([run[who][figure] for run in runs if who in run])}")
    for tcp in TCP:
        ratios = [run["Pullman"][figure] / run[tcp][figure] for run in runs if {"Pullman", tcp} <= set(run)]
        print(f"{name:>8} {figure:>9} over {tcp:11} {words(ratios)}", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--runs", type=int, default=10)
    arguments.add_argument("--seconds", type=float, default=2, help="per measurement (2)")
    arguments.add_argument("--loops", type=int, default=os.cpu_count(), help="programs that compute (one a processor)")
    arguments.add_argument("--only", choices=TASKS, action="append")
    options = arguments.parse_args()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    why_not = netns.possible()
    if why_not:
        sys.exit(f"cannot measure here: {why_not}")
    who = everybody(options.build.resolve())
    port = FIRST_PORT
    with netns.Pair() as pair:
        for _ in range(options.loops):
            pair.start(0, sys.executable, "-c", "while True: pass")
        for name in options.only or TASKS:
            task = contenders.replace(TASKS[name], seconds=options.seconds)
            runs = []
            for _ in range(options.runs):
                port += len(who)
                runs.append(one_run(pair, who, task, port))
            for figure in FIGURES[task.test]:
                report(name, figure, runs)


if __name__ == "__main__":
    main()
