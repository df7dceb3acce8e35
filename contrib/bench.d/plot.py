#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""Plots of contrib/bench: plot.py RAW DIRECTORY, by gnuplot.

Writes each plot as NAME.svg and NAME.png, and its sources: the data NAME.dat, and
the gnuplot script NAME.gp.
"""

import os
import subprocess
import sys

from results import Ratio, Results, quartiles
from targets import MPI_SIZED

# name, title, metric, x axis, y axis, function that computes y from x and ns; None:
# y is ns
CURVES = (
    ("latency", "Latency, source given", "lat", "bytes",
     "half round trip (ns)", None),
    ("latency-any", "Latency, any source", "lat-any", "bytes",
     "half round trip (ns)", None),
    ("latency-msg", "Latency, FI_MSG", "lat-msg", "bytes",
     "half round trip (ns)", None),
    ("bandwidth", "Bandwidth, 64 outstanding", "bw", "bytes", "MB/s",
     lambda x, ns: x * 1000 / ns),
    ("posted", "Match cost: receives posted", "posted",
     "receives posted before", "half round trip (ns)", None),
    ("unexpected", "Match cost: unexpected messages", "unexpected",
     "unexpected messages waiting", "half round trip (ns)", None),
    ("av", "AV insert", "av", "addresses", "ns per address", None),
    ("cq", "CQ read", "cq", "batch", "ns per completion", None),
    ("start", "Start-up, libfabric", "start", "ranks",
     "fi_getinfo to all addresses inserted (ns)", None),
    ("mpi", "MPI latency", "mpi", "bytes", "half round trip (ns)", None),
    ("mpi-init", "MPI_Init", "mpi-init", "ranks", "mean (ns)", None),
)
RATIOS = (
    ("ratio", "Latency against raw shm", "lat",
     ("near", "duo-efa", "duo-tcp", "efa-shm", "lnx")),
    ("ratio-any", "Latency from any source against raw shm", "lat-any",
     ("near", "duo-efa", "duo-tcp", "efa-shm", "lnx")),
)
HEAD = """set terminal {terminal}
set output "{name}.{suffix}"
set title "{title}"
set xlabel "{xlabel}"
set ylabel "{ylabel}"
set logscale x {base}
{scale}
set format x "%.0s%c"
set grid
set key outside right top
plot {plots}
"""
TERMINALS = (("svg", "svg size 900,540 dynamic background 'white'"),
             ("png", "pngcairo size 900,540"))


def draw(directory, name, blocks, **labels):
    """Draws one plot. blocks has an entry for each curve:
    [(label, [(x, y, low, high)])]."""
    if not blocks:
        return
    with open(f"{directory}/{name}.dat", "w", encoding="utf-8") as file:
        for label, points in blocks:
            print(f"# {label}", file=file)
            for point in points:
                print(*(f"{value:.6g}" for value in point), file=file)
            print("\n", file=file)
    plots = ", \\\n  ".join(
        f'"{name}.dat" index {index} using 1:2:3:4 with yerrorlines '
        f'pointtype {index + 4} pointsize 0.5 title "{label}"'
        for index, (label, _) in enumerate(blocks))
    with open(f"{directory}/{name}.gp", "w", encoding="utf-8") as file:
        for suffix, terminal in TERMINALS:
            file.write(HEAD.format(terminal=terminal, name=name,
                                   suffix=suffix, plots=plots, **labels))
    subprocess.run(["gnuplot", f"{name}.gp"], cwd=directory, check=True)


def curve(results, metric, convert):
    blocks = []
    for config in results.series:
        points = []
        for x in results.keys(config, metric):
            rounds = results.get(config, results.name(config, metric, x))
            values = [convert(x, ns) if convert else ns
                      for ns in rounds.values()]
            if values:
                low, high = quartiles(values)
                points.append((x, sorted(values)[len(values) // 2], low,
                               high))
        if points:
            blocks.append((config, points))
    return blocks


def ratio_curve(results, metric, configs):
    blocks = []
    for config in configs:
        points = []
        for x in results.keys(config, metric):
            name = f"{metric}.{x}.p50"
            ratio = Ratio(results.get(config, name), results.get("shm", name))
            if ratio.count:
                points.append((x, ratio.median, ratio.low, ratio.high))
        if points:
            blocks.append((config, points))
    return blocks


def mpi_curves(results):
    return tuple(
        (f"mpi-{test}-{ranks}".replace("/", "on"),
         f"MPI {test}, {ranks} ranks", f"mpi-{test}-{ranks}", "bytes",
         "ns per message" if test == "rate" else "mean (ns)", None)
        for ranks in results.mpi_ranks(MPI_SIZED) for test in MPI_SIZED)


def main():
    results = Results(sys.argv[1])
    directory = sys.argv[2]
    os.makedirs(directory, exist_ok=True)
    for name, title, metric, xlabel, ylabel, convert in \
            CURVES + mpi_curves(results):
        base = "10" if xlabel != "bytes" and xlabel != "batch" else "2"
        draw(directory, name, curve(results, metric, convert), title=title,
             xlabel=xlabel, ylabel=ylabel, base=base,
             scale="set logscale y 10")
    for name, title, metric, configs in RATIOS:
        draw(directory, name, ratio_curve(results, metric, configs),
             title=title, xlabel="bytes",
             ylabel="ratio of medians, and its interval", base="2",
             scale="unset logscale y\nset yrange [0.8:*<4]")


if __name__ == "__main__":
    main()
