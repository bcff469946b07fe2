# SPDX-License-Identifier: Apache-2.0
"""The examples in docstrings and in examples/python are right."""

import doctest
import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch

MODULES = ["tessera", "tessera._library", "tessera.bits", "tessera.files", "tessera.functional", "tessera.graph", "tessera.models", "tessera.trained_model",
           "tessera.nn", "tessera.nn.attention", "tessera.nn.convolutions", "tessera.nn.few_bits"]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    torch.manual_seed(0)
    result = doctest.testmod(importlib.import_module(name))
    assert result.attempted > 0 and result.failed == 0


def test_the_example_of_one_line():
    example = Path(__file__).parents[2] / "examples" / "python" / "one_line.py"
    result = subprocess.run([sys.executable, str(example), "--epochs", "2"], capture_output=True,
                            text=True)
    assert result.returncode == 0, result.stderr
    plain, ours, *layers = result.stdout.splitlines()
    losses = [float(line.split("loss ")[1].split(",")[0]) for line in (plain, ours)]
    assert abs(losses[0] - losses[1]) <= 1e-4 * losses[0]
    assert layers == ["conv1 GATConv: attention/cpu/fused", "conv2 GCNConv: spmm/cpu/rows"]
