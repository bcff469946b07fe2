#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What tools/report.py fusegnn sets beside tessera: GCN and GAT of two layers in PyG, without dropout.

    fusegnn_torch.py --device cuda --hidden 16,64 --json pyg.json cora.npz pubmed.npz
    ncu --profile-from-start off --metrics dram__bytes_read.sum fusegnn_torch.py --device cuda --aggregate 256 cora.npz

Records `step_MODEL` by hidden width (`figures`: what processing the graph, forward, backward and the optimiser take one by
one, kernels launched, peak memory) and `spmm` by width: GCN's sum over edges in the order that PyG keeps them. A graph
without features gets 64 random ones and 16 classes, as in `tessera bench`. --aggregate WIDTH runs such a sum once, for a
profiler.
"""
import argparse
import json
import pathlib
import statistics
import time

import numpy
import torch
import torch.nn.functional as functional
import torch_geometric
from torch_geometric.nn import GATConv, GCNConv
from torch_geometric.nn.conv.gcn_conv import gcn_norm
from torch_geometric.utils import add_self_loops, scatter

HEADS = 8


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--hidden", default="16", metavar="LIST")
    parser.add_argument("--models", default="gcn,gat", metavar="LIST")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--aggregate", type=int, metavar="WIDTH")
    parser.add_argument("--json", metavar="FILE")
    parser.add_argument("sources", nargs="+", metavar="FILE.npz")
    options = parser.parse_args()
    options.hidden = [int(width) for width in options.hidden.split(",")]
    return options


class Data:
    def __init__(self, path, device):
        with numpy.load(path) as arrays:
            self.vertices = int(arrays["num_nodes"])
            edges = numpy.stack([arrays["col"], arrays["row"]]).astype(numpy.int64)
            self.edges = torch.from_numpy(edges).to(device)
            self.x = torch.from_numpy(features(arrays, self.vertices)).to(device)
            has_labels = "y" in arrays and arrays["y"].ndim == 1
            labels = arrays["y"] if has_labels else numpy.arange(self.vertices, dtype=numpy.int64) % 16
        self.y = torch.from_numpy(labels).to(device)
        self.classes = int(self.y.max()) + 1
        self.labelled = (self.y >= 0).nonzero().flatten()


def features(arrays, vertices):
    if "x" in arrays:
        return arrays["x"]
    if "x_indptr" not in arrays:
        return numpy.random.default_rng(1).random((vertices, 64), dtype=numpy.float32)
    dense = numpy.zeros((vertices, int(arrays["x_dim"])), dtype=numpy.float32)
    rows = numpy.repeat(numpy.arange(vertices), numpy.diff(arrays["x_indptr"]))
    dense[rows, arrays["x_indices"]] = arrays["x_data"]
    return dense


class Model(torch.nn.Module):
    def __init__(self, kind, data, hidden):
        super().__init__()
        self.is_gat = kind == "gat"
        if self.is_gat:
            self.first = GATConv(data.x.shape[1], hidden // HEADS, heads=HEADS)
            self.second = GATConv(hidden, data.classes, heads=1)
        else:
            self.first = GCNConv(data.x.shape[1], hidden, cached=True)
            self.second = GCNConv(hidden, data.classes, cached=True)

    def forward(self, x, edges):
        x = self.first(x, edges)
        x = functional.elu(x) if self.is_gat else functional.relu(x)
        return self.second(x, edges)


class Clock:
    def __init__(self, options):
        self.on_gpu = options.device == "cuda"
        self.repeats = options.repeats

    def now(self):
        if self.on_gpu:
            torch.cuda.synchronize()
        return time.perf_counter()

    def microseconds(self, function):
        """The median of single runs, each waited for."""
        for _ in range(3):
            function()
        samples = []
        for _ in range(self.repeats):
            before = self.now()
            function()
            samples.append((self.now() - before) * 1e6)
        return statistics.median(samples)

    def queued(self, function):
        """The mean of many that wait for nothing in between."""
        for _ in range(3):
            function()
        before = self.now()
        for _ in range(self.repeats):
            function()
        return (self.now() - before) * 1e6 / self.repeats


def launches(function, on_gpu):
    if not on_gpu:
        return None
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        function()
        torch.cuda.synchronize()
    on_device = torch.autograd.DeviceType.CUDA
    return sum(event.count for event in profile.key_averages() if event.device_type == on_device)


def step_record(kind, data, hidden, name, clock):
    torch.manual_seed(1)
    if clock.on_gpu:
        torch.cuda.reset_peak_memory_stats()
    model = Model(kind, data, hidden).to(data.x.device)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)

    def forward():
        return functional.cross_entropy(model(data.x, data.edges)[data.labelled], data.y[data.labelled])

    def step():
        optimiser.zero_grad()
        forward().backward()
        optimiser.step()

    def process():
        if kind == "gcn":
            gcn_norm(data.edges, None, data.vertices)
        else:
            add_self_loops(data.edges, num_nodes=data.vertices)

    whole = clock.queued(step)
    of_forward = clock.microseconds(forward)
    of_both = clock.microseconds(lambda: forward().backward())
    figures = {"process_us": clock.microseconds(process), "forward_us": of_forward, "backward_us": of_both - of_forward,
               "optimiser_us": clock.microseconds(optimiser.step), "launches": launches(step, clock.on_gpu)}
    if clock.on_gpu:
        figures["peak_memory_bytes"] = torch.cuda.max_memory_allocated()
    return {"op": f"step_{kind}", "graph": name, "hidden": hidden, "mean_us": whole, "figures": figures,
            "plan": f"PyG {torch_geometric.__version__}, torch {torch.__version__}"}


class Aggregation:
    """GCN's sum as PyG computes it: gathered, weighted, scattered."""

    def __init__(self, data, width):
        self.edges, self.weights = gcn_norm(data.edges, None, data.vertices)
        self.x = torch.rand((data.vertices, width), device=data.x.device)
        self.vertices = data.vertices

    def __call__(self):
        gathered = self.x[self.edges[0]] * self.weights[:, None]
        return scatter(gathered, self.edges[1], dim_size=self.vertices, reduce="sum")


def profile(data, width):
    run = Aggregation(data, width)
    run()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStart()
    run()
    torch.cuda.synchronize()
    torch.cuda.cudart().cudaProfilerStop()


def measured(data, name, options, clock):
    for hidden in options.hidden:
        for kind in options.models.split(","):
            try:
                yield step_record(kind, data, hidden, name, clock)
            except torch.OutOfMemoryError:
                print(f"{name}, {kind}, {hidden}: out of memory")
        try:
            yield {"op": "spmm", "graph": name, "hidden": hidden, "mean_us": clock.queued(Aggregation(data, hidden))}
        except torch.OutOfMemoryError:
            print(f"{name}, spmm, {hidden}: out of memory")


def main():
    options = arguments()
    clock = Clock(options)
    records = []
    for source in options.sources:
        data = Data(source, options.device)
        if options.aggregate:
            profile(data, options.aggregate)
            continue
        for record in measured(data, pathlib.Path(source).stem, options, clock):
            records.append(record)
            # Each time, as whoever asked may not wait for all of them.
            pathlib.Path(options.json).write_text(json.dumps({"records": records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
