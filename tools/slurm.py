"""A private Slurm for the length of a test: its own munged, slurmctld and slurmds, on this machine or in namespaces.

All that it writes is in a temporary directory, and nothing of it is kept. What the machine has of Slurm and MUNGE
itself (/etc/slurm, /etc/munge, their services) is neither used nor touched.
"""

import os
import pathlib
import secrets
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time

import mpi_agent
from netns import search_path

PROGRAMS = ("srun", "sinfo", "slurmctld", "slurmd", "munged")
PATIENCE = 20  # seconds until all nodes are there; it takes about one
CPUS = 8  # of each node, whatever it has: so many tasks may run at a time

CONFIGURATION = """
ClusterName=pullman
SlurmctldHost={controller}
SlurmctldPort={controller_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
StateSaveLocation={folder}/state
SlurmctldPidFile={folder}/slurmctld.pid
# Each host's own (%n), also what PMIx puts into TmpFS: the hosts have one file system.
SlurmdSpoolDir={folder}/spool-%n
SlurmdPidFile={folder}/slurmd-%n.pid
TmpFS={folder}/tmp-%n
# No control groups; no task is bound to one of the processors that a host claims to have.
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SlurmdParameters=config_overrides
{nodes}
PartitionName=all Nodes=ALL Default=YES State=UP
"""
# slurmd does not start without such a plugin, though nothing uses it. The one for version 1 changes nothing, and is
# content with none mounted, as in a namespace; the one for version 2 would ask systemd for a scope.
CGROUP_CONFIGURATION = "CgroupPlugin=cgroup/v1\n"


class CannotStart(Exception):
    """A Slurm that does not come up; the text has all that its daemons said."""


def missing():
    """Which programs are not installed, in words, or an empty string."""
    absent = [program for program in PROGRAMS if shutil.which(program, path=search_path()) is None]
    return f"needs {', '.join(absent)}" if absent else ""


class Slurm:
    """A cluster of one node, which is this machine, or of the two of tools/mpi_job.py's `hosts`."""

    def __init__(self, hosts=None):
        self.namespaces, self.addresses = (hosts.names, hosts.admin) if hosts else ((), ("127.0.0.1",))
        self.nodes = [mpi_agent.host_name(address) for address in self.addresses]
        self.daemons = {}

    def __enter__(self):
        # Its name is short, because sockets are in it; all may enter it, or munged would refuse to work there.
        self.scratch = tempfile.TemporaryDirectory(prefix="pullman-slurm-")
        self.folder = pathlib.Path(self.scratch.name)
        self.folder.chmod(0o711)
        try:
            self._start()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        # Daemons first, since they start others. Those have sessions of their own, and the environment of this cluster.
        for daemon in self.daemons.values():
            daemon.kill()
            daemon.wait()
        while left := self._processes():
            for pid in left:
                try:
                    os.kill(pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            time.sleep(0.01)
        self.scratch.cleanup()

    def _start(self):
        self._configure()
        # One munged serves both hosts, by a socket in the file system that they have in common.
        self._launch("munged", 0, "munged", "--foreground", "--origin=127.0.0.1",
                     *(f"--{name}={self.folder}/munge.{name.removesuffix('-file')}"
                       for name in ("key-file", "socket", "pid-file", "log-file", "seed-file")))
        self._wait_until("munged listens", (self.folder / "munge.socket").exists)
        self._launch("slurmctld", 0, "slurmctld", "-D")
        for host, node in enumerate(self.nodes):
            self._launch(f"slurmd of {node}", host, "slurmd", "-D", "-N", node)
        self._wait_until("all nodes are there", self._is_complete)

    def _configure(self):
        for name in ("state", *(f"{kind}-{node}" for node in self.nodes for kind in ("spool", "tmp"))):
            (self.folder / name).mkdir()
        key = os.open(self.folder / "munge.key", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(key, "wb") as file:
            file.write(secrets.token_bytes(128))
        # A namespace's host is called as its node; this machine may have a name that nobody can look up.
        names = self.nodes if self.namespaces else ["localhost"]
        ports = free_ports(2)
        nodes = [f"NodeName={node} NodeHostname={name} NodeAddr={address} Port={ports[1]} CPUs={CPUS}"
                 for node, name, address in zip(self.nodes, names, self.addresses)]
        (self.folder / "cgroup.conf").write_text(CGROUP_CONFIGURATION)
        (self.folder / "slurm.conf").write_text(CONFIGURATION.format(
            folder=self.folder, user=os.geteuid(), nodes="\n".join(nodes),
            controller=f"{names[0]}({self.addresses[0]})", controller_port=ports[0]))

    def _launch(self, name, host, *command):
        with (self.folder / f"{name}.log").open("w") as log:
            self.daemons[name] = subprocess.Popen(self._on(host, command), env=self.environment(), cwd=self.folder,
                                                  stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT)

    def _on(self, host, command):
        words = [str(word) for word in command]
        if not self.namespaces:
            return words
        return mpi_agent.in_a_host(self.namespaces[host], self.addresses[host], "exec " + shlex.join(words))

    def _wait_until(self, what, is_so):
        end = time.monotonic() + PATIENCE
        while not is_so():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > end:
                problem = f"{ended[0]} has ended" if ended else f"not within {PATIENCE} s"
                raise CannotStart(f"waiting until {what}: {problem}\n{self.logs()}")
            time.sleep(0.05)

    def _is_complete(self):
        return self._ask("sinfo", "--noheader", "--format=%T %D").split() == ["idle", str(len(self.nodes))]

    def _ask(self, *command):
        """What a program says, which may also be that nobody answers it."""
        try:
            return subprocess.run(self.command(*command), env=self.environment(), stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=PATIENCE, check=False).stdout
        except subprocess.TimeoutExpired:
            return ""

    def _processes(self):
        """All that have the environment of this cluster."""
        mark = b"SLURM_CONF=" + bytes(self.folder / "slurm.conf")
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if mark in (folder / "environ").read_bytes().split(b"\0"):
                    found.append(int(folder.name))
            except OSError:  # it has ended, or is somebody else's
                pass
        return found

    def environment(self):
        """What programs that speak to this cluster need, and nothing of a job that the tests may be part of."""
        inherited = {name: value for name, value in os.environ.items() if not name.startswith(("SLURM", "PMI"))}
        return {**inherited, "PATH": search_path(), "SLURM_CONF": str(self.folder / "slurm.conf")}

    def logs(self):
        """All that the daemons said."""
        return "\n".join(f"--- {file.name}\n{file.read_text(errors='replace')}"
                         for file in sorted(self.folder.glob("*.log")))

    def mpi_types(self):
        """What srun's option --mpi may be."""
        return self._ask("srun", "--mpi=list").split()

    def command(self, *words):
        """What runs this on the first host, with environment()."""
        return self._on(0, words)


def free_ports(count):
    """So many that nobody uses at the moment."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports
