# SPDX-License-Identifier: Apache-2.0
"""Predicting numbers from the shell: from a table of houses to prices by name, and what goes wrong on the way."""
import csv
import json
import os
import random
import statistics
import unittest

import cli

SEED = int(os.environ.get("TESSERA_DRAW_SEED", 7))
HOUSES = 240
HEAD = ["id", "rooms", "age", "price", "area"]


class Numbers(cli.CliTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(SEED)
        self.houses = []
        for i in range(HOUSES):
            rooms, age = draw.randrange(2, 7), draw.randrange(60)
            price = 150000 + 30000 * rooms - 800 * age + 60000 * (i % 40 < 20)
            self.houses.append([f"house, {i}", rooms, age, price, 20 * rooms + 0.5])
        edges = [[f"house, {i}", f"house, {i // 20 * 20 + (i + j) % 20}"] for i in range(HOUSES) for j in (1, 2)]
        self.edges = self.table("near.csv", ["from", "to"], edges)
        self.nodes = self.table("houses.csv", HEAD, self.houses)
        self.model = self.folder / "houses.tsr"

    def table(self, name, head, rows):
        path = self.folder / name
        with open(path, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([head, *rows])
        return path

    def train(self, *options, nodes=None, label="price,area", epochs=100):
        return self.json("train", self.edges, "--nodes", nodes or self.nodes, "--symmetrise", "--task", "numbers", "--label", label,
                         "--model", "sage", "--epochs", epochs, *options)

    def fails(self, *arguments):
        """One line that says what is wrong."""
        run = cli.Run(arguments)
        self.assertNotIn(run.code, (cli.OK, cli.INTERNAL), str(run))
        return self.fail_with(run.code, *arguments)

    def fail_to_train(self, nodes, *options, label="price"):
        table = self.table("other.csv", HEAD, nodes)
        return self.fails("train", self.edges, "--nodes", table, "--label", label, "--epochs", "3", *options)


class Story(Numbers):
    def test_from_a_table_to_prices_by_name(self):
        report = self.train("-c", self.model)
        self.assertEqual(report["test"]["metric"], "rmse")
        self.assertEqual(report["config"]["numbers"], {"loss": "squared", "huber_delta": 1, "standardise": True})
        info = self.json("info", self.model)
        self.assertEqual((info["task"], [one["name"] for one in info["targets"]]), ("numbers", ["price", "area"]))
        out = self.folder / "prices.csv"
        unknown = self.table("new.csv", HEAD[:3], [row[:3] for row in self.houses])
        self.json("predict", self.edges, "--nodes", unknown, "--symmetrise", "-c", self.model, "-o", out)
        with open(out, newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["id"] for row in rows], [row[0] for row in self.houses])
        errors = [abs(float(row["price"]) - house[3]) for row, house in zip(rows, self.houses)]
        spread = statistics.pstdev(house[3] for house in self.houses)
        self.assertLess(statistics.mean(errors), 0.5 * spread, f"seed {SEED}")
        judged = self.json("predict", self.edges, "--nodes", self.nodes, "--symmetrise", "--label", "price,area", "-c", self.model)
        price = judged["targets"][0]
        self.assertEqual((judged["task"], price["name"]), ("numbers", "price"))
        self.assertAlmostEqual(sum(one["test"]["rmse"] for one in judged["targets"]) / 2 / report["test"]["mean"], 1, places=4)
        self.assertGreater(price["test"]["r2"], 0.5)

    def test_missing_numbers_are_left_out_and_predicted(self):
        rows = [house[:3] + [house[3] if i % 4 else "", house[4] if i % 3 else "NA"] for i, house in enumerate(self.houses)]
        report = self.train("--loss", "huber", "--metric", "r2", "-c", self.model, nodes=self.table("gaps.csv", HEAD, rows))
        self.assertGreater(report["test"]["mean"], 0.5)
        self.assertTrue(any("missing of 240 vertices: 'price' (60) and 'area' (80)" in note for note in report["notes"]), report["notes"])
        out = self.folder / "all.json"
        self.json("predict", self.edges, "--nodes", self.nodes, "--symmetrise", "-c", self.model, "-o", out)
        items = json.loads(out.read_text())["items"]
        self.assertTrue(all(item["values"]["price"] is not None for item in items))

    def test_losses_metrics_and_runs(self):
        for options in (["--loss", "absolute", "--metric", "mae"], ["--raw-targets"], ["--folds", "3", "--parallel-runs"],
                        ["--batch", "clusters", "--parts", "4"], ["--early-stopping", "2", "--stop-by", "metric"],
                        ["--schedule", "plateau", "--loss", "huber", "--huber-delta", "0.5"]):
            with self.subTest(options=options):
                self.assertGreater(self.train(*options, epochs=10)["test"]["mean"], 0)
        text = self.succeed("train", self.edges, "--nodes", self.nodes, "--label", "price,area", "--epochs", "5", "--runs", "2", "--curve",
                            "--plot", self.folder / "run.svg").out
        self.assertIn("test rmse", text)
        self.assertNotIn(" %\n", text.split("epochs")[0])
        self.succeed("train", self.edges, "--nodes", self.nodes, "--label", "price,area", "--dry-run")
        self.succeed("train", self.edges, "--nodes", self.nodes, "--label", "price,area", "--explain", "step")

    def test_a_search_prefers_small_errors(self):
        report = self.json("tune", self.edges, "--nodes", self.nodes, "--task", "numbers", "--label", "price", "--epochs", "9",
                           "--search", "lr=0.0001|0.05", "--trials", "4", "--state", self.folder / "trials")
        errors = [trial["validation"] for trial in report["trials"]]
        self.assertEqual(report["metric"], "rmse")
        self.assertEqual(errors[0], min(errors))


class Choices(Numbers):
    def test_fractions_are_numbers_and_whole_numbers_are_what_is_asked_for(self):
        report = self.json("train", self.edges, "--nodes", self.nodes, "--label", "area", "--epochs", "3")
        self.assertEqual(report["test"]["metric"], "rmse")
        report = self.json("train", self.edges, "--nodes", self.nodes, "--label", "age", "--task", "node", "--epochs", "3")
        self.assertEqual(report["test"]["metric"], "accuracy")
        self.assertTrue(any("--task numbers predicts numbers" in note for note in report["notes"]))
        ages = self.train(label="age", epochs=3)
        self.assertEqual(ages["test"]["metric"], "rmse")
        error = self.fail_to_train([house[:3] + [1000 + i, house[4]] for i, house in enumerate(self.houses)]).err
        self.assertIn("240 different whole numbers, which are hardly classes", error)

    def test_files_hold_numbers(self):
        held = self.folder / "held.npz"
        self.succeed("convert", self.edges, "--nodes", self.nodes, "--label", "price,area", "-o", held)
        info = self.json("info", held)
        self.assertEqual(info["targets"], [{"name": "price", "known": HOUSES}, {"name": "area", "known": HOUSES}])
        self.assertEqual(self.json("train", held, "--epochs", "2")["test"]["metric"], "rmse")


class Mistakes(Numbers):
    def changed(self, row, value):
        return [house[:3] + [value if i == row else house[3], house[4]] for i, house in enumerate(self.houses)]

    def test_each_has_one_clear_error(self):
        numbers = ["--task", "numbers"]
        same = [house[:3] + [5, house[4]] for house in self.houses]
        none = [house[:3] + ["", house[4]] for house in self.houses]
        for nodes, options, label, expected in (
                (self.changed(7, "cheap"), numbers, "price", ["other.csv: line 9", "'cheap' in column 'price' is no finite number"]),
                (self.changed(7, "1e99"), numbers, "price", ["other.csv: line 9", "is no finite number"]),
                (self.changed(7, "0,5"), numbers, "price", ["write 0.5 for 0,5"]),
                (same, numbers, "price", ["'price' is 5 for all items to train on"]),
                (none, numbers, "price", ["all numbers to predict are missing"]),
                (none, numbers, "price,area", ["no item to train on has a 'price'"]),
                (self.houses, numbers, "price,size", ["size"]),
                (self.houses, numbers, "price,price", ["named twice"]),
                (self.houses, ["--task", "node"], "price,area", ["the labels are numbers, not classes"]),
                (self.houses, [*numbers, "--class-weights", "balanced"], "price", ["--class-weights", "where numbers are learned"]),
                (self.houses, [*numbers, "--bits", "8"], "price", ["--bits", "where numbers are learned"]),
                (self.houses, [*numbers, "--loss", "bce"], "price", ["unknown loss 'bce'", "squared"]),
                (self.houses, [*numbers, "--huber-delta", "2"], "price", ["--huber-delta", "--loss huber"]),
                (self.houses, [*numbers, "--metric", "accuracy"], "price", ["accuracy of numbers", "rmse"]),
                (self.houses, ["--task", "node", "--raw-targets"], "rooms", ["--raw-targets", "--task numbers"])):
            with self.subTest(options=options, label=label, expected=expected):
                error = self.fail_to_train(nodes, *options, label=label).err
                for text in expected:
                    self.assertIn(text, error)

    def test_a_model_of_numbers_has_no_classes(self):
        self.train("-c", self.model, epochs=3)
        for options in (["-o", self.folder / "out.txt"], ["--report", self.folder / "out.json"], ["--bits", "8"], ["--top", "3"]):
            with self.subTest(options=options):
                self.fails("predict", self.edges, "--nodes", self.nodes, "--symmetrise", "-c", self.model, *options)


if __name__ == "__main__":
    unittest.main()
