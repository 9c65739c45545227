#!/usr/bin/env python3
"""What PyTorch's context parallelism calls, without a GPU: attention kernels and collectives of every rank, eager and compiled.

    tests/gpu/ring_trace.py RANKS...

Runs the block of titan.py, small and on the CPU, as each of so many ranks by itself; attention's kernels are plain operations under
the names of FlashAttention's. A line a rank: (rows, columns, causal) of each kernel and how often it is called in the second of two
steps, each of which enters context_parallel anew, and the collectives of the compiled passes in their order: ranks that differ
there wait for each other for ever. Needs PyTorch alone, such as Debian 13's, 2.6.0.
"""
import collections
import math
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from functorch.compile import make_boxed_func
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch.distributed.device_mesh import init_device_mesh
from torch.testing._internal.distributed.fake_pg import FakeStore

import titan

TOKENS = 64
SHORT = {"all_gather_into_tensor": "gather", "all_to_all_single": "move"}
library = torch.library.Library("aten", "IMPL")
kernels, graphs = collections.Counter(), []


def probabilities(q, k, causal, scale, lse=None):
    scores = q.float() @ k.float().transpose(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        scores = scores.masked_fill(torch.ones(scores.shape[-2:], dtype=torch.bool).tril().logical_not(), -math.inf)
    lse = torch.logsumexp(scores, -1) if lse is None else lse
    return torch.exp(scores - lse.unsqueeze(-1)), lse


def as_kernels(x, dtype):
    """In their layout: heads of a token side by side."""
    return x.to(dtype).transpose(1, 2).contiguous().transpose(1, 2)


def forward(q, k, v, dropout_p=0.0, is_causal=False, return_debug_mask=False, *, scale=None):
    kernels["forward", q.shape[2], k.shape[2], is_causal] += 1
    p, lse = probabilities(q, k, is_causal, scale)
    state = torch.zeros((), dtype=torch.int64)
    return (as_kernels(p @ v.float(), q.dtype), lse, None, None, q.shape[2], k.shape[2], state, state.clone(),
            torch.empty(0, dtype=q.dtype))


def backward(grad, q, k, v, out, lse, *of_batch_and_dropout, scale=None):
    causal = of_batch_and_dropout[5]
    kernels["backward", q.shape[2], k.shape[2], causal] += 1
    p, _ = probabilities(q, k, causal, scale, lse)
    grad = grad.float()
    d_s = p * (grad @ v.float().transpose(-1, -2) - (grad * out.float()).sum(-1, keepdim=True)) * (scale or 1 / math.sqrt(q.shape[-1]))
    return tuple(as_kernels(x, q.dtype) for x in (d_s @ k.float(), d_s.transpose(-1, -2) @ q.float(), p.transpose(-1, -2) @ grad))


def scaled_dot_product_attention(q, k, v, is_causal=False):
    return torch.ops.aten._scaled_dot_product_flash_attention(q, k, v, 0.0, is_causal)[0]


def collectives_of(graph):
    names = [str(node.target).split(".")[-2] for node in graph.graph.nodes if "c10d" in str(node.target)]
    return " ".join(SHORT[name] for name in names if name in SHORT)


class NoEvent:
    def __init__(self, enable_timing):
        pass

    def record(self):
        pass


def trace(case):
    dist.init_process_group("fake", store=FakeStore(), rank=case.rank, world_size=case.ranks)
    mesh = init_device_mesh("cpu", (case.ranks,), mesh_dim_names=("cp",))
    torch._dynamo.reset()
    graphs.clear()
    step = titan.Step(case, mesh)
    for _ in range(2):
        kernels.clear()
        with titan.shared_sequence(case, mesh):
            step()
    dist.destroy_process_group()
    called = ", ".join(f"{count} {name} {rows}x{cols}{' causal' if causal else ''}" for (name, rows, cols, causal), count in sorted(kernels.items()))
    print(f"{case}: {called}" + (f"; {len(graphs)} graphs: " + " | ".join(map(collectives_of, graphs)) if case.compiled else ""), flush=True)


def main():
    library.impl("_scaled_dot_product_flash_attention", forward, "CPU")
    library.impl("_scaled_dot_product_flash_attention_backward", backward, "CPU")
    F.scaled_dot_product_attention = scaled_dot_product_attention
    torch.cuda.Event = NoEvent
    compile_module = torch.compile

    def kept(graph, _):
        graphs.append(graph)
        return make_boxed_func(graph.forward)

    backend = aot_autograd(fw_compiler=kept, partition_fn=min_cut_rematerialization_partition)
    torch.compile = lambda module, fullgraph: compile_module(module, fullgraph=fullgraph, backend=backend)
    titan.DEVICE = "cpu"
    titan.HIDDEN, titan.INNER, titan.HEADS, titan.KV_HEADS, titan.HEAD_DIM = 64, 128, 4, 2, 16
    for ranks in map(int, sys.argv[1:]):
        for compiled in (False, True):
            for balance in (True, False):
                for rotate in ("allgather", "alltoall"):
                    for rank in range(ranks):
                        trace(titan.Case(ranks, TOKENS, compiled, balance=balance, rotate=rotate, layers=1, rank=rank))


if __name__ == "__main__":
    sys.exit(main())
