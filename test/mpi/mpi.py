"""Runs MPI programs over the provider, in the two namespaces of a netns.Pair."""

import os
import pathlib
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "kernel"))
from cases import expect  # noqa: E402

OFI = ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", "pullman")
TCP = ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self")
PASSED_ON = ("FI_PROVIDER_PATH", "PULLMAN_LOG", "FI_LOG_LEVEL")


def compile_program(build, name):
    """test/mpi/NAME.c as BUILD/test/mpi/NAME."""
    folder = build / "test/mpi"
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    if not program.exists() or program.stat().st_mtime < (HERE / f"{name}.c").stat().st_mtime:
        done = subprocess.run(["mpicc", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, HERE / f"{name}.c"],
                              capture_output=True, text=True, check=False)
        expect(done.returncode == 0, done.stderr)
    return program


def run(place, build, ranks, program, *arguments, transport=OFI, seconds=240):
    """What the program says, with its ranks spread over both hosts."""
    environment = {**os.environ, "FI_PROVIDER_PATH": str(build / "lib/ofi"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
                   "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
                   "PULLMAN_TEST_HOSTS": ",".join(f"{host}={name}" for host, name in zip(place.hosts, place.names))}
    hosts = ",".join(f"{host}:{ranks // 2}" for host in place.hosts)
    command = ["mpirun", "-n", str(ranks), "--host", hosts, "--oversubscribe", "--bind-to", "none",
               "--mca", "plm_rsh_agent", f"{sys.executable} {HERE / 'agent.py'}", *transport,
               "--mca", "oob_tcp_if_include", "10.77.0.0/24", "--mca", "btl_tcp_if_include", "10.77.0.0/24"]
    for name in PASSED_ON:
        command += ["-x", name] if name in environment else []
    command += [str(word) for word in (program, *arguments)]
    name = "host-" + place.hosts[0].replace(".", "-")
    launcher = place.start(0, "unshare", "--uts", "sh", "-c", f'hostname {name} && exec "$@"', "sh", *command,
                           env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        output, _ = launcher.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        launcher.terminate()  # mpirun ends its ranks
        output, _ = launcher.communicate(timeout=20)
        expect(False, f"not finished after {seconds} s: {output}")
    expect(launcher.returncode == 0, f"exit code {launcher.returncode}: {output}")
    return output
