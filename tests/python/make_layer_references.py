#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes tests/data/layer_references.txt: what PyG's layers put out for given weights and inputs.

Needs torch and torch_geometric, which nothing else of the project does; run it by hand after adding a
case and commit the file it writes. tests/unit/nn/reference_outputs_test.cpp reads it.

The file is a sequence of cases. A case begins with "case NAME LAYER TRAINING" and goes on with lines
"option KEY VALUE" and blocks "tensor KEY ROWS COLS" followed by ROWS lines of numbers. The tensor
"edges" holds source, target and weight; "x" and "x_target" are inputs, "output" is the result, and
every other tensor is an entry of the layer's state_dict.
"""
import pathlib
import sys

import torch
from torch import nn
from torch_geometric import nn as pyg

VERTICES, TARGETS, IN, IN_TARGET, OUT = 11, 7, 5, 4, 3


def directed_edges(sources, targets, count, seed):
    """Unique directed edges with weights; square graphs get two self loops."""
    generator = torch.Generator().manual_seed(seed)
    flat = torch.randperm(sources * (targets - 1), generator=generator)[:count]
    edge_index = torch.stack([flat % sources, flat // sources])  # the last target has no source
    if sources == targets:
        keep = edge_index[0] != edge_index[1]
        edge_index = torch.cat([edge_index[:, keep], torch.tensor([[2, 5], [2, 5]])], dim=1)
    weight = torch.rand(edge_index.size(1), generator=generator) + 0.25
    return edge_index, weight


SQUARE = directed_edges(VERTICES, VERTICES, 30, 1)
BIPARTITE = directed_edges(VERTICES, TARGETS, 25, 2)


def flat_rows(tensor):
    return tensor.detach().reshape(-1, tensor.shape[-1]) if tensor.dim() > 1 else tensor.detach().reshape(1, -1)


def write_tensor(out, key, tensor):
    rows = flat_rows(tensor.float())
    out.write(f"tensor {key} {rows.shape[0]} {rows.shape[1]}\n")
    for row in rows.tolist():
        out.write(" ".join(f"{value:.9g}" for value in row) + "\n")


class Writer:
    def __init__(self, out):
        self.out = out
        self.seed = 100

    def case(self, name, layer, module, run, options=None, edges=SQUARE, training=False, **tensors):
        """`run(module, edge_index, weight)` gives the output; `tensors` are the inputs."""
        self.seed += 1
        torch.manual_seed(self.seed)
        for value in list(module.parameters()) + list(module.buffers()):
            if value.is_floating_point():
                value.data = torch.rand_like(value) * 0.9 + 0.1 if value.dim() == 1 else torch.randn_like(value)
        module.train(training)
        self.out.write(f"case {name} {layer} {int(training)}\n")
        for key, value in (options or {}).items():
            self.out.write(f"option {key} {float(value):g}\n")
        edge_index, weight = edges
        write_tensor(self.out, "edges", torch.cat([edge_index.float(), weight[None]]).t())
        for key, value in tensors.items():
            write_tensor(self.out, key, value)
        # Running statistics move in training: written as they were before.
        for key, value in module.state_dict().items():
            if value.is_floating_point():
                write_tensor(self.out, key, value)
        write_tensor(self.out, "output", run(module, edge_index, weight))


class SageGcn(nn.Module):
    """The paper's gcn aggregation, which PyG's SAGEConv lacks: mean over the target and its sources."""

    def __init__(self):
        super().__init__()
        self.lin_l = nn.Linear(IN, OUT)

    def forward(self, x, edge_index):
        adjacency = torch.eye(x.size(0))
        adjacency[edge_index[1], edge_index[0]] = 1
        return self.lin_l(adjacency @ x / adjacency.sum(1, keepdim=True))


def perceptron(width, norm=True):
    layers = [nn.Linear(IN, width)] + ([nn.BatchNorm1d(width)] if norm else [])
    return nn.Sequential(*layers, nn.ReLU(), nn.Linear(width, OUT))


def spectral_cases(writer, x):
    weighted = lambda module, edge_index, weight: module(x, edge_index, weight)
    plain = lambda module, edge_index, weight: module(x, edge_index)
    for name, out, run, options in (
        ("gcn_weighted", OUT, weighted, {}),
        ("gcn_wide", 8, weighted, {}),
        ("gcn_unweighted", OUT, plain, {"unweighted": 1}),
        ("gcn_no_loops", OUT, weighted, {"add_self_loops": 0}),
        ("gcn_as_given", OUT, weighted, {"normalise": 0}),
    ):
        module = pyg.GCNConv(IN, out, add_self_loops=options.get("add_self_loops", 1 if options.get("normalise", 1) else 0) == 1,
                             normalize=options.get("normalise", 1) == 1)
        writer.case(name, "gcn", module, run, {"in": IN, "out": out, **options}, x=x)
    for hops in (1, 2, 3):
        writer.case(f"sgc_{hops}", "sgc", pyg.SGConv(IN, OUT, K=hops), weighted,
                    {"in": IN, "out": OUT, "hops": hops}, x=x)
    for order in (1, 2, 3, 5):
        writer.case(f"cheb_{order}", "cheb", pyg.ChebConv(IN, OUT, K=order), weighted,
                    {"in": IN, "out": OUT, "order": order}, x=x)
    lambda_max = lambda module, edge_index, weight: module(x, edge_index, weight, lambda_max=1.7)
    writer.case("cheb_lambda", "cheb", pyg.ChebConv(IN, OUT, K=3), lambda_max,
                {"in": IN, "out": OUT, "order": 3, "lambda_max": 1.7}, x=x)


def sage_cases(writer, x, x_target):
    plain = lambda module, edge_index, weight: module(x, edge_index)
    for name, aggregation, arguments, options in (
        ("sage_mean", "mean", {}, {}),
        ("sage_max", "max", {}, {"max": 1}),
        ("sage_unit", "mean", {"normalize": True}, {"normalise": 1}),
        ("sage_no_root", "mean", {"root_weight": False}, {"root_weight": 0}),
    ):
        writer.case(name, "sage", pyg.SAGEConv(IN, OUT, aggr=aggregation, **arguments), plain,
                    {"in": IN, "out": OUT, **options}, x=x)
    writer.case("sage_wide", "sage", pyg.SAGEConv(IN, 8), plain, {"in": IN, "out": 8}, x=x)
    writer.case("sage_gcn", "sage", SageGcn(), plain, {"in": IN, "out": OUT, "gcn": 1}, x=x)
    for aggregation in ("mean", "max"):
        options = {"in": IN, "in_target": IN_TARGET, "out": OUT, "max": int(aggregation == "max")}
        pair = lambda module, edge_index, weight: module((x, x_target), edge_index)
        writer.case(f"sage_bipartite_{aggregation}", "sage",
                    pyg.SAGEConv((IN, IN_TARGET), OUT, aggr=aggregation), pair, options,
                    edges=BIPARTITE, x=x, x_target=x_target)
    sources = lambda module, edge_index, weight: module((x, None), edge_index, size=(VERTICES, TARGETS))
    writer.case("sage_sources_alone", "sage", pyg.SAGEConv((IN, IN_TARGET), OUT), sources,
                {"in": IN, "in_target": IN_TARGET, "out": OUT}, edges=BIPARTITE, x=x)


def gin_cases(writer, x, x_same):
    plain = lambda module, edge_index, weight: module(x, edge_index)
    pair = lambda module, edge_index, weight: module((x, x_same), edge_index)
    for width in (4, 8):
        options = {"in": IN, "hidden": width, "out": OUT, "train_eps": 1}
        for training in (False, True):
            name = f"gin_{width}_{'training' if training else 'evaluation'}"
            writer.case(name, "gin", pyg.GINConv(perceptron(width), train_eps=True), plain, options,
                        training=training, x=x)
        writer.case(f"gin_{width}_bipartite", "gin", pyg.GINConv(perceptron(width), train_eps=True), pair,
                    options, edges=BIPARTITE, x=x, x_target=x_same)
    writer.case("gin_no_norm", "gin", pyg.GINConv(perceptron(4, norm=False)), plain,
                {"in": IN, "hidden": 4, "out": OUT, "batch_norm": 0}, x=x)


def attention_cases(writer, layer, module_of, x, x_target, x_same):
    plain = lambda module, edge_index, weight: module(x, edge_index)
    pair = lambda module, edge_index, weight: module((x, x_target), edge_index)
    same = lambda module, edge_index, weight: module((x, x_same), edge_index)
    for name, arguments, options in (
        ("concat", {}, {}),
        ("mean", {"concat": False}, {"concat": 0}),
        ("no_loops", {"add_self_loops": False, "negative_slope": 0.1},
         {"add_self_loops": 0, "negative_slope": 0.1}),
        ("residual", {"residual": True}, {"residual": 1}),
        ("no_bias", {"bias": False, "concat": False}, {"bias": 0, "concat": 0}),
    ):
        writer.case(f"{layer}_{name}", layer, module_of(IN, OUT, heads=2, **arguments), plain,
                    {"in": IN, "out": OUT, "heads": 2, **options}, x=x)
    writer.case(f"{layer}_bipartite", layer, module_of((IN, IN_TARGET), OUT, heads=2, residual=True), pair,
                {"in": IN, "in_target": IN_TARGET, "out": OUT, "heads": 2, "residual": 1},
                edges=BIPARTITE, x=x, x_target=x_target)
    writer.case(f"{layer}_bipartite_one_width", layer, module_of(IN, OUT, heads=2), same,
                {"in": IN, "out": OUT, "heads": 2}, edges=BIPARTITE, x=x, x_target=x_same)


class Pool(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x, graph_ids):
        return self.function(x, graph_ids, size=4)


def main():
    torch.manual_seed(0)
    x, x_target, x_same = torch.randn(VERTICES, IN), torch.randn(TARGETS, IN_TARGET), torch.randn(TARGETS, IN)
    path = pathlib.Path(__file__).parent.parent / "data" / "layer_references.txt"
    path.parent.mkdir(exist_ok=True)
    with open(path, "w", encoding="ascii") as out:
        writer = Writer(out)
        spectral_cases(writer, x)
        sage_cases(writer, x, x_target)
        gin_cases(writer, x, x_same)
        attention_cases(writer, "gat", pyg.GATConv, x, x_target, x_same)
        attention_cases(writer, "gatv2", pyg.GATv2Conv, x, x_target, x_same)
        plain = lambda module, edge_index, weight: module(x, edge_index)
        writer.case("gatv2_shared", "gatv2", pyg.GATv2Conv(IN, OUT, heads=2, share_weights=True), plain,
                    {"in": IN, "out": OUT, "heads": 2, "share_weights": 1}, x=x)
        sources = lambda module, edge_index, weight: module((x, None), edge_index, size=(VERTICES, TARGETS))
        writer.case("gat_sources_alone", "gat", pyg.GATConv((IN, IN_TARGET), OUT, add_self_loops=False), sources,
                    {"in": IN, "in_target": IN_TARGET, "out": OUT, "add_self_loops": 0}, edges=BIPARTITE, x=x)
        writer.case("agnn", "agnn", pyg.AGNNConv(), plain, {"width": IN}, x=x)
        writer.case("agnn_no_loops", "agnn", pyg.AGNNConv(add_self_loops=False), plain,
                    {"width": IN, "add_self_loops": 0}, x=x)
        graph_ids = torch.tensor([0, 0, 0, 1, 1, 3, 3, 3, 3, 3, 3])
        for name, function in (("sum", pyg.global_add_pool), ("mean", pyg.global_mean_pool),
                               ("max", pyg.global_max_pool)):
            pool = lambda module, edge_index, weight: module(x, graph_ids)
            writer.case(f"readout_{name}", f"readout_{name}", Pool(function), pool, {"width": IN},
                        x=x, graph_ids=graph_ids.float())
    print(f"{path}: {path.stat().st_size} bytes", file=sys.stderr)


if __name__ == "__main__":
    main()
