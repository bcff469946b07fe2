# SPDX-License-Identifier: Apache-2.0
"""Files of predictions: the same answers in every format, under the names of the data."""
import array
import ast
import csv
import json
import struct
import unittest
import zipfile

import cli

CLASSES = ["=1+1", "d\u00f6g, wild", "cat"]
PARTS = ["train", "val", "test", ""]


def load_npy(data):
    """An array as NumPy reads it, flat, with its shape: only plain types, no pickle."""
    assert data[:8] == b"\x93NUMPY\x01\x00", data[:8]
    length, = struct.unpack("<H", data[8:10])
    header = ast.literal_eval(data[10:10 + length].decode())
    body, kind, shape = data[10 + length:], header["descr"], header["shape"]
    if kind.startswith("<U"):
        wide = 4 * int(kind[2:])
        return [body[i:i + wide].decode("utf-32-le").rstrip("\0") for i in range(0, len(body), wide)], shape
    return list(array.array({"<i8": "q", "<f4": "f"}[kind], body)), shape


def load_npz(path):
    with zipfile.ZipFile(path) as archive:
        return {name.removesuffix(".npy"): load_npy(archive.read(name)) for name in archive.namelist()}


def read_csv(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


class Predictions(cli.CliTest):
    def setUp(self):
        super().setUp()
        names = [f"pet {i}" for i in range(40)]
        with open(self.folder / "nodes.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["id", "weight", "height", "label", "split"])
            for i, name in enumerate(names):
                # Every tenth has no label, and is in no part.
                label = "" if i % 10 == 9 else CLASSES[i % 3]
                table.writerow([name, 10 * (i % 3) + i / 50, i % 7, label, "" if i % 10 == 9 else PARTS[i % 4 % 3]])
        with open(self.folder / "edges.csv", "w", newline="", encoding="utf-8") as file:
            table = csv.writer(file)
            table.writerow(["source", "target"])
            table.writerows([names[i], names[(i + 3) % 40]] for i in range(40))
        self.data, self.model = self.folder / "g.tsr", self.folder / "m.tsr"
        self.succeed("convert", self.folder / "edges.csv", "--nodes", self.folder / "nodes.csv", "--symmetrise", "-o",
                     self.data)
        self.succeed("train", self.data, "-c", self.model, "--epochs", "40", "--hidden", "8")

    def predict(self, name, *options):
        path = self.folder / name
        self.succeed("predict", self.data, "-c", self.model, "-o", path, *options)
        return path

    def test_all_formats_say_the_same(self):
        rows = read_csv(self.predict("p.csv"))
        found = json.loads(self.predict("p.json").read_text())
        arrays = load_npz(self.predict("p.npz"))
        lines = self.predict("p.txt").read_text().split()
        classes = sorted(CLASSES)
        self.assertEqual(list(rows[0]), ["id", "label", "probability", "true_label", "split",
                                         *[f"p({name})" for name in found["classes"]]])
        self.assertEqual(sorted(found["classes"]), classes)
        self.assertEqual(arrays["class_names"], (found["classes"], (3,)))
        self.assertEqual((found["task"], found["multi_label"], len(found["items"])), ("node", False, 40))
        shares, shape = arrays["probabilities"]
        self.assertEqual(shape, (40, 3))
        shown = lambda name: "'" + name if name.startswith("=") else name
        for i, (row, item) in enumerate(zip(rows, found["items"])):
            with self.subTest(item=i):
                known = i % 10 != 9
                label, truth = item["label"], CLASSES[i % 3] if known else None
                self.assertEqual((row["id"], item["id"], arrays["id"][0][i]), (f"pet {i}",) * 3)
                self.assertEqual((row["label"], arrays["label"][0][i]), (shown(label), label))
                self.assertEqual(lines[i], str(arrays["prediction"][0][i]))
                self.assertEqual(item["true_label"], truth)
                self.assertEqual((row["true_label"], arrays["true_label"][0][i]), (shown(truth or ""), truth or ""))
                part = PARTS[i % 4 % 3] if known else ""
                self.assertEqual((row["split"], item["split"] or "", arrays["split"][0][i]), (part,) * 3)
                of_item = item["probabilities"]
                self.assertAlmostEqual(sum(of_item), 1, places=4)
                self.assertEqual(label, found["classes"][of_item.index(max(of_item))])
                self.assertEqual(float(row["probability"]), max(of_item))
                self.assertEqual([float(row[f"p({name})"]) for name in found["classes"]], of_item)
                for share, wide in zip(of_item, shares[3 * i:]):
                    self.assertAlmostEqual(share, wide, places=5)

    def test_short_forms(self):
        rows = read_csv(self.predict("p.csv", "--short"))
        self.assertEqual(list(rows[0]), ["id", "label", "probability"])
        items = json.loads(self.predict("p.json", "--short").read_text())["items"]
        self.assertEqual(list(items[0]), ["id", "label", "probability"])
        for path in ["p.npz", "p.txt"]:
            self.fail_with(cli.USAGE, "predict", self.data, "-c", self.model, "-o", self.folder / path, "--short")

    def test_embeddings_have_names(self):
        table, packed = self.folder / "e.csv", self.folder / "e.npz"
        said = self.json("predict", self.data, "-c", self.model, "--embeddings", table)
        self.assertEqual((said["embeddings"], "output" in said), (str(table), False))
        self.succeed("predict", self.data, "-c", self.model, "--embeddings", packed)
        rows, arrays = read_csv(table), load_npz(packed)
        self.assertEqual(list(rows[0]), ["id"] + [f"e{k}" for k in range(8)])
        self.assertEqual(arrays["id"][0], [row["id"] for row in rows])
        numbers, shape = arrays["embeddings"]
        self.assertEqual(shape, (40, 8))
        # The shortest digits that read back as the same number of 32 bits.
        self.assertEqual(list(array.array("f", [float(row[f"e{k}"]) for row in rows for k in range(8)])), numbers)
        for wrong in [["--embeddings", self.folder / "e.txt"], ["--embeddings"], ["-o", table, "--embeddings", table, "-f"]]:
            self.fail_with(cli.USAGE, "predict", self.data, "-c", self.model, *wrong)

    def test_ids_that_change_in_tables_are_noted(self):
        (self.folder / "f.csv").write_text("id,weight,height\n@a,1,2\n-b,3,4\n-1,5,6\nc,7,8\n")
        (self.folder / "fe.csv").write_text("source,target\n@a,-b\n-1,c\n")
        command = ["predict", self.folder / "fe.csv", "--nodes", self.folder / "f.csv", "-c", self.model, "-o"]
        noted = [note for note in self.json(*command, self.folder / "f.out.csv")["notes"] if "formula" in note]
        self.assertEqual(len(noted), 1)
        self.assertTrue(noted[0].startswith("2 of 4 ids begin as a formula does"), noted)
        self.assertEqual([row["id"] for row in read_csv(self.folder / "f.out.csv")], ["'@a", "'-b", "-1", "c"])
        self.assertNotIn("formula", str(self.json(*command, self.folder / "f.json")["notes"]))

    def test_data_without_labels_has_no_columns_for_them(self):
        rows = read_csv(self.folder / "nodes.csv")
        lines = ["id,weight,height", *(f"{row['id']},{row['weight']},{row['height']}".replace("pet", "new") for row in rows)]
        (self.folder / "new.csv").write_text("\n".join(lines) + "\n")
        edges = (self.folder / "edges.csv").read_text().splitlines()
        (self.folder / "new_edges.csv").write_text("\n".join(edges[:-1]).replace("pet", "new") + "\n")
        new = self.folder / "new.tsr"
        self.succeed("convert", self.folder / "new_edges.csv", "--nodes", self.folder / "new.csv", "-o", new)
        out = self.folder / "out"
        self.succeed("predict", new, "-c", self.model, "-o", out.with_suffix(".csv"))
        self.assertNotIn("true_label", read_csv(out.with_suffix(".csv"))[0])
        self.succeed("predict", new, "-c", self.model, "-o", out.with_suffix(".npz"))
        self.assertEqual(set(load_npz(out.with_suffix(".npz"))),
                         {"prediction", "label", "logits", "probabilities", "class_names", "id"})
        report, classes = self.folder / "r.txt", self.folder / "c.txt"
        error = self.fail_with(cli.USAGE, "predict", new, "-c", self.model, "--report", report, "-o", classes).err
        self.assertIn("--report", error)
        self.assertFalse(report.exists() or classes.exists(), "nothing is written by half")


class SeveralLabels(cli.CliTest):
    def test_every_label_has_its_columns(self):
        labels = [[i % 2, i % 3 == 0] for i in range(30)]
        flat = [float(value) for row in labels for value in row]
        names = "sings".encode() + "flies".encode()
        data, model = self.folder / "g.npz", self.folder / "m.tsr"
        edges = sorted((i, (i + step) % 30) for i in range(30) for step in (6, 24))
        data.write_bytes(cli.graph_npz(
            30, edges, x=cli.npy(flat, "f", (30, 2)), y=cli.npy(flat, "f", (30, 2)), class_name=byte_array(names),
            class_name_end=cli.npy([5, 10], "q")))
        self.succeed("train", data, "-c", model, "--epochs", "60", "--hidden", "8")
        self.assertEqual(self.json("info", model)["class_names"], ["sings", "flies"])
        table = self.folder / "p.csv"
        found = self.json("predict", data, "-c", model, "-o", table, "--report", self.folder / "r.json")
        rows = read_csv(table)
        self.assertEqual(list(rows[0]), ["id", "split", "label(sings)", "p(sings)", "true_label(sings)", "label(flies)",
                                         "p(flies)", "true_label(flies)"])
        tested = [row for row in rows if row["split"] == "test"]
        counts = {"found": 0, "said": 0, "is": 0}
        for row, truth in zip(rows, labels):
            for k, name in enumerate(["sings", "flies"]):
                self.assertEqual(row[f"true_label({name})"], str(int(truth[k])))
                self.assertEqual(row[f"label({name})"] == "1", float(row[f"p({name})"]) > 0.5)
                if row in tested:
                    said, is_so = row[f"label({name})"] == "1", bool(truth[k])
                    counts["found"] += said and is_so
                    counts["said"] += said
                    counts["is"] += is_so
        report = json.loads((self.folder / "r.json").read_text())
        self.assertEqual((report["items"], report["multi_label"]), (len(tested), True))
        self.assertAlmostEqual(report["micro"]["f1"], 2 * counts["found"] / (counts["said"] + counts["is"]))
        self.assertAlmostEqual(report["micro"]["f1"], found["test"]["value"])
        self.assertEqual([quality["name"] for quality in report["classes"]], ["sings", "flies"])
        self.assertNotIn("confusion", report)
        for ending in ["txt", "svg", "png"]:
            self.succeed("predict", data, "-c", model, "--report", self.folder / f"r.{ending}")
        self.assertRegex((self.folder / "r.txt").read_text(), r"(?m)^  micro mean +\d")
        self.fail_with(cli.USAGE, "predict", data, "-c", model, "-o", self.folder / "p.txt")


def byte_array(content):
    """An array of bytes, |u1."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({len(content)},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + content


if __name__ == "__main__":
    unittest.main()
