"""pullman-info --svg: pictures of a host and of a job, as a browser reads them."""

import functools
import json
import os
import re
import subprocess
import xml.etree.ElementTree

import pytest

import cases
import netns
import railnet
from verified_stream import PORT

case = functools.partial(cases.case, kind=railnet.Rails, megabits=None)
on_this_host = functools.partial(cases.case, kind=netns.Loopback)

SVG = "{http://www.w3.org/2000/svg}"
TIP = "{http://www.w3.org/1999/xlink}title"
FINDINGS = ("fine", "large lost", "other NIC there", "other NIC here", "one way there", "one way back", "unreachable",
            "wrong host", "not checked")


class Picture:
    """An SVG file: its texts, and what a browser says of its fields when the pointer is there."""

    def __init__(self, file):
        root = xml.etree.ElementTree.parse(file).getroot()
        assert root.tag == SVG + "svg", root.tag
        self.tags = {element.tag.removeprefix(SVG) for element in root.iter()}
        self.texts = [plain(element.text or "") for element in root.iter(SVG + "text")]
        self.tips = [plain(element.get(TIP)) for element in root.iter(SVG + "a") if element.get(TIP)]
        self.styles = [(element.get("stroke"), element.get("stroke-dasharray"))
                       for element in root.iter(SVG + "path")]

    def fields(self):
        """Those of the map; the legend's have no rail."""
        return [tip for tip in self.tips if " to " in tip]


def plain(text):
    return text.replace("\u00a0", " ").strip()


def info(place, build, *options, **variables):
    """The exit code, and what is said."""
    run = subprocess.run(place.command(1, build / "tools/pullman-info", *options), check=False, capture_output=True,
                         text=True, timeout=60,
                         env={**os.environ, **place.environment, "PULLMAN_SECURITY": "off", **variables})
    return run.returncode, run.stdout + run.stderr


def map_of(number, hosts, rails=2, **changes):
    """What --map writes on one of so many hosts, which have as many rails to each other."""
    peers = [{"peer": f"10.0.0.{other}:7100", "reached": True, "why_not": None, "fine": True,
              "rails": [{"rail": rail, "nic": f"eth{rail}", "remote": f"10.{rail}.0.{other}:7100", "finding": "fine",
                         "verdict": "carries messages"} for rail in range(rails)]}
             for other in range(hosts) if other != number]
    return {"host": f"node{number}", "address": f"10.0.0.{number}:7100", "peers": peers, **changes}


def draw(place, build, folder, maps):
    """The heat map of such maps, given in the order of file names."""
    files = [folder / f"map.{number}" for number in range(len(maps))]
    for file, content in zip(files, maps):
        file.write_text(json.dumps(content))
    code, said = info(place, build, "--svg", folder / "job.svg", "--maps", *sorted(files))
    assert (code, said) == (0, ""), f"{code}: {said}"
    return Picture(folder / "job.svg")


@case(count=3)
def test_the_picture_of_a_host_has_every_nic_with_its_name_as_it_is(place, build, tmp_path):
    odd = "a<b&\"c--"
    netns.run("ip", "-n", place.names[1], "link", "set", "veth2", "down")
    netns.run("ip", "-n", place.names[1], "link", "set", "veth2", "name", odd)
    netns.run("ip", "-n", place.names[1], "link", "set", odd, "up")
    code, said = info(place, build, "--svg", tmp_path / "host.svg", "--format", "json")
    assert code == 0, said

    picture = Picture(tmp_path / "host.svg")
    nics = {row["name"] for row in json.loads(said)["nics"]}
    assert {"lo", "veth0", "veth1", odd} <= nics, nics
    for name in nics:
        assert picture.texts.count(name) == 1, f"{name}: {picture.texts}"
    assert any(text.startswith("NUMA node") for text in picture.texts), picture.texts
    assert any("packets of 1472 bytes" in text for text in picture.texts), picture.texts


