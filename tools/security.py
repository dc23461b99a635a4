"""What protecting packets costs: security.py BUILD_DIRECTORY [--rounds N] [--seconds S]

pullman-perf without protection, with authenticated and with encrypted packets, in turn: half round trips of 64 B, a
stream of 1 MiB and messages of 8 B with a window of 64, as ratios of each round.
"""

import argparse
import os
import pathlib
import statistics
import sys

import contenders
import netns
import verdict

KEY = "a key for measuring"
MODES = ("off", "authenticate", "encrypt")
# What is measured, the figure of pullman-perf's row, and what is asked of each mode.
TASKS = {
    "half round trip, 64 B, us": (("latency", 64), "p50_us", {"authenticate": {"most": 1.08}, "encrypt": {}}),
    "stream, 1 MiB, MB/s": (("bandwidth", 1 << 20), "mb_per_s",
                            {"authenticate": {"least": 0.85}, "encrypt": {"least": 0.7}}),
    "8 B, window 64, million/s": (("rate", 8), "messages_per_s",
                                  {"authenticate": {"least": 0.85}, "encrypt": {}}),
}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--seconds", type=float, default=0.5)
    options = arguments.parse_args()
    if why := netns.possible():
        sys.exit(why)
    perf = contenders.Perf("Pullman", "pullman", options.build.resolve() / "bench/pullman-perf", "--driver", "udp")
    if why := perf.missing():
        sys.exit(why)
    port = 7100
    with netns.Pair() as pair:
        for name, ((test, size), figure, asked) in TASKS.items():
            rows = {mode: [] for mode in MODES}
            for _ in range(options.rounds):
                for mode in MODES:
                    os.environ.update(PULLMAN_KEY=KEY, PULLMAN_SECURITY=mode)
                    port += 1
                    row = perf.run(pair, contenders.Task(test, size, seconds=options.seconds), port)
                    rows[mode].append(row[figure] / (1e6 if figure == "messages_per_s" else 1))
            print(f"{name}: off {statistics.median(rows['off']):.2f}")
            for mode, bound in asked.items():
                ratios = [a / b for a, b in zip(rows[mode], rows["off"])]
                low, high = verdict.interval(ratios)
                judged = verdict.judge(ratios, **bound) if bound else ""
                print(f"  {mode:<13} {statistics.median(rows[mode]):8.2f}   over off {statistics.median(ratios):.3f} "
                      f"({low:.3f} to {high:.3f})   {judged}", flush=True)


if __name__ == "__main__":
    main()
