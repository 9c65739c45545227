"""The Python package: the program's numbers, its messages, frames that add up."""

import ast
import inspect
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path

import attnsim

SOURCE = Path(__file__).resolve().parents[2]
sys.path.append(str(SOURCE / "python"))
import stub  # noqa: E402

PROGRAM = os.environ.get("ATTNSIM_PROGRAM", SOURCE / "build/cli/attnsim")

try:
    import pandas
except ImportError:
    pandas = None


def ask(*arguments):
    return json.loads(subprocess.run([PROGRAM, *arguments, "--format", "json"], check=True, capture_output=True).stdout)


class requests(unittest.TestCase):
    def test_say_what_they_are(self):
        cluster = attnsim.Cluster("dgx-h100", nodes=2)
        self.assertEqual(cluster.devices, 16)
        self.assertEqual(cluster.memory_bytes, 80 * 2**30)
        self.assertEqual(repr(cluster), "Cluster('dgx-h100', 16 x h100-sxm5)")
        layer = attnsim.Attention("1M", model="llama3-8b", documents=[2**19, 2**19], window=4096)
        self.assertEqual((layer.seq, layer.heads, layer.kv_heads, layer.head_dim), (2**20, 32, 8, 128))
        self.assertEqual((layer.documents, layer.mask, layer.dtype), ([2**19, 2**19], "causal", "bf16"))

    def test_padding_fills_up(self):
        layer = attnsim.Attention(1000, pad_to=64)
        self.assertEqual((layer.seq, layer.padding), (1024, 24))

    def test_clusters_of_ones_own(self):
        cluster = attnsim.Cluster.from_yaml(
            "{name: mine, device: h100-sxm5, nodes: 4, devices_per_node: 1,"
            " nics: {per_node: 1, bandwidth: 400 Gb/s, attach: one-per-device}, fabric: {kind: star}}", nodes=3)
        self.assertEqual((cluster.name, cluster.nodes, cluster.devices), ("mine", 3, 3))

    def test_bad_input_is_one_line(self):
        cluster, layer = attnsim.Cluster("dgx-h100", nodes=1), attnsim.Attention("64K")
        cases = [
            (lambda: attnsim.Attention("64k"), attnsim.InputError,
             "seq: '64k': expected a whole number of at least 1, such as 8, 128K or 1M"),
            (lambda: attnsim.Cluster("dgx-h100", set={"nics.bandwidth": 400}), attnsim.InputError,
             "set: nics.bandwidth: '400': expected a bandwidth with its unit, such as '400 Gb/s' or '50 GB/s'"),
            (lambda: attnsim.Cluster.from_yaml("name: x\nnodse: 3"), attnsim.InputError, "yaml:2: nodse: unknown key"),
            (lambda: attnsim.Strategy("ringg"), attnsim.InputError, "schedule: 'ringg': expected one of: ring, "),
            (lambda: attnsim.predict(cluster, layer, attnsim.Strategy("mesh", grid=(3, 3))), attnsim.Infeasible,
             "grid: '3x3': has 9 ranks, the cluster 8; feasible: 8x1, 4x2, 2x4, 1x8"),
            (lambda: attnsim.predict(cluster, layer, ranks=9), attnsim.Infeasible, "ranks: '9': "),
            (lambda: attnsim.Cluster("dgx-h100", nodes=0), attnsim.InputError,
             "nodes: '0': expected a whole number of at least 1"),
            (lambda: attnsim.Cluster("dgx-h100", nodes=2.5), attnsim.InputError,
             "nodes: '2.5': expected a whole number of at least 1"),
            (lambda: attnsim.Attention("64K", heads=2.5), attnsim.InputError,
             "heads: '2.5': expected a whole number of at least 1"),
            (lambda: attnsim.Attention("64K", mask=3), attnsim.InputError, "mask: '3': expected one of: full, causal"),
            (lambda: attnsim.Attention("64K", pad_to=0.5), attnsim.InputError,
             "pad_to: '0.5': expected a whole number of at least 1"),
            (lambda: attnsim.Strategy("mesh", grid=(2.5, 1)), attnsim.InputError,
             "grid: '2.5x1': expected ROWSxCOLUMNS, such as 8x4"),
            (lambda: attnsim.predict(cluster, layer, pass_="foward"), attnsim.InputError,
             "pass_: 'foward': expected one of: forward, backward, both, recompute; did you mean forward?"),
            (lambda: attnsim.plan(cluster, layer, schedules=["ringg"]), attnsim.InputError,
             "schedule: 'ringg': expected one of: "),
            (lambda: attnsim.plan(cluster, layer, schedules=[]), attnsim.InputError,
             "schedules: '': expected names, as attnsim.schedules() lists them"),
            (lambda: attnsim.plan(cluster, layer, schedules=""), attnsim.InputError,
             "schedules: '': expected names, as attnsim.schedules() lists them"),
            (lambda: attnsim.predict(cluster, layer, attnsim.Strategy("ring", partials="fp32")), attnsim.InputError,
             "partials: 'fp32': expected with a schedule that reads it: attention2d, "),
            (lambda: attnsim.Cluster("\33[2J"), attnsim.InputError, "cluster: '\\x1b[2J': expected a file or one of: "),
        ]
        for call, kind, message in cases:
            with self.subTest(message), self.assertRaises(kind) as caught:
                call()
            self.assertTrue(str(caught.exception).startswith(message), caught.exception)
            self.assertNotIn("\n", str(caught.exception))
            self.assertIsInstance(caught.exception, ValueError)

    def test_arguments_of_other_kinds_are_type_errors(self):
        cluster, layer = attnsim.Cluster("dgx-h100", nodes=1), attnsim.Attention("64K")
        cases = [
            (lambda: attnsim.Cluster("dgx-h100", node=1), "Cluster() has no argument node; did you mean nodes?"),
            (lambda: attnsim.Attention("64K", hedas=8), "Attention() has no argument hedas; did you mean heads?"),
            (lambda: attnsim.Strategy("ring", grd=(8, 1)), "Strategy() has no argument grd; did you mean grid?"),
            (lambda: attnsim.predict(cluster, layer, rank=8), "predict() has no argument rank; did you mean ranks?"),
            (lambda: attnsim.plan(cluster, layer, schedule="ring"),
             "plan() has no argument schedule; did you mean schedules?"),
            (lambda: attnsim.simulate(cluster, layer, unheard_of=8), "simulate() has no argument unheard_of"),
            (lambda: attnsim.predict("dgx-h100", layer), "cluster: expected an attnsim.Cluster, not 'dgx-h100'"),
            (lambda: attnsim.plan(cluster, "64K"), "attention: expected an attnsim.Attention, not '64K'"),
            (lambda: attnsim.simulate(cluster, layer, "ring"), "strategy: expected an attnsim.Strategy, not 'ring'"),
            (lambda: attnsim.Cluster("dgx-h100", set="a=b"), "set: expected a dictionary of keys and values"),
            (lambda: attnsim.calibrate("h100-sxm5", ["fit.json"]),
             "measurements: expected pairs of a file and its Cluster, not 'fit.json'"),
        ]
        for call, message in cases:
            with self.subTest(message), self.assertRaises(TypeError) as caught:
                call()
            self.assertEqual(str(caught.exception), message)

    def test_equal_questions_have_equal_answers(self):
        layer = attnsim.Attention("128K", documents=["128K"], window="128K")
        self.assertEqual((layer.documents, layer.window), ([], 0))
        self.assertEqual(attnsim.Attention("128K", window=2**17 - 1).window, 2**17 - 1)
        packed = attnsim.Attention("128K", documents=["96K", "32K"], window="96K")
        self.assertEqual((packed.documents, packed.window), ([96 * 1024, 32 * 1024], 0))

    def test_are_pickled(self):
        cluster = attnsim.Cluster("nd-h100-v5", nodes=2, host="pytorch", set={"nics.bandwidth": "200 Gb/s",
                                                                              "node.latency": "2 us"})
        text = ("{name: mine, device: h100-sxm5, nodes: 4, devices_per_node: 1,"
                " nics: {per_node: 1, bandwidth: 400 Gb/s, attach: one-per-device}, fabric: {kind: star}}")
        layer = attnsim.Attention(1000, heads=16, kv_heads=8, window=128, pad_to=64)
        strategy = attnsim.Strategy("attention2d", grid=(4, 4), tokens="striped", gradients="fp32")
        chosen = attnsim.predict(cluster, layer, strategy).strategy
        self.assertEqual(pickle.loads(pickle.dumps(attnsim.Cluster.from_yaml(text, nodes=3))).nodes, 3)
        copied = [pickle.loads(pickle.dumps(one)) for one in (cluster, layer)]
        self.assertEqual([repr(one) for one in copied], [repr(cluster), repr(layer)])
        for one in strategy, chosen:
            again = attnsim.predict(*copied, pickle.loads(pickle.dumps(one)))
            self.assertEqual(again.to_dict(), attnsim.predict(cluster, layer, one).to_dict())

    def test_version_is_the_programs(self):
        printed = subprocess.run([PROGRAM, "--version"], check=True, capture_output=True, text=True).stdout
        self.assertEqual(printed, f"attnsim {attnsim.__version__}\n")


