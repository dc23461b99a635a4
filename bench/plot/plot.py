"""docs/plots/*.svg from the lab: plot.py BUILD_DIRECTORY [SCENARIO ...]

A plot has three parts above each other over one time line: goodput of each flow, congestion windows, and the
bottleneck's queue. The same seed gives the same bytes.
"""

import csv
import io
import math
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "docs/plots"
MOST_BYTES = 60 * 1024
# What docs/architecture.md shows.
SHOWN = ["two", "sixteen", "incast", "incast-shallow", "shallow", "deep", "loss-5", "reordering"]
MOST_LINES = 16  # of one part; of more flows the least, the median and the greatest are drawn

WIDTH, HEIGHT = 760, 170  # of a part
LEFT, RIGHT, TOP, BOTTOM = 62, 14, 30, 40
COLOURS = ["#1f6fb4", "#d9480f", "#2b8a3e", "#862e9c", "#c2a000", "#0b7285", "#a61e4d", "#5f3dc4"]


def samples(lab, scenario):
    done = subprocess.run([lab, scenario], capture_output=True, text=True, check=True)
    return list(csv.DictReader(io.StringIO(done.stdout)))


def titles(lab):
    done = subprocess.run([lab, "--list"], capture_output=True, text=True, check=True)
    return dict(line.split(None, 1) for line in done.stdout.splitlines())


def series(rows, column, scale):
    """[(time, [value of each flow])]"""
    times = {}
    for row in rows:
        times.setdefault(float(row["ms"]), []).append(float(row[column]) * scale)
    return sorted(times.items())


def thinned(points):
    if len(points[0][1]) <= MOST_LINES:
        return points
    def of(values):
        ordered = sorted(values)
        return [ordered[0], ordered[len(ordered) // 2], ordered[-1]]
    return [(time, of(values)) for time, values in points]


def ticks(end, most):
    """Round numbers from 0, at most so many steps, until the last is not below `end`."""
    rough = max(end, 1e-9) / most
    unit = 10 ** math.floor(math.log10(rough))
    step = next(unit * factor for factor in (1, 2, 5, 10) if unit * factor >= rough * 0.999)
    return [step * i for i in range(math.ceil(end / step - 1e-9) + 1)]


class Part:
    """One diagram of a plot: its axes, its grid, and a line for each flow."""

    def __init__(self, label, points, top):
        self.label, self.points, self.top = label, points, top
        self.across = ticks(points[-1][0], 8)
        self.up = ticks(max(max(values) for _, values in points), 4)

    def x(self, time):
        return LEFT + (WIDTH - LEFT - RIGHT) * time / self.points[-1][0]

    def y(self, value):
        return self.top + HEIGHT * (1 - value / self.up[-1])

    def svg(self, last):
        bottom, right = self.top + HEIGHT, WIDTH - RIGHT
        out = [f'<text transform="translate(14 {bottom - HEIGHT / 2:g}) rotate(-90)" text-anchor="middle">'
               f"{self.label}</text>"]
        for value in self.up:
            y = self.y(value)
            out.append(f'<path class="grid" d="M{LEFT} {y:.1f}H{right}"/>'
                       f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
        for time in self.across:
            if time <= self.points[-1][0]:
                out.append(f'<path class="grid" d="M{self.x(time):.1f} {self.top}V{bottom}"/>')
                if last:
                    out.append(f'<text x="{self.x(time):.1f}" y="{bottom + 16}" text-anchor="middle">{time:g}</text>')
        if last:
            out.append(f'<text x="{(LEFT + right) / 2:g}" y="{bottom + 33}" text-anchor="middle">ms</text>')
        for flow in range(len(self.points[0][1])):
            line = " ".join(f"{self.x(time):.0f},{self.y(values[flow]):.1f}" for time, values in self.points)
            out.append(f'<polyline stroke="{COLOURS[flow % len(COLOURS)]}" points="{line}"/>')
        return "\n".join(out)


def picture(rows, title):
    flows = len({row["flow"] for row in rows})
    if flows > MOST_LINES:
        title += " (least, median and greatest of the flows)"
    queue = [(time, values[:1]) for time, values in series(rows, "queue_bytes", 1e-3)]
    wanted = [("goodput, Gb/s", thinned(series(rows, "goodput_mbps", 1e-3))),
              ("window, packets", thinned(series(rows, "window", 1))), ("queue, KB", queue)]
    parts = [Part(label, points, TOP + i * (HEIGHT + 14)) for i, (label, points) in enumerate(wanted)]
    height = parts[-1].top + HEIGHT + BOTTOM
    body = "\n".join(part.svg(part is parts[-1]) for part in parts)
    return f"""<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}">
<style>text{{font:12px sans-serif;fill:#222}} .grid{{stroke:#ddd}} polyline{{fill:none;stroke-width:1.4}}</style>
<rect width="100%" height="100%" fill="#fff"/>
<text x="{WIDTH / 2:g}" y="18" text-anchor="middle" style="font-size:14px">{title}</text>
{body}
</svg>
"""


def main():
    lab = pathlib.Path(sys.argv[1]).resolve() / "bench/lab"
    known = titles(lab)
    OUT.mkdir(parents=True, exist_ok=True)
    too_large = 0
    for scenario in sys.argv[2:] or SHOWN:
        text = picture(samples(lab, scenario), known[scenario])
        file = OUT / f"{scenario}.svg"
        file.write_text(text)
        too_large += len(text) > MOST_BYTES
        print(f"{file.relative_to(ROOT)}  {len(text) / 1024:.0f} KiB")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
