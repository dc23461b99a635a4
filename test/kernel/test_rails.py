"""Rails on a real kernel: two processes, two namespaces, two links or more; cut, mended, drained.

What is expected are states, reasons and counts; never how long something took.
"""

import functools
import json
import os
import subprocess
import tempfile
import time

import pytest

import cases
import netns
import railnet
from verified_stream import MEGABITS, PORT, WRONG, changes_of, end, expect_returned, rail_by, start, stream

pytestmark = pytest.mark.waits

case = functools.partial(cases.case, kind=railnet.Rails, megabits=MEGABITS)


@case()
def test_a_stream_uses_both_rails(place, build):
    result = stream(place, build, [], 2)
    for nic in ("veth0", "veth1"):
        assert rail_by(result, nic)["bytes"] > 0, json.dumps(result)


@case(count=4)
def test_a_stream_uses_four_rails(place, build):
    result = stream(place, build, [], 2)
    assert len(result["rails"]) == 4 and all(rail["bytes"] > 0 for rail in result["rails"]), json.dumps(result)


@case(megabits=(200, 50))
def test_unequal_rails_both_carry_and_the_faster_one_more(place, build):
    result = stream(place, build, [], 3)
    fast, slow = rail_by(result, "veth0")["bytes"], rail_by(result, "veth1")["bytes"]
    assert fast > slow > 0, json.dumps(result)


@case(megabits=None)
def test_short_messages_pass_over_two_healthy_rails(place, build):
    result = end(*start(place, build, "--test", "latency", "--size", 64, "--iterations", 2000, "--check"))
    assert result["messages"] == 4000 and result["errors"] == 0, json.dumps(result)


@case()
def test_a_rail_whose_address_is_taken_away_is_left_and_used_again_and_says_why(place, build):
    server, client = start(place, build, "--test", "failover", "--size", "16K", "--duration", 5)
    limit = time.monotonic() + 30
    while place.bytes_sent(1, 1) < 1_000_000:  # a program that waits for a processor begins late
        assert client.poll() is None and time.monotonic() < limit, "the stream does not begin"
        time.sleep(0.01)
    for words in (("del", 1.5), ("add", 1)):
        time.sleep(words[1])
        netns.run("ip", "-n", place.names[1], "addr", words[0], place.host(1, 1) + "/24", "dev", "veth1")
    result = end(server, client)
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    assert ("down", "the address is gone") in changes_of(result, "veth1"), json.dumps(result)
    expect_returned(result, "veth0", "veth1")


@case()
@pytest.mark.long
def test_a_rail_whose_link_goes_down_is_left_and_used_again(place, build):
    for nic in ("veth0", "veth1"):
        result = stream(place, build, [f"{nic}@1-2"], 5)
        assert ("down", "the NIC has no link") in changes_of(result, nic), json.dumps(result)
        expect_returned(result, "veth0", "veth1")


@case()
def test_a_program_is_told_of_each_rail_that_comes_and_goes(place, build):
    # Twice: a rail that has just been left for silence, as happens where processors are taken away, keeps that reason.
    result = stream(place, build, ["veth1@1-2", "veth1@3-4"], 6)
    told = [event for event in result["rail_events"] if event["nic"] == "veth1"]
    # That it came when they met the warm-up has heard. What is told adds up, however often it was asked for.
    changes = sum(event["changes"] for event in told)
    assert changes >= 2 and told[-1]["carries"], json.dumps(result["rail_events"])
    assert changes == 2 * rail_by(result, "veth1")["times_left"], json.dumps(result)
    assert any(event["reason"] == "the NIC has no link" for event in told) or len(told) == 1, json.dumps(told)


@case()
@pytest.mark.long
def test_a_rail_that_failed_stays_out_where_rails_are_sticky(place, build):
    for cut in ("veth1@1-2", "veth0:silent@1-2"):
        nic = cut.split(":")[0].split("@")[0]
        result = end(*start(place, build, "--test", "failover", "--size", "16K", "--duration", 5, "--cut", cut,
                            PULLMAN_STICKY_RAILS="1"))
        assert all(result[key] == 0 for key in WRONG), json.dumps(result)
        rail = rail_by(result, nic)
        assert rail["state"] == "drained" and rail["times_left"] == 1, json.dumps(result)
        assert rail["reason"] != "drained by hand", json.dumps(result)


