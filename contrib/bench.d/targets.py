# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""The targets of ofi_duo, as ratios of medians in one run."""

import re
from math import exp, log

from results import Ratio, Value

MPI_RATES = ("rate", "bibw")
MPI_SIZED = (*MPI_RATES, "alltoallw", "alltoall", "allgather", "allreduce",
             "reduce_scatter", "sendrecv", "exchange", "halo", "bcast",
             "threads")
MPI_UNSIZED = ("barrier", "init", "first", "memory")
# MPI_LIMITS: largest permitted ratio of ofi_duo's time to the alternative's, for
# tests in which it is not 1.0. MPI_LARGEST: the largest size that the target
# includes, bytes, for tests in which it is not 64 KiB.
MPI_LIMITS = {"bibw": 1 / 1.05, "allgather": 0.95, "reduce_scatter": 0.95,
              "halo": 0.95, "barrier": 0.9}
MPI_LARGEST = {"bibw": 4 << 20}
WORST = ("missed", "too noisy to tell", "met", "not measured")


class Target:
    """The ratio of a metric of the configuration `over` to the same metric of
    the configuration `under`.

    The metric is a time; the target is met if the ratio is at most `limit`.
    sizes: (smallest, largest). Each size in between must meet the limit, and the
    table has the worst one. None: the metric has no sizes.
    rate: the table has the inverse, which is the ratio of rates, and ">=" limit.
    exact: the metric does not vary, so one round is enough.
    """

    def __init__(self, name, over, under, metric, limit, sizes=None,
                 rate=False, exact=False):
        self.name, self.over, self.under = name, over, under
        self.metric, self.limit, self.sizes = metric, limit, sizes
        self.rate, self.exact = rate, exact

    def series(self, results, config, metric):
        return results.get(config, metric)

    def ratios(self, results):
        """Returns [(size or None, Ratio)], for the sizes that were measured with
        both configurations."""
        if self.sizes is None:
            pairs = [(None, self.metric)]
        else:
            pairs = [(size, results.name(self.over, self.metric, size))
                     for size in results.keys(self.over, self.metric)
                     if self.sizes[0] <= size <= self.sizes[1]]
        found = []
        for size, metric in pairs:
            under = self.series(results, self.under, metric)
            ratio = Ratio(results.get(self.over, metric), under)
            if ratio.count or ratio.dropped:
                found.append((size, ratio))
        return found

    def judge(self, results):
        judged = [(WORST.index(ratio.verdict(self.limit, self.exact)),
                   -ratio.median if ratio.count else 0, size, ratio)
                  for size, ratio in self.ratios(results)]
        row = {"name": self.name, "ratio": None, "low": None, "high": None,
               "verdict": "not measured", "note": "", "rounds": 0,
               "dropped": 0, "confidence": None,
               "limit": 1 / self.limit if self.rate else self.limit,
               "sense": ">=" if self.rate else "<="}
        if not judged:
            row["note"] = ": " + self.why(results)
            return [row]
        worst, _, size, ratio = min(judged, key=lambda entry: entry[:2])
        row["verdict"] = WORST[worst]
        row["rounds"], row["dropped"] = ratio.count, ratio.dropped
        if not ratio.count:
            return [row]
        row["ratio"], row["low"], row["high"] = \
            ratio.median, ratio.low, ratio.high
        row["confidence"] = ratio.confidence
        if self.rate:
            row["ratio"], row["low"], row["high"] = \
                1 / ratio.median, 1 / ratio.high, 1 / ratio.low
        if size is not None and len(judged) > 1:
            met = sum(entry[0] == WORST.index("met") for entry in judged)
            row["note"] = f" (worst at {size}; {met} of {len(judged)} met)"
        return [row]

    def why(self, results):
        test = self.metric.split(".")[0]
        names = {"idle-posted": "idle"}
        if test.startswith("mpi"):
            test = re.split("[-.]", self.metric)[-1] \
                if "-" in self.metric else "2"
        for config in (self.over, self.under.split("+")[-1]):
            reason = results.reason(config, names.get(test, test))
            if not results.series.get(config) or reason != "not requested":
                return f"{config}: {reason}"
        return "not requested"


