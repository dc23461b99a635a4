"""What an MPI user gets, as ratios: bench_mpi.py BUILD_DIRECTORY [--only PART,...] [--rounds N] [--json FILE]

Two hosts (network namespaces), one rail, MTU 1500, two ranks. In every round each transport has its turn, one right
after the other; medians of the rounds. Parts:

  pingpong, sendrecv   every size from 1 B to 4 MiB: Pullman, libfabric's tcp;ofi_rxm and udp;ofi_rxd under the same
                       MTL, and Open MPI's own TCP
  onesided             put and get of 1 MiB (btl/ofi, osc/rdma) over sends of 1 MiB
  calls                the provider over the C++ API at 8 B; small messages through fi_tsend/fi_trecv, window 64
  gaps                 the longest step of a program at silent cuts and at links that go down (two rails)
"""

import argparse
import json
import pathlib
import statistics
import sys

import contenders
import demo_mpi
import mpi_job
import netns
import verdict

PARTS = ("pingpong", "sendrecv", "onesided", "calls", "gaps")
OTHERS = ("tcp", "tcp;ofi_rxm", "udp;ofi_rxd")
SIZES = [1 << power for power in range(23)]
MEBIBYTE = 1 << 20


def speeds(hosts, build, pattern, milliseconds, sizes, transport):
    """{size: microseconds}; what did not end is missing."""
    program = mpi_job.compile_program(build, "speed")
    try:
        said = mpi_job.output_of(hosts, build, 2, program, pattern, milliseconds, *sizes, transport=transport, seconds=60)
    except mpi_job.JobFailed as problem:
        print(f"{transport}, {pattern}: {str(problem)[:500]}", file=sys.stderr, flush=True)
        return {}
    rows = (line.split() for line in said.splitlines() if line.startswith(pattern + " "))
    return {int(size): float(us) for _, size, us in rows}


def median(values):
    values = [value for value in values if value is not None]
    return statistics.median(values) if values else None


def across_sizes(build, pattern, options):
    """Microseconds of every transport at every size."""
    singles = {name: [] for name in ("pullman", *OTHERS)}
    with mpi_job.Hosts(1) as hosts:
        for _ in range(options.rounds):
            for name, rounds in singles.items():
                rounds.append(speeds(hosts, build, pattern, options.milliseconds, options.sizes, name))
    table = {name: {size: median(one.get(size) for one in rounds) for size in options.sizes}
             for name, rounds in singles.items()}
    print(f"\n{pattern}, us; Pullman's time over the best of the others, median of {options.rounds} rounds' ratios, and "
          f"where it may lie (verdict.py)\n{'bytes':>8} " + " ".join(f"{name:>12}" for name in table) + "    ratio")
    for size in options.sizes:
        us = {name: row[size] for name, row in table.items()}
        best = min((name for name in OTHERS if us[name] is not None), key=us.get, default=None)
        ratios = [ours[size] / theirs[size] for ours, theirs in zip(singles["pullman"], singles[best] if best else ())
                  if size in ours and size in theirs]
        print(f"{size:>8} " + " ".join(f"{'-' if value is None else f'{value:.2f}':>12}" for value in us.values())
              + (f" {statistics.median(ratios):8.3f}  {verdict.between(ratios)}" if ratios else ""), flush=True)
    return table


def one_sided(build, options):
    """MB/s at 1 MiB, each over that of sends."""
    found = {"send": [], "put": [], "get": []}
    with mpi_job.Hosts(1) as hosts:
        for _ in range(options.rounds):
            for pattern, rounds in found.items():
                transport = "pullman" if pattern == "send" else mpi_job.ONE_SIDED
                us = speeds(hosts, build, pattern, 5 * options.milliseconds, [MEBIBYTE], transport).get(MEBIBYTE)
                rounds.append(us and MEBIBYTE / us)
    rates = {pattern: median(rounds) for pattern, rounds in found.items()}
    print("\n1 MiB, MB/s, and over sends (asked: 0.9)")
    for pattern, rate in rates.items():
        print(f"{pattern:>8} " + (f"{rate:8.0f} {rate / rates['send']:8.3f}" if rate and rates["send"] else "-"))
    return rates


