"""Keys that launchers bring: programs that no option tells a key, started by real ones, on one host or on two."""

import dataclasses
import functools
import os
import shutil
import subprocess

import pytest

import cases
import mpi_job
import netns
import slurm

PORT = 7400
case = functools.partial(cases.case, kind=netns.OneHost)
# Rank 0 serves, rank 1 measures: they meet only if they have the same key.
EXCHANGE = """
perf="$0 --port $1 --patience 20"
case ${PMIX_RANK:-$PMI_RANK} in
  0) exec $perf ;;
  1) exec $perf --iterations 100 --check $2 ;;
esac
"""


@dataclasses.dataclass(frozen=True)
class Launcher:
    """How two processes of a job are started. Each is told as PMIX_RANK or PMI_RANK which it is."""

    interface: str  # as Pullman calls it
    words: tuple
    cluster: slurm.Slurm | None = None

    def run(self, build, script, *, server="127.0.0.1", nics="lo", seconds=60, **environment):
        """A shell's script in both, and what became of them."""
        words = [*self.words, "sh", "-c", script, build / "bench/pullman-perf", str(PORT), server]
        inherited = os.environ
        if self.cluster:
            words, inherited = self.cluster.command(*words), self.cluster.environment()
        inherited = {name: value for name, value in inherited.items() if name != "PULLMAN_KEY_FILE"}
        return subprocess.run(
            words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=seconds, check=False,
            env={**inherited, "PULLMAN_NICS": nics, "PULLMAN_LOG": "info", **environment})


OF_ONE_HOST = {
    "mpirun": Launcher("PMIx", ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2")),
    "mpiexec.hydra": Launcher("PMI-2", ("mpiexec.hydra", "-launcher", "fork", "-n", "2")),
}
OF_SLURM = {"pmix": "PMIx", "pmi2": "PMI-2"}  # what --mpi may be


def srun(cluster, mpi, *options):
    if mpi not in cluster.mpi_types():
        pytest.skip(f"needs a Slurm with --mpi={mpi}")
    return Launcher(OF_SLURM[mpi], ("srun", f"--mpi={mpi}", "--ntasks=2", "--kill-on-bad-exit", *options), cluster)


@pytest.fixture(scope="module")
def cluster():
    """This machine, for all the tests of this file that are for one host."""
    if slurm.missing():
        pytest.skip(slurm.missing())
    with slurm.Slurm() as made:
        yield made


@pytest.fixture(params=[*OF_ONE_HOST, *(f"srun --mpi={mpi}" for mpi in OF_SLURM)])
def launcher(request):
    if request.param.startswith("srun"):
        return srun(request.getfixturevalue("cluster"), request.param.removeprefix("srun --mpi="))
    if shutil.which(request.param) is None:
        pytest.skip(f"needs {request.param}")
    return OF_ONE_HOST[request.param]


@pytest.mark.parametrize("how, environment", [("authenticated", {}), ("encrypted", {"PULLMAN_SECURITY": "encrypt"})],
                         ids=["unasked", "encrypted"])
@case()
def test_processes_of_a_job_have_the_key_of_their_launcher(place, build, launcher, how, environment):
    done = launcher.run(build, EXCHANGE, **environment)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count(f"packets are {how}, with a key from {launcher.interface}") == 2, said


@pytest.mark.parametrize("mpi", OF_SLURM)
@cases.case(kind=mpi_job.Hosts, count=1)
def test_tasks_on_two_hosts_have_the_key_of_their_launcher(place, build, mpi):
    if slurm.missing():
        pytest.skip(slurm.missing())
    with slurm.Slurm(place) as cluster:
        launcher = srun(cluster, mpi, "--nodes=2")
        done = launcher.run(build, "hostname\n" + EXCHANGE, server=place.hosts[0], nics="!admin")
        said = done.stdout + done.stderr
        assert done.returncode == 0, said
        assert said.count(f"packets are authenticated, with a key from {launcher.interface}") == 2, said
        assert all(said.count(f"{node}\n") == 1 for node in cluster.nodes), said


@case()
def test_a_launcher_that_does_not_answer_is_named(place, build):
    environment = {name: value for name, value in os.environ.items() if name != "PULLMAN_KEY_FILE"}
    done = subprocess.run([build / "bench/pullman-perf"], capture_output=True, text=True, timeout=60, check=False,
                          env={**environment, "PMIX_NAMESPACE": "nobody", "PMIX_RANK": "0"})
    assert done.returncode == 1 and "(PMIx: the launcher does not answer" in done.stderr, done.stderr


@pytest.mark.long
@case()
def test_a_process_whose_first_never_draws_a_key_says_so(place, build, launcher):
    done = launcher.run(build, 'case ${PMIX_RANK:-$PMI_RANK} in 0) sleep 40 ;; 1) exec "$0" --port "$1" ;; esac',
                        seconds=90, PULLMAN_SECURITY="authenticate")
    said = done.stdout + done.stderr
    assert f"{launcher.interface}: rank 0 has drawn no key within 30 s" in said, said
