"""Measures what a search found beside the best published schedule, on emulated hosts, five runs each in turn.

    measure.py ATTNSIM ATTNSIM_HOSTS      as root (network namespaces): writes measured.csv and the table of docs/search.md
    measure.py --table                    the table alone, from measured.csv

Each case is a line of cases.txt: a name, the hosts' flags, the cluster file, the question, and the two schedules; before the runs both are
executed once with real kernels and checked against attention in fp64. Kernels are waits in the timed runs, as two cores play all hosts.
"""

import argparse
import csv
import json
import os
import shlex
import statistics
import subprocess
import sys

from pages import HERE, cases_of, write_rows, write_table

MEASURED = HERE / "measured.csv"
REPEATS = 5


def run(program, hosts_program, hosts, arguments):
    command = [hosts_program, *shlex.split(hosts), "run", "--time-out", "200", program, "validate", *arguments, "--transport", "mpi", "--format", "json", "--quiet"]
    done = subprocess.run(command, cwd=HERE, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}\n{done.stderr}")
    return json.loads(done.stdout[done.stdout.index("{"):])


def measure(options, case):
    name, hosts, cluster, question, published, found = case
    schedules = {"published": published, "found": found}
    numbers, times, predicted = {}, {kind: [] for kind in schedules}, {}
    for kind, schedule in schedules.items():
        checked = run(options.program, options.hosts, hosts, [cluster, *shlex.split(question), *shlex.split(schedule), "--emulate", "both", "--repeats", "1"])
        numbers[kind] = checked["numerics"]
        predicted[kind] = checked["predicted"]["time_s"]
    for _ in range(REPEATS):
        for kind, schedule in schedules.items():
            timed = run(options.program, options.hosts, hosts, [cluster, *shlex.split(question), *shlex.split(schedule), "--emulate", "waits", "--repeats", "1"])
            times[kind].append(timed["measured"]["time_s"])
    for kind, schedule in schedules.items():
        yield {"case": name, "schedule": kind, "flags": schedule, "predicted_s": f"{predicted[kind]:.4f}", "measured_s": f"{statistics.median(times[kind]):.4f}",
               "runs_s": " ".join(f"{t:.4f}" for t in times[kind]), "relative_error": f"{numbers[kind]['relative_error']:.2e}", "passed": numbers[kind]["passed"]}


def faster(before, after, what):
    return f"{100 * (float(before[what]) / float(after[what]) - 1):.1f} %"


def write_measured():
    rows = list(csv.DictReader(MEASURED.open(encoding="utf-8")))
    text = "| hosts | schedule | predicted s | measured s | runs | found is faster |\n|---|---|---:|---:|---|---:|\n"
    for published, found in zip(rows[::2], rows[1::2]):
        gain = f"{faster(published, found, 'measured_s')} (predicted {faster(published, found, 'predicted_s')})"
        for row in (published, found):
            text += f"| {row['case']} | {row['schedule']}: `{row['flags']}` | {row['predicted_s']} | {row['measured_s']} | {row['runs_s']} | {gain if row is found else ''} |\n"
    write_table("measured", text)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", nargs="?", type=os.path.abspath)
    parser.add_argument("hosts", nargs="?", type=os.path.abspath)
    parser.add_argument("--table", action="store_true")
    options = parser.parse_args()
    if options.table:
        return write_measured()
    rows = []
    for case in cases_of("cases.txt"):
        rows += measure(options, case)
        print(*rows[-2:], sep="\n", file=sys.stderr, flush=True)
    write_rows(MEASURED, rows)
    return write_measured()


if __name__ == "__main__":
    main()
