"""The folders' rules hold in this tree, and are noticed where they are broken."""

import json
import sys
import tempfile
import unittest
from pathlib import Path

import folders

ROOT = Path(__file__).resolve().parents[2]


class this_tree(unittest.TestCase):
    def test_includes_point_one_way(self):
        self.assertEqual(list(folders.check_includes(ROOT)), [])

    def test_core_knows_no_command_line(self):
        self.assertEqual(list(folders.check_core(ROOT)), [])

    def test_back_ends_are_named_in_their_folders_alone(self):
        self.assertEqual(list(folders.check_backends(ROOT)), [])

    def test_schedules_are_not_asked_by_name(self):
        self.assertEqual(list(folders.check_schedules(ROOT)), [])

    def test_folders_say_what_may_enter_them(self):
        rooms = {room for room in folders.MAY_INCLUDE if room.startswith("model/")}
        for folder in (set(folders.top_folders(ROOT)) - {"docs"}) | rooms:  # docs/ has index.md
            text = (ROOT / folder / "README.md").read_text()
            self.assertTrue(0 < len(text.splitlines()) <= 5, folder)

    def test_every_source_is_compiled_once(self):
        self.assertEqual(list(folders.check_compile_commands(ROOT, COMPILE_COMMANDS)), [])


class the_table(unittest.TestCase):
    def test_is_ordered_so_it_has_no_cycle(self):
        above = []
        for folder, others in folders.MAY_INCLUDE.items():
            self.assertEqual([o for o in others if o not in above], [], folder)
            above.append(folder)

    def test_names_folders_that_exist(self):
        for folder in folders.MAY_INCLUDE:
            self.assertTrue(any(folders.sources(ROOT, folder)), folder)

    def test_exceptions_are_needed(self):
        for path in folders.OTHERS_FLAGS:
            literals = folders.string_literals((ROOT / path).read_text())
            self.assertTrue(any(folders.FLAG.search(literal) for literal in literals), path)


class a_broken_tree(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name).resolve()

    def write(self, path, text):
        (self.root / path).parent.mkdir(parents=True, exist_ok=True)
        (self.root / path).write_text(text)

    def test_includes_upwards(self):
        self.write("model/cluster/rings.cpp", '#include "model/cluster/rings.hpp"\n#include "model/cost/local.hpp"\n')
        self.write("python/module.cpp", '  #  include "cli/flags.hpp"\n')
        self.write("cli/main.cpp", '#include "python/bindings.hpp"\n')
        self.write("model/error.hpp", '#include "model/attention/heads.hpp"\n')
        self.assertEqual(list(folders.check_includes(self.root)), [
            "cli/main.cpp: includes python/bindings.hpp, but cli/ may not include python/",
            "model/cluster/rings.cpp: includes model/cost/local.hpp, but model/cluster/ may not include model/cost/",
            "model/error.hpp: includes model/attention/heads.hpp, but model/ may not include model/attention/",
            "python/module.cpp: includes cli/flags.hpp, but python/ may not include cli/",
        ])

    def test_has_a_room_nobody_knows(self):
        self.write("model/attic/box.hpp", '#include "model/units.hpp"\n#include "model/config.hpp"\n')
        self.assertEqual(list(folders.check_includes(self.root)),
                         ["model/attic/box.hpp: model/attic/ is not in the table of tests/structure/folders.py"])

    def test_has_a_folder_nobody_knows(self):
        self.write("attic/box.cpp", '#include "model/units.hpp"\n')
        self.write("build-asan/assets.cpp", '#include "nowhere.hpp"\n')
        self.assertEqual(list(folders.check_includes(self.root)),
                         ["attic/box.cpp: attic/ is not in the table of tests/structure/folders.py"])

    def test_names_flags(self):
        self.write("sim/a.cpp", 'int i = 3; // not "--this"\n/* nor\n "--this" */ char c = \'"\';\nauto s = "give --seq";\n')
        self.write("ask/b.hpp", 'auto s = R"x(a "quoted" --flag)x"; auto t = "a -- b"; auto u = "a\\"--heads";\n')
        self.write("model/c.cpp", "#include <CLI/CLI.hpp>\n")
        self.write("cli/d.cpp", '#include <CLI/CLI.hpp>\nauto s = "--seq";\n')
        self.assertEqual(list(folders.check_core(self.root)), [
            "model/c.cpp: includes CLI11",
            'sim/a.cpp: names a flag: "give --seq"',
            'ask/b.hpp: names a flag: "a "quoted" --flag"',
            'ask/b.hpp: names a flag: "a\\"--heads"',
        ])

    def test_asks_for_a_back_end_by_name(self):
        self.write("kernels/abacus/backend.cpp", 'auto name = "abacus";\n#if ATTNSIM_WITH_ABACUS\n#endif\n')
        self.write("kernels/backends.cpp", '// "abacus"\nbool is = name == "abacus";\n')
        self.write("cli/run.cpp", '#if ATTNSIM_WITH_ABACUS\nauto text = "an abacus";\n#endif\n')
        self.assertEqual(list(folders.check_backends(self.root)), [
            "cli/run.cpp: #if ATTNSIM_WITH_ABACUS",
            "kernels/abacus/backend.cpp: #if ATTNSIM_WITH_ABACUS",
            'kernels/backends.cpp: names the back end "abacus"',
        ])

    def test_asks_for_a_schedule_by_name(self):
        self.write("model/schedule/algorithms/ring.cpp", 'algorithm a{.name = "ring"}; auto s = b.stream("ring");\n')
        self.write("cli/a.cpp", 'auto s = "ring"; if (s.schedule == "ring" || name.ends_with("ring")) {}\n')
        self.write("reproduce/b.cpp", 'if (s.schedule != "ring") {}\n')
        self.assertEqual(list(folders.check_schedules(self.root)), [
            'cli/a.cpp: asks for a schedule by name: == "ring"',
            'cli/a.cpp: asks for a schedule by name: _with("ring"',
        ])

    def test_compiles_a_source_twice(self):
        def command(file):
            return {"directory": str(self.root / "build"), "file": file}

        self.write("commands.json", json.dumps([
            command("../cli/flags.cpp"), command(str(self.root / "cli/flags.cpp")), command("../cli/main.cpp"),
            command("../tests/fuzz/formats_fuzz.cpp"), command("../tests/fuzz/formats_fuzz.cpp"),
        ]))
        self.assertEqual(list(folders.check_compile_commands(self.root, self.root / "commands.json")),
                         ["cli/flags.cpp: compiled by two targets"])


if __name__ == "__main__":
    COMPILE_COMMANDS = sys.argv.pop(1)
    unittest.main()
