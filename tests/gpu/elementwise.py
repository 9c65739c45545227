#!/usr/bin/env python3
"""Times what PyTorch does to each element of a layer, eager and compiled by Inductor, forward and backward, on one GPU.

    python3 tests/gpu/elementwise.py RESULTS [--seconds N]

Writes RESULTS/elementwise.json: for each operation, pass and number of elements (of its result) microseconds of a call, the median of
three rounds of at least 10 ms; `among_products`: eager ones of 8,192 tokens, each again and again for 4 ms between matrix products of 16 ms,
as a layer's clocks are; `kernels`: what ran at 8,192 tokens, us by the profiler. Operations are those of tests/gpu/titan.py:
norm with the sum of residual and branch before it, rotation by complex numbers, the gate, K and V repeated, the loss; also
PyTorch's own rms_norm, and single steps of eager ones.
"""
import argparse
import collections
import json
import os
import statistics
import time

import torch
import torch._functorch.config
import torch.nn.functional as F

import titan
from results import write

HIDDEN, INNER, HEADS, DIM, VOCABULARY = titan.HIDDEN, titan.INNER, titan.HEADS, titan.HEAD_DIM, 128256
FIT, HELD_OUT = (256, 2048, 8192, 65536), (768, 6144, 16384, 32768)  # tokens of hidden width
COMPILED = (2048, 8192, 32768)


def made(*shape, dtype=torch.bfloat16, grad=True):
    return torch.randn(*shape, device="cuda", dtype=dtype).requires_grad_(grad)


