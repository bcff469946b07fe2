#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Tall windows on mma.sync beside the same windows on wgmma, and beside public kernels on the same instruction.

  for kernel in spmm/cuda/tall_64 spmm/cuda/tall_64_mma sddmm/cuda/tiles_64 sddmm/cuda/tiles_64_mma sddmm/cuda/short_16_direct; do
    tessera bench ${kernel%%/*} --device cuda --quick --data COLLAB.npz --features 64,128 --precision fp32,bf16 \\
      --kernel $kernel --json ${kernel##*/}.json
  done
  tools/mma_report.py t*_64*.json short_16_direct.json --peers peers.csv -o docs/results/cuda_mma

writes cuda_mma.json (our records, and of the public ones those that count) and cuda_mma.md. Without --peers the others of an earlier
cuda_mma.json are kept. What stands below `## Notes` in an earlier page stays.
"""
import argparse
import csv
import json
import math
import pathlib

# The same windows on both instructions, and other kernels of ours on mma.sync, which a GPU without wgmma may take instead.
PAIRS = {"spmm": ("Sums", "spmm/cuda/tall_64_mma", "spmm/cuda/tall_64", ()),
         "sddmm": ("Dot products", "sddmm/cuda/tiles_64_mma", "sddmm/cuda/tiles_64", ("sddmm/cuda/short_16", "sddmm/cuda/short_16_direct"))}
PUBLIC = ("flashsparse", "dtc")
# The precision of theirs that stands beside one of ours.
BESIDE = {"bf16": "fp16", "fp32": "tf32"}
LIMIT = 1.6  # times the time of wgmma, in the geometric mean
NOTES = "## Notes"


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def public_times(path, graphs):
    """Of each case the fastest of FlashSparse and DTC."""
    best = {}
    with open(path, encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if row["peer"] not in PUBLIC or row["graph"] not in graphs or row["dtype"] not in BESIDE.values():
                continue
            key = row["op"], row["graph"], int(row["features"]), row["dtype"]
            us = float(row["kernel_us"])
            if key not in best or us < best[key]["us"]:
                best[key] = {"op": key[0], "graph": key[1], "features": key[2], "kernel": row["variant"], "precision": key[3], "us": us}
    return list(best.values())


def section(op, times, others):
    """Lines of one op: a summary and a table."""
    title, warps, wgmma, more = PAIRS[op]
    rows, ratios, speeds, fastest = [], [], [], []
    for (graph, features, precision), found in sorted(times.items()):
        if warps not in found or wgmma not in found:
            continue
        ratio = found[warps] / found[wgmma]
        ratios.append(ratio)
        other = others.get((op, graph, features, BESIDE[precision]))
        short = min((found[kernel] for kernel in more if kernel in found), default=math.inf)
        if other:
            speeds.append(other / found[warps])
            fastest.append(other / min(found[warps], short))
        cells = [graph, features, precision, f"{found[warps]:.1f}", f"{found[wgmma]:.1f}", f"{ratio:.2f}"]
        cells += [f"{short:.1f}" if short < math.inf else "–"] if more else []
        rows.append("| " + " | ".join(map(str, [*cells, f"{other:.0f}" if other else "–"])) + " |")
    if not rows:
        return []
    summary = (f"**{title}**: {geometric_mean(ratios):.2f} times the time of `wgmma` in the geometric mean (goal {LIMIT}), {max(ratios):.2f} times at worst")
    if speeds:
        summary += (f"; {geometric_mean(speeds):.2f} times as fast as the best of FlashSparse and DTC in the geometric mean of {len(speeds)} cases, "
                    f"{min(speeds):.2f} times at worst")
    if more and speeds:
        summary += (f". By the fastest of our kernels on `mma.sync` (`short_16` and `short_16_direct` among them) {geometric_mean(fastest):.2f} times, "
                    f"{min(fastest):.2f} at worst")
    heads = ["graph", "features", "precision", "`mma.sync`", "`wgmma`", "ratio", *(["short windows"] if more else []), "FlashSparse, DTC"]
    return [summary + ".", "", "| " + " | ".join(heads) + " |", "|---|---:|---|" + "---:|" * (len(heads) - 3), *rows, ""]


def page(content, notes):
    times = {op: {} for op in PAIRS}
    for record in content["records"]:
        case = times.get(record["op"], {}).setdefault((record["graph"], record["features"], record["precision"]), {})
        case[record["kernel"]] = record["median_us"]
    others = {(one["op"], one["graph"], one["features"], one["precision"]): one["us"] for one in content["others"]}
    lines = ["# Tall windows without wgmma, measured on one H200", "",
             f"Made by `tools/mma_report.py` at `{content['commit']}`, CUDA 13.0; medians between events in microseconds, results checked first. Records: "
             "`cuda_mma.json`. `spmm/cuda/tall_64_mma` and `sddmm/cuda/tiles_64_mma` run on `mma.sync`, as they would on any GPU from compute capability "
             "8.0 on; here they were forced, beside the same windows on `wgmma`. FlashSparse and DTC run on the same instruction; their figures (`others` in "
             "the record) are those of the best of their settings on the same kind of GPU, in fp16 beside bf16 and in tf32 beside fp32 (which is more exact: "
             "two planes of bf16 leave 2^-17).", ""]
    for op in PAIRS:
        lines += section(op, times[op], others)
    return "\n".join(lines).rstrip("\n") + "\n" + (f"\n{notes}" if notes else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("records", nargs="+", help="files of tessera bench --json")
    parser.add_argument("--peers", help="a table of other kernels' times: op, graph, features, peer, dtype, kernel_us, variant")
    parser.add_argument("-o", "--out", default="cuda_mma", help="writes OUT.json and OUT.md")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    read = [json.loads(pathlib.Path(name).read_text(encoding="utf-8")) for name in arguments.records]
    content = read[0] | {"records": [record for one in read for record in one["records"]]}
    if arguments.peers:
        content["others"] = public_times(arguments.peers, {record["graph"] for record in content["records"]})
    elif "others" not in content:
        content["others"] = json.loads(out.with_suffix(".json").read_text(encoding="utf-8"))["others"]
    earlier = out.with_suffix(".md").read_text(encoding="utf-8") if out.with_suffix(".md").exists() else ""
    notes = earlier[earlier.index(NOTES):] if NOTES in earlier else ""
    out.with_suffix(".json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    out.with_suffix(".md").write_text(page(content, notes), encoding="utf-8")


if __name__ == "__main__":
    main()
