# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong gives one clear exception of the kind that Python users expect."""

import pytest
import torch

import tessera
from tessera import _library, _operators, errors

INDEX = torch.tensor([[0, 1, 2], [1, 2, 0]])
X = torch.ones(3, 4)


def test_an_index_out_of_range_is_an_index_error():
    with pytest.raises(IndexError, match=r"index 7 is outside \[0, 3\)"):
        tessera.spmm(torch.tensor([[0, 7], [1, 2]]), X)
    with pytest.raises(IndexError, match="outside"):
        tessera.spmm(torch.tensor([[0, 1], [1, -2]]), X)


def test_types():
    with pytest.raises(TypeError, match="edge_index has type torch.float32"):
        tessera.spmm(INDEX.float(), X)
    with pytest.raises(TypeError, match="x has type torch.int64"):
        tessera.spmm(INDEX, X.long())
    with pytest.raises(TypeError, match="edge_weight has type"):
        tessera.spmm(INDEX, X, torch.ones(3, dtype=torch.int64))
    with pytest.raises(TypeError, match="holds no edges"):
        tessera.spmm("edges", X)


def test_what_is_no_tensor():
    scores = torch.ones(3, 1)
    cases = [("x is a ndarray", lambda: tessera.spmm(INDEX, X.numpy())),
             ("x is a NoneType", lambda: tessera.spmm(INDEX, None)),
             ("edge_weight is a list", lambda: tessera.spmm(INDEX, X, [1.0, 2.0, 3.0])),
             ("bias is a list", lambda: tessera.spmm(INDEX, X, bias=[1.0] * 4)),
             ("u is a list", lambda: tessera.sddmm(INDEX, X.tolist(), X)),
             ("v is a list", lambda: tessera.sddmm(INDEX, X, X.tolist())),
             ("target is a list", lambda: tessera.attention(INDEX, scores.tolist(), scores, X)),
             ("value is a list", lambda: tessera.attention(INDEX, scores, scores, X.tolist())),
             ("edge_term is a list", lambda: tessera.attention(INDEX, scores, scores, X, edge_term=[[1.0]] * 3)),
             ("model is a int", lambda: tessera.restore(3)),
             ("model is a NoneType", lambda: tessera.explain(None))]
    for what, run in cases:
        with pytest.raises(TypeError, match=f"^{what}, not a t"):
            run()
    with pytest.raises(TypeError, match=r"x has layout torch.sparse_coo: use x.to_dense\(\)"):
        tessera.spmm(INDEX, X.to_sparse())


def test_types_that_differ():
    """Nothing is cast without autocast, which casts all."""
    wide, scores = X.double(), torch.ones(3, 4)
    cases = [("bias has type", lambda: tessera.spmm(INDEX, X, bias=wide[0])),
             ("v has type", lambda: tessera.sddmm(INDEX, X, wide)),
             ("target has type", lambda: tessera.attention(INDEX, wide, scores, X, heads=4)),
             ("source has type", lambda: tessera.attention(INDEX, scores, wide, X, heads=4)),
             ("vector has type", lambda: tessera.attention(INDEX, X, X, X, wide[0], form="v2")),
             ("source has type", lambda: tessera.attention_weights(INDEX, scores, wide, X, heads=4)),
             ("source has type", lambda: tessera.attention_weights(INDEX, scores.requires_grad_(), wide, X, heads=4)),
             ("vector has type", lambda: tessera.attention_weights(INDEX, X, X, X, wide[0], form="v2"))]
    for what, run in cases:
        with pytest.raises(TypeError, match=f"{what} torch.float64, the features torch.float32"):
            run()
    ops, graph = torch.ops.tessera, (INDEX, None, 3, 3, 0, 0)
    for run in (lambda: ops.spmm(X, INDEX, None, None, wide[0], 3, 3, 0, 0, 1.0, 0, 0, 0),
                lambda: ops.sddmm(X, wide, *graph, 1, 0, 0),
                lambda: ops.attention(X, wide, X, None, None, None, *graph, 2, 1, 1.0, 0.2, 0.0, 0)):
        with pytest.raises(RuntimeError, match="of different types"):
            run()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        assert tessera.spmm(INDEX, X, bias=X[0].bfloat16()).dtype == torch.bfloat16
        assert tessera.attention(INDEX, scores.bfloat16(), scores, X, heads=4).dtype == torch.bfloat16


def test_shapes_of_the_operator_itself():
    rest = (3, 3, 0, 0, 1.0, 0, 0, 0)
    for x, bias, problem in ((X[0], None, "features: a tensor of 1 dimensions"),
                             (X, torch.ones(2, 2), "bias: a tensor of 2 dimensions, where a vector of size 4"),
                             (X, torch.ones(1), "bias: a vector of size 1, where a vector of size 4")):
        with pytest.raises(RuntimeError, match=f"^tessera invalid_argument: {problem}"):
            torch.ops.tessera.spmm(x, INDEX, None, None, bias, *rest)


