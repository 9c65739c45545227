#!/usr/bin/env python3
"""Measures what a card's power limit makes of kernels: matrix products, attention and memory-bound operations alone, in turn, and as a
layer has them, each for seconds, with the card's power and clock beside.

    python3 tests/gpu/power.py RESULTS [--seconds N] [--steps alone,idle,shares,periods,layers,others]

Nothing of the card is set. Writes RESULTS/power.json. A run repeats a list of segments, a kind's calls one behind the other, until clocks
have settled; `us` are microseconds of a call of each kind, the median of the second half. A sampler of its own process reads NVML every
20 ms: `power` (W, from the energy counter where it moves, else the mean of the instant power), `clock` (MHz of the multiprocessors: mean,
least, most) and `temperature` are of that half. `idle`: calls after half a second of nothing: their ends in ms and times in us.
Kinds: product-USE of T tokens through Llama 3.1 8B's MLP; fa2, cudnn and -backward: 32 heads of 128, causal; copy: x + x of bf16.
"""
import argparse
import json
import os
import statistics
import subprocess
import sys
import time

from results import write

INTERVAL = 0.02
HIDDEN, INNER, HEADS, DIM = 4096, 14336, 32, 128


def sample_power(path):
    """Lines of monotonic seconds, W, mJ since the driver's start, MHz, degrees, reasons for the clock; until killed."""
    import pynvml as nvml
    nvml.nvmlInit()
    card = nvml.nvmlDeviceGetHandleByIndex(0)
    print("limit", nvml.nvmlDeviceGetEnforcedPowerLimit(card) / 1e3, "W", file=sys.stderr)
    def power():
        return nvml.nvmlDeviceGetFieldValues(card, [186])[0].value.uiVal / 1e3  # NVML_FI_DEV_POWER_INSTANT

    read = (power, lambda: nvml.nvmlDeviceGetTotalEnergyConsumption(card), lambda: nvml.nvmlDeviceGetClockInfo(card, nvml.NVML_CLOCK_SM),
            lambda: nvml.nvmlDeviceGetTemperature(card, nvml.NVML_TEMPERATURE_GPU), lambda: nvml.nvmlDeviceGetCurrentClocksThrottleReasons(card))

    def reading(one):
        try:
            return one()
        except Exception:
            return 0

    with open(path, "w", buffering=1) as file:
        while True:
            began = time.monotonic()
            file.write(f"{began:.4f} " + " ".join(str(reading(one)) for one in read) + "\n")
            time.sleep(max(0, INTERVAL - (time.monotonic() - began)))


class Sampler:
    def __init__(self, path):
        self.path = path
        self.process = subprocess.Popen([sys.executable, __file__, "--sample", path])

    def between(self, begin, end):
        rows = []
        with open(self.path) as file:
            for line in file:
                words = line.split()
                if len(words) == 6 and begin <= float(words[0]) <= end:
                    rows.append([float(word) for word in words])
        return rows

    def told(self, begin, end):
        rows = self.between(begin, end)
        if len(rows) < 3:
            return {}
        steps = [row for row, next_ in zip(rows, rows[1:]) if next_[2] != row[2]]  # the counter's last reading before it moves
        power = statistics.mean(row[1] for row in rows)
        counted = 1e-3 * (steps[-1][2] - steps[0][2]) / (steps[-1][0] - steps[0][0]) if len(steps) > 2 else None
        clocks = [row[3] for row in rows]
        reasons = 0
        for row in rows:
            reasons |= int(row[5])
        return {"power": round(counted or power, 1), "instant": round(power, 1), "clock": [round(statistics.mean(clocks)), min(clocks), max(clocks)],
                "temperature": rows[-1][4], "reasons": reasons}

    def end(self):
        self.process.kill()


