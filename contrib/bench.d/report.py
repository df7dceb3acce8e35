#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""The table of contrib/bench: report.py RAW [--json FILE].

Exit status: 1 if a target was missed, otherwise 0.
"""

import json
import sys

from results import Results, quartiles
from targets import MPI_SIZED, all_targets

SMALL = (1, 8, 64, 512, 4096, 65536, 1 << 20, 4 << 20)


def size_name(size):
    for unit, name in ((1 << 20, "Mi"), (1024, "Ki")):
        if size >= unit and size % unit == 0:
            return f"{size // unit}{name}"
    return str(size)


def number(value):
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def table(title, header, rows, text=(0,)):
    """Prints a table. text: indices of the left-aligned columns."""
    print(f"\n{title}\n")
    rows = [[str(cell) for cell in row] for row in [header] + rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    for row in rows:
        print("  " + "  ".join(
            cell.ljust(width) if i in text else cell.rjust(width)
            for i, (cell, width) in enumerate(zip(row, widths))).rstrip())


def by_size(results, title, prefix, scale=lambda size, ns: ns):
    """Prints a table: one row per configuration, one column per size."""
    sizes = sorted({size for config in results.series
                    for size in results.keys(config, prefix)
                    if prefix not in ("lat", "lat-any", "lat-msg")
                    or size in SMALL})
    rows = []
    for config in results.series:
        values = [results.value(config, results.name(config, prefix, size))
                  for size in sizes]
        if any(values):
            rows.append([config] + [
                number(value and scale(size, value))
                for size, value in zip(sizes, values)])
    if rows:
        table(title, ["configuration"] + [size_name(s) for s in sizes], rows)


def by_name(results, title, names, scale=1):
    """Prints a table: one row per configuration, one column per metric."""
    rows = []
    for config in results.series:
        values = [results.value(config, name) for name in names]
        if any(value is not None for value in values):
            rows.append([config] + [number(value and value / scale)
                                    for value in values])
    if rows:
        short = [name.replace(".p50", "").replace("insn.", "")
                 .replace("mem.", "").replace("mpi-", "").replace(".", " ")
                 for name in names]
        table(title, ["configuration"] + short, rows)


def insn(test):
    return [f"{test}.{phase}" for phase in
            ("post", "send", "recv", "txcq", "message", "idle")]


def insn_rma(test):
    return [f"{test}.{phase}" for phase in
            ("op", "serve", "done", "message", "idle")]


def measured(results):
    by_size(results, "Latency, source given (half round trip, ns, by size)",
            "lat")
    by_size(results, "Latency, any source (ns)", "lat-any")
    by_size(results, "Latency, FI_MSG, source given (ns)", "lat-msg")
    by_size(results, "Latency, 64 wildcards outstanding (ns)", "wild")
    by_size(results, "Bandwidth, 64 outstanding (MB/s)", "bw",
            lambda size, ns: size * 1000 / ns)
    by_size(results, "Message rate, 64 outstanding (1000/s)", "rate",
            lambda _, ns: 1e6 / ns)
    by_size(results, "Message rate, any source (1000/s)", "rate-any",
            lambda _, ns: 1e6 / ns)
    by_size(results, "All to one, any source (ns per message, by ranks)",
            "fan-in")
    by_size(results, "All to all (ns per message, by ranks)", "alltoall")
    by_size(results, "Message rate of all pairs (1000/s, by ranks)",
            "rate-pairs", lambda _, ns: 1e6 / ns)
    by_name(results, "Empty CQ poll (ns)", ["idle.p50", "idle-posted.p50"])
    by_name(results, "Instructions, source given", insn("insn"))
    by_name(results, "Instructions, any source", insn("insn-any"))
    by_name(results, "Instructions, 48 KiB", insn("insn-large"))
    by_name(results, "Instructions, put of 8 bytes", insn_rma("insn-put"))
    by_name(results, "Instructions, get of 8 bytes", insn_rma("insn-get"))
    by_name(results, "Instructions, fetch-and-add", insn_rma("insn-fadd"))
    by_name(results, "Memory (bytes per endpoint, per AV entry)",
            ["mem.ep-heap", "mem.ep-shm", "mem.ep-shm-rss", "mem.av-heap"])
    by_size(results, "CQ read (ns per completion, by batch)", "cq")
    by_size(results, "Latency by posted receives (ns)", "posted")
    by_size(results, "Latency by unexpected messages (ns)", "unexpected")
    rows = [[config] + [number(results.value(config, f"av.{n}"))
                        for n in (1, 10, 100, 200, 1000, 10000)]
            for config in results.series if results.keys(config, "av")]
    if rows:
        table("AV insert (ns per address, by addresses)",
              ["configuration", 1, 10, 100, 200, 1000, 10000], rows)
    by_size(results, "Start-up: fi_getinfo to all addresses inserted "
            "(ms, mean, by ranks)", "start", lambda _, ns: ns / 1e6)
    by_size(results, "Start-up, slowest rank (ms)", "start-max",
            lambda _, ns: ns / 1e6)


ONESIDED = (
    ("multi", "Multi-receive buffers, bursts of 64 (ns per message)"),
    ("put", "Put, seen by the target (half round trip, ns, by size)"),
    ("get", "Get (ns, by size)"),
    ("fadd", "Fetch-and-add (ns, by size)"),
    ("put-still", "Put to a target that does not poll (ns)"),
    ("get-still", "Get from a target that does not poll (ns)"),
    ("put-bw", "Put, 64 at a time (ns each, by size)"),
    ("get-bw", "Get, 64 at a time (ns each)"),
    ("fadd-bw", "Fetch-and-add, 64 at a time (ns each)"),
    ("osc-put", "MPI_Put and flush (ns, by size)"),
    ("osc-put-bw", "MPI_Put, 64 and a flush (ns each)"),
    ("osc-get", "MPI_Get and flush (ns)"),
    ("osc-fop", "MPI_Fetch_and_op and flush (ns)"),
)


def measured_onesided(results):
    for prefix, title in ONESIDED:
        by_size(results, title, prefix)
    by_name(results, "Sleeping: until a message is read (ns); wake-ups and "
            "context switches per second without traffic",
            ["wake.p50", "wake.p90", "wake.idle", "wake.switches"])


def measured_mpi(results):
    by_size(results, "MPI latency (half round trip, ns, by size)", "mpi")
    by_size(results, "MPI latency, any source (ns)", "mpi-any")
    by_size(results, "MPI latency, cold caches (half round trip, ns)",
            "mpi-cold")
    for test in MPI_SIZED:
        for ranks in results.mpi_ranks((test,)):
            prefix = f"mpi-{test}-{ranks}"
            if test == "rate":
                by_size(results, f"MPI message rate, {ranks} ranks (1000/s, "
                        "all pairs together, by size)", prefix,
                        lambda _, ns: 1e6 / ns)
            elif test == "bibw":
                by_size(results, f"MPI bandwidth both ways, {ranks} ranks "
                        "(GB/s, all pairs together, by size)", prefix,
                        lambda size, ns: size / ns)
            elif test == "threads":
                by_size(results, f"MPI latency, {ranks} threads a rank (half "
                        "round trip, ns, by size)", prefix)
            else:
                by_size(results, f"MPI {test}, {ranks} ranks (us, by size)",
                        prefix, lambda _, ns: ns / 1e3)
    for test, title, scale in (
            ("barrier", "MPI_Barrier (us", 1e3), ("init", "MPI_Init (ms", 1e6),
            ("first", "First message after MPI_Init (us", 1e3),
            ("memory", "Memory of a rank (MiB", 1 << 20)):
        by_name(results, f"{title}, by ranks)",
                [f"mpi-{test}.{ranks}"
                 for ranks in results.mpi_ranks((test,))], scale)


def against_targets(results):
    """Prints the targets with a requested test, and the number of the others.
    Returns the rows of all targets."""
    rows = [row for target in all_targets(results)
            for row in target.judge(results)]
    lines = []
    for row in rows:
        if row["note"].endswith("not requested"):
            continue
        ratio = spread = holds = "-"
        if row["ratio"] is not None:
            ratio = f"{row['ratio']:.3f}"
        if row["confidence"]:
            spread = f"{row['low']:.3f}-{row['high']:.3f}"
            holds = f"{100 * row['confidence']:.1f} %"
        rounds = str(row["rounds"])
        if row["dropped"]:
            rounds += f" of {row['rounds'] + row['dropped']}"
        lines.append([row["name"], f"{row['sense']} {row['limit']:.2f}",
                      ratio, spread, holds, rounds,
                      row["verdict"] + row["note"]])
    if lines:
        table("Targets", ["what", "limit", "ratio", "interval", "holds it",
                          "rounds", "verdict"], lines, text=(0, 6))
    print(f"\n{len(rows) - len(lines)} targets without a requested test")
    return rows


def as_json(results, rows):
    metrics = {}
    for config, series in results.series.items():
        for metric, rounds in series.items():
            low, high = quartiles(rounds.values())
            metrics.setdefault(metric, {})[config] = {
                "median": results.value(config, metric),
                "q1": low, "q3": high,
                "rounds": [rounds[key] for key in sorted(rounds)]}
    return {"about": results.meta, "targets": rows, "metrics": metrics,
            "not_measured": [dict(zip(("config", "tests", "reason"), entry))
                             for entry in results.missing]}


def main():
    results = Results(sys.argv[1])
    print("  ".join(f"{key}: {value}"
                    for key, value in results.meta.items()))
    measured(results)
    measured_onesided(results)
    measured_mpi(results)
    if results.missing:
        print("\nNot measured\n")
        for config, tests, reason in results.missing:
            print(f"  {config} ({tests}): {reason}")
    rows = against_targets(results)
    if "--json" in sys.argv:
        path = sys.argv[sys.argv.index("--json") + 1]
        with open(path, "w", encoding="utf-8") as file:
            json.dump(as_json(results, rows), file, indent=1)
            file.write("\n")
    return any(row["verdict"] == "missed" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
