# SPDX-License-Identifier: Apache-2.0
"""Every layer names itself, the argument that is wrong, and what to use instead."""

import pytest
import torch

import tessera
import tessera.nn

INDEX = torch.tensor([[0, 1, 2], [1, 2, 0]])
X = torch.ones(3, 4)
LAYERS = {
    "GCN": lambda: tessera.nn.GCNConv(4, 2),
    "GCN step by step": lambda: tessera.accelerate(tessera.nn.GCNConv(4, 2), precision="bf16"),
    "SAGE": lambda: tessera.nn.SAGEConv(4, 2),
    "SAGE max": lambda: tessera.nn.SAGEConv(4, 2, aggr="max"),
    "SAGE median": lambda: tessera.nn.SAGEConv(4, 2, aggr="median"),  # PyG's code
    "GIN": lambda: tessera.nn.GINConv(torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))),
    "GIN learned": lambda: tessera.nn.GINConv(torch.nn.Linear(4, 2), train_eps=True),
    "GAT": lambda: tessera.nn.GATConv(4, 2, heads=2),
    "GATv2": lambda: tessera.nn.GATv2Conv(4, 2, heads=2),
    "GATv2 shared": lambda: tessera.nn.GATv2Conv(4, 2, share_weights=True),
    "AGNN": lambda: tessera.nn.AGNNConv(),
    "SGC": lambda: tessera.nn.SGConv(4, 2, K=2),
    "Cheb": lambda: tessera.nn.ChebConv(4, 2, K=3),
    "Transformer": lambda: tessera.nn.TransformerConv(4, 2, heads=2),
    "Transformer gated": lambda: tessera.nn.TransformerConv(4, 2, beta=True),
    "APPNP": lambda: tessera.nn.APPNP(2, 0.1),
    "Cluster": lambda: tessera.nn.ClusterGCNConv(4, 2),
}
EACH_LAYER = pytest.mark.parametrize("name", LAYERS)


def called_or(layer, x, index, kind, match, may_work=False):
    """A call that gives an error of this kind alone; layers without parameters may take what others do not."""
    try:
        layer(x, index)
    except (TypeError, ValueError, IndexError) as error:
        assert type(error) is kind, f"{type(error).__name__}: {error}"
        assert any(words in str(error) for words in match), str(error)
        assert str(error).count("\n") == 0
        assert str(error).startswith(f"{type(layer).__name__}: ")
        with pytest.raises(kind):  # a call that failed leaves nothing behind that lets the next one pass
            layer(x, index)
    else:
        assert may_work or not list(layer.parameters()) or isinstance(layer, (tessera.nn.AGNNConv, tessera.nn.GINConv))


@EACH_LAYER
@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.bool, torch.uint8], ids=str)
def test_features_that_are_no_floats(name, dtype, device):
    layer = LAYERS[name]().to(device)
    called_or(layer, X.to(device, dtype), INDEX.to(device), TypeError, [f"x has type {dtype}: use x.float()"])


