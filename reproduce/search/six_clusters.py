"""Searches on six clusters and writes docs/search.csv and the table of docs/search.md.

    six_clusters.py ATTNSIM [--evaluations N]
"""

import argparse
import json
import subprocess
import sys
from pathlib import Path

from pages import DOCS, HERE, cases_of, write_rows, write_table


def ask(program, cluster, question, evaluations):
    command = [program, "search", f"{cluster}.yaml", *question.split(), "--evaluations", evaluations, "--out", f"found-{cluster}.yaml", "--format", "json", "--quiet"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def schedule_of(p):
    words = [p["schedule"], p["levels"] or "{}x{}".format(*p["grid"])]
    if p["ulysses"] > 1:
        words.append(f"U{p['ulysses']}")
    if p["parts"] > 1:
        words.append(f"in {p['parts']} parts")
    if p["shares"]:
        words.append("unequal shares")
    return " ".join(words)


def row_of(cluster, question, r):
    best, found = r["published"], r["found"]
    return {
        "cluster": cluster,
        "question": question,
        "published": schedule_of(best),
        "published_ms": f"{1e3 * best['time_s']:.2f}",
        "found": schedule_of(found),
        "found_ms": f"{1e3 * found['time_s']:.2f}",
        "faster": f"{100 * r['gain']:.1f} %",
        "times_limit": f"{found['times_limit']:.2f}",
        "limit_bound_by": found["limit_bound_by"],
        "exposed_ms": f"{1e3 * best['exposed_communication_s']:.2f} -> {1e3 * found['exposed_communication_s']:.2f}",
        "compute_ms": f"{1e3 * best['compute_s']:.2f} -> {1e3 * found['compute_s']:.2f}",
    }


def table(rows):
    text = "| cluster | question | best published | found | faster | x limit | limit bound by | exposed, ms | compute, ms |\n|---|---|---|---|---:|---:|---|---|---|\n"
    for r in rows:
        text += (f"| {r['cluster']} | {r['question']} | {r['published']}: {r['published_ms']} ms | {r['found']}: {r['found_ms']} ms | {r['faster']} | "
                 f"{r['times_limit']} | {r['limit_bound_by']} | {r['exposed_ms']} | {r['compute_ms']} |\n")
    return text


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--evaluations", default="4000")
    options = parser.parse_args()
    program = str(Path(options.program).resolve())
    rows = []
    for cluster, question in cases_of("questions.txt"):
        rows.append(row_of(cluster, question, ask(program, cluster, question, options.evaluations)))
        print(rows[-1], file=sys.stderr, flush=True)
    write_rows(DOCS / "search.csv", rows)
    write_table("six", table(rows))


if __name__ == "__main__":
    main()
