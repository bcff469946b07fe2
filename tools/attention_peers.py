#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Compares fused attention on a GPU with the public kernels that were measured on the same machine.

    tools/attention_peers.py peers_attention_h200.csv cora/cora.npz pubmed/pubmed.npz DD/DD.npz
    tools/attention_peers.py peers_attention_h200.csv --records earlier.json later.json

Writes attention_peers.md and attention_peers.json (the records, and the rows of peers that count) to docs/results, after every
run of the program. Where several files have a case, the last one counts, and what is measured now before all of them: with
both, what no file has is measured first. A peer counts where its result was right on that graph; its fp16 stands
beside bf16 here, its tf32 beside fp32, and GAT with a slope of 0.01 beside GAT, as a slope takes no time. Layers are those
that keep the width. Graphs NAME-loops, with all self loops, and NAME-directed, with one of the two edges of each pair, are
made where a peer was measured on them; only what a peer has a right result for is measured. The peers' launches were queued
behind one another, so that the time of a launch in a captured chain counts here where there is one. --seconds N begins no
measurement after that. --notes FILE goes below the table. Exits with 1 where a peer is faster or a run failed.
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
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
FORMS = ["gat", "gat_loops", "gatv2", "dot", "cosine", "layer_gat", "layer_gcn"]
LOOPS = "-loops"  # how a graph is named that has all of them
DIRECTED = "-directed"  # and one with half of its edges
ONE_HEAD = ("attention_cosine", "layer_gcn")  # ops that have no heads to choose
# Of peers, and what they are compared with.
PRECISIONS = {"fp32": "fp32", "tf32": "fp32", "fp16": "bf16"}
SAME_FORM = {"gat001": "gat", "agnn": "cosine"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("peers", metavar="PEERS", help="csv file of the peers' measurements")
    parser.add_argument("sources", nargs="*", metavar="SOURCE", help="what `tessera bench --data` takes")
    parser.add_argument("--records", nargs="+", metavar="FILE", default=[], help="results of `tessera bench`")
    parser.add_argument("--program", default=str(ROOT / "build" / "cuda" / "bin" / "tessera"))
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N", help="begin nothing after so many")
    parser.add_argument("--notes", metavar="FILE", help="Markdown that goes below the table")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    options = parser.parse_args()
    if not options.sources and not options.records:
        parser.error("SOURCEs to measure on, or --records")
    return options


def op_of(form, direction):
    """What `tessera bench` calls it."""
    if form.startswith("layer"):
        return form if direction == "fwd+bwd" else f"{form}_forward"
    return f"attention_{form.removesuffix('_loops')}" + ("_step" if direction == "fwd+bwd" else "")


def runs_of(peers, known):
    """Runs of the program, ((heads, width, precision, graphs), ops): one for many graphs, as a process takes longer to begin
    than most cases. Those whose cases are known least come first."""
    graphs, unknown = {}, {}
    for case in peers:
        form, heads, features, precision, direction, graph = case
        source = graph + LOOPS if form.endswith("_loops") else graph
        key = (heads, features, precision, op_of(form, direction))
        graphs.setdefault(key, []).append(source)
        unknown[key] = unknown.get(key, 0) + (case not in known)
    runs = {}
    for (heads, features, precision, op), names in graphs.items():
        runs.setdefault((heads, features, precision, tuple(sorted(names))), []).append(op)

    def known_share(run):
        (*shape, names), ops = run
        return 1 - sum(unknown[(*shape, op)] for op in ops) / (len(ops) * len(names))

    return sorted(runs.items(), key=known_share)


class Sources:
    """Files of graphs by name: those that were given, and those that are made of them."""

    def __init__(self, options, folder):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.files = {pathlib.PurePath(source).stem: source for source in options.sources}

    def of(self, name):
        """None where the graph was not given."""
        if name not in self.files:
            self.files[name] = self.made(name)
        return self.files[name]

    def made(self, name):
        base = next((name.removesuffix(end) for end in (LOOPS, DIRECTED) if name.endswith(end)), name)
        if base == name or self.of(base) is None:
            return None
        path = str(self.folder / f"{name}.npz")
        if name.endswith(LOOPS):
            subprocess.run([self.options.program, "convert", self.of(base), "-o", path, "--graph-only", "--self-loops", "add"],
                           check=True, stdout=subprocess.DEVNULL)
        else:
            keep_one_direction(self.of(base), path)
        return path


def keep_one_direction(source, path):
    import numpy
    with numpy.load(source) as arrays:
        row, col = arrays["row"], arrays["col"]
        numpy.savez(path, row=row[row < col], col=col[row < col], num_nodes=arrays["num_nodes"])


def measure(options, runs):
    """Yields the records of each run, None where it failed."""
    deadline = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as folder:
        sources = Sources(options, folder)
        report = pathlib.Path(folder) / "report.json"
        for (heads, features, precision, names), ops in runs:
            files = [file for name in names if (file := sources.of(name)) is not None]
            if not files:
                continue
            what = f"{' '.join(ops)} {heads} x {features // heads}, {precision}"
            if time.monotonic() > deadline:
                print(f"not measured, {options.seconds:.0f} s have passed: {what}", file=sys.stderr)
                continue
            with_heads = [] if all(op.startswith(ONE_HEAD) for op in ops) else ["--heads", str(heads)]
            data = [word for file in files for word in ("--data", file)]
            began = time.monotonic()
            done = subprocess.run([options.program, "bench", *ops, *data, "--device", "cuda", "--features", str(features), *with_heads,
                                   "--precision", precision, "--json", str(report), "--force"],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                print(f"failed with {done.returncode}: {what}: {done.stderr.strip()[-500:]}", file=sys.stderr)
                yield None
            if report.exists():
                yield json.loads(report.read_text())["records"]
                report.unlink()
            print(f"{time.monotonic() - began:.1f} s: {what}: {' '.join(names)}", file=sys.stderr)


def key_of(record):
    """Form, heads, width of all heads, precision, direction, graph; None for other ops."""
    name = record["op"].removeprefix("attention_")
    form = name.removesuffix("_step").removesuffix("_forward")
    if form not in FORMS or "heads" not in record:
        return None
    direction = "fwd+bwd" if record["op"] == op_of(form, "fwd+bwd") else "fwd"
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


def write(options, peers, files):
    """The page and its records; returns the cases that both have measured."""
    own = {}
    for file in files:
        own.update(own_times(file["records"]))
    cases = {key: (*own[key][:2], *peers[key]) for key in own if key in peers}
    if not cases:
        return cases
    commits = [own[key][2] for key in cases]
    commit = ", ".join(f"{one} ({commits.count(one)} cases)" for one in sorted(set(commits))) if len(set(commits)) > 1 else commits[0]
    counted = [record for file in files for record in file["records"] if own.get(key_of(record), ("", "", None))[2] == record["commit"]]
    document = {"commit": commit, "records": counted, "peers": [peers[key][2] for key in cases]}
    folder = pathlib.Path(options.output)
    (folder / "attention_peers.json").write_text(json.dumps(document, indent=1) + "\n")
    text = "\n".join(page(cases, commit, " (`attention_peers.json`)"))
    if options.notes:
        text += "\n" + pathlib.Path(options.notes).read_text(encoding="utf-8").strip() + "\n"
    (folder / "attention_peers.md").write_text(text)
    return cases


def main():
    options = arguments()
    peers = best_peers(options.peers)
    files = [json.loads(pathlib.Path(file).read_text()) for file in options.records]
    for file in files:
        # A page that was put together before has a commit for each record.
        file["records"] = [{"commit": file.get("commit", ""), **record} for record in file["records"]]
    cases = write(options, peers, files)
    failed = False
    if options.sources:
        files.append({"records": []})
        for records in measure(options, runs_of(peers, cases)):
            failed = failed or records is None
            files[-1]["records"] += [{**record, "commit": options.commit} for record in records or []]
            cases = write(options, peers, files)
    if not cases:
        sys.exit("no case that both have measured")
    print(next(line for line in (pathlib.Path(options.output) / "attention_peers.md").read_text().splitlines() if "geometric mean" in line))
    slower = [(key, case) for key, case in cases.items() if case[2] < case[0]]
    for key, (time, kernel, peer, name, _) in slower:
        print(f"slower: {says(key)}: {number(time)} by {kernel}, {name} {number(peer)}")
    sys.exit(1 if slower or failed else 0)


if __name__ == "__main__":
    main()