def test_shapes():
    with pytest.raises(ValueError, match=r"bias has shape \(3,\): use \(4,\)"):
        tessera.spmm(INDEX, X, bias=torch.ones(3))
    with pytest.raises(ValueError, match=r"use \(2, edges\)"):
        tessera.spmm(INDEX.t(), X)
    with pytest.raises(ValueError, match="x has 4 rows for 3 vertices"):
        tessera.spmm(tessera.Graph(INDEX, 3, 3), torch.ones(4, 4))
    with pytest.raises(ValueError, match=r"use \(vertices, features\)"):
        tessera.spmm(INDEX, torch.ones(3))
    with pytest.raises(ValueError, match="edge_weight has 2 numbers for 3 edges"):
        tessera.spmm(INDEX, X, torch.ones(2))
    with pytest.raises(ValueError, match=r"edge_weight has shape \(3, 1, 1\): use \(3,\) or \(3, heads\)"):
        tessera.spmm(INDEX, X, torch.ones(3, 1, 1))
    with pytest.raises(ValueError, match=r"x has shape \(\): use \(vertices, features\)"):
        tessera.spmm(INDEX, torch.tensor(1.0))
    with pytest.raises(ValueError, match=r"scores has shape \(3,\): use \(edges, heads\)"):
        tessera.edge_softmax(INDEX, torch.ones(3))
    with pytest.raises(ValueError, match="do not divide into 3 heads"):
        tessera.attention(INDEX, torch.ones(3, 3), torch.ones(3, 3), X, heads=3)
    with pytest.raises(ValueError, match="source has 2 rows for 3 vertices"):
        tessera.attention_weights(INDEX, torch.ones(3, 1), torch.ones(2, 1), X)
    with pytest.raises(ValueError, match="no weights of the form 'cosine'"):
        tessera.attention_weights(INDEX, X, X, X, form="cosine")
    with pytest.raises(ValueError, match="not square"):
        tessera.spmm(tessera.Graph(INDEX, 4, 3), X, norm="symmetric")


def test_shapes_of_heads_and_terms():
    scores = torch.ones(3, 2)
    with pytest.raises(ValueError, match="4 features do not divide into 3 heads"):
        tessera.spmm(INDEX, X, torch.ones(3, 3))
    with pytest.raises(ValueError, match=r"edge_term has shape \(3, 1\): use \(3, 2\)"):
        tessera.attention(INDEX, scores, scores, X, heads=2, edge_term=torch.ones(3, 1))
    with pytest.raises(TypeError, match="edge_term has type torch.int64"):
        tessera.attention(INDEX, scores, scores, X, heads=2, edge_term=torch.ones(3, 2).long())
    with pytest.raises(ValueError, match="u has 4 features, v has 2"):
        tessera.sddmm(INDEX, X, scores)
    for heads in (0, -1):
        for run in (lambda: tessera.attention(INDEX, scores, scores, X, heads=heads),
                    lambda: tessera.attention_weights(INDEX, scores, scores, X, heads=heads),
                    lambda: tessera.sddmm(INDEX, X, X, heads=heads)):
            with pytest.raises(ValueError, match=f"there are {heads} heads: use 1 or more"):
                run()
    with pytest.raises(ValueError, match="4 features do not divide into 3 heads"):
        tessera.sddmm(INDEX, X, X, heads=3)
    with pytest.raises(ValueError, match="a vector belongs to the forms v2"):
        tessera.attention(INDEX, X, X, X, form="v2")


@pytest.mark.parametrize("layer", [tessera.nn.GCNConv, tessera.nn.SAGEConv, tessera.nn.GATConv])
def test_layers(layer):
    layer = layer(4, 2)
    with pytest.raises(TypeError, match="edge_index has type torch.float32: use int64 or int32"):
        layer(X, INDEX.float())
    for wrong in (INDEX[:1], INDEX.flatten(), INDEX.t()):
        with pytest.raises(ValueError, match=r"edge_index has shape .*: use \(2, edges\)"):
            layer(X, wrong)
    with pytest.raises(ValueError, match=r"x has shape \(4,\): use \(vertices, features\)"):
        layer(X[0], INDEX)
    with pytest.raises(IndexError, match="outside"):
        layer(X, INDEX + 3)


WEIGHTED = pytest.mark.parametrize("layer", [tessera.nn.GCNConv(4, 2), tessera.nn.SGConv(4, 2), tessera.nn.APPNP(2, 0.1),
                                              tessera.nn.ChebConv(4, 2, 2)], ids=lambda layer: type(layer).__name__)


