# SPDX-License-Identifier: Apache-2.0
"""Training steps of the program on a GPU: forward, backward and Adam.

    tools/report.py steps --device cuda cora.npz pubmed.npz twin:molecules twin:amazon
    tools/report.py steps --from docs/results/cuda_steps.json.gz

Two propagations, no dropout, GAT with 8 heads; an epoch has the evaluation as well. Of a file of `tessera bench` records
of several commits, those of the commit that most of them have are shown.
"""
import collections

from . import common

SOURCES = ["twin:cora", "twin:pubmed"]
MODELS = ["gcn", "gat", "gin", "agnn"]


def add_options(parser):
    parser.add_argument("--hidden", type=int, default=16, help="default: 16")


def measure(run):
    ops = [f"{kind}_{model}" for model in MODELS for kind in ("step", "epoch")]
    precision = "fp32,bf16" if run.device == "cuda" else "fp32"
    return [one for source in run.options.sources if not run.is_late(f"steps of {source}")
            for one in run.bench(ops, [source], "--hidden", run.options.hidden, "--heads", 8, "--precision", precision)]


PARTS = {"steps": measure}


def one_commit(record):
    """A record of this report, made of one that has a commit for each measurement."""
    if "parts" in record:
        return record
    commit = collections.Counter(one["commit"] for one in record["records"]).most_common(1)[0][0]
    found = [one for one in record["records"] if one["commit"] == commit and "op" in one]
    return {"file": "cuda_steps.json.gz, of which this page shows one commit", "commit": commit, "machine": record.get("machine"),
            "parts": {"steps": found}}


def duration(us):
    return f"{us:.1f} µs" if us < 200 else f"{us:.0f} µs" if us < 1000 else f"{us / 1000:.2f} ms"


def lines(record):
    found = common.by(record["parts"]["steps"], "graph", "op", "precision")
    columns = [(model, precision) for model in MODELS for precision in ("fp32", "bf16")
               if any(key[1:] == (f"step_{model}", precision) for key in found)]
    graphs = list(dict.fromkeys(key[0] for key in found if key[1].startswith("step_")))
    steps = {key: one["median_us"] for key, one in found.items() if key[1].startswith("step_")}
    if not steps:
        raise common.Missing("the record has no step")
    yield "# How long a training step of the program takes\n"
    first, last = min(steps, key=steps.get), max(steps, key=steps.get)
    yield (f"From {duration(steps[first])} ({first[1].removeprefix('step_')} on {first[0]} in {first[2]}) to {duration(steps[last])} "
           f"({last[1].removeprefix('step_')} on {last[0]} in {last[2]}).\n")
    yield common.where(record)
    yield "Forward, backward and Adam, two propagations, no dropout, GAT with 8 heads; medians over many queued steps. –: not measured.\n"
    head = [f"{model} {precision}" for model, precision in columns]
    for kind, title in (("step", "A step"), ("epoch", "An epoch: a step and the evaluation")):
        rows = [[graph, *(duration(found[graph, f"{kind}_{model}", precision]["median_us"])
                          if (graph, f"{kind}_{model}", precision) in found else "–" for model, precision in columns)] for graph in graphs]
        yield f"## {title}\n"
        yield from common.table(["graph", *head], rows)
    yield from common.again("steps --device cuda cora.npz pubmed.npz twin:molecules twin:amazon",
                            f"The record is {record.get('file', 'steps.json')}.")


def pages(record):
    return {"steps.md": common.joined(lines(one_commit(record)))}
