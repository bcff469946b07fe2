# SPDX-License-Identifier: Apache-2.0
"""What the baseline scripts share: graphs, timing as core/measure does it, and records.

The records go into a file that `tessera bench compare` sets beside one of `tessera bench --json`.
"""
import argparse
import datetime
import json
import os
import pathlib
import platform
import statistics
import struct
import time

import numpy
import torch


def arguments(description):
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", action="append", required=True, metavar="FILE.npz",
                        help="a graph; may be given several times")
    parser.add_argument("--features", default="16,32,64,128,256", metavar="LIST")
    parser.add_argument("--threads", default="0", metavar="LIST", help="0 is all cores")
    parser.add_argument("--min-seconds", type=float, default=0.5)
    parser.add_argument("--max-seconds", type=float, default=20)
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--json", required=True, metavar="FILE")
    options = parser.parse_args()
    options.features = [int(width) for width in options.features.split(",")]
    options.threads = [int(count) or os.cpu_count() for count in options.threads.split(",")]
    return options


def sections(path):
    """The arrays of a container (.tsr, docs/formats.md), mapped; checksums are not looked at."""
    memory = numpy.memmap(path, mode="r")
    arrays, entry = {}, 64
    for _ in range(struct.unpack_from("<I", memory, 32)[0]):
        name, kind, dimensions, _, offset, size = struct.unpack_from("<HBBIQQ", memory, entry)
        shape = struct.unpack_from(f"<{dimensions}Q", memory, entry + 24)
        text = entry + 24 + 8 * dimensions
        kind, name = bytes(memory[text:text + kind]).decode(), bytes(memory[text + kind:text + kind + name]).decode()
        arrays[name] = memory[offset:offset + size].view(kind).reshape(shape)
        entry = (text + len(kind) + len(name) + 7) // 8 * 8
    return arrays


def load(path):
    """(name, offsets, columns, number of vertices) of a graph in a container or the .npz layout of docs/formats.md."""
    if pathlib.Path(path).suffix == ".tsr":
        arrays = sections(path)
        offsets = arrays["row_offsets"]
        return pathlib.Path(path).stem, offsets, arrays["col_indices"].astype(numpy.int64), len(offsets) - 1
    with numpy.load(path) as arrays:
        row, column = arrays["row"], arrays["col"]
        vertices = int(arrays["num_nodes"])
    order = numpy.lexsort((column, row))
    offsets = numpy.zeros(vertices + 1, dtype=numpy.int64)
    numpy.cumsum(numpy.bincount(row, minlength=vertices), out=offsets[1:])
    return pathlib.Path(path).stem, offsets, column[order].astype(numpy.int64), vertices


def csr(offsets, columns, vertices, index_type):
    """The pattern as a CSR tensor of ones: torch has no sparse matrix without values."""
    return torch.sparse_csr_tensor(torch.from_numpy(offsets).to(index_type),
                                   torch.from_numpy(columns).to(index_type),
                                   torch.ones(len(columns)), size=(vertices, vertices))


def measure(function, options):
    """Microseconds of single runs: the same rule as tessera's own."""
    for _ in range(2):
        function()
    samples = []
    start = time.perf_counter()
    while True:
        before = time.perf_counter()
        function()
        now = time.perf_counter()
        samples.append((now - before) * 1e6)
        if len(samples) >= options.repeats and now - start >= options.min_seconds:
            return samples
        if len(samples) >= 3 and now - start >= options.max_seconds:
            return samples


def best_setting(settings, options):
    """Times each of {name: function} and returns (name, samples, what was tried)."""
    timed = {name: measure(function, options) for name, function in settings.items()}
    name = min(timed, key=lambda each: statistics.median(timed[each]))
    tried = ", ".join(f"{each} {statistics.median(samples):.0f} us"
                      for each, samples in timed.items())
    return name, timed[name], f"best of: {tried}"


def record(op, graph, features, threads, kernel, samples, plan):
    return {"op": op, "graph": graph, "features": features, "precision": "fp32", "device": "cpu",
            "threads": threads, "kernel": kernel, "median_us": statistics.median(samples),
            "min_us": min(samples), "worst_us": max(samples), "floor_us": None, "max_error": None,
            "plan": plan, "repeats": len(samples)}


def cases(options):
    """Yields (name, offsets, columns, vertices, features, threads) over all that was asked for."""
    for path in options.data:
        graph = load(path)
        for threads in options.threads:
            torch.set_num_threads(threads)
            for features in options.features:
                yield (*graph, features, threads)


def write(options, records):
    header = {"verb": "bench", "version": f"torch {torch.__version__}",
              "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ"),
              "machine": {"cpu": platform.processor() or platform.machine(),
                          "architecture": platform.machine(), "cores": os.cpu_count()}}
    # Who stops the script finds the report before or after this record, never half of one.
    beside = pathlib.Path(f"{options.json}.part")
    beside.write_text(json.dumps({**header, "records": records}, indent=2) + "\n")
    os.replace(beside, options.json)
