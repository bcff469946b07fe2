# SPDX-License-Identifier: Apache-2.0
"""Arithmetic on graphs, and parts of them, against dense matrices."""

import pytest
import torch
from conftest import random_edges

import tessera


def drawn(device, targets=12, sources=9, edges=40, weighted=True, seed=3, dtype=None):
    dtype = dtype or (torch.float64 if device.type == "cpu" else torch.float32)
    index = random_edges(targets, sources, edges, device, seed=seed)
    weight = torch.rand(index.size(1), dtype=dtype, generator=torch.Generator().manual_seed(seed)).to(device) if weighted else None
    return tessera.Graph(index, targets, sources, weight)


def by_hand(graph):
    matrix = torch.zeros(graph.num_targets, graph.num_sources, dtype=torch.float64)
    targets, sources = (ends.cpu().long() for ends in graph.targets_and_sources())
    weight = torch.ones(graph.num_edges) if graph.weight is None else graph.weight.detach().cpu()
    for target, source, number in zip(targets.tolist(), sources.tolist(), weight.tolist()):
        matrix[target, source] += number
    return matrix


def near(graph, expected):
    assert (graph.num_targets, graph.num_sources) == tuple(expected.shape)
    assert torch.allclose(by_hand(graph), expected.double().cpu(), rtol=1e-5, atol=1e-6)


def is_sorted(graph):
    targets, sources = graph.targets_and_sources()
    return bool(((targets * graph.num_sources + sources).diff() > 0).all())


EDGES = [(12, 9, 0), (12, 9, 1), (1, 1, 5), (12, 9, 40), (33, 17, 300)]


@pytest.mark.parametrize("weighted", [(True, True), (True, False), (False, True), (False, False)])
@pytest.mark.parametrize("targets, sources, edges", EDGES)
def test_arithmetic(targets, sources, edges, weighted, device):
    a = drawn(device, targets, sources, edges, weighted[0])
    b = drawn(device, targets, sources, edges, weighted[1], seed=4)
    for found, expected in ((a + b, by_hand(a) + by_hand(b)), (a - b, by_hand(a) - by_hand(b)), (a * b, by_hand(a) * by_hand(b)),
                            (a.coalesced(), by_hand(a))):
        near(found, expected)
        assert is_sorted(found)
    for found, expected in ((a * 3, 3 * by_hand(a)), (0.5 * a, by_hand(a) / 2), (a / 4, by_hand(a) / 4), (-a, -by_hand(a)),
                            (a * torch.tensor(2.0, device=device), 2 * by_hand(a))):
        near(found, expected)
    each = torch.rand(a.num_edges, device=device)
    near(a * each, by_hand(tessera.Graph(a.index, targets, sources, each if a.weight is None else a.weight * each)))


@pytest.mark.parametrize("weighted", [(True, True), (True, False), (False, False)])
@pytest.mark.parametrize("targets, sources, edges", EDGES)
def test_products(targets, sources, edges, weighted, device):
    a = drawn(device, targets, sources, edges, weighted[0])
    b = drawn(device, sources, 8, edges, weighted[1], seed=4)
    found = a @ b
    near(found, by_hand(a) @ by_hand(b))
    assert is_sorted(found)
    near(a @ a.reversed(), by_hand(a) @ by_hand(a).T)
    x = torch.randn(sources, 5, device=device)
    assert torch.allclose((a.without_weight() @ x).double().cpu(), by_hand(a.without_weight()) @ x.double().cpu(), atol=1e-4)


def test_the_same_bits_twice(device):
    a, b = drawn(device, 200, 200, 6000, dtype=torch.float32), drawn(device, 200, 200, 6000, seed=5, dtype=torch.float32)
    for function in (lambda: a @ b, lambda: a + b, lambda: a * b):
        first, second = function(), function()
        assert torch.equal(first.index, second.index) and torch.equal(first.weight, second.weight)


