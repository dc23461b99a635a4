"""What a port says of its link and of the ways to others, on a real kernel in network namespaces."""

import json
import pathlib
import subprocess
import tempfile
import time

import pytest

import netns
from cases import case

pytestmark = pytest.mark.waits

PATIENCE = 20  # seconds; the kernel may take one of them to say that a link is up


class Watch:
    """A port-watch program on one side."""

    def __init__(self, place, build, side, driver, *options, host=None):
        self.output = tempfile.NamedTemporaryFile(mode="r+")
        self.seen = 0  # lines that were asked for
        self.program = place.start(side, build / "test/nic/port-watch", host or place.hosts[side], "--driver",
                                   driver, *options, stdin=subprocess.PIPE, stdout=self.output, text=True)
        self.next("open")

    def lines(self):
        text = pathlib.Path(self.output.name).read_text()
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def next(self, event):
        """The next line, which is of that event."""
        end = time.monotonic() + PATIENCE
        while len(self.lines()) <= self.seen:
            assert self.program.poll() is None, f"ended before '{event}'"
            assert time.monotonic() < end, f"no '{event}' within {PATIENCE} s"
            time.sleep(0.002)
        line = self.lines()[self.seen]
        self.seen += 1
        assert line["event"] == event, f"'{event}' was expected, and what came is {json.dumps(line)}"
        return line

    def ask(self, command):
        self.program.stdin.write(command + "\n")
        self.program.stdin.flush()
        return self.next(command.split()[0])

    def reach(self, host):
        return self.ask(f"reach {host}")["reach"]

    def end(self):
        """Nothing else was said."""
        self.program.stdin.close()
        assert self.program.wait(PATIENCE) == 0, f"exit {self.program.returncode}"
        assert len(self.lines()) == self.seen, f"more than expected: {self.lines()[self.seen:]}"


def ip(place, side, *words):
    netns.run("ip", "-n", place.names[side], *words)


def make_interface(place, name):
    """In namespace a, with its other end beside it."""
    ip(place, 0, "link", "add", name, "type", "veth", "peer", "name", "end-of-" + name)
    ip(place, 0, "link", "set", "end-of-" + name, "up")


@case("udp", "tcp", "fabric")
def test_a_link_that_is_set_down_and_up_is_told_at_both_ends(place, build, driver):
    watches = [Watch(place, build, side, driver) for side in (0, 1)]
    for _ in range(3):
        for down, event in ((True, "link down"), (False, "link up")):
            place.cut(0, down)
            for watch in watches:
                watch.next(event)
    for watch in watches:
        watch.end()


@case("udp", family="ipv6")
def test_a_link_with_an_ipv6_address_that_goes_and_comes_is_told(place, build, driver):
    watch = Watch(place, build, 0, driver)
    place.cut(0, True)  # the kernel takes the address away, too, and does not give it back
    watch.next("link down")
    place.cut(0, False)
    ip(place, 0, "addr", "add", place.hosts[0] + "/64", "dev", "veth0", "nodad")
    watch.next("link up")
    watch.end()


@case("udp", family="link-local")
def test_a_link_local_address_that_goes_and_comes_is_told(place, build, driver):
    watch = Watch(place, build, 0, driver)
    place.cut(0, True)
    watch.next("link down")
    place.cut(0, False)
    watch.next("link up")
    watch.end()


@case("udp", "fabric")
def test_an_address_that_is_taken_away_and_comes_back_is_told(place, build, driver):
    watch = Watch(place, build, 0, driver)
    ip(place, 0, "addr", "add", "10.77.0.9/24", "dev", "veth0")  # nobody's business
    ip(place, 0, "addr", "del", "10.77.0.9/24", "dev", "veth0")
    ip(place, 0, "addr", "del", "10.77.0.1/24", "dev", "veth0")
    watch.next("address gone")
    ip(place, 0, "addr", "add", "10.77.0.1/24", "dev", "veth0")
    watch.next("link up")
    watch.end()


@case("udp")
def test_an_interface_that_is_removed_and_made_anew_is_told(place, build, driver):
    watch = Watch(place, build, 0, driver)
    ip(place, 0, "link", "del", "veth0")
    watch.next("link down")
    make_interface(place, "veth0")
    ip(place, 0, "addr", "add", "10.77.0.1/24", "dev", "veth0")
    ip(place, 0, "link", "set", "veth0", "up")
    watch.next("link up")
    watch.end()


