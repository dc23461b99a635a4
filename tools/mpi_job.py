"""MPI jobs on two "hosts" that are network namespaces with several rails, over Pullman or what a user would pick instead."""

import os
import pathlib
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile

import mpi_agent
import railnet
from netns import run, search_path

HERE = pathlib.Path(__file__).resolve().parent
PROGRAMS = HERE.parent / "test/mpi"
ADMIN = 100  # the number of mpirun's own network: 10.77.100.0/24


def mtl(provider):
    return ("--mca", "pml", "cm", "--mca", "mtl", "ofi", "--mca", "mtl_ofi_provider_include", provider)


TRANSPORTS = {
    "pullman": mtl("pullman"),
    "tcp": ("--mca", "pml", "ob1", "--mca", "btl", "tcp,self"),
    "tcp;ofi_rxm": mtl("tcp;ofi_rxm"),
    "udp;ofi_rxd": mtl("udp;ofi_rxd"),
}
# One-sided communication straight over libfabric; everything else as with "pullman".
ONE_SIDED = (*TRANSPORTS["pullman"], "--mca", "btl", "ofi,self", "--mca", "btl_ofi_provider_include", "pullman",
             "--mca", "osc", "rdma")


class JobFailed(Exception):
    """A job that ended badly, or not in time; with all that it said."""


def missing():
    """Which programs are not installed, in words, or an empty string."""
    wanted = ("mpirun", "mpicc", "unshare")
    absent = [program for program in wanted if shutil.which(program, path=search_path()) is None]
    return f"needs {', '.join(absent)}" if absent else ""


def compile_program(build, name, *options):
    """test/mpi/NAME.c as BUILD/test/mpi/NAME."""
    source, program = PROGRAMS / f"{name}.c", build / "test/mpi" / name
    program.parent.mkdir(parents=True, exist_ok=True)
    newest = max(file.stat().st_mtime for file in (source, PROGRAMS / "ranks.h"))
    if not program.exists() or program.stat().st_mtime < newest:
        done = subprocess.run(["mpicc", "-std=gnu11", "-O2", "-Wall", "-Wextra", "-Werror", "-o", program, source, "-lm",
                               *options], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise JobFailed(done.stderr)
    return program


class Hosts(railnet.Rails):
    """Two hosts with `count` rails, and one link more for mpirun to speak to its daemons over, as the machines that
    have several rails do: it is never cut."""

    def __init__(self, count=2, megabits=None, mtu=1500):
        super().__init__(count, megabits, mtu)
        self.rails = self.devices
        self.admin = (self.host(0, ADMIN), self.host(1, ADMIN))

    def __enter__(self):
        self.scratch = tempfile.TemporaryDirectory(prefix="pullman-mpi-")
        try:
            return super().__enter__()
        except BaseException:
            self.scratch.cleanup()
            raise

    def _make(self):
        super()._make()
        self._join(ADMIN, "admin")
        for name in self.names:
            self._wait_for_link(name, "admin")

    def __exit__(self, *error):
        for name in self.names:  # daemons and ranks that outlived their mpirun
            for pid in run("ip", "netns", "pids", name, check=False).split():
                try:
                    os.kill(int(pid), signal.SIGKILL)
                except ProcessLookupError:
                    pass
        super().__exit__(*error)
        self.scratch.cleanup()

    def lose(self, percent):
        """On the rails only, of what comes in, whatever it is. Each packet is drawn by itself: without segmentation
        offload none comes as a burst."""
        for number, device in enumerate(self.rails):
            for side, name in enumerate(self.names):
                run("ip", "netns", "exec", name, "ethtool", "-K", device, "gso", "off", "gro", "off", "tso", "off",
                    "tx-udp-segmentation", "off")
                self.drop(number, side, f"numgen random mod 1000 < {round(10 * percent)}")


def environment(hosts, build):
    inherited = {name: value for name, value in os.environ.items() if name != "PULLMAN_KEY_FILE"}  # mpirun brings a key
    return {**inherited, "FI_PROVIDER_PATH": str(build / "lib/ofi"), "OMPI_ALLOW_RUN_AS_ROOT": "1",
            "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "TMPDIR": hosts.scratch.name,
            "MPI_AGENT_HOSTS": ",".join(f"{host}={name}" for host, name in zip(hosts.admin, hosts.names)),
            "PULLMAN_NICS": "!admin", "FI_TCP_IFACE": hosts.rails[0], "FI_UDP_IFACE": hosts.rails[0]}


PASSED_ON = ("FI_PROVIDER_PATH", "FI_LOG_LEVEL", "FI_TCP_IFACE", "FI_UDP_IFACE")
OPTIONS = ("PULLMAN_", "FI_PULLMAN_")  # all of these, too


def command_line(hosts, variables, ranks, transport):
    """mpirun and its options: half of the ranks on each host."""
    subnets = ",".join(f"10.77.{number}.0/24" for number in range(len(hosts.rails)))
    agent = f"{sys.executable} {HERE / 'mpi_agent.py'}"
    words = ["mpirun", "-n", ranks, "--host", ",".join(f"{host}:{ranks // 2}" for host in hosts.admin),
             "--bind-to", "none", "--mca", "plm_rsh_agent", agent, *TRANSPORTS.get(transport, transport),
             "--mca", "oob_tcp_if_include", f"10.77.{ADMIN}.0/24", "--mca", "btl_tcp_if_include", subnets]
    if ranks > (os.cpu_count() or 2):
        words += ["--mca", "mpi_yield_when_idle", "1"]
    for name in variables:
        words += ["-x", name] if name in PASSED_ON or name.startswith(OPTIONS) else []
    return words


class Job:
    """One mpirun, from its start to its end."""

    def __init__(self, hosts, build, ranks, program, *arguments, transport="pullman", options=(), **more):
        """`transport`: a key of TRANSPORTS, or mpirun's options themselves."""
        variables = environment(hosts, build)
        words = [*command_line(hosts, variables, ranks, transport), *options, program, *arguments]
        there = mpi_agent.in_a_host("", hosts.admin[0], "exec " + shlex.join(map(str, words)))
        self.process = hosts.start(0, *there[there.index("unshare"):], env=variables, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, **more)

    def stop(self):
        """Ends it, and its ranks, at whatever it is; what it had still to say."""
        self.process.terminate()
        try:
            return self.process.communicate(timeout=20)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.communicate()[0]

    def finish(self, seconds=240):
        """What it said, once it has ended well."""
        try:
            output, _ = self.process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            raise JobFailed(f"not finished after {seconds} s: {self.stop()}") from None
        if self.process.returncode != 0:
            raise JobFailed(f"exit code {self.process.returncode}: {output}")
        return output


def output_of(hosts, build, ranks, program, *arguments, seconds=240, **more):
    return Job(hosts, build, ranks, program, *arguments, **more).finish(seconds)
