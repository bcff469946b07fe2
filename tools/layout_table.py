#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reorders many graphs, as they are and shuffled, and writes how dense their row windows become.

    tools/layout_table.py --data FOLDER --out FILE.md

FOLDER is searched for .npz files; symmetric orders need square graphs, others are left out. The same records go to
FILE.json. A figure is the computing intensity: edges over distinct columns, in windows of 16 rows. With --device
(cpu, cuda) spmm by the default plan is measured on each graph before and after --method layout, too.
"""
import argparse
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import time

METHODS = ("rcm", "loa", "communities", "bisection", "layout")


def run(options, *arguments):
    done = subprocess.run([options.tessera, "reorder", "--json", "-", *map(str, arguments)],
                          capture_output=True, text=True, check=False)
    if done.returncode != 0:
        return done.stderr.strip().splitlines()[-1]
    return json.loads(done.stdout)


def spmm_us(sources, options, folder):
    """Times of spmm by the default plan, by source and precision, all measured in one process."""
    out = pathlib.Path(folder) / "bench.json"
    data = [word for source in sources for word in ("--data", source)]
    subprocess.run([options.tessera, "bench", "spmm", *map(str, data), "--device", options.device, "--features",
                    str(options.features), "--precision", "fp32,bf16", "--json", str(out), "--force"],
                   capture_output=True, check=True)
    times = [{} for _ in sources]
    for number, record in enumerate(json.loads(out.read_text(encoding="utf-8"))["records"]):
        one_us = record.get("chain_us") or record["median_us"]
        times[number // 2][record["precision"]] = one_us
    return times


def records_of(path, options, folder):
    """One record for the graph as it is and one for its shuffled twin; nothing where it is rectangular."""
    shuffled = pathlib.Path(folder) / "shuffled.tsr"
    done = run(options, "--data", path, "--method", "random", "--seed", 1, "--graph-only", "-o", shuffled, "--force")
    if isinstance(done, str):
        print(f"{path.stem}: {done}", file=sys.stderr)
        return
    if done["edges"] < options.min_edges:
        return
    for is_shuffled, source in ((False, path), (True, shuffled)):
        record = {"graph": path.stem, "shuffled": is_shuffled, "vertices": done["vertices"], "edges": done["edges"]}
        ordered = pathlib.Path(folder) / "ordered.tsr"
        for method in METHODS:
            said = run(options, "--data", source, "--method", method, "--graph-only", "-o", ordered, "--force")
            record["before"] = said["before"]["window_reuse"]
            record[method] = said["after"]["window_reuse"]
            record[method + "_seconds"] = said["order_seconds"]
        record["chosen"] = said["layout"]
        if options.device:
            before, after = spmm_us([source, ordered], options, folder)
            record["spmm_us"] = {precision: [before[precision], after[precision]] for precision in before}
        yield record


def mean_gain(records, method):
    gains = [record[method] / record["before"] for record in records if record["before"] > 0]
    return math.exp(sum(map(math.log, gains)) / len(gains)) if gains else 1.0


def table(records):
    text = "| graph | edges | before | " + " | ".join(METHODS) + " | chosen | seconds |\n"
    text += "|---|---:|---:|" + "---:|" * len(METHODS) + "---|---:|\n"
    for record in records:
        figures = " | ".join(f"{record[method]:.2f}" for method in METHODS)
        text += (f"| {record['graph']} | {record['edges']:,} | {record['before']:.2f} | {figures} | "
                 f"{record['chosen']} | {record['layout_seconds']:.2g} |\n")
    means = " | ".join(f"{mean_gain(records, method):.2f} x" for method in METHODS)
    return text + f"| geometric mean of gains |  |  | {means} |  |  |\n"


def speed_table(records):
    """What a product gains by the order: time before over time after."""
    if not records or "spmm_us" not in records[0]:
        return ""
    text = "\n| graph | fp32 before, us | after | gain | bf16 before, us | after | gain |\n|---|" + "---:|" * 6 + "\n"
    gains = {"fp32": [], "bf16": []}
    for record in records:
        text += f"| {record['graph']} |"
        for precision, of_precision in gains.items():
            before, after = record["spmm_us"][precision]
            of_precision.append(before / after)
            text += f" {before:.1f} | {after:.1f} | {before / after:.2f} |"
        text += "\n"
    text += "| geometric mean, worst |"
    for of_precision in gains.values():
        mean = math.exp(sum(map(math.log, of_precision)) / len(of_precision))
        text += f" |  | {mean:.2f}, {min(of_precision):.2f} |"
    return text + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", required=True, metavar="FOLDER")
    parser.add_argument("--out", required=True, metavar="FILE.md")
    parser.add_argument("--tessera", default="build/bin/tessera", help="the program (default %(default)s)")
    parser.add_argument("--device", help="measures spmm there, too")
    parser.add_argument("--features", type=int, default=128, help="width of the products (default %(default)s)")
    parser.add_argument("--min-edges", type=int, default=0, help="leaves smaller graphs out")
    parser.add_argument("--seconds", type=float, default=math.inf, help="begins no graph after this time")
    parser.add_argument("--commit", default="unknown")
    options = parser.parse_args()
    records = []
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        for path in sorted(pathlib.Path(options.data).rglob("*.npz")):
            if time.monotonic() < deadline:
                records += records_of(path, options, folder)
    lost = [record["graph"] for record in records if record["layout"] < record["before"] * (1 - 1e-9)]
    out = pathlib.Path(options.out)
    text = ("# Orders that fill row windows\n\n"
            f"Made by `tools/layout_table.py` at `{options.commit}`: edges over distinct columns in windows of 16 rows, "
            "before and after reordering ([reorder.md](../reorder.md)). `layout` is the one of `loa`, `communities`, "
            "both and `rcm` whose windows of 64 rows are densest, or `bisection` from there; seconds are its own, with five orders in them. "
            f"{len(records) // 2} graphs; `layout` made windows of 16 rows sparser on {len(lost)} of them.\n")
    for title, is_shuffled in (("As they are", False), ("Shuffled", True)):
        some = [record for record in records if record["shuffled"] == is_shuffled]
        text += f"\n## {title}\n\n{table(some)}{speed_table(some)}"
    out.write_text(text, encoding="utf-8")
    lines = ",\n".join(json.dumps(record) for record in records)
    out.with_suffix(".json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
