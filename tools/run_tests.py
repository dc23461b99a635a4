"""Everything that proves the project: builds, and what `meson test` and pytest say of it, counted.

    run_tests.py [--long] [--only GROUP] [--fuzz-seconds N]

Each step has a time limit and a log in build*/logs. What crashes, hangs, cannot be built or says nothing is a failure.
The last line is `N passed, N failed, N skipped`. How to run one test by hand: docs/testing.md.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
import xml.etree.ElementTree
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other):
        return Counts(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


# Where a test's failure, or a sanitizer's report, begins.
FAILURE = re.compile(r"(?i:failed)\b|.*: FAILED|.*Sanitizer: |.*: runtime error: ")


def read_counts(text):
    """The cases that a program says it had, or None: ours, the simulator's and Catch's way to say it."""
    line = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped", text, re.M)
    if line:
        return Counts(*map(int, line[-1]))
    line = re.findall(r"^(\d+) seeds?, (\d+) failed", text, re.M)
    if line:
        seeds, failed = map(int, line[-1])
        return Counts(seeds - failed, failed)
    line = re.findall(r"^All tests passed \(.* in (\d+) test cases?\)", text, re.M)
    if line:
        return Counts(int(line[-1]))
    line = re.findall(r"^test cases:(.*)$", text, re.M)
    if line:
        def number(word):
            found = re.search(rf"(\d+) {word}", line[-1])
            return int(found.group(1)) if found else 0
        return Counts(number("passed") + number("failed as expected"), number(r"failed(?! as)"))
    return None


def report(name, counts, seconds, why="", text=""):
    print(f"{name:<48} {counts}  ({seconds:.0f} s)", flush=True)
    if isinstance(counts, Counts) and counts.failed:
        print(f"    {why or 'failed'}")
        lines = text.splitlines()
        failed = [i for i, line in enumerate(lines) if FAILURE.match(line)]
        shown = {i for at in failed[:5] for i in range(at, min(at + 12, len(lines)))}
        for i in sorted(shown | set(range(max(0, len(lines) - 10), len(lines)))):
            print("    | " + lines[i])


def run(command, seconds, log, environment=None):
    """(exit code, what it said, how long it took); the code is 124 if it did not finish in time."""
    log.parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    with open(log, "w") as out:
        code = subprocess.run(["timeout", "--kill-after=10", str(seconds), *map(str, command)], stdout=out,
                              stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT, check=False,
                              env={**os.environ, **(environment or {})}).returncode
    return code, log.read_text(errors="replace"), time.monotonic() - began


def one(name, command, seconds, log, case=True):
    """A program whose exit code is all it says: one case, or with a build none."""
    code, text, took = run(command, seconds, log)
    if code == 0:
        report(name, Counts(1) if case else "done", took)
        return Counts(1 if case else 0)
    why = f"not finished after {seconds} s" if code in (124, 137) else f"exit code {code}"
    report(name, Counts(failed=1), took, f"{why}; log: {log.relative_to(ROOT)}", text)
    return Counts(failed=1)


class Build:
    """One build directory and its tests."""

    def __init__(self, folder, setup=(), compiler=None, environment=None):
        self.folder = ROOT / folder
        self.logs = self.folder / "logs"
        self.setup = [f"--native-file={compiler}"] if compiler else []
        self.setup += setup
        self.environment = environment or {}  # of its tests

    def configure(self):
        if (self.folder / "build.ninja").exists():
            # The meson files may have changed since: what is asked of the build is asked of the new one.
            command = ["ninja", "-C", self.folder, "build.ninja"]
        else:
            # The folder exists already, for the log: meson minds only what it made itself.
            command = ["meson", "setup", "--werror", *self.setup, self.folder]
        return one(f"{self.folder.name}: configure", command, 120, self.logs / "configure.log", case=False)

    def make(self, suites=()):
        """Configures and builds: what those suites run, or everything."""
        counts = self.configure()
        if counts.failed:
            return counts
        targets = self.targets_of(suites) if suites else []
        return counts + one(f"{self.folder.name}: build", ["ninja", "-C", self.folder, *targets], 1800,
                            self.logs / "build.log", case=False)

    def introspect(self, what):
        said = subprocess.run(["meson", "introspect", what, self.folder], capture_output=True, text=True, check=True)
        return json.loads(said.stdout)

    def targets_of(self, suites):
        wanted = {target for test in self.introspect("--tests") for target in test["depends"]
                  if any(name.split(":")[-1] in suites for name in test["suite"])}
        return [pathlib.Path(file).relative_to(self.folder) for target in self.introspect("--targets")
                if target["id"] in wanted for file in target["filename"]]

    def test(self, *suites, seconds=3600, arguments=()):
        """What meson runs of these suites, with the cases that each test says it had."""
        base = "-".join(suites)
        known = {name.split(":")[-1] for test in self.introspect("--tests") for name in test["suite"]}
        if missing := set(suites) - known:
            report(f"{self.folder.name}: {base}", Counts(failed=1), 0, f"no test is in the suites {missing}")
            return Counts(failed=1)
        chosen = [f"--suite={suite}" for suite in suites]
        log = self.logs / f"{base}.log"
        code, text, took = run(["meson", "test", "-C", self.folder, "--no-rebuild", f"--logbase={base}", *chosen,
                                *arguments], seconds, log, self.environment)
        results = self.folder / f"meson-logs/{base}.json"
        total = Counts()
        for line in results.read_text().splitlines() if results.exists() and code not in (124, 137) else []:
            total += self.count(json.loads(line))
        if total.passed + total.failed == 0 or (code != 0 and total.failed == 0):
            report(f"{self.folder.name}: {base}", Counts(failed=1), took, f"exit code {code}; log: {log}", text)
            total += Counts(failed=1)
        return total

    def count(self, test):
        text = test.get("stdout", "") + test.get("stderr", "")
        counts = read_counts(text) or Counts(1 if test["result"] == "OK" else 0)
        why = "" if test["result"] == "OK" else f"{test['result'].lower()}, exit code {test.get('returncode')}"
        if test["result"] == "SKIP":
            counts = Counts(skipped=1)
        elif why and counts.failed == 0:
            counts.failed = 1
        # meson says the project's name and the suite, too.
        report(f"{self.folder.name}: {test['name'].split(' / ')[-1]}", counts, test["duration"], why, text)
        return counts


def pytest(folder, build, options, *chosen):
    """A line for each file."""
    name = "-".join([folder.replace("/", "-"), *(word.replace(" ", "-") for word in chosen if word[0] != "-")])
    results, log = build.logs / f"{name}.xml", build.logs / f"{name}.log"
    results.unlink(missing_ok=True)
    code, text, took = run(["pytest-3", f"--build={build.folder}", f"--junitxml={results}", "-o", "junit_family=xunit1",
                            "--tb=short", *(["--long"] if options.long else []), *chosen, folder],
                           6000 if options.long else 1800, log)
    files = {}
    for case in xml.etree.ElementTree.parse(results).iter("testcase") if results.exists() else []:
        kinds = {child.tag for child in case}
        failed, skipped = bool(kinds & {"failure", "error"}), "skipped" in kinds
        name = case.get("file") or folder  # what cannot be collected has none
        counts, seconds = files.get(name, (Counts(), 0.0))
        files[name] = (counts + Counts(not failed and not skipped, failed, skipped),
                       seconds + float(case.get("time")))
    total = sum((counts for counts, _ in files.values()), Counts())
    for name, (counts, seconds) in files.items():
        report(name, counts, seconds, f"log: {log.relative_to(ROOT)}")
    if total.failed or total.passed + total.skipped == 0 or code != 0:
        total += Counts(failed=0 if total.failed else 1)
        report(folder, total, took, f"exit code {code}; log: {log.relative_to(ROOT)}", text)
    return total


# Quick to build, with the dear checks: what proves a change. Debug information would be a quarter of the build;
# `meson configure build-test -Ddebug=true` brings it.
TEST_BUILD = Build("build-test", setup=[
    "-Ddebug=false", "-Doptimization=1", "-Ddchecks=true", "-Dwhole_program=false", "-Dunity_library=true",
    "-Dtests=enabled", "-Dbenchmarks=disabled"])
# What ships, and what figures are measured with.
SHIPPED_BUILD = Build("build")


def sanitizer(folder, kinds, setup, environment):
    # Clang: its sanitizers are the stricter ones, and the code is built by a second compiler. A header that it has
    # compiled before names the folder it was in, and a cache of compilers may bring it from another one.
    return Build(folder, compiler=ROOT / "tools/clang.ini", environment=environment, setup=[
        f"-Db_sanitize={kinds}", "-Db_lundef=false", "-Db_pch=false", "-Ddchecks=true", "-Dwhole_program=false",
        "-Dunity_library=true", "-Dtests=enabled", "-Dbenchmarks=disabled", "--optimization=1", *setup])


# The fuzz targets are built beside the tests: they want the same library. Reports go to stdout: a test may have its
# stderr go to nobody, but what a sanitizer found has to be seen.
ADDRESS_BUILD = sanitizer("build-asan", "address,undefined",
                          ["-Dfuzz=true", "-Dcpp_args=-fno-sanitize-recover=all -fsanitize=fuzzer-no-link"],
                          {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:log_path=stdout",
                           "UBSAN_OPTIONS": "print_stacktrace=1:log_path=stdout"})
THREAD_BUILD = sanitizer("build-tsan", "thread", ["-Dcpp_args=-fno-sanitize-recover=all"],
                         {"TSAN_OPTIONS": "halt_on_error=1:log_path=stdout"})


def build_for(options):
    """What programs, NICs and MPI are tried with: long runs try what ships."""
    return SHIPPED_BUILD if options.long else TEST_BUILD


def core(options):
    """The rules of the tree, and all that needs no network of its own."""
    more = ["long"] if options.long else []
    return TEST_BUILD.make() + TEST_BUILD.test("house", "unit", "sim", "nic", "context", "ofi", *more)


def kernel(options):
    total = SHIPPED_BUILD.make() if options.long else Counts()
    total += pytest("test/kernel", build_for(options), options, "-m", "not waits")
    return total + pytest("test/kernel", build_for(options), options, "-m", "waits", "-n2")


def mpi(options):
    return pytest("test/mpi", build_for(options), options)


def address(options):
    """Without --long only the simulator: of all tests it brings the most code into the most states."""
    suites = ["sanitized", *(["unit", "sim", "nic", "context", "ofi"] if options.long else [])]
    return ADDRESS_BUILD.make(suites) + ADDRESS_BUILD.test(*suites)


def thread(_):
    return THREAD_BUILD.make(["threads"]) + THREAD_BUILD.test("threads")


def fuzz(options):
    seconds = options.fuzz_seconds or (60 if options.long else 10)
    return ADDRESS_BUILD.make(["fuzz"]) + ADDRESS_BUILD.test("fuzz", seconds=2 * seconds + 120, arguments=[
        "--timeout-multiplier=0", f"--test-args=-max_total_time={seconds}"])


def model(_):
    return one("model of two rails", [sys.executable, "tools/model.py"], 900, TEST_BUILD.logs / "model.log")


def mutants(_):
    return one("faults drawn from the syntax", ["tools/mutants", "--sample", "40"], 3600, TEST_BUILD.logs / "mutants.log")


def package(_):
    return one("Debian packages in a clean Debian", [sys.executable, "tools/package.py", "build-package", "--test"], 3600,
               TEST_BUILD.logs / "package.log")


# What proves a change comes first.
GROUPS = {"core": core, "kernel": kernel, "mpi": mpi, "address": address, "fuzz": fuzz}
LONG_GROUPS = {"model": model, "thread": thread, "mutants": mutants, "package": package}


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--long", action="store_true", help="all there is: more cases and seeds, on what ships, too")
    arguments.add_argument("--only", choices=[*GROUPS, *LONG_GROUPS])
    arguments.add_argument("--fuzz-seconds", type=int, help="each target (10; 60 with --long)")
    arguments.add_argument("--configure", action="store_true", help="only the build that is tested")
    options = arguments.parse_args()
    if options.configure:
        return 1 if TEST_BUILD.configure().failed else 0
    began = time.monotonic()
    total = Counts()
    chosen = {**GROUPS, **LONG_GROUPS} if options.long or options.only else GROUPS
    for name, group in chosen.items():
        if options.only in (name, None):
            total += group(options)
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
