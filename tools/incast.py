"""Many senders to one receiver, over one sender: incast.py BUILD_DIRECTORY [--senders N] [--runs N] [--seconds S] [--rate MBIT]

Two namespaces; all senders in one of them, each a context with a port of its own. One sender and many take
turns; medians of the runs, and the least. With --rate a queue that carries so much (tbf) lies in between.
"""

import argparse
import json
import pathlib
import statistics
import sys

import netns
import verdict

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
    one, many = [], []
    for _ in range(options.runs):
        for runs, senders in ((one, 1), (many, options.senders)):
            runs.append(measure(pair, build, senders, options.seconds))
    # Of two runs, one right after the other: a machine's pace may change from minute to minute.
    ratios = [m["mb_per_s"] / o["mb_per_s"] for m, o in zip(many, one)]
    def median(runs, key):
        return statistics.median(run[key] for run in runs)
    return {"senders": options.senders, "one_mb_per_s": median(one, "mb_per_s"),
            "many_mb_per_s": median(many, "mb_per_s"),
            "ratio": statistics.median(ratios), "least_ratio": min(ratios),
            "least_fairness": min(run["fairness"] for run in many),
            **{key: median(many, key) for key in ("fairness", "mean_rtt_us", "receive_overflows", "retransmits",
                                                  "spurious_retransmits", "timeouts")},
            "runs": options.runs, "may_lie": verdict.between(ratios), "goodput": verdict.judge(ratios, least=GOODPUT)}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--senders", type=int, default=64)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--seconds", type=float, default=1)
    arguments.add_argument("--rate", type=int, help="megabits a second, with 1 MB of queue")
    options = arguments.parse_args()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    why_not = netns.possible()
    if why_not:
        print(f"skipped ({why_not})")
        return 0
    with netns.Pair() as pair:
        if options.rate:
            pair.narrow(1, options.rate)
        row = compare(pair, options.build.resolve(), options)
    print(json.dumps(row))
    fair = "met" if row["fairness"] >= FAIRNESS else "MISSED"
    print(f"wanted: of one sender's goodput {row['goodput']}; fairness >= {FAIRNESS} {fair}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
