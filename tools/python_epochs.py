#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Puts records of bench/python/epochs.py, losses.py and turbo.py on a GPU, and of epochs.py on several cores of a CPU,
beside those that are kept, and writes the tables of docs/results/python.md anew.

    tools/python_epochs.py NEW.json...        # a new record takes the place of the one of the same case
    tools/python_epochs.py                    # only the tables

A new record without losses keeps none of the old one: what is in a row was measured together.
"""

import argparse
import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "bench" / "python"))
from epoch_records import gradient_text, loss_text, memory_text, ratio, time_text  # noqa: E402

RESULTS = ROOT / "docs" / "results"
PAGE = RESULTS / "python.md"
KEPT = {kind: RESULTS / f"python_{name}.json"
        for kind, name in {"epochs": "cuda", "cores": "cores", "losses": "losses", "turbo": "turbo"}.items()}
GRAPHS = ["cora", "small", "arxiv", "reddit"]
MODES = ["eager", "compiled", "captured"]
PRECISIONS = ["fp32", "bf16"]
MODELS = ["GCN", "SAGE", "GIN", "GAT", "GATv2"]
OPERATORS = ["sum", "max", "gatv2", "transformer"]


def kind_of(record):
    if "operator" in record:
        return "turbo"
    if "fp64" in record:
        return "losses"
    return "epochs" if record["device"].startswith("NVIDIA") else "cores"


def place(record):
    """Of a record in its table; two records of one place are one case."""
    if kind_of(record) == "turbo":
        return (GRAPHS.index(record["graph"]), PRECISIONS.index(record["precision"]),
                OPERATORS.index(record["operator"]))
    if kind_of(record) == "losses":
        return (GRAPHS.index(record["graph"]), PRECISIONS.index(record["precision"]), MODELS.index(record["model"]))
    return (GRAPHS.index(record["graph"]), MODES.index(record["mode"]),
            PRECISIONS.index(record["precision"]), MODELS.index(record["model"]))


def ran(record):
    """Whether it tells anything: a case whose part of ours failed does not."""
    return {"turbo": lambda: "tessera_ms" in record, "losses": lambda: True,
            "epochs": lambda: "median_ms" in record["tessera"],
            "cores": lambda: "median_ms" in record["tessera"]}[kind_of(record)]()


def epochs_row(record):
    return (f"| {record['graph']} | {record['model']} | {record['precision']} | {record['mode']} | "
            f"{time_text(record['pyg'])} | {time_text(record['tessera'])} | {ratio(record)} | {loss_text(record)} | "
            f"{memory_text(record)} | `{record['commit']}` |")


def cores_row(record):
    return (f"| {record['graph']} | {record['model']} | {record['precision']} | {record['mode']} | "
            f"{time_text(record['pyg'])} | {time_text(record['tessera'])} | {ratio(record)} | {loss_text(record)} | "
            f"{gradient_text(record)} | `{record['commit']}` |")


def losses_row(record):
    def off(who):
        return " ".join(f"{(loss - record['fp64']) / record['fp64']:+.0e}" for loss in record[who])

    def errors(who):
        return " ".join(f"{found[who]:.0e}" for found in record["gradients"])

    return (f"| {record['graph']} | {record['model']} | {record['precision']} | {off('pyg')} | {off('tessera')} | "
            f"{errors('pyg')} | {errors('tessera')} | `{record['commit']}` |")


def turbo_row(record):
    theirs, ours = record["turbo_ms"], record["tessera_ms"]
    return (f"| {record['graph']} | {record['operator']} | {record['precision']} | {theirs:.3f} | {ours:.3f} | "
            f"{theirs / ours:.2f} | {record['difference']:.0e} | `{record['commit']}` |")


TABLES = {
    "epochs": (["| graph | model | precision | mode | PyG | Tessera | times as fast | loss | memory | commit |",
                "|---|---|---|---|---:|---:|---:|---:|---:|---|"], epochs_row),
    "cores": (["| graph | model | precision | mode | PyG | Tessera | times as fast | loss | first gradients | commit |",
               "|---|---|---|---|---:|---:|---:|---:|---:|---|"], cores_row),
    "losses": (["| graph | model | precision | losses, PyG | losses, Tessera | gradients, PyG | gradients, Tessera | commit |",
                "|---|---|---|---|---|---|---|---|"], losses_row),
    "turbo": (["| graph | operator | precision | Turbo-GNN | Tessera | times as fast | difference | commit |",
               "|---|---|---|---:|---:|---:|---:|---|"], turbo_row),
}


def merged(kind, new):
    kept = json.loads(KEPT[kind].read_text()) if KEPT[kind].exists() else []
    by_place = {place(record): record for record in [*kept, *(r for r in new if kind_of(r) == kind and ran(r))]}
    return [by_place[where] for where in sorted(by_place)]


def with_table(page, head, rows):
    """The page with the rows of the table that has this head."""
    begin = page.index(head[0])
    end = page.index("\n\n", begin)
    return page[:begin] + "\n".join([*head, *rows]) + page[end:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=Path, metavar="NEW.json")
    new = [record for path in parser.parse_args().files for record in json.loads(path.read_text())]
    page = PAGE.read_text()
    for kind, (head, row) in TABLES.items():
        records = merged(kind, new)
        if not records or head[0] not in page:
            print(f"{kind}: no records, or no table with such a head")
            continue
        KEPT[kind].write_text(json.dumps(records, indent=1) + "\n")
        page = with_table(page, head, map(row, records))
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