def torch_calls():
    """Names -> what makes a call; made when they are first asked for, kept."""
    import torch
    import torch.nn.functional as F
    from torch.nn.attention import SDPBackend, sdpa_kernel
    make = lambda *shape: torch.randn(*shape, device="cuda", dtype=torch.bfloat16)

    def product(use, tokens):
        x, g, w = make(tokens, HIDDEN), make(tokens, INNER), 0.02 * make(INNER, HIDDEN)
        if use == "forward":
            return lambda out=make(tokens, INNER): torch.mm(x, w.t(), out=out)
        if use == "down":
            return lambda v=0.02 * make(HIDDEN, INNER), out=make(tokens, HIDDEN): torch.mm(g, v.t(), out=out)
        if use == "input":
            return lambda out=make(tokens, HIDDEN): torch.mm(g, w, out=out)
        if use == "weight":
            return lambda out=make(INNER, HIDDEN): torch.mm(g.t(), x, out=out)
        if use == "square":
            return lambda v=0.02 * make(HIDDEN, HIDDEN), out=make(tokens, HIDDEN): torch.mm(x, v.t(), out=out)
        raise ValueError(use)

    def attention(backend, backward, tokens, heads=HEADS):
        q, k, v, gradient = (make(1, tokens, heads, DIM).transpose(1, 2) for _ in range(4))
        if not backward:
            def forward():
                with torch.no_grad(), sdpa_kernel([backend]):
                    F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return forward
        q, k, v = (x.requires_grad_() for x in (q, k, v))
        with sdpa_kernel([backend]):
            out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return lambda: torch.autograd.grad(out, (q, k, v), gradient, retain_graph=True)

    def copy(elements):
        x, out = make(elements), make(elements)
        return lambda: torch.add(x, x, out=out)

    known = {}

    def call(name):
        if name not in known:
            kind, size = name.split()
            size = int(size)
            if kind.startswith("product-"):
                known[name] = product(kind.removeprefix("product-"), size)
            elif kind == "copy":
                known[name] = copy(size)
            else:
                backend = SDPBackend.FLASH_ATTENTION if kind.startswith("fa2") else SDPBackend.CUDNN_ATTENTION
                known[name] = attention(backend, kind.endswith("backward"), size)
            known[name]()
            torch.cuda.synchronize()
        return known[name]

    def forget():
        known.clear()
        torch.cuda.empty_cache()

    return call, forget


