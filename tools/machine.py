"""How far apart the two processors are: how long a line of the cache takes from one to the other.

The host of a virtual machine may move them, within seconds: 27 ns in one state of a machine and 166 in the other, and
with them streams of 5.2 and 1.8 GB/s. What was measured in different states must not be compared.
"""

import re
import subprocess

MOVED = 2.0  # between two of them
ENOUGH = 3  # measurements in one state


def line_ns(build):
    """Nanoseconds; None if there are no two processors."""
    said = subprocess.run([build / "bench/floor", "pass", "--rounds", "3"], capture_output=True, text=True, timeout=60,
                          check=False).stdout
    found = re.search(r": (\d+) ns", said)
    return int(found[1]) if found else None


def stayed(*lines):
    """Whether the processors stayed where they were, by line_ns() at all those times; True if it is not known."""
    return not lines or None in lines or max(lines) <= MOVED * min(lines)


def of_one_state(measured):
    """{name: [(figures, (line_ns() before, and after)), ...]} from one state of the machine, the near one
    if there are ENOUGH of each: {name: [figures, ...]}, and in words which those are."""
    lines = [ns for rounds in measured.values() for _, both in rounds for ns in both if ns is not None]
    for far in (False, True):
        def in_state(both):
            return stayed(*both) and (None in both or (min(both) > MOVED * min(lines)) == far)
        kept = {name: [figures for figures, both in rounds if in_state(both)] for name, rounds in measured.items()}
        if lines and all(len(rounds) >= ENOUGH for rounds in kept.values()):
            counts = ", ".join(str(len(rounds)) for rounds in kept.values())
            where = "far apart" if far else "near each other"
            return kept, f"{counts} runs, with the processors {where} (near: {min(lines)} ns)"
    everything = {name: [figures for figures, _ in rounds] for name, rounds in measured.items()}
    return everything, "all runs, wherever the processors were"
