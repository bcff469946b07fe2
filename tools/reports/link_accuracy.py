# SPDX-License-Identifier: Apache-2.0
"""Models of links against PyG's on the same splits: graph auto-encoders, and LightGCN.

    tools/report.py link_accuracy --pyg python3 --data FOLDER
    tools/report.py link_accuracy --device cuda --parts light_gcn --pyg python3 --data FOLDER

The Python that --pyg names has torch and PyG. Models are trained by bench/python/link_accuracy.py, ours by the program.
--data names a folder with NAME/NAME.npz of cora, citeseer, pubmed and gowalla-lightgcn.
"""
import json
import os

from . import common

SCRIPT = common.ROOT / "bench" / "python" / "link_accuracy.py"


def measured(run, *words):
    if not run.options.pyg or not run.options.data:
        raise common.Missing("--pyg names no Python with torch and PyG, or --data no folder of graphs")
    os.environ["TESSERA_DATA"] = str(run.options.data)
    path = run.folder / "links.json"
    quick = ["--runs", 1, "--epochs", 2] if run.options.quick else []
    run.command([run.options.pyg, SCRIPT, "--program", run.options.program, "--device", run.device, "--json", path, *words, *quick])
    return json.loads(path.read_text())["results"]


PARTS = {"auto_encoders": lambda run: measured(run, "--interactions"), "light_gcn": lambda run: measured(run, "--graphs")}
SETTINGS = {
    "auto_encoders": "Auto-encoders have PyG's example: a GCN of 32 and 16, Adam at 0.01, 200 epochs, 85 / 5 / 10 % of the edges, "
                     "row-normalised features; the AUROC of the test at the epoch that is best on validation.",
    "light_gcn": "LightGCN has two layers of 64 numbers, Adam at 0.001, 100 epochs in batches of 8,192, and 90 % of the interactions "
                 "to train on; Recall@20 of the others after the last epoch.",
}
NAMES = {"roc_auc": "AUROC", "recall@20": "Recall@20"}


def lines(record):
    found = [one for part in PARTS for one in record["parts"].get(part, [])]
    yield "# Models of links beside PyG's\n"
    yield "Question: do models of links become as good as PyG's on the same splits?\n"
    for one in found:
        runs = "1 run" if len(one["runs"]) == 1 else f"{len(one['runs'])} runs"
        yield (f"- {one['graph']}, {NAMES[one['metric']]} in percent: {one['tessera']:.2f}, PyG {one['pyg']:.2f}; the mean of the paired "
               f"differences of {runs} is {one['difference']:+.2f}.")
    yield "\n" + common.where(record)
    yield from common.commits_note(record)
    yield from (text for part, text in SETTINGS.items() if record["parts"].get(part))
    yield "The program draws the splits, and PyG trains and is judged on the same ones.\n"
    rows = [[one["graph"], NAMES[one["metric"]], run["seed"], f"{run['tessera']:.2f}", f"{run['pyg']:.2f}",
             f"{run['tessera'] - run['pyg']:+.2f}"] for one in found for run in one["runs"]]
    yield from common.table(["graph", "measure", "seed", "Tessera", "PyG", "difference"], rows, 2)
    yield from common.again("link_accuracy --pyg python3 --data FOLDER", "The record is [link_accuracy.json](link_accuracy.json).")


def pages(record):
    return {"link_accuracy.md": common.joined(lines(record))}
