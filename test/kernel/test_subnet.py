"""Two NICs of each host on one subnet, a switch between: how clusters with two ports on one network look."""

import functools
import json
import os
import subprocess
import time

import pytest

import cases
import netns
import railnet
import verified_stream

pytestmark = pytest.mark.waits

case = functools.partial(cases.case, kind=railnet.Switch, megabits=verified_stream.MEGABITS)


@pytest.fixture(autouse=True)
def choose_driver(place, driver):
    place.environment = {"PULLMAN_DRIVER": driver or "udp"}


def shares(count, place):
    """Of what passed since the count was taken, the part of each NIC, by direction: first side's sent, and so on."""
    now = counts(place)
    out = {}
    for key in ("sent 0", "sent 1", "received 0", "received 1"):
        moved = [after - before for before, after in zip(count[key], now[key])]
        out[key] = [round(part / max(sum(moved), 1), 2) for part in moved]
    return out


def counts(place):
    numbers = range(len(place.devices))
    out = {f"sent {side}": [place.bytes_sent(side, number) for number in numbers] for side in (0, 1)}
    out.update({f"received {side}": [place.bytes_received(side, number) for number in numbers] for side in (0, 1)})
    return out


@case("udp", "fabric", "tcp")
def test_each_nic_of_two_on_one_subnet_sends_and_receives_its_part(place, build):
    before = counts(place)
    result = verified_stream.stream(place, build, [], 2)
    part = shares(before, place)
    assert all(min(parts) > 0.2 for parts in part.values()), f"{part}: {json.dumps(result)}"


