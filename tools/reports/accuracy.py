# SPDX-License-Identifier: Apache-2.0
"""Test accuracy of all models on citation graphs and unions of graphs, beside what their papers report.

    tools/report.py accuracy --data GRAPHS --jobs 16
    tools/report.py accuracy --data GRAPHS --device cuda --precisions fp32,bf16

Every part is a model; gin classifies graphs of unions in ten-fold cross-validation. --jobs processes train at once, a
thread each; seeds decide the results, so that the table does not depend on their number. With --pyg PyG's layers are
trained in the same way. On a GPU the page is accuracy_gpu.md: precisions beside the CPU's record of docs/results.
"""
import concurrent.futures
import functools
import json
import statistics

from . import common

DATASETS = ["cora", "citeseer", "pubmed"]
UNIONS = ["PROTEINS_full", "ENZYMES", "DD"]
FOLDS, SEED, RUNS_A_PIECE = 10, 1, 5
# What the papers report; for GraphSAGE (mean, 64 hidden) what PyG reaches on the same files.
PUBLISHED = {"gcn": [81.5, 70.3, 79.0], "gat": [83.0, 72.5, 79.0], "sgc": [81.0, 71.9, 78.9], "agnn": [83.1, 71.7, 79.9],
             "cheb": [81.2, 69.6, 73.8], "sage": [80.6, 70.5, 77.6], "gatv2": [None, None, None]}
REFERENCE = common.ROOT / "docs" / "results" / "accuracy.json"


def add_options(parser):
    parser.add_argument("--runs", type=int, default=50, help="seeds of each training (default: 50)")
    parser.add_argument("--jobs", type=int, default=1, help="processes at once (default: 1)")
    parser.add_argument("--precisions", default="fp32", metavar="LIST", help="on a GPU: fp32, tf32, bf16 (default: fp32)")
    parser.add_argument("--pyg-runs", type=int, default=10, help="seeds of PyG's training (default: 10)")


def record_name(options):
    return "accuracy" if options.device == "cpu" else "accuracy_gpu"


def graphs(run, names):
    """{name: source} of those that are there; the embedded one stands in for them where a trial is asked for."""
    if run.options.quick:
        return {"citation": "embedded:citation"}
    return {common.name_of(path): path for path in common.real_graphs(run.options, names)}


def summary(tests, **more):
    """Of [{"seed", "test", "best_epoch"}]."""
    percent = [100 * one["test"] for one in tests]
    return {"mean": statistics.mean(percent), "std": statistics.stdev(percent) if len(percent) > 1 else 0.0,
            "runs": len(tests), "tests": tests, **more}


def kept(run):
    return {key: run[key] for key in ("seed", "test", "best_epoch")}


def measure_model(model, run):
    """Runs of all data sets and precisions, in pieces that --jobs processes share."""
    found, runs = [], 2 if run.options.quick else run.options.runs
    sources = graphs(run, DATASETS)
    cases = [(name, precision, first) for name in sources for precision in run.options.precisions.split(",")
             for first in range(0, runs, RUNS_A_PIECE)]

    def piece(case):
        name, precision, first = case
        return run.call("train", "--data", sources[name], "--model", model, "--runs", min(RUNS_A_PIECE, runs - first), "--seed",
                        SEED + first, "--device", run.device, "--precision", precision, "--threads", 1, "--quiet")["runs"]

    with concurrent.futures.ThreadPoolExecutor(run.options.jobs) as pool:
        pieces = list(pool.map(piece, cases))
    for name, precision in dict.fromkeys(case[:2] for case in cases):
        tests = [kept(one) for case, ones in zip(cases, pieces) if case[:2] == (name, precision) for one in ones]
        found.append({"framework": "tessera", "model": model, "dataset": name, "precision": precision, **summary(tests)})
    return found


@common.needs(lambda run: run.device == "cpu" and not run.options.quick, "needs --device cpu, and is left out by --quick")
def measure_gin(run):
    found = []
    for name, source in graphs(run, UNIONS).items():
        report = run.call("train", "--data", source, "--model", "gin", "--folds", FOLDS, "--seed", SEED, "--parallel-runs",
                          "--threads", min(FOLDS, run.options.jobs), "--quiet")
        found.append({"framework": "tessera", "model": "gin", "dataset": name, **summary([kept(one) for one in report["runs"]])})
    return found


@common.needs_pyg
def measure_pyg(run):
    found = []
    cases = [(model, DATASETS) for model in PUBLISHED if model != "gatv2"] + [("gin", UNIONS)] * (not run.options.quick)
    for model, name, source in [(model, name, source) for model, names in cases for name, source in graphs(run, names).items()]:
        report = run.folder / "pyg.json"
        run.command([run.options.pyg, "-W", "ignore", common.BASELINES / "accuracy_torch.py", "--data", run.npz(source), "--model", model,
                     "--runs", run.options.pyg_runs, "--folds", FOLDS, "--json", report])
        test = json.loads(report.read_text())["test"]
        found.append({"framework": "pyg", "model": model, "dataset": name, "mean": 100 * test["mean"],
                      "std": 100 * (test["std"] or 0), "runs": test["runs"]})
    return found


