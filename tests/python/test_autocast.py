# SPDX-License-Identifier: Apache-2.0
"""Layers under autocast: the types of results and gradients are PyG's, and numbers are as near as 16 bits are."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from layer_pairs import LAYERS, pair, same

import tessera
import tessera.nn
from tessera.nn import _gcn_norm


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("name", ["GCN", "SAGE", "GIN fixed", "GAT"])
def test_layers_under_autocast(name, dtype, device):
    theirs, mine = pair(name, device)
    index, x = random_edges(40, 40, 200, device), torch.randn(40, 12, device=device)
    found = []
    for layer in (mine, theirs):
        with torch.autocast(device.type, dtype=dtype):
            out = layer(x, index)
        out.float().square().sum().backward()
        assert all(p.grad.dtype == p.dtype for p in layer.parameters())
        found.append([out.detach().float()] + [p.grad for p in layer.parameters()])
    # PyG scores in fp32 what it multiplied in 16 bits; kernels take scores in the type of the values.
    bound = 1e-1 if name == "GAT" else 5e-2
    same(*found, tolerance=bound if dtype == torch.bfloat16 else bound / 8)


@pytest.mark.parametrize("options", [{}, {"concat": False}, {"heads": 1, "concat": False}, {"bias": False},
                                     {"concat": False, "bias": False}, {"residual": True}, {"edge_dim": 5}])
@pytest.mark.parametrize("kind", [tessera.nn.GATConv, tessera.nn.GATv2Conv])
def test_attention_under_autocast_is_wide(kind, options, device):
    """Whatever comes after the sums, and on every way: a step by step one, one operator, a short way."""
    layer = kind(12, 8, **{"heads": 3, **options}).to(device)
    index, x = random_edges(40, 40, 200, device), torch.randn(40, 12, device=device)
    rest = (torch.randn(200, 5, device=device),) if "edge_dim" in options else ()
    expected = layer(x, index, *rest)
    for features in (x, x, (x, x)):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = layer(features, index, *rest)
        assert out.dtype == torch.float32 and layer.tessera_fallback is None
        assert (out - expected).abs().max() <= 0.05 * (1 + expected.abs().max())


CALLS = [(name, given) for name in (*LAYERS, "GCN without a bias", "GATv2 without a bias")
         for given, takers in (("edge_index", ""), ("weights", ("GCN", "SGC", "Cheb")),
                               ("pair", ("SAGE", "GIN", "GAT", "Transformer"))) if name.startswith(takers)]


@pytest.mark.parametrize("features", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("name, given", CALLS)
def test_results_under_autocast_have_pygs_type(name, features, given, device):
    """fp32 where PyG multiplies by something in fp32 or adds it, and autocast's type elsewhere: a loss that is
    computed outside of autocast then has the type that it has with PyG. (Weights of edges of APPNP take the type of
    the features.)"""
    bare = name.endswith("without a bias")
    theirs, mine = pair(name.split()[0] if bare else name, device)
    if bare:
        theirs.bias = mine.bias = None
    index, x = random_edges(40, 40, 200, device), torch.randn(40, 12, device=device).to(features)
    rest = (index, torch.rand(200, device=device)) if given == "weights" else (index,)
    found = []
    for layer in (theirs, mine, mine):  # a third call may take a short way
        with torch.autocast(device.type, dtype=torch.bfloat16):
            found.append(layer((x, x) if given == "pair" else x, *rest))
    assert mine.tessera_fallback is None
    assert [out.dtype for out in found] == 3 * [found[0].dtype]
    assert torch.equal(found[1], found[2])
    same([found[1].float()], [found[0].float()], 1e-1)


@pytest.mark.parametrize("name", ["GCN", "GCN wide", "GAT", "GATv2"])
def test_gradients_of_a_bias_under_autocast_are_sums_of_wide_ones(name, device):
    """Rounded to 16 bits before they are summed, they would be a hundred times as far off."""
    theirs, mine = pair(name, device)
    index, x = random_edges(400, 400, 2000, device), torch.randn(400, 12, device=device)
    along = torch.rand(400, mine.bias.numel(), device=device) + 1
    for _ in range(2):
        mine.bias.grad = None
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = mine(x, index)
        (out * along).sum().backward()
        assert (mine.bias.grad - along.sum(0)).abs().max() <= 1e-5 * along.sum(0).max()


def test_layers_under_autocast_notice_that_parameters_became_narrow(device):
    """A short way keeps what it knows of their types until they change."""
    theirs, mine = pair("GCN", device)
    index, x = random_edges(40, 40, 200, device), torch.randn(40, 12, device=device).bfloat16()
    for change in (lambda layer: layer, lambda layer: layer.bfloat16()):
        types = []
        for layer in (change(theirs), change(mine), mine, mine):
            with torch.autocast(device.type, dtype=torch.bfloat16):
                types.append(layer(x, index).dtype)
        assert len(set(types)) == 1


def test_messages_of_cheb_are_not_rounded_twice_under_autocast(monkeypatch):
    """Small graphs then take the way of large ones."""
    layer, x, index = tessera.nn.ChebConv(12, 5, K=4), torch.randn(40, 12), random_edges(40, 40, 200)
    found = []
    for few in (_gcn_norm._FEW_MESSAGES, 0):
        monkeypatch.setattr(_gcn_norm, "_FEW_MESSAGES", few)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found.append(layer(x, index))
    assert torch.equal(*found)


def test_gin_with_a_learned_epsilon_under_autocast_has_its_type(device):
    layer = tessera.nn.GINConv(torch.nn.Linear(12, 8), train_eps=True).to(device)
    with torch.autocast(device.type, dtype=torch.bfloat16):
        assert layer(torch.randn(40, 12, device=device), random_edges(40, 40, 200, device)).dtype == torch.bfloat16


def test_numbers_that_grow_are_not_narrowed_under_autocast(device):
    """Sums of sums without a norm are more than fp16 holds; PyG's are fp32."""
    index = torch.stack([torch.arange(1, 601), torch.zeros(600, dtype=torch.int64)]).to(device)
    index = torch.cat([index, index.flip(0)], dim=1)
    theirs = pyg.APPNP(3, 0.1, normalize=False).to(device)
    mine, x = tessera.accelerate(copy.deepcopy(theirs)), torch.rand(601, 4, device=device)
    with torch.autocast(device.type, dtype=torch.float16):
        found, expected = mine(x, index), theirs(x, index)
    assert mine.tessera_fallback is None and found.dtype == expected.dtype
    assert expected.max() > 65504 and torch.allclose(found, expected, rtol=1e-4)
