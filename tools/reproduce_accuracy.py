#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every model on the citation graphs and writes the table of accuracies.

    tools/reproduce_accuracy.py --runs 50 --jobs 16

Reads the graphs from the folder that TESSERA_DATA names. Each job is one process of one thread that does a
share of the runs of one model and data set; seeds decide the results, so the table does not depend on the
number of jobs. GIN classifies the graphs of unions in ten-fold cross-validation, its folds side by side.
With --pieces FOLDER every finished job is kept there, and a run that was broken off goes on from them.
With --pyg PYTHON, a Python that has PyG, bench/baselines/accuracy_torch.py trains PyG's layers in the same way.
Writes docs/results/accuracy.json (every run) and docs/results/accuracy.md.
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
UNIONS = ["PROTEINS_full", "ENZYMES", "DD"]
FOLDS = 10
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
ALLOWED_BELOW_PYG = 0.5
RUNS_A_PIECE = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu", help="where tessera trains")
    parser.add_argument("--runs-a-piece", type=int, default=RUNS_A_PIECE, help="runs of one process")
    parser.add_argument("--models", default=",".join(PUBLISHED), metavar="LIST")
    parser.add_argument("--datasets", default=",".join(DATASETS), metavar="LIST")
    parser.add_argument("--unions", default=",".join(UNIONS), metavar="LIST", help="for gin; empty: none")
    parser.add_argument("--pyg", metavar="PYTHON", help="also train PyG's layers with this Python")
    parser.add_argument("--pyg-runs", type=int, default=10)
    parser.add_argument("--pyg-cases", metavar="LIST", help="only these, such as gat/citeseer,gin/DD")
    parser.add_argument("--pyg-device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--pieces", metavar="FOLDER", help="keep finished jobs here, and use those that are here")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    options = parser.parse_args()
    options.models = options.models.split(",")
    options.datasets = options.datasets.split(",")
    options.unions = [name for name in options.unions.split(",") if name]
    options.pyg_cases = options.pyg_cases.split(",") if options.pyg_cases else None
    options.data = pathlib.Path(os.environ.get("TESSERA_DATA", ""))
    options.pieces = pathlib.Path(options.pieces) if options.pieces else None
    if options.pieces:
        options.pieces.mkdir(parents=True, exist_ok=True)
    if not options.data.is_dir() or not os.environ.get("TESSERA_DATA"):
        parser.error("TESSERA_DATA must name the folder of the graphs")
    return options


def file_of(options, dataset):
    return str(options.data / dataset / f"{dataset}.npz")


def finished_piece(options, name):
    """Where the report of a job is kept, or would be: one from another device is as good."""
    if options.pieces is None:
        return None
    found = [path for path in (options.pieces / f"{name}{where}.json" for where in ("", "_cpu", "_cuda"))
             if path.exists()]
    return found[0] if found else options.pieces / f"{name}_{options.device.replace(':', '_')}.json"


def reported(options, name, command):
    """The report that a command writes to the file named after --json; kept under `name`."""
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        kept = finished_piece(options, name)
        if kept is None or not kept.exists():
            subprocess.run([*command, "--json", str(report)], check=True, stdout=subprocess.DEVNULL)
            if kept is None:
                return json.loads(report.read_text())
            part = kept.with_suffix(".part")
            part.write_text(report.read_text())
            part.replace(kept)
        return json.loads(kept.read_text())


def train(options, model, dataset, seed, runs):
    """One process: runs `seed` to `seed + runs - 1`."""
    return reported(options, f"{model}_{dataset}_{seed}_{runs}",
                    [options.program, "train", "--data", file_of(options, dataset), "--model", model,
                     "--runs", str(runs), "--seed", str(seed), "--device", options.device, "--threads", "1",
                     "--quiet"])


def train_folds(options, dataset):
    """All folds of a union, as many at a time as there are jobs."""
    return reported(options, f"gin_{dataset}_{options.seed}_{FOLDS}",
                    [options.program, "train", "--data", file_of(options, dataset), "--model", "gin",
                     "--folds", str(FOLDS), "--seed", str(options.seed), "--device", options.device,
                     "--parallel-runs", "--threads", str(min(FOLDS, options.jobs)), "--quiet"])


def train_pyg(options, model, dataset):
    script = ROOT / "bench" / "baselines" / "accuracy_torch.py"
    return reported(options, f"pyg_{model}_{dataset}_{options.pyg_runs}",
                    [options.pyg, "-W", "ignore", str(script), "--data", file_of(options, dataset),
                     "--model", model, "--runs", str(options.pyg_runs), "--folds", str(FOLDS),
                     "--device", options.pyg_device])


def wants_pyg(options, model, dataset):
    if not options.pyg or model == "gatv2":
        return False
    return options.pyg_cases is None or f"{model}/{dataset}" in options.pyg_cases


