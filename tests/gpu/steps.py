"""Times whole training steps of a Llama with PyTorch on one GPU, and notes the most memory they hold.

    python3 tests/gpu/steps.py OUT.json

FSDP2 on one rank (fp32 parameters, bf16 copies, gradients in fp32), AdamW, cross-entropy over the vocabulary; eager, with full
recomputation a layer or none. Layers are those of tests/gpu/products.py's models, fewer of them. Medians of five steps after three.
"""

import json
import os
import statistics
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint


class Layer(torch.nn.Module):
    def __init__(self, hidden, heads, kv, inner):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, hidden // heads
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.norm1, self.norm2 = torch.nn.RMSNorm(hidden), torch.nn.RMSNorm(hidden)
        self.q, self.k, self.v = linear(hidden, hidden), linear(hidden, kv * self.dim), linear(hidden, kv * self.dim)
        self.o, self.up, self.gate, self.down = linear(hidden, hidden), linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x, angles):
        batch, tokens, hidden = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(batch, tokens, -1, self.dim) for f in (self.q, self.k, self.v))
        q, k = rotated(q, angles), rotated(k, angles)
        a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                           enable_gqa=True).transpose(1, 2)
        x = x + self.o(a.reshape(batch, tokens, hidden))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotated(x, angles):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles[None, :, None, :]).flatten(3).type_as(x)


class Llama(torch.nn.Module):
    def __init__(self, layers, hidden, heads, kv, inner, vocabulary, recompute):
        super().__init__()
        self.recompute = recompute
        self.embedding = torch.nn.Embedding(vocabulary, hidden)
        self.layers = torch.nn.ModuleList([Layer(hidden, heads, kv, inner) for _ in range(layers)])
        self.norm, self.output = torch.nn.RMSNorm(hidden), torch.nn.Linear(hidden, vocabulary, bias=False)

    def forward(self, tokens, angles):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = checkpoint(layer, x, angles, use_reentrant=False) if self.recompute else layer(x, angles)
        return self.output(self.norm(x))


def measured(seq, batch, layers, recompute, sizes):
    hidden, heads, kv, inner, vocabulary = sizes
    torch.manual_seed(1)
    with torch.device("cuda"):
        model = Llama(layers, hidden, heads, kv, inner, vocabulary, recompute)
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    for layer in model.layers:
        fully_shard(layer, mp_policy=policy)
    fully_shard(model, mp_policy=policy)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5, fused=True)
    angles = torch.polar(torch.ones(seq, hidden // heads // 2), torch.rand(seq, hidden // heads // 2)).cuda()
    tokens = torch.randint(vocabulary, (batch, seq), device="cuda")

    def step():
        logits = model(tokens, angles)
        F.cross_entropy(logits.flatten(0, 1).float(), tokens.flatten()).backward()
        del logits
        optimizer.step()
        optimizer.zero_grad()

    times = []
    for i in range(8):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        begin.record()
        step()
        end.record()
        torch.cuda.synchronize()
        if i == 2:
            torch.cuda.reset_peak_memory_stats()
        times.append(begin.elapsed_time(end) / 1e3)
    return {"step_s": statistics.median(times[3:]), "reserved_bytes": torch.cuda.max_memory_reserved(),
            "allocated_bytes": torch.cuda.max_memory_allocated()}


def main(out):
    os.environ.update(MASTER_ADDR="localhost", MASTER_PORT="29511", RANK="0", WORLD_SIZE="1")
    dist.init_process_group("nccl")
    llama3, llama2 = (4096, 32, 8, 14336, 128256), (4096, 32, 32, 11008, 32000)
    cases = [("llama3-8b", llama3, 8, 4096, 1, False), ("llama3-8b", llama3, 8, 8192, 1, False),
             ("llama3-8b", llama3, 8, 8192, 2, True), ("llama3-8b", llama3, 8, 16384, 1, True),
             ("llama2-7b", llama2, 12, 4096, 2, False), ("llama2-7b", llama2, 12, 16384, 1, False),
             ("llama2-7b", llama2, 12, 32768, 1, True), ("llama2-7b", llama2, 12, 4096, 8, True)]
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "steps": []}
    for model, sizes, layers, seq, batch, recompute in cases:
        case = {"model": model, "layers": layers, "seq": seq, "micro_batch": batch, "recompute": "full" if recompute else "none"}
        try:
            case |= measured(seq, batch, layers, recompute, sizes)
        except torch.cuda.OutOfMemoryError as error:
            case["error"] = str(error)[:200]
        result["steps"].append(case)
        torch.cuda.empty_cache()
        with open(out, "w") as f:
            json.dump(result, f, indent=1)
    dist.destroy_process_group()


main(sys.argv[1])
