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

    def _shape(self, device, megabits):
        for name in self.names:
            run("tc", "-n", name, "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{megabits}mbit", "burst",
                "64kb", "latency", "20ms")

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
