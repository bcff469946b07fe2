# SPDX-License-Identifier: Apache-2.0
"""Sums of what sources and edges say: the operator, and GINE on it."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import DTYPES, opcheck, random_edges, supported
from layer_pairs import gradients, same
from torch.autograd import gradcheck

import tessera
import tessera.nn as ours

MESSAGES = {"sum": lambda x, e: x + e, "relu": lambda x, e: (x + e).relu(), "product": lambda x, e: x * e}


def summed(index, x, features, targets, message):
    out = x.new_zeros(targets, x.size(1))
    return out.index_add(0, index[1], MESSAGES[message](x[index[0]], features))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("message", range(3))
def test_opcheck_messages(device, dtype, message):
    supported(device, dtype)
    index = random_edges(12, 9, 60, device)
    x = torch.randn(9, 5, device=device).to(dtype).requires_grad_()
    features = torch.randn(60, 5, device=device).to(dtype).requires_grad_()
    for loops in (0, 2):
        graph = (index, None, 12, 9, 0, loops, message, 0)
        opcheck("messages", (x, features, *graph))
        grad = torch.randn(12, 5, device=device).to(dtype)
        for needs in ((True, True), (True, False), (False, True)):
            opcheck("messages_backward", (grad, x.detach(), features.detach(), *graph, *needs))


@pytest.mark.parametrize("message", MESSAGES)
def test_results_and_gradients_are_those_of_torch(message):
    index = random_edges(30, 20, 200)
    x = torch.randn(20, 7, dtype=torch.float64, requires_grad=True)
    features = torch.randn(200, 7, dtype=torch.float64, requires_grad=True)
    graph = tessera.Graph(index, 30, 20)
    grad = torch.randn(30, 7, dtype=torch.float64)
    found = tessera.messages(graph, x, features, message=message)
    expected = summed(index, x, features, 30, message)
    same([found, *torch.autograd.grad(found, (x, features), grad)],
         [expected, *torch.autograd.grad(expected, (x, features), grad)], 1e-12)
    assert gradcheck(lambda x, e: tessera.messages(graph, x, e, message=message), (x, features))
    first = torch.autograd.grad(tessera.messages(graph, x, features, message=message).sum(), x, create_graph=True)[0]
    if first.requires_grad:
        with pytest.raises(NotImplementedError, match="second derivative"):
            first.sum().backward()


def test_repeated_edges_stay_apart_and_empty_graphs_are_zero(device):
    index = torch.tensor([[0, 0, 1], [1, 1, 1]], device=device)
    x, features = torch.ones(2, 3, device=device), torch.tensor([[1.0], [-5.0], [2.0]], device=device).expand(3, 3)
    assert torch.equal(tessera.messages(index, x, features)[1], torch.full((3,), 5.0, device=device))
    empty = torch.empty(2, 0, dtype=torch.int64, device=device)
    assert torch.equal(tessera.messages(empty, x, features[:0]), torch.zeros(2, 3, device=device))


def test_a_zero_before_relu_has_no_gradient():
    x, features = torch.ones(1, 2, requires_grad=True), torch.tensor([[-1.0, -0.5]], requires_grad=True)
    tessera.messages(torch.zeros(2, 1, dtype=torch.int64), x, features).sum().backward()
    assert x.grad.tolist() == features.grad.tolist() == [[0.0, 1.0]]


def test_what_does_not_fit_is_named():
    index, x = random_edges(6, 6, 20), torch.randn(6, 4)
    with pytest.raises(ValueError, match=r"edge_features has shape \(20, 3\): use \(20, 4\)"):
        tessera.messages(index, x, torch.randn(20, 3))
    with pytest.raises(ValueError, match=r"edge_features has shape \(19, 4\): use \(20, 4\)"):
        tessera.messages(index, x, torch.randn(19, 4))
    with pytest.raises(TypeError, match="edge_features has type torch.int64"):
        tessera.messages(index, x, torch.ones(20, 4, dtype=torch.int64))
    with pytest.raises(ValueError, match="unknown message 'max': use sum, relu or product"):
        tessera.messages(index, x, torch.randn(20, 4), message="max")
    with pytest.raises(ValueError, match="without_weight"):
        tessera.messages(tessera.Graph(index, 6, 6, torch.rand(20)), x, torch.randn(20, 4))
    with pytest.raises(RuntimeError, match="there are 4 rows of 5|features that do not fit"):
        torch.ops.tessera.messages(x, torch.randn(20, 3), index, None, 6, 6, 0, 0, 1, 0)


def test_compiled_code_has_the_same_results():
    index, x, features = random_edges(6, 6, 20), torch.randn(6, 4, requires_grad=True), torch.randn(20, 4, requires_grad=True)

    def run(x, features):
        return tessera.messages(index, x, features).square().sum()

    expected = torch.autograd.grad(run(x, features), (x, features))
    found = torch.autograd.grad(torch.compile(run, backend="aot_eager", fullgraph=True)(x, features), (x, features))
    same(found, expected)


def network(inputs, outputs):
    return torch.nn.Sequential(torch.nn.Linear(inputs, 6), torch.nn.ReLU(), torch.nn.Linear(6, outputs))


def gine_pair(device, dtype, *arguments, **options):
    made = []
    for module in (pyg, ours):
        torch.manual_seed(4)
        made.append(module.GINEConv(network(5, 3), *arguments, **options).to(device, dtype))
    assert str(made[0]) == str(made[1])
    made[1].load_state_dict(made[0].state_dict())
    return made


@pytest.mark.parametrize("options", [{}, {"edge_dim": 4}, {"edge_dim": 4, "train_eps": True, "eps": 0.5},
                                     {"edge_dim": 4, "flow": "target_to_source"}])
@pytest.mark.parametrize("pair", [False, True])
def test_gine_is_pygs(options, pair, device):
    if pair and "flow" in options:
        pytest.skip("pairs with a reversed flow are left to PyG")
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    index = random_edges(15, 20, 90, device) if pair else random_edges(20, 20, 90, device)
    x = torch.randn(20, 5, device=device, dtype=dtype)
    attr = torch.randn(90, options.get("edge_dim", 5), device=device, dtype=dtype)
    results = []
    for layer in reversed(gine_pair(device, dtype, **options)):
        features = attr.clone().requires_grad_()
        if pair:
            other = torch.linspace(-1, 1, 75, device=device, dtype=dtype).view(15, 5)
            results.append(gradients(_Paired(layer, other), x, index, features) + [features.grad])
        else:
            results.append(gradients(layer, x, index, features) + [features.grad])
        assert getattr(layer, "tessera_fallback", None) is None
    same(*results, tolerance=1e-6 if dtype == torch.float64 else 1e-4)


class _Paired(torch.nn.Module):
    def __init__(self, layer, other):
        super().__init__()
        self.layer, self.other = layer, other

    def forward(self, x, *more):
        return self.layer((x, self.other), *more)


def test_gine_in_an_accelerated_model(device):
    torch.manual_seed(0)
    model = pyg.Sequential("x, index, attr", [
        (pyg.GINEConv(network(8, 8), edge_dim=3), "x, index, attr -> x"),
        (pyg.GINEConv(network(8, 4), train_eps=True, edge_dim=3), "x, index, attr -> x")]).to(device)
    index, x, attr = random_edges(12, 12, 50, device), torch.randn(12, 8, device=device), torch.randn(50, 3, device=device)
    expected = gradients(model, x, index, attr)
    tessera.accelerate(model)
    same(gradients(model, x, index, attr), expected, 1e-4)
    assert type(model[0]) is ours.GINEConv and model[0].tessera_fallback is None
    tessera.restore(model)
    assert type(model[0]) is pyg.GINEConv


def test_what_gine_leaves_to_pyg():
    index, x = random_edges(12, 12, 50), torch.randn(12, 5)
    layer = ours.GINEConv(network(5, 3))
    with pytest.raises(ValueError, match="edge_dim|dimensionalities"):
        layer(x, index, torch.randn(50, 4))
    assert "not as wide" in layer.tessera_fallback
    layer(x, index, torch.ones(50, 5, dtype=torch.int64))
    assert "type torch.int64" in layer.tessera_fallback
    mean = ours.GINEConv(network(5, 3), aggr="mean")
    same([mean(x, index, torch.ones(50, 5))], [pyg.GINEConv.forward(mean, x, index, torch.ones(50, 5))])
    assert mean.tessera_fallback == "the aggregation mean"
    with pytest.raises(ValueError, match=r"edge_attr has (shape \(49, 5\)|49 rows)"):
        layer(x, index, torch.ones(49, 5))


@pytest.mark.parametrize("edge_dim", [3, 9])
@pytest.mark.parametrize("options", [{}, {"concat": False, "beta": True}, {"root_weight": False}])
def test_transformer_with_features_of_edges_is_pygs(edge_dim, options, device):
    """Of edges narrower than a head, and wider."""
    dtype = torch.float64 if device.type == "cpu" else torch.float32
    index = random_edges(20, 20, 100, device)
    x = torch.randn(20, 12, device=device, dtype=dtype)
    attr = torch.randn(100, edge_dim, device=device, dtype=dtype)
    results, layers = [], []
    for module in (ours, pyg):
        torch.manual_seed(1)
        layer = module.TransformerConv(12, 5, heads=2, edge_dim=edge_dim, **options).to(device, dtype)
        features = attr.clone().requires_grad_()
        results.append(gradients(layer, x, index, features) + [features.grad])
        layers.append(layer)
    same(*results, tolerance=1e-6 if dtype == torch.float64 else 1e-4)
    assert layers[0].tessera_fallback is None
    (out, (edges, weights)), (expected, (their_edges, their_weights)) = (
        layer(x, index, attr, return_attention_weights=True) for layer in layers)
    assert torch.equal(edges, their_edges)
    same([out, weights], [expected, their_weights], 1e-6 if dtype == torch.float64 else 1e-4)


def test_dropout_of_weights_beside_features_of_edges():
    """The mean of many draws is the result without."""
    torch.manual_seed(2)
    layer = ours.TransformerConv(4, 3, heads=2, edge_dim=2, dropout=0.5)
    index, x, attr = random_edges(6, 6, 30), torch.randn(6, 4), torch.randn(30, 2)
    with torch.no_grad():
        mean = torch.stack([layer(x, index, attr) for _ in range(600)]).mean(0)
        assert not torch.allclose(layer(x, index, attr), layer(x, index, attr))
        assert (mean - layer.eval()(x, index, attr)).abs().max() < 0.2
