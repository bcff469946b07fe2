#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Layers of relations and of kinds of vertices: PyG's, plain and after `tessera.accelerate`, side by side.

    python bench/python/relations.py --threads 2 --json relations.json
    python bench/python/relations.py --device cuda --cases mag --compile --json relations_gpu.json

Twenty cases on generated graphs, and those for a GPU: `mag`, a graph of the size of ogbn-mag (736,389 papers, 1,134,649
authors, 8,740 institutions and 59,965 fields; 5.4, 7.1, 7.5 and 1.0 million edges; sources are drawn by the square of a
uniform number, so that some have many), and `64 relations`, beside one graph of as many vertices and edges. A step is a
forward and a backward pass. Results and gradients are compared with PyG's in double precision first (on a GPU with PyG's in
single precision); then both run in turns, and medians are kept, with the most memory of a step on a GPU. What takes more
memory than there is has no times. `--scale` makes all graphs smaller.
"""

import argparse
import copy
import json
import platform
import statistics
import time

import torch
import torch_geometric.nn as pyg
from layers import TOLERANCE, furthest
from training import commit, versions

import tessera

WIDTH = 64
MAG_KINDS = {"paper": 736389, "author": 1134649, "institution": 8740, "field": 59965}
MAG_RELATIONS = {("paper", "cites", "paper"): 5416271, ("author", "writes", "paper"): 7145660,
                 ("paper", "has", "field"): 7505078, ("author", "at", "institution"): 1043998}


def skewed(vertices, edges, draw):
    return (torch.rand(edges, generator=draw).square() * vertices).long().clamp(max=max(vertices - 1, 0))


class Graph:
    """Vertices of some kinds and edges of some relations, in one numbering and in one of each kind."""

    def __init__(self, kinds, relations, width=WIDTH, seed=1):
        draw = torch.Generator().manual_seed(seed)
        self.kinds, self.width = kinds, width
        self.x_dict = {kind: torch.randn(vertices, width, generator=draw) for kind, vertices in kinds.items()}
        self.edges = {relation: torch.stack([skewed(kinds[relation[end]], edges, draw) for end in (0, 2)])
                      for relation, edges in relations.items()}
        begins = dict(zip(kinds, torch.tensor([0, *kinds.values()]).cumsum(0).tolist()))
        self.x = torch.cat(list(self.x_dict.values()))
        self.index = torch.cat([index + torch.tensor([[begins[source]], [begins[target]]])
                                for (source, _, target), index in self.edges.items()], dim=1)
        self.types = torch.repeat_interleave(torch.tensor([index.size(1) for index in self.edges.values()]))
        self.metadata = list(kinds), list(self.edges)


def of_relations(number, vertices, edges):
    return lambda scale: Graph({"all": max(int(vertices * scale), 4)}, {
        ("all", f"r{relation}", "all"): max(int(edges * scale) // number, 1) for relation in range(number)})


def of_kinds(kinds, relations, vertices, edges, width=WIDTH):
    """Relation i goes from kind i to kind 5 i + 1."""
    names = [f"k{kind}" for kind in range(kinds)]
    return lambda scale: Graph({name: max(int(vertices * scale), 4) for name in names},
                               {(names[i % kinds], f"r{i}", names[(5 * i + 1) % kinds]): max(int(edges * scale), 1)
                                for i in range(relations)}, width)


def mag(scale):
    return Graph({kind: max(int(number * scale), 4) for kind, number in MAG_KINDS.items()},
                 {relation: max(int(edges * scale), 1) for relation, edges in MAG_RELATIONS.items()}, width=128)


def rgcn(kind="RGCNConv", outputs=None, **options):
    return lambda on: getattr(pyg, kind)(on.width, outputs or on.width, len(on.edges), **options)


def embedded(kind):
    return lambda on: getattr(pyg, kind)(on.x.size(0), 16, len(on.edges))


def hetero(layer, **options):
    return lambda on: pyg.HeteroConv({relation: layer((on.width, on.width), on.width, **options) for relation in on.edges})


def mixed(on):
    both = on.width, on.width
    layers = [lambda: pyg.SAGEConv(both, on.width), lambda: pyg.GATConv(both, on.width, add_self_loops=False),
              lambda: pyg.GraphConv(both, on.width)]
    return pyg.HeteroConv({relation: layers[i % 3]() for i, relation in enumerate(on.edges)})


class TwoLayers(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.conv1, self.conv2 = (pyg.SAGEConv((width, width), width) for _ in range(2))

    def forward(self, x, edge_index):
        return self.conv2(self.conv1(x, edge_index).relu(), edge_index)


def to_hetero(on):
    return pyg.to_hetero(TwoLayers(on.width), on.metadata)


def hgt(heads):
    return lambda on: pyg.HGTConv(on.width, on.width, on.metadata, heads)


def flat(on):
    return on.x, on.index, on.types


def by_kinds(on):
    return on.x_dict, on.edges


def rows(on):
    return on.x, torch.arange(on.x.size(0)).mul(7919) % len(on.edges)


# By name: the graph, the model, and what it is called with.
CASES = {
    "RGCN, 4 relations": (of_relations(4, 20000, 400000), rgcn(), flat),
    "RGCN, 40 relations": (of_relations(40, 20000, 400000), rgcn(), flat),
    "RGCN, 400 relations": (of_relations(400, 2000, 100000), rgcn(), flat),
    "RGCN, small, 4 relations": (of_relations(4, 2708, 10556), rgcn(), flat),
    "RGCN, 8 bases": (of_relations(40, 20000, 400000), rgcn(num_bases=8), flat),
    "RGCN, 8 blocks": (of_relations(40, 20000, 400000), rgcn(num_blocks=8), flat),
    "RGCN, sum": (of_relations(4, 20000, 400000), rgcn(aggr="add"), flat),
    "RGCN, max": (of_relations(4, 20000, 400000), rgcn(aggr="max"), flat),
    "RGCN, to 8 features": (of_relations(4, 20000, 400000), rgcn(outputs=8), flat),
    "RGCN, no features": (of_relations(4, 5000, 100000), embedded("RGCNConv"), lambda on: (None, on.index, on.types)),
    "FastRGCN, 4 relations": (of_relations(4, 5000, 50000), rgcn("FastRGCNConv"), flat),
    "FastRGCN, 8 blocks": (of_relations(40, 5000, 50000), rgcn("FastRGCNConv", num_blocks=8), flat),
    "FastRGCN, no features": (of_relations(4, 5000, 100000), embedded("FastRGCNConv"), lambda on: (None, on.index, on.types)),
    "HeteroConv of SAGE, 4 kinds": (of_kinds(4, 8, 5000, 50000), hetero(pyg.SAGEConv), by_kinds),
    "HeteroConv of SAGE, 16 kinds": (of_kinds(16, 64, 500, 5000), hetero(pyg.SAGEConv), by_kinds),
    "HeteroConv of GAT": (of_kinds(4, 8, 5000, 50000), hetero(pyg.GATConv, add_self_loops=False), by_kinds),
    "HeteroConv, mixed": (of_kinds(4, 8, 5000, 50000), mixed, by_kinds),
    "to_hetero of SAGE": (of_kinds(4, 8, 5000, 50000), to_hetero, by_kinds),
    "HGT": (of_kinds(4, 8, 5000, 50000), hgt(4), by_kinds),
    "HeteroLinear, 40 types": (of_relations(40, 20000, 40), lambda on: pyg.HeteroLinear(on.width, on.width, len(on.edges)), rows),
}
ON_GPU = {
    "mag, RGCN": (mag, rgcn(), flat),
    "mag, FastRGCN": (mag, rgcn("FastRGCNConv"), flat),
    "mag, HeteroConv of SAGE": (mag, hetero(pyg.SAGEConv), by_kinds),
    "mag, HGT": (mag, hgt(8), by_kinds),
    "64 relations, 16 kinds": (of_kinds(16, 64, 2000, 20000), hetero(pyg.SAGEConv), by_kinds),
    "64 relations in one graph": (of_relations(1, 32000, 1280000), lambda on: pyg.SAGEConv(on.width, on.width),
                                  lambda on: (on.x, on.index)),
}


def moved(value, device, dtype):
    """Copies of features, each of which gets gradients of its own; indices are shared."""
    if isinstance(value, dict):
        return {key: moved(each, device, dtype) for key, each in value.items()}
    if not isinstance(value, torch.Tensor):
        return value
    return value.to(device, dtype, copy=True) if value.is_floating_point() else value.to(device)


def step_of(model, given, autocast):
    """A function that runs a step and returns the result with all gradients."""
    leaves = [tensor for value in given for tensor in (value.values() if isinstance(value, dict) else [value])
              if isinstance(tensor, torch.Tensor) and tensor.is_floating_point()]
    learns = [*model.parameters(), *leaves]
    for leaf in leaves:
        leaf.requires_grad_()
    device = learns[0].device.type

    def step():
        for tensor in learns:
            tensor.grad = None
        with torch.autocast(device, torch.bfloat16, enabled=autocast):
            out = model(*given)
        results = [each for each in (out.values() if isinstance(out, dict) else [out]) if each is not None]
        torch.autograd.backward(results, [result.detach() for result in results])
        return [*(result.detach() for result in results), *(tensor.grad for tensor in learns)]

    return step


def timed(step, device):
    """The milliseconds of a step, and the most memory that it takes on a GPU."""
    if device == "cpu":
        start = time.perf_counter()
        step()
        return 1e3 * (time.perf_counter() - start), 0
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.synchronize()
    start = time.perf_counter()
    step()
    torch.cuda.synchronize()
    return 1e3 * (time.perf_counter() - start), torch.cuda.max_memory_allocated()


def measured(name, options):
    graph, make, call = (CASES | ON_GPU)[name]
    on = graph(options.scale)
    torch.manual_seed(0)
    model = make(on)
    exact = torch.float64 if options.device == "cpu" else torch.float32
    models = {"pyg": copy.deepcopy(model), "tessera": tessera.accelerate(copy.deepcopy(model))}
    if options.compile:
        models["pyg compiled"] = torch.compile(copy.deepcopy(model))
    record, steps = {"case": name, "dtype": "bf16" if options.bf16 else "fp32"}, {}

    def given_as(dtype):
        return [moved(value, options.device, dtype) for value in call(on)]

    try:
        expected = step_of(copy.deepcopy(model).to(options.device, exact), given_as(exact), False)()
    except torch.OutOfMemoryError:
        expected = None
    for who, each in models.items():
        step = step_of(each.to(options.device), given_as(torch.float32), options.bf16)
        record[who] = {}
        try:
            found = step()
        except torch.OutOfMemoryError:
            continue
        if expected is not None:
            record[who]["difference"] = furthest(found, expected)
        steps[who] = step
    ours, theirs = (record[who].get("difference", 0) for who in ("tessera", "pyg"))
    if ours > max(TOLERANCE, 2 * theirs):
        return record
    found = {who: [] for who in steps}
    begin, rounds = time.perf_counter(), 0
    while rounds < options.least or (time.perf_counter() - begin < options.seconds and rounds < options.most):
        for who, step in steps.items():
            found[who].append(timed(step, options.device))
        rounds += 1
    for who, times in found.items():
        record[who].update(median_ms=statistics.median(ms for ms, _ in times[1:]), min_ms=min(ms for ms, _ in times),
                           bytes=max(size for _, size in times), steps=rounds)
    return record


def line(record):
    text = f"{record['case']:30} {record['dtype']}"
    for who in ("pyg", "pyg compiled", "tessera"):
        if who in record:
            median = record[who].get("median_ms")
            text += f", {who} " + (f"{median:9.2f} ms" if median is not None else "  no time")
    theirs, ours = (record[who].get("median_ms") for who in ("pyg", "tessera"))
    text += f", {theirs / ours:6.2f} x" if theirs and ours else ""
    return text + f", difference {record['tessera'].get('difference', 0):.0e}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", nargs="+", metavar="CASE", default=list(CASES), help="names, or how they begin")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument("--bf16", action="store_true", help="under autocast")
    parser.add_argument("--compile", action="store_true", help="PyG compiled, too")
    parser.add_argument("--scale", type=float, default=1, help="of vertices and edges")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=4, help="limit for each case")
    parser.add_argument("--least", type=int, default=5, help="steps, whatever they take")
    parser.add_argument("--most", type=int, default=200, help="steps")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    names = [name for name in CASES | ON_GPU if any(name.startswith(case) for case in options.cases)]
    if not names:
        parser.error(f"no case begins with {' or '.join(options.cases)}; there are: {'; '.join(CASES | ON_GPU)}")
    device = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor() or platform.machine()
    records = []
    for name in names:
        records.append({**measured(name, options), "threads": options.threads, "scale": options.scale, "versions": versions(),
                        "commit": commit(), "device": device})
        print(line(records[-1]), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
