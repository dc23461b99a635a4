"""Two places for two programs: network namespaces joined by a veth pair, or the loopback.

Namespaces need root. Their names are unique to the process that makes them; leaving the `with` block
removes them and ends the programs started in them, however it is left.
"""

import json
import os
import pathlib
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time


class CannotMake(Exception):
    """No namespaces here; the text says why."""


def run(*command, check=True):
    result = subprocess.run(command, capture_output=True, text=True, timeout=30)
    if check and result.returncode != 0:
        raise CannotMake(f"{' '.join(command)}: {result.stderr.strip()}")
    return result.stdout


def possible():
    """Why namespaces cannot be made here, or an empty string."""
    if os.geteuid() != 0:
        return "needs root"
    for program in ("ip", "nft", "ethtool", "sysctl"):
        if shutil.which(program, path=search_path()) is None:
            return f"needs {program}"
    try:
        with Pair():
            return ""
    except (CannotMake, subprocess.TimeoutExpired) as error:
        return str(error)


def search_path():
    return os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


def make_key(folder):
    """From now on programs that are started have a key in common, in that folder."""
    path = pathlib.Path(folder) / "job.key"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w") as file:
        file.write(secrets.token_hex(32) + "\n")
    os.environ["PULLMAN_KEY_FILE"] = str(path)


def compare_like_with_like():
    """Peers do not protect what they send, so neither do we, unless the environment says otherwise."""
    os.environ.setdefault("PULLMAN_SECURITY", "off")


def exit_on_signals():
    """Lets `with` blocks clean up when the program is told to stop."""
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, lambda got, _: sys.exit(128 + got))


class Places:
    """Sides 0 and 1, each with a host address and a way to run programs there."""

    hosts = ("127.0.0.1", "127.0.0.1")
    environment = {}  # what programs need to know of the place

    def __init__(self):
        self.programs = []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for program in self.programs:
            if program.poll() is None:
                program.kill()
                program.wait()

    def command(self, _side, *command):
        return [str(word) for word in command]

    def start(self, side, *command, **options):
        """Starts a program; options as for Popen."""
        options.setdefault("env", {**os.environ, **self.environment})
        program = subprocess.Popen(self.command(side, *command), **options)
        self.programs.append(program)
        return program

    def start_server(self, side, *command, **options):
        """Starts a program and waits until it has said something: then it listens."""
        said = tempfile.NamedTemporaryFile(mode="w+")
        program = self.start(side, *command, stdout=said, stderr=subprocess.STDOUT, **options)
        program.said = said
        end = time.monotonic() + 20
        while os.fstat(said.fileno()).st_size == 0 and time.monotonic() < end:
            if program.poll() is not None:
                break
            time.sleep(0.01)
        return program


def text_of(program):
    """What a program of start_server() has said."""
    # Opened anew: the program writes at the place of the file that it was given, and seek() would move that.
    return pathlib.Path(program.said.name).read_text()


class Loopback(Places):
    """Two processes on this host that talk through `lo`, as if they were on two."""

    environment = {"PULLMAN_NICS": "lo", "PULLMAN_SHARED_MEMORY": "0"}


class OneHost(Places):
    """Two processes on this host, which may share memory."""

    environment = {"PULLMAN_NICS": "lo"}


