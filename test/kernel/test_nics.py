"""NICs of a real kernel: each has the ports of the process; those that come late join in, and addresses change."""

import functools
import json
import os
import re
import subprocess
import sys
import time

import pytest

import cases
import netns
import railnet
import soak

pytestmark = pytest.mark.waits

PORT = 7100
case = functools.partial(cases.case, kind=railnet.Rails)


def perf(place, build, side, *options, server=False, **environment):
    variables = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    command = [build / "bench/pullman-perf", "--port", PORT, "--patience", 60, *options]
    if server:
        return place.start_server(side, *command, env=variables)
    return place.start(side, *command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(client):
    """The last line of one that ends well, as JSON."""
    output, errors = client.communicate(timeout=150)
    assert client.returncode == 0, f"client: {errors}\n{output[-3000:]}"
    return json.loads(output.splitlines()[-1])


def ask(place, build, address, **environment):
    """A short job of the client, which calls that address."""
    client = perf(place, build, 1, "--test", "latency", "--size", 64, "--iterations", 100, "--format", "json",
                  address, **environment)
    return result_of(client)


@case(count=3)
def test_a_peer_is_reached_at_the_address_of_any_of_its_nics(place, build):
    for number in range(3):
        server = perf(place, build, 0, server=True)
        ask(place, build, place.host(0, number), PULLMAN_NICS=f"veth{number}")
        assert server.wait(60) == 0, netns.text_of(server)


@case()
def test_with_both_ports_fixed_a_filter_that_lets_only_these_pass_does_no_harm(place, build):
    for name in place.names:
        for line in ("add table inet fw",
                     "add chain inet fw in { type filter hook input priority 0 ; policy drop ; }",
                     f"add rule inet fw in udp dport {{ {PORT}, {PORT + 1} }} accept"):
            netns.run("ip", "netns", "exec", name, "nft", line)
    first, second = soak.two(place, build, "udp", "--send", 500, "--receive", 500, PULLMAN_NICS="veth0,veth1",
                            PULLMAN_DATA_PORT=PORT + 1)
    first.well()
    second.well()


@case()
def test_a_port_that_is_taken_on_one_nic_is_named_with_the_nic(place, build):
    taken = f"import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \
            f"s.bind(('{place.host(0, 1)}', {PORT})); print('bound', flush=True); time.sleep(60)"
    place.start_server(0, sys.executable, "-c", taken)
    server = perf(place, build, 0, server=True)
    code = server.wait(30)
    assert code != 0, "it took a port that another has"
    said = netns.text_of(server)
    assert f"port {PORT} on veth1 is in use" in said, said


def address(place, verb, side, number, host):
    netns.run("ip", "-n", place.names[side], "addr", verb, f"{host}/24", "dev", place.devices[number])


@case(count=1)
def test_a_server_started_before_its_nic_has_link_and_address_serves_there_later(place, build):
    place.cut(0, True)
    address(place, "del", 0, 0, place.host(0))
    server = perf(place, build, 0, server=True)
    assert "no NIC of the network can be used yet" in netns.text_of(server), netns.text_of(server)
    time.sleep(2)
    place.cut(0, False)
    address(place, "add", 0, 0, place.host(0))
    ask(place, build, place.host(0))
    assert server.wait(60) == 0, netns.text_of(server)


STANDS_IN = "no NIC of the network can be used yet"


@case(count=1)
def test_a_server_started_before_its_nic_is_set_up_serves_there_later_and_says_so_once(place, build):
    place.cut(0, True)
    server = perf(place, build, 0, server=True)
    time.sleep(2)
    place.cut(0, False)
    ask(place, build, place.host(0))
    assert server.wait(60) == 0, netns.text_of(server)
    assert netns.text_of(server).count(STANDS_IN) == 1, netns.text_of(server)


@case()
def test_without_a_fixed_port_a_nic_that_comes_later_has_the_port_that_the_server_has_said(place, build):
    for rail in range(2):
        place.cut(rail, True)
    server = place.start_server(0, build / "examples/pingpong", env=dict(os.environ))
    while not (where := re.search(r"pingpong \S+:(\d+)$", netns.text_of(server), re.MULTILINE)):
        assert server.poll() is None, netns.text_of(server)
        time.sleep(0.02)
    for rail in range(2):
        place.cut(rail, False)
    client = place.start(1, build / "examples/pingpong", f"{place.host(0, 1)}:{where[1]}", env=dict(os.environ),
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    said = client.communicate(timeout=60)[0]
    assert client.returncode == 0, said
    assert server.wait(60) == 0, netns.text_of(server)


@case(count=1)
def test_a_server_told_to_use_the_loopback_is_not_warned(place, build):
    server = perf(place, build, 0, server=True, PULLMAN_NICS="lo")
    assert STANDS_IN not in netns.text_of(server), netns.text_of(server)


@case(count=1)
def test_an_address_that_the_kernel_still_asks_about_is_waited_for(place, build):
    for side in (0, 1):
        address(place, "del", side, 0, place.host(side))
    netns.run("ip", "netns", "exec", place.names[0], "sysctl", "-qw", "net.ipv6.conf.veth0.accept_dad=1",
              "net.ipv6.conf.veth0.dad_transmits=3")
    netns.run("ip", "-n", place.names[1], "addr", "add", "fd77::2/64", "dev", "veth0", "nodad")
    netns.run("ip", "-n", place.names[0], "addr", "add", "fd77::1/64", "dev", "veth0")
    asked = netns.run("ip", "-n", place.names[0], "addr", "show", "tentative")
    assert "fd77::1" in asked, f"the kernel asks about no address: {asked}"
    server = perf(place, build, 0, server=True)
    assert "Cannot assign" not in netns.text_of(server), netns.text_of(server)
    ask(place, build, "[fd77::1]:7100")
    assert server.wait(60) == 0, netns.text_of(server)


@case(count=1)
def test_a_server_started_before_there_is_any_nic_serves_at_one_that_is_made_later(place, build):
    netns.run("ip", "-n", place.names[0], "link", "del", "veth0")
    server = perf(place, build, 0, server=True)
    time.sleep(1)
    place._join(0, "veth0")
    ask(place, build, place.host(0))
    assert server.wait(60) == 0, netns.text_of(server)


@case(count=1)
def test_a_server_told_to_use_a_nic_that_is_down_waits_for_it(place, build):
    place.cut(0, True)
    server = perf(place, build, 0, server=True, PULLMAN_NICS="veth0")
    assert "NIC 'veth0' is down" in netns.text_of(server), netns.text_of(server)
    place.cut(0, False)
    ask(place, build, place.host(0))
    assert server.wait(60) == 0, netns.text_of(server)


@case(count=1)
def test_a_client_that_calls_before_its_nic_is_up_gets_there(place, build):
    server = perf(place, build, 0, server=True)
    place.cut(1, True)
    client = perf(place, build, 1, "--test", "latency", "--size", 64, "--iterations", 100, "--format", "json",
                  place.host(0))
    time.sleep(2)
    place.cut(1, False)
    result_of(client)
    assert server.wait(60) == 0, netns.text_of(server)


def stream(place, build, change, called=None, **environment):
    """A verified stream of 6 s to an address of the server's; after 2 of them `change` is done."""
    server = perf(place, build, 0, server=True, **environment)
    client = perf(place, build, 1, "--test", "failover", "--size", "16K", "--duration", 6, "--format", "json",
                  called or place.host(0), **environment)
    time.sleep(2)
    change()
    result = result_of(client)
    assert server.wait(60) == 0, netns.text_of(server)
    assert all(result[key] == 0 for key in ("lost", "duplicated", "misordered", "corrupted")), json.dumps(result)
    return {rail["nic"]: rail for rail in result["rails"]}


@case(count=3, megabits=200)
@pytest.mark.long
def test_a_third_nic_that_comes_under_a_stream_carries_a_part_of_it(place, build):
    for side in (0, 1):
        place.cut(side, True, 2)

    def up():
        for side in (0, 1):
            place.cut(side, False, 2)
    rails = stream(place, build, up)
    assert set(rails) == {"veth0", "veth1", "veth2"} and rails["veth2"]["bytes"] > 0, json.dumps(rails)


@case(count=1, megabits=200)
def test_a_nic_that_is_made_under_a_stream_carries_a_part_of_it(place, build):
    rails = stream(place, build, lambda: place._join(1, "veth1"))
    assert set(rails) == {"veth0", "veth1"} and rails["veth1"]["bytes"] > 0, json.dumps(rails)


@case(count=2, megabits=200)
@pytest.mark.long
def test_a_stream_goes_on_when_an_address_is_removed_and_its_rail_is_used_again_when_it_returns(place, build):
    def change():
        address(place, "del", 0, 1, place.host(0, 1))
        time.sleep(1)
        address(place, "add", 0, 1, place.host(0, 1))
    rails = stream(place, build, change)
    assert rails["veth1"]["state"] == "up", json.dumps(rails)


@case(count=2, megabits=200)
@pytest.mark.long
def test_a_second_address_of_a_nic_under_a_stream_changes_nothing(place, build):
    rails = stream(place, build, lambda: address(place, "add", 0, 1, "10.77.1.101"))
    assert rails["veth1"]["state"] == "up", json.dumps(rails)
    assert "10.77.1.101" not in json.dumps(rails), json.dumps(rails)


@case(count=2, megabits=200)
def test_a_rail_goes_on_at_the_address_that_replaces_another_under_a_stream(place, build):
    def change():
        address(place, "del", 0, 1, place.host(0, 1))
        address(place, "add", 0, 1, "10.77.1.101")
    rails = stream(place, build, change)
    assert rails["veth1"]["state"] in ("up", "suspect"), json.dumps(rails)
    assert "10.77.1.101" in json.dumps(rails["veth1"]), json.dumps(rails)


@case(count=1)
def test_a_stream_goes_on_when_the_only_address_of_an_end_changes(place, build):
    def change():
        address(place, "del", 1, 0, place.host(1))
        address(place, "add", 1, 0, "10.77.0.102")
    stream(place, build, change)


def give(place, host, side, number=0):
    """One more address for a NIC."""
    bits = 64 if ":" in host else 24
    netns.run("ip", "-n", place.names[side], "addr", "add", f"{host}/{bits}", "dev", place.devices[number],
              *(["nodad"] if ":" in host else []))


def name_of(host):
    return f"[{host}]:{PORT}" if ":" in host else host


def both_families(place):
    """fd77:N::1 and fd77:N::2 for the ends of rail N."""
    for number in range(len(place.devices)):
        for side in (0, 1):
            give(place, f"fd77:{number}::{side + 1}", side, number)


def called_at(place, build, host, **environment):
    """A ping-pong and a verified stream with a server that is called at that address."""
    server = perf(place, build, 0, server=True, **environment)
    ask(place, build, name_of(host), **environment)
    assert server.wait(60) == 0, netns.text_of(server)
    server = perf(place, build, 0, server=True, **environment)
    client = perf(place, build, 1, "--test", "failover", "--size", "16K", "--duration", 1, "--format", "json",
                  name_of(host), **environment)
    result = result_of(client)
    assert server.wait(60) == 0, netns.text_of(server)
    assert all(result[key] == 0 for key in ("lost", "duplicated", "misordered", "corrupted")), json.dumps(result)
    return result["rails"]


@case(count=1)
def test_a_peer_is_reached_at_the_second_address_of_its_nic_in_the_same_subnet_and_in_another(place, build):
    give(place, "10.77.0.101", 0)
    give(place, "10.78.0.1", 0)
    give(place, "10.78.0.2", 1)
    for host in (place.host(0), "10.77.0.101", "10.78.0.1"):
        called_at(place, build, host)


@case(count=1)
def test_a_peer_of_both_families_is_reached_by_either(place, build):
    both_families(place)
    for driver in ("udp", "tcp"):
        for host in (place.host(0), "fd77:0::1"):
            called_at(place, build, host, PULLMAN_DRIVER=driver)


@case(count=1)
def test_who_has_one_family_reaches_a_peer_of_both_by_it_and_is_told_of_the_other(place, build):
    give(place, "fd77:0::1", 0)
    called_at(place, build, place.host(0))
    client = perf(place, build, 1, "--test", "latency", name_of("fd77:0::1"))
    _, errors = client.communicate(timeout=30)
    assert client.returncode != 0 and "has an address of that family" in errors, errors


@case(count=2, megabits=200)
def test_two_nics_of_both_families_are_two_rails_by_whichever_the_peer_is_called(place, build):
    both_families(place)
    for host in (place.host(0), "fd77:0::1", "fd77:1::1"):
        rails = called_at(place, build, host)
        assert sorted(rail["nic"] for rail in rails) == ["veth0", "veth1"], json.dumps(rails)
        assert all(rail["bytes"] > 0 for rail in rails), json.dumps(rails)


@case(count=1)
def test_an_address_that_a_nic_gets_later_is_one_to_be_called_at(place, build):
    for host, number in (("10.77.0.101", 0), ("fd77:0::1", 0)):
        server = perf(place, build, 0, server=True)
        if ":" in host:
            give(place, "fd77:0::2", 1)
        give(place, host, 0, number)
        ask(place, build, name_of(host))
        assert server.wait(60) == 0, netns.text_of(server)


@case(count=1, megabits=200)
def test_a_stream_goes_on_when_another_address_of_its_nic_is_removed(place, build):
    give(place, "10.77.0.101", 0)
    stream(place, build, lambda: address(place, "del", 0, 0, "10.77.0.101"))


@case(count=1)
def test_a_stream_goes_on_at_the_address_that_came_before_the_old_one_went(place, build):
    def change():
        give(place, "10.78.0.102", 1)
        give(place, "10.78.0.101", 0)
        time.sleep(0.5)
        address(place, "del", 1, 0, place.host(1))
    stream(place, build, change)


@case(count=1, megabits=200)
def test_a_stream_goes_on_when_all_addresses_of_its_nic_go_and_one_comes_back(place, build):
    give(place, "10.77.0.101", 0)

    def change():
        netns.run("ip", "-n", place.names[0], "addr", "flush", "dev", place.devices[0])
        time.sleep(0.7)
        give(place, "10.77.0.101", 0)
    stream(place, build, change, called="10.77.0.101")


@case(count=1, megabits=200)
def test_a_program_whose_addresses_all_go_ends_in_time(place, build):
    give(place, "10.77.0.101", 0)
    ends = [perf(place, build, 0, server=True, PULLMAN_PEER_TIMEOUT_MS=2000)]
    ends.append(perf(place, build, 1, "--test", "failover", "--size", "16K", "--duration", 30, "10.77.0.101",
                     PULLMAN_PEER_TIMEOUT_MS=2000))
    time.sleep(2)
    netns.run("ip", "-n", place.names[0], "addr", "flush", "dev", place.devices[0])
    for program in ends:
        try:
            assert program.wait(20) != 0, "it ended well, though nothing can have got through"
        except subprocess.TimeoutExpired:
            pytest.fail("hangs")


@case(count=1)
def test_a_number_that_is_taken_at_a_further_address_does_no_harm_to_the_first(place, build):
    give(place, "10.77.0.101", 0)
    taken = f"import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \
            f"s.bind(('10.77.0.101', {PORT})); print('bound', flush=True); time.sleep(60)"
    place.start_server(0, sys.executable, "-c", taken)
    server = perf(place, build, 0, server=True, PULLMAN_DATA_PORT=PORT + 1)
    ask(place, build, place.host(0))
    assert server.wait(60) == 0, netns.text_of(server)
    assert "peers cannot connect to 10.77.0.101" in netns.text_of(server), netns.text_of(server)
