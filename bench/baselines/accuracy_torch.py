#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Accuracies of PyG's layers in tessera's harness: the same hyperparameters, split rule and choice of epoch.

    accuracy_torch.py --data cora.npz --model agnn --runs 10 --json agnn.json
    accuracy_torch.py --data PROTEINS_full.npz --model gin --folds 10 --device cuda --json gin.json

Writes `test: {metric, mean, std, runs}` as `tessera train --json` does.
"""
import argparse
import json
import pathlib
import statistics
import types

import numpy
import torch
import torch.nn.functional as functional
from torch import nn
from torch_geometric.nn import (AGNNConv, ChebConv, GINConv, SAGEConv, SGConv,
                                global_add_pool)

from epoch_torch import Data, Gat, Gcn


class Pair(nn.Module):
    """Two convolutions with ReLU and dropout 0.5 between."""

    def __init__(self, first, second):
        super().__init__()
        self.first, self.second = first, second

    def forward(self, x, edges):
        x = functional.dropout(x, 0.5, self.training)
        x = functional.relu(self.first(x, edges))
        return self.second(functional.dropout(x, 0.5, self.training), edges)


class Agnn(nn.Module):
    def __init__(self, data):
        super().__init__()
        layers = 4 if "pubmed" in data.name else 2
        self.first = nn.Linear(data.x.shape[1], 16)
        self.propagations = nn.ModuleList(AGNNConv(requires_grad=i > 0) for i in range(layers))
        self.second = nn.Linear(16, data.classes)

    def forward(self, x, edges):
        x = functional.dropout(x, 0.5, self.training)
        x = functional.relu(self.first(x))
        for propagation in self.propagations:
            x = propagation(x, edges)
        return self.second(functional.dropout(x, 0.5, self.training))


def adam(model, rate, decay):
    return torch.optim.Adam(model.parameters(), lr=rate, weight_decay=decay)


def first_layer_decays(model):
    return torch.optim.Adam([{"params": model.first.parameters(), "weight_decay": 5e-4},
                             {"params": model.second.parameters(), "weight_decay": 0}], lr=0.01)


def node_model(name, data):
    """(model, optimiser, epochs, patience), as `tessera train` without options."""
    width = data.x.shape[1]
    if name == "gcn":
        model = Gcn(data)
        return model, model.optimiser(), 200, None
    if name == "gat":
        model = Gat(data)
        return model, model.optimiser(), 1000, 100
    if name == "sgc":
        model = SGConv(width, data.classes, K=2, cached=True)
        return model, adam(model, 0.2, 5e-5), 100, None
    if name == "agnn":
        model = Agnn(data)
        return model, adam(model, 0.01, 5e-4), 1000, 100
    if name == "cheb":
        model = Pair(ChebConv(width, 16, 2), ChebConv(16, data.classes, 2))
        return model, first_layer_decays(model), 200, None
    model = Pair(SAGEConv(width, 64), SAGEConv(64, data.classes))
    return model, adam(model, 0.01, 5e-4), 200, None


class Selection:
    """The test accuracy at the epoch that is best on the validation part, and when to stop."""

    def __init__(self, patience):
        self.patience = patience
        self.best = (-1.0, -numpy.inf, 0.0)
        self.highest, self.lowest, self.waited = -1.0, numpy.inf, 0

    def add(self, validation, loss, test):
        if (validation, -loss) > self.best[:2]:
            self.best = (validation, -loss, test)
        went_on = validation >= self.highest or loss <= self.lowest
        self.waited = 0 if went_on else self.waited + 1
        self.highest, self.lowest = max(self.highest, validation), min(self.lowest, loss)
        return self.patience is not None and self.waited >= self.patience


def accuracy(logits, labels, items):
    return (logits[items].argmax(1) == labels[items]).float().mean().item()


def train_nodes(name, data, seed):
    torch.manual_seed(seed)
    model, optimiser, epochs, patience = node_model(name, data)
    selection = Selection(patience)
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        logits = model(data.x, data.edge_index)
        functional.cross_entropy(logits[data.train], data.y[data.train]).backward()
        optimiser.step()
        model.eval()
        with torch.no_grad():
            logits = model(data.x, data.edge_index)
        loss = functional.cross_entropy(logits[data.validation], data.y[data.validation]).item()
        if selection.add(accuracy(logits, data.y, data.validation), loss,
                         accuracy(logits, data.y, data.test)):
            break
    return selection.best[2]


class Gin(nn.Module):
    """Five GIN layers of 64 with batch norm, the sum of the vertices, a perceptron."""

    def __init__(self, width, classes, layers=5, hidden=64):
        super().__init__()
        self.convolutions, self.norms = nn.ModuleList(), nn.ModuleList()
        for i in range(layers):
            self.convolutions.append(GINConv(nn.Sequential(
                nn.Linear(hidden if i else width, hidden), nn.BatchNorm1d(hidden), nn.ReLU(),
                nn.Linear(hidden, hidden))))
            self.norms.append(nn.BatchNorm1d(hidden))
        self.first, self.second = nn.Linear(hidden, hidden), nn.Linear(hidden, classes)

    def forward(self, x, edges, graph_ids, graphs):
        for convolution, norm in zip(self.convolutions, self.norms):
            x = functional.relu(norm(convolution(x, edges)))
        x = functional.relu(self.first(global_add_pool(x, graph_ids, graphs)))
        return self.second(functional.dropout(x, 0.5, self.training))


class Union:
    """A union of graphs with vertex labels as features."""

    def __init__(self, path):
        with numpy.load(path) as arrays:
            self.edges = torch.from_numpy(numpy.stack([arrays["col"], arrays["row"]]).astype("int64"))
            self.graph_ids = torch.from_numpy(arrays["graph_id"].astype("int64"))
            labels = torch.from_numpy(arrays["y"])
            _, graph_labels = numpy.unique(arrays["graph_label"], return_inverse=True)
        self.x = functional.one_hot(labels.clamp(min=0)).float() * (labels >= 0)[:, None]
        self.y = torch.from_numpy(graph_labels)
        self.classes = int(self.y.max()) + 1

    def batch(self, graphs):
        """The sub-union of these graphs."""
        place = torch.full((len(self.y),), -1)
        place[graphs] = torch.arange(len(graphs))
        chosen = place[self.graph_ids] >= 0
        vertex_place = torch.cumsum(chosen, 0) - 1
        edges = self.edges[:, chosen[self.edges[0]]]
        return types.SimpleNamespace(x=self.x[chosen], edges=vertex_place[edges],
                                     graph_ids=place[self.graph_ids[chosen]], y=self.y[graphs],
                                     graphs=len(graphs))


def folds_of(labels, folds):
    """Class by class in random order, dealt to the folds."""
    labels = labels.cpu().numpy()
    random = numpy.random.default_rng(1)
    order = numpy.concatenate([random.permutation(numpy.flatnonzero(labels == k))
                               for k in numpy.unique(labels)])
    return [torch.as_tensor(numpy.sort(order[k::folds])) for k in range(folds)]


def train_graphs(data, folds, fold, seed, epochs=100, batch_size=128):
    torch.manual_seed(seed)
    hands = folds_of(data.y, folds)
    validation, test = hands[fold - 1], hands[fold]
    train = torch.cat([hand for k, hand in enumerate(hands) if k not in (fold, (fold - 1) % folds)])
    model = Gin(data.x.shape[1], data.classes)
    optimiser = adam(model, 0.01, 0)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 50, 0.5)
    held = data.batch(torch.cat([validation, test]))
    own, other = torch.arange(len(validation)), torch.arange(len(validation), held.graphs)
    selection = Selection(None)
    for _ in range(epochs):
        model.train()
        for graphs in train[torch.randperm(len(train))].split(batch_size):
            batch = data.batch(graphs)
            optimiser.zero_grad()
            logits = model(batch.x, batch.edges, batch.graph_ids, batch.graphs)
            functional.cross_entropy(logits, batch.y).backward()
            optimiser.step()
        schedule.step()
        model.eval()
        with torch.no_grad():
            logits = model(held.x, held.edges, held.graph_ids, held.graphs)
        loss = functional.cross_entropy(logits[own], held.y[own]).item()
        selection.add(accuracy(logits, held.y, own), loss, accuracy(logits, held.y, other))
    return selection.best[2]


def placed(data, device):
    """The data and all new tensors on this device."""
    torch.set_default_device(device)
    for name, value in vars(data).items():
        if isinstance(value, torch.Tensor):
            setattr(data, name, value.to(device))
    return data


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", required=True, metavar="FILE.npz")
    parser.add_argument("--model", required=True,
                        choices=["gcn", "gat", "sgc", "agnn", "cheb", "sage", "gin"])
    parser.add_argument("--runs", type=int, default=10)
    parser.add_argument("--folds", type=int, default=10, help="gin: one run for each")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--json", metavar="FILE")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.model == "gin":
        union = placed(Union(options.data), options.device)
        tests = [train_graphs(union, options.folds, fold, options.seed + fold)
                 for fold in range(options.folds)]
    else:
        data = placed(Data(options.data), options.device)
        tests = [train_nodes(options.model, data, options.seed + run) for run in range(options.runs)]
    result = {"metric": "accuracy", "mean": statistics.mean(tests),
              "std": statistics.stdev(tests) if len(tests) > 1 else 0.0, "runs": len(tests)}
    print(f"{pathlib.Path(options.data).stem} {options.model}: "
          f"{100 * result['mean']:.2f} ± {100 * result['std']:.2f} %, {len(tests)} runs")
    if options.json:
        document = {"framework": "pyg", "name": pathlib.Path(options.data).stem,
                    "model": options.model, "test": result, "tests": tests}
        pathlib.Path(options.json).write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
