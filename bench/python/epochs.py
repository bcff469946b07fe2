#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training epochs of PyG models, plain and accelerated, side by side in one process.

    python bench/python/epochs.py --device cpu --graphs cora arxiv --models GCN SAGE GIN GAT GATv2 \
        --modes eager compiled --json docs/results/python_cpu.json --table docs/results/python_cpu.md

Graphs are random ones of the size and mean degree of the data sets they are named after. Times are the
median of epochs (forward, loss, backward, Adam) after three that do not count; --shortest prints the
shortest instead, for machines that others use, too, and --clock processor counts what the processor works
(with OMP_NUM_THREADS=1). Records hold medians, shortest epochs, and the loss after 50 epochs.
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
    # Labels that features tell: losses then follow from the numbers, and not from how they were rounded.
    labels = torch.randint(0, classes, (vertices,), generator=draw)
    centres = torch.randn(classes, features, generator=draw)
    x = (torch.randn(vertices, features, generator=draw) + centres[labels]) / features**0.5
    return x.to(device), index, labels.to(device)


def measure(kind, accelerated, mode, data, dtype, epochs, seconds, clock):
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
        start = clock()
        loss = run()
        wait()
        times.append(clock() - start)
        done += 1
        if done == 50:
            loss_after = loss.item()
        if time.perf_counter() - begin > seconds and len(times) >= 5:
            break
    counted = times[3:] or times
    result = {"median_ms": 1e3 * statistics.median(counted), "min_ms": 1e3 * min(counted),
              "epochs": len(times), "loss_after_50": loss_after}
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
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--shortest", action="store_true", help="print shortest epochs, not medians")
    parser.add_argument("--json")
    parser.add_argument("--table")
    options = parser.parse_args()
    clock = time.perf_counter if options.clock == "wall" else time.process_time
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
                              "clock": options.clock,
                              "versions": f"torch {torch.__version__}, PyG {torch_geometric.__version__}"}
                    for who, accelerated in (("pyg", False), ("tessera", True)):
                        try:
                            record[who] = measure(kind, accelerated, mode, data, dtype,
                                                  options.epochs, options.seconds, clock)
                        except Exception as error:  # one that cannot run must not end the others
                            record[who] = {"error": f"{type(error).__name__}: {error}"[:200]}
                    records.append(record)
                    print(line(record, options.shortest), flush=True)
                    if options.json:
                        with open(options.json, "w") as file:
                            json.dump(records, file, indent=1)
                    if options.table:
                        write_table(records, options.shortest, options.table)


def milliseconds(result, shortest):
    return result.get("min_ms" if shortest else "median_ms")


def text_of(result, shortest):
    time = milliseconds(result, shortest)
    return "failed" if time is None else f"{time:.2f}"


def ratio(record, shortest):
    theirs, ours = (milliseconds(record[who], shortest) for who in ("pyg", "tessera"))
    return "-" if theirs is None or ours is None else f"{theirs / ours:.2f}"


def loss_difference(record):
    theirs, ours = (record[who].get("loss_after_50") for who in ("pyg", "tessera"))
    return "-" if theirs is None or ours is None else f"{abs(ours - theirs) / abs(theirs):.1e}"


def memory(record):
    sizes = [record[who].get("peak_bytes") for who in ("pyg", "tessera")]
    return "-" if None in sizes else " / ".join(f"{size / 2**20:.0f}" for size in sizes)


def line(record, shortest):
    return (f"{record['graph']:8} {record['model']:6} {record['precision']} {record['mode']:9} "
            f"PyG {text_of(record['pyg'], shortest):>9} ms, tessera "
            f"{text_of(record['tessera'], shortest):>9} ms, {ratio(record, shortest)} x, "
            f"loss {loss_difference(record)}, MiB {memory(record)}")


def write_table(records, shortest, path):
    first = records[0]
    what = "Shortest epochs" if shortest else "Medians"
    what += " by the processor's clock," if first["clock"] == "processor" else ""
    lines = [
        f"Epochs on {first['device']}, {first['threads']} threads, {first['versions']}; made by "
        f"`bench/python/epochs.py`. {what} in ms; the relative difference of the losses after 50 "
        "epochs; peak memory of PyG and tessera in MiB.",
        "",
        "| graph | model | precision | mode | PyG | tessera | times as fast | loss | memory |",
        "|---|---|---|---|---:|---:|---:|---:|---:|",
    ]
    for record in records:
        lines.append(f"| {record['graph']} | {record['model']} | {record['precision']} | "
                     f"{record['mode']} | {text_of(record['pyg'], shortest)} | "
                     f"{text_of(record['tessera'], shortest)} | {ratio(record, shortest)} | "
                     f"{loss_difference(record)} | {memory(record)} |")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
