# SPDX-License-Identifier: Apache-2.0
"""Feature columns permuted, added, renamed and dropped between training and prediction, drawn with a seed: what is
only moved predicts the same to the bit, what is missing or unknown is refused by name. TESSERA_COLUMN_DRAWS and
TESSERA_COLUMN_SEED choose others."""
import csv
import os
import random
import unittest

import cli
from drawn_tables_test import read_npz
from independent_table import Table, float32, is_missing

DRAWS = int(os.environ.get("TESSERA_COLUMN_DRAWS", 12))
SEED = int(os.environ.get("TESSERA_COLUMN_SEED", 41))
VERTICES = 30
CATEGORIES = ["red", "green", "light, blue", "3", "17", "é", "a=b", "true", "Off"]
NAMES = ["age", "income", "size", "colour", "kind", "zip code", "a=b", "été", "2019", "active"]


class People:
    """A table of vertices: columns by name, each a list of texts."""

    def __init__(self, draw):
        self.ids = [f"v{i}" for i in range(VERTICES)]
        self.columns = {}
        self.numbers, self.texts = [], []
        names = draw.sample(NAMES, draw.randrange(2, 7))
        for place, name in enumerate(names):
            if place == 0 or draw.random() < 0.5:
                self.numbers.append(name)
                self.columns[name] = [f"{draw.uniform(-99, 99):.2f}" for _ in self.ids]
            else:
                self.texts.append(name)
                some = draw.sample(CATEGORIES, draw.randrange(2, 5))
                some += ["text"] if all(one in ("3", "17", "true") for one in some) else []
                # Every category occurs, and a text makes them categories.
                self.columns[name] = some + [draw.choice(some) for _ in self.ids[len(some):]]
                draw.shuffle(self.columns[name])
            if draw.random() < 0.3:
                for vertex in draw.sample(range(VERTICES), 3):
                    if self.columns[name].count(self.columns[name][vertex]) > 1 or name in self.numbers:
                        self.columns[name][vertex] = draw.choice(["", "NA", "nan"])
        self.labels = [draw.choice(["spam", "ham"]) for _ in self.ids]
        self.labels[:2] = ["spam", "ham"]

    def copy(self):
        other = object.__new__(People)
        other.__dict__ = {**self.__dict__, "columns": {name: list(cells) for name, cells in self.columns.items()}}
        return other

    def text(self, labelled=True):
        names = list(self.columns)
        rows = [["id", *names, *(["label"] if labelled else [])]]
        for i, vertex in enumerate(self.ids):
            rows.append([vertex, *(self.columns[name][i] for name in names), *([self.labels[i]] if labelled else [])])
        lines = []

        class Lines:
            write = lines.append
        csv.writer(Lines, lineterminator="\n").writerows(rows)
        return "".join(lines)


