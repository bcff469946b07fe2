#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracies of the citation graphs from Python: PyG's models, accelerated, with their papers' settings.

    TESSERA_DATA=FOLDER python bench/python/accuracy.py --graphs cora citeseer pubmed --runs 10

FOLDER holds NAME/NAME.npz as docs/formats.md has them. Test accuracy at the epoch with the best validation
accuracy (of equals, the one with the least validation loss), mean and standard deviation, over seeds 1, 2, …;
--plain trains the same models on PyG's own code.
"""

import argparse
import json
import multiprocessing
import os
import platform
import statistics
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from typing import Callable, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from training import commit

import tessera


class Settings(NamedTuple):
    """What docs/training.md has of a model's paper."""

    net: Callable[[int, int], torch.nn.Module]
    rate: float
    decay: float
    epochs: int = 200
    patience: int | None = None  # epochs without a validation accuracy or loss as good as the best
    decay_of_first_alone: bool = False


class Net(torch.nn.Module):
    """Layers with an activation between them, and dropout before each."""

    def __init__(self, layers, dropout, activation=F.relu):
        super().__init__()
        self.layers, self.dropout, self.activation = torch.nn.ModuleList(layers), dropout, activation

    def forward(self, x, edge_index):
        for i, layer in enumerate(self.layers):
            x = x if i == 0 else self.activation(x)
            x = layer(F.dropout(x, self.dropout, self.training), edge_index)
        return x


class Agnn(torch.nn.Module):
    """Two dense layers, with propagations between them, the first of a factor that stays 1."""

    def __init__(self, features, classes, propagations):
        super().__init__()
        inner = [pyg.AGNNConv(requires_grad=i > 0) for i in range(propagations)]
        self.layers = torch.nn.ModuleList([torch.nn.Linear(features, 16), *inner,
                                           torch.nn.Linear(16, classes)])

    def forward(self, x, edge_index):
        first, *inner, last = self.layers
        x = F.relu(first(F.dropout(x, 0.5, self.training)))
        for layer in inner:
            x = layer(x, edge_index)
        return last(F.dropout(x, 0.5, self.training))


def gat(heads):
    return lambda f, c: Net([pyg.GATConv(f, 8, heads=8, dropout=0.6),
                             pyg.GATConv(64, c, heads=heads, concat=False, dropout=0.6)], 0.6, F.elu)


def settings_of(kind: str, graph: str) -> Settings:
    on_pubmed = graph == "pubmed"
    if kind == "GCN":
        return Settings(lambda f, c: Net([pyg.GCNConv(f, 16), pyg.GCNConv(16, c)], 0.5), 0.01, 5e-4,
                        decay_of_first_alone=True)
    if kind == "Cheb":
        return Settings(lambda f, c: Net([pyg.ChebConv(f, 16, 2), pyg.ChebConv(16, c, 2)], 0.5), 0.01,
                        5e-4, decay_of_first_alone=True)
    if kind == "SAGE":
        return Settings(lambda f, c: Net([pyg.SAGEConv(f, 64), pyg.SAGEConv(64, c)], 0.5), 0.01, 5e-4)
    if kind == "SGC":
        return Settings(lambda f, c: Net([pyg.SGConv(f, c, K=2)], 0.0), 0.2, 5e-5, 100)
    if kind == "AGNN":
        return Settings(lambda f, c: Agnn(f, c, 4 if on_pubmed else 2), 0.01, 5e-4, 1000, 100)
    return Settings(gat(8 if on_pubmed else 1), 0.01 if on_pubmed else 0.005,
                    1e-3 if on_pubmed else 5e-4, 1000, 100)


def read(name, device):
    arrays = np.load(os.path.join(os.environ["TESSERA_DATA"], name, name + ".npz"))
    index = torch.from_numpy(np.stack([arrays["col"], arrays["row"]]).astype(np.int64))
    shape = (int(arrays["num_nodes"]), int(arrays["x_dim"]))
    x = torch.sparse_csr_tensor(arrays["x_indptr"], arrays["x_indices"].astype(np.int64),
                                arrays["x_data"], shape).to_dense()
    x = x / x.sum(1, keepdim=True).clamp(min=1e-12)
    parts = {part: torch.from_numpy(arrays[part + "_idx"]) for part in ("train", "val", "test")}
    parts = {part: found.to(device) for part, found in parts.items()}
    return x.to(device), index.to(device), torch.from_numpy(arrays["y"]).to(device), parts


