"""Two NICs of each host on one subnet, a switch between: how clusters with two ports on one network look.

    subnet.py BUILD_DIRECTORY [WORDS...]     all cases, or those whose sentence has one of the words
"""

import json
import os
import subprocess
import sys
import time

import cases
from cases import expect, netns

import railnet
import rails

CASES = []


def case(*drivers, **place):
    """A case for each of the drivers; `place` says how its network differs from the usual one."""
    def add(function):
        for driver in drivers or ("udp",):
            def one(network, build, driver=driver):
                network.environment = {"PULLMAN_DRIVER": driver}
                function(network, build)
            one.__name__ = f"{driver}: {function.__name__}"
            one.make_place = lambda: railnet.Switch(**{"megabits": rails.MEGABITS, **place})
            CASES.append(one)
        return function
    return add


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
def each_nic_of_two_on_one_subnet_sends_and_receives_its_part(place, build):
    before = counts(place)
    rails.stream(place, build, [], 2)
    part = shares(before, place)
    expect(all(min(parts) > 0.2 for parts in part.values()), f"{part}")


def on_one_host(place, build, server_nics, client_nics):
    """Two programs of the first host, each by its NICs; the result of the one that calls."""
    program = build / "bench/pullman-perf"
    common = ["--patience", 60]
    place.start_server(0, program, "--port", rails.PORT, *common,
                       env={**os.environ, **place.environment, "PULLMAN_NICS": server_nics})
    number = place.devices.index(server_nics.split(",")[0])
    client = place.start(0, program, "--port", rails.PORT, *common, "--format", "json", "--test", "latency",
                         "--size", 64, "--iterations", 300, "--check", place.host(0, number),
                         env={**os.environ, **place.environment, "PULLMAN_NICS": client_nics},
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        output, errors = client.communicate(timeout=90)
    except subprocess.TimeoutExpired:
        raise cases.Failed("hangs") from None
    expect(client.returncode == 0, errors)
    result = json.loads(output.splitlines()[-1])
    expect(result["messages"] == 600 and result["errors"] == 0, output)


@case("udp", "fabric", "tcp", megabits=None)
def two_programs_of_one_host_talk_by_the_address_of_a_nic(place, build):
    on_one_host(place, build, "veth0", "veth0")
    on_one_host(place, build, "veth1", "veth1")
    on_one_host(place, build, "veth0,veth1", "veth0,veth1")


@case("udp", megabits=None)
def two_programs_of_one_host_talk_by_a_nic_each(place, build):
    on_one_host(place, build, "veth0", "veth1")
    on_one_host(place, build, "veth1", "veth0")


@case("udp", "tcp", megabits=None)
def what_reaches_an_address_by_another_nic_is_received(place, build):
    """As ARP has it: the switch knows the second NIC of the server by the first one's address."""
    mac = netns.run("ip", "netns", "exec", place.names[0], "cat", "/sys/class/net/veth0/address").strip()
    netns.run("ip", "-n", place.names[1], "neigh", "replace", place.host(0, 1), "lladdr", mac, "dev", "veth1")
    before = counts(place)
    result = rails.stream(place, build, [], 2)
    expect(all(rail["bytes"] > 0 for rail in result["rails"]) and len(result["rails"]) == 2, json.dumps(result))
    part = shares(before, place)
    expect(part["received 0"][1] < 0.1 and part["sent 1"][1] > 0.2, f"no test: {part}")


@case("udp", megabits=None)
def a_nic_that_is_taken_away_and_comes_back_as_another_is_used_again(place, build):
    server, client = rails.start(place, build, "--test", "failover", "--size", "16K", "--duration", 8)
    time.sleep(2)
    place.replace_nic(1, 1)
    result = rails.end(server, client)
    rails.expect_returned(result, "veth1")
    carried = place.bytes_sent(1, 1)
    expect(carried > 1_000_000, f"the new NIC has sent {carried} bytes")


if __name__ == "__main__":
    sys.exit(cases.main(CASES, railnet.Switch, netns.possible()))
