# SPDX-License-Identifier: Apache-2.0
"""Epochs of PyG's models, plain and after `tessera.accelerate`.

    tools/report.py python --device cuda --pyg python3

The Python that --pyg names has torch, PyG and tessera. Epochs are run by bench/python/epochs.py, whose options --cases
(GRAPH/MODE/PRECISION) this report takes.
"""
import sys

from . import common

SCRIPTS = common.ROOT / "bench" / "python"
CASES = ["cora/eager/fp32", "arxiv/eager/fp32", "cora/eager/bf16", "arxiv/eager/bf16"]
SIZES = {"cora": "2.7 k vertices, 10.6 k edges", "arxiv": "169 k vertices, 2.3 M edges", "small": "20 k vertices, 400 k edges",
         "reddit": "233 k vertices, 115 M edges"}


def add_options(parser):
    parser.add_argument("--cases", nargs="+", default=CASES, metavar="CASE", help="default: " + " ".join(CASES))


def measure(run):
    if not run.options.pyg:
        raise common.Missing("--pyg names no Python; it must have torch, PyG and tessera (pip install .)")
    words = ["--epochs", 7, "--models", "GCN"] if run.options.quick else []
    return run.records([run.options.pyg, SCRIPTS / "epochs.py"], "--device", run.device, "--cases", *run.options.cases, *words)


PARTS = {"epochs": measure}


def speed(record):
    times = [record[who].get("median_ms") for who in ("pyg", "tessera")]
    return times[0] / times[1] if all(times) else None


def lines(record):
    sys.path.insert(0, str(SCRIPTS))
    from epoch_records import loss_text, memory_text, time_text
    records = record["parts"]["epochs"]
    yield "# PyG's models after `tessera.accelerate`\n"
    yield "Question: how much faster do epochs of PyG's models become in Python, and do losses stay the same?\n"
    for graph in dict.fromkeys(one["graph"] for one in records):
        found = {f"{one['model']} in {one['precision']}": speed(one) for one in records if one["graph"] == graph and speed(one)}
        if found:
            worst = min(found, key=found.get)
            yield (f"- {graph}-size ({SIZES.get(graph, '')}): {common.geometric_mean(found.values()):.1f} times as fast in the mean of "
                   f"{len(found)} cases, {found[worst]:.2f} at worst ({worst}).")
    yield "\n" + common.where(record)
    versions = ", ".join(sorted({one["versions"] for one in records}))
    yield (f"{versions}. Forward, loss, backward and Adam of two layers with 64 hidden features, PyG's layers as they are and\n"
           "after `tessera.accelerate`, in one process. Graphs are random and skewed, of the size and mean degree of those they are\n"
           "named after. Medians in milliseconds; the relative difference of the losses after 50 epochs where that many were run\n"
           "(*PyG itself*: PyG with its edges in another order); peak memory, PyG / Tessera, in MiB.\n")
    rows = [[one["graph"], one["model"], one["precision"], one["mode"], time_text(one["pyg"]), time_text(one["tessera"]),
             f"{speed(one):.2f}" if speed(one) else "–", loss_text(one), memory_text(one)] for one in records]
    yield from common.table(["graph", "model", "precision", "mode", "PyG", "Tessera", "times as fast", "loss", "memory"], rows, 4)
    yield from common.again("python --device cuda --pyg python3", "The record is [python.json](python.json).")


def pages(record):
    return {"python.md": common.joined(lines(record))}
