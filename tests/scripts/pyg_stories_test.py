# SPDX-License-Identifier: Apache-2.0
"""Three people come from PyG with what they have: a folder of TUDataset, data with several splits, a processed file."""
import importlib.util
import json
import os
import pathlib
import random
import re
import statistics
import sys
import unittest
import zipfile

sys.path[:0] = [os.path.dirname(__file__), os.path.join(os.environ["TESSERA_SOURCE"], "tests", "golden")]
import cli  # noqa: E402
from stories_test import PROGRAM, Story  # noqa: E402

DATA = os.environ.get("TESSERA_DATA")


class PygStory(Story):
    def report(self, *arguments):
        return json.loads(self.do(PROGRAM, *arguments, "--json", "-"))

    def check_means(self, report, what, count):
        """The summary is that of the runs, each on another part."""
        runs = report["runs"]
        self.assertEqual([run[what] for run in runs], list(range(count)))
        tests = [run["test"] for run in runs]
        self.assertAlmostEqual(report["test"]["mean"], statistics.mean(tests))
        self.assertAlmostEqual(report["test"]["std"], statistics.stdev(tests))


class TheChemist(PygStory):
    """Has a folder of molecules, and judges a model by ten folds."""

    def write_rings_and_chains(self, folder, graphs=60):
        """Rings are of class 7, chains of class -3; labels of vertices are drawn, others in rings than in chains."""
        draw = random.Random(11)
        folder.mkdir()
        edges, indicator, labels, node_labels, first = [], [], [], [], 1
        for graph in range(1, graphs + 1):
            size, ring = draw.randint(4, 8), graph % 2 == 0
            pairs = [(first + i, first + (i + 1) % size) for i in range(size if ring else size - 1)]
            edges += pairs + [pair[::-1] for pair in pairs]
            indicator += [graph] * size
            node_labels += [draw.choice([6, 7, 7] if ring else [7, 8, 8]) for _ in range(size)]
            labels.append(7 if ring else -3)
            first += size
        for part, rows in (("A", [f"{a}, {b}" for a, b in edges]), ("graph_indicator", indicator),
                           ("graph_labels", labels), ("node_labels", node_labels)):
            (folder / f"RINGS_{part}.txt").write_text("".join(f"{row}\n" for row in rows))

    def test_ten_folds(self):
        self.write_rings_and_chains(self.folder / "rings")
        self.assertRegex(self.tessera("info", "rings"), "union of +60 graphs, 2 classes")
        report = self.report("train", "rings", "--model", "gin", "--folds", "10", "--epochs", "8")
        self.check_means(report, "fold", 10)
        self.assertGreater(report["test"]["mean"], 0.7)
        said = self.tessera("train", "rings", "--model", "gin", "--folds", "10", "--epochs", "2")
        self.assertRegex(said, r"± \d+\.\d+ % at the best validation epoch, 10 runs on 10 folds")

    def test_predictions_name_the_classes(self):
        self.write_rings_and_chains(self.folder / "rings")
        self.tessera("train", "rings", "--model", "gin", "--epochs", "8", "-c", "model.tsr")
        self.assertIn("-3, 7", self.tessera("info", "model.tsr"))
        self.tessera("convert", "rings", "-o", "rings.npz")
        for data in ("rings", "rings.npz"):
            found = self.report("predict", data, "-c", "model.tsr", "-o", f"{data}.csv")
            self.assertLessEqual(set(found["predicted"]), {"-3", "7"})
            self.assertGreater(found["test"]["value"], 0.7)
        self.assertEqual((self.folder / "rings.csv").read_text(), (self.folder / "rings.npz.csv").read_text())

    @unittest.skipUnless(DATA, "TESSERA_DATA names no folder of real data")
    def test_real_molecules(self):
        """Better than always the most frequent class, by some margin; ENZYMES has six of the same size."""
        for name, classes, epochs, least in (("MUTAG", 2, 20, 0.7), ("AIDS", 2, 3, 0.82), ("ENZYMES", 6, 10, 0.2)):
            with self.subTest(data=name):
                folder = pathlib.Path(DATA, "tu", name)
                self.assertEqual(self.report("info", folder)["graph_classes"], classes)
                report = self.report("train", folder, "--model", "gin", "--folds", "10", "--epochs", epochs)
                self.check_means(report, "fold", 10)
                self.assertGreater(report["test"]["mean"], least)


