#!/usr/bin/env python3
"""Fits the powers of h200-sxm5 (`power` of topologies/devices, model/cost/clocks.hpp) to reproduce/measured/h200-power, and checks them.

    reproduce/clocks.py [--fit]

Fitted are runs alone and in pairs of 8,192 tokens on the first card: five kinds' powers, the brake's and the memory's, each kind's time at its
own highest clock being free. Checked are all else: other periods and layers there, and layers of other lengths on another card, by what
each kind takes alone on the same card. `--fit` prints what the fit gives; without, errors of the profile's numbers, as a table.
"""

import json
import math
import re
import statistics
import sys

from made import ROOT

MEASURED = ROOT / "reproduce/measured/h200-power"
KINDS = ("products", "fa2", "fa2-backward", "cudnn", "cudnn-backward")
LIMIT, IDLE, BOOST = 700, 132, 1.058


def runs(name):
    return [r for r in json.loads((MEASURED / name).read_text())["runs"] if "segments" in r]


def kind_of(call):
    return "products" if call.startswith("product-") else call.split()[0]


class Law:
    """As model/cost/clocks.cpp."""

    def __init__(self, brake, memory, *full):
        self.brake, self.memory, self.full = brake, memory, dict(zip(KINDS, full))

    def own(self, kind, clock=1.0):
        full = self.full[kind]
        return clock if full <= self.brake else min(clock, ((self.brake - IDLE) / (full - IDLE)) ** (1 / 3))

    def slowdown(self, kind, clock):
        return 1.0 if kind == "copy" else self.own(kind) / self.own(kind, clock)

    def shared(self, times):
        """`times`: by kind, at its own highest clock."""
        def spare(clock):
            return sum(time * (LIMIT - self.memory) if kind == "copy" else time * self.slowdown(kind, clock) *
                       (LIMIT - IDLE - (self.full[kind] - IDLE) * self.own(kind, clock) ** 3) for kind, time in times.items())
        low, high = 0.1, 1.0
        if spare(high) >= 0:
            return high
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if spare(middle) >= 0 else (low, middle)
        return low

    def of_run(self, run, highest):
        """us of each call; `highest`: those at its own highest clock."""
        times = {}
        for call, count in run["segments"]:
            times[kind_of(call)] = times.get(kind_of(call), 0) + count * highest[call]
        clock = self.shared(times)
        return {call: highest[call] * self.slowdown(kind_of(call), clock) for call in run["us"]}


def from_alone(law, all_runs):
    """us at its own highest clock of each call that ran alone."""
    return {call: us / law.slowdown(kind_of(call), law.shared({kind_of(call): 1.0})) for r in all_runs if r["step"] == "alone"
            for call, us in r["us"].items()}


def of_call(known, call):
    """Products and sums by their tokens from 8,192, attention between the lengths that ran alone, by their operations."""
    if call in known:
        return known[call]
    name, size = call.split()
    if not name.startswith(("fa2", "cudnn")):
        base = "copy 33554432" if name == "copy" else f"{name} 8192"
        return known[base] * int(size) / int(base.split()[1])
    points = sorted((int(c.split()[1]), us) for c, us in known.items() if c.split()[0] == name)
    (a, below), (b, above) = next(pair for pair in zip(points, points[1:]) if pair[0][0] < int(size) < pair[1][0])
    share = math.log(int(size) / a) / math.log(b / a)
    return int(size) ** 2 * math.exp((1 - share) * math.log(below / a**2) + share * math.log(above / b**2))


def loss(law, fitted):
    """Sum of |log error|, each call's time at its own highest clock being the best."""
    highest = {call: us for r in fitted for call, us in r["us"].items()}
    for _ in range(3):
        ratios = {}
        for r in fitted:
            for call, us in law.of_run(r, highest).items():
                ratios.setdefault(call, []).append(r["us"][call] / us)
        highest = {call: us * statistics.median(ratios[call]) for call, us in highest.items()}
    return sum(abs(math.log(us / r["us"][call])) for r in fitted for call, us in law.of_run(r, highest).items())


def fit():
    fitted = [r for r in runs("power.json") if r["step"] == "shares" or r["step"] == "alone" and all(c.endswith(" 8192") for c in r["us"])]
    best, step = [1000, 500, 1500, 800, 700, 1100, 1100], 0.1
    least = loss(Law(*best), fitted)
    while step > 0.002:
        better = False
        for i in range(len(best)):
            for factor in (1 + step, 1 / (1 + step)):
                tried = [*best[:i], best[i] * factor, *best[i + 1:]]
                if (found := loss(Law(*tried), fitted)) < least:
                    best, least, better = tried, found, True
        step = step if better else step / 2
    count = sum(len(r["us"]) for r in fitted)
    return best, least / count


def profile():
    text = (ROOT / "topologies/devices/h200-sxm5.yaml").read_text()
    watts = lambda line, key: float(re.search(rf"{key}: ([\d.]+) W", line)[1])
    power = re.search(r"(?m)^power: .*", text)[0]
    assert (watts(power, "limit"), watts(power, "idle")) == (LIMIT, IDLE)
    kernels = [re.search(rf"- name: {name}\n(?:    .*\n)*?    (power: .*)", text)[1] for name in ("fa2-torch", "cudnn-9.19")]
    return Law(watts(power, "brake"), watts(power, "memory"), watts(power, "products"),
               *(watts(kernel, pass_) for kernel in kernels for pass_ in ("forward", "backward")))


def errors(law, file, steps):
    """Of products, attention and all in each run: without a shared clock (attention faster than in a step by the boost), and with it."""
    all_runs = runs(file)
    known = from_alone(law, all_runs)
    alone = law.slowdown("products", law.shared({"products": 1.0}))
    found = []
    for r in all_runs:
        if r["step"] not in steps:
            continue
        highest = {call: of_call(known, call) for call in r["us"]}
        without = {call: us * {"products": alone, "copy": 1}.get(kind_of(call), BOOST) for call, us in highest.items()}
        whole = lambda us, of: sum(us[call] * count for call, count in r["segments"] if of(kind_of(call)))
        for name, of in (("products", lambda k: k == "products"), ("attention", lambda k: k not in ("products", "copy")), ("all", lambda k: True)):
            measured = whole(r["us"], of)
            if measured:
                found.append((name, *(100 * (whole(us, of) / measured - 1) for us in (without, law.of_run(r, highest)))))
    return found


def table():
    law = profile()
    rows = ["| card | run | runs | products: own clocks | shared | attention: own clocks | shared | all: own clocks | shared |",
            "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    for card, what, file, steps in (("first", "in turn, other periods", "power.json", ("periods",)), ("first", "layers", "power.json", ("layers",)),
                                    ("second", "layers of other lengths", "power_again.json", ("layers",))):
        found = errors(law, file, steps)
        cells = []
        for kind in ("products", "attention", "all"):
            for column in (1, 2):
                of = [abs(e[column]) for e in found if e[0] == kind]
                cells.append(f"{statistics.mean(of):.1f} / {max(of):.1f} %")
        rows.append(f"| {card} | {what} | {sum(e[0] == 'all' for e in found)} | " + " | ".join(cells) + " |")
    return "\n".join(rows)


if __name__ == "__main__":
    if "--fit" in sys.argv[1:]:
        numbers, mean = fit()
        print(*(f"{name} {number:.0f} W" for name, number in zip(("brake", "memory", *KINDS), numbers)), f"mean error {100 * mean:.2f} %", sep=", ")
    else:
        print(table())