@WEIGHTED
def test_weighted_edges_out_of_range(layer, device):
    """Before torch adds weights by them, which on a GPU would end all that follows. Also where indices change."""
    layer, x, weight = layer.to(device), X.to(device), torch.ones(3, device=device)
    for position, index in (((0, 1), 3), ((1, 2), -1)):
        edges = INDEX.to(device, copy=True)
        layer(x, edges, weight)
        edges[position] = index
        with pytest.raises(IndexError, match=rf"edge_index: index {index} is outside \[0, 3\)"):
            layer(x, edges, weight)
    layer(x, INDEX.to(device), weight)
    layer.to("cpu")


@WEIGHTED
def test_weights_of_other_edges(layer):
    with pytest.raises(ValueError, match="edge_weight has 2 numbers for 3 edges"):
        layer(X, INDEX, torch.ones(2))


def test_sizes_without_numbers():
    """On the device meta, which has shapes alone."""
    assert tessera.spmm(INDEX.to("meta"), X.to("meta")).shape == X.shape


def test_words():
    with pytest.raises(ValueError, match="unknown reduction 'median'"):
        tessera.spmm(INDEX, X, reduce="median")
    for run in (lambda: tessera.spmm(INDEX, X, loops="all"),
                lambda: tessera.spmm(INDEX, X, torch.ones(3), loops="all"),
                lambda: tessera.sddmm(INDEX, X, X, loops="all"),
                lambda: tessera.edge_softmax(INDEX, torch.ones(3, 1), loops="all")):
        with pytest.raises(ValueError, match="unknown loops 'all': use given, one_each, dropped or one_more"):
            run()
    with pytest.raises(ValueError, match="unknown norm 'row': use symmetric, mean or None"):
        tessera.spmm(INDEX, X, norm="row")
    with pytest.raises(ValueError, match="limits of -1 entries"):
        tessera.set_cache_limits(-1)
    with pytest.raises(ValueError, match="unknown form"):
        tessera.attention(INDEX, X, X, X, form="dotted")
    with pytest.raises(ValueError, match="unknown precision"):
        tessera.accelerate(torch.nn.Linear(1, 1), precision="int3")


def test_weighted_maxima_of_repeated_edges():
    repeated = torch.tensor([[0, 0], [1, 1]])
    with pytest.raises(NotImplementedError, match="repeated"):
        tessera.spmm(repeated, X, torch.ones(2), reduce="max")


def test_another_device():
    graph = tessera.Graph(INDEX, 3, 3)
    with pytest.raises(ValueError, match="x lies on meta, the graph on cpu"):
        tessera.spmm(graph, X.to("meta"))
    with pytest.raises(ValueError, match="edge_weight lies on meta, the graph on cpu"):
        tessera.spmm(graph, X, torch.ones(3, device="meta"))
    with pytest.raises(ValueError, match="v lies on meta, the graph on cpu"):
        tessera.sddmm(graph, X, X.to("meta"))
    with pytest.raises(ValueError, match="value lies on meta, the graph on cpu"):
        tessera.attention(graph, X, X, X.to("meta"), heads=4)


def test_operators_that_are_not_installed():
    if not tessera.has_cuda():
        from torch._subclasses.fake_tensor import FakeTensorMode

        with FakeTensorMode(), pytest.raises(RuntimeError, match="for this device are not installed"):
            index = torch.zeros(2, 3, dtype=torch.int64, device="cuda")
            tessera.spmm(tessera.Graph(index, 3, 3), torch.ones(3, 4, device="cuda"))
    with pytest.raises(RuntimeError, match="for this device are not installed"):
        errors.run(_operators.edge_softmax, X.to_sparse(), INDEX, None, 3, 3, 0, 0, 0)


def test_layers_whose_operators_are_not_installed(monkeypatch):
    """As with the operators for CUDA alone."""
    monkeypatch.setattr(_library, "_cpu_is_loaded", False)
    for layer in (tessera.nn.GCNConv(4, 2), tessera.nn.GATConv(4, 2)):
        assert layer(X, INDEX).shape == (3, 2)
        assert layer.tessera_fallback == "the operators for the CPU are not installed"


def test_indices_have_no_gradient():
    with pytest.raises(RuntimeError, match="floating point"):
        INDEX.clone().requires_grad_()


@pytest.mark.parametrize("targets, sources", [(0, 0), (5, 5), (0, 4), (4, 0)])
def test_graphs_without_edges(targets, sources):
    graph = tessera.Graph(torch.empty(2, 0, dtype=torch.int64), targets, sources)
    for reduce in ("sum", "mean", "max", "min"):
        x = torch.ones(sources, 4, requires_grad=True)
        y = tessera.spmm(graph, x, reduce=reduce)
        assert torch.equal(y, torch.zeros(targets, 4))
        y.sum().backward()
        assert torch.equal(x.grad, torch.zeros(sources, 4))
    out = tessera.attention(graph, torch.ones(targets, 1), torch.ones(sources, 1),
                            torch.ones(sources, 4))
    assert torch.equal(out, torch.zeros(targets, 4))
    assert tessera.sddmm(graph, torch.ones(targets, 2), torch.ones(sources, 2)).shape == (0, 1)
