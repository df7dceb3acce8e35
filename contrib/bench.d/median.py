#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""median.py FILE: of its lines, one number each, the median, the bounds of the
interval that holds it (as in results.py) and their confidence, for contrib/apps:
"2.660 | 2.602 to 2.711 (97 %)"; of less than two numbers there is no interval. With
a second file: the same of the ratios of the lines of the first to those of the
second."""

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
