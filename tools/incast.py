"""Many senders to one receiver, over one sender: incast.py BUILD_DIRECTORY [--senders N] [--runs N] [--seconds S] [--rate MBIT]

Two namespaces; all senders in one of them, each a context with a port of its own. One sender and many take
turns; medians of the runs, and the least, the ratio's of those during which the processors stayed where they were
(machine.py), if there are enough. With --rate a queue that carries so much (tbf) lies in between.
"""

import argparse
import json
import pathlib
import statistics
import sys

import machine
import netns

PORT = 7100
GOODPUT, FAIRNESS = 0.9, 0.9  # of many, over one; Jain


def measure(pair, build, senders, seconds):
    """What the receiver and the senders said."""
    program = build / "bench/incast"
    receiver = pair.start_server(0, "env", f"PULLMAN_PORT={PORT}", "PULLMAN_DRIVER=udp", f"PULLMAN_NICS={pair.hosts[0]}",
                                 program, "receive", senders, seconds)
    sender = pair.start_server(1, "env", "PULLMAN_DRIVER=udp", f"PULLMAN_NICS={pair.hosts[1]}", program, "send", senders,
                               f"{pair.hosts[0]}:{PORT}")
    result = {}
    for process in (receiver, sender):
        process.wait(60 + 10 * seconds)
        said = netns.text_of(process).splitlines()
        if process.returncode != 0:
            sys.exit("\n".join(said))
        result.update(json.loads(said[-1]))
    return result


def compare(pair, build, options):
    one, many, lines = [], [], []
    for _ in range(options.runs):
        lines.append([machine.line_ns(build)])
        for runs, senders in ((one, 1), (many, options.senders)):
            runs.append(measure(pair, build, senders, options.seconds))
            lines[-1].append(machine.line_ns(build))
    # Of two runs, one right after the other: a machine's pace may change from minute to minute, and it may be moved.
    pairs = [(m["mb_per_s"] / o["mb_per_s"], machine.stayed(*line)) for m, o, line in zip(many, one, lines)]
    steady = [ratio for ratio, stayed in pairs if stayed]
    ratios = steady if len(steady) >= machine.ENOUGH else [ratio for ratio, _ in pairs]
    def median(runs, key):
        return statistics.median(run[key] for run in runs)
    return {"senders": options.senders, "one_mb_per_s": median(one, "mb_per_s"),
            "many_mb_per_s": median(many, "mb_per_s"),
            "ratio": statistics.median(ratios), "least_ratio": min(ratios),
            "least_fairness": min(run["fairness"] for run in many),
            **{key: median(many, key) for key in ("fairness", "mean_rtt_us", "receive_overflows", "retransmits",
                                                  "spurious_retransmits", "timeouts")},
            "runs": options.runs, "runs_that_count": len(ratios),
            "ratio_of_all": statistics.median(ratio for ratio, _ in pairs)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--senders", type=int, default=64)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=1)
    arguments.add_argument("--rate", type=int, help="megabits a second, with 1 MB of queue")
    options = arguments.parse_args()
    netns.exit_on_signals()
    why_not = netns.possible()
    if why_not:
        print(f"skipped ({why_not})")
        return 0
    with netns.Pair() as pair:
        if options.rate:
            pair.narrow(1, options.rate)
        row = compare(pair, options.build.resolve(), options)
    print(json.dumps(row))
    met = row["ratio"] >= GOODPUT and row["fairness"] >= FAIRNESS
    print(f"wanted: {GOODPUT} of one sender's goodput, fairness {FAIRNESS}: {'met' if met else 'MISSED'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
