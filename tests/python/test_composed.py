# SPDX-License-Identifier: Apache-2.0
"""Models and modules of PyG that pass no messages themselves: against PyG's, and against what they are defined as."""

import copy
import io

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges

import tessera
import tessera.nn

AGGREGATIONS = ["SumAggregation", "MeanAggregation", "MaxAggregation", "MinAggregation"]


def of_floats(tensors):
    return [tensor for tensor in tensors if tensor.is_floating_point()]


def results(model, *given):
    given = [one.clone().requires_grad_() if isinstance(one, torch.Tensor) and one.is_floating_point() else one for one in given]
    out = model(*given)
    wanted = [*of_floats([one for one in given if isinstance(one, torch.Tensor)]), *model.parameters()]
    if not out.requires_grad:
        return [out]
    return [out, *torch.autograd.grad(out.square().sum(), wanted, allow_unused=True)]


def same(found, expected):
    for mine, theirs in zip(found, expected, strict=True):
        assert (mine is None) == (theirs is None)
        if mine is not None:
            bound = 1e-6 if theirs.dtype == torch.float64 else 1e-4
            assert mine.dtype == theirs.dtype and (mine - theirs).abs().max() <= bound * (1 + theirs.abs().max())


def wide(device):
    return {"device": device, "dtype": torch.float64 if device.type == "cpu" else torch.float32}


def made(name, device):
    """PyG's module, and what it is called with."""
    torch.manual_seed(1)
    index, to = random_edges(30, 30, 150, device), wide(device)
    soft, labels = torch.rand(30, 4).softmax(1).to(**to), torch.randint(0, 4, (12,)).to(device)
    mask, weight = torch.arange(12, device=device), torch.rand(150).to(**to)
    of_labels = (soft, labels, mask, index)
    x, batch = torch.randn(30, 5).to(**to), torch.arange(30, device=device) // 7
    return {
        "LightGCN": (pyg.LightGCN(30, 8, 3), (index,)),
        "LightGCN, other links": (pyg.LightGCN(30, 8, 2, alpha=torch.tensor([0.5, 0.3, 0.2])), (index, index[:, ::3], weight)),
        "CorrectAndSmooth": (pyg.CorrectAndSmooth(3, 0.9, 2, 0.8), of_labels),
        "CorrectAndSmooth, scaled": (pyg.CorrectAndSmooth(2, 0.7, 3, 0.8, autoscale=False, scale=2.0), (*of_labels, weight)),
        **{name: (getattr(pyg, name)(), (x, batch)) for name in AGGREGATIONS},
    }[name]


CASES = ["LightGCN", "LightGCN, other links", "CorrectAndSmooth", "CorrectAndSmooth, scaled", *AGGREGATIONS]


@pytest.mark.parametrize("name", CASES)
def test_accelerated_copied_saved_and_restored(name, device):
    theirs, given = made(name, device)
    theirs = theirs.to(**wide(device))
    expected = results(theirs, *given)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    file = io.BytesIO()
    torch.save(ours, file)
    file.seek(0)
    assert type(ours).__module__.startswith("tessera.nn.") and str(ours) == str(theirs)
    for other in (ours, copy.deepcopy(ours), torch.load(file, weights_only=False)):
        before = tessera.counters()["runs"]
        same(results(other, *given), expected)
        assert type(other) is type(ours) and tessera.counters()["runs"] > before
    plain = tessera.restore(ours)
    assert all(type(one) is type(other) for one, other in zip(plain.modules(), theirs.modules(), strict=True))
    same(results(plain, *given), expected)


@pytest.mark.parametrize("name", CASES)
def test_made_as_ours(name, device):
    theirs, given = made(name, device)
    kind, options = getattr(tessera.nn, type(theirs).__name__), {
        "LightGCN": (30, 8, 3), "LightGCN, other links": (30, 8, 2), "CorrectAndSmooth": (3, 0.9, 2, 0.8),
        "CorrectAndSmooth, scaled": (2, 0.7, 3, 0.8, False, 2.0)}.get(name, ())
    ours, theirs = kind(*options).to(**wide(device)), theirs.to(**wide(device))
    ours.load_state_dict(theirs.state_dict())
    assert str(ours) == str(theirs)
    same(results(ours, *given), results(theirs, *given))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_scores_of_lightgcn_are_pygs_under_autocast(dtype):
    theirs, given = made("LightGCN", torch.device("cpu"))
    theirs = theirs.to(dtype)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        found, expected = ours(*given), theirs(*given)
    assert found.dtype == expected.dtype and torch.allclose(found, expected, atol=2e-2)


def test_lightgcn_takes_sparse_matrices_and_graphs():
    theirs, (index,) = made("LightGCN", torch.device("cpu"))
    index = torch.unique(index, dim=1)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    matrix = torch.sparse_coo_tensor(index.flip(0), torch.ones(index.size(1)), (30, 30)).coalesce().to_sparse_csr()
    assert torch.allclose(ours(matrix), theirs(matrix), atol=1e-5)
    assert torch.allclose(ours(tessera.Graph(index, 30, 30)), theirs(index), atol=1e-5)
    assert torch.equal(ours.recommend(index, k=3), theirs.recommend(index, k=3))


