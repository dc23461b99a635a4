"""Which memory an x86-64 instruction touches, from what objdump prints of it and the registers before it."""

import functools
import re
import subprocess

NAMES = "rax rbx rcx rdx rsi rdi rbp rsp r8 r9 r10 r11 r12 r13 r14 r15 fs_base".split()
WORD = 8
TOUCH_NOTHING = ("lea", "nop", "cs nop", "data16")  # though they name memory, or seem to
OPERAND = re.compile(r"(%fs:)?(-?0x[0-9a-f]+)?\((%\w+)?(?:,(%\w+),(\d))?\)|%fs:(0x[0-9a-f]+)")


@functools.cache
def instructions(path):
    """Of a file: from the address of each to its text, and to that of the one behind it."""
    said = subprocess.run(["objdump", "-d", "--no-show-raw-insn", path], capture_output=True, text=True, check=False).stdout
    found = [(int(at, 16), text) for at, text in re.findall(r"^ *([0-9a-f]+):\t(.*)$", said, re.MULTILINE)]
    ends = [at for at, _ in found[1:]] + [found[-1][0] if found else 0]
    return {at: (text, end) for (at, text), end in zip(found, ends)}


def value(register, registers, following):
    if register is None or register == "%riz":
        return 0
    return following if register == "%rip" else registers[register[1:]]


def width(text):
    """At most: what it reads beyond, it reads of the same line nearly always."""
    if "%ymm" in text:
        return 32
    return 16 if "%xmm" in text and not re.match(r"v?mov(q|d|ss|sd|lp|hp)", text) else 1


def touched(text, registers, following):
    """The first and the last address of each piece of memory; `following` is where the next instruction is."""
    if text.startswith(TOUCH_NOTHING):
        return []
    found = []
    for segment, offset, base, index, scale, absolute in OPERAND.findall(text):
        at = int(offset or absolute or "0", 16) + value(base or None, registers, following)
        at += value(index or None, registers, following) * int(scale or 1)
        at += registers["fs_base"] if segment or absolute else 0
        at &= (1 << 64) - 1
        found.append((at, at + width(text) - 1))
    name = text.split()[0]
    if name.startswith(("push", "call")):
        found.append((registers["rsp"] - WORD, registers["rsp"] - 1))
    elif name.startswith(("pop", "ret", "leave")):
        top = registers["rbp" if name.startswith("leave") else "rsp"]
        found.append((top, top + WORD - 1))
    return found
