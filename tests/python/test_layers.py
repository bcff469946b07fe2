# SPDX-License-Identifier: Apache-2.0
"""Every layer against PyG's own with the same weights: results, gradients, arguments, fallbacks."""

import copy

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from layer_pairs import LAYERS, gradients, pair, same
from torch_geometric.utils import to_torch_coo_tensor, to_torch_csr_tensor

import tessera
import tessera.nn as ours
from tessera.nn._base import tally


@pytest.mark.parametrize("name", LAYERS)
def test_layer_is_pygs(name, device):
    theirs, mine = pair(name, device)
    x = torch.randn(40, 12, device=device)
    for dtype in (torch.int64, torch.int32):
        if dtype == torch.int32 and device.type == "cuda":
            continue  # PyG's own code takes int64 there
        index = random_edges(40, 40, 300, device, dtype)
        before = tally.kernels, tally.fallbacks
        same(gradients(mine, x, index), gradients(theirs, x, index.long()))
        assert (tally.kernels, tally.fallbacks) == (before[0] + 1, before[1])


@pytest.mark.parametrize("name", LAYERS)
def test_double_precision_is_double(name):
    theirs, mine = (layer.double() for layer in pair(name))
    index, x = random_edges(40, 40, 300), torch.randn(40, 12, dtype=torch.float64)
    bound = 1e-7 if name == "Cluster" else 1e-12  # PyG has single-precision scales there
    same(gradients(mine, x, index), gradients(theirs, x, index), bound)
    assert mine.tessera_fallback is None




@pytest.mark.parametrize("name", LAYERS)
def test_second_derivatives_are_pygs(name):
    theirs, mine = (layer.double() for layer in pair(name))
    index, x = random_edges(40, 40, 300), torch.randn(40, 12, dtype=torch.float64, requires_grad=True)

    def second(layer):
        given = [x, *layer.parameters()]
        first = torch.autograd.grad(layer(x, index).pow(3).sum(), given, create_graph=True)
        return torch.autograd.grad(sum(g.square().sum() for g in first), given, allow_unused=True)

    expected = second(theirs)
    for _ in range(2):  # the second call may take a shorter way
        for found, wanted in zip(second(mine), expected):
            assert (found is None) == (wanted is None)
            if wanted is not None:
                same([found], [wanted], 1e-6 if name == "Cluster" else 1e-10)
    assert mine.tessera_fallback is None


@pytest.mark.parametrize("name", ["GCN", "SAGE", "GIN", "GIN fixed", "GAT", "GATv2", "AGNN", "SGC", "APPNP",
                                  "Cluster", "Transformer"])
@pytest.mark.parametrize("layout", ["csr", "coo"])
def test_sparse_tensors(name, layout, device):
    theirs, mine = pair(name, device)
    index = random_edges(30, 30, 150, device, repeated=False)
    x = torch.randn(30, 12, device=device)
    make = to_torch_csr_tensor if layout == "csr" else to_torch_coo_tensor
    adjacency = make(index.flip(0), size=(30, 30))
    before = tally.fallbacks
    same([mine(x, adjacency)], [theirs(x, adjacency)])
    same(gradients(mine, x, tessera.Graph(index, 30, 30)), gradients(theirs, x, index))
    assert tally.fallbacks == before


@pytest.mark.parametrize("weighted", [False, True])
def test_chebyshev_polynomials_of_sparse_tensors(weighted, device):
    """PyG's own code takes an edge_index alone."""
    theirs, mine = pair("Cheb", device)
    index = random_edges(30, 30, 150, device, repeated=False)
    x = torch.randn(30, 12, device=device)
    weight = torch.rand(index.size(1), device=device) if weighted else None
    values = torch.ones(index.size(1), device=device) if weight is None else weight
    coo = torch.sparse_coo_tensor(index.flip(0), values, (30, 30)).coalesce()
    before = tally.fallbacks
    for adjacency in (coo, coo.to_sparse_csr(), coo.to_sparse_csc()):
        same(gradients(mine, x, adjacency), gradients(theirs, x, index, weight))
    assert tally.fallbacks == before


