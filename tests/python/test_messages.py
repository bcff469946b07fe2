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


class Named(Layer):
    def message(self, x_j, weight):
        if weight is None:
            weight = self.scale.sigmoid()
        out = torch.mul(weight.view(-1, 1), x_j)
        out *= self.scale if self.training else 2
        return out.div(3).mul(self.scale)


class OfBothEnds(Layer):
    def message(self, x_i, x_j):
        return x_i.tanh() * x_j


class Masked(Layer):
    """As many factors as features."""

    def message(self, x_j, weight):
        return x_j * (torch.arange(4.0).to(self.scale) if weight is None else weight.view(-1, 1).expand(-1, 4).cumsum(1))


class Updating(Layer):
    def message(self, x_j):
        return x_j

    def update(self, inputs, x, weight=None):
        return 2 * inputs + x * (1 if weight is None else weight.sum())


class OfDegrees(Layer):
    """What PyG knows of the graph."""

    def message(self, x_j, index, size_i, ptr, weight=None):
        degree = torch.zeros(size_i, dtype=self.scale.dtype, device=index.device).index_add(0, index, torch.ones_like(
            index, dtype=self.scale.dtype))
        return x_j / degree[index].view(-1, 1)


class Alone(Layer):
    """Messages without features."""

    def forward(self, x, edge_index, weight=None, size=None):
        weight = self.scale.expand(edge_index.size(1)) if weight is None else weight
        return self.propagate(edge_index, size=(x.size(0), x.size(0)), weight=weight)

    def message(self, weight):
        return torch.stack([weight, weight.square()], dim=1)


class Heads(Layer):
    """Features of three dimensions: a number for each edge and head."""

    def __init__(self, **options):
        super().__init__(node_dim=0, **options)

    def forward(self, x, edge_index, weight=None, size=None):
        x = self.lin(x).view(-1, 2, 2)
        return self.propagate(edge_index, x=x, alpha=x.sum(-1)).flatten(1)

    def message(self, x_j, alpha_i, alpha_j):
        return x_j * torch.sigmoid(alpha_i + alpha_j).unsqueeze(-1)


PRODUCTS = [Identity, Optional, Statements, Unsqueezed, Named, OfBothEnds, Masked, Updating, OfDegrees, Alone, Heads]
NEEDS_WEIGHTS = [Unsqueezed]


class Added(Layer):
    def message(self, x_j, weight):
        return x_j + weight.view(-1, 1)


class Squared(Layer):
    def message(self, x_j):
        return x_j * x_j


class Called(Layer):
    def message(self, x_j):
        return x_j.relu()


class Divided(Layer):
    def message(self, x_j):
        return 1 / x_j


class Asking(Layer):
    def message(self, x_j):
        return x_j if x_j.size(0) > 3 else 2 * x_j


class Renamed(Layer):
    def message(self, x_j):
        y = -x_j
        return y.exp()


class Bound(Layer):
    def message(self, x_j):
        return (y := x_j) * y.sum()


class OwnTimes(Layer):
    def mul(self, x_j):
        return x_j + 1

    def message(self, x_j):
        return self.mul(x_j)


class InPlace(Layer):
    def message(self, x_j, weight):
        return x_j * weight.mul_(2).view(-1, 1)


class Augmented(Layer):
    def message(self, x_j, weight):
        weight *= 2
        return x_j * weight.view(-1, 1)


class Noting(Layer):
    def message(self, x_j):
        self.noted = x_j
        return x_j


class Looping(Layer):
    def message(self, x_j):
        for _ in range(2):
            x_j = x_j * 2
        return x_j


class Aggregating(Layer):
    def message(self, x_j):
        return x_j

    def aggregate(self, inputs, index, ptr=None, dim_size=None):
        return 2 * super().aggregate(inputs, index, ptr, dim_size)


class WholeList(Layer):
    def message(self, x_j, edge_index):
        return x_j


def doubled(function):
    return functools.wraps(function)(lambda *given, **named: 2 * function(*given, **named))


class Decorated(Layer):
    @doubled
    def message(self, x_j):
        return x_j


OTHERS = [Added, Squared, Called, Divided, Asking, Renamed, Bound, OwnTimes, InPlace, Augmented, Noting, Looping, Aggregating,
          WholeList, Decorated]


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
        if weight is None and kind in NEEDS_WEIGHTS:
            continue
        before = tessera.counters()["runs"]
        same(results(ours, x, index, weight), results(theirs, x, index, weight))
        passes = 1 if kind is Alone and aggr == "add" else 2  # rows that are summed alone get their gradients from torch
        assert ours.tessera_fallback is None and tessera.counters()["runs"] >= before + passes


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


