#!/usr/bin/env python3
"""Measures layers of Llama 3.1 8B as torchtitan trains them: FSDP2, PyTorch's own context parallelism, torch.compile.

    tests/gpu/launch 2 tests/gpu/titan.py RESULTS [--cases REGEX]
    tests/gpu/titan.py RESULTS --alone first|last [--cases REGEX]

Writes RESULTS/titan_*.json: for each case seconds of a step and of each layer's passes (CUDA events), and of one more step every
kernel: its name's index, stream, start and duration in ns. Two ranks run what two GPUs can. --alone runs context ranks that there are
no GPUs for: one rank of many whose collectives are copies on its own device, so that it computes what that rank would and
exchanges nothing; it shows attention's kernels, merges and copies, not the wire.
As torchtitan of December 2024 (pytorch/torchtitan 9dec370: models/llama, parallelisms/parallelize_llama.py): rotation by complex
numbers, repeat_kv before attention, activation checkpointing around a block, torch.compile of each block, FSDP of each block in bf16
with gradients reduced in fp32. Left out: embedding, output layer, optimizer, fp8.
"""
import argparse
import collections
import contextlib
import dataclasses
import datetime
import gc
import json
import os
import re
import sys
import time
import traceback

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.algorithms._checkpoint.checkpoint_wrapper import checkpoint_wrapper
from torch.distributed.device_mesh import init_device_mesh
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

from results import write

HIDDEN, INNER, HEADS, KV_HEADS, HEAD_DIM = 4096, 14336, 32, 8, 128
DEVICE = "cuda"


@dataclasses.dataclass(frozen=True)
class Case:
    ranks: int  # that share a sequence
    tokens: int  # of a rank
    compiled: bool
    recompute: str = "full"
    balance: bool = True
    rotate: str = "allgather"
    batch: int = 1
    layers: int = 3
    rank: int = -1  # of `ranks`, alone
    flash: bool = True  # FlashAttention-2; else the kernel of PyTorch's choice, where no sequence is shared

    def __str__(self):
        return " ".join([f"cp {self.ranks}" if self.rank < 0 else f"rank {self.rank} of cp {self.ranks}", f"{self.batch} x {self.tokens}",
                         "compiled" if self.compiled else "eager", f"recompute {self.recompute}",
                         "balanced" if self.balance else "contiguous", self.rotate, "flash" if self.flash else "chosen"])


def cases_of_two():
    """The most telling first."""
    long = [Case(ranks, 32768, compiled) for compiled in (True, False) for ranks in (1, 2)]
    # Compiled and contiguous hangs: ranks that skip pairs gather K and V of their backward pass after gradients have moved, others before.
    others = [Case(2, 32768, True, rotate="alltoall"), Case(1, 32768, True, flash=False), Case(2, 32768, False, rotate="alltoall"),
              Case(2, 32768, False, balance=False), Case(1, 32768, False, flash=False)]
    short = [Case(ranks, tokens, True) for tokens in (8192, 16384) for ranks in (1, 2)]
    short += [Case(ranks, 8192, False) for ranks in (1, 2)] + [Case(1, tokens, True, flash=False) for tokens in (8192, 16384)]
    kept = [Case(1, 8192, compiled, "selective", batch=2) for compiled in (True, False)]
    return long + others + short + kept


def cases_alone(rank_of):
    """`rank_of`: of so many ranks, which."""
    make = lambda ranks, compiled, **other: Case(ranks, 32768, compiled, layers=2, rank=rank_of(ranks), **other)
    return [make(4, True), make(8, True), make(2, True), make(4, False), make(8, False), make(2, False), make(4, True, balance=False),
            make(8, True, balance=False)]


def rotated(x, turns):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * turns.view(1, x.shape[1], 1, -1)).flatten(3).type_as(x)


def repeated(x, times):
    batch, tokens, heads, dim = x.shape
    return x.unsqueeze(3).expand(batch, tokens, heads, times, dim).reshape(batch, tokens, heads * times, dim)


class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(HIDDEN))

    def forward(self, x):
        wide = x.float()
        return (wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-5)).type_as(x) * self.weight