class predictions(unittest.TestCase):
    cluster = attnsim.Cluster("nd-h100-v5", nodes=2, set={"nics.bandwidth": "200 Gb/s"})
    layer = attnsim.Attention("128K", heads=64, kv_heads=8)
    flags = ["nd-h100-v5", "--nodes", "2", "--set", "nics.bandwidth=200 Gb/s", "--seq", "128K", "--heads", "64",
             "--kv-heads", "8"]

    def test_predict_is_the_programs(self):
        for by in "simulation", "analytic":
            p = attnsim.predict(self.cluster, self.layer, attnsim.Strategy("attention2d", grid=(4, 4)), by=by)
            expected = ask("predict", *self.flags, "--schedule", "attention2d", "--grid", "4x4", "--by", by)
            self.assertEqual(p.to_dict(), expected)
        problem = expected.pop("problem")
        self.assertEqual(problem.pop("pass"), p.pass_)
        self.assertEqual({name: getattr(p.problem, name) for name in problem}, problem)
        self.assertEqual((problem["seq"], problem["kv_heads"]), (2**17, 8))
        for name, value in expected.items():
            figure = getattr(p, name)
            if isinstance(figure, tuple):
                figure = figure._asdict() if hasattr(figure, "_fields") else list(figure)
            self.assertEqual(figure, value, name)

    def test_parts_have_names(self):
        p = attnsim.predict(self.cluster, self.layer)
        self.assertEqual((p.bottleneck.kind, p.bottleneck[0]), ("compute", "compute"))
        self.assertEqual(repr(p.bytes_sent_per_rank), f"BytesSentPerRank(max={p.bytes_sent_per_rank.max}, "
                                                      f"mean={p.bytes_sent_per_rank.mean})")
        self.assertEqual(type(p.bottleneck), attnsim.Prediction.Bottleneck)

    def test_a_host_launches_what_is_short(self):
        cluster, layer = attnsim.Cluster("dgx-h100", nodes=1, host="pytorch"), attnsim.Attention("4K", heads=8)
        p = attnsim.predict(cluster, layer)
        self.assertEqual((cluster.host, attnsim.hosts()), ("pytorch", ["pytorch"]))
        self.assertEqual(p.bottleneck.kind, "host")
        self.assertGreater(p.time_s, p.host_s)  # each pass ends after its last launch
        self.assertLess(p.time_s, 1.05 * p.host_s)
        self.assertAlmostEqual(p.host_s, sum(one.host_s for one in p.passes))

    def test_full_masks_have_contiguous_tokens(self):
        p = attnsim.predict(self.cluster, attnsim.Attention("64K", mask="full"), attnsim.Strategy("ring"))
        self.assertEqual(p.tokens, "contiguous")

    def test_passes_add_up(self):
        p = attnsim.predict(self.cluster, self.layer)
        self.assertEqual([one.name for one in p.passes], ["forward", "backward"])
        self.assertAlmostEqual(sum(one.time_s for one in p.passes), p.time_s, places=12)
        self.assertEqual(attnsim.predict(self.cluster, self.layer, p.strategy).time_s, p.time_s)

    def test_plan_is_the_programs(self):
        plan = attnsim.plan(self.cluster, self.layer, schedules=["ring", "mesh"])
        expected = ask("plan", *self.flags, "--schedules", "ring,mesh", "--top", "1000")["candidates"]
        self.assertEqual([p.to_dict() for p in plan.candidates], expected)
        self.assertEqual(plan.best.time_s, min(p.time_s for p in plan.candidates))

    def test_plan_keeps_what_is_given(self):
        plan = attnsim.plan(self.cluster, self.layer, attnsim.Strategy(grid="4x4", tokens="zigzag"), schedules=["mesh"])
        self.assertEqual({(p.grid, p.tokens) for p in plan.candidates}, {((4, 4), "zigzag")})

    def test_notebooks_show_tables(self):
        for shown in attnsim.predict(self.cluster, self.layer), attnsim.plan(self.cluster, self.layer):
            page = shown._repr_html_()
            self.assertTrue(page.startswith("<table>\n<thead><tr><th class=\"number\">#</th><th>schedule</th>"), page)
            self.assertEqual(page.count("<tr>"), 1 + len(getattr(shown, "candidates", [shown])))

    def test_control_c_ends_a_plan(self):
        cluster = attnsim.Cluster("nd-h100-v5", nodes=128)
        pressed = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
        pressed.start()
        start = time.monotonic()
        with self.assertRaises(KeyboardInterrupt):
            attnsim.plan(cluster, attnsim.Attention("4M"))
        self.assertLess(time.monotonic() - start, 30)

    def test_others_run_meanwhile(self):
        done = threading.Event()
        thread = threading.Thread(target=lambda: (attnsim.plan(self.cluster, self.layer), done.set()))
        thread.start()
        turns = 0
        while not done.wait(0.001):
            turns += 1
        thread.join()
        self.assertGreater(turns, 5)

    @unittest.skipUnless(pandas, "no pandas")
    def test_frame_has_a_row_a_candidate(self):
        plan = attnsim.plan(self.cluster, self.layer, schedules=["ring", "usp"])
        frame = plan.frame()
        self.assertEqual(list(frame.time_s), [p.time_s for p in plan.candidates])
        self.assertIn("bytes_sent_per_rank.max", frame.columns)


