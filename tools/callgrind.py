"""Instructions per packet, by callgrind: callgrind.py BUILD_DIRECTORY [REGEX]

Every micro-benchmark whose name fits runs N and 2 N times over; the difference has no set-up in it. Unlike
nanoseconds, the figure is the same on a busy machine.
"""

import argparse
import json
import pathlib
import re
import subprocess
import sys

ITEMS = 20000  # packets in N iterations, about
PROBED = 64  # iterations that say how many packets one brings

COLLECTED = re.compile(r"Collected\s*:\s*(\d+)")


def programs(build):
    found = [p for p in sorted((build / "bench").rglob("micro-*")) if p.is_file() and
             p.stat().st_mode & 0o111]
    # Neither bytes nor what is done on real sockets, which wait, is a count of instructions.
    return [p for p in found if p.name not in ("micro-context", "micro-memory", "micro-threads")]


def run(command, case, iterations):
    """Items that so many iterations of one case handle, and what was said beside."""
    done = subprocess.run(
        [*command, f"--iterations={iterations}", f"--benchmark_filter=^{re.escape(case)}/iterations:",
         "--benchmark_format=json"], capture_output=True, text=True, timeout=1200, check=False)
    if done.returncode != 0:
        sys.exit(f"{case}: {done.stderr}")
    return json.loads(done.stdout)["benchmarks"][0]["items"], done.stderr


def count(program, case, iterations):
    """Items, and instructions of the whole program."""
    items, said = run(["valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null", program], case,
                      iterations)
    return items, int(COLLECTED.search(said)[1])


def per_item(program, case):
    items, _ = run([program], case, PROBED)
    iterations = max(PROBED, int(ITEMS * PROBED / max(items, 1)) // PROBED * PROBED)
    once, twice = count(program, case, iterations), count(program, case, 2 * iterations)
    return (twice[1] - once[1]) / (twice[0] - once[0]), twice[0] - once[0]


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("regex", nargs="?", default="", help="only cases whose name fits")
    options = arguments.parse_args()
    print(f"{'case':<34} {'instructions':>12}   per item, over")
    for program in programs(options.build.resolve()):
        listed = subprocess.run([program, "--benchmark_list_tests"], capture_output=True, text=True,
                                check=True)
        for case in listed.stdout.split():
            if re.search(options.regex, case):
                instructions, items = per_item(program, case)
                print(f"{case:<34} {instructions:>12.1f}   {items:.0f}", flush=True)


if __name__ == "__main__":
    main()
