"""Protected packets on a real kernel: keys, where they come from, and processes that have others."""

import os
import stat
import subprocess

import pytest

import open_capture
from cases import case
from soak import Soak, address_of, two

SHORT = 1_500
WORDS = "correct horse battery staple"


@pytest.fixture(autouse=True)
def no_key(job_key, monkeypatch):
    """These say themselves which key a process has."""
    monkeypatch.delenv("PULLMAN_KEY_FILE")


def both_ways(place, build, driver, messages=SHORT, **environment):
    sides = two(place, build, driver, "--send", messages, "--receive", messages, **environment)
    return [side.well()["counters"] for side in sides]


@case("udp", "tcp", "fabric")
@pytest.mark.parametrize("security", ["authenticate", "encrypt"])
def test_messages_arrive_both_ways_over_protected_packets(place, build, driver, security):
    for counters in both_ways(place, build, driver, PULLMAN_KEY=WORDS, PULLMAN_SECURITY=security):
        assert counters["dropped"] == 0, counters


@case("udp")
@pytest.mark.parametrize("security", ["authenticate", "encrypt"])
def test_messages_arrive_over_protected_packets_through_5_percent_loss(place, build, driver, security):
    place.drop_udp(5)
    both_ways(place, build, driver, 3_000, PULLMAN_KEY=WORDS, PULLMAN_SECURITY=security)


@case("udp", mtu=9000)
def test_messages_arrive_over_protected_packets_of_9000(place, build, driver):
    both_ways(place, build, driver, PULLMAN_KEY=WORDS, PULLMAN_SECURITY="encrypt")


@case("udp", mtu=65535)
def test_messages_arrive_over_protected_packets_of_64_KiB(place, build, driver):
    both_ways(place, build, driver, PULLMAN_KEY=WORDS)


@case("udp")
@pytest.mark.parametrize("least", [{"PULLMAN_TINY_BYTES": 0}, {"PULLMAN_PACKET_BYTES": 592}], ids=str)
def test_messages_arrive_in_the_shortest_packets_that_hold_a_tag(place, build, driver, least):
    both_ways(place, build, driver, 300, PULLMAN_KEY=WORDS, **least)


@case("udp")
@pytest.mark.parametrize("first, second, why", [
    ({"PULLMAN_KEY": WORDS}, {"PULLMAN_KEY": WORDS + "s"}, "unreachable"),
    ({"PULLMAN_KEY": WORDS}, {"PULLMAN_SECURITY": "off"}, "unreachable"),
    ({"PULLMAN_SECURITY": "off"}, {"PULLMAN_KEY": WORDS}, "unreachable"),
    ({"PULLMAN_KEY": WORDS}, {"PULLMAN_KEY": WORDS, "PULLMAN_SECURITY": "encrypt"}, "incompatible"),
], ids=["other words", "off there", "off here", "encrypted there"])
def test_processes_that_have_no_key_in_common_do_not_meet(place, build, driver, first, second, why):
    options = ("--send", 10, "--receive", 10)
    server = Soak(place, build, 0, driver, *options, **first).wait_for("listening")
    client = Soak(place, build, 1, driver, *options, address=address_of(place, 0), PULLMAN_PEER_TIMEOUT_MS=1000,
                  **second)
    _, line = client.finish()
    assert why in str(line).lower(), line
    assert "packets come here that" in server.problem(), server.problem()
    assert not any(line["event"] == "met" for line in server.lines()), server.lines()
    server.program.kill()
    server.program.wait()


@case("udp")
def test_a_process_without_a_key_does_not_start_and_says_where_one_comes_from(place, build, driver):
    perf = place.start(0, build / "bench/pullman-perf", "--driver", driver, stderr=subprocess.PIPE, text=True)
    _, said = perf.communicate(timeout=20)
    assert perf.returncode == 1
    for way in ("pullman-key FILE", "PULLMAN_KEY_FILE", "PULLMAN_KEY=", "mpirun", "PULLMAN_SECURITY=off"):
        assert way in said, said


@pytest.mark.parametrize("options", [("--key", WORDS), ("--key", WORDS, "--security", "encrypt"), ("--security", "off")],
                         ids=["words", "encrypted", "off"])
