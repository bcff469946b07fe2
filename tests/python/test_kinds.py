# SPDX-License-Identifier: Apache-2.0
"""Layers over kinds of vertices beside PyG's: HGT, layers of HeteroConv that run at once, and linear layers of kinds."""

import copy
import io
import pickle
import random

import pytest
import torch
import torch_geometric.nn as pyg
from torch_geometric.utils import to_torch_csr_tensor

import tessera
import tessera.nn

KINDS = ["paper", "author", "shop"]


class Drawn:
    """Kinds, of which some may have no vertices, and relations, of which some may have no edges."""

    def __init__(self, seed, widths=None, holders=("list",), fewest=1):
        draw = random.Random(seed)
        torch.manual_seed(seed)
        self.kinds = KINDS[:draw.choice([1, 2, 3])]
        self.sizes = {kind: draw.choice([0, 1, 5, 17, 40]) for kind in self.kinds}
        self.sizes[self.kinds[0]] = 9
        self.widths = widths or {kind: draw.choice([3, 8]) for kind in self.kinds}
        self.x = {kind: torch.randn(self.sizes[kind], self.widths[kind], dtype=torch.float64) for kind in self.kinds}
        self.relations = [(source, f"r{number}", target) for number in range(draw.choice([1, 2]))
                          for source in self.kinds for target in self.kinds]
        draw.shuffle(self.relations)
        self.relations = self.relations[:max(fewest, draw.choice([1, 3, 12]))]
        self.edges = {}
        for relation in self.relations:
            source, target = self.sizes[relation[0]], self.sizes[relation[2]]
            edges = draw.choice([0, 1, 7, 60]) if source and target else 0
            index = torch.stack([torch.randint(0, max(size, 1), (edges,)) for size in (source, target)])
            holder = draw.choice(holders)
            self.edges[relation] = index.int() if holder == "int" else index
            if holder == "csr":
                index = torch.unique(index, dim=1).flip(0)
                self.edges[relation] = to_torch_csr_tensor(index, size=(target, source))

    def run(self, layer):
        """Of an index of 32 bits PyG's gradients are wrong: those of torch's scatter_add are."""
        x = {kind: each.clone().requires_grad_() for kind, each in self.x.items()}
        pygs = type(layer).__module__.startswith("torch_geometric.")
        edges = {relation: index.long() if pygs and index.layout == torch.strided else index
                 for relation, index in self.edges.items()}
        out = layer(x, edges)
        given = [*x.values(), *layer.parameters()]
        total = sum(each.square().sum() for each in out.values()) + sum(0 * tensor.sum() for tensor in given)
        return {kind: each.detach() for kind, each in out.items()}, torch.autograd.grad(total, given)


def check(drawn, ours, theirs, text):
    for _ in range(2):
        (found, gradients), (wanted, others) = drawn.run(ours), drawn.run(theirs)
        assert list(found) == list(wanted), text
        for mine, other in (*zip(found.values(), wanted.values()), *zip(gradients, others, strict=True)):
            assert mine.shape == other.shape and mine.dtype == other.dtype, text
            assert torch.allclose(mine, other, atol=1e-6, rtol=1e-6), text


def test_hgt_drawn_cases():
    ran = on_kernels = 0
    for seed in range(60):
        drawn = Drawn(seed, holders=("list", "list", "int", "csr"))
        heads = random.Random(seed).choice([1, 2, 4])
        theirs = pyg.HGTConv(drawn.widths, 8, (drawn.kinds, drawn.relations), heads).double()
        for parameter in [*theirs.p_rel.parameters(), *theirs.skip.parameters()]:
            torch.nn.init.normal_(parameter)
        try:
            drawn.run(theirs)
        except Exception:
            continue
        ours = tessera.accelerate(copy.deepcopy(theirs))
        check(drawn, ours, theirs, f"seed {seed}")
        ran, on_kernels = ran + 1, on_kernels + (ours.tessera_fallback is None)
    assert ran >= 40 and on_kernels >= 40, (ran, on_kernels)


def test_hgt_of_sizes_not_known_and_of_some_relations():
    drawn = Drawn(3, fewest=3)
    theirs = pyg.HGTConv(-1, 6, (drawn.kinds, drawn.relations), heads=3).double()
    del drawn.edges[drawn.relations[1]]
    drawn.run(theirs)
    check(drawn, tessera.accelerate(copy.deepcopy(theirs)), theirs, "")


def test_hgt_knows_vertices_of_each_kind():
    """A number that there is no vertex for must not be one of the next kind."""
    relation = ("paper", "to", "shop")
    layer = tessera.nn.HGTConv(4, 4, (["paper", "shop"], [relation]))
    x = {"paper": torch.randn(3, 4), "shop": torch.randn(5, 4)}
    with pytest.raises(IndexError, match="source index 3 is outside"):
        layer(x, {relation: torch.tensor([[0, 3], [1, 1]])})


