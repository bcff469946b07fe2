# SPDX-License-Identifier: Apache-2.0
"""Layers remember what a call found out; they must notice whatever makes the next one different."""

import copy
import pickle

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera
import tessera.nn


def gin():
    return pyg.GINConv(torch.nn.Sequential(torch.nn.Linear(6, 4), torch.nn.ReLU(),
                                           torch.nn.Linear(4, 4)))


LAYERS = {"GCN": lambda: pyg.GCNConv(6, 4), "SAGE": lambda: pyg.SAGEConv(6, 4), "GIN": gin,
          "sum": lambda: pyg.SAGEConv(6, 9, aggr="sum", root_weight=False),
          "GAT": lambda: pyg.GATConv(6, 4, heads=2), "GATv2": lambda: pyg.GATv2Conv(6, 4, heads=2)}


def made(kind, device):
    """A layer of PyG, ours with the same weights after two calls, features and edges."""
    torch.manual_seed(3)
    theirs = LAYERS[kind]().to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 90, device)
    for _ in range(2):
        ours(x, index)
    assert ours._tessera_route is not None
    return theirs, ours, x, index


def same(theirs, ours, *arguments):
    """Results and all gradients."""
    outs = []
    for layer in (theirs, ours):
        layer.zero_grad()
        out = layer(*arguments)
        out.square().sum().backward()
        outs.append([out] + [parameter.grad for parameter in layer.parameters()])
    for a, b in zip(*outs):
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-4)


def linear_of(layer):
    return layer.lin if hasattr(layer, "lin") else layer.nn[0] if hasattr(layer, "nn") else layer.lin_l


