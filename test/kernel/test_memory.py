"""Two processes on one host, which share memory."""

import functools
import json
import os
import pathlib
import random
import signal
import subprocess
import time

import pytest

import cases
import netns
from container import Container
from soak import Sleeper, Soak, address_of

case = functools.partial(cases.case, kind=netns.OneHost)
SHARED = pathlib.Path("/dev/shm")
LONGEST_LIFE = 0.4  # seconds: about as long as two that nobody kills take


@pytest.fixture(autouse=True)
def nothing_is_left():
    before = set(SHARED.glob("pullman.*"))
    yield
    left = set(SHARED.glob("pullman.*")) - before
    assert not left, f"left in /dev/shm: {left}"


def counters(line):
    return line["counters"]


def caller(place, build, *options, kind=Soak, **environment):
    """The second of two, at a port of its own: they are on one host."""
    return kind(place, build, 1, "udp", *options, address=address_of(place, 0), PULLMAN_PORT=7101, **environment)


def two(place, build, *options, kind=Sleeper, **environment):
    first = kind(place, build, 0, "udp", *options, **environment).wait_for("listening")
    return first, caller(place, build, *options, kind=kind, **environment)


@case()
def test_messages_of_every_size_both_ways_arrive_through_memory(place, build):
    first, second = two(place, build, kind=Soak)
    for line in (first.well(), second.well()):
        assert counters(line)["memory_packets_sent"] > 100, json.dumps(line)


@case()
def test_messages_take_the_NIC_if_memory_is_switched_off_at_one_end(place, build):
    first = Soak(place, build, 0, "udp", PULLMAN_SHARED_MEMORY=0).wait_for("listening")
    second = caller(place, build)
    for line in (first.well(), second.well()):
        assert counters(line)["memory_packets_sent"] == 0, json.dumps(line)


@case()
def test_messages_take_the_NIC_where_dev_shm_has_no_room_and_the_log_says_so_once(place, build):
    # Each in a /dev/shm of its own, with room for nothing.
    def start(*words, **environment):
        full = ["unshare", "-m", "sh", "-c", 'mount -t tmpfs -o size=4k none /dev/shm && exec "$0" "$@"']
        plain = place.command
        place.command = lambda side, *command: [*full, *plain(side, *command)]
        try:
            return Soak(place, build, *words, **environment)
        finally:
            place.command = plain
    first = start(0, "udp").wait_for("listening")
    second = start(1, "udp", address=address_of(place, 0), PULLMAN_PORT=7101, PULLMAN_LOG="info")
    for line in (first.well(), second.well()):
        assert counters(line)["memory_packets_sent"] == 0, json.dumps(line)
    assert second.problem().count("and not through memory") == 1, second.problem()
    assert "--shm-size" in second.problem(), second.problem()


@case()
def test_processes_that_wait_sleep_and_are_woken_through_memory(place, build):
    first, second = two(place, build, "--idle", 2)
    for line in (first.well(), second.well()):
        assert counters(line)["memory_packets_sent"] > 0, json.dumps(line)
    for sleeper in (first, second):
        line = sleeper.idle("connected")
        assert line["processor_percent"] < 5, json.dumps(line)


@case()
def test_the_death_of_a_process_ends_at_once_what_waits_for_it(place, build):
    first = Sleeper(place, build, 0, "udp", "--idle", 30, "--rounds", 1).wait_for("listening")
    second = caller(place, build, "--rounds", 2, "--pause-ms", 0, kind=Sleeper)
    first.wait_for("played")
    time.sleep(0.2)
    began = time.monotonic()
    first.program.send_signal(signal.SIGKILL)
    code, line = second.finish(60)
    assert code == 3 and line["status"] == "peer died", f"exit {code}: {json.dumps(line)}"
    print(f"    noticed after {time.monotonic() - began:.3f} s")


def die_at_any_moment(place, build, moments):
    """What arrived before that arrived once, in order, and whole: soak judges it."""
    dice = random.Random(moments)
    for _ in range(moments):
        first = Soak(place, build, 0, "udp").wait_for("listening")
        second = caller(place, build)
        first.wait_for("met")
        time.sleep(dice.uniform(0, LONGEST_LIFE))
        second.program.send_signal(signal.SIGKILL)
        second.program.wait()
        code, line = first.finish(60)
        assert code == 0 or (code == 3 and line["status"] == "peer died"), f"exit {code}: {json.dumps(line)}"


@case()
def test_a_process_that_is_killed_in_the_middle_leaves_nothing_hanging_and_nothing_twice(place, build):
    die_at_any_moment(place, build, 12)


@pytest.mark.long
@case()
def test_a_process_that_is_killed_at_a_thousand_moments_leaves_nothing_hanging_and_nothing_twice(place, build):
    die_at_any_moment(place, build, 1000)


@case()
def test_messages_arrive_through_memory_in_a_container(place, build):
    """IPC of its own, a /dev/shm of 1 MB, and no process that may read another's memory."""
    with Container(place):
        first, second = two(place, build, kind=Soak)
        for line in (first.well(), second.well()):
            assert counters(line)["memory_packets_sent"] > 100, json.dumps(line)


@case()
def test_what_a_process_that_was_killed_has_left_is_swept(place, build):
    dead = subprocess.run(["sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout.strip()
    namespace = os.stat("/proc/self/ns/pid").st_ino
    ours = pathlib.Path(f"/proc/{os.getpid()}/stat").read_text().rpartition(")")[2].split()[19]
    left = SHARED / f"pullman.{namespace}.{dead}.1.0123456789abcdef"
    kept = SHARED / f"pullman.{namespace}.{os.getpid()}.{ours}.0123456789abcdef"
    for file in (left, kept):
        file.write_bytes(b"")
    try:
        place.start(0, build / "tools/pullman-info", stdout=subprocess.DEVNULL).wait(60)
        first, second = two(place, build, kind=Soak)
        first.well(), second.well()
        assert not left.exists()
        assert kept.exists()
    finally:
        kept.unlink()


@case()
def test_what_shows_rails_shows_the_memory(place, build):
    server = place.start_server(0, build / "bench/pullman-perf", "--port", 7300, "--patience", 20)
    report = place.start(1, build / "tools/pullman-info", "--peer", "127.0.0.1:7300", "--format", "json",
                         stdout=subprocess.PIPE, text=True)
    shown = json.loads(report.communicate(timeout=60)[0])
    assert report.returncode == 0, shown
    assert [rail["nic"] for rail in shown["rails"]] == ["lo", "memory"], shown
    assert shown["rails"][1]["verdict"] == "carries messages: the peer is on this host", shown
    server.kill()