@pytest.mark.parametrize("name", ["GCN", "GCN improved", "GCN without loops", "GCN without norm",
                                  "GCN reversed", "SGC", "APPNP", "Cheb"])
def test_edge_weights_and_their_gradients(name, device):
    theirs, mine = pair(name, device)
    index = random_edges(30, 30, 200, device)
    index[:, :5] = torch.arange(5, device=device)  # some loops, with weights of their own
    index = torch.unique(index, dim=1)
    x = torch.randn(30, 12, device=device)
    results = []
    for layer in (mine, theirs):
        weight = torch.rand(index.size(1), generator=torch.Generator().manual_seed(1))
        weight = weight.to(device).requires_grad_()
        results.append(gradients(layer, x, index, weight) + [weight.grad])
    same(*results)
    assert mine.tessera_fallback is None


@pytest.mark.parametrize("kind, options", [("SAGEConv", {}), ("GATConv", {"heads": 2}),
                                           ("GATv2Conv", {}), ("TransformerConv", {})])
def test_pairs_of_features(kind, options, device):
    index = random_edges(9, 14, 60, device)
    x = torch.randn(14, 6, device=device), torch.randn(9, 4, device=device)
    torch.manual_seed(1)
    theirs = getattr(pyg, kind)((6, 4), 5, **options).to(device)
    mine = getattr(ours, kind)((6, 4), 5, **options).to(device)
    mine.load_state_dict(theirs.state_dict())
    before = tally.fallbacks
    same([mine(x, index)], [theirs(x, index)])
    if kind in ("SAGEConv", "GATConv"):
        alone = (x[0], None)
        same([mine(alone, index, size=(14, 9))], [theirs(alone, index, size=(14, 9))])
    assert tally.fallbacks == before


@pytest.mark.parametrize("kind, arguments", [("GCNConv", (12, 5)), ("APPNP", (3, 0.1))])
def test_the_first_graph_is_cached(kind, arguments, device):
    first, second = (random_edges(20, 20, 100, device, seed=seed) for seed in (1, 2))
    x = torch.randn(20, 12, device=device)
    made = []
    for module in (pyg, ours):
        torch.manual_seed(1)
        made.append(getattr(module, kind)(*arguments, cached=True).to(device))
    theirs, mine = made
    for index in (first, second):
        same([mine(x, index)], [theirs(x, index)])
        assert mine.tessera_fallback is None
    expected = mine(x, second)
    plain = tessera.restore(mine)
    assert type(plain) is getattr(pyg, kind)
    same([plain(x, second)], [expected])
    tessera.accelerate(plain)(x, second)
    assert "cached before" in plain.tessera_fallback
    plain.reset_parameters()
    plain(x, second)
    assert plain.tessera_fallback is None


@pytest.mark.parametrize("kind, arguments", [("GCNConv", (12, 5)), ("APPNP", (3, 0.1)), ("SGConv", (12, 5))])
def test_what_was_cached_stays_as_it_was(kind, arguments, device):
    """Whatever becomes of the tensors that the first call had."""
    theirs = getattr(pyg, kind)(*arguments, cached=True).to(device)
    mine = tessera.accelerate(copy.deepcopy(theirs))
    index = random_edges(20, 20, 100, device, repeated=False)  # of several loops of a vertex PyG keeps any one on a GPU
    weight, x = torch.rand(index.size(1), device=device), torch.randn(20, 12, device=device)
    expected = theirs(x, index, weight)
    same([mine(x, index, weight)], [expected])
    index[:, :40], weight[:] = 3, 2.0
    for layer in (mine, copy.deepcopy(mine)):
        same([layer(x, index, weight)], [expected])
        assert layer.tessera_fallback is None


