"""The folders' rules: who may include whom, what core code never says, which sources are compiled once.

check_includes(root), check_core(root), check_backends(root), check_schedules(root) and check_compile_commands(root, file) yield
one line for each broken rule.
"""

import json
import re
from pathlib import Path

# Folder: what it may include besides itself. The order is one of dependence: nothing stands before what it includes.
# The rooms of model/ and of kernels/ are folders of their own; "model" is its files outside rooms.
MODEL = ["model", "model/attention", "model/cluster", "model/schedule", "model/cost", "model/layer", "model/step", "model/limit"]
ANSWERS = [*MODEL, "sim", "ask"]
MAY_INCLUDE = {
    "model": [],
    "model/attention": ["model"],
    "model/cluster": ["model", "model/attention"],
    "model/schedule": ["model", "model/attention", "model/cluster"],
    "model/cost": MODEL[:4],
    "model/layer": MODEL[:5],
    "model/step": MODEL[:6],
    "model/limit": MODEL[:5],
    "sim": MODEL,
    "ask": [*MODEL, "sim"],
    "kernels": MODEL,
    "kernels/cpu": [*MODEL, "kernels"],
    "kernels/cuda": [*MODEL, "kernels"],
    "kernels/cudnn": [*MODEL, "kernels", "kernels/cuda"],
    "calibrate": [*MODEL, "sim"],
    "validate": [*ANSWERS, "kernels", "kernels/cpu", "calibrate"],  # the CPU's reference is the oracle
    "sweep": ANSWERS,
    "reproduce": ANSWERS,
    "formats": [*MODEL, "sim"],
    "report": [*ANSWERS, "formats"],
    "cli": [*ANSWERS, "kernels", "calibrate", "validate", "sweep", "reproduce", "formats", "report"],
    "python": [*ANSWERS, "calibrate", "sweep", "reproduce", "formats", "report"],
    "web": [*ANSWERS, "formats", "report"],
}
WITH_ROOMS = ("model", "kernels")

CORE = ("model", "sim", "ask")  # knows no command line
# What other programs' settings are called; attnsim has no such flags.
OTHERS_FLAGS = {"ask/dynamic_groups.cpp", "ask/frameworks.cpp", "ask/step_settings.cpp"}

# What programs offer which schedules, and published runs of schedules.
KNOW_SCHEDULES = {"ask/frameworks.cpp", "reproduce", "tests"}

SOURCES = (".hpp", ".cpp", ".cuh", ".cu")
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.MULTILINE)
TOKEN = re.compile(r"""
      //[^\n]* | /\*.*?\*/                                    # comments
    | ^[ \t]*\#[ \t]*include[^\n]*
    | R"(?P<mark>[^(\s]*)\((?P<raw>.*?)\)(?P=mark)"
    | "(?P<text>(?:\\.|[^"\\\n])*)"
    | '(?:\\.|[^'\\\n])+'
    """, re.VERBOSE | re.DOTALL | re.MULTILINE)
FLAG = re.compile(r"--[a-z]")
DESCRIBED = re.compile(r'\.name = "([^"]+)"')  # in a schedule's description


def folder_of(path):
    parts = Path(path).parts
    has_room = parts[0] in WITH_ROOMS and len(parts) > 2
    return f"{parts[0]}/{parts[1]}" if has_room else parts[0]


def top_folders(root):
    """Without build trees and what tools leave behind."""
    for path in sorted(root.iterdir()):
        if path.is_dir() and not re.match(r"\.|build|.*\.egg-info$|node_modules$", path.name):
            yield path.name


def sources(root, *folders):
    for folder in folders:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in SOURCES:
                yield path.relative_to(root)


def string_literals(text):
    for token in TOKEN.finditer(text):
        literal = token["text"] if token["raw"] is None else token["raw"]
        if literal is not None:
            yield literal


def check_includes(root):
    folders = [folder for folder in top_folders(root) if folder != "tests"]  # tests may include all
    for path in sources(root, *folders):
        folder = folder_of(path)
        for included in INCLUDE.findall((root / path).read_text()):
            if folder not in MAY_INCLUDE:
                yield f"{path}: {folder}/ is not in the table of tests/structure/folders.py"
                break
            other = folder_of(included)
            if other != folder and other not in MAY_INCLUDE[folder]:
                yield f"{path}: includes {included}, but {folder}/ may not include {other}/"


def check_core(root):
    for path in sources(root, *CORE):
        text = (root / path).read_text()
        if re.search(r"#[ \t]*include[ \t]*[<\"]CLI/", text):
            yield f"{path}: includes CLI11"
        if str(path) in OTHERS_FLAGS:
            continue
        for literal in string_literals(text):
            if FLAG.search(literal):
                yield f'{path}: names a flag: "{literal}"'


def check_backends(root):
    """A kernel back end is named in its own folder alone, and switched on by CMake alone."""
    names = {path.name for path in (root / "kernels").iterdir() if path.is_dir()}
    for path in sources(root, *(folder for folder in top_folders(root) if folder not in ("tests", "formats"))):
        own = path.parts[1] if path.parts[0] == "kernels" else ""
        for literal in string_literals((root / path).read_text()):
            if literal in names and (own not in names):
                yield f'{path}: names the back end "{literal}"'
        for line in re.findall(r"^[ \t]*#[ \t]*if.*(?:WITH|HAS)_.*(?:" + "|".join(sorted(names)).upper() + ").*$",
                               (root / path).read_text(), re.MULTILINE):
            yield f"{path}: {line.strip()}"


def check_schedules(root):
    """Nothing is asked of a schedule's name: its file describes it."""
    described = sources(root, "model/schedule/algorithms")
    names = {name for path in described for name in DESCRIBED.findall((root / path).read_text())}
    asked = re.compile(rf'(?:[=!]=|_with\()\s*"(?:{"|".join(sorted(names))})"')
    for path in sources(root, *top_folders(root)):
        if path.parts[0] in KNOW_SCHEDULES or str(path) in KNOW_SCHEDULES:
            continue
        for found in asked.findall((root / path).read_text()):
            yield f"{path}: asks for a schedule by name: {found}"


def check_compile_commands(root, commands):
    """No source of the product is compiled by two targets."""
    seen = set()
    for command in json.loads(Path(commands).read_text()):
        path = Path(command["directory"], command["file"]).resolve()
        if not path.is_relative_to(root) or path.is_relative_to(root / "tests"):
            continue
        if path in seen:
            yield f"{path.relative_to(root)}: compiled by two targets"
        seen.add(path)