def on_one_host(place, build, server_nics, client_nics):
    """Two programs of the first host, each by its NICs."""
    program = build / "bench/pullman-perf"
    common = ["--port", verified_stream.PORT, "--patience", 60]
    environment = {**os.environ, **place.environment}
    server = place.start_server(0, program, *common, env={**environment, "PULLMAN_NICS": server_nics})
    number = place.devices.index(server_nics.split(",")[0])
    client = place.start(0, program, *common, "--format", "json", "--test", "latency", "--size", 64,
                         "--iterations", 300, "--check", place.host(0, number),
                         env={**environment, "PULLMAN_NICS": client_nics},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    result = verified_stream.end(server, client)  # the next server can have the port then
    assert result["messages"] == 600 and result["errors"] == 0, json.dumps(result)


@case("udp", "fabric", "tcp", megabits=None)
def test_two_programs_of_one_host_talk_by_the_address_of_a_nic(place, build):
    on_one_host(place, build, "veth0", "veth0")
    on_one_host(place, build, "veth1", "veth1")
    on_one_host(place, build, "veth0,veth1", "veth0,veth1")


@case("udp", megabits=None)
def test_two_programs_of_one_host_talk_by_a_nic_each(place, build):
    on_one_host(place, build, "veth0", "veth1")
    on_one_host(place, build, "veth1", "veth0")


@case("udp", "tcp", megabits=None)
def test_what_reaches_an_address_by_another_nic_is_received(place, build):
    """As ARP has it: the switch knows the second NIC of the server by the first one's address."""
    netns.run("ip", "-n", place.names[1], "neigh", "replace", place.host(0, 1), "lladdr", place.mac(0, 0), "dev", "veth1")
    before = counts(place)
    result = verified_stream.stream(place, build, [], 2)
    assert all(rail["bytes"] > 0 for rail in result["rails"]) and len(result["rails"]) == 2, json.dumps(result)
    part = shares(before, place)
    assert part["received 0"][1] < 0.1, f"no test: {part}"


@case("udp", megabits=None)
def test_a_nic_that_is_taken_away_and_comes_back_as_another_is_used_again(place, build):
    server, client = verified_stream.start(place, build, "--test", "failover", "--size", "16K", "--duration", 8)
    time.sleep(2)
    place.replace_nic(1, 1)
    result = verified_stream.end(server, client)
    verified_stream.expect_returned(result, "veth1")
    carried = place.bytes_sent(1, 1)
    assert carried > 1_000_000, f"the new NIC has sent {carried} bytes"


def cut_in_mid_stream(place, build, cut, patience=1):
    """A verified stream while each port of each host is cut and mended; it goes on by the others meanwhile.
    `patience` seconds are enough to leave a rail, and to use it again."""
    places = [(side, nic) for side in (0, 1) for nic in (0, 1)]
    server, client = verified_stream.start(place, build, "--test", "failover", "--size", "16K",
                                 "--duration", 2 + (2 + 2 * patience) * len(places))
    for side, nic in places:
        time.sleep(1)
        cut(side, nic, True)
        time.sleep(patience)
        before = place.bytes_received(0, 1 - nic)
        time.sleep(0.8)
        passed = place.bytes_received(0, 1 - nic) - before
        cut(side, nic, False)
        assert passed > 200_000, f"by the other NIC passed {passed} bytes while veth{nic} of host {side} was cut"
        time.sleep(patience)
    result = verified_stream.end(server, client)
    assert all(result[key] == 0 for key in verified_stream.WRONG), json.dumps(result)
    assert all(rail["times_left"] > 0 for rail in result["rails"] + result["server_rails"]), (
        f"no test: {json.dumps(result)}")
    verified_stream.expect_returned(result, "veth0", "veth1")


@case("udp", "fabric")
@pytest.mark.long
def test_a_port_of_the_switch_that_goes_down_is_survived(place, build):
    """Its NIC sees no carrier, the other end nothing."""
    cut_in_mid_stream(place, build, place.cut_port)


@case("udp", "fabric", "tcp")
@pytest.mark.long("tcp", "fabric")
def test_a_port_of_the_switch_that_swallows_everything_is_survived(place, build):
    """Nobody is told."""
    tcp = place.environment["PULLMAN_DRIVER"] == "tcp"  # the kernel keeps a dead connection for two seconds
    cut_in_mid_stream(place, build, place.block_port, 5 if tcp else 1.2)


@case("udp", "fabric")
@pytest.mark.long
def test_a_nic_of_either_host_that_is_taken_down_is_survived(place, build):
    cut_in_mid_stream(place, build, lambda side, nic, down: place.cut(side, down, nic))


@case("udp")
@pytest.mark.long
def test_a_nic_of_either_host_that_hears_nothing_is_survived(place, build):
    """At the host's own port, and nobody is told."""
    cut_in_mid_stream(place, build, lambda side, nic, on: place.silence(nic, (side,) if on else ()))


def told(place, build, what):
    """What pullman-info says of the rails of a program on the other host, as JSON and as people read it."""
    where = f"{place.host(0)}:{verified_stream.PORT}"
    said = [subprocess.run(place.command(1, build / "tools/pullman-info", *form, what, where),
                           capture_output=True, text=True, timeout=60, check=False,
                           env={**os.environ, **place.environment}) for form in (("--format", "json"), ())]
    assert said[0].stdout.startswith("{"), said[0].stdout + said[0].stderr
    return json.loads(said[0].stdout), said[1].stdout, said[1].returncode


def checked(place, build):
    """The finding of each rail, and what is said of this host's settings."""
    said, text, code = told(place, build, "--check")
    peer, = said["peers"]
    findings = {rail["nic"]: rail["finding"] for rail in peer["rails"]}
    assert all(advice in text for advice in said["advice"]), text
    assert (code == 0) == (set(findings.values()) == {"fine"}), f"{code} {text}"
    return findings, " ".join(said["advice"])


def serve(place, build):
    return place.start_server(0, build / "bench/pullman-perf", "--port", verified_stream.PORT,
                              env={**os.environ, **place.environment})


@case(megabits=None, rp_filter=0)
@case(megabits=None, rp_filter=2)
def test_where_each_nic_answers_for_itself_the_check_finds_two_rails(place, build):
    serve(place, build)
    findings, advice = checked(place, build)
    assert findings == {"veth0": "fine", "veth1": "fine"} and not advice, f"{findings} {advice}"


@case(megabits=None, rp_filter=0, arp_ignore=0)
@case(megabits=None, rp_filter=2, arp_ignore=0)
def test_where_a_nic_answers_for_the_other_the_check_says_so_and_what_to_set(place, build):
    """Which of the two answers first is chance: here it is settled."""
    for side, number in ((0, 0), (0, 1), (1, 0), (1, 1)):
        netns.run("ip", "-n", place.names[1 - side], "neigh", "replace", place.host(side, number), "lladdr",
                  place.mac(side, 0 if side == 0 else number), "dev", place.devices[number])
    server = serve(place, build)
    findings, advice = checked(place, build)
    assert findings == {"veth0": "fine", "veth1": "other NIC there"}, f"{findings}"
    assert "arp_ignore=1" in advice and "rp_filter" not in advice, advice
    assert "is not independent of the others" in netns.text_of(server), netns.text_of(server)
    place.set_sysctls(arp_ignore=1)
    place.forget_neighbours()
    findings, advice = checked(place, build)
    assert findings == {"veth0": "fine", "veth1": "fine"} and not advice, f"{findings} {advice}"


@case(megabits=None, rp_filter=1, arp_ignore=0)
def test_where_all_arrives_by_the_first_nic_the_check_says_so_and_what_to_set(place, build):
    serve(place, build)
    findings, advice = checked(place, build)
    assert findings == {"veth0": "fine", "veth1": "other NIC there"}, f"{findings}"
    assert "arp_ignore=1" in advice and "rp_filter=2" in advice, advice
    said, text, code = told(place, build, "--peer")
    verdicts = {rail["nic"]: rail["verdict"] for rail in said["rails"]}
    assert "; fine, " in verdicts["veth0"] and "another of its NICs" in verdicts["veth1"], f"{verdicts}"
    assert code == 1, text
    place.set_sysctls(arp_ignore=1, rp_filter=2)
    place.forget_neighbours()
    findings, advice = checked(place, build)
    assert findings == {"veth0": "fine", "veth1": "fine"} and not advice, f"{findings} {advice}"


@case(megabits=None, rp_filter=1, arp_ignore=1)
def test_where_the_second_nic_is_not_let_receive_the_check_says_what_to_set(place, build):
    serve(place, build)
    findings, advice = checked(place, build)
    assert findings == {"veth0": "fine", "veth1": "unreachable"}, f"{findings}"
    assert "rp_filter=2" in advice and "arp_ignore" not in advice, advice
