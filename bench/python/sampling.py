#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sampling of neighbours on a GPU and on the CPU, beside PyG's NeighborLoader.

    python bench/python/sampling.py --json sampling.json
    python bench/python/sampling.py --quick

The graph is an R-MAT of the size of ogbn-products (2^21 vertices, 27 edges a vertex before it is made symmetric). A batch is
1024 seeds with fan-outs 15, 10, 5 without replacement. The first batches of GPU and CPU are compared before anything is timed.

The time of a batch on a GPU is set against that of its memory traffic at a rate of random reads (--rate). Counted are, at 32
bytes, one sector, each: the offsets of a vertex that draws; for each edge its source, its number in the caller's order, its
slot in the table of vertices when it is entered and when its number is read. And what is written once: three numbers of 8
bytes for each edge, one for each vertex.

Loaders are timed without features, from the first batch on: threads or workers (--workers) draw ahead. PyG needs pyg-lib or
torch_sparse; without them it is left out, and the table says so.
"""

import argparse
import json
import time

import torch
from torch_geometric.data import Data
from torch_geometric.loader import NeighborLoader as PygNeighborLoader
from torch_geometric.sampler import NodeSamplerInput
from training import commit, versions

from tessera._neighbour_sampler import NeighborSampler
from tessera.loader import NeighborLoader

FAN_OUTS, BATCH, SECTOR = [15, 10, 5], 1024, 32


def rmat(scale, edges, device):
    """An edge_index, both ways and each edge once, with numbers of vertices in no order."""
    draw = torch.Generator(device).manual_seed(1)
    ends = torch.zeros(2, edges, dtype=torch.int64, device=device)
    for _ in range(scale):
        one = torch.rand(edges, generator=draw, device=device)
        ends[0] = 2 * ends[0] + (one >= 0.76)
        ends[1] = 2 * ends[1] + (((one >= 0.57) & (one < 0.76)) | (one >= 0.95))
    names = torch.randperm(1 << scale, generator=draw, device=device)
    source, target = names[ends[0]], names[ends[1]]
    keys = torch.cat([(source << 32) | target, (target << 32) | source])[(source != target).repeat(2)]
    keys = keys.unique()
    return torch.stack([keys >> 32, keys & 0xFFFFFFFF])


def seeds_of(step, vertices):
    draw = torch.Generator().manual_seed(step)
    return NodeSamplerInput(input_id=None, node=torch.randperm(vertices, generator=draw)[:BATCH])


def bytes_of(sample):
    """What a batch reads at random and writes once."""
    vertices, edges = sum(sample.num_sampled_nodes), sum(sample.num_sampled_edges)
    drawing = sum(sample.num_sampled_nodes[:-1])
    return SECTOR * (drawing + 4 * edges) + 24 * edges + 8 * vertices


def check_same(gpu, cpu, inputs):
    for step, one in enumerate(inputs):
        there, here = gpu.sample_from_nodes(one, step), cpu.sample_from_nodes(one, step)
        for name in ("node", "row", "col", "edge"):
            if not torch.equal(getattr(there, name).cpu(), getattr(here, name)):
                raise SystemExit(f"batch {step}: {name} of the GPU is not that of the CPU")


def time_sampler(sampler, inputs, wait):
    """Milliseconds of each batch, one after the other: the median."""
    times = []
    for step, one in enumerate(inputs):
        wait()
        begin = time.perf_counter()
        sampler.sample_from_nodes(one, step)
        wait()
        times.append(1e3 * (time.perf_counter() - begin))
    return sorted(times)[len(times) // 2]


def time_loader(loader, wait):
    """Milliseconds of each batch of an epoch."""
    wait()
    begin = time.perf_counter()
    count = sum(1 for _ in loader)
    wait()
    return 1e3 * (time.perf_counter() - begin) / count


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--scale", type=int, default=21, help="logarithm of the number of vertices")
    parser.add_argument("--batches", type=int, default=100, help="how many are timed")
    parser.add_argument("--workers", type=int, default=16, help="threads or workers of loaders")
    parser.add_argument("--rate", type=float, default=4.4, help="of random reads, in TB/s")
    parser.add_argument("--quick", action="store_true", help="a graph of 2^14 vertices and ten batches")
    parser.add_argument("--without-pyg", action="store_true")
    parser.add_argument("--json", help="where all figures go")
    options = parser.parse_args()
    if options.quick:
        options.scale, options.batches = 14, 10
    on_gpu = torch.cuda.is_available()
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    index = rmat(options.scale, 27 << options.scale, "cuda" if on_gpu else "cpu").cpu()
    vertices = 1 << options.scale
    data = Data(edge_index=index, num_nodes=vertices)
    inputs = [seeds_of(step, vertices) for step in range(options.batches)]
    cpu = NeighborSampler(data, FAN_OUTS, seed=1)
    figures = {"commit": commit(), "versions": versions(), "vertices": vertices, "edges": index.size(1),
               "device": torch.cuda.get_device_name() if on_gpu else "cpu", "batches": options.batches}
    figures["cpu_batch_ms"] = time_sampler(cpu, inputs[:20], wait)
    seeds = torch.cat([one.node for one in inputs])
    shared = {"batch_size": BATCH, "input_nodes": seeds, "num_workers": options.workers}
    figures["cpu_loader_ms"] = time_loader(NeighborLoader(data, FAN_OUTS, neighbor_sampler=cpu, **shared), wait)
    if on_gpu:
        gpu = NeighborSampler(data, FAN_OUTS, seed=1, device="cuda")
        check_same(gpu, cpu, inputs[:5])
        time_sampler(gpu, inputs[:10], wait)
        figures["gpu_batch_ms"] = time_sampler(gpu, inputs, wait)
        figures["bytes"] = bytes_of(gpu.sample_from_nodes(inputs[0], 0))
        figures["traffic_ms"] = figures["bytes"] / options.rate / 1e9
        figures["times_traffic"] = figures["gpu_batch_ms"] / figures["traffic_ms"]
        there = data.clone().to("cuda")
        figures["gpu_loader_ms"] = time_loader(
            NeighborLoader(there, FAN_OUTS, neighbor_sampler=gpu, **{**shared, "num_workers": 2}), wait)
    if not options.without_pyg:
        try:
            loader = PygNeighborLoader(data, FAN_OUTS, **shared)
            figures["pyg_loader_ms"] = time_loader(loader, wait)
        except ImportError as error:
            figures["pyg"] = str(error).strip().splitlines()[-1]
    for name, figure in figures.items():
        print(f"{name:16} {figure:.4g}" if isinstance(figure, float) else f"{name:16} {figure}")
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(figures, file, indent=1)


if __name__ == "__main__":
    main()
