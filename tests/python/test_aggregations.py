# SPDX-License-Identifier: Apache-2.0
"""How messages are made and aggregated, where somebody chose or changed it: results and gradients are PyG's."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from torch_geometric.nn import aggr
from torch_geometric.utils import to_torch_csr_tensor

import tessera
import tessera.nn

LAYERS = {"GCN": lambda **options: pyg.GCNConv(8, 8, **options),
          "SAGE": lambda **options: pyg.SAGEConv(8, 8, **options),
          "GIN": lambda **options: pyg.GINConv(torch.nn.Linear(8, 8), **options),
          "GAT": lambda **options: pyg.GATConv(8, 4, heads=2, **options),
          "GATv2": lambda **options: pyg.GATv2Conv(8, 4, heads=2, **options),
          "AGNN": lambda **options: pyg.AGNNConv(**options),
          "SGC": lambda **options: pyg.SGConv(8, 8, K=2, **options),
          "APPNP": lambda **options: pyg.APPNP(2, 0.1, **options),
          "Cheb": lambda **options: pyg.ChebConv(8, 8, 3, **options),
          "Transformer": lambda **options: pyg.TransformerConv(8, 4, heads=2, **options),
          "Cluster": lambda **options: pyg.ClusterGCNConv(8, 8, **options)}
OF_ALL_KINDS = ("SAGE", "GIN")  # the others have kernels for sums alone


def pair(kind, device, **options):
    torch.manual_seed(1)
    theirs = LAYERS[kind](**options).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(40, 8, device=device), random_edges(40, 40, 200, device)
    return theirs, ours, x, index[:, index[1].argsort(stable=True)]  # some aggregations want edges in order


def the_same(theirs, ours, x, edges):
    for _ in range(2):  # the second call may take a shorter way
        found = []
        for layer in (ours, theirs):
            features = x.clone().requires_grad_()
            y = layer(features, edges)
            found.append([y, *torch.autograd.grad(y.square().sum(), [features, *layer.parameters()])])
        for mine, expected in zip(*found):
            assert (mine - expected).abs().max() <= 1e-4 * (1 + expected.abs().max())


@pytest.mark.parametrize("name", ["sum", "mean", "max", "min", "mul", "std", "median", "softmax"])
@pytest.mark.parametrize("kind", LAYERS)
def test_given_by_name(kind, name, device):
    theirs, ours, x, index = pair(kind, device, aggr=name)
    the_same(theirs, ours, x, index)
    has_kernels = name == "sum" or kind in OF_ALL_KINDS and name in ("mean", "max", "min")
    assert ours.tessera_fallback == (None if has_kernels else f"the aggregation {name}")


@pytest.mark.parametrize("module", [aggr.SumAggregation, aggr.MeanAggregation, aggr.MaxAggregation, aggr.MinAggregation])
@pytest.mark.parametrize("kind", OF_ALL_KINDS)
def test_given_as_a_module(kind, module, device):
    theirs, ours, x, index = pair(kind, device, aggr=module())
    the_same(theirs, ours, x, index)
    assert ours.tessera_fallback is None


@pytest.mark.parametrize("learned", [aggr.SoftmaxAggregation, aggr.PowerMeanAggregation])
def test_learned(learned, device):
    theirs, ours, x, index = pair("SAGE", device, aggr=learned(learn=True))
    the_same(theirs, ours, x.abs(), index)


@pytest.mark.parametrize("module", [aggr.MeanAggregation, aggr.MaxAggregation, aggr.StdAggregation])
@pytest.mark.parametrize("kind", LAYERS)
def test_replaced(kind, module, device):
    """PyG goes by the module, whatever its name was, and so must the kernels, or leave it to PyG's code."""
    theirs, ours, x, index = pair(kind, device)
    ours(x, index)
    theirs.aggr_module, ours.aggr_module = module(), module()
    the_same(theirs, ours, x, index)


