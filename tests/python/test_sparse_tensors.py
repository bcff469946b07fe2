# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices with values, as `torch.sparse` and `torch_sparse` hold them: what layers make of them is PyG's."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from layer_pairs import LAYERS, gradients, pair, same
from test_users import AdjT

import tessera
import tessera.nn as ours

NOT_OF_PYG = ("Cheb", "GCN reversed", "ARMA")  # PyG takes no sparse matrix there


def weighted_edges(device):
    index = random_edges(30, 30, 150, device, repeated=False)
    return index, torch.rand(index.size(1), device=device)


@pytest.mark.parametrize("name", [name for name in LAYERS if name not in NOT_OF_PYG])
@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_values_of_torch_sparse(name, layout, device):
    if device.type == "cuda" and name.endswith((" max", " min")):
        pytest.skip("torch has no such product of sparse matrices on a GPU; on a CPU it runs")
    theirs, mine = pair(name, device)
    index, weight = weighted_edges(device)
    adjacency = torch.sparse_coo_tensor(index.flip(0), weight, (30, 30)).coalesce()
    if layout == "csr":
        adjacency = adjacency.to_sparse_csr()
    x = torch.randn(30, 12, device=device)
    for _ in range(2):
        same([mine(x, adjacency)], [theirs(x, adjacency)])
    assert mine.tessera_fallback is None


@pytest.mark.parametrize("name", ["SAGE", "SAGE max", "GIN", "GIN fixed"])
def test_values_of_a_sparse_tensor_that_sums_leave_out(name, device):
    """PyG drops those of a SparseTensor there."""
    theirs, mine = pair(name, device)
    index, weight = weighted_edges(device)
    adjacency = AdjT(torch.sparse_coo_tensor(index.flip(0), weight, (30, 30)).coalesce(), values=True)
    x = torch.randn(30, 12, device=device)
    same(gradients(mine, x, adjacency), gradients(theirs, x, index))
    assert mine.tessera_fallback is None


@pytest.mark.parametrize("kind", [ours.GATConv, ours.GATv2Conv, ours.TransformerConv])
def test_values_that_are_features_of_edges(kind):
    """PyG takes them for that where a layer has room for features of edges."""
    torch.manual_seed(2)
    mine = kind(12, 5, edge_dim=1)
    theirs = getattr(pyg, kind.__name__)(12, 5, edge_dim=1)
    theirs.load_state_dict(mine.state_dict())
    index, weight = weighted_edges("cpu")
    adjacency, x = torch.sparse_coo_tensor(index.flip(0), weight, (30, 30)).coalesce().to_sparse_csr(), torch.randn(30, 12)
    try:
        expected = theirs(x, adjacency)
    except Exception as error:  # whatever PyG says to it
        with pytest.raises(type(error)):
            mine(x, adjacency)
    else:
        same([mine(x, adjacency)], [expected])
    assert mine.tessera_fallback.startswith("features of edges")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [name for name in LAYERS if name not in NOT_OF_PYG])
def test_sparse_tensors_of_torch_sparse(name, weighted, device):
    torch_sparse = pytest.importorskip("torch_sparse", reason="runs where torch_sparse is installed")
    theirs, mine = pair(name, device)
    index, weight = weighted_edges(device)
    adjacency = torch_sparse.SparseTensor.from_edge_index(index, weight if weighted else None, (30, 30)).t()
    x = torch.randn(30, 12, device=device)
    assert torch.allclose(tessera.spmm(tessera.Graph.of(adjacency), x), adjacency.to_dense() @ x, atol=1e-5)
    same(gradients(mine, x, adjacency), gradients(theirs, x, adjacency))