def calls(build, options):
    """Half a round trip (medians: means are what happened to the machine meanwhile) over the C++ API and over the
    provider, one right after the other; messages a second."""
    perf, peers = build / "bench/pullman-perf", build / "bench/peers"
    who = {"C++ API": contenders.Perf("C++ API", "", perf), "provider": contenders.Perf("provider", "", peers, "--driver", "pullman"),
           "tcp;ofi_rxm": contenders.Perf("tcp;ofi_rxm", "", peers, "--driver", "tcp;ofi_rxm")}
    tasks = {"half round trip, 8 B, us": (contenders.Task("latency", 8), "p50_us"),
             "8 B, window 64, /s": (contenders.Task("rate", 8, 64), "messages_per_s")}
    found = {words: {name: [] for name in who} for words in tasks}
    port = 7100
    with mpi_job.Hosts(1) as hosts:
        variables = mpi_job.environment(hosts, build)
        hosts.environment = {name: variables[name] for name in ("FI_PROVIDER_PATH", "PULLMAN_NICS")}
        for _ in range(options.rounds):
            for words, (task, key) in tasks.items():
                for name, one in who.items():
                    port += 1
                    try:
                        found[words][name].append(one.run(hosts, task, port)[key])
                    except contenders.DidNotFinish as problem:
                        found[words][name].append(None)
                        print(f"{name}, {words}: {problem}", file=sys.stderr, flush=True)
    medians = {words: {name: median(values) for name, values in row.items()} for words, row in found.items()}
    print()
    for words, row in medians.items():
        print(f"{words:<26} " + "  ".join(f"{name} {value or 0:.3f}" for name, value in row.items()))
    pairs = zip(*(next(iter(found.values()))[name] for name in ("C++ API", "provider")))
    more = sorted(provider - cpp for cpp, provider in pairs if None not in (cpp, provider))
    if more:
        print(f"the provider takes {statistics.median(more):+.3f} us more ({more[0]:+.3f} to {more[-1]:+.3f}, {len(more)} pairs)")
    return medians


def gaps(build, options):
    """The longest step, in ms, at each cut."""
    found = {cut.words: [] for cut in demo_mpi.CUTS}
    with mpi_job.Hosts() as hosts:
        for _ in range(options.rounds):
            watched = demo_mpi.Watched(hosts, build, "pullman")
            watched.run(lambda _: None)
            for cut in demo_mpi.CUTS:
                found[cut.words].append(cut.longest(watched.lines))
    print("\nthe longest step at a cut, ms")
    for words, values in found.items():
        known = [value for value in values if value is not None]
        print(f"{words:<48} median {statistics.median(known):6.1f}, most {max(known):6.1f}, {len(known)} cuts" if known
              else f"{words:<48} the program did not go on")
    return found


def parse():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("build", type=pathlib.Path)
    arguments.add_argument("--only", default=",".join(PARTS), help="some of the parts (all)")
    arguments.add_argument("--rounds", type=int, default=5)
    arguments.add_argument("--milliseconds", type=float, default=40, help="for one size (40)")
    arguments.add_argument("--sizes", default=",".join(map(str, SIZES)), help="bytes, comma-separated")
    arguments.add_argument("--json", type=pathlib.Path, help="writes what was measured there")
    options = arguments.parse_args()
    options.only = options.only.split(",")
    options.sizes = [int(size) for size in options.sizes.split(",")]
    if not set(options.only) <= set(PARTS):
        arguments.error(f"--only knows {', '.join(PARTS)}")
    return options


def main():
    options = parse()
    netns.exit_on_signals()
    netns.compare_like_with_like()
    build = options.build.resolve()
    why_not = mpi_job.missing() or netns.possible()
    if why_not:
        sys.exit(f"cannot measure here: {why_not}")
    results = {}
    for part in options.only:
        if part in ("pingpong", "sendrecv"):
            results[part] = across_sizes(build, part, options)
        else:
            results[part] = {"onesided": one_sided, "calls": calls, "gaps": gaps}[part](build, options)
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
