"""tools/wireshark/pullman.lua in tshark, on what the simulator and real programs send."""

import functools
import os
import pathlib
import re
import signal
import struct
import subprocess

import pytest

import cases
import netns
import open_capture

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
DISSECTOR = ROOT / "tools/wireshark/pullman.lua"
USER0 = 147
BULK = 5
# The bytes of the fields of each frame type, wire.md 4.1.
FRAMES = {1: ("MESSAGE", 12), 2: ("CHUNK", 28), 3: ("GRANT", 12), 4: ("ALLOWANCE", 16), 5: ("SACK", 4), 6: ("HELLO", 0),
          7: ("PING", 0), 8: ("BYE", 8), 9: ("PADDING", 0), 10: ("WAYS", 0), 11: ("RAIL", 4), 12: ("CHECK", 0),
          13: ("CHECKED", 0), 14: ("RESULT", 8), 15: ("ENVELOPE", 20), 16: ("BLOCKED", 8), 17: ("NICS", 0),
          18: ("MEMORY", 0)}
FIELDS = ("pullman.type", "pullman.length", "pullman.number", "pullman.connection", "pullman.floor_distance",
          "pullman.frame", "pullman.auth_tag")
case = functools.partial(cases.case, kind=netns.Loopback)


def tshark(path, *options):
    result = subprocess.run(["tshark", "-X", f"lua_script:{DISSECTOR}", "-r", path, *options], capture_output=True,
                            text=True, timeout=120, check=False)
    assert result.returncode == 0 and "Lua Error" not in result.stderr + result.stdout, result.stderr
    return result.stdout


def fields_of(path, *names):
    options = [word for name in names for word in ("-e", name)]
    lines = tshark(path, "-T", "fields", "-E", "separator=|", "-E", "aggregator=,", *options).splitlines()
    return [line.split("|") for line in lines]


