# SPDX-License-Identifier: Apache-2.0
"""tools/sanitize.py with a program of tests and a sanitizer that are scripts."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

TOOL = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools" / "sanitize.py"

PROGRAM = """#!/bin/sh
case "$1" in --gtest_list_tests) cat <<'LIST'
All/Sums.
  EveryWidth/spmm_cuda_rows  # GetParam() = "spmm/cuda/rows"
  OddGraphs/spmm_cuda_rows  # GetParam() = "spmm/cuda/rows"
  EveryWidth/spmm_cuda_heads  # GetParam() = "spmm/cuda/heads"
  OddGraphs/spmm_cuda_heads  # GetParam() = "spmm/cuda/heads"
  EveryWidth/spmm_cpu_rows  # GetParam() = "spmm/cpu/rows"
All/Gradients.
  OddGraphs/spmm_cuda_rows  # GetParam() = "spmm/cuda/rows"
GpuMemory.
  IsFreed
CudaBuild.
  SortsEdges
All/TranslatingOnDevice.
  ManyColumns/cuda  # GetParam() = 8-byte object
LIST
exit;; esac
test=${1#--gtest_filter=}
if grep -qx "$test" "$SKIPPING"; then
  echo "[  SKIPPED ] 1 test"; echo "[  PASSED  ] 0 tests."; kernel=0
else
  echo "[  PASSED  ] 1 test."; kernel=1
fi
case "$test" in */spmm*) echo "compared spmm/cuda/kernel $kernel";; esac
"""
SANITIZER = """#!/bin/sh
while [ "${1#/}" = "$1" ]; do shift; done  # its own options
"$@"
if [ "${2#--gtest_filter=}" = "$BAD" ]; then echo "ERROR SUMMARY: 1 error"; exit 99; fi
if [ "${2#--gtest_filter=}" = "$SLOW" ]; then sleep 60; fi
"""


class Sanitize(unittest.TestCase):
    def run_with(self, skipping=(), bad="", slow="", more=()):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for file, text in (("tests", PROGRAM), ("compute-sanitizer", SANITIZER)):
                (folder / file).write_text(text)
                (folder / file).chmod(0o755)
            (folder / "skipping").write_text("".join(f"{test}\n" for test in skipping))
            run = subprocess.run(
                [sys.executable, str(TOOL), "--jobs", "2", *more, str(folder / "tests")], text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "SKIPPING": str(folder / "skipping"),
                     "BAD": bad, "SLOW": slow})
        lines = [line.rpartition(",")[0] or line for line in run.stdout.splitlines()]
        return run.returncode, lines

    def test_runs_a_test_of_every_kernel_from_each_suite(self):
        code, lines = self.run_with()
        self.assertEqual(code, 0, lines)
        self.assertEqual(sorted(line for line in lines if line.startswith("clean: memcheck")),
                         ["clean: memcheck All/Gradients.OddGraphs/spmm_cuda_rows",
                          "clean: memcheck All/Sums.EveryWidth/spmm_cuda_heads",
                          "clean: memcheck All/Sums.EveryWidth/spmm_cuda_rows",
                          "clean: memcheck CudaBuild.SortsEdges", "clean: memcheck GpuMemory.IsFreed"])
        self.assertEqual(sorted(line for line in lines if line.startswith("clean: racecheck")),
                         ["clean: racecheck All/Sums.EveryWidth/spmm_cuda_heads",
                          "clean: racecheck All/Sums.EveryWidth/spmm_cuda_rows", "clean: racecheck CudaBuild.SortsEdges"])

    def test_takes_another_test_for_one_that_compares_nothing(self):
        code, lines = self.run_with(["All/Sums.EveryWidth/spmm_cuda_heads"], more=["--tools", "memcheck"])
        self.assertEqual(code, 0, lines)
        self.assertIn("skipped: memcheck All/Sums.EveryWidth/spmm_cuda_heads", lines)
        self.assertIn("clean: memcheck All/Sums.OddGraphs/spmm_cuda_heads", lines)

    def test_fails_where_no_test_of_a_kernel_compares_anything(self):
        tests = ["All/Sums.EveryWidth/spmm_cuda_heads", "All/Sums.OddGraphs/spmm_cuda_heads"]
        code, lines = self.run_with(tests, more=["--tools", "racecheck"])
        self.assertEqual(code, 1)
        self.assertTrue(any(line.startswith("NOT CHECKED: racecheck spmm_cuda_heads") for line in lines), lines)

    def test_fails_where_the_sanitizer_finds_something(self):
        code, lines = self.run_with(bad="CudaBuild.SortsEdges")
        self.assertEqual(code, 1)
        self.assertIn("NOT CLEAN: racecheck CudaBuild.SortsEdges", lines)
        self.assertIn("ERROR SUMMARY: 1 error", lines)

    def test_ends_what_takes_too_long(self):
        code, lines = self.run_with(slow="CudaBuild.SortsEdges", more=["--seconds", "1", "--tools", "memcheck"])
        self.assertEqual(code, 1)
        self.assertIn("OUT OF TIME: memcheck CudaBuild.SortsEdges", lines)


if __name__ == "__main__":
    unittest.main()
