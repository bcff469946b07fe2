#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training epochs of GCN and GAT in PyG, with the hyperparameters that tessera uses.

    epoch_torch.py --data pubmed.npz --threads 2 --json pyg.json
    tessera bench epoch --data pubmed.npz --threads 2 --json tessera.json
    tessera bench compare pyg.json tessera.json

Records `step_MODEL` (forward, backward, optimiser) and `epoch_MODEL` (a step and the evaluation after it).
Each model runs with PyG's edge_index and with torch's CSR adjacency; the faster of the two is recorded.
"""
import argparse
import os
import pathlib

import numpy
import torch
import torch.nn.functional as functional
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv

import common


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", action="append", required=True, metavar="FILE.npz")
    parser.add_argument("--models", default="gcn,gat")
    parser.add_argument("--threads", default="0", metavar="LIST", help="0 is all cores")
    parser.add_argument("--min-seconds", type=float, default=2)
    parser.add_argument("--max-seconds", type=float, default=60)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", required=True, metavar="FILE")
    options = parser.parse_args()
    options.threads = [int(count) or os.cpu_count() for count in options.threads.split(",")]
    return options


class Data:
    """A data set of docs/formats.md with row-normalised features."""

    def __init__(self, path):
        with numpy.load(path) as arrays:
            self.name = pathlib.Path(path).stem
            vertices = int(arrays["num_nodes"])
            edges = numpy.stack([arrays["col"], arrays["row"]]).astype(numpy.int64)
            self.edge_index = torch.from_numpy(edges)
            self.x = torch.from_numpy(dense_features(arrays, vertices))
            self.y = torch.from_numpy(arrays["y"])
            # Without a split every tenth vertex, which is enough to time a step.
            self.train, self.validation, self.test = (
                torch.from_numpy(arrays[name] if name in arrays else numpy.arange(0, vertices, 10))
                for name in ("train_idx", "val_idx", "test_idx"))
        self.x = self.x / self.x.abs().sum(1, keepdim=True).clamp(min=1e-12)
        self.classes = int(self.y.max()) + 1
        values = torch.ones(self.edge_index.shape[1])
        self.adjacency = torch.sparse_coo_tensor(self.edge_index.flip(0), values,
                                                 (vertices, vertices)).to_sparse_csr()


def dense_features(arrays, vertices):
    if "x" in arrays:
        return arrays["x"]
    dense = numpy.zeros((vertices, int(arrays["x_dim"])), dtype=numpy.float32)
    rows = numpy.repeat(numpy.arange(vertices), numpy.diff(arrays["x_indptr"]))
    dense[rows, arrays["x_indices"]] = arrays["x_data"]
    return dense


class Gcn(torch.nn.Module):
    def __init__(self, data):
        super().__init__()
        self.first = GCNConv(data.x.shape[1], 16, cached=True)
        self.second = GCNConv(16, data.classes, cached=True)

    def forward(self, x, edges):
        x = functional.dropout(x, 0.5, self.training)
        x = functional.relu(self.first(x, edges))
        return self.second(functional.dropout(x, 0.5, self.training), edges)

    def optimiser(self):
        return torch.optim.Adam([{"params": self.first.parameters(), "weight_decay": 5e-4},
                                 {"params": self.second.parameters(), "weight_decay": 0}], lr=0.01)


class Gat(torch.nn.Module):
    def __init__(self, data):
        super().__init__()
        self.pubmed = "pubmed" in data.name
        heads = 8 if self.pubmed else 1
        self.first = GATConv(data.x.shape[1], 8, heads=8, dropout=0.6)
        self.second = GATConv(64, data.classes, heads=heads, concat=False, dropout=0.6)

    def forward(self, x, edges):
        x = functional.dropout(x, 0.6, self.training)
        x = functional.elu(self.first(x, edges))
        return self.second(functional.dropout(x, 0.6, self.training), edges)

    def optimiser(self):
        return torch.optim.Adam(self.parameters(), lr=0.01 if self.pubmed else 0.005,
                                weight_decay=1e-3 if self.pubmed else 5e-4)


MODELS = {"gcn": Gcn, "gat": Gat}


def passes(model_name, data, edges):
    """(step, epoch): what is timed, on a model of its own."""
    torch.manual_seed(1)
    model = MODELS[model_name](data)
    optimiser = model.optimiser()

    def step():
        model.train()
        optimiser.zero_grad()
        logits = model(data.x, edges)
        functional.cross_entropy(logits[data.train], data.y[data.train]).backward()
        optimiser.step()

    def epoch():
        step()
        model.eval()
        with torch.no_grad():
            logits = model(data.x, edges)
            functional.cross_entropy(logits[data.validation], data.y[data.validation]).item()
            predicted = logits.argmax(1)
            for part in (data.train, data.validation, data.test):
                (predicted[part] == data.y[part]).float().mean().item()

    return step, epoch


def settings(model_name, data, which):
    for name, edges in (("edge_index", data.edge_index), ("csr", data.adjacency)):
        function = passes(model_name, data, edges)[which]
        try:
            function()
        except (RuntimeError, NotImplementedError, ValueError):
            continue  # not every layer takes every form
        yield f"pyg/{name}", function


def main():
    options = arguments()
    records = []
    for path in options.data:
        data = Data(path)
        for threads in options.threads:
            torch.set_num_threads(threads)
            for model in options.models.split(","):
                for which, op in enumerate(("step", "epoch")):
                    choices = dict(settings(model, data, which))
                    kernel, samples, plan = common.best_setting(choices, options)
                    plan += f"; PyG {torch_geometric.__version__}"
                    record = common.record(f"{op}_{model}", data.name, data.x.shape[1], threads,
                                           kernel, samples, plan)
                    records.append(record)
                    print(f"{data.name} {op} {model}, {threads} threads: "
                          f"{record['median_us'] / 1e3:.2f} ms, {kernel}", flush=True)
    common.write(options, records)


if __name__ == "__main__":
    main()