class steps(unittest.TestCase):
    CLUSTER = attnsim.Cluster("dgx-h100", nodes=1)

    def test_step_is_the_programs(self):
        step = attnsim.step(self.CLUSTER, model="llama3-8b", seq="64K", tp=2, cp=4, dtype="fp8-linear", shard="optimizer",
                            recompute="full")
        printed = ask("step", "dgx-h100", "--nodes=1", "--model=llama3-8b", "--seq=64K", "--tp=2", "--cp=4",
                      "--dtype=fp8-linear", "--shard=optimizer", "--recompute=full")
        self.assertEqual(step.step_time_s, printed["step_time_s"])
        self.assertEqual(step.parts.attention_s, printed["parts"]["attention_s"])
        self.assertEqual(step.degrees.cp, 4)
        self.assertTrue(step.feasible)

    def test_bad_input_is_one_line(self):
        with self.assertRaisesRegex(attnsim.Infeasible, "^global_batch: '12': expected a multiple of micro-batch x dp"):
            attnsim.step(self.CLUSTER, model="llama3-8b", seq="8K", global_batch=12)
        with self.assertRaisesRegex(TypeError, r"^step\(\) has no argument global_bath; did you mean global_batch"):
            attnsim.step(self.CLUSTER, model="llama3-8b", seq="8K", global_bath=8)


