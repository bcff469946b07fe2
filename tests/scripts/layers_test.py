# SPDX-License-Identifier: Apache-2.0
"""What tools/check_layers.py refuses, on small trees that break one rule each."""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

CHECKER = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tools" / "check_layers.py"
OPEN = r".* ops/\w+/(kernel|trial)\.hpp"
USE_OF_OPEN = {"src/ops/spmm/plan.cpp": "ops/sddmm/kernel.hpp"}


class Layers(unittest.TestCase):
    def found(self, files, allowed=(OPEN,)):
        """What is said of files that include one header each, beside one that needs what is allowed."""
        with tempfile.TemporaryDirectory() as folder:
            root = pathlib.Path(folder)
            for name, target in ({"include/tessera/tessera.hpp": "tessera/core/a.hpp", **USE_OF_OPEN} | files).items():
                (root / name).parent.mkdir(parents=True, exist_ok=True)
                bracket = "<>" if target.startswith("cuda_") else '""'
                (root / name).write_text(f"#include {bracket[0]}{target}{bracket[1]}\n", encoding="utf-8")
            (root / "tools").mkdir()
            (root / "tools" / "ops_includes.txt").write_text("# what is allowed\n" + "\n".join(allowed), encoding="utf-8")
            done = subprocess.run([sys.executable, "-B", CHECKER, root], capture_output=True, text=True, check=False)
            said = done.stdout.splitlines()
            self.assertEqual(done.returncode, said != ["every include points downwards"], done.stderr)
            return [] if done.returncode == 0 else said

    def test_what_points_downwards_passes(self):
        self.assertEqual(self.found({
            "src/graph/a.cpp": "core/b.hpp", "src/nn/a.cpp": "tessera/detail/ops/a.hpp", "src/ops/spmm/a.cpp": "ops/plan/a.hpp",
            "src/ops/spmm/cuda/rows/a.cu": "ops/spmm/cuda/a.cuh", "src/ops/spmm/cuda/rows/inst/a.cu": "ops/spmm/cuda/rows/a.cuh",
            "src/ops/gemm/cuda/inst/a.cu": "ops/gemm/cuda/a.cuh", "src/ops/plan/kernels.cpp": "ops/spmm/a.hpp",
            "src/ops/windows/a.cuh": "ops/rows/a.hpp", "src/ops/plan/a.cpp": "tessera/ops/plan.hpp",
            "src/ops/spmm/b.cpp": "cuda/a.hpp"}), [])

    def test_each_rule(self):
        for file, target in (
                ("src/core/a.cpp", "graph/a.hpp"), ("src/io/a.cpp", "reorder/a.hpp"),  # a higher rank, and the same
                ("src/nn/a.cpp", "ops/spmm/kernel.hpp"), ("src/train/a.cpp", "ops/plan/a.hpp"),
                ("src/ops/spmm/a.cpp", "ops/sddmm/a.hpp"), ("src/ops/spmm/cuda/a.cu", "ops/sddmm/cuda/rows/a.cuh"),
                ("src/ops/spmm/cuda/rows/a.cu", "ops/spmm/cuda/tall/a.cuh"),
                ("src/ops/rows/a.cu", "ops/spmm/a.cuh"), ("src/ops/plan/a.cpp", "ops/rows/a.hpp"),
                ("src/ops/cuda/a.cuh", "ops/simd/a.hpp"), ("src/graph/a.cpp", "cuda_runtime.h"),
                ("include/tessera/core/a.hpp", "core/b.hpp"), ("src/unknown/a.cpp", "core/b.hpp")):
            with self.subTest(file=file, target=target):
                said = self.found({file: target})
                self.assertEqual(len(said), 1, said)
                self.assertTrue(said[0].startswith(file), said)

    def test_headers_for_users(self):
        said = self.found({"include/tessera/ops/a.hpp": "tessera/detail/ops/b.hpp", "include/tessera/detail/ops/b.hpp": "tessera/core/a.hpp"})
        self.assertEqual([line.split(":")[0] for line in said], ["tessera/ops/a.hpp", "include/tessera/ops/a.hpp"])

    def test_no_file_lies_loose_in_ops(self):
        self.assertEqual(self.found({"src/ops/a.cpp": "core/a.hpp"}), ["src/ops/a.cpp: belongs into a folder of ops"])

    def test_exceptions_hold_where_they_are_needed_and_go_where_not(self):
        exception = r"ops/spmm/cuda/rows/.* ops/spmm/cuda/tall/a\.cuh"
        self.assertEqual(self.found({"src/ops/spmm/cuda/rows/a.cu": "ops/spmm/cuda/tall/a.cuh"}, (OPEN, exception)), [])
        said = self.found({}, (OPEN, exception))
        self.assertEqual(said, [f"tools/ops_includes.txt: nothing needs '{exception}'; delete it"])


if __name__ == "__main__":
    unittest.main()
