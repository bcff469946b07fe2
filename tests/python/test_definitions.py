# SPDX-License-Identifier: Apache-2.0
"""Layers against their definitions, written down with dense matrices in double precision: results and gradients."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from torch.nn.functional import one_hot

import tessera
import tessera.nn

VERTICES, EDGES = 25, 120


def matrix(index, weight=None):
    """A with the weight of the edge from j to i in row i: repeated edges add up."""
    values = torch.ones(index.size(1), dtype=torch.float64) if weight is None else weight
    return torch.zeros(VERTICES, VERTICES, dtype=torch.float64).index_put((index[1], index[0]), values, accumulate=True)


def normalised(index, weight=None):
    """D^-1/2 A D^-1/2, where D has the sums of the rows."""
    a = matrix(index, weight)
    scale = a.sum(1).pow(-0.5)
    scale = torch.where(scale.isfinite(), scale, 0)
    return scale.view(-1, 1) * a * scale


def of_edges(index, messages, reduce):
    """Reduces rows of messages one target after the other."""
    rows = []
    for vertex in range(VERTICES):
        of = messages[index[1] == vertex]
        rows.append(messages.new_zeros(messages.size(1)) if of.size(0) == 0
                    else {"sum": of.sum(0), "mean": of.mean(0), "max": of.max(0)[0]}[reduce])
    return torch.stack(rows)


def graph_conv(layer, reduce):
    def define(x, index, weight):
        messages = x[index[0]] if weight is None else weight.view(-1, 1) * x[index[0]]
        return (of_edges(index, messages, reduce) @ layer.lin_rel.weight.T + layer.lin_rel.bias
                + x @ layer.lin_root.weight.T)
    return define


def tag_conv(layer):
    def define(x, index, weight):
        a, powers = normalised(index, weight), [x]
        for _ in range(layer.K):
            powers.append(a @ powers[-1])
        return sum(power @ lin.weight.T for power, lin in zip(powers, layer.lins)) + layer.bias
    return define


def edge_conv(layer, reduce):
    def define(x, index, _):
        own, other = x[index[1]], x[index[0]]
        return of_edges(index, layer.nn(torch.cat([own, other - own], dim=1)), reduce)
    return define


def network(outputs):
    return torch.nn.Sequential(torch.nn.Linear(12, 7), torch.nn.Tanh(), torch.nn.Linear(7, outputs))


LAYERS = {
    "GraphConv": (lambda: pyg.GraphConv(6, 4), lambda layer: graph_conv(layer, "sum")),
    "GraphConv, mean": (lambda: pyg.GraphConv(6, 9, aggr="mean"), lambda layer: graph_conv(layer, "mean")),
    "GraphConv, max": (lambda: pyg.GraphConv(6, 4, aggr="max"), lambda layer: graph_conv(layer, "max")),
    "TAGConv": (lambda: pyg.TAGConv(6, 4), tag_conv),
    "TAGConv, wide": (lambda: pyg.TAGConv(6, 9, K=2), tag_conv),
    "EdgeConv": (lambda: pyg.EdgeConv(network(4)), lambda layer: edge_conv(layer, "max")),
    "EdgeConv, sum": (lambda: pyg.EdgeConv(network(4), aggr="sum"), lambda layer: edge_conv(layer, "sum")),
}


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", LAYERS)
def test_layers(name, weighted):
    torch.manual_seed(2)
    make, definition = LAYERS[name]
    layer = tessera.accelerate(make().double())
    index = random_edges(VERTICES, VERTICES, EDGES)
    x = torch.randn(VERTICES, 6, dtype=torch.float64, requires_grad=True)
    takes = weighted and "EdgeConv" not in name
    weight = torch.rand(EDGES, dtype=torch.float64).add(0.1).requires_grad_() if takes else None
    wanted = [tensor for tensor in (x, weight, *layer.parameters()) if tensor is not None]
    given = (x, index) if weight is None else (x, index, weight)
    found, expected = layer(*given), definition(layer)(x, index, weight)
    assert layer.tessera_fallback is None and (found - expected).abs().max() < 1e-6
    factors = torch.randn_like(found)
    for mine, theirs in zip(*(torch.autograd.grad((out * factors).sum(), wanted) for out in (found, expected)), strict=True):
        assert (mine - theirs).abs().max() < 1e-6


def spread(a, start, alpha, layers, after):
    out = start
    for _ in range(layers):
        out = after(alpha * (a @ out) + (1 - alpha) * start)
    return out


@pytest.mark.parametrize("autoscale", [True, False])
def test_correct_and_smooth(autoscale):
    torch.manual_seed(3)
    index, soft = random_edges(VERTICES, VERTICES, EDGES), torch.rand(VERTICES, 3, dtype=torch.float64).softmax(1)
    known = torch.randperm(VERTICES)[:10]
    labels = torch.randint(0, 3, (10,))
    model = tessera.accelerate(pyg.CorrectAndSmooth(3, 0.8, 2, 0.6, autoscale, 0.7))
    a, truth = normalised(index), one_hot(labels, 3).double()
    error = torch.zeros_like(soft)
    error[known] = truth - soft[known]
    if autoscale:
        away = spread(a, error, 0.8, 3, lambda out: out.clamp(-1, 1))
        scale = error[known].abs().sum() / 10 / away.abs().sum(1, keepdim=True)
        scale[scale.isinf() | (scale > 1000)] = 1
        corrected = soft + scale * away
    else:
        def kept(out):
            out[known] = error[known]
            return out
        corrected = soft + 0.7 * spread(a, error, 0.8, 3, kept)
    assert (model.correct(soft, labels, known, index) - corrected).abs().max() < 1e-6
    corrected[known] = truth
    expected = spread(a, corrected, 0.6, 2, lambda out: out.clamp(0, 1))
    assert (model(soft, labels, known, index) - expected).abs().max() < 1e-6
    assert model.prop1.tessera_fallback is None


@pytest.mark.parametrize("name, reduce", [("global_add_pool", "sum"), ("global_mean_pool", "mean"), ("global_max_pool", "max")])
def test_pooling(name, reduce):
    torch.manual_seed(4)
    x = torch.randn(EDGES, 5, dtype=torch.float64, requires_grad=True)
    batch = torch.randint(0, VERTICES - 2, (EDGES,))  # the last two have no vertices
    found = getattr(tessera.nn, name)(x, batch, VERTICES)
    expected = of_edges(torch.stack([batch, batch]), x, reduce)
    factors = torch.randn_like(found)
    gradients = [torch.autograd.grad((out * factors).sum(), x)[0] for out in (found, expected)]
    assert (found - expected).abs().max() < 1e-12 and (gradients[0] - gradients[1]).abs().max() < 1e-12


def test_jumping_knowledge():
    xs = [torch.randn(9, 4, dtype=torch.float64) for _ in range(3)]
    expected = torch.maximum(torch.maximum(xs[0], xs[1]), xs[2])
    assert torch.equal(tessera.nn.JumpingKnowledge("max")(xs), expected)
    assert torch.equal(tessera.nn.JumpingKnowledge("cat")(xs), torch.cat(xs, dim=1))
