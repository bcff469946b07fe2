#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimates what choosing cores for each window could gain over choosing them for the whole graph, under even costs.

Reads measured candidates (of tools/plan_loss.py, or records of `tessera bench` with several kernels for a case) and the
graphs they were measured on. The fastest
kernel on CUDA cores says what an edge costs there, the fastest on tensor cores what a tile of its windows costs, both
on this very graph, as if all edges, and all tiles, cost the same. If every window then went to the cores that are
cheaper for it, and nothing else cost anything, the graph would take the sum of the smaller costs: the gain is the time
of the faster kernel over that sum. It is no bound: edges of windows that share little cost more than others on CUDA
cores, two kinds of work take turns or run side by side, and either moves the gain up or down.
A time far above what its cost model says is left out as doubtful (--doubtful).

  tools/window_oracle.py docs/results/plan_loss.json --data-folder graphs -o docs/results/window_oracle.md

It needs NumPy.
"""
import argparse
import collections
import json
import math
import pathlib
import re
import sys

import numpy

# By how their names begin: (tensor cores, rows of a window, columns of a tile).
TENSOR = {"tall_64": (64, 64), "tiles_64": (64, 64), "tall_128": (128, 64), "short_16": (16, 16), "short_8": (8, 16),
          "tall": (64, 64)}
CUDA = ("rows", "vectors", "panels", "scalars", "fused", "heads")


def kind_of(kernel):
    """(rows, columns) of the tiles of a kernel on tensor cores, "cuda", or None for others."""
    name = kernel.rsplit("/", 1)[-1]
    for start, shape in TENSOR.items():
        if name.startswith(start):
            return shape
    return "cuda" if name.startswith(CUDA) else None


def windows_of(rows, cols, num_rows, height):
    """Edges and distinct columns of each window."""
    window = rows // height
    count = -(-num_rows // height)
    edges = numpy.bincount(window, minlength=count)
    places = numpy.unique(window.astype(numpy.int64) * (int(cols.max()) + 1) + cols)
    columns = numpy.bincount((places // (int(cols.max()) + 1)).astype(numpy.int64), minlength=count)
    return edges, columns


def without_doubtful(candidates, most):
    """Those that were timed, less those that took more than so many times what was predicted for them."""
    timed = [one for one in candidates if (one["measured_us"] or 0) > 0]
    return [one for one in timed if one["measured_us"] <= most * (one.get("predicted_us") or math.inf)]


def fastest(candidates, accepts):
    timed = [one for one in candidates if accepts(kind_of(one["kernel"]))]
    return min(timed, key=lambda one: one["measured_us"], default=None)


def gain_of(candidates, windows_by_height):
    """(gain, share of edges on tensor cores, CUDA cores' kernel, tensor cores' kernel), or None."""
    rows = fastest(candidates, lambda kind: kind == "cuda")
    tiles = fastest(candidates, lambda kind: isinstance(kind, tuple))
    if rows is None or tiles is None:
        return None
    height, width = kind_of(tiles["kernel"])
    edges, columns = windows_by_height(height)
    steps = -(-columns // width)
    on_cuda = rows["measured_us"] * edges / max(1, edges.sum())
    on_tensor = tiles["measured_us"] * steps / max(1, steps.sum())
    best = numpy.minimum(on_cuda, on_tensor).sum()
    share = edges[on_tensor < on_cuda].sum() / max(1, edges.sum())
    return min(rows["measured_us"], tiles["measured_us"]) / best, share, rows, tiles


def as_choices(records):
    """Records of `tessera bench` as those of plans: one for each case, with all kernels that were measured."""
    choices = {}
    for record in records:
        if "candidates" in record:
            choices[len(choices)] = record
            continue
        key = (record["op"], record["graph"], record["features"], record["precision"])
        choice = choices.setdefault(key, {"op": record["op"], "graph": record["graph"], "candidates": [],
                                          "details": f"features {record['features']}, {record['precision']}"})
        choice["candidates"].append({"kernel": record["kernel"], "measured_us": record.get("chain_us") or record["median_us"]})
    return list(choices.values())


def measured(records, folder, doubtful):
    by_graph = collections.defaultdict(list)
    for record in as_choices(records):
        by_graph[pathlib.Path(record["graph"]).stem].append(record)
    for name, members in sorted(by_graph.items()):
        path = pathlib.Path(folder) / name / f"{name}.npz"
        if not path.exists():
            print(f"{name}: no such graph in {folder}", file=sys.stderr)
            continue
        with numpy.load(path) as arrays:
            if "row" not in arrays or "col" not in arrays:
                print(f"{path}: no arrays row and col", file=sys.stderr)
                continue
            rows, cols = arrays["row"], arrays["col"]
        num_rows = int(max(rows.max(), cols.max())) + 1
        kept = {}

        def by_height(height):
            if height not in kept:
                kept[height] = windows_of(rows, cols, num_rows, height)
            return kept[height]

        for record in members:
            found = gain_of(without_doubtful(record["candidates"], doubtful), by_height)
            if found:
                yield record, *found


def short(details):
    return ", ".join(re.findall(r"\b(?:\d+|fp32|tf32|bf16|fp16)\b", details)[:3])


def page(rows, inputs, least_us, least_gain, doubtful):
    lines = ["# What choosing cores by windows could gain", "",
             f"Made by `tools/window_oracle.py` from {', '.join(f'`{name}` (`{commit}`)' for name, commit in inputs)}. An estimate under even "
             "costs: each window at what its edges cost the fastest kernel on CUDA cores or its tiles the fastest on tensor cores in the mean, "
             "whichever is less, and nothing else; the gain is over the faster of both kernels on the whole graph. It is no bound: windows whose "
             "edges or tiles cost other than the mean can gain more or less. Times of more than "
             f"{doubtful:g} times what the cost model says are left out, and cases that then lack one kind of cores. "
             "\"Share\" is the edges that would run on tensor cores.", ""]
    groups = collections.defaultdict(list)
    for record, gain, share, cuda, tensor in rows:
        precision = re.search(r"\b(fp32|tf32|bf16|fp16)\b", record["details"]).group(1)
        groups[record["op"], precision].append((gain, min(cuda["measured_us"], tensor["measured_us"])))
    lines += ["| op | precision | cases | mean | most | "
              f"cases from {least_us:.0f} us on | mean | most |", "|---|---|---:|---:|---:|---:|---:|---:|"]
    for (op, precision), members in sorted(groups.items()):
        def both(gains):
            return f"{math.exp(sum(map(math.log, gains)) / len(gains)):.3f} | {max(gains):.3f}" if gains else " | "
        long_ones = [gain for gain, us in members if us >= least_us]
        lines.append(f"| {op} | {precision} | {len(members)} | {both([gain for gain, _ in members])} | {len(long_ones)} | "
                     f"{both(long_ones)} |")
    lines += ["", f"Where it is {100 * least_gain - 100:.0f} % or more:", "", "| graph | op | width and precision | CUDA cores | us | tensor cores | us | share | estimated gain |",
              "|---|---|---|---|---:|---|---:|---:|---:|"]
    for record, gain, share, cuda, tensor in sorted(rows, key=lambda row: -row[1]):
        if gain < least_gain:
            continue
        lines.append(f"| {pathlib.Path(record['graph']).stem} | {record['op']} | {short(record['details'])} | {cuda['kernel'].rsplit('/', 1)[-1]} | "
                     f"{cuda['measured_us']:.1f} | {tensor['kernel'].rsplit('/', 1)[-1]} | {tensor['measured_us']:.1f} | "
                     f"{100 * share:.0f} % | {gain:.3f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("measured", nargs="+", help="files of tools/plan_loss.py or `tessera bench --json`")
    parser.add_argument("--data-folder", required=True, help="the graphs, as NAME/NAME.npz")
    parser.add_argument("--least-us", type=float, default=20, help="shorter runs are counted, but not by themselves")
    parser.add_argument("--least-gain", type=float, default=1.05, help="list cases from so much on")
    parser.add_argument("--doubtful", type=float, default=1.7, help="leave out times of more than so many times what was predicted")
    parser.add_argument("-o", "--out", help="writes the page there instead of printing it")
    arguments = parser.parse_args()
    read = [json.loads(pathlib.Path(name).read_text(encoding="utf-8")) for name in arguments.measured]
    rows = [row for one in read for row in measured(one["records"], arguments.data_folder, arguments.doubtful)]
    if not rows:
        sys.exit("window_oracle: no graph was timed on both kinds of cores")
    inputs = [(pathlib.Path(name).name, one["commit"]) for name, one in zip(arguments.measured, read)]
    text = page(rows, inputs, arguments.least_us, arguments.least_gain, arguments.doubtful)
    if arguments.out:
        pathlib.Path(arguments.out).write_text(text, encoding="utf-8")
    else:
        print(text)


if __name__ == "__main__":
    main()
