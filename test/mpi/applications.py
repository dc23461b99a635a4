"""Real MPI programs over the provider: two hosts (network namespaces), two rails; run by hand with ./dev mpi.

hpcc (HPL, PTRANS, random access, FFT and its own network tests), LAMMPS with its own examples, and a program in Python
with mpi4py; each in calm, with 1 % of the packets lost, and with a rail cut or silent for half of every second. What
they compute must be what they compute over Open MPI's own TCP in calm.
"""

import contextlib
import pathlib
import re
import shutil
import threading

import pytest

import mpi_job
from cases import case

HERE = pathlib.Path(__file__).resolve().parent

RANKS = 4
SECONDS = 240  # for one job
LAMMPS = pathlib.Path("/usr/share/lammps/examples")
EXAMPLES = ("melt/in.melt", "crack/in.crack", "min/in.min", "flow/in.flow.couette", "friction/in.friction",
            "peptide/in.peptide", "micelle/in.micelle")
HPCC_INPUT = pathlib.Path("/usr/share/doc/hpcc/examples/_hpccinf.txt")  # N 1000, 2 x 2 processes
# Of hpcc's summary, what is computed and not measured.
HPCC_RESULTS = ("Success", "HPL_N", "HPL_Anorm1", "HPL_AnormI", "HPL_Xnorm1", "HPL_XnormI", "HPL_RnormI",
                "PTRANS_residual", "MPIRandomAccess_ErrorsFraction", "MPIRandomAccess_LCG_ErrorsFraction", "MPIFFT_maxErr",
                "MPIFFT_N", "CommWorldProcs")
OVER_TCP = {}  # what each program computes over TCP


def output_of(place, build, program, *arguments, folder=None, transport="pullman"):
    options = ("--wdir", folder) if folder else ()
    return mpi_job.output_of(place, build, RANKS, program, *arguments, transport=transport, options=options,
                             seconds=SECONDS)


def scratch(place, name):
    folder = pathlib.Path(place.scratch.name) / name.replace("/", "-")
    folder.mkdir(exist_ok=True)
    return folder


def hpcc(place, build, transport):
    folder = scratch(place, "hpcc")
    shutil.copy(HPCC_INPUT, folder / "hpccinf.txt")
    (folder / "hpccoutf.txt").unlink(missing_ok=True)
    said = output_of(place, build, "hpcc", folder=folder, transport=transport)
    text = (folder / "hpccoutf.txt").read_text()
    values = dict(re.findall(r"^(\w+)=(\S+)$", text, re.M))
    assert values.get("Success") == "1" and "FAILED" not in text, said + text[-3000:]
    return {name: values[name] for name in HPCC_RESULTS}


def lammps(example):
    def run(place, build, transport):
        folder = scratch(place, example)
        for file in (LAMMPS / example).parent.iterdir():
            if file.is_file():
                shutil.copy(file, folder)
        said = output_of(place, build, "lmp", "-in", pathlib.Path(example).name, "-log", "none", folder=folder,
                         transport=transport)
        table = [line.split() for line in said.splitlines() if re.fullmatch(r"\s*\d+(\s+-?[\d.e+-]+)+\s*", line)]
        assert len(table) > 3, said
        return table
    return run


def objects(place, build, transport):
    # Debian's own Python: that is where python3-mpi4py is.
    said = output_of(place, build, "/usr/bin/python3", HERE / "objects.py", transport=transport)
    assert f"right on {RANKS} ranks" in said, said
    return [line for line in said.splitlines() if "right on" in line]


@contextlib.contextmanager
def calm(_):
    yield


@contextlib.contextmanager
def one_percent_lost(place):
    place.lose(1)
    yield


@contextlib.contextmanager
def a_rail_cut_every_second(place):
    """Now this one, now that one; its link, or in silence; for half of every second."""
    done = threading.Event()

    def cut_and_mend():
        turn = 0
        while not done.wait(0.5):
            rail, silent = turn % 2, turn // 2 % 2
            place.silence(rail) if silent else place.cut(0, True, rail)
            done.wait(0.5)
            place.silence(rail, ()) if silent else place.cut(0, False, rail)
            turn += 1

    thread = threading.Thread(target=cut_and_mend)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


WEATHERS = {"calm": calm, "1 % of the packets lost": one_percent_lost,
            "a rail cut and mended every second": a_rail_cut_every_second}
PROGRAMS = {"hpcc": hpcc, "mpi4py": objects, **{f"lammps {one}": lammps(one) for one in EXAMPLES}}
ABSENT = [program for program in ("hpcc", "lmp") if shutil.which(program) is None]
if not HPCC_INPUT.exists() or not LAMMPS.exists():
    ABSENT.append("the examples of hpcc and lammps")
pytestmark = pytest.mark.skipif(bool(ABSENT or mpi_job.missing()), reason=f"needs {ABSENT or mpi_job.missing()}")


def over_tcp(name, build):
    if name not in OVER_TCP:
        with mpi_job.Hosts() as place:
            OVER_TCP[name] = PROGRAMS[name](place, build, "tcp")
    return OVER_TCP[name]


@pytest.mark.parametrize("weather", WEATHERS)
@pytest.mark.parametrize("name", PROGRAMS)
@case(kind=mpi_job.Hosts)
def test_it_computes_what_it_does_over_tcp(place, build, name, weather):
    wanted = over_tcp(name, build)
    with WEATHERS[weather](place):
        computed = PROGRAMS[name](place, build, "pullman")
    assert computed == wanted, f"{computed}\nover TCP: {wanted}"
