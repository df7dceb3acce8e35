# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""The measurements of contrib/bench, and the ratios of comparable ones.

A metric of a configuration is a series: one value per round. Two series are
compared round by round, because the two values of a round were measured within
a short time, in which the speed of the machine changes little. The ratio of the
series is the median of the rounds' ratios.

The round trip of a cache line between two ranks, the hop time, is measured before
and after each measurement. A round is dropped if the hop times of its two values
differ by more than the factor SAME_HOP, because the two ranks then had other
CPUs.

Each ratio has an interval: the narrowest one between two order statistics that
contains the true median with a confidence of at least 95 %. This assumes nothing
about the distribution of the noise. Fewer than six rounds cannot reach 95 %: the
interval is then the range of all values.
"""

from math import comb

CONFIDENCE = 0.95
SAME_HOP = 1.3  # largest permitted ratio of the hop times of compared measurements
FAR = 2  # if ratio and limit differ by this factor, one round is enough for a verdict


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
    """Returns (low, high, confidence): an interval that contains the true median
    with this confidence."""
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
    """A number, with the hop times before and after its measurement, ns.
    Unknown hop times (0) are left out."""

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
        """Returns the series, {round: value}; empty: metric was not measured."""
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
        """Returns the metric's name: PREFIX.KEY.p50 if there are percentiles,
        otherwise PREFIX.KEY."""
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
    """The ratio of two series, {round: value}: over divided by under."""

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
        """Returns "met" if the ratio is at most limit, otherwise another verdict.
        exact: the values do not vary, so one round is enough."""
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
