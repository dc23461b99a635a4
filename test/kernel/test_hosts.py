"""Hosts as they are: Docker's bridge with a running container, a tunnel, two NICs to another host of the same kind.

No option says which NICs to use, unless the case says so.
"""

import json
import os
import subprocess

import pytest

import cases
import netns
import railnet
from netns import run
from verified_stream import PORT, WRONG, end, start

pytestmark = pytest.mark.waits

DOCKER = "172.17.0.1"  # of both hosts


class Hosts(railnet.Rails):
    """Two hosts with NICs e0 and e1; each has docker0, up, with a port, whose other end is in a container."""

    def __init__(self):
        super().__init__(2)
        self.devices = ("e0", "e1")
        self.names += tuple(name + "c" for name in self.names)

    def _make(self):
        for name in self.names[2:]:
            run("ip", "netns", "add", name)
        hosts, containers = self.names[:2], self.names[2:]
        self.names = hosts
        try:
            super()._make()
        finally:
            self.names = hosts + containers
        for host, container in zip(hosts, containers):
            run("ip", "-n", host, "link", "add", "docker0", "type", "bridge")
            run("ip", "-n", host, "addr", "add", DOCKER + "/16", "dev", "docker0")
            run("ip", "-n", host, "link", "set", "docker0", "up")
            run("ip", "link", "add", "vethc", "netns", host, "type", "veth", "peer", "name", "eth0", "netns", container)
            run("ip", "-n", host, "link", "set", "vethc", "master", "docker0", "up")
            run("ip", "-n", container, "link", "set", "eth0", "up")
            run("ip", "-n", host, "link", "add", "tunnel0", "type", "vxlan", "id", "5", "dev", "e0", "dstport",
                "4789")
            run("ip", "-n", host, "addr", "add", "10.9.9.1/24", "dev", "tunnel0")
            run("ip", "-n", host, "link", "set", "tunnel0", "up")
            self._wait_for_link(host, "docker0")


def inventory(place, build, **environment):
    info = subprocess.run(place.command(0, build / "tools/pullman-info", "--format", "json"), capture_output=True,
                          text=True, timeout=60, check=False, env={**os.environ, **environment})
    assert info.stdout.startswith("{"), info.stdout + info.stderr
    return [nic for nic in json.loads(info.stdout)["nics"] if nic["driver"] == "udp"]


def used(nics):
    return [nic["name"] for nic in nics if nic["used"]]


def expect_fair_play(place, build, *, rails=("e0", "e1"), **environment):
    """The client reaches the server, not somebody else, and uses these rails."""
    server, client = start(place, build, "--test", "failover", "--size", "16K", "--duration", 1, **environment)
    result = end(server, client)
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    assert sorted(rail["nic"] for rail in result["rails"]) == list(rails), json.dumps(result["rails"])
    return server


def decoy(place, build):
    """Another program on the caller's own docker0, on the port of the server."""
    return place.start_server(1, build / "bench/pullman-perf", "--port", PORT,
                              env={**os.environ, "PULLMAN_NICS": "docker0"})


def expect_untouched(program):
    """Nobody has called it: it serves one client, and serves still."""
    assert program.poll() is None, f"somebody else was served: {netns.text_of(program)}"


@cases.case(kind=Hosts)
def test_the_nics_used_are_those_to_the_other_host_and_each_has_its_reason(place, build):
    nics = inventory(place, build)
    assert used(nics) == ["e0", "e1"], json.dumps(nics)
    why_not = {nic["name"]: nic["why_not"] for nic in nics if not nic["address"].startswith("fe80")}
    assert why_not["docker0"] == "a bridge: used if there is nothing else, or if it is named", json.dumps(nics)
    assert why_not["tunnel0"] == "a vxlan: used if there is nothing else, or if it is named", json.dumps(nics)
    vethc, = (nic for nic in nics if nic["name"] == "vethc")
    assert "link-local" in vethc["why_not"], json.dumps(nics)


@cases.case(kind=Hosts)
def test_docker0_is_used_where_it_is_named_and_where_there_is_nothing_else(place, build):
    assert used(inventory(place, build, PULLMAN_NICS="docker0,e0")) == ["docker0", "e0"], "named"
    for nic in ("e0", "e1", "tunnel0"):
        run("ip", "-n", place.names[0], "link", "set", nic, "down")
    assert used(inventory(place, build)) == ["docker0"], "alone"


@cases.case(kind=Hosts)
def test_a_nic_with_a_default_route_comes_first_whatever_it_is(place, build):
    run("ip", "-n", place.names[0], "route", "add", "default", "via", "10.77.1.2")
    nics = inventory(place, build)
    assert used(nics) == ["e1", "e0"] and nics[0]["standing"] == "leads to the default route", json.dumps(nics)
    run("ip", "-n", place.names[0], "route", "replace", "default", "via", "10.9.9.2")
    nics = inventory(place, build)
    assert used(nics) == ["tunnel0", "e0", "e1"], json.dumps(nics)


@cases.case(kind=Hosts)
def test_a_client_reaches_the_server_over_both_nics(place, build):
    server = expect_fair_play(place, build)
    assert f"at {place.hosts[0]}:{PORT}" in netns.text_of(server), netns.text_of(server)


@cases.case(kind=Hosts)
def test_a_client_reaches_the_server_though_another_program_listens_on_its_own_docker0(place, build):
    other = decoy(place, build)
    expect_fair_play(place, build)
    expect_untouched(other)


@cases.case(kind=Hosts)
def test_an_address_that_both_hosts_have_makes_no_rail_between_them(place, build):
    expect_fair_play(place, build, rails=("e0",), PULLMAN_NICS="e0,docker0")


@cases.case(kind=Hosts)
def test_a_client_is_answered_where_it_is_though_it_calls_by_docker0_first(place, build):
    run("ip", "-n", place.names[1], "link", "set", "e1", "down")
    expect_fair_play(place, build, rails=("e0",), PULLMAN_NICS="docker0,e0,e1")


@cases.case(kind=Hosts)
def test_two_programs_of_one_host_meet_at_an_address_that_other_hosts_have_too(place, build):
    server = decoy(place, build)
    client = place.start(1, build / "bench/pullman-perf", "--port", PORT, "--test", "latency", "--iterations", 100,
                         "--format", "json", DOCKER, env={**os.environ, "PULLMAN_NICS": "docker0"},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert end(server, client)["messages"] == 200, "not all came"


@cases.case(kind=Hosts)
def test_a_link_local_address_is_named_with_the_name_of_its_interface(place, build):
    link, = json.loads(run("ip", "-n", place.names[0], "-j", "addr", "show", "e0"))
    host, = (one["local"] for one in link["addr_info"] if one["local"].startswith("fe80:"))
    for scope in ("e0", link["ifindex"]):
        nics = inventory(place, build, PULLMAN_NICS=f"{host}%{scope}")
        assert used(nics) == ["e0"] and nics[0]["address"].startswith(host), json.dumps(nics)
    assert used(inventory(place, build, PULLMAN_NICS=f"{host}%e1")) == [], "of another interface"


@cases.case(kind=Hosts)
def test_a_name_that_leads_to_the_caller_itself_is_told_as_such(place, build):
    info = subprocess.run(place.command(0, build / "tools/pullman-info", "--peer", f"{place.hosts[0]}:{PORT}"),
                          capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, "PULLMAN_PORT": str(PORT)})
    assert info.returncode == 1 and "is this process itself" in info.stderr, info.stdout + info.stderr
