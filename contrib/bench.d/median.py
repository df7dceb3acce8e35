#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""median.py FILE [FILE2]: prints the median of the numbers in FILE, which has one
number per line, and the median's interval with its confidence (interval() of
results.py), as "2.660 | 2.602 to 2.711 (97 %)". If FILE has a single number, prints
"-" in place of the interval. With FILE2, first divides each number of FILE by the
number in the same line of FILE2. Used by contrib/apps."""

import sys

from results import interval, median


def summary(values):
    low, high, confidence = interval(values)
    if len(values) < 2:
        return f"{median(values):.3f} | -"
    return (f"{median(values):.3f} | {low:.3f} to {high:.3f} "
            f"({int(100 * confidence)} %)")


if __name__ == "__main__":
    series = []
    for path in sys.argv[1:]:
        with open(path, encoding="utf-8") as file:
            series.append([float(line) for line in file])
    if len(series) > 1:
        series[0] = [over / under for over, under in zip(*series)]
    print(summary(series[0]))
