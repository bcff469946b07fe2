#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training epochs of PyG models, plain and accelerated, side by side in one process.

    python bench/python/epochs.py --device cpu --graphs cora arxiv --models GCN SAGE GIN GAT GATv2 \
        --modes eager compiled --json docs/results/python_cpu.json --table docs/results/python_cpu.md

Graphs are random ones of the size and mean degree of the data sets they are named after. Times are the
median of epochs (forward, loss, backward, Adam) after three that do not count.
"""

import argparse
import json
import platform
import statistics
import time

import torch
import torch.nn.functional as F
import torch_geometric
import torch_geometric.nn as pyg

import tessera

GRAPHS = {  # vertices, edges (both directions), features, classes
    "cora": (2708, 10556, 1433, 7),
    "arxiv": (169343, 2315598, 128, 40),
    "reddit": (232965, 114615892, 602, 41),
    "small": (20000, 400000, 64, 16),
}


class Net(torch.nn.Module):
    """Two layers, 64 hidden, no dropout."""

    def __init__(self, kind, features, classes, hidden=64):
        super().__init__()
        if kind == "GIN":
            def mlp(a, b):
                return torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(),
                                           torch.nn.Linear(b, b))

            layers = [pyg.GINConv(mlp(features, hidden)), pyg.GINConv(mlp(hidden, classes))]
        elif kind in ("GAT", "GATv2"):
            conv = pyg.GATConv if kind == "GAT" else pyg.GATv2Conv
            layers = [conv(features, hidden // 8, heads=8), conv(hidden, classes, heads=1)]
        else:
            conv = {"GCN": pyg.GCNConv, "SAGE": pyg.SAGEConv}[kind]
            layers = [conv(features, hidden), conv(hidden, classes)]
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index):
        return self.layers[1](F.relu(self.layers[0](x, edge_index)), edge_index)


def make_graph(name, device):
    vertices, edges, features, classes = GRAPHS[name]
    draw = torch.Generator().manual_seed(1)
    # Skewed, as real graphs are: ends are drawn with a density that falls from vertex 0 on.
    ends = torch.rand(2, edges // 2, generator=draw).square().mul(vertices).long()
    shuffle = torch.randperm(vertices, generator=draw)
    half = shuffle[ends]
    index = torch.cat([half, half.flip(0)], dim=1).to(device)
    x = torch.randn(vertices, features, generator=draw).to(device)
    labels = torch.randint(0, classes, (vertices,), generator=draw).to(device)
    return x, index, labels


def measure(kind, accelerated, mode, data, dtype, epochs, seconds):
    x, index, labels = data
    device = x.device
    torch._dynamo.reset()
    torch.manual_seed(0)
    net = Net(kind, x.size(1), int(labels.max()) + 1).to(device)
    if accelerated:
        tessera.accelerate(net)
    model = torch.compile(net) if mode == "compiled" else net
    optimiser = torch.optim.Adam(net.parameters(), lr=0.01, capturable=mode == "captured")

    def step():
        optimiser.zero_grad(set_to_none=mode != "captured")
        with torch.autocast(device.type, dtype=torch.bfloat16, enabled=dtype == "bf16"):
            loss = F.cross_entropy(model(x, index), labels)
        loss.backward()
        optimiser.step()
        return loss

    def wait():
        if device.type == "cuda":
            torch.cuda.synchronize()

    if device.type == "cuda":
        torch.cuda.reset_peak_memory_stats()
    run = step
    done = 0
    if mode == "captured":
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                step()
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = step()

        def run():
            graph.replay()
            return kept

        done = 3
    times = []
    loss_after = None
    begin = time.perf_counter()
    while len(times) < epochs:
        wait()
        start = time.perf_counter()
        loss = run()
        wait()
        times.append(time.perf_counter() - start)
        done += 1
        if done == 50:
            loss_after = loss.item()
        if time.perf_counter() - begin > seconds and len(times) >= 5:
            break
    result = {"median_ms": 1e3 * statistics.median(times[3:] or times), "epochs": len(times),
              "loss_after_50": loss_after}
    if device.type == "cuda":
        result["peak_bytes"] = torch.cuda.max_memory_allocated()
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--graphs", nargs="+", default=["cora", "arxiv"], choices=GRAPHS)
    parser.add_argument("--models", nargs="+", default=["GCN", "SAGE", "GIN", "GAT", "GATv2"])
    parser.add_argument("--modes", nargs="+", default=["eager"],
                        choices=["eager", "compiled", "captured"])
    parser.add_argument("--precisions", nargs="+", default=["fp32"], choices=["fp32", "bf16"])
    parser.add_argument("--epochs", type=int, default=53)
    parser.add_argument("--seconds", type=float, default=20, help="limit for each measurement")
    parser.add_argument("--json")
    parser.add_argument("--table")
    options = parser.parse_args()
    device = torch.device(options.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    records = []
    for graph in options.graphs:
        data = make_graph(graph, device)
        for kind in options.models:
            for dtype in options.precisions:
                for mode in options.modes:
                    record = {"graph": graph, "model": kind, "precision": dtype, "mode": mode,
                              "device": name, "threads": torch.get_num_threads(),
                              "torch": torch.__version__, "pyg": torch_geometric.__version__}
                    for who, accelerated in (("pyg", False), ("tessera", True)):
                        try:
                            record[who] = measure(kind, accelerated, mode, data, dtype,
                                                  options.epochs, options.seconds)
                        except Exception as error:  # one that cannot run must not end the others
                            record[who] = {"error": f"{type(error).__name__}: {error}"[:200]}
                    records.append(record)
                    print(line(record), flush=True)
                    if options.json:
                        with open(options.json, "w") as file:
                            json.dump(records, file, indent=1)
                    if options.table:
                        write_table(records, options.table)


def text_of(result):
    return f"{result['median_ms']:.2f}" if "median_ms" in result else "failed"


def ratio(record):
    theirs, ours = record["pyg"], record["tessera"]
    if "median_ms" in theirs and "median_ms" in ours:
        return f"{theirs['median_ms'] / ours['median_ms']:.2f}"
    return "-"


def line(record):
    return (f"{record['graph']:8} {record['model']:6} {record['precision']} {record['mode']:9} "
            f"PyG {text_of(record['pyg']):>9} ms, tessera {text_of(record['tessera']):>9} ms, "
            f"{ratio(record)} x")


def write_table(records, path):
    first = records[0]
    lines = [
        f"Epochs on {first['device']}, {first['threads']} threads, torch {first['torch']}, PyG "
        f"{first['pyg']}; made by `bench/python/epochs.py`. Medians in ms.",
        "",
        "| graph | model | precision | mode | PyG | tessera | times as fast |",
        "|---|---|---|---|---:|---:|---:|",
    ]
    for record in records:
        lines.append(f"| {record['graph']} | {record['model']} | {record['precision']} | "
                     f"{record['mode']} | {text_of(record['pyg'])} | {text_of(record['tessera'])} | "
                     f"{ratio(record)} |")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
