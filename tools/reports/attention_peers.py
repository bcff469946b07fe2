# SPDX-License-Identifier: Apache-2.0
"""Fused attention on a GPU beside public kernels that were measured on the same machine.

    tools/report.py attention_peers --device cuda --peers PEERS.csv --data GRAPHS

PEERS.csv has the columns op, graph, heads, width_per_head, dtype, direction, peer, kernel_us and result. A peer counts
where its result was right on that graph; its fp16 stands beside bf16 here, its tf32 beside fp32, and GAT with a slope of
0.01 beside GAT, as a slope takes no time. Layers are those that keep the width. Graphs NAME-loops, with all self loops,
are made where a peer was measured on them; only what a peer has a right result for is measured. The peers' launches were
queued behind one another, so that the time of a launch in a captured chain counts here where there is one.
"""
import csv
import pathlib
import sys

from . import common

FORMS = ["gat", "gat_loops", "gatv2", "dot", "cosine", "layer_gat", "layer_gcn"]
LOOPS = "-loops"
ONE_HEAD = ("attention_cosine", "layer_gcn")  # ops that have no heads to choose
PRECISIONS = {"fp32": "fp32", "tf32": "fp32", "fp16": "bf16"}  # of peers, and what they are compared with
SAME_FORM = {"gat001": "gat", "agnn": "cosine"}


def add_options(parser):
    parser.add_argument("--peers", type=pathlib.Path, metavar="FILE", help="table of the peers' times")


def op_of(form, direction):
    """What `tessera bench` calls it."""
    if form.startswith("layer"):
        return form if direction == "fwd+bwd" else f"{form}_forward"
    return f"attention_{form.removesuffix('_loops')}" + ("_step" if direction == "fwd+bwd" else "")


def peer_key(row):
    """Form, heads, width of all heads, precision, direction, graph; None for a row that does not count."""
    form = SAME_FORM.get(row["op"], row["op"])
    if row["result"] != "right" or form not in FORMS or row["dtype"] not in PRECISIONS:
        return None
    heads = int(row["heads"])
    return form, heads, heads * int(row["width_per_head"]), PRECISIONS[row["dtype"]], row["direction"], row["graph"]


def own_key(record):
    """As peer_key; None for other ops."""
    form = record["op"].removeprefix("attention_").removesuffix("_step").removesuffix("_forward")
    if form not in FORMS or "heads" not in record:
        return None
    direction = "fwd+bwd" if record["op"] == op_of(form, "fwd+bwd") else "fwd"
    graph, loops = record["graph"].removesuffix(LOOPS), record["graph"].endswith(LOOPS)
    return form + "_loops" * loops, record["heads"], record["features"], record["precision"], direction, graph


def fastest(rows, key_of, time_of):
    best = {}
    for row in rows:
        key = key_of(row)
        if key is not None and (key not in best or time_of(row) < time_of(best[key])):
            best[key] = row
    return best


def peer_time(row):
    return float(row["kernel_us"])


def best_peers(path):
    if path is None or not path.exists():
        raise common.Missing(f"there is no table of other kernels' times {path or ''}: --peers FILE names one")
    with open(path, newline="") as file:
        return fastest(csv.DictReader(file), peer_key, peer_time)


def runs_of(peers):
    """{(heads, width, precision, op): graphs}: one process for many graphs, as it takes longer to begin than most cases."""
    runs = {}
    for form, heads, features, precision, direction, graph in peers:
        source = graph + LOOPS if form.endswith("_loops") else graph
        runs.setdefault((heads, features, precision, op_of(form, direction)), []).append(source)
    return runs


def file_of(run, name):
    """A graph of --data, or one that is made of it; None where there is none."""
    base = name.removesuffix(LOOPS)
    path = run.options.data / base / f"{base}.npz" if run.options.data else None
    if path is None or not path.exists() or base == name:
        return str(path) if path and path.exists() else None
    made = run.folder / f"{name}.npz"
    if not made.exists():
        run.command([run.program, "convert", path, "-o", made, "--graph-only", "--self-loops", "add"])
    return str(made)


def measure(run):
    peers, records = best_peers(run.options.peers), []
    for (heads, features, precision, op), names in runs_of(peers).items():
        files = [file for name in names if (file := file_of(run, name))]
        if files and not run.is_late(f"{op} {heads} x {features // heads}, {precision}"):
            words = [] if op.startswith(ONE_HEAD) else ["--heads", heads]
            records += run.bench([op], files, "--features", features, *words, "--precision", precision)
    if not records:
        print("none of the graphs of the peers is there: --data FOLDER has NAME/NAME.npz", file=sys.stderr)
        return None
    return {"records": records, "peers": list(peers.values())}


PARTS = {"attention": measure}


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def says(key):
    form, heads, features, precision, direction, graph = key
    return f"{form} {heads} x {features // heads}, {precision}, {direction}, {graph}"


def cases_of(record):
    """{key: (our time, theirs, who)}"""
    found = record["parts"]["attention"]
    own = fastest(found["records"], own_key, common.time_of)
    peers = fastest(found["peers"], peer_key, peer_time)
    return {key: (common.time_of(own[key]), peer_time(peers[key]), peers[key]["peer"]) for key in own if key in peers}


def lines(record):
    cases = cases_of(record)
    ratios = {key: theirs / ours for key, (ours, theirs, _) in cases.items()}
    slower = sorted((ratio, key) for key, ratio in ratios.items() if ratio < 1)
    yield "# Attention beside public kernels\n"
    yield "Question: how fast is fused attention on a GPU beside the fastest public kernel that gives a right result?\n"
    if not ratios:
        raise common.Missing("no case was measured both here and by a peer")
    worst = min(ratios, key=ratios.get)
    yield (f"{common.geometric_mean(ratios.values()):.1f} times as fast in the mean of {len(ratios)} cases, {ratios[worst]:.2f} "
           f"times at worst ({says(worst)});\nslower in {len(slower)}" +
           (": " + "; ".join(f"{says(key)} {ratio:.2f}" for ratio, key in slower) if slower else "") + ".\n")
    yield common.where(record)
    yield ("Microseconds: here / the fastest right public kernel, and how many times as fast. Ours are per launch in a captured\n"
           "chain where one was measured, else medians of single runs; theirs were queued behind one another. Their fp16 stands\n"
           "beside bf16, their tf32 beside fp32, a slope of 0.01 beside 0.2; cosines are AGNN's. –: not measured by both.\n")
    graphs = list(dict.fromkeys(key[-1] for key in cases))
    rows = []
    for shape in sorted({key[:-1] for key in cases}, key=lambda key: (FORMS.index(key[0]), *key[1:])):
        form, heads, features, precision, direction = shape
        cells = []
        for graph in graphs:
            ours, theirs, who = cases.get((*shape, graph), (None, None, None))
            cells.append(f"{number(ours)} / {number(theirs)} {who}: {theirs / ours:.1f} x" if ours else "–")
        rows.append([f"{form} {heads} x {features // heads}, {precision}, {direction}", *cells])
    yield from common.table(["form, heads x width, precision, direction", *graphs], rows, 1 + len(graphs))
    yield from common.again("attention_peers --device cuda --peers PEERS.csv --data GRAPHS",
                            "The record, [attention_peers.json](attention_peers.json), has the peers' times as well.")


def pages(record):
    return {"attention_peers.md": common.joined(lines(record))}
