# SPDX-License-Identifier: Apache-2.0
"""tools/report.py: every report runs on a CPU, from an empty folder, on a graph that is as small as it takes; pages are what
their records say; what is missing is said in one line. What needs a GPU, PyG or hours has a small stand-in here."""
import gzip
import importlib
import json
import os
import pathlib
import re
import subprocess
import sys
import unittest
from unittest import mock
from xml.etree import ElementTree

import cli

sys.path.insert(0, str(cli.SOURCE / "tools"))

import report as tool  # noqa: E402
from reports import _cores, _hygnn_lines, attention_peers, bits, candidates, common, nm_cuda, summary  # noqa: E402

REPORT = cli.SOURCE / "tools" / "report.py"
RESULTS = cli.SOURCE / "docs" / "results"
# The record of each page that is not called like its report, and the report of each that is not called like its page.
RECORDS = {"steps": "cuda_steps"}
REPORTS = {"accuracy_gpu": "accuracy", "links_cpu": "links"}
SMALL = "embedded:citation"


def report(*words, folder, **environment):
    return subprocess.run([sys.executable, "-B", str(REPORT), *map(str, words)], cwd=folder, capture_output=True, text=True,
                          timeout=cli.SECONDS, env={**os.environ, "TESSERA_DATA": "", **environment})


def names():
    return [line.split()[0] for line in report("--list", folder=".").stdout.splitlines()]