class Runs:
    def __init__(self, sampler, path, seconds):
        import torch
        self.torch, self.sampler, self.path, self.deadline = torch, sampler, path, time.monotonic() + seconds
        self.call, self.forget = torch_calls()
        self.rows, self.once = [], {}
        self.environment = {"card": torch.cuda.get_device_name(), "torch": torch.__version__, "cuda": torch.version.cuda,
                            "cudnn": torch.backends.cudnn.version(), "date": time.strftime("%Y-%m-%d")}

    def event(self):
        e = self.torch.cuda.Event(enable_timing=True)
        e.record()
        return e

    def write(self):
        rows = ",\n".join(json.dumps(row, separators=(",", ":")) for row in self.rows)
        write(self.path, '{"environment":' + json.dumps(self.environment) + ',"runs":[\n' + rows + "\n]}\n")

    def seconds_of(self, kind):
        """Roughly, for how many calls a segment has."""
        if kind not in self.once:
            call = self.call(kind)
            begin = self.event()
            for _ in range(3):
                call()
            end = self.event()
            self.torch.cuda.synchronize()
            self.once[kind] = 1e-3 * begin.elapsed_time(end) / 3
        return self.once[kind]

    def calls_for(self, kind, seconds):
        return max(1, round(seconds / self.seconds_of(kind)))

    def run(self, step, segments, seconds=1.6, **about):
        """`segments`: (kind, calls), in turn."""
        if time.monotonic() > self.deadline:
            return None
        calls = [(kind, self.call(kind), count) for kind, count in segments]
        began, ends, stamps = time.monotonic(), [], []
        while time.monotonic() - began < seconds or len(stamps) < 6:
            events = [self.event()]
            for _, call, count in calls:
                for _ in range(count):
                    call()
                events.append(self.event())
            ends.append(events)
            if len(ends) > 2:
                ends[len(stamps)][-1].synchronize()
                stamps.append(time.monotonic())
        self.torch.cuda.synchronize()
        half = next(i for i, stamp in enumerate(stamps) if stamp >= (stamps[0] + stamps[-1]) / 2)
        times, shares = {}, {}
        for i, (kind, _, count) in enumerate(calls):
            for events in ends[half:len(stamps)]:
                times.setdefault(kind, []).append(1e3 * events[i].elapsed_time(events[i + 1]) / count)
            shares[kind] = shares.get(kind, 0) + statistics.median(1e3 * e[i].elapsed_time(e[i + 1]) for e in ends[half:len(stamps)])
        whole = sum(shares.values())
        row = {"step": step, **about, "segments": segments, "us": {kind: round(statistics.median(list_of), 1) for kind, list_of in times.items()},
               "share": {kind: round(share / whole, 4) for kind, share in shares.items()}, "period_us": round(whole),
               **self.sampler.told(stamps[max(0, half - 1)], stamps[-1])}
        self.rows.append(row)
        print(step, row["us"], row["share"], row.get("power"), row.get("instant"), row.get("clock"), row.get("temperature"), row.get("reasons"), flush=True)
        self.write()
        return row

    def guarded(self, function):
        try:
            function()
        except Exception as error:
            print("failed:", repr(error)[:300], flush=True)
            self.torch.cuda.synchronize()

    def alone(self, kinds):
        for kind in kinds:
            self.guarded(lambda: self.run("alone", [(kind, self.calls_for(kind, 5e-3))]))

    def from_idle(self, kind, pause=0.5, lasts=0.35, times=3):
        call = self.call(kind)
        count = self.calls_for(kind, 1e-3)
        for number in range(times):
            if time.monotonic() > self.deadline:
                return
            self.torch.cuda.synchronize()
            time.sleep(pause)
            began = time.monotonic()
            events = [self.event()]
            while time.monotonic() - began < lasts:
                for _ in range(count):
                    call()
                events.append(self.event())
                if len(events) > 3:
                    events[-3].synchronize()
            self.torch.cuda.synchronize()
            ended = time.monotonic()
            samples = [[round(1e3 * (row[0] - began)), row[1], row[3]] for row in self.sampler.between(began - 0.06, ended)]
            thin = max(1, len(events) // 60)
            chosen = range(0, len(events) - thin, thin)
            self.rows.append({"step": "idle", "kind": kind, "pause": pause,
                              "ends_ms": [round(events[0].elapsed_time(events[i + thin]), 1) for i in chosen],
                              "us": [round(1e3 * events[i].elapsed_time(events[i + thin]) / count / thin, 1) for i in chosen],
                              "samples_ms_w_mhz": samples})
            row = self.rows[-1]
            if number == 0:
                print("idle", kind, row["us"][:3], row["us"][len(row["us"]) // 2], row["us"][-1], samples[:2], samples[-1:], flush=True)
        self.write()

    def with_pauses(self, kind, pause, calls=30):
        """A call, as alone in each row as measurements of kernels with pauses have it."""
        call, times = self.call(kind), []
        began = time.monotonic()
        for _ in range(calls):
            time.sleep(pause)
            begin = self.event()
            call()
            end = self.event()
            end.synchronize()
            times.append(1e3 * begin.elapsed_time(end))
        self.rows.append({"step": "paused", "kind": kind, "pause": pause, "us": {kind: round(statistics.median(times), 1)},
                          **self.sampler.told(began, time.monotonic())})
        print("paused", kind, pause, self.rows[-1], flush=True)

    def shares(self, a, b, shares, period=40e-3, step="shares"):
        for share in shares:
            def one():
                self.run(step, [(a, self.calls_for(a, share * period)), (b, self.calls_for(b, (1 - share) * period))])
            self.guarded(one)

    def layer(self, tokens, kernel, copies):
        """Forward, recomputed and backward, as titan.py's layers; `copies`: of two bf16 tensors of hidden width, before each product."""
        square, up, down = f"product-square {tokens}", f"product-forward {tokens}", f"product-down {tokens}"
        input_, weight = f"product-input {tokens}", f"product-weight {tokens}"
        copy = [(f"copy {tokens * HIDDEN}", copies)] if copies else []
        forward = [*copy, (square, 2), (f"{kernel} {tokens}", 1), (square, 1), *copy, (up, 2), *copy, (down, 1)]
        backward = [(input_, 1), (weight, 1), *copy, (input_, 2), (weight, 2), *copy, (square, 1), (f"{kernel}-backward {tokens}", 1),
                    *copy, (square, 4)]
        self.guarded(lambda: self.run("layers", forward + forward + backward, seconds=2.2))


STEPS = {}


def step(function):
    STEPS[function.__name__] = function
    return function


@step
def alone(r):
    r.alone([f"product-{use} 8192" for use in ("forward", "down", "input", "weight", "square")] + ["product-forward 32768", "product-weight 32768"])
    r.alone(["copy 33554432", "copy 268435456"])
    for tokens in (8192, 4096, 16384, 32768):
        r.alone([f"{kernel}{pass_} {tokens}" for kernel in ("fa2", "cudnn") for pass_ in ("", "-backward")])
    r.forget()


@step
def idle(r):
    for kind in ("product-forward 8192", "fa2 8192", "fa2-backward 8192", "cudnn 8192", "cudnn-backward 8192", "copy 33554432"):
        r.guarded(lambda: r.from_idle(kind))
    for kind in ("cudnn 8192", "cudnn-backward 8192", "cudnn 32768", "cudnn-backward 32768", "fa2 8192", "fa2-backward 8192", "fa2 32768",
                 "fa2-backward 32768", "product-forward 8192"):
        r.guarded(lambda: r.with_pauses(kind, 0.01))


@step
def shares(r):
    product = "product-forward 8192"
    for kind in ("fa2 8192", "fa2-backward 8192", "cudnn 8192", "cudnn-backward 8192", "copy 33554432"):
        r.shares(kind, product, (0.1, 0.25, 0.5, 0.75, 0.9))
    r.shares("copy 33554432", "cudnn-backward 8192", (0.25, 0.5))
    r.shares("copy 33554432", "fa2-backward 8192", (0.25, 0.5))
    r.shares("fa2 8192", "cudnn-backward 8192", (0.5,))


@step
def periods(r):
    for kind in ("fa2 8192", "copy 33554432"):
        for period in (8e-3, 20e-3, 100e-3, 250e-3):
            r.shares(kind, "product-forward 8192", (0.5,), period, "periods")


@step
def layers(r):
    for tokens in (8192, 32768, 4096, 16384):
        r.forget()
        for kernel in ("fa2", "cudnn"):
            for copies in (0, 6):
                r.layer(tokens, kernel, copies)


@step
def others(r):
    for tokens in (6144, 12288, 24576):
        r.forget()
        for kernel in ("fa2", "cudnn"):
            r.layer(tokens, kernel, 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--sample", action="store_true", help="sample into the file RESULTS until killed")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--steps", default=",".join(STEPS))
    asked = parser.parse_args()
    if asked.sample:
        return sample_power(asked.results)
    os.makedirs(asked.results, exist_ok=True)
    sampler = Sampler(f"{asked.results}/samples.txt")
    try:
        runs = Runs(sampler, f"{asked.results}/power.json", asked.seconds)
        time.sleep(0.5)
        for name in asked.steps.split(","):
            print(f"--- {name}", flush=True)
            runs.guarded(lambda: STEPS[name](runs))
        runs.write()
    finally:
        sampler.end()
        os.remove(f"{asked.results}/samples.txt")


if __name__ == "__main__":
    main()