@case(count=8, megabits=100)
def test_a_stream_uses_eight_rails_and_survives_cuts_of_seven(place, build):
    cuts = [f"veth{n}{':silent' if n % 2 else ''}@{1 + n / 10:.1f}-{2 + n / 10:.1f}" for n in range(7)]
    result = end(*start(place, build, "--test", "failover", "--size", "64K", "--duration", 5, "--cut", ",".join(cuts),
                        PULLMAN_MAX_NICS="8"))
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    assert len(result["rails"]) == 8 and all(rail["bytes"] > 0 for rail in result["rails"]), json.dumps(result["rails"])
    assert all(rail_by(result, f"veth{n}")["times_left"] > 0 for n in range(7)), json.dumps(result["rails"])
    expect_returned(result, *[f"veth{n}" for n in range(8)])


@case(count=8, megabits=None)
def test_four_of_eight_nics_are_used_unless_more_are_asked_for(place, build):
    result = end(*start(place, build, "--test", "failover", "--size", "16K", "--duration", 1))
    assert len(result["rails"]) == 4, json.dumps(result["rails"])


def silenced(place, build, kind):
    result = stream(place, build, [f"veth1:{kind}@1-2", f"veth0:{kind}@4-5"], 8)
    for nic in ("veth0", "veth1"):
        left = [reason for state, reason in changes_of(result, nic) if state == "down"]
        assert left, f"{nic} was not left: {json.dumps(result)}"
        assert set(left) & {"silent while another rail answered", "silent at the other end"}, f"{nic}: {left}"
    expect_returned(result, "veth0", "veth1")


@case()
def test_a_rail_that_swallows_everything_is_left_and_used_again(place, build):
    silenced(place, build, "silent")


@case()
@pytest.mark.long
def test_a_rail_that_no_longer_hears_is_left_by_both_and_used_again(place, build):
    silenced(place, build, "deaf")


@case()
@pytest.mark.long
def test_a_rail_that_no_longer_speaks_is_left_by_both_and_used_again(place, build):
    silenced(place, build, "mute")


@case()
@pytest.mark.long
def test_a_silent_rail_is_suspected_before_it_is_left(place, build):
    cuts = [f"veth{i % 2}:silent@{1 + 2 * i}-{1.5 + 2 * i}" for i in range(4)]
    result = stream(place, build, cuts, 10)
    seen = changes_of(result, "veth0") + changes_of(result, "veth1")
    assert any(state == "suspect" for state, _ in seen), f"{seen}"
    assert any(state == "down" for state, _ in seen), f"{seen}"


@case()
@pytest.mark.long
def test_a_rail_whose_link_flaps_ten_times_a_second_is_not_taken_back_each_time(place, build):
    cuts = [f"veth1@{1 + i / 10:.2f}-{1.05 + i / 10:.2f}" for i in range(30)]
    result = stream(place, build, cuts, 12)
    seen = changes_of(result, "veth1")
    states = [state for state, _ in seen]
    returns = sum(before in ("down", "probing") and now == "up" for before, now in zip(states, states[1:]))
    assert ("down", "the NIC has no link") in seen and 0 < returns < len(cuts) / 2, f"{returns} times: {seen}"
    expect_returned(result, "veth0", "veth1")


@case()
@pytest.mark.long
def test_a_rail_that_is_silent_again_and_again_is_kept_out_for_a_while(place, build):
    cuts = [f"veth1:silent@{1 + i / 2:.2f}-{1.2 + i / 2:.2f}" for i in range(12)]
    result = stream(place, build, cuts, 14)
    seen = changes_of(result, "veth1")
    assert ("probing", "went down too often lately") in seen, f"it was not kept out: {seen}"
    expect_returned(result, "veth0", "veth1")


@case()
@pytest.mark.long
def test_messages_wait_while_all_rails_are_down(place, build):
    for kind in ("", ":silent"):
        result = stream(place, build, [f"veth0{kind}@1-2.5", f"veth1{kind}@1.2-2.3"], 5)
        expect_returned(result, "veth0", "veth1")


