# SPDX-License-Identifier: Apache-2.0
"""What kernels cannot do runs the code that PyG's own layer would run."""

import copy
import subprocess
import sys

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera
import tessera.nn
from tessera.nn._gcn_norm import _last_of, normalised

RUN = """
import sys, torch
layer, *given = torch.load(sys.argv[1], weights_only=False)
with torch.no_grad():
    torch.save(layer(*given), sys.argv[2])
assert "reversed flow" in layer.tessera_fallback
"""


def pair(kind):
    torch.manual_seed(1)
    theirs = getattr(pyg, kind)(8, 4, heads=2, edge_dim=3, flow="target_to_source")
    return theirs, tessera.accelerate(copy.deepcopy(theirs)), (
        torch.randn(20, 8), random_edges(20, 20, 90), torch.randn(90, 3))


@pytest.mark.parametrize("kind", ["GATConv", "GATv2Conv"])
class TestScoresOfReversedEdges:
    """PyG has two ways to make them, one written for each class of layers, and the other is wrong."""

    def test_after_accelerate(self, kind, device):
        theirs, ours, given = pair(kind)
        given = [tensor.to(device) for tensor in given]
        assert torch.allclose(ours.to(device)(*given), theirs.to(device)(*given), atol=1e-5)
        assert ours.tessera_fallback == "features of edges with a reversed flow"

    def test_in_a_process_that_made_no_layer(self, kind, tmp_path):
        theirs, ours, given = pair(kind)
        torch.save((ours, *given), tmp_path / "layer")
        subprocess.run([sys.executable, "-W", "ignore", "-c", RUN, tmp_path / "layer", tmp_path / "out"], check=True)
        assert torch.allclose(torch.load(tmp_path / "out"), theirs(*given), atol=1e-5)

    def test_compiled(self, kind, device):
        theirs, ours, given = pair(kind)
        given = [tensor.to(device) for tensor in given]
        compiled = torch.compile(ours.to(device), backend="aot_eager")
        assert torch.allclose(compiled(*given), theirs.to(device)(*given), atol=1e-5)


FIRST_OF_ITS_CLASS = """
import torch, torch_geometric.nn as pyg, tessera
from torch_geometric.utils import to_torch_csr_tensor
torch.manual_seed(1)
x, index = torch.randn(9, 4), torch.randint(9, (2, 30))
index = index[:, index[1].argsort(stable=True)]  # medians want edges in order
matrix = to_torch_csr_tensor(index.unique(dim=1), size=(9, 9))
network = torch.nn.Linear(4, 3)
plain = pyg.GINConv(network)  # PyG's own class has the part for sparse matrices
tessera.accelerate(pyg.GINConv(network, aggr="median"))(x, index)
layer = tessera.accelerate(pyg.GINConv(network))
layer.aggr = "max"
plain.aggr = "max"
assert torch.allclose(layer(x, matrix), plain(x, matrix), atol=1e-5)
assert layer.tessera_fallback is not None
"""


def test_sparse_matrices_after_an_aggregation_that_has_none_for_them():
    subprocess.run([sys.executable, "-W", "ignore", "-c", FIRST_OF_ITS_CLASS], check=True)


def test_the_last_of_several_loops_keeps_its_weight(device):
    """On a GPU, too, where PyG keeps any of them; each has the gradient that PyG gives it."""
    index = torch.tensor([[0, 1, 0, 2, 1, 0, 2], [0, 1, 0, 1, 1, 0, 0]], device=device)
    weight = torch.tensor([3.0, 0.5, 7.0, 1.0, 0.25, 2.0, 4.0], device=device)
    graph = tessera.Graph(index, num_targets=3, num_sources=3)
    on_cpu = weight.cpu().clone().requires_grad_()
    expected = pyg.conv.gcn_conv.gcn_norm(index.cpu(), on_cpu, 3)[1]
    given = weight.clone().requires_grad_()
    found = normalised(graph, given, torch.float32, True, 1.0, False)
    # PyG leaves loops out of the edges, which are zero here.
    assert torch.allclose(found[3:4].cpu(), expected[0:1]) and torch.allclose(found[-3:].cpu(), expected[-3:])
    factors = torch.arange(1.0, 4.0)
    (expected[-3:] * factors).sum().backward()
    (found[-3:] * factors.to(device)).sum().backward()
    assert torch.allclose(given.grad.cpu(), on_cpu.grad, atol=1e-6)


def test_weights_of_loops_by_the_gpus_way():
    place, weight = torch.tensor([0, 3, 0, 1, 0, 3]), torch.tensor([1.0, float("nan"), float("inf"), 2.0, 0.1, 9.0])
    given = weight.clone().requires_grad_()
    found = _last_of(place, given, 3)
    assert found.tolist() == [weight[4], 9.0, weight[4], 2.0, weight[4], 9.0]
    found.sum().backward()
    assert given.grad.tolist() == [1, 0, 0, 1, 1, 1]


def doubled(method):
    return lambda *given, **named: 2 * method(*given, **named)


REPLACED = [("propagate", "GCNConv"), ("propagate", "SAGEConv"), ("propagate", "GATConv"), ("propagate", "TransformerConv"),
            ("edge_updater", "GATConv"), ("edge_updater", "GATv2Conv")]


