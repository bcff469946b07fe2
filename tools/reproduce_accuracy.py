#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every model on the citation graphs and writes the table of accuracies.

    tools/reproduce_accuracy.py --runs 50 --jobs 16

Reads the graphs from the folder that TESSERA_DATA names. Each job is one process of one thread that does a
share of the runs of one model and data set; seeds decide the results, so the table does not depend on the
number of jobs. Writes docs/results/accuracy.json (every run) and docs/results/accuracy.md.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import platform
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
DATASETS = ["cora", "citeseer", "pubmed"]
# What the papers report; for GraphSAGE (mean, 64 hidden) what PyG reaches on the same files.
PUBLISHED = {
    "gcn": [81.5, 70.3, 79.0],
    "gat": [83.0, 72.5, 79.0],
    "sgc": [81.0, 71.9, 78.9],
    "agnn": [83.1, 71.7, 79.9],
    "cheb": [81.2, 69.6, 73.8],
    "sage": [80.6, 70.5, 77.6],
    "gatv2": [None, None, None],
}
ALLOWED_BELOW = 1.0
RUNS_A_PIECE = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--models", default=",".join(PUBLISHED))
    parser.add_argument("--datasets", default=",".join(DATASETS))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    options = parser.parse_args()
    options.models = options.models.split(",")
    options.datasets = options.datasets.split(",")
    options.data = pathlib.Path(os.environ.get("TESSERA_DATA", ""))
    if not options.data.is_dir() or not os.environ.get("TESSERA_DATA"):
        parser.error("TESSERA_DATA must name the folder of the graphs")
    return options


def train(options, model, dataset, seed, runs):
    """One process: runs `seed` to `seed + runs - 1`."""
    with tempfile.NamedTemporaryFile(suffix=".json") as report:
        command = [options.program, "train", "--data",
                   str(options.data / dataset / f"{dataset}.npz"), "--model", model, "--runs",
                   str(runs), "--seed", str(seed), "--threads", "1", "--quiet", "--json",
                   report.name]
        subprocess.run(command, check=True)
        return json.load(open(report.name))


def all_pieces(options):
    """The longest trainings first, so that no core is left with one alone."""
    for dataset in sorted(options.datasets, key=DATASETS.index, reverse=True):
        for model in sorted(options.models, key=lambda name: "gat" not in name):
            for first in range(0, options.runs, RUNS_A_PIECE):
                yield (model, dataset, options.seed + first,
                       min(RUNS_A_PIECE, options.runs - first))


def collect(options):
    """{(model, dataset): reports}, in the order of their seeds."""
    pieces = list(all_pieces(options))
    reports = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(train, options, *piece): piece for piece in pieces}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            model, dataset, seed, _ = futures[future]
            reports.setdefault((model, dataset), {})[seed] = future.result()
            print(f"\r{done} of {len(pieces)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return {key: [found[seed] for seed in sorted(found)] for key, found in reports.items()}


def summary(reports):
    runs = [run for report in reports for run in report["runs"]]
    tests = [100 * run["test"] for run in runs]
    return {
        "mean": statistics.mean(tests),
        "std": statistics.stdev(tests) if len(tests) > 1 else 0.0,
        "runs": len(runs),
        "epoch_ms": statistics.median(report["epoch_ms"] for report in reports),
        "config": reports[0]["config"],
        "tests": [{"seed": run["seed"], "test": run["test"], "best_epoch": run["best_epoch"]}
                  for run in runs],
    }


def cell(result, published):
    text = f"{result['mean']:.1f} ± {result['std']:.1f}"
    if published is None:
        return text
    below = result["mean"] < published - ALLOWED_BELOW
    return f"{text} ({published:.1f}{', below' if below else ''})"


def table(results, options):
    lines = ["# Accuracy on the citation graphs", "",
             "Public splits, row-normalised features, the hyperparameters of each paper; test accuracy at "
             f"the best validation epoch in percent, mean ± standard deviation of {options.runs} runs. In "
             "brackets what the paper reports (GraphSAGE: PyG on the same files); *below* marks a mean "
             f"more than {ALLOWED_BELOW} under it.", "",
             "| model | " + " | ".join(name.capitalize() for name in options.datasets) + " |",
             "|---|" + "---:|" * len(options.datasets)]
    for model in options.models:
        cells = [cell(results[model, dataset], PUBLISHED[model][DATASETS.index(dataset)])
                 for dataset in options.datasets]
        lines.append(f"| {model} | " + " | ".join(cells) + " |")
    lines += ["", "Made by `tools/reproduce_accuracy.py "
              f"--runs {options.runs} --seed {options.seed}`. Every run is in accuracy.json.", ""]
    return "\n".join(lines)


def main():
    options = arguments()
    results = {key: summary(reports) for key, reports in collect(options).items()}
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    records = [{"model": model, "dataset": dataset, **results[model, dataset]}
               for model in options.models for dataset in options.datasets]
    document = {"machine": platform.machine(), "runs": options.runs, "seed": options.seed,
                "results": records}
    (folder / "accuracy.json").write_text(json.dumps(document, indent=1) + "\n")
    text = table(results, options)
    (folder / "accuracy.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
