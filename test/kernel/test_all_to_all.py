"""Many processes that all send to each other while packets are lost, and some of them are killed and started again.
What became of their messages is read from their counters alone, by pullman-stat, as an operator would."""

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
from netns import text_of

FIRST_PORT = 7600
LOST = 1  # percent
case = functools.partial(cases.case, kind=netns.Pair)


class Everyone:
    """The processes, each of which has a port; every second one is in the second namespace."""

    def __init__(self, place, build, folder, count):
        self.place = place
        self.build = build
        self.folder = folder
        self.addresses = [f"{place.hosts[rank % 2]}:{FIRST_PORT + 2 * rank}" for rank in range(count)]
        self.running = [None] * count
        self.restarts = 0
        for rank in range(count):
            self.start(rank)

    def start(self, rank):
        side = rank % 2
        environment = {**os.environ, "PULLMAN_PORT": str(FIRST_PORT + 2 * rank), "PULLMAN_DRIVER": "udp",
                       "PULLMAN_NICS": self.place.hosts[side], "PULLMAN_SHARED_MEMORY": "0",
                       "PULLMAN_COUNTERS": str(self.folder), "PULLMAN_SLEEP_AFTER_US": "50"}
        self.running[rank] = self.place.start(
            side, self.build / "test/kernel/all-to-all", "--rank", rank, "--seed", rank + 1000 * self.restarts,
            *self.addresses, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def kill_and_start(self, rank):
        self.running[rank].kill()
        self.running[rank].wait()
        self.restarts += 1
        self.start(rank)

    def signal_all(self, which):
        for process in self.running:
            process.send_signal(which)

    def check_alive(self):
        for rank, process in enumerate(self.running):
            assert process.poll() is None, f"rank {rank} ended with {process.returncode}: {process.stderr.read()}"

    def shown(self):
        """What pullman-stat shows of the processes that run, by rank."""
        result = subprocess.run([self.build / "tools/pullman-stat", "--folder", str(self.folder), "--format", "json"],
                                capture_output=True, text=True, timeout=60, check=False)
        assert result.returncode == 0, result.stderr
        contexts = {one["process"]: one for one in json.loads(result.stdout)["contexts"]}
        return [contexts.get(process.pid) for process in self.running]


def resident_kib(process):
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    return int(status.split("VmRSS:")[1].split()[0])


def descriptors(process):
    return len(list(pathlib.Path(f"/proc/{process.pid}/fd").iterdir()))


def alive(one):
    return [peer for peer in one["peer"] if peer["phase"] != "gone"]


def who_is_apart(shown):
    """Which process is not connected to all others; empty: none."""
    for rank, one in enumerate(shown):
        if not one or not one["context"]:
            return f"rank {rank} shows nothing"
        phases = [peer["phase"] for peer in alive(one)]
        if phases != ["connected"] * (len(shown) - 1):
            return f"rank {rank} has these peers: {phases}"
    return ""


def what_is_left(shown):
    """Why not all that the processes have sent to each other has come, by their counters; empty: it has."""
    if apart := who_is_apart(shown):
        return apart
    for rank, one in enumerate(shown):
        if one["wrong_sums"]:
            return f"rank {rank}: {one['wrong_sums']}"
        for peer in alive(one):
            if peer["messages_sent"] != peer["messages_arrived"]:
                return f"rank {rank}: {peer['messages_arrived']} of {peer['messages_sent']} came to {peer['address']}"
            for column in ("queued_packets", "unfinished_sends", "filling_receives", "unexpected_bytes"):
                if peer[column]:
                    return f"rank {rank}: {column} is {peer[column]} for {peer['address']}"
        if one["context"][0]["packets_in_flight"]:
            return f"rank {rank} has {one['context'][0]['packets_in_flight']} packets in flight"
    return ""


def wait_for(everyone, what_is_missing, seconds=120):
    end = time.monotonic() + seconds
    while missing := what_is_missing(everyone.shown()):
        everyone.check_alive()
        assert time.monotonic() < end, missing
        time.sleep(1)


def all_to_all(place, build, folder, count, seconds, seed=1):
    dice = random.Random(seed)
    everyone = Everyone(place, build, folder, count)
    place.drop_udp(LOST)
    end = time.monotonic() + seconds
    middle = time.monotonic() + seconds / 2
    first = {}
    time.sleep(min(5, seconds / 4))
    while time.monotonic() < end:
        everyone.check_alive()
        everyone.kill_and_start(dice.randrange(count // 2))  # the others live from start to end
        time.sleep(dice.uniform(0.1, 4))
        if not first and time.monotonic() > middle:
            first = {process.pid: (resident_kib(process), descriptors(process)) for process in everyone.running}
    wait_for(everyone, who_is_apart)  # while they send: one that is silent does not hear that another has gone
    everyone.signal_all(signal.SIGUSR1)
    wait_for(everyone, what_is_left)

    shown = everyone.shown()
    survivors = shown[count // 2:]
    totals = {column: sum(one["context"][0][column] for one in shown) for column in
              ("messages_sent", "messages_received", "packets_sent", "retransmits", "spurious_retransmits")}
    totals["kills"] = everyone.restarts
    # A survivor has received at least what those that run have sent to it, each once, as they have seen themselves.
    for rank, one in enumerate(survivors, count // 2):
        to_it = sum(peer["messages_arrived"] for other in shown for peer in alive(other)
                    if peer["address"] == everyone.addresses[rank])
        received = one["context"][0]["messages_received"]
        assert 0 < to_it <= received, f"rank {rank} has received {received} messages, {to_it} were sent to it"
        assert one["context"][0]["retransmits"] > 0, "nothing was lost: no test"
    # A process holds what it held half-way, but for what is opened when first needed, and a peak of messages.
    grown = {process.pid: (resident_kib(process) - first[process.pid][0], descriptors(process) - first[process.pid][1])
             for process in everyone.running if process.pid in first}
    assert all(kib < 8192 and more <= 2 for kib, more in grown.values()), f"KiB and descriptors more: {grown}"

    everyone.signal_all(signal.SIGTERM)
    for rank, process in enumerate(everyone.running):
        code = process.wait(60)
        assert code == 0, f"rank {rank} ended with {code}: {process.stderr.read()}"
    assert not list(folder.iterdir()), f"left over: {list(folder.iterdir())}"
    return totals


@case()
def test_what_processes_send_to_each_other_arrives_although_others_are_killed(place, build, tmp_path):
    totals = all_to_all(place, build, tmp_path / "counters", 8, 12)
    assert totals["kills"] > 2 and totals["messages_sent"] > 1000, f"no test: {totals}"


@pytest.mark.long
@case()
def test_what_32_processes_send_to_each_other_for_ten_minutes_arrives(place, build, tmp_path, capsys):
    totals = all_to_all(place, build, tmp_path / "counters", 32, 600)
    with capsys.disabled():
        print(totals)