@pytest.mark.parametrize("name, kind", REPLACED)
class TestMethodsThatWereReplaced:
    def test_of_one_layer(self, name, kind, device):
        theirs = getattr(pyg, kind)(8, 4).to(device)
        ours = tessera.accelerate(copy.deepcopy(theirs))
        x, index = torch.randn(20, 8, device=device), random_edges(20, 20, 90, device)
        ours(x, index)
        for layer in (theirs, ours):
            setattr(layer, name, doubled(getattr(layer, name)))
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-5)
        assert ours.tessera_fallback == "a method for messages that was replaced"

    def test_of_a_class(self, name, kind, device):
        def subclass(base):
            def method(self, *given, **named):
                return 2 * getattr(super(made, self), name)(*given, **named)

            made = type(f"Doubled{name}{kind}", (base,), {name: method})  # PyG keeps the code that it writes by this name
            return type(f"More{name}{kind}", (made,), {})

        theirs = subclass(getattr(pyg, kind))(8, 4).to(device)
        ours = subclass(getattr(tessera.nn, kind))(8, 4).to(device)
        ours.load_state_dict(theirs.state_dict())
        x, index = torch.randn(20, 8, device=device), random_edges(20, 20, 90, device)
        assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-5)
        assert ours.tessera_fallback == "a method for messages that was replaced"


def test_another_normalisation_of_chebyshev_polynomials(device):
    def halved(layer):
        norm = layer.__norm__
        layer.__norm__ = lambda *given, **named: (lambda edges, weight: (edges, weight / 2))(*norm(*given, **named))

    theirs = pyg.ChebConv(8, 4, K=3).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 8, device=device), random_edges(20, 20, 90, device)
    for layer in (theirs, ours):
        halved(layer)
    assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-5)


def test_layers_that_were_explained_run_on_kernels_again(device):
    """PyG leaves the code that it wrote for the class on a layer that was explained."""
    layer = tessera.accelerate(pyg.GCNConv(8, 4)).to(device)
    x, index = torch.randn(20, 8, device=device), random_edges(20, 20, 90, device)
    expected = layer(x, index)
    layer.explain, layer._edge_mask, layer._loop_mask = True, torch.ones(90, device=device), index[0] != index[1]
    layer._apply_sigmoid = False
    assert torch.allclose(layer(x, index), expected, atol=1e-5) and "explainer" in layer.tessera_fallback
    layer.explain = False
    assert "propagate" in vars(layer) and torch.equal(layer(x, index), expected) and layer.tessera_fallback is None


GRAPHS = {"GCN": lambda: pyg.GCNConv(8, 4), "SAGE": lambda: pyg.SAGEConv(8, 4), "std": lambda: pyg.SAGEConv(8, 4, aggr="std"),
          "GIN": lambda: pyg.GINConv(torch.nn.Linear(8, 4)), "GAT": lambda: pyg.GATConv(8, 4), "AGNN": lambda: pyg.AGNNConv(),
          "GATv2": lambda: pyg.GATv2Conv(8, 4), "SGC": lambda: pyg.SGConv(8, 4), "APPNP": lambda: pyg.APPNP(2, 0.1),
          "Chebyshev": lambda: pyg.ChebConv(8, 4, K=3), "Transformer": lambda: pyg.TransformerConv(8, 4),
          "ClusterGCN": lambda: pyg.ClusterGCNConv(8, 4)}


@pytest.mark.parametrize("kind", GRAPHS)
class TestGraphs:
    """PyG knows no Graph: it gets what that is made of."""

    def made(self, kind, device):
        theirs = GRAPHS[kind]().to(device)
        ours = tessera.accelerate(copy.deepcopy(theirs))
        for layer in (theirs, ours):
            layer.register_propagate_forward_hook(lambda layer, given, out: 2 * out)
        return theirs, ours, torch.randn(20, 8, device=device), random_edges(20, 20, 90, device, repeated=False)

    def test_of_lists(self, kind, device):
        theirs, ours, x, index = self.made(kind, device)
        expected = theirs(x, index)
        graph = tessera.Graph(index, 20, 20)
        for edges in (graph, tessera.Graph(index.flip(0).contiguous(), 20, 20).reversed()):
            assert torch.allclose(ours(x, edges), expected, atol=1e-5)
            assert ours.tessera_fallback is not None
        for wrong in (tessera.Graph(index, 21, 20), tessera.Graph(index, 20, 21)):
            with pytest.raises(ValueError, match="x has 20 rows for 21 vertices"):
                ours(x, wrong)
        ours.flow = "target_to_source"
        with pytest.raises(ValueError, match="use its reversed"):
            ours(x, graph)

    def test_of_matrices(self, kind, device):
        theirs, ours, x, index = self.made(kind, device)
        if kind == "Chebyshev":
            pytest.skip("PyG's polynomials take no matrices")
        matrix = torch.sparse_coo_tensor(index.flip(0), torch.ones(index.size(1), device=device), (20, 20)).to_sparse_csr()
        expected = theirs(x, matrix)
        for edges in (matrix, matrix.to_sparse_csc()):
            assert torch.allclose(ours(x, tessera.Graph.of(edges)), expected, atol=1e-5)


def test_a_graph_with_weights(device):
    x, index, weight = torch.randn(20, 8, device=device), random_edges(20, 20, 90, device), torch.rand(90, device=device)
    graph = tessera.Graph(index, 20, 20, weight)
    for kind in ("GCN", "SGC", "APPNP", "Chebyshev"):
        theirs = GRAPHS[kind]().to(device)
        ours = tessera.accelerate(copy.deepcopy(theirs))
        ours.register_message_forward_hook(lambda *given: None)
        assert torch.allclose(ours(x, graph), theirs(x, index, weight), atol=1e-5)
    with pytest.raises(ValueError, match="a Graph with weights"):
        tessera.accelerate(GRAPHS["std"]().to(device))(x, graph)
