"""libfabric's own programs over the provider, in two network namespaces and on the loopback."""

import os
import shutil
import subprocess
import time

import pytest

import netns
import railnet
from cases import case

CONTROL_PORT = 47592  # fi_pingpong's own connection, beside what it measures


pytestmark = pytest.mark.skipif(not shutil.which("fi_info") or not shutil.which("fi_pingpong"),
                                reason="needs fi_info and fi_pingpong")


def start(place, build, side, *command, **environment):
    variables = {**os.environ, **place.environment, "FI_PROVIDER_PATH": str(build / "lib/ofi"), **environment}
    return place.start(side, *command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def said(program, seconds=120):
    """What it printed, once it has ended well."""
    try:
        output, _ = program.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        program.kill()
        pytest.fail(f"hangs: {' '.join(program.args)}\n{program.communicate()[0]}")
    assert program.returncode == 0, f"exit {program.returncode}: {output}"
    return output


def wait_for_listener(place, side, program):
    """Until fi_pingpong takes connections: it says nothing when it does."""
    end = time.monotonic() + 20
    while f":{CONTROL_PORT:04X} 00000000:0000 0A" not in place.start(
            side, "cat", "/proc/net/tcp", stdout=subprocess.PIPE, text=True).communicate(timeout=20)[0]:
        assert program.poll() is None, "ended before it listened"
        assert time.monotonic() < end, "does not listen"
        time.sleep(0.02)


def pingpong(place, build, *options, sizes=("64 ", "4k ", "64k ", "1m "), meanwhile=lambda client: None):
    """Every size that fi_pingpong has, if the options say no other; verified. `meanwhile` until the client is done."""
    command = ("fi_pingpong", "-p", "pullman", "-e", "rdm", "-c", "-I", "10", "-S", "all", *options)
    server = start(place, build, 0, *command)
    wait_for_listener(place, 0, server)
    client = start(place, build, 1, *command, place.hosts[0])
    meanwhile(client)
    output = said(client)
    said(server)
    for size in sizes:
        assert f"\n{size}" in output, output


@case()
def test_fi_info_finds_the_provider_and_its_variables(place, build):
    assert "type: FI_EP_RDM" in said(start(place, build, 0, "fi_info", "-p", "pullman")), "no endpoint"
    assert "FI_PULLMAN_PEER_TIMEOUT" in said(start(place, build, 0, "fi_info", "-e")), "no variables"


@case()
def test_fi_pingpong_verifies_tagged_messages_of_every_size(place, build):
    pingpong(place, build, "-m", "tagged")


@case()
def test_fi_pingpong_verifies_untagged_messages_of_every_size(place, build):
    pingpong(place, build, "-m", "msg")


@case(offloads=False)
def test_fi_pingpong_verifies_messages_of_every_size_through_1_percent_loss(place, build):
    place.drop_udp(1)
    pingpong(place, build, "-m", "tagged")


def cut_in_turn(place, client):
    """The second rail's link, then the first one's UDP, silently: fi_pingpong's own connection is there, too."""
    cuts = 0
    while client.poll() is None:
        place.cut(0, True, 1)
        time.sleep(0.2)
        place.cut(0, False, 1)
        for name in place.names:
            place._wait_for_link(name, place.devices[1])
        for side in (0, 1):
            place.drop(0, side, "ip protocol udp")
        time.sleep(0.2)
        place.silence(0, ())
        cuts += 2
    assert cuts > 2, f"done after {cuts} cuts: no test"


@case(kind=railnet.Rails)
def test_fi_pingpong_verifies_messages_while_rails_are_cut_in_turn(place, build):
    pingpong(place, build, "-m", "tagged", "-S", "65536", "-I", "3000", sizes=("64k ",),
             meanwhile=lambda client: cut_in_turn(place, client))


@case(kind=netns.Loopback)
def test_fi_pingpong_verifies_messages_on_the_loopback(place, build):
    pingpong(place, build, "-m", "tagged")
