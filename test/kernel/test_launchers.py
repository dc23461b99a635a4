"""What launchers bring: keys, to programs that no option tells one, and worlds. Real ones, on one host or on two."""

import dataclasses
import functools
import os
import shlex
import shutil
import subprocess
import time

import pytest

import cases
import mpi_agent
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
WORLD = 'exec "$3"'


@dataclasses.dataclass(frozen=True)
class Launcher:
    """How two processes of a job are started. Each is told as PMIX_RANK or PMI_RANK which it is."""

    interface: str  # as Pullman calls it
    words: tuple
    cluster: slurm.Slurm | None = None

    def run(self, build, script, *, server="127.0.0.1", nics="lo", seconds=60, **environment):
        """A shell's script in both, and what became of them."""
        words = [*self.words, "sh", "-c", script, build / "bench/pullman-perf", str(PORT), server,
                 build / "examples/world"]
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
        done = launcher.run(build, WORLD, nics="!admin")
        expect_world(done, 2, launcher.interface, hosts=cluster.nodes)


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


# --- worlds

def expect_world(done, size, met_by, hosts=()):
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert f"{size} processes, who met by {met_by}:\n" in done.stdout, said
    assert all(done.stdout.count(f"  {host}\n") == size // len(hosts) for host in hosts), said


@case()
def test_processes_of_a_launcher_are_a_world(place, build, launcher):
    expect_world(launcher.run(build, WORLD), 2, launcher.interface)


@case()
def test_a_launcher_that_speaks_pmi_1_only_is_spoken_to_in_it(place, build):
    """As Flux does, whose sign is FLUX_JOB_ID; hydra speaks both."""
    launcher = OF_ONE_HOST["mpiexec.hydra"]
    if shutil.which("mpiexec.hydra") is None:
        pytest.skip("needs mpiexec.hydra")
    done = launcher.run(build, WORLD, FLUX_JOB_ID="f7")
    expect_world(done, 2, "PMI-1")
    assert done.stderr.count("packets are authenticated, with a key from PMI-1") == 2, done.stderr


@cases.case(kind=mpi_job.Hosts)
def test_ranks_of_mpirun_on_two_hosts_are_a_world(place, build):
    output = mpi_job.output_of(place, build, 4, build / "examples/world", seconds=60, transport=())
    assert "4 processes, who met by PMIx:\n" in output, output
    assert all(output.count(f"  {mpi_agent.host_name(address)}\n") == 2 for address in place.admin), output


@cases.case(kind=mpi_job.Hosts)
def test_processes_of_hydra_on_two_hosts_are_a_world(place, build):
    if shutil.which("mpiexec.hydra") is None:
        pytest.skip("needs mpiexec.hydra")
    words = ["mpiexec.hydra", "-launcher", "rsh", "-launcher-exec", mpi_agent.__file__, "-iface", "admin", "-hosts",
             ",".join(place.admin), "-n", "4", "-ppn", "2", build / "examples/world"]
    there = mpi_agent.in_a_host("", place.admin[0], "exec " + shlex.join(map(str, words)))
    process = place.start(0, *there[there.index("unshare"):], env=mpi_job.environment(place, build),
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    output, _ = process.communicate(timeout=60)
    assert process.returncode == 0 and "4 processes, who met by PMI-2:\n" in output, output
    assert all(output.count(f"  {mpi_agent.host_name(address)}\n") == 2 for address in place.admin), output


def start_world(build, rank, size, *arguments, **environment):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "SLURM", "OMPI"))}
    return subprocess.Popen(
        [build / "examples/world", *map(str, arguments)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env={**inherited, "PULLMAN_NICS": "lo", "PULLMAN_RENDEZVOUS": f"127.0.0.1:{PORT}", "PULLMAN_RANK": str(rank),
             "PULLMAN_SIZE": str(size), **environment})


def ends(processes):
    """Exit code, output and errors of each."""
    said = [process.communicate(timeout=60) for process in processes]
    return [(process.returncode, *texts) for process, texts in zip(processes, said)]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)], ids=["rank 0 first", "rank 0 last"])
@case()
def test_processes_that_no_launcher_knows_meet_at_rank_0_in_any_order(place, build, job_key, order):
    started = {}
    for rank in order:
        started[rank] = start_world(build, rank, 3)
        time.sleep(0.3)  # as if by hand
    done = ends([started[rank] for rank in range(3)])
    assert all(code == 0 for code, _, _ in done), done
    assert f"3 processes, who met by rank 0 at 127.0.0.1:{PORT}:\n" in done[0][1], done
    assert not any(errors for _, _, errors in done), done


@case()
def test_a_rank_that_never_starts_is_named_by_all_others(place, build, job_key):
    done = ends([start_world(build, rank, 4, 2) for rank in (0, 1, 3)])
    for code, _, errors in done:
        assert code == 1 and "rank 2 of 4 has not come within 2 s" in errors, done


@pytest.mark.long
@case()
def test_a_rank_of_a_launcher_that_makes_no_world_is_named(place, build, launcher):
    done = launcher.run(build, 'case ${PMIX_RANK:-$PMI_RANK} in 1) sleep 8 ;; 0) exec "$3" 2 ;; esac',
                        PULLMAN_SECURITY="off")
    said = done.stdout + done.stderr
    # Where the launcher waits for all it does not say for whom.
    assert "rank 1 has told no address within 2 s" in said or "not all 2 processes tell theirs within 2 s" in said, said


@pytest.mark.parametrize("environment, problem", [
    ({"PULLMAN_RENDEZVOUS": "127.0.0.1"}, "is not the HOST:PORT of rank 0"),
    ({"PULLMAN_RENDEZVOUS": "10.1.2.3:7400"}, "is no address of rank 0: it has 127.0.0.1:7400"),
    ({"PULLMAN_SIZE": "0"}, "rank 0 of 0 processes: ranks are counted from 0"),
    ({"PULLMAN_RANK": "one"}, "PULLMAN_RANK='one' is no number")])
@case()
def test_what_cannot_be_a_rendezvous_is_refused(place, build, job_key, environment, problem):
    [(code, _, errors)] = ends([start_world(build, 0, 1, **environment)])
    assert code == 1 and problem in errors, errors


@case()
def test_without_a_launcher_a_world_says_what_it_looked_for(place, build):
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("PMI", "SLURM", "OMPI"))}
    done = subprocess.run([build / "examples/world"], env=inherited, capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.returncode == 1, done.stderr
    for word in ("PULLMAN_RENDEZVOUS=HOST:PORT", "PMIX_NAMESPACE", "PMI_FD"):
        assert word in done.stderr, done.stderr