class TheStudentOfWebPages(PygStory):
    """Has ten splits, and wants the mean over them."""

    def test_all_splits(self):
        draw = random.Random(12)
        vertices, splits = 60, 4
        labels = [v % 3 for v in range(vertices)]
        pairs = {(a, b) for a in range(vertices) for b in range(vertices)
                 if a != b and labels[a] == labels[b] and draw.random() < 0.2}
        part = [[draw.choices(["train", "val", "test"], [6, 2, 2])[0] for _ in range(splits)] for _ in range(vertices)]
        masks = {f"{name}_mask": cli.npy([int(one == name) for row in part for one in row], "i", (vertices, splits))
                 for name in ("train", "val", "test")}
        (self.folder / "pages.npz").write_bytes(cli.graph_npz(vertices, sorted(pairs), y=cli.npy(labels, "q"), **masks))
        short = ["train", "pages.npz", "--epochs", "5"]
        self.check_means(self.report(*short, "--split-index", "all"), "split", splits)
        said = self.tessera(*short, "--split-index", "all")
        self.assertIn(f"{splits} runs on {splits} splits", said)
        twice = self.report(*short, "--split-index", "all", "--runs", "2")
        self.assertEqual([run["split"] for run in twice["runs"]], [0, 1, 2, 3] * 2)
        self.assertEqual(twice["runs"][:splits], self.report(*short, "--runs", "4")["runs"])

    @unittest.skipUnless(DATA, "TESSERA_DATA names no folder of real data")
    def test_real_pages(self):
        """docs/training.md has what papers reach."""
        for name in ("texas", "cornell", "wisconsin"):
            with self.subTest(data=name):
                report = self.report("train", pathlib.Path(DATA, name, f"{name}.npz"), "--model", "sage", "--split-index",
                                     "all", "--epochs", "30")
                self.check_means(report, "split", 10)
                self.assertGreater(report["test"]["mean"], 0.45)


class TheOwnerOfAFile(PygStory):
    """Has data.pt, and no idea that the program does not read it. tests/python/test_to_npz.py follows the command."""

    def test_the_program_names_a_script_that_is_there(self):
        (self.folder / "processed").mkdir()
        with zipfile.ZipFile(self.folder / "processed" / "data.pt", "w") as archive:
            archive.writestr("data/data.pkl", b"\x80\x02N.")
        for verb in ("info", "train"):
            for path in ("processed/data.pt", "processed", "."):
                error = cli.Run([verb, path], cwd=self.folder)
                self.assertEqual(error.code, cli.UNAVAILABLE, error)
                script, source, out = re.search(r": python3 (\S+) pyg (\S+) (\S+)$", error.err.strip()).groups()
                self.assertTrue(os.path.isabs(script) and os.path.isfile(script), script)
                self.assertEqual((source, out.endswith(".npz")), (path, True))

    @unittest.skipUnless(importlib.util.find_spec("torch"), "there is no PyTorch, which writes and reads such files")
    def test_from_a_file_to_predictions(self):
        """tests/python/test_to_npz.py has more kinds of them."""
        import torch
        draw = random.Random(13)
        classes = torch.arange(80) % 2
        edges = [(a, b) for a in range(80) for b in range(80) if a != b and draw.random() < (0.1 if (a - b) % 2 == 0 else 0.01)]
        part = torch.tensor([draw.randrange(4) for _ in range(80)])
        graph = {"edge_index": torch.tensor(edges).t(), "x": torch.rand(80, 3) + torch.eye(3)[classes], "y": classes,
                 "train_mask": part < 2, "val_mask": part == 2, "test_mask": part == 3}
        (self.folder / "processed").mkdir()
        torch.save((graph, None, {}), self.folder / "processed" / "data.pt")
        refused = cli.Run(["train", "processed"], cwd=self.folder)
        command = refused.err.strip().rpartition(": python3 ")[2].split()
        self.do(sys.executable, "-B", *command)
        report = self.report("train", command[-1], "--epochs", "40", "-c", "model.tsr")
        self.assertGreater(report["test"]["mean"], 0.7)
        self.tessera("predict", command[-1], "-c", "model.tsr", "-o", "out.csv")
        lines = (self.folder / "out.csv").read_text(encoding="utf-8").splitlines()
        self.assertEqual((lines[0], len(lines)), ("id,label,probability,true_label,split,p(0),p(1)", 81))


if __name__ == "__main__":
    unittest.main()
