#!/usr/bin/env python3
"""Runs each command that README.md and docs/*.md show, as a reader would type it, and expects it to succeed.

The commands of a section run in order in one folder, so that a file which one writes is there for the next. What a page
supposes the reader has is there too: files of a cluster of two GPUs, and programs (`reader/bin`) that stand for those of
such a machine. Not run: completion scripts (tests/cli) and NCCL. What commands print is compared by scripts/examples,
where a page shows it.
"""

import argparse
import itertools
import os
import re
import shutil
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
READER = Path(__file__).resolve().parent / "reader"
BLOCK = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)
STARTS = re.compile(r"(?:\$ )?(?:build/cli/)?(?:attnsim|nvidia-smi|mpirun|torchrun) ")
YAML = re.compile(r"(?:[\w.-]+:| +-? ?\S+).*")
READERS_FILES = {
    "topologies/clusters/nd-h100-v5.yaml": "cluster.yaml",
    "tests/formats/data/nccl-topology/two-a100.xml": "topo.xml",
    "tests/formats/data/slurm/two-levels.conf": "topology.conf",
    "reproduce/measured/two-h100/fit_nvlink.json": "measured.json",
}
SHOWN = "$ "  # with what it prints: scripts/examples runs it
NOT_HERE = "--transport nccl", "attnsim completion"


def without_remark(line):
    """`line` up to a remark set far to its right."""
    return re.split(r" {3,}", line)[0]


def blocks(page):
    return [[line[4:] for line in block.splitlines()] for block in BLOCK.findall(page)]


def commands(lines):
    """The commands of a block, each with the lines between it and the one before."""
    lines, above = list(lines), []
    while lines:
        line = lines.pop(0)
        if not STARTS.match(line.strip()):
            above.append(line)
            continue
        command = without_remark(line.strip())
        while command.endswith("\\"):
            command = command[:-1] + lines.pop(0).strip()
        if not command.startswith(SHOWN):
            yield command, above
        above = []


def reader_folder(program, folder):
    """What the reader of a page has; my.yaml and my-cluster.yaml are the two GPUs of bin/nvidia-smi."""
    shutil.copytree(READER, folder, dirs_exist_ok=True)
    (folder / "build" / "cli").mkdir(parents=True)
    for link in folder / "bin" / "attnsim", folder / "build" / "cli" / "attnsim":
        link.symlink_to(program)
    for source, name in READERS_FILES.items():
        shutil.copy(ROOT / source, folder / name)
    matrix = subprocess.run([folder / "bin" / "nvidia-smi", "topo", "-m"], check=True, capture_output=True).stdout
    for name in "my.yaml", "my-cluster.yaml":
        subprocess.run([program, "topology", "import", "-", "--quiet", "--out", folder / name], input=matrix, check=True)


def write_spec(command, above, folder):
    """A sweep's specification, where the lines above the command show it."""
    spec = re.search(r"attnsim sweep (\S+)", command)
    lines = list(itertools.dropwhile(lambda line: not line.strip().startswith("cluster:"), above))
    if spec and lines:
        lines = textwrap.dedent("\n".join(lines)).split("\n")
        (folder / spec[1]).write_text("\n".join(itertools.takewhile(YAML.match, lines)) + "\n")


class reader:
    """Runs what pages show and counts what fails."""

    def __init__(self, program, python_path):
        self.program, self.python_path = program, python_path
        self.seen = set()  # commands without files of the reader's: once is enough
        self.failed = 0

    def read(self, page):
        for section in re.split(r"^(?=#)", page.read_text(), flags=re.MULTILINE):
            with tempfile.TemporaryDirectory() as name:
                self.read_section(page.relative_to(ROOT), section, Path(name))

    def read_section(self, page, section, folder):
        if not any(self.runs(block) for block in blocks(section)):
            return
        reader_folder(self.program, folder)
        files = {file.name for file in folder.iterdir() if file.is_file()} | {"--out"}
        for block in blocks(section):
            if block[0].startswith("import attnsim") and self.python_path:
                self.run([sys.executable, "-c", "\n".join(block)], folder, page, block[0])
            for command, above in commands(block):
                write_spec(command, above, folder)
                words = command.removeprefix("build/cli/")
                if words in self.seen or any(part in words for part in NOT_HERE):
                    continue
                if not any(file in words for file in files):
                    self.seen.add(words)
                self.run(["bash", "-o", "pipefail", "-c", command], folder, page, command)

    def runs(self, block):
        return block[0].startswith("import attnsim") or any(commands(block))

    def run(self, words, folder, page, said):
        environment = dict(os.environ, PATH=f"{folder}/bin:{os.environ['PATH']}", PYTHONPATH=self.python_path,
                           ATTNSIM_SOURCE=str(ROOT))
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode != 0:
            print(f"{page}: {said}\n  exit code {done.returncode}: {done.stderr.strip()}")
            self.failed += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", type=Path)
    parser.add_argument("pages", type=Path, nargs="*")
    parser.add_argument("--python-path", default="", help="where the Python package is; else its examples do not run")
    asked = parser.parse_args()
    pages = asked.pages or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    one = reader(asked.program.resolve(), asked.python_path)
    for page in pages:
        one.read(page.resolve())
    sys.exit(one.failed > 0)


if __name__ == "__main__":
    main()
