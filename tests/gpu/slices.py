#!/usr/bin/env python3
"""Sixteen small devices on one or two cards (tests/hosts/slices.hpp): measures a slice and runs schedules on all grids of
4 to 16 ranks over a star, a 4:1 tree, two rails, a star with one slow link, and with one slice that computes slower.

    tests/gpu/slices.py PROGRAM HOSTS RESULTS STEP...

PROGRAM: attnsim with CUDA and NCCL; HOSTS: attnsim-hosts. A step whose files are in RESULTS is not done again:
    measure   kernels and memory of a slice, transfers of two: fit2.json, held_out2.json
    held      every schedule on 16
    curve     ring, attention2d, attention2d-overlap, mesh and usp by bandwidth
    other     every schedule on 16, a shape and a rate that nothing else has
    between   the schedules of `curve`, another shape, at rates between its own
    networks  the same schedules on a tree, two rails and a star with one slow link
    fewer     every schedule on 8
    four      every schedule on 4, three shapes at three rates
    graphs    some of them as CUDA graphs
    many      32 slices
    slow      12 slices, one of them behind a slow link, two shapes at two rates
    straggler 6 slices, one of them with fewer multiprocessors; kernels of both sizes: kernels_SHARE.json
    publish   the files that reproduce/trust.py reads
Needs root, iproute2 and ethtool."""

import argparse
import json
import re
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "reproduce"))
from made import slice_profile  # noqa: E402
PAYLOAD = (9000 - 52) / (9000 + 14)  # of a rate: TCP's and Ethernet's headers
BURST_US = 80
# Messages that a rested link passes in a few bursts tell nothing of its rate.
SMALLEST_FIT = 1 << 20


def one_slow(host, share):
    """A star whose host has a link of that share of the others' rate."""
    return (lambda rate: ["--other-link", f"{host}={rate * share} Gb/s"],
            f"fabric: {{kind: star}}\nslow_links: {{node{host}.nic0->switch0: {share}, switch0->node{host}.nic0: {share}}}")


NETWORKS = {  # flags of attnsim-hosts, lines of the cluster file
    "star": (lambda rate: [], "fabric: {kind: star}"),
    "tree": (lambda rate: ["--per-leaf", "4", "--uplink", f"{rate} Gb/s"],
             "fabric: {kind: fat-tree, levels: 2, nodes_per_leaf: 4, oversubscription: 4}"),
    "rails": (lambda rate: ["--rails", "2"], "fabric: {kind: multi-plane, planes: 2, messages: split, plane: {kind: star}}"),
    "slow": one_slow(5, 0.5),
    "slow7": one_slow(7, 0.45),
    "slow2": one_slow(2, 0.7),
    "straggler": (lambda rate: [], "fabric: {kind: star}"),
}
STRAGGLER, ITS_SHARE = 2, 9  # a rank, and its per cent of a card


def grids(ranks):
    return {4: ["2x2"], 8: ["4x2", "2x4"], 16: ["4x4", "2x8", "8x2"], 32: ["8x4", "4x8"]}[ranks]


def strategies(ranks, heads):
    """Every schedule that computes both passes, on every grid that is no ring."""
    yield from ("ring", "allgather", "passq-ring", "passq-allgather")
    for grid in grids(ranks):
        for schedule in ("attention2d", "attention2d-overlap", "mesh"):
            yield f"{schedule} --grid {grid}"
    square = grids(ranks)[0]
    yield from (f"double-ring --grid {square}", f"hierarchical-allgather --grid {square}", f"startrail --grid {square}")
    yield from ("burst", "tokenring")
    if heads >= 4:
        yield "usp --ulysses 4"
    if heads >= ranks:
        yield "ulysses"


def cases(ranks, seq, heads, masks=("full", "causal"), passes=("forward", "backward"), chosen=None, more=""):
    for mask in masks:
        for direction in passes:
            for strategy in chosen or strategies(ranks, heads[0]):
                if direction == "backward" and strategy.startswith("passq"):
                    continue  # forward alone
                if direction == "forward" and strategy == "burst":
                    continue  # ring
                yield (f"--heads {heads[0]} --kv-heads {heads[1]} --mask {mask} --pass {direction} --seq {seq} "
                       f"--kernel cuda --schedule {strategy}{more}")


def read_runs(file):
    return [json.loads(line) for line in file.read_text().splitlines() if line.startswith("{")]


GRIDS = ["ring", "attention2d --grid 4x4", "attention2d-overlap --grid 4x4", "mesh --grid 4x4", "usp --ulysses 4"]


