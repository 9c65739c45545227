#!/usr/bin/env python3
"""Draws what a blind check runs on two GPUs: shapes and sizes that nothing in reproduce/measured has.

    tests/gpu/draw.py SEED FOLDER [products]

Writes FOLDER/points_TRANSPORT.json (measurements without samples, for `attnsim measure --points`) and
FOLDER/cases_TRANSPORT.txt (for `attnsim validate --cases`) for nvlink, host_memory and sockets, FOLDER/layers.json (for
tests/gpu/pytorch.py --layers), and FOLDER/points_one.json: 200 matrix products, 60 attention kernels and, in
FOLDER/points_few.json, 32 of few rows for one GPU. `products`: FOLDER/points_products.json alone, 200 other products.
"""
import json
import math
import random
import sys
from pathlib import Path

MEASURED = Path(__file__).resolve().parents[2] / "reproduce/measured"
DRAWN = {20261130: ("h200-blind",), 20261201: ("h200-fresh", "h200-decode-again"), 20261202: ("h200-blind-again",),
         20261203: ("h200-products", "h200-blind-third"), 20261204: ("h200-blind-fourth", "h200-blind-fourth-again"),
         20261205: ("h200-blind-fifth",)}  # by seed, what was drawn by it and measured
STRATEGIES = ("ring --grid 2x1", "attention2d --grid 1x2", "attention2d --grid 2x1", "attention2d-overlap --grid 1x2",
              "attention2d-overlap --grid 2x1", "mesh --grid 1x2", "allgather --grid 2x1")
OPERATIONS = ("send", "exchange", "all_gather", "reduce_scatter", "all_to_all", "all_reduce")
HEADS = ((6, 6), (12, 12), (14, 14), (22, 22), (38, 38), (12, 4), (24, 4), (28, 14), (42, 6), (56, 8), (10, 2), (60, 12))
TOKENS = (1024, 1280, 2048, 3072, 4096, 5120, 6144, 8192, 12288, 16384, 24576, 32768)
WIDTHS = (512, 640, 1024, 1280, 1536, 2048, 2560, 3072, 3584, 4096, 5120, 6144, 7168, 8192, 9216, 11008, 12288, 13824, 14336, 16384,
          20480, 28672)
USES = ("forward", "input-gradient", "weight-gradient", "gradient-sum")
ORDERS = ("communication-first", "compute-first")
LARGEST = {"nvlink": 200 << 20, "host_memory": 120 << 20, "sockets": 24 << 20}


