#!/usr/bin/env python3
"""Measures PyTorch on the GPUs that profiles are fitted on: its FlashAttention-2 kernels, the host's time for a call.

    tests/gpu/launch 2 tests/gpu/pytorch.py RESULTS

Writes RESULTS/fit_pytorch.json and held_out_pytorch.json (kernel points, schema attnsim.measurements.1, for
`attnsim calibrate` and `compare`) and RESULTS/calls_pytorch.json: seconds a call that an eager context-parallel layer
makes, small (the host sets the time) and large, and a whole layer, each a list of samples. One rank measures kernels;
host times of transfers need two.
"""
import datetime
import json
import os
import random
import sys
import time

import torch
import torch.distributed as dist

KERNEL = "fa2-torch"
ROUNDS = 5
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

    small = (128, 128, "full", 8, 8, 64)
    return {
        "attention": Kernel(small, "forward"),
        "attention_backward": Kernel(small, "backward"),
        "sdpa": lambda: torch.nn.functional.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (x, y, y))),
        "merge": lambda: merge(out, lse, x, block_lse),
        "elementwise": lambda: x + y,
        "copy": lambda: x.transpose(1, 2).contiguous(),
        "exchange_of_1": lambda: exchange([x]),
        "exchange_of_2": lambda: exchange([x, y]),
        "all_gather": lambda: dist.all_gather_into_tensor(gathered, x.view(-1)),
        "reduce_scatter": lambda: dist.reduce_scatter_tensor(x.view(-1), gathered),
        "all_to_all": lambda: to_heads(x, ranks),
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


def layers(ranks):
    """Name -> a whole layer's forward, full mask, on the tokens a rank that the name ends in: what calls add up to."""
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
    for tokens in (512, 1024, 2048, 4096, 8192):
        for heads in (8, 32):
            qkv = [torch.randn(1, tokens, heads, 128, device="cuda", dtype=torch.bfloat16) for _ in range(3)]
            calls[f"ring_{heads}_{tokens}"] = lambda qkv=qkv: ring(*qkv)
            calls[f"ulysses_{heads}_{tokens}"] = lambda qkv=qkv: ulysses(*qkv)
    return calls


def measure_calls(of):
    """Seconds a call in a row of them, from the first call to an idle device; the first round warms up."""
    calls, times = 100, {}
    for name, call in of.items():
        times[name] = []
        for _ in range(ROUNDS + 1):
            torch.cuda.synchronize()
            dist.barrier()
            torch.cuda.synchronize()
            started = time.perf_counter()
            for _ in range(calls):
                call()
            torch.cuda.synchronize()
            times[name].append((time.perf_counter() - started) / calls)
        times[name].pop(0)
    return times


def environment():
    with open("/proc/cpuinfo") as file:
        processor = next((line.split(":")[1].strip() for line in file if line.startswith("model name")), "")
    return {"card": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "processor": processor,
            "date": datetime.date.today().isoformat()}


def write(path, content):
    with open(path + ".partial", "w") as file:
        json.dump(content, file)
    os.replace(path + ".partial", path)


def main():
    results = sys.argv[1]
    rank, ranks = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    os.makedirs(results, exist_ok=True)
    if ranks > 1:
        dist.init_process_group("nccl", device_id=torch.device("cuda", torch.cuda.current_device()))
        with torch.no_grad():
            seconds = {name: measure_calls(of) for name, of in
                       (("host", host_calls(ranks)), ("memory", large_calls()), ("layer", layers(ranks)))}
        if rank == 0:
            write(f"{results}/calls_pytorch.json", {"environment": environment(), "seconds": seconds})
        dist.destroy_process_group()
    if rank == 0:
        for name, shapes in (("fit", fit_shapes()), ("held_out", check_shapes())):
            write(f"{results}/{name}_pytorch.json",
                  {"schema": "attnsim.measurements.1", "environment": environment(), "points": measure_kernels(shapes)})


if __name__ == "__main__":
    main()
