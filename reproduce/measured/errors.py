#!/usr/bin/env python3
"""Recomputes the errors that README.md publishes of what was measured with this program (reproduce/measured).

    reproduce/measured/errors.py PROGRAM           prints the table; exit code 1 where README.md has another
    reproduce/measured/errors.py PROGRAM --write   writes it into README.md, and every point beside the data (points.csv)

PROGRAM is attnsim. Every profile is fitted to files fit_*, every error is of files held_out_* and schedules_*.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
MEASURED = Path("reproduce/measured")
# Sockets are as fast as the machine's processors copy: a file a machine.
CLUSTER = {"kernels": "tests/gpu/two-h100.yaml", "nvlink": "tests/gpu/two-h100.yaml",
           "host_memory": "tests/gpu/two-h100-host-memory.yaml", "sockets": "tests/gpu/two-h200-sockets.yaml"}


@dataclass
class study:
    folder: str
    device: str
    transports: tuple[str, ...]
    points: list = field(default_factory=list)
    named_right: dict = field(default_factory=dict)

    def run(self, program):
        """Fits to one set of files, predicts the other."""
        with tempfile.TemporaryDirectory() as scratch:
            profile = f"{scratch}/profile.yaml"
            call(program, "calibrate", "--device", self.device, "--quiet", "--out", profile,
                 "--measurements", *self.files("fit_{}.json"))
            held_out = [*self.files("held_out_{}.json"), *self.files("schedules_{}.jsonl")]
            result = json.loads(call(program, "compare", CLUSTER["nvlink"], *held_out, "--device", profile,
                                     "--points", f"{scratch}/points.csv", "--format", "json"))
            self.csv = Path(scratch, "points.csv").read_text()
        self.points, self.named_right = result["points"], result["fastest_named_right"]
        return self

    def files(self, pattern):
        for transport in self.transports:
            path = MEASURED / self.folder / pattern.format(transport)
            if (ROOT / path).exists():
                yield f"{path}@{CLUSTER[transport]}"

    def row(self, title, *parts, where=lambda what: True):
        points = [p for p in self.points if p["part"] in parts and where(p["what"])]
        sizes = sorted(abs(p["error"]) for p in points)
        middle, high = quantile(sizes, 0.5), quantile(sizes, 0.95)
        inside = sum(p["interval_s"][0] <= p["measured_s"] <= p["interval_s"][1] for p in points) / len(points)
        return f"| {title} | {len(points)} | {100 * middle:.1f} % | {100 * high:.1f} % | {100 * inside:.0f} % |"


def quantile(ascending, share):
    """As calibrate/measurements.hpp has it."""
    place = share * (len(ascending) - 1)
    below = int(place)
    above = min(below + 1, len(ascending) - 1)
    return ascending[below] + (place - below) * (ascending[above] - ascending[below])


def call(program, *arguments):
    return subprocess.run([program, *map(str, arguments)], cwd=ROOT, check=True, capture_output=True, text=True).stdout


def table(h100, h200, again):
    sockets = lambda what: "sockets:" in what
    others = lambda what: not sockets(what)
    moved = ("transfers", "collectives")
    of_schedules = lambda name: lambda what: what.startswith(f"{name}: ")
    return "\n".join([
        "| held out | points | median error | 95 % below | in the 90 % interval |",
        "|---|---|---|---|---|",
        h100.row("H100: attention kernels (ours, cuDNN 9.19)", "kernels"),
        h100.row("H100: memory operations", "memory"),
        h200.row("H200: attention kernels (ours, cuDNN 9.19)", "kernels"),
        h200.row("memory operations", "memory"),
        h200.row("transfers and collectives, NVLink and host memory", *moved, where=others),
        h200.row("the same, sockets", *moved, where=sockets),
        h200.row("the same, all", *moved),
        h200.row("kernel beside transfer, both launch orders", "overlap"),
        h200.row("whole schedules, NVLink", "schedules", where=of_schedules("two-h100")),
        h200.row("of these as CUDA graphs", "schedules", where=lambda what: "--cuda-graph" in what),
        h200.row("whole schedules, through host memory", "schedules", where=of_schedules("two-h100-host-memory")),
        h200.row("whole schedules, through sockets", "schedules", where=of_schedules("two-h200-sockets")),
        h200.row("whole schedules, all", "schedules"),
        again.row("H200, a second run: attention kernels", "kernels"),
        again.row("transfers and collectives, NVLink and host memory", *moved, where=others),
        again.row("the same, sockets", *moved, where=sockets),
        again.row("kernel beside transfer, both launch orders", "overlap"),
        again.row("whole schedules, through sockets", "schedules"),
    ])


def with_table(text, made):
    """README.md with the table in the place of the one that it has."""
    lines = text.split("\n")
    first = next(i for i, line in enumerate(lines) if line.strip().startswith("| held out |"))
    last = next(i for i in range(first, len(lines)) if not lines[i].strip().startswith("|"))
    indent = lines[first][:len(lines[first]) - len(lines[first].lstrip())]
    return "\n".join(lines[:first] + [indent + line for line in made.split("\n")] + lines[last:])


def with_named_right(text, studies):
    """With how often the fastest schedule was named right, in the place of what it says of that."""
    in_first, in_second = (f"{s.named_right['right']} of {s.named_right['of']}" for s in studies)
    pattern = r"right in \d+ of \d+ problems, and in \d+ of \d+"
    made, found = re.subn(pattern, f"right in {in_first} problems, and in {in_second}", text)
    assert found == 1, pattern
    return made


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    program = asked.program.resolve()
    every = ("nvlink", "host_memory", "sockets")
    studies = [study("h100", "h100-sxm5", ("kernels",)).run(program),
               study("h200", "h200-sxm5", every).run(program),
               study("h200-again", "h200-sxm5", every).run(program)]
    made = table(*studies)
    print(made)
    for s in studies[1:]:
        print(f"{s.folder}: fastest named right in {s.named_right['right']} of {s.named_right['of']} problems")
    readme = ROOT / "README.md"
    text = with_named_right(with_table(readme.read_text(), made), studies[1:])
    if asked.write:
        readme.write_text(text)
        for s in studies:
            (ROOT / MEASURED / s.folder / "points.csv").write_text(s.csv)
    elif text != readme.read_text():
        sys.exit("README.md has other errors: run again with --write")


if __name__ == "__main__":
    main()
