#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Trains every model on the citation graphs and writes the table of accuracies.

    tools/reproduce_accuracy.py --runs 50 --jobs 16 --commit 3bbdb77

Reads the graphs from the folder that TESSERA_DATA names. Each job is one process of one thread that does a
share of the runs of one model and data set; seeds decide the results, so the table does not depend on the
number of jobs. GIN classifies the graphs of unions in ten-fold cross-validation, its folds side by side.
With --pieces FOLDER every finished job is kept there, and a run that was broken off goes on from them.
With --pyg PYTHON, a Python that has PyG, bench/baselines/accuracy_torch.py trains PyG's layers in the same way.
Writes docs/results/accuracy.json (every run) and docs/results/accuracy.md.

    tools/reproduce_accuracy.py --device cuda --precision fp32,tf32,bf16 --jobs 2 --threads 1 --runs-a-piece 50 \\
        --seconds 150 --pieces FOLDER --commit 3bbdb77 --machine "x86_64, NVIDIA H200"

compares precisions of another device with the CPU's results (--reference) and writes accuracy_gpu.json and
accuracy_gpu.md instead. --threads trains so many runs of a job side by side, which on one GPU wait for each other:
steps on small graphs took a hundred times as long, 15 at once. Processes (--jobs) take turns on a GPU, too, unless
NVIDIA's MPS runs (nvidia-cuda-mps-control -d): then ten of them compute at once. --seconds begins no job after that time, those that
matter most first, and says in the table what is missing.
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
import time

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
# How far a precision may be from the results of the CPU in fp32, either way.
ALLOWED_APART = {"fp32": 0.3, "tf32": 0.5, "bf16": 0.5}
RUNS_A_PIECE = 5


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--device", default="cpu", help="where tessera trains")
    parser.add_argument("--precision", default="fp32", metavar="LIST", help="fp32, tf32, bf16")
    parser.add_argument("--threads", type=int, default=1, help="runs of a job that are trained side by side")
    parser.add_argument("--seconds", type=float, help="begin no job after so many")
    parser.add_argument("--reference", default=str(ROOT / "docs" / "results" / "accuracy.json"), metavar="FILE",
                        help="what other devices and precisions are compared with")
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
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--machine", help="where it was trained, such as \"x86_64, NVIDIA H200\"; on a CPU its architecture")
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    options = parser.parse_args()
    options.models = options.models.split(",")
    options.datasets = options.datasets.split(",")
    options.precisions = options.precision.split(",")
    if not options.commit:
        parser.error("--commit, or TESSERA_COMMIT, says what was trained")
    if options.device != "cpu" and not options.machine:
        parser.error("--machine says which GPU it was")
    options.compares = options.device != "cpu" or options.precisions != ["fp32"]
    options.unions = [name for name in options.unions.split(",") if name and not options.compares]
    options.deadline = time.monotonic() + options.seconds if options.seconds else None
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


def train(options, model, dataset, seed, runs, precision):
    """One process: runs `seed` to `seed + runs - 1`. Nothing where the time is over, unless it was done before."""
    where = f"_{options.device}_{precision}" if options.compares else ""
    name = f"{model}_{dataset}_{seed}_{runs}{where}"
    kept = finished_piece(options, name)
    if options.deadline and time.monotonic() > options.deadline and not (kept and kept.exists()):
        return None
    side_by_side = ["--parallel-runs"] if options.threads > 1 and runs > 1 else []
    return reported(options, name,
                    [options.program, "train", "--data", file_of(options, dataset), "--model", model,
                     "--runs", str(runs), "--seed", str(seed), "--device", options.device,
                     "--precision", precision, "--threads", str(options.threads), *side_by_side, "--quiet"])


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


def compared_pieces(options):
    """What matters most first: precisions, then models, as they are listed."""
    for precision in options.precisions:
        for model in options.models:
            for dataset in options.datasets:
                for first in range(0, options.runs, options.runs_a_piece):
                    runs = min(options.runs_a_piece, options.runs - first)
                    yield ((model, dataset, precision), train, (model, dataset, options.seed + first, runs, precision))


def all_pieces(options):
    """(key, function, arguments), the longest first, so that no core is left with one alone."""
    if options.compares:
        yield from compared_pieces(options)
        return
    for dataset in options.unions:
        if wants_pyg(options, "gin", dataset):
            yield ("pyg", "gin", dataset), train_pyg, ("gin", dataset)
    for dataset in sorted(options.datasets, key=DATASETS.index, reverse=True):
        for model in sorted(options.models, key=lambda name: "gat" not in name):
            if wants_pyg(options, model, dataset):
                yield ("pyg", model, dataset), train_pyg, (model, dataset)
            for first in range(0, options.runs, options.runs_a_piece):
                runs = min(options.runs_a_piece, options.runs - first)
                yield ((model, dataset), train, (model, dataset, options.seed + first, runs, "fp32"))


