"""What an answer takes, instruction by instruction: steps.py BUILD_DIRECTORY [--size BYTES] [--jumps] [--data]

Of a program that answers a message, over loopback in packets of 1472 bytes: everything between the system call that
brought it and the one that sends the answer. Counts, which a busy machine does not change: instructions, lines of the
cache with code, lines with data, and jumps taken, calls and returns (but for jumps of at most 15 bytes forward, which
look like long instructions). Medians of the rounds; by function for the round in the middle.
"""

import argparse
import bisect
import collections
import pathlib
import re
import statistics
import subprocess
import sys

from operands import NAMES, instructions, touched

LONGEST = 15  # bytes of an instruction
LINE = 64


class Module:
    """A file mapped into the program, and its functions."""

    def __init__(self, path, base):
        self.path, self.base = path, base
        said = subprocess.run(["nm", "-C", "--defined-only", path], capture_output=True, text=True, check=False).stdout
        said += subprocess.run(["nm", "-CD", "--defined-only", path], capture_output=True, text=True, check=False).stdout
        names = {int(at, 16): name for at, name in re.findall(r"^([0-9a-f]+) [tTwWiu] (.*)$", said, re.MULTILINE)}
        self.starts, self.names = sorted(names), names

    def function(self, at):
        index = bisect.bisect_right(self.starts, at - self.base) - 1
        return short(self.names[self.starts[index]]) if index >= 0 else self.path


def short(name):
    """Without arguments and namespaces."""
    name = re.sub(r"\(anonymous namespace\)::", "", name)
    name = re.sub(r"\[clone [^]]*\]", "", name)
    while "<" in name and re.search(r"<[^<>]*>", name):
        name = re.sub(r"<[^<>]*>", "", name)
    return re.sub(r"pullman::", "", name.split("(")[0]).strip()


class Modules:
    def __init__(self, maps):
        self.spans = []
        bases = {}
        for line in maps.splitlines():
            fields = line.split()
            low, high = (int(end, 16) for end in fields[0].split("-"))
            path = fields[5] if len(fields) > 5 else "?"
            if path not in bases:
                bases[path] = Module(path, low) if path.startswith("/") else None
            self.spans.append((low, high, path, bases[path]))

    def of(self, at):
        for low, high, path, module in self.spans:
            if low <= at < high:
                return path, module
        return "?", None

    def function(self, at):
        path, module = self.of(at)
        return f"{module.function(at)}" if module else path


class Step:
    """Where an instruction is, and the registers before it."""

    def __init__(self, said):
        self.at, *values = (int(value, 16) for value in said.split(","))
        self.registers = dict(zip(NAMES, values))


def data(modules, step):
    """The lines of the cache that an instruction touches."""
    _, module = modules.of(step.at)
    text, end = instructions(module.path).get(step.at - module.base, ("", 0)) if module else ("", 0)
    spans = touched(text, step.registers, module.base + end) if text else []
    return {line for first, last in spans for line in (first // LINE, last // LINE)}


def kind(modules, line, stack):
    """Of a line: on the stack, in a file (what is static), or on the heap."""
    if abs(line * LINE - stack) < 1 << 20:
        return "stack"
    return "file" if modules.of(line * LINE)[1] else "heap"


def kinds(modules, lines, stack):
    counts = collections.Counter(kind(modules, line, stack) for line in lines)
    return ": " + ", ".join(f"{count} {name}" for name, count in counts.most_common())


def print_data(modules, steps):
    """Each line with data, and what touches which of its bytes."""
    users = collections.defaultdict(lambda: collections.defaultdict(set))
    for step in steps:
        for line in data(modules, step):
            users[line][modules.function(step.at)].add(step.at)
    for line, functions in sorted(users.items()):
        by = ", ".join(f"{name} {len(places)}" for name, places in functions.items())
        print(f"{line * LINE:>14x}  {kind(modules, line, steps[0].registers['rsp']):5}  {by}")


def jumps(way):
    return [i for i, (now, then) in enumerate(zip(way, way[1:])) if not now < then <= now + LONGEST]


def source(build_modules, at):
    path, module = build_modules.of(at)
    if not module:
        return path
    said = subprocess.run(["addr2line", "-e", module.path, f"{at - module.base:x}"], capture_output=True, text=True,
                          check=False).stdout.strip()
    return re.sub(r"^.*/(lib|include|bench)/", r"\1/", said)


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--rounds", type=int, default=9)
    arguments.add_argument("--size", type=int, default=8, help="bytes of a message")
    arguments.add_argument("--jumps", action="store_true", help="where each jump is, too")
    arguments.add_argument("--data", action="store_true", help="each line with data, too")
    options = arguments.parse_args()
    done = subprocess.run([options.build / "bench/steps", str(options.rounds), str(options.size)], capture_output=True, text=True, timeout=120,
                          check=False)
    if done.returncode != 0:
        sys.exit(done.stderr or "steps: failed; needs ptrace()")
    maps, ways = done.stdout.split("\n\n", 1)
    modules = Modules(maps)
    ways = sorted(([Step(said) for said in line.split()] for line in ways.splitlines()), key=len)
    lines = [set().union(*(data(modules, step) for step in way)) for way in ways]
    tracks = [[step.at for step in way] for way in ways]
    def median(count, of=tracks):
        values = [count(each) for each in of]
        return f"{statistics.median(values):.0f} ({min(values)} to {max(values)})"
    print("instructions    " + median(len))
    print("lines of code   " + median(lambda way: len({at // LINE for at in way})))
    print("lines of data   " + median(len, lines) + kinds(modules, lines[len(lines) // 2], ways[0][0].registers["rsp"]))
    print("jumps           " + median(lambda way: len(jumps(way))))
    way = tracks[len(tracks) // 2]
    jumped = set(jumps(way))
    rows = collections.defaultdict(lambda: [0, set(), 0])
    for i, at in enumerate(way):
        row = rows[modules.function(at)]
        row[0] += 1
        row[1].add(at // LINE)
        row[2] += i in jumped
    print(f"\n{'instructions':>12} {'lines':>6} {'jumps':>6}   function")
    for name, (count, lines, leaps) in sorted(rows.items(), key=lambda item: -item[1][0]):
        print(f"{count:>12} {len(lines):>6} {leaps:>6}   {name}")
    if options.jumps:
        print()
        for i in sorted(jumped):
            print(f"{i:>6}  {source(modules, way[i])} -> {source(modules, way[i + 1])}")
    if options.data:
        print()
        print_data(modules, ways[len(ways) // 2])
    return 0


if __name__ == "__main__":
    sys.exit(main())
