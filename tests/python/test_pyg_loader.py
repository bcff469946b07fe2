# SPDX-License-Identifier: Apache-2.0
"""PyG's own tests of its neighbour loader, run where they lie, on ours: TESSERA_PYG_LOADER_TESTS names the folder."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
TESTS = os.environ.get("TESSERA_PYG_LOADER_TESTS", str(HERE.parents[2] / "shared" / "pyg_tests_more" / "loader"))

# Graphs with several types of vertices and edges are refused.
SEVERAL_TYPES = ["hetero", "test_temporal_custom_neighbor_loader_on_karate", "test_neighbor_loader_input_id",
                 "test_temporal_neighbor_loader_single_link"]


def test_pygs_own_tests(tmp_path):
    if not Path(TESTS).is_dir():
        pytest.skip(f"PyG's tests are not in {TESTS}")
    report = tmp_path / "report.json"
    path = os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")])
    environment = dict(os.environ, PYTHONPATH=path, TESSERA_PYG_REPORT=str(report))
    result = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "pyg_loader_plugin", "-p", "no:cacheprovider", "--tb=line", TESTS],
        env=environment, cwd=tmp_path, capture_output=True, text=True)
    assert report.exists(), result.stdout + result.stderr
    rows = json.loads(report.read_text())
    passed = [test for test, row in rows.items() if row["outcome"] == "passed"]
    assert len(passed) >= 25, result.stdout
    for test, row in rows.items():
        if row["outcome"] == "failed":
            assert any(name in test for name in SEVERAL_TYPES), result.stdout
            assert "one type" in row["why"], row["why"]