def convolutions(drawn, options, aggr):
    layers = {relation: pyg.SAGEConv((drawn.widths[relation[0]], drawn.widths[relation[2]]), 6, **options)
              for relation in drawn.relations}
    return pyg.HeteroConv(layers, aggr).double()


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_layers_at_once_drawn_cases():
    at_once = 0
    for seed in range(60):
        draw = random.Random(seed)
        same = {kind: 5 for kind in KINDS} if draw.random() < 0.8 else None
        drawn = Drawn(seed, same)
        options = {"aggr": draw.choice(["mean", "sum", "max", "min"]), "root_weight": draw.random() < 0.7,
                   "bias": draw.random() < 0.7}
        theirs = convolutions(drawn, options, draw.choice(["sum", "sum", "mean", "max", "cat"]))
        ours = tessera.accelerate(copy.deepcopy(theirs))
        check(drawn, ours, theirs, f"{options}, seed {seed}")
        at_once += ours._at_once(drawn.x, drawn.edges) is not None and ours.aggr in ("sum", "mean")
    assert at_once >= 15


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_64_relations_at_once():
    torch.manual_seed(1)
    kinds = [f"kind{number}" for number in range(16)]
    relations = [(kinds[number % 16], f"r{number}", kinds[(5 * number + 1) % 16]) for number in range(64)]
    x = {kind: torch.randn(20, 8) for kind in kinds}
    edges = {relation: torch.randint(0, 20, (2, 50)) for relation in relations}
    theirs = pyg.HeteroConv({relation: pyg.SAGEConv((8, 8), 8) for relation in relations})
    ours = tessera.accelerate(copy.deepcopy(theirs))
    wanted, found = theirs(x, edges), ours(x, edges)
    assert all(torch.allclose(found[kind], wanted[kind], atol=1e-4) for kind in wanted)
    before = tessera.counters()["runs"]
    ours(x, edges)
    assert tessera.counters()["runs"] - before <= 2  # a sum into pairs, and one of pairs


@pytest.mark.parametrize("options", [{}, {"root_weight": False}, {"root_weight": False, "bias": False}])
def test_results_may_be_changed_in_place(options):
    drawn = Drawn(5, {kind: 5 for kind in KINDS}, fewest=9)
    ours = tessera.accelerate(convolutions(drawn, options, "sum"))
    sum(each.relu_().square().sum() for each in ours(drawn.x, drawn.edges).values()).backward()


def test_layers_that_are_looked_at_run_one_by_one():
    drawn = Drawn(5, {kind: 5 for kind in KINDS}, fewest=3)
    ours = tessera.accelerate(convolutions(drawn, {}, "sum"))
    seen = []
    next(iter(ours.convs.values())).register_forward_hook(lambda *_: seen.append(1))
    ours(drawn.x, drawn.edges)
    assert seen == [1]


@pytest.mark.filterwarnings("ignore:There exist node types")
def test_explain_names_layers_at_once():
    relations = [("a", "to", "b"), ("b", "to", "b")]
    x, edges = {"a": torch.randn(4, 3), "b": torch.randn(5, 3)}, {relation: torch.zeros(2, 1).long() for relation in relations}
    model = tessera.accelerate(pyg.HeteroConv({relation: pyg.SAGEConv((3, 3), 4) for relation in relations}))
    explained = tessera.explain(model, x, edges)
    assert len(explained) == 2 and explained.accelerated == 2
    assert all("spmm/cpu/" in line and "grouped_product/cpu/" in line for line in explained)


@pytest.mark.parametrize("seed", range(12))
def test_linear_layers_of_kinds(seed):
    draw = random.Random(seed)
    torch.manual_seed(seed)
    types, rows, options = draw.choice([1, 3, 50]), draw.choice([1, 17, 300]), {"bias": draw.random() < 0.5}
    index = torch.randint(0, types, (rows,))
    theirs = pyg.HeteroLinear(draw.choice([1, 17]), draw.choice([1, 8]), types, **options).double()
    ours = tessera.accelerate(copy.deepcopy(theirs))
    assert type(ours) is tessera.nn.HeteroLinear
    found = []
    for layer in (ours, theirs):
        x = torch.ones(rows, layer.in_channels, dtype=torch.float64).cumsum(0).sin().requires_grad_()
        out = layer(x, index)
        found.append([out, *torch.autograd.grad(out.square().sum(), [x, *layer.parameters()])])
    assert all(torch.allclose(mine, other) for mine, other in zip(*found, strict=True))


def test_linear_layers_by_kind():
    x = {"paper": torch.randn(5, 4), "shop": torch.randn(0, 3)}
    theirs = pyg.HeteroDictLinear({"paper": 4, "author": 9, "shop": 3}, 6)
    ours = tessera.accelerate(copy.deepcopy(theirs))
    wanted, found = theirs(x), ours(x)
    assert list(found) == list(wanted) and all(torch.equal(found[kind], wanted[kind]) for kind in wanted)
    assert ours({}) == {}


