"""End-to-end tests on a real kernel: two processes in two network namespaces.

    run.py BUILD_DIRECTORY [WORDS...]     all cases, or those whose sentence has one of the words
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

import cases
from cases import Failed, expect, netns

HERE = pathlib.Path(__file__).resolve().parent
PORT = 7100
PATIENCE = 150  # seconds; a case that takes longer hangs
CASES = []


def case(function):
    CASES.append(function)
    return function


class Soak:
    """One soak program. `address` makes it the one that connects."""

    def __init__(self, pair, build, side, *options, address=None, **environment):
        command = [str(build / "test/kernel/soak"), "--patience", str(PATIENCE), *map(str, options)]
        variables = {"PULLMAN_PORT": str(PORT), **{k: str(v) for k, v in environment.items()}}
        if address:
            command.append(address)
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.output = tempfile.NamedTemporaryFile(mode="r+")
        self.program = pair.start(side, *command, env={**os.environ, **variables},
                                  stdout=self.output, stderr=self.errors)

    def lines(self):
        text = pathlib.Path(self.output.name).read_text()
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def wait_for(self, event, seconds=30):
        """Until it has printed a line with this event."""
        end = time.monotonic() + seconds
        while not any(line["event"] == event for line in self.lines()):
            expect(self.program.poll() is None, f"ended before '{event}': {self.problem()}")
            expect(time.monotonic() < end, f"no '{event}' within {seconds} s")
            time.sleep(0.01)
        return self

    def finish(self, seconds=PATIENCE + 30):
        """Its exit code and last line."""
        try:
            code = self.program.wait(seconds)
        except subprocess.TimeoutExpired:
            raise Failed("hangs") from None
        lines = self.lines()
        expect(lines and lines[-1]["event"] == "done", f"died with {code}: {self.problem()}")
        return code, lines[-1]

    def well(self):
        code, line = self.finish()
        expect(code == 0, f"exit {code}: {json.dumps(line)} {self.problem()}")
        return line

    def problem(self):
        self.errors.seek(0)
        return self.errors.read()[-3000:]


def two(pair, build, *options, **environment):
    """One that waits (in namespace a) and one that connects (in b)."""
    first = Soak(pair, build, 0, *options, **environment).wait_for("listening")
    second = Soak(pair, build, 1, *options, address=f"{pair.hosts[0]}:{PORT}", **environment)
    return first, second


def both_ways(pair, build, loss, messages):
    pair.drop_udp(loss)
    sides = two(pair, build, "--send", messages, "--receive", messages, "--seed", loss + 1)
    return [side.well() for side in sides]


@case
def ten_thousand_messages_both_ways_arrive_and_without_loss_nothing_is_sent_again(pair, build):
    for line in both_ways(pair, build, 0, 10_000):
        counters = line["counters"]
        expect(counters["retransmits"] == 0, f"retransmissions without loss: {counters}")


@case
def ten_thousand_messages_both_ways_arrive_through_1_percent_loss(pair, build):
    lines = both_ways(pair, build, 1, 10_000)
    expect(any(line["counters"]["retransmits"] > 0 for line in lines), "nothing was lost: no test")


@case
def ten_thousand_messages_both_ways_arrive_through_5_percent_loss(pair, build):
    both_ways(pair, build, 5, 10_000)


@case
def ten_thousand_messages_both_ways_arrive_through_20_percent_loss(pair, build):
    both_ways(pair, build, 20, 10_000)


@case
def a_program_that_polls_every_50_ms_gets_all_its_messages(pair, build):
    options = ("--send", 300, "--receive", 300, "--largest", 65536)
    first = Soak(pair, build, 0, "--poll-every-ms", 50, *options).wait_for("listening")
    second = Soak(pair, build, 1, *options, address=f"{pair.hosts[0]}:{PORT}")
    first.well()
    second.well()


@case
def a_killed_peer_is_reported_as_unreachable(pair, build):
    timeout_ms = 1000
    first, second = two(pair, build, "--send", 300_000, "--receive", 300_000, "--largest",
                        10_000, PULLMAN_PEER_TIMEOUT_MS=timeout_ms)
    first.wait_for("met")
    second.wait_for("met")
    time.sleep(0.5)
    killed = time.monotonic()
    kill(second)
    code, line = first.finish(60)
    took = time.monotonic() - killed
    expect(code == 3 and line["status"] == "unreachable", f"exit {code}: {json.dumps(line)}")
    # The bound, and as much again for a busy machine.
    expect(took < 2 * timeout_ms / 1000 + 5, f"took {took:.1f} s")


@case
def a_peer_that_restarts_is_a_new_peer(pair, build):
    endless = ("--send", 300_000, "--receive", 300_000, "--largest", 10_000)
    address = f"{pair.hosts[0]}:{PORT}"
    # The one that stays serves two peers in turn: the first fails, the second does the same again.
    stays = Soak(pair, build, 0, "--rounds", 2, "--send", 500, "--receive", 500, "--largest", 10_000,
                 PULLMAN_PEER_TIMEOUT_MS=3000).wait_for("listening")
    first = Soak(pair, build, 1, "--poll-every-ms", 20, *endless, address=address,
                 PULLMAN_PEER_TIMEOUT_MS=3000)
    stays.wait_for("met")
    kill(first)
    second = Soak(pair, build, 1, "--send", 500, "--receive", 500, "--largest", 10_000,
                  address=address, PULLMAN_PEER_TIMEOUT_MS=3000)
    second.well()
    stays.well()
    ended = [line for line in stays.lines() if line["event"] == "done"]
    expect(ended[0]["status"] in ("peer restarted", "unreachable"), f"first: {json.dumps(ended[0])}")


@case
def noise_from_a_stranger_does_no_harm(pair, build):
    options = ("--send", 3000, "--receive", 3000)
    first, second = two(pair, build, *options)
    second.wait_for("listening")
    noises = [pair.start(1 - side, sys.executable, HERE / "noise.py", pair.hosts[side], 3,
                         *pair.udp_ports(side), stdout=subprocess.DEVNULL) for side in (0, 1)]
    lines = [first.well(), second.well()]
    for noise in noises:
        expect(noise.wait(30) == 0, "the noise maker failed")
    expect(sum(line["counters"]["dropped"] for line in lines) > 0, "no noise was heard: no test")


@case
def what_was_accepted_is_delivered_by_an_orderly_close(pair, build):
    receives = Soak(pair, build, 0, "--send", 0, "--receive", 500, "--largest",
                    100_000).wait_for("listening")
    sends = Soak(pair, build, 1, "--send", 500, "--receive", 0, "--largest", 100_000,
                 "--close-at-once", address=f"{pair.hosts[0]}:{PORT}")
    sends.well()
    receives.well()


def kill(soak):
    # `ip netns exec` becomes the program it runs, so this is the program itself.
    soak.program.send_signal(signal.SIGKILL)
    soak.program.wait()


if __name__ == "__main__":
    sys.exit(cases.main(CASES, netns.Pair, netns.possible()))
