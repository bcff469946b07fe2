# SPDX-License-Identifier: Apache-2.0
"""torch.sparse matrices in the states that users bring them in: unfinished, learned, made for inference."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera

LAYERS = {"GCN": lambda: pyg.GCNConv(6, 4), "SAGE": lambda: pyg.SAGEConv(6, 4), "max": lambda: pyg.SAGEConv(6, 4, aggr="max"),
          "GIN": lambda: pyg.GINConv(torch.nn.Linear(6, 4)), "GAT": lambda: pyg.GATConv(6, 4, heads=2),
          "GATv2": lambda: pyg.GATv2Conv(6, 4), "AGNN": lambda: pyg.AGNNConv(), "SGC": lambda: pyg.SGConv(6, 4),
          "APPNP": lambda: pyg.APPNP(1, 0.1)}


def made(kind, device):
    theirs = LAYERS[kind]().to(device)
    return theirs, tessera.accelerate(copy.deepcopy(theirs)), torch.randn(20, 6, device=device)


def unfinished(device, values=None):
    """A COO matrix that names some places several times."""
    edges = random_edges(20, 20, 120, device)
    values = torch.ones(120, device=device) if values is None else values
    return torch.sparse_coo_tensor(edges.flip(0), values, (20, 20))


def close(found, expected):
    assert torch.allclose(found, expected, rtol=1e-4, atol=1e-5 * (1 + float(expected.abs().max())))


@pytest.mark.parametrize("kind", LAYERS)
def test_entries_of_one_place_are_one(kind, device):
    theirs, ours, x = made(kind, device)
    finished = unfinished(device).coalesce()
    # PyG has no maxima of sparse matrices on a GPU, and marks matrices that it was given as finished.
    expected = theirs.cpu()(x.cpu(), unfinished("cpu").coalesce()).to(device)
    close(ours(x, unfinished(device)), expected)
    close(ours(x, finished), expected)
    assert ours.tessera_fallback is None


@pytest.mark.parametrize("finished", [True, False])
@pytest.mark.parametrize("kind", ["GCN", "SAGE", "GIN", "SGC", "APPNP"])
def test_values_of_a_coo_matrix_are_learned(kind, finished, device):
    theirs, ours, x = made(kind, device)
    found = []
    for layer in (ours, theirs):
        values = torch.linspace(0.1, 1.0, 120, device=device).requires_grad_()
        matrix = unfinished(device, values)
        matrix = matrix.coalesce() if finished else matrix
        if layer is theirs and kind in ("GCN", "SGC", "APPNP"):  # PyG has no derivatives of COO matrices there
            matrix = matrix.to_sparse_csr()
        layer(x, matrix).square().sum().backward()
        found.append(values.grad)
    close(*found)


@pytest.mark.parametrize("layout", [torch.sparse_coo, torch.sparse_csr])
@pytest.mark.parametrize("kind", LAYERS)
def test_made_in_inference_mode(kind, layout, device):
    theirs, ours, x = made(kind, device)
    with torch.inference_mode():
        matrix = unfinished(device).coalesce().to_sparse(layout=layout)
        if kind == "max" and device.type == "cuda":
            pytest.skip("PyG has no largest number of a sparse matrix's rows on a GPU; the same on a CPU runs")
        for _ in range(2):
            close(ours(x, matrix), theirs(x, matrix))
            matrix.values().mul_(0.5)  # which nobody counts