@case()
def test_all_rails_down_for_too_long_is_a_peer_out_of_reach(place, build):
    server, client = start(place, build, "--test", "failover", "--size", "16K", "--duration", 60,
                           PULLMAN_PEER_TIMEOUT_MS="1000", PULLMAN_CLOSE_TIMEOUT_MS="1000")
    time.sleep(1)
    for number in (0, 1):
        place.silence(number)
    try:
        _, errors = client.communicate(timeout=60)
        server.wait(60)
    except subprocess.TimeoutExpired:
        pytest.fail("hangs")
    assert client.returncode == 1 and len(errors) > 10, f"{client.returncode} {errors}"


@case()
def test_twenty_random_cuts_under_load_lose_nothing(place, build):
    for size in ("64", "100K"):
        cuts = [f"veth{i % 2}{kind}@{0.5 + 0.3 * i:.2f}-{0.65 + 0.3 * i + 0.1 * (i % 3):.2f}"
                for i, kind in enumerate(["", ":silent", ":deaf", "", ":mute"] * 2)]
        stream(place, build, cuts, 5, size)


@case()
@pytest.mark.long
def test_a_server_whose_links_are_cut_loses_nothing_either(place, build):
    server, client = start(place, build, "--test", "failover", "--size", "16K", "--duration", 6)
    for number in (0, 1):
        time.sleep(1)
        place.cut(0, True, number)
        time.sleep(0.5)
        place.cut(0, False, number)
    result = end(server, client)
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    # Since the two met: the first cut may have been before the stream.
    assert all(rail["times_left"] > 0 for rail in result["server_rails"]), f"no test: {json.dumps(result)}"


@case()
def test_a_rail_that_is_drained_by_hand_carries_nothing_until_it_is_restored(place, build):
    program = build / "examples/rail_cut"
    server = place.start_server(0, program, env={**os.environ, "PULLMAN_PORT": str(PORT)})
    client = place.start(1, program, f"{place.hosts[0]}:{PORT}", 6, "veth1", stdout=subprocess.PIPE, text=True)
    try:
        output, _ = client.communicate(timeout=100)
        code = server.wait(60)
    except subprocess.TimeoutExpired:
        pytest.fail("hangs")
    assert client.returncode == 0 and code == 0, output + netns.text_of(server)
    said = [line for line in output.splitlines() if "veth1" in line]
    drained = [i for i, line in enumerate(said) if ": drained, drained by hand" in line]
    assert len(drained) == 1, output
    assert any(": up, it answers" in line for line in said[drained[0]:]), f"it was not used again: {output}"
    assert " 0 wrong" in netns.text_of(server), netns.text_of(server)


def called_by_the_second_nic(place, build, cut):
    """The first rail is cut; from the second NIC there is a way to the address that is called."""
    client, server = place.names[1], place.names[0]
    for name in (client, server):
        for device in ("all", *place.devices):
            netns.run("ip", "netns", "exec", name, "sysctl", "-qw", f"net.ipv4.conf.{device}.rp_filter=0")
    netns.run("ip", "-n", client, "rule", "add", "from", place.host(1, 1), "lookup", "100")
    netns.run("ip", "-n", client, "route", "add", place.host(0), "via", place.host(0, 1), "dev", "veth1", "table", "100")
    result = end(*start(place, build, "--test", "latency", "--size", 64, "--iterations", 200, "--check", between=cut))
    assert result["messages"] == 400 and result["errors"] == 0, json.dumps(result)


@case(megabits=None)
def test_a_call_whose_first_rail_swallows_everything_is_made_by_the_second_nic(place, build):
    called_by_the_second_nic(place, build, lambda: place.silence(0))


@case(megabits=None)
def test_a_call_whose_first_rail_swallows_the_answers_is_made_by_the_second_nic(place, build):
    called_by_the_second_nic(place, build, lambda: place.silence(0, (1,)))


@case(megabits=None)
def test_a_call_whose_first_nic_has_no_link_is_made_by_the_second(place, build):
    called_by_the_second_nic(place, build, lambda: place.cut(1, True))


@case(megabits=None)
def test_a_program_begins_without_the_nic_that_is_named_and_down(place, build):
    place.cut(1, True, 1)
    server, client = start(place, build, "--test", "latency", "--size", 64, "--iterations", 200,
                           PULLMAN_NICS="veth0,veth1")
    output, errors = client.communicate(timeout=150)
    assert client.returncode == 0 and server.wait(60) == 0, f"{errors}{netns.text_of(server)}"
    assert json.loads(output.splitlines()[-1])["messages"] == 400, output
    assert "NIC 'veth1' is down" in errors and "it is waited for" in errors, f"nobody said so: {errors}"


