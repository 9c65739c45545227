#!/usr/bin/env python3
"""Measures PyTorch on the GPUs that profiles are fitted on: its FlashAttention-2 kernels, the host's time for a call.

    tests/gpu/launch 2 tests/gpu/pytorch.py RESULTS [--seconds N] [--layers FILE] [--no-kernels]
    python3 tests/gpu/pytorch.py RESULTS --shapes FILE

Writes RESULTS/fit_pytorch.json and held_out_pytorch.json (kernel points, schema attnsim.measurements.2, for
`attnsim calibrate` and `compare`), RESULTS/calls_pytorch.json: seconds of the host for each call that an eager
context-parallel layer makes, seconds of large calls, and of whole layers, each a list of samples of the slower rank;
and RESULTS/host.yaml, a host profile of the calls' medians. All are gone through in turn, again and again, as the host's speed
wanders: `gauge` has the seconds of a loop of Python beside each. A call is timed in the order in which layers make them: in a row
of the same it takes half as long, in any order up to twice. One rank measures kernels; host times of transfers need two.
FILE: layers to run in place of those below, a list of (tokens, heads) of a rank; with --shapes kernels in place of those below, lists by
name of (rows, columns, mask, heads, K/V heads, head dimension), each written to RESULTS/NAME_pytorch.json.
"""
import argparse
import datetime
import json
import os
import random
import statistics
import time

import torch
import torch.distributed as dist

from results import write

KERNEL = "fa2-torch"
ROUNDS = 5  # of kernels
# What layers in a row take over the sum of their calls' medians, where the host sets their time: a call's mean is above its median,
# and the lines between calls take time, too. Medians of two sets (reproduce/measured/h200-blind, h200-blind-again): rings 1.06, Ulysses 1.17.
BESIDE_CALLS = 1.1
FORWARD = torch.ops.aten._flash_attention_forward
BACKWARD = torch.ops.aten._flash_attention_backward


def squares(sizes, heads, kv_heads, head_dim):
    return [(s, s, mask, heads, kv_heads, head_dim) for s in sizes for mask in ("full", "causal")]


def rectangles(pairs, heads, kv_heads):
    return [(rows, cols, "full", heads, kv_heads, 128) for rows, cols in pairs]


def fit_shapes():
    sizes, sides = [512, 1024, 2048, 4096, 8192, 16384], [1024, 4096, 16384]
    return (squares(sizes, 32, 32, 128) + squares(sizes, 32, 32, 64) + squares(sizes, 32, 32, 32)
            + squares(sizes, 32, 8, 128) + squares(sides, 8, 8, 128) + squares(sides, 8, 8, 32)
            + squares([1024, 4096], 20, 20, 128)
            + rectangles([(r, c) for r in sides for c in sides if r != c], 32, 32)
            + rectangles([(1024, 4096), (4096, 1024), (4096, 16384), (16384, 4096)], 32, 8))


def check_shapes():
    return (squares([896, 2304, 4608, 9216, 13312], 32, 32, 128) + squares([2304, 9216], 14, 14, 128)
            + squares([2304, 9216], 48, 12, 128) + squares([1536, 6144, 11264], 28, 28, 64)
            + squares([1536, 6144, 11264], 12, 12, 32)
            + rectangles([(896, 9216), (9216, 896), (2304, 13312), (13312, 2304), (6656, 3328)], 32, 32))


class Kernel:
    """One call on random data, forward or backward."""

    def __init__(self, shape, pass_):
        rows, cols, self.mask, heads, kv_heads, dim = shape
        self.shape, self.pass_ = shape, pass_
        make = lambda tokens, h: torch.randn(1, tokens, h, dim, device="cuda", dtype=torch.bfloat16)
        self.q, self.k, self.v = make(rows, heads), make(cols, kv_heads), make(cols, kv_heads)
        self.grad = make(rows, heads)
        if pass_ == "backward":
            self.out, self.lse, self.state, self.offset, _ = self.forward()

    def forward(self):
        return FORWARD(self.q, self.k, self.v, None, None, self.q.shape[1], self.k.shape[1], 0.0, self.mask == "causal",
                       False)

    def __call__(self):
        if self.pass_ == "forward":
            return self.forward()
        return BACKWARD(self.grad, self.q, self.k, self.v, self.out, self.lse, None, None, self.q.shape[1],
                        self.k.shape[1], 0.0, self.mask == "causal", self.state, self.offset)

    def sample(self):
        """Seconds of the device and of the host a call, in a row of calls."""
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        self()
        torch.cuda.synchronize()
        started = time.perf_counter()
        self()
        torch.cuda.synchronize()
        calls = max(2, min(50, int(4e-3 / (time.perf_counter() - started))))
        begin.record()
        started = time.perf_counter()
        for _ in range(calls):
            self()
        host = (time.perf_counter() - started) / calls
        end.record()
        torch.cuda.synchronize()
        return begin.elapsed_time(end) * 1e-3 / calls, host