@unittest.skipUnless(pandas, "no pandas")
class timelines(unittest.TestCase):
    cluster = attnsim.Cluster("dgx-h100", nodes=1)
    layer = attnsim.Attention("64K", heads=32, kv_heads=8)

    def test_end_when_predicted(self):
        strategy = attnsim.Strategy("mesh", grid=(4, 2))
        p = attnsim.predict(self.cluster, self.layer, strategy)
        t = attnsim.simulate(self.cluster, self.layer, strategy)
        self.assertAlmostEqual(t.duration_s, p.time_s, places=12)
        self.assertAlmostEqual(t.operations().end_s.max(), p.time_s, places=12)
        self.assertAlmostEqual(t.ranks().groupby("pass").bytes_sent.max().sum(), p.bytes_sent_per_rank.max, places=0)

    def test_streams_run_in_order(self):
        operations = attnsim.simulate(self.cluster, self.layer).operations()
        for _, rows in operations.sort_values("start_s").groupby(["rank", "stream"]):
            self.assertTrue((rows.start_s.values[1:] >= rows.end_s.values[:-1] - 1e-9).all())
        for _, rows in operations.drop_duplicates(["pass", "rank"]).groupby("pass"):
            self.assertEqual(rows.ranks_alike.sum(), self.cluster.devices)

    def test_links_carry_what_ranks_send(self):
        cluster = attnsim.Cluster("dgx-h100", nodes=1, device="ideal")  # no protocol on its links
        t = attnsim.simulate(cluster, self.layer, pass_="forward")
        ranks, links = t.ranks(), t.links()
        sent = (ranks.bytes_sent * ranks.ranks_alike).sum()
        self.assertAlmostEqual((links.bytes * links.links_alike).sum(), 2 * sent, places=0)  # to a switch and from it
        self.assertLessEqual(links.utilisation.max(), 1 + 1e-9)
        self.assertEqual(set(t.loads().link), set(links.link))