@EACH_LAYER
@pytest.mark.parametrize("dtype", [torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_features_of_another_type_than_the_layer(name, dtype, device):
    layer = LAYERS[name]().to(device)
    called_or(layer, X.to(device, dtype), INDEX.to(device), TypeError,
              [f"x has type {dtype}, the layer's parameters torch.float32: use x.to(torch.float32), or layer.to({dtype})"])


@EACH_LAYER
def test_features_of_another_width(name, device):
    layer = LAYERS[name]().to(device)
    called_or(layer, torch.ones(3, 5, device=device), INDEX.to(device), ValueError,
              ["x has 5 features, the layer takes 4"])


@EACH_LAYER
def test_features_on_another_device(name, device):
    layer = LAYERS[name]().to(device)
    called_or(layer, X.to("meta"), INDEX.to(device), ValueError, ["x lies on meta, the layer on", "x on meta: use edge_index.to("])


@EACH_LAYER
def test_edges_on_another_device(name, device):
    layer = LAYERS[name]().to(device)
    x = X.to(device)
    called_or(layer, x, INDEX.to("meta"), ValueError,
              [f"edge_index lies on meta, x on {x.device}: use edge_index.to('{x.device}')"])


@EACH_LAYER
@pytest.mark.parametrize("wrong", [7, -1])
def test_edges_out_of_range(name, wrong, device):
    """Also where PyG's code runs; on a GPU what follows must still run."""
    layer = LAYERS[name]().to(device)
    index = INDEX.to(device, copy=True)
    index[0, 1] = wrong
    with pytest.raises(IndexError, match=rf"edge_index: source index {wrong} is outside \[0, 3\): there are 3 source vertices"):
        layer(X.to(device), index)
    assert torch.isfinite(layer(X.to(device), INDEX.to(device))).all()


EDGE_FEATURES = {"GAT": lambda: tessera.nn.GATConv(4, 2, edge_dim=3), "GATv2": lambda: tessera.nn.GATv2Conv(4, 2, edge_dim=3),
                 "Transformer": lambda: tessera.nn.TransformerConv(4, 2, edge_dim=3)}


@pytest.mark.parametrize("name", EDGE_FEATURES)
def test_features_of_edges_that_do_not_fit(name, device):
    layer, x, index = EDGE_FEATURES[name]().to(device), X.to(device), INDEX.to(device)
    attr = torch.ones(3, 3, device=device)
    with pytest.raises(TypeError, match="edge_attr has type torch.int64"):
        layer(x, index, attr.long())
    with pytest.raises(TypeError, match="edge_attr has type torch.float64, the layer's parameters torch.float32"):
        layer(x, index, attr.double())
    with pytest.raises(ValueError, match=r"edge_attr has (shape \(2, 3\): use \(3, features\)|2 rows for 3 edges)"):
        layer(x, index, attr[:2])
    if device.type == "cpu":
        index = torch.tensor([[0, 9, 2], [1, 2, 0]])
        with pytest.raises(IndexError, match=r"source index 9 is outside \[0, 3\)"):
            layer(x, index, attr)


@EACH_LAYER
def test_edges_that_are_no_tensor(name):
    for edges in (None, INDEX.tolist(), INDEX.numpy()):
        with pytest.raises(TypeError, match=r"^\w+: edge_index is a .*, not a tensor or graph"):
            LAYERS[name]()(X, edges)


@EACH_LAYER
@pytest.mark.parametrize("dtype", [torch.int16, torch.uint8, torch.bool], ids=str)
def test_edges_of_small_types(name, dtype, device):
    """PyG's code may take them."""
    called_or(LAYERS[name]().to(device), X.to(device), INDEX.to(device, dtype), TypeError,
              [f"edge_index has type {dtype}: use int64 or int32"], may_work=True)


@pytest.mark.parametrize("name", ["GAT", "GATv2", "AGNN"])
def test_features_of_three_dimensions(name):
    """Other layers run PyG's code."""
    with pytest.raises(ValueError, match=r"x has shape \(1, 3, 4\): use \(vertices, features\)"):
        LAYERS[name]()(X[None], INDEX)


@EACH_LAYER
def test_features_that_are_no_tensor(name):
    for x in (None, "features", X.numpy(), X.tolist()[0]):
        with pytest.raises(TypeError, match=r"^\w+: x is a .*, not a tensor"):
            LAYERS[name]()(x, INDEX)


@EACH_LAYER
def test_layers(name, device):
    layer = LAYERS[name]().to(device)
    x, index = X.to(device), INDEX.to(device)
    with pytest.raises(TypeError, match="edge_index has type torch.float32: use int64 or int32"):
        layer(x, index.float())
    for wrong in (index[:1], index.flatten(), index.t()):
        with pytest.raises(ValueError, match=r"edge_index has shape .*: use \(2, edges\)"):
            layer(x, wrong)
    with pytest.raises(ValueError, match=r"x has shape \(4,\): use \(vertices, features\)"):
        layer(x[0], index)
    with pytest.raises(IndexError, match="outside|indices in 'edge_index'"):
        layer(x, index + 3)


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
        with pytest.raises(IndexError, match=rf"edge_index: (source|target) index {index} is outside \[0, 3\)"):
            layer(x, edges, weight)
    layer(x, INDEX.to(device), weight)
    layer.to("cpu")


@WEIGHTED
def test_weights_of_other_edges(layer):
    with pytest.raises(ValueError, match="edge_weight has 2 numbers for 3 edges"):
        layer(X, INDEX, torch.ones(2))
