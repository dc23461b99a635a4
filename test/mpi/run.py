"""Open MPI over the libfabric provider: two hosts (network namespaces), two rails.

    run.py BUILD_DIRECTORY [WORDS...]     all cases, or those whose sentence has one of the words

Every MPI program runs over Pullman and over Open MPI's own TCP, and must say the same: that it saw what it
expected, and a digest of what it received.
"""

import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kernel"))
import cases  # noqa: E402
import mpi_job  # noqa: E402
from cases import expect, netns  # noqa: E402

CASES = []
OVER_TCP = {}  # what each program said over TCP, with so many ranks


def last_line(output):
    """What rank 0 said; mpirun may have had something to say before."""
    lines = [line for line in output.splitlines() if ": right on " in line]
    return lines[-1] if lines else output


def said_over(place, build, ranks, name, **more):
    try:
        program = mpi_job.compile_program(build, name)
        return last_line(mpi_job.output_of(place, build, ranks, program, seconds=60, **more))
    except mpi_job.JobFailed as problem:
        raise cases.Failed(str(problem)) from None


def said_over_tcp(place, build, ranks, name, **more):
    if (name, ranks) not in OVER_TCP:
        OVER_TCP[name, ranks] = said_over(place, build, ranks, name, transport="tcp", **more)
    return OVER_TCP[name, ranks]


def mpi_case(name, words, ranks, over_tcp=(), transport=mpi_job.TRANSPORTS["pullman"]):
    """`transport`, `over_tcp`: mpirun's options for the one and, added to its own, for the other."""
    def one(place, build):
        said = said_over(place, build, ranks, name, transport=transport)
        expect(f"right on {ranks} ranks" in said, said)
        tcp = said_over_tcp(place, build, ranks, name, options=over_tcp)
        expect(said == tcp, f"{said}\nover TCP: {tcp}")
    one.__name__ = f"{words} on {ranks} ranks"
    CASES.append(one)


# Debian's configuration has no one-sided communication over messages unless it is asked for.
BY_MESSAGES = ("--mca", "osc", "pt2pt")

for program, subject, numbers in (
        ("point_to_point", "point to point in every mode", (2, 4, 8)),
        ("collectives", "every collective", (2, 4, 8)),
        ("types", "derived types", (2,)),
        ("communicators", "communicators of every kind", (4,)),
        ("threads", "four threads of each rank at once", (2, 4))):
    for number in numbers:
        mpi_case(program, subject, number)
for number in (2, 4):
    mpi_case("one_sided", "one-sided by messages", number, BY_MESSAGES,
             (*mpi_job.TRANSPORTS["pullman"], *BY_MESSAGES))
    mpi_case("one_sided", "one-sided over btl/ofi", number, BY_MESSAGES, mpi_job.ONE_SIDED)


if __name__ == "__main__":
    sys.exit(cases.main(CASES, mpi_job.Hosts, mpi_job.missing() or netns.possible()))
