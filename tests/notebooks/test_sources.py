"""Notebooks are committed without outputs."""

import json
import unittest
from pathlib import Path

NOTEBOOKS = sorted((Path(__file__).resolve().parents[2] / "notebooks").glob("*.ipynb"))


class notebooks(unittest.TestCase):
    def test_have_no_outputs(self):
        self.assertTrue(NOTEBOOKS)
        for path in NOTEBOOKS:
            for cell in json.loads(path.read_text())["cells"]:
                self.assertFalse(cell.get("outputs"), path.name)
                self.assertIsNone(cell.get("execution_count"), path.name)

    def test_check_what_they_show(self):
        for path in NOTEBOOKS:
            code = [c for c in json.loads(path.read_text())["cells"] if c["cell_type"] == "code"]
            self.assertTrue(any("assert " in "".join(c["source"]) for c in code), path.name)


if __name__ == "__main__":
    unittest.main()
