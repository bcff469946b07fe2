# SPDX-License-Identifier: Apache-2.0
"""Predicting links from the shell: from a table of who follows whom to lists by name, and what goes wrong on the way."""
import csv
import json
import os
import random
import unittest

import cli

SEED = int(os.environ.get("TESSERA_DRAW_SEED", 7))
PEOPLE, CIRCLES, FOLLOWED = 90, 3, 8


def person(i):
    return f"p{i}, \"{i % CIRCLES}\""


class Links(cli.CliTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(SEED)
        circle = lambda i: [j for j in range(PEOPLE) if j % CIRCLES == i % CIRCLES and j != i]
        self.follows = [(i, j) for i in range(PEOPLE) for j in sorted(draw.sample(circle(i), FOLLOWED))]
        rows = [[person(i), person(j), day] for day, (i, j) in enumerate(draw.sample(self.follows, len(self.follows)))]
        self.data = self.table("follows.csv", ["follower", "followee", "day"], rows)
        self.model = self.folder / "follows.tsr"

    def table(self, name, head, rows):
        path = self.folder / name
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows] if head else rows)
        return path

    def rows(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            return list(csv.DictReader(file))

    def train(self, *options, epochs=30):
        return self.json("train", self.data, "--weight", "none", "--task", "links", "--epochs", epochs, *options)

    def predict(self, *options):
        return self.json("predict", self.data, "--weight", "none", "-c", self.model, *options)


class Story(Links):
    def test_from_a_table_to_lists_by_name(self):
        for decoder in ["dot", "distmult", "mlp"]:
            with self.subTest(decoder=decoder, seed=SEED):
                report = self.train("--decoder", decoder, "--hidden", "16", "-c", self.model, "--force", epochs=60)
                self.assertEqual(report["test"]["metric"], "roc_auc")
                self.assertEqual(report["test_other"]["metric"], "average_precision")
                self.assertGreater(report["test"]["mean"], 0.7)
                self.assertAlmostEqual(report["links"]["pairs"], 0.1 * report["edges"], delta=0.03 * report["edges"])
                self.assertEqual(report["config"]["links"]["decoder"], decoder)
                info = self.json("info", self.model)
                self.assertEqual((info["task"], info["decoder"], info["outputs"]), ("links", decoder, 16))
                self.check_lists(decoder)
                self.check_pairs()

    def check_lists(self, decoder):
        chosen = [person(5), person(2)]
        ids = self.table("ids.txt", None, [[name] for name in chosen])
        lists = self.folder / "lists.csv"
        report = self.predict("--top", "4", "--for", ids, "-o", lists, "--force")
        rows = self.rows(lists)
        self.assertEqual(report["pairs"], len(rows))
        self.assertEqual([row["source"] for row in rows], [name for name in chosen for _ in range(4)])
        known = {(person(i), person(j)) for i, j in self.follows}
        for row in rows:
            self.assertNotIn((row["source"], row["target"]), known)
            self.assertNotEqual(row["source"], row["target"])
        scores = [float(row["score"]) for row in rows[:4]]
        self.assertEqual(scores, sorted(scores, reverse=True))
        # The best of the lists score as they do as pairs, and nothing else scores higher.
        others = [person(j) for j in range(PEOPLE) if j != 5 and (person(5), person(j)) not in known]
        every = self.table("every.csv", ["source", "target"], [[person(5), name] for name in others])
        self.predict("--links", every, "-o", lists, "--force")
        best = sorted((float(row["score"]) for row in self.rows(lists)), reverse=True)[:4]
        for score, other in zip(scores, best):
            self.assertAlmostEqual(score, other, places=4)
        # K larger than the graph: everybody else there is.
        self.predict("--top", "1000", "--for", ids, "--keep-known", "-o", lists, "--force")
        self.assertEqual(len(self.rows(lists)), 2 * (PEOPLE - 1))

    def check_pairs(self):
        asked = [(person(1), person(4)), (person(0), person(1)), (person(1), person(4))]
        files = {end: self.folder / f"scores{end}" for end in (".csv", ".json", ".npz")}
        for head in (["follower", "followee"], ["who", "whom"], None):
            pairs = self.table("pairs.csv", head, asked)
            for path in files.values():
                self.predict("--links", pairs, "-o", path, "--force", "--embeddings", self.folder / "e.csv")
            rows = self.rows(files[".csv"])
            self.assertEqual([(row["source"], row["target"]) for row in rows], asked)
            self.assertEqual(rows[0], rows[2])
            self.assertGreater(float(rows[0]["probability"]), float(rows[1]["probability"]))
            stored = json.loads(files[".json"].read_text())
            self.assertEqual(stored["task"], "links")
            self.assertEqual([(pair["source"], pair["target"]) for pair in stored["pairs"]], asked)
        self.assertEqual(len(self.rows(self.folder / "e.csv")), PEOPLE)

    def test_numbers_count_as_the_data_does(self):
        data = self.table("numbers.csv", None, [[i + 1, (i + step) % 20 + 1] for i in range(20) for step in (1, 2)])
        options = ["--base", "1", "--epochs", "3", "--task", "links"]
        self.succeed("train", data, *options, "-c", self.model)
        pairs, scores = self.table("pairs.csv", None, [[1, 20], [20, 3]]), self.folder / "scores.csv"
        self.succeed("predict", data, "--base", "1", "-c", self.model, "--links", pairs, "-o", scores)
        self.assertEqual([(row["source"], row["target"]) for row in self.rows(scores)], [("1", "20"), ("20", "3")])
        zero = self.table("zero.csv", None, [[0, 1]])
        run = self.fail_with(cli.BAD_DATA, "predict", data, "--base", "1", "-c", self.model, "--links", zero)
        self.assertIn("numbers from 1 to 20", run.err)

    def test_resumes_and_repeats(self):
        def trained(*options, epochs=12):
            report = self.train("--runs", "2", "--decoder", "mlp", "--loss", "margin", "--pairs-per-batch", "20",
                                *options, epochs=epochs)
            return report["runs"], report["links"], report["test_other"]
        whole = trained()
        trained("-c", self.model, epochs=5)
        self.assertEqual(trained("-c", self.model, "--resume"), whole)
        self.assertEqual(trained("--threads", "1"), whole)
        self.assertEqual(trained("--parallel-runs", "--threads", "2"), whole)

    def test_splits_by_time_and_share(self):
        report = self.train("--edge-time", "day", "--split", "0.5,0.25,0.25", epochs=2)
        self.assertTrue(any("by 'day'" in note for note in report["notes"]), report["notes"])
        self.assertAlmostEqual(report["links"]["pairs"], len(self.follows) / 4, delta=len(self.follows) / 10)
        self.assertEqual(self.train("--split", "0.8,0.2,0", epochs=2)["test"]["mean"], None)


class Mistakes(Links):
    def rejected(self, words, *arguments, code=cli.USAGE):
        run = self.fail_with(code, *arguments)
        self.assertIn(words, run.err, str(run))

    def test_options_that_mean_nothing(self):
        train = ["train", self.data, "--weight", "none", "--epochs", "1"]
        for option in (["--decoder", "mlp"], ["--embedding", "8"], ["--loss", "bpr"], ["--edge-time", "day"], ["--pairs-per-batch", "5"], ["--margin", "2"],
                       ["--negatives", "uniform"], ["--negatives-per-link", "2"], ["--supervision", "0.1"], ["--avoid-held-out"]):
            self.rejected(option[0], "train", "embedded:karate", "--epochs", "1", *option)
        for option in (["--folds", "3"], ["--class-weights", "balanced"], ["--readout", "sum"], ["--bits", "4"],
                       ["--batch", "clusters"], ["--report", "r.txt"], ["--pattern", "1:2:4"], ["--precompute"]):
            self.rejected(option[0], *train, "--task", "links", *option)
        for option in (["--dry-run"], ["--explain", "step"]):
            self.rejected(option[0], *train, "--task", "links", *option, code=cli.UNAVAILABLE)
        self.rejected("roc_auc", *train, "--task", "links", "--metric", "accuracy")
        self.rejected("--negatives-per-link: 0 negatives", *train, "--task", "links", "--negatives-per-link", "0")
        self.rejected("--pairs-per-batch: -1 pairs", *train, "--task", "links", "--pairs-per-batch", "-1")
        self.rejected("--margin: a margin of -1", *train, "--task", "links", "--loss", "margin", "--margin", "-1")
        self.rejected("--margin: does nothing with the loss bpr", *train, "--task", "links", "--loss", "bpr", "--margin", "2")
        self.rejected("--label-smoothing", *train, "--task", "links", "--loss", "margin", "--label-smoothing", "0.1")
        self.rejected("--negatives: unknown kind", *train, "--task", "links", "--negatives", "some")
        self.rejected("sum to", *train, "--task", "links", "--split", "0.5,0.1,0.1")

    def test_graphs_that_teach_nothing(self):
        def train(name, edges, words, code=cli.USAGE):
            path = self.table(name, None, edges)
            self.rejected(words, "train", path, "--task", "links", "--epochs", "1", code=code)
        train("complete.csv", [(i, j) for i in range(4) for j in range(4) if i != j], "every pair", cli.BAD_DATA)
        train("single.csv", [(0, 1)], "a graph of 1 link leaves none to train on")
        empty = self.folder / "empty.mtx"
        cli.write_mtx(empty, 3, 3, [])
        self.rejected("no edges", "train", empty, "--task", "links")

    def test_a_source_with_an_edge_to_every_vertex(self):
        star = [(end, other) for i in range(30) for end, other in (("hub", f"leaf {i}"), (f"leaf {i}", "hub"))]
        train = ["train", self.table("star.csv", ["source", "target"], star), "--task", "links", "--epochs", "2"]
        for kind in "by-source", "by-degree":
            self.rejected("--negatives: 'hub' has an edge to every other vertex", *train, "--avoid-held-out",
                          "--negatives", kind, code=cli.BAD_DATA)
        # Of few links, among them the hub's, no ranking is known.
        self.assertNotIn("ranking", self.succeed(*train).out)

    def test_times_that_are_none(self):
        rows = [[i, (i + 1) % 30, f"day {i % 5}"] for i in range(30)]
        data = self.table("days.csv", ["source", "target", "when"], rows)
        self.rejected("texts", "train", data, "--task", "links", "--edge-time", "when", code=cli.BAD_DATA)
        self.rejected("--edge-time: ", "train", data, "--task", "links", "--edge-time", "when", code=cli.BAD_DATA)
        mixed = self.table("mixed.csv", ["source", "target", "when"], [[i, (i + 1) % 30, "soon" if i == 7 else i % 5] for i in range(30)])
        self.rejected("the column 'when' holds texts, such as 'soon'", "train", mixed, "--task", "links", "--edge-time", "when",
                      code=cli.BAD_DATA)
        gaps = self.table("gaps.csv", ["source", "target", "when"], [[i, (i + 1) % 30, "" if i % 10 == 3 else i] for i in range(30)])
        for kinds in [], ["--kinds", "source,target"]:
            self.rejected("gaps.csv: the column of times, 'when', has no value for 3 of the edges", "train", gaps, *kinds, "--task", "links",
                          "--edge-time", "when", code=cli.BAD_DATA)
        many = self.table("many.csv", ["source", "target", "when"], [[i, (i + 1) % 300, f"day {i}"] for i in range(300)])
        self.rejected("but times are numbers; give numbers that grow with time", "train", many, "--task", "links",
                      "--edge-time", "when", code=cli.BAD_DATA)
        never = ["--task", "links", "--edge-time", "never"]
        for also in [], ["--edge-features", "when"]:
            self.rejected("give --edge-time the name", "train", data, *never, *also, code=cli.BAD_DATA)
        self.rejected("--edge-time: is for tables", "train", "embedded:karate", *never)

    def test_questions_that_do_not_fit(self):
        self.train("-c", self.model, epochs=1)
        classes = self.folder / "classes.tsr"
        self.succeed("train", "embedded:karate", "--epochs", "1", "-c", classes)
        predict = ["predict", self.data, "--weight", "none", "-c", self.model]
        pairs = self.table("pairs.csv", ["source", "target"], [[person(0), person(1)], [person(0), "zoe"], ["max", "zoe"]])
        ids = self.table("ids.txt", None, [[person(0)], ["zoe"]])
        self.rejected("--links FILE with pairs", *predict)
        self.rejected("--links FILE", *predict, "-o", self.folder / "a.csv", "--embeddings", self.folder / "e.csv")
        self.rejected("'zoe' is no vertex of the data, the first of 3 such ids", *predict, "--links", pairs, code=cli.BAD_DATA)
        self.rejected("ids.txt:2", *predict, "--top", "3", "--for", ids, code=cli.BAD_DATA)
        rows = [[person(0), 1, person(1), 2], [person(2), 3, person(3), 4]]
        wide, ends = self.table("wide.csv", None, rows), self.table("ends.csv", ["source", "n", "target", "m"], rows)
        for option in (["--links"], ["--top", "3", "--for"]):
            self.rejected("has 4 columns", *predict, *option, wide, code=cli.BAD_DATA)
        self.succeed(*predict, "--links", ends)
        self.succeed(*predict, "--top", "3", "--for", self.table("id.csv", ["n", "id"], [[1, person(0)], [2, person(4)]]))
        self.rejected("--for", *predict, "--links", pairs, "--for", ids)
        self.rejected("--keep-known", *predict, "--links", pairs, "--keep-known")
        self.rejected("--links", *predict, "--links", pairs, "--top", "3")
        self.rejected(".csv, .json or .npz", *predict, "--top", "3", "-o", self.folder / "lists.txt")
        self.rejected("--report", *predict, "--top", "3", "--report", self.folder / "r.txt")
        self.rejected("--top", *predict, "--top", "0")
        self.rejected("predicts classes", "predict", "embedded:karate", "-c", classes, "--top", "3")
        self.rejected("predicts classes", "train", self.data, "--weight", "none", "--task", "links", "-c", classes, "--resume")
        self.rejected("predicts links", "train", "embedded:karate", "-c", self.model, "--resume")
        self.assertEqual(self.leftovers(self.data.name, self.model.name, classes.name, pairs.name, ids.name, wide.name,
                                        ends.name, "id.csv"), [])


if __name__ == "__main__":
    unittest.main()