class Pair(Places):
    """Namespaces `a` and `b`, with addresses 10.77.0.1 and 10.77.0.2, or fd77::1 and fd77::2.

    `family` may be "ipv4", "ipv6" or "link-local". Without `offloads` the link takes and gives one
    packet at a time.
    """

    count = 0

    def __init__(self, mtu=1500, family="ipv4", offloads=True):
        super().__init__()
        Pair.count += 1
        stem = f"pullman-{os.getpid()}-{Pair.count}"
        self.names = (stem + "a", stem + "b")
        self.hosts = ("10.77.0.1", "10.77.0.2")
        self.mtu = mtu
        self.family = family
        self.offloads = offloads

    def __enter__(self):
        os.environ["PATH"] = search_path()
        try:
            self._make()
        except BaseException:
            self.__exit__()
            raise
        return self

    def _make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        self._make_link()

    def _make_link(self):
        run("ip", "link", "add", "veth0", "netns", self.names[0], "type", "veth", "peer", "name",
            "veth0", "netns", self.names[1])
        for end, name in enumerate(self.names, 1):
            in_namespace = ("ip", "-n", name)
            # Of use at once, without a search for others who have it.
            run("ip", "netns", "exec", name, "sysctl", "-qw", "net.ipv6.conf.veth0.accept_dad=0")
            run(*in_namespace, "addr", "add", f"10.77.0.{end}/24", "dev", "veth0")
            run(*in_namespace, "link", "set", "veth0", "mtu", str(self.mtu), "up")
        for name in self.names:
            self._wait_for_link(name)
            if not self.offloads:
                self._forbid_offloads(name)
        if self.family != "ipv4":
            self.hosts = self._make_ipv6()

    def replace_link(self):
        """Both ends are taken away, and others of their names and addresses are made."""
        run("ip", "-n", self.names[0], "link", "del", "veth0")
        self._make_link()

    def _make_ipv6(self):
        hosts = ("fd77::1", "fd77::2")
        for name, host in zip(self.names, hosts):
            run("ip", "-n", name, "addr", "add", host + "/64", "dev", "veth0", "nodad")
        if self.family == "ipv6":
            return hosts
        return tuple(self._link_local(name) for name in self.names)

    def _link_local(self, name):
        """As a program in that namespace calls itself; what it calls the other differs by the scope."""
        link, = json.loads(run("ip", "-n", name, "-j", "addr", "show", "veth0"))
        host, = (a["local"] for a in link["addr_info"] if a["local"].startswith("fe80:"))
        return f"{host}%{link['ifindex']}"

    def _forbid_offloads(self, name):
        run("ip", "netns", "exec", name, "ethtool", "-K", "veth0", "gso", "off", "gro", "off", "tso", "off",
            "tx-udp-segmentation", "off")

    def forbid_checksum_offload(self):
        """Both sides compute checksums themselves, and segment UDP themselves."""
        for name in self.names:
            run("ip", "netns", "exec", name, "ethtool", "-K", "veth0", "tx", "off", "tx-udp-segmentation", "off")

    def cut(self, side, down):
        """Takes the link of one side down, or up again."""
        run("ip", "-n", self.names[side], "link", "set", "veth0", "down" if down else "up")

    def narrow(self, side, megabits, limit=1_000_000):
        """What one side sends passes a bottleneck with so many bytes of queue."""
        run("tc", "-n", self.names[side], "qdisc", "add", "dev", "veth0", "root", "tbf", "rate", f"{megabits}mbit",
            "burst", "64kb", "limit", str(limit))

    def refuse_behind_the_queue(self, side, port):
        """What one side sends to a UDP port is dropped when the device has taken it: programs are told ENOBUFS."""
        prefix = ("ip", "netns", "exec", self.names[side], "nft")
        run(*prefix, "add", "table", "netdev", "behind")
        run(*prefix, "add", "chain", "netdev", "behind", "egress",
            "{ type filter hook egress device veth0 priority 0 ; }")
        run(*prefix, "add", "rule", "netdev", "behind", "egress", "udp", "dport", str(port), "drop")

    def forbid_sending(self, side, forbidden):
        """A packet filter that refuses what programs send, or none."""
        prefix = ("ip", "netns", "exec", self.names[side], "nft")
        run(*prefix, "flush", "ruleset")
        if forbidden:
            run(*prefix, "add", "table", "inet", "filter")
            run(*prefix, "add", "chain", "inet", "filter", "output",
                "{ type filter hook output priority 0 ; policy drop ; }")

    def reset_connections(self, side, on):
        """A packet filter that answers whatever comes by TCP with a reset, or none."""
        prefix = ("ip", "netns", "exec", self.names[side], "nft")
        run(*prefix, "flush", "ruleset")
        if on:
            run(*prefix, "add", "table", "inet", "filter")
            run(*prefix, "add", "chain", "inet", "filter", "input", "{ type filter hook input priority 0 ; }")
            run(*prefix, "add", "rule", "inet", "filter", "input", "meta", "l4proto", "tcp", "reject", "with", "tcp",
                "reset")

    def _wait_for_link(self, name, device="veth0"):
        """The kernel may take a second to say that the other end is up; until then nobody uses the link."""
        end = time.monotonic() + 10
        while "state UP" not in run("ip", "-n", name, "link", "show", device):
            if time.monotonic() > end:
                raise CannotMake("the link between the namespaces does not come up")
            time.sleep(0.02)

    def __exit__(self, *_):
        super().__exit__()
        for name in self.names:
            run("ip", "netns", "del", name, check=False)

    def set_mtu(self, mtu):
        """Of both ends, whatever is under way."""
        for name in self.names:
            run("ip", "-n", name, "link", "set", "veth0", "mtu", str(mtu))

    def command(self, side, *command):
        return ["ip", "netns", "exec", self.names[side], *map(str, command)]

    def drop_udp(self, percent):
        """From now on both namespaces drop so many of the UDP packets that come in."""
        self._drop("udp", percent)

    def lose(self, percent):
        """The same for UDP and TCP. Where packets come in bursts, a whole burst counts as one."""
        self._drop("{ udp, tcp }", percent)

    def _drop(self, protocols, percent):
        for name in self.names[:2]:
            prefix = ("ip", "netns", "exec", name, "nft")
            run(*prefix, "flush", "ruleset")
            if percent == 0:
                continue
            run(*prefix, "add", "table", "inet", "loss")
            run(*prefix, "add", "chain", "inet", "loss", "input",
                "{ type filter hook input priority 0 ; }")
            chance = ("numgen", "random", "mod", "1000", "<", str(round(10 * percent)))
            run(*prefix, "add", "rule", "inet", "loss", "input", "meta", "l4proto", protocols,
                *(chance if percent < 100 else ()), "drop")

    def udp_ports(self, side):
        """The UDP ports open in one namespace."""
        table = run("ip", "netns", "exec", self.names[side], "cat", "/proc/net/udp", "/proc/net/udp6")
        lines = (line.split() for line in table.splitlines())
        return sorted({int(words[1].split(":")[1], 16) for words in lines if words[1] != "local_address"})


