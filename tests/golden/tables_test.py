# SPDX-License-Identifier: Apache-2.0
"""Edges and vertices as people have them: from two tables to predictions under the same names."""
import csv
import gzip
import unittest

import cli

CLASSES = ["cat, tame", "dog"]


def vertex(i):
    return f'pet "{i}"'


class Tables(cli.CliTest):
    def write_tables(self, labelled=True):
        """A ring of 40 pets; even ones are cats, which weigh little."""
        with open(self.folder / "nodes.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["id", "weight", "colour"] + (["label"] if labelled else []))
            for i in range(40):
                weight = "" if i == 7 else (3 if i % 2 == 0 else 20) + i / 100
                row = [vertex(i), weight, ["black", "white", "NA"][i % 3]]
                table.writerow(row + ([CLASSES[i % 2]] if labelled else []))
        with open(self.folder / "edges.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["from", "to"])
            table.writerows([vertex(i), vertex((i + 2) % 40)] for i in range(40))

    def convert(self, *options):
        return self.json("convert", self.folder / "edges.csv", "--nodes", self.folder / "nodes.csv",
                         "-o", self.folder / "g.tsr", "--force", *options)

    def test_from_two_tables_to_predictions_by_name(self):
        self.write_tables()
        report = self.convert("--id", "id", "--label", "label", "--symmetrise")
        self.assertEqual((report["vertices"], report["edges"], report["features"]), (40, 80, 3))
        data, model = self.folder / "g.tsr", self.folder / "m.tsr"
        self.succeed("train", data, "-c", model, "--epochs", "100", "--hidden", "8", "--lr", "0.05")
        # Names of classes come from the checkpoint: this data has none.
        self.write_tables(labelled=False)
        self.convert("--symmetrise")
        said = self.succeed("predict", data, "-c", model, "-o", self.folder / "out.csv").out
        self.assertRegex(said, rf"classes +({'|'.join(CLASSES)}): ")
        with open(self.folder / "out.csv", newline="", encoding="utf-8") as file:
            rows = list(csv.reader(file))
        self.assertEqual(rows[0], ["id", "label", "probability", "split", *(f"p({name})" for name in CLASSES)])
        self.assertEqual([row[0] for row in rows[1:]], [vertex(i) for i in range(40)])
        right = sum(row[1] == CLASSES[i % 2] for i, row in enumerate(rows[1:]))
        self.assertGreaterEqual(right, 36, rows)
        self.assertTrue(all(0.5 <= float(row[2]) <= 1 for row in rows[1:]), rows)

    def test_names_survive_every_format_and_order(self):
        self.write_tables()
        self.convert()
        self.succeed("reorder", self.folder / "g.tsr", "--method", "degree", "-o", self.folder / "r.npz")
        self.succeed("convert", self.folder / "r.npz", "-o", self.folder / "back.tsr")
        self.assertEqual(self.json("info", self.folder / "back.tsr")["extras"], [])

    def test_lists_are_recognised_by_their_content(self):
        expected = None
        for name, text in {"snap": "# Nodes: 4\n0\t1\n1\t2\n2\t3\n", "a.csv": "src,dst\r\n0,1\r\n1,2\r\n2,3",
                           "a.mtx": "%%MatrixMarket matrix coordinate pattern general\n4 4 3\n2 1\n3 2\n4 3\n"}.items():
            for packed in [False, True]:
                path = self.folder / (name + (".gz" if packed else ""))
                path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())
                info = self.json("info", path)
                seen = (info["vertices"], info["edges"], info["components"])
                expected = expected or seen
                self.assertEqual(seen, expected, path)
        self.assertEqual(expected[:2], (4, 3))

    def test_errors_name_the_line_and_the_option(self):
        self.write_tables()
        edges = self.folder / "edges.csv"
        edges.write_text(edges.read_text() + "ghost,ghost\n")
        error = self.fail_with(cli.BAD_DATA, "convert", edges, "--nodes", self.folder / "nodes.csv", "-o",
                               self.folder / "g.tsr").err
        self.assertIn("line 42: vertex 'ghost'", error)
        self.assertIn("--unknown-ids drop", error)
        self.assertEqual(self.convert("--unknown-ids", "drop")["edges"], 40)
        self.fail_with(cli.USAGE, "info", edges, "--label", "label")
        self.fail_with(cli.USAGE, "info", edges, "--separator", "::")
        self.fail_with(cli.USAGE, "info", edges, "--format", "excel")


if __name__ == "__main__":
    unittest.main()
