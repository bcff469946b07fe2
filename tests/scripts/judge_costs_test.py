# SPDX-License-Identifier: Apache-2.0
"""The judge of costs, on a record and expected times that are made up."""
import json
import os
import pathlib
import stat
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(os.environ.get("TESSERA_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
ROWS, TALL = "spmm/cuda/rows_8x1x4_listed", "spmm/cuda/tall_64"


def case(name, candidates, graph="twin:a"):
    return {"graph": graph, "edges": 5, "op": "spmm", "case": name, "candidates": candidates}


class JudgeCosts(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def judge(self, record, expected, *options):
        """The tool's tables, with a program that appends these expected times."""
        (self.folder / "record.json").write_text(json.dumps({"parts": record}))
        lines = "\n".join(json.dumps(one) for one in expected)
        program = self.folder / "program"
        program.write_text(f"#!/bin/sh\ncat > \"$3\" <<'END'\n{lines}\nEND\n")
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        return subprocess.run([sys.executable, SOURCE / "tools/judge_costs.py", "--data", self.folder, "--program", program,
                               "--record", self.folder / "record.json", *options], capture_output=True, text=True)

    def table(self, *arguments):
        done = self.judge(*arguments)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [[cell.strip() for cell in line.strip("|").split("|")] for line in done.stdout.splitlines() if line.startswith("| ")]

    def test_losses_of_choices(self):
        record = {"whole": [case("1", [[ROWS, 0, 100], [TALL, 0, 50]]), case("2", [[ROWS, 0, 200], [TALL, 0, 400]])]}
        expected = [case("1", [[ROWS, 40, 40], [TALL, 60, 60]]), case("2", [[ROWS, 210, 210], [TALL, 390, 390]])]
        rows = {tuple(row[:2]): row[2:] for row in self.table(record, expected, "--events-us", "0")}
        # The first choice loses half, the second nothing; of four times, three are close, of the chosen ones one.
        self.assertEqual(rows["spmm", "whole"], ["2", "1.414", "1.414", "2.00", "50%", "75%"])
        self.assertNotIn(("spmm", "no wgmma"), rows)  # one candidate is left of each
        self.assertNotIn(("spmm", "64 processors"), rows)

    def test_kernels_that_one_side_lacks_do_not_count(self):
        record = {"whole": [case("1", [[ROWS, 0, 100], [TALL, 0, 50], ["spmm/cuda/gone", 0, 1]])]}
        expected = [case("1", [[ROWS, 90, 90], [TALL, 50, 50], ["spmm/cuda/new", 1, 1]])]
        self.assertEqual(self.table(record, expected, "--events-us", "0")[1][2:6], ["1", "1.000", "1.000", "1.00"])

    def test_times_between_events_come_to_those_of_chains(self):
        record = {"whole": [case("1", [[ROWS, 0, 32], [TALL, 0, 28]])], "processors_64": [case("1", [[ROWS, 0, 32], [TALL, 0, 28]])]}
        expected = [case("1", [[ROWS, 25, 25], [TALL, 28, 28]])]
        rows = {tuple(row[:2]): row[2:] for row in self.table(record, expected, "--events-us", "6")}
        self.assertEqual(rows["spmm", "whole"][1], "1.000")  # 26 in a chain, 28 in a chain
        self.assertEqual(rows["spmm", "64 processors"][1], "1.182")  # 26 and 22

    def test_the_worst_and_strategies(self):
        record = {"whole": [case("1", [[ROWS, 0, 100], [TALL, 0, 50]])]}
        expected = [case("1", [[ROWS, 40, 40], [TALL, 60, 60]])]
        text = self.judge(record, expected, "--strategies", "--worst", "1", "--events-us", "0").stdout
        self.assertIn("| spmm/rows | 1 | 0.40 |", text)
        self.assertIn(f"| twin:a, 1 | {ROWS} | {TALL} | 50.0 | 2.00 |", text)

    def test_graphs_that_are_missing_are_named(self):
        done = self.judge({"whole": [case("1", [[ROWS, 0, 1], [TALL, 0, 2]], graph="cora")]}, [])
        self.assertIn("left out", done.stderr)
        self.assertIn("cora", done.stderr)

    def test_a_program_that_fails_is_an_error(self):
        done = subprocess.run([sys.executable, SOURCE / "tools/judge_costs.py", "--data", self.folder, "--program", "/bin/false"],
                              capture_output=True, text=True)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("ended with 1", done.stderr)


if __name__ == "__main__":
    unittest.main()
