"""Who takes part in compare.py, and how each is run: a server in one namespace, a client in the other.

A contender's run() gives a dictionary with the keys of pullman-perf's rows that it can fill, or raises
DidNotFinish. Every wait has an end; programs that hang are killed by their process id.
"""

import json
import os
import pathlib
import shutil
import subprocess
import time
from dataclasses import dataclass, replace

import netns


class DidNotFinish(Exception):
    """No figure; the text says why."""


@dataclass(frozen=True)
class Task:
    test: str  # as pullman-perf calls it: latency, bandwidth, rate
    size: int
    window: int = 64
    seconds: float = 0.3
    loss: float = 0  # percent
    offloads: bool = True

    @property
    def name(self):
        return f"{self.test} {self.size} {self.window} {self.loss:g} {'on' if self.offloads else 'off'}"


def end(program):
    """However it stands: it is over."""
    if program.poll() is None:
        program.kill()
    program.wait()


class Contender:
    """`role`: "pullman", "raw", "peer" (what a user would pick instead), or "note" (for information)."""

    def __init__(self, name, role, tests=("latency", "bandwidth", "rate"), in_loss=True):
        self.name, self.role, self.tests, self.in_loss = name, role, tests, in_loss

    def takes(self, task):
        return task.test in self.tests and (self.in_loss or (task.loss == 0 and task.offloads))

    def missing(self):
        """What is not installed, or an empty string."""
        return ""


class Perf(Contender):
    """pullman-perf, or peers, which has the same options and rows."""

    def __init__(self, name, role, program, *options, **more):
        super().__init__(name, role, **more)
        self.program, self.options = program, options

    def missing(self):
        return "" if self.program.exists() else f"{self.program} is not built"

    def run(self, pair, task, port):
        patience = 4 + task.seconds if task.loss else 10
        common = [self.program, "--port", port, "--patience", patience, *self.options]
        server = pair.start_server(0, *common)
        client = pair.start(1, *common, "--format", "json", "--test", task.test, "--size", task.size, "--window",
                            task.window, "--duration", task.seconds, pair.hosts[0],
                            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        try:
            said, why = client.communicate(timeout=2 * patience + 3 * task.seconds)
            if not said:
                raise DidNotFinish(why.strip() or "said nothing")
            return self.figures(json.loads(said.splitlines()[-1]))
        except subprocess.TimeoutExpired:
            raise DidNotFinish(f"not in {2 * patience:g} s") from None
        finally:
            end(client)
            self.leave(server)

    @staticmethod
    def leave(server):
        """The server ends by itself when the client has, but not every library can be relied on."""
        try:
            server.wait(0.5)
        except subprocess.TimeoutExpired:
            pass
        end(server)

    @staticmethod
    def figures(row):
        if row["messages"] == 0 or row["messages_per_s"] == 0:
            raise DidNotFinish("nothing arrived")
        row["mean_us"] = 1e6 / row["messages_per_s"]  # of half a round trip, in latency
        return row


class Ucx(Contender):
    """ucx_perftest over TCP. It counts iterations, not seconds: a short run says how many fill the time.

    Where packets get lost that says little, so it is given many and stopped; what it said last counts.
    In a stream `-O` is the window; in rate, too: a sliding one, which is more than the others have.
    """

    environment = {"UCX_TLS": "tcp", "UCX_NET_DEVICES": "veth0", "UCX_WARN_UNUSED_ENV_VARS": "n"}

    def __init__(self, name):
        super().__init__(name, "peer")
        self.per_second = {}  # iterations, by what is measured

    def missing(self):
        found = shutil.which("ucx_perftest", path=netns.search_path())
        return "" if found else "ucx_perftest is not installed (Debian: ucx-utils)"

    def run(self, pair, task, port):
        key = (task.test, task.size, task.window, task.offloads)
        if key not in self.per_second:
            count = 100 if task.test == "latency" or task.size > 65536 else 2000
            self.per_second[key] = self.once(pair, replace(task, loss=0), port, count, 20)["iterations_per_s"]
        count = max(50, int(self.per_second[key] * task.seconds))
        figures = self.once(pair, task, port, count, task.seconds + 3 if task.loss else 20)
        if not task.loss:
            self.per_second[key] = figures["iterations_per_s"]
        return figures

    def once(self, pair, task, port, count, limit):
        environment = {**os.environ, **self.environment}
        common = ["ucx_perftest", "-p", port]
        server = pair.start(0, *common, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment)
        wait_for_listener(server, port)
        name = "tag_lat" if task.test == "latency" else "tag_bw"
        outstanding = [] if task.test == "latency" else ["-O", task.window]
        client = pair.start(1, *common, "-t", name, "-s", task.size, "-n", count, "-w", count // 10 + 1,
                            *outstanding, "-v", pair.hosts[0], env=environment, stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True)
        late = False
        try:
            said, why = client.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            late = True
            end(client)
            said, why = client.communicate()
        finally:
            end(client)
            end(server)
        if late and not task.loss:
            raise DidNotFinish(f"not in {limit:g} s")
        return self.figures(said, why, task)

    @staticmethod
    def figures(said, why, task):
        """The last row; its columns are named in the source of ucx_perftest's CSV writer."""
        rows = [line for line in said.splitlines() if line.count(",") == 7 and not line.startswith("iter")]
        if not rows:
            raise DidNotFinish(why.strip()[:200] or "said nothing")
        _, p50, _, mean, _, _, _, per_second = (float(word) for word in rows[-1].split("]")[-1].split(","))
        if task.test == "latency":
            return {"p50_us": p50, "mean_us": mean, "iterations_per_s": 5e5 / mean}
        if per_second == 0:
            raise DidNotFinish("nothing arrived")
        return {"messages_per_s": per_second, "mb_per_s": per_second * task.size / 1e6,
                "iterations_per_s": per_second}


def wait_for_listener(program, port):
    """Until the program's namespace has a TCP listener at the port."""
    wanted = f":{port:04X}"
    limit = time.monotonic() + 10
    while time.monotonic() < limit and program.poll() is None:
        for table in ("tcp", "tcp6"):
            try:
                lines = pathlib.Path(f"/proc/{program.pid}/net/{table}").read_text().splitlines()[1:]
            except OSError:
                continue
            if any(line.split()[1].endswith(wanted) and line.split()[3] == "0A" for line in lines):
                return
        time.sleep(0.01)


def everybody(build):
    """In the order of the tables."""
    perf, peers = build / "bench/pullman-perf", build / "bench/peers"
    return [
        Perf("raw udp", "raw", perf, "--driver", "udp", "--raw", in_loss=False),
        Perf("raw fabric", "raw", perf, "--driver", "fabric", "--raw", in_loss=False),
        Perf("Pullman udp", "pullman", perf, "--driver", "udp"),
        Perf("Pullman fabric", "pullman", perf, "--driver", "fabric"),
        Perf("udp;ofi_rxd", "peer", peers, "--driver", "udp;ofi_rxd"),
        Perf("tcp;ofi_rxm", "peer", peers, "--driver", "tcp;ofi_rxm"),
        Ucx("UCX tcp"),
        # Plain sockets. In a stream small messages are copied together, as any such program would; in rate
        # each is sent when it is handed over, and the batching program is beside it: it has no tags to match
        # and knows when a window ends.
        Perf("TCP sockets", "peer", peers, "--driver", "sockets", tests=("latency", "rate")),
        Perf("TCP sockets", "peer", peers, "--driver", "batched", tests=("bandwidth",)),
        Perf("TCP, batched", "note", peers, "--driver", "batched", tests=("rate",)),
    ]
