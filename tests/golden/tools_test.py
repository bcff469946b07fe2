# SPDX-License-Identifier: Apache-2.0
"""Tools that write pages of results: what was measured before outlives a run of a part, and one that is killed."""
import json
import pathlib
import subprocess
import sys
import tempfile
import time
import types
import unittest
from unittest import mock
from xml.etree import ElementTree

import cli

sys.path.insert(0, str(cli.SOURCE / "tools"))

import attention_peers  # noqa: E402
import bits_curve  # noqa: E402
import epochs_report  # noqa: E402
import fusegnn_report  # noqa: E402
import hygnn_goals  # noqa: E402
import hygnn_parts  # noqa: E402
import hygnn_report  # noqa: E402
import logistic_cores  # noqa: E402
import nm_report  # noqa: E402
import plan_loss  # noqa: E402
import qgtc_records  # noqa: E402
import step_report  # noqa: E402
import whole_file  # noqa: E402
import window_figure  # noqa: E402


class Tools(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def test_later_steps_take_the_place_of_earlier_ones(self):
        def step(model, precision, us):
            return {"op": f"step_{model}", "graph": "pubmed", "precision": precision, "median_us": us}

        output = self.folder / "cuda_steps"
        before = [{**step("gin", "fp32", 122.4), "commit": "old"}, {**step("gcn", "fp32", 76.1), "commit": "old"}]
        output.with_suffix(".json").write_text(json.dumps({"records": before}))
        output.with_suffix(".md").write_text("# Before\n\n## Notes\n\nBy hand.\n")
        first, second = self.folder / "first.json", self.folder / "second.json"
        first.write_text(json.dumps({"commit": "fedcba9876", "records": [{**step("gin", "fp32", 108.0), "source": "/some/where/pubmed.npz", "figures": {"launches": 10.0}}]}))
        second.write_text(json.dumps({"commit": "fedcba9876", "records": [step("gin", "fp32", 110.0), {**step("gin", "fp32", 136.25), "op": "epoch_gin"}]}))
        step_report.add([first, second], output)
        records = json.loads(output.with_suffix(".json").read_text())["records"]
        self.assertEqual(records[0], before[1])
        self.assertEqual([record["median_us"] for record in records[1:]], [108.0, 110.0, 136.25])
        self.assertEqual(records[1]["source"], "pubmed.npz")
        page = output.with_suffix(".md").read_text()
        self.assertIn("| pubmed 500 → 16 → 3 | 76.1 µs | – | – | – | 109.0 µs | – | – | – |", page)
        self.assertIn("`fedcba9`: pubmed (GIN in fp32)", page)
        self.assertIn("they differ by 1.9 % at most (GIN on pubmed in fp32)", page)
        self.assertIn("GIN on pubmed (110 µs). Missed: none.", page)
        self.assertIn("| pubmed | – | – | 1.25 / – | – | `fedcba9` |", page)
        self.assertIn("fp32 / bf16: pubmed GIN 10.", page)
        self.assertTrue(page.endswith("## Notes\n\nBy hand.\n"))

    def test_only_the_first_record_of_a_process_has_a_first_step(self):
        figures = {f"first_{part}_us": 1000.0 * i for i, part in enumerate(step_report.PARTS)}
        record = {"op": "step_gin", "graph": "molecules", "precision": "bf16", "median_us": 1.0, "figures": figures}
        path = self.folder / "measured.json"
        path.write_text(json.dumps({"commit": "fedcba9876", "records": [record, {**record, "precision": "fp32"}]}))
        lines = list(step_report.first_steps(step_report.read_records(path)))
        self.assertEqual(lines[4:-1], ["| molecules, GIN in bf16 | 0.0 | 1.0 | 2.0 | 3.0 | 4.0 | 10 | `fedcba9` |"])

    def test_translations_measured_elsewhere_stand_beside_those_of_their_commit(self):
        output = self.folder / "nm_cuda"
        output.with_suffix(".json").write_text(json.dumps({"commit": "old", "translation": [
            {"graph": "a", "height": 16, "encoding": "bits", "median_us": 10.0}, {"graph": "a", "height": 16, "encoding": "2:4", "median_us": 50.0}], "remarks": []}))
        measured = self.folder / "measured.json"
        record = {"graph": "a", "features": 16, "op": "translate", "median_us": 20.0}
        measured.write_text(json.dumps({"commit": "new", "records": [record, {**record, "op": "translate_quads", "median_us": 30.0}, {**record, "features": 64}]}))
        nm_report.add_translations([measured], output)
        rows = [line for line in output.with_suffix(".md").read_text().splitlines() if line.startswith("| a ")]
        self.assertEqual(rows, ["| a | 16 | 20 | 30 | 1.50 | new |"])

    def test_a_part_of_sparse_tensor_cores_leaves_the_others(self):
        def product(form, width, us):
            return {"form": form, "graph": "a", "features": width, "precision": "bf16", "kernel": "spmm/cuda/k", "median_us": us}

        before = {"commit": "old", "dense": [{"graph": "d", "kernel": "nm_1", "features": 128, "median_us": 2.0}],
                  "products": [product("plan", 128, 5.0), product("plan", 64, 4.0), product("cuSPARSE", 128, 9.0)],
                  "models": [{"graph": "g", "model": "gcn", "pattern": "off", "step_ms": 1.0}], "torch": [], "batches": [],
                  "remarks": ["By hand.", ""]}
        output = self.folder / "nm_cuda"
        output.with_suffix(".json").write_text(json.dumps(before))
        arguments = types.SimpleNamespace(program="none", data=None, widths=[128], forms=["plan"], commit="new", parts=["products"])
        with mock.patch.multiple(nm_report.nm_gpu, measure_products=lambda *_: [[product("plan", 128, 3.0)]],
                                 measure_launch=lambda: {"alone": 4.9, "chain": 0.7}):
            nm_report.on_gpu(arguments, [], output)
        after = json.loads(output.with_suffix(".json").read_text())
        self.assertEqual(after["remarks"], before["remarks"])
        for part in ["dense", "models"]:
            self.assertEqual(after[part], [{**record, "commit": "old"} for record in before[part]])
        self.assertEqual([(r["form"], r["features"], r["median_us"], r["commit"]) for r in after["products"]],
                         [("plan", 64, 4.0, "old"), ("cuSPARSE", 128, 9.0, "old"), ("plan", 128, 3.0, "new")])
        page = output.with_suffix(".md").read_text()
        self.assertIn("at commit new", page)
        self.assertIn("An empty kernel takes 4.9 microseconds between two events and 0.7 in a chain.", page)
        self.assertIn("that windows share. Measured at old.", page)
        self.assertTrue(page.endswith("By hand.\n"))
        self.assertIn("(nm_cuda.svg)", page)
        dots = [title.text for title in ElementTree.parse(output.with_suffix(".svg")).iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(dots, ["a, 128: 3.00"])

    def test_accuracies_of_other_graphs_stay(self):
        def record(graph, test):
            return {"graph": graph, "model": "gcn", "test": test, "deviation": 0.01, "data": "as it is", "prune": None}

        output = self.folder / "nm_accuracy"
        nm_report.nm_pages.write_accuracy([record("a", 0.5), record("b", 0.6)], "one machine", "old", output)
        nm_report.nm_pages.write_accuracy([record("b", 0.7)], "another", "new", output)
        page = output.with_suffix(".md").read_text()
        self.assertIn("(a: one machine at commit old; b: another at commit new)", page)
        self.assertIn("| b, gcn | 70.00 ± 1.00 % |", page)
        self.assertNotIn("60.00", page)

    def test_a_damaged_report_is_one_that_did_not_end_well(self):
        records = qgtc_records.Records(types.SimpleNamespace(output=self.folder, commit="one"), "qgtc")
        report = self.folder / "bench.json"
        report.write_text('{"records": [')
        with mock.patch("sys.stderr"):
            records.run([sys.executable, "-c", ""], report)
        self.assertEqual((records.all, report.exists()), ([], False))

    def test_files_are_replaced_as_a_whole(self):
        path = self.folder / "rows.json"
        self.assertIsNone(whole_file.load(path))
        whole_file.write(path, "[1]\n")
        with mock.patch("os.replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            whole_file.write(path, "[2, 3]\n")
        self.assertEqual(whole_file.load(path), [1])
        path.write_text("[2,")
        with self.assertRaisesRegex(SystemExit, "is damaged"):
            whole_file.load(path)

    def test_public_attention_is_compared_form_by_form(self):
        peers = self.folder / "peers.csv"
        peers.write_text("op,graph,heads,width_per_head,dtype,direction,peer,kernel_us,error,result,preprocess_ms\n"
                         "gat,a,8,8,fp32,fwd,slow,90,0,right,\n"
                         "gat001,a,8,8,tf32,fwd,fast,60,0,right,\n"
                         "gat,a,8,8,fp32,fwd,wrong,1,0.5,wrong,\n"
                         "agnn,a,1,32,tf32,fwd,cosines,30,0,right,\n"
                         "gat_loops,a,1,64,fp32,fwd+bwd,looped,40,0,right,\n"
                         "layer_gat,a,8,8,fp32,fwd+bwd,layer,50,0,right,\n"
                         "layer_gat,a,8,8,fp32,fwd,layer,15,0,right,\n"
                         "dot,a,1,64,fp16,fwd,narrow,20,0,right,\n")

        def record(op, graph, heads, features, precision, us, **more):
            return {"op": op, "graph": graph, "heads": heads, "features": features, "precision": precision, "kernel": "k",
                    "median_us": us, **more}

        records = [record("attention_gat", "a", 8, 64, "fp32", 40, chain_us=30), record("attention_cosine", "a", 1, 32, "fp32", 10),
                   record("attention_gat_step", "a-loops", 1, 64, "fp32", 50), record("layer_gat", "a", 8, 64, "fp32", 25),
                   record("layer_gat_forward", "a", 8, 64, "fp32", 5),
                   record("attention_dot", "a", 1, 64, "bf16", 10), record("spmm", "a", 1, 64, "fp32", 1)]
        own, best = attention_peers.own_times(records), attention_peers.best_peers(peers)
        ratios = {attention_peers.says(key): best[key][0] / own[key][0] for key in own}
        self.assertEqual(ratios, {"gat 8 x 8, fp32, fwd, a": 2, "cosine 1 x 32, fp32, fwd, a": 3, "gat_loops 1 x 64, fp32, fwd+bwd, a": 0.8,
                                  "layer_gat 8 x 8, fp32, fwd+bwd, a": 2, "layer_gat 8 x 8, fp32, fwd, a": 3, "dot 1 x 64, bf16, fwd, a": 2})

        self.assertEqual(attention_peers.runs_of({**best, ("layer_gcn", 1, 128, "fp32", "fwd", "a"): None}, own), [
            ((1, 128, "fp32", ("a",)), ["layer_gcn_forward"]),
            ((8, 64, "fp32", ("a",)), ["attention_gat", "layer_gat", "layer_gat_forward"]),
            ((1, 32, "fp32", ("a",)), ["attention_cosine"]), ((1, 64, "fp32", ("a-loops",)), ["attention_gat_step"]),
            ((1, 64, "bf16", ("a",)), ["attention_dot"])])

    def test_measured_peers_are_kept_when_a_run_fails(self):
        peers, program, earlier = self.folder / "peers.csv", self.folder / "program.py", self.folder / "earlier.json"
        peers.write_text("op,graph,heads,width_per_head,dtype,direction,peer,kernel_us,error,result,preprocess_ms\n" +
                         "".join(f"{op},a,1,{width},fp32,fwd,peer,90,0,right,\n" for op, width in (("gat", 64), ("dot", 32), ("dot", 16))))
        record = {"op": "attention_dot", "graph": "a", "heads": 1, "precision": "fp32", "kernel": "k", "median_us": 30}
        earlier.write_text(json.dumps({"commit": "old", "records": [{**record, "features": 16}, {**record, "features": 32}]}))
        program.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n"
                           "if 'attention_gat' in sys.argv: sys.exit('no memory')\n"
                           "width = int(sys.argv[sys.argv.index('--features') + 1])\n"
                           f"record = {{**{record!r}, 'features': width, 'median_us': 45}}\n"
                           "pathlib.Path(sys.argv[sys.argv.index('--json') + 1]).write_text(json.dumps({'records': [record]}))\n")
        program.chmod(0o755)
        done = subprocess.run([sys.executable, str(cli.SOURCE / "tools" / "attention_peers.py"), str(peers), "a.npz", "--records", str(earlier),
                               "--commit", "new", "--program", str(program), "--output", str(self.folder)], capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        self.assertIn("failed with 1: attention_gat 1 x 64, fp32: no memory", done.stderr)
        self.assertIn("2 cases, geometric mean **2.00 x**", done.stdout)
        self.assertIn("commit new", (self.folder / "attention_peers.md").read_text())

    def test_what_pyg_has_measured_in_time_counts(self):
        slow = self.folder / "pyg.py"
        slow.write_text("import json, pathlib, sys, time\n"
                        "record = {'op': 'step_gcn', 'graph': 'cora', 'hidden': 16, 'mean_us': 5}\n"
                        "pathlib.Path(sys.argv[sys.argv.index('--json') + 1]).write_text(json.dumps({'records': [record]}))\n"
                        "time.sleep(600)\n")
        options = types.SimpleNamespace(pyg=sys.executable, device="cpu", hidden=[16], quick=True, program="none",
                                        sources=["cora.npz", "pubmed.npz"])
        pyg = fusegnn_report.Pyg(options, self.folder, time.monotonic() + 8)
        with mock.patch.object(fusegnn_report.Pyg, "script", str(slow)), mock.patch("sys.stderr"):
            self.assertEqual(pyg.of("cora.npz")[("step_gcn", 16)]["mean_us"], 5)
        self.assertEqual(pyg.of("pubmed.npz"), {})

    def test_hybrid_plans_stand_beside_plans_of_one_kind(self):
        def record(graph, **times):
            return {"graph": graph, "op": "spmm", "details": "features 128, fp32, sum, pattern",
                    "candidates": [{"kernel": f"spmm/cuda/{name}", "predicted_us": predicted, "measured_us": measured}
                                   for name, (predicted, measured) in times.items()]}

        both = record("both", rows_8x1x4=(30, 40), rows_1x1x4=(35, 20), tall_64=(50, 50), nm_split_256=(25, 32))
        one = record("one", rows_8x1x4=(10, 10), tall_64=(20, 5), hybrid_64=(15, 0))
        windows = [{"graph": "both", "tensor_edges": [0.5, 0.6]}, {"graph": "one", "tensor_edges": [0.0, 0.0]}]
        lines = hygnn_report.hybrid_section([both, one], windows)
        # The rows that the costs prefer count, not the fastest; and so does the plan.
        self.assertIn("| both | 128, fp32 | 20.0 | 50.0 | 32.0 |  | nm_split_256 | 32.0 | 1.25 |", lines)
        self.assertIn("| one | 128, fp32 | 10.0 | 5.0 |  |  | rows_8x1x4 | 10.0 | 0.50 |", lines)
        self.assertIn("Cases where windows of each kind have at least 5 % of the edges: 1, geometric mean 1.250, worst 1.25.", lines)
        self.assertIn("Cases where plans take both kinds of cores: 1, geometric mean 1.250, worst 1.25.", lines)

    def test_goals_count_what_is_neither_launch_nor_at_its_floor(self):
        def record(graph, us, floor_us):
            return {"op": "sddmm", "graph": graph, "precision": "fp32", "features": 128, "median_us": us, "floor_us": floor_us}

        content = {"commit": "abc", "records": [record("launch", 9, 1), record("floor", 100, 90), record("counted", 50, 10)]}
        others = [{"op": "sddmm", "graph": graph, "kind": "fp32", "us": us} for graph, us in (("launch", 3), ("floor", 60), ("counted", 48.5))]
        goals = list(hygnn_goals.public_goals("sddmm", content, others, {"fp32": None}))
        self.assertEqual(goals[0].met, "yes")
        self.assertIn("0.97 (counted)", goals[0].measured)
        self.assertEqual(goals[0].source, "cuda_sddmm_default.json, `abc`")
        content["records"][0]["commit"] = "def"  # of a run before
        self.assertEqual(next(hygnn_goals.public_goals("sddmm", content, others, {"fp32": None})).source, "cuda_sddmm_default.json, `abc`, `def`")
        self.assertEqual(hygnn_goals.at_most(337, 290), "no, 16 % above")

    def test_orders_are_made_up_for_by_runs(self):
        def record(kernel, us, chain_us=None, plan=""):
            return {"op": "spmm", "graph": "g", "precision": "fp32", "features": 128, "kernel": kernel, "median_us": us, "plan": plan} | ({"chain_us": chain_us} if chain_us else {})

        found = "; 0.5 s went into an order of rows (communities, bisection), which 9 runs make up for"
        ordered, default = record("spmm/cuda/ordered_rows", 70, 60, found), record("spmm/cuda/rows_8x1x4_listed", 80, 65)
        self.assertEqual(epochs_report.order_of(ordered), (0.5, "communities, bisection"))
        self.assertEqual(epochs_report.break_even(ordered, default), 100000)
        self.assertEqual(epochs_report.break_even(ordered, record("a", 80)), 50000)  # no chain of one, so none of the other
        self.assertEqual(epochs_report.runs_text(epochs_report.break_even(ordered, record("a", 50))), "never")
        self.assertIsNone(epochs_report.break_even(record("spmm/cuda/rows_8x1x4_listed", 80, 65, found), default))
        others = [{"op": "spmm", "graph": "g", "kind": "fp32", "us": 140}]
        content = {"commit": "abc", "date": "today", "epochs": 1000000, "records": [ordered]}
        text = epochs_report.page(content, {"commit": "def", "records": [default]}, others)
        self.assertIn("| g | 80.0 | 65.0 | 70.0 | 60.0 | ordered_rows | 1.08 | 0.5 | communities, bisection | 100,000 | 140.0 | 2.00 |", text)
        goal = next(hygnn_goals.epochs_goals(content, {"commit": "def", "records": [default]}, others, {"fp32": 1.7}))
        self.assertEqual((goal.measured, goal.met), ("2.00 over 1 graphs, by default plans 1.75 on the same", ""))

    def test_graphs_that_were_made_before_are_read(self):
        (self.folder / "amazon.tsr").write_text("")
        self.assertEqual(plan_loss.made_before("twin:amazon", self.folder), str(self.folder / "amazon.tsr"))
        self.assertEqual(plan_loss.made_before("twin:reddit", self.folder), "twin:reddit")
        self.assertEqual(plan_loss.made_before("twin:amazon", None), "twin:amazon")

    def test_an_order_that_is_slower_counts_as_none(self):
        def order(graph, moved, ordered):
            return {"graph": graph, "shuffled": False, "precision": "bf16", "before_us": 20.0, "moved_us": moved, "ordered_us": ordered}

        lines = hygnn_parts.layout_lines([order("a", 25.0, 30.0), order("b", 25.0, 5.0)])
        self.assertIn("| a | as it came | bf16 | 20.0 | 25.0 | 30.0 | 1.00 |", lines)
        self.assertIn("As they came, bf16: geometric mean 2.000 over 2 graphs, least 1.00.", lines)
        overhead = hygnn_parts.overhead_lines([{"graph": "a", "loa_seconds": 0.1}], [{"graph": "a", "op": "step_gcn", "ms": 1.5}])
        self.assertIn("| a | 0.100 | 0.300 | 25 % |", overhead)

    def test_the_papers_model_is_asked_about_what_it_has_not_seen(self):
        # Tensor cores are twice as fast below half sparsity; the costs take CUDA cores everywhere.
        cases = [((sparsity, 64.0), [2.0, 1.0] if sparsity < 0.5 else [1.0, 2.0], [1.0, 3.0]) for sparsity in (0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9)]
        losses = logistic_cores.regrets(cases)
        self.assertEqual(losses["logistic regression"], [1.0] * 7)
        self.assertEqual(losses["costs"], [2.0] * 3 + [1.0] * 4)

    def test_backward_is_what_a_layer_takes_after_its_forward_pass(self):
        step = [{"graph": "a", "op": "step_gcn", "ms": 1.5}, {"graph": "a", "op": "step_gin", "ms": 2.5}]
        self.assertIn("| a | 1.500 | 2.500 |", hygnn_parts.step_lines(step))
        layers = [{"graph": "a", "op": "layer_gcn_forward", "ms": 0.25}, {"graph": "a", "op": "layer_gcn", "ms": 0.75}]
        self.assertIn("| a | 0.250 | 0.500 | 1.500 |  |  | 2.500 |", hygnn_parts.step_lines(step + layers))

    def test_windows_are_drawn_by_columns_and_sparsity(self):
        matrix = self.folder / "a.mtx"
        matrix.write_text("%%MatrixMarket matrix coordinate pattern symmetric\n% a comment\n66 66 3\n2 1\n3 1\n66 65\n")
        # Rows 1 to 64 have entries (1, 2), (1, 3), (2, 1), (3, 1); the last two (65, 66), (66, 65).
        self.assertEqual(window_figure.windows_of(matrix), [(1 - 4 / (64 * 3), 3), (1 - 2 / (64 * 2), 2)])

        def dense_and_narrow(window):
            return window[0] < 1 - window[1] / 100
        for sparsity, columns in window_figure.boundary(dense_and_narrow, 50):
            self.assertAlmostEqual(sparsity, 1 - columns / 100, places=6)
        drawn = window_figure.svg("a graph", [("before", [(0.99, 40)]), ("after LOA", [(0.6, 20), (0.5, 10), (0.95, 50)])], dense_and_narrow)
        self.assertIn("before: 0 % of 1 windows", drawn)
        self.assertIn("after LOA: 67 % of 3 windows", drawn)
        self.assertEqual(drawn.count("<circle"), 4)
        self.assertEqual(drawn.count("<polyline"), 2)

    def test_columns_of_one_sparsity_stand_beside_each_other(self):
        def swept(community, degree, us):
            return {"graph": "a", "op": "spmm", "details": "features 128, fp32, sum", "community": community, "degree": degree,
                    "candidates": [{"kernel": "spmm/cuda/rows_8", "predicted_us": 1.0, "measured_us": us}]}
        lines = hygnn_report.sweep_section([swept(256, 16, 40.0), swept(64, 4, 10.0), swept(128, 8, 20.0), swept(64, 48, 9.0)])
        rows = [line for line in lines if line.count("|") == 7 and line.startswith(("| 64", "| 128", "| 256"))]
        self.assertEqual([row.split(" | ")[0] for row in rows], ["| 64", "| 128", "| 256"])
        self.assertIn("| 10.0 | 38 |", rows[0])

    def test_a_curve_without_losses(self):
        self.assertIn("</svg>", bits_curve.svg({"easy": [(100.0, 0.0), (100.0, 0.0)]}, ["all", "8"]))


if __name__ == "__main__":
    unittest.main()
