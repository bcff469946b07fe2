#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Inference of Cluster-GCN (3 x 16) and GIN (3 x 64) over batches of parts in PyG, fp32, copies included.

    tessera partition graph.npz --parts 147 -o parts.txt
    batches_torch.py graph.npz parts.txt 50 --json pyg.json
    tessera bench batches_gcn_4 --data graph.npz --features 50 --json tessera.json

Several graphs follow each other, each as its file (.npz or .tsr), a file whose line i is the part of vertex i, and
the width of its features. Every batch has 20 parts; edges between parts are left out. Features (drawn at random) and
edge_index lie in pinned memory and are copied in every run, ahead of the batch's turn on a stream of their own where
that is faster. Logits of the first batch are checked against sums over its edges in double precision.
"""
import argparse
import pathlib
import time

import numpy
import torch
from torch_geometric.nn import GCNConv, GINConv

import common

PARTS_PER_BATCH = 20
CLASSES = 16
ERROR_BOUND = 1e-3  # torch may multiply in tf32 where its user allowed it


def sums(x, edges):
    """Of the sources of every target."""
    return torch.zeros_like(x).index_add_(0, edges[1], x[edges[0]])


class Gcn(torch.nn.Module):
    def __init__(self, width, hidden=16):
        super().__init__()
        widths = [width, hidden, hidden, CLASSES]
        self.layers = torch.nn.ModuleList(map(GCNConv, widths[:-1], widths[1:]))

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = layer(x, edges).relu_()
        return self.layers[-1](x, edges)

    def expected(self, x, edges):
        scale = (1 + sums(torch.ones(len(x), 1, dtype=x.dtype), edges)).rsqrt()
        for layer in self.layers:
            x = scale * (x @ layer.lin.weight.T)
            x = scale * (x + sums(x, edges)) + layer.bias
            x = x.relu() if layer is not self.layers[-1] else x
        return x


class Gin(torch.nn.Module):
    def __init__(self, width, hidden=64):
        super().__init__()
        widths = [width, hidden, hidden, CLASSES]
        self.layers = torch.nn.ModuleList(
            GINConv(torch.nn.Sequential(torch.nn.Linear(a, hidden), torch.nn.BatchNorm1d(hidden),
                                        torch.nn.ReLU(), torch.nn.Linear(hidden, b)))
            for a, b in zip(widths[:-1], widths[1:]))

    def forward(self, x, edges):
        for layer in self.layers[:-1]:
            x = layer(x, edges).relu_()
        return self.layers[-1](x, edges)

    def expected(self, x, edges):
        for layer in self.layers:
            x = layer.nn(x + sums(x, edges))
            x = x.relu() if layer is not self.layers[-1] else x
        return x


def make_batches(path, parts_file, width, seed, pinned):
    """(x, edge_index) of every batch."""
    _, offsets, sources, vertices = common.load(path)
    targets = numpy.repeat(numpy.arange(vertices), numpy.diff(offsets))
    part = numpy.fromfile(parts_file, dtype=numpy.int64, sep="\n")
    if len(part) != vertices:
        raise SystemExit(f"{parts_file} has {len(part)} lines for {vertices} vertices")
    inside = (part[sources] == part[targets]) & (sources != targets)
    sources, targets = sources[inside], targets[inside]
    batch = part // PARTS_PER_BATCH
    order = numpy.lexsort((part, batch))
    place = numpy.empty(vertices, dtype=numpy.int64)
    starts = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(batch))])
    place[order] = numpy.arange(vertices) - starts[batch[order]]
    by_batch = numpy.argsort(batch[targets], kind="stable")
    cuts = numpy.concatenate([[0], numpy.cumsum(numpy.bincount(batch[targets], minlength=len(starts) - 1))])
    generator = torch.Generator().manual_seed(seed)
    batches = []
    for i in range(len(starts) - 1):
        own = by_batch[cuts[i]:cuts[i + 1]]
        index = numpy.stack([place[sources[own]], place[targets[own]]])
        x = torch.randn(int(starts[i + 1] - starts[i]), width, generator=generator)
        edges = torch.from_numpy(index)
        batches.append((x.pin_memory(), edges.pin_memory()) if pinned else (x, edges))
    return batches


def run_in_order(model, batches, device):
    for x, edges in batches:
        model(x.to(device, non_blocking=True), edges.to(device, non_blocking=True))
    if device != "cpu":
        torch.cuda.synchronize()


def run_ahead(model, batches, copies):
    """The next batch is copied on a stream of its own while one is computed."""
    main = torch.cuda.current_stream()

    def fetch(batch):
        with torch.cuda.stream(copies):
            return [part.cuda(non_blocking=True) for part in batch]

    coming = fetch(batches[0])
    for i in range(len(batches)):
        main.wait_stream(copies)
        for part in coming:
            part.record_stream(main)
        now = coming
        if i + 1 < len(batches):
            coming = fetch(batches[i + 1])
        model(*now)
    torch.cuda.synchronize()


def check(model, batches, device):
    x, edges = batches[0]
    computed = model(x.to(device), edges.to(device)).double().cpu()
    expected = model.double().cpu().expected(x.double(), edges)
    model.float().to(device)
    error = float((computed - expected).abs().max() / expected.abs().max())
    if error > ERROR_BOUND:
        raise SystemExit(f"{type(model).__name__} is off by {error:.2e} of its largest number")
    return error


def measure(options, path, parts_file, width):
    """The records of all models on one graph."""
    began = time.perf_counter()
    on_gpu = options.device == "cuda"
    batches = make_batches(path, parts_file, width, 1, on_gpu)
    size = sum(part.numel() * part.element_size() for batch in batches for part in batch)
    copies = torch.cuda.Stream() if on_gpu else None
    for name in options.models.split(","):
        torch.manual_seed(1)
        model = {"gcn": Gcn, "gin": Gin}[name](width).to(options.device).eval()
        settings = {"in order": lambda: run_in_order(model, batches, options.device)}
        if on_gpu:
            settings["copied ahead"] = lambda: run_ahead(model, batches, copies)
        with torch.inference_mode():
            error = check(model, batches, options.device)
            setting, samples, plan = common.best_setting(settings, options)
        record = common.record(f"batches_{name}", pathlib.Path(path).stem, width, torch.get_num_threads(),
                               "PyG, " + setting, samples, plan)
        record.update(device=options.device, max_error=error,
                      figures={"batches": len(batches), "bytes_to_device": size})
        print(f"PyG batches_{name} {record['graph']} {width}: {record['median_us']:.0f} us, {len(batches)} batches, "
              f"{size / 1e6:.1f} MB, {plan}, {time.perf_counter() - began:.0f} s", flush=True)
        yield record


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", metavar="GRAPH PARTS WIDTH")
    parser.add_argument("--models", default="gcn,gin")
    parser.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--min-seconds", type=float, default=0.2)
    parser.add_argument("--max-seconds", type=float, default=10)
    parser.add_argument("--json", required=True, metavar="FILE")
    options = parser.parse_args()
    if len(options.cases) % 3 != 0:
        parser.error("every graph needs three words: its file, the file of its parts, and a width of features")

    records = []
    for path, parts_file, width in zip(*[iter(options.cases)] * 3):
        for record in measure(options, path, parts_file, int(width)):
            records.append(record)
            common.write(options, records)


if __name__ == "__main__":
    main()