@case("udp")
def test_two_commands_are_enough_for_trying_things_out(place, build, driver, options):
    perf = build / "bench/pullman-perf"
    place.start_server(0, perf, "--driver", driver, *options)
    told = place.start(1, build / "tools/pullman-info", "--peer", f"{place.hosts[0]}:7100", *options,
                       stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert told.wait(20) == 0, told.communicate()
    client = place.start(1, perf, "--driver", driver, *options, "--iterations", 50, "--check", place.hosts[0],
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert client.wait(20) == 0, client.communicate()


@case("udp")
def test_words_of_the_command_line_come_before_a_key_file_of_the_environment(place, build, driver):
    perf = build / "bench/pullman-perf"
    place.start_server(0, perf, "--driver", driver, "--key", WORDS)
    client = place.start(1, perf, "--driver", driver, "--key", WORDS, "--iterations", 5, place.hosts[0],
                         env={**os.environ, "PULLMAN_KEY_FILE": "/nowhere/key"})
    assert client.wait(20) == 0


@pytest.mark.parametrize("seed, mode", [(57, 0x40), (39, 0x80)], ids=["authenticated", "encrypted"])
def test_another_implementation_opens_every_packet_by_the_book(build, tmp_path, seed, mode):
    capture = tmp_path / "capture"
    run = subprocess.run([build / "test/sim/pullman-sim", "--seed", str(seed), "--pcapng", capture, "--keys"], check=True,
                         capture_output=True, text=True)
    keys = [line.split()[1] for line in run.stdout.splitlines() if line.startswith("key ")]
    flags = {datagram[1] & 0xC0 for _, datagram in open_capture.datagrams_of(capture)}
    assert flags == {mode}, "the seed is drawn otherwise now: choose another"
    assert open_capture.main(capture, keys) == 0


def make_key(build, path, *options):
    return subprocess.run([build / "tools/pullman-key", *options, path], capture_output=True, text=True, check=False)


@case("udp")
def test_a_key_file_that_is_rotated_keeps_processes_with_the_old_key_connected(place, build, driver, tmp_path):
    old, new = tmp_path / "old", tmp_path / "new"
    assert make_key(build, old).returncode == 0
    new.write_text(old.read_text())
    new.chmod(0o600)
    assert make_key(build, new, "--rotate").returncode == 0
    assert new.read_text().splitlines()[1:] == old.read_text().splitlines()
    for here, there in ((old, new), (new, old)):
        options = ("--send", 200, "--receive", 200)
        server = Soak(place, build, 0, driver, *options, PULLMAN_KEY_FILE=here).wait_for("listening")
        client = Soak(place, build, 1, driver, *options, address=address_of(place, 0), PULLMAN_KEY_FILE=there)
        client.well()
        server.well()


def test_pullman_key_makes_a_file_that_only_its_owner_can_read_and_overwrites_none(build, tmp_path):
    path = tmp_path / "key"
    mask = os.umask(0)
    try:
        assert make_key(build, path).returncode == 0
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    line, = path.read_text().splitlines()
    assert len(bytes.fromhex(line)) == 32
    again = make_key(build, path)
    assert again.returncode == 1 and "File exists" in again.stderr, again
    assert path.read_text() == line + "\n"
    other = tmp_path / "other"
    assert make_key(build, other).returncode == 0 and other.read_text() != path.read_text()


@case("udp")
def test_a_key_file_that_others_can_read_is_refused(place, build, driver, tmp_path):
    path = tmp_path / "key"
    make_key(build, path)
    path.chmod(0o644)
    soak = Soak(place, build, 0, driver, PULLMAN_KEY_FILE=path)
    assert soak.program.wait(30) != 0
    assert f"chmod 600 {path}" in soak.problem() + str(soak.lines()), soak.problem()


@case("udp")
def test_neither_a_log_nor_a_process_tells_the_key(place, build, driver, tmp_path):
    path = tmp_path / "key"
    make_key(build, path)
    key = path.read_text().strip()
    soak = Soak(place, build, 0, driver, "--receive", 1, PULLMAN_KEY_FILE=path, PULLMAN_LOG="trace")
    soak.wait_for("listening")
    assert where(key, soak.program.pid) == [], "neither as text nor as bytes, in memory that can be written"
    soak.program.kill()
    soak.program.wait()
    assert key not in soak.problem() + str(soak.lines())
    assert str(path) in soak.problem(), "where it came from is told"


def where(key, pid):
    """The places in a process' memory that hold the key."""
    needles = [key.encode(), bytes.fromhex(key)]
    found = []
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "rb", 0) as memory:
        for line in maps:
            place, access, *_ = line.split()
            begin, end = (int(part, 16) for part in place.split("-"))
            if access[:2] != "rw" or "[vvar" in line:
                continue
            try:
                memory.seek(begin)
                content = memory.read(end - begin)
            except OSError:
                continue
            found += [line.strip() for needle in needles if needle in content]
    return found