class Passed:
    """What comes to the server's host before any filter, by protocol."""

    def __init__(self, place):
        self.place = place
        self.nft("add table netdev passed; add chain netdev passed in { type filter hook ingress device veth0 priority "
                 "-10; }; add rule netdev passed in ip protocol udp counter; add rule netdev passed in ip protocol tcp "
                 "counter")

    def nft(self, *words):
        return netns.run("ip", "netns", "exec", self.place.names[0], "nft", *words)

    def bytes_of(self, protocol):
        rules = [entry["rule"]["expr"] for entry in json.loads(self.nft("-j", "list", "table", "netdev", "passed"))["nftables"]
                 if "rule" in entry]
        return rules[("udp", "tcp").index(protocol)][-1]["counter"]["bytes"]

    def wait_for(self, protocol, count):
        """Until so many more bytes have come."""
        least, patience_ends = self.bytes_of(protocol) + count, time.monotonic() + 60
        while self.bytes_of(protocol) < least:
            assert time.monotonic() < patience_ends, f"fewer than {count} bytes of {protocol} passed"
            time.sleep(0.05)


def stream_over_the_last_resort(place, build, size, block):
    """A verified stream over one NIC and TCP beside it; `block` begins and ends a time without datagrams."""
    passed = Passed(place)
    server, client = start(place, build, "--test", "failover", "--size", size, "--duration", 20,
                           PULLMAN_LAST_RESORT="1")
    passed.wait_for("udp", 1000)
    time.sleep(3)  # a second of warm-up, which is not counted
    passed.wait_for("udp", 300_000)
    block(True)
    passed.wait_for("tcp", 300_000)
    block(False)
    passed.wait_for("udp", 100_000)
    result = end(server, client)
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    datagrams, streams = result["rails"]
    assert not datagrams["stream"] and streams["stream"], json.dumps(result)
    states = [change["state"] for change in result["changes"] if change["rail"] == datagrams["rail"]]
    assert "down" in states, f"datagrams passed all the time: no test: {json.dumps(result)}"
    assert streams["bytes"] > 100_000, f"nothing went on over TCP: {json.dumps(result)}"
    assert datagrams["state"] in ("up", "suspect"), f"it did not come back to datagrams: {json.dumps(result)}"


@case(count=1)
def test_a_stream_goes_on_over_the_last_resort_while_datagrams_are_swallowed_and_comes_back(place, build):
    def block(yes):
        for side in (0, 1):
            place.drop(0, side, "ip protocol udp" if yes else None)
    stream_over_the_last_resort(place, build, "16K", block)


@case(count=1)
@pytest.mark.long
def test_a_stream_goes_on_over_the_last_resort_while_datagrams_are_swallowed_one_way_and_comes_back(place, build):
    stream_over_the_last_resort(place, build, "16K", lambda yes: place.drop(0, 0, "ip protocol udp" if yes else None))


@case(count=1)
@pytest.mark.long
def test_a_stream_goes_on_over_the_last_resort_while_a_filter_rejects_datagrams_and_comes_back(place, build):
    def block(yes):
        for name in place.names:
            netns.run("ip", "netns", "exec", name, "nft", "add table inet filtered; delete table inet filtered")
            if yes:
                netns.run("ip", "netns", "exec", name, "nft",
                          "add table inet filtered; add chain inet filtered in { type filter hook input priority 0; }; "
                          "add rule inet filtered in meta l4proto udp reject")
    stream_over_the_last_resort(place, build, "100K", block)


def peer_info(place, build):
    """What pullman-info says of a program that runs in the other namespace, and its exit code."""
    server = place.start_server(0, build / "bench/pullman-perf", "--port", PORT)
    info = subprocess.run(place.command(1, build / "tools/pullman-info", "--format", "json", "--peer",
                                        f"{place.hosts[0]}:{PORT}"), capture_output=True, text=True, timeout=60, check=False)
    assert server.poll() is None, f"the server did not survive being asked: {netns.text_of(server)}"
    assert info.stdout.startswith("{"), info.stdout + info.stderr
    return json.loads(info.stdout), info.returncode


