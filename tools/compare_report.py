"""What compare.py measured, as tables, as a list of what was asked for, and as JSON."""

import statistics

import verdict
from contenders import Task

KEYS = {"latency": "p50_us", "bandwidth": "mb_per_s", "rate": "messages_per_s"}
TITLES = {"latency": "half round trip, us (median)", "bandwidth": "stream, MB/s, window 64",
          "rate": "messages/s"}
OURS, BARE = "Pullman udp", "raw udp"
LOSS_KEYS = {"bandwidth": ("1 MiB stream, MB/s", "mb_per_s"), "latency": ("64 B ping-pong, mean, us", "mean_us")}
ROUNDS = 5  # are asked for; fewer are said to be


class Results:
    """Medians over the rounds, by task and contender."""

    def __init__(self, tasks, singles, why_not):
        self.tasks, self.all, self.why_not = tasks, singles, why_not

    def singles(self, task, name, key):
        """A value or None for each round."""
        return [figures and figures.get(key) for figures in self.all.get((task.name, name), [])]

    def median(self, task, name, key=None):
        """None if it was not measured, or did not finish in half of the rounds or more."""
        values = self.singles(task, name, key or KEYS[task.test])
        good = [value for value in values if value is not None]
        return statistics.median(good) if 2 * len(good) > len(values) else None

    def ratios(self, ours, theirs):
        """Of the single rounds; each side is (task, name, key)."""
        pairs = zip(*(self.all.get((task.name, name), []) for task, name, _ in (ours, theirs)))
        return [a[ours[2]] / b[theirs[2]] for a, b in pairs if a and b and a.get(ours[2]) and b.get(theirs[2])]

    def chosen(self, wanted):
        return [task for task in self.tasks.values() if wanted(task)]


def size_text(size):
    for unit, text in ((1 << 20, "MiB"), (1 << 10, "KiB")):
        if size >= unit and size % unit == 0:
            return f"{size // unit} {text}"
    return f"{size} B"


def number(value):
    if value is None:
        return "-"
    return f"{value:.2f}" if value < 100 else f"{value:.0f}" if value < 1e5 else f"{value / 1e6:.3g}M"


def lines_of(title, heads, rows):
    """A table as text: rows are (name, cells)."""
    widths = [max(len(cell) for cell in column) for column in zip(heads, *(cells for _, cells in rows))]
    def line(name, cells):
        return f"  {name:<16}" + "".join(f"  {cell:>{width}}" for cell, width in zip(cells, widths))
    return [f"\n{title}", line("", heads), *(line(name, cells) for name, cells in rows)]


def table(results, order, test):
    """Values with their ratio to the bare thing; then how far Pullman is ahead of each."""
    tasks = sorted(results.chosen(lambda t: t.test == test and t.loss == 0 and t.offloads),
                   key=lambda t: (t.size, t.window))
    heads = [size_text(t.size) + (f" w{t.window}" if test == "rate" else "") for t in tasks]
    def cell(task, name):
        value, bare = results.median(task, name), results.median(task, BARE)
        if (task.name, name) in results.all and value is None:
            return "did not finish"
        return number(value) + (f" {value / bare:5.2f}x" if value and bare else "")
    def ahead(task, name):
        ours, theirs = results.median(task, OURS), results.median(task, name)
        if not ours or not theirs:
            return "-"
        return f"{theirs / ours if test == 'latency' else ours / theirs:.2f}x"
    names = [name for name, _ in order if any((task.name, name) in results.all for task in tasks)]
    if not names:
        return []
    return (lines_of(f"{TITLES[test]}; and over {BARE}", heads,
                     [(name, [cell(task, name) for task in tasks]) for name in names]) +
            lines_of(f"{OURS}: how many times as fast as", heads,
                     [(name, [ahead(task, name) for task in tasks]) for name in names if name != OURS]))


def loss_table(results, order, test, offloads):
    """Values with their ratio to the same without loss."""
    title, key = LOSS_KEYS[test]
    size = 64 if test == "latency" else 1 << 20
    tasks = sorted(results.chosen(lambda t: (t.test, t.size, t.offloads) == (test, size, offloads)
                                  and t.window == 64), key=lambda t: t.loss)
    if len(tasks) < 2:
        return []
    def cell(task, name):
        value, lossless = results.median(task, name, key), results.median(tasks[0], name, key)
        if (task.name, name) in results.all and value is None:
            return "did not finish"
        return number(value) + (f" {value / lossless:7.3f}x" if value and lossless else "")
    names = [name for name, role in order if role != "raw" and any((t.name, name) in results.all for t in tasks)]
    how = "a burst at once (offloads on)" if offloads else "each packet alone (offloads off)"
    return lines_of(f"{title}, packets lost, {how}; and over no loss", [f"{t.loss:g} %" for t in tasks],
                    [(name, [cell(task, name) for task in tasks]) for name in names])


