# SPDX-License-Identifier: Apache-2.0
"""Features of edges in layers of attention: results, gradients and weights are PyG's."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from layer_pairs import gradients, same

import tessera.nn as ours


def edge_pair(kind, device, **options):
    made = []
    for module in (pyg, ours):
        torch.manual_seed(1)
        made.append(getattr(module, kind)(12, 5, heads=2, edge_dim=3, **options).to(device))
    return made


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("options", [{}, {"fill_value": "add"}, {"fill_value": 0.5},
                                     {"fill_value": torch.tensor([0.5, -1.0, 2.0])}, {"fill_value": torch.tensor(2.0)},
                                     {"add_self_loops": False}])
def test_features_of_edges(kind, options, device):
    index = random_edges(20, 20, 100, device)
    x, attr = torch.randn(20, 12, device=device), torch.randn(100, 3, device=device)
    theirs, mine = edge_pair(kind, device, **options)
    results = []
    for layer in (mine, theirs):
        features = attr.clone().requires_grad_()
        results.append(gradients(layer, x, index, features) + [features.grad])
    same(*results)
    out, (edges, weights) = mine(x, index, attr, return_attention_weights=True)
    expected, (their_edges, their_weights) = theirs(x, index, attr, return_attention_weights=True)
    assert torch.equal(edges, their_edges)
    same([out, weights], [expected, their_weights])
    assert mine.tessera_fallback is None


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("fill", ["mean", 0.5])
def test_layers_of_edge_features_that_are_more_than_linear(kind, fill, device):
    """Hooks, replaced layers and a bias work inside of ours as inside of PyG's."""
    index, attr = random_edges(20, 20, 100, device), torch.randn(100, 3, device=device)
    x = torch.randn(20, 12, device=device)

    def add_hook(layer):
        layer.lin_edge.register_forward_hook(lambda module, inputs, out: 2 * out)

    def replace(layer):
        layer.lin_edge = torch.nn.Sequential(layer.lin_edge, torch.nn.Tanh())

    def add_bias(layer):
        layer.lin_edge.bias = torch.nn.Parameter(torch.linspace(-2, 2, 10, device=device))

    for change in (add_hook, replace, add_bias):
        theirs, mine = edge_pair(kind, device, fill_value=fill)
        before = mine(x, index, attr)
        for layer in (theirs, mine):
            change(layer)
        same(gradients(mine, x, index, attr), gradients(theirs, x, index, attr))
        assert not torch.allclose(mine(x, index, attr), before, atol=1e-3)
        assert mine.tessera_fallback is None


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("fill", ["mean", "add", 0.5])
def test_features_of_loops_that_are_given_enter_nothing(kind, fill, device):
    index, attr = random_edges(20, 20, 100, device), torch.randn(100, 3, device=device)
    index[:, 7], attr[7] = 4, float("inf")
    x = torch.randn(20, 12, device=device)
    theirs, mine = edge_pair(kind, device, fill_value=fill)
    found = gradients(mine, x, index, attr)
    assert all(each.isfinite().all() for each in found)
    same(found, gradients(theirs, x, index, attr))


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_means_of_features_of_many_edges_under_autocast(kind, device):
    """Of 600 edges to one vertex: 16 bits would neither count nor sum them."""
    index = torch.stack([torch.arange(1, 601), torch.zeros(600, dtype=torch.int64)]).to(device)
    attr, seen = torch.rand(600, 3, device=device) + 1, []
    for layer in edge_pair(kind, device, fill_value="mean"):
        layer.lin_edge.register_forward_hook(lambda module, inputs, out: seen.append(inputs[0][-601]))
        with torch.autocast(device.type, dtype=torch.bfloat16):
            layer(torch.randn(601, 12, device=device), index, attr)
    assert torch.allclose(*seen, rtol=1e-5)


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
@pytest.mark.parametrize("fill", ["mean", 0.5])
def test_features_of_edges_that_do_not_fit(kind, fill):
    index, attr, x = random_edges(20, 20, 100), torch.randn(100, 3), torch.randn(20, 12)
    _, mine = edge_pair(kind, "cpu", fill_value=fill)
    with pytest.raises(ValueError, match="edge_attr has 90 rows for 100 edges: use one for each"):
        mine(x, index, attr[:90])
    with pytest.raises(TypeError, match="edge_attr has type torch.int64"):
        mine(x, index, attr.long())
    with pytest.raises(IndexError, match="outside"):
        mine(x, index + 10, attr)


def test_one_feature_for_each_edge_of_a_pair(device):
    index = random_edges(9, 14, 60, device)
    x = torch.randn(14, 6, device=device), torch.randn(9, 4, device=device)
    attr = torch.randn(60, device=device)
    torch.manual_seed(1)
    theirs = pyg.GATConv((6, 4), 5, heads=2, edge_dim=1).to(device)
    mine = ours.GATConv((6, 4), 5, heads=2, edge_dim=1).to(device)
    mine.load_state_dict(theirs.state_dict())
    same([mine(x, index, attr)], [theirs(x, index, attr)])
    assert mine.tessera_fallback is None
