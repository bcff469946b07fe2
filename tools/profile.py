#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Profiles the kernels that plans choose with ncu, and writes docs/results/cuda_profile.md.

    tools/profile.py --program build/cuda/bin/tessera --data FOLDER

FOLDER has NAME/NAME.npz; cases whose graph is not there are left out. Every case is one launch with a warm L2
at the clocks the GPU chooses. The shares are of what each unit could do; whatever is nearest 100 % limits.
"""
import argparse
import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
# op, graph, features, precision. The plan chooses the kernel.
CASES = [
    ("spmm", "twin:molecules", 128, "bf16"),
    ("spmm", "COLLAB", 128, "bf16"),
    ("spmm", "COLLAB", 128, "fp32"),
    ("spmm", "ego-twitter", 128, "bf16"),
    ("spmm", "ego-twitter", 128, "fp32"),
    ("spmm", "twin:rmat17", 128, "fp32"),
    ("spmm", "soc-Epinions1", 16, "fp32"),
    ("spmm", "amazon-computers", 128, "fp32"),
    ("spmm", "cora", 128, "fp32"),
    ("spmm_max", "ego-twitter", 64, "fp32"),
    ("sddmm", "COLLAB", 128, "fp32"),
    ("sddmm", "COLLAB", 128, "bf16"),
    ("sddmm", "twin:amazon", 128, "fp32"),
    ("sddmm", "pubmed", 128, "fp32"),
    ("edge_softmax", "ego-twitter", 8, "fp32"),
    ("attention_gat", "ego-twitter", 64, "fp32"),
]
METRICS = {
    "us": "gpu__time_duration.sum",
    "memory": "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    "L2": "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    "L1": "l1tex__throughput.avg.pct_of_peak_sustained_elapsed",
    "instructions": "sm__inst_issued.avg.pct_of_peak_sustained_elapsed",
    "tensor cores": "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed",
    "L1 hits": "l1tex__t_sector_hit_rate.pct",
    "warps": "sm__warps_active.avg.pct_of_peak_sustained_active",
    "registers": "launch__registers_per_thread",
}
STALLS = {
    "memory": "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio",
    "barriers": "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio",
    "shared memory": "smsp__average_warps_issue_stalled_short_scoreboard_per_issue_active.ratio",
    "full queues of loads": "smsp__average_warps_issue_stalled_lg_throttle_per_issue_active.ratio",
    "earlier instructions": "smsp__average_warps_issue_stalled_wait_per_issue_active.ratio",
    "tensor cores": "smsp__average_warps_issue_stalled_gmma_per_issue_active.ratio",
}
# Kernels of ours that compute: not those that fill, copy or sum up.
OURS = "regex:reduce_rows|sum_tall_windows|sum_short_windows|edge_dots|tall_dots|short_dots|softmax_short_rows|attention_forward"


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "cuda" / "bin" / "tessera"))
    parser.add_argument("--data", default=os.environ.get("TESSERA_DATA", ""), metavar="FOLDER")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    return parser.parse_args()


def source_of(graph, folder):
    if ":" in graph:
        return graph
    path = pathlib.Path(folder) / graph / f"{graph}.npz"
    return str(path) if path.exists() else None


def chosen(program, command, report):
    """The kernel that the plan takes, measured as always."""
    subprocess.run([program, *command, "--tune", "measured", "--quiet", "--json", str(report)], check=True,
                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    return json.loads(report.read_text())["records"][0]["kernel"]


def profile(options, case, folder):
    op, graph, features, precision = case
    source = source_of(graph, options.data)
    if source is None:
        return None
    report = pathlib.Path(folder) / "report.json"
    command = ["bench", op, "--device", "cuda", "--data", source, "--features", str(features),
               "--precision", precision]
    kernel = chosen(options.program, command, report)
    metrics = ",".join([*METRICS.values(), *STALLS.values()])
    run = subprocess.run(["ncu", "--clock-control", "none", "--cache-control", "none", "--csv", "--page", "raw",
                          "--metrics", metrics, "-k", OURS, "--launch-skip", "4", "--launch-count", "1",
                          options.program, *command, "--kernel", kernel, "--quiet", "--json", str(report)],
                         capture_output=True, text=True)
    lines = [line for line in run.stdout.splitlines() if line.startswith('"')]
    if len(lines) < 3:
        print(f"left out: {case}, {kernel}: {run.stdout[-300:]}{run.stderr[-300:]}", file=sys.stderr)
        return None
    names, units, values = list(csv.reader(lines))[:3]
    found = dict(zip(names, values))
    number = {name: float(found.get(metric, "nan").replace(",", "") or "nan")
              for name, metric in {**METRICS, **{f"stall {k}": v for k, v in STALLS.items()}}.items()}
    if dict(zip(names, units)).get(METRICS["us"]) in ("nsecond", "ns"):
        number["us"] /= 1e3
    return {"op": op, "graph": graph, "features": features, "precision": precision, "kernel": kernel, **number}


def stalled_by(result):
    waits = {name: result[f"stall {name}"] for name in STALLS if result[f"stall {name}"] == result[f"stall {name}"]}
    name = max(waits, key=waits.get) if waits else ""
    return f"{name}, {waits[name]:.1f} cycles" if waits else ""


def page(results, options):
    shares = ["memory", "L2", "L1", "instructions", "tensor cores", "L1 hits", "warps"]
    lines = ["# What limits the kernels", "",
             f"`ncu` on one H200, commit {options.commit or 'unknown'}, made by `tools/profile.py`: one launch of the "
             "kernel that a measured plan takes, warm L2. Shares in percent of what the unit can do; *instructions* "
             "are issue slots used, *warps* those resident of 64. The last column says what a warp waits for most "
             "between two instructions. [kernels.md](../kernels.md) says how the kernels work.", "",
             "| op | graph | features | kernel | us | " + " | ".join(shares) + " | registers | waits for |",
             "|---|---|---:|---|---:|" + "---:|" * (len(shares) + 1) + "---|"]
    for r in results:
        lines.append(f"| {r['op']} | {r['graph'].removeprefix('twin:')} | {r['features']} {r['precision']} | "
                     f"{r['kernel'].rsplit('/', 1)[-1]} | {r['us']:.1f} | "
                     + " | ".join(f"{r[s]:.0f}" for s in shares) + f" | {r['registers']:.0f} | {stalled_by(r)} |")
    return "\n".join(lines) + "\n"


def write(results, options):
    """After every case, so that nothing is lost where time runs out."""
    output = pathlib.Path(options.output)
    (output / "cuda_profile.json").write_text(json.dumps({"commit": options.commit, "cases": results}, indent=1) + "\n")
    (output / "cuda_profile.md").write_text(page(results, options))


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        results = []
        for case in CASES:
            if result := profile(options, case, folder):
                results.append(result)
                write(results, options)


if __name__ == "__main__":
    main()
