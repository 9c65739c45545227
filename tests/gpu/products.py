"""Times matrix products as training steps have them, and a Llama layer's forward and backward pass, with PyTorch on one GPU.

    python3 tests/gpu/products.py OUT.json

Products: cuBLASLt in bf16 (torch.mm) and fp8 (torch._scaled_mm), random data, each repeated for at least 60 ms after as long a
warm-up, so that clocks have settled; the median of three such runs. Shapes are drawn from a fixed seed: half of them to fit by,
half held out. Layers: RMSNorm, rotary, grouped attention, SwiGLU, eager and compiled.
"""

import json
import random
import statistics
import sys
import time

import torch
import torch.nn.functional as F


def timed(run, least=0.06):
    run()
    torch.cuda.synchronize()
    start = time.perf_counter()
    run()
    torch.cuda.synchronize()
    once = max(time.perf_counter() - start, 1e-5)
    repeats = max(5, int(least / once))
    results = []
    for _ in range(3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        for _ in range(repeats if not results else 2):
            run()
        begin.record()
        for _ in range(repeats):
            run()
        end.record()
        torch.cuda.synchronize()
        results.append(begin.elapsed_time(end) / repeats / 1e3)
    return statistics.median(results)


def shapes(count, seed):
    rng = random.Random(seed)
    tokens = [1024, 2048, 4096, 8192, 16384, 32768]
    widths = [512, 1024, 1536, 2048, 2560, 3584, 4096, 5120, 6144, 7168, 8192, 11008, 12288, 14336, 16384, 28672]
    seen = set()
    while len(seen) < count:
        kind = rng.choice(("forward", "weights"))
        t, a, b = rng.choice(tokens), rng.choice(widths), rng.choice(widths)
        shape = (t, a, b) if kind == "forward" else (a, b, t)
        if sum(x * y for x, y in ((shape[0], shape[1]), (shape[1], shape[2]), (shape[0], shape[2]))) < 2e9:
            seen.add(shape)
    return sorted(seen, key=lambda s: rng.random())


def product(m, n, k, kind):
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16)
    if kind == "bf16":
        out = torch.empty(m, n, device="cuda", dtype=torch.bfloat16)
        return timed(lambda: torch.mm(a, b.t(), out=out))
    one = torch.ones((), device="cuda")
    a, b = a.to(torch.float8_e4m3fn), b.to(torch.float8_e4m3fn)
    return timed(lambda: torch._scaled_mm(a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True))


class Layer(torch.nn.Module):
    def __init__(self, hidden, heads, kv, inner):
        super().__init__()
        self.heads, self.kv, self.dim = heads, kv, hidden // heads
        linear = lambda i, o: torch.nn.Linear(i, o, bias=False)
        self.norm1, self.norm2 = torch.nn.RMSNorm(hidden), torch.nn.RMSNorm(hidden)
        self.q, self.k, self.v = linear(hidden, hidden), linear(hidden, kv * self.dim), linear(hidden, kv * self.dim)
        self.o, self.up, self.gate, self.down = linear(hidden, hidden), linear(hidden, inner), linear(hidden, inner), linear(inner, hidden)

    def forward(self, x, angles, attends=True):
        batch, tokens, hidden = x.shape
        y = self.norm1(x)
        q, k, v = (f(y).view(batch, tokens, -1, self.dim) for f in (self.q, self.k, self.v))
        q, k = rotated(q, angles), rotated(k, angles)
        if attends:
            a = F.scaled_dot_product_attention(q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2), is_causal=True,
                                               enable_gqa=True).transpose(1, 2)
        else:
            a = q + k.repeat_interleave(self.heads // self.kv, 2) + v.repeat_interleave(self.heads // self.kv, 2)
        x = x + self.o(a.reshape(batch, tokens, hidden))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


def rotated(x, angles):
    pairs = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    return torch.view_as_real(pairs * angles[None, :, None, :]).flatten(3).type_as(x)


def layer(tokens, hidden, heads, kv, inner, compiled):
    model = Layer(hidden, heads, kv, inner).cuda().bfloat16()
    angles = torch.polar(torch.ones(tokens, hidden // heads // 2), torch.rand(tokens, hidden // heads // 2)).cuda()
    run = torch.compile(model) if compiled else model
    x = torch.randn(1, tokens, hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    grad = torch.randn_like(x)
    with torch.no_grad():
        forward = timed(lambda: run(x, angles), 0.3)

    def both():
        model.zero_grad(set_to_none=True)
        x.grad = None
        run(x, angles).backward(grad)

    return {"forward_s": forward, "both_s": timed(both, 0.5)}


def main(out):
    result = {"device": torch.cuda.get_device_name(), "torch": torch.__version__, "products": [], "layers": []}
    for part, seed in (("fit", 1), ("held out", 2)):
        for m, n, k in shapes(110, seed):
            for kind in ("bf16", "fp8"):
                result["products"].append({"part": part, "type": kind, "rows": m, "cols": n, "inner": k, "time_s": product(m, n, k, kind)})
    for name, sizes in (("llama3-8b", (4096, 32, 8, 14336)), ("llama2-7b", (4096, 32, 32, 11008)), ("qwen2.5-32b", (5120, 40, 8, 27648))):
        for tokens in (4096, 16384):
            for compiled in (False, True):
                try:
                    times = layer(tokens, *sizes, compiled)
                except Exception as error:  # a compiler that is not there
                    times = {"error": str(error)[:200]}
                result["layers"].append({"model": name, "tokens": tokens, "compiled": compiled, **times})
    with open(out, "w") as f:
        json.dump(result, f, indent=1)


main(sys.argv[1])
