# SPDX-License-Identifier: Apache-2.0
"""Reports of classes: what they say is what the predictions give, in every format."""
import csv
import json
import math
import random
import re
import unittest
import xml.etree.ElementTree

import cli
import json_keys_test
import picture_test

CITATION = "embedded:citation"


class Reports(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "m.tsr"

    def train(self, *options, source=CITATION):
        return self.json("train", source, "--epochs", "20", *options)

    def predict(self, *options, source=CITATION):
        return self.json("predict", source, "-c", self.model, *options)

    def report(self, verb="predict", source=CITATION, *options):
        path = self.folder / "report.json"
        found = getattr(self, verb)("--report", path, *options, source=source)
        self.assertEqual(found["reports"], [str(path)])
        return json.loads(path.read_text()), found

    def test_numbers_are_those_of_the_predictions(self):
        self.train("-c", self.model)
        report, found = self.report()
        table = self.folder / "p.csv"
        self.predict("-o", table)
        with open(table, newline="", encoding="utf-8") as file:
            rows = [row for row in csv.DictReader(file) if row["split"] == "test"]
        self.assertEqual(report["items"], len(rows))
        right = [row["label"] == row["true_label"] for row in rows]
        self.assertAlmostEqual(report["accuracy"], sum(right) / len(rows))
        self.assertAlmostEqual(report["accuracy"], found["test"]["value"])
        loss = -sum(math.log(float(row[f"p({row['true_label']})"])) for row in rows) / len(rows)
        self.assertAlmostEqual(report["log_loss"], loss, places=4)
        bins = {}
        for row, is_right in zip(rows, right):
            bins.setdefault(math.ceil(10 * float(row["probability"])), []).append(float(row["probability"]) - is_right)
        self.assertAlmostEqual(report["calibration_error"], sum(abs(sum(b)) for b in bins.values()) / len(rows), places=4)
        self.assertEqual([b["count"] for b in report["calibration"]], [len(bins.get(b, [])) for b in range(1, 11)])
        for quality in report["classes"]:
            name = quality["name"]
            is_so = [row["true_label"] == name for row in rows]
            said = [row["label"] == name for row in rows]
            both = sum(a and b for a, b in zip(is_so, said))
            self.assertEqual((quality["support"], quality["predicted"], quality["found"]), (sum(is_so), sum(said), both))
            self.assertAlmostEqual(quality["precision"], both / sum(said))
            self.assertAlmostEqual(quality["recall"], both / sum(is_so))
            self.assertAlmostEqual(quality["f1"], 2 * both / (sum(said) + sum(is_so)))
            scores = [float(row[f"p({name})"]) for row in rows]
            pairs = [(p > n) + (p == n) / 2 for p, yes in zip(scores, is_so) if yes for n, no in zip(scores, is_so) if not no]
            self.assertAlmostEqual(quality["roc_auc"], sum(pairs) / len(pairs), places=3)
        cells = {(cell["true"], cell["predicted"]): cell["items"] for cell in report["confusion"]}
        self.assertEqual(sum(cells.values()), len(rows))
        for (truth, said), items in cells.items():
            self.assertEqual(items, sum((row["true_label"], row["label"]) == (truth, said) for row in rows))
        mean = lambda key: sum(quality[key] for quality in report["classes"]) / len(report["classes"])
        for key in ["precision", "recall", "f1", "roc_auc", "average_precision"]:
            self.assertAlmostEqual(report["macro"][key], mean(key))

    def test_keys_are_documented(self):
        self.train("-c", self.model)
        several = self.folder / "several.npz"
        several.write_bytes(cli.graph_npz(6, [(0, 1), (1, 0)], x=cli.npy([1, 0, 0, 1, 1, 1] * 2, "f", (6, 2)),
                                          y=cli.npy([1, 0, 0, 1, 1, 1] * 2, "f", (6, 2))))
        keys, seen = json_keys_test.page()["report of classes"], set()
        checks = json_keys_test.Keys()
        for report in [self.report()[0], self.report("train", several)[0]]:
            self.assertEqual(list(report)[:2], ["report", "schema"])
            for path, value in json_keys_test.flattened(report, {**keys, "schema": ("integer", False)}):
                if path != "schema":
                    checks.check_type(path, value, keys[path][0])
                seen.add(path)
        self.assertEqual(set(keys) | {"schema"}, seen)

    def test_training_reports_on_its_test_part(self):
        report, found = self.report("train")
        self.assertAlmostEqual(report["accuracy"], found["test"]["mean"])
        self.assertEqual(report["judged_on"], "the test part")
        report, found = self.report("train", CITATION, "--runs", "2", "--seed", "4")
        best = max(range(2), key=lambda run: (found["runs"][run]["validation"], -found["runs"][run]["validation_loss"]))
        self.assertAlmostEqual(report["accuracy"], found["runs"][best]["test"])
        self.assertIn(f"of run {best + 1}", report["judged_on"])
        # The same weights are in the checkpoint, whose file is made at the same time.
        report, _ = self.report("train", CITATION, "-c", self.model)
        self.assertEqual(report["classes"], self.report()[0]["classes"])
        # Nothing is left to train, but the report is still to be had.
        self.assertEqual(self.report("train", CITATION, "-c", self.model, "--resume")[0]["classes"], report["classes"])
        for wrong in [["--dry-run"], ["--parallel-runs", "--runs", "2"]]:
            self.fail_with(cli.USAGE, "train", CITATION, "--report", self.folder / "r.txt", *wrong)
        folds, found = self.report("train", "generate:molecules?graphs=40", "--folds", "4")
        self.assertEqual(folds["items"], 10)
        self.assertIn(round(folds["accuracy"], 9), [round(run["test"], 9) for run in found["runs"]])

    def test_without_a_test_part_the_validation_part_is_named(self):
        path = self.folder / "g.npz"
        path.write_bytes(cli.graph_npz(
            4, [(0, 1), (1, 0), (2, 3), (3, 2)], y=cli.npy([0, 1, 0, 1], "q"), train_mask=cli.npy([1, 1, 0, 0], "i"),
            val_mask=cli.npy([0, 0, 1, 1], "i")))
        report, found = self.report("train", path)
        self.assertIn("the validation part", report["judged_on"])
        self.assertAlmostEqual(report["accuracy"], found["validation"]["mean"])

    def test_text_fits_eighty_columns(self):
        draw = random.Random(7)
        for classes in [2, 7, 60]:
            with self.subTest(classes=classes):
                vertices = 40 * classes
                labels = [draw.randrange(classes) for _ in range(vertices)]
                names = [f"a class with quite a long name {'x' * (k % 40)} {k}" for k in range(classes)]
                nodes, edges = self.folder / "n.csv", self.folder / "e.csv"
                with open(nodes, "w", newline="", encoding="utf-8") as file:
                    csv.writer(file).writerows([["id", "size", "label"]] + [[i, draw.random(), names[k]] for i, k in enumerate(labels)])
                edges.write_text("source,target\n" + "".join(f"{i},{(i + 1) % vertices}\n" for i in range(vertices)))
                data, text = self.folder / f"{classes}.tsr", self.folder / f"{classes}.txt"
                self.succeed("convert", edges, "--nodes", nodes, "-o", data, "--force")
                self.succeed("train", data, "--epochs", "2", "--report", text, "--report", self.folder / f"{classes}.svg")
                lines = text.read_text().splitlines()
                self.assertLessEqual(max(map(len, lines)), 80, text.read_text())
                self.assertEqual(any("confusion matrix" in line for line in lines), classes <= 7)
                self.assertEqual(any("most frequent confusions" in line for line in lines), classes == 60)
                self.assertEqual(any(re.search(r"\.\.\. 20 smaller", line) for line in lines), classes == 60)
                self.picture(self.folder / f"{classes}.svg")

    def picture(self, path):
        tree = xml.etree.ElementTree.parse(path).getroot()
        width, height = float(tree.get("width")), float(tree.get("height"))
        for text in tree.iter(picture_test.SVG + "text"):
            self.assertTrue(0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height, text.text)
        return [text.text for text in tree.iter(picture_test.SVG + "text")]

    def test_pictures_show_the_matrix(self):
        self.train("-c", self.model)
        report, _ = self.report()
        self.predict("--report", self.folder / "r.svg", "--report", self.folder / "r.png")
        words = self.picture(self.folder / "r.svg")
        for cell in report["confusion"]:
            self.assertIn(str(cell["items"]), words)
        for k, quality in enumerate(report["classes"]):
            self.assertIn(f"{quality['name']} {'abcdefg'[k]}", words)
        picture_test.read_png((self.folder / "r.png").read_bytes())

    def test_files_obey_the_rules_of_files(self):
        self.train("-c", self.model)
        for name in ["r.json", "r.svg", "r.png", "r.txt"]:
            path = self.folder / name
            self.predict("--report", path)
            again = ["predict", CITATION, "-c", self.model, "--report", path]
            # A report and a picture may replace an earlier one.
            if name == "r.txt":
                self.fail_with(cli.USAGE, *again)
            else:
                self.succeed(*again)
            path.write_bytes(b"precious")
            self.fail_with(cli.USAGE, *again)
            self.succeed(*again, "--force")
        both = self.folder / "both.json"
        self.fail_with(cli.USAGE, "predict", CITATION, "-c", self.model, "--report", both, "--json", both)
        self.fail_with(cli.USAGE, "predict", CITATION, "-c", self.model, "--report", both, "--report", both)
        error = self.fail_with(cli.USAGE, "train", CITATION, "--report", self.folder / "r.pdf").err
        self.assertIn("use .txt, .json, .svg or .png", error)


if __name__ == "__main__":
    unittest.main()
