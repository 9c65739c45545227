#!/usr/bin/env python3
"""How far to trust the numbers: the tables of README.md, docs/trust.md and docs/blind.md, made of result files.

    reproduce/trust.py PROGRAM           prints them; exit code 1 where the pages have others
    reproduce/trust.py PROGRAM --write   writes them into the pages, and every measured point beside its data (points.csv)

PROGRAM is attnsim. Measured (reproduce/measured): every profile is fitted to files fit_*, every error is of files held_out_*
and schedules_*. Published (reproduce/published): what `attnsim reproduce` prints, figures that something was fitted to left out.
"""

import argparse
import json
import re
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

import clocks
from made import ROOT, slice_profile, speedups, with_made

MEASURED = Path("reproduce/measured")
# Sockets are as fast as the machine's processors copy: a file a machine.
CLUSTER = {"kernels": "tests/gpu/two-h100.yaml", "products": "tests/gpu/two-h100.yaml", "nvlink": "tests/gpu/two-h100.yaml",
           "host_memory": "tests/gpu/two-h100-host-memory.yaml", "sockets": "tests/gpu/two-h200-sockets.yaml"}


def slices_in(folder):
    """NETWORK-RANKS-Gb/s of tests/gpu/slices.py."""
    return tuple(sorted(f.stem for f in (ROOT / MEASURED / folder).glob("*.yaml")))


@dataclass
class study:
    folder: str
    device: str
    transports: tuple[str, ...]
    multiprocessors: int = 0  # of a slice; 0: all
    queues: int = 0  # of a slice's process
    fitted_in: str = ""  # the folder of what the profile is fitted to, where it is another
    interval_from: tuple[str, ...] = ()  # whose schedules say how sure communication is; else the transfers that it is fitted to
    points: list = field(default_factory=list)
    named_right: dict = field(default_factory=dict)

    def run(self, program):
        """Fits to one set of files, predicts the other."""
        with tempfile.TemporaryDirectory() as scratch:
            profile = f"{scratch}/profile.yaml"
            call(program, "calibrate", "--device", self.prior(scratch), "--quiet", "--out", profile,
                 "--measurements", *study(self.fitted_in or self.folder, "", self.transports).files("fit_{}.json"))
            if self.interval_from:
                self.widen(program, profile)
            held_out = [*self.files("held_out_{}.json"), *self.files("schedules_{}.jsonl")]
            result = json.loads(call(program, "compare", CLUSTER["nvlink"], *held_out, "--device", profile,
                                     "--points", f"{scratch}/points.csv", "--format", "json"))
            self.csv = Path(scratch, "points.csv").read_text()
            self.points, self.named_right = result["points"], result["fastest_named_right"]
            host = MEASURED / self.folder / "host.yaml"
            if (ROOT / host).exists():
                self.add_layers(self.layers(program, profile, host))
        return self

    def add_layers(self, layers):
        self.points += layers
        self.csv += "".join(csv_line(p) for p in self.points if p["what"].startswith("eager: "))

    def as_shipped(self, program):
        """Predicts by the shipped profile, whatever was measured to fit one."""
        held_out = [*self.files("held_out_{}.json"), *self.files("schedules_{}.jsonl")]
        with tempfile.TemporaryDirectory() as scratch:
            result = json.loads(call(program, "compare", CLUSTER["nvlink"], *held_out, "--device", self.device, "--points",
                                     f"{scratch}/points.csv", "--format", "json"))
            self.csv = Path(scratch, "points.csv").read_text()
        self.points, self.named_right = result["points"], result["fastest_named_right"]
        if (ROOT / MEASURED / self.folder / "host.yaml").exists():
            self.points += self.layers(program, self.device, "pytorch")
        return self

    def layers(self, program, profile, host):
        """Eager layers of PyTorch that tests/gpu/pytorch.py timed in a row, as points: each takes the longer of the device's time and
        the host's."""
        timed = json.loads((ROOT / MEASURED / self.folder / "calls_pytorch.json").read_text())["seconds"]["layer"]
        for name, samples in timed.items():
            schedule, heads, tokens = name.split("_")
            how = ("ring-flash-attention", "--grid", "2x1") if schedule == "ring" else ("usp", "--ulysses", "2")
            found = json.loads(call(program, "predict", CLUSTER["nvlink"], "--device", profile, "--ranks", "2", "--framework", *how,
                                    "--host", host, "--schedule", schedule, "--tokens", "contiguous", "--seq", 2 * int(tokens),
                                    "--heads", heads, "--mask", "full", "--pass", "forward", "--kernel", "fa2-torch",
                                    "--format", "json", "--quiet"))
            measured = statistics.median(samples)
            predicted = max(found["compute_s"] + found["exposed_communication_s"], found["host_s"])
            yield {"part": "layers", "what": f"eager: {schedule}, {heads} heads, {tokens} tokens a rank", "predicted_s": predicted,
                   "interval_s": found["time_interval_s"], "measured_s": measured, "error": predicted / measured - 1}

    def widen(self, program, profile):
        """Communication is as uncertain as nine of ten of those schedules."""
        runs = study(self.folder, "", self.interval_from).schedules(program, profile)
        text, found = re.subn(r"(?s)(\n  network:.*?uncertainty: )[\d.]+", rf"\g<1>{runs.quantile(0.9) / 100:.3f}", Path(profile).read_text())
        assert found == 1, profile
        Path(profile).write_text(text)

    def schedules(self, program, profile):
        self.points = json.loads(call(program, "compare", CLUSTER["nvlink"], *self.files("schedules_{}.jsonl"), "--device", profile,
                                      "--format", "json"))["points"]
        return self.errors("schedules")

    def prior(self, scratch):
        """A slice has fewer multiprocessors than its card, and two channels."""
        if not self.multiprocessors:
            return self.device
        Path(scratch, "slice.yaml").write_text(slice_profile(self.device, self.multiprocessors, self.queues))
        return f"{scratch}/slice.yaml"

    def files(self, pattern):
        for transport in self.transports:
            path = MEASURED / self.folder / pattern.format(transport)
            if (ROOT / path).exists():
                yield f"{path}@{CLUSTER.get(transport, MEASURED / self.folder / f'{transport}.yaml')}"

    def errors(self, *parts, where=lambda what: True):
        return errors([p for p in self.points if p["part"] in parts and where(p["what"])])