class draw:
    def __init__(self, seed):
        self.random = random.Random(seed)
        self.used = {self.key(p) for f in MEASURED.glob("*/*.json") if f.parent.name not in DRAWN.get(seed, ())
                     for p in self.points_of(f)}

    @staticmethod
    def points_of(file):
        content = json.loads(file.read_text())
        return content.get("points", []) if isinstance(content, dict) else []

    @staticmethod
    def key(point):
        return json.dumps({k: v for k, v in point.items() if k != "samples"}, sort_keys=True)

    def size(self, least, most, multiple):
        """Evenly over the logarithms."""
        exact = math.exp(self.random.uniform(math.log(least), math.log(most)))
        return max(multiple, round(exact / multiple) * multiple)

    def unused(self, make, count):
        points = []
        while len(points) < count:
            point = make()
            if point is None or self.key(point) in self.used:
                continue
            self.used.add(self.key(point))
            points.append(point | {"samples": {}})
        return points

    def kernel(self, name):
        heads, kv_heads = self.random.choice(HEADS)
        mask = self.random.choice(("full", "causal"))
        rows = self.size(700, 16000, 64)
        cols = rows if mask == "causal" or self.random.random() < 0.4 else self.size(700, 16000, 64)
        if rows * cols * heads > 4e9:
            return None
        return {"kind": "kernel", "kernel": name, "pass": self.random.choice(("forward", "backward")), "mask": mask, "batch": 1,
                "heads": heads, "kv_heads": kv_heads, "head_dim": 128 if self.random.random() < 0.8 else 64, "rows": rows,
                "cols": cols}

    def kernels_of_each_kind(self, count):
        """Of each pass and mask, with grouped K/V heads and without, equally many."""
        kinds = [(p, m, g) for p in ("forward", "backward") for m in ("full", "causal") for g in (False, True)]
        return [p for i in range(count) for p in self.unused(lambda: self.kernel_of(*kinds[i % len(kinds)]), 1)]

    def kernel_of(self, step, mask, grouped):
        point = self.kernel("attnsim-cuda")
        of_kind = point and (point["pass"], point["mask"], point["heads"] > point["kv_heads"]) == (step, mask, grouped)
        return point if of_kind else None

    def product(self, use):
        """Of a layer's product of so many tokens, inputs and outputs, as calibrate/measurement_plan.cpp has them."""
        tokens, inputs, outputs = self.random.choice(TOKENS), self.random.choice(WIDTHS), self.random.choice(WIDTHS)
        rows, cols, inner = {"forward": (tokens, outputs, inputs), "input-gradient": (tokens, inputs, outputs)}.get(
            use, (outputs, inputs, tokens))
        if rows * cols > 1 << 29 or max(rows * inner, inner * cols) > 1 << 30 or 2 * rows * cols * inner >= 5e13:
            return None
        return {"kind": "matmul", "kernel": "attnsim-cuda", "use": use, "rows": rows, "cols": cols, "inner": inner}

    def few_rows(self):
        """One token or a few of each sequence against its cache."""
        heads, kv_heads = self.random.choice(((24, 4), (56, 8), (96, 16), (40, 8), (28, 4), (12, 1), (64, 8)))
        batch, rows = self.random.choice((1, 1, 2, 5, 12, 20)), self.random.choice((1, 1, 1, 2, 3))
        cols = self.size(2000, 600000, 16)
        if batch * cols * kv_heads > 12e6:
            return None
        return {"kind": "kernel", "kernel": "attnsim-cuda", "pass": "forward", "mask": "full" if rows == 1 else "causal", "batch": batch,
                "heads": heads, "kv_heads": kv_heads, "head_dim": 128, "rows": rows, "cols": cols}

    def products(self, count):
        return [p for i in range(count) for p in self.unused(lambda: self.product(USES[i % len(USES)]), 1)]

    def transfer(self, transport):
        return {"kind": "transfer", "operation": self.random.choice(OPERATIONS), "members": 2, "stride": 1, "channels": 0,
                "bytes": self.size(64 << 10, LARGEST[transport], 64), "also": 0, "at_once": 1}

    def problems(self, count, least, most, kernels):
        """Of each pass and mask equally many."""
        for i in range(count):
            heads, kv_heads = self.random.choice(HEADS)
            yield (f"--heads {heads} --kv-heads {kv_heads} --mask {('full', 'causal')[i % 2]} "
                   f"--pass {('forward', 'backward')[i // 2 % 2]} --seq {self.size(least, most, 256)} "
                   f"--kernel {kernels[i % len(kernels)]} --launch-order {self.random.choice(ORDERS)}")

    def cases(self, transport):
        least, most = {"nvlink": (3000, 40000), "host_memory": (2500, 16000), "sockets": (1500, 9000)}[transport]
        count = {"nvlink": 12, "host_memory": 8, "sockets": 8}[transport]
        kernels = ("cuda", "cuda", "cuda", "cudnn", "cuda")
        lines = [f"{p} --schedule {s}" for p in self.problems(count, least, most, kernels) for s in STRATEGIES]
        if transport == "nvlink":
            lines += [f"{p} --schedule {s} --cuda-graph" for p in self.problems(6, least, most, ("cuda",)) for s in STRATEGIES]
            for _ in range(5):
                heads = self.random.choice(("24 --kv-heads 4", "56 --kv-heads 8", "96 --kv-heads 16"))
                batch, most_cached = self.random.choice(((1, 700000), (3, 500000), (12, 150000)))
                decode = (f"--heads {heads} --mask causal --pass forward --batch {batch} --seq 1 "
                          f"--prefix {self.size(50000, most_cached, 2048)} --kernel cuda")
                lines += [f"{decode} --schedule {s}{graph}" for graph in ("", " --cuda-graph") for s in ("helix", "dcp", "dcp-a2a")]
        return lines

    def layers(self, count):
        """Tokens and heads of a rank."""
        return [(self.size(600, 9000, 64), self.random.choice((6, 10, 12, 16, 24, 40))) for _ in range(count)]


def write_points(file, points):
    file.write_text(json.dumps({"schema": "attnsim.measurements.2", "environment": {}, "points": points}))


def main():
    seed, folder = int(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    d = draw(seed)
    if sys.argv[3:] == ["products"]:
        return write_points(folder / "points_products.json", d.products(200))
    for transport in LARGEST:
        points = d.unused(lambda: d.transfer(transport), 48 if transport == "nvlink" else 30)
        if transport == "nvlink":
            points += d.unused(lambda: d.kernel("attnsim-cuda"), 60) + d.unused(lambda: d.kernel("cudnn-9.19"), 24)
        write_points(folder / f"points_{transport}.json", points)
        (folder / f"cases_{transport}.txt").write_text("\n".join(d.cases(transport)) + "\n")
    (folder / "layers.json").write_text(json.dumps(d.layers(16)))
    write_points(folder / "points_one.json", d.products(200) + d.kernels_of_each_kind(60))
    write_points(folder / "points_few.json", d.unused(d.few_rows, 32))


if __name__ == "__main__":
    main()
