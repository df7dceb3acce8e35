#!/usr/bin/python3
# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# SPDX-FileCopyrightText: The ofi_duo authors
"""Prints instructions per message from callgrind's dumps of duobench's insn tests.

callgrind.py DIRECTORY TEST [PROFILE CONFIG]: reads the dumps of one run, in
DIRECTORY, and prints "TEST.PHASE INSTRUCTIONS" lines. duobench's own
instructions do not count. With PROFILE, appends to this file the instructions of
each phase by library and function.
"""

import os
import re
import sys

PHASES = ("post", "send", "recv", "txcq", "op", "serve", "done", "idle",
          "null")
MSGS = 256  # value of BN_INSN_MSGS
OWN = "duobench"
MIN_SHOWN = 1.5  # phases with fewer instructions per message are not printed


def parse(path):
    """Returns (phase or None, {(object, function): instructions})."""
    phase, names, costs = None, {}, {}
    obj = func = ""
    skip = False

    def name(kind, text):
        ident, _, rest = text.partition(" ")
        if rest:
            names[kind, ident] = rest
        return names.get((kind, ident), text)

    with open(path, encoding="utf-8", errors="replace") as file:
        for line in file:
            line = line.rstrip("\n")
            trigger = re.match(r"desc: Trigger: Client Request: bench:(\w+)",
                               line)
            if trigger:
                phase = trigger.group(1)
            key, equals, value = line.partition("=")
            if equals and key in ("ob", "cob"):
                value = os.path.basename(name("ob", value))
                obj = value if key == "ob" else obj
            elif equals and key in ("fn", "cfn"):
                value = name("fn", value)
                func = value if key == "fn" else func
            elif equals and key == "calls":
                skip = True
            elif re.match(r"[0-9+*-]", line):
                if not skip:
                    cost = int((line.split() + ["0"])[1])
                    place = obj, func.split("'")[0]
                    costs[place] = costs.get(place, 0) + cost
                skip = False
    return phase, costs


def load(directory):
    phases = {}
    for entry in sorted(os.listdir(directory)):
        phase, costs = parse(os.path.join(directory, entry))
        if phase:
            phases[phase] = {place: cost / MSGS
                             for place, cost in costs.items()
                             if place[0] != OWN}
    return phases


def profile(test, phases, out):
    for phase in PHASES[:-1]:
        costs = phases.get(phase, {})
        objects = {}
        for (obj, _), cost in costs.items():
            objects[obj] = objects.get(obj, 0) + cost
        print(f"\n### {test} {phase}: {sum(costs.values()):.1f} = " +
              " + ".join(f"{cost:.1f} {obj}" for obj, cost in
                         sorted(objects.items(), key=lambda o: -o[1])
                         if cost >= MIN_SHOWN) + "\n", file=out)
        for (obj, func), cost in sorted(costs.items(), key=lambda c: -c[1]):
            if cost >= MIN_SHOWN:
                print(f"    {cost:7.1f}  {obj}  {func}", file=out)


def main():
    directory, test = sys.argv[1:3]
    phases = load(directory)
    total = 0
    for phase in PHASES[:-1]:
        if phase not in phases:
            continue
        cost = sum(phases[phase].values())
        total += cost if phase != "idle" else 0
        print(f"{test}.{phase} {cost:.1f}")
    print(f"{test}.message {total:.1f}")
    if len(sys.argv) > 4:
        with open(sys.argv[3], "a", encoding="utf-8") as out:
            profile(f"{sys.argv[4]} {test}", phases, out)


if __name__ == "__main__":
    main()
