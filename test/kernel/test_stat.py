"""pullman-stat as an operator uses it, beside programs that run on the loopback."""

import functools
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.request

import pytest

import cases
import netns

PORT = 7340
case = functools.partial(cases.case, kind=netns.Loopback)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Where the programs of this test show their counters."""
    path = tmp_path / "counters"
    monkeypatch.setenv("PULLMAN_COUNTERS", str(path))
    return path


def stat(build, *options, code=0):
    result = subprocess.run([build / "tools/pullman-stat", *map(str, options)], capture_output=True, text=True,
                            timeout=30, check=False)
    assert result.returncode == code, f"{options}: {result.returncode}, {result.stdout}{result.stderr}"
    return result.stdout + result.stderr


def start_stream(place, build, *options):
    program = build / "bench/pullman-perf"
    common = ["--nic", "lo", "--port", PORT, "--patience", 20]
    server = place.start_server(0, program, *common)
    client = place.start(1, program, *common, "--test", "bandwidth", "--size", "64K", "--duration", 60, *options,
                         "127.0.0.1", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return server, client


def contexts(build):
    """What is shown, by process."""
    return {context["process"]: context for context in json.loads(stat(build, "--format", "json", code=0))["contexts"]}


def until(condition, what, seconds=30):
    end = time.monotonic() + seconds
    while not (result := condition()):
        assert time.monotonic() < end, f"never: {what}"
        time.sleep(0.1)
    return result


def connected(build, *programs):
    def both():
        if not os.path.isdir(os.environ["PULLMAN_COUNTERS"]):
            return None
        shown = json.loads(subprocess.run([build / "tools/pullman-stat", "--format", "json"], capture_output=True,
                                          text=True, check=False).stdout)["contexts"]
        flows = [one for one in shown if one["context"] and one["context"][0]["messages_received"]
                 + one["context"][0]["messages_sent"] > 100]
        return {one["process"]: one for one in flows} if len(flows) == len(programs) else None
    return until(both, "both programs show what they do")


@case()
def test_stat_shows_what_two_programs_do(place, build, folder):
    server, client = start_stream(place, build)
    shown = connected(build, server, client)
    assert set(shown) == {server.pid, client.pid}, f"{shown}"
    for context in shown.values():
        assert context["wrong_sums"] == [] and context["command"] == "pullman-perf", f"{context}"
        assert context["heartbeat_age"] < 5 and len(context["channel"]) == 2 * len(context["nic"]), f"{context}"
        assert [peer["phase"] for peer in context["peer"]] == ["connected"], f"{context}"
        assert context["rail"][0]["rtt"] >= context["rail"][0]["rtt_least"] > 0, f"{context}"
    assert shown[client.pid]["rail"][0]["bytes_sent"] > 64 << 10, f"{shown}"
    text = stat(build, "--once", "--table", "rail", "roll", code=1)
    assert "no table 'roll', but context, " in text, text
    text = stat(build, "--once", "--process", 1, code=1)
    assert "none of the processes asked for" in text, text
    text = stat(build, "--once", "--table", "rail", "peer", "--process", client.pid)
    assert f"process {client.pid} (pullman-perf)" in text and "[rail]" in text and "[nic]" not in text, text
    assert re.search(r"^ +\d+ +\d+ +\d+ +lo ", text, re.M), text
    columns = stat(build, "--once", "--table", "rail", "--column", "rail", "lost")
    assert re.search(r"^ +rail +lost *$", columns, re.M), columns
    for file in folder.iterdir():
        if f".{server.pid}." in file.name:
            os.truncate(file, 1 << 40)
    text = stat(build, "--once")
    assert "larger than any file of counters" in text and f"process {client.pid} (pullman-perf)" in text, text


@case()
def test_stat_tells_of_a_program_that_hangs_and_who_waits_for_it(place, build, folder):
    server, client = start_stream(place, build)
    connected(build, server, client)
    server.send_signal(signal.SIGSTOP)

    def hangs():
        shown = contexts(build)
        return shown if shown[server.pid]["heartbeat_age"] > 1.5 else None
    shown = until(hangs, "the server hangs")
    text = stat(build, "--once")
    server.send_signal(signal.SIGCONT)

    # It may have been asleep when it was stopped.
    assert re.search(rf"process {server.pid} .*(has made no progress for|sleeps since) [1-9]", text), text
    assert re.search(rf"process {client.pid} .*waits for 1\b", text), text
    peer, = shown[client.pid]["peer"]
    assert peer["waits_for"] and peer["waits_since"] > 0.5, f"{peer}"


def stop_asleep(build, program):
    """Stops the program while it sleeps."""
    def stopped():
        if not contexts(build)[program.pid]["asleep"]:
            return False
        program.send_signal(signal.SIGSTOP)
        if contexts(build)[program.pid]["asleep"]:
            return True
        program.send_signal(signal.SIGCONT)
        return False
    until(stopped, "it sleeps")


@case()
def test_stat_tells_a_program_that_was_stopped_in_its_sleep_from_one_that_sleeps(place, build, folder, monkeypatch):
    monkeypatch.setenv("PULLMAN_SLEEP_AFTER_US", "500")
    server, client = start_stream(place, build)
    connected(build, server, client)
    client.send_signal(signal.SIGSTOP)
    until(lambda: contexts(build)[server.pid]["asleep"], "the server sleeps, having nothing to receive")
    assert re.search(rf"process {server.pid} .*(sleeps since|makes progress)", stat(build, "--once"))

    stop_asleep(build, server)

    late = until(lambda: contexts(build)[server.pid]["overdue"], "the server, which asks for the client, is overdue")
    text = stat(build, "--once", "--process", server.pid)
    written = stat(build, "--once", "--prometheus", folder / "pullman.prom") + (folder / "pullman.prom").read_text()
    server.send_signal(signal.SIGCONT)
    assert late >= 1 and re.search(r"overdue since [1-9]\S* s, has made no progress for [1-9]", text), text
    assert re.search(rf'pullman_context_overdue_seconds{{process="{server.pid}",[^}}]*}} [1-9]', written), written
    until(lambda: not contexts(build)[server.pid]["overdue"], "it goes on")


@case()
def test_stat_shows_nothing_of_programs_that_are_gone(place, build, folder):
    server, client = start_stream(place, build)
    connected(build, server, client)
    client.kill()
    client.wait()

    def is_there():
        return any(f".{client.pid}." in file.name for file in folder.iterdir())
    assert is_there(), "a killed program leaves its file"
    place.start_server(1, build / "bench/pullman-perf", "--nic", "lo", "--port", PORT + 1)
    assert client.pid not in contexts(build)
    until(lambda: not is_there(), "the next program removes it")


@case()
def test_stat_says_what_to_do_if_there_is_nothing_to_show(place, build, folder):
    text = stat(build, "--once", code=1)
    assert "no context shows its counters in" in text and "PULLMAN_COUNTERS" in text, text
    assert json.loads(stat(build, "--format", "json", code=1)) == {"contexts": [], "problems": []}
    assert "--once" in stat(build, code=1), "without a terminal"
    folder.mkdir(mode=0o700)
    stem = folder / f"pullman.{os.stat('/proc/self/ns/pid').st_ino}.1.0.0123456789abcdef"
    stem.write_text("no counters" * 100)
    assert "is no file of counters" in stat(build, "--once", code=1)


def samples(text):
    """The samples of an exposition, by metric; the format is checked on the way."""
    out = {}
    for line in text.splitlines():
        if line.startswith("#"):
            assert re.fullmatch(r"# (HELP [a-z_]+ .+|TYPE [a-z_]+ (counter|gauge|histogram))", line), line
            continue
        name, labels, value = re.fullmatch(r'([a-z_]+)\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\} ([0-9.e+]+)',
                                           line).groups()
        out.setdefault(name, []).append((dict(re.findall(r'([a-z_]+)="((?:[^"\\]|\\.)*)"', labels)), float(value)))
    series = [line.rsplit(" ", 1)[0] for line in text.splitlines() if not line.startswith("#")]
    assert len(series) == len(set(series)), "each series once"
    names = re.findall(r"^# TYPE (\S+)", text, re.M)
    assert len(names) == len(set(names)), "one type for each metric"
    return out


def assert_histogram(written, process):
    """Only buckets, a sum and a count have the name of a histogram, and the buckets are cumulative."""
    name = "pullman_context_rtt_histogram_seconds"
    assert {metric for metric in written if metric.startswith(name)} == {f"{name}_{part}"
                                                                         for part in ("bucket", "sum", "count")}
    buckets = [(labels["le"], value) for labels, value in written[f"{name}_bucket"]
               if labels["process"] == str(process)]
    assert buckets[-1][0] == "+Inf" and [value for _, value in buckets] == sorted(value for _, value in buckets)
    total, = [value for labels, value in written[f"{name}_sum"] if labels["process"] == str(process)]
    assert 0 < total < 1e-1 * buckets[-1][1], "round trips are not that long"


@case()
def test_stat_writes_what_a_node_exporter_serves(place, build, folder, tmp_path):
    server, client = start_stream(place, build)
    connected(build, server, client)
    collected = tmp_path / "collected"
    collected.mkdir()
    stat(build, "--once", "--prometheus", collected / "pullman.prom")
    written = samples((collected / "pullman.prom").read_text())
    sent, = [value for labels, value in written["pullman_context_bytes_sent_total"]
             if labels["process"] == str(client.pid)]
    assert sent > 64 << 10
    assert {labels["state"] for labels, _ in written["pullman_rail_state"]} == {"up"}
    assert_histogram(written, client.pid)

    exporter = shutil.which("prometheus-node-exporter")
    assert exporter, "./dev installs it"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    place.start(0, exporter, f"--web.listen-address=127.0.0.1:{port}", "--collector.disable-defaults",
                "--collector.textfile", f"--collector.textfile.directory={collected}", stderr=subprocess.DEVNULL)

    def served():
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5) as answer:
                return answer.read().decode()
        except OSError:
            return None
    text = until(served, "the exporter answers")
    assert "node_textfile_scrape_error 0" in text, text[-2000:]
    assert f'process="{client.pid}"' in text and "pullman_rail_lost_total" in text, text[-2000:]


class Terminal:
    """A terminal that programs draw on, and that is read as a person would."""

    def __init__(self, name):
        self.name = name

    def tmux(self, *words):
        return subprocess.run(["tmux", "-L", self.name, *map(str, words)], capture_output=True, text=True, timeout=20,
                              check=True).stdout

    def __enter__(self):
        self.tmux("-f", "/dev/null", "new-session", "-d", "-x", 180, "-y", 40, "sh")
        return self

    def __exit__(self, *_):
        self.tmux("kill-server")

    def keys(self, *keys):
        self.tmux("send-keys", *keys)

    def shows(self, pattern, what):
        try:
            return until(lambda: re.search(pattern, self.tmux("capture-pane", "-p"), re.M), what)
        except AssertionError as error:
            pytest.fail(f"{error} in\n{self.tmux('capture-pane', '-p')}")


@case()
def test_stat_is_a_live_view_on_a_terminal(place, build, folder):
    server, client = start_stream(place, build)
    connected(build, server, client)
    with Terminal(f"pullman-{os.getpid()}") as terminal:
        terminal.keys(f"{build}/tools/pullman-stat --folder {folder} --interval 200", "Enter")
        terminal.shows(rf"process {client.pid} \(pullman-perf\).*1 peers, makes progress", "the contexts")
        terminal.shows(r"^\[rail\]\n *process", "rails first")
        terminal.shows(rf"^ *{client.pid} .* [1-9]\d+ ", "rates")
        terminal.keys("Tab")
        terminal.shows(r"^\[error\]", "the next table")
        terminal.keys("Tab")
        terminal.shows(r"^\[context\]\n *processv", "sorted by the first column")
        terminal.keys(">", "r")
        terminal.shows(r"rank\^", "sorted by the next one, upwards")
        terminal.keys("/", str(server.pid), "Enter")
        terminal.shows(rf"filter: {server.pid}", "the filter")
        until(lambda: not re.search(rf"^ *{client.pid} ", terminal.tmux("capture-pane", "-p"), re.M), "filtered rows")
        terminal.keys("Space")
        terminal.shows(r"\[paused\]", "a pause")
        terminal.keys("q")
        terminal.shows(r"^(#|\$) *$", "the prompt")