MODELS = {
    "HGT": lambda: pyg.HGTConv(4, 6, (["a", "b"], [("a", "to", "b"), ("b", "to", "a")]), heads=2),
    "at once": lambda: pyg.HeteroConv({("a", "to", "b"): pyg.SAGEConv(4, 6), ("b", "to", "a"): pyg.SAGEConv(4, 6)}),
    "by kind": lambda: pyg.HeteroDictLinear(4, 6, ["a", "b"]),
}


@pytest.mark.parametrize("name", MODELS)
def test_saved_copied_restored_and_compiled(name):
    x = {"a": torch.randn(7, 4), "b": torch.randn(5, 4)}
    edges = {("a", "to", "b"): torch.stack([torch.randint(0, 7, (20,)), torch.randint(0, 5, (20,))]),
             ("b", "to", "a"): torch.stack([torch.randint(0, 5, (20,)), torch.randint(0, 7, (20,))])}
    arguments = (x,) if name == "by kind" else (x, edges)
    theirs = MODELS[name]()
    ours = tessera.accelerate(copy.deepcopy(theirs))
    assert type(ours).__module__.startswith("tessera.nn.") and list(ours.state_dict()) == list(theirs.state_dict())
    saved = io.BytesIO()
    torch.save(ours, saved)
    saved.seek(0)
    wanted = theirs(*arguments)
    compiled = torch.compile(copy.deepcopy(ours), backend="aot_eager")
    for layer in (ours, copy.deepcopy(ours), pickle.loads(pickle.dumps(ours)), torch.load(saved, weights_only=False), compiled,
                  tessera.restore(copy.deepcopy(ours))):
        found = layer(*arguments)
        assert list(found) == list(wanted) and all(torch.allclose(found[kind], wanted[kind], atol=1e-5) for kind in wanted)
    assert type(tessera.restore(ours)) is type(theirs)


class TwoLayers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1, self.conv2, self.lin = pyg.SAGEConv((-1, -1), 8), pyg.SAGEConv((-1, -1), 4), pyg.Linear(-1, 4)

    def forward(self, x, edge_index):
        x = self.conv1(x, edge_index).relu()
        return self.conv2(x, edge_index) + self.lin(x)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("aggr", ["sum", "mean", "max"])
def test_models_made_heterogeneous(first, aggr):
    """tessera.accelerate before to_hetero, or after it."""
    torch.manual_seed(2)
    x = {"a": torch.randn(7, 4), "b": torch.randn(5, 3)}
    edges = {(source, name, target): torch.stack([torch.randint(0, len(x[kind]), (20,)) for kind in (source, target)])
             for source, name, target in (("a", "to", "b"), ("b", "to", "a"), ("a", "again", "b"), ("b", "among", "b"))}
    metadata = (list(x), list(edges))
    theirs = pyg.to_hetero(TwoLayers(), metadata, aggr)
    theirs(x, edges)
    model = TwoLayers()
    ours = pyg.to_hetero(tessera.accelerate(model), metadata, aggr) if first else tessera.accelerate(
        pyg.to_hetero(model, metadata, aggr))
    ours(x, edges)
    ours.load_state_dict(theirs.state_dict())
    wanted, found = theirs(x, edges), ours(x, edges)
    assert all(torch.allclose(found[kind], wanted[kind], atol=1e-5) for kind in wanted)
    explained = tessera.explain(ours, x, edges)
    assert explained.accelerated == len(explained) == 8


@pytest.mark.parametrize("root", [True, False])
def test_types_under_autocast(root):
    x, edges = {"a": torch.randn(7, 4)}, {("a", name, "a"): torch.randint(0, 7, (2, 20)) for name in ("to", "by")}
    convs = pyg.HeteroConv({relation: pyg.SAGEConv(4, 6, root_weight=root) for relation in edges})
    for theirs in (convs, pyg.HGTConv(4, 4, (["a"], list(edges))), pyg.HGTConv(4, 6, (["a"], list(edges)))):
        ours = tessera.accelerate(copy.deepcopy(theirs))
        with torch.autocast("cpu", torch.bfloat16):
            wanted, found = theirs(x, edges)["a"], ours(x, edges)["a"]
        assert wanted.dtype == found.dtype and torch.allclose(wanted.float(), found.float(), atol=0.1)
    theirs = pyg.HeteroLinear(4, 6, 3)
    ours, index = tessera.accelerate(copy.deepcopy(theirs)), torch.tensor([0, 2, 1, 0, 0, 1, 2])
    with torch.autocast("cpu", torch.bfloat16):
        wanted, found = theirs(x["a"], index), ours(x["a"], index)
    assert wanted.dtype == found.dtype and torch.allclose(wanted, found, atol=0.1)
