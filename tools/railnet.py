"""Two network namespaces joined by several veth pairs: the rails of one peer."""

import netns
from netns import run


class Rails(netns.Pair):
    """Namespaces `a` and `b` with `count` links, veth0, veth1, ...: 10.77.N.1 and 10.77.N.2 of rail N.

    `megabits` shapes each rail, both ways: one figure for all, or one for each; None leaves them as they are.
    """

    def __init__(self, count=2, megabits=None, mtu=1500):
        super().__init__(mtu)
        self.devices = tuple(f"veth{n}" for n in range(count))
        self.megabits = megabits if isinstance(megabits, (list, tuple)) else [megabits] * count

    def _make(self):
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        for number, device in enumerate(self.devices):
            self._join(number, device)
            if self.megabits[number] is not None:
                self._shape(device, self.megabits[number])
        for name in self.names:
            for device in self.devices:
                self._wait_for_link(name, device)
        self.hosts = (self.host(0), self.host(1))

    def _join(self, number, device):
        run("ip", "link", "add", device, "netns", self.names[0], "type", "veth", "peer", "name", device, "netns",
            self.names[1])
        for side, name in enumerate(self.names):
            run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{device}.accept_dad=0")
            run("ip", "-n", name, "addr", "add", self.host(side, number) + "/24", "dev", device)
            run("ip", "-n", name, "link", "set", device, "mtu", str(self.mtu), "up")

    def _shape(self, device, megabits, names=None):
        """The bucket holds what 20 ms bring: on a busy machine the timer of a queue may come as late as that, and what a
        bucket cannot hold by then is lost to the rail's rate."""
        bucket = max(64_000, megabits * 20 * 125)
        for name in names or self.names:
            run("tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{megabits}mbit", "burst",
                str(bucket), "latency", "20ms")

    def host(self, side, number=0):
        """The address of one end of one rail."""
        return f"10.77.{number}.{side + 1}"

    def cut(self, side, down, number=0):
        """Takes one rail's link down at one side, or up again: both are told."""
        run("ip", "-n", self.names[side], "link", "set", self.devices[number], "down" if down else "up")

    def silence(self, number, sides=(0, 1)):
        """What comes in at these sides over this rail vanishes, and nobody is told; no sides: mends it."""
        for side in (0, 1):
            self.drop(number, side, "" if side in sides else None)

    def drop(self, number, side, what):
        """What comes in there over this rail vanishes if nft says that it is `what` ("": all); None: nothing does."""
        name, table = self.names[side], f"netdev silence{number}"
        run("ip", "netns", "exec", name, "nft", f"add table {table}; delete table {table}")
        if what is not None:
            run("ip", "netns", "exec", name, "nft",
                f"add table {table}; add chain {table} in {{ type filter hook ingress device "
                f"{self.devices[number]} priority 0; }}; add rule {table} in {what} drop")

    def bytes_sent(self, side, number):
        """What the host's NIC has sent."""
        return self._count(side, number, "tx")

    def bytes_received(self, side, number):
        return self._count(side, number, "rx")

    def _count(self, side, number, which):
        return int(run("ip", "netns", "exec", self.names[side], "cat",
                       f"/sys/class/net/{self.devices[number]}/statistics/{which}_bytes"))


class Switch(Rails):
    """Rails with one switch between all of them (a bridge in a third namespace), and one subnet.

    veth0, veth1, ... of the first host are 10.77.0.1, .3, ...; of the second 10.77.0.2, .4, ....
    `sysctls` are set on both hosts, of all interfaces ("rp_filter": 2).
    """

    def __init__(self, count=2, megabits=None, mtu=1500, **sysctls):
        super().__init__(count, megabits, mtu)
        self.names += (self.names[0][:-1] + "s",)
        self.sysctls = {"rp_filter": 2, "arp_ignore": 1, **sysctls}

    def _make(self):
        hosts, switch = self.names[:2], self.names[2]
        for name in self.names:
            run("ip", "netns", "add", name)
            run("ip", "-n", name, "link", "set", "lo", "up")
        run("ip", "-n", switch, "link", "add", "bridge", "up", "type", "bridge", "forward_delay", "0")
        for side, name in enumerate(hosts):
            self._set(name, ("all", "default"), self.sysctls)
            for number in range(len(self.devices)):
                self._plug_in(side, number)
        for name in hosts:
            for device in self.devices:
                self._wait_for_link(name, device)
        self.hosts = (self.host(0), self.host(1))

    def _plug_in(self, side, number):
        name, switch, device, port = self.names[side], self.names[2], self.devices[number], self.port(side, number)
        run("ip", "link", "add", device, "netns", name, "type", "veth", "peer", "name", port, "netns", switch)
        run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv6.conf.{device}.accept_dad=0")
        run("ip", "-n", name, "addr", "add", self.host(side, number) + "/24", "dev", device)
        run("ip", "-n", name, "link", "set", device, "mtu", str(self.mtu), "up")
        run("ip", "-n", switch, "link", "set", port, "mtu", str(self.mtu), "master", "bridge", "up")
        if self.megabits[number] is not None:
            self._shape(device, self.megabits[number], (name,))

    def replace_nic(self, side, number):
        """It is taken away, and another of its name and address is put in."""
        run("ip", "-n", self.names[side], "link", "del", self.devices[number])
        self._plug_in(side, number)

    @staticmethod
    def _set(name, devices, sysctls):
        for key, value in sysctls.items():
            for device in devices:
                run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.conf.{device}.{key}={value}")

    def set_sysctls(self, **sysctls):
        """From now on, as an operator would: the greater of this and the device's own counts."""
        for name in self.names[:2]:
            self._set(name, ("all",), sysctls)

    def forget_neighbours(self):
        for name in self.names[:2]:
            for device in self.devices:
                run("ip", "-n", name, "neigh", "flush", "dev", device, "nud", "all")

    def mac(self, side, number):
        return run("ip", "netns", "exec", self.names[side], "cat",
                   f"/sys/class/net/{self.devices[number]}/address").strip()

    def host(self, side, number=0):
        return f"10.77.0.{side + 1 + 2 * number}"

    def port(self, side, number):
        """The switch's port that this NIC of a host is at."""
        return f"port{side}{number}"

    def cut_port(self, side, number, down):
        """At the switch, which the NIC sees: it has no carrier."""
        run("ip", "-n", self.names[2], "link", "set", self.port(side, number), "down" if down else "up")

    def block_port(self, side, number, on):
        """The switch lets nothing pass by this port, either way, and nobody is told."""
        table = f"bridge block{side}{number}"
        name, port = self.names[2], self.port(side, number)
        nft = ("ip", "netns", "exec", name, "nft")
        run(*nft, f"add table {table}; delete table {table}")
        if on:
            run(*nft, f"add table {table}; add chain {table} through {{ type filter hook forward priority 0; }}; "
                      f"add rule {table} through iifname {port} drop; add rule {table} through oifname {port} drop")
