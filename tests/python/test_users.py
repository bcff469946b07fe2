# SPDX-License-Identifier: Apache-2.0
"""What people do with models of PyTorch, done with accelerated ones: results and gradients are PyG's."""

import copy
import io

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from torch.utils.checkpoint import checkpoint
from torch_geometric import EdgeIndex
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, GNNExplainer
from torch_geometric.transforms import ToSparseTensor

import tessera
import tessera.nn

NETS = {"GCN": pyg.GCN, "SAGE": pyg.GraphSAGE, "GIN": pyg.GIN, "GAT": pyg.GAT}


def made(kind, device):
    """A model of PyG, its accelerated copy after a call, features and edges."""
    torch.manual_seed(3)
    theirs = NETS[kind](8, 16, num_layers=2, out_channels=4).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(40, 8, device=device), random_edges(40, 40, 200, device)
    ours(x, index)
    return theirs, ours, x, index


def close(a, b):
    assert torch.allclose(a, b, rtol=1e-3, atol=1e-4 * (1 + float(b.abs().max())))


def gradients(model, run):
    model.zero_grad()
    run(model).square().mean().backward()
    return [None if parameter.grad is None else parameter.grad.clone() for parameter in model.parameters()]


def all_close(found, wanted):
    """What has no gradient in one list has none in the other."""
    assert len(found) == len(wanted)
    for mine, expected in zip(found, wanted):
        assert (mine is None) == (expected is None)
        if expected is not None:
            close(mine, expected)


def on_kernels(model):
    layers = [layer for layer in model.modules() if isinstance(layer, pyg.MessagePassing)]
    return bool(layers) and all(layer.tessera_fallback is None for layer in layers)


