# SPDX-License-Identifier: Apache-2.0
"""Layers and models that propagate features or labels again and again, against PyG's."""

import copy
import io

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from layer_pairs import same
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

import tessera
import tessera.nn

GCN2 = [{}, {"shared_weights": False}, {"theta": 0.5, "layer": 3}, {"normalize": False}, {"add_self_loops": False}]


def gcn2(options, device):
    theirs = pyg.GCN2Conv(12, alpha=0.2, **options).to(device)
    ours = tessera.nn.GCN2Conv(12, alpha=0.2, **options).to(device)
    ours.load_state_dict(theirs.state_dict())
    assert str(ours) == str(theirs)
    return theirs, ours


def of_both(layer, x, start, *rest):
    x, start = (tensor.clone().requires_grad_() for tensor in (x, start))
    out = layer(x, start, *rest)
    return [out.detach(), *torch.autograd.grad(out.square().sum(), [x, start, *layer.parameters()])]


@pytest.mark.parametrize("options", GCN2)
def test_gcn2_is_pygs(options, device):
    theirs, ours = gcn2(options, device)
    x, start = torch.randn(2, 30, 12, device=device)
    index, weight = random_edges(30, 30, 150, device, repeated=False), None
    for holder in (lambda index: index, lambda index: to_torch_csr_tensor(index.flip(0), size=(30, 30)),
                   lambda index: to_torch_coo_tensor(index.flip(0), size=(30, 30))):
        same(of_both(ours, x, start, holder(index)), of_both(theirs, x, start, holder(index)), 1e-4)
        assert ours.tessera_fallback is None
    weight = torch.rand(index.size(1), device=device)
    same(of_both(ours, x, start, index, weight), of_both(theirs, x, start, index, weight), 1e-4)


def test_gcn2_keeps_the_first_graph(device):
    theirs, ours = gcn2({"cached": True}, device)
    x, start = torch.randn(2, 20, 12, device=device)
    for seed in (1, 2):
        index = random_edges(20, 20, 100, device, seed=seed)
        for layer in (ours, copy.deepcopy(ours)):
            same([layer(x, start, index)], [theirs(x, start, index)])
            assert layer.tessera_fallback is None
    plain = tessera.restore(ours)
    same([plain(x, start, index)], [theirs(x, start, index)])


def test_gcn2_compiles_without_a_break(device):
    torch._dynamo.reset()
    _, ours = gcn2({}, device)
    compiled = torch.compile(ours, fullgraph=True, dynamic=True, backend="aot_eager")
    for size in (20, 30):
        x, start = torch.randn(2, size, 12, device=device)
        index = random_edges(size, size, 5 * size, device)
        same([compiled(x, start, index)], [ours(x, start, index)])


