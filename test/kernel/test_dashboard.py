"""The example dashboard, rendered by a Prometheus that has what pullman-stat writes of two programs."""

import functools
import json
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import urllib.parse
import urllib.request

import cases
import netns
from test_stat import connected, folder, start_stream, until

__all__ = ["folder"]
DASHBOARD = pathlib.Path(__file__).resolve().parents[2] / "tools/prometheus/pullman.html"
case = functools.partial(cases.case, kind=netns.Loopback)


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def fetch(url):
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return answer.read().decode()
    except OSError:
        return ""


def start_prometheus(place, collected, tmp_path):
    """Starts a node exporter and a Prometheus that asks it every second. Returns where the latter answers."""
    exporter, server = shutil.which("prometheus-node-exporter"), shutil.which("prometheus")
    assert exporter and server, "./dev installs them"
    exporter_port, port = free_port(), free_port()
    place.start(0, exporter, f"--web.listen-address=127.0.0.1:{exporter_port}", "--collector.disable-defaults",
                "--collector.textfile", f"--collector.textfile.directory={collected}", stderr=subprocess.DEVNULL)
    (tmp_path / "prometheus.yml").write_text(
        "global: {scrape_interval: 1s}\n"
        "scrape_configs:\n"
        f"- {{job_name: node, static_configs: [{{targets: ['127.0.0.1:{exporter_port}']}}]}}\n")
    (tmp_path / "libraries").mkdir()
    place.start(0, server, f"--web.listen-address=127.0.0.1:{port}", f"--config.file={tmp_path}/prometheus.yml",
                f"--storage.tsdb.path={tmp_path}/data", f"--web.console.templates={DASHBOARD.parent}",
                f"--web.console.libraries={tmp_path}/libraries", stderr=subprocess.DEVNULL)
    return f"http://127.0.0.1:{port}"


def expressions(labels):
    """What the dashboard asks for, of the thing that has those labels."""
    found = re.findall(r'"([^"]*pullman_[^"]*)"', DASHBOARD.read_text())
    assert len(found) > 20
    filled = [re.sub(r"(context|peer|rail)='%s'", lambda label: f"{label[1]}='{labels[label[1]]}'", one)
              for one in found]
    assert not any("%s" in one for one in filled), f"{filled}"
    return filled


@case()
def test_a_prometheus_renders_the_dashboard_and_has_data_for_each_of_its_cells(place, build, folder, tmp_path):
    server, client = start_stream(place, build)
    connected(build, server, client)
    collected = tmp_path / "collected"
    collected.mkdir()
    place.start(0, build / "tools/pullman-stat", "--prometheus", collected / "pullman.prom", "--interval", 300,
                stdout=subprocess.DEVNULL)
    url = start_prometheus(place, collected, tmp_path)

    def answer(expression):
        text = fetch(f"{url}/api/v1/query?{urllib.parse.urlencode({'query': expression})}")
        return json.loads(text)["data"]["result"] if text else []
    rails = until(lambda: answer(f"pullman_rail_rtt_seconds{{process='{client.pid}'}}"), "it has asked the exporter")
    for expression in expressions(rails[0]["metric"]):
        until(lambda one=expression: answer(one), f"there is data for {expression}")

    page = until(lambda: fetch(f"{url}/consoles/{DASHBOARD.name}"), "it renders the dashboard")
    assert "no data" not in page and "></a>" not in page and "error executing" not in page, page
    text = re.sub(r"<[^>]*>", " ", page)
    for program in server, client:
        assert re.search(rf"pullman-perf\s+{program.pid}\s", text), text
    assert re.search(r"127\.0\.0\.1:\d+\s+up\s", text), text
    assert 'class="bad"' not in page, page

    server.send_signal(signal.SIGSTOP)
    until(lambda: 'class="bad"' in fetch(f"{url}/consoles/{DASHBOARD.name}"), "a program that is stopped is red")
    server.send_signal(signal.SIGCONT)
