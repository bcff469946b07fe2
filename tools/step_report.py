#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Training steps on a GPU: a table with the commit of every figure, and which goals are met.

    tessera bench step_gcn step_gat --device cuda --data pubmed.npz --hidden 16 --heads 8 --precision fp32,bf16 --json pubmed.json
    tessera train reddit.npz --model gcn --device cuda --layers 2 --hidden 128 --dropout 0 --json reddit.json
    tools/step_report.py pubmed.json reddit.json

The records take the place of those of the same case at earlier commits in docs/results/cuda_steps.json, and the head of docs/results/cuda_steps.md is
written again; of several records of a case the median counts. A record has the commit of its file, or of TESSERA_COMMIT. What stands below `## Notes`
stays. Without files the page is written again from the records that are there.
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


def key_of(record):
    """What was measured: step, epoch or batch, model, graph and precision; a width where it is not that of the table."""
    if "step_ms" in record:
        model, training = record["config"]["model"], record["config"]["training"]
        hidden = model["hidden"] * model["heads"]
        return "step", record["model"], record["name"].removeprefix("train_"), training["precision"], 0 if hidden == HIDDEN_OF_REDDIT else hidden
    kind, _, model = record["op"].partition("_")
    return kind, model, record["graph"], record["precision"], 0


def case_of(record):
    """Model, graph and precision, and the microseconds of a step; none of what the table does not have."""
    kind, model, graph, precision, hidden = key_of(record)
    if kind != "step" or graph not in GRAPHS or model not in MODELS or hidden:
        return None
    return (model, graph, precision), 1000 * record["step_ms"] if "step_ms" in record else record["median_us"]


def read_records(path):
    """All records of a file, with their commit; of where data lay the name alone is kept. The first one began with a process of its own."""
    content = json.loads(path.read_text(encoding="utf-8"))
    commit = content.get("commit") or os.environ.get("TESSERA_COMMIT", "")
    found = [record | {"commit": record.get("commit", commit)[:7]} for record in content.get("records", [content])]
    found[:1] = [found[0] | {"first_of_process": True}] if found else []
    return [record | {"source": pathlib.PurePath(record["source"]).name} if "source" in record else record for record in found]


def latest(records):
    """Of each case the records of its last commit."""
    last = {key_of(record): record["commit"] for record in records}
    return [record for record in records if last[key_of(record)] == record["commit"]]


def chosen(records):
    """Of each case the commit, and the microseconds of all its records."""
    steps = {}
    for record in records:
        if found := case_of(record):
            case, us = found
            steps.setdefault(case, (record["commit"], []))[1].append(us)
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


def first_step_of(record):
    """The parts of the first step of a process in milliseconds; none where something ran before it, or where it is of no goal."""
    if "first_step_ms" in record:
        return record["first_step_ms"]
    figures = record.get("figures", {})
    if not record.get("first_of_process") or record["op"] != "step_gin" or record["graph"] != "molecules":
        return None
    return {part: figures[f"first_{part}_us"] / 1000 for part in PARTS}


def first_steps(records):
    rows = [(record, times) for record in records if (times := first_step_of(record))]
    if not rows:
        return
    yield "**The first step of a process** in its parts, milliseconds; goals for all but the upload: 60 on molecules, 150 on reddit-size."
    yield ""
    yield "| | " + " | ".join([*PARTS, "all but the upload", "commit"]) + " |"
    yield "|---|" + "---:|" * (len(PARTS) + 1) + "---|"
    for record, times in rows:
        _, model, graph, precision, hidden = key_of(record)
        rest = sum(times[part] for part in PARTS if part != "upload")
        width = f" of {hidden}" if hidden else ""
        yield f"| {graph}, {MODELS[model]}{width} in {precision} | " + " | ".join(f"{times[part]:.1f}" for part in PARTS) + f" | {rest:.0f} | `{record['commit']}` |"
    yield ""


def epochs(records, steps):
    """An epoch with its evaluation over its step, where both are of the same commit."""
    ratios = {}
    for record in records:
        kind, model, graph, precision, hidden = key_of(record)
        case = model, graph, precision
        if "epoch_ms" in record and not hidden:
            ratios[case] = record["epoch_ms"] / record["step_ms"], record["commit"]
        elif kind == "epoch" and case in steps and steps[case][0] == record["commit"]:
            ratios[case] = record["median_us"] / statistics.median(steps[case][1]), record["commit"]
    if not ratios:
        return
    yield "**An epoch with its evaluation over its step**, fp32 and bf16; goal: 1.6."
    yield ""
    yield "| | " + " | ".join(MODELS.values()) + " | commits |"
    yield "|---|" + "---:|" * len(MODELS) + "---|"
    for graph in GRAPHS:
        found = {case: ratio for case, ratio in ratios.items() if case[1] == graph}
        if not found:
            continue
        cells = [" / ".join(f"{found[model, graph, precision][0]:.2f}" if (model, graph, precision) in found else "–" for precision in PRECISIONS) for model in MODELS]
        yield f"| {graph} | " + " | ".join("–" if cell == "– / –" else cell for cell in cells) + " | " + ", ".join(f"`{commit}`" for commit in sorted({commit for _, commit in found.values()})) + " |"
    yield ""


def batches(records):
    titles = {("graphs", "gin", "DD"): "A step of GIN on DD in batches of 128 takes {} (goal: 1.5 ms)",
              ("clusters", "gcn", "amazon"): "one of GCN on one of 16 parts of amazon-size {}"}
    texts = [title.format(duration(record["median_us"])) + f" at `{record['commit']}`"
             for key, title in titles.items() for record in records if key_of(record)[:3] == key and record["precision"] == "fp32"]
    if texts:
        yield "**Batches.** " + ", ".join(texts) + "."
        yield ""


def launches(records):
    """How many kernels a recorded step is."""
    texts = []
    for graph in GRAPHS:
        counts = {}
        for record in records:
            kind, model, of, precision, _ = key_of(record)
            if kind == "step" and of == graph and "launches" in record.get("figures", {}):
                counts.setdefault(model, {})[precision] = round(record["figures"]["launches"])
        parts = [f"{MODELS[model]} " + " / ".join(str(counts[model][p]) for p in PRECISIONS if p in counts[model]) for model in MODELS if model in counts]
        if parts:
            texts.append(f"{graph} " + ", ".join(parts))
    if texts:
        yield "**Launches** of a recorded step, fp32 / bf16: " + "; ".join(texts) + "."
        yield ""


def head(records):
    steps = chosen(records)
    times = {case: statistics.median(us) for case, (_, us) in steps.items()}
    return "\n".join([
        "# Training steps, products and planning on one H200", "",
        "The head of this page is made by `tools/step_report.py` of `cuda_steps.json`. **Steps**: forward, backward, Adam; two propagations, hidden is the total width, GAT "
        "with 8 heads, no dropout; the host's clock over 100 queued steps, on reddit-size `tessera train`, a step between two events. "
        "**Bold**: the goal is missed." + spread(steps), "",
        *table(times), "", "*Commits.* " + commits(steps), "", goals(times), "", *launches(records), *epochs(records, steps), *batches(records),
        *first_steps(records), ""])


def add(files, output):
    records = output.with_suffix(".json")
    content = json.loads(records.read_text(encoding="utf-8"))
    for path in files:
        content["records"] += read_records(path)
    content["records"] = latest(content["records"])
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