class Asked:
    """The figures that were asked for: lines that end in met or MISSED."""

    def __init__(self, results, order):
        self.results = results
        self.peers = [name for name, role in order if role == "peer"]
        self.lines = []

    def say(self, what, value, words, spread=""):
        self.lines.append(f"  {what:<52} {value:>9}  {spread:<18} {words}")

    def ratio(self, what, ours, theirs, least=None, most=None):
        """The median of the rounds' ratios: within a round both were measured one right after the other, while a
        machine's pace may change from one round to the next. Each side is (task, name, key)."""
        ratios = self.results.ratios(ours, theirs)
        if not ratios or self.results.median(*ours) is None or self.results.median(*theirs) is None:
            if self.results.singles(*ours):
                self.lines.append(f"  {what:<52} no figure: one of the two did not finish or took no part")
            return
        words = verdict.judge(ratios, least, most)
        if len(ratios) < ROUNDS:
            words += f" (of {len(ratios)} rounds)"
        self.say(what, f"{statistics.median(ratios):.3f}", words, verdict.between(ratios))

    def best_peer(self, task, key):
        """The one with the most."""
        values = {name: self.results.median(task, name, key) for name in self.peers}
        values = {name: value for name, value in values.items() if value is not None}
        return max(values, key=values.get) if values else None

    def over_best(self, what, task, least):
        key = KEYS[task.test]
        best = self.best_peer(task, key)
        if best:
            self.ratio(f"{what} over the best peer ({best})", (task, OURS, key), (task, best, key), least=least)

    def latency(self):
        for key, most in (("p50_us", 1.10), ("p99_us", 1.15)):
            for size in (8, 64):
                task = Task("latency", size)
                self.ratio(f"half round trip, {size} B, {key[:3]}, over raw", (task, OURS, key),
                           (task, BARE, key), most=most)

    def streams(self):
        task, key = Task("bandwidth", 1 << 20), "mb_per_s"
        for name, least in ((BARE, 0.75), ("tcp;ofi_rxm", 1.3), ("UCX tcp", 1.3)):
            self.ratio(f"stream, 1 MiB, over {name}", (task, OURS, key), (task, name, key), least=least)
        for size in (65536, 16384):
            self.over_best(f"stream, {size_text(size)},", Task("bandwidth", size), 1)

    def rates(self):
        for window, least in ((64, 3e6), (1024, 5e6)):
            task = Task("rate", 8, window)
            value = self.results.median(task, OURS)
            if value is not None:
                seen = [one for one in self.results.singles(task, OURS, KEYS["rate"]) if one is not None]
                self.say(f"8 B messages, window {window}, M/s", f"{value / 1e6:.2f}",
                         verdict.judge([one / 1e6 for one in seen], least=least / 1e6),
                         verdict.between([one / 1e6 for one in seen]))
        self.over_best("8 B messages, window 64,", Task("rate", 8), 10)

    def loss(self):
        for percent, least in ((1, 0.8), (5, 0.5)):
            lossy, none = (Task("bandwidth", 1 << 20, loss=loss, offloads=False) for loss in (percent, 0))
            self.ratio(f"stream, 1 MiB, {percent} % lost one by one, over none", (lossy, OURS, "mb_per_s"),
                       (none, OURS, "mb_per_s"), least=least)
        for offloads in (True, False):
            lossy, none = (Task("latency", 64, loss=loss, offloads=offloads) for loss in (1, 0))
            self.ratio(f"64 B ping-pong, mean, 1 % lost, offloads {'on' if offloads else 'off'}",
                       (lossy, OURS, "mean_us"), (none, OURS, "mean_us"), most=2)

    def spurious(self):
        found = [figures["spurious_retransmits"] for (task, name), rounds in self.results.all.items()
                 for figures in rounds
                 if figures and name == OURS and self.results.tasks[task].loss == 0]
        if found:
            self.say("spurious retransmissions without loss", f"{sum(found)}", f"0 {'MISSED' if sum(found) else 'met'}")


def asked(results, order):
    figures = Asked(results, order)
    for part in (figures.latency, figures.streams, figures.rates, figures.loss, figures.spurious):
        part()
    if not figures.lines:
        return []
    return [f"\nasked of {OURS}: median of the rounds' ratios, where it may lie (tools/verdict.py), what was wanted", *figures.lines]


def text(results, order):
    lines = []
    for test in KEYS:
        lines += table(results, order, test)
    for test in LOSS_KEYS:
        for offloads in (True, False):
            lines += loss_table(results, order, test, offloads)
    if results.why_not:
        lines += ["\ndid not finish"]
        lines += [f"  {name}, {task}: {why.splitlines()[0]}" for (task, name), why in results.why_not.items()]
    return "\n".join(lines + asked(results, order))


def everything(results, order):
    """For a file: every round of every task."""
    rows = []
    for (name, contender), rounds in results.all.items():
        task = results.tasks[name]
        keys = ("p50_us", "p99_us", "mean_us", "mb_per_s", "messages_per_s")
        medians = {key: results.median(task, contender, key) for key in keys}
        rows.append({"test": task.test, "size": task.size, "window": task.window, "loss_percent": task.loss,
                     "offloads": task.offloads, "contender": contender, **medians, "rounds": rounds})
    return {"contenders": [{"name": name, "role": role} for name, role in order], "rows": rows,
            "asked": asked(results, order)[1:]}