PARTS = {**{model: functools.partial(measure_model, model) for model in PUBLISHED}, "gin": measure_gin, "pyg": measure_pyg}


def results(record):
    return [one for part in record["parts"].values() for one in part]


def figures(one):
    return f"{one['mean']:.1f} ± {one['std']:.1f}"


def published(model, dataset):
    return PUBLISHED[model][DATASETS.index(dataset)] if model in PUBLISHED and dataset in DATASETS else None


def rows(record, models, datasets):
    found = common.by(results(record), "framework", "model", "dataset")
    for model in models:
        cells = []
        for dataset in datasets:
            own, pyg, paper = found.get(("tessera", model, dataset)), found.get(("pyg", model, dataset)), published(model, dataset)
            beside = ([f"{paper:.1f}"] if paper else []) + ([f"PyG {figures(pyg)}"] if pyg else [])
            cells.append((figures(own) + (f" ({', '.join(beside)})" if beside else "")) if own else "")
        if any(cells):
            yield [model, *cells]


def lines(record):
    found = [one for one in results(record) if one["framework"] == "tessera"]
    below = {(one["model"], one["dataset"]): one["mean"] - paper for one in found if (paper := published(one["model"], one["dataset"]))}
    datasets = sorted({one["dataset"] for one in found if one["model"] != "gin"}, key=[*DATASETS, "citation"].index)
    yield "# Do models reach the accuracy of their papers?\n"
    if below:
        worst = min(below, key=below.get)
        yield (f"The means of {len(below)} pairs of model and graph are {sum(below.values()) / len(below):+.1f} points from the "
               f"papers' on average; the lowest is {worst[0]} on {worst[1]}\nwith {below[worst]:+.1f}.\n")
    yield common.where(record)
    yield ("Test accuracy in percent at the best validation epoch, mean ± standard deviation, with the hyperparameters of each\n"
           "paper ([training](../training.md)); in brackets what the paper reports (GraphSAGE: PyG on the same files), and PyG's\n"
           "layers in the same harness.\n")
    runs = max((one["runs"] for one in found if one["model"] != "gin"), default=0)
    yield f"## Citation graphs\n\nPublic splits, row-normalised features, {runs} runs.\n"
    yield from common.table(["model", *datasets], rows(record, PUBLISHED, datasets))
    if record["parts"].get("gin"):
        yield f"## Unions of graphs\n\n{FOLDS}-fold cross-validation, vertex labels as features.\n"
        yield from common.table(["model", *UNIONS], rows(record, ["gin"], UNIONS))
    yield from common.again("accuracy --data GRAPHS --jobs 16 --pyg python3", "The record, [accuracy.json](accuracy.json), has every run.")


def mean_of_seeds(reference, seeds):
    """What the reference reached with these seeds; with all of its own where it lacks some."""
    tests = {one["seed"]: 100 * one["test"] for one in reference["tests"]}
    return statistics.mean(tests[seed] for seed in seeds) if seeds <= tests.keys() else reference["mean"]


def compared_lines(record, reference):
    known = {(one["model"], one["dataset"]): one for one in results(reference) if one["framework"] == "tessera"}
    found = common.by(results(record), "model", "dataset", "precision")
    precisions = [one for one in ("fp32", "tf32", "bf16") if any(key[2] == one for key in found)]
    apart = {key: one["mean"] - mean_of_seeds(known[key[:2]], {test["seed"] for test in one["tests"]})
             for key, one in found.items() if key[:2] in known}
    yield "# Does the GPU, or a lower precision, change accuracy?\n"
    if apart:
        worst = max(apart, key=lambda key: abs(apart[key]))
        yield (f"No: means over the same seeds differ from the CPU's in fp32 by at most {abs(apart[worst]):.2f} points "
               f"({', '.join(worst)}).\n")
    yield common.where(record)
    yield ("Test accuracy in percent at the best validation epoch, mean ± standard deviation, with the seeds, public splits and\n"
           "hyperparameters of [accuracy.md](accuracy.md); in brackets the distance from the CPU's mean over the same seeds.\n")
    table_rows = []
    for model, dataset in [(model, dataset) for model in PUBLISHED for dataset in [*DATASETS, "citation"]]:
        if not any((model, dataset, precision) in found for precision in precisions):
            continue
        cells = [f"{figures(found[key])}" + (f" ({apart[key]:+.2f})" if key in apart else "") if key in found else "not run"
                 for key in ((model, dataset, precision) for precision in precisions)]
        table_rows.append([f"{model}, {dataset}", figures(known[model, dataset]) if (model, dataset) in known else "", *cells])
    yield from common.table(["model, graph", "CPU, fp32", *precisions], table_rows)
    yield from common.again("accuracy --device cuda --precisions fp32,bf16 --data GRAPHS", "The record, [accuracy_gpu.json](accuracy_gpu.json), has every run.")


def pages(record):
    if record.get("device") != "cuda":
        return {"accuracy.md": common.joined(lines(record))}
    return {"accuracy_gpu.md": common.joined(compared_lines(record, common.load(REFERENCE)))}