def all_pieces(options):
    """(key, function, arguments), the longest first, so that no core is left with one alone."""
    for dataset in options.unions:
        if wants_pyg(options, "gin", dataset):
            yield ("pyg", "gin", dataset), train_pyg, ("gin", dataset)
    for dataset in sorted(options.datasets, key=DATASETS.index, reverse=True):
        for model in sorted(options.models, key=lambda name: "gat" not in name):
            if wants_pyg(options, model, dataset):
                yield ("pyg", model, dataset), train_pyg, (model, dataset)
            for first in range(0, options.runs, options.runs_a_piece):
                runs = min(options.runs_a_piece, options.runs - first)
                yield ((model, dataset), train, (model, dataset, options.seed + first, runs))


def collect(options):
    """{key: reports}, in the order of their seeds."""
    pieces = list(all_pieces(options))
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(function, options, *arguments): number
                   for number, (_, function, arguments) in enumerate(pieces)}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            found[futures[future]] = future.result()
            print(f"\r{done} of {len(pieces)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    reports = {("gin", dataset): [train_folds(options, dataset)] for dataset in options.unions}
    for number, (key, _, _) in enumerate(pieces):
        reports.setdefault(key, []).append(found[number])
    return reports


def summary(reports):
    """Of tessera's reports, or of the one that PyG's script wrote."""
    if reports[0].get("framework") == "pyg":
        test = reports[0]["test"]
        return {"mean": 100 * test["mean"], "std": 100 * (test["std"] or 0), "runs": test["runs"],
                "tests": reports[0]["tests"]}
    runs = [run for report in reports for run in report["runs"]]
    tests = [100 * run["test"] for run in runs]
    return {
        "mean": statistics.mean(tests),
        "std": statistics.stdev(tests) if len(tests) > 1 else 0.0,
        "runs": len(runs),
        "epoch_ms": statistics.median(report["epoch_ms"] for report in reports),
        "devices": sorted({report["device"] for report in reports}),
        "config": reports[0]["config"],
        "tests": [{"seed": run["seed"], "test": run["test"], "best_epoch": run["best_epoch"]}
                  for run in runs],
    }


def figures(result):
    return f"{result['mean']:.1f} ± {result['std']:.1f}"


def is_below(result, published, pyg):
    if published is None or result["mean"] >= published - ALLOWED_BELOW:
        return False
    return pyg is None or result["mean"] < pyg["mean"] - ALLOWED_BELOW_PYG


def cell(result, published, pyg):
    beside = [f"{published:.1f}"] if published is not None else []
    if pyg is not None:
        beside.append(f"PyG {figures(pyg)}")
    if is_below(result, published, pyg):
        beside.append("below")
    return figures(result) + (f" ({', '.join(beside)})" if beside else "")


def rows(results, models, datasets, published):
    yield "| model | " + " | ".join(name[:1].upper() + name[1:] for name in datasets) + " |"
    yield "|---|" + "---:|" * len(datasets)
    for model in models:
        cells = [cell(results[model, dataset], published(model, dataset),
                      results.get(("pyg", model, dataset))) for dataset in datasets]
        yield f"| {model} | " + " | ".join(cells) + " |"


def table(results, options):
    lines = ["# Accuracy", "",
             "Test accuracy in percent at the best validation epoch, mean ± standard deviation, with the "
             "hyperparameters of each paper ([training.md](../training.md)).", "",
             "## Citation graphs", "",
             f"Public splits, row-normalised features, {options.runs} runs. In brackets what the paper "
             "reports (GraphSAGE: PyG on the same files)"
             + (f", and PyG's layers in the same harness, {options.pyg_runs} runs" if options.pyg else "")
             + f". *Below* marks a mean more than {ALLOWED_BELOW} under the paper's and more than "
             f"{ALLOWED_BELOW_PYG} under PyG's.", "",
             *rows(results, options.models, options.datasets,
                   lambda model, dataset: PUBLISHED[model][DATASETS.index(dataset)]), ""]
    if options.unions:
        lines += ["## Unions of graphs", "",
                  f"{FOLDS}-fold cross-validation: one fold for the test, the one before it for the "
                  "validation, vertex labels as features.", "",
                  *rows(results, ["gin"], options.unions, lambda *_: None), ""]
    on_gpu = sorted(f"{key[0]} on {key[1]}" for key, result in results.items()
                    if any(device.startswith("cuda") for device in result.get("devices", [])))
    if on_gpu and options.device == "cpu":
        lines += [f"Trained on a GPU: {', '.join(on_gpu)}; all else on CPUs.", ""]
    lines += [f"Made by `tools/reproduce_accuracy.py --runs {options.runs} --seed {options.seed}"
              f"{'' if options.device == 'cpu' else ' --device ' + options.device}`. Every run "
              "is in accuracy.json.", ""]
    return "\n".join(lines)


def record_of(key, result):
    framework = "pyg" if key[0] == "pyg" else "tessera"
    return {"framework": framework, "model": key[-2], "dataset": key[-1], **result}


def main():
    options = arguments()
    results = {key: summary(reports) for key, reports in collect(options).items()}
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    document = {"machine": platform.machine(), "runs": options.runs, "seed": options.seed,
                "results": [record_of(key, results[key]) for key in sorted(results, key=str)]}
    (folder / "accuracy.json").write_text(json.dumps(document, indent=1) + "\n")
    text = table(results, options)
    (folder / "accuracy.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