class MeanTarget(Target):
    """A target for the geometric mean of all sizes, which varies less than the
    ratio of any one size. The mean is computed for each round."""

    def ratios(self, results):
        sizes = [ratio for _, ratio in super().ratios(results)]
        if not sizes:
            return []
        rounds = set.intersection(*(set(ratio.by_round) for ratio in sizes))
        means = {number: Value(exp(sum(log(ratio.by_round[number])
                                       for ratio in sizes) / len(sizes)))
                 for number in rounds}
        mean = Ratio(means, dict.fromkeys(means, Value(1)))
        mean.dropped = max(ratio.dropped for ratio in sizes)
        return [(None, mean)]


class SumTarget(Target):
    """A target against the sum of several configurations: under is "a+b"."""

    def series(self, results, config, metric):
        parts = [results.get(name, metric) for name in config.split("+")]
        return {number: Value(sum(part[number] for part in parts),
                              [hop for part in parts
                               for hop in part[number].hops])
                for number in parts[0]
                if all(number in part for part in parts)}


class GrowthTarget(Target):
    """The ratio of one configuration's metric with a long queue (of receives or of
    messages) to the same metric with a short queue."""

    def __init__(self, name, config, metric, long, short, limit):
        super().__init__(name, config, config, f"{metric}.{long}.p50", limit)
        self.short = f"{metric}.{short}.p50"

    def series(self, results, config, metric):
        return results.get(config, self.short)


def _remote(core):
    remote = f"duo-{core}-remote"
    every = (1, 4 << 20)
    return [
        Target(f"{remote}, latency : {core}", remote, core, "lat", 1.02,
               every),
        MeanTarget(f"{remote}, latency, mean of sizes : {core}", remote, core,
                   "lat", 1.02, every),
        Target(f"{remote}, bandwidth : {core}", remote, core, "bw", 1.02,
               every, rate=True),
        MeanTarget(f"{remote}, bandwidth, mean of sizes : {core}", remote,
                   core, "bw", 1.02, every, rate=True),
    ]


def _of_core(core):
    duo = f"duo-{core}"
    both = f"shm+{core}"
    large = (65536, 4 << 20)
    every = (1, 4 << 20)
    return [
        Target(f"{duo}, source given, 8 B : shm", duo, "shm", "lat", 1.05,
               (8, 8)),
        Target(f"{duo}, source given, all sizes : shm", duo, "shm", "lat",
               1.05, every),
        MeanTarget(f"{duo}, source given, mean of sizes : shm", duo, "shm",
                   "lat", 1.05, every),
        Target(f"{duo}, any source, 8 B : shm", duo, "shm", "lat-any", 1.10,
               (8, 8)),
        Target(f"{duo}, any source, all sizes : shm", duo, "shm", "lat-any",
               1.10, every),
        Target(f"{duo}, FI_MSG, 8 B : shm", duo, "shm", "lat-msg", 1.05,
               (8, 8)),
        Target(f"{duo}, 64 wildcards : shm", duo, "shm", "wild", 1.10,
               (8, 8)),
        Target(f"{duo}, to 64 KiB : lnx", duo, "lnx", "lat", 1.0,
               (1, 65536)),
        MeanTarget(f"{duo}, to 64 KiB, mean of sizes : lnx", duo, "lnx",
                   "lat", 1.0, (1, 65536)),
        Target(f"{duo}, bandwidth from 64 KiB : shm", duo, "shm", "bw",
               1 / 0.98, large, rate=True),
        Target(f"{duo}, message rate : shm", duo, "shm", "rate", 1.05,
               (8, 8)),
        Target(f"{duo}, rate, endpoint per thread : processes",
               f"{duo}-threads", duo, "rate-pairs", 1 / 0.9, every,
               rate=True),
        *_remote(core),
        SumTarget(f"{duo}, idle poll : {both}", duo, both, "idle.p50", 1.2),
        SumTarget(f"{duo}, idle poll, wildcard posted : {both}", duo, both,
                  "idle-posted.p50", 1.2),
        Target(f"{duo}, instructions, source given : shm", duo, "shm",
               "insn.message", 1.05, exact=True),
        Target(f"{duo}, instructions, any source : shm", duo, "shm",
               "insn-any.message", 1.10, exact=True),
        SumTarget(f"{duo}, instructions of an idle poll : {both}", duo, both,
                  "insn.idle", 1.2, exact=True),
        GrowthTarget(f"{duo}, 10,000 posted receives : 1", duo, "posted",
                     10000, 1, 1.5),
        GrowthTarget(f"{duo}, 10,000 unexpected messages : 1", duo,
                     "unexpected", 10000, 1, 1.5),
    ]


