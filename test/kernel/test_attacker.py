"""Somebody at the bridge between two hosts, who sees all and sends what he likes (attacker.cc), while a stream runs."""

import functools
import json
import pathlib
import re
import subprocess

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
    """Of the process itself: it may run below the one that was started."""
    status = pathlib.Path(f"/proc/{program.pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", status)[1])


def attacked(place, build, **environment):
    """What the attacker says, and the stream's result, and how much the server grew meanwhile."""
    bridge = place.names[2]
    run("ip", "-n", bridge, "addr", "add", f"{OWN}/24", "dev", "bridge")
    for name in place.names[:2]:  # so that he sees packets, not bursts
        run("ip", "netns", "exec", name, "ethtool", "-K", "veth0", "gso", "off", "gro", "off", "tso", "off",
            "tx-udp-segmentation", "off")
    server, client = start(place, build, "--test", "failover", "--size", "64K", "--duration", SECONDS, **environment)
    attacker = subprocess.Popen(
        ["ip", "netns", "exec", bridge, build / "test/kernel/attacker", place.port(0, 0), place.port(1, 0), "--own", OWN,
         "--seconds", str(SECONDS + 1)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        sizes = []
        while attacker.poll() is None:
            try:
                sizes.append(resident_kilobytes(server))
                attacker.wait(0.5)
            except (subprocess.TimeoutExpired, FileNotFoundError, TypeError):
                pass
        result = end(server, client)
    finally:
        if attacker.poll() is None:
            attacker.kill()
    said, errors = attacker.communicate()
    assert attacker.returncode == 0, errors
    return json.loads(said), result, sizes


@pytest.mark.parametrize("security", ["authenticate", "encrypt"])
@case()
def test_who_sees_all_and_sends_what_he_likes_changes_nothing_and_hears_nothing(place, build, security):
    said, result, sizes = attacked(place, build, PULLMAN_SECURITY=security)
    for attack in ATTACKS:
        assert said[attack] > 1000, f"no attack to speak of: {said}"
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    assert result["messages"] > 0 and result["errors"] == 0, json.dumps(result)
    assert said["heard"] == 0, f"somebody answered: {said}"
    # What the process needs at all is there after half a second.
    assert len(sizes) > 3 and max(sizes[2:]) - sizes[1] < 8192, f"it grows: {sizes} KiB"
