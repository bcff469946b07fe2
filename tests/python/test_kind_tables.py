# SPDX-License-Identifier: Apache-2.0
"""Models that the program learns of folders of kinds of vertices compute what PyG's layers do with their weights."""

import numpy as np
import pytest
import torch
from test_files import needs_program, run
from torch_geometric.nn import GATConv, HeteroConv, RGCNConv, SAGEConv

from tessera import container

HIDDEN, HEADS, CLASSES = 8, 2, 3
COUNTS = {"item": 7, "tag": 4, "user": 20}  # in the order of their names
FEATURES = {"item": 2, "user": 3}  # tags have none
RELATIONS = [("item", "has", "tag"), ("user", "buys", "item"), ("user", "knows", "user")]
EDGES = {"has": 9, "buys": 30, "knows": 25}


class Shop:
    """Drawn vertices and edges, and the folder that holds them."""

    def __init__(self, folder):
        random = np.random.default_rng(5)
        self.x = {kind: random.normal(size=(COUNTS[kind], width)).round(4) for kind, width in FEATURES.items()}
        self.edges = {}
        for source, relation, target in RELATIONS:
            pairs = random.choice(COUNTS[source] * COUNTS[target], EDGES[relation], replace=False)
            self.edges[source, relation, target] = torch.tensor(np.stack([pairs // COUNTS[target], pairs % COUNTS[target]]))
            lines = [f"{source}{i},{target}{j}" for i, j in self.edges[source, relation, target].T.tolist()]
            (folder / f"edges_{source}_{relation}_{target}.csv").write_text("\n".join(["from,to", *lines]) + "\n")
        for (source, relation, target), edges in list(self.edges.items()):
            self.edges[target, "rev_" + relation, source] = edges.flip(0)
        for kind, count in COUNTS.items():
            columns = [f"x{j}" for j in range(FEATURES.get(kind, 0))]
            rows = [[f"{kind}{i}", *map(str, self.x.get(kind, np.zeros((count, 0)))[i])] for i in range(count)]
            if kind == "user":
                columns.append("label")
                rows = [[*row, f"c{i % CLASSES}"] for i, row in enumerate(rows)]
            lines = [",".join(row) for row in [["id", *columns], *rows]]
            (folder / f"nodes_{kind}.csv").write_text("\n".join(lines) + "\n")

    def encoded(self, weights):
        widest = max(FEATURES.values())
        maps = weights["encoder.weight"].reshape(len(FEATURES), widest, HIDDEN)
        rows = {"tag": weights["encoder.embedding.weight"]}
        for number, kind in enumerate(FEATURES):
            x = torch.tensor(self.x[kind])
            rows[kind] = x @ maps[number, :x.size(1)] + weights["encoder.bias"][number]
        return rows


def sage(weights, layer, number, width):
    conv = SAGEConv((HIDDEN, HIDDEN), width).double()
    get = {name: weights[f"convs.{layer}.{name}"][number] for name in ("lin_l.weight", "lin_r.weight", "bias")}
    conv.load_state_dict({"lin_l.weight": get["lin_l.weight"].reshape(HIDDEN, width).T, "lin_l.bias": get["bias"],
                          "lin_r.weight": get["lin_r.weight"].reshape(HIDDEN, width).T})
    return conv


def gat(weights, layer, number, width):
    heads = HEADS if layer == 0 else 1
    conv = GATConv((HIDDEN, HIDDEN), width // heads, heads=heads, add_self_loops=False).double()
    state = {}
    for name in ("lin_src.weight", "lin_dst.weight", "att_src", "att_dst", "bias"):
        value = weights[f"convs.{layer}.{name}"][number]
        state[name] = (value.reshape(HIDDEN, width).T if name.startswith("lin") else
                       value.reshape(1, heads, width // heads) if name.startswith("att") else value)
    conv.load_state_dict(state)
    return conv


def of_kinds(make, weights, shop, activate):
    rows = shop.encoded(weights)
    for layer, width in enumerate((HIDDEN, CLASSES)):
        convs = {relation: make(weights, layer, number, width) for number, relation in enumerate(shop.edges)}
        rows = HeteroConv(convs, aggr="sum")(rows, shop.edges)
        rows = {kind: activate(x) if layer == 0 else x for kind, x in rows.items()}
    return rows["user"]


def rgcn(weights, shop):
    encoded = shop.encoded(weights)
    first = dict(zip(COUNTS, np.cumsum([0, *COUNTS.values()])[:-1].tolist()))
    ends = [edges + torch.tensor([[first[source]], [first[target]]]) for (source, _, target), edges in shop.edges.items()]
    types = torch.cat([torch.full((part.size(1),), number) for number, part in enumerate(ends)])
    x = torch.cat([encoded[kind] for kind in COUNTS])
    for layer, width in enumerate((HIDDEN, CLASSES)):
        conv = RGCNConv(HIDDEN, width, len(ends), num_bases=2).double()
        get = {name: weights[f"convs.{layer}.{name}"] for name in ("weight", "comp", "root.weight", "bias")}
        conv.load_state_dict({"weight": get["weight"].T.reshape(2, HIDDEN, width), "comp": get["comp"],
                              "root": get["root.weight"].T, "bias": get["bias"].flatten()})
        x = conv(x, torch.cat(ends, dim=1), types)
        x = x.relu() if layer == 0 else x
    return x[first["user"]:first["user"] + COUNTS["user"]]


REFERENCES = {"rgcn": rgcn,
              "sage": lambda weights, shop: of_kinds(sage, weights, shop, torch.relu),
              "gat": lambda weights, shop: of_kinds(gat, weights, shop, torch.nn.functional.elu)}


@needs_program
@pytest.mark.parametrize("model", REFERENCES)
def test_the_program_computes_what_pygs_layers_do(model, tmp_path):
    shop = Shop(tmp_path)
    options = {"rgcn": ["--bases", "2"], "gat": ["--heads", str(HEADS)]}.get(model, [])
    run("train", tmp_path, "--symmetrise", "--model", model, "--hidden", HIDDEN, "--epochs", 5, "--normalise", "off", *options,
        "-c", tmp_path / "model.tsr")
    run("predict", tmp_path, "--symmetrise", "-c", tmp_path / "model.tsr", "-o", tmp_path / "users.npz")
    arrays = container.read(tmp_path / "model.tsr")
    weights = {name.removeprefix("weights:"): torch.tensor(array).double() for name, array in arrays.items() if
               name.startswith("weights:")}
    with torch.no_grad():
        expected = REFERENCES[model](weights, shop)
    found = torch.tensor(np.load(tmp_path / "users.npz")["logits"]).double()
    assert found.shape == expected.shape
    assert torch.allclose(found, expected, rtol=1e-5, atol=1e-5), (found - expected).abs().max()
