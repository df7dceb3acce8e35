# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""What contrib/bench has measured, and what of it can be compared.

A number is a series: one value per round. Two series are compared round by
round, because the rounds lie close together in time and the machine's mood
changes slowly; the ratio is the median of the rounds' ratios. A round does
not count where a cache line between the two CPUs took a different time for
one than for the other: the CPUs were not the same then. Beside the ratio
stands the narrowest interval of order statistics that holds the true median
with at least 95 % confidence (so without a guess about the distribution of the
noise), and what its confidence is. Fewer than six rounds do not reach 95 %:
then it is all that they span.
"""

from math import comb

CONFIDENCE = 0.95
SAME_HOP = 1.3  # largest permitted ratio of the hop times of compared measurements
FAR = 2  # if a value is beyond the limit by this factor, one round is enough


def median(values):
    values = sorted(values)
    middle = len(values) // 2
    if len(values) % 2:
        return values[middle]
    return (values[middle - 1] + values[middle]) / 2


def quartiles(values):
    """Returns the first and third quartile, as medians of the halves."""
    values = sorted(values)
    half = len(values) // 2
    if not half:
        return values[0], values[0]
    return median(values[:half]), median(values[-half:])


def interval(values):
    """Returns bounds of the median, and the confidence that it is within them."""
    values = sorted(values)
    count, cut = len(values), 0
    outside = 2 / 2 ** count
    while cut < (count - 1) // 2:
        more = outside + 2 * comb(count, cut + 1) / 2 ** count
        if more > 1 - CONFIDENCE:
            break
        cut, outside = cut + 1, more
    return values[cut], values[count - 1 - cut], 1 - outside


class Value(float):
    """A number, and the range of hop times around it (0: unknown)."""

    def __new__(cls, value, hops=()):
        self = super().__new__(cls, value)
        self.hops = [hop for hop in hops if hop]
        return self

    def alike(self, other):
        hops = self.hops + other.hops
        return not hops or max(hops) <= SAME_HOP * min(hops)


class Results:
    """All lines of a raw file."""

    def __init__(self, path):
        self.meta = {}
        self.missing = []  # (config, tests, reason)
        self.series = {}  # config -> metric -> round -> value
        with open(path, encoding="utf-8", errors="replace") as file:
            for line in file:
                self._add(line.rstrip("\n").split("\t"))

    def _add(self, fields):
        if fields[0] == "M":
            self.meta[fields[1]] = fields[2]
        elif fields[0] == "N":
            self.missing.append(tuple(fields[1:4]))
        elif fields[0] == "V":
            rounds = self.series.setdefault(fields[2], {}) \
                                .setdefault(fields[3], {})
            rounds[int(fields[1])] = Value(fields[4],
                                           map(float, fields[5:7]))

    def get(self, config, metric):
        """Returns round -> value; empty if it was not measured."""
        return self.series.get(config, {}).get(metric, {})

    def value(self, config, metric):
        rounds = self.get(config, metric)
        return median(rounds.values()) if rounds else None

    def keys(self, config, prefix):
        """Returns the numbers N, ascending, of config's metrics PREFIX.N[.p50]."""
        found = set()
        for metric in self.series.get(config, {}):
            parts = metric.split(".")
            if parts[0] == prefix and len(parts) > 1 and parts[1].isdigit():
                found.add(int(parts[1]))
        return sorted(found)

    def name(self, config, prefix, key):
        """Returns the name PREFIX.KEY, of its median if there are percentiles."""
        median_name = f"{prefix}.{key}.p50"
        found = self.series.get(config, {})
        return median_name if median_name in found else f"{prefix}.{key}"

    def mpi_ranks(self, tests):
        """Returns the numbers of ranks (N or N/C) of the MPI tests, ascending."""
        found = set()
        for metric in {metric for series in self.series.values()
                       for metric in series if metric.startswith("mpi-")}:
            head, key = metric.split(".")[:2]
            _, test, *label = head.split("-") + [key]
            if test in tests and label:
                found.add(label[0])
        return sorted(found, key=lambda label: (
            [int(number) for number in label.split("/")]))

    def reason(self, config, test):
        for name, tests, reason in self.missing:
            if name == config and test in tests.split(","):
                return reason
        for name, tests, reason in self.missing:
            if name == config and config.startswith("mpi-") and \
               tests.endswith(f" {test} ranks"):
                return reason
        return "not requested"


class Ratio:
    """over / under, round by round; series are round -> value."""

    def __init__(self, over, under):
        both = [number for number in over if under.get(number)]
        rounds = [number for number in both
                  if over[number].alike(under[number])]
        self.dropped = len(both) - len(rounds)
        self.by_round = {number: over[number] / under[number]
                         for number in rounds}
        self.count = len(rounds)
        if self.count:
            self.median = median(self.by_round.values())
            self.low, self.high, self.confidence = \
                interval(self.by_round.values())

    def verdict(self, limit, exact=False):
        """Returns the verdict on "at most limit". exact: one round is enough."""
        if not self.count:
            return "too noisy to tell" if self.dropped else "not measured"
        if self.count < 3 and not exact and \
           limit / FAR < self.median < limit * FAR:
            return "too noisy to tell"
        if self.high <= limit:
            return "met"
        if self.low > limit:
            return "missed"
        return "too noisy to tell"
