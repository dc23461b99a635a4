"""Both ways at once: both_ways.py BUILD_DIRECTORY [--seconds S] [--runs N] [--driver NAME] [--size N]

Two namespaces, veth, MTU 1500; what the interface counts each way, second by second. Neither way may starve: of the
seconds of a run the worst, the lesser way over the greater; and how long the run took, over how long it was to take.
"""

import argparse
import json
import pathlib
import statistics
import subprocess
import sys
import time

import netns

PORT = 7100
SIZES = ["64", "4K", "64K", "256K", "1M", "4M"]
DRIVERS = ["udp", "tcp", "fabric"]


class Counter:
    """The bytes that came to and left side 1, as often as it is asked."""

    def __init__(self, pair):
        self.files = [f"/sys/class/net/veth0/statistics/{way}_bytes" for way in ("rx", "tx")]
        self.reader = pair.start(1, "sh", "-c", f"while read -r _; do cat {' '.join(self.files)}; done",
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1)
        self.last = self.read()

    def read(self):
        self.reader.stdin.write("\n")
        self.reader.stdin.flush()
        return tuple(int(self.reader.stdout.readline()) for _ in self.files)

    def since(self):
        now = self.read()
        moved = tuple(b - a for a, b in zip(self.last, now))
        self.last = now
        return moved


def run(pair, build, driver, size, seconds):
    """[(bytes there, bytes back)] of each second but those at the ends, and the client's row of JSON."""
    perf = build / "bench/pullman-perf"
    common = ["--port", PORT, "--patience", 20, "--driver", driver]
    server = pair.start_server(0, perf, *common)
    counter = Counter(pair)
    client = pair.start(1, perf, *common, "--format", "json", "--test", "bidirectional", "--size", size, "--duration",
                        seconds, pair.hosts[0], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    time.sleep(0.1 * seconds + 0.5)  # to connect, and the warm-up
    counter.since()
    each = []
    for _ in range(seconds - 1):
        time.sleep(1)
        each.append(counter.since())
    output, errors = client.communicate(timeout=20 + 10 * seconds)
    if client.returncode != 0 or server.wait(20) != 0:
        sys.exit(f"{driver}, {size}: {errors}\n{netns.text_of(server)}")
    counter.reader.stdin.close()
    counter.reader.wait(5)
    return each, json.loads(output.splitlines()[-1])


def balance(ways):
    return min(ways) / max(max(ways), 1)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--seconds", type=int, default=3)
    arguments.add_argument("--runs", type=int, default=5)
    arguments.add_argument("--driver", choices=DRIVERS, action="append")
    arguments.add_argument("--size", action="append")
    options = arguments.parse_args()
    netns.compare_like_with_like()
    why = netns.possible()
    if why:
        sys.exit(why)
    print(f"{'':8} {'size':>6} {'MB/s':>7}   lesser way over greater, worst second   time over asked")
    for driver in options.driver or DRIVERS:
        for size in options.size or SIZES:
            worst, rates, times = [], [], []
            for _ in range(options.runs):
                with netns.Pair() as pair:
                    each, row = run(pair, options.build.resolve(), driver, size, options.seconds)
                worst.append(min(balance(ways) for ways in each))
                rates.append(row["mb_per_s"])
                times.append(row["messages"] / row["messages_per_s"] / options.seconds)
            print(f"{driver:8} {size:>6} {statistics.median(rates):7.0f}   {statistics.median(worst):.3f} "
                  f"({min(worst):.3f} to {max(worst):.3f}) {'':14} {statistics.median(times):.3f} "
                  f"({min(times):.3f} to {max(times):.3f})", flush=True)


if __name__ == "__main__":
    main()