@case("udp", "tcp", "fabric")
def test_an_address_of_the_host_is_known_for_one_while_it_is_there(place, build, driver):
    watch = Watch(place, build, 0, driver)
    make_interface(place, "other")

    def own(host):
        return watch.ask(f"own {host}")["own"]
    assert own("10.77.0.1") and own("127.0.0.1"), "it does not know what there is"
    assert not own("10.77.0.2") and not own("10.88.0.1") and not own("fd88::1"), "it knows what there is not"
    for change in ("add", "del"):
        ip(place, 0, "addr", change, "10.88.0.1/24", "dev", "other")
        ip(place, 0, "addr", change, "fd88::1/64", "dev", "other", *(("nodad",) if change == "add" else ()))
        wait_until(lambda: own("10.88.0.1") == own("fd88::1") == (change == "add"), f"it does not hear of '{change}'")
    watch.end()


@case("udp")
def test_what_happens_to_other_interfaces_is_not_told(place, build, driver):
    watch = Watch(place, build, 0, driver)
    make_interface(place, "other")
    for state in ("up", "down", "up"):
        ip(place, 0, "link", "set", "other", state)
    ip(place, 0, "link", "del", "other")
    ip(place, 0, "link", "set", "lo", "down")
    ip(place, 0, "link", "set", "veth0", "mtu", "1400")
    watch.ask("counters")
    time.sleep(0.3)
    watch.end()


@case("udp")
def test_a_link_that_was_down_while_nobody_looked_is_told_as_down_and_up(place, build, driver):
    watch = Watch(place, build, 0, driver)
    watch.ask("stop")
    place.cut(0, True)
    place.cut(0, False)
    place._wait_for_link(place.names[0])
    watch.ask("go")
    watch.next("link down")
    watch.next("link up")
    watch.end()


def churn(place, times):
    """So many changes that the kernel has no room for what there is to tell."""
    words = "".join(f"link set other mtu {1300 + i % 2}\n" for i in range(times))
    with tempfile.NamedTemporaryFile(mode="w") as batch:
        batch.write(words)
        batch.flush()
        ip(place, 0, "-batch", batch.name)


@case("udp")
def test_the_state_is_right_although_the_kernel_had_more_to_tell_than_there_was_room_for(place, build, driver):
    watch = Watch(place, build, 0, driver)
    make_interface(place, "other")
    for down, event in ((True, "link down"), (False, "link up")):
        watch.ask("stop")
        churn(place, 1000)
        place.cut(0, down)
        if not down:
            place._wait_for_link(place.names[0])
        churn(place, 1000)
        watch.ask("go")
        watch.next(event)
    watch.end()


@case("udp", "tcp", "fabric")
def test_who_sleeps_is_woken_by_the_link_and_sleeps_again(place, build, driver):
    watch = Watch(place, build, 0, driver, "--sleep")
    for down, event in ((True, "link down"), (False, "link up")):
        place.cut(0, down)
        watch.next(event)
    time.sleep(0.2)  # for what else the kernel has to tell of a new link
    before = watch.ask("counters")["wakes"]
    time.sleep(0.5)
    after = watch.ask("counters")["wakes"]
    assert after - before < 50, f"woke {after - before} times with nothing to do"
    watch.end()


def sockets_at(place, side, port):
    """Of one namespace: how many UDP sockets there are at that port, and how many of them are connected."""
    table = netns.run("ip", "netns", "exec", place.names[side], "cat", "/proc/net/udp", "/proc/net/udp6")
    remotes = [words[2] for words in map(str.split, table.splitlines()) if words[1].endswith(f":{port:04X}")]
    return len(remotes), sum(not remote.endswith(":0000") for remote in remotes)


def wait_until(true, what):
    end = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < end, what() if callable(what) else what
        time.sleep(0.01)


def arrive(there, count=100):
    before = there.ask("counters")["received"]
    wait_until(lambda: there.ask("counters")["received"] >= before + count, "nothing arrives")