def _hook():
    """Returns targets of FI_HOOK=duo against ofi_duo by its own name.

    The targets for instructions are for calls only, not for reads: reads also
    poll the core, and the number of these polls depends on the time that a read
    waits.
    """
    every = (1, 4 << 20)
    return [
        Target(f"hook-efa, instructions of a {name} : duo-efa", "hook-efa",
               "duo-efa", metric, 1.0, exact=True)
        for name, metric in (("send", "insn.send"),
                             ("receive", "insn.post"),
                             ("receive, any source", "insn-any.post"),
                             ("send, 48 KiB", "insn-large.send"),
                             ("put", "insn-put.op"), ("get", "insn-get.op"),
                             ("fetch-and-add", "insn-fadd.op"))
    ] + [
        MeanTarget("hook-efa, latency, mean of sizes : duo-efa", "hook-efa",
                   "duo-efa", "lat", 1.05, every),
        MeanTarget("hook-efa, bandwidth, mean of sizes : duo-efa",
                   "hook-efa", "duo-efa", "bw", 1.05, every, rate=True),
        MeanTarget("mpi-hook-efa, latency, mean of sizes : mpi-duo-efa",
                   "mpi-hook-efa", "mpi-duo-efa", "mpi", 1.05, every),
    ]


TARGETS = _of_core("efa") + _remote("efa-udp") + [
    Target("duo-efa, to 64 KiB : efa-shm", "duo-efa", "efa-shm", "lat", 1.0,
           (1, 65536)),
    MeanTarget("duo-efa, to 64 KiB, mean of sizes : efa-shm", "duo-efa",
               "efa-shm", "lat", 1.0, (1, 65536)),
    Target("duo-efa, any source, to 64 KiB : efa-shm", "duo-efa", "efa-shm",
           "lat-any", 1.0, (1, 65536)),
] + _hook() + _of_core("tcp")


def _sizes(name, over, under, metric, test="lat"):
    """Returns two targets: for the worst size, and for the mean of all sizes. The
    largest size is 64 KiB, or the one in MPI_LARGEST."""
    return [kind(f"{name}{suffix} : {under}", over, under, metric,
                 MPI_LIMITS.get(test, 1.0), (1, MPI_LARGEST.get(test, 65536)),
                 rate=test in MPI_RATES)
            for kind, suffix in ((Target, ""), (MeanTarget, ", mean"))]


def mpi_targets(results, over="mpi-duo-efa", under="mpi-efa-shm"):
    """Returns targets for each measured number of ranks."""
    targets = _sizes(f"{over}, latency", over, under, "mpi") + \
        _sizes(f"{over}, latency, cold caches", over, under, "mpi-cold")
    for test in MPI_SIZED:
        what = "threads each" if test == "threads" else "ranks"
        for ranks in results.mpi_ranks((test,)):
            targets += _sizes(f"{over}, {test}, {ranks} {what}", over, under,
                              f"mpi-{test}-{ranks}", test)
    for test in MPI_UNSIZED:
        for ranks in results.mpi_ranks((test,)):
            targets.append(Target(
                f"{over}, {test}, {ranks} ranks : {under}", over, under,
                f"mpi-{test}.{ranks}", MPI_LIMITS.get(test, 1.0)))
    return targets


def all_targets(results):
    """Returns all targets: TARGETS, and the MPI targets, which compare ofi_duo with
    each transport that users could select instead."""
    return TARGETS + [target
                      for under in ("mpi-efa-shm", "mpi-ob1-sm", "mpi-ucx")
                      for target in mpi_targets(results, under=under)]
