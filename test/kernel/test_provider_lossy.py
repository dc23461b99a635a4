"""The provider's own tests (test/ofi) through what networks do: loss, and rails that die.

Both ends of each test are in one process, so that all packets pass the `lo` of one namespace: what it counts and
drops there is said by the addresses they are sent to, one for each rail. They share no memory, which loses nothing.
"""

import itertools
import os
import subprocess
import tempfile
import time

import pytest

import netns
import railnet
from cases import case

pytestmark = pytest.mark.long

BOUND = 150  # seconds, for what takes ten
LOSS = "numgen random mod 100 < 1"
TURN = 0.3  # seconds between cuts: a test lasts from some milliseconds to one second


def make_narrow(place):
    """Packets are as short as those of a network, and each is drawn alone, not what was handed over at once."""
    run_in(place, "ip", "link", "set", "lo", "mtu", "1500")
    run_in(place, "ethtool", "-K", "lo", "gso", "off", "gro", "off", "tso", "off", "tx-udp-segmentation", "off")


class OneRail(netns.Pair):
    """The loopback of its first namespace."""

    nics = ("lo",)
    addresses = ("127.0.0.1",)

    def _make(self):
        super()._make()
        make_narrow(self)


class TwoRails(railnet.Rails):
    """Two NICs of its first namespace, whose links end in the second."""

    nics = ("veth0", "veth1")
    addresses = ("10.77.0.1", "10.77.1.1")

    def _make(self):
        super()._make()
        make_narrow(self)


def run_in(place, *command):
    return netns.run(*place.command(0, *command))


def drop(place, *what):
    """From now on all packets that nft calls one of `what` vanish, and no others."""
    rules = "".join(f"add rule inet filter input meta l4proto udp {one} counter drop; " for one in what)
    run_in(place, "nft", "add table inet filter; add chain inet filter input { type filter hook input priority 0; }; "
           "flush chain inet filter input; " + rules)


def packets(place, table):
    """What each rule of that table has seen."""
    words = run_in(place, "nft", "list", "table", "inet", table).split()
    return [int(words[i + 1]) for i, word in enumerate(words) if word == "packets"]


def count_packets(place):
    """Before anything is dropped, by rail; see packets(place, "seen")."""
    rules = "".join(f"add rule inet seen input ip daddr {address} meta l4proto udp counter; "
                    for address in place.addresses)
    run_in(place, "nft", "add table inet seen; add chain inet seen input "
           "{ type filter hook input priority -10; }; " + rules)


def start(place, build):
    """The tests, but those of the loopback itself if there is more than that, and those that bear no loss."""
    count_packets(place)
    place.output = tempfile.TemporaryFile(mode="w+", errors="replace")
    chosen = "~[lossless]" if place.nics == ("lo",) else "~[lossless]~[loopback]"
    return place.start(0, "timeout", BOUND, build / "test/ofi/ofi-tests", chosen, stdout=place.output,
                       stderr=subprocess.STDOUT, env={
                           **os.environ, "FI_PROVIDER_PATH": str(build / "lib/ofi"), "FI_PROVIDER": "pullman",
                           "PULLMAN_NICS": ",".join(place.nics), "PULLMAN_CLOSE_TIMEOUT_MS": "100",
                           "PULLMAN_SHARED_MEMORY": "0"})


def expect_passed(place, tests):
    code = tests.wait(BOUND + 30)
    place.output.seek(0)
    said = place.output.read()
    failure = max(said.find("\n" + 79 * "-"), 0)  # where Catch2 begins to name what failed
    assert code == 0, f"exit {code}: {said[failure:failure + 6000]}"


def expect_seen(place):
    """Every rail was tried: whatever was dropped was sent before."""
    seen = packets(place, "seen")
    assert len(seen) == len(place.addresses) and min(seen) > 100, f"not all rails are used, no test: {seen}"


def to(place, rail):
    return f"ip daddr {place.addresses[rail]}"


@case(kind=OneRail)
def test_all_pass_while_one_packet_in_a_hundred_is_lost(place, build):
    drop(place, LOSS)
    expect_passed(place, start(place, build))
    lost, = packets(place, "filter")
    assert lost > 100, f"{lost} packets were lost: no test"


@case(kind=TwoRails)
def test_all_pass_while_the_second_rail_swallows_everything(place, build):
    drop(place, to(place, 1))
    expect_passed(place, start(place, build))
    expect_seen(place)


@case(kind=TwoRails)
def test_all_pass_while_the_second_rail_has_no_link(place, build):
    place.cut(0, True, 1)
    drop(place, to(place, 1))
    expect_passed(place, start(place, build))
    passed, refused = packets(place, "seen")
    assert passed > 100 and refused == 0, f"the NIC without a link was used {refused} times, the other {passed}"


def cut_in_turn(place, build, cut):
    """One rail after the other, for as long as the tests take: what is on its way vanishes, and `cut(rail, down)`.
    How many packets vanished, by rail."""
    tests = start(place, build)
    lost = [[], []]
    for rail in itertools.cycle((1, 0)):
        time.sleep(TURN)
        if tests.poll() is not None:
            break
        drop(place, to(place, rail), LOSS)
        cut(rail, True)
        time.sleep(TURN)
        lost[rail].append(packets(place, "filter")[0])
        drop(place, LOSS)
        cut(rail, False)
    expect_passed(place, tests)
    expect_seen(place)
    assert len(lost[0]) > 1, f"the tests were done before the cuts: {lost}"
    return [sum(rail) for rail in lost]


@case(kind=TwoRails)
def test_all_pass_while_rails_swallow_everything_in_turn_and_one_packet_in_a_hundred_is_lost(place, build):
    lost = cut_in_turn(place, build, lambda rail, down: None)
    assert min(lost) > 10, f"what was lost by the cuts is too little for a test: {lost}"


@case(kind=TwoRails)
def test_all_pass_while_links_go_down_in_turn_and_one_packet_in_a_hundred_is_lost(place, build):
    def cut(rail, down):
        place.cut(0, down, rail)
        if not down:
            place._wait_for_link(place.names[0], place.devices[rail])
    lost = cut_in_turn(place, build, cut)
    assert sum(lost) > 0, "nothing was on its way when the links went down: no test"
