"""A stream of pullman-perf whose every message is checked, and what it says of its rails."""

import json
import os
import subprocess

import pytest

import netns

PORT = 7100
MEGABITS = 200  # slow enough for any machine, whatever else it does
WRONG = ("lost", "duplicated", "misordered", "corrupted")


def start(place, build, *options, between=lambda: None, **environment):
    """The server and the client of pullman-perf, and what happens between the starts of the two."""
    program = build / "bench/pullman-perf"
    common = ["--port", PORT, "--patience", 60]
    variables = {**os.environ, **place.environment, **environment}
    server = place.start_server(0, program, *common, env=variables)
    between()
    client = place.start(1, program, *common, "--format", "json", *options, place.hosts[0], env=variables,
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return server, client


def end(server, client):
    """The client's result."""
    try:
        output, errors = client.communicate(timeout=150)
        code = server.wait(60)
    except subprocess.TimeoutExpired:
        pytest.fail("hangs")
    assert client.returncode == 0, f"client: {errors}\n{output[-3000:]}\n{netns.text_of(server)}"
    assert code == 0, f"server: {netns.text_of(server)}"
    return json.loads(output.splitlines()[-1])


def stream(place, build, cuts, seconds, size="16K"):
    """A verified stream under cuts: everything arrives, once and in order."""
    more = ["--cut", ",".join(cuts)] if cuts else []
    result = end(*start(place, build, "--test", "failover", "--size", size, "--duration", seconds, *more))
    assert all(result[key] == 0 for key in WRONG), json.dumps(result)
    assert result["messages"] > 0, json.dumps(result)
    made = [cut["at_ms"] is not None for cut in result["cuts"]]
    assert all(made) and len(made) == len(cuts), f"not all cuts were made: no test: {json.dumps(result)}"
    return result


def rail_by(result, nic):
    found = [rail for rail in result["rails"] if rail["nic"] == nic]
    assert len(found) == 1, f"rails by {nic}: {json.dumps(result['rails'])}"
    return found[0]


def changes_of(result, nic):
    """(state, reason) of each change of its rail."""
    number = rail_by(result, nic)["rail"]
    return [(change["state"], change["reason"]) for change in result["changes"] if change["rail"] == number]


def expect_returned(result, *nics):
    for nic in nics:
        # On a busy machine a rail may be under suspicion for a moment at any time.
        assert rail_by(result, nic)["state"] in ("up", "suspect"), f"{nic} is not used in the end: {json.dumps(result)}"
    assert result["never_reinstated"] == 0, f"a mended rail was not used again: {json.dumps(result)}"