class Reports(cli.CliTest):
    """Each works in a folder of its own, and writes to one that is not there yet."""

    def setUp(self):
        super().setUp()
        self.out = self.folder / "new" / "folder"

    def run_report(self, *words, code=0):
        done = report(*words, "--output", self.out, folder=self.folder)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        self.assertNotIn("Traceback", done.stderr)
        return done

    def measure(self, name, *words):
        self.run_report(name, "--program", cli.PROGRAM, "--commit", "one", *words)
        return json.loads((self.out / f"{name}.json").read_text()), (self.out / f"{name}.md").read_text()

    def assert_parts(self, name, parts, *words):
        record, page = self.measure(name, *words)
        self.assertEqual(list(record["parts"]), parts)
        self.assertTrue(all(record["parts"].values()), record["parts"])
        self.assertIn("## Make it again", page)
        return record, page

    def test_tc_gnn(self):
        _, page = self.assert_parts("tc_gnn", ["share", "widths", "blocks"], "--quick", SMALL)
        for part in ("Figure 8", "Figure 10", "Table 6"):
            self.assertIn(part, page)

    def test_tiles(self):
        _, page = self.assert_parts("tiles", ["tiles"], SMALL, "twin:cora")
        self.assertIn("| cora |", page)

    def test_fusegnn(self):
        _, page = self.assert_parts("fusegnn", ["steps", "sums"], "--quick", SMALL)
        for part in ("Figure 4", "Figure 9", "Figure 10", "Figure 11", "Figure 12"):
            self.assertIn(part, page)
        self.assertRegex(page, r"\| citation, gat \| [\d.]+ \| [\d.]+ \|")

    def test_hygnn(self):
        _, page = self.assert_parts("hygnn", ["windows", "widths", "steps", "pictures"], "--quick", "--source", SMALL)
        for part in ("Figure 14", "Figure 15", "Table 4", "Figures 11 and 12"):
            self.assertIn(part, page)

    def test_nm_reordering(self):
        record, page = self.assert_parts("nm_reordering", ["orders", "windows"], "--quick")
        self.assertEqual(len(record["parts"]["windows"]), 3)
        self.assertRegex(page, r"\| 1:2:4, paper \| \d of \d")

    def test_nm_cuda(self):
        _, page = self.assert_parts("nm_cuda", ["models", "batches", "accuracy"], "--quick")
        for part in ("Tables 3 and 4", "Table 5", "Table 6"):
            self.assertIn(part, page)

    def test_qgtc_measures_nothing_twice(self):
        first, page = self.assert_parts("qgtc", ["batches", "products", "sizes", "reuse"], "--quick")
        for part in ("Figure 7 a and b", "Figure 7 c, Table 3", "Figure 8", "Figure 9", "Figure 10"):
            self.assertIn(part, page)
        self.assertEqual(self.measure("qgtc", "--quick")[0], first)
        # What another commit measured, or a trial, is dropped, not mixed.
        done = self.run_report("qgtc", "--program", cli.PROGRAM, "--commit", "two", "--quick", "--parts", "reuse")
        self.assertIn("is of one on cpu: it is measured anew", done.stderr)
        self.assertEqual(list(json.loads((self.out / "qgtc.json").read_text())["parts"]), ["reuse"])

    def test_bits(self):
        _, page = self.assert_parts("bits", ["training"], "--quick", SMALL)
        self.assertRegex(page, r"\| embedded citation \| 2 \| [\d.]+ ± [\d.]+ \|")
        ElementTree.parse(self.out / "bits.svg")

    def test_accuracy(self):
        _, page = self.assert_parts("accuracy", ["gcn", "sgc"], "--quick", "--parts", "sgc,gcn")
        self.assertRegex(page, r"\| gcn \| [\d.]+ ± [\d.]+ \|")

    def test_candidates(self):
        """The kernel that two unrelated graphs need stays, the one that a family of graphs needs goes."""
        def case(graph, **times):
            return {"graph": graph, "op": "spmm", "case": "64", "candidates": [[kernel, us, us] for kernel, us in times.items()]}

        whole = [case("cora", a=20, b=30), case("DD", a=20, b=30), case("acm", a=30, b=20), case("nell", a=30, b=20),
                 case("fb100-x", b=20, c=10), case("fb100-y", b=20, c=10), case("small", b=2, c=1)]
        left, removed = candidates.judged(candidates.conditions({"whole": whole}, "spmm"))
        self.assertEqual((list(left), removed), (["a", "b"], ["c"]))
        self.assertEqual(left["a"]["losers"], {"cora", "DD"})
        self.assertAlmostEqual(left["a"]["worst"][0], 1.5)
        self.run_report("candidates", "--program", cli.PROGRAM, "--commit", "one", SMALL, code=1)

    def test_builds(self):
        """Both builds are the same here: every case has two times, and one that takes much longer is named."""
        before = ["--before", cli.PROGRAM]
        record, page = self.assert_parts("builds", ["dots"], "--quick", "--parts", "dots", SMALL, *before)
        self.assertRegex(page, r"\| edge_softmax \| fp32 \| \d+ \| [\d.]+ \|")
        record["parts"]["dots"] = [["sddmm", "a", "64", "fp32", 40, 20, "rows", "rows"], ["sddmm", "b", "64", "fp32", 30, 60, "rows", "tall"]]
        (self.folder / "builds.json").write_text(json.dumps(record))
        self.run_report("builds", "--from", self.folder / "builds.json")
        page = (self.out / "builds.md").read_text()
        self.assertIn("| sddmm | fp32 | 2 | 1.000 | 0.50 |", page)
        self.assertIn("| sddmm | b | 64 | fp32 | rows | tall | 30 | 60 | 0.50 |", page)
        self.assertIn("--before FILE names", self.run_report("builds", "--program", cli.PROGRAM, "--commit", "one", SMALL, code=1).stderr)

    def test_steps(self):
        _, page = self.assert_parts("steps", ["steps"], "--quick", SMALL)
        self.assertRegex(page, r"\| citation \| [\d.]+ .s \|")

    def test_kernels_and_cpu(self):
        peers = self.folder / "peers.json"
        peers.write_text(json.dumps({"others": [{"op": "spmm", "graph": "citation", "kind": "fp32", "peer": "p", "type": "fp32", "us": 1e9}]}))
        _, page = self.assert_parts("kernels", ["spmm", "sddmm", "others"], "--quick", SMALL, "--peers", peers)
        self.assertIn("spmm in fp32: ", page)
        _, page = self.assert_parts("cpu", ["tessera"], "--quick", SMALL, "--features", "8", "--threads", "1")
        self.assertIn("| citation | 8 | – |", page)

    def test_attention_peers(self):
        peers, data = self.folder / "peers.csv", self.folder / "data" / "small"
        data.mkdir(parents=True)
        self.succeed("convert", SMALL, "-o", data / "small.npz")
        peers.write_text("op,graph,heads,width_per_head,dtype,direction,peer,kernel_us,result\n"
                         "gat,small,2,8,fp32,fwd,slow,9e9,right\ngat_loops,small,2,8,tf32,fwd+bwd,other,9e9,right\n"
                         "gat,small,2,8,fp32,fwd,wrong,1,wrong\n")
        _, page = self.assert_parts("attention_peers", ["attention"], "--quick", "--peers", peers, "--data", data.parent)
        self.assertIn("mean of 2 cases", page)
        self.assertIn("9000000000 slow", page)

    def test_python_and_summary_with_a_stand_in_for_torch(self):
        python = self.folder / "python"
        python.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n"
                          "out = pathlib.Path(sys.argv[sys.argv.index('--json') + 1])\n"
                          "one = {'model': 'gcn', 'pyg_ms': 8e9, 'tessera_ms': 1e9, 'loss_difference': 1e-7, 'versions': 'torch 0'}\n"
                          "both = {'pyg': {'median_ms': 6.0, 'difference': 1e-7}, 'tessera': {'median_ms': 2.0, 'difference': 1e-7},\n"
                          "        'graph': 'cora', 'model': 'GCN', 'precision': 'fp32', 'mode': 'eager', 'versions': 'torch 0',\n"
                          "        'layer': 'LGConv', 'share': 0.9, 'threads': 2, 'clock': 'wall'}\n"
                          "graphs = [pathlib.Path(word).stem for word in sys.argv if word.endswith('.npz')]\n"
                          "out.write_text(json.dumps([{**one, 'graph': graph} for graph in graphs] or [both]))\n")
        python.chmod(0o755)
        _, page = self.assert_parts("python", ["epochs"], "--quick", "--pyg", python)
        self.assertIn("3.0 times as fast in the mean of 1 cases", page)
        _, page = self.assert_parts("layers", ["layers"], "--quick", "--pyg", python)
        self.assertIn("The 1 of them in which aggregation takes more than half of PyG's time: 3.0 times", page)
        self.assertIn("| LGConv | cora | 90 % | 6.00 | 2.00 | 3.00 | 1e-07 | 1e-07 |", page)
        other = {"machine": "m", "versions": "v", "cases": []}  # of a GPU, measured before
        (self.out / "summary.json").write_text(json.dumps({"commit": "one", "device": "cpu and cuda", "quick": True, "parts": {"cuda": other}}))
        self.run_report("measure", "--program", cli.PROGRAM, "--commit", "one", "--quick", "--pyg", python)
        record = json.loads((self.out / "summary.json").read_text())
        self.assertEqual(record["parts"]["cuda"], other)
        self.assertEqual([one["way"] for one in record["parts"]["cpu"]["cases"]], ["python", "program"])
        readme = self.folder / "README.md"
        readme.write_text("# A page\n\n<!-- results: of before -->\nold\n<!-- /results -->\n\nThe rest.\n")
        self.run_report("summary", "--from", self.out / "summary.json", "--readme", readme)
        self.assertIn("| a PyG model after `tessera.accelerate` | CPU | ", readme.read_text())
        self.assertIn("**8.0 x** | 8.0 x (GCN, 500 vertices) |", readme.read_text())
        self.assertTrue(readme.read_text().endswith("<!-- /results -->\n\nThe rest.\n"))
        self.assertNotIn("old", readme.read_text())
        ElementTree.parse(self.out / "summary.svg")

    def test_links_with_a_stand_in_for_torch(self):
        python = self.folder / "python"
        python.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n"
                          "out = pathlib.Path(sys.argv[sys.argv.index('--json') + 1])\n"
                          "def side(ms): return {'median_ms': ms, 'best_ms': ms / 2, 'worst_ms': 2 * ms}\n"
                          "one = {'versions': 'torch 0', 'threads': 2, 'apart': 1e-7, 'bound': 1e-4}\n"
                          "sides = {'pyg': side(12.0), 'pyg compiled': side(6.0), 'tessera': side(2.0)}\n"
                          "top = {'product by 256 rows': side(3.0), 'torch': side(50.0), 'tessera': side(4.5)}\n"
                          "out.write_text(json.dumps([{**one, 'case': 'step pubmed', 'sides': sides}, {**one, 'case': 'top', 'sides': top},\n"
                          "                           {**one, 'case': 'odd', 'error': 'results are 1 apart'}]))\n")
        python.chmod(0o755)
        self.run_report("links", "--program", cli.PROGRAM, "--commit", "one", "--quick", "--pyg", python)
        page = (self.out / "links_cpu.md").read_text()
        self.assertIn("8.2 times as fast in the mean of 2 cases, 6.00 at worst (step pubmed)", page)
        self.assertIn("| odd | results are 1 apart |", page)
        record = json.loads((self.out / "links_cpu.json").read_text())
        program = {"graph": "pubmed", "model": "gcn", "step_ms": 0.5, "epoch_ms": 0.75, "test": 0.9}
        of_gpu = self.out / "links.json"
        of_gpu.write_text(json.dumps({**record, "device": "cuda", "parts": {**record["parts"], "program": [program]}}))
        self.run_report("links", "--from", of_gpu)
        page = " ".join((self.out / "links.md").read_text().split())
        for words in ("step pubmed, beside pyg: 6.00 times as fast from Python, 24.00 times as fast in the program.",
                      "step pubmed, beside pyg compiled: 3.00 times as fast from Python, ", "1.50 times as long as product by 256 rows",
                      "| pubmed | gcn | 0.500 | 0.750 |"):
            self.assertIn(words, page)

    def test_accuracy_of_links_with_a_stand_in_for_torch(self):
        python = self.folder / "python"
        python.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n"
                          "runs = [{'seed': 1, 'tessera': 90.5, 'pyg': 90.0}, {'seed': 2, 'tessera': 91.0, 'pyg': 91.0}]\n"
                          "one = {'graph': 'cora', 'metric': 'roc_auc', 'runs': runs, 'tessera': 90.75, 'pyg': 90.5, 'difference': 0.25}\n"
                          "out = pathlib.Path(sys.argv[sys.argv.index('--json') + 1])\n"
                          "out.write_text(json.dumps({'results': [one]}))\n")
        python.chmod(0o755)
        _, page = self.assert_parts("link_accuracy", ["auto_encoders", "light_gcn"], "--quick", "--pyg", python, "--data", self.folder)
        self.assertIn("cora, AUROC in percent: 90.75, PyG 90.50; the mean of the paired differences of 2 runs is +0.25.", page)
        self.assertIn("| cora | AUROC | 1 | 90.50 | 90.00 | +0.50 |", page)

    def test_captured_with_a_stand_in_for_torch(self):
        python = self.folder / "python"
        python.write_text(f"#!{sys.executable}\nimport json, pathlib, sys\n"
                          "words = dict(zip(sys.argv[2:], sys.argv[3:]))\n"
                          "step = {'part': 'steps', 'model': 'GCN', 'pyg_eager_ms': 8.0, 'pyg_captured_ms': 3.0, 'tessera_captured_ms': 1.0,\n"
                          "        'program_ms': None, 'versions': 'torch 0'}\n"
                          "one = {'part': 'reductions', 'entries': 9, 'groups': 2, 'features': 3, 'spread': 'even', 'reduce': 'sum',\n"
                          "       'order': 'sorted', 'ms': {'tessera': 1.0, 'a': 4.0, 'b': 2.0}, 'order_ms': None, 'versions': 'torch 0'}\n"
                          "found = [step] if words['--parts'] == 'steps' else [one, {**one, 'order': 'unsorted', 'order_ms': 5.0}]\n"
                          "pathlib.Path(words['--json']).write_text(json.dumps(found))\n")
        python.chmod(0o755)
        _, page = self.assert_parts("captured", ["steps", "reductions"], "--quick", "--pyg", python)
        self.assertIn("| GCN | 8.000 | 3.000 | 1.000 | – | 8.00 | 3.00 | – |", page)
        self.assertIn("2.00 times as fast as the best other in the mean of 1 cases", page)
        self.assertIn("| sum | 9 | 2 | 3 | even | 1.000 | 2.000 | b | 2.00 | 5.000 |", page)

    def test_other_gpus_of_a_record(self):
        plans = [{"graph": "small", "edges": 1000, "op": op, "precision": precision, "gpu": gpu, "expected_us": us,
                  "kernel": f"{op}/cuda/{'rows' if gpu == 'H200' else 'tall'}"}
                 for op in ("spmm", "sddmm", "attention", "aggregate_update") for precision in ("fp32", "bf16")
                 for gpu, us in (("H200", 5.25), ("H100", 6.0), ("A100", 1234.0), ("L40S", 8.0), ("B200", 4.0))]
        self.out.mkdir(parents=True)
        record = self.out / "other_gpus.json"
        record.write_text(json.dumps({"commit": "one", "device": "cpu", "date": "2026-11-20", "parts": {"plans": plans}}))
        self.run_report("other_gpus", "--from", record)
        page = " ".join((self.out / "other_gpus.md").read_text().split())
        self.assertIn("**Not measured.**", page)
        self.assertIn("In 32 of 32 cases another kernel is chosen", page)
        self.assertIn("| small | 1,000 | fp32 | 5.25 rows | 6 tall | 1,234 tall | 8 tall | 4 tall |", page)

    def test_reports_are_listed_and_explained(self):
        listed = report("--list", folder=self.folder).stdout.splitlines()
        tested = re.findall(r"(?:assert_parts|measure|run_report)\(\"(\w+)\"", pathlib.Path(__file__).read_text())
        for line in listed:
            name, about = line.split(maxsplit=1)
            with self.subTest(name=name):
                done = report(name, "--help", folder=self.folder)
                self.assertEqual(done.returncode, 0)
                self.assertIn(about, done.stdout)
                self.assertIn(name, tested)
        done = report("none", folder=self.folder)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("there is no report 'none'; there are accuracy, ", done.stderr)

    def test_what_is_missing_is_one_line(self):
        file = self.folder / "file"
        file.write_text("{")
        own = ["--program", cli.PROGRAM, "--commit", "one"]
        for words, said in (
                (["tc_gnn", *own, "--device", "cuda", SMALL], "there is no GPU that this build of the program can use"),
                (["tc_gnn", *own], "real graphs are missing: --data FOLDER, or TESSERA_DATA,"),
                (["tc_gnn", *own, "--parts", "none", SMALL], "there is no part 'none'; there are share, "),
                (["fusegnn", "--program", self.folder / "none", "--commit", "one"], "there is no program"),
                (["python", *own], "--pyg names no Python; it must have torch, PyG and tessera"),
                (["links", *own], "--pyg names no Python; it must have torch, PyG and tessera"),
                (["layers", *own], "--pyg names no Python; it must have torch, PyG and tessera"),
                (["captured", *own, "--quick"], "--pyg names no Python; it must have torch, PyG and tessera"),
                (["measure", *own, "--quick", "--pyg", self.folder / "none"], "it must have torch, PyG and tessera"),
                (["attention_peers", *own, "--peers", self.folder / "none"], "there is no table of other kernels' times"),
                (["candidates", *own, SMALL], "build the target bench_candidates"),
                (["hygnn", *own], "no graph is named"),
                (["nm_reordering", *own, self.folder], "has no matrices"),
                (["steps", "--from", self.folder / "none.json"], "there is no record"),
                (["steps", "--from", file], "is no record"),
                (["steps", "--from", RESULTS / "check.json"], "is no record of this report"),
                (["bits", "--from", RESULTS / "cpu.json"], "is no record of this report"),
                (["summary", "--from", self.folder / "none.json"], "there is no record")):
            with self.subTest(words=words):
                if words[1:3] == own[:2] and "--device" in words and self.json("doctor")["gpu"]["devices"]:
                    continue
                done = self.run_report(*words, code=1)
                last = done.stderr.strip().splitlines()[-1]
                self.assertRegex(last, rf"^report.py {words[0]}: error: ")
                self.assertIn(said, last)

    def test_a_folder_that_cannot_be_written_is_found_first(self):
        file = self.folder / "file"
        file.write_text("")
        done = report("steps", "--program", self.folder / "none", "--output", file / "below", folder=self.folder)
        self.assertEqual(done.returncode, 1)
        self.assertIn("error: cannot write to", done.stderr)

    def test_what_was_measured_in_time_counts(self):
        with mock.patch("sys.stderr"):
            options = mock.Mock(device="cpu", program=sys.executable, seconds=20.0)
            run = common.Run(options, self.folder)
            for code in ("import json; w({'machine': 'm', 'records': [1]}); import time; time.sleep(60)", "w({'records': [1]}); 1 / 0"):
                script = self.folder / "slow.py"
                script.write_text("import json, sys\ndef w(what): open(sys.argv[-1], 'w').write(json.dumps(what))\n" + code)
                run.deadline = common.time.monotonic() + 8
                self.assertEqual(run.records([sys.executable, script]), [1])
            script.write_text("import sys\nopen(sys.argv[-1], 'w').write('[1')")
            self.assertEqual(run.records([sys.executable, script]), [])

    def test_files_are_replaced_as_a_whole(self):
        path = self.folder / "rows.json"
        common.write(path, "[1]\n")
        with mock.patch("os.replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            common.write(path, "[2, 3]\n")
        self.assertEqual(common.load(path), [1])


class Figures(unittest.TestCase):
    """Numbers that pages are made of."""

    def test_hybrid_plans_stand_beside_plans_of_one_kind(self):
        def record(graph, **times):
            return {"graph": graph, "op": "spmm", "details": "features 128, fp32, sum, pattern",
                    "candidates": [{"kernel": f"spmm/cuda/{name}", "predicted_us": predicted, "measured_us": measured}
                                   for name, (predicted, measured) in times.items()]}

        both = record("both", rows_8x1x4=(30, 40), rows_1x1x4=(35, 20), tall_64=(50, 50), nm_split_256=(25, 32))
        one = record("one", rows_8x1x4=(10, 10), tall_64=(20, 5), hybrid_64=(15, 0))
        windows = [{"graph": "both", "tensor_edges": [0.5, 0.6]}, {"graph": "one", "tensor_edges": [0.0, 0.0]}]
        lines = "\n".join(_hygnn_lines.hybrid_section([both, one], windows))
        # The rows that the costs prefer count, not the fastest; and so does the plan.
        self.assertIn("| both | 128, fp32 | nm_split_256 | 20.0 | 50.0 | 32.0 |  | 32.0 | 1.25 |", lines)
        self.assertIn("| one | 128, fp32 | rows_8x1x4 | 10.0 | 5.0 |  |  | 10.0 | 0.50 |", lines)
        self.assertIn("at least 5 % of the edges: 1, geometric mean 1.250, worst 1.25.", lines)

    def test_an_order_that_is_slower_counts_as_none(self):
        def order(graph, moved, ordered):
            return {"graph": graph, "shuffled": False, "precision": "bf16", "before_us": 20.0, "moved_us": moved, "ordered_us": ordered}

        lines = "\n".join(_hygnn_lines.layout_section([order("a", 25.0, 30.0), order("b", 25.0, 5.0)]))
        self.assertIn("| a | as it came | bf16 | 20.0 | 25.0 | 30.0 | 1.00 |", lines)
        self.assertIn("As they came, bf16: geometric mean 2.000 over 2 graphs, least 1.00.", lines)

    def test_backward_is_what_a_layer_takes_after_its_forward_pass(self):
        steps = [{"graph": "a", "op": op, "ms": ms} for op, ms in (("step_gcn", 1.5), ("layer_gcn_forward", 0.25), ("layer_gcn", 0.75))]
        self.assertIn("| a | 0.250 | 0.500 | 1.500 |  |  |  |", "\n".join(_hygnn_lines.step_section(steps)))

    def test_the_papers_model_is_asked_about_what_it_has_not_seen(self):
        # Tensor cores are twice as fast below half sparsity; the costs take CUDA cores everywhere.
        cases = [((sparsity, 64.0), [2.0, 1.0] if sparsity < 0.5 else [1.0, 2.0], [1.0, 3.0]) for sparsity in (0.1, 0.2, 0.3, 0.6, 0.7, 0.8, 0.9)]
        losses = _cores.regrets(cases)
        self.assertEqual(losses["logistic regression"], [1.0] * 7)
        self.assertEqual(losses["costs"], [2.0] * 3 + [1.0] * 4)

    def test_windows_are_drawn_by_columns_and_sparsity(self):
        def suits(window):
            return window[0] < 1 - window[1] / 100

        for sparsity, columns in _cores.boundary(suits, 50):
            self.assertAlmostEqual(sparsity, 1 - columns / 100, places=6)
        drawn = _cores.picture("a graph", {"before": [(0.99, 40)], "after LOA": [(0.6, 20), (0.5, 10), (0.95, 50)]}, suits)
        self.assertIn("before: 0 % of 1 windows", drawn)
        self.assertIn("after LOA: 67 % of 3 windows", drawn)
        self.assertEqual((drawn.count("<circle"), drawn.count("<polyline")), (4, 2))

    def test_public_attention_is_compared_form_by_form(self):
        def peer(op, dtype, direction, us, heads=8, width=8, result="right"):
            return {"op": op, "graph": "a", "heads": str(heads), "width_per_head": str(width), "dtype": dtype, "direction": direction,
                    "peer": "p", "kernel_us": str(us), "result": result}

        def own(op, us, heads=8, features=64, precision="fp32", graph="a", **more):
            return {"op": op, "graph": graph, "heads": heads, "features": features, "precision": precision, "kernel": "k", "median_us": us, **more}

        found = {"peers": [peer("gat", "fp32", "fwd", 90), peer("gat001", "tf32", "fwd", 60), peer("gat", "fp32", "fwd", 1, result="wrong"),
                           peer("agnn", "tf32", "fwd", 30, 1, 32), peer("gat_loops", "fp32", "fwd+bwd", 40, 1, 64), peer("dot", "fp16", "fwd", 20, 1, 64),
                           peer("layer_gat", "fp32", "fwd", 15)],
                 "records": [own("attention_gat", 40, chain_us=30), own("attention_cosine", 10, 1, 32), own("attention_gat_step", 50, 1, graph="a-loops"),
                             own("attention_dot", 10, 1, precision="bf16"), own("layer_gat_forward", 5), own("spmm", 1)]}
        cases = attention_peers.cases_of({"parts": {"attention": found}})
        ratios = {attention_peers.says(key): theirs / ours for key, (ours, theirs, _) in cases.items()}
        self.assertEqual(ratios, {"gat 8 x 8, fp32, fwd, a": 2, "cosine 1 x 32, fp32, fwd, a": 3, "gat_loops 1 x 64, fp32, fwd+bwd, a": 0.8,
                                  "dot 1 x 64, bf16, fwd, a": 2, "layer_gat 8 x 8, fp32, fwd, a": 3})

    def test_pictures_without_losses_and_of_one_matrix(self):
        ElementTree.fromstring(bits.picture({"easy": {"all": {"tests": [1.0, 1.0]}, "8": {"tests": [1.0, 1.0]}}}))
        drawn = nm_cuda.picture({("a", "bf16", 128): {"plan": {"alone": 3.0, "chain": None}, "cuSPARSE": {"alone": 9.0, "chain": None}}})
        titles = [title.text for title in ElementTree.fromstring(drawn).iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(titles, ["a, 128: 3.00"])

    def test_the_worst_case_stands_beside_the_mean(self):
        def case(way, size, vertices, pyg, ours):
            return {"way": way, "size": size, "graph": "g", "vertices": vertices, "edges": 4 * vertices, "model": "gcn", "pyg_ms": pyg, "ours_ms": ours}

        record = {"commit": "abc", "parts": {"cuda": {"machine": "a GPU", "versions": "torch 0", "cases": [
            case("program", "small", 2708, 4.0, 1.0), case("program", "small", 19717, 1.0, 1.0), case("python", "large", 400000, 9.0, 1.0)],
            "pyg_out_of_memory": ["GAT on reddit"]}}}
        self.assertIn("Left out, as PyG ran out of memory: GAT on reddit.", summary.below(record).replace("\n", " "))
        self.assertEqual(summary.table(record).splitlines()[2:], [
            "| `tessera train` | GPU | 10.8 k to 78.9 k | 2 | **2.0 x** | 1.0 x (GCN, 19.7 k vertices) |",
            "| a PyG model after `tessera.accelerate` | GPU | 1.6 M | 1 | **9.0 x** | 9.0 x (GCN, 400 k vertices) |"])


class Results(unittest.TestCase):
    """docs/results: pages are what records say, and nothing lies about."""

    def test_pages_are_what_their_records_say(self):
        with cli.tempfile.TemporaryDirectory() as folder:
            known = names()
            pages = [page.stem for page in RESULTS.glob("*.md") if REPORTS.get(page.stem, page.stem) in known]
            self.assertGreater(len(pages), 12)
            for page in pages:
                with self.subTest(page=page):
                    record = RESULTS / f"{RECORDS.get(page, page)}.json"
                    done = report(REPORTS.get(page, page), "--from", record, "--output", folder, folder=folder)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    for file in re.findall(r"wrote (.*)", done.stdout):
                        kept = RESULTS / pathlib.Path(file).name
                        self.assertTrue(kept.exists(), f"{kept} is missing")
                        self.assertEqual(pathlib.Path(file).read_text(), kept.read_text(), f"{kept} is not what {record} says")

    def test_readme_shows_what_its_record_says(self):
        done = report("summary", "--check", folder=cli.SOURCE)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_commands_of_pages_exist(self):
        seen = 0
        for page in [*cli.SOURCE.glob("*.md"), *cli.SOURCE.glob("docs/**/*.md")]:
            for name, rest in re.findall(r"tools/report\.py ([a-z]\w*)((?: +(?:\\\n *)?[^\s`|]+)*)", page.read_text()):
                with self.subTest(page=page.name, command=f"{name}{rest}"):
                    self.assertIn(name, tool.NAMES)
                    known = tool.parser_of(name, importlib.import_module(f"reports.{name}"))._option_string_actions
                    for option in re.findall(r"(?<=\s)--[a-z][a-z-]*", rest):
                        self.assertIn(option, known)
                    seen += 1
        self.assertGreater(seen, 15)

    def test_every_record_is_behind_a_page(self):
        text = "".join(page.read_text() for page in RESULTS.glob("*.md"))
        for record in [*RESULTS.glob("*.json"), *RESULTS.glob("*.json.gz"), *RESULTS.glob("*.svg")]:
            self.assertTrue(record.name in text or record.name.startswith("summary."), f"no page names {record.name}")
            if record.suffix == ".gz":
                json.loads(gzip.decompress(record.read_bytes()))

    def test_there_are_few_files_and_short_lines(self):
        kept_for_later = set(re.findall(r"\]\((\w+\.json\.gz)\)", (RESULTS / "records.md").read_text()))
        counted = [path for path in RESULTS.iterdir() if path.name not in kept_for_later]
        self.assertLessEqual(len(counted), 52)
        self.assertLessEqual(sum(path.stat().st_size for path in counted), 1_500_000)
        for page in RESULTS.glob("*.md"):
            for line in page.read_text().splitlines():
                self.assertTrue(len(line) <= 110 or line.startswith("|"), f"{page.name}: {line}")

    def test_commits_are_mixed_in_three_pages_at_most(self):
        mixed = [path.name for path in [*RESULTS.glob("*.json"), *RESULTS.glob("*.json.gz")] if "commits" in common_keys(path)]
        self.assertLessEqual(len(mixed), 3, mixed)


def common_keys(path):
    record = common.load(path)
    return record.keys() if isinstance(record, dict) else []


if __name__ == "__main__":
    unittest.main()
