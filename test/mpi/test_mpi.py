"""Open MPI over the libfabric provider: two hosts (network namespaces), two rails.

Every MPI program but `crowd` runs over Pullman and over Open MPI's own TCP, and must say the same: that it saw what
it expected, and a digest of what it received.
"""

import functools
import pathlib

import pytest

import cases
import mpi_job

pytestmark = pytest.mark.skipif(bool(mpi_job.missing()), reason=mpi_job.missing() or "never")
case = functools.partial(cases.case, kind=mpi_job.Hosts)
OVER_TCP = {}  # what each program said over TCP, with so many ranks


def last_line(output):
    """What rank 0 said; mpirun may have had something to say before."""
    lines = [line for line in output.splitlines() if ": right on " in line]
    return lines[-1] if lines else output


def output_of(place, build, ranks, name, *arguments, **more):
    program = mpi_job.compile_program(build, name)
    return mpi_job.output_of(place, build, ranks, program, *arguments, seconds=60, **more)


def said_over_tcp(place, build, ranks, name, *arguments, **more):
    if (name, ranks, arguments) not in OVER_TCP:
        output = output_of(place, build, ranks, name, *arguments, transport="tcp", **more)
        OVER_TCP[name, ranks, arguments] = last_line(output)
    return OVER_TCP[name, ranks, arguments]


def check_as_over_tcp(output, place, build, ranks, name, *arguments, options=()):
    said = last_line(output)
    assert f"right on {ranks} ranks" in said, said
    tcp = said_over_tcp(place, build, ranks, name, *arguments, options=options)
    assert said == tcp, f"{said}\nover TCP: {tcp}"


# Debian's configuration has no one-sided communication over messages unless it is asked for.
BY_MESSAGES = ("--mca", "osc", "pt2pt")
PULLMAN = mpi_job.TRANSPORTS["pullman"]


@pytest.mark.parametrize("ranks, program", [
    *((ranks, program) for program in ("point_to_point", "collectives") for ranks in (2, 4, 8)),
    (2, "types"), (4, "communicators"), (2, "threads"), (4, "threads"), (2, "reverse_order"), (8, "reverse_order")])
@case()
def test_a_program_says_what_it_says_over_tcp(place, build, program, ranks):
    check_as_over_tcp(output_of(place, build, ranks, program), place, build, ranks, program)


@pytest.mark.parametrize("ranks, program, transport", [
    *((ranks, (program,), (*PULLMAN, *BY_MESSAGES)) for program in ("one_sided", "dynamic_windows") for ranks in (2, 4)),
    *((ranks, ("one_sided",), mpi_job.ONE_SIDED) for ranks in (2, 4)),
    # Open MPI 4.1.4 waits for a lock that it has itself between hosts, and on one host reads its list of what is
    # attached while the owner moves it (docs/mpi.md).
    (4, ("dynamic_windows", "attached-before"), (*mpi_job.ONE_SIDED, "--map-by", "ppr:4:node:OVERSUBSCRIBE"))],
    ids=lambda value: (None if not isinstance(value, tuple) else value[0] if len(value) < 3 else
                       "by-messages" if "pt2pt" in value else "over-btl-ofi"))
@case()
def test_one_sided_communication_gives_what_it_gives_over_tcp(place, build, program, ranks, transport):
    output = output_of(place, build, ranks, *program, transport=transport)
    check_as_over_tcp(output, place, build, ranks, *program, options=BY_MESSAGES)


@case()
def test_a_rank_among_many_on_one_host_has_memory_with_those_it_talks_to_and_few_descriptors(place, build):
    output = output_of(place, build, 40, "crowd", transport=(*PULLMAN, "--map-by", "ppr:40:node:OVERSUBSCRIBE"))
    assert "right on 40 ranks" in last_line(output), output


@case()
def test_mpirun_brings_the_job_a_key(place, build):
    output = output_of(place, build, 4, "point_to_point", options=("-x", "PULLMAN_LOG=info"))
    assert output.count("packets are authenticated, with a key from PMIx") == 4, output
    assert "right on 4 ranks" in last_line(output), output


