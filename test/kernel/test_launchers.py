"""Keys that launchers bring: programs that no option tells a key, started by real ones on one host."""

import functools
import os
import shutil
import subprocess

import pytest

import cases
import netns

PORT = 7400
case = functools.partial(cases.case, kind=netns.OneHost)
LAUNCHERS = {
    # Each says as PMIX_RANK or PMI_RANK which process of the job one is.
    "PMIx": ("mpirun", "--allow-run-as-root", "--oversubscribe", "-n", "2"),
    "PMI-2": ("mpiexec.hydra", "-launcher", "fork", "-n", "2"),
}
# Rank 0 serves, rank 1 measures: they meet only if they have the same key.
EXCHANGE = """
perf="$0 --port $1 --patience 20"
case ${PMIX_RANK:-$PMI_RANK} in
  0) exec $perf ;;
  1) exec $perf --iterations 100 --check 127.0.0.1 ;;
esac
"""


def launch(kind, build, script, *, seconds=60, **environment):
    words = LAUNCHERS[kind]
    if shutil.which(words[0]) is None:
        pytest.skip(f"needs {words[0]}")
    inherited = {name: value for name, value in os.environ.items() if name != "PULLMAN_KEY_FILE"}
    return subprocess.run(
        [*words, "sh", "-c", script, build / "bench/pullman-perf", str(PORT)], capture_output=True, text=True,
        timeout=seconds, check=False,
        env={**inherited, "PULLMAN_NICS": "lo", "PULLMAN_LOG": "info", **environment})


@pytest.mark.parametrize("kind", LAUNCHERS)
@pytest.mark.parametrize("how, environment", [("authenticated", {}), ("encrypted", {"PULLMAN_SECURITY": "encrypt"})],
                         ids=["unasked", "encrypted"])
@case()
def test_processes_of_a_job_have_the_key_of_their_launcher(place, build, kind, how, environment):
    done = launch(kind, build, EXCHANGE, **environment)
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert said.count(f"packets are {how}, with a key from {kind}") == 2, said


@case()
def test_a_launcher_that_does_not_answer_is_named(place, build):
    environment = {name: value for name, value in os.environ.items() if name != "PULLMAN_KEY_FILE"}
    done = subprocess.run([build / "bench/pullman-perf"], capture_output=True, text=True, timeout=60, check=False,
                          env={**environment, "PMIX_NAMESPACE": "nobody", "PMIX_RANK": "0"})
    assert done.returncode == 1 and "(PMIx: the launcher does not answer" in done.stderr, done.stderr


@pytest.mark.long
@pytest.mark.parametrize("kind", LAUNCHERS)
@case()
def test_a_process_whose_first_never_draws_a_key_says_so(place, build, kind):
    done = launch(kind, build, 'case ${PMIX_RANK:-$PMI_RANK} in 0) sleep 40 ;; 1) exec "$0" --port "$1" ;; esac',
                  seconds=90, PULLMAN_SECURITY="authenticate")
    said = done.stdout + done.stderr
    assert f"{kind}: rank 0 has drawn no key within 30 s" in said, said