@pytest.mark.parametrize("mode", ["cat", "max", "lstm"])
def test_jumping_knowledge_is_pygs(mode, device):
    """With equal numbers, too, as after a ReLU: the first of them has the gradient."""
    torch.manual_seed(1)
    theirs = pyg.JumpingKnowledge(mode, 8, 3).to(device)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    other = tessera.nn.JumpingKnowledge(mode, 8, 3).to(device)
    other.load_state_dict(theirs.state_dict())
    assert str(ours) == str(theirs) == str(other) and type(ours) is tessera.nn.JumpingKnowledge
    found = []
    for module in (theirs, ours, other):
        torch.manual_seed(2)
        xs = [torch.randn(20, 8, device=device).relu().requires_grad_() for _ in range(3)]
        out = module(xs)
        found.append([out, *torch.autograd.grad(out.square().sum(), xs)])
    same(found[1], found[0])
    same(found[2], found[0])
    assert type(tessera.restore(ours)) is pyg.JumpingKnowledge


def test_aggregations_of_layers_are_the_layers():
    """What reads a batch of graphs out is ours, what a layer aggregates with is not touched."""
    model = torch.nn.ModuleList([pyg.SAGEConv(6, 6), pyg.NNConv(6, 4, torch.nn.Linear(3, 24)), pyg.MeanAggregation()])
    tessera.accelerate(model)
    assert [type(layer.aggr_module) for layer in model[:2]] == [pyg.MeanAggregation, pyg.SumAggregation]
    assert type(model[2]) is tessera.nn.MeanAggregation
    layer = tessera.accelerate(pyg.SAGEConv(6, 6, aggr=tessera.nn.MaxAggregation()))
    theirs = copy.deepcopy(layer)
    theirs.aggr_module = pyg.MaxAggregation()
    x, index = torch.randn(20, 6), random_edges(20, 20, 90)
    assert torch.equal(layer(x, index), tessera.restore(theirs)(x, index)) and layer.tessera_fallback is None


@pytest.mark.parametrize("name", AGGREGATIONS)
def test_groups_side_by_side_and_other_dimensions(name, device):
    theirs, ours = getattr(pyg, name)(), getattr(tessera.nn, name)()
    x, ptr = torch.randn(2, 9, 3, **wide(device)), torch.tensor([0, 4, 4, 9], device=device)
    index = torch.arange(9, device=device) // 2
    same([ours(x[0], ptr=ptr)], [theirs(x[0], ptr=ptr)])
    same([ours(x, index, dim_size=7)], [theirs(x, index, dim_size=7)])


class Mixed(torch.nn.Module):
    """Layers with and without parameters by turns, one of a user's among them, and a readout."""

    def __init__(self):
        super().__init__()
        layers = [pyg.GraphConv(8, 8), pyg.SimpleConv(aggr="mean"), pyg.TAGConv(8, 8, K=2), pyg.LGConv()]
        self.layers = torch.nn.ModuleList(layers)
        self.norm, self.jump, self.pool = pyg.LayerNorm(8), pyg.JumpingKnowledge("max"), pyg.MaxAggregation()

    def forward(self, x, edge_index, batch):
        xs = []
        for layer in self.layers:
            x = torch.dropout(self.norm(layer(x, edge_index)).relu(), 0.5, self.training)
            xs.append(x)
        return self.pool(self.jump(xs), batch, dim_size=3)


def test_mixed_models_run_on_kernels_from_end_to_end(device):
    """Compiled, too: without a break, with as many kernels."""
    torch._dynamo.reset()
    theirs = Mixed().to(device).eval()
    ours = tessera.accelerate(copy.deepcopy(theirs))
    x, index = torch.randn(30, 8, device=device), random_edges(30, 30, 150, device)
    batch = torch.arange(30, device=device) // 12
    assert tessera.explain(ours, x, index, batch).accelerated == 4
    runs = [tessera.counters()["runs"]]
    for model in (ours, torch.compile(ours, fullgraph=True, backend="aot_eager")):
        same(results(model, x, index, batch), results(theirs, x, index, batch))
        runs.append(tessera.counters()["runs"])
    assert runs[2] - runs[1] >= runs[1] - runs[0] > 10


@pytest.mark.parametrize("bias", [True, False])
def test_the_formula_of_a_gated_cell(bias, device):
    """Compiled code for a GPU has it in the cell's place."""
    from tessera.nn.products import gru

    cell = torch.nn.GRUCell(5, 7, bias=bias).to(device)
    x, state = torch.randn(9, 5, device=device), torch.randn(9, 7, device=device)
    assert torch.allclose(gru(cell, x, state), cell(x, state), atol=1e-6)
