"""docs/plots/compare-*.svg: Pullman and its peers over message size. Used by tools/compare.py."""

import re
import subprocess

# The test, which the file is named after; label of the ordinate.
PLOTS = [("latency", "half round trip, us"), ("bandwidth", "stream, MB/s"),
         ("rate", "messages a second, window 64")]
# Pullman is drawn in one colour and thickly, the bare thing dashed, the peers thinly.
STYLES = {
    "raw udp": "lc rgb '#888888' dt 2 lw 1.5 pt 6",
    "raw fabric": "lc rgb '#bbbbbb' dt 2 lw 1.5 pt 4",
    "Pullman udp": "lc rgb '#c02020' lw 3 pt 7",
    "Pullman fabric": "lc rgb '#e89090' lw 2 pt 5",
    "udp;ofi_rxd": "lc rgb '#2060c0' lw 1.5 pt 8",
    "tcp;ofi_rxm": "lc rgb '#20a0d0' lw 1.5 pt 9",
    "UCX tcp": "lc rgb '#208040' lw 1.5 pt 10",
    "TCP sockets": "lc rgb '#a06010' lw 1.5 pt 11",
    "TCP, batched": "lc rgb '#d0a060' lw 1.5 pt 12",
}
HEAD = """set terminal svg size 820,460 font 'sans-serif,12' linewidth 1.2
set title '{title}'
set grid lc rgb '#dddddd'
set logscale xy
set xtics ({tics})
set xlabel '{xlabel}'
set ylabel '{label}'
set format y '%.0s%c'
set key outside right center Left reverse samplen 2
set xrange [{least}:{most}]
"""


def short(size):
    for unit, text in ((1 << 20, "M"), (1 << 10, "K")):
        if size >= unit:
            return f"{size // unit}{text}"
    return str(size)


def script(title, label, xlabel, tics, curves):
    """gnuplot's input. Curves are [(name, [(x, y)])]."""
    blocks, lines = [], []
    for index, (name, points) in enumerate(curves):
        blocks.append(f"$curve{index} << EOD\n" + "\n".join(f"{x:g} {y:.6g}" for x, y in points) + "\nEOD\n")
        lines.append(f"$curve{index} using 1:2 with linespoints {STYLES[name]} title '{name}' noenhanced")
    head = HEAD.format(title=title, label=label, xlabel=xlabel, least=tics[0][0] / 1.6, most=tics[-1][0] * 1.6,
                       tics=", ".join(f"'{text}' {x}" for x, text in tics))
    return "".join(blocks) + head + "plot " + ", ".join(lines) + "\n"


def write(file, text):
    gnuplot = subprocess.run(["gnuplot"], input=text, text=True, capture_output=True, check=False)
    if gnuplot.returncode != 0:
        raise RuntimeError(f"gnuplot: {gnuplot.stderr}")
    drawn = re.sub(r"<desc>.*?</desc>\n?", "", gnuplot.stdout, flags=re.DOTALL)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(re.sub(r"[ \t]+\n", "\n", drawn))
    return file


def curves_over(results, order, tasks, where):
    """For each contender its points: `where` says a task's abscissa and key."""
    curves = []
    for name, _ in order:
        points = []
        for task in tasks:
            x, key = where(task)
            value = results.median(task, name, key)
            if value:
                points.append((x, value))
        if points:
            curves.append((name, points))
    return curves


def over_size(results, order, folder):
    for test, label in PLOTS:
        tasks = sorted(results.chosen(lambda t: (t.test, t.window, t.loss, t.offloads) == (test, 64, 0, True)),
                       key=lambda t: t.size)
        if len(tasks) < 2:
            continue
        curves = curves_over(results, order, tasks, lambda t: (t.size, None))
        tics = [(task.size, short(task.size)) for task in tasks]
        yield write(folder / f"compare-{test}.svg",
                    script("Two namespaces, veth, MTU 1500", label, "bytes of a message", tics, curves))


def over_loss(results, order, folder):
    """No loss has no place on a logarithmic axis: it stands at its left end."""
    for name, test, size, label in (("loss-stream", "bandwidth", 1 << 20, "1 MiB stream, MB/s"),
                                    ("loss-latency", "latency", 64, "64 B ping-pong, mean, us")):
        tasks = sorted(results.chosen(lambda t: (t.test, t.size, t.window, t.offloads) == (test, size, 64, False)),
                       key=lambda t: t.loss)
        if len(tasks) < 2:
            continue
        values = "mean_us" if test == "latency" else "mb_per_s"
        curves = curves_over(results, order, tasks, lambda t: (t.loss or 0.02, values))
        tics = [(task.loss or 0.02, f"{task.loss:g}") for task in tasks]
        yield write(folder / f"compare-{name}.svg",
                    script("Each packet drawn alone (offloads off)", label, "packets lost, %", tics, curves))


def draw(results, order, folder):
    """The files written."""
    return [*over_size(results, order, folder), *over_loss(results, order, folder)]
