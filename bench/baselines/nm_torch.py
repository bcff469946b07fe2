#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps of GCN, SAGE, ChebNet and SGC in PyG on a GPU, with the widths that tessera uses.

    nm_torch.py --data cora.npz --data citeseer.npz --json pyg.json

A step is forward, backward and Adam, without dropout. Each model runs with PyG's edge_index and, where the layer takes
one, with torch's CSR adjacency, eagerly and as a recorded CUDA graph where that works; the fastest is recorded.

    nm_torch.py --data cora.npz --partitions FOLDER --models gcn,sgc --json pyg_parts.json

steps on the parts of a graph instead, one after the other, eagerly and by edges: FOLDER/cora.txt has the part of vertex
i in line i. Parts lie on the GPU before; the time is that of a step on one of them, in the mean.
"""
import argparse
import json
import pathlib
import statistics

import numpy
import torch
import torch.nn.functional as functional
import torch_geometric.utils
from torch_geometric.nn import ChebConv, GCNConv, SAGEConv, SGConv

from epoch_torch import Data


class TwoLayers(torch.nn.Module):
    def __init__(self, make, features, hidden, classes):
        super().__init__()
        self.first = make(features, hidden)
        self.second = make(hidden, classes)

    def forward(self, x, edges):
        return self.second(functional.relu(self.first(x, edges)), edges)


class OneLayer(torch.nn.Module):
    def __init__(self, make, features, _hidden, classes):
        super().__init__()
        self.only = make(features, classes)

    def forward(self, x, edges):
        return self.only(x, edges)


MODELS = {
    "gcn": (TwoLayers, lambda i, o: GCNConv(i, o, cached=True), 16),
    "sage": (TwoLayers, SAGEConv, 64),
    "cheb": (TwoLayers, lambda i, o: ChebConv(i, o, K=2), 16),
    "sgc": (OneLayer, lambda i, o: SGConv(i, o, K=2), 16),
}


def median_us(step, repeats):
    for _ in range(5):
        step()
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        step()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def step_of(model, x, edges, y, train):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, capturable=True)

    def step():
        optimiser.zero_grad(set_to_none=False)
        functional.cross_entropy(model(x, edges)[train], y[train]).backward()
        optimiser.step()
    return step


def recorded(step):
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    return graph.replay


def measure(data, name, repeats):
    kind, make, hidden = MODELS[name]
    device = torch.device("cuda")
    x, y, train = data.x.to(device), data.y.to(device), data.train.to(device)
    times = {}
    for form, edges in (("edge_index", data.edge_index.to(device)), ("csr", data.adjacency.to(device))):
        for record in (False, True):
            try:
                model = kind(make, x.shape[1], hidden, data.classes).to(device)
                step = step_of(model, x, edges, y, train)
                times[form + (", recorded" if record else ", eager")] = median_us(recorded(step) if record else step, repeats)
            except Exception as error:  # a layer that takes no such form, or that cannot be recorded
                times.setdefault("failed", {})[f"{form} {record}"] = str(error).splitlines()[0][:100]
                torch.cuda.synchronize()
    failed = times.pop("failed", {})
    return {"graph": data.name, "model": name, "times_us": times, "best_us": min(times.values()), "failed": failed}


def parts_of(data, part):
    """(x, edges, y, train) of every part that has something to train on."""
    trained = torch.zeros(len(data.y), dtype=torch.bool)
    trained[data.train] = True
    for number in range(int(part.max()) + 1):
        inside = part == number
        edges, _ = torch_geometric.utils.subgraph(inside, data.edge_index, relabel_nodes=True, num_nodes=len(part))
        train = trained[inside].nonzero().flatten()
        if len(train):
            yield tuple(tensor.to("cuda") for tensor in (data.x[inside], edges, data.y[inside], train))


def measure_parts(data, name, partition, repeats):
    kind, make, hidden = MODELS[name]
    # Every part is another graph, so that nothing of one may be kept for the next.
    if name == "gcn":
        make = GCNConv
    parts = list(parts_of(data, torch.from_numpy(numpy.loadtxt(partition, dtype=numpy.int64))))
    model = kind(make, data.x.shape[1], hidden, data.classes).to("cuda")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

    def epoch():
        for x, edges, y, train in parts:
            optimiser.zero_grad(set_to_none=True)
            functional.cross_entropy(model(x, edges)[train], y[train]).backward()
            optimiser.step()
    each = median_us(epoch, repeats) / len(parts)
    return {"graph": data.name, "model": name, "parts": len(parts), "times_us": {"edge_index, eager": each}, "best_us": each}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", action="append", required=True, metavar="FILE.npz")
    parser.add_argument("--models", default="gcn,sage,cheb,sgc")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--partitions", type=pathlib.Path, metavar="FOLDER", help="step on parts of the graphs")
    parser.add_argument("--json", required=True, metavar="FILE")
    options = parser.parse_args()
    records = []
    for path in options.data:
        try:
            data = Data(path)
        except KeyError as missing:
            print(f"{path}: no {missing}", flush=True)
            continue
        for name in options.models.split(","):
            if options.partitions:
                records.append(measure_parts(data, name, options.partitions / f"{data.name}.txt", options.repeats))
            else:
                records.append(measure(data, name, options.repeats))
            print(records[-1]["graph"], name, records[-1]["times_us"], flush=True)
            with open(options.json, "w", encoding="utf-8") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