@pytest.mark.parametrize("name", ["GAT", "GATv2", "Transformer"])
def test_attention_weights(name, device):
    theirs, mine = pair(name, device)
    index = random_edges(12, 12, 60, device)
    x = torch.randn(12, 12, device=device)
    out, (edges, weights) = mine(x, index, return_attention_weights=True)
    expected, (their_edges, their_weights) = theirs(x, index, return_attention_weights=True)
    assert torch.equal(edges, their_edges)
    same([out, weights], [expected, their_weights])


def test_what_cannot_run_here_runs_on_pyg():
    index = random_edges(12, 12, 60)
    x = torch.randn(12, 12)
    cases = [
        (ours.SAGEConv(12, 5, aggr="median"), (x, index), "aggregation"),
        (ours.GATConv(12, 5, edge_dim=3, fill_value="max"), (x, index, torch.randn(60, 3)), "the max"),
        (ours.GCNConv(12, 5), (torch.randn(2, 12, 12), index), "3 dimensions"),
        (ours.ChebConv(12, 5, 2, normalization="rw"), (x, index), "rw"),
    ]
    for layer, arguments, reason in cases:
        layer(*arguments)
        assert reason in layer.tessera_fallback
        assert f"PyG ({layer.tessera_fallback})" in str(tessera.explain(layer))


@pytest.mark.parametrize("few", [0, 1 << 14], ids=["large", "small"])
def test_chebyshev_polynomials_of_large_and_small_graphs(few, device, monkeypatch):
    monkeypatch.setattr(tessera.nn._gcn_norm, "_FEW_MESSAGES", few)
    theirs, mine = pair("Cheb", device)
    index, x = random_edges(20, 20, 100, device), torch.randn(20, 12, device=device)
    weight, largest = torch.rand(100, device=device), torch.tensor(1.7, device=device)
    for mine_too, theirs_too in (((), ()), ((weight,), (weight,)), ((None, None, 1.7), (None, None, largest)),
                                 ((weight, None, 1.7), (weight, None, largest))):
        same(gradients(mine, x, index, *mine_too), gradients(theirs, x, index, *theirs_too))
        assert mine.tessera_fallback is None


def test_chebyshev_polynomials_of_few_edges_have_pygs_bits():
    """A scripted layer is PyG's, and PyG's own tests compare both where sums cancel."""
    theirs, mine = pair("Cheb")
    index = torch.tensor([[0, 0, 0, 1, 2, 3], [1, 2, 3, 0, 0, 0]])
    for seed in range(20):
        draw = torch.Generator().manual_seed(seed)
        x, weight = torch.randn(4, 12, generator=draw), torch.rand(6, generator=draw)
        assert torch.equal(mine(x, index), theirs(x, index))
        assert torch.equal(mine(x, index, weight), theirs(x, index, weight))
        assert torch.equal(mine(x, index, weight, None, 1.7), theirs(x, index, weight, None, torch.tensor(1.7)))
    assert mine.tessera_fallback is None


def test_accelerate_and_restore():
    model = pyg.GAT(12, 16, num_layers=2, out_channels=4, heads=2)
    index, x = random_edges(30, 30, 150), torch.randn(30, 12)
    keys = list(model.state_dict())
    expected = model(x, index)
    assert tessera.accelerate(model) is model
    assert list(model.state_dict()) == keys
    same([model(x, index)], [expected])
    lines = tessera.explain(model, x, index)
    assert len(lines) == 2 and all("attention/cpu/" in line for line in lines)
    narrow = tessera.accelerate(model, precision="bf16")(x, index)
    assert torch.equal(tessera.accelerate(model, precision=torch.bfloat16)(x, index), narrow)
    assert narrow.dtype == torch.float32 and not torch.equal(narrow, expected)
    same([narrow], [expected], 3e-2)
    tessera.restore(model)
    assert type(model.convs[0]) is pyg.GATConv and torch.equal(model(x, index), expected)
    assert "not accelerated" in str(tessera.explain(model))


