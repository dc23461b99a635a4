"""What test cases here share: how one is written, run and counted.

A case is a function of (place, build) whose name is a sentence; it may say what its place is
(`make_place`). The last line printed is
`N passed, N failed, N skipped`.
"""

import argparse
import functools
import pathlib
import sys
import time
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "tools"))
import netns  # noqa: E402


class Failed(Exception):
    """What a case expected and did not see."""


class Broken(Failed):
    """What no machine can be too busy for."""


def expect(condition, what):
    if not condition:
        raise Failed(what)


def insist(condition, what):
    """As expect(), and the case is not tried again."""
    if not condition:
        raise Broken(what)


def long_run(*drivers):
    """Of a case that takes many seconds and is much like others: only `./dev test --long` runs it, with these drivers or
    with any."""
    def mark(function):
        function.long_for = drivers
        return function
    return mark


def of_driver(function, driver):
    """The case with that driver."""
    @functools.wraps(function)
    def one(place, build):
        function(place, build, driver)
    one.__name__ = f"{driver}: {function.__name__}"
    one.driver = driver
    return one


def is_long(function):
    drivers = getattr(function, "long_for", None)
    return drivers is not None and (not drivers or function.driver in drivers)


def sentence(function):
    return function.__name__.replace("_", " ")


def tried(function, make_place, build):
    """What went wrong, "" is nothing; and whether that is so however busy the machine is."""
    try:
        with getattr(function, "make_place", make_place)() as place:
            function(place, build)
    except Failed as problem:
        return str(problem) or "failed", isinstance(problem, Broken)
    except Exception:  # a fault of the test itself is a failure, too
        return traceback.format_exc(), False
    return "", False


def run_case(function, make_place, build):
    """Whether it passes. One that fails is tried once more, and says so: a machine shared with others may stand still
    for longer than a case can wait. What a case insists on is not: the second try would hide what happens seldom."""
    for attempt in (1, 2):
        start = time.monotonic()
        wrong, broken = tried(function, make_place, build)
        last = broken or attempt == 2
        verdict = "passed" if not wrong else "FAILED" if last else "again "
        print(f"{verdict} {time.monotonic() - start:6.1f} s  {sentence(function)}", flush=True)
        if not wrong:
            return True
        print("    " + wrong.replace("\n", "\n    "), flush=True)
        if last:
            break
    return False


def main(cases, make_place, why_not=""):
    """Runs `PROGRAM BUILD_DIRECTORY [--short] [--part K/N] [WORDS...]`: all cases, or those whose sentence has one of the
    words; `--short`: without the long ones; of these the Kth of N parts."""
    netns.exit_on_signals()
    arguments = argparse.ArgumentParser()
    arguments.add_argument("build", type=lambda name: pathlib.Path(name).resolve())
    arguments.add_argument("words", nargs="*")
    arguments.add_argument("--part", default="1/1")
    arguments.add_argument("--short", action="store_true")
    options = arguments.parse_args()
    part, parts = map(int, options.part.split("/"))
    build, wanted = options.build, options.words
    cases = [f for f in cases if not wanted or any(words in sentence(f) for words in wanted)]
    cases = [f for f in cases if not (options.short and is_long(f))][part - 1::parts]
    if why_not:
        for function in cases:
            print(f"skipped ({why_not}): {sentence(function)}")
        print(f"0 passed, 0 failed, {len(cases)} skipped")
        return 0
    passed = sum(run_case(function, make_place, build) for function in cases)
    print(f"{passed} passed, {len(cases) - passed} failed, 0 skipped")
    return 0 if passed == len(cases) else 1