class calibrations(unittest.TestCase):
    def test_profile_is_the_programs(self):
        file, on = SOURCE / "reproduce/measured/h200/fit_nvlink.json", SOURCE / "tests/gpu/two-h100.yaml"
        fitted = attnsim.calibrate("h200-sxm5", [(file, attnsim.Cluster(on))])
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder, "h200.yaml")
            subprocess.run([PROGRAM, "calibrate", "--device", "h200-sxm5", "--measurements", f"{file}@{on}",
                            "--out", out, "--quiet", "--name", "h200-sxm5"], check=True)
            lines = [line for line in out.read_text().split("\n") if not line.startswith("#") and "source" not in line]
        self.assertEqual([line for line in fitted.to_yaml().split("\n") if "source" not in line], lines)
        self.assertTrue(fitted.fitted and fitted.kept)

    def test_bad_files_are_one_line(self):
        with self.assertRaises(attnsim.InputError) as caught:
            attnsim.calibrate("h200-sxm5", [("/nowhere.json", attnsim.Cluster("p5"))])
        self.assertEqual(str(caught.exception), "/nowhere.json: cannot be read: No such file or directory")


class stubs(unittest.TestCase):
    """The .pyi says what there is."""

    tree = ast.parse((Path(attnsim.__file__).parent / "__init__.pyi").read_text())

    def test_name_all_that_is_public(self):
        stubbed = {node.name for node in self.tree.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))}
        self.assertEqual(stubbed, set(attnsim.__all__))
        self.assertTrue((Path(attnsim.__file__).parent / "py.typed").exists())

    def test_properties_are_the_modules(self):
        self.assertEqual(stub.STUB.read_text(), stub.renewed(stub.STUB.read_text()), "to renew it: python/stub.py")

    def test_classes_have_their_members(self):
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("In"):
                stubbed = {member.name for member in node.body if hasattr(member, "name")} - {"__init__"}
                real = {name for name in vars(getattr(attnsim, node.name)) if not name.startswith("_")}
                self.assertEqual(stubbed, real, node.name)

    def test_arguments_have_their_names(self):
        for node in ast.walk(self.tree):
            if not isinstance(node, ast.FunctionDef) or node.name not in ("predict", "plan", "simulate", "calibrate"):
                continue
            signature = getattr(attnsim, node.name).__doc__.split("\n")[0]
            for argument in node.args.args + node.args.kwonlyargs:
                self.assertIn(f"{argument.arg}: ", signature)

    def test_everything_is_documented(self):
        for name in attnsim.__all__:
            if name not in ("InputError", "Infeasible"):
                self.assertTrue(inspect.getdoc(getattr(attnsim, name)), name)


class installation(unittest.TestCase):
    def test_pip_installs_from_the_source_tree(self):
        if subprocess.run([sys.executable, "-c", "import setuptools, wheel, pip"], capture_output=True).returncode:
            self.skipTest("no pip, setuptools or wheel")
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation", "--no-deps",
                            "--no-index", "--target", folder, SOURCE], check=True, capture_output=True)
            code = ("import attnsim, os; print(attnsim.__file__);"
                    "print(os.environ['ATTNSIM_TOPOLOGIES']); attnsim.Cluster('p5')")
            environment = {k: v for k, v in os.environ.items() if k != "ATTNSIM_TOPOLOGIES"} | {"PYTHONPATH": folder}
            lines = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True,
                                   env=environment, cwd="/").stdout.split("\n")
            self.assertEqual(lines[0], f"{folder}/attnsim/__init__.py")
            self.assertEqual(lines[1], f"{folder}/attnsim/topologies")


if __name__ == "__main__":
    unittest.main()