class DrawnColumns(cli.CliTest):
    def convert(self, people, labelled, ending):
        nodes, data = self.folder / "nodes.csv", self.folder / f"data{ending}"
        nodes.write_text(people.text(labelled), encoding="utf-8")
        self.succeed("convert", self.folder / "edges.csv", "--nodes", nodes, "--symmetrise", "-o", data, "-f")
        return data

    def predict(self, people, labelled=False, ending=".npz"):
        """The logits, or what the program says where it refuses."""
        data = self.convert(people, labelled, ending)
        out = self.folder / "out.npz"
        run = cli.Run(["predict", data, "-c", self.folder / "model.ck", "-o", out, "-f", "--json", "-"])
        return (read_npz(out)["logits"], run) if run.code == cli.OK else (None, run)

    def expect_same(self, people, what, ending):
        logits, run = self.predict(people, ending=ending)
        self.assertEqual(logits, self.logits, f"{what}: {run}")
        return run

    def expect_refusal(self, people, names, what, ending):
        _, run = self.predict(people, ending=ending)
        self.assertEqual(run.code, cli.USAGE, f"{what}: {run}")
        for name in names:
            self.assertIn(f"'{name}'", run.err, what)

    def permuted(self, draw, people):
        other = people.copy()
        order = draw.sample(list(people.columns), len(people.columns))
        other.columns = {name: other.columns[name] for name in order}
        return other

    def check_moved(self, draw, people, ending):
        other = self.permuted(draw, people)
        self.expect_same(other, "permuted", ending)
        other.columns = {"first": ["1"] * VERTICES, **other.columns,
                         "more": draw.choices(["x", "y", "z", ""], k=VERTICES)}
        run = self.expect_same(self.permuted(draw, other), "surplus", ending)
        self.assertIn("'more'", run.out)

    def check_names(self, draw, people, ending):
        other = self.permuted(draw, people)
        name = draw.choice(list(people.columns))
        other.columns[name + "s"] = other.columns.pop(name)
        self.expect_refusal(other, [name, name + "s"], "renamed", ending)
        gone = draw.sample(list(people.columns), draw.randrange(1, len(people.columns)))
        other = self.permuted(draw, people)
        for name in gone:
            del other.columns[name]
        self.expect_refusal(other, gone, "dropped", ending)

    def check_categories(self, draw, people, ending):
        if not people.texts:
            return
        name = draw.choice(people.texts)
        other = self.permuted(draw, people)
        unseen = draw.sample(["violet", "4", "=x", "on"], draw.randrange(1, 3))
        for category, vertex in zip(unseen, draw.sample(range(VERTICES), len(unseen))):
            other.columns[name][vertex] = category
        self.expect_refusal(other, [name, *unseen], "unseen categories", ending)
        # All vertices with one category get another: it is missing in the data, and known to the model.
        seen = sorted({cell for cell in people.columns[name] if not is_missing(cell)})
        lost, kept = draw.sample(seen, 2)
        other = self.permuted(draw, people)
        other.columns[name] = [kept if cell == lost else cell for cell in people.columns[name]]
        logits, run = self.predict(other, ending=ending)
        self.assertIsNotNone(logits, f"a category is missing: {run}")
        self.assertEqual(self.predict(self.permuted(draw, other), ending=ending)[0], logits)

    def check_filled(self, draw, people, table, ending):
        """A missing number is the mean of training, whatever the mean of the new data."""
        name = draw.choice(people.numbers)
        there = [table.features[name][i] for i in range(VERTICES) if (i, name) not in table.filled]
        mean = float32(sum(there) / len(there))
        missing, explicit = people.copy(), people.copy()
        for vertex in draw.sample(range(VERTICES), draw.randrange(1, 8)):
            missing.columns[name][vertex] = draw.choice(["", "NA", "?"])
        explicit.columns[name] = [repr(mean) if is_missing(cell) else cell for cell in missing.columns[name]]
        self.assertEqual(self.predict(missing, ending=ending)[0], self.predict(explicit, ending=ending)[0], name)

    def check_one(self, draw):
        people = People(draw)
        ending = draw.choice([".npz", ".tsr"])
        data = self.convert(people, True, ending)
        self.succeed("train", data, "-c", self.folder / "model.ck", "-f", "--epochs", draw.choice("12"), "--hidden",
                     "4", "--split", "0.4,0.3,0.3", "--seed", draw.randrange(99))
        self.logits, run = self.predict(people, labelled=True, ending=ending)
        self.assertIsNotNone(self.logits, str(run))
        ending = draw.choice([".npz", ".tsr"])
        self.check_moved(draw, people, ending)
        self.check_names(draw, people, ending)
        self.check_categories(draw, people, ending)
        self.check_filled(draw, people, Table(people.text()), ending)

    def test_columns_go_by_name(self):
        edges = "".join(f"v{i},v{(i + step) % VERTICES}\n" for i in range(VERTICES) for step in (1, 5))
        (self.folder / "edges.csv").write_text("from,to\n" + edges)
        draw = random.Random(SEED)
        for number in range(DRAWS):
            seed = draw.randrange(2**32)
            with self.subTest(seed=SEED, draw=number):
                self.check_one(random.Random(seed))
        print(f"seed {SEED}: {DRAWS} trainings")


if __name__ == "__main__":
    unittest.main()
