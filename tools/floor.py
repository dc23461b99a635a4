"""What the kernel alone costs: floor.py BUILD_DIRECTORY [--runs N]

At the beginning and the end: how long a line of the cache takes from one processor to the other. A host may move a
virtual machine's processors apart, for seconds or minutes; then that takes six times as long, and a stream three.
Between these, in two namespaces, veth, MTU 1500: half a round trip of 64 bytes, bare, and with what a protocol cannot
do without, one thing after the other. Windows of 64 messages of 8 bytes, and a word back. Then a stream of full
bursts, whose packets the kernel gathers from one segment, or from two: a head, and data of the user's; or the
program copies those together first.
"""

import argparse
import pathlib
import statistics
import subprocess
import sys

import netns

STREAMS = {"1 segment": ["--segments", "1"], "2 segments": ["--segments", "2"],
           "2 segments, copied together": ["--copy"]}


def run(pair, program, first, second, *more):
    """What the two verbs said."""
    server = pair.start_server(0, program, first, *pair.hosts[:1 if first == "take" else 2])
    client = pair.command(1, program, second, *reversed(pair.hosts), *more)
    said = subprocess.run(client, capture_output=True, text=True, timeout=120, check=False)
    server.wait(30)
    if said.returncode != 0 or server.returncode != 0:
        sys.exit(f"{second}: {said.stderr}\n{netns.text_of(server)}")
    return said.stdout, netns.text_of(server)


def print_line(program):
    said = subprocess.run([program, "pass"], capture_output=True, text=True, timeout=60, check=False)
    print(said.stdout or said.stderr, end="", flush=True)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--runs", type=int, default=5)
    options = arguments.parse_args()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    why_not = netns.possible()
    if why_not:
        print(f"skipped ({why_not})")
        return 0
    program = options.build.resolve() / "bench/floor"
    print_line(program)
    with netns.Pair() as pair:
        print(run(pair, program, "answer", "ask")[0], end="")
        print(run(pair, program, "collect", "fill")[0], end="")
        speeds = {how: [] for how in STREAMS}
        for _ in range(options.runs):
            for how, seen in speeds.items():
                seen.append(float(run(pair, program, "take", "pour", *STREAMS[how])[1].splitlines()[-1]))
    for how, seen in speeds.items():
        print(f"a stream, packets of {how}: {statistics.median(seen):.0f} MB/s ({min(seen):.0f} to {max(seen):.0f})")
    print_line(program)
    return 0


if __name__ == "__main__":
    sys.exit(main())
