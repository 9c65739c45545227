#!/usr/bin/env python3
"""Speedup over ring attention by bandwidth on sixteen slices of a card, measured and predicted.

    reproduce/measured_speedup.py PROGRAM           makes all of it anew
    reproduce/measured_speedup.py PROGRAM --draw    predicts and draws

PROGRAM is attnsim. Measured runs become reproduce/published/slices.csv, the profile of a slice, fitted to one slice and to transfers
between two, slice-h200.yaml beside it; both are what `attnsim reproduce slices` reads. What that says becomes docs/measured_speedup.csv
and .svg.
"""

import argparse
import csv
import json
import re
import subprocess
import tempfile
from pathlib import Path

from made import ROOT, slice_profile

MEASURED = ROOT / "reproduce/measured"
PUBLISHED = ROOT / "reproduce/published"
PAGE = ROOT / "docs/measured_speedup.csv"
CASE = "--heads 8 --kv-heads 4 --mask full --pass {} --seq 8K"
SCHEDULES = {"attention2d": "C0", "attention2d-overlap": "C1", "mesh": "C2", "usp": "C3"}
PASSES = ("forward", "backward")
QUEUES = 4  # of a slice's process
PAPER = 2.81  # Attention2D on 16 A100: mean of its table (docs/explained.md)


def runs():
    for file in sorted(MEASURED.glob("slices/schedules_star-16-*.jsonl")):
        gbits = file.stem.rsplit("-", 1)[1]
        link = re.search(r"bandwidth: ([\d.]+ MB/s)", file.with_name(f"star-16-{gbits}.yaml").read_text())[1]
        for run in map(json.loads, file.read_text().splitlines()):
            direction = run["predicted"]["problem"]["pass"]
            if run["case"].startswith(CASE.format(direction)) and "cuda-graph" not in run["case"] and "durations_s" in run:
                yield gbits, link, direction, run


def write_runs():
    with open(PUBLISHED / "slices.csv", "w", newline="") as file:
        file.write("# Made by reproduce/measured_speedup.py of reproduce/measured/slices: medians of three runs.\n")
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow("gbits,link,pass,schedule,rows,cols,ulysses,tokens,heads,kv_heads,mask,sequence,time_ms".split(","))
        for gbits, link, direction, run in runs():
            p, problem = run["predicted"], run["predicted"]["problem"]
            time = sorted(run["durations_s"][direction])[len(run["durations_s"][direction]) // 2]
            writer.writerow([gbits, link, direction, p["schedule"], *p["grid"], p["ulysses"], p["tokens"], problem["heads"],
                             problem["kv_heads"], problem["mask"], problem["seq"], f"{time * 1e3:.3f}"])


def write_profile(program):
    fit, cluster = MEASURED / "slices/fit_star-2-2.json", MEASURED / "slices/star-2-2.yaml"
    with tempfile.TemporaryDirectory() as scratch:
        prior, fitted = Path(scratch, "slice.yaml"), Path(scratch, "fitted.yaml")
        prior.write_text(slice_profile("h200-sxm5", 14, queues=QUEUES))
        subprocess.run([program, "calibrate", "--device", prior, "--quiet", "--out", fitted, "--measurements", f"{fit}@{cluster}"],
                       check=True, capture_output=True, cwd=ROOT)
        text = re.sub(r"(?m)^#.*\n", "", fitted.read_text())
    text = re.sub(r"(?m)^name: .*", "name: h200-slice", text)
    (PUBLISHED / "slice-h200.yaml").write_text("# 12 % of an H200 (CUDA's MPS); made by reproduce/measured_speedup.py.\n" + text)


def write_page(program):
    study = json.loads(subprocess.run([program, "reproduce", "slices", "--format", "json", "--quiet"], check=True, capture_output=True,
                                      text=True, cwd=ROOT).stdout)
    study = study[0] if isinstance(study, list) else study
    with open(PAGE, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["schedule", "gbits_per_s", "pass", "measured", "predicted"])
        for p in study["points"]:
            rate, direction = re.fullmatch(r"([\d.]+) Gb/s, (\w+)", p["figure"]).groups()
            writer.writerow([p["series"], rate, direction, f"{p['published']:.3f}", f"{p['predicted']:.3f}"])


def draw():
    import matplotlib
    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "attnsim"  # the same file for the same numbers
    from matplotlib import pyplot

    with open(PAGE, newline="") as file:
        table = sorted(csv.DictReader(file), key=lambda r: float(r["gbits_per_s"]))
    figure, panels = pyplot.subplots(1, 2, figsize=(10, 4), sharey=True, constrained_layout=True)
    for axes, direction in zip(panels, PASSES):
        for schedule, colour in SCHEDULES.items():
            own = [r for r in table if r["pass"] == direction and r["schedule"] == schedule]
            rates = [float(r["gbits_per_s"]) for r in own]
            axes.plot(rates, [float(r["predicted"]) for r in own], colour, label=f"{schedule}, predicted")
            axes.plot(rates, [float(r["measured"]) for r in own], colour + "o", label="measured")
        axes.axhline(PAPER, color="grey", linestyle=":", label="Attention2D's paper, 16 A100, as\nmany K/V heads as query heads")
        axes.set_xscale("log", base=2)
        ticks = sorted({float(r["gbits_per_s"]) for r in table})
        axes.set_xticks(ticks, [f"{t:g}" for t in ticks])
        axes.set_title(direction, fontsize=9)
        axes.set_xlabel("Gb/s of a slice's link")
    panels[0].set_ylabel("times as fast as ring")
    panels[0].set_ylim(bottom=1)
    figure.suptitle("Sixteen slices of two H200: 8 query and 4 K/V heads, 8K tokens, full mask", fontsize=10)
    panels[1].legend(fontsize=7, loc="center left", bbox_to_anchor=(1, 0.5))
    figure.savefig(PAGE.with_suffix(".svg"), metadata={"Date": None}, bbox_inches="tight")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--draw", action="store_true", help="measured runs and profile as they are")
    asked = parser.parse_args()
    program = asked.program.resolve()
    if not asked.draw:
        write_runs()
        write_profile(program)
    write_page(program)
    draw()


if __name__ == "__main__":
    main()
