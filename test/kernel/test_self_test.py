"""PULLMAN_SELF_TEST=1: a context says what will make it slow or fail, one line each, with what to do."""

import functools
import os
import pathlib
import re
import subprocess

import pytest

import cases
import netns
import railnet
from verified_stream import MEGABITS, PORT

case = functools.partial(cases.case, kind=railnet.Rails, megabits=MEGABITS)


def lines_of(text):
    return re.findall(r"self-test: (.*)", text)


def said_at_start(place, build, *before, **variables):
    """A program that only opens a context; what its self-test says."""
    program = subprocess.run(place.command(0, *before, build / "test/kernel/sleeper", "--idle", 0, "--rounds", 0),
                             env={**os.environ, "PULLMAN_SELF_TEST": "1", "PULLMAN_SECURITY": "off", **variables},
                             check=False, capture_output=True, text=True, timeout=60)
    assert program.returncode == 0, program.stderr
    return lines_of(program.stderr)


@case(megabits=None)
def test_the_self_test_of_a_host_says_that_all_is_well(place, build):
    said = said_at_start(place, build, PULLMAN_NICS="lo")
    assert said == ["1 NIC, buffers, and the limits of this process: all is well"], said
    assert said_at_start(place, build, PULLMAN_NICS="lo", PULLMAN_LOG="error") == []


@case(megabits=None)
def test_the_self_test_names_small_buffers_limits_and_a_missing_key_with_what_to_do(place, build):
    limit = int(pathlib.Path("/proc/sys/net/core/rmem_max").read_text())
    if limit >= 16 << 20:
        pytest.skip("the system grants all that is useful")
    netns.run("ip", "-n", place.names[0], "link", "set", "veth1", "mtu", "1400")
    # Without the right to more than the sysctls allow.
    said = said_at_start(place, build, "setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", "prlimit", "--nofile=60",
                 PULLMAN_NICS="veth0,veth1")
    for words in (r"^veth0: receive buffers of .*sysctl -w net.core.rmem_max=\d+$", r"^veth1: packets of 13\d\d bytes",
                  r"^this process may open \d+ descriptors more: .*ulimit -n", "^packets are not protected: .*pullman-key"):
        assert len([line for line in said if re.search(words, line)]) == 1, f"{words}: {said}"
    assert not any("all is well" in line for line in said), said


def said_of_rails(place, build, seconds=6):
    """What the self-test says of the rails to a program in the other namespace, if there are so many seconds for it."""
    place.start_server(0, build / "bench/pullman-perf", "--port", PORT)
    client = place.start(1, build / "bench/pullman-perf", "--port", PORT, "--test", "failover", "--size", "16K",
                         "--duration", seconds, place.hosts[0], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                         env={**os.environ, **place.environment, "PULLMAN_SELF_TEST": "1"})
    _, text = client.communicate(timeout=60)
    text = text.decode() if isinstance(text, bytes) else text
    assert client.returncode == 0, text
    return [line for line in lines_of(text) if "rail" in line]


@case()
def test_the_self_test_checks_each_rail_to_a_peer_both_ways(place, build):
    said = said_of_rails(place, build)
    assert said == [f"2 rails to {place.hosts[0]}:{PORT}: packets of all sizes pass both ways"], said


@case(count=3)
def test_the_self_test_names_the_rails_that_pass_nothing_in_one_direction(place, build):
    place.drop(1, 0, "ip protocol udp")
    place.drop(2, 1, "ip protocol udp")
    said = said_of_rails(place, build)
    assert [re.sub(r"^rail (\d) to .* \((veth\d)\) to .*?: (one way \w+): .*", r"\1 \2 \3", line) for line in said] == [
        "1 veth1 one way back", "2 veth2 one way there"], said
    assert all("filters" in line for line in said), said


@case()
def test_a_program_that_ends_before_its_rails_are_checked_ends_as_it_would_without_a_self_test(place, build):
    assert said_of_rails(place, build, seconds=0.2) == []