class Slices:
    def __init__(self, options):
        self.program, self.hosts, self.results = options.program, options.hosts, Path(options.results)
        self.gpus, self.share, self.rate, self.queues = options.gpus, options.share, options.rate, options.queues
        self.ends = time.time() + options.seconds
        self.results.mkdir(parents=True, exist_ok=True)

    def run(self, ranks, network, rate, arguments, limit, out):
        """attnsim on so many slices; what it prints on standard output is appended to the file `out`."""
        limit = int(min(limit, self.ends - time.time()))
        if limit < 8:
            print(f"no time left: {ranks} on {network}, {out}", file=sys.stderr)
            return
        # MPS keeps a client to the lesser of the service's share and its own.
        straggles = ["sh", "-c", f'[ "$RANK" != {STRAGGLER} ] || export CUDA_MPS_ACTIVE_THREAD_PERCENTAGE={ITS_SHARE}; exec "$@"', "sh"]
        started = [*(straggles if network == "straggler" else []), self.program]
        command = [self.hosts, "--hosts", str(ranks), "--link", f"{rate} Gb/s", "--mtu", "9000", "--burst", str(BURST_US), "--offload",
                   "--queues", str(self.queues), *NETWORKS[network][0](rate), "slices", "--gpus", str(self.gpus), "--share", str(self.share),
                   "--time-out", str(limit), *started, *arguments]
        begun = time.time()
        with open(self.results / "log.txt", "ab") as log, open(self.results / out, "ab") as output:
            code = subprocess.run(command, stdout=output, stderr=log).returncode
            line = f"{time.time() - begun:.0f} s, exit {code}: {ranks} on {network} at {rate} Gb/s, {out}\n"
            log.write(line.encode())
        print(line, end="", file=sys.stderr, flush=True)

    def validate(self, ranks, network, rate, name, lines, limit):
        out = f"{network}-{ranks}-{rate:g}.{name}.jsonl"
        if (self.results / out).exists():
            return
        (self.results / "cases.partial").write_text("\n".join(lines) + "\n")
        self.run(ranks, network, rate,
                 ["validate", self.cluster(ranks, network, rate), "--transport", "nccl", "--times-only", "--repeats", "3",
                  "--time-out", "20", "--cases", str(self.results / "cases.partial")], limit, out)

    def cluster(self, ranks, network, rate):
        """The cluster file of what `run` builds. A link's rate is a little higher than what messages see, as a rested link
        passes a burst at once; of two rails it is the sum."""
        file = self.results / f"{network}-{ranks}-{rate:g}.yaml"
        rails = 2 if network == "rails" else 1
        file.write_text(f"name: slices-{file.stem}\ndevice: {(self.results / 'prior.yaml').resolve()}\nnodes: {ranks}\ndevices_per_node: 1\n"
                        f"nics: {{per_node: 1, bandwidth: {rails * rate * 125 * PAYLOAD * 1.02:.1f} MB/s, latency: 5 us}}\n"
                        f"{NETWORKS[network][1]}\n")
        return str(file)

    def prior(self):
        """The card's shipped profile as a slice: fewer multiprocessors, two channels."""
        file = self.results / "prior.yaml"
        if file.exists():
            return
        cards = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True).stdout
        card = "h200-sxm5" if "H200" in cards else "h100-sxm5"
        # MPS gives whole pairs of multiprocessors: 8 of 132 at 6 %, 14 at 12 %.
        processors = max(2, int(self.share / 100 * 132 / 2 + 0.1) * 2)
        file.write_text(re.sub(r"(?m)^name: .*", f"name: {card}-slice-{self.share}", slice_profile(card, processors)))

    def measure(self):
        if not (self.results / "fit2.json").exists():
            self.run(2, "star", self.rate,
                     ["measure", "--quick", "--seconds", "85", "--kinds", "kernel,memory,transfer,overlap", "--kernels", "cuda",
                      "--largest", "64", "--out", str(self.results / "fit2.json"), "--held-out",
                      str(self.results / "held_out2.json")], 115, "measure.txt")

    def curve(self):
        for rate in (1, 0.5, 0.25):
            self.validate(16, "star", rate, "curve", cases(16, "8K", (8, 4), ["full"], chosen=GRIDS), 45)

    def fewer(self):
        self.validate(8, "star", 1, "fewer", cases(8, "12K", (6, 3), ["full"]), 50)

    def four(self):
        self.validate(4, "star", 1, "four", cases(4, "12K", (4, 4), ["causal"]), 40)
        self.validate(4, "star", 2, "four", cases(4, "9K", (6, 2), ["full"]), 30)
        self.validate(4, "star", 0.7, "four", cases(4, "7K", (8, 4), ["causal"]), 40)

    def networks(self):
        self.validate(16, "tree", 0.5, "networks", cases(16, "6K", (8, 8), ["causal"], chosen=GRIDS), 40)
        self.validate(16, "rails", 0.5, "networks", cases(16, "12K", (6, 6), ["full"], chosen=GRIDS), 40)
        self.validate(16, "slow", 1, "networks", cases(16, "10K", (8, 4), ["full"], chosen=GRIDS), 30)

    def graphs(self):
        chosen = ["ring", "attention2d --grid 4x4", "mesh --grid 4x4", "allgather"]
        self.validate(16, "star", 1, "graphs", cases(16, "8K", (8, 8), ["full"], chosen=chosen, more=" --cuda-graph"), 30)

    def many(self):
        self.share = 3
        lines = cases(32, "16K", (4, 4), ["full"], ["forward"], ["ring", "attention2d --grid 8x4", "mesh --grid 8x4"])
        self.validate(32, "star", 0.5, "many", lines, 40)

    def held(self):
        self.validate(16, "star", 0.75, "held", cases(16, "10K", (4, 4), ["full"]), 75)

    def other(self):
        self.validate(16, "star", 0.6, "other", cases(16, "7K", (12, 4), ["causal"]), 75)

    def between(self):
        for rate in (0.8, 0.4, 0.3):
            self.validate(16, "star", rate, "between", cases(16, "9K", (4, 2), ["full"], chosen=GRIDS), 45)

    def slow(self):
        chosen = ["ring", "allgather", "attention2d --grid 3x4", "attention2d --grid 4x3", "attention2d --grid 2x6", "attention2d-overlap --grid 4x3",
                  "mesh --grid 3x4", "usp --ulysses 3", "double-ring --grid 4x3"]
        self.validate(12, "slow7", 0.85, "slow", cases(12, 7680, (18, 6), ["full"], chosen=chosen), 90)
        chosen = ["ring", "attention2d --grid 4x3", "attention2d-overlap --grid 3x4", "mesh --grid 6x2", "usp --ulysses 3"]
        self.validate(12, "slow2", 0.55, "slow", cases(12, 8448, (12, 3), ["causal"], chosen=chosen), 60)

    def straggler(self):
        """How much slower its kernels are is measured by them alone: on 2 slices, then on these and the straggler."""
        points = [{"kind": "kernel", "kernel": "attnsim-cuda", "pass": direction, "mask": "full", "batch": 1, "heads": 16, "kv_heads": 1,
                   "head_dim": 128, "rows": rows, "cols": rows, "samples": {}} for rows in (5120, 10240) for direction in ("forward", "backward")]
        file = self.results / "kernels.partial"
        for ranks, network in ((2, "star"), (STRAGGLER + 1, "straggler")):
            out = self.results / f"kernels_{self.share if network == 'star' else ITS_SHARE}.json"
            if not out.exists():
                file.write_text(json.dumps({"schema": "attnsim.measurements.2", "environment": {}, "points": points}))
                self.run(ranks, network, self.rate, ["measure", "--points", str(file), "--rounds", "3", "--seconds", "6", "--time-out", "15",
                                                     "--quiet", "--out", str(out)], 25, "measure.txt")
        chosen = ["ring", "allgather", "attention2d --grid 2x3", "attention2d --grid 3x2", "attention2d-overlap --grid 3x2", "mesh --grid 2x3",
                  "double-ring --grid 3x2"]
        self.validate(6, "straggler", 3.2, "straggler", cases(6, "60K", (16, 1), ["full"], chosen=chosen), 70)

    def publish(self):
        """What reproduce/trust.py reads, in RESULTS/published: no timelines, no messages that bursts hide."""
        folder = self.results / "published"
        folder.mkdir(exist_ok=True)
        for file in self.results.glob("*.jsonl"):
            name = file.name.rsplit(".", 2)[0]
            with open(folder / f"schedules_{name}.jsonl", "a") as out:
                for run in read_runs(file):
                    run.pop("timelines", None)
                    out.write(json.dumps(run, separators=(",", ":")) + "\n")
        for kind in ("fit", "held_out"):
            if not (self.results / f"{kind}2.json").exists():
                continue
            data = json.loads((self.results / f"{kind}2.json").read_text())
            data["points"] = [p for p in data["points"] if p["kind"] != "transfer" or p["bytes"] >= SMALLEST_FIT]
            (folder / f"{kind}_star-2-{self.rate:g}.json").write_text(json.dumps(data, separators=(",", ":")))


def main():
    parser = argparse.ArgumentParser()
    for name in ("program", "hosts", "results"):
        parser.add_argument(name)
    parser.add_argument("steps", nargs="+", choices=["measure", "held", "curve", "other", "between", "networks", "fewer", "four", "graphs", "many", "slow", "straggler", "publish"])
    parser.add_argument("--gpus", type=int, default=2)
    parser.add_argument("--share", type=int, default=12, help="per cent of a card for a slice; 6 leave NCCL no room beside attention")
    parser.add_argument("--queues", type=int, default=256, help="of a link, which serves them in turn")
    parser.add_argument("--rate", type=float, default=2.0, help="Gb/s of a link where `measure` runs")
    parser.add_argument("--seconds", type=float, default=560, help="for all of it")
    options = parser.parse_args()
    slices = Slices(options)
    slices.prior()
    for step in options.steps:
        getattr(slices, step)()


main()