@pytest.mark.parametrize("name", ["product", "sum", "common", "coalesced", "scaled", "part", "dense"])
def test_weights_have_derivatives(name):
    cpu = torch.device("cpu")
    a, b = drawn(cpu, 6, 5, 14), drawn(cpu, 5, 6, 14, seed=4)
    functions = {"product": lambda a, b: (a @ b).weight, "sum": lambda a, b: (a + b.reversed()).weight,
                 "common": lambda a, b: (a * b.reversed()).weight, "coalesced": lambda a, b: a.coalesced().weight,
                 "scaled": lambda a, b: (a * 2.5).weight, "part": lambda a, b: a[[3, 0, 0], 1:].weight,
                 "dense": lambda a, b: (a @ b).to_dense()}

    def weighted(first, second):
        return functions[name](tessera.Graph(a.index, 6, 5, first), tessera.Graph(b.index, 5, 6, second))

    weights = a.weight.clone().requires_grad_(), b.weight.clone().requires_grad_()
    assert weighted(*weights).numel() > 0
    assert torch.autograd.gradcheck(weighted, weights)


PARTS = [slice(None), slice(2, 7), slice(None, None, 3), slice(0, 0), [4, 1, 4, -1], torch.tensor([0, 5]), 3, "mask",
         torch.tensor([2, 2], dtype=torch.int32), []]


@pytest.mark.parametrize("layout", ["edge_index", "csr", "csc"])
@pytest.mark.parametrize("chosen", range(len(PARTS)))
@pytest.mark.parametrize("other", [None, 0, 1, 4, 7])
def test_parts(chosen, other, layout, device):
    graph = drawn(device)
    if layout != "edge_index":
        graph = tessera.Graph.of(getattr(graph.to_dense(), f"to_sparse_{layout}")())
    matrix = by_hand(graph)
    given, wanted = [], []
    for number, size in ((chosen, 12), *([] if other is None else [(other, 9)])):
        one = PARTS[number]
        mask = torch.arange(size) % 3 == 0
        given.append(mask if isinstance(one, str) else one)
        one = mask.nonzero().view(-1) if isinstance(one, str) else torch.arange(size)[
            [one] if isinstance(one, int) else torch.tensor(one, dtype=torch.int64) if isinstance(one, list) else one]
        wanted.append(one)
    found = graph[given[0]] if other is None else graph[tuple(given)]
    expected = matrix[wanted[0]] if other is None else matrix[wanted[0]][:, wanted[1]]
    near(found, expected)


def test_repeated_edges_stay_apart_in_parts():
    graph = tessera.Graph(torch.tensor([[0, 0, 1], [1, 1, 0]]), 2, 2)
    assert graph[1:].num_edges == 2 and graph[1:].weight is None
    assert graph.coalesced().weight.tolist() == [1.0, 2.0]
    assert graph[:1].coalesced().weight is None


def test_other_forms(device):
    graph = drawn(device)
    assert torch.allclose(graph.to_sparse().to_dense().double().cpu(), by_hand(graph))
    assert torch.allclose(graph.to_dense().double().cpu(), by_hand(graph))
    near(tessera.Graph.of(graph.to_sparse()), by_hand(graph))
    with pytest.raises(TypeError, match="not iterable"):
        list(graph)


CPU = torch.device("cpu")
WRONG = [(lambda g: g + drawn(CPU, 3, 9), ValueError, "a sum of graphs of 12 x 9 and 3 x 9 vertices: use the same"),
         (lambda g: g * drawn(CPU, 3, 9), ValueError, "a product by elements of graphs of 12 x 9 and 3 x 9"),
         (lambda g: g @ g, ValueError, "a product of graphs of 12 x 9 and 12 x 9 vertices: sources of the first are targets"),
         (lambda g: g * torch.ones(3), ValueError, r"factors have shape \(3,\): use one number, or \(40,\)"),
         (lambda g: g[12], IndexError, "12 is outside of the 12 targets"),
         (lambda g: g[:, [-10]], IndexError, "-10 is outside of the 9 sources"),
         (lambda g: g[torch.ones(3, dtype=torch.bool)], IndexError, "a mask of 3 for 12 targets"),
         (lambda g: g[torch.ones(3)], TypeError, "targets are chosen by torch.float32 of shape"),
         (lambda g: g[1, 2, 3], IndexError, "a graph has targets and sources, and 3 were chosen"),
         (lambda g: g + 1, TypeError, "unsupported operand"),
         (lambda g: g @ "x", TypeError, "unsupported operand"),
         (lambda g: tessera.Graph(g.index, 12, 9, torch.ones(40, 2)).coalesced(), ValueError, "one number for each edge")]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    call, kind, text = WRONG[number]
    with pytest.raises(kind, match=text):
        call(drawn(CPU))
