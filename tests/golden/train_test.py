# SPDX-License-Identifier: Apache-2.0
"""Training and predicting from the command line."""
import unittest

import cli

KARATE = ["embedded:karate", "--split", "0.3,0.3,0.4"]
SHORT = ["--epochs", "5"]
EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3)]


class Train(cli.CliTest):
    def write(self, **arrays):
        path = self.folder / "graph.npz"
        path.write_bytes(cli.graph_npz(5, EDGES, **arrays))
        return path

    def test_json_keeps_the_contract(self):
        found = self.json("train", *KARATE, *SHORT, "--runs", "2")
        self.assertEqual(found["verb"], "train")
        self.assertEqual(set(found["test"]), {"metric", "mean", "std", "runs"})
        self.assertEqual(found["test"]["runs"], 2)
        for key in ["step_ms", "epoch_ms", "peak_memory_bytes"]:
            self.assertGreater(found[key], 0, key)
        self.assertEqual(found["config"]["model"]["kind"], "gcn")
        self.assertEqual(found["config"]["training"]["epochs"], 5)
        self.assertEqual(len(found["curve"]), 5)
        self.assertEqual([run["seed"] for run in found["runs"]], [1, 2])

    def test_results_do_not_depend_on_threads(self):
        for extra in [[], ["--parallel-runs"]]:
            runs = [self.json("train", *KARATE, *SHORT, "--model", "gat", "--runs", "2",
                              "--threads", threads, *extra)["runs"] for threads in "12"]
            self.assertEqual(*runs)

    def test_every_model_trains(self):
        for model in "gcn sage gin gat gatv2 agnn sgc cheb".split():
            with self.subTest(model=model):
                found = self.json("train", *KARATE, *SHORT, "--model", model)
                self.assertEqual(found["model"], model)

    def test_report_for_people(self):
        out = self.succeed("train", *KARATE, *SHORT, "--curve").out
        for part in ["test accuracy", "time per epoch", "time spent on", "training loss",
                     "no split in the data", "each vertex gets one of its own"]:
            self.assertIn(part, out)

    def test_clusters_and_a_partition_of_ones_own(self):
        parts = self.folder / "parts.txt"
        self.succeed("partition", "embedded:karate", "--parts", "3", "-o", parts)
        made = self.json("train", *KARATE, *SHORT, "--batch", "clusters", "--parts", "3")
        self.assertEqual(made["config"]["training"]["batching"], "clusters")
        given = self.json("train", *KARATE, *SHORT, "--partition", parts)
        self.assertEqual(given["config"]["training"]["batching"], "clusters")

    def test_batches_of_neighbours_and_of_walks(self):
        drawn = ["--batch", "neighbours", "--fanout", "3,2", "--batch-size", "5"]
        runs = [self.json("train", *KARATE, *SHORT, *drawn, "--model", "sage", "--threads", threads)
                for threads in "12"]
        self.assertEqual(runs[0]["curve"], runs[1]["curve"])
        training = runs[0]["config"]["training"]
        self.assertEqual([training[key] for key in ("batching", "fan_outs", "batch_size", "replace")],
                         ["neighbours", "3,2", 5, False])
        self.json("train", *KARATE, *SHORT, "--batch", "neighbours", "--fanout", "-1", "--replace")
        walks = self.json("train", *KARATE, *SHORT, "--batch", "walks", "--walk-length", "3")
        self.assertEqual(walks["config"]["training"]["walk_length"], 3)
        self.assertGreater(self.json("train", *KARATE, *drawn, "--dry-run")["predicted_memory_bytes"]["total"], 0)
        self.assertIn("first_rows", self.succeed("train", *KARATE, *drawn, "--model", "sage", "--explain", "step").out)
        for words, option in [("'x' is no fan-out", ["--batch", "neighbours", "--fanout", "3,x"]),
                              ("--fanout: 3 fan_outs for a model that sums over neighbours 2 times",
                               ["--batch", "neighbours", "--fanout", "3,2,1"]),
                              ("--fanout: does nothing without batches of neighbours", ["--fanout", "3"]),
                              ("--walk-length: does nothing", ["--walk-length", "3"]),
                              ("cheb", ["--batch", "neighbours", "--model", "cheb"]),
                              ("--batch-size", ["--batch", "neighbours", "--batch-size", "0"])]:
            self.assertIn(words, self.fail_with(cli.USAGE, "train", *KARATE, *option).err)

    def test_evaluation_and_prediction_of_some_rows_at_a_time(self):
        checkpoint = self.folder / "model.tsr"
        some, whole = self.folder / "some.csv", self.folder / "whole.csv"
        plain = self.json("train", *KARATE, *SHORT)
        by_rows = self.json("train", *KARATE, *SHORT, "--rows-at-a-time", "7", "-c", checkpoint)
        self.assertAlmostEqual(plain["curve"][-1]["validation_loss"], by_rows["curve"][-1]["validation_loss"], places=4)
        self.succeed("predict", "embedded:karate", "-c", checkpoint, "-o", whole)
        self.succeed("predict", "embedded:karate", "-c", checkpoint, "-o", some, "--rows-at-a-time", "7")
        self.assertEqual(len(some.read_text().splitlines()), len(whole.read_text().splitlines()))

    def test_vertices_are_reordered_inside(self):
        plain = self.json("train", *KARATE, *SHORT, "--dropout", "0")
        ordered = self.json("train", *KARATE, *SHORT, "--dropout", "0", "--pattern", "1:2:4")
        self.assertEqual(ordered["config"]["training"]["pattern"], "1:2:4")
        self.assertIn("vertices reordered for training: the graph fits 1:2:4", ordered["notes"])
        self.assertAlmostEqual(plain["curve"][-1]["loss"], ordered["curve"][-1]["loss"], places=4)
        kept = self.json("train", *KARATE, *SHORT, "--pattern", "auto")
        self.assertTrue(any("vertices stay" in note for note in kept["notes"]), kept["notes"])
        batches = self.json("train", *KARATE, *SHORT, "--pattern", "1:2:4", "--batch", "clusters", "--parts", "3")
        self.assertTrue(any("each batch" in note for note in batches["notes"]), batches["notes"])

    def test_dry_run_predicts_memory_and_writes_nothing(self):
        found = self.json("train", *KARATE, "--dry-run")
        self.assertGreater(found["predicted_memory_bytes"]["total"], 0)
        err = self.fail_with(cli.USAGE, "train", *KARATE, "--dry-run", "-c", self.folder / "model.tsr").err
        self.assertIn("--checkpoint: does nothing with --dry-run", err)
        self.assertEqual(self.leftovers(), [])
        self.assertIn("together", self.succeed("train", *KARATE, "--dry-run").out)

    def test_predict_after_train(self):
        checkpoint = self.folder / "model.tsr"
        best = self.json("train", *KARATE, *SHORT, "--checkpoint", checkpoint)
        classes = self.folder / "classes.txt"
        found = self.json("predict", "embedded:karate", "--checkpoint", checkpoint, "-o", classes)
        self.assertEqual(found["items"], 34)
        self.assertEqual(sum(found["predicted"].values()), 34)
        self.assertEqual(len(classes.read_text().split()), 34)
        self.assertEqual(best["checkpoint"], str(checkpoint))

    def test_info_of_a_model_says_its_bits_and_size(self):
        model = str(self.folder / "model.tsr")
        self.succeed("train", *KARATE, *SHORT, "--bits", "8,4", "--checkpoint", model)
        found = self.json("info", model)
        self.assertEqual((found["verb"], found["model"], found["epochs"]), ("info", "gcn", 5))
        self.assertEqual(found["bits"]["layers"], [8, 4])
        self.assertLess(found["bits"]["weight_bytes"], found["full_weight_bytes"])
        self.assertGreaterEqual(found["best"]["epoch"], 1)
        text = self.succeed("info", model).out
        for part in ["a trained model", "8,4", "1 run, 5 epochs", "% of fp32"]:
            self.assertIn(part, text)
        self.fail_with(cli.USAGE, "info", model, "--picture", str(self.folder / "model.svg"))

    def test_a_model_of_few_bits_keeps_its_ranges_and_says_what_they_cost(self):
        full, few, later = (str(self.folder / name) for name in ["full.tsr", "few.tsr", "later.tsr"])
        self.succeed("train", "embedded:citation", *SHORT, "--checkpoint", full)
        trained = self.json("train", "embedded:citation", *SHORT, "--bits", "8", "--checkpoint", few,
                            "--baseline", full)
        found = self.json("info", few)
        cost = self.json("info", full)["best"]["test"] - found["best"]["test"]
        self.assertAlmostEqual(found["bits"]["lost"], cost)
        self.assertAlmostEqual(trained["lost"], cost)
        self.assertFalse(found["bits"]["after_training"])
        self.assertTrue(found["bits"]["has_ranges"])
        self.assertIn("points of accuracy against all bits", self.succeed("info", few).out)
        self.assertIn("ranges of the checkpoint",
                      self.json("predict", "embedded:citation", "-c", few)["bits"]["computed"])
        self.assertIn("ranges of the first features",
                      self.json("predict", "embedded:citation", "-c", few, "--calibrate")["bits"]["computed"])
        for ranges in ["0.99", "-0.5,0.5"]:
            self.assertIn("ranges of the first features",
                          self.json("predict", "embedded:citation", "-c", few, "--ranges", ranges)["bits"]["computed"])
        self.assertIn("LOWER,UPPER", self.fail_with(
            cli.USAGE, "predict", "embedded:citation", "-c", few, "--ranges", "2").err)
        batched = self.json("predict", "embedded:citation", "-c", few, "--parts", "30", "--parts-per-batch", "8")
        self.assertEqual(batched["bits"]["batches"], 4)
        self.assertNotIn("feature_bytes", batched["bits"])
        # What is lost is lost by bits alone: 16 of them lose nothing, whatever the cut of edges costs.
        cut = self.json("predict", "embedded:citation", "-c", full, "--bits", "16", "--parts", "1000", "--quantised", later)
        self.assertAlmostEqual(cut["bits"]["lost"], 0, delta=0.003)
        self.assertAlmostEqual(self.json("info", later)["bits"]["lost"], cut["bits"]["lost"])
        self.assertIn("1 of 4 parts", self.succeed("predict", "embedded:citation", "-c", few, "--parts", "4").out)
        self.assertIn("leave out --rounded", self.fail_with(
            cli.UNAVAILABLE, "predict", "embedded:citation", "-c", few, "--parts", "4", "--rounded").err)
        self.assertIn("does nothing for a model with all bits", self.fail_with(
            cli.USAGE, "predict", "embedded:citation", "-c", full, "--parts", "3").err)
        self.assertIn("does nothing for a whole graph", self.fail_with(
            cli.USAGE, "predict", "embedded:citation", "-c", few, "--parts-per-batch", "3").err)
        bytes_of = {}
        for bits in ["8", "2"]:
            quantised = self.json("predict", "embedded:citation", "-c", full, "--bits", bits,
                                  "--quantised", later, "--force")
            self.assertEqual(quantised["quantised"], later)
            self.assertGreater(quantised["peak_memory_bytes"], quantised["bits"]["feature_bytes"])
            bytes_of[bits] = quantised["bits"]["feature_bytes"]
            after = self.json("info", later)["bits"]
            self.assertAlmostEqual(after["lost"], quantised["bits"]["lost"])
            self.assertTrue(after["after_training"])
            self.assertIn("with all bits", self.succeed("info", later).out)
        self.assertEqual(bytes_of["8"], 4 * bytes_of["2"])
        self.assertEqual(self.json("predict", "embedded:citation", "-c", later)["predicted"],
                         quantised["predicted"])
        for wrong in [["--calibrate"], ["--ranges", "0.9"], ["--quantised", str(self.folder / "no.tsr")]]:
            self.assertIn("all bits", self.fail_with(
                cli.USAGE, "predict", "embedded:citation", "-c", full, *wrong).err)
        self.fail_with(cli.USAGE, "train", "embedded:citation", *SHORT, "--baseline", full)
        self.fail_with(cli.USAGE, "train", "embedded:citation", *SHORT, "--bits", "8", "--checkpoint",
                       str(self.folder / "new.tsr"), "--baseline", few)
        self.assertIn("other layers", self.fail_with(
            cli.USAGE, "train", "embedded:citation", *SHORT, "--bits", "8", "--layers", "3", "--checkpoint",
            str(self.folder / "new.tsr"), "--baseline", full).err)

    def test_features_are_scaled_as_asked_and_again_for_predictions(self):
        checkpoint = self.folder / "model.tsr"
        best = {}
        for given, kept in [("off", "off"), ("rows", "rows"), ("on", "rows"),
                            ("standard", "standard"), ("auto", "auto")]:
            found = self.json("train", "embedded:citation", *SHORT, "--checkpoint", checkpoint,
                              "--normalise", given, "--force")
            self.assertEqual(found["config"]["training"]["normalise"], kept)
            predicted = self.json("predict", "embedded:citation", "--checkpoint", checkpoint)
            self.assertEqual(predicted["test"]["value"], found["test"]["mean"])
            best[given] = found["test"]["mean"]
        self.assertEqual(best["on"], best["rows"])
        self.assertEqual(len({best["off"], best["rows"], best["standard"]}), 3)

    def test_a_split_without_a_test_part(self):
        found = self.json("train", "embedded:karate", "--split", "0.8,0.2,0", *SHORT)
        self.assertIsNone(found["test"]["mean"])
        self.assertTrue(any("nothing is tested" in note for note in found["notes"]), found["notes"])

    def test_resuming_with_other_options_is_an_error(self):
        checkpoint = self.folder / "model.tsr"
        self.succeed("train", *KARATE, *SHORT, "--checkpoint", checkpoint)
        self.fail_with(cli.USAGE, "train", *KARATE, *SHORT, "--checkpoint", checkpoint)
        failed = self.fail_with(cli.USAGE, "train", *KARATE, *SHORT, "--checkpoint", checkpoint,
                                "--resume", "--hidden", "9")
        self.assertIn("made with --hidden = 16, not 9", failed.err)
        self.succeed("train", *KARATE, "--epochs", "6", "--checkpoint", checkpoint, "--resume")


