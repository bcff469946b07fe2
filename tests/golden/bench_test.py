# SPDX-License-Identifier: Apache-2.0
"""bench and check: the shape of what they write, and comparisons of given figures. No times."""
import json
import pathlib
import subprocess
import sys
import time
import unittest

import cli

RECORD_KEYS = ["op", "graph", "features", "precision", "device", "threads", "kernel", "median_us",
               "min_us", "worst_us", "floor_us", "max_error", "plan", "bytes", "repeats", "heads",
               "rows_checked"]


def record(op="spmm", graph="cora", features=16, threads=1, median=100.0, **more):
    return {"op": op, "graph": graph, "features": features, "precision": "fp32", "device": "cpu",
            "threads": threads, "kernel": "k", "median_us": median, "min_us": median,
            "worst_us": median, "floor_us": None, "max_error": None, "plan": "", **more}


class Bench(cli.CliTest):
    def test_batches_are_cut_from_a_given_partition(self):
        parts = self.folder / "parts.txt"
        parts.write_text("".join(f"{vertex % 41}\n" for vertex in range(82)))
        found = self.json("bench", "batches_gcn_4", "--data", "generate:sbm?vertices=82&communities=2&mean_degree=4",
                          "--features", "8", "--partition", parts, "--quick")
        self.assertEqual(found["failures"], [])
        # 41 parts, 20 to a batch.
        self.assertEqual(found["records"][0]["figures"]["batches"], 3)

    def test_parts_are_for_batches_alone(self):
        parts = self.folder / "parts.txt"
        parts.write_text("0\n" * 34)
        batches = ["bench", "batches_gcn_4", "--data", "embedded:karate", "--quick"]
        self.assertIn("does nothing for these ops", self.fail_with(
            2, "bench", "spmm", "--data", "embedded:karate", "--partition", parts).err)
        self.assertIn("does nothing with --partition", self.fail_with(
            2, *batches, "--partition", parts, "--parts", "2").err)
        parts.write_text("0\n" * 33)
        self.assertIn("34 are needed", self.fail_with(3, *batches, "--partition", parts).err)

    def test_what_was_measured_before_a_signal_is_written(self):
        report = self.folder / "report.json"
        widths = ",".join(map(str, range(16, 400)))  # more than anybody waits for
        for seconds in (1, 4, 16, 64):
            running = subprocess.Popen([cli.PROGRAM, "bench", "spmm", "--data", "embedded:karate", "--quick", "--features", widths,
                                        "--json", report], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            with self.assertRaises(subprocess.TimeoutExpired):
                running.wait(seconds)
            running.terminate()
            time.sleep(0.01)
            running.terminate()  # as `timeout` does, by way of the group
            self.assertEqual(running.wait(cli.SECONDS), 130)
            if report.exists():  # else it had not measured anything yet
                break
        found = json.loads(report.read_text())
        self.assertIs(found["interrupted"], True)
        self.assertGreater(len(found["records"]), 0)
        self.assertLess(len(found["records"]), 384)

    def test_what_was_measured_before_an_error_is_written(self):
        report = self.folder / "report.json"
        broken = self.folder / "broken.txt"
        broken.write_text("7\n")
        plans = self.folder / "plans.json"
        measured = ["bench", "spmm", "--data", "embedded:karate", "--features", "8", "--quick", "--json", report,
                    "--tune", "measured", "--plans", plans]
        failed = self.fail_with(3, *measured, "--data", broken)
        self.assertIn("broken.txt", failed.err)
        self.assertIn("spmm", failed.out)
        found = json.loads(report.read_text())
        self.assertEqual([each["graph"] for each in found["records"]], ["karate"])
        self.assertIn("broken.txt", found["error"])
        # The device has not failed.
        self.assertGreater(len(found["copy_bytes_per_second"]), 0)
        self.assertTrue(plans.exists())
        self.fail_with(3, "bench", "spmm", "--data", broken, "--features", "8", "--quick", "--json", self.folder / "none.json")
        self.assertFalse((self.folder / "none.json").exists())

    def test_cosines(self):
        found = self.json("bench", "attention_cosine", "--data", "embedded:karate", "--features", "7,32", "--quick",
                          "--precision", "fp32,fp64,bf16")
        self.assertEqual([(each["features"], each["heads"]) for each in found["records"]], [(7, 1), (32, 1)] * 3)
        self.assertEqual(found["failures"], [])

    def test_plans_know_how_often_they_are_used(self):
        brief = ["--data", "embedded:karate", "--features", "8", "--quick"]
        self.assertEqual(self.json("bench", "spmm", *brief)["epochs"], 100)
        self.assertEqual(self.json("bench", "spmm", *brief, "--epochs", "7")["epochs"], 7)
        self.assertIn("--epochs", self.fail_with(2, "bench", "spmm", *brief, "--epochs", "0").err)

    def test_records_are_whole(self):
        found = self.json("bench", "spmm", "gemm", "--data", "embedded:karate", "--features", "7,16",
                          "--threads", "1,2", "--precision", "fp32,bf16", "--quick", "--commit", "abc")
        self.assertEqual(found["commit"], "abc")
        self.assertRegex(found["date"], r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$")
        self.assertEqual(list(found["machine"]), ["cpu", "architecture", "cores", "memory_bytes", "gpus"])
        self.assertEqual(list(found["copy_bytes_per_second"]), ["1", "2"])
        self.assertEqual(found["failures"], [])
        # gemm knows no bf16.
        self.assertEqual(len(found["records"]), 2 * 2 * 2 + 2 * 2)
        for each in found["records"]:
            self.assertEqual(list(each), RECORD_KEYS)
            self.assertEqual(each["graph"], "karate")
            self.assertEqual(each["rows_checked"], 34)
            self.assertLessEqual(each["min_us"], each["median_us"])
            self.assertLessEqual(each["median_us"], each["worst_us"])
            self.assertGreater(each["min_us"], 0)
            self.assertGreater(each["floor_us"], 0)

    def test_every_op_runs(self):
        found = self.json("bench", "--data", "embedded:karate", "--features", "8", "--threads", "1",
                          "--quick")
        ops = {each["op"] for each in found["records"]}
        self.assertLess({"spmm", "spmm_max", "spmm_backward", "sddmm", "edge_softmax",
                         "attention_gat", "attention_gat_step", "gemm", "batch_norm"}, ops)

    def test_models_take_the_shape_that_is_asked_for(self):
        shape = ["--data", "embedded:karate", "--quick", "--features", "20", "--hidden", "8",
                 "--classes", "3", "--heads", "4"]
        found = self.json("bench", "step_gcn", "step_gat", "step_agnn", *shape)
        self.assertEqual([each["plan"] for each in found["records"]], [
            "GCN(20, 8, relu) > GCN(8, 3)",
            "GAT(20, 4 heads x 2, elu) > GAT(8, 1 head x 3)",
            "Linear(20, 8, relu) > AGNN(8, fixed beta) > AGNN(8) > Linear(8, 3)"])
        dropped = self.json("bench", "step_gcn", *shape[:3], "--dropout", "0.25")
        self.assertIn("dropout 0.25", dropped["records"][0]["plan"])

    def test_shapes_that_mean_nothing_are_rejected(self):
        data = ["--data", "embedded:karate", "--quick"]
        self.assertIn("where no model is trained",
                      self.fail_with(2, "bench", "spmm", *data, "--hidden", "8").err)
        self.assertIn("divides the hidden width",
                      self.fail_with(2, "bench", "step_gat", *data, "--hidden", "9", "--heads",
                                     "2").err)

    def test_a_kernel_can_be_forced(self):
        found = self.json("bench", "spmm", "--data", "embedded:karate", "--features", "8",
                          "--kernel", "all", "--quick")
        kernels = {each["kernel"] for each in found["records"]}
        self.assertTrue(kernels)
        name = sorted(kernels)[0]
        found = self.json("bench", "spmm", "--data", "embedded:karate", "--features", "8",
                          "--kernel", name, "--quick")
        self.assertEqual({each["kernel"] for each in found["records"]}, {name})

    def test_groups_baselines_and_single_widths(self):
        found = self.json("bench", "spmm", "--data", "embedded:karate", "--features", "8,16", "--quick",
                          "--precision", "fp32,bf16@16", "--kernel", "spmm/cpu/t*", "--baseline",
                          "spmm/cpu/rows", "--threads", "1")
        self.assertEqual([(one["features"], one["precision"], one["kernel"], one.get("baseline", False))
                          for one in found["records"]],
                         [(8, "fp32", "spmm/cpu/tiles", False), (8, "fp32", "spmm/cpu/rows", True),
                          (16, "fp32", "spmm/cpu/tiles", False), (16, "fp32", "spmm/cpu/rows", True),
                          (16, "bf16", "spmm/cpu/tiles", False), (16, "bf16", "spmm/cpu/rows", True)])

    def test_wrong_use(self):
        karate = ["--data", "embedded:karate"]
        for arguments in [["nothing", *karate], ["spmm", *karate, "--features", "x"],
                          ["spmm", *karate, "--precision", "fp7"],
                          ["spmm", *karate, "--precision", "bf16@x"],
                          ["spmm", *karate, "--kernel", "spmm/cpu/nothing"],
                          ["spmm", *karate, "--quick", "--full"], ["compare"], ["compare", "a.json"],
                          ["spmm", *karate, "--threads", "-1"]]:
            with self.subTest(arguments=arguments):
                self.fail_with(cli.USAGE, "bench", *arguments)


class Compare(cli.CliTest):
    def write(self, name, *records):
        path = self.folder / name
        path.write_text(json.dumps({"records": records}))
        return path

    def test_figures(self):
        before = self.write("before.json", record(median=100), record(features=32, median=100),
                            record(features=64, median=80), record(graph="pubmed", median=5))
        after = self.write("after.json", record(median=50), record(features=32, median=400),
                           record(features=64, median=20), record(op="sddmm", median=5))
        found = self.json("bench", "compare", before, after)
        self.assertEqual([case["ratio"] for case in found["cases"]], [2, 0.25, 4])
        self.assertAlmostEqual(found["geometric_mean"], 2 ** (1 / 3))
        self.assertAlmostEqual(found["win_rate"], 2 / 3)
        self.assertEqual(found["worst"], 0.25)
        self.assertEqual((found["only_in_a"], found["only_in_b"]), (1, 1))
        text = self.succeed("bench", "compare", before, after).out
        text = text.replace(str(self.folder) + "/", "")
        self.compare_golden("bench_compare.txt", text)

    def test_the_fastest_of_several_counts(self):
        before = self.write("before.json", record(median=100), record(median=40, kernel="better"))
        after = self.write("after.json", record(median=20))
        case, = self.json("bench", "compare", before, after)["cases"]
        self.assertEqual((case["a_kernel"], case["ratio"]), ("better", 2))

    def test_by_position_names_do_not_matter(self):
        before = self.write("before.json", record(graph="given", median=90), record(graph="b", median=10))
        after = self.write("after.json", record(graph="reordered", median=30), record(graph="b2", median=20))
        self.fail_with(cli.BAD_DATA, "bench", "compare", before, after)
        found = self.json("bench", "compare", before, after, "--by-position")
        self.assertEqual([(case["graph"], case["b_graph"], case["ratio"]) for case in found["cases"]],
                         [("given", "reordered", 3), ("b", "b2", 0.5)])
        self.assertIn("given / reordered", self.succeed("bench", "compare", before, after, "--by-position").out)

    def test_threshold(self):
        before, after = self.write("a.json", record(median=90)), self.write("b.json", record())
        self.succeed("bench", "compare", before, after)
        self.succeed("bench", "compare", before, after, "--fail-under", "0.9")
        self.assertEqual(cli.Run(["bench", "compare", before, after, "--fail-under", "0.91"]).code,
                         cli.CHECK_FAILED)

    def test_files_that_do_not_fit(self):
        good = self.write("good.json", record())
        other = self.write("other.json", record(graph="elsewhere"))
        wrong = self.write("wrong.json", {"op": "spmm"})
        zero = self.write("zero.json", record(median=0))
        text = self.folder / "text.json"
        text.write_text("not JSON")
        array = self.folder / "array.json"
        array.write_text("[1]")
        for path in [other, wrong, zero, text, array]:
            with self.subTest(path=path.name):
                self.fail_with(cli.BAD_DATA, "bench", "compare", good, path)
        self.fail_with(cli.IO, "bench", "compare", good, self.folder / "missing.json")


class Report(cli.CliTest):
    """bench/report.py: our records beside a table of others."""

    def run_script(self, records, rows, *arguments):
        path, peers = self.folder / "bench.json", self.folder / "peers.csv"
        path.write_text(json.dumps({"records": records, "commit": "abc",
                                    "machine": {"gpus": ["A GPU"]}}))
        peers.write_text("op,graph,features,peer,dtype,kernel_us,variant,preprocess_ms\n" +
                         "".join(row + "\n" for row in rows))
        script = pathlib.Path(cli.SOURCE) / "bench" / "report.py"
        return subprocess.run([sys.executable, "-B", script, path, "--peers", peers, *arguments],
                              capture_output=True, text=True, timeout=100, check=False)

    def test_ratios(self):
        records = [record(graph="reddit", median=100.0, floor_us=10.0),
                   record(graph="cora", median=50.0, floor_us=45.0)]
        rows = ["spmm,reddit-sbm,16,rode,fp32,300,rode_spmm,1",
                "spmm,reddit-sbm,16,sputnik,fp32,200,sputnik_spmm,1",
                "spmm,reddit-sbm,16,flashsparse,fp16,5,faster_but_16_bit,1",
                "spmm,reddit-sbm,16,cusparse,fp32,350,cusparse_spmm_alg1,1",
                "spmm,reddit-sbm,16,cusparse,fp32,400,cusparse_spmm_alg3,1",
                "spmm,cora,16,rode,fp32,25,rode_spmm,1", "sddmm,cora,16,rode,fp32,1,rode_sddmm,1"]
        done = self.run_script(records, rows)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("| reddit | 16 | 100.0 |  | k | 10 % | sputnik fp32 | 200.0 | 2.00 | "
                      "cusparse fp32 | 400.0 | 4.00 |", done.stdout)
        self.assertIn("| cora | 16 | 50.0 |  | k | 90 % | rode fp32 | 25.0 | 0.50* |", done.stdout)
        self.assertIn("| best public fp32 | 2 | 1.00 | 0.50 (cora, 16) | 2.00 (reddit, 16) | 0 |",
                      done.stdout)
        self.assertIn("A GPU; commit abc", done.stdout)

    def test_a_baseline_of_the_same_run_counts(self):
        records = [record(median=50.0, floor_us=1.0),
                   record(median=10.0, kernel="spmm/cuda/cusparse_alg3", baseline=True)]
        done = self.run_script(records, ["spmm,cora,16,cusparse,fp32,400,cusparse_spmm_alg3,1"])
        self.assertIn("| cusparse_alg3 | 10.0 | 0.20 |", done.stdout)

    def test_says_what_is_wrong(self):
        done = self.run_script([record(op="sddmm")], [])
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^report.py: error: no record of spmm")


class Plan(cli.CliTest):
    def test_explains_every_candidate(self):
        found = self.json("plan", "embedded:karate", "--features", "16")
        self.assertEqual(list(found)[:3], ["verb", "schema", "name"])
        self.assertEqual([one["verdict"] for one in found["candidates"]].count("chosen"), 1)
        self.assertIn(found["kernel"], found["summary"])
        self.assertIn("predicted", found["summary"])
        text = self.succeed("plan", "embedded:karate", "--features", "16").out
        self.assertIn(found["kernel"], text)

    def test_shows_what_else_was_decided(self):
        found = self.json("plan", "embedded:karate", "--features", "16", "--backward")
        backward = found["children"][0]
        self.assertEqual(backward["name"], "backward")
        self.assertIn(backward["kernel"], backward["summary"])
        self.assertEqual(backward["children"][0]["name"], "gradient of edge values")
        text = self.succeed("plan", "embedded:karate", "--features", "16", "--backward").out
        self.assertRegex(text, r"\nbackward:\n +kernel +predicted")
        self.assertRegex(text, r"\n  gradient of edge values:\n +kernel")
        self.assertEqual(self.json("plan", "embedded:karate")["children"], [])
        for op in ["sddmm", "edge_softmax", "attention"]:
            found = self.json("plan", "embedded:karate", "--op", op, "--backward")
            self.assertIn("backward", [child["name"] for child in found["children"]], op)

    def test_admits_what_the_flags_say(self):
        for flag in ["--strict", "--exact-nonfinite", "--allow-nondeterministic"]:
            self.assertIsNotNone(self.json("plan", "embedded:karate", flag)["kernel"])

    def test_measures(self):
        for op in ["spmm", "spmm_backward", "sddmm", "edge_softmax", "attention"]:
            found = self.json("plan", "embedded:karate", "--op", op, "--tune", "measured")
            self.assertIsNotNone(found["kernel"], op)
        found = self.json("plan", "embedded:karate", "--tune", "measured")
        timed = [one for one in found["candidates"] if one["measured_us"] is not None]
        self.assertGreaterEqual(len(timed), 2)
        best = min(timed, key=lambda one: one["measured_us"])
        self.assertEqual(best["kernel"], found["kernel"])
        self.assertIn("measured", found["summary"])

    def test_a_saved_choice_comes_back(self):
        path = self.folder / "karate.plans"
        arguments = ["plan", "embedded:karate", "--features", "16", "--threads", "2"]
        saved = self.json(*arguments, "--tune", "measured", "--save", path)
        loaded = self.json(*arguments, "--load", path)
        self.assertEqual(loaded["kernel"], saved["kernel"])
        self.assertIn("stored", loaded["summary"])
        self.assertTrue(path.read_text().startswith("tessera plans\t1\n"))

    def test_a_file_for_something_else(self):
        path = self.folder / "karate.plans"
        arguments = ["--features", "16", "--threads", "2"]
        self.succeed("plan", "embedded:karate", *arguments, "--save", path)
        for source, more, words in [("embedded:citation", arguments, "another graph"),
                                    ("embedded:karate", ["--features", "16", "--threads", "1"],
                                     "another device"),
                                    ("embedded:karate", ["--features", "17", "--threads", "2"],
                                     "features 16")]:
            done = self.fail_with(cli.BAD_DATA, "plan", source, *more, "--load", path)
            self.assertIn(words, done.err)
        path.write_text(path.read_text().replace("plans\t1", "plans\t2"))
        done = self.fail_with(cli.BAD_DATA, "plan", "embedded:karate", *arguments, "--load", path)
        self.assertIn("format 2", done.err)
        path.write_text("something else\n")
        self.fail_with(cli.BAD_DATA, "plan", "embedded:karate", *arguments, "--load", path)
        self.fail_with(cli.IO, "plan", "embedded:karate", "--load", self.folder / "missing.plans")

    def test_wrong_use(self):
        for arguments in [["--op", "nothing"], ["--tune", "guessed"], ["--form", "x", "--op", "attention"],
                          ["--save", "a", "--load", "b"], ["--precision", "fp7"]]:
            with self.subTest(arguments=arguments):
                self.fail_with(cli.USAGE, "plan", "embedded:karate", *arguments)

    def test_training_keeps_its_plans(self):
        path = self.folder / "train.plans"
        checkpoint = self.folder / "model.tsr"
        arguments = ["train", "embedded:karate", "--split", "0.3,0.3,0.4", "--epochs", "3", "--model",
                     "gat", "--threads", "2", "--plans", path]
        measured = self.json(*arguments, "--tune", "measured", "--checkpoint", checkpoint)
        self.assertEqual(measured["config"]["plans"]["tune"], "measured")
        choices = path.read_text()
        self.assertIn("choice\tattention\t", choices)
        again = self.json(*arguments, "--strict", "--exact-nonfinite")
        self.assertIs(again["config"]["plans"]["strict"], True)
        self.assertIn("strict, exact where not finite", path.read_text())
        self.assertTrue(path.read_text().startswith(choices), "what was there stays")
        predicting = ["predict", "embedded:karate", "--checkpoint", checkpoint, "--threads", "2"]
        self.succeed(*predicting, "--plans", path, "--strict")
        self.fail_with(cli.USAGE, *predicting, "--tune", "guessed")
        self.fail_with(cli.USAGE, *arguments, "--tune", "guessed")
        path.write_text("something else\n")
        self.fail_with(cli.BAD_DATA, *arguments)

    def test_bench_keeps_its_plans(self):
        path = self.folder / "bench.plans"
        arguments = ["bench", "spmm", "--data", "embedded:karate", "--features", "8,16", "--threads",
                     "2", "--quick", "--plans", path]
        first = self.json(*arguments, "--tune", "measured")
        again = self.json(*arguments)
        self.assertEqual([one["kernel"] for one in first["records"]],
                         [one["kernel"] for one in again["records"]])
        self.assertIn("stored", again["records"][0]["plan"])


class NoFeatures(cli.CliTest):
    def test_every_op_has_a_result_or_says_why_not(self):
        for op in ["spmm", "spmm_max", "spmm_backward", "sddmm", "attention_gat", "attention_gat_step",
                   "attention_gatv2_step", "attention_dot_step", "aggregate_update", "gemm"]:
            with self.subTest(op=op):
                found = self.json("bench", op, "--data", "embedded:karate", "--features", "0", "--quick")
                self.assertEqual([one["features"] for one in found["records"]], [0])
        for op in ["edge_softmax", "sddmm_add"]:
            with self.subTest(op=op):
                arguments = ["bench", op, "--data", "embedded:karate", "--features", "0", "--quick"]
                self.assertIn("at least one feature", self.fail_with(cli.UNAVAILABLE, *arguments).err)
        found = self.json("check", "embedded:karate", "--features", "0,3")
        self.assertTrue(found["passed"])


class Check(cli.CliTest):
    def test_karate(self):
        found = self.json("check", "embedded:karate")
        self.assertEqual((found["verb"], found["name"], found["passed"]), ("check", "karate", True))
        self.assertEqual(list(found["checks"][0]),
                         ["op", "kernel", "features", "precision", "rows_checked", "rows",
                          "max_error", "bound", "verdict"])
        for check in found["checks"]:
            self.assertLessEqual(check["max_error"], check["bound"])
            self.assertLessEqual(check["rows_checked"], check["rows"])
        summary = self.succeed("check", "embedded:karate").out
        details = self.succeed("check", "embedded:karate", "--details").out
        self.assertLess(2 * summary.count("\n"), details.count("\n"))
        self.assertEqual(summary.splitlines()[-1], details.splitlines()[-1])
        self.assertEqual(summary.count("\n  spmm "), 1)
        self.assertRegex(details, r"all \d+ checks passed(; \d+ unsupported cases left out)?\n$")

    def test_widths(self):
        found = self.json("check", "embedded:karate", "--features", "5")
        self.assertEqual({check["features"] for check in found["checks"]}, {5})


class Plot(cli.CliTest):
    def test_says_what_is_wrong(self):
        script = pathlib.Path(cli.SOURCE) / "bench" / "plot.py"
        path = self.folder / "none.json"
        path.write_text("{}")
        done = subprocess.run([sys.executable, "-B", script, path], capture_output=True, text=True,
                              timeout=100, check=False)
        self.assertEqual(done.returncode, 1)
        self.assertRegex(done.stderr, r"^plot.py: error: (matplotlib is not installed|.*none.json)")


if __name__ == "__main__":
    unittest.main()