def has_a_socket_of_its_own(place, driver, build, replaced):
    there = Watch(place, build, 1, driver, "--port", 7100)
    here = Watch(place, build, 0, driver, "--port", 7101, "--to", ("[%s]:7100" if ":" in place.hosts[1] else "%s:7100") %
                 place.hosts[1])
    arrive(there)
    for again in range(1 + 2 * replaced):
        if again:
            place.replace_link()
            for watch in (here, there):
                watch.next("link down")
                watch.next("link up")
            arrive(there)
        wait_until(lambda: sockets_at(place, 0, 7101) == (3, 1),
                   lambda: f"(all, connected): {sockets_at(place, 0, 7101)} after {again} new links")
        arrive(there, 1000)
        assert sockets_at(place, 0, 7101) == (3, 1), "it is no more"
    here.end()
    there.end()


@case("udp")
def test_who_is_sent_to_all_the_time_has_a_socket_of_its_own(place, build, driver):
    has_a_socket_of_its_own(place, driver, build, replaced=False)


@case("udp", family="ipv6")
def test_who_is_sent_to_all_the_time_has_a_socket_of_its_own_over_ipv6(place, build, driver):
    has_a_socket_of_its_own(place, driver, build, replaced=False)


@case("udp")
def test_a_link_that_is_replaced_is_followed_by_all_sockets(place, build, driver):
    has_a_socket_of_its_own(place, driver, build, replaced=True)


@case("udp", family="ipv6")
def test_a_link_that_is_replaced_is_followed_by_all_sockets_over_ipv6(place, build, driver):
    has_a_socket_of_its_own(place, driver, build, replaced=True)


def interrupts(place):
    def address(down):
        ip(place, 0, "addr", "del" if down else "add", "10.77.0.1/24", "dev", "veth0")
    return {"set down here": lambda down: place.cut(0, down), "set down there": lambda down: place.cut(1, down),
            "without its address": address}


@case("udp")
def test_a_port_that_sends_all_the_time_survives_and_goes_on_when_the_link_is_back(place, build, driver):
    there = Watch(place, build, 1, driver, "--port", 7100)
    here = Watch(place, build, 0, driver, "--to", f"{place.hosts[1]}:7100")
    for name, interrupt in interrupts(place).items():
        # The kernel may take a second to see what became of the other end.
        of_address = "address" in name
        noticed = (here,) if of_address else (here, there)
        for down, event in ((True, "address gone" if of_address else "link down"), (False, "link up")):
            interrupt(down)
            for watch in noticed:
                watch.next(event)
            time.sleep(0.05)
        before = there.ask("counters")["received"]
        bursts = here.ask("counters")["bursts_sent"]
        end = time.monotonic() + PATIENCE
        while there.ask("counters")["received"] < before + 100:
            assert time.monotonic() < end, f"nothing arrives after the link was {name}"
            time.sleep(0.01)
        counters = here.ask("counters")
        assert counters["bursts_sent"] > bursts and counters["offload_refused"] == 0, (
            f"no more bursts after the link was {name}: {counters}")
    assert here.ask("counters")["send_errors"] > 0, "nothing was refused: no test"
    here.end()
    there.end()


# What a firewall refuses says nothing about the segmentation offload.
@case("udp")
def test_bursts_go_on_when_a_firewall_that_refused_them_is_gone(place, build, driver):
    there = Watch(place, build, 1, driver, "--port", 7100)
    here = Watch(place, build, 0, driver, "--to", f"{place.hosts[1]}:7100")
    end = time.monotonic() + PATIENCE
    place.forbid_sending(0, True)
    while here.ask("counters")["send_errors"] == 0:
        assert time.monotonic() < end, "nothing was refused: no test"
        time.sleep(0.01)
    place.forbid_sending(0, False)
    bursts = here.ask("counters")["bursts_sent"]
    while here.ask("counters")["bursts_sent"] == bursts:
        assert time.monotonic() < end, f"no more bursts: {here.ask('counters')}"
        time.sleep(0.01)
    assert here.ask("counters")["offload_refused"] == 0, "bursts were given up"
    here.end()
    there.end()


@case("udp")
def test_a_queue_that_never_has_room_for_a_whole_burst_gets_shorter_ones(place, build, driver):
    there = Watch(place, build, 1, driver, "--port", 7100)
    here = Watch(place, build, 0, driver, "--to", f"{place.hosts[1]}:7100")
    place.narrow(0, 1000, limit=5000)  # of 8000 bytes
    before = there.ask("counters")["received"]
    end = time.monotonic() + PATIENCE
    while there.ask("counters")["received"] < before + 1000:
        assert time.monotonic() < end, f"nothing gets through: {here.ask('counters')}"
        time.sleep(0.01)
    said = netns.run("tc", "-n", place.names[0], "-s", "-j", "qdisc", "show", "dev", "veth0")
    assert json.loads(said)[0]["drops"] > 0, "nothing was refused: no test"
    here.end()
    there.end()


