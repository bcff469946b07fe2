# SPDX-License-Identifier: Apache-2.0
"""R-GCN beside PyG's: options, holders of edges and relations as they come, with results and gradients."""

import copy
import io
import pickle
import random

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import opcheck, random_edges
from torch_geometric import EdgeIndex

import tessera
import tessera.nn

FEATURES = ["floats", "floats", "floats", "none", "numbers"]


class Case:
    """A layer of PyG's and what it is called with, in double precision."""

    def __init__(self, kind, seed, device, relations=None):
        draw = random.Random(seed)
        torch.manual_seed(seed)
        aggr = draw.choice(["mean", "add", "sum", "max", "min"] if kind == "RGCNConv" else ["mean", "add", "sum"])
        relations = draw.choice([1, 2, 3, 7, 40]) if relations is None else relations
        self.features = draw.choice(FEATURES)
        sources = draw.choice([1, 2, 5, 16, 33])
        paired = draw.random() < 0.3
        targets = draw.choice([1, 4, 17]) if paired else sources
        blocks = draw.choice([None, None, 2, 3]) if self.features == "floats" else None
        inputs = sources if self.features != "floats" else draw.choice([1, 4, 7]) * (blocks or 1)
        outputs = draw.choice([1, 2, 9]) * (blocks or 1)
        of_targets = targets if self.features != "floats" else inputs + draw.choice([0, 2])
        options = {"num_bases": draw.choice([None, 1, 3]) if blocks is None else None, "num_blocks": blocks, "aggr": aggr,
                   "root_weight": draw.random() < 0.7, "bias": draw.random() < 0.7}
        if not paired and draw.random() < 0.2:
            options["flow"] = "target_to_source"
        self.text = f"{kind} {relations} relations, {self.features}, {options}, seed {seed}"
        self.layer = getattr(pyg, kind)((inputs, of_targets) if paired else inputs, outputs, relations, **options).to(
            device, torch.float64)
        self.floats = ()
        if self.features == "floats":
            shapes = [(sources, inputs)] + ([(targets, of_targets)] if paired else [])
            self.floats = tuple(torch.randn(*shape, dtype=torch.float64).to(device) for shape in shapes)
            self.x = None
        elif self.features == "none":
            self.x = (None, torch.arange(targets, device=device)) if paired else None
        else:
            numbers = torch.randperm(sources).to(device)
            self.x = (numbers, torch.randperm(targets).to(device)) if paired else numbers
        edges = draw.choice([0, 1, 5, 40, 200]) if relations > 0 else 0
        self.edges = torch.stack([torch.randint(0, sources, (edges,)), torch.randint(0, targets, (edges,))]).to(device)
        used = draw.choice([relations, max(relations // 2, 1)])  # others have no edges
        self.types = torch.randint(0, max(used, 1), (edges,)).to(device)
        self.edges_of_ours = self.edges
        if draw.random() < 0.2:  # of which PyG's gradients are wrong: those of torch's scatter_add are
            self.edges_of_ours = self.edges.int()
        elif draw.random() < 0.2 and edges > 0:
            self.edges = self.edges_of_ours = EdgeIndex(self.edges, sparse_size=(sources, targets))

    def run(self, layer):
        edges = self.edges if layer is self.layer else self.edges_of_ours
        given = [x.clone().requires_grad_() for x in self.floats]
        x = self.x if not given else tuple(given) if len(given) > 1 else given[0]
        out = layer(x, edges, self.types)
        given += list(layer.parameters())
        total = out.square().sum() + sum(0 * tensor.sum() for tensor in given)
        return [out.detach(), *torch.autograd.grad(total, given)]


def check(case, layer):
    expected = case.run(case.layer)
    largest = max(float(tensor.abs().max()) for tensor in expected if tensor.numel() > 0)
    for _ in range(2):  # the second time with what was kept
        for mine, theirs in zip(case.run(layer), expected, strict=True):
            assert mine.shape == theirs.shape and mine.dtype == theirs.dtype, case.text
            assert ((mine - theirs).abs() <= 1e-6 * (1 + largest)).all(), case.text


def pygs(case):
    try:
        return case.run(case.layer)
    except Exception:
        return None


@pytest.mark.parametrize("kind", ["RGCNConv", "FastRGCNConv"])
def test_drawn_cases(kind):
    ran = on_kernels = 0
    for seed in range(100):
        case = Case(kind, seed, torch.device("cpu"))
        if pygs(case) is None:
            continue
        layer = tessera.accelerate(copy.deepcopy(case.layer))
        check(case, layer)
        ran, on_kernels = ran + 1, on_kernels + (layer.tessera_fallback is None)
    assert ran >= 60 and on_kernels >= 60, (ran, on_kernels)


@pytest.mark.parametrize("kind", ["RGCNConv", "FastRGCNConv"])
@pytest.mark.parametrize("relations", [1, 500])
def test_one_and_many_relations(kind, relations):
    ran = 0
    for seed in range(1000, 1016):
        case = Case(kind, seed, torch.device("cpu"), relations)
        if pygs(case) is not None:
            check(case, tessera.accelerate(copy.deepcopy(case.layer)))
            ran += 1
    assert ran >= 8


@pytest.mark.parametrize("options", [{}, {"num_blocks": 2}, {"aggr": "max"}])
def test_no_relations(options):
    """PyG's code fails there, but with blocks."""
    layer = tessera.nn.RGCNConv(4, 2, 0, **options)
    x, edges, types = torch.randn(3, 4), torch.zeros(2, 0, dtype=torch.long), torch.zeros(0, dtype=torch.long)
    assert torch.allclose(layer(x, edges, types), x @ layer.root + layer.bias)


def test_every_way_is_taken():
    """Few relations of many edges, many of few, and matrices that make features narrower: kept plans are those."""
    x = torch.randn(30, 6, dtype=torch.float64)
    for edges, relations, outputs in ((3000, 2, 8), (60, 50, 8), (3000, 2, 3)):
        index, types = random_edges(30, 30, edges), torch.randint(0, relations, (edges,))
        theirs = pyg.RGCNConv(6, outputs, relations).double()
        ours = tessera.accelerate(copy.deepcopy(theirs))
        assert torch.allclose(ours(x, index, types), theirs(x, index, types))


@pytest.mark.parametrize("relations", [3, 200])
def test_plans_are_kept_for_as_long_as_edges_live(relations):
    layer = tessera.nn.RGCNConv(8, 8, relations)
    index, types, x = random_edges(50, 50, 300), torch.randint(0, relations, (300,)), torch.randn(50, 8)
    layer(x, index, types)
    tessera.clear_cache()
    layer(x, index, types)
    before = tessera.counters()["graphs"]
    first = layer(x, index, types)
    assert tessera.counters()["graphs"] == before
    types[0] = (types[0] + 1) % relations
    assert not torch.equal(first, layer(x, index, types))
    del first, types, index
    assert tessera.cache_info()["entries"] == 0


def test_second_derivatives():
    index, types = random_edges(6, 6, 20), torch.randint(0, 5, (20,))
    x = torch.randn(6, 3, dtype=torch.float64, requires_grad=True)
    for options in ({}, {"num_bases": 2}, {"aggr": "max"}):
        theirs = pyg.RGCNConv(3, 4, 5, **options).double()
        found = []
        for layer in (theirs, tessera.accelerate(copy.deepcopy(theirs))):
            (first,) = torch.autograd.grad(layer(x, index, types).pow(3).sum(), x, create_graph=True)
            found.append(torch.autograd.grad(first.square().sum(), [x, *layer.parameters()], allow_unused=True))
        for mine, theirs in zip(*found):
            assert (mine is None or not mine.any()) if theirs is None else torch.allclose(mine, theirs)


@pytest.mark.parametrize("kind", ["RGCNConv", "FastRGCNConv"])
@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("bias", [True, False])
def test_types_of_results(kind, dtype, bias):
    index, types, x = random_edges(20, 20, 60), torch.randint(0, 4, (60,)), torch.randn(20, 8)
    theirs = getattr(pyg, kind)(8, 8, 4, bias=bias)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    with torch.autocast("cpu", dtype):
        wanted, found = theirs(x, index, types), ours(x, index, types)
    assert wanted.dtype == found.dtype and torch.allclose(wanted.float(), found.float(), atol=0.1)
    theirs, ours = theirs.to(dtype), ours.to(dtype)
    wanted, found = theirs(x.to(dtype), index, types), ours(x.to(dtype), index, types)
    assert wanted.dtype == found.dtype and torch.allclose(wanted.float(), found.float(), atol=0.1)


@pytest.mark.parametrize("kind", ["RGCNConv", "FastRGCNConv"])
def test_saved_copied_restored_and_compiled(kind):
    index, types, x = random_edges(20, 20, 90), torch.randint(0, 4, (90,)), torch.randn(20, 8)
    theirs = getattr(pyg, kind)(8, 5, 4, num_bases=2)
    wanted = theirs(x, index, types)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    assert str(ours) == str(theirs) and list(ours.state_dict()) == list(theirs.state_dict())
    saved = io.BytesIO()
    torch.save(ours, saved)
    saved.seek(0)
    compiled = torch.compile(copy.deepcopy(ours), backend="aot_eager", fullgraph=True)
    for layer in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), torch.load(saved, weights_only=False), compiled):
        assert torch.allclose(layer(x, index, types), wanted, atol=1e-5)
    compiled(x, index, types).sum().backward()
    theirs.zero_grad()
    theirs(x, index, types).sum().backward()
    for mine, other in zip(compiled.parameters(), theirs.parameters()):
        assert torch.allclose(mine.grad, other.grad, atol=1e-4)
    assert type(tessera.restore(ours)) is type(theirs)
    assert torch.allclose(ours(x, index, types), wanted)


def test_explain_names_the_kernels():
    model = tessera.accelerate(torch.nn.Sequential(pyg.RGCNConv(8, 8, 3), pyg.RGCNConv(8, 8, 3, aggr="std")))
    explained = tessera.explain(model[0], torch.randn(9, 8), random_edges(9, 9, 20), torch.randint(0, 3, (20,)))
    assert explained[0].startswith("RGCNConv: ") and "grouped_product/cpu/torch" in explained[0] and explained.accelerated == 1
    assert tessera.explain(model[1], torch.randn(9, 8), random_edges(9, 9, 20), torch.randint(0, 3, (20,))).accelerated == 0


def test_precision_of_sums():
    index, types, x = random_edges(20, 20, 90), torch.randint(0, 4, (90,)), torch.randn(20, 8)
    theirs = pyg.RGCNConv(8, 8, 4)
    ours = tessera.accelerate(copy.deepcopy(theirs), precision="bf16")
    assert torch.allclose(ours(x, index, types), theirs(x, index, types), atol=0.05)


def test_opcheck_of_pairs():
    index, types = random_edges(9, 9, 30), torch.randint(0, 4, (30,))
    opcheck("relation_pairs", (index[1], types, 9, 4), ("test_schema", "test_faketensor"))
    for edges, targets, relations in ((30, 9, 4), (30, 9, 4000), (0, 9, 4), (0, 0, 3), (0, 5, 0)):
        index, types = random_edges(targets, max(targets, 1), edges), torch.randint(0, max(relations, 1), (edges,))
        of_edges, found, ptr = torch.ops.tessera.relation_pairs(index[1], types, targets, relations)
        pairs = [(r, int(t)) for r in range(relations) for t in found[ptr[r]:ptr[r + 1]]]
        assert pairs == sorted(set(zip(types.tolist(), index[1].tolist())))
        assert [pairs[pair] for pair in of_edges] == list(zip(types.tolist(), index[1].tolist()))


@pytest.mark.parametrize("change, kind, text", [
    ({"types": torch.tensor([0, 3])}, IndexError, "edge_type has 3 for 3 relations: use 0 to 2"),
    ({"types": torch.tensor([0, -1])}, IndexError, "edge_type has -1"),
    ({"types": torch.tensor([0])}, ValueError, "edge_type has 1 numbers for 2 edges"),
    ({"types": None}, ValueError, "edge_type is None"),
    ({"index": torch.tensor([[0, 9], [1, 1]])}, IndexError, "edge_index: source index 9 is outside"),
    ({"x": torch.ones(3, 5)}, ValueError, "x has 5 features, the layer takes 4"),
    ({"x": torch.ones(3, 4).double()}, TypeError, "x has type torch.float64"),
    ({"x": torch.tensor([0, 4, 1])}, IndexError, "x has 4 for 4 rows of each matrix"),
])
def test_wrong_arguments(change, kind, text):
    given = {"x": torch.ones(3, 4), "index": torch.tensor([[0, 2], [1, 1]]), "types": torch.tensor([0, 1]), **change}
    with pytest.raises(kind, match=f"RGCNConv: {text}"):
        tessera.nn.RGCNConv(4, 2, 3)(*given.values())