def write_pcap(path, datagrams):
    with open(path, "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, USER0))
        for second, datagram in enumerate(datagrams):
            file.write(struct.pack("<IIII", second, 0, len(datagram), len(datagram)) + datagram)


def frames_of(body):
    while body:
        name, fields = FRAMES[body[0]]
        yield name
        body = body[4 + fields + struct.unpack(">H", body[2:4])[0]:]


def expected(datagram):
    """What FIELDS are of a datagram."""
    kind, length = datagram[0] & 15, struct.unpack(">H", datagram[2:4])[0]
    encrypted = datagram[1] & 0x80
    number, = struct.unpack(">I", datagram[12:16])
    connection, = struct.unpack(">I", datagram[4:8])
    floor, = struct.unpack(">H", datagram[16:18])
    names = [] if kind == BULK or encrypted else frames_of(datagram[32:length])
    tag = datagram[-16:].hex() if datagram[1] & 0xC0 else ""
    return [str(kind), str(length), str(number), str(connection), str(floor), ",".join(names), tag]


@pytest.mark.parametrize("seed", [3, 4, 11, 12, 25, 38])
def test_what_the_simulator_sends_is_taken_apart_as_wire_md_says(build, tmp_path, seed):
    capture = tmp_path / "sent.pcapng"
    run = subprocess.run([build / "test/sim/pullman-sim", "--seed", str(seed), "--pcapng", capture], check=True, timeout=60,
                         capture_output=True, text=True)
    datagrams = [datagram for _, datagram in open_capture.datagrams_of(capture)]
    assert len(datagrams) == int(re.search(r"(\d+) packets", run.stdout)[1]) > 50
    for seen, datagram in zip(fields_of(capture, *FIELDS), datagrams, strict=True):
        assert seen == expected(datagram), datagram.hex()
    assert tshark(capture, "-Y", "pullman.malformed || _ws.malformed") == ""


def test_what_is_no_packet_of_ours_is_left_alone(build, tmp_path):
    good = bytes([0x11, 0]) + struct.pack(">H", 36) + bytes(28) + bytes([7, 0, 0, 0])
    unknown_frame = good[:32] + bytes([99, 0, 0, 0])
    overlong_frame = good[:32] + bytes([7, 0, 1, 0])
    others = [b"hello", bytes(40), good[:-1], bytes([0x21]) + good[1:], good[:1] + b"\xc0" + good[2:], good + b"x"]
    write_pcap(tmp_path / "mixed.pcap", [good, unknown_frame, overlong_frame, *others])
    rows = fields_of(tmp_path / "mixed.pcap", "pullman.type", "pullman.frame")
    assert rows == [["1", "PING"], ["1", ""], ["1", ""], *[["", ""]] * len(others)]
    assert len(tshark(tmp_path / "mixed.pcap", "-Y", "pullman.malformed").splitlines()) == 2


# A capture at a sender of bursts sees several packets in a datagram.
def test_packets_of_a_burst_are_told_apart(build, tmp_path):
    ping = bytes([0x11, 0]) + struct.pack(">H", 36) + bytes(28) + bytes([7, 0, 0, 0])
    sealed = bytes([0x11, 0x40]) + ping[2:] + b"t" * 16
    write_pcap(tmp_path / "burst.pcap", [ping + ping + sealed, ping + b"rest"])
    rows = fields_of(tmp_path / "burst.pcap", "pullman.frame", "pullman.auth_tag")
    assert rows == [["PING,PING,PING", (b"t" * 16).hex()], ["", ""]]


@case()
@pytest.mark.parametrize("security", ["authenticate", "encrypt"])
def test_what_programs_send_is_found_among_other_datagrams(place, build, tmp_path, security):
    def ports(command):
        return {**os.environ, **place.environment, "PULLMAN_PORT": str(command), "PULLMAN_DATA_PORT": str(command + 1)}
    path = tmp_path / "live.pcapng"
    sniffer = subprocess.Popen(["tshark", "-i", "lo", "-f", "udp portrange 7360-7363", "-w", path],
                               stderr=subprocess.PIPE, text=True)
    place.programs.append(sniffer)  # it is ended if the test fails
    while "Capturing on" not in sniffer.stderr.readline():
        assert sniffer.poll() is None
    program = build / "bench/pullman-perf"
    common = ["--nic", "lo", "--port", 7360, "--patience", 20, "--security", security]
    server = place.start_server(0, program, *common, env=ports(7360))
    client = place.start(1, program, *common, "--test", "bandwidth", "--size", "1..64K", "--iterations", 20,
                         "127.0.0.1", env=ports(7362), stdout=subprocess.DEVNULL)
    assert client.wait(60) == 0 and server.wait(60) == 0
    sniffer.send_signal(signal.SIGINT)
    sniffer.communicate(timeout=60)
    rows = fields_of(path, "frame.protocols", "pullman.frame", "pullman.encrypted_body")
    assert len(rows) > 100 and all("udp:pullman" in protocols for protocols, _, _ in rows), rows[:5]
    assert any("MESSAGE" in frames for _, frames, _ in rows) == (security == "authenticate")
    assert any(body for _, _, body in rows) == (security == "encrypt")
    assert tshark(path, "-Y", "pullman.malformed") == ""


# As PULLMAN_TRACE keeps them: the header, and frames up to the data that was cut.
def test_a_packet_that_the_capture_has_cut_is_shown_as_far_as_it_goes(build, tmp_path):
    ping = bytes([7, 0, 0, 0])
    message = struct.pack(">BBHIQ", 1, 0, 5, 9, 0xAB) + b"words"
    length = 32 + len(ping) + len(message)
    whole = bytes([0x11, 0]) + struct.pack(">H", length) + bytes(28) + ping + message
    with open(tmp_path / "cut.pcap", "wb") as file:
        file.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 65535, USER0))
        for kept in (length, length - 2, length - 5, length - 6, 36, 32, 31):
            file.write(struct.pack("<IIII", 0, 0, kept, length) + whole[:kept])
    rows = fields_of(tmp_path / "cut.pcap", "pullman.type", "pullman.frame", "pullman.data")
    both = ["1", "PING,MESSAGE"]
    assert rows == [[*both, b"words".hex()], [*both, b"wor".hex()], [*both, ""], ["1", "PING", ""], ["1", "PING", ""],
                    ["1", "", ""], ["", "", ""]]
    assert tshark(tmp_path / "cut.pcap", "-Y", "pullman.malformed") == ""
