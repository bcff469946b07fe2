# SPDX-License-Identifier: Apache-2.0
"""Files that lie or stop short are bad data (3), in one line, whatever the verb."""
import random
import unittest

import cli


class Hostile(cli.CliTest):
    def refuse(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        for verb in [["info"], ["convert", "-o", self.folder / "out.tsr"], ["reorder"],
                     ["partition", "--parts", "2"]]:
            self.fail_with(cli.BAD_DATA, *verb, path)
        self.assertFalse((self.folder / "out.tsr").exists())

    def test_truncated_files(self):
        entries = [(i, (i + 1) % 50) for i in range(50)]
        whole = {"whole.npz": cli.graph_npz(50, entries)}
        tsr, mtx = self.folder / "k.tsr", self.folder / "k.mtx"
        self.succeed("convert", "embedded:karate", "-o", tsr)
        self.succeed("convert", "embedded:karate", "-o", mtx, "--graph-only")
        whole["whole.tsr"], whole["whole.mtx"] = tsr.read_bytes(), mtx.read_bytes()
        for name, content in whole.items():
            for share in [0, 0.1, 0.3, 0.5, 0.9, 0.99]:
                with self.subTest(name=name, share=share):
                    self.refuse(name, content[:int(len(content) * share)])

    def test_npz_that_lies(self):
        number, count = cli.npy([3], "q", ()), cli.npy([0, 1], "i")
        for name, arrays in {
                "no_row": {"col": count, "num_nodes": number},
                "uneven": {"row": count, "col": cli.npy([0], "i"), "num_nodes": number},
                "too_large": {"row": count, "col": cli.npy([0, 3], "i"), "num_nodes": number},
                "negative": {"row": count, "col": cli.npy([0, -1], "i"), "num_nodes": number},
                "no_vertices": {"row": count, "col": count, "num_nodes": cli.npy([-1], "q", ())},
                "short_labels": {"row": count, "col": count, "num_nodes": number,
                                 "y": cli.npy([1], "q")},
                "split_out_of_range": {"row": count, "col": count, "num_nodes": number,
                                       "train_idx": cli.npy([3], "q")},
        }.items():
            with self.subTest(name=name):
                self.refuse("lie.npz", cli.npz_bytes(arrays))

    def test_mtx_that_lies(self):
        head = b"%%MatrixMarket matrix coordinate pattern general\n"
        for name, body in {"fewer": b"3 3 5\n1 2\n", "more": b"3 3 1\n1 2\n2 1\n",
                           "outside": b"3 3 1\n4 1\n", "zero": b"3 3 1\n0 1\n",
                           "huge": b"3 3 99999999999999999999\n1 1\n", "words": b"3 3 1\none two\n",
                           "nothing": b""}.items():
            with self.subTest(name=name):
                self.refuse("lie.mtx", head + body)

    def test_noise(self):
        seed = 20240607
        noise = random.Random(seed)
        for ending in ["npz", "mtx", "tsr"]:
            with self.subTest(seed=seed, ending=ending):
                path = self.folder / f"noise.{ending}"
                path.write_bytes(bytes(noise.randrange(256) for _ in range(1000)))
                run = cli.Run(["info", path])
                self.assertIn(run.code, (cli.BAD_DATA, cli.UNAVAILABLE), str(run))
                self.assertEqual(len(run.err.splitlines()), 1)

    def test_duplicates_are_refused_unless_allowed(self):
        path = cli.write_mtx(self.folder / "twice.mtx", 2, 2, [(0, 1), (0, 1), (1, 0)])
        self.fail_with(cli.BAD_DATA, "info", path)
        first = self.json("info", path, "--duplicates", "first")
        self.assertEqual((first["edges"], first["edges_stored"], first["weighted"]), (2, 3, False))
        self.assertTrue(self.json("info", path, "--duplicates", "sum")["weighted"])

    def test_partition_files(self):
        path = self.folder / "parts.txt"
        for content in ["", "0\n" * 33, "0\n" * 35, "0\n" * 33 + "-1\n", "0\n" * 33 + "2\n",
                        "0\n" * 33 + "x\n", "0\n" * 33 + "99999999999\n"]:
            with self.subTest(content=content[-12:]):
                path.write_text(content)
                self.fail_with(cli.BAD_DATA, "partition", "embedded:karate", "--partition", path,
                               "--parts", "2")


if __name__ == "__main__":
    unittest.main()
