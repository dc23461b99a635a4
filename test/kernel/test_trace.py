"""PULLMAN_TRACE: what real programs keep of their packets, read by tshark."""

import functools
import json
import os
import pathlib
import signal
import subprocess
import time

import pytest

import cases
import netns
from test_dissector import fields_of, tshark

PORT = 7380
case = functools.partial(cases.case, kind=netns.Loopback)


def until(find, what, seconds=30):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if found := find():
            return found
        time.sleep(0.05)
    raise AssertionError(f"there is no {what} after {seconds} s")


class Pair:
    """A server and a client of pullman-perf that are traced."""

    def __init__(self, place, build, folder, **environment):
        self.place, self.folder = place, folder
        self.program = build / "bench/pullman-perf"
        self.environment = {**os.environ, **place.environment, "PULLMAN_PEER_TIMEOUT_MS": "1500", **environment}

    def start(self, security="off", iterations=200):
        common = ["--nic", "lo", "--port", PORT, "--patience", 20, "--security", security]
        server = self.place.start_server(0, self.program, *common, env=self._traced("server"))
        client = self.place.start(1, self.program, *common, "--test", "latency", "--size", 64, "--iterations",
                                  iterations, "--format", "json", "127.0.0.1", env=self._traced("client"),
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        return server, client

    def _traced(self, name):
        return {**self.environment, "PULLMAN_TRACE": str(self.folder / f"{name}.pcapng")}

    def file(self, name, process, cause=""):
        return pathlib.Path(self.folder / f"{name}.{process.pid}{cause}.pcapng")


def check(path):
    """The packets' directions, all of which have to be packets of ours."""
    rows = fields_of(path, "frame.protocols", "frame.packet_flags_direction")
    assert all("udp:pullman" in protocols for protocols, _ in rows), rows
    assert tshark(path, "-Y", "pullman.malformed || _ws.malformed") == ""
    assert path.stat().st_mode & 0o777 == 0o600
    return [int(direction, 0) for _, direction in rows]


@case()
@pytest.mark.parametrize("security", ["off", "authenticate", "encrypt"])
def test_the_end_of_a_program_leaves_its_packets(place, build, tmp_path, security):
    pair = Pair(place, build, tmp_path)
    server, client = pair.start(security)
    said, _ = client.communicate(timeout=60)
    assert client.returncode == 0 and json.loads(said.splitlines()[-1]) and server.wait(60) == 0
    asked, answered = check(pair.file("client", client)), check(pair.file("server", server))
    assert asked.count(2) >= 200 and asked.count(1) >= 200
    # A packet that one sent the other received; the last may come when its program has closed.
    assert abs(asked.count(2) - answered.count(1)) <= 5 and abs(answered.count(2) - asked.count(1)) <= 5
    rows = fields_of(pair.file("client", client), "frame.packet_flags_direction", "ip.dst", "udp.dstport")
    assert {host for _, host, _ in rows} == {"127.0.0.1"} and str(PORT) in {port for _, _, port in rows}
    assert sorted(path.suffix for path in tmp_path.iterdir()) == [".pcapng", ".pcapng"]


@case()
def test_a_ring_that_is_full_has_the_last_packets(place, build, tmp_path):
    pair = Pair(place, build, tmp_path, PULLMAN_TRACE_BYTES="15200")
    server, client = pair.start()
    client.communicate(timeout=60)
    assert client.returncode == 0 and server.wait(60) == 0
    assert len(check(pair.file("client", client))) == 100
    assert "BYE" in tshark(pair.file("client", client))


@case()
def test_a_signal_asks_for_the_packets_while_the_program_goes_on(place, build, tmp_path):
    pair = Pair(place, build, tmp_path, PULLMAN_TRACE_SIGNAL="USR2")
    server, client = pair.start(iterations=100_000_000)
    until(lambda: client.poll() is None and b"SigCgt" in pathlib.Path(f"/proc/{client.pid}/status").read_bytes()
          and int(pathlib.Path(f"/proc/{client.pid}/status").read_text().split("SigCgt:")[1].split()[0], 16)
          >> signal.SIGUSR2 - 1 & 1, "handler")
    client.send_signal(signal.SIGUSR2)
    until(pair.file("client", client, ".signal").exists, "trace")
    check(pair.file("client", client, ".signal"))
    assert client.poll() is None and not pair.file("client", client).exists()
    assert not list(tmp_path.glob("server*"))
    for program in (client, server):
        program.kill()
        program.wait()


@case()
def test_a_peer_that_dies_leaves_the_packets_before_that(place, build, tmp_path):
    pair = Pair(place, build, tmp_path)
    server, client = pair.start(iterations=100_000_000)
    time.sleep(1)  # so that there is something in it
    server.kill()
    client.communicate(timeout=60)
    assert client.returncode != 0
    failure = pair.file("client", client, ".failure")
    assert len(check(failure)) > 10
    comment = subprocess.run(["capinfos", "-k", failure], capture_output=True, text=True, timeout=30, check=True).stdout
    assert "127.0.0.1:7380 has failed" in comment, comment


@case()
def test_nothing_is_written_where_nothing_can_be(place, build, tmp_path):
    pair = Pair(place, build, tmp_path / "nowhere")
    server, client = pair.start()
    client.communicate(timeout=60)
    assert client.returncode == 0 and server.wait(60) == 0
