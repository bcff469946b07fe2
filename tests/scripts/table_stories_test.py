# SPDX-License-Identifier: Apache-2.0
"""Two people with tables: one wants predictions beside her own columns, one has more edges than his editor opens."""
import csv
import json
import os
import random
import sqlite3
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.dirname(__file__))
from stories_test import PROGRAM, Story  # noqa: E402


def write_table(path, rows):
    with open(path, "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows(rows)


class TheAnalyst(Story):
    """Keeps customers in a data base, and asks it whom to call."""

    CUSTOMERS = 90

    def setUp(self):
        super().setUp()
        draw = random.Random(21)
        # Numbers with zeros before them, commas, quotation marks, another alphabet: names are texts, whatever they look like.
        names = [draw.choice(["00{}", "A, {}", 'the "{}"', "Łódź {}", "-{}", "{}.0"]).format(i) for i in range(self.CUSTOMERS)]
        self.leaves = {name: "leaves" if i % 2 else "stays" for i, name in enumerate(names)}
        self.known = {name: self.leaves[name] for i, name in enumerate(names) if i % 3}
        self.users = [(name, 20 + 30 * (i % 2) + draw.random(), draw.choice(["north", "south"]), self.known.get(name, ""))
                      for i, name in enumerate(names)]
        draw.shuffle(self.users)
        write_table(self.folder / "users.csv", [("customer", "age", "region", "churn"), *self.users])
        write_table(self.folder / "calls.csv",
                    [("from", "to"), *((names[i], names[(i + 2) % self.CUSTOMERS]) for i in range(self.CUSTOMERS))])
        tables = ["calls.csv", "--nodes", "users.csv", "--id", "customer", "--label", "churn", "--symmetrise"]
        self.tessera("train", *tables, "-c", "model.tsr")
        self.tessera("predict", *tables, "-c", "model.tsr", "-o", "predictions.csv", "--embeddings", "embeddings.csv")

    def load(self, base, table, path):
        with open(path, newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        columns = ", ".join('"{}"'.format(name.replace('"', '""')) for name in head)
        base.execute(f"CREATE TABLE {table} ({columns})")
        base.executemany(f"INSERT INTO {table} VALUES ({', '.join('?' * len(head))})", rows)

    def test_predictions_join_the_users_own_table(self):
        base = sqlite3.connect(":memory:")
        self.addCleanup(base.close)
        for table in ("users", "predictions", "embeddings"):
            self.load(base, table, self.folder / f"{table}.csv")
        joined = base.execute("""SELECT customer, churn, p.label, p.true_label, p.split, p.probability, "p(leaves)", "p(stays)"
                                 FROM users u JOIN predictions p ON p.id = u.customer
                                 JOIN embeddings e ON e.id = u.customer""").fetchall()
        self.assertEqual({row[0] for row in joined}, set(self.leaves))
        self.assertEqual(len(joined), self.CUSTOMERS)
        for name, churn, label, truth, split, probability, leaves, stays in joined:
            shares = {"leaves": float(leaves), "stays": float(stays)}
            self.assertEqual(truth, churn, name)
            self.assertEqual(split in ("train", "val", "test"), name in self.known, name)
            self.assertEqual((label, float(probability)), max(shares.items(), key=lambda share: share[1]))
            self.assertAlmostEqual(sum(shares.values()), 1, places=4)
        unknown = [(name, label) for name, churn, label, *_ in joined if not churn]
        self.assertEqual(len(unknown), self.CUSTOMERS - len(self.known))
        self.assertGreater(sum(label == self.leaves[name] for name, label in unknown), 0.8 * len(unknown))


class TheOwnerOfManyEdges(Story):
    """Has two cores, a list of edges as text and little memory: from the text to predictions, the memory that is needed
    grows by a fixed number of bytes an edge."""

    VERTICES, EDGES, COMMUNITIES = 20_000, 200_000, 20
    BYTES_AN_EDGE = 400  # 8 GiB for twenty million
    BYTES_BEFORE = 160 << 20  # the program, its libraries and buffers of a fixed size

    def setUp(self):
        super().setUp()
        draw = random.Random(22)
        with open(self.folder / "edges.txt", "w", encoding="utf-8") as file:
            for _ in range(self.EDGES):
                a, b = draw.randrange(self.VERTICES), draw.randrange(self.VERTICES)
                if draw.random() < 0.8:
                    b -= (b - a) % self.COMMUNITIES
                file.write(f"user{a}\tuser{b % self.VERTICES}\n")
        write_table(self.folder / "users.csv", [("id", "age", "calls", "label"), *(
            (f"user{v}", draw.randrange(60) + 20 * (v & 1), draw.randrange(60) + 10 * (v & 2),
             "" if v % 5 == 0 else "abcd"[v % 4]) for v in range(self.VERTICES))])
        self.sanitized = json.loads(self.do(PROGRAM, "doctor", "--json", "-"))["build"]["sanitizers"]

    def within_bounds(self, *arguments):
        """Runs the program, and looks at the most memory that it had."""
        with open(self.folder / "said", "w+", encoding="utf-8") as said:
            run = subprocess.Popen([PROGRAM, *map(str, arguments), "--threads", "2"], cwd=self.folder, stdout=said, stderr=said)
            _, status, use = os.wait4(run.pid, 0)
            run.returncode = os.waitstatus_to_exitcode(status)
            said.seek(0)
            text = said.read()
        self.assertEqual(run.returncode, 0, text)
        peak = use.ru_maxrss * 1024
        if not self.sanitized:  # which take several times as much
            self.assertLess(peak, self.BYTES_BEFORE + self.BYTES_AN_EDGE * self.EDGES, arguments)
        return text

    def test_from_text_to_predictions(self):
        tables = ["edges.txt", "--nodes", "users.csv", "--duplicates", "first", "--symmetrise"]
        self.assertRegex(self.within_bounds("info", *tables), f"{self.VERTICES:,} vertices")
        self.within_bounds("convert", *tables, "-o", "graph.tsr")
        parted = self.within_bounds("partition", "graph.tsr", "--parts", self.COMMUNITIES, "-o", "parts.txt")
        self.assertLess(float(parted.split("edges cut")[1].split("(")[1].split(" %")[0]), 60)
        self.within_bounds("train", "graph.tsr", "--model", "sage", "--epochs", "20", "-c", "model.tsr")
        self.within_bounds("train", "graph.tsr", "--batch", "clusters", "--partition", "parts.txt", "--epochs", "2")
        self.within_bounds("predict", "graph.tsr", "-c", "model.tsr", "-o", "predictions.csv", "--report", "quality.json")
        with open(self.folder / "predictions.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        self.assertEqual([row["id"] for row in rows], [f"user{v}" for v in range(self.VERTICES)])
        right = sum(row["label"] == "abcd"[v % 4] for v, row in enumerate(rows))
        self.assertGreater(right, 0.7 * self.VERTICES)


if __name__ == "__main__":
    unittest.main()
