# SPDX-License-Identifier: Apache-2.0
"""tools/qgtc_report.py and tools/bits_accuracy.py: one command, whole pages, and nothing twice. No times."""
import json
import os
import subprocess
import sys
import unittest

import cli

TOOLS = cli.SOURCE / "tools"


def run(tool, *arguments):
    subprocess.run([sys.executable, "-B", str(TOOLS / tool), *map(str, arguments)], check=True)


class Reports(cli.CliTest):
    def report(self, commit, *more):
        run("qgtc_report.py", "--quick", "--program", os.environ["TESSERA_BIN"], "--output", self.folder, "--commit", commit, *more)
        return json.loads((self.folder / "qgtc_cpu.json").read_text())["records"]

    def test_all_figures_by_one_command(self):
        first = self.report("one")
        page = (self.folder / "qgtc_cpu.md").read_text()
        for part in ["Figure 7 (a, b)", "Figure 7 (c) and Table 3", "Figure 8", "Figure 9", "Figure 10", "Table 2"]:
            self.assertIn(part, page)
        self.assertNotIn("not measured.", page.replace("What is empty was not measured.", ""))
        self.assertEqual(self.report("one"), first)
        # Of another commit only what was asked for is measured again.
        second = self.report("two", "--only", "reuse")
        self.assertEqual(len(second), len(first))
        self.assertEqual({record["op"] for record in second if record["commit"] == "two"},
                         {"bit_gemm_1", "bit_gemm_2", "bit_gemm_4", "bit_gemm_8", "bit_gemm_16"})

    def test_accuracy_against_bits(self):
        data = self.folder / "small"
        data.mkdir()
        self.succeed("convert", "embedded:citation", "-o", data / "small.npz")
        accuracy = ["bits_accuracy.py", "--tessera", os.environ["TESSERA_BIN"], "--data", self.folder, "--sets", "small",
                    "--runs", "2", "--bits", "8", "4", "4,8", "--commit", "one", "--machine", "here", "--output", self.folder]
        run(*accuracy)
        page = (self.folder / "bits.md").read_text()
        self.assertRegex(page, r"\| small \| `one` \| 2 \| [\d.]+ ± [\d.]+ \|  \| [\d.]+ ± [\d.]+ \([+-][\d.]+ ± [\d.]+\)")
        self.assertIn("8 bits: the goal is to lose at most 0.5 points", page)
        self.assertRegex(page, r"small with 4 bits in the first layer and 8 in the last one \(`--bits 4,8`, `one`, 2 runs\): [\d.]+ ±")
        self.assertIn("</svg>", (self.folder / "bits.svg").read_text())
        before = (self.folder / "bits.json").stat().st_mtime_ns
        run(*accuracy)
        self.assertEqual((self.folder / "bits.json").stat().st_mtime_ns, before)


if __name__ == "__main__":
    unittest.main()
