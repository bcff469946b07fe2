# SPDX-License-Identifier: Apache-2.0
"""Transforms of functions (torch.func): right, or refused."""

import copy
import threading

import pytest
import torch
import torch.autograd.forward_ad as forward_ad
import torch_geometric.nn as pyg
from conftest import random_edges
from torch.func import functional_call, grad, jacrev, jvp, vmap

import tessera
from tessera._derivatives import gradients_of

LAYERS = {"GCN": lambda: pyg.GCNConv(6, 4), "SAGE": lambda: pyg.SAGEConv(6, 4),
          "GIN": lambda: pyg.GINConv(torch.nn.Linear(6, 4)), "GAT": lambda: pyg.GATConv(6, 4, heads=2),
          "GATv2": lambda: pyg.GATv2Conv(6, 4), "Cheb": lambda: pyg.ChebConv(6, 4, 3),
          "SAGE max": lambda: pyg.SAGEConv(6, 4, aggr="max"), "SGC": lambda: pyg.SGConv(6, 4, K=2),
          "AGNN": lambda: pyg.AGNNConv(), "Transformer": lambda: pyg.TransformerConv(6, 4, heads=2)}


def close(a, b):
    assert torch.allclose(a, b, rtol=1e-3, atol=1e-4 * (1 + float(b.abs().max())))


def pair(kind, device):
    torch.manual_seed(2)
    theirs = LAYERS[kind]().to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 90, device)
    for _ in range(2):  # from the second call on, layers take a short way
        ours(x, index)
    return theirs, ours, x, index


@pytest.mark.parametrize("kind", LAYERS)
class TestLayers:
    """They run PyG's code, and say so."""

    def test_gradients_of_parameters(self, kind, device):
        theirs, ours, x, index = pair(kind, device)
        found = [grad(lambda parameters: functional_call(layer, parameters, (x, index)).square().sum())(
            dict(layer.named_parameters())) for layer in (ours, theirs)]
        for name in found[1]:
            close(found[0][name], found[1][name])
        assert ours.tessera_fallback == "a transform of torch.func"
        ours(x, index)
        assert ours.tessera_fallback is None

    def test_batches_of_features(self, kind, device):
        theirs, ours, x, index = pair(kind, device)
        many = torch.randn(3, *x.shape, device=device)
        close(vmap(lambda x: ours(x, index))(many), vmap(lambda x: theirs(x, index))(many))

    def test_tangents(self, kind, device):
        theirs, ours, x, index = pair(kind, device)
        tangents = [jvp(lambda x: layer(x, index), (x,), (torch.ones_like(x),))[1]
                    for layer in (ours, theirs)]
        close(*tangents)
        with forward_ad.dual_level():
            dual = forward_ad.make_dual(x, torch.ones_like(x))
            found = forward_ad.unpack_dual(ours(dual, index)).tangent
            close(found, tangents[1])
        assert ours.tessera_fallback == "forward-mode derivatives"


    def test_batches_of_gradients(self, kind, device):
        theirs, ours, x, index = pair(kind, device)
        many = torch.randn(3, 20, ours(x, index).size(1), device=device)
        found = []
        x.requires_grad_()
        for layer in (ours, theirs):
            wanted, y = [x, *layer.parameters()], layer(x, index)
            found.append(torch.autograd.grad(y, wanted, many, is_grads_batched=True, retain_graph=True))
            found.append(vmap(lambda one: torch.autograd.grad(y, wanted, one, retain_graph=True))(many))
        assert ours.tessera_fallback is None
        for mine, mapped, wanted in zip(*found[:3]):
            close(mine, wanted)
            close(mapped, wanted)

    def test_jacobians(self, kind, device):
        theirs, ours, x, index = pair(kind, device)
        for at_once in (False, True):
            close(*(torch.autograd.functional.jacobian(lambda x: layer(x, index), x, vectorize=at_once)
                    for layer in (ours, theirs)))
        assert ours.tessera_fallback is None

    def test_batches_of_no_gradients(self, kind, device):
        _, ours, x, index = pair(kind, device)
        parameters, y = list(ours.parameters()), ours(x, index)
        none = torch.randn(0, *y.shape, device=device)
        found = vmap(lambda one: torch.autograd.grad(y, parameters, one, retain_graph=True))(none)
        assert [tuple(each.shape) for each in found] == [(0, *each.shape) for each in parameters]


def test_batches_of_gradients_of_functions(device):
    index, x = random_edges(20, 20, 90, device), torch.randn(20, 6, device=device, requires_grad=True)
    scores = torch.randn(90, 2, device=device, requires_grad=True)
    for given, function in ((x, lambda: tessera.sddmm(index, x, x)), (scores, lambda: tessera.edge_softmax(index, scores))):
        y = function()
        many = torch.randn(3, *y.shape, device=device)
        found = torch.autograd.grad(y, given, many, is_grads_batched=True, retain_graph=True)[0]
        close(found, torch.stack([torch.autograd.grad(y, given, one, retain_graph=True)[0] for one in many]))