@pytest.mark.parametrize("features", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("options", GCN2)
def test_gcn2_under_autocast_has_pygs_type(options, features, device):
    theirs, ours = gcn2(options, device)
    x, start = torch.randn(2, 30, 12, device=device).to(features)
    index = random_edges(30, 30, 150, device)
    found = []
    for layer in (theirs, ours):
        with torch.autocast(device.type, dtype=torch.bfloat16):
            found.append(layer(x, start, index))
    assert found[0].dtype == found[1].dtype and ours.tessera_fallback is None
    same([found[1].float()], [found[0].float()], 1e-1)


def labels(device):
    return torch.randint(0, 4, (25,), device=device), random_edges(25, 25, 120, device, repeated=False), (
        torch.rand(25, device=device) < 0.4)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_label_propagation_is_pygs(dtype, device):
    if device.type == "cuda" and dtype == torch.float64:
        pytest.skip("fp64 is of the CPU")
    theirs, ours = (module.LabelPropagation(num_layers=4, alpha=0.8) for module in (pyg, tessera.nn))
    y, index, mask = labels(device)
    scores, weight = torch.rand(25, 3, device=device).to(dtype), torch.rand(index.size(1), device=device)
    matrix = to_torch_csr_tensor(index.flip(0), size=(25, 25))
    for given in ((y, index), (y, index, mask), (scores, index, mask), (scores, index, None, weight.to(dtype)),
                  (scores, index, mask, None, lambda out: out * 0.5), (y, matrix), (y, matrix, mask)):
        found, expected = ours(*given), theirs(*given)
        assert found.dtype == expected.dtype and torch.allclose(found, expected, atol=1e-6)
        assert ours.tessera_fallback is None


def test_labels_that_are_no_floats_are_left_to_pyg(device):
    theirs, ours = (module.LabelPropagation(2, 0.5) for module in (pyg, tessera.nn))
    _, index, _ = labels(device)
    counts = torch.randint(0, 3, (25, 2), device=device)
    assert torch.equal(ours(counts, index), theirs(counts, index))
    assert ours.tessera_fallback == "features of type torch.int64"


@pytest.mark.parametrize("autoscale", [True, False])
def test_correct_and_smooth(autoscale, device):
    theirs = pyg.CorrectAndSmooth(3, 0.8, 2, 0.6, autoscale=autoscale, scale=0.7)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    y, index, mask = labels(device)
    soft = torch.rand(25, 4, device=device).softmax(-1)
    weight = torch.rand(index.size(1), device=device)
    for rest in ((), (weight,)):
        found, expected = (model(soft, y[mask], mask, index, *rest) for model in (ours, theirs))
        assert torch.allclose(found, expected, atol=1e-5)
    assert tessera.explain(ours).accelerated == 2


@pytest.mark.parametrize("normalize", [True, False])
def test_light_gcn(normalize, device):
    theirs = pyg.LightGCN(40, 8, num_layers=3, normalize=normalize).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    index, pairs = random_edges(40, 40, 200, device), random_edges(40, 40, 30, device, seed=3)
    same([ours.get_embedding(index)], [theirs.get_embedding(index)], 1e-5)
    for model in (ours, theirs):
        ranks = model(index, pairs)
        model.recommendation_loss(ranks[:15], ranks[15:]).backward()
    same([ours.embedding.weight.grad], [theirs.embedding.weight.grad], 1e-5)
    assert tessera.explain(ours, index, pairs) == [f"convs.{i} LGConv: spmm/{device.type}/rows" for i in range(3)] or (
        device.type == "cuda")
    assert tessera.explain(ours).accelerated == 3


@pytest.mark.parametrize("make", [lambda: pyg.GCN2Conv(6, 0.1), lambda: pyg.LGConv(), lambda: pyg.TAGConv(6, 4),
                                  lambda: pyg.ARMAConv(-1, 4, num_layers=2), lambda: pyg.GatedGraphConv(6, 2),
                                  lambda: pyg.GraphConv(-1, 4), lambda: pyg.LabelPropagation(2, 0.5)])
def test_copied_saved_and_restored(make):
    theirs = make()
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(15, 6), random_edges(15, 15, 60)
    given = (x, x, index) if isinstance(theirs, pyg.GCN2Conv) else (x, index)
    torch.manual_seed(1)
    expected = theirs(*given)
    torch.manual_seed(1)
    same([ours(*given)], [expected])
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    for other in (copy.deepcopy(ours), torch.load(file, weights_only=False)):
        assert type(other) is type(ours)
        same([other(*given)], [expected])
        assert other.tessera_fallback is None
    assert type(tessera.restore(ours)) is type(theirs)
    same([ours(*given)], [expected])


def test_polynomials_are_as_narrow_as_their_results(device):
    """Features are multiplied by the weights first where that makes them narrower."""
    theirs = pyg.TAGConv(12, 3, K=3).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(30, 12, device=device), random_edges(30, 30, 150, device)
    same([ours(x, index)], [theirs(x, index)])
    calls = []
    for layer in (ours, theirs):  # linear layers that somebody looks at are called as PyG calls them
        layer.lins[0].register_forward_hook(lambda module, given, out: calls.append(given[0].shape))
        expected = theirs(x, index)
    same([ours(x, index)], [expected])
    assert len(set(calls)) == 1
