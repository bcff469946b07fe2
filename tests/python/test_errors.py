# SPDX-License-Identifier: Apache-2.0
"""Whatever is wrong gives one clear exception of the kind that Python users expect."""

import pytest
import scipy.sparse
import torch
import torch_geometric

import tessera
import tessera.nn
from tessera import _library, _operators, errors

INDEX = torch.tensor([[0, 1, 2], [1, 2, 0]])
X = torch.ones(3, 4)


def test_an_index_out_of_range_is_an_index_error():
    with pytest.raises(IndexError, match=r"edge_index: source index 7 is outside \[0, 3\)"):
        tessera.spmm(torch.tensor([[0, 7], [1, 2]]), X)
    with pytest.raises(IndexError, match=r"edge_index: target index -2 is outside \[0, 3\)"):
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
        with pytest.raises(RuntimeError, match="dtype: .*float64"):
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


def test_a_layer_of_a_model_is_named_by_its_place():
    model = tessera.accelerate(torch_geometric.nn.GCN(4, 8, num_layers=2))
    with pytest.raises(ValueError, match=r"^GCNConv \(convs.0\): x has 5 features, the layer takes 4$"):
        model(torch.ones(3, 5), INDEX)
    model.convs[1].double()
    with pytest.raises(TypeError, match=r"^GCNConv \(convs.1\): x has type torch.float32, the layer's parameters"):
        model(X, INDEX)
    with pytest.raises(RuntimeError, match="mat1 and mat2"):  # PyG's own words
        tessera.restore(model)(torch.ones(3, 5), INDEX)


def test_an_error_of_a_users_network_that_is_no_runtime_error():
    class Failing(torch.nn.Module):
        def forward(self, x):
            raise ValueError("mine")

    with pytest.raises(ValueError, match="^mine$"):
        tessera.nn.GINConv(Failing())(torch.ones(3, 5), INDEX)


def test_sparse_features_that_pyg_does_not_take():
    with pytest.raises(TypeError, match=r"^SAGEConv: x has layout torch.sparse_coo: use x.to_dense\(\)"):
        tessera.nn.SAGEConv(4, 2)(X.to_sparse(), INDEX)


@pytest.mark.parametrize("kind, fails", [("GCNConv", False), ("APPNP", False), ("SGConv", True), ("ChebConv", True)])
def test_weights_of_edges_in_a_wider_type(kind, fails):
    """As PyG, which computes in the wider one, and fails where features then meet parameters."""
    arguments = {"APPNP": (2, 0.1), "ChebConv": (4, 2, 3)}.get(kind, (4, 2))
    torch.manual_seed(1)
    theirs = getattr(torch_geometric.nn, kind)(*arguments)
    ours = getattr(tessera.nn, kind)(*arguments)
    ours.load_state_dict(theirs.state_dict())
    x, weight = torch.randn(3, 4), torch.rand(3, dtype=torch.float64)
    if fails:
        with pytest.raises(RuntimeError):
            theirs(x, INDEX, weight)
        with pytest.raises(TypeError, match=rf"^{kind}: edge_weight has type torch.float64, x torch.float32: use "):
            ours(x, INDEX, weight)
        return
    expected, found = theirs(x, INDEX, weight), ours(x, INDEX, weight)
    assert found.dtype == expected.dtype == torch.float64 and torch.equal(found, expected)
    assert "weights of edges of type torch.float64" in ours.tessera_fallback


def test_what_belongs_to_operators():
    cases = [(ValueError, "vector lies on meta, value on cpu",
              lambda: tessera.attention(INDEX, X, X, X, torch.ones(4, device="meta"), form="v2")),
             (ValueError, r"value has shape \(4,\): use", lambda: tessera.attention(
                 INDEX, None, None, X[0], torch.ones(1), form="cosine")),
             (TypeError, "x is a Tensor, not codes: use bits.quantise", lambda: tessera.bits.aggregate(INDEX, X))]
    for kind, words, run in cases:
        with pytest.raises(kind, match=words):
            run()


def test_an_error_of_a_users_network_is_its_own():
    class Failing(torch.nn.Module):
        def forward(self, x):
            raise RuntimeError("mine")

    with pytest.raises(RuntimeError, match="^mine$"):
        tessera.nn.GINConv(Failing())(X, INDEX)