class Line(Pair):
    """Namespaces `a`, `m` and `b` in a line: a and b have no network in common, and m does not route.

    a: 10.77.1.1, m: 10.77.1.2 and 10.77.2.2, b: 10.77.2.1. Sides 0, 1 and 2 are a, b and m.
    """

    def __init__(self, mtu=1500):
        super().__init__(mtu)
        self.names += (self.names[0][:-1] + "m",)
        self.hosts = ("10.77.1.1", "10.77.2.1", "10.77.1.2")

    def _make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        middle = self.names[2]
        run("ip", "netns", "exec", middle, "sysctl", "-qw", "net.ipv4.ip_forward=0")
        for number, name in enumerate(self.names[:2], 1):
            run("ip", "link", "add", "veth0", "netns", name, "type", "veth", "peer", "name", f"veth{number}", "netns",
                middle)
            for where, device, end in ((name, "veth0", 1), (middle, f"veth{number}", 2)):
                run("ip", "-n", where, "addr", "add", f"10.77.{number}.{end}/24", "dev", device)
                run("ip", "-n", where, "link", "set", device, "mtu", str(self.mtu), "up")
            self._wait_for_link(name)
            self._wait_for_link(middle, f"veth{number}")


class Path(Pair):
    """Namespaces `a` and `b` with two routers between them, whose link is narrower than the outer two.

    a: 10.77.1.1 or fd77:1::1, b: 10.77.2.1 or fd77:2::1. `narrow` is the MTU of the link between the routers, or
    "vxlan": a tunnel through a link of `mtu`. `silent` routers say nothing of packets that are too long.
    """

    def __init__(self, narrow, mtu=1500, family="ipv4", silent=False, offloads=True):
        super().__init__(mtu, family, offloads)
        stem = self.names[0][:-1]
        self.names += (stem + "r", stem + "s")
        self.narrow = narrow
        self.silent = silent
        self.hosts = tuple(f"fd77:{i}::1" if family == "ipv6" else f"10.77.{i}.1" for i in (1, 2))

    def _make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        a, b, r, s = self.names
        for i, host, router in ((1, a, r), (2, b, s)):
            self._join(host, "veth0", router, "veth0", i, self.mtu)
            self._route(host, "default", i, 2, "veth0")
        tunnel = self.narrow == "vxlan"
        self._join(r, "middle", s, "middle", 9, self.mtu if tunnel else self.narrow)
        if tunnel:
            self._make_tunnel(r, s)
        else:
            self._route(r, 2, 9, 2, "middle")
            self._route(s, 1, 9, 1, "middle")
        for router in (r, s):
            run("ip", "netns", "exec", router, "sysctl", "-qw", "net.ipv4.ip_forward=1",
                "net.ipv6.conf.all.forwarding=1")
            if self.silent:
                self._silence(router)
        for host in (a, b):
            self._wait_for_link(host)
            if not self.offloads:
                self._forbid_offloads(host)

    def _address(self, net, end):
        return f"fd77:{net}::{end}" if self.family == "ipv6" else f"10.77.{net}.{end}"

    def _join(self, one, one_device, other, other_device, net, mtu):
        run("ip", "link", "add", one_device, "netns", one, "type", "veth", "peer", "name", other_device, "netns",
            other)
        for end, name, device in ((1, one, one_device), (2, other, other_device)):
            self._set_up(name, device, net, end)
            run("ip", "-n", name, "link", "set", device, "mtu", str(mtu))

    def _set_up(self, name, device, net, end):
        nodad = ("nodad",) if self.family == "ipv6" else ()
        run("ip", "-n", name, "link", "set", device, "up")
        run("ip", "-n", name, "addr", "add", self._address(net, end) + ("/64" if nodad else "/24"), "dev", device,
            *nodad)

    def _route(self, name, to, net, end, device):
        where = to if to == "default" else self._address(to, 0) + ("/64" if self.family == "ipv6" else "/24")
        run("ip", "-n", name, "route", "add", where, "via", self._address(net, end), "dev", device)

    def _make_tunnel(self, r, s):
        for name, own, other in ((r, 1, 2), (s, 2, 1)):
            run("ip", "-n", name, "link", "add", "tunnel", "type", "vxlan", "id", "77", "dstport", "4789", "local",
                self._address(9, own), "remote", self._address(9, other), "dev", "middle")
            self._set_up(name, "tunnel", 8, own)
        self._route(r, 2, 8, 2, "tunnel")
        self._route(s, 1, 8, 1, "tunnel")

    def _silence(self, router):
        prefix = ("ip", "netns", "exec", router, "nft")
        run(*prefix, "add", "table", "inet", "silence")
        run(*prefix, "add", "chain", "inet", "silence", "output", "{ type filter hook output priority 0 ; }")
        for said in (("icmp", "type", "destination-unreachable"), ("icmpv6", "type", "packet-too-big")):
            run(*prefix, "add", "rule", "inet", "silence", "output", *said, "drop")

    def set_narrow(self, mtu):
        """The MTU of the link between the routers, whatever is under way."""
        for name in self.names[2:]:
            run("ip", "-n", name, "link", "set", "middle", "mtu", str(mtu))
