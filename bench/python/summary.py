#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Epochs of PyG's models on graphs of files, plain and after `tessera.accelerate`: what `tools/report.py measure` runs.

    python bench/python/summary.py --device cpu --features 128 --classes 16 --json epochs.json cora.npz

An epoch is a forward pass, the loss, a backward pass and Adam, of two layers with 64 hidden features. Features and
labels are drawn at random, labels so that features tell them. Losses after five epochs are recorded beside the times; what
takes more memory than the GPU has is null.
"""
import argparse
import gc
import json
import pathlib
import time

import numpy
import torch

from training import Training, measure, versions

import tessera

MODELS = {"gcn": "GCN", "sage": "SAGE", "gat": "GAT"}
EPOCHS, COMPARED = 53, "loss_after_5"


def load(path, features, classes, device):
    """Features, edges and labels of a graph in the .npz layout of docs/formats.md."""
    with numpy.load(path) as arrays:
        vertices = int(arrays["num_nodes"])
        index = torch.from_numpy(numpy.stack([arrays["col"], arrays["row"]]).astype(numpy.int64)).to(device)
    draw = torch.Generator().manual_seed(1)
    labels = torch.randint(0, classes, (vertices,), generator=draw)
    labels[:classes] = torch.arange(classes)
    centres = torch.randn(classes, features, generator=draw)
    x = (torch.randn(vertices, features, generator=draw) + centres[labels]) / features**0.5
    return x.to(device), index, labels.to(device)


def timed(kind, accelerated, data, seconds):
    """Milliseconds of an epoch and the loss; None for both where it takes more memory than the GPU has."""
    try:
        clock, losses = measure(Training(kind, accelerated, "eager", data, "fp32"), EPOCHS, seconds, time.perf_counter)
        return clock.result()["median_ms"], losses[COMPARED]
    except torch.OutOfMemoryError:
        return None, None
    finally:
        tessera.clear_cache()
        gc.collect()
        if data[0].is_cuda:
            torch.cuda.empty_cache()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--features", type=int, default=128)
    parser.add_argument("--classes", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=5, help="limit for each measurement")
    parser.add_argument("--json", required=True, type=pathlib.Path)
    parser.add_argument("files", nargs="+", type=pathlib.Path, metavar="FILE.npz")
    options = parser.parse_args()
    records = []
    for path in options.files:
        data = load(path, options.features, options.classes, options.device)
        for model, kind in MODELS.items():
            (theirs, expected), (ours, loss) = (timed(kind, accelerated, data, options.seconds) for accelerated in (False, True))
            difference = abs(loss - expected) / max(abs(expected), 1e-6) if theirs and ours else None
            records.append({"graph": path.stem, "model": model, "pyg_ms": theirs, "tessera_ms": ours,
                            "loss_difference": difference, "versions": versions()})
            print(records[-1], flush=True)
            options.json.write_text(json.dumps(records))


if __name__ == "__main__":
    main()
