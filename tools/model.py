"""The formal model of two rails (test/model/rails.pml), checked by spin: proofs, then mutants.

    model.py [--proofs] [NAME ...]

A proof is a run of spin's verifier over all states, without an error and without a bound that cut
it short. A mutant is the model with something wrong in it, and spin must find an error; a witness
is a state that must be found, since without it the proofs would say little. With NAMEs only those
whose names contain one are run. The verifiers are built in build/model; a counter-example stays
there, with a script that replays it.
"""

import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time
from dataclasses import dataclass

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODEL = ROOT / "test/model/rails.pml"
PLACE = ROOT / "build/model"
MEGABYTES = 2000  # for one run
SECONDS = 900  # a guard against hanging: docs/model.md says what they take

SAFETY = "safety"  # assertions, breadth first: the shortest counter-example
LIVENESS = "liveness"  # assertions, and the claim that everything comes to its end


@dataclass
class Run:
    name: str
    kind: str
    defines: tuple
    fails: bool = False  # a mutant, or a witness

    def words(self):
        live = ["LIVENESS"] if self.kind == LIVENESS else []
        return [f"-D{word}" for word in [*live, *self.defines]]


def spans(first, second, *more):
    return (f"SPAN_0={first}", f"SPAN_1={second}", *more)


PROOFS = [
    Run("safety, 3 numbers on each rail", SAFETY, spans(3, 3)),
    Run("safety, 4 numbers and 2", SAFETY, spans(4, 2)),
    Run("liveness, 2 numbers, 2 messages", LIVENESS, spans(2, 2, "ID_WINDOW=2")),
    Run("liveness, 1 number, 3 messages", LIVENESS, spans(1, 1)),
]


def mutant(name, kind, *where):
    return Run(f"mutant {name.lower().replace('_', ' ')}", kind, (*where, f"MUTANT_{name}"), True)


MUTANTS = [
    Run("witness all of a window evacuated", SAFETY, spans(3, 3, "WITNESS"), True),
    mutant("REUSES_NUMBER", SAFETY, *spans(3, 3)),
    mutant("KEEPS_EVACUATED", SAFETY, *spans(3, 3)),
    mutant("FLOOR_TOO_HIGH", SAFETY, *spans(3, 3)),
    mutant("FLOOR_NOT_CARRIED", SAFETY, *spans(4, 2)),
    mutant("FLOOR_CLEARS_ALL", SAFETY, *spans(3, 3)),
    mutant("FORGETS_IDS", SAFETY, *spans(3, 3)),
    mutant("IGNORES_ID_WINDOW", SAFETY, *spans(3, 3)),
    mutant("ACKS_UNTAKEN", SAFETY, *spans(3, 3)),
    mutant("ACK_BY_SLOT", SAFETY, *spans(4, 2)),
    mutant("ACK_FOR_WRONG_RAIL", SAFETY, *spans(3, 3)),
    mutant("FORGETS_QUEUED", LIVENESS, *spans(1, 1, "ID_WINDOW=2")),
    mutant("NEVER_EVACUATES", LIVENESS, *spans(1, 1, "ID_WINDOW=2")),
]


class Wrong(Exception):
    """Why a run does not count."""


def call(command, place, seconds):
    try:
        result = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=seconds,
                                errors="replace", check=False)
    except subprocess.TimeoutExpired:
        raise Wrong(f"{command[0]}: not finished after {seconds} s") from None
    except OSError as error:
        raise Wrong(f"{command[0]}: {error.strerror}") from None
    return result.returncode, result.stdout + result.stderr


def build(run, place):
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    shutil.copy(MODEL, place)
    code, said = call(["spin", "-a", *run.words(), MODEL.name], place, SECONDS)
    if code != 0 or "rror" in said:
        raise Wrong(f"spin: {said.strip()}")
    # No partial order reduction: all steps share all state, there is nothing to gain.
    how = ["-DSAFETY", "-DBFS"] if run.kind == SAFETY else ["-DNOFAIR"]
    # spin's C is not ours to warn of.
    how += ["-DNOREDUCE", f"-DMEMLIM={MEGABYTES}", "-O1" if run.fails else "-O2", "-w"]
    code, said = call(["cc", *how, "-o", "pan", "pan.c"], place, SECONDS)
    if code != 0:
        raise Wrong(f"cc: {said.strip()[-400:]}")


def verify(run, place):
    options = [] if run.kind == SAFETY else ["-a", "-m6000000"]
    code, said = call(["./pan", "-E", *options], place, SECONDS)
    (place / "pan.log").write_text(said)
    errors = re.search(r"errors: (\d+)", said)
    if code != 0 or errors is None:
        raise Wrong(f"pan ends with {code}: {said.strip()[-200:]}")
    return said, int(errors[1])


def judge_proof(said, errors):
    if errors:
        raise Wrong("an error was found: " + " ".join(re.findall(r"^pan:\d+: (.*)$", said, re.M)))
    for cut in ("search depth too small", "out of memory", "memory limit", "not completed"):
        if cut in said:
            raise Wrong(f"the search was cut short: {cut}")
    states = re.search(r"^\s*(\S+) states, stored", said, re.M)
    memory = re.search(r"^\s*(\S+)\s+total actual memory", said, re.M)
    return f"{int(float(states[1])):,} states, {float(memory[1]):.0f} MB"


def judge_mutant(said, errors):
    found = re.search(r"^pan:\d+: (.*?)(?: \(at depth (\d+)\))?$", said, re.M)
    if not errors or not found:
        raise Wrong("NOT FOUND")
    return f"found, {found[2]} steps: {found[1]}"


def carry_out(run):
    """Whether it went as it should, and what is to be said of it."""
    began = time.monotonic()
    place = PLACE / re.sub(r"[^a-z0-9]+", "-", run.name)
    try:
        build(run, place)
        said, errors = verify(run, place)
        well, line = True, (judge_mutant if run.fails else judge_proof)(said, errors)
    except Wrong as wrong:
        well, line = False, f"FAILED: {wrong}"
    if (place / f"{MODEL.name}.trail").exists():
        (place / "replay").write_text(
            f"#!/bin/sh\nspin -t -p -g {' '.join(run.words())} {MODEL.name}\n")
        (place / "replay").chmod(0o755)
    print(f"{run.name:<36} {time.monotonic() - began:4.0f} s  {line}", flush=True)
    return well


def main():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--proofs", action="store_true", help="no mutants, no witness")
    arguments.add_argument("names", nargs="*")
    options = arguments.parse_args()
    runs = [run for run in PROOFS + ([] if options.proofs else MUTANTS)
            if not options.names or any(name in run.name for name in options.names)]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count() or 2) as pool:
        passed = sum(pool.map(carry_out, runs))
    print(f"{passed} passed, {len(runs) - passed} failed, 0 skipped")
    return 0 if passed == len(runs) and runs else 1


if __name__ == "__main__":
    sys.exit(main())
