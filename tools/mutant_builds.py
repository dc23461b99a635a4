"""Builds with faults in them, and which tests notice."""

import os
import pathlib
import re
import resource
import shutil
import subprocess
import sys
import time

import mutant_switch
import mutation

ROOT = pathlib.Path(__file__).resolve().parent.parent
CATCH = r"^-{20,}\n(.+)\n"
# What they are called, what is built for them (only when it is their turn), how they are run, and what they say.
STEPS = [
    ("unit test", ["test/unit/unit-tests"], ["--abort"], CATCH),
    ("scenario", ["test/sim/sim-scenarios"], ["--abort"], CATCH),
    ("without memory", ["test/sim/sim-without-memory"], ["--abort"], CATCH),
    ("simulator", ["test/sim/pullman-sim"],
     ["--seeds", "1..1000", "--max-failures", "1", "--jobs", "2"], r"^(seed .+)\n"),
]
OF_NICS = [("nic contract", ["test/nic/nic-contract", "test/standin/libstandin-fi.so"], ["--abort"], CATCH)]
OF_THREADS = [("threads", ["test/threads/threads-test"], ["--abort"], CATCH)]
PROVIDER_STEPS = [
    ("component of the provider", ["test/ofi/unit/ofi-unit-tests"], ["--abort"], CATCH),
    ("provider", ["test/ofi/ofi-tests", "lib/ofi/libpullman-fi.so"], ["--abort"], CATCH),
]
PROVIDER_ENVIRONMENT = {"FI_PROVIDER": "pullman", "PULLMAN_NICS": "lo", "PULLMAN_SHARED_MEMORY": "0",
                        "FI_PULLMAN_CLOSE_TIMEOUT": "1"}
DOES_NOT_COMPILE = "NOBODY: it does not compile"
# A mutant may hang or grow, that is noticed, too. The scenarios take a quarter of these seconds.
CPU_SECONDS = 200
MEMORY_BYTES = 8 << 30


def limited():
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))


def steps_for(mutant):
    if mutant.file.startswith("lib/ofi/"):
        return PROVIDER_STEPS
    if mutant.file.startswith("lib/nic/"):
        return OF_NICS
    if mutant.file.startswith("lib/base/"):
        return STEPS + OF_THREADS
    return STEPS


class Sandbox:
    """A copy of the tree and its build, in which one fault at a time is tried."""

    def __init__(self, name, processors):
        self.processors = processors
        self.folder = ROOT / f"build-mutants/{name}"
        self.tree, self.build = self.folder / "tree", self.folder / "build"
        self.inside = self.folder / "a-mutant-is-inside"  # left behind, the build is not to be trusted

    def prepare(self, steps):
        """A build without any mutant, in which every test that is going to be asked passes."""
        self.copy()
        found = self.noticed_by(steps)
        if found is not None:
            sys.exit(f"without any mutant this fails, mend it first: {found}")
        self.inside.touch()  # until all is built again without one: what is copied next time is older

    def copy(self):
        self.folder.mkdir(parents=True, exist_ok=True)
        shutil.rmtree(self.tree, ignore_errors=True)
        if self.inside.exists():
            shutil.rmtree(self.build, ignore_errors=True)
            self.inside.unlink()
        shutil.copytree(ROOT, self.tree, ignore=shutil.ignore_patterns("build*", ".git", "__pycache__"))
        if not (self.build / "build.ninja").exists():
            subprocess.run(["meson", "setup", "--optimization=1", "-Ddebug=false", "-Ddchecks=true",
                            "-Dwhole_program=false", "-Dtests=enabled", "-Dbenchmarks=disabled",
                            "-Dcpp_args=-Wno-narrowing", self.build, self.tree],
                           check=True, stdout=subprocess.DEVNULL)

    def leave(self, steps):
        if self.compiles(targets_of(steps)):
            self.inside.unlink()

    def errors(self, targets):
        """What the compiler says; nothing if all is built."""
        result = subprocess.run(["ninja", "-k0", f"-j{self.processors}", *targets], cwd=self.build, capture_output=True,
                                text=True, errors="replace", check=False)
        return "" if result.returncode == 0 else result.stdout + result.stderr

    def compiles(self, targets):
        command = ["ninja", f"-j{self.processors}", *targets]
        return subprocess.run(command, cwd=self.build, capture_output=True, check=False).returncode == 0

    def fails(self, step, environment):
        """What that step says is wrong, or None."""
        kind, targets, arguments, pattern = step
        # Of the NIC contract FI_PROVIDER would hide what it is about.
        if kind == "provider":
            environment = {**environment, **PROVIDER_ENVIRONMENT, "FI_PROVIDER_PATH": str(self.build / "lib/ofi")}
        result = self.run([self.build / targets[0], *arguments], environment)
        if result.returncode == 0:
            return None
        named = re.search(pattern, result.stdout, re.MULTILINE)
        return f"{kind}: {named[1].strip() if named else f'ends with {result.returncode}'}"

    def run(self, command, environment):
        return subprocess.run(command, cwd=self.build, capture_output=True, text=True, errors="replace",
                              env={**os.environ, **environment}, preexec_fn=limited, check=False)

    def noticed_by(self, steps):
        """What fails first, and its name for what is wrong; that something does not compile; or None."""
        for step in steps:
            if not self.compiles(step[1]):
                return DOES_NOT_COMPILE
            if found := self.fails(step, {}):
                return found
        return None

    def try_out(self, mutant):
        """What noticed it, or NOBODY."""
        place = self.tree / mutant.file
        text = place.read_text()
        place.write_text(mutant.applied(text))
        began = time.monotonic()
        found = self.noticed_by(steps_for(mutant)) or "NOBODY"
        place.write_text(text)
        tell(mutant, began, found)
        return found


