# SPDX-License-Identifier: Apache-2.0
"""What kernels cannot do runs the code that PyG's own layer would run."""

import copy
import subprocess
import sys

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera

RUN = """
import sys, torch
layer, *given = torch.load(sys.argv[1], weights_only=False)
with torch.no_grad():
    torch.save(layer(*given), sys.argv[2])
assert "reversed flow" in layer.tessera_fallback
"""


def pair(kind):
    torch.manual_seed(1)
    theirs = getattr(pyg, kind)(8, 4, heads=2, edge_dim=3, flow="target_to_source")
    return theirs, tessera.accelerate(copy.deepcopy(theirs)), (
        torch.randn(20, 8), random_edges(20, 20, 90), torch.randn(90, 3))


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
class TestScoresOfReversedEdges:
    """PyG has two ways to make them, one written for each class of layers, and the other is wrong."""

    def test_after_accelerate(self, kind, device):
        theirs, ours, given = pair(kind)
        given = [tensor.to(device) for tensor in given]
        assert torch.allclose(ours.to(device)(*given), theirs.to(device)(*given), atol=1e-5)
        assert ours.tessera_fallback == "features of edges with a reversed flow"

    def test_in_a_process_that_made_no_layer(self, kind, tmp_path):
        theirs, ours, given = pair(kind)
        torch.save((ours, *given), tmp_path / "layer")
        subprocess.run([sys.executable, "-W", "ignore", "-c", RUN, tmp_path / "layer", tmp_path / "out"], check=True)
        assert torch.allclose(torch.load(tmp_path / "out"), theirs(*given), atol=1e-5)

    def test_compiled(self, kind, device):
        theirs, ours, given = pair(kind)
        given = [tensor.to(device) for tensor in given]
        compiled = torch.compile(ours.to(device), backend="aot_eager")
        assert torch.allclose(compiled(*given), theirs.to(device)(*given), atol=1e-5)
