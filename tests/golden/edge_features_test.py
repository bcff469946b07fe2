# SPDX-License-Identifier: Apache-2.0
"""Training and predicting with features of edges from the command line."""
import unittest

import cli

SPLIT = ["--split", "0.4,0.3,0.3"]
SHORT = ["--epochs", "5", *SPLIT]


class EdgeFeatures(cli.CliTest):
    def setUp(self):
        super().setUp()
        edges = ["source,target,minutes,kind"]
        rows = ["id,age,churn"]
        for i in range(60):
            rows.append(f"u{i},{20 + i % 9},{'yes' if i % 2 else 'no'}")
            edges.append(f"u{(i + 2) % 60},u{i},{i % 7 + 1},{'work' if i % 2 else 'home'}")
            edges.append(f"u{(i + 7) % 60},u{i},{i % 5},{'home' if i % 2 else 'work'}")
        self.edges = self.folder / "calls.csv"
        self.edges.write_text("\n".join(edges) + "\n")
        (self.folder / "users.csv").write_text("\n".join(rows) + "\n")
        self.table = [self.edges, "--nodes", self.folder / "users.csv", "--label", "churn"]
        self.data = [*self.table, "--edge-features", "minutes,kind"]
        self.model = self.folder / "model.tsr"

    def train(self, *more):
        return self.json("train", *self.data, *SHORT, "--model", "gine", *more)

    def test_a_model_reads_them(self):
        found = self.train("-c", self.model)
        self.assertEqual((found["model"], found["config"]["model"]["edge_features"]), ("gine", 3))
        info = self.json("info", self.model)
        self.assertEqual((info["edge_features"], info["edge_normalise"]), (3, "standard"))
        self.assertEqual([column["name"] for column in info["edge_feature_columns"]], ["minutes", "kind"])
        text = self.succeed("info", self.model).out
        self.assertIn("features of edges", text)
        self.assertIn("kind (home, work)", text)
        again = self.json("train", *self.data, *SPLIT, "--model", "gine", "-c", self.model, "--resume", "--epochs", "7")
        self.assertEqual(again["curve"][-1]["epoch"], 7)

    def test_predictions_find_them_by_name(self):
        self.train("-c", self.model)
        written = []
        for columns in ["minutes,kind", "kind,minutes"]:
            out = self.folder / "found.csv"
            self.succeed("predict", *self.table, "--edge-features", columns, "-c", self.model, "-o", out, "--force")
            written.append(out.read_text())
        self.assertEqual(*written)
        err = self.fail_with(cli.USAGE, "predict", *self.table, "-c", self.model, "-o", self.folder / "x.csv").err
        self.assertIn("gine reads features of edges, and the data has none", err)
        err = self.fail_with(cli.USAGE, "predict", *self.table, "--edge-features", "kind", "-c", self.model,
                             "-o", self.folder / "x.csv").err
        self.assertIn("'minutes'", err)

    def test_batches_of_parts_and_other_precisions_train(self):
        for more in [["--batch", "clusters", "--parts", "6", "--parts-per-batch", "2"], ["--precision", "bf16"],
                     ["--layers", "3", "--residual", "--recompute"], ["--layers", "1"]]:
            with self.subTest(more=more):
                self.assertEqual(self.train(*more)["model"], "gine")

    def test_a_step_is_explained_and_its_memory_predicted(self):
        self.assertIn("messages relu", self.train("--explain", "step")["step"]["rewritten"])
        self.assertGreater(self.train("--dry-run")["predicted_memory_bytes"]["activations"], 0)

    def test_settings_are_searched(self):
        found = self.json("tune", *self.data, *SHORT, "--model", "gine", "--trials", "2", "--search", "hidden=4|8",
                          "--state", self.folder / "trials")
        self.assertEqual(len(found["trials"]), 2)

    def test_parallel_edges_stay_apart(self):
        self.edges.write_text(self.edges.read_text() + "u2,u0,70,home\nu2,u0,71,work\n")
        err = self.fail_with(cli.BAD_DATA, "info", *self.data).err
        self.assertIn("occurs more than once", err)
        kept = [*self.data, "--duplicates", "keep"]
        info = self.json("info", *kept)
        self.assertEqual((info["edges"], info["edge_features"]), (122, 3))
        saved = self.folder / "kept.tsr"
        found = self.json("train", *kept, *SHORT, "--model", "gine", "-c", self.model, "--save-data", saved)
        self.assertEqual(found["edges"], 122)
        written = []
        for source in [kept, [saved]]:
            out = self.folder / "found.csv"
            self.succeed("predict", *source, "-c", self.model, "-o", out, "--force")
            written.append(out.read_text())
        self.assertEqual(*written)
        self.train("--duplicates", "keep", "--batch", "clusters", "--parts", "4")
        for verb in [["prune", saved, "-o", self.folder / "pruned.tsr"], ["reorder", saved, "--method", "nm"]]:
            self.assertIn("some are listed twice", self.fail_with(cli.UNAVAILABLE, *verb).err)
        err = self.fail_with(cli.USAGE, "info", *self.table, "--duplicates", "keep").err
        self.assertIn("edges that are listed twice have no features", err)
        err = self.fail_with(cli.UNAVAILABLE, "info", *kept, "--symmetrise").err
        self.assertIn("some edges are listed twice", err)

    def test_what_is_missing_is_named(self):
        err = self.fail_with(cli.USAGE, "train", *self.table, *SHORT, "--model", "gine").err
        self.assertIn("--edge-features", err)
        err = self.fail_with(cli.USAGE, "train", *self.data, *SHORT, "--model", "gine", "--pattern", "1:2:4").err
        self.assertIn("--pattern", err)
        note = self.json("train", *self.data, *SHORT, "--model", "gin")["notes"]
        self.assertIn("features of edges play no part in gin (--model gine)", note)


if __name__ == "__main__":
    unittest.main()
