# SPDX-License-Identifier: Apache-2.0
"""Layers of any class whose messages are products run on kernels; all others are left to PyG, with a reason."""

import copy
import functools
import io

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from torch_geometric.nn import MessagePassing

import tessera


class Layer(MessagePassing):
    """What the classes of this file share."""

    def __init__(self, **options):
        super().__init__(**{"aggr": "add", **options})
        self.lin, self.scale = torch.nn.Linear(6, 4), torch.nn.Parameter(torch.tensor([0.7]))

    def forward(self, x, edge_index, weight=None, size=None):
        x = (self.lin(x[0]), x[1]) if isinstance(x, tuple) else self.lin(x)
        return self.propagate(edge_index, x=x, weight=weight, size=size)


class Identity(Layer):
    def message(self, x_j):
        """With a text."""
        return x_j


class Optional(Layer):
    def message(self, x_j, weight=None):
        return x_j if weight is None else weight.view(-1, 1) * x_j


class Statements(Layer):
    def message(self, x_j: torch.Tensor, weight) -> torch.Tensor:
        if weight is not None:
            factor = 2 * weight[:, None] / self.scale
            return -x_j * factor
        return x_j / 3.0


class Unsqueezed(Layer):
    def message(self, x_j, weight):
        return x_j * weight.unsqueeze(-1)


PRODUCTS = [Identity, Optional, Statements, Unsqueezed]


class Added(Layer):
    def message(self, x_j, weight):
        return x_j + weight.view(-1, 1)


class OfBothEnds(Layer):
    def message(self, x_i, x_j):
        return x_i * x_j


class Called(Layer):
    def message(self, x_j):
        return x_j.relu()


class Asking(Layer):
    def message(self, x_j):
        return x_j if self.training else 2 * x_j


class Noting(Layer):
    def message(self, x_j):
        self.noted = x_j
        return x_j


class Updating(Layer):
    def message(self, x_j):
        return x_j

    def update(self, inputs):
        return 2 * inputs


def doubled(function):
    return functools.wraps(function)(lambda *given, **named: 2 * function(*given, **named))


class Decorated(Layer):
    @doubled
    def message(self, x_j):
        return x_j


class OfIndices(Layer):
    def message(self, x_j, index):
        return x_j


OTHERS = [Added, OfBothEnds, Called, Asking, Noting, Updating, Decorated, OfIndices]


def results(layer, x, index, weight, **named):
    given = [tensor.clone().requires_grad_() for tensor in ((x,) if isinstance(x, torch.Tensor) else x) if tensor is not None]
    first = given[0] if isinstance(x, torch.Tensor) else (given[0], given[1] if len(given) > 1 else None)
    weight = None if weight is None else weight.clone().requires_grad_()
    out = layer(first, index, weight, **named)
    wanted = [tensor for tensor in (*given[:1], weight, *layer.parameters()) if tensor is not None]
    return [out, *torch.autograd.grad(out.square().sum(), wanted, allow_unused=True)]


def same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            bound = 1e-6 if mine.dtype == torch.float64 else 1e-4
            assert mine.dtype == theirs.dtype and (mine - theirs).abs().max() <= bound * (1 + theirs.abs().max())


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
@pytest.mark.parametrize("aggr", ["add", "mean", "max", "min"])
@pytest.mark.parametrize("kind", PRODUCTS)
def test_products_run_on_kernels(kind, aggr, flow, device):
    theirs = kind(aggr=aggr, flow=flow).to(device).to(torch.float64 if device.type == "cpu" else torch.float32)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6).to(theirs.lin.weight), random_edges(20, 20, 90, device)
    for weight in (None, torch.rand(90).to(x)):
        if weight is None and kind is Unsqueezed:
            continue
        before = tessera.counters()["runs"]
        same(results(ours, x, index, weight), results(theirs, x, index, weight))
        reads = kind is not Identity and weight is not None
        if aggr in ("max", "min") and (reads or kind is Statements):
            assert ours.tessera_fallback == f"the {aggr} of weighted edges"
        else:
            assert ours.tessera_fallback is None and tessera.counters()["runs"] >= before + 2


@pytest.mark.parametrize("kind", PRODUCTS[:2])
@pytest.mark.parametrize("given", ["pair", "one of a pair"])
def test_two_sets_of_vertices(kind, given, device):
    theirs = kind().to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x = (torch.randn(14, 6, device=device), torch.randn(9, 4, device=device) if given == "pair" else None)
    index = random_edges(9, 14, 60, device)
    for weight in (None, torch.rand(60, device=device)):
        same(results(ours, x, index, weight, size=(14, 9)), results(theirs, x, index, weight, size=(14, 9)))
        assert ours.tessera_fallback is None


@pytest.mark.parametrize("kind", OTHERS)
def test_other_messages_are_left_to_pyg(kind):
    layer = kind()
    with pytest.warns(UserWarning, match="changed nothing"):
        tessera.accelerate(layer)
    assert type(layer) is kind
    assert "tessera has no such layer, and " in str(tessera.explain(layer))


