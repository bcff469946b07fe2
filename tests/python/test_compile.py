# SPDX-License-Identifier: Apache-2.0
"""torch.compile and torch.export: no breaks, one compilation for graphs of all sizes."""

import pytest
import torch
import torch._dynamo
from conftest import random_edges
from layer_pairs import LAYERS, pair

import tessera
import tessera.nn


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()


@pytest.mark.parametrize("name", LAYERS)
def test_layers_compile_without_a_break(name, device):
    _, layer = pair(name, device)
    index = random_edges(30, 30, 200, device)
    x = torch.randn(30, 12, device=device, requires_grad=True)
    expected = layer(x, index)
    wanted = torch.autograd.grad(expected.sum(), x)[0]
    compiled = torch.compile(layer, fullgraph=True, backend="aot_eager")
    out = compiled(x, index)
    assert torch.allclose(out, expected, atol=1e-6)
    assert torch.allclose(torch.autograd.grad(out.sum(), x)[0], wanted, atol=1e-5)


@pytest.mark.parametrize("name", LAYERS)
def test_one_compilation_for_ten_graphs(name, device):
    _, layer = pair(name, device)
    counter = torch._dynamo.testing.CompileCounterWithBackend("aot_eager")
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend=counter)
    for size in range(20, 120, 10):
        index = random_edges(size, size, 7 * size, device, seed=size)
        x = torch.randn(size, 12, device=device, requires_grad=True)
        out, expected = compiled(x, index), layer(x, index)
        assert torch.allclose(out, expected, atol=1e-5)
        found, wanted = (torch.autograd.grad(y.square().sum(), x)[0] for y in (out, expected))
        assert (found - wanted).abs().max() <= 1e-5 * (1 + wanted.abs().max())
    compiled_graphs = [graph for graph in counter.graphs
                       if any(node.op == "placeholder" for node in graph.graph.nodes)]
    assert len(compiled_graphs) == 1


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
def test_features_of_edges_compile(kind, device):
    torch.manual_seed(1)
    layer = getattr(tessera.nn, kind)(12, 5, heads=2, edge_dim=3).to(device)
    compiled = torch.compile(layer, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (20, 30):
        index, attr = random_edges(size, size, 5 * size, device), torch.randn(5 * size, 3, device=device)
        x = torch.randn(size, 12, device=device)
        assert torch.allclose(compiled(x, index, attr), layer(x, index, attr), atol=1e-5)


def test_inductor_trains_a_model(device):
    from torch_geometric.nn import GCN

    model = tessera.accelerate(GCN(12, 8, num_layers=2, out_channels=3)).to(device)
    index, x = random_edges(30, 30, 200, device), torch.randn(30, 12, device=device)
    expected = torch.autograd.grad(model(x, index).sum(), list(model.parameters()))
    compiled = torch.compile(model, fullgraph=True)
    actual = torch.autograd.grad(compiled(x, index).sum(), list(model.parameters()))
    for mine, wanted in zip(actual, expected):
        assert torch.allclose(mine, wanted, atol=1e-4)


@pytest.mark.parametrize("name", LAYERS)
def test_export(name, device):
    _, layer = pair(name, device)
    index, x = random_edges(30, 30, 200, device), torch.randn(30, 12, device=device)
    vertices, edges = torch.export.Dim("vertices"), torch.export.Dim("edges")
    program = torch.export.export(layer, (x, index), dynamic_shapes=({0: vertices}, {1: edges}))
    other, features = random_edges(40, 40, 90, device, seed=2), torch.randn(40, 12, device=device)
    assert torch.allclose(program.module()(features, other), layer(features, other), atol=1e-5)


def test_a_changed_graph_is_noticed_in_compiled_code(device):
    index, x = torch.tensor([[0, 1], [1, 2]], device=device), torch.eye(3, device=device)
    compiled = torch.compile(lambda i, x: tessera.spmm(i, x), fullgraph=True, backend="aot_eager")
    first = compiled(index, x).clone()
    index[1, 0] = 2
    assert not torch.equal(compiled(index, x), first)


def test_layers_are_compiled_one_by_one():
    """torch compiles a piece of code eight times at most, whoever runs it."""
    named = [getattr(tessera.nn, name) for name in tessera.nn.__all__]
    codes = [layer.forward.__code__ for layer in named if isinstance(layer, type)]
    assert len({id(code) for code in codes}) == len(codes)
