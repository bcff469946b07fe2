#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training epochs of PyG models, plain and accelerated, side by side in one process.

    python bench/python/epochs.py --device cpu --cases cora/eager/fp32 arxiv/compiled/bf16 \
        --models GCN SAGE GIN GAT GATv2 --json docs/results/python_cpu.json

Graphs are random ones of the size and mean degree of the data sets they are named after. An epoch is
forward, loss, backward and Adam. On a GPU, epochs are timed in blocks of five, between which the host
waits for the GPU, as it does in a loop that prints a loss now and then. Times are the median of blocks
after the first (`host_ms` in the records: what the host takes to queue an epoch); --shortest prints the shortest instead, for machines that others use, too, and --clock
processor counts what the processor works (with OMP_NUM_THREADS=1).

Losses are compared after 50 epochs. Where they differ by more than 1e-4 (bf16: 2e-2), PyG is trained once
more with its edges in another order, which changes nothing but how sums are rounded: "PyG itself" is what
that makes of PyG's loss. In bf16, PyG's loss in fp32 is taken from a case before, or trained for, and "from
fp32" says how far PyG's loss and ours are from that. Training may blow up what was rounded, so gradients of the
first step are compared as well: the largest difference of an element, relative to the largest element of its
parameter, from PyG in fp32 (in bf16, if that was measured before). Cases run in the order given; a capture
leaves memory of its own behind, so captured ones belong at the end. What waits for the GPU cannot be captured,
which is found out before trying.
"""

import argparse
import functools
import gc
import json
import os
import platform
import statistics
import subprocess
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


@functools.cache
def commit():
    """Which one is measured: TESSERA_COMMIT, or git's."""
    if "TESSERA_COMMIT" in os.environ:
        return os.environ["TESSERA_COMMIT"]
    found = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD"],
                           capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def versions():
    return f"torch {torch.__version__}, PyG {torch_geometric.__version__}"


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
    draw = {"generator": torch.Generator(device).manual_seed(1), "device": device}
    # Skewed, as real graphs are: ends are drawn with a density that falls from vertex 0 on.
    ends = torch.rand(2, edges // 2, **draw).square().mul(vertices).long()
    half = torch.randperm(vertices, **draw)[ends]
    index = torch.cat([half, half.flip(0)], dim=1)
    # Labels that features tell: losses then follow from the numbers, and not from how they were rounded.
    labels = torch.randint(0, classes, (vertices,), **draw)
    centres = torch.randn(classes, features, **draw)
    x = (torch.randn(vertices, features, **draw) + centres[labels]) / features**0.5
    return x, index, labels


class Training:
    """One model, and how a step of it is run."""

    def __init__(self, kind, accelerated, mode, data, dtype):
        self.x, self.index, self.labels = data
        self.device, self.mode, self.dtype = self.x.device, mode, dtype
        self.done = 0
        self.gradients = None  # of the first step
        torch.manual_seed(0)
        self.net = Net(kind, self.x.size(1), int(self.labels.max()) + 1).to(self.device)
        if accelerated:
            tessera.accelerate(self.net)
        self.model = torch.compile(self.net) if mode == "compiled" else self.net
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=0.01,
                                          capturable=mode == "captured")
        self.epoch = self.step
        if mode == "captured":
            self.capture()

    def step(self):
        self.optimiser.zero_grad(set_to_none=self.mode != "captured")
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.dtype == "bf16"):
            loss = F.cross_entropy(self.model(self.x, self.index), self.labels)
        loss.backward()
        if self.gradients is None:
            self.gradients = [parameter.grad.clone() for parameter in self.net.parameters()]
        self.optimiser.step()
        return loss

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.step()
            torch.cuda.set_sync_debug_mode("error")
            try:
                self.step()
            except RuntimeError as error:
                raise RuntimeError(f"cannot be captured: {str(error).splitlines()[0]}") from None
            finally:
                torch.cuda.set_sync_debug_mode("default")
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = self.step()

        def replay():
            graph.replay()
            return kept

        self.done, self.epoch = 3, replay

    def run(self, epochs):
        """The loss after 50 epochs, if they are among these."""
        found = None
        for _ in range(epochs):
            loss = self.epoch()
            self.done += 1
            if self.done == 50:
                found = loss.detach().clone()
        return found


def measure(training, epochs, seconds, clock):
    def wait():
        if training.device.type == "cuda":
            torch.cuda.synchronize()

    block = 5 if training.device.type == "cuda" else 1
    times, queued = [], []
    loss_after = None
    begin = float("inf")
    while training.done < epochs:
        wait()
        start = clock()
        found = training.run(block)
        queued.append((clock() - start) / block)
        wait()
        times.append((clock() - start) / block)
        begin = min(begin, time.perf_counter())  # after the first block, which is not counted
        loss_after = found if found is not None else loss_after
        if time.perf_counter() - begin > seconds and len(times) >= 3:
            break
    counted = times[1:] or times
    result = {"median_ms": 1e3 * statistics.median(counted), "min_ms": 1e3 * min(counted),
              "epochs": block * len(times),
              "loss_after_50": None if loss_after is None else loss_after.item()}
    if training.device.type == "cuda":
        result["host_ms"] = 1e3 * statistics.median(queued[1:] or queued)
        result["peak_bytes"] = torch.cuda.max_memory_allocated()
    return result