def norm(x, branch, weight):
    h = x + branch
    wide = h.float()
    return h, (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(h) * weight


def rms_norm(x, branch, weight):
    h = x + branch
    return h, F.rms_norm(h, (HIDDEN,), weight, 1e-5)


def gate(a, b):
    return F.silu(a) * b


def loss(logits, labels):
    return F.cross_entropy(logits.float(), labels)


def turns(tokens):
    angles = torch.rand(tokens, DIM // 2, device="cuda")
    return torch.polar(torch.ones_like(angles), angles)


def operations(elements):
    """Name -> function and inputs, of about so many elements of a result."""
    tokens, wide = elements // HIDDEN, max(8, elements // INNER)
    heads = (1, tokens, HEADS, DIM)
    words = max(8, elements // VOCABULARY)
    return {
        "norm": (norm, lambda: (made(1, tokens, HIDDEN), made(1, tokens, HIDDEN), made(HIDDEN))),
        "rms_norm": (rms_norm, lambda: (made(1, tokens, HIDDEN), made(1, tokens, HIDDEN), made(HIDDEN))),
        "rotation": (titan.rotated, lambda: (made(*heads), turns(tokens))),
        "gate": (gate, lambda: (made(1, wide, INNER), made(1, wide, INNER))),
        "repeat": (lambda x: titan.repeated(x, 4), lambda: (made(1, tokens, HEADS // 4, DIM),)),
        "loss": (loss, lambda: (made(words, VOCABULARY), torch.randint(VOCABULARY, (words,), device="cuda"))),
    }


def steps(elements):
    """Single steps of eager ones, forward alone."""
    tokens = elements // HIDDEN
    x, wide = made(tokens, HIDDEN, grad=False), made(tokens, HIDDEN, dtype=torch.float32, grad=False)
    row, weight = made(tokens, 1, dtype=torch.float32, grad=False), made(HIDDEN, grad=False)
    pairs = torch.view_as_complex(wide.view(tokens, HEADS, DIM // 2, 2))
    by = turns(tokens).view(tokens, 1, DIM // 2)
    return {"add": lambda: x + x, "to_fp32": lambda: x.float(), "to_bf16": lambda: wide.to(torch.bfloat16), "scale_rows": lambda: wide * row,
            "weigh": lambda: x * weight, "square": lambda: wide.pow(2), "mean": lambda: wide.mean(-1, keepdim=True),
            "turn": lambda: pairs * by, "silu": lambda: F.silu(x), "transpose": lambda: x.view(tokens, HEADS, DIM).transpose(0, 1).contiguous()}


def event():
    e = torch.cuda.Event(enable_timing=True)
    e.record()
    return e


def timed(call, rounds=3, least=10e-3):
    call()
    begin = event()
    call()
    end = event()
    torch.cuda.synchronize()
    calls = max(3, min(200, int(least / (1e-3 * begin.elapsed_time(end)))))
    times = []
    for _ in range(rounds):
        begin = event()
        for _ in range(calls):
            call()
        end = event()
        torch.cuda.synchronize()
        times.append(1e3 * begin.elapsed_time(end) / calls)
    return round(statistics.median(times), 2)


def passes(function, inputs):
    """Elements, and calls of the forward and of the backward pass."""
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    wanted = [x for x in inputs if x.requires_grad]
    gradients = [torch.randn_like(x) for x in outputs]
    elements = max(x.numel() for x in (*outputs, inputs[0]))
    return elements, {"forward": lambda: function(*inputs), "backward": lambda: torch.autograd.grad(outputs, wanted, gradients, retain_graph=True)}


def kernels_of(call):
    call()
    torch.cuda.synchronize()
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        call()
        torch.cuda.synchronize()
    found = collections.Counter()
    for e in profile.profiler.kineto_results.events():
        if e.device_type() == torch.autograd.DeviceType.CUDA and e.duration_ns() > 0:
            found[e.name()[:100]] += 1e-3 * e.duration_ns()
    return {name: round(us, 1) for name, us in found.most_common(12)}


class Results:
    def __init__(self, path, seconds):
        self.path, self.deadline, self.points, self.kernels, self.among = path, time.monotonic() + seconds, [], [], []

    def write(self):
        about = {"card": torch.cuda.get_device_name(), "torch": torch.__version__, "date": time.strftime("%Y-%m-%d")}
        lists = {"points": self.points, "among_products": self.among, "kernels": self.kernels}
        body = ",\n".join(f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
                          for name, rows in lists.items())
        write(self.path, '{"environment":' + json.dumps(about) + ",\n" + body + "}\n")

    def guarded(self, what, function):
        if time.monotonic() > self.deadline:
            return
        try:
            function()
        except Exception as error:
            print("failed:", what, repr(error)[:300], flush=True)
            torch.cuda.synchronize()

    def operation(self, name, function, inputs, how, part, tokens):
        elements, calls = passes(function, inputs())
        for pass_, call in calls.items():
            us = timed(call)
            self.points.append({"operation": name, "pass": pass_, "how": how, "part": part, "elements": elements, "us": us})
            if tokens == 8192:
                self.kernels.append({"operation": name, "pass": pass_, "how": how, "us": kernels_of(call)})
            print(how, name, pass_, elements, us, flush=True)

    def eager(self, tokens, part):
        for name, (function, inputs) in operations(tokens * HIDDEN).items():
            self.guarded((name, tokens), lambda: self.operation(name, function, inputs, "eager", part, tokens))
        for name, call in steps(tokens * HIDDEN).items():
            self.guarded((name, tokens), lambda: self.points.append({"operation": "step " + name, "pass": "forward", "how": "eager", "part": part,
                                                                     "elements": tokens * HIDDEN, "us": timed(call)}))
        torch.cuda.empty_cache()
        self.write()

    def compiled(self, tokens):
        for name, (function, inputs) in operations(tokens * HIDDEN).items():
            torch._dynamo.reset()
            self.guarded((name, tokens), lambda: self.operation(name, torch.compile(function, fullgraph=True, dynamic=False), inputs, "compiled",
                                                                "held out" if tokens in HELD_OUT else "fit", tokens))
        torch.cuda.empty_cache()
        self.write()

    def among_products(self, tokens=8192):
        x, w, out = made(tokens, HIDDEN, grad=False), made(INNER, HIDDEN, grad=False), made(tokens, INNER, grad=False)
        calls = {(name, pass_): call for name, (function, inputs) in operations(tokens * HIDDEN).items()
                 for pass_, call in passes(function, inputs())[1].items()}
        calls |= {("step " + name, "forward"): call for name, call in steps(tokens * HIDDEN).items()}
        for (name, pass_), call in calls.items():
            self.guarded((name, "among products"), lambda: self.among.append(
                {"operation": name, "pass": pass_, "elements": tokens * HIDDEN, "us": self.in_turn(call, lambda: torch.mm(x, w.t(), out=out))}))
        self.write()

    @staticmethod
    def in_turn(call, product, lasts=0.6):
        alone = timed(call, 1)
        count, pairs, began = max(1, int(4e3 / alone)), [], time.monotonic()
        while time.monotonic() - began < lasts:
            for _ in range(12):
                product()
            begin = event()
            for _ in range(count):
                call()
            pairs.append((begin, event()))
            if len(pairs) > 2:
                pairs[-3][1].synchronize()
        torch.cuda.synchronize()
        return round(statistics.median(1e3 * a.elapsed_time(b) / count for a, b in pairs[len(pairs) // 2:]), 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--seconds", type=float, default=300)
    asked = parser.parse_args()
    os.makedirs(asked.results, exist_ok=True)
    torch._functorch.config.donated_buffer = False  # the backward pass is called again and again
    results = Results(f"{asked.results}/elementwise.json", asked.seconds)
    for tokens in FIT + HELD_OUT:
        results.eager(tokens, "fit" if tokens in FIT else "held out")
    results.guarded("among products", results.among_products)
    for tokens in COMPILED:
        results.compiled(tokens)


if __name__ == "__main__":
    main()
