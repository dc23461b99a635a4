"""The programs and examples, as a user runs them, on the loopback."""

import functools
import hashlib
import json
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

import pytest

import cases
import netns

TOOLS = pathlib.Path(__file__).resolve().parent.parent.parent / "tools"
PORT = 7300
KEYS = ["test", "driver", "raw", "size", "messages", "p50_us", "p90_us", "p99_us", "max_us", "mb_per_s",
        "messages_per_s", "retransmits", "spurious_retransmits", "errors", "send_errors", "receive_overflows",
        "bursts_sent", "bursts_received", "bursts_refused"]
FAILOVER_KEYS = ["longest_gap_ms", "reinstated_ms", "never_reinstated", "lost", "duplicated", "misordered", "corrupted",
                 "sent_twice", "rails", "server_rails", "cuts", "changes", "rail_events", "began_ns", "clocks_differ_by_us"]
case = functools.partial(cases.case, kind=netns.Loopback)


def finish(program, seconds=60):
    """Its exit code; a program that hangs is a failure."""
    try:
        return program.wait(seconds)
    except subprocess.TimeoutExpired:
        pytest.fail(f"hangs: {' '.join(map(str, program.args))}")


def processor_seconds(pid):
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def perf(place, build, *options):
    """Server and client of pullman-perf; the rows of the client's JSON."""
    program = build / "bench/pullman-perf"
    driver = options[options.index("--driver"):][:2] if "--driver" in options else ()
    both = [option for option in options if option in ("--raw", "--check")] + list(driver)
    both += ["--sleep", "1"] if "--sleep" in options else []
    common = ["--nic", "lo", "--port", PORT, "--patience", 20]
    server = place.start_server(0, program, *common, *both)
    client = place.start(1, program, *common, "--format", "json", *options, "127.0.0.1",
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    output, errors = client.communicate(timeout=100)
    assert client.returncode == 0, f"client: {errors}\n{netns.text_of(server)}"
    assert finish(server) == 0, f"server: {netns.text_of(server)}"
    rows = [json.loads(line) for line in output.splitlines()]
    keys = KEYS + (FAILOVER_KEYS if "failover" in options else ["rails"] if "--rails" in options else [])
    assert all(list(row) == keys for row in rows), f"keys differ: {rows[:1]}"
    return rows


@case("udp", "tcp", "fabric")
def test_perf_measures_latency_over_a_range_of_sizes(place, build, driver):
    rows = perf(place, build, "--driver", driver, "--size", "0..64K", "--iterations", "50", "--check")
    assert [row["size"] for row in rows] == [0] + [1 << i for i in range(17)], f"{rows}"
    for row in rows:
        assert row["errors"] == 0 and row["messages"] == 100, f"{row}"
        assert 0 < row["p50_us"] <= row["p90_us"] <= row["p99_us"] <= row["max_us"], f"{row}"


@case("udp", "tcp", "fabric")
def test_perf_measures_streams_one_way_and_both_ways(place, build, driver):
    for test, messages in (("bandwidth", 200), ("bidirectional", None)):
        row, = perf(place, build, "--driver", driver, "--test", test, "--size", "100K", "--iterations", "200", "--check")
        assert row["test"] == test and row["errors"] == 0 and row["mb_per_s"] > 0, f"{row}"
        assert messages is None or row["messages"] == messages, f"{row}"


@case("udp", "tcp", "fabric")
def test_perf_measures_rate_and_counts_a_broken_window(place, build, driver):
    row, = perf(place, build, "--driver", driver, "--test", "rate", "--size", "64", "--window", "16", "--iterations", "1001",
                "--check")
    assert row["messages"] == 1001 and row["errors"] == 0 and row["messages_per_s"] > 0, f"{row}"


@case("udp", "fabric")
@pytest.mark.long("fabric")
def test_perf_measures_bare_datagrams_in_every_test(place, build, driver):
    for test in ("latency", "bandwidth", "bidirectional", "rate"):
        rows = perf(place, build, "--driver", driver, "--raw", "--test", test, "--size", "1..64K", "--duration", "0.05")
        assert len(rows) == 17 and all(row["raw"] for row in rows), f"{rows}"
        assert rows[6]["messages"] > 0, f"{rows[6]}"


@case("udp", "tcp", "fabric")
def test_perf_streams_verified_messages_and_counts_what_went_wrong(place, build, driver):
    with tempfile.TemporaryDirectory() as name:
        prefix = pathlib.Path(name) / "failover"
        for size in ("16", "1M"):
            row, = perf(place, build, "--driver", driver, "--test", "failover", "--size", size, "--duration", "0.5",
                        "--output", prefix)
            counts = [row[key] for key in ("lost", "duplicated", "misordered", "corrupted", "errors")]
            assert counts == [0] * 5 and row["messages"] > 0 and row["longest_gap_ms"] > 0, f"{row}"
            assert row["reinstated_ms"] is None and row["cuts"] == [] and len(row["rails"]) == 1, f"{row}"
        lines = prefix.with_suffix(".csv").read_text().splitlines()
        assert lines[0].startswith("ms,mb_per_s,longest_gap_ms") and len(lines) > 10, f"{lines[:3]}"
        assert prefix.with_suffix(".svg").read_text().endswith("</svg>\n"), "the drawing"


@case()
def test_perf_shows_rails_if_told_to(place, build):
    row, = perf(place, build, "--iterations", "10", "--rails")
    assert [rail["state"] for rail in row["rails"]] == ["up"], f"{row}"


@case()
def test_perf_says_which_driver_auto_came_to(place, build):
    row, = perf(place, build, "--iterations", "10", "--driver", "auto")
    assert row["driver"] in ("udp", "fabric"), f"{row}"


@case()
def test_perf_counts_what_the_sockets_did(place, build):
    row, = perf(place, build, "--driver", "udp", "--test", "bandwidth", "--size", "1M", "--iterations", "50")
    assert row["bursts_refused"] == 0 and row["send_errors"] == 0 and row["receive_overflows"] >= 0, f"{row}"


@case("udp", "tcp", "fabric")
def test_perf_sleeps_between_messages_if_told_to(place, build, driver):
    for test in ("latency", "bidirectional", "rate"):
        row, = perf(place, build, "--driver", driver, "--sleep", "1", "--test", test, "--iterations", "2000", "--check")
        assert row["errors"] == 0 and row["messages"] >= 2000, f"{row}"


@case()
def test_perf_refuses_options_that_make_no_sense(place, build):
    for options in (["--size", "4..1"], ["--size", "3X"], ["--window", "0"], ["--test", "speed"],
                    ["--test", "16"], ["--format", "7"], ["--duration", "nan"], ["--patience", "nan"], [""],
                    ["--cut", "lo@1"], ["--test", "failover", "--raw"],
                    ["--test", "failover", "--size", "8", "127.0.0.1"],
                    ["--test", "failover", "--cut", "nonesuch0@1", "127.0.0.1"],
                    ["--test", "failover", "--cut", "lo@2-1", "127.0.0.1"],
                    ["--test", "failover", "--cut", "lo@1,lo:deaf@2", "127.0.0.1"],
                    ["--test", "failover", "--cut", "lo;x@1", "127.0.0.1"], ["--nic", "nonesuch0"], ["--raw", "--driver", "nonesuch"]):
        run = subprocess.run([build / "bench/pullman-perf", *options], capture_output=True, text=True,
                             timeout=30, check=False)
        assert run.returncode not in (0, -signal.SIGABRT) and len(run.stderr) > 10, (
            f"{options}: {run.returncode} {run.stderr}")


@case()
def test_a_perf_server_nobody_calls_ends_with_a_sentence(place, build):
    for more in ([], ["--raw"]):
        server = place.start_server(0, build / "bench/pullman-perf", "--nic", "lo", "--port", PORT,
                                    "--patience", 0.5, *more)
        assert finish(server, 20) == 1, "exit code"
        assert "nothing was heard" in netns.text_of(server), netns.text_of(server)


@case()
def test_a_perf_client_that_no_server_answers_is_told_what_to_look_for(place, build):
    environment = {**os.environ, "PULLMAN_PEER_TIMEOUT_MS": "500"}
    run = subprocess.run([build / "bench/pullman-perf", "--nic", "lo", "--driver", "udp", "--port", str(PORT), "127.0.0.1"],
                         capture_output=True, text=True, timeout=30, check=False, env=environment)
    assert run.returncode == 1 and "--nic lo" in run.stderr and "--driver udp" in run.stderr, (
        f"{run.returncode} {run.stderr}")


@case()
def test_a_perf_client_that_has_no_way_to_the_server_says_so_at_once(place, build):
    run = subprocess.run([build / "bench/pullman-perf", "--nic", "127.0.0.1", "--driver", "udp", "::1"],
                         capture_output=True, text=True, timeout=30, check=False)
    assert run.returncode == 1 and "no way to [::1]:7100" in run.stderr, f"{run.returncode} {run.stderr}"


@case()
def test_perf_takes_the_address_that_its_server_prints(place, build):
    for driver in ("udp", "tcp"):
        program = build / "bench/pullman-perf"
        common = ["--nic", "lo", "--driver", driver]
        server = place.start_server(0, program, *common, env={**os.environ, "PULLMAN_PORT": "0"})
        address = netns.text_of(server).split("serving one client at ")[1].split()[0]
        assert address.rsplit(":", 1)[1] not in ("0", "7100"), address
        run = subprocess.run([program, *common, "--iterations", "10", address], capture_output=True, text=True,
                             timeout=60, check=False)
        assert run.returncode == 0 and finish(server, 20) == 0, run.stderr


@case()
def test_perf_refuses_places_that_make_no_sense(place, build):
    for words, sentence in ((["--port", "7000", "127.0.0.1:7001"], "contradict"), (["127.0.0.1:x"], "names no port"),
                            (["[::1]:0"], "names no port"), (["127.0.0.1:70000"], "names no port")):
        run = subprocess.run([build / "bench/pullman-perf", *words], capture_output=True, text=True, timeout=30,
                             check=False)
        assert run.returncode == 2 and sentence in run.stderr, f"{words}: {run.returncode} {run.stderr}"
    run = subprocess.run([build / "bench/pullman-perf", "--nic", "lo", "127.0.0.1"], capture_output=True, text=True,
                         timeout=30, check=False, env={**os.environ, "PULLMAN_PORT": "0"})
    assert run.returncode == 1 and "HOST:PORT" in run.stderr, f"{run.returncode} {run.stderr}"


@case()
def test_wrong_options_end_every_program_with_2(place, build):
    for program in ("bench/pullman-perf", "bench/pullman-crowd", "tools/pullman-info"):
        run = subprocess.run([build / program, "--no-such-option"], capture_output=True, text=True, timeout=30,
                             check=False)
        assert run.returncode == 2 and "--no-such-option" in run.stderr, f"{program}: {run.returncode} {run.stderr}"
        run = subprocess.run([build / program, "--help"], capture_output=True, text=True, timeout=30, check=False)
        assert run.returncode == 0, f"{program}: {run.returncode} {run.stderr}"


@case()
def test_info_says_what_to_look_for_where_nobody_answers(place, build):
    for option in ("--peer", "--check"):
        run = subprocess.run([build / "tools/pullman-info", option, f"127.0.0.1:{PORT}", "--patience", "300"],
                             capture_output=True, text=True, timeout=30, check=False,
                             env={**os.environ, "PULLMAN_NICS": "lo"})
        said = " ".join((run.stdout + run.stderr).split())
        assert run.returncode == 1 and ("listen" in said), f"{option}: {run.returncode} {said}"


@case()
def test_a_variable_that_is_misspelt_is_named(place, build):
    run = subprocess.run([build / "tools/pullman-info"], capture_output=True, text=True, timeout=30, check=False,
                         env={**os.environ, "PULLMAN_NIC": "lo", "PULLMAN_NICS": "lo", "PULLMAN_LOG": "warn"})
    assert "no option PULLMAN_NIC:" in run.stderr and run.stderr.count("no option") == 1, run.stderr


@case()
def test_a_perf_client_whose_server_dies_ends_with_a_sentence(place, build):
    for more in ([], ["--raw"]):
        common = ["--nic", "lo", "--port", PORT, "--patience", 3, *more]
        server = place.start_server(0, build / "bench/pullman-perf", *common)
        client = place.start(1, build / "bench/pullman-perf", *common, "--duration", 60, "127.0.0.1",
                             stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                             env={**os.environ, "PULLMAN_PEER_TIMEOUT_MS": "1000"})
        time.sleep(0.5)
        server.kill()
        _, errors = client.communicate(timeout=30)
        assert client.returncode == 1 and len(errors) > 10, f"{client.returncode} {errors}"


@case()
def test_a_program_told_to_stop_ends_by_that_signal(place, build):
    for number in (signal.SIGINT, signal.SIGTERM):
        server = place.start_server(0, build / "bench/pullman-perf", "--nic", "lo", "--port", PORT)
        server.send_signal(number)
        assert finish(server, 20) == -number, f"{server.returncode} {netns.text_of(server)}"


@case()
def test_results_that_cannot_be_written_are_an_error(place, build):
    with open("/dev/full", "w", encoding="ascii") as full:
        info = place.start(0, build / "tools/pullman-info", stdout=full, stderr=subprocess.PIPE)
        assert finish(info) == 1 and b"cannot write" in info.stderr.read(), "pullman-info"
        common = ["--nic", "lo", "--port", PORT, "--patience", 5]
        server = place.start_server(0, build / "bench/pullman-perf", *common)
        client = place.start(1, build / "bench/pullman-perf", *common, "--iterations", 10, "127.0.0.1",
                             stdout=full, stderr=subprocess.PIPE)
        assert finish(client) == 1 and b"cannot write" in client.stderr.read(), "pullman-perf"
        assert finish(server) == 1, "the server: " + netns.text_of(server)


def compare(build, folder, *options):
    """A run of tools/compare.py, as short as can be; its JSON, or None where there are no namespaces."""
    file = folder / "compare.json"
    run = subprocess.run([sys.executable, TOOLS / "compare.py", build, "--runs", "1", "--seconds", "0.02", "--json",
                          file, "--plots", folder, *options], capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
    return None if run.stdout.startswith("skipped") else json.loads(file.read_text())


@case()
def test_compare_measures_pullman_and_every_peer_that_is_installed(place, build):
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        found = compare(build, folder, "--only", "latency", "--sizes", "64,4096")
        if found is None:
            return
        medians = {(row["contender"], row["size"]): row["p50_us"] for row in found["rows"]}
        names = {one["name"] for one in found["contenders"]} - {"TCP, batched"}
        assert len(names) >= 7 and set(medians) == {(n, s) for n in names for s in (64, 4096)}, f"{medians}"
        assert all(value for value in medians.values()), f"{medians}"
        assert "Pullman udp" in (folder / "compare-latency.svg").read_text(), "the plot"


@case()
@pytest.mark.long
def test_compare_measures_while_packets_get_lost(place, build):
    with tempfile.TemporaryDirectory() as name:
        found = compare(build, pathlib.Path(name), "--only", "loss", "--losses", "0,1", "--with",
                        "Pullman udp")
        if found is not None:
            lost = {(row["test"], row["offloads"], row["loss_percent"]) for row in found["rows"]}
            assert len(lost) == 8, f"{lost}"
            assert all(row["messages_per_s"] for row in found["rows"]), f"{found['rows']}"


@case("auto", "tcp")
def test_two_pingpong_examples_play(place, build, driver):
    environment = {**os.environ, "PULLMAN_NICS": "lo", "PULLMAN_DRIVER": driver}
    server = place.start_server(0, build / "examples/pingpong", env=environment)
    address = netns.text_of(server).split()[-1]
    client = place.start(1, build / "examples/pingpong", address, env=environment,
                         stdout=subprocess.DEVNULL)
    assert finish(client) == 0 and finish(server) == 0, netns.text_of(server)


@case("auto", "tcp")
def test_four_tagged_ring_examples_pass_the_token(place, build, driver):
    addresses = [f"127.0.0.1:{PORT + 2 * i}" for i in range(4)]
    ring = [place.start(0, build / "examples/tagged_ring", rank, *addresses, stdout=subprocess.PIPE,
                        text=True, env={**os.environ, "PULLMAN_DRIVER": driver}) for rank in range(4)]
    output, _ = ring[0].communicate(timeout=60)
    assert all(finish(process) == 0 for process in ring), "exit code"
    assert "10 times: 60" in output, output


@case("auto", "tcp")
def test_three_event_loop_examples_talk_and_sleep(place, build, driver):
    environment = {**os.environ, "PULLMAN_NICS": "lo", "PULLMAN_DRIVER": driver}
    program = build / "examples/event_loop"
    first = place.start_server(0, program, env=environment, stdin=subprocess.PIPE, text=True)
    address = netns.text_of(first).split()[-1]
    others = [place.start(1, program, address, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
              for _ in range(2)]
    for number, other in enumerate(others):
        other.stdin.write(f"I am {number}\n")
        other.stdin.flush()
    end = time.monotonic() + 20
    while not all(f"I am {number}" in netns.text_of(first) for number in (0, 1)):
        assert time.monotonic() < end, netns.text_of(first)
        time.sleep(0.01)
    before = processor_seconds(first.pid)
    time.sleep(1)
    assert processor_seconds(first.pid) - before < 0.1, "does not sleep"
    first.stdin.write("welcome\n")
    first.stdin.flush()
    assert [other.stdout.readline() for other in others] == ["welcome\n"] * 2
    for process in (*others, first):
        process.send_signal(signal.SIGINT)
    assert all(finish(process) == 0 for process in (*others, first)), netns.text_of(first)


@case("auto", "tcp")
def test_asio_echo_examples_answer(place, build, driver):
    environment = {**os.environ, "PULLMAN_NICS": "lo", "PULLMAN_DRIVER": driver}
    server = place.start_server(0, build / "examples/asio_echo", env=environment)
    address = netns.text_of(server).split()[-1]
    client = place.start(1, build / "examples/asio_echo", address, env=environment, stdout=subprocess.PIPE, text=True)
    output, _ = client.communicate(timeout=60)
    assert client.returncode == 0 and output.count("answer ") == 10, output
    server.send_signal(signal.SIGINT)
    assert finish(server) == 0, netns.text_of(server)


@case()
def test_two_rail_cut_examples_say_what_becomes_of_the_rails(place, build):
    environment = {**os.environ, "PULLMAN_NICS": "lo"}
    server = place.start_server(0, build / "examples/rail_cut", env=environment)
    address = netns.text_of(server).split()[-1]
    client = place.start(1, build / "examples/rail_cut", address, "1", "lo", env=environment,
                         stdout=subprocess.PIPE, text=True)
    output, _ = client.communicate(timeout=60)
    assert client.returncode == 0 and finish(server) == 0, output + netns.text_of(server)
    assert "rail 0, lo to" in output and ": up, it answers" in output, output
    assert "drain lo:" in output, f"the only way to a peer cannot be drained, and that is said: {output}"
    assert " 0 wrong" in netns.text_of(server), netns.text_of(server)


@case("auto", "tcp")
def test_send_file_copies_files_of_any_size(place, build, driver):
    program = build / "examples/send_file"
    environment = {**os.environ, "PULLMAN_NICS": "lo", "PULLMAN_DRIVER": driver}
    with tempfile.TemporaryDirectory() as folder:
        source, copy = pathlib.Path(folder) / "source", pathlib.Path(folder) / "copy"
        for size in (0, 1, 1 << 20, (1 << 20) + 1, 10_000_000):
            source.write_bytes(random.Random(size).randbytes(size))
            receiver = place.start_server(0, program, "receive", copy, env=environment)
            address = netns.text_of(receiver).split()[-1]
            sender = place.start(1, program, "send", source, address, env=environment,
                                 stdout=subprocess.PIPE, text=True)
            output, _ = sender.communicate(timeout=60)
            assert sender.returncode == 0 and finish(receiver) == 0, netns.text_of(receiver)
            assert copy.read_bytes() == source.read_bytes(), f"{size} bytes differ"
            assert hashlib.sha256(source.read_bytes()).hexdigest() in output, output


@case("udp")
def test_setting_the_clock_of_the_host_has_no_effect(place, build, driver):
    """The client's wall clock jumps by an hour and back, in mid-stream."""
    with tempfile.TemporaryDirectory() as folder:
        shift = pathlib.Path(folder) / "shift"
        shift.write_text("+0")
        library, = pathlib.Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")
        environment = {**os.environ, "LD_PRELOAD": str(library), "FAKETIME_TIMESTAMP_FILE": str(shift),
                       "FAKETIME_NO_CACHE": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        program = build / "bench/pullman-perf"
        common = ["--nic", "lo", "--port", PORT, "--patience", 20, "--driver", driver]
        server = place.start_server(0, program, *common)
        client = place.start(1, program, *common, "--format", "json", "--test", "failover", "--size", "16K",
                             "--duration", 3, "127.0.0.1", env=environment, stdout=subprocess.PIPE,
                             stderr=subprocess.PIPE, text=True)
        for jump in ("+1h", "-1h", "+0"):
            time.sleep(0.8)
            shift.write_text(jump)
            shown = subprocess.run(["date", "+%s"], env=environment, capture_output=True, text=True).stdout
            assert abs(abs(int(shown) - time.time()) - (0 if jump == "+0" else 3600)) < 60, f"no test: {shown}"
        output, errors = client.communicate(timeout=100)
        assert client.returncode == 0 and finish(server) == 0, f"{errors}\n{netns.text_of(server)}"
        result = json.loads(output.splitlines()[-1])
        assert result["messages"] > 0 and result["errors"] == 0, output
        assert all(result[key] == 0 for key in ("lost", "duplicated", "misordered", "corrupted")), output
        assert all(rail["state"] == "up" and rail["times_left"] == 0 for rail in result["rails"]), output
        assert "silent" not in errors, errors
