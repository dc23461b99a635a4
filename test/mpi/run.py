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


def output_of(place, build, ranks, name, *arguments, **more):
    try:
        program = mpi_job.compile_program(build, name)
        return mpi_job.output_of(place, build, ranks, program, *arguments, seconds=60, **more)
    except mpi_job.JobFailed as problem:
        raise cases.Failed(str(problem)) from None


def said_over_tcp(place, build, ranks, name, *arguments, **more):
    if (name, ranks, arguments) not in OVER_TCP:
        output = output_of(place, build, ranks, name, *arguments, transport="tcp", **more)
        OVER_TCP[name, ranks, arguments] = last_line(output)
    return OVER_TCP[name, ranks, arguments]


def expect_as_over_tcp(output, place, build, ranks, name, *arguments, options=()):
    said = last_line(output)
    expect(f"right on {ranks} ranks" in said, said)
    tcp = said_over_tcp(place, build, ranks, name, *arguments, options=options)
    expect(said == tcp, f"{said}\nover TCP: {tcp}")


def mpi_case(name, words, ranks, over_tcp=(), transport=mpi_job.TRANSPORTS["pullman"]):
    """`transport`, `over_tcp`: mpirun's options for the one and, added to its own, for the other."""
    def one(place, build):
        output = output_of(place, build, ranks, name, transport=transport)
        expect_as_over_tcp(output, place, build, ranks, name, options=over_tcp)
    one.__name__ = f"{words} on {ranks} ranks"
    CASES.append(one)


# Debian's configuration has no one-sided communication over messages unless it is asked for.
BY_MESSAGES = ("--mca", "osc", "pt2pt")

for program, subject, numbers in (
        ("point_to_point", "point to point in every mode", (2, 4, 8)),
        ("collectives", "every collective", (2, 4, 8)),
        ("types", "derived types", (2,)),
        ("communicators", "communicators of every kind", (4,)),
        ("threads", "four threads of each rank at once", (2, 4)),
        ("reverse_order", "many short messages taken in reverse order", (2, 8))):
    for number in numbers:
        mpi_case(program, subject, number)
for number in (2, 4):
    mpi_case("one_sided", "one-sided by messages", number, BY_MESSAGES,
             (*mpi_job.TRANSPORTS["pullman"], *BY_MESSAGES))
    mpi_case("one_sided", "one-sided over btl/ofi", number, BY_MESSAGES, mpi_job.ONE_SIDED)
    mpi_case("dynamic_windows", "dynamic windows by messages", number, BY_MESSAGES,
             (*mpi_job.TRANSPORTS["pullman"], *BY_MESSAGES))
# Between hosts Open MPI 4.1.4 waits for a lock that it has itself (docs/mpi.md).
mpi_case("dynamic_windows", "dynamic windows over btl/ofi on one host", 4, BY_MESSAGES,
         (*mpi_job.ONE_SIDED, "--map-by", "ppr:4:node:OVERSUBSCRIBE"))

# How the envelope of a message is laid out, with the highest tag that leaves room for; and what a provider that lacks
# something does to it.
MOST = 2 ** 31 - 1
TAG_MODES = {"auto": MOST, "ofi_tag_1": MOST, "ofi_tag_2": 2 ** 19 - 1, "ofi_tag_full": MOST}
LACKING = {"data": "immediate data", "sources": "receives from one source", "bits": "five bits of the tag"}
GIVEN_UP = {("ofi_tag_full", "data"), ("ofi_tag_full", "sources"), ("ofi_tag_1", "bits")}


def tag_case(mode, lack=None):
    def one(place, build):
        less = mpi_job.compile_program(build, "less_offered", "-shared", "-fPIC")
        options = ("--mca", "mtl_ofi_tag_mode", mode, "-x", f"PROVIDER_LACKS={lack or 'nothing'}", "-x",
                   f"LD_PRELOAD={less}")
        arguments = (4, "tag_modes", TAG_MODES[mode])
        if (mode, lack) in GIVEN_UP:
            try:
                output = output_of(place, build, *arguments, options=options)
            except cases.Failed as failed:
                expect("No components were able to be opened in the pml framework" in str(failed), str(failed))
            else:
                raise cases.Failed(f"not given up: {output}")
            return
        output = output_of(place, build, *arguments, options=options)
        data = 4 if mode in ("auto", "ofi_tag_full") else 0
        offered = f"asked for {data} bytes of data, offered {0 if lack == 'data' else 8}, by source {int(lack != 'sources')}"
        expect(output.count(offered) == 4, output)
        expect(f"tags up to {TAG_MODES[mode]}\n" in output, output)
        expect_as_over_tcp(output, place, build, *arguments)
    without = f" without {LACKING[lack]}" if lack else ""
    one.__name__ = f"tags as {mode} lays them out{without}" + " are given up" * ((mode, lack) in GIVEN_UP)
    CASES.append(one)


for layout in TAG_MODES:
    for lacking in (None, *LACKING):
        tag_case(layout, lacking)


def chosen_case(words, transport, parameters=""):
    """No option names the provider to Open MPI. `parameters`: what the user's own file of them has."""
    def one(place, build):
        home = pathlib.Path(place.scratch.name)
        (home / ".openmpi").mkdir(exist_ok=True)
        (home / ".openmpi/mca-params.conf").write_text(parameters)
        options = ("--mca", "opal_common_ofi_verbose", "1", "-x", f"HOME={home}")
        output = output_of(place, build, 2, "tag_modes", MOST, transport=transport, options=options)
        expect(output.count("mtl:ofi:prov: pullman") == 2, output)
        expect_as_over_tcp(output, place, build, 2, "tag_modes", MOST)
    one.__name__ = f"it is chosen {words}"
    CASES.append(one)


# What newer ones pass over by default; 4.1.4's own list is without the last.
NEWER = ("--mca", "mtl_ofi_provider_exclude", "shm,sockets,tcp,udp,rstream,usnic,net")
chosen_case("by an Open MPI that passes over net, without Debian's configuration, for itself",
            ("-x", "OMPI_MCA_mca_base_param_files=/dev/null", *NEWER))
chosen_case("by an Open MPI that passes over net, with its OFI MTL enabled", ("--mca", "mtl", "ofi", *NEWER))
chosen_case("where FI_PROVIDER names it", ("--mca", "mtl", "ofi", "-x", "FI_PROVIDER=pullman"))
chosen_case("where the user's file of parameters names it", (), "mtl = ofi\nmtl_ofi_provider_include = pullman\n")


if __name__ == "__main__":
    sys.exit(cases.main(CASES, mpi_job.Hosts, mpi_job.missing() or netns.possible()))
