"""Somebody at the bridge between two hosts, who sees all and sends what he likes (attacker.cc), while a stream runs."""

import functools
import json
import pathlib
import re
import subprocess
import time

import pytest

import cases
import railnet
from netns import run
from verified_stream import WRONG, end, start

OWN = "10.77.0.66"
SECONDS = 4
ATTACKS = ("replayed", "reflected", "flipped", "cut", "from_own", "made_up")
case = functools.partial(cases.case, kind=railnet.Switch, count=1)


def resident_kilobytes(program):
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    found = re.search(r"VmRSS:\s+(\d+)", status)
    return int(found[1]) if found else 0


def attacked(place, build, **environment):
    """What the attacker says, the two ends of the stream, and how large the server was every half a second."""
    bridge = place.names[2]
    run("ip", "-n", bridge, "addr", "add", f"{OWN}/24", "dev", "bridge")
    for name in place.names[:2]:  # so that he sees packets, not bursts
        run("ip", "netns", "exec", name, "ethtool", "-K", "veth0", "gso", "off", "gro", "off", "tso", "off",
            "tx-udp-segmentation", "off")
    attacker = None

    def begin():  # he sees the first packet
        nonlocal attacker
        attacker = subprocess.Popen(
            ["ip", "netns", "exec", bridge, build / "test/kernel/attacker", place.port(0, 0), place.port(1, 0), "--own",
             OWN, "--seconds", str(SECONDS + 1)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    ends = start(place, build, "--test", "failover", "--size", "64K", "--duration", SECONDS, between=begin, **environment)
    sizes = []
    try:
        while attacker.poll() is None:
            time.sleep(0.5)
            if ends[0].poll() is None:
                sizes.append(resident_kilobytes(ends[0]))
        said, errors = attacker.communicate(timeout=20)
    finally:
        attacker.kill()
    assert attacker.returncode == 0, errors
    return json.loads(said), ends, sizes


@pytest.mark.parametrize("security", ["authenticate", "encrypt"])
@case()
def test_who_sees_all_and_sends_what_he_likes_changes_nothing_and_hears_nothing(place, build, security):
    said, ends, sizes = attacked(place, build, PULLMAN_SECURITY=security)
    result = end(*ends)
    for attack in ATTACKS:
        assert said[attack] > 1000, f"no attack to speak of: {said}"
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    assert result["messages"] > 0 and result["errors"] == 0, json.dumps(result)
    assert said["heard"] == 0, f"somebody answered: {said}"
    # What the process needs at all is there after half a second.
    assert len(sizes) > 3 and max(sizes) - sizes[1] < 8192, f"it grows: {sizes} KiB"


@case()
def test_where_packets_are_not_protected_he_is_answered(place, build):
    """So what is heard above can be heard."""
    said, _, _ = attacked(place, build, PULLMAN_SECURITY="off")
    assert said["heard"] > 0, said