# Between hosts, Open MPI 4.1.4 cannot spawn what it maps to both, over its own TCP either.
@case()
def test_a_job_that_is_spawned_has_the_key_of_the_job_that_spawned_it(place, build):
    output = output_of(place, build, 4, "spawn", transport=(*PULLMAN, "--map-by", "ppr:4:node:OVERSUBSCRIBE"),
                       options=("-x", "PULLMAN_LOG=info"))
    assert output.count("packets are authenticated, with a key from PMIx") == 6, output
    assert "right on 4 ranks" in last_line(output), output


# How the envelope of a message is laid out, with the highest tag that leaves room for; and what a provider that lacks
# something does to it.
MOST = 2 ** 31 - 1
TAG_MODES = {"auto": MOST, "ofi_tag_1": MOST, "ofi_tag_2": 2 ** 19 - 1, "ofi_tag_full": MOST}
LACKING = ("nothing", "data", "sources", "bits")  # of immediate data, receives from one source, five bits of the tag
GIVEN_UP = {("ofi_tag_full", "data"), ("ofi_tag_full", "sources"), ("ofi_tag_1", "bits")}
# A rank says the first by itself. The second comes by way of mpirun, which loses it now and then when the job ends.
GIVES_UP = "PML cm cannot be selected|No components were able to be opened in the pml framework"


def job_with_tags(place, build, mode, lack):
    """What the job of tag_modes says where the provider lacks that, and its arguments."""
    less = mpi_job.compile_program(build, "less_offered", "-shared", "-fPIC")
    options = ("--mca", "mtl_ofi_tag_mode", mode, "-x", f"PROVIDER_LACKS={lack}", "-x", f"LD_PRELOAD={less}")
    arguments = (4, "tag_modes", TAG_MODES[mode])
    return output_of(place, build, *arguments, options=options), arguments


@pytest.mark.parametrize("lack", LACKING)
@pytest.mark.parametrize("mode", TAG_MODES)
@case()
def test_tags_as_open_mpi_lays_them_out(place, build, mode, lack):
    if (mode, lack) in GIVEN_UP:
        with pytest.raises(mpi_job.JobFailed, match=GIVES_UP):
            job_with_tags(place, build, mode, lack)
        return
    output, arguments = job_with_tags(place, build, mode, lack)
    data = 4 if mode in ("auto", "ofi_tag_full") else 0
    offered = f"asked for {data} bytes of data, offered {0 if lack == 'data' else 8}, by source {int(lack != 'sources')}"
    assert output.count(offered) == 4, output
    assert f"tags up to {TAG_MODES[mode]}\n" in output, output
    check_as_over_tcp(output, place, build, *arguments)


# What newer ones pass over by default; 4.1.4's own list is without the last.
NEWER = ("--mca", "mtl_ofi_provider_exclude", "shm,sockets,tcp,udp,rstream,usnic,net")


@pytest.mark.parametrize("transport, parameters", [
    pytest.param(("-x", "OMPI_MCA_mca_base_param_files=/dev/null", *NEWER), "",
                 id="by an Open MPI that passes over net, without Debian's configuration"),
    pytest.param(("--mca", "mtl", "ofi", *NEWER), "", id="by an Open MPI that passes over net, with its OFI MTL enabled"),
    pytest.param(("--mca", "mtl", "ofi", "-x", "FI_PROVIDER=pullman"), "", id="where FI_PROVIDER names it"),
    pytest.param((), "mtl = ofi\nmtl_ofi_provider_include = pullman\n", id="where the user's file of parameters names it")])
@case()
def test_it_is_chosen_without_an_option_that_names_it(place, build, transport, parameters):
    home = pathlib.Path(place.scratch.name)
    (home / ".openmpi").mkdir(exist_ok=True)
    (home / ".openmpi/mca-params.conf").write_text(parameters)
    options = ("--mca", "opal_common_ofi_verbose", "1", "-x", f"HOME={home}")
    output = output_of(place, build, 2, "tag_modes", MOST, transport=transport, options=options)
    assert output.count("mtl:ofi:prov: pullman") == 2, output
    check_as_over_tcp(output, place, build, 2, "tag_modes", MOST)