class Impossible(cli.CliTest):
    write = Train.write

    def reason(self, code, *arguments):
        return self.fail_with(code, *arguments).err

    def test_labels(self):
        self.assertIn("no labels", self.reason(cli.USAGE, "train", self.write()))
        labels = cli.npy([3] * 5, "q")
        self.assertIn("at least two classes", self.reason(cli.USAGE, "train", self.write(y=labels)))

    def test_split(self):
        path = self.write(y=cli.npy([0, 1, 0, 1, -1], "q"), train_idx=cli.npy([0], "q"),
                          test_idx=cli.npy([1], "q"))
        self.assertIn("validation part of the split is empty", self.reason(cli.USAGE, "train", path))
        path = self.write(y=cli.npy([0, 1, 0, 1, -1], "q"), train_idx=cli.npy([0], "q"),
                          val_idx=cli.npy([1], "q"), test_idx=cli.npy([4], "q"))
        self.assertIn("vertex 4", self.reason(cli.USAGE, "train", path))
        self.assertIn("three shares",
                      self.reason(cli.USAGE, "train", "embedded:karate", "--split", "0.5,0.5"))

    def test_features(self):
        path = self.write(y=cli.npy([0, 1, 0, 1, 0], "q"),
                          x=cli.npy([1, float("nan"), 0, 0, 1], "f", (5, 1)))
        self.assertIn("vertex 1", self.reason(cli.BAD_DATA, "train", path))

    def test_widths(self):
        self.assertIn("hidden is 0",
                      self.reason(cli.USAGE, "train", "embedded:karate", "--hidden", "0"))
        checkpoint = self.folder / "model.tsr"
        self.succeed("train", *KARATE, *SHORT, "--checkpoint", checkpoint)
        other = self.reason(cli.USAGE, "predict", "embedded:citation", "-c", checkpoint)
        self.assertIn("has 1433 features", other)

    def test_checkpoints(self):
        self.reason(cli.IO, "predict", "embedded:karate", "-c", self.folder / "missing.tsr")
        data = self.folder / "data.tsr"
        self.succeed("convert", "embedded:karate", "-o", data)
        self.assertIn("not a checkpoint",
                      self.reason(cli.BAD_DATA, "predict", "embedded:karate", "-c", data))
        self.assertIn("--checkpoint",
                      self.reason(cli.USAGE, "train", "embedded:karate", "--resume"))

    def test_names(self):
        self.assertIn("gatv2", self.reason(cli.USAGE, "train", "embedded:karate", "-m", "gatt"))
        self.reason(cli.USAGE, "train", "embedded:karate", "--metric", "f2")
        self.reason(cli.USAGE, "train", "embedded:karate", "--batch", "tiny")
        for model in ("gat", "gcn"):
            self.assertIn("--precompute: ", self.reason(
                cli.UNAVAILABLE, "train", "embedded:karate", "--model", model, "--dropout", "0.5", "--precompute"))
        self.assertIn("--stop-by: unknown way to stop 'foo'",
                      self.reason(cli.USAGE, "train", "embedded:karate", "--stop-by", "foo"))
        self.assertIn("--decay-every: is 3, but the schedule is cosine", self.reason(
            cli.USAGE, "train", "embedded:karate", "--schedule", "cosine", "--decay-every", "3"))

    def test_class_weights(self):
        none = ",".join(f"{k}=0" for k in range(7))
        self.assertIn("--class-weights: no item to train on has a weight above 0", self.reason(
            cli.USAGE, "train", "embedded:citation", *SHORT, "--class-weights", none))

    def test_device(self):
        built = self.json("doctor")
        if built["gpu"].get("devices"):
            self.skipTest("there is a GPU")
        self.reason(cli.UNAVAILABLE, "train", "embedded:karate", "--device", "cuda")

    def test_divergence(self):
        self.assertIn("lower the learning rate",
                      self.reason(cli.USAGE, "train", *KARATE, "--optimiser", "sgd", "--lr", "1e30"))


if __name__ == "__main__":
    unittest.main()
