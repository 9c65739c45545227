#!/usr/bin/env python3
"""Makes reproduce/published/torchtitan-layers.csv of reproduce/measured/h200-titan (tests/gpu/titan.py): a layer's time, and where it goes.

Time is a step's over its layers, the median of a case's steps, of the slower rank. Parts are of the profiled step, over its layers, of
the same rank: products, attention with all that is not in the same layer where no rank shares its sequence (merges, copies, waiting
for exchanges), and elementwise kernels of that layer.
"""

import collections
import json
import statistics

from made import ROOT

MEASURED = ROOT / "reproduce/measured/h200-titan"
TABLE = ROOT / "reproduce/published/torchtitan-layers.csv"
RAN_ON = ("two GPUs", "one GPU", "one rank")
HEAD = """\
# Layers of Llama 3.1 8B as torchtitan trains them, by PyTorch 2.11 on H200, 30 November 2026: made by reproduce/torchtitan_layers.py of
# reproduce/measured/h200-titan (tests/gpu/titan.py), ms a layer, forward, recomputed and backward, bf16. "one GPU": 1 December.
# "one rank": a rank without the others, whose collectives are copies. attention_ms: with merges, copies and waits.
"""
COLUMNS = ["series", "cluster", "settings", "ranks", "tokens_a_rank", "compiled", "kernel", "schedule", "tokens", "time_ms", "products_ms",
           "attention_ms", "elementwise_ms"]


def kind_of(name):
    name = name.lower()
    return "attention" if "flash" in name or "sdpa" in name else "products" if "nvjet" in name else "elementwise"


def parts_of(result):
    """ms a layer by kind of the stream that computes, and idle."""
    names, kernels = result["names"], result["kernels"]
    main = collections.Counter(stream for name, stream, _, _ in kernels if kind_of(names[name]) == "products").most_common(1)[0][0]
    parts, end = collections.Counter(), None
    for name, stream, start, time in kernels:
        if stream != main:
            continue
        parts["idle"] += max(0, start - end) if end is not None else 0
        parts[kind_of(names[name])] += time
        end = max(end or 0, start + time)
    return {kind: 1e-6 * time / result["case"]["layers"] for kind, time in parts.items()}


def measured():
    """Case but its rank, what it ran on, the slower rank's time and parts, of the last file that has it."""
    found = {}
    for suffix in ("", "_again", "_single"):
        slowest = {}
        for rank in ("0", "1", "first", "last") if suffix != "_single" else ("0",):
            for result in json.loads((MEASURED / f"titan_{rank}{suffix}.json").read_text())["cases"]:
                case = dict(result["case"])
                ran_on = RAN_ON[2] if case.pop("rank") >= 0 else RAN_ON[suffix == "_single"]
                time = 1e3 * statistics.median(sample["step"] for sample in result["samples"]) / case["layers"]
                key = tuple(sorted(case.items())), ran_on
                if key not in slowest or slowest[key][0] < time:
                    slowest[key] = time, parts_of(result)
        found.update(slowest)
    return [(dict(case), ran_on, time, parts) for (case, ran_on), (time, parts) in found.items()]


def rows():
    all_cases = sorted(measured(), key=lambda one: (RAN_ON.index(one[1]), not one[0]["compiled"], one[0]["ranks"], not one[0]["balance"],
                                                     one[0]["rotate"], not one[0]["flash"], one[0]["tokens"]))
    plain = {(case["compiled"], case["tokens"]): parts["elementwise"] for case, _, _, parts in all_cases
             if case["ranks"] == 1 and case["flash"]}
    for case, ran_on, time, parts in all_cases:
        elementwise = parts["elementwise"] if case["ranks"] == 1 else plain[case["compiled"], case["tokens"]]
        attention = parts["attention"] + parts["elementwise"] - elementwise + parts["idle"]
        yield [ran_on, "dgx-h200", "nodes=1" + (";node.bandwidth=1000 TB/s" if ran_on == RAN_ON[2] else ""), case["ranks"],
               case["tokens"], "yes" if case["compiled"] else "no", "fa2-torch" if case["flash"] else "cudnn-9.19",
               "ring" if case["rotate"] == "alltoall" else "allgather", "zigzag" if case["balance"] else "contiguous",
               *(f"{value:.1f}" for value in (time, parts["products"], attention, elementwise))]


if __name__ == "__main__":
    TABLE.write_text(HEAD + "\n".join(",".join(map(str, row)) for row in [COLUMNS, *rows()]) + "\n")
