# SPDX-License-Identifier: Apache-2.0
"""What `partition --report` counts is what the edges say, and its sums are those of its own parts."""
import unittest

import cli

EDGES = [(0, 1), (1, 0), (1, 2), (2, 1), (3, 2), (3, 2), (2, 2), (5, 4), (4, 0), (0, 4)]  # rows and columns
PARTS = [0, 0, 0, 1, 2, 2]


class PartitionReport(cli.CliTest):
    def setUp(self):
        super().setUp()
        (self.folder / "graph.npz").write_bytes(cli.graph_npz(6, sorted(set(EDGES))))
        (self.folder / "parts.txt").write_text("".join(f"{part}\n" for part in PARTS))

    def report(self, *options):
        return self.json("partition", self.folder / "graph.npz", "--partition", self.folder / "parts.txt", "--report",
                         *options)["report"]

    def test_counts(self):
        edges = set(EDGES)
        needed = {(PARTS[row], column) for row, column in edges if PARTS[row] != PARTS[column]}
        outer = {row for row, column in edges if PARTS[row] != PARTS[column]}
        found = self.report("--width", "10", "--layers", "2")
        self.assertEqual([part["vertices"] for part in found["parts"]], [3, 1, 2])
        for number, part in enumerate(found["parts"]):
            with self.subTest(part=number):
                own = [(row, column) for row, column in edges if PARTS[row] == number]
                self.assertEqual(part["edges"], len(own))
                self.assertEqual(part["inner_edges"], sum(row not in outer for row, _ in own))
                self.assertEqual(part["boundary"], sum(reader == number for reader, _ in needed))
                self.assertEqual(part["sent"], sum(PARTS[column] == number for _, column in needed))
                self.assertEqual(part["layer_bytes"], 40 * (part["sent"] + part["boundary"]))
                self.assertEqual(part["step_bytes"], 2 * part["layer_bytes"])
                self.assertEqual(part["memory_bytes"], 16 * (part["edges"] + part["vertices"]) + 40 * part["vertices"] +
                                 3 * 2 * 40 * (part["vertices"] + part["boundary"]))
        self.assertEqual(found["sent_bytes"], sum(part["step_bytes"] for part in found["parts"]))
        self.assertEqual(found["memory_bytes"], max(part["memory_bytes"] for part in found["parts"]))

    def test_time(self):
        slow, fast = self.report("--link", "1e-3"), self.report("--link", "1e6")
        self.assertGreater(slow["step_seconds"], fast["step_seconds"])
        self.assertEqual(slow["one_gpu_step_seconds"], fast["one_gpu_step_seconds"])
        part = fast["parts"][0]
        sums = 2 * (part["edges"] * (4 * 256 + 8) + part["vertices"] * 4 * 256) / 3e12
        products = 6 * part["vertices"] * 256**2 / 40e12
        self.assertAlmostEqual(part["step_seconds"] / (3 * (sums + products)), 1, places=9)

    def test_text_and_errors(self):
        said = self.succeed("partition", "embedded:citation", "--parts", "20", "--report").out
        for words in ["by a model, not measured", "links 25 GB/s (--link)", "The 16 parts that take the longest"]:
            self.assertIn(words, said)
        for option in ["--width", "--layers", "--link", "--memory-bandwidth", "--tflops"]:
            error = self.fail_with(cli.USAGE, "partition", "embedded:karate", "--parts", "2", option, "2").err
            self.assertIn("does nothing without --report", error)


if __name__ == "__main__":
    unittest.main()
