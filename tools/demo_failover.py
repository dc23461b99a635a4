"""Shows rails being cut and mended under a verified stream: demo_failover.py BUILD_DIRECTORY

Two processes in two network namespaces with two rails of 1 Gb/s each. A bar for each rail while one or the other is
cut: its link taken down, silent both ways, silent one way, and down and up again many times. Without a terminal,
lines in place of bars.
"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import netns
import railnet

PORT = 7100
MEGABITS = 1000
SECONDS = 13
EVERY_MS = 100
FLAP_EVERY = 0.1  # seconds: down for half of it
# (what is shown, from, to, --cut), in seconds of the stream.
SCENES = [
    ("the link of veth0 is down: the kernel says so", 1.5, 3, ["veth0@1.5-3"]),
    ("veth1 swallows everything, both ways, and nobody says so", 4, 5.5, ["veth1:silent@4-5.5"]),
    ("veth0 hears nothing any more, but speaks", 6.5, 8, ["veth0:deaf@6.5-8"]),
    ("veth1 flaps, ten times a second", 9, 11,
     [f"veth1@{9 + i * FLAP_EVERY:.2f}-{9 + (i + 0.5) * FLAP_EVERY:.2f}" for i in range(20)]),
]


def scene_at(seconds):
    for text, begin, end, _ in SCENES:
        if begin <= seconds < end:
            return text
    return "all is well"


class Lines:
    """Without a terminal: a line when something changes, and one a second."""

    def __init__(self):
        self.last = None
        self.second = -1

    def show(self, seconds, rails):
        now = (scene_at(seconds), [(rail["nic"], rail["state"]) for rail in rails])
        if now == self.last and int(seconds) == self.second:
            return
        self.last, self.second = now, int(seconds)
        words = ", ".join(f"{rail['nic']} {rail['state']} {rail['gbit']:.2f} Gb/s" for rail in rails)
        print(f"{seconds:6.1f} s  {words}  ({now[0]})", flush=True)

    def end(self):
        pass


class Bars:
    """On a terminal: a bar for each rail, redrawn in place."""

    COLOURS = {"up": 32, "suspect": 33, "probing": 36, "drained": 35}  # else red

    def __init__(self):
        self.lines = 0
        print("\033[?25l", end="")

    def show(self, seconds, rails):
        width = max(10, min(50, shutil.get_terminal_size().columns - 62))
        text = [f"{seconds:5.1f} s  {scene_at(seconds)}"]
        for rail in rails:
            filled = min(width, round(width * rail["gbit"] * 1000 / MEGABITS))
            colour = self.COLOURS.get(rail["state"], 31)
            text.append(f"  {rail['nic']:<8}\033[{colour}m{rail['state']:<8}\033[0m {'█' * filled}{'░' * (width - filled)} "
                        f"{rail['gbit']:.2f} Gb/s  {rail['reason']}")
        up = f"\033[{self.lines}A" if self.lines else ""
        print(up + "\n".join("\033[K" + line for line in text), flush=True)
        self.lines = len(text)

    def end(self):
        print("\033[?25h", end="", flush=True)


class Rates:
    """Gb/s of each rail between two looks."""

    def __init__(self):
        self.ms, self.bytes = 0, {}

    def of(self, line):
        span = max(1e-3, line["at_ms"] - self.ms)
        for rail in line["rails"]:
            before = self.bytes.get(rail["rail"], 0)
            rail["gbit"] = (rail["bytes"] - before) * 8 / span / 1e6
            self.bytes[rail["rail"]] = rail["bytes"]
        self.ms = line["at_ms"]
        return line["rails"]


def watch(client, display):
    """Shows what the client says, and returns its result: the last line."""
    rates, result = Rates(), None
    try:
        for text in client.stdout:
            line = json.loads(text)
            if "at_ms" in line:
                display.show(line["at_ms"] / 1000, rates.of(line))
            else:
                result = line
    finally:
        display.end()
    return result


def conclude(result):
    print(f"\n{result['messages']} messages of {result['size'] // 1024} KiB, every byte verified, "
          f"{result['mb_per_s'] * 8e-3:.2f} Gb/s on average.\n")
    for text, begin, end, _ in SCENES:
        cuts = [cut for cut in result["cuts"] if begin * 1000 - 1 <= (cut["at_ms"] or 0) < end * 1000]
        gap = max((cut["gap_ms"] or 0 for cut in cuts), default=0)
        back = [cut["reinstated_ms"] for cut in cuts][-1:]
        used = f"used again {back[0]:.0f} ms after it was mended" if back and back[0] is not None else ""
        print(f"  {text:<57} longest gap {gap:6.1f} ms; {used}")
    print(f"\nLongest gap between two messages: {result['longest_gap_ms']:.1f} ms. "
          f"{result['sent_twice']} packets were sent twice.")
    print(f"{result['lost']} lost, {result['duplicated']} duplicated, {result['misordered']} misordered, "
          f"{result['corrupted']} corrupted.")


def play(build):
    perf = build / "bench/pullman-perf"
    with railnet.Rails(2, MEGABITS) as places, tempfile.TemporaryDirectory() as folder:
        netns.make_key(folder)
        server = places.start_server(0, perf, "--port", PORT)
        cuts = ",".join(cut for _, _, _, cuts in SCENES for cut in cuts)
        client = places.start(1, perf, "--port", PORT, "--test", "failover", "--size", "64K", "--duration", SECONDS,
                              "--cut", cuts, "--watch", EVERY_MS, "--format", "json", places.hosts[0],
                              stdout=subprocess.PIPE, text=True)
        result = watch(client, Bars() if sys.stdout.isatty() else Lines())
        if client.wait(60) != 0 or server.wait(60) != 0 or result is None:
            sys.exit(f"the stream failed\n{netns.text_of(server)}")
    conclude(result)


def main():
    netns.exit_on_signals()
    build = pathlib.Path(sys.argv[1]).resolve()
    why_not = netns.possible()
    if why_not:
        sys.exit(f"this demonstration needs network namespaces: {why_not}")
    print("Two processes in two network namespaces, two rails of 1 Gb/s each (veth, tbf).\n", flush=True)
    play(build)


if __name__ == "__main__":
    main()