def fresh(device, compiles=False):
    """Nothing of what ran before is left."""
    if compiles:
        torch._dynamo.reset()
    tessera.clear_cache()
    gc.collect()
    if device.type == "cuda":
        if torch.cuda.memory_reserved() > 2**34:
            torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()


def measured(case, data, accelerated, options, clock):
    """The times of a case, and the gradients of its first step."""
    graph, kind, dtype, mode = case
    fresh(data[0].device, mode == "compiled")
    try:
        training = Training(kind, accelerated, mode, data, dtype)
        return measure(training, options.epochs, options.seconds, clock), training.gradients
    except Exception as error:  # one that cannot run must not end the others
        return {"error": f"{type(error).__name__}: {error}"[:200]}, None


def pyg_loss(kind, data, dtype):
    """PyG's loss after 50 epochs."""
    fresh(data[0].device)
    return Training(kind, False, "eager", data, dtype).run(50).item()


def reordered(data):
    """The same graph with its edges in another order."""
    x, index, labels = data
    order = torch.randperm(index.size(1), generator=torch.Generator().manual_seed(5))
    return x, index[:, order.to(index.device)], labels


def gradient_differences(gradients, expected):
    """How far gradients of the first step are from PyG's in fp32, by who made them."""
    if expected is None:
        return None
    return {who: max(((a - b).abs().max() / b.abs().max().clamp(min=1e-30)).item()
                     for a, b in zip(found, expected))
            for who, found in gradients.items() if found is not None and found is not expected}


class InFp32:
    """What PyG's models in fp32 gave, by graph and model, for comparisons with other types."""

    def __init__(self):
        self.losses, self.gradients = {}, {}

    def keep(self, case, record, gradients):
        graph, kind, dtype, mode = case
        if dtype != "fp32" or mode != "eager":
            return
        if record["pyg"].get("loss_after_50") is not None:
            self.losses[graph, kind] = record["pyg"]["loss_after_50"]
        if gradients["pyg"] is not None:
            self.gradients[graph, kind] = gradients["pyg"]

    def loss(self, graph, kind, data):
        if (graph, kind) not in self.losses:
            self.losses[graph, kind] = pyg_loss(kind, data, "fp32")
        return self.losses[graph, kind]


def compare_losses(record, case, data, in_fp32):
    """What else losses after 50 epochs tell, where they differ by more than they should."""
    graph, kind, dtype, mode = case
    difference = loss_difference(record)
    if difference is None or difference <= LOSS_BOUNDS[dtype]:
        return
    theirs = record["pyg"]["loss_after_50"]
    record["pyg_itself"] = apart(pyg_loss(kind, reordered(data), dtype), theirs)
    if dtype != "fp32":
        wide = in_fp32.loss(graph, kind, data)
        record["from_fp32"] = {who: apart(record[who]["loss_after_50"], wide)
                               for who in ("pyg", "tessera")}


