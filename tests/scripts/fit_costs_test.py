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

    def test_planted_shares_are_found(self):
        draw = random.Random(2)
        rows = []
        for kernel, shares in (("a", (0.8, 3.0)), ("b", (2.5,))):
            for _ in range(60):
                counts = {(f"op/{kernel}", i): draw.uniform(1, 50) for i in range(len(shares))} | {("op/all", 0): draw.uniform(1, 20)}
                us = 2.2 + sum(share * counts[f"op/{kernel}", i] for i, share in enumerate(shares)) + 1.5 * counts["op/all", 0]
                rows.append(fit_costs.Row("whole", {}, kernel, f"op/{kernel}", counts, 2.2, us * draw.uniform(0.98, 1.02)))
        shares = fit_costs.least_shares(rows)
        for key, wanted in ((("op/a", 0), 0.8), (("op/a", 1), 3.0), (("op/b", 0), 2.5), (("op/all", 0), 1.5)):
            self.assertAlmostEqual(shares[key], wanted, delta=0.05 * wanted)

    def test_kernels_have_lines_of_their_passes(self):
        lines = ["attention/short/dot", "attention/short/dot_back", "op/rows", "op/rows_narrow"]
        self.assertEqual(fit_costs.own_lines("attention/cuda/short", lines), lines[:2])
        self.assertEqual(fit_costs.own_lines("op/cuda/rows_narrow", lines), ["op/rows_narrow"])
        self.assertEqual(fit_costs.own_lines("op/cuda/other", lines), [])

    def test_lines_of_shares_can_be_read(self):
        lines = fit_costs.counted_table()
        self.assertIn("bit_gemm/planes", lines)
        for line, shares in lines.items():
            self.assertTrue(1 <= len(shares) <= 3 and all(share >= 0 for share in shares), line)

    def test_halves_share_no_graph(self):
        case = {"graph": "cora", "case": "64"}
        self.assertEqual(fit_costs.half_of(case), fit_costs.half_of({**case, "case": "128"}))


if __name__ == "__main__":
    unittest.main()
