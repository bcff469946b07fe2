# SPDX-License-Identifier: Apache-2.0
"""Tools that write pages of results: what was measured before outlives a run of a part, and one that is killed."""
import json
import pathlib
import sys
import tempfile
import types
import unittest
from unittest import mock
from xml.etree import ElementTree

import cli

sys.path.insert(0, str(cli.SOURCE / "tools"))

import bits_curve  # noqa: E402
import nm_report  # noqa: E402
import qgtc_records  # noqa: E402
import whole_file  # noqa: E402


class Tools(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.addCleanup(self.temporary.cleanup)
        self.folder = pathlib.Path(self.temporary.name)

    def test_a_part_of_sparse_tensor_cores_leaves_the_others(self):
        def product(form, width, us):
            return {"form": form, "graph": "a", "features": width, "precision": "bf16", "kernel": "spmm/cuda/k", "median_us": us}

        before = {"commit": "old", "dense": [{"graph": "d", "kernel": "nm_1", "features": 128, "median_us": 2.0}],
                  "products": [product("plan", 128, 5.0), product("plan", 64, 4.0), product("cuSPARSE", 128, 9.0)],
                  "models": [{"graph": "g", "model": "gcn", "pattern": "off", "step_ms": 1.0}], "torch": [], "batches": [],
                  "remarks": ["By hand.", ""]}
        output = self.folder / "nm_cuda"
        output.with_suffix(".json").write_text(json.dumps(before))
        arguments = types.SimpleNamespace(program="none", data=None, widths=[128], forms=["plan"], commit="new", parts=["products"])
        with mock.patch.object(nm_report.nm_gpu, "measure_products", lambda *_: [[product("plan", 128, 3.0)]]):
            nm_report.on_gpu(arguments, [], output)
        after = json.loads(output.with_suffix(".json").read_text())
        self.assertEqual(after["remarks"], before["remarks"])
        for part in ["dense", "models"]:
            self.assertEqual(after[part], [{**record, "commit": "old"} for record in before[part]])
        self.assertEqual([(r["form"], r["features"], r["median_us"], r["commit"]) for r in after["products"]],
                         [("plan", 64, 4.0, "old"), ("cuSPARSE", 128, 9.0, "old"), ("plan", 128, 3.0, "new")])
        page = output.with_suffix(".md").read_text()
        self.assertIn("at commit new", page)
        self.assertIn("that windows share. Measured at old.", page)
        self.assertTrue(page.endswith("By hand.\n"))
        self.assertIn("(nm_cuda.svg)", page)
        dots = [title.text for title in ElementTree.parse(output.with_suffix(".svg")).iter("{http://www.w3.org/2000/svg}title")]
        self.assertEqual(dots, ["a, 128: 3.00"])

    def test_a_damaged_report_is_one_that_did_not_end_well(self):
        records = qgtc_records.Records(types.SimpleNamespace(output=self.folder, commit="one"), "qgtc")
        report = self.folder / "bench.json"
        report.write_text('{"records": [')
        with mock.patch("sys.stderr"):
            records.run([sys.executable, "-c", ""], report)
        self.assertEqual((records.all, report.exists()), ([], False))

    def test_files_are_replaced_as_a_whole(self):
        path = self.folder / "rows.json"
        self.assertIsNone(whole_file.load(path))
        whole_file.write(path, "[1]\n")
        with mock.patch("os.replace", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            whole_file.write(path, "[2, 3]\n")
        self.assertEqual(whole_file.load(path), [1])
        path.write_text("[2,")
        with self.assertRaisesRegex(SystemExit, "is damaged"):
            whole_file.load(path)

    def test_a_curve_without_losses(self):
        self.assertIn("</svg>", bits_curve.svg({"easy": [(100.0, 0.0), (100.0, 0.0)]}, ["all", "8"]))


if __name__ == "__main__":
    unittest.main()