def measure_kernels(shapes):
    points = [(shape, pass_) for shape in shapes for pass_ in ("forward", "backward")]
    samples = {p: ([], []) for p in points}
    for _ in range(ROUNDS):
        random.shuffle(points)
        for p in points:
            device, host = Kernel(*p).sample()
            samples[p][0].append(device)
            samples[p][1].append(host)
    return [{"kind": "kernel", "kernel": KERNEL, "pass": pass_, "mask": shape[2], "batch": 1, "heads": shape[3],
             "kv_heads": shape[4], "head_dim": shape[5], "rows": shape[0], "cols": shape[1],
             "samples": {"launch_s": samples[shape, pass_][1], "time_s": samples[shape, pass_][0]}}
            for shape, pass_ in sorted(samples)]


@torch.jit.script
def merge(out: torch.Tensor, lse: torch.Tensor, block_out: torch.Tensor, block_lse: torch.Tensor):
    block_out = block_out.to(torch.float32)
    block_lse = block_lse.transpose(-2, -1).unsqueeze(dim=-1)
    out = out - torch.sigmoid(block_lse - lse) * (out - block_out)
    lse = lse - torch.nn.functional.logsigmoid(lse - block_lse)
    return out, lse


def to_heads(x, ranks):
    """As Ulysses does: (1, tokens, heads, dim) -> (1, ranks tokens, heads / ranks, dim)."""
    parts = x.reshape(1, x.shape[1], ranks, -1, x.shape[3]).transpose(0, 2).contiguous()
    received = torch.empty_like(parts)
    dist.all_to_all_single(received, parts)
    return received.reshape(x.shape[1] * ranks, 1, -1, x.shape[3]).transpose(0, 1).contiguous()