@case()
def test_pullman_info_shows_the_rails_to_a_program_that_runs_and_why_these(place, build):
    said, code = peer_info(place, build)
    assert [(rail["nic"], rail["state"]) for rail in said["rails"]] == [("veth0", "up"), ("veth1", "up")], (
        json.dumps(said))
    assert code == 0 and said["pairing"].count("\n") >= 2, json.dumps(said)


@case()
def test_pullman_info_shows_the_rail_that_does_not_work(place, build):
    place.silence(1, (0,))
    said, code = peer_info(place, build)
    assert [(rail["nic"], rail["state"]) for rail in said["rails"]] == [("veth0", "up"), ("veth1", "down")], (
        json.dumps(said))
    assert code == 1, json.dumps(said)


@case(count=3)
def test_one_row_says_how_a_rail_is_and_what_the_last_check_found(place, build):
    place.drop(1, 0, "ip length > 1000")
    said, code = peer_info(place, build)
    seen = [(rail["nic"], rail["state"], rail["finding"]) for rail in said["rails"]]
    assert seen == [("veth0", "up", "fine"), ("veth1", "up", "large lost"), ("veth2", "up", "fine")], json.dumps(said)
    assert all(0 <= rail["checked_ms_ago"] < 60_000 for rail in said["rails"]), json.dumps(said)
    assert "carries messages" in said["rails"][1]["verdict"] and "MTU" in said["rails"][1]["verdict"] and code == 1, (
        json.dumps(said))
    place.drop(2, 1, "ip protocol udp")
    text, code = check(place, build, "--format", "json")
    rows = [[(rail["nic"], rail["finding"]) for rail in peer["rails"]] for peer in json.loads(text)["peers"]]
    assert rows == [[("veth0", "fine"), ("veth1", "large lost"), ("veth2", "one way there")]] and code == 1, text
    states = {rail["nic"]: rail["state"] for rail in json.loads(text)["peers"][0]["rails"]}
    assert states["veth0"] == "up" and states["veth2"] in ("down", "probing", "suspect"), text


def check(place, build, *options, count=1):
    """What pullman-info finds that checks the programs in the other namespace, one per port, and its exit code."""
    ports = [PORT + 10 * number for number in range(count)]
    for port in ports:
        place.start_server(0, build / "bench/pullman-perf", "--port", port)
    addresses = [f"{place.hosts[0]}:{port}" for port in ports]
    info = subprocess.run(place.command(1, build / "tools/pullman-info", *options, "--check", *addresses),
                          capture_output=True, text=True, timeout=100, check=False,
                          env={**os.environ, **place.environment})
    return info.stdout + info.stderr, info.returncode


def found(text):
    """(NIC, finding) of each rail of each peer."""
    assert text.startswith("{"), text
    return [[(rail["nic"], rail["finding"]) for rail in peer["rails"]] for peer in json.loads(text)["peers"]]


@case(count=3)
def test_a_check_finds_all_rails_fine(place, build):
    text, code = check(place, build, "--format", "json", count=2)
    assert found(text) == [[(f"veth{n}", "fine") for n in range(3)]] * 2, text
    assert code == 0, text


@case(count=4)
def test_a_check_finds_what_each_rail_loses(place, build):
    place.drop(1, 0, "ip length > 1000")
    place.drop(2, 1, "ip protocol udp")  # not ARP: without it nothing passes either way
    place.drop(3, 0, "ip protocol udp")
    text, code = check(place, build, "--format", "json")
    assert found(text) == [[("veth0", "fine"), ("veth1", "large lost"), ("veth2", "one way there"),
                            ("veth3", "one way back")]], (
        text)
    assert code == 1, text


@case()
def test_the_map_of_a_job_says_who_cannot_be_reached(place, build):
    with tempfile.NamedTemporaryFile(mode="r") as file:
        nobody = f"{place.hosts[0]}:{PORT + 1000}"
        place.silence(1)
        text, code = check(place, build, "--map", file.name, "--check", nobody)
        said = json.loads(file.read())
    assert code == 1 and "not reached" in text and "unreachable" in text, text
    assert said["unreached"] == [nobody] and not said["fine"], json.dumps(said)
    assert found(json.dumps(said)) == [[], [("veth0", "fine"), ("veth1", "unreachable")]], json.dumps(said)