def case_of(text):
    """GRAPH/MODE/PRECISION"""
    parts = text.split("/")
    choices = (GRAPHS, ("eager", "compiled", "captured"), LOSS_BOUNDS)
    if len(parts) != 3 or any(part not in known for part, known in zip(parts, choices)):
        raise argparse.ArgumentTypeError(
            f"{text!r} is not GRAPH/MODE/PRECISION, of " + ", ".join("|".join(known) for known in choices))
    return tuple(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--cases", nargs="+", type=case_of, metavar="GRAPH/MODE/PRECISION",
                        default=[("cora", "eager", "fp32"), ("arxiv", "eager", "fp32")])
    parser.add_argument("--models", nargs="+", default=["GCN", "SAGE", "GIN", "GAT", "GATv2"])
    parser.add_argument("--epochs", type=int, default=53)
    parser.add_argument("--seconds", type=float, default=20, help="limit for each measurement")
    parser.add_argument("--budget", type=float, default=float("inf"),
                        help="no case begins after so many seconds")
    parser.add_argument("--rounds", type=int, default=1,
                        help="measure both in turns so often, and keep the fastest of each")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall")
    parser.add_argument("--shortest", action="store_true", help="print shortest epochs, not medians")
    parser.add_argument("--json")
    parser.add_argument("--table")
    options = parser.parse_args()
    clock = time.perf_counter if options.clock == "wall" else time.process_time
    device = torch.device(options.device)
    name = torch.cuda.get_device_name() if device.type == "cuda" else platform.machine()
    begin = time.perf_counter()
    data, records, in_fp32 = {}, [], InFp32()
    cases = [(graph, kind, dtype, mode) for graph, mode, dtype in options.cases
             for kind in options.models]
    gc.freeze()  # what was imported stays: looking through it for every model would take longer than to train it
    for case in cases:
        if time.perf_counter() - begin > options.budget:
            print(f"{options.budget} s are over: left out {case} and what follows", flush=True)
            break
        graph, kind, dtype, mode = case
        if graph not in data:
            data = {graph: make_graph(graph, device)}  # one at a time
        record = {"graph": graph, "model": kind, "precision": dtype, "mode": mode, "device": name,
                  "threads": torch.get_num_threads(), "clock": options.clock,
                  "commit": commit(), "versions": versions()}
        gradients = {}
        for _ in range(options.rounds):
            for who, accelerated in (("pyg", False), ("tessera", True)):
                result, gradients[who] = measured(case, data[graph], accelerated, options, clock)
                worst = float("inf")  # of a round that failed
                if (who not in record
                        or result.get("median_ms", worst) < record[who].get("median_ms", worst)):
                    record[who] = result
        in_fp32.keep(case, record, gradients)
        compare_losses(record, case, data[graph], in_fp32)
        expected = gradients["pyg"] if dtype == "fp32" else in_fp32.gradients.get((graph, kind))
        record["gradients"] = gradient_differences(gradients, expected)
        records.append(record)
        print(line(record, options.shortest), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)
        if options.table:
            write_table(records, options.shortest, options.table)


LOSS_BOUNDS = {"fp32": 1e-4, "bf16": 2e-2}


def milliseconds(result, shortest):
    return result.get("min_ms" if shortest else "median_ms")


WHY = {"OutOfMemory": "out of memory", "cannot be captured": "waits"}  # by a part of the error


def text_of(result, shortest):
    time = milliseconds(result, shortest)
    if time is not None:
        return f"{time:.2f}"
    return next((word for key, word in WHY.items() if key in result["error"]), "failed")


def ratio(record, shortest):
    theirs, ours = (milliseconds(record[who], shortest) for who in ("pyg", "tessera"))
    return "-" if theirs is None or ours is None else f"{theirs / ours:.2f}"


def apart(found, expected):
    return abs(found - expected) / max(abs(expected), 1e-6)


def loss_difference(record):
    theirs, ours = (record[who].get("loss_after_50") for who in ("pyg", "tessera"))
    return None if theirs is None or ours is None else apart(ours, theirs)


def loss_text(record):
    difference = loss_difference(record)
    text = "-" if difference is None else f"{difference:.1e}"
    if "pyg_itself" in record:
        text += f" (PyG itself {record['pyg_itself']:.1e})"
    if "from_fp32" in record:
        found = record["from_fp32"]
        text += f" (from fp32: PyG {found['pyg']:.1e}, tessera {found['tessera']:.1e})"
    return text


def gradient_text(record):
    found = record["gradients"]
    if found is None or "tessera" not in found:
        return "-"
    text = f"{found['tessera']:.1e}"
    return text if "pyg" not in found else f"{text} (PyG {found['pyg']:.1e})"


def memory(record):
    sizes = [record[who].get("peak_bytes") for who in ("pyg", "tessera")]
    return " / ".join("-" if size is None else f"{size / 2**20:.0f}" for size in sizes)


def line(record, shortest):
    return (f"{record['graph']:8} {record['model']:6} {record['precision']} {record['mode']:9} "
            f"PyG {text_of(record['pyg'], shortest):>9} ms, tessera "
            f"{text_of(record['tessera'], shortest):>9} ms, {ratio(record, shortest)} x, "
            f"loss {loss_text(record)}, gradients {gradient_text(record)}, MiB {memory(record)}")


def write_table(records, shortest, path):
    first = records[0]
    what = "Shortest epochs" if shortest else "Medians"
    what += " by the processor's clock," if first["clock"] == "processor" else ""
    lines = [
        f"Epochs on {first['device']}, {first['threads']} threads, {first['versions']}; made by "
        f"`bench/python/epochs.py`. {what} in ms; the relative difference of the losses after 50 "
        "epochs, and of the first gradients from PyG's in fp32; peak memory of PyG and tessera in MiB. "
        "Waits: for the GPU in every step, which cannot be captured.",
        "",
        "| graph | model | precision | mode | PyG | tessera | times as fast | loss | gradients | memory |",
        "|---|---|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for record in records:
        lines.append(f"| {record['graph']} | {record['model']} | {record['precision']} | "
                     f"{record['mode']} | {text_of(record['pyg'], shortest)} | "
                     f"{text_of(record['tessera'], shortest)} | {ratio(record, shortest)} | "
                     f"{loss_text(record)} | {gradient_text(record)} | {memory(record)} |")
    with open(path, "w") as file:
        file.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
