# SPDX-License-Identifier: Apache-2.0
"""Fits of costs to times that were made with known ones."""
import os
import pathlib
import random
import sys
import unittest

SOURCE = pathlib.Path(os.environ.get("TESSERA_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
sys.path.insert(0, str(SOURCE / "tools"))
import fit_costs  # noqa: E402


class FitCosts(unittest.TestCase):
    def test_what_was_planted_is_found(self):
        draw = random.Random(1)
        counts = [draw.uniform(10, 400) for _ in range(200)]
        times = [(count, fit_costs.fitted(count, (6.5, 1.25)) * draw.uniform(0.98, 1.02)) for count in counts]
        start, share = fit_costs.best(times)
        self.assertAlmostEqual(start, 6.5, delta=0.5)
        self.assertAlmostEqual(share, 1.25, delta=0.02)

    def test_fits_are_taken_out_again(self):
        for fit in ((0.0, 1.0), (7.0, 0.8), (15.5, 1.4)):
            for count in (0.5, 7.5, 8.2, 9.0, 18.0, 300.0):
                self.assertAlmostEqual(fit_costs.counted(fit_costs.fitted(count, fit), fit), count, places=9)

    def test_kernels_have_the_longest_line_of_their_name(self):
        fits = dict.fromkeys(["sddmm/short_16", "sddmm/short_16_direct", "sddmm/list_rows"])
        self.assertEqual(fit_costs.line_of("sddmm/cuda/short_16_direct", fits), "sddmm/short_16_direct")
        self.assertEqual(fit_costs.line_of("sddmm/cuda/list_rows_1", fits), "sddmm/list_rows")
        self.assertIsNone(fit_costs.line_of("sddmm/cuda/list_rowspace", fits))

    def test_the_table_of_this_version_can_be_read(self):
        fits = fit_costs.table()
        self.assertIn("attention/rows", fits)
        for line, (start, share) in fits.items():
            self.assertGreaterEqual(start, 0, line)
            self.assertTrue(0.5 < share < 2.5, line)

    def test_halves_share_no_graph(self):
        case = {"graph": "cora", "case": "64"}
        self.assertEqual(fit_costs.half_of(case), fit_costs.half_of({**case, "case": "128"}))


if __name__ == "__main__":
    unittest.main()