class Attention(nn.Module):
    def __init__(self):
        super().__init__()
        self.wq, self.wo = (nn.Linear(HIDDEN, HIDDEN, bias=False) for _ in range(2))
        self.wk, self.wv = (nn.Linear(HIDDEN, KV_HEADS * HEAD_DIM, bias=False) for _ in range(2))

    def forward(self, x, turns):
        q, k, v = (w(x).view(*x.shape[:2], -1, HEAD_DIM) for w in (self.wq, self.wk, self.wv))
        q, k = rotated(q, turns), rotated(k, turns)
        k, v = (repeated(y, HEADS // KV_HEADS) for y in (k, v))
        q, k, v = (y.transpose(1, 2) for y in (q, k, v))
        out = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.wo(out.transpose(1, 2).contiguous().view(x.shape))


class FeedForward(nn.Module):
    def __init__(self):
        super().__init__()
        self.w1, self.w3 = (nn.Linear(HIDDEN, INNER, bias=False) for _ in range(2))
        self.w2 = nn.Linear(INNER, HIDDEN, bias=False)

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.attention, self.feed_forward = Attention(), FeedForward()
        self.attention_norm, self.ffn_norm = Norm(), Norm()

    def forward(self, x, turns):
        h = x + self.attention(self.attention_norm(x), turns)
        return h + self.feed_forward(self.ffn_norm(h))


class Layers(nn.Module):
    """`mark` is called before each layer, behind the last, and as each layer's backward pass has ended."""

    def __init__(self, layers):
        super().__init__()
        self.layers = nn.ModuleDict({str(i): Block() for i in range(layers)})
        self.mark = None

    def forward(self, x, turns):
        for layer in self.layers.values():
            self.mark()
            if x.requires_grad:
                x.register_hook(lambda _: self.mark())
            x = layer(x, turns)
        self.mark()
        return x


def selective():
    """Outputs of attention and of every second matrix product are kept."""
    kept = {torch.ops.aten.mm.default, torch.ops.aten._scaled_dot_product_flash_attention.default}

    def contexts():
        products = collections.Counter()

        def policy(context, operation, *_, **__):
            if operation == torch.ops.aten.mm.default:
                products[context.is_recompute] += 1
                if products[context.is_recompute] % 2 == 0:
                    return CheckpointPolicy.PREFER_RECOMPUTE
            return CheckpointPolicy.MUST_SAVE if operation in kept else CheckpointPolicy.PREFER_RECOMPUTE

        return create_selective_checkpoint_contexts(policy)

    return contexts


def build(case, mesh):
    with torch.device(DEVICE):
        model = Layers(case.layers)
    for parameter in model.parameters():
        if parameter.dim() > 1:
            nn.init.trunc_normal_(parameter, std=0.02)
    for name, block in list(model.layers.named_children()):
        if case.recompute == "full":
            block = checkpoint_wrapper(block, preserve_rng_state=False)
        elif case.recompute == "selective":
            block = checkpoint_wrapper(block, context_fn=selective(), preserve_rng_state=False)
        if case.compiled:
            block = torch.compile(block, fullgraph=True)
        model.layers.register_module(name, block)
    if case.rank >= 0:
        return model.to(torch.bfloat16)
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
    how = {"mesh": mesh, "mp_policy": MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)}
    for i, block in enumerate(model.layers.values()):
        fully_shard(block, **how, reshard_after_forward=i + 1 < case.layers)
    fully_shard(model, **how)
    return model


def context_parallelism():
    try:
        from torch.distributed.tensor.experimental._context_parallel import _attention as module
    except ImportError:  # before PyTorch 2.10
        from torch.distributed.tensor.experimental import _attention as module
    return module


@contextlib.contextmanager
def shared_sequence(case, mesh):
    """Attention over all ranks of `mesh`, as torchtitan's train_context has it."""
    kernels = sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION]) if case.flash else contextlib.nullcontext()
    if case.ranks == 1:
        with kernels:
            yield
        return
    module = context_parallelism()
    module._cp_options.enable_load_balance = case.balance
    module.set_rotate_method(case.rotate)
    positions = torch.arange(case.ranks * case.tokens, device=DEVICE)
    with kernels, module.context_parallel(mesh, buffers=[positions], buffer_seq_dims=[0], no_restore_buffers={positions}):
        yield


class Step:
    def __init__(self, case, mesh):
        self.model = build(case, mesh)
        self.x, self.gradient = (torch.randn(case.batch, case.tokens, HIDDEN, device=DEVICE, dtype=torch.bfloat16) for _ in range(2))
        angles = torch.outer(torch.arange(case.tokens, device=DEVICE).float(),
                             500000.0 ** (-torch.arange(0, HEAD_DIM, 2, device=DEVICE).float() / HEAD_DIM))
        self.turns = torch.polar(torch.ones_like(angles), angles)

    def __call__(self):
        """Events: before each layer, behind the last, as each layer's backward pass ends from the last on, and at the end of all."""
        events = []

        def mark():
            events.append(torch.cuda.Event(enable_timing=True))
            events[-1].record()

        self.model.mark = mark
        self.model(self.x.detach().requires_grad_(), self.turns).backward(self.gradient)
        mark()
        for parameter in self.model.parameters():
            parameter.grad = None
        return events


def seconds_of(events, layers):
    """A row a step: forward of each layer, backward of each, from the last on, and the whole step."""
    times = [1e-3 * a.elapsed_time(b) for a, b in zip(events, events[1:])]
    return {"forward": times[:layers], "backward": times[layers:2 * layers], "step": 1e-3 * events[0].elapsed_time(events[-1])}


