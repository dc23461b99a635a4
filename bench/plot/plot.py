"""docs/plots/*.svg from the lab: plot.py BUILD_DIRECTORY [SCENARIO ...]

A plot has three parts above each other over one time line: goodput of each flow, congestion windows, and the
bottleneck's queue. Needs gnuplot (Debian: gnuplot-nox). The same seed gives the same bytes.
"""

import csv
import io
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
OUT = ROOT / "docs/plots"
MOST_BYTES = 128 * 1024
# What docs/congestion.md shows.
SHOWN = ["two", "sixteen", "incast", "incast-shallow", "shallow", "deep", "loss-5", "reordering"]
MOST_LINES = 16  # of one part; of more flows the least, the median and the greatest are drawn

HEAD = """set terminal svg size 760,620 font 'sans-serif,12' linewidth 1.2
set multiplot layout 3,1 title {title} font ',14'
set grid lc rgb '#dddddd'
set lmargin 10
set rmargin 3
set xrange [0:{end}]
set yrange [0:*]
unset key
"""


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


def block(name, points):
    lines = [f"{time:g} " + " ".join(f"{value:.4g}" for value in values) for time, values in points]
    return f"${name} << EOD\n" + "\n".join(lines) + "\nEOD\n"


def part(name, label, points, last=False):
    columns = len(points[0][1])
    lines = ", ".join(f"${name} using 1:{i + 2} with lines" for i in range(columns))
    return f"{'set xlabel ' + chr(39) + 'ms' + chr(39) if last else 'unset xlabel'}\n" \
           f"set ylabel '{label}'\nplot {lines}\n"


def script(rows, title):
    flows = len({row["flow"] for row in rows})
    if flows > MOST_LINES:
        title += " (least, median and greatest of the flows)"
    goodput = thinned(series(rows, "goodput_mbps", 1e-3))
    window = thinned(series(rows, "window", 1))
    queue = [(time, values[:1]) for time, values in series(rows, "queue_bytes", 1e-3)]
    quoted = '"' + title.replace('"', "") + '"'
    return (block("goodput", goodput) + block("window", window) + block("queue", queue) +
            HEAD.format(title=quoted, end=goodput[-1][0]) +
            part("goodput", "goodput, Gb/s", goodput) + part("window", "window, packets", window) +
            part("queue", "queue, KB", queue, last=True))


def draw(lab, scenario, title):
    text = subprocess.run(["gnuplot"], input=script(samples(lab, scenario), title), text=True,
                          capture_output=True, check=True).stdout
    # What gnuplot says of itself, and tenths of a pixel's hundredth, are of no use here.
    text = re.sub(r"<desc>.*?</desc>\n?", "", text, flags=re.DOTALL)
    text = re.sub(r"(\d+\.\d)\d\b", r"\1", text)
    text = re.sub(r"[ \t]+\n", "\n", text)
    file = OUT / f"{scenario}.svg"
    file.write_text(text)
    return file, len(text)


def main():
    lab = pathlib.Path(sys.argv[1]).resolve() / "bench/lab"
    known = titles(lab)
    OUT.mkdir(parents=True, exist_ok=True)
    too_large = 0
    for scenario in sys.argv[2:] or SHOWN:
        file, size = draw(lab, scenario, known[scenario])
        too_large += size > MOST_BYTES
        print(f"{file.relative_to(ROOT)}  {size / 1024:.0f} KiB")
    return 1 if too_large else 0


if __name__ == "__main__":
    sys.exit(main())