class Batch:
    """A build that has many faults, each of which is switched on by its number."""

    def __init__(self, mutants, processors):
        self.mutants = dict(enumerate(mutants))  # by number; those that cannot be switched are taken out
        self.alone = []
        self.sandbox = Sandbox("switched", processors)
        self.lines = {}    # of a file, (first line, last line, number) of each fault in it
        self.reached = []  # (step, the numbers of those that it gets to)

    def prepare(self, steps):
        self.sandbox.copy()
        self.sandbox.inside.touch()
        while True:
            files = {mutant.file for mutant in self.mutants.values()} | set(self.lines)
            for file in files:
                self.write(file)
            said = self.sandbox.errors(targets_of(steps))
            if not said:
                break
            wrong = self.named_by(said)
            if not wrong:
                sys.exit(f"the build with switched faults fails, and at none of them:\n{said[-3000:]}")
            for number in wrong:
                self.alone.append(self.mutants.pop(number))
        for step in steps:
            marks = self.sandbox.folder / "reached"
            marks.write_bytes(bytes(mutant_switch.MOST))
            found = self.sandbox.fails(step, {"PULLMAN_MUTANTS_REACHED": str(marks)})
            if found is not None:
                sys.exit(f"without any mutant this fails, mend it first: {found}")
            self.reached.append((step, {number for number, mark in enumerate(marks.read_bytes()) if mark}))
        # What is never asked may be evaluated by the compiler.
        for number in set(self.mutants).difference(*(numbers for _, numbers in self.reached)):
            self.alone.append(self.mutants.pop(number))

    def write(self, file):
        """Puts a file's faults into it; those that cannot be switched are set aside."""
        text = (ROOT / file).read_text()
        mine = [(number, mutant) for number, mutant in self.mutants.items() if mutant.file == file]
        text, lines = mutant_switch.switched(text, mine, self.sandbox.tree / "test/mutants/chosen.h")
        place = self.sandbox.tree / file
        if place.read_text() != text:
            place.write_text(text)
        self.lines[file] = lines
        for number in {number for number, _ in mine} - {number for _, _, number in lines}:
            self.alone.append(self.mutants.pop(number))

    def named_by(self, said):
        """The numbers of the faults at which the compiler reports errors."""
        wrong = set()
        for place in re.finditer(r"^(\S+?):(\d+):\d+: error: ", said, re.MULTILINE):
            for file, lines in self.lines.items():
                if place[1].endswith(file):
                    wrong |= {number for first, last, number in lines if first <= int(place[2]) <= last}
        return wrong

    def try_out(self, number):
        """What noticed it, or NOBODY."""
        began = time.monotonic()
        steps = [step for step, numbers in self.reached if number in numbers]
        found = next(filter(None, (self.sandbox.fails(step, {"PULLMAN_MUTANT": str(number)}) for step in steps)), None)
        tell(self.mutants[number], began, found or "NOBODY")
        return found or "NOBODY"


def targets_of(steps):
    return [target for _, targets, _, _ in steps for target in targets]


def tell(mutant, began, found):
    said = f"{mutant.name:<60} {time.monotonic() - began:4.0f} s  {found}"
    if found.startswith("NOBODY"):
        said += "\n    " + "\n    ".join(mutation.identity(ROOT, mutant)[1:])
    print(said, flush=True)
