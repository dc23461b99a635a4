"""Everything that proves the project: builds, runs, counts.

    run_tests.py [--long] [--only NAME] [--fuzz-seconds N]

A list of steps, each with a time limit and a log in build*/logs. Every step ends in counts: what its
program said, or one failure if it crashed, hung, could not be built or said nothing. The last line is
`N passed, N failed, N skipped`.
"""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys
import time
from dataclasses import dataclass, field

ROOT = pathlib.Path(__file__).resolve().parent.parent
JOBS = os.cpu_count() or 2


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

    def __str__(self):
        return f"{self.passed} passed, {self.failed} failed, {self.skipped} skipped"


# Where a test's failure, or a sanitizer's report, begins.
FAILURE = re.compile(r"(?i:failed)\b|.*: FAILED|.*Sanitizer: |.*: runtime error: ")


# What programs say last, and how to count it.
def read_counts(text):
    """The counts a program printed, or None."""
    line = re.findall(r"^(\d+) passed, (\d+) failed, (\d+) skipped", text, re.M)
    if line:
        return Counts(*map(int, line[-1]))
    line = re.findall(r"^(\d+) seeds?, (\d+) failed", text, re.M)
    if line:
        seeds, failed = map(int, line[-1])
        return Counts(seeds - failed, failed)
    line = re.findall(r"^All tests passed \(.* in (\d+) test cases?\)", text, re.M)  # Catch2
    if line:
        return Counts(int(line[-1]))
    line = re.findall(r"^test cases:(.*)$", text, re.M)
    if line:
        def number(word):
            found = re.search(rf"(\d+) {word}", line[-1])
            return int(found.group(1)) if found else 0
        return Counts(number("passed") + number("failed as expected"), number(r"failed(?! as)"))
    return None


@dataclass
class Step:
    name: str
    command: list
    seconds: int
    logs: pathlib.Path
    counted: bool = True  # the program says its counts; otherwise its exit code is one case
    case: bool = True  # a build is none: it is reported when it fails
    environment: dict = field(default_factory=dict)
    alone: bool = True  # nothing runs beside it; without, it needs one processor and no network

    def start(self):
        self.logs.mkdir(parents=True, exist_ok=True)
        self.log = self.logs / (re.sub(r"[^a-z0-9]+", "-", self.name.lower()) + ".log")
        self.began = time.monotonic()
        self.why = ""
        self.process = None
        command = [str(word) for word in self.command]
        with open(self.log, "w") as log:
            try:
                self.process = subprocess.Popen(
                    ["timeout", "--kill-after=10", str(self.seconds), *command], stdout=log,
                    stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, cwd=ROOT,
                    env={**os.environ, **self.environment})
            except OSError as error:
                self.why = str(error)
        return self

    def finish(self):
        code = self.process.wait() if self.process else 127
        self.took = time.monotonic() - self.began
        text = self.log.read_text(errors="replace")
        counts = read_counts(text) if self.counted else Counts(1 if code == 0 and self.case else 0)
        if code in (124, 137):
            self.why = f"not finished after {self.seconds} s"
        elif code == 127 and not self.why:
            self.why = "no such program"
        if counts is None:
            counts = Counts()
            self.why = self.why or f"said no counts, exit code {code}"
        if code != 0 and counts.failed == 0:
            self.why = self.why or f"exit code {code}"
        if self.why and counts.failed == 0:
            counts.failed = 1
        self.report(counts, text)
        return counts

    def report(self, counts, text):
        said = counts if self.case or counts.failed else "done"
        print(f"{self.name:<48} {said}  ({self.took:.0f} s)", flush=True)
        for line in text.splitlines():
            if line.startswith(("skipped", "again ")):
                print("    " + line)
        if counts.failed:
            print(f"    {self.why or 'failed'}; log: {self.log.relative_to(ROOT)}")
            lines = text.splitlines()
            failed = [i for i, line in enumerate(lines) if FAILURE.match(line)]
            shown = {i for at in failed[:5] for i in range(at, min(at + 12, len(lines)))}
            for i in sorted(shown | set(range(max(0, len(lines) - 10), len(lines)))):
                print("    | " + lines[i])


