"""The libfabric provider under programs that know nothing of it, in two network namespaces.

    run.py BUILD_DIRECTORY [WORDS...]     all cases, or those whose sentence has one of the words
"""

import os
import pathlib
import shutil
import subprocess
import sys
import time

import mpi

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "kernel"))
import cases  # noqa: E402
from cases import expect, netns  # noqa: E402

CASES = []


def case(function):
    CASES.append(function)
    return function


def with_provider(build):
    return {**os.environ, "FI_PROVIDER_PATH": str(build / "lib/ofi")}


@case
def libfabric_finds_the_provider_and_its_variables(place, build):
    for arguments, wanted in ((["-p", "pullman"], "type: FI_EP_RDM"), (["-e"], "FI_PULLMAN_PEER_TIMEOUT")):
        said = place.start(0, "fi_info", *arguments, env=with_provider(build), stdout=subprocess.PIPE,
                           stderr=subprocess.STDOUT)
        output = said.communicate(timeout=30)[0].decode(errors="replace")
        expect(said.returncode == 0 and wanted in output, output)


@case
def fi_pingpong_verifies_messages_of_every_size(place, build):
    common = ("-p", "pullman", "-e", "rdm", "-c", "-I", "200")
    server = place.start(0, "fi_pingpong", *common, env=with_provider(build), stdout=subprocess.PIPE,
                         stderr=subprocess.STDOUT, text=True)
    time.sleep(1)  # it says nothing when it listens
    client = place.start(1, "fi_pingpong", *common, place.hosts[0], env=with_provider(build),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = client.communicate(timeout=120)
    said, _ = server.communicate(timeout=120)
    expect(client.returncode == 0 and server.returncode == 0, output + said)
    expect("1m" in output, output)


def mpi_case(name, *arguments):
    def add(ranks):
        def one(place, build):
            program = mpi.compile_program(build, name)
            output = mpi.run(place, build, ranks, program, *arguments)
            expect(f"right on {ranks} ranks" in output, output)
        words = "point to point in every mode" if name == "point_to_point" else "every collective"
        one.__name__ = f"open mpi does {words} rightly on {ranks} ranks"
        CASES.append(one)
    return add


for number in (2, 4):
    mpi_case("collectives")(number)
    mpi_case("point_to_point", "matched")(number)


def why_not():
    for program in ("mpirun", "mpicc", "fi_info", "fi_pingpong", "unshare"):
        if shutil.which(program) is None:
            return f"needs {program}"
    return netns.possible()


if __name__ == "__main__":
    sys.exit(cases.main(CASES, netns.Pair, why_not()))