def test_classes_of_users_stay_when_models_are_restored():
    class Rectified(ours.SAGEConv):
        def forward(self, x, edge_index):
            return super().forward(x, edge_index).relu()

    layer = Rectified(12, 4)
    index, x = random_edges(30, 30, 150), torch.randn(30, 12)
    expected = layer(x, index)
    same([tessera.restore(layer)(x, index)], [expected])
    assert (expected >= 0).all()
    with pytest.raises(TypeError, match="no TorchScript: make it of torch_geometric.nn.SAGEConv"):
        torch.jit.script(layer)


def test_linear_layers_that_are_more_than_that_are_called(device):
    """Hooks, parametrisations and replaced layers work inside of ours as inside of PyG's."""
    index, x = random_edges(40, 40, 200, device), torch.randn(40, 12, device=device)
    for name, lin in (("GCN", "lin"), ("SAGE", "lin_l"), ("SAGE", "lin_r")):
        theirs, mine = pair(name, device)
        seen = []
        for layer in (theirs, mine):
            getattr(layer, lin).register_forward_hook(lambda *_: seen.append(1))
        same([mine(x, index)], [theirs(x, index)])
        assert len(seen) == 2
        theirs, mine = pair(name, device)
        for layer in (theirs, mine):
            setattr(layer, lin, torch.nn.Sequential(getattr(layer, lin), torch.nn.ReLU()))
        same([mine(x, index)], [theirs(x, index)])


@pytest.mark.parametrize("name", ["GCN", "SAGE", "SAGE wide", "GIN fixed", "Cluster"])
def test_a_first_layer_whose_features_need_no_gradient(name, device):
    """Features are then summed before the product, in more cases than otherwise."""
    theirs, mine = pair(name, device)
    index, x = random_edges(40, 40, 200, device), torch.randn(40, 12, device=device)
    found = []
    for layer in (mine, theirs):
        out = layer(x, index)
        out.square().sum().backward()
        found.append([out.detach()] + [p.grad for p in layer.parameters()])
    same(*found)


@pytest.mark.parametrize("name", ["GCN", "GCN wide", "SAGE", "SAGE wide", "GIN fixed", "GAT", "Cluster"])
@pytest.mark.parametrize("vertices", [0, 1, 7])
def test_graphs_without_edges(name, vertices, device):
    theirs, mine = pair(name, device)
    index = torch.empty(2, 0, dtype=torch.int64, device=device)
    x = torch.randn(vertices, 12, device=device)
    same(gradients(mine, x, index), gradients(theirs, x, index))
    assert mine.tessera_fallback is None


@pytest.mark.parametrize("name", ["GCN", "SAGE", "GIN fixed", "GAT"])
def test_features_of_another_graph(name):
    _, mine = pair(name)
    graph = tessera.Graph(random_edges(9, 9, 30), 9, 9)
    with pytest.raises(ValueError, match="8 rows for 9 vertices"):
        mine(torch.randn(8, 12), graph)


@pytest.mark.parametrize("name", ["GCN", "SAGE", "GIN fixed", "GAT", "GAT mean"])
def test_features_that_do_not_lie_in_rows(name, device):
    theirs, mine = pair(name, device)
    index = random_edges(40, 40, 200, device)
    for x in (torch.randn(12, 40, device=device).t(), torch.randn(40, 30, device=device)[:, 3:15]):
        same([mine(x, index)], [theirs(x, index)])
        out = mine(x, index)
        out.sum().backward()  # the gradient of a sum is expanded: stride 0


def test_second_derivatives_of_layers():
    index, x = random_edges(20, 20, 90), torch.randn(20, 12, requires_grad=True)
    found = []
    theirs, mine = pair("SAGE")
    for layer in (mine, theirs):
        first = torch.autograd.grad(layer(x, index).square().sum(), x, create_graph=True)[0]
        found.append(list(torch.autograd.grad(first.square().sum(), [x, *layer.parameters()],
                                              allow_unused=True, materialize_grads=True)))
    same(*found)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        out = mine(x, index)
    with pytest.raises(NotImplementedError, match="under autocast"):
        torch.autograd.grad(out.float().square().sum(), x, create_graph=True)