class Build:
    """One build directory."""

    def __init__(self, folder, setup=(), environment=None):
        self.folder = ROOT / folder
        self.logs = self.folder / "logs"
        self.setup = setup
        self.environment = environment or {}

    def configure(self):
        if (self.folder / "build.ninja").exists():
            # The meson files may have changed since: what is asked of the build is asked of the new one.
            return self.step("configure", ["ninja", "-C", self.folder, "build.ninja"], 120)
        # The folder exists already, for the log: meson minds only what it made itself.
        return self.step("configure", ["meson", "setup", "--werror", *self.setup, self.folder], 120)

    def step(self, what, command, seconds):
        return Step(f"{self.folder.name}: {what}", command, seconds, self.logs, counted=False,
                    case=False, environment=self.environment).start().finish()

    def make(self, choose_targets=list):
        """Configures and builds. `choose_targets` is asked once the build is configured; none is all."""
        counts = self.configure()
        if counts.failed:
            return counts
        return self.step("build", self.ninja(choose_targets()), 1800)

    def ninja(self, targets):
        return ["ninja", "-C", self.folder, "-j", JOBS, *targets]

    def introspect(self, what):
        result = subprocess.run(["meson", "introspect", what, str(self.folder)], capture_output=True,
                                text=True, check=False)
        return json.loads(result.stdout) if result.returncode == 0 else []

    def tests(self, suite=None):
        return [test for test in self.introspect("--tests")
                if suite is None or any(name.endswith(f":{suite}") for name in test["suite"])]

    def test_targets(self, suite=None):
        """What those tests run or load; without a suite, everything defined under test/."""
        needed = {target for test in self.tests(suite) for target in test["depends"]}
        files = []
        for target in self.introspect("--targets"):
            place = pathlib.Path(target["defined_in"]).relative_to(ROOT)
            wanted = (place.parts[0] == "test" and "kernel" not in place.parts and
                      target["build_by_default"] and (suite is None or target["id"] in needed))
            if wanted and target["type"] in ("executable", "shared library", "shared module"):
                files += [str(pathlib.Path(f).relative_to(self.folder)) for f in target["filename"]]
        return files

    def unit_steps(self, environment=None, suite=None):
        """The programs that say test() in the meson files; the simulator has a step of its own."""
        return [
            Step(f"{self.folder.name}: {test['name']}", test["cmd"], max(120, test["timeout"]),
                 self.logs, environment={**test["env"], **(environment or {})},
                 alone=not test["is_parallel"])
            for test in self.tests(suite) if not test["cmd"][0].endswith("/pullman-sim")
        ]

    def simulator(self, seeds, seconds, environment=None):
        return Step(f"{self.folder.name}: simulator, seeds {seeds}",
                    [self.folder / "test/sim/pullman-sim", "--seeds", seeds], seconds, self.logs,
                    environment=environment or {}, alone=False)

    def kept_seeds(self, seconds):
        return Step(f"{self.folder.name}: simulator, seeds that failed once",
                    [self.folder / "test/sim/pullman-sim", "--kept", ROOT / "test/sim/kept_seeds.txt"],
                    seconds, self.logs, alone=False)


def run(steps):
    """One after the other; those that may, as many at a time as there are processors."""
    total = Counts()
    running = []

    def finish_until(most):
        while len(running) > most:
            ended = [step for step in running if not step.process or step.process.poll() is not None]
            for step in ended:
                running.remove(step)
                total.add(step.finish())
            if not ended:
                time.sleep(0.05)

    for step in steps:
        finish_until(0 if step.alone else JOBS - 1)
        running.append(step.start())
        if step.alone:
            finish_until(0)
    finish_until(0)
    return total


def script(name, command, seconds, **more):
    return Step(name, [sys.executable, *command], seconds, TEST_BUILD.logs, **more)


def halves(name, command, seconds):
    """Its cases have networks of their own and need little more than a processor: side by side."""
    return [script(f"{name}, {part}", [*command, "--part", part], seconds, alone=False) for part in ("1/2", "2/2")]


def unit_steps_or_failure(build, environment=None, suite=None):
    """No registered test at all is a failure, not a silence."""
    steps = build.unit_steps(environment, suite)
    return steps or [Step(f"{build.folder.name}: unit tests", ["false"], 10, build.logs)]


# Quick to build, with the dear checks: what proves a change. Debug information would be a quarter of the build;
# `meson configure build-test -Ddebug=true` brings it.
TEST_BUILD = Build("build-test", setup=[
    "-Ddebug=false", "-Doptimization=1", "-Ddchecks=true", "-Dwhole_program=false", "-Dunity_library=true",
    "-Dtests=enabled", "-Dbenchmarks=disabled"])
# What ships, and what figures are measured with.
SHIPPED_BUILD = Build("build")


def build_for(options):
    """What programs, NICs and MPI are tried with: long runs try what ships."""
    return (SHIPPED_BUILD if options.long else TEST_BUILD).folder.name


def core(options):
    """The build, the house's rules, and all that needs no network of its own."""
    total = TEST_BUILD.make()
    total.add(run([
        script("layer rule", ["tools/layers.py"], 60),
        script("layer rule notices a violation", ["tools/layers.py", "--self-test"], 60),
        script("file map", ["tools/filemap.py"], 60),
        script("the field's words", ["tools/words.py"], 60),
        script("what rounds say about a figure", ["-m", "doctest", "tools/verdict.py"], 60, counted=False),
        script("faults from the syntax", ["-m", "doctest", "tools/mutation.py"], 60, counted=False),
        script("mutants apply", ["tools/mutants", "--check"], 60),
        script("public headers", ["tools/public_headers.py", TEST_BUILD.folder.name], 120),
        script("README's code against the installed library", ["tools/readme.py", TEST_BUILD.folder.name], 120),
    ]))
    total.add(run([TEST_BUILD.simulator("1..6000" if options.long else "1..2000", 300), TEST_BUILD.kept_seeds(180),
                   *unit_steps_or_failure(TEST_BUILD)]))
    return total


