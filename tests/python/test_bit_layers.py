# SPDX-License-Identifier: Apache-2.0
"""Layers with bits=: integers in evaluation, rounded floats in training, PyG's layers as the measure of both."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera
import tessera.nn
from tessera.nn.few_bits import rounded

LAYERS = {
    "gcn": lambda nn, **bits: nn.GCNConv(12, 7, **bits),
    "gcn_given_loops": lambda nn, **bits: nn.GCNConv(12, 7, add_self_loops=False, bias=False, **bits),
    "sage_mean": lambda nn, **bits: nn.SAGEConv(12, 7, **bits),
    "sage_sum": lambda nn, **bits: nn.SAGEConv(12, 7, aggr="sum", root_weight=False, **bits),
    "sage_project": lambda nn, **bits: nn.SAGEConv(12, 7, project=True, normalize=True, **bits),
    "gin": lambda nn, **bits: nn.GINConv(torch.nn.Sequential(
        torch.nn.Linear(12, 9), torch.nn.ReLU(), torch.nn.Linear(9, 7)), eps=0.25, **bits),
    "cluster_gcn": lambda nn, **bits: nn.ClusterGCNConv(12, 7, diag_lambda=0.5, **bits),
}
EDGES = random_edges(60, 60, 400, repeated=False)
X = torch.randn(60, 12, generator=torch.Generator().manual_seed(3))


def layer(name, bits, device="cpu"):
    """A layer with bits, and PyG's with the same parameters."""
    theirs = LAYERS[name](pyg)
    ours = LAYERS[name](tessera.nn, bits=bits)
    assert str(ours.load_state_dict(theirs.state_dict())) == "<All keys matched successfully>"
    return ours.to(device), theirs.to(device)


def error(found, expected):
    return float((found - expected).abs().max() / expected.abs().max())


@pytest.mark.parametrize("name", LAYERS)
def test_evaluation_is_pygs_but_for_the_bits(device, name):
    x, edges = X.to(device), EDGES.to(device)
    errors = []
    for bits in (16, 8, 4):
        ours, theirs = layer(name, bits, device)
        found = ours.eval()(x, edges)
        assert not found.requires_grad and found.dtype == torch.float32
        errors.append(error(found, theirs(x, edges).detach()))
        assert torch.equal(found, ours(x, edges))
    assert errors[0] < 1e-3 and errors[1] < 0.1 and errors[0] < errors[1] < errors[2]


@pytest.mark.parametrize("name", LAYERS)
def test_training_computes_what_evaluation_does(device, name):
    x, edges = X.to(device), EDGES.to(device)
    for bits in (2, 6):
        ours, _ = layer(name, bits, device)
        trained = ours.train()(x, edges).detach()
        found = ours.eval()(x, edges)
        # Sums that floats round to another code than integers do are few.
        assert float((found - trained).abs().median()) <= 1e-5 * float(trained.abs().max())


@pytest.mark.parametrize("name", LAYERS)
def test_gradients_pass_the_rounding(device, name):
    ours, theirs = layer(name, 16, device)
    weights = torch.randn(60, 7, device=device)
    gradients = []
    for module in (ours, theirs):
        x = X.clone().to(device).requires_grad_()
        (module(x, EDGES.to(device)) * weights).sum().backward()
        gradients.append([x.grad] + [parameter.grad for parameter in module.parameters()])
    for found, expected in zip(*gradients):
        assert error(found, expected) < 1e-2


def test_rounding_is_that_of_the_codes():
    x = torch.randn(9, 5, generator=torch.Generator().manual_seed(4))
    for bits in (1, 3, 8, 16):
        assert torch.allclose(rounded(x, bits), tessera.bits.quantise(x, bits).values(), atol=1e-6)
    assert torch.equal(rounded(torch.full((2, 2), 3.0), 4), torch.full((2, 2), 3.0))


def test_a_model_learns_with_few_bits():
    torch.manual_seed(1)
    labels = torch.arange(60) % 3
    x = torch.nn.functional.one_hot(labels, 12).float() + 0.3 * X
    model = torch.nn.ModuleList([tessera.nn.GCNConv(12, 16, bits=4), tessera.nn.GCNConv(16, 3, bits=4)])
    edges = torch.stack([torch.arange(60), (torch.arange(60) + 3) % 60])
    optimiser = torch.optim.Adam(model.parameters(), lr=0.02)

    def logits():
        return model[1](model[0](x, edges).relu(), edges)

    for _ in range(60):
        optimiser.zero_grad()
        torch.nn.functional.cross_entropy(logits(), labels).backward()
        optimiser.step()
    model.eval()
    assert (logits().argmax(1) == labels).float().mean() > 0.95


def test_what_cannot_be_says_so():
    for bits in (0, 17, True, 2.0, "8"):
        with pytest.raises(ValueError, match="1 to 16"):
            tessera.nn.GCNConv(4, 2, bits=bits)
    conv = tessera.nn.GCNConv(12, 7, bits=4)
    with pytest.raises(ValueError, match="without weights"):
        conv(X, EDGES, torch.ones(EDGES.size(1)))
    with pytest.raises(ValueError, match="pair of features"):
        tessera.nn.SAGEConv(12, 7, bits=4)((X, X), EDGES)
    with pytest.raises(ValueError, match="aggregation max"):
        tessera.nn.SAGEConv(12, 7, aggr="max", bits=4)(X, EDGES)
    with pytest.raises(ValueError, match="cached"):
        tessera.nn.GCNConv(12, 7, cached=True, bits=4)(X, EDGES)
    with pytest.raises(TypeError, match="TorchScript"):
        conv.__prepare_scriptable__()


def test_layers_without_bits_are_as_before():
    assert tessera.nn.GCNConv(12, 7).bits is None
    model = tessera.accelerate(pyg.GCNConv(12, 7))
    assert isinstance(model, tessera.nn.GCNConv) and model.bits is None
    model.bits = 8
    assert not model.eval()(X, EDGES).requires_grad
    assert type(tessera.restore(model)) is pyg.GCNConv


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("kind", ["GCNConv", "SAGEConv", "ClusterGCNConv"])
def test_repeated_edges_are_refused(kind, training, device):
    layer = getattr(tessera.nn, kind)(6, 4, bits=4).to(device).train(training)
    repeated = torch.tensor([[0, 1, 0], [1, 2, 1]], device=device)
    with pytest.raises(ValueError, match="repeated edges in sums of bits"):
        layer(torch.randn(3, 6, device=device), repeated)


@pytest.mark.parametrize("kind", ["GCNConv", "SAGEConv"])
def test_sizes_that_are_found_out_later(kind, device):
    """A layer of in_channels=-1 gets its size by its first call, as in PyG."""
    layer = getattr(tessera.nn, kind)(-1, 4, bits=4).to(device)
    x, index = torch.randn(60, 6, device=device), EDGES.to(device)
    assert layer(x, index).shape == (60, 4)
    assert all(parameter.size(-1) in (4, 6) for parameter in layer.parameters())
    again = getattr(tessera.nn, kind)(6, 4, bits=4).to(device)
    again.load_state_dict(layer.state_dict())
    assert torch.equal(again(x, index), layer(x, index))