@pytest.mark.parametrize("kind", NETS)
class TestModels:
    def test_saved_whole(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        file = io.BytesIO()
        torch.save(ours, file)
        file.seek(0)
        loaded = torch.load(file, weights_only=False)
        assert torch.equal(loaded(x, index), ours(x, index)) and on_kernels(loaded)
        assert list(theirs.state_dict()) == list(ours.state_dict())

    def test_moved_to_another_type_and_back(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for dtype in (torch.float64, torch.float32, torch.bfloat16):
            out = ours.to(dtype)(x.to(dtype), index)
            assert out.dtype == dtype
            if dtype != torch.bfloat16:
                close(out, theirs.to(dtype)(x.to(dtype), index))

    def test_moved_to_another_device_and_back(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        for place in ("cpu", device, "cpu", device):
            theirs, ours = theirs.to(place), ours.to(place)
            close(ours(x.to(place), index.to(place)), theirs(x.to(place), index.to(place)))
            all_close(*(gradients(model, lambda model: model(x.to(place), index.to(place))) for model in (ours, theirs)))

    def test_autocast_inside_of_autocast(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        plain = ours(x, index)
        with torch.autocast(device.type, torch.bfloat16):
            narrow = ours(x, index)
            with torch.autocast(device.type, enabled=False):
                assert torch.equal(ours(x, index), plain)
            assert torch.equal(ours(x, index), narrow)
            expected = theirs(x, index)
        assert torch.equal(ours(x, index), plain)
        assert (narrow.float() - expected.float()).abs().max() < 5e-2 * (1 + expected.float().abs().max())

    def test_batches_of_ever_new_graphs(self, kind, device):
        """As neighbour sampling makes them; more of them than are kept."""
        theirs, ours, _, _ = made(kind, device)
        for seed in range(70):
            vertices = 20 + seed
            x = torch.randn(vertices, 8, device=device)
            index = random_edges(vertices, vertices, 3 * vertices, device, seed=seed)
            close(ours(x, index), theirs(x, index))
        assert on_kernels(ours)

    def test_layers_trimmed_to_what_was_sampled(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        index[1, :100] %= 10
        index[0, :100] %= 20
        index[1, 100:] = index[1, 100:] % 10 + 10
        sampled = {"num_sampled_nodes_per_hop": [10, 10, 20], "num_sampled_edges_per_hop": [100, 100]}
        close(ours(x, index, **sampled), theirs(x, index, **sampled))

    @pytest.mark.parametrize("reentrant", [True, False])
    def test_checkpointing(self, kind, reentrant, device):
        theirs, ours, x, index = made(kind, device)
        x.requires_grad_()

        def run(model):
            return checkpoint(model, x, index, use_reentrant=reentrant)

        all_close(gradients(ours, run), gradients(theirs, run))

    def test_an_average_of_weights(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        average = torch.optim.swa_utils.AveragedModel(ours)
        average.update_parameters(ours)
        close(average(x, index), theirs(x, index))

    def test_other_holders_of_edges(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        index = torch.unique(index, dim=1).contiguous()
        sparse = ToSparseTensor(layout=torch.sparse_csr)(Data(x=x, edge_index=index)).adj_t
        sorted_by_target = EdgeIndex(index, sparse_size=(40, 40)).sort_by("col").values
        for edges in (sparse, sorted_by_target):
            close(ours(x, edges), theirs(x, edges))
        close(ours(x, tessera.Graph(index, 40, 40)), theirs(x, index))
        assert on_kernels(ours)

    def test_inference_mode_and_back(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        with torch.inference_mode():
            close(ours(x, index), theirs(x, index))
            close(ours(x.clone(), index.clone()), theirs(x, index))
        all_close(*(gradients(model, lambda m: m(x, index)) for model in (ours, theirs)))

    def test_compiled_for_changing_sizes(self, kind, device):
        theirs, ours, _, _ = made(kind, device)
        torch._dynamo.reset()
        compiled = torch.compile(ours, backend="aot_eager")
        for seed in range(4):
            vertices = 20 + seed
            x = torch.randn(vertices, 8, device=device)
            index = random_edges(vertices, vertices, 3 * vertices, device, seed=seed)
            close(compiled(x, index), theirs(x, index))

    def test_no_edges_and_no_vertices(self, kind, device):
        theirs, ours, x, index = made(kind, device)
        close(ours(x, index[:, :0]), theirs(x, index[:, :0]))
        assert ours(x[:0], index[:, :0]).shape == (0, 4)

    def test_distributed_data_parallel(self, kind, device, tmp_path):
        if not torch.distributed.is_available():
            pytest.skip("this torch has no torch.distributed")
        theirs, ours, x, index = made(kind, device)
        torch.distributed.init_process_group("gloo", init_method=f"file://{tmp_path}/store", rank=0,
                                             world_size=1)
        try:
            wrapped = torch.nn.parallel.DistributedDataParallel(ours)
            for _ in range(2):
                found = gradients(wrapped, lambda model: model(x, index))
        finally:
            torch.distributed.destroy_process_group()
        all_close(found, gradients(theirs, lambda model: model(x, index)))


HETERO = (["paper", "author"], [("author", "writes", "paper"), ("paper", "by", "author")])


def hetero_data(device):
    draw = torch.Generator().manual_seed(2)
    x = {"paper": torch.randn(20, 8, generator=draw), "author": torch.randn(15, 6, generator=draw)}
    edges = {("author", "writes", "paper"): (15, 20), ("paper", "by", "author"): (20, 15)}
    edges = {kind: torch.stack([torch.randint(0, n, (50,), generator=draw) for n in sizes]).to(device)
             for kind, sizes in edges.items()}
    return {name: value.to(device) for name, value in x.items()}, edges


BIPARTITE = {"SAGE": (pyg.SAGEConv, {}), "GAT": (pyg.GATConv, {"add_self_loops": False}),
             "GATv2": (pyg.GATv2Conv, {"add_self_loops": False}), "Transformer": (pyg.TransformerConv, {})}


@pytest.mark.parametrize("kind", BIPARTITE)
def test_hetero_conv(kind, device):
    layer, options = BIPARTITE[kind]
    x, edges = hetero_data(device)
    theirs = pyg.HeteroConv({edge: layer((-1, -1), 4, **options) for edge in HETERO[1]}).to(device)
    theirs(x, edges)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    expected, found = theirs(x, edges), ours(x, edges)
    for name in expected:
        close(found[name], expected[name])
    assert on_kernels(ours)


class TwoLayers(torch.nn.Module):
    def __init__(self, layer, options):
        super().__init__()
        self.first, self.second = layer((-1, -1), 16, **options), layer((-1, -1), 4, **options)

    def forward(self, x, edge_index):
        return self.second(self.first(x, edge_index).relu(), edge_index)


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("kind", ["SAGE", "GAT"])
def test_to_hetero(kind, when, device):
    x, edges = hetero_data(device)
    theirs = pyg.to_hetero(TwoLayers(*BIPARTITE[kind]), HETERO).to(device)
    theirs(x, edges)
    if when == "before":
        ours = pyg.to_hetero(tessera.accelerate(TwoLayers(*BIPARTITE[kind])), HETERO).to(device)
    else:
        ours = tessera.accelerate(pyg.to_hetero(TwoLayers(*BIPARTITE[kind]), HETERO)).to(device)
    ours(x, edges)
    ours.load_state_dict(theirs.state_dict())
    expected, found = theirs(x, edges), ours(x, edges)
    for name in expected:
        close(found[name], expected[name])
    assert on_kernels(ours)


class AdjT:
    """What ``torch_sparse.SparseTensor`` offers, of which layers take an ``adj_t``."""

    def __init__(self, matrix, values=False):
        self.matrix, self.values = matrix.to_sparse_csr(), values

    def csr(self):
        values = self.matrix.values() if self.values else None
        return self.matrix.crow_indices(), self.matrix.col_indices(), values

    def size(self, dim):
        return self.matrix.size(dim)

    def sparse_sizes(self):
        return tuple(self.matrix.shape)


def test_a_sparse_tensor_holds_edges(device):
    index = torch.unique(random_edges(30, 20, 100, device), dim=1)
    x = torch.randn(20, 6, device=device)
    adj_t = AdjT(torch.sparse_coo_tensor(index.flip(0), torch.ones(index.size(1), device=device),
                                         (30, 20)).coalesce())
    close(tessera.spmm(tessera.Graph.of(adj_t), x), tessera.spmm(tessera.Graph(index, 30, 20), x))
    layer = tessera.nn.SAGEConv((6, 5), 4).to(device)
    targets = torch.randn(30, 5, device=device)
    close(layer((x, targets), adj_t), layer((x, targets), index))
    assert layer.tessera_fallback is None


def test_subclasses_of_layers_stay_as_they_are(device):
    class Doubled(pyg.GCNConv):
        def message(self, x_j, edge_weight):
            return 2 * super().message(x_j, edge_weight)

    theirs = Doubled(6, 4).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(20, 6, device=device), random_edges(20, 20, 60, device)
    assert torch.allclose(ours(x, index), theirs(x, index), atol=1e-5)
    assert "it has its own message in the place of GCNConv's" in str(tessera.explain(ours, x, index))


CHANGED = {"GAT": lambda: pyg.GATConv(8, 4), "GAT without a bias": lambda: pyg.GATConv(8, 4, heads=2, bias=False),
           "GATv2": lambda: pyg.GATv2Conv(8, 4), "GATv2 without a bias": lambda: pyg.GATv2Conv(8, 4, bias=False),
           "Transformer without a root": lambda: pyg.TransformerConv(8, 4, bias=False, root_weight=False),
           "AGNN": lambda: pyg.AGNNConv(), "GCN without a bias": lambda: pyg.GCNConv(8, 4, bias=False),
           "SAGE": lambda: pyg.SAGEConv(8, 4), "max": lambda: pyg.SAGEConv(8, 4, aggr="max"),
           "GIN": lambda: pyg.GINConv(torch.nn.Sequential(
               torch.nn.Linear(8, 8), torch.nn.ReLU(inplace=True), torch.nn.Linear(8, 4)))}


@pytest.mark.parametrize("kind", CHANGED)
def test_results_may_be_changed_in_place(kind, device):
    torch.manual_seed(1)
    theirs = CHANGED[kind]().to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(40, 8, device=device), random_edges(40, 40, 200, device)
    for _ in range(2):
        all_close(*(gradients(layer, lambda layer: layer(x, index).relu_()) for layer in (ours, theirs)))
    assert on_kernels(ours)


def in_one_piece(model):
    """Lets the parameters be parts of one tensor, as some optimisers and wrappers do."""
    whole = torch.cat([torch.ones(3), *(parameter.detach().cpu().flatten() for parameter in model.parameters())])
    whole, begin = whole.to(next(model.parameters()).device), 3
    for parameter in model.parameters():
        parameter.data = whole[begin : begin + parameter.numel()].view(parameter.shape)
        begin += parameter.numel()


@pytest.mark.parametrize("kind", CHANGED)
def test_parts_of_larger_tensors(kind, device):
    """Everything that a layer is given begins somewhere inside of a tensor."""
    torch.manual_seed(1)
    theirs = CHANGED[kind]().to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    in_one_piece(ours)
    x, index = torch.randn(3, 40, 11, device=device)[1, :, 2:10], random_edges(40, 40, 200, device)[:, 30:]
    for _ in range(2):
        y = theirs(x, index)
        gradient = torch.randn(2, *y.shape, device=device)[1]
        found = []
        for layer in (ours, theirs):
            features = x.detach().requires_grad_()
            y = layer(features, index)
            given = torch.autograd.grad(y, [features, *layer.parameters()], gradient, allow_unused=True)
            found.append([y, *given])
        all_close(*found)
    assert on_kernels(ours)


@pytest.mark.parametrize("kind", ["GCN", "SAGE", "GAT"])
def test_types_and_shapes_that_do_not_fit(kind, device):
    _, ours, x, index = made(kind, device)
    if device.type == "cpu":  # on a GPU PyG's code runs fp64, and says so itself
        with pytest.raises(TypeError, match="x has type torch.float64, the layer's parameters torch.float32"):
            ours(x.double(), index)
    with pytest.raises(TypeError, match="x has type torch.bfloat16, the layer's parameters torch.float32"):
        ours(x.bfloat16(), index)
    with pytest.raises(ValueError, match="x has 5 features, the layer takes 8"):
        ours(x[:, :5], index)
    with pytest.raises(IndexError, match="outside"):
        ours(x[:5], index)


def test_only_modules_are_accelerated():
    with pytest.raises(TypeError, match="not a torch.nn.Module"):
        tessera.accelerate(lambda x, edge_index: x)


WEIGHTED = {"GCN": lambda: pyg.GCNConv(8, 4), "SGC": lambda: pyg.SGConv(8, 4, K=2), "APPNP": lambda: pyg.APPNP(3, 0.1)}


@pytest.mark.parametrize("kind", WEIGHTED)
def test_weights_of_other_kinds(kind, device):
    """Whole numbers, 16 bits, a column; and degrees below zero, which have no root."""
    torch.manual_seed(1)
    theirs = WEIGHTED[kind]().to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(40, 8, device=device), random_edges(40, 40, 200, device)
    whole = torch.arange(200, device=device) % 5
    expected = theirs(x, index, whole.float())
    for weight in (whole, whole.half(), whole.bfloat16(), whole.float().view(-1, 1)):
        close(ours(x, index, weight), expected)
    if kind != "APPNP":
        negative = torch.randn(200, device=device)
        found, expected = ours(x, index, negative), theirs(x, index, negative)
        assert expected.isnan().any() and torch.equal(found.isnan(), expected.isnan())
        close(found.nan_to_num(), expected.nan_to_num())
    assert on_kernels(ours)


class Explained(torch.nn.Module):
    def __init__(self, layer):
        super().__init__()
        self.layer = layer

    def forward(self, x, edge_index, **_):
        return self.layer(x, edge_index).log_softmax(-1)


@pytest.mark.parametrize("kind", NETS)
def test_explainers_see_pygs_messages(kind, device):
    """And once they are done, the kernels run again."""
    theirs, ours, x, index = made(kind, device)
    theirs, ours = Explained(theirs), Explained(ours)
    found = []
    for model in (theirs, ours):
        torch.manual_seed(3)
        explainer = Explainer(model, GNNExplainer(epochs=3), explanation_type="model", node_mask_type="attributes",
                              edge_mask_type="object", model_config={"mode": "multiclass_classification",
                                                                     "task_level": "node", "return_type": "log_probs"})
        explanation = explainer(x, index, index=3)
        found.append((explanation.node_mask, explanation.edge_mask))
    for mine, pygs in zip(*found):
        close(mine, pygs)
    close(ours(x, index), theirs(x, index))
    assert on_kernels(ours.layer)