def kernel(options):
    total = SHIPPED_BUILD.make() if options.long else Counts()
    build = build_for(options)
    short = [] if options.long else ["--short"]
    total.add(run([
        script("programs and examples", ["test/kernel/programs.py", build, *short], 480),
        script("hosts as they are", ["test/kernel/hosts.py", build, *short], 240),
        script("links and routes", ["test/kernel/links.py", build, *short], 360),
        script("NICs and ports", ["test/kernel/nics.py", build, *short], 360),
        script("libfabric's programs", ["test/kernel/libfabric.py", build, *short], 480),
        script("rails on real kernels", ["test/kernel/rails.py", build, *short], 900),
        script("two NICs on one subnet", ["test/kernel/subnet.py", build, *short], 900),
        script("real kernels", ["test/kernel/run.py", build, *short], 1200)]))
    return total


def mpi(options):
    return run([script("MPI on the provider", ["test/mpi/run.py", build_for(options)], 1200)])


def lossy(options):
    build = build_for(options)
    return run(halves("the provider's tests, lossy and cut", ["test/kernel/provider.py", build], 480))


def mutants(_):
    return run([script("faults drawn from the syntax", ["tools/mutants", "--sample", "40"], 3600)])


def model(_):
    return run([script("model of two rails", ["tools/model.py"], 900)])


def sanitizer(folder, kinds, more=()):
    # Clang: its sanitizers are the stricter ones, and the code is built by a second compiler. A header that it has
    # compiled before names the folder it was in, and a cache of compilers may bring it from another one.
    return Build(folder, setup=[f"-Db_sanitize={kinds}", "-Db_lundef=false", "-Db_pch=false", "-Ddchecks=true",
                                "-Dwhole_program=false", "-Dunity_library=true", "-Dtests=enabled",
                                "-Dbenchmarks=disabled", "--optimization=1", *more],
                 environment={"CXX": "ccache clang++", "CC": "ccache clang"})


# The fuzz targets are built beside the tests: they want the same library.
ADDRESS_BUILD = sanitizer("build-asan", "address,undefined", [
    "-Dfuzz=true", "-Dcpp_args=-fno-sanitize-recover=all -fsanitize=fuzzer-no-link"])
FUZZ_TARGETS = ("fuzz-decoder", "fuzz-link")
# To stdout: a test may have its stderr go to nobody, but what a sanitizer found has to be seen.
ADDRESS_OPTIONS = {"ASAN_OPTIONS": "detect_stack_use_after_return=1:strict_string_checks=1:log_path=stdout",
                   "UBSAN_OPTIONS": "print_stacktrace=1:log_path=stdout"}


def address(options):
    """Without --long only the simulator: of all tests it brings the most code into the most states."""
    build = ADDRESS_BUILD
    total = build.make(build.test_targets if options.long else lambda: ["test/sim/pullman-sim"])
    total.add(run([build.simulator("1..200", 180, ADDRESS_OPTIONS),
                   *(unit_steps_or_failure(build, ADDRESS_OPTIONS) if options.long else [])]))
    return total


def thread(_):
    build = sanitizer("build-tsan", "thread", ["-Dcpp_args=-fno-sanitize-recover=all"])
    total = build.make(lambda: build.test_targets("threads"))
    total.add(run(unit_steps_or_failure(build, {"TSAN_OPTIONS": "halt_on_error=1:log_path=stdout"}, "threads")))
    return total


def fuzz(options):
    build = ADDRESS_BUILD
    seconds = options.fuzz_seconds or (60 if options.long else 10)
    total = build.make(lambda: [f"test/fuzz/{name}" for name in FUZZ_TARGETS])
    steps = []
    for name in FUZZ_TARGETS:
        corpus = build.folder / "corpus" / name
        corpus.mkdir(parents=True, exist_ok=True)
        seeds = [folder for folder in [ROOT / "test/fuzz/corpus" / name] if folder.is_dir()]
        steps.append(Step(f"fuzz: {name}, {seconds} s", [
            build.folder / "test/fuzz" / name, f"-max_total_time={seconds}", "-timeout=10",
            "-rss_limit_mb=2048", f"-artifact_prefix={build.logs}/{name}-", corpus, *seeds],
            seconds + 60, build.logs, counted=False, alone=False, environment=ADDRESS_OPTIONS))
    total.add(run(steps))
    return total


# What proves a change comes first.
GROUPS = {"core": core, "kernel": kernel, "mpi": mpi, "address": address, "fuzz": fuzz}
LONG_GROUPS = {"lossy": lossy, "model": model, "thread": thread, "mutants": mutants}


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
            total.add(group(options))
    print(f"{(time.monotonic() - began) / 60:.1f} minutes")
    print(total)
    return 1 if total.failed else 0


if __name__ == "__main__":
    sys.exit(main())