@case(count=3)
def test_the_picture_of_a_host_has_the_rails_to_a_peer_and_those_that_fail_look_different(place, build, tmp_path):
    place.drop(1, 0, "ip protocol udp")
    place.start_server(0, build / "bench/pullman-perf", "--port", PORT, env={**os.environ, "PULLMAN_SECURITY": "off"})
    code, said = info(place, build, "--peer", f"{place.hosts[0]}:{PORT}", "--svg", tmp_path / "host.svg")
    assert code == 1 and "one way back" in said, f"{code}: {said}"

    picture = Picture(tmp_path / "host.svg")
    rails = sorted(text for text in picture.texts if re.match(r"rail \d:", text))
    assert [re.sub(r" \d+ us", " N us", rail) for rail in rails] == [
        "rail 0: up, N us, fine", "rail 1: down, one way back", "rail 2: up, N us, fine"], rails
    dashed = [style for style in picture.styles if style[1]]
    assert len(dashed) == 1, picture.styles


@case()
def test_a_check_draws_a_field_for_each_rail_and_ends_as_it_would_without_a_picture(place, build, tmp_path):
    place.drop(1, 0, "ip protocol udp")
    place.start_server(0, build / "bench/pullman-perf", "--port", PORT, env={**os.environ, "PULLMAN_SECURITY": "off"})
    code, said = info(place, build, "--check", f"{place.hosts[0]}:{PORT}", "--map", tmp_path / "map", "--svg",
                      tmp_path / "check.svg")
    assert code == 1, said
    fields = Picture(tmp_path / "check.svg").fields()
    assert len(fields) == 2, fields
    assert "rail 0 (veth0" in fields[0] and "fine" in fields[0], fields
    assert "rail 1 (veth1" in fields[1] and "one way back" in fields[1], fields

    code, said = info(place, build, "--maps", tmp_path / "map", "--svg", tmp_path / "again.svg")
    assert (code, said) == (0, "")
    assert (tmp_path / "again.svg").read_text() == (tmp_path / "check.svg").read_text()


@on_this_host()
@pytest.mark.parametrize("hosts", (2, 16))
def test_the_heat_map_of_a_job_has_a_cell_for_each_pair_and_a_field_for_each_rail(place, build, tmp_path, hosts):
    picture = draw(place, build, tmp_path, [map_of(number, hosts) for number in range(hosts)])
    assert sorted(field.split(" (")[0] for field in picture.fields()) == sorted(
        f"node{one} to 10.0.0.{other}:7100, rail {rail}" for one in range(hosts) for other in range(hosts)
        if one != other for rail in range(2))
    rails = 2 * hosts * (hosts - 1)
    assert f"{rails} of {rails} rails are fine" in picture.texts, picture.texts
    # node2 is before node10, whatever the order of the files was.
    assert [text for text in picture.texts if text.startswith("node")] == [f"node{number}" for number in range(hosts)]
    addresses = [text for text in picture.texts if text.startswith("10.")]
    assert addresses == [f"10.0.0.{number}:7100" for number in range(hosts)]


@on_this_host()
def test_the_heat_map_has_a_sign_of_its_own_for_each_finding_which_the_legend_explains(place, build, tmp_path):
    one = map_of(0, 2, rails=len(FINDINGS))
    del one["peers"][0]["rails"][8:]
    one["peers"].append({"peer": "10.0.0.9:7100", "reached": False, "why_not": "does it listen?", "rails": []})
    for rail, finding in zip(one["peers"][0]["rails"], FINDINGS):
        rail["finding"] = finding
    picture = draw(place, build, tmp_path, [one])
    legend = [tip for tip in picture.tips if tip in FINDINGS + ("not reached",)]
    assert legend == [*FINDINGS, "not reached"]
    for finding in legend:
        assert len([text for text in picture.texts if text.startswith(finding + ": ")]) == 1, finding
    signs = [text for text in picture.texts if text in tuple("LNn><x!?-")]
    assert sorted(signs) == sorted("LNn><x!?-" "LNn><x!" "-"), signs
    assert [tip for tip in picture.tips if "does it listen?" in tip], picture.tips
    assert "1 of 8 rails are fine; no answer: 1 pair" in picture.texts