def collect(options):
    """{key: reports}, in the order of their seeds."""
    pieces = list(all_pieces(options))
    found = {}
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        futures = {pool.submit(function, options, *arguments): number
                   for number, (_, function, arguments) in enumerate(pieces)}
        for done, future in enumerate(concurrent.futures.as_completed(futures), 1):
            try:
                found[futures[future]] = future.result()
            except subprocess.CalledProcessError as error:
                if not options.compares:
                    raise
                found[futures[future]] = None  # the table says what is missing
                print(f"\nleft out: {' '.join(error.cmd)}", file=sys.stderr)
            print(f"\r{done} of {len(pieces)}", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    reports = {("gin", dataset): [train_folds(options, dataset)] for dataset in options.unions}
    for number, (key, _, _) in enumerate(pieces):
        if found[number] is not None:
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


def cpu_results(options):
    """By model and data set: what the CPU reached, in fp32."""
    path = pathlib.Path(options.reference)
    if not path.exists():
        return {}
    return {(found["model"], found["dataset"]): found for found in json.loads(path.read_text())["results"]
            if found["framework"] == "tessera"}


def mean_of_seeds(reference, seeds):
    """What the reference reached with these seeds; with all of its own where it lacks some."""
    tests = {run["seed"]: 100 * run["test"] for run in reference["tests"]}
    return statistics.mean(tests[seed] for seed in seeds) if seeds <= tests.keys() else reference["mean"]


def compared_cell(result, reference, precision):
    if result is None:
        return "not run"
    if reference is None:
        return figures(result)
    apart = result["mean"] - mean_of_seeds(reference, {run["seed"] for run in result["tests"]})
    note = ", too far" if abs(apart) > ALLOWED_APART[precision] else ""
    return f"{figures(result)} ({apart:+.2f}{note})"


def compared_table(results, options):
    """Every precision beside the CPU's fp32."""
    known = cpu_results(options)
    allowed = ", ".join(f"{ALLOWED_APART[precision]} in {precision}" for precision in options.precisions)
    lines = ["# Accuracy on another device" if options.device != "cpu" else "# Accuracy by precision", "",
             f"Test accuracy in percent at the best validation epoch, mean ± standard deviation of {options.runs} runs on "
             f"{options.device} ({options.machine or platform.machine()}; commit {options.commit}), with the seeds, public splits and hyperparameters of [accuracy.md](accuracy.md). In "
             f"brackets how far the mean is from the CPU's in fp32 over the same seeds; allowed are {allowed}, either way.", "",
             "| model, graph | CPU, fp32 | " + " | ".join(options.precisions) + " |",
             "|---|" + "---:|" * (1 + len(options.precisions))]
    for model in options.models:
        for dataset in options.datasets:
            reference = known.get((model, dataset))
            cells = [compared_cell(results.get((model, dataset, precision)), reference, precision)
                     for precision in options.precisions]
            lines.append(f"| {model}, {dataset} | {figures(reference) if reference else ''} | " + " | ".join(cells) + " |")
    lines += ["", f"Made by `tools/reproduce_accuracy.py --device {options.device} --precision "
              f"{','.join(options.precisions)} --runs {options.runs} --seed {options.seed}`. Every run is in "
              "accuracy_gpu.json.", ""]
    return "\n".join(lines)


def record_of(key, result, compares):
    if compares:
        return {"framework": "tessera", "model": key[0], "dataset": key[1], "precision": key[2], **result}
    framework = "pyg" if key[0] == "pyg" else "tessera"
    return {"framework": framework, "model": key[-2], "dataset": key[-1], **result}


def main():
    options = arguments()
    results = {key: summary(reports) for key, reports in collect(options).items()}
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    document = {"commit": options.commit, "machine": options.machine or platform.machine(), "runs": options.runs, "seed": options.seed,
                "results": [record_of(key, results[key], options.compares) for key in sorted(results, key=str)]}
    stem = "accuracy_gpu" if options.compares else "accuracy"
    (folder / f"{stem}.json").write_text(json.dumps(document, indent=1) + "\n")
    text = compared_table(results, options) if options.compares else table(results, options)
    (folder / f"{stem}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