@pytest.mark.parametrize("kind", OF_ALL_KINDS)
def test_renamed(kind, device):
    """Of an edge_index PyG aggregates by the module, of a sparse matrix by the name."""
    theirs, ours, x, index = pair(kind, device)
    ours(x, index)
    theirs.aggr = ours.aggr = "max"
    the_same(theirs, ours, x, index)
    if device.type == "cpu":  # PyG has no largest number of a sparse matrix's rows on a GPU
        the_same(theirs, ours, x, to_torch_csr_tensor(torch.unique(index.flip(0), dim=1), size=(40, 40)))


@pytest.mark.parametrize("kind", LAYERS)
def test_somebody_looks_at_the_aggregation(kind, device):
    theirs, ours, x, index = pair(kind, device)
    ours(x, index)
    handles = [layer.aggr_module.register_forward_hook(lambda module, given, out: 2 * out) for layer in (theirs, ours)]
    the_same(theirs, ours, x, index)
    for handle in handles:
        handle.remove()
    the_same(theirs, ours, x, index)
    assert ours.tessera_fallback is None


@pytest.mark.parametrize("method", ["message", "aggregate", "update"])
@pytest.mark.parametrize("kind", LAYERS)
def test_a_method_of_one_layer(kind, method, device):
    theirs, ours, x, index = pair(kind, device)
    ours(x, index)

    def twice(layer):
        own = getattr(layer, method)
        return lambda *given, **named: 2 * own(*given, **named)

    for layer in (theirs, ours):
        setattr(layer, method, twice(layer))
    the_same(theirs, ours, x, index)
    assert ours.tessera_fallback == "a method for messages that was replaced"
    delattr(ours, method)
    ours(x, index)
    assert ours.tessera_fallback is None


def doubled(base):
    """PyG keeps code that it writes for a class by the class's name."""
    if issubclass(base, pyg.GCNConv):
        class DoubledGCN(base):
            def message(self, x_j, edge_weight):
                return 2 * edge_weight.view(-1, 1) * x_j

        return DoubledGCN

    class DoubledSAGE(base):
        def message(self, x_j):
            return 2 * x_j

    return DoubledSAGE


@pytest.mark.parametrize("kind", ["GCNConv", "SAGEConv"])
def test_a_subclass_with_messages_of_its_own(kind, device):
    made = []
    for module in (pyg, tessera.nn):
        torch.manual_seed(1)
        made.append(doubled(getattr(module, kind))(8, 4).to(device))
    theirs, ours = made
    the_same(theirs, ours, torch.randn(40, 8, device=device), random_edges(40, 40, 200, device))
    assert ours.tessera_fallback == "a method for messages that was replaced"


def test_a_subclass_with_nothing_of_its_own_runs_kernels(device):
    class Named(tessera.nn.GCNConv):
        pass

    layer = Named(8, 4).to(device)
    layer(torch.randn(40, 8, device=device), random_edges(40, 40, 200, device))
    assert layer.tessera_fallback is None


@pytest.mark.parametrize("bits", [None, 8])
def test_layers_of_few_bits_have_sums_alone(bits):
    layer = tessera.nn.GCNConv(8, 4, bits=bits, aggr="max")
    x, index = torch.randn(40, 8), random_edges(40, 40, 200, repeated=False)
    if bits is None:
        layer(x, index)
        assert layer.tessera_fallback == "the aggregation max"
    else:
        with pytest.raises(ValueError, match="bits= cannot run with the aggregation max"):
            layer(x, index)


@pytest.mark.parametrize("kind", ["SAGE", "GIN", "GAT"])
def test_a_size_that_is_another(kind, device):
    """PyG refuses it with a ValueError."""
    theirs, ours, x, index = pair(kind, device)
    for size in ((40, 40), None):
        assert torch.allclose(ours(x, index, size=size), theirs(x, index, size=size), atol=1e-4)
    for size, place in (((40, 30), 1), ((30, 40), 0)):
        for layer, message in ((theirs, "expected size 30"), (ours, rf"size\[{place}\] is 30, but x has 40 rows")):
            with pytest.raises(ValueError, match=message):
                layer(x, index, size=size)