@on_this_host()
def test_names_that_come_from_outside_are_text_and_nothing_else(place, build, tmp_path):
    hostile = "</text><script>alert(1)</script>&\"']]>-->\\N\\\"]}"
    one = map_of(0, 2, host=hostile)
    peer = one["peers"][0]
    peer["peer"] = hostile + "2"
    for name in ("nic", "remote", "verdict"):
        peer["rails"][0][name] = hostile
    peer["rails"][1]["verdict"] = "\u202e\u00e9\n" + 5000 * "x"
    picture = draw(place, build, tmp_path, [one])
    assert "script" not in picture.tags, picture.tags
    assert hostile in picture.texts and hostile + "2" in picture.texts, picture.texts
    assert f"{hostile} to {hostile}2, rail 0 ({hostile} to {hostile}): {hostile}" in picture.fields()
    assert max(map(len, picture.fields())) < 500


@on_this_host()
def test_processes_of_one_host_are_told_apart_by_their_addresses(place, build, tmp_path):
    picture = draw(place, build, tmp_path, [map_of(number, 3, host="one") for number in range(3)])
    assert [text for text in picture.texts if text.startswith("one (")] == [f"one (10.0.0.{number}:7100)"
                                                                            for number in range(3)]


def refused(place, build, *options, **variables):
    """What is said by a program that ends with 1."""
    code, said = info(place, build, *options, **variables)
    assert code == 1, f"{code}: {said}"
    return said


@on_this_host()
def test_a_picture_that_cannot_be_drawn_or_written_is_an_error_that_says_why(place, build, tmp_path):
    (tmp_path / "map").write_text(json.dumps(map_of(0, 2)))
    kept = tmp_path / "kept.svg"
    kept.write_text("from before")
    for options in (["--maps", tmp_path / "map"], []):
        said = refused(place, build, *options, "--svg", tmp_path / "no/such.svg")
        assert f"cannot write {tmp_path}/no/such.svg: No such file or directory" in said, said
        assert "cannot write /dev/full: No space left" in refused(place, build, *options, "--svg", "/dev/full")
        said = refused(place, build, *options, "--svg", kept, PATH="/nowhere")
        assert "no program 'dot': apt install graphviz" in said, said
        broken = tmp_path / "broken"
        broken.mkdir(exist_ok=True)
        (broken / "dot").write_text("#!/bin/sh\necho '<svg'\nexit 1\n")
        (broken / "dot").chmod(0o755)
        assert "('dot') has failed" in refused(place, build, *options, "--svg", kept, PATH=f"{broken}:/bin")
    assert kept.read_text() == "from before"


@on_this_host()
def test_what_is_no_map_is_refused_with_a_sentence(place, build, tmp_path):
    draw_to = ("--svg", tmp_path / "job.svg", "--maps")
    assert "cannot read /no/map: No such file" in refused(place, build, *draw_to, "/no/map")
    wrong = [json.dumps(map_of(0, 2))[:100], "", "7", "[]", "{}", '{"host": "a", "peers": 3}', 100_000 * "[",
             json.dumps(map_of(0, 2, host=None)), json.dumps(map_of(0, 2, peers=[{"peer": 1}]))]
    for text in wrong:
        (tmp_path / "map").write_text(text)
        said = refused(place, build, *draw_to, tmp_path / "map")
        assert "is no map, as --map writes one" in said, f"{text[:60]}: {said}"
    (tmp_path / "map").write_text(json.dumps(map_of(0, 300)))
    assert "299 processes: 256 at most" in refused(place, build, *draw_to, tmp_path / "map")
    (tmp_path / "map").write_text(json.dumps(map_of(0, 200, rails=400)))
    assert "79600 rails: 65536 at most" in refused(place, build, *draw_to, tmp_path / "map")
    assert not (tmp_path / "job.svg").exists()


@on_this_host()
def test_options_that_do_not_go_together_end_with_2(place, build, tmp_path):
    for options in (["--maps", "map"], ["--maps", "map", "--svg", "a", "--check", "127.0.0.1:1"],
                    ["--maps", "map", "--svg", "a", "--peer", "127.0.0.1:1"], ["--svg"]):
        code, said = info(place, build, *options)
        assert code == 2 and "--" in said, f"{options}: {code} {said}"
