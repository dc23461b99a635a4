"""Programs without a common network, and one between them that relays (PULLMAN_RELAY)."""

import functools
import json
import os
import subprocess
import time

import pytest

import cases
import netns
import verified_stream

case = functools.partial(cases.case, kind=netns.Line)

PORT = verified_stream.PORT
MIDDLE = 2
BY_MIDDLE = (f"10.77.2.0/24 via 10.77.1.2:{PORT}", f"default via 10.77.2.2:{PORT}")


def environment(relay, **more):
    # The namespaces share /dev/shm, by which the programs would find each other, as on one host.
    variables = {**os.environ, "PULLMAN_DRIVER": "udp", "PULLMAN_SHARED_MEMORY": "0", "PULLMAN_RELAY": relay, **more}
    if "PULLMAN_KEY" in more:
        del variables["PULLMAN_KEY_FILE"]
    return variables


def start_middle(place, build, **more):
    """A program that knows nothing of the relay: it waits for messages, as `pingpong` does."""
    program = place.start_server(MIDDLE, build / "examples/pingpong",
                                 env=environment("on", PULLMAN_PORT=str(PORT), **more))
    assert program.poll() is None, netns.text_of(program)
    return program


def counters(build, program):
    text = subprocess.run([build / "tools/pullman-stat", "--format", "json"], capture_output=True, text=True,
                          timeout=60).stdout
    found = [one for one in json.loads(text)["contexts"] if one["process"] == program.pid]
    assert found, text
    return found[0]["context"][0]


def start_server(place, build, **more):
    return place.start_server(1, build / "bench/pullman-perf", "--port", PORT, "--patience", 60,
                              env=environment(BY_MIDDLE[1], **more))


def client(place, build, *options, relay=BY_MIDDLE[0], **more):
    return place.start(0, build / "bench/pullman-perf", "--port", PORT, "--patience", 60, "--format", "json", *options,
                       place.hosts[1], env=environment(relay, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                       text=True)


@case()
@pytest.mark.parametrize("loss, progress", ((0, "calls"), (2, "calls"), (0, "thread")))
def test_programs_without_a_common_network_exchange_verified_messages_through_a_third(place, build, loss, progress):
    middle = start_middle(place, build, PULLMAN_PROGRESS=progress)
    server = start_server(place, build)
    place.lose(loss)
    caller = client(place, build, "--test", "bidirectional", "--size", "16K", "--iterations", 1000, "--check")
    result = verified_stream.end(server, caller)
    assert result["errors"] == 0 and all(result.get(what, 0) == 0 for what in verified_stream.WRONG), result
    shown = counters(build, middle)
    assert shown["relay_forwarded"] > 2000, shown
    assert shown["relay_dropped_malformed"] == shown["relay_dropped_loop"] == 0, shown


@case()
def test_a_relay_whose_nic_comes_late_relays_then(place, build):
    netns.run("ip", "-n", place.names[MIDDLE], "link", "set", "veth1", "down")
    start_middle(place, build)
    server = start_server(place, build)
    caller = client(place, build, "--test", "latency", "--iterations", 100, "--check")
    netns.run("ip", "-n", place.names[MIDDLE], "link", "set", "veth1", "up")
    assert verified_stream.end(server, caller)["errors"] == 0


@case()
def test_a_relayed_rail_says_so_and_by_which_hop(place, build):
    start_middle(place, build)
    start_server(place, build)
    asked = [build / "tools/pullman-info", "--peer", f"{place.hosts[1]}:{PORT}"]
    shown = subprocess.run(place.command(0, *asked), capture_output=True, text=True, timeout=60,
                           env=environment(BY_MIDDLE[0]))
    assert f"relay:{place.hosts[1]}:{PORT}" in shown.stdout, shown
    assert f"relayed by 10.77.1.2:{PORT}" in shown.stdout, shown


@case()
def test_without_a_route_an_address_that_nothing_reaches_is_an_error_at_once(place, build):
    start_middle(place, build)
    caller = client(place, build, relay="on")
    output, errors = caller.communicate(timeout=60)
    assert caller.returncode != 0
    assert "no way to 10.77.2.1" in output + errors


@case()
def test_a_stranger_is_relayed_nothing_and_what_he_forges_does_nothing(place, build):
    middle = start_middle(place, build)
    start_server(place, build)
    stranger = client(place, build, "--test", "latency", "--iterations", 10, PULLMAN_KEY="of another job",
                      PULLMAN_PEER_TIMEOUT_MS="1000")
    head = (bytes([1, 0, 8, 1]) + bytes([4, 6, 10, 77, 2, 1]) + PORT.to_bytes(2, "big")
            + bytes([4, 6, 10, 77, 1, 1]) + PORT.to_bytes(2, "big") + bytes(8) + bytes(400))
    forge = ("import socket,sys,time\ns=socket.socket(socket.AF_INET,socket.SOCK_DGRAM)\n"
             "to=('10.77.1.2',int(sys.argv[2]))\n"
             "for i in range(200): s.sendto(bytes.fromhex(sys.argv[1]),to); time.sleep(.001)")
    subprocess.run(place.command(0, "python3", "-c", forge, head.hex(), PORT), check=True, timeout=60)
    assert stranger.wait(60) != 0
    end = time.monotonic() + 30
    while counters(build, middle)["dropped_packets"] < 200 and time.monotonic() < end:
        time.sleep(0.1)
    shown = counters(build, middle)
    assert shown["dropped_packets"] >= 200, shown
    assert shown["relay_forwarded"] == shown["relay_received"] == 0, shown
