"""What the programs of this folder share: lists of cases, rows as CSV, tables between marks of docs/search.md."""

import csv
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
DOCS = HERE.parents[1] / "docs"
sys.path.append(str(HERE.parent))
from made import with_made  # noqa: E402


def cases_of(name):
    """The lines of a file here but comments, each by its columns."""
    lines = (HERE / name).read_text(encoding="utf-8").splitlines()
    return [[part.strip() for part in line.split("|")] for line in lines if line and not line.startswith("#")]


def write_rows(file, rows):
    with file.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def write_table(mark, table):
    """Into docs/search.md, between `<!-- mark -->` and the end."""
    page = DOCS / "search.md"
    page.write_text(with_made(page.read_text(encoding="utf-8"), mark, table), encoding="utf-8")