@pytest.mark.parametrize("kind", LAYERS)
class TestRoutes:
    def test_same_call(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        route = ours._tessera_route
        same(theirs, ours, x, index)
        assert ours._tessera_route is route and ours.tessera_fallback is None
        with torch.no_grad():
            assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-5)

    def test_other_features(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        same(theirs, ours, torch.randn_like(x), index)
        same(theirs, ours, torch.randn(25, 6, device=device), index)
        same(theirs, ours, x.clone().requires_grad_(), index)
        same(theirs.double(), ours.double(), x.double(), index)

    def test_other_edges(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        same(theirs, ours, x, random_edges(20, 20, 90, device, seed=8))
        same(theirs, ours, x, index.int())
        index[1] = (index[1] + 3) % 20
        same(theirs, ours, x, index)

    def test_weights_that_changed(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for layer in (theirs, ours):
            with torch.no_grad():
                linear_of(layer).weight.mul_(2)
        same(theirs, ours, x, index)
        for layer in (theirs, ours):
            linear = linear_of(layer)
            linear.weight = torch.nn.Parameter(linear.weight.detach() + 1)
        same(theirs, ours, x, index)

    def test_hooks(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for layer in (theirs, ours):
            linear_of(layer).register_forward_hook(lambda module, inputs, out: 2 * out)
        same(theirs, ours, x, index)

    def test_hooks_further_on(self, kind, device):
        if kind != "GIN":
            pytest.skip("only GIN has a network of its own, and its case runs")
        for part in (0, 1, 2):
            theirs, ours, x, index = made(kind, device)
            for layer in (theirs, ours):
                (layer.nn if part == 0 else layer.nn[part]).register_forward_hook(
                    lambda module, inputs, out: 2 * out)
            same(theirs, ours, x, index)

    def test_hooks_on_messages(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for layer in (theirs, ours):
            layer.register_propagate_forward_hook(lambda module, inputs, out: 2 * out)
        same(theirs, ours, x, index)
        assert ours.tessera_fallback == "hooks on messages"

    def test_modules_that_were_replaced(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        if kind == "GIN":
            for place, module in ((2, torch.nn.Linear(4, 4)), (1, torch.nn.Tanh())):
                for layer in (theirs, ours):
                    layer.nn[place] = copy.deepcopy(module).to(device)
                same(theirs, ours, x, index)
        torch.nn.utils.parametrize.register_parametrization(linear_of(ours), "weight", Doubled())
        assert not torch.allclose(ours(x, index), theirs(x, index), atol=1e-2)
        torch.nn.utils.parametrize.register_parametrization(linear_of(theirs), "weight", Doubled())
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-4)

    def test_parametrised_later(self, kind, device):
        """What is parametrised after a call is no parameter any more."""
        theirs, ours, x, index = made(kind, device)
        for layer in (theirs, ours):
            target = layer.nn[2] if kind == "GIN" else linear_of(layer)
            name = "bias" if target.bias is not None else "weight"
            torch.nn.utils.parametrize.register_parametrization(target, name, Doubled())
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-4)

    def test_modules_that_changed_in_silence(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for layer in (theirs, ours):
            width = linear_of(layer).weight.size(0)
            linear_of(layer).forward = lambda x, width=width: x.new_ones(x.size(0), width)
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-4)
        theirs, ours, x, index = made(kind, device)
        for layer in (theirs, ours):
            name = next(name for name, module in layer._modules.items()
                        if module is (layer.nn if kind == "GIN" else linear_of(layer)))
            width = 4 if kind == "GIN" else linear_of(layer).weight.size(0)
            torch.manual_seed(7)
            layer._modules[name] = torch.nn.Linear(6, width).to(device)
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-4)

    def test_sparse_features_after_dense_ones(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        try:
            expected = theirs(x.to_sparse(), index)
        except (RuntimeError, NotImplementedError):
            pytest.skip("PyG cannot either; the case of GCN runs")
        assert torch.allclose(ours(x.to_sparse(), index), expected, atol=1e-4)

    def test_copies(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for other in (copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
            assert other._tessera_route is None
            same(theirs, other, x, index)
        same(theirs, tessera.restore(ours), x, index)
        assert "_tessera_route" not in ours.__dict__

    def test_parameters_of_a_functional_call(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        doubled = {name: 2 * value.detach() for name, value in theirs.named_parameters()}
        outs = [torch.func.functional_call(layer, doubled, (x, index)) for layer in (theirs, ours)]
        assert torch.allclose(*outs, atol=1e-4, rtol=1e-4)
        same(theirs, ours, x, index)

    def test_scripted(self, kind, device):
        if kind in ("sum", "GAT", "GATv2"):
            pytest.skip("PyG cannot script this layer either; those of GCN, SAGE and GIN run")
        theirs, ours, x, index = made(kind, device)
        scripted = torch.jit.script(ours)
        assert torch.allclose(scripted(x, index), theirs(x, index), atol=1e-4)

    def test_autocast(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        with torch.autocast(device.type, dtype=torch.bfloat16):
            out = ours(x, index)
            assert out.dtype == theirs(x, index).dtype
        out.float().square().sum().backward()
        assert all(p.grad.dtype == torch.float32 for p in ours.parameters())
        assert torch.allclose(out.float(), theirs(x, index), atol=0.1, rtol=0.1)
        same(theirs, ours, x, index)


class Doubled(torch.nn.Module):
    def forward(self, weight):
        return 2 * weight


@pytest.mark.parametrize("kind", ["GCN", "GAT", "GATv2"])
def test_a_bias_that_was_parametrised_before(kind, device):
    torch.manual_seed(3)
    theirs = LAYERS[kind]().to(device)
    with torch.no_grad():
        theirs.bias.copy_(torch.arange(theirs.bias.numel()))
    ours = tessera.accelerate(copy.deepcopy(theirs))
    for layer in (theirs, ours):
        torch.nn.utils.parametrize.register_parametrization(layer, "bias", Doubled())
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 90, device)
    for _ in range(3):
        same(theirs, ours, x, index)
        assert ours.tessera_fallback is None


class Failing(torch.nn.Module):
    error = None

    def forward(self, x):
        if self.error is not None:
            raise self.error
        return x


@pytest.mark.parametrize("error", [RuntimeError("tessera invalid_argument: of a user"),
                                   torch.OutOfMemoryError("tessera invalid_argument: of a user")])
def test_errors_of_users_are_theirs(error, device):
    """What comes after the operator may fail in words that look like the operator's."""
    ours = tessera.nn.GINConv(torch.nn.Sequential(torch.nn.Linear(6, 4), Failing())).to(device)
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 90, device)
    ours(x, index)
    assert ours._tessera_route is not None
    ours.nn[1].error = error
    with pytest.raises(RuntimeError) as found:
        ours(x, index)
    assert found.value is error


def test_settings_that_changed(device):
    theirs, ours, x, index = made("SAGE", device)
    for name, value in (("aggr", "sum"), ("normalize", True), ("root_weight", False)):
        for layer in (theirs, ours):
            setattr(layer, name, value)
            if name == "aggr":
                layer.aggr_module = pyg.SumAggregation()
        with torch.no_grad():
            assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-4)


def test_weights_of_edges(device):
    theirs, ours, x, index = made("GCN", device)
    same(theirs, ours, x, index, torch.rand(90, device=device))


def test_an_epsilon_that_is_learned(device):
    theirs, ours, x, index = made("GIN", device)
    ours.eps.requires_grad_()
    ours(x, index).sum().backward()
    assert ours.eps.grad is not None and ours.eps.grad.abs() > 0


def test_tied_weights_of_gin_have_gradients_of_gradients(device):
    torch.manual_seed(3)
    network = torch.nn.Sequential(torch.nn.Linear(6, 6), torch.nn.ReLU(), torch.nn.Linear(6, 6))
    network[2].weight = network[0].weight
    theirs = pyg.GINConv(network).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 60, device, seed=3)
    ours(x, index)
    found = []
    for layer in (theirs, ours):
        weight = layer.nn[0].weight
        first, = torch.autograd.grad(layer(x, index).square().sum(), weight, create_graph=True)
        second, = torch.autograd.grad(first.square().sum(), weight)
        found.append((first, second))
    for expected, gradient in zip(*found):
        assert torch.allclose(gradient, expected, rtol=1e-4, atol=1e-3 * float(expected.abs().max()))


@pytest.mark.parametrize("kind", ["GCN", "SAGE", "Cluster", "GAT"])
def test_a_bias_that_pyg_does_not_have_counts(kind, device):
    torch.manual_seed(4)
    layer = {"GCN": pyg.GCNConv, "SAGE": pyg.SAGEConv, "Cluster": pyg.ClusterGCNConv,
             "GAT": pyg.GATConv}[kind](6, 4)
    name = {"GCN": "lin", "SAGE": "lin_r", "Cluster": "lin_root", "GAT": "lin"}[kind]
    setattr(layer, name, torch.nn.Linear(6, 4))
    theirs = layer.to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 60, device, seed=3)
    for _ in range(2):
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-5)