@case("udp")
def test_what_the_queue_refuses_for_ever_is_lost_and_does_not_hold_back_the_rest(place, build, driver):
    there = Watch(place, build, 1, driver, "--port", 7100)
    here = Watch(place, build, 0, driver, "--to", f"{place.hosts[1]}:7100")
    place.refuse_behind_the_queue(0, 7100)
    end = time.monotonic() + PATIENCE
    while here.ask("counters")["send_errors"] < 10:
        assert time.monotonic() < end, f"offered for ever: {here.ask('counters')}"
        time.sleep(0.01)
    here.end()
    there.end()


def expect_reach(watch, ways):
    for host, reach in ways.items():
        seen = watch.reach(host)
        assert seen == reach, f"{host} is said to be {seen}, and is {reach}"


@case("udp", "tcp", "fabric")
def test_the_same_subnet_is_direct_and_without_a_route_there_is_no_way(place, build, driver):
    watch = Watch(place, build, 0, driver)
    expect_reach(watch, {"10.77.0.2": "direct", "10.77.0.1": "own", "10.78.0.1": "none",
                         "127.0.0.1": "none", "fd77::2": "none"})
    ip(place, 0, "route", "add", "10.78.0.0/24", "dev", "veth0")
    ip(place, 0, "route", "add", "10.79.0.0/24", "via", "10.77.0.2")
    for i, kind in enumerate(("unreachable", "blackhole", "prohibit")):
        ip(place, 0, "route", "add", kind, f"10.79.0.{i + 1}")
    expect_reach(watch, {"10.78.0.1": "direct", "10.79.0.9": "routed", "10.79.0.1": "none",
                         "10.79.0.2": "none", "10.79.0.3": "none"})
    watch.end()


@case("udp")
def test_a_route_through_another_interface_is_no_way(place, build, driver):
    make_interface(place, "other")
    ip(place, 0, "addr", "add", "10.88.0.1/24", "dev", "other")
    ip(place, 0, "link", "set", "other", "up")
    ip(place, 0, "route", "add", "10.89.0.0/24", "via", "10.88.0.9")
    here, other = (Watch(place, build, 0, driver, host=host) for host in ("veth0", "other"))
    expect_reach(here, {"10.88.0.9": "none", "10.89.0.1": "none", "10.77.0.2": "direct"})
    expect_reach(other, {"10.88.0.9": "direct", "10.89.0.1": "routed", "10.77.0.2": "none"})


@case("udp", kind=netns.Path, narrow=1500)
def test_what_lies_behind_a_gateway_is_routed(place, build, driver):
    expect_reach(Watch(place, build, 0, driver), {place.hosts[1]: "routed", "10.77.1.2": "direct"})


@case("udp", kind=netns.Path, narrow=1500, family="ipv6")
def test_what_lies_behind_a_gateway_is_routed_over_ipv6(place, build, driver):
    expect_reach(Watch(place, build, 0, driver), {place.hosts[1]: "routed", "fd77:1::2": "direct"})


@case("udp", family="ipv6")
def test_ipv6_without_a_route_there_is_no_way(place, build, driver):
    watch = Watch(place, build, 0, driver)
    expect_reach(watch, {"fd77::2": "direct", "fd78::1": "none", "::1": "none", "fe80::1": "none",
                         "10.77.0.2": "none"})
    ip(place, 0, "route", "add", "fd78::/64", "dev", "veth0")
    ip(place, 0, "route", "add", "fd79::/64", "via", "fd77::2")
    ip(place, 0, "route", "add", "blackhole", "fd79::1")
    expect_reach(watch, {"fd78::1": "direct", "fd79::9": "routed", "fd79::1": "none"})


@case("udp", family="link-local")
def test_link_local_addresses_reach_each_other_and_nobody_else(place, build, driver):
    expect_reach(Watch(place, build, 0, driver), {"fe80::1234": "direct", "fd77::2": "none"})


@case("udp")
def test_the_loopback_reaches_itself_only(place, build, driver):
    watch = Watch(place, build, 0, driver, host="127.0.0.1")
    expect_reach(watch, {"127.0.0.1": "own", "127.0.0.2": "own", "10.77.0.1": "none", "10.77.0.2": "none"})