def train(kind, graph, data, seed, plain):
    x, index, labels, parts = data
    settings = settings_of(kind, graph)
    torch.manual_seed(seed)
    net = settings.net(x.size(1), int(labels.max()) + 1).to(x.device)
    if not plain:
        tessera.accelerate(net)
    later = [p for layer in net.layers[1:] for p in layer.parameters()]
    optimiser = torch.optim.Adam([
        {"params": list(net.layers[0].parameters()), "weight_decay": settings.decay},
        {"params": later,
         "weight_decay": 0.0 if settings.decay_of_first_alone else settings.decay}], lr=settings.rate)
    best, test = (-1.0, 0.0), 0.0
    highest, lowest, progress = 0.0, float("inf"), 0
    for epoch in range(settings.epochs):
        net.train()
        optimiser.zero_grad()
        F.cross_entropy(net(x, index)[parts["train"]], labels[parts["train"]]).backward()
        optimiser.step()
        net.eval()
        with torch.no_grad():
            out = net(x, index)
        right = (out.argmax(1) == labels).float()
        accuracy = right[parts["val"]].mean().item()
        loss = F.cross_entropy(out[parts["val"]], labels[parts["val"]]).item()
        if (accuracy, -loss) > best:
            best, test = (accuracy, -loss), right[parts["test"]].mean().item()
        if accuracy >= highest or loss <= lowest:
            progress = epoch
        highest, lowest = max(highest, accuracy), min(lowest, loss)
        if settings.patience is not None and epoch - progress >= settings.patience:
            break
    return 100 * test


MODELS = ["GCN", "SAGE", "GAT", "SGC", "AGNN", "Cheb"]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graphs", nargs="+", default=["cora", "citeseer", "pubmed"])
    parser.add_argument("--models", nargs="+", default=MODELS, choices=MODELS)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--budget", type=float, default=float("inf"),
                        help="no run begins after so many seconds")
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--plain", action="store_true", help="PyG's own code")
    parser.add_argument("--json")
    parser.add_argument("--jobs", type=int, default=1, help="models that are trained at once")
    options = parser.parse_args()
    cases = [(graph, kind, options, time.time() + options.budget)
             for kind in options.models for graph in options.graphs]
    if options.jobs == 1:
        report(map(trained, cases), options)
        return
    # Forked, so that torch is imported once; but what is forked cannot use a GPU that PyG has asked about.
    start = "fork" if options.device == "cpu" else "spawn"
    with ProcessPoolExecutor(options.jobs, multiprocessing.get_context(start)) as pool:
        report((done.result() for done in as_completed(pool.submit(trained, case) for case in cases)),
               options)


def trained(case):
    """The record of all runs of one model on one graph."""
    graph, kind, options, end = case
    if options.jobs > 1:
        torch.set_num_threads(max(1, (os.cpu_count() or 1) // options.jobs))
    data = read(graph, options.device)
    found = [train(kind, graph, data, seed, options.plain) for seed in range(1, options.runs + 1)
             if time.time() < end]
    name = torch.cuda.get_device_name() if options.device == "cuda" else platform.machine()
    return {"graph": graph, "model": kind, "runs": found, "device": options.device, "machine": name,
            "code": "pyg" if options.plain else "tessera", "commit": commit()}


def report(records, options):
    done = []
    for record in records:
        found = record["runs"]
        if not found:
            print(f"{options.budget} s are over: left out {record['model']} on {record['graph']}",
                  flush=True)
            continue
        done.append(record)
        spread = statistics.stdev(found) if len(found) > 1 else 0.0
        print(f"{record['graph']:9} {record['model']:5} {statistics.mean(found):.1f} ± {spread:.1f}"
              f" ({len(found)} runs)", flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(done, file, indent=1)


if __name__ == "__main__":
    main()
