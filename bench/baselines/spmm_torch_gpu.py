#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A X on a GPU as PyTorch's users call cuSPARSE: torch.sparse.mm of a CSR tensor in the precision of X.

    spmm_torch_gpu.py --data wing.npz --features 64,128 --json torch.json

Timed as `tessera bench --device cuda` does: the median between two events, and one of 20 runs inside a captured CUDA
graph where that works (chain_us).
"""
import argparse
import json
import pathlib
import statistics

import torch

import common

PRECISIONS = {"fp32": torch.float32, "bf16": torch.bfloat16}
CHAIN = 20


def median_us(function, repeats):
    times = []
    for _ in range(repeats):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record()
        function()
        end.record()
        end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3)
    return statistics.median(times)


def chain_us(function, repeats):
    """None where the product cannot be captured."""
    graph = torch.cuda.CUDAGraph()
    try:
        with torch.cuda.graph(graph):
            for _ in range(CHAIN):
                function()
    except RuntimeError:
        return None
    graph.replay()
    return median_us(graph.replay, repeats) / CHAIN


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", required=True, metavar="FILE.npz")
    parser.add_argument("--features", default="64,128,256,512")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--json", required=True)
    options = parser.parse_args()
    records = []
    with torch.inference_mode():
        for path in options.data:
            name, offsets, columns, vertices = common.load(path)
            for precision, kind in PRECISIONS.items():
                matrix = common.csr(offsets, columns, vertices, torch.int32).to(device="cuda", dtype=kind)
                for width in map(int, options.features.split(",")):
                    x = torch.rand(vertices, width, device="cuda").to(kind)

                    def product(matrix=matrix, x=x):
                        return torch.sparse.mm(matrix, x)

                    for _ in range(3):
                        product()
                    records.append({"op": "spmm", "graph": name, "features": width, "precision": precision, "device": "cuda",
                                    "kernel": "torch/mm", "median_us": median_us(product, options.repeats),
                                    "chain_us": chain_us(product, options.repeats)})
    pathlib.Path(options.json).write_text(json.dumps({"version": f"torch {torch.__version__}", "records": records}) + "\n")


if __name__ == "__main__":
    main()
