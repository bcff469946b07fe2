#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Peak memory of training on a CPU (Linux), plain PyG and accelerated, each in a process of its own.

    python bench/python/memory.py --graph arxiv --json memory.json

What three epochs in fp32 take at most, above what the process has once the data are there.
"""

import argparse
import json
import os
import subprocess
import sys

import torch

import training


def status(name):
    """A line of what Linux says of this process, in bytes."""
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name)) * 1024


def peak(graph, kind, accelerated):
    data = training.make_graph(graph, torch.device("cpu"))
    with open("/proc/self/clear_refs", "w") as file:
        file.write("5")  # the peak is counted from here on
    before = status("VmRSS")
    training.Training(kind, accelerated, "eager", data, "fp32").run(3)
    return {"data_bytes": before, "peak_bytes": status("VmHWM") - before}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--graph", choices=training.GRAPHS, default="arxiv")
    parser.add_argument("--models", nargs="+", default=["GCN", "SAGE", "GIN", "GAT", "GATv2"])
    parser.add_argument("--json")
    parser.add_argument("--one", choices=["pyg", "tessera"], help="measure the first model here")
    options = parser.parse_args()
    if options.one:
        print(json.dumps(peak(options.graph, options.models[0], options.one == "tessera")))
        return
    records = []
    for kind in options.models:
        record = {"graph": options.graph, "model": kind, "commit": training.commit(),
                  "threads": torch.get_num_threads(), "versions": training.versions()}
        for who in ("pyg", "tessera"):
            command = [sys.executable, os.path.abspath(__file__), "--graph", options.graph, "--models", kind,
                       "--one", who]
            record[who] = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        records.append(record)
        print(f"{options.graph} {kind:6} MiB above the data: " + ", ".join(
            f"{who} {record[who]['peak_bytes'] >> 20}" for who in ("pyg", "tessera")), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
