# SPDX-License-Identifier: Apache-2.0
"""What a training step computes, and how much of it is kept."""
import unittest

import cli

KARATE = ["embedded:karate", "--split", "0.3,0.3,0.4"]


class Explain(cli.CliTest):
    def step(self, *arguments):
        return self.json("train", *KARATE, *arguments, "--explain", "step")["step"]

    def test_text_shows_programs_and_rewrites(self):
        out = self.succeed("train", *KARATE, "--explain", "step").out
        for part in ["as layers say it", "as it is run, with its gradients", "linear", "aggregate", "loss", "rewrites",
                     "merge-finishes", "side by side"]:
            self.assertIn(part, out)

    def test_nothing_is_trained(self):
        self.assertNotIn("test", self.json("train", *KARATE, "--explain", "step"))
        checkpoint = self.folder / "model.tsr"
        for option in (["--curve"], ["-c", checkpoint]):
            err = self.fail_with(2, "train", *KARATE, "--explain", "step", *option).err
            self.assertIn("does nothing with --explain", err)
        self.assertEqual(self.leftovers(), [])

    def test_rewrites_save_what_they_say(self):
        for model in "gcn sage gin gat gatv2 agnn sgc cheb".split():
            with self.subTest(model=model):
                found = self.step("--model", model)
                self.assertGreater(len(found["rewrites"]), 0)
                names = [one["rewrite"] for one in found["rewrites"]]
                plain = self.step("--model", model, "--without-rewrites", ",".join(names))
                saved = sum(one["saved_bytes"] for one in found["rewrites"])
                left = sum(one["saved_bytes"] for one in plain["rewrites"])
                self.assertFalse(set(names) & {one["rewrite"] for one in plain["rewrites"]})
                self.assertLess(found["rewritten"].count("\n"), plain["rewritten"].count("\n"))
                self.assertLessEqual(found["bytes_moved"], plain["bytes_moved"])
                self.assertGreater(saved, left)

    def test_rewrites_can_be_left_out_of_a_training(self):
        results = [self.json("train", *KARATE, "--epochs", "5", "--dropout", "0", *extra)["curve"][-1]["loss"]
                   for extra in [[], ["--without-rewrites", "merge-finishes,sums-first"]]]
        self.assertAlmostEqual(*results, places=5)

    def test_unknown_names_are_an_error_that_lists_those_there_are(self):
        for extra in [[], ["--explain", "step"], ["--dry-run"]]:
            err = self.fail_with(2, "train", *KARATE, "--epochs", "1", "--without-rewrites", "merge", *extra).err
            self.assertIn("--without-rewrites: there is no rewrite 'merge'", err)
            self.assertIn("merge-finishes", err)

    def test_recomputing_takes_less_and_changes_nothing(self):
        deep = ["--model", "gcn", "--layers", "5", "--hidden", "64", "--activation", "elu"]
        kept, again = self.step(*deep), self.step(*deep, "--recompute")
        self.assertEqual(kept["recomputed_values"], 0)
        self.assertGreater(again["recomputed_values"], 0)
        self.assertLess(again["arena_bytes"], kept["arena_bytes"])
        self.assertLessEqual(again["bytes_moved"], 1.25 * kept["bytes_moved"])
        curves = [self.json("train", *KARATE, *deep, "--epochs", "4", *extra)["curve"]
                  for extra in [[], ["--recompute"]]]
        self.assertEqual(*curves)

    def test_every_model_recomputes_to_the_same(self):
        for model in "gcn sage gin gat gatv2 agnn sgc cheb".split():
            for extra in [[], ["--batch-norm"]]:
                if extra and model in ("sgc", "agnn"):
                    continue
                layers = [] if model == "sgc" else ["--layers", "3"]
                with self.subTest(model=model, extra=extra):
                    common = ["train", *KARATE, "--model", model, *layers, *extra, "--epochs", "3"]
                    self.assertEqual(*(self.json(*common, *recompute)["curve"] for recompute in [[], ["--recompute"]]))


if __name__ == "__main__":
    unittest.main()
