# SPDX-License-Identifier: Apache-2.0
"""What tessera.accelerate takes, and what it says of it."""

import copy
import inspect
import io
import logging
import warnings

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera
import tessera.nn


class Plain(pyg.GCNConv):
    """As PyG's."""


class WithExtras(pyg.SAGEConv):
    """Defaults, and a method that PyG does not know."""

    def __init__(self, channels):
        super().__init__(channels, channels, normalize=True)

    def reset_parameters(self):
        super().reset_parameters()

    def norm_of_weights(self):
        return self.lin_l.weight.norm()


class Doubled(pyg.GCNConv):
    def message(self, x_j, edge_weight):
        return 2 * super().message(x_j, edge_weight)


class Other(pyg.GCNConv):
    def forward(self, x, edge_index):
        return super().forward(x, edge_index).relu()


def same(theirs, ours, x, index):
    assert torch.allclose(theirs(x, index), ours(x, index), atol=1e-5)


@pytest.mark.parametrize("made", [lambda: Plain(8, 8), lambda: WithExtras(8)], ids=["plain", "with extras"])
class TestSubclassesThatChangeNothing:
    def test_are_taken(self, made, device):
        theirs = made().to(device)
        ours = tessera.accelerate(copy.deepcopy(theirs))
        x, index = torch.randn(20, 8, device=device), random_edges(20, 20, 60, device)
        before = tessera.counters()["runs"]
        same(theirs, ours, x, index)
        assert tessera.counters()["runs"] > before and ours.tessera_fallback is None
        assert isinstance(ours, type(theirs)) and isinstance(ours, tessera.nn.GCNConv | tessera.nn.SAGEConv)
        assert str(ours) == str(theirs) and "spmm/" in str(tessera.explain(ours, x, index))
        assert tessera.explain(theirs) == [f"{type(theirs).__name__}: PyG (not accelerated: call tessera.accelerate)"]
        assert type(tessera.restore(ours)) is type(theirs)
        same(theirs, ours, x, index)

    def test_are_copied_and_saved(self, made):
        ours = tessera.accelerate(made())
        x, index = torch.randn(20, 8), random_edges(20, 20, 60)
        file = io.BytesIO()
        torch.save(ours, file)
        file.seek(0)
        for other in (copy.deepcopy(ours), torch.load(file, weights_only=False)):
            assert type(other) is type(ours)
            same(ours, other, x, index)
            assert other.tessera_fallback is None


@pytest.mark.parametrize("kind, name", [(Doubled, "message"), (Other, "forward")])
def test_subclasses_with_code_of_their_own_stay(kind, name):
    layer = kind(8, 8)
    with pytest.warns(UserWarning, match="tessera.accelerate changed nothing"):
        tessera.accelerate(layer)
    assert type(layer) is kind
    assert tessera.explain(layer) == [f"{kind.__name__}: PyG (it has its own {name} in the place of GCNConv's)"]


def test_what_was_taken_is_logged(caplog):
    model = torch.nn.ModuleList([pyg.GCNConv(4, 4), pyg.CGConv(4), Other(4, 4), torch.nn.Linear(4, 4)])
    with caplog.at_level(logging.INFO, "tessera"), warnings.catch_warnings():
        warnings.simplefilter("error")
        tessera.accelerate(model)
    assert caplog.messages == ["1 of 3 layers run on tessera's kernels; left to PyG: 1 CGConv (tessera has no such layer, and "
                               "its messages are more than features of sources times what is made without them), 2 Other (it has "
                               "its own forward in the place of GCNConv's)"]
    assert tessera.explain(model).summary == caplog.messages[0] and tessera.explain(model).accelerated == 1


def test_nothing_to_take_is_a_warning():
    with pytest.warns(UserWarning, match="changed nothing: Linear has no layer of PyG's"):
        tessera.accelerate(torch.nn.Linear(4, 4))
    with pytest.warns(UserWarning, match=r"changed nothing: CGConv: PyG \(tessera has no such layer, and its"):
        tessera.accelerate(pyg.CGConv(4))


def test_layers_in_a_plain_list_are_a_warning():
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = pyg.GCNConv(4, 4)
            self.others = [pyg.GCNConv(4, 4), torch.nn.Sequential(pyg.GATConv(4, 4))]
            self.by_name = {"a": (pyg.SAGEConv(4, 4),), "first": self.first}

    model = Model()
    places = r"others\[0\] \(GCNConv\), others\[1\].0 \(GATConv\), by_name\['a'\]\[0\] \(SAGEConv\)"
    with pytest.warns(UserWarning, match=f"leaves {places} to PyG: .*use torch.nn.ModuleList"):
        tessera.accelerate(model)
    found = tessera.explain(model)
    assert found.accelerated == 1 and len(found) == 4 and "in a plain list" in found[1]


@pytest.mark.parametrize("name", tessera.nn.__all__)
def test_layers_show_their_arguments(name):
    """PyG's, with their defaults, and after them those that are ours."""
    theirs, ours = (list(inspect.signature(getattr(module, name)).parameters.values()) for module in (pyg, tessera.nn))
    shown = [(argument.name, argument.kind, argument.default) for argument in ours if argument.name != "bits"]
    assert shown == [(argument.name, argument.kind, argument.default) for argument in theirs]
    assert all(argument.kind is not inspect.Parameter.VAR_POSITIONAL for argument in ours)
