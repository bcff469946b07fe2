#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what an op would take if every window ran on the cores that suit it, before a kernel for that is written.

A graph is cut by windows into two: the edges of windows that are cheaper on tensor cores, and those of the others. Each
half is run by the fastest kernel of its kind; the sum of both times, in chains without launches, is what a hybrid plan
of the op would take that loses nothing by having both. Beside it stand the fastest kernels of each kind on the whole
graph. Which windows go where is estimated as in tools/window_oracle.py, once at even costs and once for each factor of
--factors on the costs of tensor cores, since windows that share little cost more than the mean on CUDA cores.

  tools/window_split.py --program build/cuda/bin/tessera --op sddmm --data-folder graphs cnr-2000 ego-twitter -o split

writes split.json and split.md. It needs NumPy.
"""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy

import window_oracle

# The kernels of each kind, the rows of a window and the columns of a tile.
KINDS = {
    "spmm": ("spmm/cuda/rows*", "spmm/cuda/tall_64", 64, 64),
    "sddmm": ("sddmm/cuda/vectors*", "sddmm/cuda/short_16_direct", 16, 16),
    "attention_gat": ("attention/cuda/rows", "attention/cuda/tall", 64, 64),
    "attention_dot": ("attention/cuda/rows", "attention/cuda/short", 16, 16),
}


def edges_of(path):
    """Targets, sources and the number of vertices, ordered by target and source."""
    with numpy.load(path) as arrays:
        rows, cols = arrays["row"].astype(numpy.int64), arrays["col"].astype(numpy.int64)
    order = numpy.lexsort((cols, rows))
    return rows[order], cols[order], int(max(rows.max(), cols.max())) + 1


def write_graph(path, rows, cols, vertices):
    indptr = numpy.concatenate(([0], numpy.cumsum(numpy.bincount(rows, minlength=vertices))))
    numpy.savez(path, format=b"csr", shape=(vertices, vertices), data=numpy.ones(len(rows), numpy.float32),
                indptr=indptr.astype(numpy.int64), indices=cols.astype(numpy.int32))


def times(arguments, graph, kernel):
    """Microseconds by (features, precision) of the fastest kernel of a group."""
    command = [arguments.program, "bench", arguments.op, "--device", "cuda", "--quick", "--tune", "measured", "--kernel", kernel,
               "--features", arguments.features, "--precision", arguments.precisions, "--data", str(graph), "--json", "-"]
    if arguments.heads:
        command += ["--heads", str(arguments.heads)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=arguments.seconds, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message")
    return {(one["features"], one["precision"]): one.get("chain_us") or one["median_us"]
            for one in json.loads(done.stdout)["records"]}


def measure(arguments, name, folder):
    """One record for each width and precision: both kinds alone, and the two halves for each factor."""
    on_cuda, on_tensor, height, width = KINDS[arguments.op]
    rows, cols, vertices = edges_of(pathlib.Path(arguments.data_folder) / name / f"{name}.npz")
    edges, columns = window_oracle.windows_of(rows, cols, vertices, height)
    tiles = -(-columns // width)
    whole, dense, sparse = (pathlib.Path(folder) / f"{part}.npz" for part in ("whole", "dense", "sparse"))
    write_graph(whole, rows, cols, vertices)
    alone = times(arguments, whole, on_cuda), times(arguments, whole, on_tensor)
    records = {}
    for key in alone[0].keys() & alone[1].keys():
        records[key] = {"graph": name, "op": arguments.op, "features": key[0], "precision": key[1],
                        "cuda_us": alone[0][key], "tensor_us": alone[1][key], "halves": []}
    for factor in arguments.factors:
        # Even costs of the first case decide for all, so that two graphs serve every width.
        first = next(iter(records.values()))
        tile_us = factor * first["tensor_us"] / max(1, tiles.sum())
        edge_us = first["cuda_us"] / max(1, edges.sum())
        takes = (tile_us * tiles < edge_us * edges)[rows // height]
        if not takes.any() or takes.all():
            continue
        write_graph(dense, rows[takes], cols[takes], vertices)
        write_graph(sparse, rows[~takes], cols[~takes], vertices)
        of_dense, of_sparse = times(arguments, dense, on_tensor), times(arguments, sparse, on_cuda)
        for key, record in records.items():
            if key in of_dense and key in of_sparse:
                record["halves"].append({"factor": factor, "share": float(takes.mean()), "dense_us": of_dense[key],
                                         "sparse_us": of_sparse[key]})
    return list(records.values())


def page(records, commit):
    lines = ["# What both kinds of cores take of their windows", "",
             f"Made by `tools/window_split.py` on commit `{commit}`. Microseconds in chains: the fastest kernel of each kind on the whole graph, "
             "and on the windows that suit it; \"both\" is the sum of the halves, for the better of the splits that were tried, and the gain "
             "that of both over the faster kind alone. \"Share\" is the edges on tensor cores.", "",
             "| op | graph | features | precision | CUDA cores | tensor cores | share | tensor half | CUDA half | both | gain |",
             "|---|---|---:|---|---:|---:|---:|---:|---:|---:|---:|"]
    for one in records:
        start = f"| {one['op']} | {one['graph']} | {one['features']} | {one['precision']} | {one['cuda_us']:.1f} | {one['tensor_us']:.1f} | "
        if not one["halves"]:
            lines.append(start + "all alike | | | | |")
            continue
        best = min(one["halves"], key=lambda half: half["dense_us"] + half["sparse_us"])
        both = best["dense_us"] + best["sparse_us"]
        lines.append(start + f"{100 * best['share']:.0f} % | {best['dense_us']:.1f} | {best['sparse_us']:.1f} | {both:.1f} | "
                     f"{min(one['cuda_us'], one['tensor_us']) / both:.2f} |")
    return "\n".join(lines) + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("graphs", nargs="+", help="names of graphs in the data folder")
    parser.add_argument("--program", default="build/cuda/bin/tessera")
    parser.add_argument("--op", default="sddmm", choices=sorted(KINDS))
    parser.add_argument("--data-folder", required=True, help="the graphs, as NAME/NAME.npz with arrays row and col")
    parser.add_argument("--features", default="64,128")
    parser.add_argument("--heads", type=int, default=0, help="of attention")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--factors", type=float, nargs="+", default=[1, 0.6], help="on the costs of tensor cores")
    parser.add_argument("--seconds", type=float, default=20, help="that one run of the program may take")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("-o", "--out", default="window_split", help="writes OUT.json and OUT.md")
    arguments = parser.parse_args()
    records = []
    with tempfile.TemporaryDirectory() as folder:
        for name in arguments.graphs:
            try:
                records += measure(arguments, name, folder)
            except (OSError, KeyError, RuntimeError, subprocess.TimeoutExpired) as problem:
                print(f"{name}: {problem}", file=sys.stderr)
    if not records:
        sys.exit("window_split: nothing was measured")
    out = pathlib.Path(arguments.out)
    out.with_suffix(".json").write_text(json.dumps({"commit": arguments.commit, "records": records}, indent=0), encoding="utf-8")
    out.with_suffix(".md").write_text(page(records, arguments.commit), encoding="utf-8")
    print(out.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
