"""Faults for tools/mutants: those of a list, and those that follow from the syntax.

A fault is a place in a file and what stands there instead. The generated ones need no parser, since clang-format has
put a blank on both sides of each binary operator, and of nothing else that looks like one.
"""

import functools
import hashlib
import pathlib
import re
import tomllib
from dataclasses import dataclass

# `<` and `>` with blanks around them close no template.
EXCHANGED = {" < ": " <= ", " <= ": " < ", " > ": " >= ", " >= ": " > ", " == ": " != ", " != ": " == ",
             " && ": " || ", " || ": " && ", " + ": " - ", " - ": " + ", " += ": " -= ", " -= ": " += "}
OPERATOR = re.compile("|".join(re.escape(word) for word in sorted(EXCHANGED, key=len, reverse=True)))
CONDITION = re.compile(r"\b(?:if|while) \(")
CALL = re.compile(r"^ +(?!return\b|throw\b|delete\b|co_)[\w.>\[\]-]+\(.*\);$")
ASSIGNMENT = re.compile(r"^ +[\w.>\[\]-]+ [-+|&^]?= .*;$")
NUMBER = re.compile(r"(?<![\w.'])(\d+)(?=[,;)\]} ]|u\b)")
# What is no behaviour, or is not seen by a test that sees behaviour.
PASSED_OVER = re.compile(r"^\s*(#|//|using |template|static_assert|namespace|case )|PULLMAN_D?CHECK|\blog\(\)|"
                         r"\[\[|\bassert|constexpr bool|operator")


@dataclass(frozen=True)
class Mutant:
    name: str
    file: str    # from the project's root
    begin: int   # of the text that is replaced, in characters
    old: str
    new: str
    line: int

    def applied(self, text):
        assert text[self.begin:self.begin + len(self.old)] == self.old
        return text[:self.begin] + self.new + text[self.begin + len(self.old):]


def without_comment(line):
    """What of the line is code; strings are empty, of the same length.

    >>> without_comment('  say("a // b", 1);  // why')
    '  say("      ", 1);  '
    """
    line = re.sub(r'"(?:[^"\\]|\\.)*"', lambda found: '"' + " " * (len(found[0]) - 2) + '"', line)
    return line.split("//")[0]


def closing(code, at):
    """Where the parenthesis that opens at `at` closes; -1 if it does not.

    >>> closing("if (a(b) == c) return;", 3)
    13
    """
    depth = 0
    for i in range(at, len(code)):
        depth += {"(": 1, ")": -1}.get(code[i], 0)
        if depth == 0:
            return i
    return -1


def is_whole_statement(code, before):
    """The line is a statement, and not the rest of one.

    >>> is_whole_statement("  a.b(c);", "  x = 1;"), is_whole_statement("      b(c);", "  const int a ="), \\
    ...     is_whole_statement("  return f(x);", "{"), is_whole_statement("  int n = 1;", "{")
    (True, False, False, False)
    """
    if not CALL.match(code) and not ASSIGNMENT.match(code):
        return False
    return before.strip() == "" or before.rstrip().endswith((";", "{", "}", ":"))


def of_line(code, before):
    """(kind, first column, last column, replacement) of each fault of a line of code.

    >>> of_line("  if (a < b) return 3;", "{")  # doctest: +NORMALIZE_WHITESPACE
    [('condition negated', 6, 11, '!(a < b)'), ('< for <=', 7, 10, ' <= '), ('3 for 4', 20, 21, '4')]
    >>> of_line("constexpr Duration kPause = std::chrono::milliseconds(200);", "{")
    []
    """
    if PASSED_OVER.search(code):
        return []
    found = []
    for condition in CONDITION.finditer(code):
        opens = condition.end() - 1
        closes = closing(code, opens)
        inner = code[opens + 1:closes]
        if closes > 0 and ";" not in inner and " = " not in inner:
            found.append(("condition negated", opens + 1, closes, f"!({inner})"))
    for operator in OPERATOR.finditer(code):
        new = EXCHANGED[operator[0]]
        found.append((f"{operator[0].strip()} for {new.strip()}", operator.start(), operator.end(), new))
    # A time that somebody chose is as good if it is a little longer.
    for number in () if "chrono::" in code else NUMBER.finditer(code):
        new = str(int(number[1]) + 1)
        found.append((f"{number[1]} for {new}", number.start(1), number.end(1), new))
    if is_whole_statement(code, before):
        found.append(("statement dropped", len(code) - len(code.lstrip()), len(code.rstrip()), ";"))
    return found


def of_text(file, text):
    mutants, at, before = [], 0, ""
    for number, line in enumerate(text.splitlines(keepends=True), 1):
        code = without_comment(line.rstrip("\n"))
        for kind, begin, end, new in of_line(code, before):
            mutants.append(Mutant(f"{file}:{number}: {kind}", file, at + begin, line[begin:end], new, number))
        if code.strip():
            before = code
        at += len(line)
    return mutants


def generated(root, folders):
    """Of every source below these folders, in the order of names and lines."""
    files = sorted(file for folder in folders for file in (root / folder).rglob("*") if file.suffix in (".h", ".cc"))
    return [mutant for file in files for mutant in of_text(str(file.relative_to(root)), file.read_text())]


def listed(root, source=pathlib.Path("test/mutants/ideas.toml")):
    """(mutants, what is wrong with others) of the list."""
    mutants, wrong = [], []
    for entry in tomllib.loads((root / source).read_text())["mutant"]:
        text = (root / entry["file"]).read_text() if (root / entry["file"]).exists() else ""
        if text.count(entry["find"]) != 1:
            wrong.append(f"{entry['name']}: {entry['file']} has its text {text.count(entry['find'])} times")
            continue
        begin = text.index(entry["find"])
        mutants.append(Mutant(entry["name"], entry["file"], begin, entry["find"], entry["replace"],
                              text.count("\n", 0, begin) + 1))
    return mutants, wrong


def equivalents(root, source=pathlib.Path("test/mutants/equivalent.toml")):
    """{(file, line of text, what stands there instead)} of faults that change nothing that can be seen."""
    entries = tomllib.loads((root / source).read_text())["mutant"]
    return {(entry["file"], entry["line"].strip(), entry["becomes"].strip()) for entry in entries}


def outdated(root):
    """What is wrong with those: a line that is not there any more."""
    def lines_of(file):
        return {line.strip() for line in (root / file).read_text().splitlines()} if (root / file).exists() else set()
    return [f"equivalent: {file} has no line {line}" for file, line, _ in sorted(equivalents(root))
            if line not in lines_of(file)]


def drawn(root, mutants, seed, known):
    """Those that are not known to be equivalent, in an order that depends on the seed and on each one's own line alone:
    a change elsewhere changes nothing in what is drawn."""
    def rank(one):
        return hashlib.sha256(f"{seed} {one}".encode()).digest()
    named = {name: mutant for mutant in mutants
             if (name := identity(root, mutant)) not in known}
    return [named[one] for one in sorted(named, key=rank)]


@functools.cache
def text_of(file):
    return file.read_text()


def identity(root, mutant):
    """As equivalents() has it: it survives that lines move."""
    text = text_of(root / mutant.file)
    begin, end = text.rfind("\n", 0, mutant.begin) + 1, text.find("\n", mutant.begin)
    line = text[begin:end]
    at = mutant.begin - begin
    return mutant.file, line.strip(), (line[:at] + mutant.new + line[at + len(mutant.old):]).strip()