@pytest.mark.parametrize("level", [1, 3])
def test_batches_of_gradients_in_another_thread(level):
    """As on a GPU, whose gradients torch computes in a thread that does not know the level."""
    many, found = torch.randn(3, 20, 4), []
    batch = torch._add_batch_dim(many, 0, level)
    thread = threading.Thread(target=lambda: found.extend(gradients_of(lambda one: [one.sum(0)], batch)))
    thread.start()
    thread.join()
    assert torch.equal(torch._remove_batch_dim(found[0], level, 3, 0), torch.stack([one.sum(0) for one in many]))


def gathered_sums(index, x, weight, vertices):
    return x.new_zeros(vertices, x.size(1)).index_add(0, index[1], weight[:, None] * x[index[0]])


class TestSums:
    def functions(self, device):
        index = random_edges(20, 20, 90, device)
        graph = tessera.Graph(index, 20, 20)
        return (lambda x, weight: tessera.spmm(graph, x, weight),
                lambda x, weight: gathered_sums(index, x, weight, 20),
                torch.randn(20, 6, device=device), torch.rand(90, device=device))

    @pytest.mark.parametrize("of", [0, 1])
    def test_gradients(self, of, device):
        ours, plain, x, weight = self.functions(device)
        close(*(grad(lambda x, w: f(x, w).square().sum(), argnums=of)(x, weight) for f in (ours, plain)))

    def test_gradients_of_gradients(self, device):
        ours, plain, x, weight = self.functions(device)
        close(*(grad(lambda w: grad(lambda x: f(x, w).pow(3).sum())(x).square().sum())(weight)
                for f in (ours, plain)))

    def test_maps(self, device):
        ours, plain, x, weight = self.functions(device)
        many, weights = torch.randn(3, 20, 6, device=device), torch.rand(3, 90, device=device)
        close(*(vmap(f, in_dims=(0, None))(many, weight) for f in (ours, plain)))
        close(*(vmap(f, in_dims=(None, 0))(x, weights) for f in (ours, plain)))
        close(*(vmap(grad(lambda x: f(x, weight).square().sum()))(many) for f in (ours, plain)))
        close(*(jacrev(lambda w: f(x, w).square().sum(0))(weight) for f in (ours, plain)))

    def test_maps_of_nothing(self, device):
        ours, plain, x, weight = self.functions(device)
        none = torch.randn(0, 20, 6, device=device)
        for f in (ours, plain):
            assert vmap(f, in_dims=(0, None))(none, weight).shape == (0, 20, 6)
            assert vmap(f, in_dims=(None, 0))(x, torch.rand(0, 90, device=device)).shape == (0, 20, 6)
            assert vmap(grad(lambda x: f(x, weight).square().sum()))(none).shape == (0, 20, 6)
            factors = weight.clone().requires_grad_()
            vmap(f, in_dims=(0, None))(none, factors).sum().backward()
            assert torch.equal(factors.grad, torch.zeros_like(weight))

    def test_tangents(self, device):
        ours, plain, x, weight = self.functions(device)
        close(*(jvp(lambda x: f(x, weight), (x,), (x + 1,))[1] for f in (ours, plain)))
        close(*(jvp(f, (x, weight), (x + 1, 2 * weight))[1] for f in (ours, plain)))
        close(*(grad(lambda w: jvp(lambda x: f(x, w), (x,), (x + 1,))[1].square().sum())(weight) for f in (ours, plain)))
        with forward_ad.dual_level():
            arguments = (x, random_edges(20, 20, 90, device), None, None, None, 20, 20, 0, 0, 1.0, 0, 0, 0)
            with pytest.raises(NotImplementedError, match="forward-mode derivative of torch.ops.tessera.spmm"):
                torch.ops.tessera.spmm(forward_ad.make_dual(x, x), *arguments[1:])

    def test_the_operator_itself_refuses(self, device):
        x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 90, device)
        with pytest.raises(NotImplementedError, match="knows no torch.func"):
            grad(lambda x: torch.ops.tessera.spmm(x, index, None, None, None, 20, 20, 0, 0, 1.0, 0, 0,
                                                  0)[0].sum())(x)


@pytest.mark.parametrize("form", ["additive", "v2", "dot"])
def test_attention(form, device):
    index, wide = random_edges(20, 20, 90, device), 2 if form == "additive" else 6
    target, source = torch.randn(2, 20, wide, device=device)
    vector = torch.randn(6, device=device) if form == "v2" else None
    value = torch.randn(20, 6, device=device)

    def loss(value, source):
        return tessera.attention(index, target, source, value, vector, form=form, heads=2).square().sum()

    leaves = value.clone().requires_grad_(), source.clone().requires_grad_()
    loss(*leaves).backward()
    for found, leaf in zip(grad(loss, argnums=(0, 1))(value, source), leaves):
        close(found, leaf.grad)
    close(grad(lambda source: grad(loss)(value, source).square().sum())(source), torch.autograd.grad(
        torch.autograd.grad(loss(*leaves), leaves[0], create_graph=True)[0].square().sum(), leaves[1])[0])


def test_compiled_transforms(device):
    theirs, ours, x, index = pair("GCN", device)
    torch._dynamo.reset()
    compiled = torch.compile(grad(lambda x: ours(x, index).square().sum()), backend="aot_eager")
    close(compiled(x), grad(lambda x: theirs(x, index).square().sum())(x))
