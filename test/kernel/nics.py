"""NICs of a real kernel: each has the ports of the process; those that come late join in, and addresses change.

    nics.py BUILD_DIRECTORY [WORDS...]     all cases, or those whose sentence has one of the words
"""

import json
import os
import subprocess
import sys

import cases
from cases import expect, netns

import railnet
import run

PORT = 7100
CASES = []


def case(kind=railnet.Rails, **place):
    def add(function):
        function.make_place = lambda: kind(**place)
        CASES.append(function)
        return function
    return add


def perf(place, build, side, *options, server=False, **environment):
    variables = {**os.environ, **{name: str(value) for name, value in environment.items()}}
    command = [build / "bench/pullman-perf", "--port", PORT, "--patience", 60, *options]
    if server:
        return place.start_server(side, *command, env=variables)
    return place.start(side, *command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def result_of(client):
    """The last line of one that ends well, as JSON."""
    output, errors = client.communicate(timeout=150)
    expect(client.returncode == 0, f"client: {errors}\n{output[-3000:]}")
    return json.loads(output.splitlines()[-1])


def ask(place, build, address, **environment):
    """A short job of the client, which calls that address."""
    client = perf(place, build, 1, "--test", "latency", "--size", 64, "--iterations", 100, "--format", "json",
                  address, **environment)
    return result_of(client)


@case(count=3)
def a_peer_is_reached_at_the_address_of_any_of_its_nics(place, build):
    for number in range(3):
        server = perf(place, build, 0, server=True)
        ask(place, build, place.host(0, number), PULLMAN_NICS=f"veth{number}")
        expect(server.wait(60) == 0, netns.text_of(server))


@case()
def with_both_ports_fixed_a_filter_that_lets_only_these_pass_does_no_harm(place, build):
    for name in place.names:
        for line in ("add table inet fw",
                     "add chain inet fw in { type filter hook input priority 0 ; policy drop ; }",
                     f"add rule inet fw in udp dport {{ {PORT}, {PORT + 1} }} accept"):
            netns.run("ip", "netns", "exec", name, "nft", line)
    first, second = run.two(place, build, "udp", "--send", 500, "--receive", 500, PULLMAN_NICS="veth0,veth1",
                            PULLMAN_DATA_PORT=PORT + 1)
    first.well()
    second.well()


@case()
def a_port_that_is_taken_on_one_nic_is_named_with_the_nic(place, build):
    taken = f"import socket, time; s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); " \
            f"s.bind(('{place.host(0, 1)}', {PORT})); print('bound', flush=True); time.sleep(60)"
    place.start_server(0, sys.executable, "-c", taken)
    server = perf(place, build, 0, server=True)
    code = server.wait(30)
    expect(code != 0, "it took a port that another has")
    said = netns.text_of(server)
    expect(f"port {PORT} on veth1 is in use" in said, said)


if __name__ == "__main__":
    sys.exit(cases.main(CASES, railnet.Rails, netns.possible()))
