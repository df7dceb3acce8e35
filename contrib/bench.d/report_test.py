#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""Checks the report that report.py makes of given numbers. Fails by an assertion."""

import os
import sys
import tempfile

from median import summary
from results import Ratio, Results, Value, interval
from targets import mpi_targets

# number of rounds, index of the order statistic (from either end), confidence
INTERVALS = (
    (1, 0, 0.0), (2, 0, 0.5), (3, 0, 0.75), (4, 0, 0.875), (5, 0, 0.9375),
    (6, 0, 0.96875), (7, 0, 0.984375), (9, 1, 1 - 20 / 512),
    (11, 1, 1 - 24 / 2048), (30, 9, 0.957226),
)


def check_intervals():
    for count, cut, confidence in INTERVALS:
        low, high, holds = interval(range(count))
        assert (low, high) == (cut, count - 1 - cut), (count, low, high)
        assert abs(holds - confidence) < 1e-5, (count, holds)


def check_summaries():
    for values, text in (
            ((2.5,), "2.500 | -"),
            ((3, 1, 2), "2.000 | 1.000 to 3.000 (75 %)"),
            ((6, 5, 4, 3, 2, 1), "3.500 | 1.000 to 6.000 (96 %)"),
            (range(11), "5.000 | 1.000 to 9.000 (98 %)")):
        assert summary(values) == text, (values, summary(values))


def ratio_of(values):
    return Ratio({i: Value(value) for i, value in enumerate(values)},
                 {i: Value(1) for i in range(len(values))})


def check_verdicts():
    for values, verdict in (
            ((0.9, 0.95, 0.99), "met"),
            ((1.1, 1.2, 1.3), "missed"),
            ((0.9, 1.0, 1.1), "too noisy to tell"),
            ((0.9, 0.9), "too noisy to tell"),
            ((0.4, 0.4), "met"),
            ((), "not measured")):
        assert ratio_of(values).verdict(1.0) == verdict, values


# Lines of a raw file, as in run.sh. In round 2 of mpi-duo-efa the hop time after the
# measurement is longer, because the ranks had other CPUs then: report.py must drop
# this round. The numbers of ranks are not in order. The last line is a failed job.
RAW = """\
V	1	mpi-duo-efa	mpi-alltoallw-2.8	80	100	100
V	2	mpi-duo-efa	mpi-alltoallw-2.8	80	100	200
V	3	mpi-duo-efa	mpi-alltoallw-2.8	80	100	100
V	4	mpi-duo-efa	mpi-alltoallw-2.8	80	100	100
V	1	mpi-efa-shm	mpi-alltoallw-2.8	100	100	100
V	2	mpi-efa-shm	mpi-alltoallw-2.8	100	100	100
V	3	mpi-efa-shm	mpi-alltoallw-2.8	100	100	100
V	4	mpi-efa-shm	mpi-alltoallw-2.8	100	100	100
V	1	mpi-efa-shm	mpi-alltoallw-16.8	100	0	0
V	1	mpi-efa-shm	mpi-alltoallw-12/2.8	100	0	0
V	1	mpi-efa-shm	mpi-init.128	100	0	0
N	mpi-duo-efa	lat,alltoallw with 16 ranks	not done after 60 s
"""


def check_mpi():
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, "raw")
        with open(path, "w", encoding="utf-8") as file:
            file.write(RAW)
        results = Results(path)
    assert results.mpi_ranks(("alltoallw",)) == ["2", "12/2", "16"]
    assert results.mpi_ranks(("init",)) == ["128"]
    rows = {row["name"]: row for target in mpi_targets(results)
            for row in target.judge(results)}
    two = rows["mpi-duo-efa, alltoallw, 2 ranks : mpi-efa-shm"]
    assert two["verdict"] == "met" and two["ratio"] == 0.8, two
    assert (two["rounds"], two["dropped"]) == (3, 1), two
    assert two["confidence"] == 0.75, two
    sixteen = rows["mpi-duo-efa, alltoallw, 16 ranks : mpi-efa-shm"]
    assert sixteen["verdict"] == "not measured", sixteen
    assert "not done after 60 s" in sixteen["note"], sixteen


def main():
    check_intervals()
    check_summaries()
    check_verdicts()
    check_mpi()


if __name__ == "__main__":
    sys.exit(main())