def to_tokens(x, ranks):
    """And back."""
    parts = x.reshape(1, ranks, -1, x.shape[2], x.shape[3]).transpose(0, 3).transpose(0, 1).contiguous()
    received = torch.empty_like(parts)
    dist.all_to_all_single(received, parts)
    return received.reshape(x.shape[2] * ranks, x.shape[1] // ranks, 1, -1).transpose(0, 2).contiguous()


def host_calls(ranks):
    """Name -> a call on tensors so small that the host sets the time."""
    x, y = (torch.randn(1, 128, 8, 64, device="cuda", dtype=torch.bfloat16) for _ in range(2))
    out, lse = torch.randn(1, 128, 8, 64, device="cuda"), torch.randn(1, 128, 8, 1, device="cuda")
    block_lse = torch.randn(1, 8, 128, device="cuda")
    gathered = torch.empty(ranks * x.numel(), device="cuda", dtype=x.dtype)
    peer = (dist.get_rank() + 1) % ranks

    def exchange(tensors):
        works = []
        for t in tensors:
            works += [dist.P2POp(dist.isend, t, peer), dist.P2POp(dist.irecv, torch.empty_like(t), peer)]
        for work in dist.batch_isend_irecv(works):
            work.wait()

    def all_to_all():
        received = torch.empty_like(x)
        dist.all_to_all_single(received, x)
        return received.reshape(128 * ranks, 1, -1, 64).transpose(0, 1).contiguous()  # a view

    small = (128, 128, "full", 8, 8, 64)
    return {
        "attention": Kernel(small, "forward"),
        "attention_backward": Kernel(small, "backward"),
        "merge": lambda: merge(out, lse, x, block_lse),
        "add": lambda: x + y,
        "copy": lambda: x.transpose(1, 2).contiguous(),
        "cast": lambda: (x.to(torch.float32), block_lse.transpose(-2, -1).unsqueeze(dim=-1)),
        "exchange_of_1": lambda: exchange([x]),
        "exchange_of_2": lambda: exchange([x, y]),
        "all_gather": lambda: dist.all_gather_into_tensor(gathered, x.view(-1)),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(x.view(-1), gathered),
        "all_to_all": all_to_all,
    }


def large_calls():
    """Name -> a call whose time the device's memory sets, on 32 heads of 128 and the tokens that the name ends in."""
    calls = {}
    for tokens in (2048, 8192):
        x = torch.randn(1, tokens, 32, 128, device="cuda", dtype=torch.bfloat16)
        out, lse = torch.randn(1, tokens, 32, 128, device="cuda"), torch.randn(1, tokens, 32, 1, device="cuda")
        block_lse = torch.randn(1, 32, tokens, device="cuda")
        calls[f"merge_{tokens}"] = lambda out=out, lse=lse, x=x, b=block_lse: merge(out, lse, x, b)
        calls[f"elementwise_{tokens}"] = lambda x=x: x + x
        calls[f"copy_{tokens}"] = lambda x=x: x.transpose(1, 2).contiguous()
        calls[f"cast_{tokens}"] = lambda out=out: out.to(torch.bfloat16)
    return calls


def layers(ranks, sizes):
    """Name -> a whole layer's forward, full mask, on the heads and the tokens a rank that the name ends in."""
    peer = (dist.get_rank() + 1) % ranks

    def attention(q, k, v):
        return FORWARD(q, k, v, None, None, q.shape[1], k.shape[1], 0.0, False, False)[:2]

    def ring(q, k, v):
        out = lse = None
        for step in range(ranks):
            if step + 1 < ranks:
                received, works = [torch.empty_like(k), torch.empty_like(v)], []
                for t, r in zip((k, v), received):
                    works += [dist.P2POp(dist.isend, t, peer), dist.P2POp(dist.irecv, r, peer)]
                works = dist.batch_isend_irecv(works)
            block, block_lse = attention(q, k, v)
            if out is None:
                out, lse = block.to(torch.float32), block_lse.transpose(-2, -1).unsqueeze(dim=-1)
            else:
                out, lse = merge(out, lse, block, block_lse)
            if step + 1 < ranks:
                for work in works:
                    work.wait()
                k, v = received
        return out.to(q.dtype)

    def ulysses(q, k, v):
        return to_tokens(attention(*(to_heads(t, ranks) for t in (q, k, v)))[0], ranks)

    calls = {}
    for tokens, heads in sizes:
        qkv = [torch.randn(1, tokens, heads, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
        calls[f"ring_{heads}_{tokens}"] = lambda qkv=qkv: ring(*qkv)
        calls[f"ulysses_{heads}_{tokens}"] = lambda qkv=qkv: ulysses(*qkv)
    return calls


def gauge():
    """Seconds of a loop that nothing but the host's speed decides."""
    started, total = time.perf_counter(), 0
    for i in range(20000):
        total += i * i
    return time.perf_counter() - started


def together():
    torch.cuda.synchronize()
    dist.barrier()
    torch.cuda.synchronize()


# In which order layers call: a ring, Ulysses, a ring backward, gathered keys, and these backward.
CALLS_OF_LAYERS = (
    ("exchange_of_2", "attention", "cast", "attention", "merge", "cast"),
    (*3 * ("copy", "all_to_all"), "attention", "copy", "all_to_all", "copy"),
    (*2 * ("exchange_of_1", "attention_backward", "add"), "cast", "cast"),
    ("copy", "all_gather", "all_gather", "attention"),
    ("attention_backward", "reduce_scatter", "reduce_scatter", "cast"),
)


class sampler:
    """Samples of everything, in turn. All ranks draw the same order."""

    def __init__(self, host, large, whole):
        self.host, self.of = host, {"memory": large, "layer": whole}
        self.random = random.Random(1)
        self.samples = {"host": {name: [] for name in host}, "gauge": {"loop": []}}
        self.samples |= {kind: {name: [] for name in calls} for kind, calls in self.of.items()}

    def round(self):
        self.among_others()
        jobs = [(kind, name) for kind, calls in self.of.items() for name in calls]
        self.random.shuffle(jobs)
        for number, (kind, name) in enumerate(jobs):
            self.samples[kind][name].append(self.in_a_row(self.of[kind][name]))
            if number % 8 == 7:
                self.among_others()

    def among_others(self, turns=6):
        """Each call in the places that it has in layers: its median of some turns."""
        together()
        self.samples["gauge"]["loop"].append(gauge())
        orders, seconds = list(CALLS_OF_LAYERS), {name: [] for name in self.host}
        for _ in range(turns):
            self.random.shuffle(orders)
            for name in (name for order in orders for name in 2 * order):
                started = time.perf_counter()
                self.host[name]()
                seconds[name].append(time.perf_counter() - started)
        for name, list_of in seconds.items():
            self.samples["host"][name].append(statistics.median(list_of))

    def in_a_row(self, call, enough=12e-3):
        """Seconds a call, from the first to an idle device; as many calls on all ranks."""
        together()
        started = time.perf_counter()
        call()
        torch.cuda.synchronize()
        calls = torch.tensor(min(40, max(4, int(enough / (time.perf_counter() - started)))), device="cuda")
        dist.all_reduce(calls, op=dist.ReduceOp.MIN)
        calls = int(calls)
        together()
        started = time.perf_counter()
        for _ in range(calls):
            call()
        torch.cuda.synchronize()
        return (time.perf_counter() - started) / calls

    def of_the_slower_rank(self):
        everyone = [None] * dist.get_world_size()
        dist.all_gather_object(everyone, self.samples)
        return {kind: {name: [max(all_ranks) for all_ranks in zip(*(rank[kind][name] for rank in everyone))] for name in names}
                for kind, names in self.samples.items()}


def measure_calls(ranks, sizes, seconds):
    """For so many seconds; the first round warms up."""
    all_of = sampler(host_calls(ranks), large_calls(), layers(ranks, sizes))
    all_of.round()
    for names in all_of.samples.values():
        for samples in names.values():
            samples.clear()
    started = time.perf_counter()
    while True:
        all_of.round()
        goes_on = torch.tensor(time.perf_counter() - started < seconds, device="cuda", dtype=torch.int32)
        dist.all_reduce(goes_on, op=dist.ReduceOp.MIN)
        if not goes_on:
            return all_of.of_the_slower_rank()


def host_profile(seconds, about):
    """topologies/hosts: medians of calls."""
    us = {name: 1e6 * statistics.median(samples) for name, samples in seconds["host"].items()}
    tensor = us["exchange_of_2"] - us["exchange_of_1"]
    times = {"attention": us["attention"], "attention_backward": us["attention_backward"], "merge": us["merge"], "add": us["add"],
             "copy": us["copy"], "cast": us["cast"], "exchange": max(0, us["exchange_of_1"] - tensor), "exchanged_tensor": tensor,
             "all_gather": us["all_gather"], "reduce_scatter": us["reduce_scatter"], "all_to_all": us["all_to_all"]}
    gauges = sorted(seconds["gauge"]["loop"])
    spread = (gauges[int(0.95 * (len(gauges) - 1))] - gauges[int(0.05 * (len(gauges) - 1))]) / 2 / statistics.median(gauges)
    lines = ["name: measured", "basis: measured",
             f"source: PyTorch {about['torch']}, NCCL {about['nccl']}, {about['processor']}, {about['date']} (tests/gpu/pytorch.py)"]
    lines += [f"{name}: {time:.2f} us" for name, time in times.items()]
    lines += [f"slowdown: {BESIDE_CALLS}   # layers in a row over the medians of their calls, by two other sets"]
    return "\n".join([*lines, f"uncertainty: {spread:.2f}   # of a loop of Python's time, 5 to 95 %", ""])


def environment():
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return {"card": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "processor": processor,
            "date": datetime.date.today().isoformat()}


SIZES = [(tokens, heads) for tokens in (512, 1024, 2048, 4096, 8192) for heads in (8, 32)]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--seconds", type=float, default=30, help="of calls and layers")
    parser.add_argument("--layers")
    parser.add_argument("--no-kernels", action="store_true")
    parser.add_argument("--shapes")
    asked = parser.parse_args()
    results = asked.results
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    os.makedirs(results, exist_ok=True)
    sizes = json.load(open(asked.layers)) if asked.layers else SIZES
    if ranks > 1:
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
        with torch.no_grad():
            seconds = measure_calls(ranks, sizes, asked.seconds)
        if rank == 0:
            about = environment()
            write(f"{results}/calls_pytorch.json", json.dumps({"environment": about, "seconds": seconds}))
            write(f"{results}/host.yaml", host_profile(seconds, about))
        dist.destroy_process_group()
    if rank == 0 and not asked.no_kernels:
        named = {"fit": fit_shapes(), "held_out": check_shapes()}
        if asked.shapes:
            named = {name: [tuple(shape) for shape in shapes] for name, shapes in json.load(open(asked.shapes)).items()}
        for name, shapes in named.items():
            content = {"schema": "attnsim.measurements.2", "environment": environment(), "points": measure_kernels(shapes)}
            write(f"{results}/{name}_pytorch.json", json.dumps(content))


if __name__ == "__main__":
    main()
