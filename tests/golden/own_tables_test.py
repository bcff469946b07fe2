# SPDX-License-Identifier: Apache-2.0
"""One command from tables to a model: customers who may leave, in two tables as they are exported, dirt and all."""
import csv
import os
import random
import re
import signal
import subprocess
import time
import unittest

import cli

SEED = int(os.environ.get("TESSERA_DRAW_SEED", 5))
CUSTOMERS = 200
UNKNOWN = 3  # calls with somebody who is no customer
TWICE = 7  # calls that are listed once more
TOPICS = ["edge list", "node table", "labels", "numbers", "categories", "filled in", "left out"]


def customer(i):
    return f'cust "{i}", Ltd'


class Churn(cli.CliTest):
    def setUp(self):
        super().setUp()
        draw = random.Random(SEED)
        self.truth = {customer(i): draw.choice(["yes", "no"]) for i in range(CUSTOMERS)}
        self.known = dict(draw.sample(sorted(self.truth.items()), CUSTOMERS // 2))
        self.rows = [{"id": name, "age": draw.randrange(20, 70), "calls": draw.randrange(40) + 30 * (leaves == "no"),
                      "tariff": draw.choice(["flat", "prepaid"]), "note": f"remark {i}", "churn": self.known.get(name, "")}
                     for i, (name, leaves) in enumerate(self.truth.items())]
        self.rows[3]["age"] = self.rows[8]["age"] = "NA"
        self.rows[4]["tariff"] = ""
        names, calls = list(self.truth), set()
        while len(calls) < 3 * CUSTOMERS:
            a, b = draw.sample(names, 2)
            if a < b and (self.truth[a] == self.truth[b] or draw.random() < 0.2):
                calls.add((a, b))
        self.calls = sorted(calls)
        listed = self.calls + self.calls[:TWICE] + [(names[i], "stranger") for i in range(UNKNOWN)]
        self.users, self.follows = self.write("users.csv", self.rows), self.folder / "follows.csv"
        with open(self.follows, "w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([["caller", "called", "day"], *((a, b, "mon") for a, b in listed)])
        self.options = ["--nodes", self.users, "--label", "churn", "--drop", "note", "--source", "caller", "--target",
                        "called", "--unknown-ids", "drop", "--duplicates", "first", "--symmetrise"]
        self.model, self.short = self.folder / "model.tsr", ["--epochs", "3"]

    def write(self, name, rows, columns=None):
        """As spreadsheets do: a byte order mark, the line ends of Windows."""
        path = self.folder / name
        with open(path, "w", newline="", encoding="utf-8-sig") as file:
            table = csv.DictWriter(file, columns or list(rows[0]), extrasaction="ignore", lineterminator="\r\n")
            table.writeheader()
            table.writerows(rows)
        return path

    def predicted(self, path):
        with open(path, newline="", encoding="utf-8") as file:
            return {row["id"]: row for row in csv.DictReader(file)}

    def test_two_commands_from_tables_to_predictions(self):
        out = self.folder / "predictions.csv"
        self.succeed("train", self.follows, *self.options, "-c", self.model)
        report = self.json("predict", self.follows, *self.options, "-c", self.model, "-o", out)
        found = self.predicted(out)
        joined = [{**row, **found[row["id"]]} for row in self.rows]  # by the ids of the user's own table
        self.assertEqual([row["id"] for row in joined], list(self.truth))
        new = [row for row in joined if not row["churn"]]
        right = sum(row["label"] == self.truth[row["id"]] for row in new)
        self.assertGreater(right, 0.8 * len(new), f"seed {SEED}")
        self.assertLessEqual(report["test"]["items"], len(self.known))

    def summary(self, text):
        """The rows on tables, by topic."""
        rows = {}
        for found in re.finditer(rf"(?m)^  ({'|'.join(TOPICS)})  +(\S.*(?:\n {{6,}}\S.*)*)", text):
            topic, row = found.groups()
            self.assertNotIn(topic, rows, text)
            self.assertLessEqual(max(map(len, found.group().splitlines())), 80, text)
            rows[topic] = " ".join(row.split())
        return rows

    def test_the_summary_says_once_what_was_read_cleaned_and_guessed(self):
        listed = len(self.calls) + TWICE + UNKNOWN
        missing = CUSTOMERS - len(self.known)
        ages = [row["age"] for row in self.rows if row["age"] != "NA"]
        expected = {
            "edge list": f"{listed} edges in follows.csv, parted by commas, below a header, from 'caller' to 'called'; nothing uses 'day'",
            "node table": f"{CUSTOMERS} vertices in users.csv, parted by commas, below a header; ids in 'id', no split",
            "labels": "'churn', 2 classes: 'no' and 'yes'",
            "numbers": "'age' and 'calls'",
            "categories": "a feature for each different value of 'tariff' (2; 1 missing)",
            "filled in": f"missing numbers, with the mean of their column: 'age' (2 with {str(sum(ages) / len(ages))[:6]}",
            "left out": "'note'"}
        notes = [f"{missing} of {CUSTOMERS} vertices have no label", f"{UNKNOWN} edges were dropped, as an end is not in the "
                 "table of vertices", f"{TWICE} edges are listed again: the first one was kept",
                 f"symmetrised: {len(self.calls)} edges became {2 * len(self.calls):,}"]
        self.succeed("train", self.follows, *self.options, *self.short, "-c", self.model)
        for verb in [["info"], ["convert", "-o", self.folder / "my.tsr"], ["train", *self.short], ["train", "--dry-run"],
                     ["predict", "-c", self.model]]:
            with self.subTest(verb=verb):
                text = self.succeed(*verb, "--data", self.follows, *self.options, "--force").out
                self.assertEqual(text.splitlines()[0], f"follows: {CUSTOMERS} vertices, {2 * len(self.calls):,} edges")
                rows = self.summary(text)
                for topic, said in expected.items():
                    self.assertTrue(rows[topic].startswith(said), f"{topic}: {rows[topic]}")
                for note in notes:
                    self.assertEqual(text.count(note), 1, text)
                said = self.json(*verb, "--data", self.follows, *self.options, "--force")["notes"]
                self.assertEqual([note for note in said if note in notes], notes)
                for topic, row in rows.items():
                    self.assertEqual(said.count(f"{topic}: {row}"), 1, said)

    def test_the_page_shows_what_is_said(self):
        page = (cli.SOURCE / "docs" / "own_data.md").read_text(encoding="utf-8")
        commands, shown = (re.search(rf"(?ms)^```{language}\n(.*?)^```$", page).group(1) for language in ["sh", "text"])
        said = subprocess.run(["bash", "-euc", f'tessera() {{ "{cli.PROGRAM}" "$@"; }}\n{commands}'], cwd=self.folder,
                              capture_output=True, text=True, check=True, timeout=cli.SECONDS).stdout
        self.assertEqual(said[:len(shown)], shown)

    def test_saved_data_is_what_convert_writes(self):
        for number, (ending, more) in enumerate([("tsr", []), ("npz", []), ("tsr", ["--self-loops", "add", "--transpose"])]):
            converted, saved = self.folder / f"converted{number}.{ending}", self.folder / f"saved{number}.{ending}"
            self.succeed("convert", self.follows, *self.options, *more, "-o", converted)
            report = self.json("train", self.follows, *self.options, *more, *self.short, "--save-data", saved)
            self.assertEqual(report["saved_data"], str(saved))
            self.assertEqual(saved.read_bytes(), converted.read_bytes())
        # The model is the same, too.
        from_tables = self.json("train", self.follows, *self.options, *self.short)
        from_file = self.json("train", self.folder / "saved0.tsr", *self.short)
        self.assertEqual(from_tables["runs"], from_file["runs"])
        self.assertRegex(self.succeed("train", self.follows, *self.options, *self.short, "--save-data", saved, "-f").out,
                         rf"data +{saved}")

    def test_saved_data_replaces_nothing_unasked(self):
        saved = self.folder / "my.tsr"
        train = ["train", self.follows, *self.options, *self.short, "--save-data"]
        saved.write_text("precious")
        self.assertIn("--force", self.fail_with(cli.USAGE, *train, saved).err)
        self.assertEqual(saved.read_text(), "precious")
        inputs = self.users.read_bytes(), self.follows.read_bytes()
        self.assertIn(".tsr or .npz", self.fail_with(cli.USAGE, *train, self.folder / "my.mtx").err)
        self.assertIn("cannot write", self.fail_with(cli.IO, *train, self.folder / "no" / "my.tsr").err)
        users = self.users.rename(self.folder / "users.tsr")
        again = ["train", self.follows, "--nodes", users, *self.options[2:], "--save-data"]
        self.assertIn("is the input of --nodes", self.fail_with(cli.USAGE, *again, users, "--force").err)
        self.assertIn("by both", self.fail_with(cli.USAGE, *again, saved, "-c", saved, "--force").err)
        self.assertIn("--dry-run", self.fail_with(cli.USAGE, *again, saved, "--dry-run", "--force").err)
        self.assertEqual((users.read_bytes(), self.follows.read_bytes()), inputs)
        self.assertEqual(saved.read_text(), "precious")

    def test_an_interrupted_training_saves_its_state_and_no_data(self):
        saved = self.folder / "my.tsr"
        command = ["train", self.follows, *self.options, "--epochs", "1000000", "--early-stopping", "0", "-c", self.model,
                   "--checkpoint-every", "1", "--save-data", saved, "--resume"]
        before = set(os.listdir(self.folder))
        with subprocess.Popen([cli.PROGRAM, *map(str, command)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as run:
            deadline = time.monotonic() + cli.SECONDS
            while not self.model.exists() and time.monotonic() < deadline:
                time.sleep(0.02)
            run.send_signal(signal.SIGINT)
            self.assertEqual(run.wait(cli.SECONDS), cli.INTERRUPTED)
        self.assertEqual(set(os.listdir(self.folder)) - before, {"model.tsr"})

    def test_new_customers_in_a_table_of_another_shape(self):
        self.succeed("train", self.follows, *self.options, "-c", self.model)
        known, other = self.folder / "known.csv", self.folder / "other.csv"
        same = self.folder / "same.csv"
        self.succeed("predict", self.follows, *self.options, "-c", self.model, "-o", known)
        # Other columns, other order, other ids, no label: the same people, who must be judged the same.
        rows = [{**row, "id": f"new-{i}", "region": "west"} for i, row in enumerate(self.rows)]
        users = self.write("new.csv", rows, ["tariff", "region", "calls", "id", "note", "age"])
        number = {row["id"]: i for i, row in enumerate(self.rows)}
        follows = self.folder / "new_follows.csv"
        with open(follows, "w", newline="", encoding="utf-8") as file:
            csv.writer(file, delimiter="\t").writerows(
                [["target", "source"], *((f"new-{number[b]}", f"new-{number[a]}") for a, b in self.calls)])
        tables = [follows, "--nodes", users, "--symmetrise", "-c", self.model]
        report = self.json("predict", *tables, "--drop", "note", "-o", other)
        self.assertIn("columns that the model does not know are left out: 'region'", report["notes"])
        self.assertNotIn("test", report)
        # Where the label is not given, nothing is known of it.
        expected = {name: {key: value for key, value in row.items() if key != "true_label"}
                    for name, row in self.predicted(known).items()}
        found = self.predicted(other)
        for name, i in number.items():
            self.assertEqual({**found[f"new-{i}"], "id": name}, expected[name])
        # A label column that is there and not named is a column too many; one that is named must be there.
        self.assertIn("or none", self.fail_with(cli.BAD_DATA, "predict", *tables, "--drop", "note", "--label", "churn").err)
        unnamed = [option for option in self.options if option not in ("--label", "churn")]
        self.succeed("predict", self.follows, *unnamed, "-c", self.model, "-o", same)
        self.assertEqual(self.predicted(same), expected)
        # Without --symmetrise the graph is of another kind, which is said.
        self.assertTrue(any("one way" in note and "(--symmetrise)" in note for note in self.json(
            "predict", *[word for word in tables if word != "--symmetrise"], "--drop", "note")["notes"]))


if __name__ == "__main__":
    unittest.main()
