# SPDX-License-Identifier: Apache-2.0
"""What reading guessed, dropped or merged is said once by every verb; splits and labels are read as they are meant."""
import json
import unittest

import cli

PATH = [(0, 1), (1, 0), (1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 3), (4, 5), (5, 4)]


def mask(shape, values):
    header = f"{{'descr': '|b1', 'fortran_order': False, 'shape': {shape}, }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(values)


class Notes(cli.CliTest):
    def write(self, name, **arrays):
        path = self.folder / name
        path.write_bytes(cli.graph_npz(6, PATH, **arrays))
        return path

    def test_every_verb_that_reads_data_shows_them_once(self):
        path = self.write("a.npz", y=cli.npy([0, 1, 0, 1, 0, -1], "q"), colour=cli.npy([1], "q"))
        notes = ["1 of 6 vertices has no label", "nothing uses the array colour"]
        model = self.folder / "m.tsr"
        self.succeed("train", path, "--epochs", "2", "-c", model)
        out = self.folder / "out.npz"
        for arguments in [["info"], ["convert", "-o", out], ["reorder"], ["prune"], ["partition", "--parts", "2"],
                          ["tiles"], ["train", "--epochs", "2"], ["train", "--dry-run"], ["predict", "-c", model],
                          ["check", "--features", "3"], ["plan"], ["bench", "spmm", "--features", "4", "--quick"]]:
            with self.subTest(arguments=arguments):
                verb, *options = arguments
                words = ["--data", path, *options, "--force"]
                text = self.succeed(verb, *words).out
                for note in notes:
                    self.assertEqual(text.count(note), 1, text)
                    self.assertRegex(text, rf"(?m)^  note +{note}$")
                found = self.json(verb, *words)["notes"]
                self.assertEqual([note for note in found if note in notes], notes)

    def test_rows_stand_below_the_headline_in_the_columns_of_the_table(self):
        path = self.write("a.npz", colour=cli.npy([1], "q"))
        lines = self.succeed("info", path).out.splitlines()
        self.assertEqual(lines[0], "a: 6 vertices, 10 edges")
        self.assertRegex(lines[1], "^  note +nothing uses the array colour$")
        self.assertEqual(lines[1].index("nothing"), lines[2].index("10"))
        self.assertEqual(self.json("info", "embedded:karate")["notes"], [])

    def test_splits(self):
        part = [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 1]]
        columns = {"train_mask": 0, "val_mask": 1, "test_mask": 2}
        # The first split, and one with the parts moved on.
        arrays = {name: mask((6, 2), [row[k] for i in range(6) for row in (part[i], part[(i + 2) % 6])])
                  for name, k in columns.items()}
        path = self.write("s.npz", y=cli.npy([0, 1, 0, 1, 0, 1], "q"), **arrays)
        info = self.json("info", path)
        self.assertEqual((info["splits"], info["train"], info["extras"], info["notes"]), (2, 2, [], []))
        self.assertRegex(self.succeed("info", path).out, r"split +2 train, 2 validation, 2 test, the first of 2\n")
        short = ["train", path, "--epochs", "2"]
        one = self.json(*short)
        self.assertIn("split 0 of 2 in the data: --split-index K chooses another, --split-index all trains on each of them",
                      one["notes"])
        self.assertEqual([run["split"] for run in one["runs"]], [0])
        runs = self.json(*short, "--runs", "3")
        self.assertEqual([run["split"] for run in runs["runs"]], [0, 1, 0])
        self.assertIn("2 of 2 splits in the data, one a run", runs["notes"])
        self.assertEqual(self.json(*short, "--split-index", "1")["runs"][0]["split"], 1)
        self.assertIn("use 0 to 1", self.fail_with(cli.USAGE, *short, "--split-index", "2").err)
        self.fail_with(cli.USAGE, *short, "--split-index", "1", "--folds", "3")
        self.assertIn("one split at most", self.fail_with(cli.USAGE, "train", "embedded:citation", "--split-index", "0").err)
        for name in ["c.tsr", "c.npz"]:
            self.succeed("convert", path, "-o", self.folder / name)
            self.assertEqual(self.json("info", self.folder / name)["splits"], 2)
        square = self.write("q.npz", train_mask=mask((6, 6), [0] * 36))
        self.assertIn("whether a row is a vertex or a split", self.fail_with(cli.BAD_DATA, "info", square).err)

    def test_resumed_runs_go_on_with_their_splits(self):
        rows = [[1, 0], [1, 0], [0, 1], [0, 1], [0, 0], [0, 0]]
        arrays = {"train_masks": mask((2, 6), [row[0] for row in rows] + [row[1] for row in rows]),
                  "val_masks": mask((2, 6), [row[1] for row in rows] + [row[0] for row in rows]),
                  "test_mask": mask((6,), [0, 0, 0, 0, 1, 1])}
        path = self.write("s.npz", y=cli.npy([0, 1, 0, 1, 0, 1], "q"), **arrays)
        model = self.folder / "m.tsr"
        self.succeed("train", path, "--epochs", "3", "-c", model)
        resumed = self.json("train", path, "--epochs", "3", "--runs", "2", "-c", model, "--resume")
        at_once = self.json("train", path, "--epochs", "3", "--runs", "2")
        self.assertEqual(resumed["runs"], at_once["runs"])
        error = self.fail_with(cli.USAGE, "train", path, "--epochs", "3", "--runs", "2", "-c", model, "--resume",
                               "--split-index", "0").err
        self.assertIn("its split are not these", error)

    def test_without_a_test_part(self):
        path = self.write("v.npz", y=cli.npy([0, 1, 0, 1, 0, 1], "q"), train_idx=cli.npy([0, 1], "q"),
                          val_idx=cli.npy([2, 3], "q"))
        model = self.folder / "m.tsr"
        text = self.succeed("train", path, "--epochs", "2", "-c", model, "--plot", self.folder / "p.svg").out
        self.assertIn("the split has no test part: nothing is tested", text)
        self.assertNotRegex(text, "(?m)^  test ")
        self.assertRegex(text, r"validation accuracy +\d")
        report = self.json("train", path, "--epochs", "2")
        self.assertEqual((report["test"]["mean"], report["test"]["std"], report["runs"][0]["test"]), (None, None, None))
        self.assertNotIn("test", report["curve"][0])
        self.assertIn("no test part", self.succeed("info", model).out)
        self.assertIsNone(self.json("info", model)["best"]["test"])
        self.succeed("predict", path, "-c", model)

    def test_classes_go_by_their_own_numbers(self):
        for numbers in [(5, 1000000), (-1, 1), (1, 2)]:
            with self.subTest(numbers=numbers):
                labels = [numbers[i % 2] for i in range(6)]
                path = self.write("l.npz", y=cli.npy(labels, "q"), x=cli.npy([i % 2 for i in range(6)], "f", (6, 1)))
                info = self.json("info", path)
                self.assertEqual((info["classes"], info["label_width"], info["labelled"]), (2, 2, 6))
                model, out = self.folder / "m.tsr", self.folder / "out.csv"
                train = self.json("train", path, "--epochs", "60", "--normalise", "off", "-c", model, "--force")
                self.assertIn(f"the 2 class numbers in use ({numbers[0]}, {numbers[1]}) are one output each", train["notes"])
                self.assertEqual(self.json("info", model)["outputs"], 2)
                predicted = self.json("predict", path, "-c", model, "-o", out, "--force")
                self.assertLessEqual(set(predicted["predicted"]), {str(number) for number in numbers})
                found = {line.split(",")[1] for line in out.read_text().splitlines()[1:]}
                self.assertLessEqual(found, {str(number) for number in numbers})

    def test_graphs_of_minus_one_and_one(self):
        entries = [(2 * i + a, 2 * i + 1 - a) for i in range(12) for a in range(2)]
        path = self.folder / "u.npz"
        path.write_bytes(cli.graph_npz(24, entries, graph_id=cli.npy([i // 2 for i in range(24)], "i"),
                                       graph_label=cli.npy([(-1) ** i for i in range(12)], "q", (12, 1))))
        self.assertEqual(self.json("info", path)["graph_classes"], 2)
        report = self.json("train", path, "--model", "gin", "--epochs", "2")
        self.assertIn("the 2 class numbers in use (-1, 1) are one output each", report["notes"])

    def test_directed_graphs_are_said_to_be(self):
        path = self.folder / "d.csv"
        path.write_text("source,target\n" + "".join(f"{i},{i + 1}\n" for i in range(9)))
        self.assertIn("edge list: 9 edges in d.csv, parted by commas, below a header, from 'source' to 'target'; "
                      "ids are numbers of vertices", self.json("info", path)["notes"])
        arrays = {"y": cli.npy([0, 1, 0, 1, 0, 1], "q")}
        one_way = self.folder / "o.npz"
        one_way.write_bytes(cli.graph_npz(6, [(i + 1, i) for i in range(5)], **arrays))
        notes = self.json("train", one_way, "--epochs", "1")["notes"]
        self.assertTrue(any("directed" in note and "--symmetrise" in note for note in notes), notes)
        notes = self.json("train", self.write("b.npz", **arrays), "--epochs", "1")["notes"]
        self.assertFalse(any("directed" in note for note in notes), notes)

    def test_arrays_of_edges_are_kept_until_edges_change(self):
        path = self.write("e.npz", edge_type=cli.npy(range(10), "f", (10, 1)))
        out = self.folder / "out.tsr"
        self.succeed("convert", path, "-o", out)
        self.assertEqual(self.json("info", out)["extras"], ["edge_type"])
        for verb, *options in [["convert", "--self-loops", "add"], ["reorder"], ["prune"]]:
            report = json.loads(self.succeed(verb, path, *options, "-o", out, "--force", "--json", "-").out)
            self.assertIn("edge_type left out: the edges are no longer those of the file", report["notes"])
            self.assertEqual(self.json("info", out)["extras"], [])

    def test_features_of_edges_stay_with_them(self):
        path = self.write("e.npz", edge_attr=cli.npy(range(20), "f", (10, 2)))
        out = self.folder / "out.tsr"
        for verb, *options in [["convert"], ["convert", "--transpose"], ["reorder"], ["prune"]]:
            self.succeed(verb, path, *options, "-o", out, "--force")
            found = self.json("info", out)
            self.assertEqual((found["edge_features"], found["extras"]), (2, []), verb)
        report = json.loads(self.succeed("convert", path, "--self-loops", "add", "-o", out, "--force", "--json", "-").out)
        self.assertIn("new edges with features of 0: 6", report["notes"])
        self.succeed("partition", path, "--parts", "2")


class Classes(cli.CliTest):
    def test_alike_ones_are_noted(self):
        (self.folder / "e.csv").write_text("source,target\n1,2\n2,3\n")
        (self.folder / "n.csv").write_text("id,label\n1,Yes\n2,yes\n3,no\n")
        notes = self.json("info", self.folder / "e.csv", "--nodes", self.folder / "n.csv")["notes"]
        self.assertIn("classes 'Yes' and 'yes' differ in capital letters alone", notes)

    def test_large_counts_have_commas(self):
        (self.folder / "e.csv").write_text("source,target\n1,2\n")
        (self.folder / "n.csv").write_text("id,label\n" + "".join(f"{v},{'a' * (v < 10)}\n" for v in range(1, 2001)))
        notes = self.json("info", self.folder / "e.csv", "--nodes", self.folder / "n.csv")["notes"]
        self.assertIn("1,991 of 2,000 vertices have no label", notes)


if __name__ == "__main__":
    unittest.main()
