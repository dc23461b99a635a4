"""Shows an MPI program that goes on when a rail is cut: demo_mpi.py BUILD_DIRECTORY

Two hosts (network namespaces) with two rails. A verified halo exchange over Open MPI's OFI MTL and Pullman while one
rail swallows everything, and while the other's link is down; then the same over Open MPI's own TCP with both rails,
which stands still for as long as a rail is down. Needs Debian's openmpi-bin and libopenmpi-dev.
"""

import pathlib
import queue
import sys
import threading
import time

import mpi_job
import netns

SECONDS = 8
BYTES = 128 * 1024  # more than the TCP BTL sends over one rail
PATIENCE = 15  # seconds beyond SECONDS; a job that is not done then is ended
AFTERWARDS = 1.5  # seconds after the mend in which a step still counts as the cut's
NAMES = {"pullman": "Open MPI, OFI MTL, Pullman", "tcp": "Open MPI, TCP BTL"}


class Cut:
    def __init__(self, words, begin, end, cut, mend):
        self.words, self.begin, self.end = words, begin, end  # seconds
        self.do = [(begin, cut), (end, mend)]

    def longest(self, lines):
        """The longest step, in ms, that began before the cut ended or soon after."""
        return max((line.longest for line in lines
                    if self.begin * 1e3 <= line.at and line.at - line.longest <= (self.end + AFTERWARDS) * 1e3), default=None)


CUTS = [
    Cut("veth1 swallows everything, and nobody says so", 2, 3.5, lambda hosts: hosts.silence(1),
        lambda hosts: hosts.silence(1, ())),
    Cut("the link of veth0 is down", 5.5, 7, lambda hosts: hosts.cut(0, True, 0), lambda hosts: hosts.cut(0, False, 0)),
]


class Line:
    """What the program said: at this time (ms since it began), so many steps done, the longest since it last spoke."""

    def __init__(self, text, began):
        at, steps, longest = text.split()
        self.at, self.steps, self.longest = float(at) - began, int(steps), float(longest)


class Watched:
    """One job, what it says, and the cuts that are done meanwhile."""

    def __init__(self, hosts, build, transport):
        self.hosts = hosts
        self.job = mpi_job.Job(hosts, build, 2, mpi_job.compile_program(build, "halo"), SECONDS, BYTES,
                               transport=transport)
        self.texts, self.lines, self.other, self.began = queue.Queue(), [], [], None
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self):
        for text in self.job.process.stdout:
            self.texts.put(text)
        self.texts.put(None)

    def now(self):
        """Milliseconds since the program's first word; the namespaces have the machine's clock."""
        return time.monotonic() * 1e3 - self.began if self.began is not None else 0

    def run(self, show):
        """Whether it ended by itself, and well."""
        due = sorted(((at, do) for cut in CUTS for at, do in cut.do), key=lambda one: one[0])
        end = time.monotonic() + SECONDS + PATIENCE
        while time.monotonic() < end:
            while due and self.now() >= due[0][0] * 1e3:
                due.pop(0)[1](self.hosts)
            try:
                text = self.texts.get(timeout=0.02)
            except queue.Empty:
                show(self)
                continue
            if text is None:
                return self.job.process.wait(20) == 0
            self._take(text)
            show(self)
        self.job.process.terminate()
        return False

    def _take(self, text):
        if not text.split() or not text.split()[0].replace(".", "").isdigit():
            self.other.append(text)
            return
        if self.began is None:
            self.began = float(text.split()[0])
        self.lines.append(Line(text, self.began))


class Show:
    """A line every half second: what is cut, and how the program does."""

    EVERY = 500  # ms

    def __init__(self):
        self.said, self.steps = 0, 0

    def __call__(self, watched):
        now = watched.now()
        if not watched.lines or now - self.said < self.EVERY:
            return
        fresh = [line for line in watched.lines if line.at > self.said]
        cut = next((cut.words for cut in CUTS if cut.begin * 1e3 <= now < cut.end * 1e3), "all is well")
        if fresh:
            did = f"{fresh[-1].steps - self.steps:6d} steps, the longest {max(line.longest for line in fresh):7.1f} ms"
            self.steps = fresh[-1].steps
        else:
            did = f"stands still for {now - watched.lines[-1].at:6.0f} ms          "
        print(f"  {now / 1e3:5.1f} s  {did}   {cut}", flush=True)
        self.said = now


def play(build, transport):
    print(f"{NAMES[transport]}:", flush=True)
    with mpi_job.Hosts() as hosts:
        watched = Watched(hosts, build, transport)
        well = watched.run(Show())
        if not watched.lines:
            sys.exit("the program did not start:\n" + "".join(watched.other))
        right = well and any("right on 2 ranks" in text for text in watched.other)
        print("  every byte was as it should be" if right else
              f"  ended by us: it was not done {PATIENCE} s after its time" if not well else "".join(watched.other))
    print(flush=True)
    return watched, right


def conclude(played):
    print(f"{'the longest step while':<48} " + "  ".join(f"{NAMES[name]:>26}" for name in played))
    for cut in CUTS:
        longest = (cut.longest(watched.lines) for watched, _ in played.values())
        print(f"  {cut.words:<46} " +
              "  ".join(f"{'never went on' if ms is None else f'{ms:.1f} ms':>26}" for ms in longest))


def main():
    netns.exit_on_signals()
    build = pathlib.Path(sys.argv[1]).resolve()
    why_not = mpi_job.missing() or netns.possible()
    if why_not:
        sys.exit(f"this demonstration cannot run here: {why_not}")
    print(f"Two hosts with two rails, an MPI program of two ranks: a halo exchange of {BYTES // 1024} KiB, verified.\n")
    played = {transport: play(build, transport) for transport in ("pullman", "tcp")}
    conclude(played)
    return 0 if played["pullman"][1] else 1


if __name__ == "__main__":
    sys.exit(main())
