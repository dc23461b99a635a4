"""Many faults in one build: which of them is in effect is told to a program by PULLMAN_MUTANT.

A fault can be switched if it stands in an expression, or is a statement, that has a value or an effect while the
program runs. `a < b` for `a <= b` becomes `(chosen(7) ? bool(a <= b) : bool(a < b))`. What the compiler evaluates
cannot be switched: such a fault needs a build of its own.
"""

import re

import mutation

LOOP = re.compile(r"\bfor \(([^;{}]*);([^;{}]*);")
# A statement without what begins another one; an assignment or a call is no declaration, which has two words.
RETURN = re.compile(r"\s*return\s+(?!\{)(?P<value>[^;{}]+);")
EFFECT = re.compile(r"\s*(?:\+\+|--|\*)?(?!return\b|throw\b|delete\b|case\b|using\b|else\b|do\b)"
                    r"[\w.:>\[\]-]+(?:\([^;{}]*\)| [-+*/|&^%]?= [^;{}]+);")
INITIALISER = re.compile(r"\s*(?!constexpr\b|static\b|inline\b|using\b|return\b)"
                         r"[\w:<>,&* ]+?[\w>&*]+ \w+ = (?P<value>[^;{}]+);")
MOST = 4096  # as in chosen.h
CALL = "::pullman::mutants::is_chosen({})"


def code_of(text):
    """The text with blanks for its comments and what its strings contain: as long, and with the same lines.

    >>> code_of('a("x;y");  // why\\nb')
    'a("   ");        \\nb'
    """
    def blank(found):
        return re.sub(r"[^\n\"]" if found[0].startswith('"') else r"[^\n]", " ", found[0])
    return re.sub(r"//[^\n]*|/\*.*?\*/|\"(?:[^\"\\\n]|\\.)*\"", blank, text, flags=re.S)


def start_of_statement(code, at):
    """Behind the `;`, brace or label before `at`.

    >>> start_of_statement("{ a; b(c); }", 7)
    4
    """
    while at > 0 and code[at - 1] not in ";{}":
        at -= 1
    return at


def region(code, mutant: mutation.Mutant):
    """(begin, end, kind) of what is to be there twice, or None; `kind` is "condition", "value" or "statement"."""
    begin, end = mutant.begin, mutant.begin + len(mutant.old)
    first = start_of_statement(code, begin)
    # A label, or an access specifier, ends in front of the statement.
    while label := re.compile(r"\s*(?:case [^;{}?]+?|default|public|private|protected)(?<!:):(?!:)").match(code, first):
        first = label.end()
    while condition := re.compile(r"\s*(?:\} )?(?:else )?(?:if|while) \(|\s*else\b").match(code, first):
        if not condition[0].endswith("("):
            first = condition.end()
            continue
        opens = condition.end() - 1
        closes = mutation.closing(code, opens)
        if closes < 0:
            return None
        if begin < closes:
            inner = code[opens + 1:closes]
            fits = opens < begin and end <= closes and ";" not in inner and " = " not in inner
            return (opens + 1, closes, "condition") if fits else None
        first = closes + 1
    for pattern, kind in ((RETURN, "value"), (EFFECT, "statement"), (INITIALISER, "value")):
        found = pattern.match(code, first)
        if found is None:
            continue
        blanks = len(found[0]) - len(found[0].lstrip())
        whole = found.span("value") if kind == "value" else (first + blanks, found.end())
        if whole[0] <= begin and end <= whole[1]:
            return (*whole, kind)
    return None


def in_loop(code, mutant: mutation.Mutant):
    """The same for what decides whether a `for` goes on."""
    line = code.rfind("\n", 0, mutant.begin) + 1
    loop = LOOP.search(code, line)
    if loop is None or not (loop.start(2) <= mutant.begin and mutant.begin + len(mutant.old) <= loop.end(2)):
        return None
    return (*loop.span(2), "condition")


def one_line(code):
    return re.sub(r"\s*\n\s*", " ", code)


def without_comments(text):
    return re.sub(r"//[^\n]*", "", text)


def replacement(text, code, mutant: mutation.Mutant, number):
    """(begin, end, text that has both), or None.

    >>> def switch(text):
    ...     for mutant in mutation.of_text("a.cc", text):
    ...         begin, end, both = replacement(text, code_of(text), mutant, 7)
    ...         print(text[:begin] + both.replace("::pullman::mutants::", "") + text[end:])
    >>> switch("  if (a < b) {")
      if (is_chosen(7) ? static_cast<bool>(!(a < b)) : static_cast<bool>(a < b)) {
      if (is_chosen(7) ? static_cast<bool>(a <= b) : static_cast<bool>(a < b)) {
    >>> switch("  return a + f(3);")
      return is_chosen(7) ? (a - f(3)) : (a + f(3));
      return a + f((is_chosen(7) ? 4 : 3));
    >>> switch("  a.b(c);")
      if (!is_chosen(7)) a.b(c);
    >>> switch("  const int n = a == b;")
      const int n = is_chosen(7) ? (a != b) : (a == b);
    """
    chosen = CALL.format(number)
    end = mutant.begin + len(mutant.old)
    if mutant.new == ";":
        return mutant.begin, end, f"if (!{chosen}) {mutant.old}"
    if mutant.old.isdigit() and code[end:end + 1] != "u":
        return mutant.begin, end, f"({chosen} ? {mutant.new} : {mutant.old})"
    found = in_loop(code, mutant) or region(code, mutant)
    if found is None:
        return None
    begin, end, kind = found
    old = text[begin:end]
    new = one_line(without_comments(old[:mutant.begin - begin] + mutant.new +
                                    old[mutant.begin - begin + len(mutant.old):]))
    if "//" in old:
        return None  # what follows it would be in the comment
    if kind == "statement":
        return begin, end, f"if ({chosen}) {{ {new} }} else {{ {old} }}"
    if kind == "condition":
        return begin, end, f"{chosen} ? static_cast<bool>({new}) : static_cast<bool>({old})"
    return begin, end, f"{chosen} ? ({new}) : ({old})"


def switched(text, mutants, header):
    """(the text with all of the numbered mutants that can be switched, (first line, last line, number) of these).

    `mutants` are (number, mutant) of one file. Lines keep their numbers.
    """
    code = code_of(text)
    taken, lines = [], []
    for number, mutant in sorted(mutants, key=lambda one: one[1].begin):
        both = replacement(text, code, mutant, number)
        if both is None or (taken and both[0] < taken[-1][1]):
            continue
        taken.append(both)
        lines.append((1 + text.count("\n", 0, both[0]), 1 + text.count("\n", 0, both[1]), number))
    for begin, end, both in reversed(taken):
        text = text[:begin] + both + text[end:]
    return (f'#include "{header}"\n#line 1\n{text}' if taken else text), lines
