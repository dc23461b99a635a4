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
from cases import Failed, expect, insist, netns

import both_ways as both_ways_at_once
import railnet

HERE = pathlib.Path(__file__).resolve().parent
PORT = 7100
PATIENCE = 150  # seconds; a case that takes longer hangs
CASES = []


def case(*drivers, kind=netns.Pair, **place):
    """A case for each of the drivers; `place` says how its namespaces differ from the usual ones."""
    def add(function):
        for driver in drivers:
            one = cases.of_driver(function, driver)
            one.make_place = lambda: kind(**place)
            CASES.append(one)
        return function
    return add


class Soak:
    """One soak program. `address` makes it the one that connects."""

    name = "soak"

    def __init__(self, pair, build, side, driver, *options, address=None, **environment):
        command = [str(build / "test/kernel" / self.name), "--patience", str(PATIENCE), *map(str, options)]
        variables = {"PULLMAN_PORT": PORT, "PULLMAN_DRIVER": driver, "PULLMAN_NICS": pair.hosts[side],
                     **environment}
        if address:
            command.append(address)
        self.errors = tempfile.TemporaryFile(mode="w+")
        self.output = tempfile.NamedTemporaryFile(mode="r+")
        self.program = pair.start(side, *command, env={**os.environ, **{k: str(v) for k, v in variables.items()}},
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
        insist(code >= 0, f"killed by signal {-code}: {self.problem()}")
        expect(lines and lines[-1]["event"] == "done", f"died with {code}: {self.problem()}")
        insist(not lines[-1].get("verdict"), json.dumps(lines[-1]))
        return code, lines[-1]

    def well(self):
        code, line = self.finish()
        expect(code == 0, f"exit {code}: {json.dumps(line)} {self.problem()}")
        return line

    def problem(self):
        self.errors.seek(0)
        return self.errors.read()[-3000:]


class Sleeper(Soak):
    """One sleeper program, with sleeping on."""

    name = "sleeper"

    def __init__(self, *words, **environment):
        super().__init__(*words, **{"PULLMAN_SLEEP_AFTER_US": 200, **environment})

    def idle(self, state):
        """What waiting idle was like: alone or connected."""
        line, = (line for line in self.lines() if line["event"] == "idle" and line["state"] == state)
        return line


def address_of(pair, side):
    """How the other side calls it."""
    host = pair.hosts[side]
    if ":" not in host:
        return f"{host}:{PORT}"
    scope = "%veth0" if "%" in host else ""
    return f"[{host.split('%')[0]}{scope}]:{PORT}"


def two(pair, build, driver, *options, **environment):
    """One that waits (in namespace a) and one that connects (in b); two drivers are one each."""
    drivers = driver.split(" and ")
    first = Soak(pair, build, 0, drivers[0], *options, **environment).wait_for("listening")
    second = Soak(pair, build, 1, drivers[-1], *options, address=address_of(pair, 0), **environment)
    return first, second


def both_ways(pair, build, driver, loss, messages, *options, **environment):
    pair.drop_udp(loss)
    sides = two(pair, build, driver, "--send", messages, "--receive", messages, "--seed", loss + 1,
                *options, **environment)
    return [side.well()["counters"] for side in sides]


@case("udp", "tcp", "fabric")
def ten_thousand_messages_both_ways_arrive_and_without_loss_nothing_is_sent_again(pair, build, driver):
    for counters in both_ways(pair, build, driver, 0, 10_000):
        # What libfabric's sockets hold while a process does not run is not ours to promise.
        demand = expect if driver == "fabric" else insist
        demand(counters["retransmits"] == 0, f"retransmissions without loss: {counters}")


@case("udp", "tcp", "fabric")
@cases.long_run("tcp")
def both_ways_at_once_neither_way_starves(pair, build, driver):
    for size in ("64K", "1M"):
        each, _ = both_ways_at_once.run(pair, build, driver, size, 3)
        there, back = map(sum, zip(*each))
        expect(min(there, back) >= 0.7 * max(there, back), f"{size}: {each}")


@case("udp", "fabric")
def thousands_of_messages_both_ways_arrive_through_1_percent_loss(pair, build, driver):
    sides = both_ways(pair, build, driver, 1, 5_000)
    expect(any(counters["retransmits"] > 0 for counters in sides), "nothing was lost: no test")


@case("udp", "fabric")
def thousands_of_messages_both_ways_arrive_through_5_percent_loss(pair, build, driver):
    both_ways(pair, build, driver, 5, 5_000)


@case("udp", "fabric")
def thousands_of_messages_both_ways_arrive_through_20_percent_loss(pair, build, driver):
    both_ways(pair, build, driver, 20, 3_000)


SHORT = 1_500  # messages where it is the place that is tested


@case("udp and fabric", "fabric and udp")
def a_thousand_messages_both_ways_arrive_where_each_end_has_its_driver(pair, build, driver):
    both_ways(pair, build, driver, 1, SHORT)


@case("udp", "tcp", family="ipv6")
def a_thousand_messages_both_ways_arrive_over_ipv6(pair, build, driver):
    both_ways(pair, build, driver, 1, SHORT)


@case("udp", "tcp", family="link-local")
def a_thousand_messages_both_ways_arrive_over_ipv6_without_a_router(pair, build, driver):
    both_ways(pair, build, driver, 0, SHORT)


@case("udp", mtu=1280)
def a_thousand_messages_both_ways_arrive_in_packets_of_1280(pair, build, driver):
    both_ways(pair, build, driver, 1, SHORT)


@case("udp", mtu=1280, family="ipv6")
def a_thousand_messages_both_ways_arrive_in_packets_of_1280_over_ipv6(pair, build, driver):
    both_ways(pair, build, driver, 1, SHORT)


@case("udp", mtu=9000)
def a_thousand_messages_both_ways_arrive_in_packets_of_9000(pair, build, driver):
    both_ways(pair, build, driver, 1, SHORT)


@case("udp", mtu=65535)
def a_thousand_messages_both_ways_arrive_in_packets_of_64_KiB(pair, build, driver):
    both_ways(pair, build, driver, 1, SHORT)


@case("udp", offloads=False)
def thousands_of_messages_both_ways_arrive_where_each_packet_is_lost_alone(pair, build, driver):
    both_ways(pair, build, driver, 5, 2 * SHORT)


@case("udp")
def a_thousand_messages_both_ways_arrive_when_bursts_are_switched_off(pair, build, driver):
    both_ways(pair, build, driver, 0, SHORT, PULLMAN_OFFLOADS=0)


@case("udp")
def messages_arrive_in_sockets_that_hold_hardly_anything(pair, build, driver):
    both_ways(pair, build, driver, 0, SHORT, "--largest", 200_000, PULLMAN_RECEIVE_BUFFER_BYTES=4096)


@case("udp")
def messages_arrive_although_the_link_was_down_and_a_filter_forbade_to_send(pair, build, driver):
    sides = two(pair, build, driver, "--send", 30_000, "--receive", 30_000)
    for side in sides:
        side.wait_for("met")
    for interrupt in (pair.cut, pair.forbid_sending):
        time.sleep(0.2)
        interrupt(1, True)
        time.sleep(0.3)
        interrupt(1, False)
    counters = [side.well()["counters"] for side in sides]
    expect(counters[1]["send_errors"] > 0, f"nothing was refused: no test: {counters}")


@case("tcp")
def messages_arrive_where_every_UDP_packet_is_filtered(pair, build, driver):
    both_ways(pair, build, driver, 100, SHORT)


@case("tcp")
def messages_arrive_although_segments_are_lost(pair, build, driver):
    pair.lose(2)
    for side in two(pair, build, driver, "--send", SHORT, "--receive", SHORT):
        side.well()


def interrupted(pair, build, driver, interrupt, *seconds):
    """Traffic with interruptions of so many seconds; both sides' counters."""
    sides = two(pair, build, driver, "--send", 15_000, "--receive", 15_000)
    for side in sides:
        side.wait_for("met")
    for length in seconds:
        time.sleep(0.2)
        interrupt(True)
        time.sleep(length)
        interrupt(False)
    return [side.well()["counters"] for side in sides]


@case("tcp")
def messages_arrive_although_connections_are_reset_under_way(pair, build, driver):
    counters = interrupted(pair, build, driver, lambda on: pair.reset_connections(1, on), 0.05, 0.05, 0.3)
    expect(any(c["retransmits"] > 0 for c in counters), f"nothing was lost: no test: {counters}")


@case("tcp")
@cases.long_run()
def messages_arrive_although_the_link_was_down_for_longer_than_a_connection_lives(pair, build, driver):
    counters = interrupted(pair, build, driver, lambda down: pair.cut(1, down), 0.3, 4)
    expect(any(c["retransmits"] > 0 for c in counters), f"no connection ended: no test: {counters}")


def through_a_narrow_path(place, build, driver):
    """How long packets are at the end, as both sides say: "1372 of 1472"."""
    sides = two(place, build, driver, "--send", SHORT, "--receive", SHORT)
    lines = [side.well() for side in sides]
    for line in lines:
        expect(line["counters"]["black_holes"] > 0, f"the path was not narrow: no test: {line}")
        expect(line["counters"]["black_holes"] < 10, f"the size that the path carries is not kept: {line}")
    return [line["packets"] for line in lines]


@case("udp", "fabric", kind=netns.Path, narrow=1400)
def messages_arrive_through_a_path_of_1400_whose_routers_say_so(place, build, driver):
    sizes = through_a_narrow_path(place, build, driver)
    if driver == "udp":
        expect(sizes == 2 * ["1372 of 1472"], f"what the routers say was not heard: packets of {sizes}")


@case("udp", "fabric", "udp and fabric", kind=netns.Path, narrow=1400, silent=True)
def messages_arrive_through_a_path_of_1400_whose_routers_say_nothing(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow=1280, family="ipv6")
def messages_arrive_over_ipv6_through_a_path_of_1280_whose_routers_say_so(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow=1280, family="ipv6", silent=True)
@cases.long_run()
def messages_arrive_over_ipv6_through_a_path_of_1280_whose_routers_say_nothing(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow=1400, mtu=9000, silent=True)
def messages_arrive_in_packets_of_9000_through_a_path_of_1400_that_says_nothing(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow=640, silent=True)
def messages_arrive_through_a_path_of_640_that_says_nothing(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow=1400, silent=True, offloads=False)
def messages_arrive_through_a_path_of_1400_that_says_nothing_without_offloads(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow="vxlan")
def messages_arrive_through_a_tunnel(place, build, driver):
    through_a_narrow_path(place, build, driver)


@case("udp", kind=netns.Path, narrow="vxlan", silent=True)
def messages_arrive_through_a_tunnel_whose_ends_say_nothing(place, build, driver):
    through_a_narrow_path(place, build, driver)


def narrowed_under_way(place, build, driver, narrow):
    sides = two(place, build, driver, "--send", 10 * SHORT, "--receive", 10 * SHORT)
    for side in sides:
        side.wait_for("met")
    time.sleep(0.3)
    narrow()
    for side in sides:
        counters = side.well()["counters"]
        expect(counters["black_holes"] > 0, f"the path was not narrow: no test: {counters}")


@case("udp", "fabric", kind=netns.Path, narrow=1500)
def messages_arrive_although_the_path_becomes_narrow_under_way(place, build, driver):
    narrowed_under_way(place, build, driver, lambda: place.set_narrow(1300))


@case("udp", kind=netns.Path, narrow=1500, silent=True)
def messages_arrive_although_the_path_becomes_narrow_under_way_and_says_nothing(place, build, driver):
    narrowed_under_way(place, build, driver, lambda: place.set_narrow(1300))


@case("udp", "fabric")
def messages_arrive_although_the_interfaces_become_narrow_under_way(pair, build, driver):
    narrowed_under_way(pair, build, driver, lambda: pair.set_mtu(1300))


@case("udp", "tcp")
@cases.long_run()
def a_program_that_polls_every_50_ms_gets_all_its_messages(pair, build, driver):
    options = ("--send", 300, "--receive", 300, "--largest", 65536)
    first = Soak(pair, build, 0, driver, "--poll-every-ms", 50, *options).wait_for("listening")
    second = Soak(pair, build, 1, driver, *options, address=address_of(pair, 0))
    first.well()
    second.well()


def status_after(pair, build, driver, harm):
    """What becomes of the operations with a peer to which that was done, soon after the bound."""
    timeout_ms = 1000
    # Slowly, so that the kill finds them in the middle however fast the machine is.
    first, second = two(pair, build, driver, "--poll-every-ms", 20, "--send", 300_000, "--receive",
                        300_000, "--largest", 10_000, PULLMAN_PEER_TIMEOUT_MS=timeout_ms)
    first.wait_for("met")
    second.wait_for("met")
    time.sleep(0.5)
    harmed = time.monotonic()
    harm(second)
    code, line = first.finish(60)
    took = time.monotonic() - harmed
    expect(code == 3, f"exit {code}: {json.dumps(line)}")
    # The bound, and as much again for a busy machine; sooner where the host says that nobody listens there.
    expect(took < 2 * timeout_ms / 1000 + 5, f"took {took:.1f} s")
    if second.program.poll() is None:
        kill(second)
    return line["status"]


@case("udp", "tcp", "fabric")
def a_killed_peer_is_out_of_reach_and_known_to_be_dead_where_the_kernel_says_so(pair, build, driver):
    status = status_after(pair, build, driver, kill)
    expect(status == "peer died" if driver == "udp" else status in ("peer died", "unreachable"), status)


@case("udp", family="ipv6")
def a_killed_peer_is_known_to_be_dead_over_ipv6(pair, build, driver):
    status = status_after(pair, build, driver, kill)
    expect(status == "peer died", status)


@case("udp")
def a_peer_whose_network_died_is_not_taken_for_dead(pair, build, driver):
    status = status_after(pair, build, driver, lambda _: pair.cut(1, True))
    expect(status == "unreachable", status)


@case("udp")
def a_peer_whose_packets_vanish_is_not_taken_for_dead(pair, build, driver):
    status = status_after(pair, build, driver, lambda _: pair.drop_udp(100))
    expect(status == "unreachable", status)


@case("udp")
def a_killed_peer_whose_host_says_nothing_is_just_unreachable(pair, build, driver):
    def kill_silently(peer):
        pair.forbid_sending(1, True)
        kill(peer)
    status = status_after(pair, build, driver, kill_silently)
    expect(status == "unreachable", status)


@case("udp", "tcp")
def a_peer_that_restarts_is_a_new_peer(pair, build, driver):
    endless = ("--send", 300_000, "--receive", 300_000, "--largest", 10_000)
    address = address_of(pair, 0)
    # The one that stays serves two peers in turn: the first fails, the second does the same again.
    stays = Soak(pair, build, 0, driver, "--rounds", 2, "--send", 500, "--receive", 500, "--largest",
                 10_000, PULLMAN_PEER_TIMEOUT_MS=3000).wait_for("listening")
    first = Soak(pair, build, 1, driver, "--poll-every-ms", 20, *endless, address=address,
                 PULLMAN_PEER_TIMEOUT_MS=3000)
    stays.wait_for("met")
    kill(first)
    second = Soak(pair, build, 1, driver, "--send", 500, "--receive", 500, "--largest", 10_000,
                  address=address, PULLMAN_PEER_TIMEOUT_MS=3000)
    second.well()
    stays.well()
    ended = [line for line in stays.lines() if line["event"] == "done"]
    expect(ended[0]["status"] in ("peer restarted", "peer died", "unreachable"), f"first: {json.dumps(ended[0])}")


def one_that_restarts_on_its_port_and_calls_nobody_is_found_out(pair, build, driver, **environment):
    first, second = two(pair, build, driver, "--poll-every-ms", 20, "--send", 300_000, "--receive", 300_000,
                        "--largest", 10_000, PULLMAN_PEER_TIMEOUT_MS=600_000, **environment)
    first.wait_for("met")
    second.wait_for("met")
    # Unheard, or the refusals of a host without the process end it before the new one is there.
    pair.forbid_sending(0, True)
    kill(first)
    anew = Soak(pair, build, 0, driver, **environment).wait_for("listening")
    pair.forbid_sending(0, False)
    code, line = second.finish(60)
    kill(anew)
    expect(code == 3 and line["status"] == "peer restarted", f"exit {code}: {json.dumps(line)}")


# Long before the bound: the new process says that it is another one when it is asked.
@case("udp", "tcp", "fabric")
def a_peer_that_restarts_on_its_port_and_calls_nobody_is_found_out(pair, build, driver):
    one_that_restarts_on_its_port_and_calls_nobody_is_found_out(pair, build, driver)


# Both of its NICs have that port: each says so.
@case("udp", kind=railnet.Rails)
def a_peer_of_two_nics_that_restarts_on_its_port_is_found_out(pair, build, driver):
    one_that_restarts_on_its_port_and_calls_nobody_is_found_out(pair, build, driver, PULLMAN_NICS="veth0,veth1")


@case("udp")
def noise_from_a_stranger_does_no_harm(pair, build, driver):
    options = ("--send", 3000, "--receive", 3000)
    first, second = two(pair, build, driver, *options)
    second.wait_for("listening")
    noises = [pair.start(1 - side, sys.executable, HERE / "noise.py", pair.hosts[side], 3,
                         *pair.udp_ports(side), stdout=subprocess.DEVNULL) for side in (0, 1)]
    lines = [first.well(), second.well()]
    for noise in noises:
        expect(noise.wait(30) == 0, "the noise maker failed")
    expect(sum(line["counters"]["dropped"] for line in lines) > 0, "no noise was heard: no test")


@case("udp", "tcp")
def what_was_accepted_is_delivered_by_an_orderly_close(pair, build, driver):
    receives = Soak(pair, build, 0, driver, "--send", 0, "--receive", 500, "--largest",
                    100_000).wait_for("listening")
    sends = Soak(pair, build, 1, driver, "--send", 500, "--receive", 0, "--largest", 100_000,
                 "--close-at-once", address=address_of(pair, 0))
    sends.well()
    receives.well()


# Of one processor. Asked is 1, and seen 0.1; the rest is for a busy machine.
MOST_IDLE_PERCENT = 5


def expect_idle(sleeper, *states):
    for state in states:
        line = sleeper.idle(state)
        print(f"    {state}, waiting idle: {line['processor_percent']:.3f} % of a processor")
        expect(line["status"] == "timed out" and line["took_s"] >= line["asked_s"], json.dumps(line))
        expect(line["processor_percent"] < MOST_IDLE_PERCENT, json.dumps(line))


def sleepers(pair, build, driver, *options):
    """One that is called and sleeps in a loop of its own, and one that calls, in wait(), and leaves first."""
    first = Sleeper(pair, build, 0, driver, "--own-loop", "--idle", 4, *options).wait_for("listening")
    second = Sleeper(pair, build, 1, driver, "--idle", 2, *options, address=address_of(pair, 0))
    return first, second


@case("udp", "tcp", "fabric")
@cases.long_run("tcp", "fabric")
def who_waits_idle_sleeps_and_wakes_when_a_message_comes(pair, build, driver):
    first, second = sleepers(pair, build, driver)
    lines = [first.well(), second.well()]
    expect_idle(first, "alone", "connected")
    expect_idle(second, "connected")
    expect(all(line["counters"]["retransmits"] == 0 for line in lines), json.dumps(lines))


@case("udp")
def a_sleeper_wakes_to_send_again_what_was_lost(pair, build, driver):
    pair.drop_udp(20)
    first, second = sleepers(pair, build, driver, "--rounds", 100, "--pause-ms", 2)
    lines = [first.well(), second.well()]
    expect(sum(line["counters"]["retransmits"] for line in lines) > 0, "nothing was lost: no test")


@case("udp")
def a_sleeper_notices_that_its_peer_was_killed(pair, build, driver):
    first = Sleeper(pair, build, 0, driver, "--idle", 2, "--rounds", 1).wait_for("listening")
    second = Sleeper(pair, build, 1, driver, "--rounds", 2, "--pause-ms", 0,
                     address=address_of(pair, 0), PULLMAN_PEER_TIMEOUT_MS=2000)
    first.wait_for("played")
    kill(first)
    code, line = second.finish(60)
    expect(code == 3 and line["status"] == "peer died", f"exit {code}: {json.dumps(line)}")


@case("udp")
def a_sleeper_that_calls_nobody_gives_up_in_time_and_costs_nothing(pair, build, driver):
    caller = Sleeper(pair, build, 1, driver, "--idle", 1, address=address_of(pair, 0),
                     PULLMAN_PEER_TIMEOUT_MS=2000)
    code, line = caller.finish(60)
    expect(code == 3 and line["status"] == "unreachable", f"exit {code}: {json.dumps(line)}")
    expect(line["processor_s"] < 0.5, f"used {line['processor_s']} s: {json.dumps(line)}")


@case("udp")
def who_sends_from_a_static_object_at_the_very_end_may(pair, build, driver):
    program = pair.start(0, build / "test/kernel/late-exit",
                         env={**os.environ, "PULLMAN_DRIVER": driver, "PULLMAN_NICS": pair.hosts[0],
                              "PULLMAN_PACKET_BYTES": "1472"})
    expect(program.wait(PATIENCE) == 0, f"exit {program.returncode}")


@case("udp")
def messages_arrive_where_the_nic_takes_no_checksums_off_us(pair, build, driver):
    pair.forbid_checksum_offload()
    sides = both_ways(pair, build, driver, 0, SHORT)
    # Before Linux 6.11 bursts are refused there (EIO), once for each socket; since, the kernel makes up for it.
    for counters in sides:
        expect(counters["bursts_refused"] + counters["bursts_sent"] > 0, json.dumps(counters))
        expect(counters["send_errors"] == 0, json.dumps(counters))


@case("udp", mtu=9000)
def a_small_receive_buffer_is_told_once_with_the_sysctl_that_mends_it(pair, build, driver):
    most = int(pathlib.Path("/proc/sys/net/core/rmem_max").read_text())
    if most >= 16 << 20:
        print("    the system grants all that is useful: nothing to see")
        return
    # Without the right to more than the sysctl allows.
    command = ["setpriv", "--bounding-set=-net_admin", "--inh-caps=-net_admin", build / "test/kernel/sleeper",
               "--idle", 0, "--rounds", 0]
    variables = {"PULLMAN_DRIVER": driver, "PULLMAN_NICS": pair.hosts[0], "PULLMAN_RECEIVE_PACKETS": "65536"}
    for more, told in (({}, 1), ({"PULLMAN_RECEIVE_BUFFER_BYTES": "100000"}, 0)):  # that was wanted so
        program = subprocess.run(pair.command(0, *command), env={**os.environ, **variables, **more}, check=False,
                                 capture_output=True, text=True, timeout=60)
        expect(program.returncode == 0, program.stderr)
        expect(program.stderr.count("sysctl -w net.core.rmem_max=") == told, program.stderr)


def offloads_shown(pair, build):
    info = subprocess.run(pair.command(0, build / "tools/pullman-info", "--format", "json"), check=False,
                          capture_output=True, text=True, timeout=60)
    shown = [nic["offloads"] for nic in json.loads(info.stdout)["nics"]
             if nic["driver"] == "udp" and nic["address"] == pair.hosts[0]]
    expect(len(shown) == 1, info.stdout + info.stderr)
    return shown[0]


@case("udp")
def pullman_info_says_what_the_kernel_does_for_bursts(pair, build, _):
    expect("UDP_SEGMENT" in offloads_shown(pair, build), "with offloads")
    expect("gso off" not in offloads_shown(pair, build), "with offloads")


@case("udp", offloads=False)
def pullman_info_says_that_offloads_are_switched_off(pair, build, _):
    expect("gso off" in offloads_shown(pair, build), "without offloads")


def sent_by_the_device(pair, side):
    """Packets and bytes; a burst is one packet there."""
    folder = "/sys/class/net/veth0/statistics"
    said = subprocess.run(pair.command(side, "cat", f"{folder}/tx_packets", f"{folder}/tx_bytes"), check=True,
                          capture_output=True, text=True, timeout=60)
    return [int(word) for word in said.stdout.split()]


@case("udp")
def bare_datagrams_leave_in_bursts_unless_offloads_are_off(pair, build, driver):
    for offloads in ("1", "0"):
        environment = {**os.environ, "PULLMAN_OFFLOADS": offloads}
        common = [build / "bench/pullman-perf", "--raw", "--driver", driver, "--patience", 20]
        server = pair.start_server(0, *common, env=environment)
        before = sent_by_the_device(pair, 1)
        client = pair.start(1, *common, "--test", "bandwidth", "--size", "1M", "--iterations", 8, pair.hosts[0],
                            env=environment, stdout=subprocess.DEVNULL)
        expect(client.wait(60) == 0 and server.wait(60) == 0, netns.text_of(server))
        packets, sent = (after - first for after, first in zip(sent_by_the_device(pair, 1), before))
        expect((sent > 4000 * packets) == (offloads == "1"), f"offloads {offloads}: {sent} bytes in {packets} packets")


def kill(soak):
    # `ip netns exec` becomes the program it runs, so this is the program itself.
    soak.program.send_signal(signal.SIGKILL)
    soak.program.wait()


if __name__ == "__main__":
    sys.exit(cases.main(CASES, netns.Pair, netns.possible()))
