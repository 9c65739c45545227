"""Questions whose answers must not change unless somebody means it.

    frozen.py PROGRAM            asks all of questions.txt, compares with answers.jsonl field by field, prints what differs
    frozen.py PROGRAM --write    writes answers.jsonl

The answers were written by the program as it was before questions and answers had types (commit 56008a0); an answer that
is meant to change is written again, and the commit says why. Clusters and profiles are frozen too: they stand here.
"""

import argparse
import json
import shlex
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
RELATIVE = 1e-9  # of numbers: other compilers round otherwise


def ask(program, question):
    command = [program, *shlex.split(question), "--quiet"]
    with tempfile.TemporaryDirectory() as folder:
        is_sweep = question.startswith("sweep ")
        out = Path(folder) / "out.csv"
        command += ["--out", str(out)] if is_sweep else ["--format", "json"]
        run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        answer = {"exit": run.returncode}
        if is_sweep and out.exists():
            answer["rows"] = [row.split(",") for row in out.read_text().splitlines()]
        elif run.stdout:
            answer["json"] = json.loads(run.stdout)
        return answer


def differences(wanted, got, place=""):
    """Fields of `wanted` that are missing or other in `got`; new fields are no difference."""
    if isinstance(wanted, dict) and isinstance(got, dict):
        for key, value in wanted.items():
            if key not in got:
                yield f"{place}.{key}: missing"
            else:
                yield from differences(value, got[key], f"{place}.{key}")
    elif isinstance(wanted, list) and isinstance(got, list) and len(wanted) == len(got):
        for i, (one, other) in enumerate(zip(wanted, got)):
            yield from differences(one, other, f"{place}[{i}]")
    elif not same(wanted, got):
        yield f"{place}: {json.dumps(wanted)[:80]}, now {json.dumps(got)[:80]}"


def same(one, other):
    if one == other:
        return True
    try:
        return abs(float(one) - float(other)) <= RELATIVE * max(abs(float(one)), abs(float(other)))
    except (TypeError, ValueError):
        return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--write", action="store_true")
    options = parser.parse_args()
    program = str(Path(options.program).resolve())
    questions = (HERE / "questions.txt").read_text().splitlines()
    with ThreadPoolExecutor() as pool:
        answers = list(pool.map(lambda question: ask(program, question), questions))
    file = HERE / "answers.jsonl"
    if options.write:
        file.write_text("".join(json.dumps(answer, separators=(",", ":")) + "\n" for answer in answers))
        return 0
    wanted = [json.loads(line) for line in file.read_text().splitlines()]
    changed = 0
    for number, (question, before, now) in enumerate(zip(questions, wanted, answers, strict=True), 1):
        found = list(differences(before, now))
        if found:
            changed += 1
            print(f"{number}: {question}")
            for line in found[:5]:
                print(f"    {line}")
    print(f"{len(questions)} questions, {changed} with another answer")
    return 1 if changed else 0


if __name__ == "__main__":
    sys.exit(main())
