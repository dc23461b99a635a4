"""The programs soak and sleeper in two namespaces: started, listened to, judged."""

import json
import os
import pathlib
import subprocess
import tempfile
import time

import pytest

PORT = 7100
PATIENCE = 150  # seconds; a case that takes longer hangs


class Soak:
    """One soak program. `address` makes it the one that connects."""

    name = "soak"

    def __init__(self, place, build, side, driver, *options, address=None, **environment):
        command = [str(build / "test/kernel" / self.name), "--patience", str(PATIENCE), *map(str, options)]
        variables = {"PULLMAN_PORT": PORT, "PULLMAN_DRIVER": driver, "PULLMAN_NICS": place.hosts[side],
                     **environment}
        if address:
            command.append(address)
        self.errors = tempfile.NamedTemporaryFile(mode="w+")
        self.output = tempfile.NamedTemporaryFile(mode="r+")
        self.program = place.start(side, *command, env={**os.environ, **{k: str(v) for k, v in variables.items()}},
                                  stdout=self.output, stderr=self.errors)

    def lines(self):
        text = pathlib.Path(self.output.name).read_text()
        return [json.loads(line) for line in text.splitlines() if line.endswith("}")]

    def wait_for(self, event, seconds=30):
        """Until it has printed a line with this event."""
        end = time.monotonic() + seconds
        while not any(line["event"] == event for line in self.lines()):
            assert self.program.poll() is None, f"ended before '{event}': {self.problem()}"
            assert time.monotonic() < end, f"no '{event}' within {seconds} s"
            time.sleep(0.01)
        return self

    def finish(self, seconds=PATIENCE + 30):
        """Its exit code and last line."""
        try:
            code = self.program.wait(seconds)
        except subprocess.TimeoutExpired:
            pytest.fail("hangs")
        lines = self.lines()
        assert code >= 0, f"killed by signal {-code}: {self.problem()}"
        assert lines and lines[-1]["event"] == "done", f"died with {code}: {self.problem()}"
        assert not lines[-1].get("verdict"), json.dumps(lines[-1])
        return code, lines[-1]

    def well(self):
        code, line = self.finish()
        assert code == 0, f"exit {code}: {json.dumps(line)} {self.problem()}"
        return line

    def problem(self):
        return pathlib.Path(self.errors.name).read_text()[-3000:]


class Sleeper(Soak):
    """One sleeper program, with sleeping on."""

    name = "sleeper"

    def __init__(self, *words, **environment):
        super().__init__(*words, **{"PULLMAN_SLEEP_AFTER_US": 200, **environment})

    def idle(self, state):
        """What waiting idle was like: alone or connected."""
        line, = (line for line in self.lines() if line["event"] == "idle" and line["state"] == state)
        return line


def address_of(place, side):
    """How the other side calls it."""
    host = place.hosts[side]
    if ":" not in host:
        return f"{host}:{PORT}"
    scope = "%veth0" if "%" in host else ""
    return f"[{host.split('%')[0]}{scope}]:{PORT}"


def two(place, build, driver, *options, **environment):
    """One that waits (in namespace a) and one that connects (in b); two drivers are one each."""
    drivers = driver.split(" and ")
    first = Soak(place, build, 0, drivers[0], *options, **environment).wait_for("listening")
    second = Soak(place, build, 1, drivers[-1], *options, address=address_of(place, 0), **environment)
    return first, second