def kernels_of(step):
    """Of one step: names and [name, stream, start, duration] in ns."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
        step()
        torch.cuda.synchronize()
    names, rows = {}, []
    for event in profile.profiler.kineto_results.events():
        if event.device_type() != torch.autograd.DeviceType.CUDA or event.duration_ns() == 0:
            continue
        rows.append([names.setdefault(event.name(), len(names)), event.device_resource_id(), event.start_ns(), event.duration_ns()])
    rows.sort(key=lambda row: row[2])
    first = rows[0][2] if rows else 0
    return {"names": list(names), "kernels": [[name, stream, start - first, time] for name, stream, start, time in rows]}


def measure(case, mesh, repeats):
    torch._dynamo.reset()
    started = time.perf_counter()
    with shared_sequence(case, mesh):
        step = Step(case, mesh)
        step()
        torch.cuda.synchronize()
        compiling = time.perf_counter() - started
        step()
        samples = []
        for _ in range(repeats):
            torch.cuda.synchronize()
            if case.rank < 0:
                dist.barrier()
            samples.append(step())
        torch.cuda.synchronize()
        samples = [seconds_of(events, case.layers) for events in samples]
        result = {"case": dataclasses.asdict(case), "first_step_s": compiling, "samples": samples,
                  "memory": torch.cuda.max_memory_allocated()}
        try:
            result |= kernels_of(step)
        except Exception as error:  # the times above are worth keeping
            result["profile_error"] = repr(error)
    return result


def told(case, seconds):
    middle = sorted(seconds)[len(seconds) // 2]
    print(f"{case}: {1e3 * middle:.1f} ms a step of {case.layers} layers", flush=True)


def environment():
    return {"card": torch.cuda.get_device_name(), "cuda": torch.version.cuda, "torch": torch.__version__,
            "nccl": ".".join(map(str, torch.cuda.nccl.version())), "date": datetime.date.today().isoformat()}


def write_cases(path, results):
    write(path, json.dumps({"environment": environment(), "cases": results}, separators=(",", ":")))


def tidy():
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()


def run(cases, path, mesh_of, asked):
    results = []
    for case in cases:
        if time.perf_counter() - asked.started > asked.seconds:
            print(f"{case}: no time left", flush=True)
            continue
        try:
            result = measure(case, mesh_of(case), asked.repeats)
            told(case, [sample["step"] for sample in result["samples"]])
        except Exception as error:
            traceback.print_exc(limit=-6)
            result = {"case": dataclasses.asdict(case), "error": repr(error)[:2000]}
            print(f"{case}: failed", flush=True)
        results.append(result)
        tidy()
        write_cases(path, results)


def copy_instead_of_exchange():
    """By operations that the compiler does not look into, as it does not into collectives."""
    import torch.distributed._functional_collectives as collectives

    @torch.library.custom_op("titan::gathered", mutates_args=())
    def gathered(x: torch.Tensor, ranks: int) -> torch.Tensor:
        return torch.cat([x] * ranks)

    @torch.library.custom_op("titan::received", mutates_args=())
    def received(x: torch.Tensor) -> torch.Tensor:
        return x.clone()

    gathered.register_fake(lambda x, ranks: x.new_empty(ranks * x.shape[0]))
    received.register_fake(torch.empty_like)
    collectives.all_gather_tensor = lambda x, gather_dim, group, tag="": gathered(x, dist.get_world_size())
    collectives.permute_tensor = lambda x, destinations, group, tag="": received(x)


def run_alone(asked):
    """Ranks of a process group that has no others."""
    from torch.testing._internal.distributed.fake_pg import FakeStore
    copy_instead_of_exchange()

    def mesh_of(case):
        if dist.is_initialized():
            dist.destroy_process_group()
        dist.init_process_group("fake", store=FakeStore(), rank=case.rank, world_size=case.ranks)
        return init_device_mesh(DEVICE, (case.ranks,), mesh_dim_names=("cp",))

    rank_of = {"first": lambda ranks: 0, "last": lambda ranks: ranks - 1}[asked.alone]
    chosen = [case for case in cases_alone(rank_of) if re.search(asked.cases, str(case))]
    run(chosen, f"{asked.results}/titan_{asked.alone}{asked.suffix}.json", mesh_of, asked)


def run_together(asked):
    local = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local)
    dist.init_process_group("nccl", device_id=torch.device(DEVICE, local), timeout=datetime.timedelta(seconds=90))
    mesh = init_device_mesh(DEVICE, (dist.get_world_size(),), mesh_dim_names=("cp",))
    chosen = [case for case in cases_of_two() if re.search(asked.cases, str(case))]
    run(chosen, f"{asked.results}/titan_{dist.get_rank()}{asked.suffix}.json", lambda case: mesh, asked)
    dist.destroy_process_group()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("results")
    parser.add_argument("--alone", choices=("first", "last"), help="the first or the last of the ranks, without others")
    parser.add_argument("--cases", default="", help="a regular expression")
    parser.add_argument("--suffix", default="", help="of the file's name")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no case later")
    asked = parser.parse_args()
    asked.started = time.perf_counter()
    os.makedirs(asked.results, exist_ok=True)
    torch.manual_seed(1)
    run_alone(asked) if asked.alone else run_together(asked)


if __name__ == "__main__":
    sys.exit(main())
