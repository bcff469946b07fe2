# SPDX-License-Identifier: Apache-2.0
"""Facts by name: info, train and predict on folders of triples."""
import json
import unittest

import cli
import json_keys_test


class Triples(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.towns = self.folder / "towns"
        self.towns.mkdir()
        parts = {"train": [], "valid": [], "test": []}
        for i in range(40):
            here, there = f"town {i}", f"town {(i + 1) % 40}"
            parts["train"].append((here, "north_of", there))
            parts["valid" if i % 8 == 0 else "test" if i % 8 == 1 else "train"].append((there, "south_of", here))
        for part, triples in parts.items():
            (self.towns / f"{part}.tsv").write_text("".join("\t".join(triple) + "\n" for triple in triples))
        self.small = ["--task", "triples", "--hidden", "20", "--epochs", "4", "--evaluate-every", "2"]

    def record(self, verb, *arguments, of="triples"):
        record = json.loads(self.succeed(*arguments, "--json", "-").out)
        section = f"{verb} of {of}"
        sections = json_keys_test.page()
        keys = {**sections["Every verb"], **sections[section]}
        found = json_keys_test.flattened(record, keys)
        for path, value in found:
            self.assertIn(path, keys, "not in docs/json.md")
            json_keys_test.Keys.check_type(self, path, value, keys[path][0])
        always = {path for path, (_, rare) in keys.items() if not rare}
        self.assertEqual(always - {path for path, _ in found}, set(), "in docs/json.md, but not written")
        return record

    def test_info_counts(self):
        record = self.record("info", "info", self.towns)
        self.assertEqual((record["entities"], record["relations"]), (40, 2))
        self.assertEqual(record["triples"], {"train": 70, "validation": 5, "test": 5})
        self.assertEqual(record["relation_counts"][0], {"name": "north_of", "train": 40})
        self.expect_failure(cli.USAGE, "does nothing for a folder of triples", "info", self.towns, "--symmetrise")

    def test_training_answers_questions(self):
        model, answers = self.folder / "towns.tsr", self.folder / "answers.tsv"
        record = self.record("train", "train", self.towns, *self.small, "-c", model)
        self.assertEqual((record["model"], record["test"]["ranks"], len(record["curve"])), ("rgcn", 10, 4))
        self.assertIsNone(record["curve"][0]["validation"])
        stopped = self.record("train", "train", self.towns, *self.small, "--early-stopping", "1", "--force", "-c", model)
        self.assertEqual(len(stopped["curve"]) % 2, 0)  # no epoch is the last that was not judged
        described = self.record("info", "info", model, of="a model of triples")
        self.assertEqual((described["entities"], described["relations"], described["width"]), (40, 2, 20))
        self.expect_failure(cli.USAGE, "does nothing for a trained model", "info", model, "--symmetrise")
        self.expect_failure(cli.USAGE, "is a folder of triples; learn them with --task triples", "train", self.towns)
        questions = self.folder / "questions.tsv"
        questions.write_text("town 3\tnorth_of\ntown 5\tsouth_of\n")
        record = self.record("predict", "predict", self.towns, "-c", model, "--for", questions, "--top", "3", "-o", answers)
        self.assertEqual((record["questions"], record["answers"]), (2, 6))
        lines = [line.split("\t") for line in answers.read_text().splitlines()]
        self.assertEqual([line[:2] for line in lines], [["town 3", "north_of"]] * 3 + [["town 5", "south_of"]] * 3)
        self.assertNotIn("town 4", [line[2] for line in lines[:3]])
        scores = [float(line[3]) for line in lines[:3]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        questions.write_text("town 3\teast_of\n")
        self.expect_failure(cli.BAD_DATA, "there is no relation 'east_of'", "predict", self.towns, "-c", model, "--for", questions)
        self.expect_failure(cli.USAGE, "nothing says what is asked", "predict", self.towns, "-c", model)

    def test_distmult_alone_is_a_model(self):
        record = self.record("train", "train", self.towns, *self.small, "--model", "distmult")
        self.assertEqual((record["model"], record["parameters"]), ("distmult", 42 * 20))

    def test_runs_have_seeds_of_their_own(self):
        model, one = self.folder / "best.tsr", self.folder / "one.tsr"
        record = self.record("train", "train", self.towns, *self.small, "--runs", "3", "-c", model)
        runs = record["runs"]
        self.assertEqual([run["seed"] for run in runs], [1, 2, 3])
        best = max(runs, key=lambda run: run["validation"])
        self.assertEqual(record["validation"]["filtered"]["mrr"], best["validation"])
        self.assertEqual(record["test"]["filtered"]["mrr"], best["test"])
        alone = self.record("train", "train", self.towns, *self.small, "--seed", str(best["seed"]), "-c", one)
        self.assertEqual(alone["curve"][-1]["loss"], record["curve"][-1]["loss"])
        self.assertNotIn("runs", alone)
        self.assertEqual(model.read_bytes(), one.read_bytes())
        self.assertIn("filtered, over 2 runs", self.succeed("train", self.towns, *self.small, "--runs", "2").out)
        self.expect_failure(cli.USAGE, "0 runs", "train", self.towns, *self.small, "--runs", "0")

    def test_mistakes_are_named(self):
        train = ["train", self.towns, *self.small]
        self.expect_failure(cli.USAGE, "does nothing where triples are learned", *train, "--heads", "2")
        self.expect_failure(cli.USAGE, "for distmult, which has no layers", *train, "--model", "distmult", "--layers", "2")
        self.expect_failure(cli.USAGE, "is no model of triples", *train, "--model", "gcn")
        self.expect_failure(cli.USAGE, "do not divide into 3 blocks", *train, "--blocks", "3")
        self.expect_failure(cli.USAGE, "where no triples are learned", "train", "embedded:karate", "--blocks", "3")
        (self.towns / "valid.tsv").unlink()
        self.expect_failure(cli.BAD_DATA, "there are no validation triples", *train)
        (self.towns / "train.tsv").write_text("a\tb\n")
        self.expect_failure(cli.BAD_DATA, "train.tsv: line 1: has 2 columns", *train)

    def expect_failure(self, code, words, *arguments):
        self.assertIn(words, self.fail_with(code, *arguments).err)


if __name__ == "__main__":
    unittest.main()
