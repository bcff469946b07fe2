#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turbo-GNN's operators (`pip install turbo-gnn`) beside ours, forward and backward, on the graphs of epochs.py.

    python bench/python/turbo.py --graphs cora arxiv --json turbo.json

Both get the same features, in two heads of 32 where there are heads (theirs are not narrower); results are held
against each other. Medians of --blocks blocks of five runs after one that does not count, by the host's clock around
each; --tune lets both find their parameters by measuring. Where turbo_gnn is not installed, it says so and does nothing.
"""

import argparse
import importlib.util
import json
import statistics
import sys
import time

import torch
from training import GRAPHS, commit, make_graph

import tessera

WIDTH, HEADS = 64, 2
BLOCK = 5  # runs between which the host does not wait
TYPES = {"fp32": torch.float32, "bf16": torch.bfloat16}


def cases(index, vertices, dtype, options):
    """Of each operator: ours and theirs as functions, and the tensors that both take."""
    import turbo_gnn

    device = index.device
    theirs = turbo_gnn.AdjacencyForwardBackwardWithNodeBuckets.from_edge_list(
        index, num_nodes=vertices, index_dtype=torch.int32).to(device)
    ours = tessera.Graph(index, vertices, vertices)
    tuned = {"autotune": True} if options.tune else {}

    def heads(tensor):
        return tensor.view(vertices, HEADS, -1)

    def draw(*shape):
        return torch.randn(*shape, device=device, dtype=dtype, requires_grad=True)

    def features(count):
        return [draw(vertices, WIDTH) for _ in range(count)]

    scale = (WIDTH // HEADS) ** -0.5
    yield ("max", lambda x: tessera.spmm(ours, x, reduce="max", tune=options.tune),
           lambda x: turbo_gnn.reduction_aggr(theirs, x, reduce="max", **tuned), features(1))
    yield ("gatv2",
           lambda t, s, a: tessera.attention(ours, t, s, s, a, form="v2", heads=HEADS,
                                             tune=options.tune),
           lambda t, s, a: turbo_gnn.gatv2_aggr(theirs, heads(t), x_neighbors=heads(s),
                                                attention_weights=a, negative_slope=0.2,
                                                **tuned).reshape(vertices, -1),
           [*features(2), draw(HEADS, WIDTH // HEADS)])
    yield ("transformer",
           lambda q, k, v: tessera.attention(ours, k, q, v, form="dot", heads=HEADS, scale=scale,
                                             tune=options.tune),  # their queries are the sources'
           lambda q, k, v: turbo_gnn.graph_transformer_aggr(theirs, v, Q=heads(q), K=heads(k),
                                                            V=heads(v), scale=scale,
                                                            **tuned).reshape(vertices, -1),
           features(3))
    if dtype == torch.float32:  # with others their cuSPARSE ends the process
        yield ("sum", lambda x: tessera.spmm(ours, x, tune=options.tune),
               lambda x: turbo_gnn.spmm_aggr(x, theirs.forward_indptr, theirs.forward_indices,
                                             norm_type="none", cu_sparse_algorithm_id=-1, block_dim=256),
               features(1))


def measure(functions, tensors, grad, blocks):
    """Of each: the median of its blocks, which take turns, and the last results and gradients."""
    times, found = [[] for _ in functions], [None] * len(functions)
    for _ in range(blocks + 1):
        for place, function in enumerate(functions):
            if grad.is_cuda:
                torch.cuda.synchronize()
            start = time.perf_counter()
            for _ in range(BLOCK):
                for tensor in tensors:
                    tensor.grad = None
                out = function(*tensors)
                out.backward(grad)
            if grad.is_cuda:
                torch.cuda.synchronize()
            times[place].append((time.perf_counter() - start) / BLOCK)
            found[place] = [out.detach()] + [tensor.grad.clone() for tensor in tensors]
    return [(1e3 * statistics.median(each[1:]), results) for each, results in zip(times, found)]


def difference(ours, theirs):
    return max(((a.float() - b.float()).abs().max() / (1 + b.float().abs().max())).item()
               for a, b in zip(ours, theirs))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--graphs", nargs="+", default=["cora", "arxiv"], choices=GRAPHS)
    parser.add_argument("--precisions", nargs="+", default=["fp32", "bf16"], choices=TYPES)
    parser.add_argument("--blocks", type=int, default=10)
    parser.add_argument("--tune", action="store_true")
    parser.add_argument("--json")
    options = parser.parse_args()
    if importlib.util.find_spec("turbo_gnn") is None:
        print("turbo_gnn is not installed here: nothing to compare with (pip install turbo-gnn)")
        return 0
    records = []
    for graph in options.graphs:
        x, index, _ = make_graph(graph, torch.device(options.device))
        index = torch.unique(index, dim=1)  # their kernels count each edge once
        torch.manual_seed(0)
        for precision, (name, ours, theirs, tensors) in (
                (precision, case) for precision in options.precisions
                for case in cases(index, x.size(0), TYPES[precision], options)):
            record = {"graph": graph, "operator": name, "precision": precision, "commit": commit()}
            grad = torch.randn(x.size(0), WIDTH, device=x.device, dtype=TYPES[precision])
            try:
                (record["turbo_ms"], expected), (record["tessera_ms"], found) = measure(
                    (theirs, ours), tensors, grad, options.blocks)
                record["difference"] = difference(found, expected)
                print(f"{graph:8} {name:12} {precision} Turbo-GNN {record['turbo_ms']:.3f} ms, tessera "
                      f"{record['tessera_ms']:.3f} ms, {record['turbo_ms'] / record['tessera_ms']:.2f} x, "
                      f"difference {record['difference']:.1e}", flush=True)
            except Exception as error:  # one that cannot run must not end the others
                record["error"] = f"{type(error).__name__}: {error}"[:200]
                print(f"{graph:8} {name:12} {precision} {record['error']}", flush=True)
            records.append(record)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(records, file, indent=1)
    return 0


if __name__ == "__main__":
    sys.exit(main())
