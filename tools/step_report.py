#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps on a GPU: a table with the commit of every figure, and which goals are met.

    tessera bench step_gcn step_gat --device cuda --data pubmed.npz --hidden 16 --heads 8 --precision fp32,bf16 --json pubmed.json
    tessera train reddit.npz --model gcn --device cuda --layers 2 --hidden 128 --dropout 0 --json reddit.json
    tools/step_report.py pubmed.json reddit.json

The records join those of earlier commits in docs/results/cuda_steps.json, and the head of docs/results/cuda_steps.md is written again: of each case
the commit of its last record counts, of several records of that commit the median. A record has the commit of its file, or of TESSERA_COMMIT. What
stands below `## Notes` stays. Without files the page is written again from the records that are there.
"""
import argparse
import json
import os
import pathlib
import statistics

import whole_file

OUTPUT = pathlib.Path(__file__).resolve().parents[1] / "docs" / "results" / "cuda_steps"
NOTES = "## Notes"
MODELS = {"gcn": "GCN", "gat": "GAT", "gin": "GIN", "agnn": "AGNN"}
GRAPHS = {"cora": "cora 1433 → 16 → 7", "pubmed": "pubmed 500 → 16 → 3", "molecules": "molecules 74 → 64 → 2",
          "amazon": "amazon-size 96 → 64 → 22", "reddit": "reddit-size 602 → 128 → 41"}
PRECISIONS = ["fp32", "bf16"]
HIDDEN_OF_REDDIT = 128  # others were trained there, too
# Microseconds.
GOALS = {("gcn", "cora", "fp32"): 45, ("gcn", "pubmed", "fp32"): 80, ("gcn", "molecules", "fp32"): 2600, ("gcn", "amazon", "fp32"): 1300,
         ("gcn", "reddit", "fp32"): 11000, ("gcn", "reddit", "bf16"): 6000, ("gat", "cora", "fp32"): 90, ("gat", "pubmed", "fp32"): 160,
         ("gat", "molecules", "fp32"): 5500, ("gat", "amazon", "fp32"): 3200, ("gat", "reddit", "fp32"): 45000, ("gat", "reddit", "bf16"): 28000,
         ("gin", "cora", "fp32"): 60, ("gin", "pubmed", "fp32"): 110, ("gin", "molecules", "fp32"): 4500, ("gin", "amazon", "fp32"): 1800,
         ("agnn", "cora", "fp32"): 80, ("agnn", "pubmed", "fp32"): 160, ("agnn", "molecules", "fp32"): 5000, ("agnn", "amazon", "fp32"): 2400,
         ("agnn", "reddit", "fp32"): 35000}
PARTS = ["upload", "build", "plan", "step", "capture"]


def case_of(record):
    """Model, graph and precision, and the microseconds of a step; none of what the table does not have."""
    if "step_ms" in record:
        model, training = record["config"]["model"], record["config"]["training"]
        graph = record["name"].removeprefix("train_")
        if graph not in GRAPHS or training["batching"] != "full" or model["dropout"] or model["attention_dropout"]:
            return None
        if graph == "reddit" and model["hidden"] * model["heads"] != HIDDEN_OF_REDDIT:
            return None
        return (record["model"], graph, training["precision"]), 1000 * record["step_ms"]
    kind, _, model = record["op"].partition("_")
    if kind != "step" or record["graph"] not in GRAPHS or model not in MODELS:
        return None
    return (model, record["graph"], record["precision"]), record["median_us"]


def read_records(path):
    """All records of a file, with their commit; of where data lay the name alone is kept."""
    content = json.loads(path.read_text(encoding="utf-8"))
    commit = content.get("commit") or os.environ.get("TESSERA_COMMIT", "")
    found = [record | {"commit": record.get("commit", commit)[:7]} for record in content.get("records", [content])]
    return [record | {"source": pathlib.PurePath(record["source"]).name} if "source" in record else record for record in found]


def chosen(records):
    """Of each case its last commit, and the microseconds of all records of that."""
    steps = {}
    for record in records:
        if not (found := case_of(record)):
            continue
        case, us = found
        if case not in steps or steps[case][0] != record["commit"]:
            steps[case] = record["commit"], []
        steps[case][1].append(us)
    return steps


def duration(us):
    return f"{us:.1f} µs" if us < 200 else f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.2f} ms" if us < 10000 else f"{us / 1000:.1f} ms"


def is_missed(case, us):
    return case in GOALS and us > GOALS[case]


def table(times):
    yield "| | " + " | ".join(f"{name} {precision}" if precision == "fp32" else precision for name in MODELS.values() for precision in PRECISIONS) + " |"
    yield "|---|" + "---:|" * (len(MODELS) * len(PRECISIONS))
    for graph, title in GRAPHS.items():
        cells = []
        for case in ((model, graph, precision) for model in MODELS for precision in PRECISIONS):
            text = duration(times[case]) if case in times else "–"
            number, _, unit = text.partition(" ")
            cells.append(f"**{number}** {unit}" if case in times and is_missed(case, times[case]) else text)
        yield f"| {title} | " + " | ".join(cells) + " |"


def commits(steps):
    """Which figures are of which commit, the commit that most are of first."""
    by_commit = {}
    for (model, graph, precision), (commit, _) in steps.items():
        by_commit.setdefault(commit, {}).setdefault((graph, model), []).append(precision)
    texts = []
    for commit, cases in sorted(by_commit.items(), key=lambda item: -sum(map(len, item[1].values()))):
        by_graph = {}
        for graph, model in sorted(cases, key=lambda case: (list(GRAPHS).index(case[0]), list(MODELS).index(case[1]))):
            both = len(cases[graph, model]) == len(PRECISIONS)
            by_graph.setdefault(graph, []).append(MODELS[model] + ("" if both else f" in {cases[graph, model][0]}"))
        texts.append(f"`{commit}`: " + "; ".join(f"{graph} ({', '.join(models)})" for graph, models in by_graph.items()))
    return ". ".join(texts) + "."


def goals(times):
    met, missed = [], []
    for case, goal in GOALS.items():
        if case not in times:
            continue
        model, graph, precision = case
        text = f"{MODELS[model]} on {graph}" + (" in bf16" if precision == "bf16" else "") + f" ({duration(goal).replace('.0 ', ' ').replace('.00 ', ' ')})"
        if is_missed(case, times[case]):
            missed.append(f"{text} by {100 * (times[case] / goal - 1):.1f} %")
        else:
            met.append(text)
    return f"**Goals**, of fp32 where nothing else is said. Met: {', '.join(met)}. Missed: {', '.join(missed) or 'none'}."


def spread(steps):
    ratios = {case: max(us) / min(us) for case, (_, us) in steps.items() if len(us) > 1}
    if not ratios:
        return ""
    (model, graph, precision), worst = max(ratios.items(), key=lambda item: item[1])
    return (f" Of {len(ratios)} cases several processes were measured, whose median stands here: they differ by {100 * (worst - 1):.1f} % at most "
            f"({MODELS[model]} on {graph} in {precision}).")


def first_steps(records):
    rows = [record for record in records if "first_step_ms" in record]
    if not rows:
        return
    yield "**The first step of a process** (`tessera train`), milliseconds:"
    yield ""
    yield "| | " + " | ".join([*PARTS, "all but the upload", "commit"]) + " |"
    yield "|---|" + "---:|" * (len(PARTS) + 1) + "---|"
    for record in rows:
        model, times = record["config"]["model"], record["first_step_ms"]
        title = f"{record['name'].removeprefix('train_')}, {MODELS[record['model']]} of {model['hidden'] * model['heads']} in {record['config']['training']['precision']}"
        rest = sum(times[part] for part in PARTS if part != "upload")
        yield f"| {title} | " + " | ".join(f"{times[part]:.1f}" for part in PARTS) + f" | {rest:.0f} | `{record['commit']}` |"
    yield ""


def head(records):
    steps = chosen(records)
    times = {case: statistics.median(us) for case, (_, us) in steps.items()}
    return "\n".join([
        "# Training steps, products and planning on one H200", "",
        "The head of this page is made by `tools/step_report.py` of `cuda_steps.json`. **Steps**: forward, backward, Adam; two propagations, hidden is the total width, GAT "
        "with 8 heads, no dropout; the host's clock over 100 queued steps, on reddit-size `tessera train`, a step between two events. "
        "**Bold**: the goal is missed." + spread(steps), "",
        *table(times), "", "*Commits.* " + commits(steps), "", goals(times), "", *first_steps(records), ""])


def add(files, output):
    records = output.with_suffix(".json")
    content = json.loads(records.read_text(encoding="utf-8"))
    for path in files:
        content["records"] += read_records(path)
    whole_file.write(records, json.dumps(content, indent=1) + "\n")
    page = output.with_suffix(".md")
    earlier = page.read_text(encoding="utf-8")
    whole_file.write(page, head(content["records"]) + earlier[earlier.index(NOTES):])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", type=pathlib.Path, help="of tessera bench --json or tessera train --json")
    add(parser.parse_args().files, OUTPUT)


if __name__ == "__main__":
    main()