def csv_line(p):
    """As `attnsim compare --points` writes them."""
    low, high = p["interval_s"]
    times = ",".join(f"{1e6 * t:.4g}" for t in (p["predicted_s"], low, high, p["measured_s"]))
    return f'{p["part"]},"{p["what"]}",{times},{p["error"]:.4f}\n'


@dataclass
class errors:
    points: list

    def quantile(self, share):
        """As calibrate/measurements.hpp has it, in percent."""
        ascending = sorted(abs(p["error"]) for p in self.points)
        place = share * (len(ascending) - 1)
        below = int(place)
        above = min(below + 1, len(ascending) - 1)
        return 100 * (ascending[below] + (place - below) * (ascending[above] - ascending[below]))

    def mean(self):
        return 100 * sum(abs(p["error"]) for p in self.points) / len(self.points)

    def inside(self):
        """Percent of the measured times that are in the interval of their prediction."""
        within = [p["interval_s"][0] <= p["measured_s"] <= p["interval_s"][1] for p in self.points]
        return 100 * sum(within) / len(within)


def call(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def sockets(what):
    return "sockets:" in what


def others(what):
    return not sockets(what)


MOVED = ("transfers", "collectives")


def of_cluster(*names):
    return lambda what: what.startswith(tuple(f"{name}: " for name in names))


def decodes(what):
    return "--seq 1 " in what


def as_graph(what):
    return "--cuda-graph" in what


def lengths(what):
    return "--cache-lengths" in what


def graph_or_decode(what):
    return as_graph(what) or decodes(what)


def few_rows(what):
    """Of a kernel's point, "..., 4 x 65536": calibrate/measurements.hpp, has_few_rows."""
    rows, cols = map(int, re.search(r"(\d+) x (\d+)", what).groups())
    return "forward" in what and rows < 64 and cols >= 16 * rows


def both(one, other):
    return lambda what: one(what) and other(what)


def no(condition):
    return lambda what: not condition(what)


def of_inference(few, again):
    nvlink, host_memory = of_cluster("two-h100"), of_cluster("two-h100-host-memory")
    eager = both(decodes, no(as_graph))
    return [
        ("H200, questions of inference: our kernel of few rows", few.errors("kernels", where=few_rows)),
        ("prefixes, passing keys and queries, NVLink", few.errors("schedules", where=both(nvlink, no(decodes)))),
        ("the same, through host memory", few.errors("schedules", where=both(host_memory, no(decodes)))),
        ("decoding after 64K to 1M cached tokens, NVLink", few.errors("schedules", where=both(nvlink, eager))),
        ("the same as CUDA graphs", few.errors("schedules", where=as_graph)),
        ("the same, through host memory", few.errors("schedules", where=both(host_memory, eager))),
        ("a faster kernel of few rows, other shapes as well, 32 of them drawn", again.errors("kernels", where=few_rows)),
        ("decoding with it as CUDA graphs, NVLink, caches of one length", again.errors("schedules", where=both(as_graph, no(lengths)))),
        ("of several lengths, in one call", again.errors("schedules", where=both(as_graph, lengths))),
        ("the same two launched from idle", again.errors("schedules", where=eager)),
    ]


def long_products(study):
    return errors([p for p in study.errors("products").points if p["measured_s"] >= 60e-6])


def of_layers(layers, again, kinds, fresh, fresh_shipped, sealed, sealed_shipped, latest):
    return [
        ("H200: matrix products (cuBLASLt, bf16), known when the law got its present form, as the next two sets", layers.errors("products")),
        ("200 more", again.errors("products")),
        ("of these, of 60 us and more", long_products(again)),
        ("a Llama layer's forward and backward on two H200", layers.errors("layers")),
        ("the same and two more models, elementwise kernels mended", again.errors("layers")),
        *((f"of these {name}", again.errors("layers", where=lambda what, flag=flag: flag in what))
          for name, flag in (("with two tensor ranks", "--tp 2"), ("with two context ranks, four schedules", "--cp 2"),
                             ("with sharded parameters", "--shard"))),
        ("the first 200 products on a second card", kinds.errors("products")),
        ("200 drawn at random, on a third card, known by now: by the profile as shipped", fresh_shipped.errors("products")),
        ("of these, of 60 us and more", long_products(fresh_shipped)),
        ("the same products by the profile that was fitted to the second card", fresh.errors("products")),
        ("60 attention kernels drawn at random, on that card, by the profile as shipped", fresh_shipped.errors("kernels")),
        ("200 others, drawn at random, on another card: as shipped, known by now (sealed, a law with one term more had 2.4 and 12.0 %, "
         "docs/steps.md)",
         sealed_shipped.errors("products")),
        ("of these, of 60 us and more", long_products(sealed_shipped)),
        ("the same products by the profile that was fitted to the second card", sealed.errors("products")),
        ("200 more, drawn at random, on another card, run once: as shipped", latest.errors("products")),
        ("of these, of 60 us and more", long_products(latest)),
        ("elementwise operations of a layer, other sizes", kinds.errors("elementwise")),
        ("layers of two more models and of other lengths, elementwise operations and boost fitted, once run", kinds.errors("layers")),
        *((f"of these by pass: {name}", kinds.errors(f"{kind} of layers"))
          for name, kind in (("products", "matmul"), ("attention", "attention"), ("elementwise operations", "elementwise"),
                             ("exchanges of tensor ranks", "tensor_exchange"), ("of sharded parameters", "data_exchange"))),
    ]


def measured(h100, h200, again, few, few_again, layers, layers_again, layers_kinds, fresh, fresh_shipped, sealed, sealed_shipped, latest):
    rows = [
        ("H100: attention kernels (ours, cuDNN 9.19)", h100.errors("kernels")),
        ("H100: memory operations", h100.errors("memory")),
        ("H200: attention kernels (ours, cuDNN 9.19)", h200.errors("kernels")),
        ("memory operations", h200.errors("memory")),
        ("transfers and collectives, NVLink and host memory", h200.errors(*MOVED, where=others)),
        ("the same, sockets", h200.errors(*MOVED, where=sockets)),
        ("the same, all", h200.errors(*MOVED)),
        ("kernel beside transfer, both launch orders", h200.errors("overlap")),
        ("whole schedules, NVLink", h200.errors("schedules", where=of_cluster("two-h100"))),
        ("of these as CUDA graphs", h200.errors("schedules", where=lambda what: "--cuda-graph" in what)),
        ("whole schedules, through host memory", h200.errors("schedules", where=of_cluster("two-h100-host-memory"))),
        ("whole schedules, through sockets", h200.errors("schedules", where=of_cluster("two-h200-sockets"))),
        ("whole schedules, all", h200.errors("schedules")),
        ("H200, a second run: attention kernels", again.errors("kernels")),
        ("transfers and collectives, NVLink and host memory", again.errors(*MOVED, where=others)),
        ("the same, sockets", again.errors(*MOVED, where=sockets)),
        ("kernel beside transfer, both launch orders", again.errors("overlap")),
        ("whole schedules, through sockets", again.errors("schedules")),
        *of_inference(few, few_again),
        *of_layers(layers, layers_again, layers_kinds, fresh, fresh_shipped, sealed, sealed_shipped, latest),
    ]
    right = ", and in ".join(f"{s.named_right['right']} of {s.named_right['of']}" for s in (h200, again, few))
    return "\n".join([
        "| held out | points | median error | 95 % below | in the 90 % interval |",
        "|---|---:|---:|---:|---:|",
        *(f"| {title} | {len(e.points)} | {e.quantile(0.5):.1f} % | {e.quantile(0.95):.1f} % | {e.inside():.0f} % |"
          for title, e in rows),
        "",
        f"Where the fastest two schedules differ by more than 3 %, the fastest was named right in {right} problems.",
    ])


class drawn_kinds:
    """What was drawn, by kind: a title, the parts and a condition of its points."""
    nvlink, host_memory, over_sockets = of_cluster("two-h100"), of_cluster("two-h100-host-memory"), of_cluster("two-h200-sockets")
    rows = (
        ("attention kernels (ours, cuDNN 9.19)", ("kernels",), lambda what: True),
        ("transfers and collectives, NVLink", MOVED, nvlink),
        ("the same, through host memory", MOVED, host_memory),
        ("the same, through sockets", MOVED, over_sockets),
        ("schedules, NVLink", ("schedules",), both(nvlink, no(graph_or_decode))),
        ("the same, through host memory", ("schedules",), host_memory),
        ("the same, through sockets", ("schedules",), over_sockets),
        ("schedules as CUDA graphs, NVLink", ("schedules",), both(as_graph, no(decodes))),
        ("decoding, NVLink", ("schedules",), both(decodes, no(as_graph))),
        ("decoding as CUDA graphs, NVLink", ("schedules",), both(decodes, as_graph)),
        ("eager PyTorch layers, ring and Ulysses", ("layers",), lambda what: what.startswith("eager: ")),
    )


# Of the fifth check when it was blind (30 November 2026): calibrated and as shipped, each median error, 95 % below, in the interval.
WHEN_BLIND = (((1.5, 4.5, 96), (1.4, 4.5, 100)), ((1.5, 7.8, 83), (4.5, 28.1, 96)), ((1.5, 6.4, 100), (1.5, 8.8, 100)),
              ((1.2, 13.2, 93), (2.3, 8.4, 100)), ((2.6, 8.3, 96), (2.1, 10.1, 100)), ((2.5, 16.4, 88), (2.3, 14.7, 93)),
              ((2.3, 8.6, 100), (2.5, 11.5, 100)), ((3.0, 5.4, 100), (0.6, 1.6, 100)), ((5.7, 13.5, 100), (7.6, 48.6, 100)))
SCHEDULES_WHEN_BLIND = (2.1, 12.1)  # all of its schedules, calibrated


def right(study):
    return f"{study.named_right['right']} of {study.named_right['of']}"


def cells(e):
    return f"{e.quantile(0.5):.1f} / {e.quantile(0.95):.1f} % | {e.inside():.0f} %"


def blind(calibrated, shipped):
    """What was drawn and run once, after all changes of that time, and what the program says of it now."""
    old = lambda e: f"{e[0]:.1f} / {e[1]:.1f} % | {e[2]} %"
    lines = []
    run = [kind for kind in drawn_kinds.rows if calibrated.errors(*kind[1], where=kind[2]).points]
    for (title, parts, where), (was, was_shipped) in zip(run, WHEN_BLIND, strict=True):
        now, now_shipped = (s.errors(*parts, where=where) for s in (calibrated, shipped))
        lines.append(f"| {title} | {len(now.points)} | {old(was)} | {old(was_shipped)} | {cells(now)} | {cells(now_shipped)} |")
    return "\n".join([
        "| drawn | points | blind, calibrated: median / 95 % below | in the interval | blind, as shipped | in the interval | "
        "now, calibrated | in the interval | now, as shipped | in the interval |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|---:|",
        *lines,
        "",
        f"The fastest schedule was named right in 22 of 25 problems when it was blind (22 as shipped), now in {right(calibrated)} by the calibrated "
        f"profile, in {right(shipped)} as shipped.",
    ])


def blind_before(*checks):
    """A row for each earlier check; checks: (name, study), calibrated."""
    half = lambda e: f"{e.quantile(0.5):.1f} / {e.quantile(0.95):.1f} %"
    by_kind = lambda s: " | ".join(half(s.errors(*parts, where=where)) for _, parts, where in drawn_kinds.rows)
    return "\n".join([
        "| check | kernels | transfers: NVLink | host memory | sockets | schedules: NVLink | host memory | sockets | graphs | decoding | its graphs | "
        "eager layers | fastest right |",
        "|---|" + "---:|" * 12,
        *(f"| {name} | {by_kind(s)} | {right(s)} |" for name, s in checks),
    ])


def launches(*studies):
    """How far the machine of each check was disturbed: of schedules over NVLink of less than 1.5 ms, what the median of their repeats is
    above the least. studies: (name, study)."""
    rows = []
    for name, s in studies:
        lines = (ROOT / MEASURED / s.folder / "schedules_nvlink.jsonl").read_text().splitlines()
        repeats = [next(iter(json.loads(line)["durations_s"].values())) for line in lines]
        rows.append((name, [statistics.median(r) / min(r) - 1 for r in repeats if statistics.median(r) < 1.5e-3]))
    return "\n".join(["| check | schedules of less than 1.5 ms | median repeat above the least: average | median |", "|---|---:|---:|---:|",
                      *(f"| {name} | {len(above)} | {100 * statistics.mean(above):.1f} % | {100 * statistics.median(above):.1f} % |"
                        for name, above in rows)])


def spread(ratios):
    e = errors([{"error": r - 1} for r in ratios])
    return f"{len(ratios)} | {e.quantile(0.5):.1f} % | {e.quantile(0.95):.1f} %"


def starts_apart(folders, transport):
    """The slowest of three starts over the fastest, each the mean of two rounds, of every message of 64 KiB and more."""
    ratios = []
    for file in (ROOT / MEASURED / folder / f"fit_{transport}.json" for folder in folders):
        for p in json.loads(file.read_text())["points"] if file.exists() else ():
            if p["kind"] == "transfer" and p["bytes"] >= 65536 and len(p["samples"]["time_s"]) == 6:
                starts = [statistics.geometric_mean(p["samples"]["time_s"][i:i + 2]) for i in (0, 2, 4)]
                ratios.append(max(starts) / min(starts))
    return spread(ratios)


def twins_apart(studies, where):
    """The slowest over the fastest of schedules of one problem that run alike, in one start, each a median of five."""
    alike = {}
    for number, s in enumerate(studies):
        for p in s.errors("schedules", where=where).points:
            alike.setdefault((number, p["what"].split(" --schedule ")[0], p["predicted_s"]), []).append(p["measured_s"])
    return spread([max(times) / min(times) for times in alike.values() if len(times) > 1])


def noise(*studies):
    """How far measurements of the same are apart."""
    folders = [s.folder for s in studies]
    rows = [("a message in three starts, host memory", starts_apart(folders, "host_memory")),
            ("the same, sockets", starts_apart(folders, "sockets")),
            *((f"schedules that run alike, {name}", twins_apart(studies, where))
              for name, where in (("NVLink", drawn_kinds.nvlink), ("host memory", drawn_kinds.host_memory), ("sockets", drawn_kinds.over_sockets)))]
    return "\n".join(["| measured again | cases | slowest over fastest: median | 95 % below |", "|---|---:|---:|---:|",
                      *(f"| {title} | {cells} |" for title, cells in rows)])


PAPERS = ("attention2d", "attention2d-overlap", "mesh", "usp")


def speedup_table(slices, passes):
    """Of 16 slices by rate and pass; passes: (pass, the case that ran)."""
    lines = ["| Gb/s | pass | " + " | ".join(f"{n}, measured (predicted)" for n in PAPERS) + " |", "|---:|---|" + "---:|" * len(PAPERS)]
    points = [(p["what"], p["predicted_s"], p["measured_s"]) for p in slices.points if p["part"] == "schedules"]
    by_pass = {direction: speedups(points, case) for direction, case in passes}
    for rate in sorted({rate for found in by_pass.values() for rate, _ in found}):
        for direction, found in by_pass.items():
            cells = (found.get((rate, name)) for name in PAPERS)
            lines.append(f"| {rate:g} | {direction} | " + " | ".join(f"{c[0]:.2f} ({c[1]:.2f})" if c else "" for c in cells) + " |")
    return "\n".join(lines)


def taus(points, group_of, true, predicted):
    """Kendall's tau of each group that has pairs which the true values tell apart by over 5 %."""
    groups = {}
    for p in points:
        groups.setdefault(group_of(p), []).append(p)
    found = []
    for members in groups.values():
        pairs = [(a, b) for a in members for b in members if a[true] > 1.05 * b[true]]
        if pairs:
            found.append(sum((a[predicted] > b[predicted]) - (a[predicted] < b[predicted]) for a, b in pairs) / len(pairs))
    return found


def order(points):
    """Of each question's schedules: mean and least tau."""
    found = taus(points, lambda p: p["what"].split(" --schedule ")[0], "measured_s", "predicted_s")
    return f"{sum(found) / len(found):.2f} on average of {len(found)} questions, {min(found):.2f} at least"


def sliced(slices):
    on = lambda name: lambda what: what.startswith(f"slices-{name}-")
    shape = lambda flags: both(on("star-16"), lambda what: flags in what)
    curve = shape("--heads 8 --kv-heads 4 --mask full")
    named = lambda *schedules: lambda what: re.search(r"--schedule (\S+)", what)[1] in schedules
    runs = lambda where: slices.errors("schedules", where=where)
    rows = [
        ("two slices: transfers of 1 MiB and more", slices.errors(*MOVED)),
        ("4 slices at 0.7, 1 and 2 Gb/s: every schedule, three shapes", runs(on("star-4"))),
        ("8 slices at 1 Gb/s: every schedule (intervals are from this row)", runs(on("star-8"))),
        ("16 slices at 0.75 Gb/s: every schedule", runs(shape("--heads 4 --kv-heads 4"))),
        ("16 slices at 0.6 Gb/s: every schedule, a shape never run before", runs(shape("--heads 12 --kv-heads 4"))),
        ("16 slices at 0.25, 0.5 and 1 Gb/s: the table below", runs(curve)),
        ("of these attention2d-overlap, mesh, usp", runs(both(curve, named("attention2d-overlap", "mesh", "usp")))),
        ("16 slices at 0.3, 0.4 and 0.8 Gb/s: the same schedules, a shape never run before", runs(shape("--heads 4 --kv-heads 2"))),
        ("16 slices, a 4:1 tree at 0.5 Gb/s", runs(on("tree"))),
        ("16 slices, two rails at 0.5 Gb/s", runs(on("rails"))),
        ("16 slices at 1 Gb/s, one link at half of it", runs(on("slow"))),
        ("all on 16 slices", runs(lambda what: "-16-" in what)),
        ("all schedules", runs(lambda what: True)),
    ]
    passes = [(d, f"--heads 8 --kv-heads 4 --mask full --pass {d} --seq 8K") for d in ("forward", "backward")]
    return "\n".join([
        "| held out | points | median error | 95 % below | in the 90 % interval |",
        "|---|---:|---:|---:|---:|",
        *(f"| {title} | {len(e.points)} | {e.quantile(0.5):.1f} % | {e.quantile(0.95):.1f} % | {e.inside():.0f} % |" for title, e in rows),
        "",
        f"Order of a question's schedules: Kendall's tau {order(runs(lambda what: True).points)}.",
        "",
        speedup_table(slices, passes),
    ])


def of_ahead(program, runs, limit):
    """Errors of schedules on slices by the published profile with another `run_ahead`."""
    profile = (ROOT / "reproduce/published/slice-h200.yaml").read_text()
    with tempfile.TemporaryDirectory() as scratch:
        text, places = re.subn(r" run_ahead: [^,]*,", "" if limit == "0" else f" run_ahead: {limit},", profile)
        assert places == 1, profile
        Path(scratch, "slice.yaml").write_text(text)
        return runs.schedules(program, f"{scratch}/slice.yaml")


def out_of_step(program, slices):
    """Runs with a slow link or a straggler, by the profile that was published before them, and without `run_ahead`."""
    rows = [("12 slices at 0.85 Gb/s, one link at 0.45 of it", ("slow7-12-0.85",)),
            ("12 slices at 0.55 Gb/s, one link at 0.7 of it", ("slow2-12-0.55",)),
            ("6 slices at 3.2 Gb/s, one computes at 0.735 of the others' rate", ("straggler-6-3.2",)),
            ("all", slices_in("slices-fresh"))]
    lines = []
    for title, names in rows:
        e = slices.errors("schedules", where=lambda what, names=names: what.startswith(tuple(f"slices-{name}:" for name in names)))
        without = of_ahead(program, study("slices-fresh", "", names), "0")
        lines.append(f"| {title} | {len(e.points)} | {cells(e)} | {least_order(e)} | "
                     f"{without.quantile(0.5):.1f} / {without.quantile(0.95):.1f} % | {least_order(without)} |")
    return "\n".join([
        "| held out | points | median error / 95 % below | in the 90 % interval | least tau | `run_ahead` 0: median / 95 % | least tau |",
        "|---|---:|---:|---:|---:|---:|---:|", *lines])


def least_order(e):
    return f"{min(taus(e.points, lambda p: p['what'].split(' --schedule ')[0], 'measured_s', 'predicted_s')):.2f}"


def ran_ahead(program):
    """The runs with a slow link, by what their senders may be ahead of their receivers."""
    found = []
    for limit in ("0", "256 KiB", "1 MiB", "2 MiB", "3 MiB", "4 MiB", "8 MiB", "16 MiB"):
        runs = of_ahead(program, study("slices", "", ("slow-16-1",)), limit)
        found.append(f"| {limit} | {runs.quantile(0.5):.1f} % | {runs.quantile(0.95):.1f} % |")
    return "\n".join(["| `run_ahead` | median error | 95 % below |", "|---|---:|---:|", *found])


def long(series):
    """Of USP's tables: 128K tokens; at fewer the host's time counts most."""
    return series.startswith("131072 ")


class published:
    """What `attnsim reproduce` predicts of other groups' figures."""

    def __init__(self, program):
        results = json.loads(call(program, "reproduce", "--format", "json", "--quiet"))
        self.studies = {s["study"]: s["points"] for s in results}
        self.repeats = {(s["study"], e["series"]): e for s in results for e in s["repeats"]}

    def errors(self, *studies, where=lambda series: True):
        return errors([p for s in studies for p in self.studies[s] if not p["fitted"] and where(p["series"])])

    def rows(self):
        return [
            ("Attention2D on 64 A100, no overlap (one number fitted on 16 GPUs)",
             self.errors("attention2d-a100", where=lambda s: s == "attention2d on 64 GPUs")),
            ("Attention2D on 64 A100, overlap", self.errors("attention2d-a100", where=lambda s: s == "attention2d-overlap on 64 GPUs")),
            ("Attention2D's 5x on A100 and 9.4x on H100", self.errors("attention2d-a100", "attention2d-h100", where=lambda s: s == "headline")),
            ("Mesh-Attention on 256 GPUs (one number fitted)", self.errors("mesh")),
            ("ring-flash-attention, 8 A100 and 8 H800, packed documents too", self.errors("ring-flash-attention")),
            ("eager PyTorch on two H200, ring and Ulysses (measured here)", self.errors("pytorch-layers")),
            ("MagiAttention's benchmark, 8 and 16 H100 and B200", self.errors("magiattention")),
            ("TensorRT-LLM on GB200 NVL72 (fitted on one GPU)", self.errors("tensorrt-llm")),
            ("USP on 8 A100: 128K tokens", self.errors("usp", where=long)),
            ("USP on 8 A100: 32K tokens and less (mostly the host's time)", self.errors("usp", where=lambda s: not long(s))),
            ("USP on 4 A100 and 8 L20 over PCIe (three numbers fitted)", self.errors("usp-pcie")),
            ("FlashAttention-2 and 3 (every second size from the others)", self.errors("flash-attention")),
            ("nccl-tests plateaus (not those that efficiencies are from)", self.errors("nccl-tests")),
            ("matrix products on one H200, held-out shapes (measured here)", self.errors("products", where=lambda s: "products" in s)),
            ("a Llama and a Qwen layer on one H200, forward and backward (measured here)", self.errors("products", where=lambda s: s.startswith("layer"))),
            ("NeMo's steps on 4 to 1,024 H100, with context parallelism", self.errors("nemo-steps", where=lambda s: s == "with CP")),
            ("and their gain by context parallelism (two numbers fitted on two other rows)", self.errors("nemo-steps", where=lambda s: s == "gain of CP")),
            ("torchtitan's steps on 8 H100, rates (one number fitted)", self.errors("torchtitan-steps", where=lambda s: s.startswith("rate on 8 GPUs"))),
            ("layers as torchtitan trains them, PyTorch's context parallelism on H200 (measured here)",
             self.errors("torchtitan-layers", where=lambda s: s.endswith(" layer"))),
            ("torchtitan's steps on 128 to 512 H100, 8B to 405B parameters", self.errors("torchtitan-steps", where=lambda s: s.startswith("rate") and " on 8 GPUs" not in s)),
            ("Megatron-LM's steps on 8 to 512 A100, tensor and pipeline parallel", self.errors("megatron-steps")),
            ("torchtitan's steps on 8 H100, memory", self.errors("torchtitan-steps", where=lambda s: s.startswith("memory on 8 GPUs"))),
            ("the same on 128 to 512", self.errors("torchtitan-steps", where=lambda s: s.startswith("memory") and " on 8 GPUs" not in s)),
            ("nccl-tests, 64 KiB to 64 MiB: other sizes of the machines that ramps are from, InfiniBand and NVLink",
             self.errors("nccl-mid-sizes", where=lambda s: s == "other sizes")),
            ("the same, other machines, most of them clouds with transports of their own", self.errors("nccl-mid-sizes", where=lambda s: s == "other machines")),
        ]

    def table(self):
        return "\n".join([
            "| published | figures | mean error | worst |",
            "|---|---:|---:|---:|",
            *(f"| {title} | {len(e.points)} | {e.mean():.1f} % | {e.quantile(1):.0f} % |" for title, e in self.rows()),
        ])


# Series of published figures, by how they begin, and what is known of where they miss.
MISSES = [
    ("ring-flash-attention", "", "its merges read and write 38 bytes an element, which is modelled; fused they would read and write 10"),
    ("magiattention", "H100", ""),
    ("magiattention", "B200", "kernels at few heads and causal backward are carried on from other shapes"),
    ("flash-attention", "", ""),
    ("nccl-tests", "predicted", ""),
    ("nccl-mid-sizes", "other sizes", "512 KiB on both machines lies between sizes that the ramps are from; NCCL may change its protocol there, a guess"),
    ("nccl-mid-sizes", "other machines", "most of them clouds with transports of their own: no ramp of theirs is published"),
    ("tensorrt-llm", "loops", "0.4 to 0.8 ms a ring step and layer is missing; launches as measured here would be 0.2 ms"),
    ("attention2d-a100", "attention2d on 64", "the cluster is not described: NICs of a node, batch and number format are assumed; {scatter}"),
    ("attention2d-a100", "attention2d-overlap on 64", "the same; what the exchanges hide behind depends on the kernels, which are not named; {scatter}"),
    ("usp", "131072 tokens 64:8", ""),
    ("usp", "131072 tokens 8:8 heads of 128", ""),
    ("usp", "131072 tokens 32:32", "heads of 32: no table of theirs is published, they are carried on from 64 and 128; packed rings of 4 and 8 with "
     "contiguous tokens take half as long again as unpacked ones, for no reason that the source shows"),
    ("usp", "131072 tokens 8:8 heads of 32", "heads of 32, as above"),
    ("usp", "131072 tokens 4:4", "heads of 32, as above; of so few heads a kernel's last wave counts, a guess"),
    ("usp", "131072 tokens 2:2", "the same"),
    ("usp", "32768", "one row takes 2.8 times what its neighbours imply, as if of heads of 128; the rest is the host's time"),
    ("usp", "8192", "the host's time; its processor is not named"),
    ("usp", "512", "the host's time"),
    ("usp-pcie", "A100 65536", "the same bytes take 106 to 139 ms in rings of 4"),
    ("usp-pcie", "A100 16384", "the machine: the same bytes take 17.6 to 47 ms in rings of 4, so the order is not in the question"),
    ("usp-pcie", "A100 4096", "the host's time, and messages through host memory whose ramp nobody published"),
    ("usp-pcie", "L20 131072", ""),
    ("usp-pcie", "L20 32768", ""),
    ("usp-pcie", "L20 8192", "messages of 0.5 to 4 MiB through host memory: no ramp of theirs is published, only rates of large ones are known"),
    ("pytorch-layers", "", "an eager loop whose host's speed wandered by a factor of 1.7"),
    ("megatron-steps", "", "before FlashAttention; the smallest model's small products are slower"),
    ("nemo-steps", "with CP", ""),
    ("nemo-steps", "without CP", "settings are not published"),
    ("torchtitan-steps", "rate on 8 GPUs with CP", "4 and 8 context ranks on 8 GPUs took far longer than what they compute, which was measured on H200 since; on "
     "512 GPUs they did not"),
    ("torchtitan-steps", "rate on 512 GPUs", ""),
    ("torchtitan-layers", "compiled layer", ""),
    ("torchtitan-layers", "eager layer", ""),
]


def scatter(points):
    """How far a model's speedups are from the mean of those at half and twice the length: noise, where the predicted ones are not."""
    model = lambda p: p["figure"].split(",")[0]
    off = lambda value: statistics.mean(abs(2 * b[value] / (a[value] + c[value]) - 1)
                                        for a, b, c in zip(points, points[1:], points[2:]) if model(a) == model(c))
    across = taus(points, lambda p: p["series"], "published", "predicted")[0]
    return (f"published figures are {100 * off('published'):.1f} % off the mean of their neighbours in length, predicted ones "
            f"{100 * off('predicted'):.1f} %: tau is of each problem's schedules, across problems it would be {across:.2f}")


def orders(name, begin, points):
    """Kendall's tau of each question's schedules. A series is one question's; Attention2D's are one schedule's speedups over a ring."""
    if name != "attention2d-a100":
        return taus(points[name, begin], lambda p: p["series"], "published", "predicted")
    all_schedules = [p for (study, _), own in points.items() if study == name for p in own]
    rings = [{"figure": f, "published": 1, "predicted": 1} for f in dict.fromkeys(p["figure"] for p in all_schedules)]
    return taus([*all_schedules, *rings], lambda p: p["figure"], "published", "predicted")


def missed(figures):
    """Published figures by kind, with what is known of where they miss."""
    by_series = {(name, begin): [p for p in figures.studies[name] if not p["fitted"] and p["series"].startswith(begin)]
                 for name, begin, _ in MISSES}
    lines = ["| study | series | figures | mean error | beyond 30 % | Kendall's tau of the order | repeats differ by | why |",
             "|---|---|---:|---:|---:|---:|---:|---|"]
    for name, begin, why in MISSES:
        wanted = by_series[name, begin]
        e = errors(wanted)
        large = sum(abs(p["error"]) > 0.3 for p in wanted)
        found = orders(name, begin, by_series)
        tau = f"{sum(found) / len(found):.2f}" if found else ""
        repeats = [r for (study, series), r in figures.repeats.items() if study == name and series.startswith(begin)]
        count = sum(r["figures"] for r in repeats)
        floor = f"{100 * sum(r['figures'] * r['mean'] for r in repeats) / count:.1f} %" if count else ""
        lines.append(f"| {name} | {begin} | {len(wanted)} | {e.mean():.1f} % | {large} | {tau} | {floor} | "
                     f"{why.replace('{scatter}', scatter(wanted)) if '{scatter}' in why else why} |")
    return "\n".join(lines)


def steps(figures):
    """By series of the studies of steps."""
    rows = []
    for name in ("products", "megatron-steps", "nemo-steps", "torchtitan-steps", "torchtitan-layers"):
        for series in dict.fromkeys(p["series"] for p in figures.studies[name] if not p["fitted"]):
            e = figures.errors(name, where=lambda s, series=series: s == series)
            rows.append(f"| {name} | {series} | {len(e.points)} | {e.mean():.1f} % | {e.quantile(1):.0f} % |")
    return "\n".join(["| study | series | figures | mean error | worst |", "|---|---|---:|---:|---:|", *rows])


def torchtitan(figures):
    """A layer of each case: all of it, and by kind."""
    cases = {}
    for p in figures.studies["torchtitan-layers"]:
        how, kind = p["series"].split()
        cases.setdefault((p["figure"], how), {})[kind] = p
    rows = ["| ran on | ranks of a sequence | tokens of each | kernel | schedule | tokens | blocks | measured | predicted | error | products | attention | "
            "elementwise |", "|---|---:|---:|---|---|---|---|---:|---:|---:|---:|---:|---:|"]
    for (figure, how), kinds in cases.items():
        where, ranks, length, kernel, schedule, tokens = figure.split(", ")
        layer = kinds.pop("layer")
        parts = " | ".join(f"{p['published']:.0f} / {p['predicted']:.0f}" for p in kinds.values())
        rows.append(f"| {where} | {ranks.removeprefix('cp ')} | {length.removesuffix(' tokens')} | {kernel} | {schedule} | {tokens} | {how} | {layer['published']:.0f} | "
                    f"{layer['predicted']:.0f} | {100 * layer['error']:+.1f} % | {parts} |")
    return "\n".join(rows)


def headlines(program):
    """What the papers' speedups of attention are worth to a step."""
    study = json.loads(call(program, "reproduce", "headline-steps", "--format", "json", "--quiet"))
    study = study[0] if isinstance(study, list) else study
    by_figure = {}
    for w in study["what_if"]:
        by_figure.setdefault(w["figure"], []).append(w["predicted"])
    rows = [f"| {figure} | {attention:.2f} | {step:.2f} |" for figure, (attention, step) in by_figure.items()]
    return "\n".join(["| against Ring Attention | attention | step |", "|---|---:|---:|", *rows])


def summary(h100, h200, drawn, others_figures):
    kernels = errors(h100.errors("kernels").points + h200.errors("kernels").points)
    schedules = h200.errors("schedules")
    libraries = others_figures.errors("ring-flash-attention", "magiattention")
    unknown = others_figures.errors("attention2d-a100", "attention2d-h100", "mesh", "tensorrt-llm", "usp-pcie",
                                    where=lambda s: "on 16 GPUs" not in s)
    short = others_figures.errors("usp", where=lambda s: not long(s))
    half = lambda e: f"{e.quantile(0.5):.1f} % median, {e.quantile(0.95):.1f} % for 95 of 100, of {len(e.points)}"
    mean = lambda e: f"{e.mean():.1f} % mean of {len(e.points)} figures"
    return "\n".join([
        "| predicted | error |",
        "|---|---|",
        f"| kernels of a card that was measured (H100, H200), other shapes | {half(kernels)} |",
        f"| whole schedules on two measured H200, over NVLink, host memory and sockets | {half(schedules)} |",
        f"| schedules drawn at random, on two H200 calibrated in a minute, over NVLink and host memory | {half(drawn.errors('schedules'))} (when it was blind {SCHEDULES_WHEN_BLIND[0]} and {SCHEDULES_WHEN_BLIND[1]} %) |",
        f"| ring, all-gather and Ulysses variants on 8 and 16 GPUs as others published them, profiles as shipped | {mean(libraries)} |",
        f"| published results on networks that nobody described (64 A100, PCIe boxes, NVL72), a number or two fitted | {mean(unknown)} |",
        f"| short passes whose time is the host's (USP up to 32K tokens), without a host | {mean(short)} |",
    ])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    program = asked.program.resolve()
    every = ("nvlink", "host_memory", "sockets")
    studies = [study("h100", "h100-sxm5", ("kernels",)).run(program),
               study("h200", "h200-sxm5", every).run(program),
               study("h200-again", "h200-sxm5", every).run(program),
               study("h200-decode", "h200-sxm5", ("kernels", "nvlink", "host_memory")).run(program),
               study("h200-decode-again", "h200-sxm5", ("kernels", "nvlink")).run(program),
               study("h200-layers", "h200-sxm5", ("nvlink",)).run(program),
               study("h200-layers-again", "h200-sxm5", ("nvlink",), fitted_in="h200-layers").run(program),
               study("h200-layers-kinds", "h200-sxm5", ("nvlink",)).run(program)]
    fresh = study("h200-fresh", "h200-sxm5", ("nvlink", "products"), fitted_in="h200-layers-kinds").run(program)
    fresh_shipped = study("h200-fresh", "h200-sxm5", ("kernels", "products")).as_shipped(program)
    sealed = study("h200-products", "h200-sxm5", ("nvlink", "products"), fitted_in="h200-layers-kinds").run(program)
    sealed_shipped = study("h200-products", "h200-sxm5", ("products",)).as_shipped(program)
    drawn = study("h200-blind", "h200-sxm5", every).run(program)
    drawn_again = study("h200-blind-again", "h200-sxm5", every).run(program)
    third = study("h200-blind-third", "h200-sxm5", every).run(program)
    fourth = study("h200-blind-fourth", "h200-sxm5", every).run(program)
    fourth_again = study("h200-blind-fourth-again", "h200-sxm5", every).run(program)
    fifth = study("h200-blind-fifth", "h200-sxm5", every).run(program)
    fifth_shipped = study("h200-blind-fifth", "h200-sxm5", every).as_shipped(program)
    fourth_products = study("h200-blind-fourth", "h200-sxm5", ("products",)).as_shipped(program)
    earlier = (("first", drawn), ("second", drawn_again), ("third", third), ("fourth", fourth), ("the fourth's again, another machine", fourth_again))
    slices = study("slices", "h200-sxm5", slices_in("slices"), multiprocessors=14, queues=4, interval_from=("star-8-1",)).run(program)
    uneven = study("slices-fresh", "reproduce/published/slice-h200.yaml", slices_in("slices-fresh")).as_shipped(program)
    figures = published(program)
    made = {"README.md": {"summary": summary(*studies[:2], fifth, figures)},
            "docs/trust.md": {"measured": measured(*studies, fresh, fresh_shipped, sealed, sealed_shipped, fourth_products),
                              "drawn": blind(fifth, fifth_shipped), "drawn before": blind_before(*earlier), "slices": sliced(slices),
                              "ahead": ran_ahead(program), "out of step": out_of_step(program, uneven),
                              "published": figures.table()},
            "docs/blind.md": {"launches": launches(*earlier, ("fifth", fifth)),
                              "noise": noise(drawn_again, third, fourth, fourth_again, fifth)},
            "docs/steps.md": {"steps": steps(figures), "torchtitan": torchtitan(figures), "clocks": clocks.table()},
            "docs/explained.md": {"headlines": headlines(program), "misses": missed(figures)}}
    stale = []
    for page, parts in made.items():
        before = after = (ROOT / page).read_text()
        for name, text in parts.items():
            print(text, end="\n\n")
            after = with_made(after, f"made by reproduce/trust.py: {name}", f"\n{text}\n\n")
        if asked.write:
            (ROOT / page).write_text(after)
        elif after != before:
            stale.append(page)
    if asked.write:
        for s in (*studies, fresh, sealed, drawn, drawn_again, third, fourth, fourth_again, fifth, slices, uneven):
            (ROOT / MEASURED / s.folder / "points.csv").write_text(s.csv)
    if stale:
        sys.exit(f"{' and '.join(stale)}: other errors: run again with --write")


if __name__ == "__main__":
    main()