def test_graphs_of_what_holds_none(device):
    Graph, index = tessera.Graph, INDEX.to(device)
    weight = torch.ones(3, device=device)
    data = torch_geometric.data.Data(x=X)
    cases = [(TypeError, "edge_index is a list, not a tensor", lambda: Graph([[0, 1], [1, 0]])),
             (TypeError, "edge_index is a ndarray, not a tensor", lambda: Graph(INDEX.numpy())),
             (TypeError, "edge_index has type torch.bool", lambda: Graph(index.bool())),
             (ValueError, r"edge_index has shape \(3,\): use \(2, edges\)", lambda: Graph(index[0])),
             (TypeError, "num_targets is a float, not an int", lambda: Graph(index, 3.0)),
             (TypeError, "num_sources is a str, not an int", lambda: Graph(index, 3, "3")),
             (ValueError, "num_targets is -1: use 0 or more", lambda: Graph(index, -1)),
             (TypeError, "edge_weight is a list, not a tensor", lambda: Graph(index, 3, 3, [1.0] * 3)),
             (TypeError, "edge_weight has type torch.int64: use a float", lambda: Graph(index, 3, 3, weight.long())),
             (ValueError, r"edge_weight has shape \(2,\): use \(3,\)", lambda: Graph(index, 3, 3, weight[:2])),
             (ValueError, "edge_weight lies on meta, the graph on", lambda: Graph(index, 3, 3, weight.to("meta"))),
             (TypeError, "not a tensor: use Graph.of", lambda: Graph.from_sparse(None)),
             (TypeError, "layout torch.strided is no sparse matrix", lambda: Graph.from_sparse(X)),
             (TypeError, "values of type torch.complex64", lambda: Graph.from_sparse(X.to(torch.complex64).to_sparse())),
             (TypeError, "list is no sparse matrix of SciPy", lambda: Graph.from_scipy([])),
             (TypeError, "values of type torch.complex128", lambda: Graph.from_scipy(scipy.sparse.identity(3, complex))),
             (TypeError, "NoneType holds no edges", lambda: Graph.of(None)),
             (TypeError, "list holds no edges", lambda: Graph.of([[0, 1], [1, 0]])),
             (ValueError, "the Data has no edge_index", lambda: Graph.of(data)),
             (IndexError, "outside", lambda: tessera.spmm(Graph(index, 2, 3), X.to(device)))]
    for kind, words, run in cases:
        with pytest.raises(kind, match=words):
            run()


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
    with pytest.raises(ValueError, match="entries is -1: use 0 or more"):
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


@pytest.mark.parametrize("kind", ["GATv2Conv", "TransformerConv"])
def test_layers_that_need_features_of_targets(kind):
    layer = getattr(tessera.nn, kind)((4, 4), 2)
    with pytest.raises(ValueError, match=rf"^{kind}: x\[1\] is None: use a pair of features"):
        layer((torch.randn(3, 4), None), torch.tensor([[0, 1], [1, 2]]))


def test_features_of_edges_without_a_place():
    layer = tessera.nn.GATv2Conv(4, 2)
    with pytest.raises(ValueError, match="^GATv2Conv: edge_attr is given, but the layer has no edge_dim: make it with edge_dim="):
        layer(torch.randn(3, 4), torch.tensor([[0, 1], [1, 2]]), torch.randn(2, 3))


@pytest.mark.parametrize("reduce", ["max", "min"])
def test_maxima_have_no_scales(reduce):
    edges, x = torch.tensor([[0, 1], [1, 2]]), torch.randn(3, 4)
    for norm in ("symmetric", "mean"):
        with pytest.raises(ValueError, match="norm: max or min of edges that are scaled"):
            tessera.spmm(edges, x, reduce=reduce, norm=norm)
    for loops in ("one_each", "one_more"):
        with pytest.raises(ValueError, match="loop_weight: max or min with loops of another weight"):
            tessera.spmm(edges, x, reduce=reduce, loops=loops, loop_weight=2.0)
        tessera.spmm(edges, x, reduce=reduce, loops=loops)
    weight = torch.tensor([1.0, 1.0, 2.0, 2.0, 2.0])
    assert torch.equal(tessera.spmm(edges, x, weight, reduce, loops="one_each")[0], 2 * x[0])
