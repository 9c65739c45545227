"""The page's module answers as the command line does, field by field: test_answers.py PROGRAM PAGE

Asked are some of tests/frozen's questions with the clusters that stand there, shipped clusters, and what is refused.
"""

import json
import shlex
import subprocess
import sys
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests/frozen"))
import frozen  # noqa: E402

FOLDER = "tests/frozen/"
SHIPPED = [
    "predict nd-h100-v5 --nodes 8 --seq 1M --model llama3-70b --schedule ring",
    "predict nc-h100-v5 --seq 32K --model gpt-oss-20b --layer window --pass forward --schedule halo",
    "predict gb200-nvl72 --nodes 2 --ranks 8 --seq 256K --heads 32 --kv-heads 8 --schedule mesh --grid 4x2",
    "predict dgx-h100 --nodes 2 --seq 64K --heads 16 --schedule ulysses --framework usp",
    "predict p5 --nodes 4 --seq 256K --heads 64 --kv-heads 8 --schedule attention2d --grid 4x8 --set 'nics.bandwidth=800 Gb/s'",
    "plan dgx-h100 --nodes 2 --seq 256K --heads 64 --kv-heads 8 --top 3",
    "plan pcie-8 --seq 64K --model llama3-8b --pass forward --schedules ring,ulysses",
    "step dgx-h100 --nodes 1 --model llama3-8b --seq 8K --micro-batch 2 --shard parameters --recompute selective",
    "step dgx-h100 --nodes 4 --model llama2-7b --seq 256K --tp 4 --cp 8 --dtype fp8-linear --shard optimizer",
    "search pcie-8 --seq 16K --heads 16 --pass forward --evaluations 60",
]
REFUSED = [
    "predict nd-h100-v5 --seq 1M --heads 0 --schedule ring",
    "predict nd-h100-v5 --seq many --schedule ring",
    "predict nd-h200-v5 --seq 1M --schedule ring",
    "predict nd-h100-v5 --nodes 2 --seq 1M --set nics.bandwith=1 --schedule ring",
    "predict dgx-h100 --seq 1M --heads 30 --schedule ulysses",
    "predict dgx-h100 --seq 64M --heads 128 --batch 64 --schedule allgather",
    "plan dgx-h100 --seq 100 --heads 3 --kv-heads 2",
    "step dgx-h100 --model llama3-8b --seq 8K --tp 3",
]


def questions():
    frozen_ones = (ROOT / FOLDER / "questions.txt").read_text().splitlines()
    predictions = [q for q in frozen_ones if q.startswith("predict ")][::6]
    plans = [q for q in frozen_ones if q.startswith("plan ")][::6]
    return predictions + plans + SHIPPED + REFUSED


def request_of(question):
    """A question's words as the page's request."""
    words = shlex.split(question)
    request = {"ask": words[0], "cluster": words[1].removeprefix(FOLDER), "fields": {}, "files": FILES}
    flags = iter(words[2:])
    for flag in flags:
        value = next(flags)
        name = flag.removeprefix("--")
        if name in ("top", "evaluations"):
            request[name] = int(value)
        elif name == "schedules":
            request["schedules"] = value
        else:
            request["fields"][name] = value
    return request


FILES = {p.name: p.read_text().replace(FOLDER, "") for p in (ROOT / FOLDER).glob("frozen-*.yaml")}


def ask(requests):
    """The module's answers."""
    lines = "".join(json.dumps(request) + "\n" for request in requests)
    run = subprocess.run(["node", ROOT / "tests/page/ask.js", PAGE], input=lines, capture_output=True, text=True, check=True)
    return [json.loads(line) for line in run.stdout.splitlines()]


def told(question):
    """What the command line says: its JSON, exit code and error line."""
    command = [PROGRAM, *shlex.split(question), "--quiet", "--format", "json"]
    run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    return run.returncode, run.stdout, run.stderr.strip()


class answers(unittest.TestCase):
    def test_as_the_command_line(self):
        asked = questions()
        self.assertGreater(len(asked), 50)
        for question, answer in zip(asked, ask(request_of(q) for q in asked), strict=True):
            exit_code, out, error = told(question)
            with self.subTest(question):
                if out:  # also beside what does not fit in memory, where the page has a warning
                    wanted = json.loads(out.replace(FOLDER, ""))
                    self.assertEqual(list(frozen.differences(wanted, answer["result"])), [])
                else:
                    self.assertEqual(answer["error"]["exit"], exit_code)
                    self.assertEqual("attnsim: " + worded(answer["error"]), error)


def worded(error):
    return ("--" if error["field"] else "") + error["message"]


class imports(unittest.TestCase):
    def test_pasted_topologies_as_the_command_line(self):
        folders = sorted(p for p in (ROOT / "tests/formats/data").iterdir() if p.name != "kineto")
        files = [sorted(p for p in folder.rglob("*") if p.is_file())[0] for folder in folders]
        asked = ({"ask": "import", "files": {f.name: f.read_text()}, "name": f.stem} for f in files)
        for file, answer in zip(files, ask(asked), strict=True):
            with self.subTest(file.name):
                command = [PROGRAM, "topology", "import", file.name]
                run = subprocess.run(command, cwd=file.parent, capture_output=True, text=True, check=False)
                self.assertEqual(answer.get("yaml", ""), run.stdout)
                said = [f"warning: {line}" for line in answer.get("warnings", [])]
                if "error" in answer:
                    said.append("attnsim: " + worded(answer["error"]))
                self.assertEqual("\n".join(said), run.stderr.strip())

    def test_names_of_files_have_no_folders(self):
        (answer,) = ask([{"ask": "import", "files": {"../etc/x": ""}}])
        self.assertEqual(answer["error"]["message"], "file: '../etc/x': expected a name without folders")


if __name__ == "__main__":
    PROGRAM, PAGE = (str(Path(argument).resolve()) for argument in sys.argv[1:3])
    unittest.main(argv=sys.argv[:1])
