#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares fused attention on a GPU with the public kernels that were measured on the same machine.

    tools/attention_peers.py peers_attention_h200.csv cora/cora.npz pubmed/pubmed.npz DD/DD.npz
    tools/attention_peers.py peers_attention_h200.csv --records earlier.json later.json

Writes attention_peers.md and attention_peers.json (the records, and the rows of peers that count) to docs/results. Where
several files have a case, the last one counts. A peer counts where its result was right on that graph; its fp16 stands
beside bf16 here, its tf32 beside fp32, and GAT with a slope of 0.01 beside GAT, as a slope takes no time. GAT with self
loops is measured on a file NAME-loops of the graph with them. Layers are those that keep the width, forward and backward.
The peers' launches were queued behind one another, so that the time of a launch in a captured chain counts here where there
is one. --notes FILE goes below the table. Exits with 1 where a peer is faster.
"""
import argparse
import csv
import json
import math
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
FORMS = ["gat", "gat_loops", "gatv2", "dot", "cosine", "layer_gat", "layer_gcn"]
LOOPS = "-loops"  # how a graph is named that has all of them
# What a run of the program measures: ops, heads, widths of all heads together, precisions.
ATTENTION = ["attention_{}", "attention_{}_step"]
RUNS = [([op.format("gat") for op in ATTENTION], 8, "64,128", "fp32,bf16"),
        ([op.format(form) for form in ("dot", "gatv2") for op in ATTENTION], 4, "128", "fp32,bf16"),
        ([op.format("dot") for op in ATTENTION], 8, "128", "fp32,bf16"),
        ([op.format("gat") for op in ATTENTION], 1, "64", "fp32,bf16"),
        ([op.format(form) for form in ("dot", "gatv2") for op in ATTENTION], 1, "64,128", "fp32,bf16"),
        (["attention_cosine"], None, "32", "fp32"),
        (["layer_gat"], 8, "64,128", "fp32"), (["layer_gat"], 1, "64", "fp32"), (["layer_gcn"], None, "128", "fp32")]
# Of peers, and what they are compared with.
PRECISIONS = {"fp32": "fp32", "tf32": "fp32", "fp16": "bf16"}
SAME_FORM = {"gat001": "gat", "agnn": "cosine"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peers", metavar="PEERS", help="csv file of the peers' measurements")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="what `tessera bench --data` takes")
    parser.add_argument("--records", nargs="+", metavar="FILE", help="results of `tessera bench` instead of new ones")
    parser.add_argument("--program", default=str(ROOT / "build" / "cuda" / "bin" / "tessera"))
    parser.add_argument("--notes", metavar="FILE", help="Markdown that goes below the table")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    options = parser.parse_args()
    if bool(options.sources) == bool(options.records):
        parser.error("either SOURCEs to measure on, or --records")
    return options


def measure(options):
    records = []
    with tempfile.TemporaryDirectory() as folder:
        report = pathlib.Path(folder) / "report.json"
        data = [word for source in options.sources for word in ("--data", source)]
        for ops, heads, widths, precisions in RUNS:
            with_heads = ["--heads", str(heads)] if heads else []
            subprocess.run([options.program, "bench", *ops, *data, "--device", "cuda", "--features", widths, *with_heads,
                            "--precision", precisions, "--json", str(report), "--force"], check=True, stdout=subprocess.DEVNULL)
            records += json.loads(report.read_text())["records"]
    return records


def key_of(record):
    """Form, heads, width of all heads, precision, direction, graph; None for other ops."""
    name = record["op"].removeprefix("attention_")
    form = name.removesuffix("_step")
    if form not in FORMS or "heads" not in record:
        return None
    direction = "fwd+bwd" if name.endswith("_step") or form.startswith("layer") else "fwd"
    graph = record["graph"]
    if graph.endswith(LOOPS):
        form, graph = f"{form}_loops", graph.removesuffix(LOOPS)
    return form, record["heads"], record["features"], record["precision"], direction, graph


def own_times(records):
    """The fastest plan of each case in one file, which may hold several kernels."""
    times = {}
    for record in records:
        key = key_of(record)
        if key is None:
            continue
        time = record.get("chain_us") or record["median_us"]
        if key not in times or time < times[key][0]:
            times[key] = (time, record["kernel"], record.get("commit", ""))
    return times


def peer_key(row):
    """As key_of; None for a row that does not count."""
    form = SAME_FORM.get(row["op"], row["op"])
    if row["result"] != "right" or form not in FORMS or row["dtype"] not in PRECISIONS:
        return None
    heads = int(row["heads"])
    return form, heads, heads * int(row["width_per_head"]), PRECISIONS[row["dtype"]], row["direction"], row["graph"]


def best_peers(path):
    best = {}
    with open(path, newline="") as file:
        for row in csv.DictReader(file):
            key = peer_key(row)
            if key is None:
                continue
            time = float(row["kernel_us"])
            if key not in best or time < best[key][0]:
                best[key] = (time, row["peer"], row)
    return best


def number(value):
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def geometric_mean(ratios):
    return math.exp(sum(map(math.log, ratios)) / len(ratios))


def says(key):
    form, heads, features, precision, direction, graph = key
    return f"{form} {heads} x {features // heads}, {precision}, {direction}, {graph}"


def page(cases, commit, where):
    graphs = []
    for key in cases:
        if key[-1] not in graphs:
            graphs.append(key[-1])
    ratios = {key: peer / own for key, (own, _, peer, *_) in cases.items()}
    others = [ratio for key, ratio in ratios.items() if not cases[key][3].startswith("pyg")]
    slower = sorted((ratio, key) for key, ratio in ratios.items() if ratio < 1)
    yield "# Fused attention beside public kernels"
    yield ""
    yield (f"Made by `tools/attention_peers.py`{where}, commit {commit or 'unknown'}. Microseconds on one NVIDIA H200: "
           "here / the fastest right public kernel, and how many times faster. Ours are per launch in a captured chain where "
           "one was measured, else medians of single runs; theirs were queued behind one another. Their fp16 stands "
           "beside bf16, their tf32 beside fp32, a slope of 0.01 beside 0.2; cosines are AGNN's. –: not measured by both.")
    yield ""
    worst = min(ratios, key=ratios.get)
    without = f" ({geometric_mean(others):.2f} x over the {len(others)} whose fastest peer is not PyG)" if others else ""
    yield (f"{len(ratios)} cases, geometric mean **{geometric_mean(ratios.values()):.2f} x**{without}, the least "
           f"{ratios[worst]:.2f} x ({says(worst)}); slower in {len(slower)}"
           + (": " + "; ".join(f"{says(key)} {ratio:.2f}" for ratio, key in slower) if slower else "") + ".")
    yield ""
    yield "| form, heads x width, precision, direction | " + " | ".join(graphs) + " |"
    yield "|---|" + "---|" * len(graphs)
    for shape in sorted({key[:-1] for key in cases}, key=lambda key: (FORMS.index(key[0]), *key[1:])):
        form, heads, features, precision, direction = shape
        cells = []
        for graph in graphs:
            case = cases.get((*shape, graph))
            if case is None:
                cells.append("–")
                continue
            own, _, peer, name, _ = case
            ratio = f"{peer / own:.1f} x" if peer >= own else f"**{peer / own:.2f} x**"
            cells.append(f"{number(own)} / {number(peer)} {name}: {ratio}")
        yield f"| {form} {heads} x {features // heads}, {precision}, {direction} | " + " | ".join(cells) + " |"
    yield ""


def main():
    options = arguments()
    folder = pathlib.Path(options.output)
    where = " (`attention_peers.json`)"
    if options.records:
        files = [json.loads(pathlib.Path(file).read_text()) for file in options.records]
    else:
        files = [{"commit": options.commit, "records": measure(options)}]
    own = {}
    for file in files:
        # A page that was put together before has a commit for each record.
        file["records"] = [{"commit": file.get("commit", ""), **record} for record in file["records"]]
        own.update(own_times(file["records"]))
    peers = best_peers(options.peers)
    cases = {key: (*own[key][:2], *peers[key]) for key in own if key in peers}
    if not cases:
        sys.exit("no case that both have measured")
    commits = [own[key][2] for key in cases]
    commit = ", ".join(f"{one} ({commits.count(one)} cases)" for one in sorted(set(commits))) if len(set(commits)) > 1 else commits[0]
    counted = [record for file in files for record in file["records"] if own.get(key_of(record), ("", "", None))[2] == record["commit"]]
    document = {"commit": commit, "records": counted, "peers": [peers[key][2] for key in cases]}
    (folder / "attention_peers.json").write_text(json.dumps(document, indent=1) + "\n")
    text = "\n".join(page(cases, commit, where))
    if options.notes:
        text += "\n" + pathlib.Path(options.notes).read_text(encoding="utf-8").strip() + "\n"
    (folder / "attention_peers.md").write_text(text)
    print("\n".join(text.splitlines()[4:5]))
    slower = [(key, case) for key, case in cases.items() if case[2] < case[0]]
    for key, (time, kernel, peer, name, _) in slower:
        print(f"slower: {says(key)}: {number(time)} by {kernel}, {name} {number(peer)}")
    sys.exit(1 if slower else 0)


if __name__ == "__main__":
    main()
