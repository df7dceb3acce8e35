#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""median.py FILE: of its lines, one number each, the median, the bounds of the
interval that holds it (as in results.py) and their confidence, for contrib/apps:
"2.66 | 2.60 to 2.71 (97 %)"; of less than two numbers there is no interval."""

import sys

from results import interval, median


def summary(values):
    low, high, confidence = interval(values)
    if len(values) < 2:
        return f"{median(values):.2f} | -"
    return (f"{median(values):.2f} | {low:.2f} to {high:.2f} "
            f"({int(100 * confidence)} %)")


if __name__ == "__main__":
    with open(sys.argv[1], encoding="utf-8") as file:
        print(summary([float(line) for line in file]))
