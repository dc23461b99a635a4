"""Pullman and what a user would pick instead, side by side: compare.py BUILD_DIRECTORY [options]

Two namespaces, veth, MTU 1500. In every round each contender has its turn at each size, one right after the
other, so that whatever else the machine does hits all alike; medians of the rounds. Then the same with
packets getting lost.
"""

import argparse
import json
import pathlib
import shutil
import sys
import time

import compare_report
import contenders
import netns
from contenders import DidNotFinish, Task

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench/plot"))
import compare_plot  # noqa: E402

PARTS = ("latency", "stream", "rate", "loss")
SIZES = (8, 64, 512, 1024, 4096, 16384, 65536, 262144, 1 << 20)
LOSSES = (0, 0.1, 1, 5)
LOSS_SIZES = {"bandwidth": 1 << 20, "latency": 64}
FIRST_PORT, PORTS = 7100, 800


def plan(options):
    """[(task, runs)]; what figures are asked for is measured in every round, the rest of the curves in some."""
    some = (options.runs + 1) // 2
    tasks = []
    if "latency" in options.only:
        tasks += [(Task("latency", size), options.runs if size <= 64 else some) for size in options.sizes]
    if "stream" in options.only:
        tasks += [(Task("bandwidth", size), options.runs if size in (16384, 65536, 1 << 20) else some)
                  for size in options.sizes]
    if "rate" in options.only:
        tasks += [(Task("rate", 8, 1024), options.runs)]
        tasks += [(Task("rate", size), options.runs if size == 8 else some)
                  for size in options.sizes if size <= 4096]
    if "loss" in options.only:
        tasks += [(Task(test, size, loss=loss, offloads=offloads), some if offloads else options.runs)
                  for offloads in (True, False) for test, size in LOSS_SIZES.items() for loss in options.losses]
    return list({task.name: (task, runs) for task, runs in reversed(tasks)}.values())[::-1]


class Run:
    """Everything that was measured: {(task name, contender): [figures or None for each round]}."""

    def __init__(self, options, taking_part):
        self.options, self.taking_part = options, taking_part
        self.singles, self.tasks, self.why_not = {}, {}, {}
        self.count = 0

    def measure(self, pair, task, contender):
        self.count += 1
        port = FIRST_PORT + self.count % PORTS
        key = (task.name, contender.name)
        try:
            figures = contender.run(pair, task, port)
        except DidNotFinish as problem:
            figures = None
            self.why_not[key] = str(problem)
        self.tasks[task.name] = task
        self.singles.setdefault(key, []).append(figures)
        pair.programs = [program for program in pair.programs if program.poll() is None]

    def rounds(self, tasks):
        for offloads in (True, False):
            mine = [(task, runs) for task, runs in tasks if task.offloads == offloads]
            if not mine:
                continue
            with netns.Pair(offloads=offloads) as pair:
                for number in range(max(runs for _, runs in mine)):
                    if self.late():
                        say(f"stopped after {self.options.minutes:g} minutes: fewer rounds than asked for")
                        return
                    self.round(pair, [task for task, runs in mine if number < runs])
                    say(f"round {number + 1}, {'' if offloads else 'one packet at a time, '}"
                        f"{time.monotonic() - self.options.began:.0f} s")

    def round(self, pair, tasks):
        for task in tasks:
            pair.lose(task.loss)
            for contender in self.taking_part:
                if contender.takes(task) and not self.late():
                    self.measure(pair, adapted(task, self.options), contender)

    def late(self):
        return time.monotonic() - self.options.began > 60 * self.options.minutes

    def results(self):
        return compare_report.Results(self.tasks, self.singles, self.why_not)


def adapted(task, options):
    """Losses are rare events: they get three times the time."""
    return contenders.replace(task, seconds=options.seconds * (1 if task.offloads and task.loss == 0 else 3))


def say(text):
    print(text, file=sys.stderr, flush=True)


def parse():
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--runs", type=int, default=5, help="rounds (5); what is only plotted gets half")
    arguments.add_argument("--seconds", type=float, default=0.3, help="per measurement (0.3)")
    arguments.add_argument("--only", default=",".join(PARTS), help=f"some of {','.join(PARTS)} (all)")
    arguments.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes, comma-separated")
    arguments.add_argument("--losses", default=",".join(f"{loss:g}" for loss in LOSSES), help="percent")
    arguments.add_argument("--with", dest="names", help="these only, of the tables' first column")
    arguments.add_argument("--minutes", type=float, default=30, help="stops after so long with what there is (30)")
    arguments.add_argument("--json", type=pathlib.Path, help="writes everything that was measured there")
    arguments.add_argument("--plots", type=pathlib.Path, default=ROOT / "docs/plots", help="where SVG files go")
    options = arguments.parse_args()
    options.only = tuple(options.only.split(","))
    if not set(options.only) <= set(PARTS) or options.runs < 1 or not 0 < options.seconds < 100:
        arguments.error(f"--only knows {', '.join(PARTS)}; --runs at least 1; --seconds up to 100")
    options.sizes = [int(size) for size in options.sizes.split(",")]
    options.losses = [float(loss) for loss in options.losses.split(",")]
    options.names = options.names and options.names.split(",")
    options.began = time.monotonic()
    return options


def who_takes_part(options):
    found = []
    for contender in contenders.everybody(options.build.resolve()):
        if options.names and contender.name not in options.names:
            continue
        if contender.missing():
            print(f"{contender.name} does not take part: {contender.missing()}", flush=True)
        else:
            found.append(contender)
    return found


def main():
    options = parse()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    why_not = netns.possible()
    if why_not:
        print(f"skipped ({why_not}): comparison with peers")
        return
    taking_part = who_takes_part(options)
    run = Run(options, taking_part)
    run.rounds(plan(options))
    results = run.results()
    order = list(dict.fromkeys((one.name, one.role) for one in taking_part))
    print(compare_report.text(results, order))
    if options.json:
        options.json.write_text(json.dumps(compare_report.everything(results, order), indent=1) + "\n")
    if shutil.which("gnuplot") is None:
        print("no plots: gnuplot is not installed (Debian: gnuplot-nox)")
        return
    for file in compare_plot.draw(results, order, options.plots):
        print(file)


if __name__ == "__main__":
    main()