@pytest.mark.parametrize("name", ["a matrix of weights", "a number", "a half"])
def test_factors_of_other_shapes_and_types(name, device):
    class Own(Layer):
        def message(self, x_j, weight=None):
            return weight * x_j

    for aggr in ("add", "mean", "max"):
        theirs = Own(aggr=aggr).to(device)
        ours = tessera.accelerate(copy.deepcopy(theirs))
        x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 90, device)
        weight = {"a matrix of weights": torch.rand(90, 4), "a number": torch.tensor(0.5),
                  "a half": torch.rand(90, 1).bfloat16()}[name]
        same(results(ours, x, index, weight.to(device)), results(theirs, x, index, weight.to(device)))
        assert ours.tessera_fallback is None


class OfMatrix(Layer):
    """Values of a matrix are what PyG calls edge_weight."""

    def forward(self, x, edge_index, edge_weight=None):
        return self.propagate(edge_index, x=self.lin(x), edge_weight=edge_weight)

    def message(self, x_j, edge_weight):
        return edge_weight.view(-1, 1) * x_j


class OfMatrixAlone(Layer):
    def forward(self, x, edge_index, edge_attr=None):
        return self.propagate(edge_index, x=self.lin(x), edge_attr=edge_attr)

    def message(self, x_j, edge_attr=None):
        return x_j if edge_attr is None else edge_attr * x_j

    def update(self, inputs, x):
        return inputs - x


@pytest.mark.parametrize("layout", ["csr", "coo"])
@pytest.mark.parametrize("kind", [OfMatrix, OfMatrixAlone])
def test_sparse_matrices_are_edges_and_their_values(kind, layout):
    theirs, x, index = kind(), torch.randn(20, 6), torch.unique(random_edges(20, 20, 90), dim=1)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    matrix = torch.sparse_coo_tensor(index.flip(0), torch.rand(index.size(1)), (20, 20)).coalesce()
    matrix = matrix.to_sparse_csr() if layout == "csr" else matrix
    assert torch.allclose(ours(x, matrix), theirs(x, matrix), atol=1e-5) and ours.tessera_fallback is None


@pytest.mark.parametrize("aggr", ["add", "mean"])
@pytest.mark.parametrize("values", [True, False])
def test_products_with_sparse_matrices_of_layers_without_a_twin(values, aggr):
    index = torch.unique(random_edges(20, 20, 90), dim=1)
    numbers = torch.rand(index.size(1)) if values else torch.ones(index.size(1))
    matrix, x = torch.sparse_coo_tensor(index.flip(0), numbers, (20, 20)).coalesce().to_sparse_csr(), torch.randn(20, 6)
    for theirs in (pyg.SimpleConv(aggr), pyg.MFConv(6, 4, aggr=aggr), pyg.SSGConv(6, 4, alpha=0.1, aggr=aggr)):
        ours = tessera.accelerate(copy.deepcopy(theirs))
        try:
            expected = theirs(x, matrix)
        except Exception:  # not of every layer of PyG's
            assert isinstance(theirs, pyg.MFConv)
            continue
        assert torch.allclose(ours(x, matrix), expected, atol=1e-5) and ours.tessera_fallback is None


@pytest.mark.parametrize("name", ["features for each of several graphs", "hooks", "a replaced message",
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
    given = {"features for each of several graphs": (torch.randn(2, 20, 6), index),
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


def test_hooks_on_messages_of_edges_alone():
    theirs, index = Alone(), random_edges(20, 20, 90)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    for layer in (theirs, ours):
        layer.register_propagate_forward_hook(lambda layer, given, out: 2 * out)
    x = torch.zeros(20, 1)
    assert torch.allclose(ours(x, index), theirs(x, index)) and ours.tessera_fallback == "hooks on messages"


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


@pytest.mark.parametrize("kind", [Optional, Statements, Updating, Heads, Alone])
def test_compiled_code_runs_kernels(kind):
    """Without a break, and as often as eager code."""
    torch._dynamo.reset()
    ours = tessera.accelerate(kind())
    compiled = torch.compile(ours, fullgraph=True, backend="aot_eager")
    for size in (20, 30):
        x, index = torch.randn(size, 6), random_edges(size, size, 4 * size)
        for weight in (None, torch.rand(4 * size)):
            before = tessera.counters()["runs"]
            expected = ours(x, index, weight)
            after = tessera.counters()["runs"]
            assert torch.allclose(compiled(x, index, weight), expected, atol=1e-5)
            assert tessera.counters()["runs"] - after >= after - before > 0


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