@pytest.mark.parametrize("name", ["a sparse matrix", "a matrix of weights", "three dimensions", "hooks", "a replaced message",
                                  "another message of the class", "a median", "too few weights"])
def test_calls_that_are_no_products(name):
    """They give what PyG gives, also where that is an error."""
    class Own(Layer):
        def message(self, x_j, weight=None):
            return x_j if weight is None else weight * x_j

    theirs = Own(aggr="median" if name == "a median" else "add")
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6), random_edges(20, 20, 90)
    index = index[:, index[1].argsort()]
    given = {"a sparse matrix": (x, torch.sparse_coo_tensor(index.flip(0), torch.ones(90), (20, 20)).coalesce()),
             "a matrix of weights": (x, index, torch.rand(90, 4)), "three dimensions": (torch.randn(2, 20, 6), index),
             "too few weights": (x, index, torch.rand(80, 1))}.get(name, (x, index))
    for layer in (theirs, ours):
        if name == "hooks":
            layer.register_message_forward_hook(lambda layer, given, out: 2 * out)
        elif name == "a replaced message":
            layer.message = lambda x_j, weight: 3 * x_j
    if name == "another message of the class":
        Own.message = lambda self, x_j, weight=None: 2 * x_j
    if name == "too few weights":
        for layer in (theirs, ours):
            with pytest.raises(RuntimeError):
                layer(*given)
        return
    assert torch.allclose(ours(*given), theirs(*given), atol=1e-5)
    assert ours.tessera_fallback is not None
    assert ours.tessera_fallback in str(tessera.explain(ours))


def test_layers_of_pygs_without_a_twin():
    model = torch.nn.ModuleList([pyg.SimpleConv(), pyg.MFConv(6, 6), pyg.SignedConv(6, 4, first_aggr=True), pyg.NNConv(
        6, 4, torch.nn.Linear(3, 24)), pyg.SSGConv(6, 4, alpha=0.1)])
    theirs = copy.deepcopy(model)
    tessera.accelerate(model)
    x, index = torch.randn(20, 6), random_edges(20, 20, 90)
    for ours, layer in zip(model, theirs):
        more = (torch.randn(90, 3),) if isinstance(layer, pyg.NNConv) else ()
        given = (x, index, index) if isinstance(layer, pyg.SignedConv) else (x, index, *more)
        assert torch.allclose(ours(*given), layer(*given), atol=1e-5)
        if isinstance(layer, pyg.NNConv):
            assert type(ours) is type(layer)
        else:
            assert ours.tessera_fallback is None, type(layer)


def test_restored_copied_and_saved():
    theirs = Optional()
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6), random_edges(20, 20, 90)
    expected = theirs(x, index)
    assert isinstance(ours, Optional) and str(ours) == str(theirs) and "spmm/cpu" in str(tessera.explain(ours, x, index))
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    for other in (copy.deepcopy(ours), torch.load(file, weights_only=False)):
        assert type(other) is type(ours) and torch.allclose(other(x, index), expected, atol=1e-5)
        assert other.tessera_fallback is None
    assert type(tessera.restore(ours)) is Optional and torch.allclose(ours(x, index), expected, atol=1e-5)


def test_explained_layers_run_on_kernels_again():
    ours = tessera.accelerate(Optional())
    x, index = torch.randn(20, 6), random_edges(20, 20, 90)
    expected = ours(x, index)
    ours.explain, ours._edge_mask, ours._loop_mask = True, torch.ones(90), index[0] != index[1]
    ours._apply_sigmoid = False
    assert torch.allclose(ours(x, index), expected, atol=1e-5) and "explainer" in ours.tessera_fallback
    ours.explain = False
    assert torch.equal(ours(x, index), expected) and ours.tessera_fallback is None


def test_compiled_code_runs_pygs():
    torch._dynamo.reset()
    ours = tessera.accelerate(Optional())
    x, index = torch.randn(20, 6), random_edges(20, 20, 90)
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    assert torch.allclose(compiled(x, index), ours(x, index), atol=1e-5)


@pytest.mark.parametrize("features", [torch.float32, torch.bfloat16])
def test_types_under_autocast_are_pygs(features):
    theirs = Optional()
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index, weight = torch.randn(20, 6).to(features), random_edges(20, 20, 90), torch.rand(90)
    for rest in ((), (weight,)):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            found, expected = ours(x, index, *rest), theirs(x, index, *rest)
        assert found.dtype == expected.dtype and torch.allclose(found.float(), expected.float(), rtol=2e-2, atol=5e-2)


def test_source_that_changed_is_not_believed(tmp_path, monkeypatch):
    """What was compiled counts, not what the file says by now."""
    import importlib
    import linecache

    text = "from test_messages import Layer\nclass Changed(Layer):\n    def message(self, x_j):\n        return {} * x_j\n"
    file = tmp_path / "changed_layer.py"
    file.write_text(text.format(2))
    monkeypatch.syspath_prepend(tmp_path)
    kind = importlib.import_module("changed_layer").Changed
    layer = kind()
    file.write_text(text.format(3))
    linecache.checkcache()
    with pytest.warns(UserWarning, match="the source of its message is not what was compiled"):
        tessera.accelerate(layer)
