# SPDX-License-Identifier: Apache-2.0
"""`info` on every public graph of TESSERA_DATA gives the counts that its tables list."""
import concurrent.futures
import csv
import json
import os
import pathlib
import re
import unittest

import cli

DATA = pathlib.Path(os.environ.get("TESSERA_DATA", "/nonexistent"))


def first_number(text):
    """'1,433' and '121 (multi-label)' as numbers; '-' means none."""
    found = re.match(r"[\d,]+", text.strip())
    return int(found.group().replace(",", "")) if found else 0


def readme_rows():
    for line in (DATA / "README.md").read_text().splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) >= 5 and (DATA / cells[0] / f"{cells[0]}.npz").exists():
            yield cells


def info_all(paths):
    """Each file once, two processes at a time, one thread each."""
    def info(path):
        return cli.Run(["info", "--data", path, "--json", "-", "--threads", "1"])
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(info, paths))


@unittest.skipUnless((DATA / "README.md").exists(), "TESSERA_DATA names no folder of public graphs")
class PublicGraphs(unittest.TestCase):
    def test_npz(self):
        rows = list(readme_rows())
        self.assertGreaterEqual(len(rows), 74)
        runs = info_all(DATA / row[0] / f"{row[0]}.npz" for row in rows)
        for row, run in zip(rows, runs):
            with self.subTest(graph=row[0]):
                self.assertEqual((run.code, run.err), (cli.OK, ""))
                found = json.loads(run.out)
                self.assertEqual(found["name"], row[0])
                self.assertEqual(
                    [found[key] for key in ["vertices", "edges", "features", "classes"]],
                    [first_number(cell) for cell in row[1:5]])
                self.assertEqual(found["multi_label"], "multi-label" in row[4])

    def test_matrices(self):
        with open(DATA / "suitesparse" / "index.tsv", newline="") as table:
            rows = list(csv.DictReader(table, delimiter="\t"))
        self.assertGreaterEqual(len(rows), 156)
        runs = info_all(DATA / "suitesparse" / f"{row['name']}.mtx.gz" for row in rows)
        for row, run in zip(rows, runs):
            with self.subTest(matrix=row["name"]):
                self.assertEqual((run.code, run.err), (cli.OK, ""))
                found = json.loads(run.out)
                self.assertEqual(found["vertices"], int(row["rows"]))
                self.assertEqual(found["edges_symmetrised_loop_free"], int(row["edges_sym_noloop"]))
                self.assertEqual(str(found["symmetric_pattern"]), row["symmetric_pattern"])


if __name__ == "__main__":
    unittest.main()
