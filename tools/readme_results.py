#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the table of results in README.md and its picture, docs/results/summary.svg.

    python3 tools/readme_results.py            # writes both
    python3 tools/readme_results.py --check    # fails where one is not what the records say

Every figure comes from the records in docs/results, which `tessera bench --json`, bench/baselines and bench/python
wrote. A case counts with the fastest way that the other side has. Nothing but the standard library is needed.
"""
import argparse
import collections
import html
import json
import math
import pathlib
import sys

import attention_peers

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results"
BEGIN, END = "<!-- results: made by tools/readme_results.py -->", "<!-- /results -->"

Row = collections.namedtuple("Row", "what against machine page commits ratios")

# What is compared: op, precision, files of ours, files of the others (none: baselines in our own run).
COMPARISONS = [
    ("neighbour sums (spmm), fp32", "spmm", "fp32", "cuSPARSE, its fastest", "H200", "cuda.md",
     ["cuda_spmm_small", "cuda_spmm_mid"], []),
    ("neighbour sums (spmm), bf16", "spmm", "bf16", "cuSPARSE, algorithm 3", "H200", "cuda.md",
     ["cuda_spmm_small", "cuda_spmm_mid"], []),
    ("neighbour sums (spmm)", "spmm", "fp32", "PyTorch with MKL", "x86, 1-16 threads", "cpu_x86.md",
     ["cpu_x86_tessera"], ["cpu_x86_torch_spmm"]),
    ("dot products on edges (sddmm)", "sddmm", "fp32", "PyTorch with MKL", "x86, 1-16 threads", "cpu_x86.md",
     ["cpu_x86_tessera"], ["cpu_x86_torch_sddmm"]),
    ("neighbour sums (spmm)", "spmm", "fp32", "PyTorch", "Arm, 1-2 threads", "cpu_aarch64.md",
     ["cpu_aarch64_tessera_spmm"], ["cpu_aarch64_torch_spmm"]),
    ("GAT attention, both passes", "attention_gat_step", "fp32", "PyG", "Arm, 1-2 threads", "cpu_aarch64.md",
     ["cpu_aarch64_tessera_attention"], ["cpu_aarch64_torch_attention"]),
    ("training epoch of GCN", "epoch_gcn", "fp32", "PyG", "Arm, 1-2 threads", "cpu_aarch64.md",
     ["cpu_aarch64_tessera_epoch"], ["cpu_aarch64_pyg_epoch"]),
    ("training epoch of GAT", "epoch_gat", "fp32", "PyG", "Arm, 1-2 threads", "cpu_aarch64.md",
     ["cpu_aarch64_tessera_epoch"], ["cpu_aarch64_pyg_epoch"]),
]


def read(names):
    records = []
    for name in names:
        records += json.loads((RESULTS / f"{name}.json").read_text())["records"]
    return records


def commits(names):
    """Of the records; where one has none, its page says it."""
    found = {json.loads((RESULTS / f"{name}.json").read_text())["commit"] for name in names}
    return sorted(f"`{commit}`" if commit else "on the page" for commit in found)


def fastest(records):
    """The shortest median of each case."""
    best = {}
    for record in records:
        case = (record["graph"], record["features"], record["threads"])
        best[case] = min(record["median_us"], best.get(case, math.inf))
    return best


def compare(what, op, precision, against, machine, page, ours, others):
    own = [record for record in read(ours) if record["op"] == op and record["precision"] == precision]
    if others:
        rival = [record for record in read(others) if record["op"] == op and record["precision"] == precision]
    else:
        rival = [record for record in own if record.get("baseline")]
        own = [record for record in own if not record.get("baseline")]
    own, rival = fastest(own), fastest(rival)
    ratios = {case: rival[case] / own[case] for case in own if case in rival}
    if not ratios:
        sys.exit(f"readme_results.py: error: nothing to compare for {what}")
    return Row(what, against, machine, page, commits(ours),
               {case_name(*case, on_cpu=machine != "H200"): ratio for case, ratio in ratios.items()})


def case_name(graph, features, threads, on_cpu):
    return f"{graph}, {features} features" + (f", {threads} thread{'s' * (threads > 1)}" if on_cpu else "")


def fused_attention(direction, what):
    """Of every case the fastest right public kernel."""
    document = json.loads((RESULTS / "attention_peers.json").read_text())
    own = attention_peers.own_times(document["records"])
    ratios, found = {}, set()
    for row in document["peers"]:
        case = attention_peers.peer_key(row)
        form, *_, where, _ = case
        if where == direction and not form.startswith("layer"):
            time, _, commit = own[case]
            ratios[attention_peers.says(case)] = float(row["kernel_us"]) / time
            found.add(f"`{commit}`")
    return Row(what, "fastest public kernel", "H200", "attention_peers.md", sorted(found), ratios)


def pyg_epochs(graph, what):
    """Models of two layers, plain PyG and after `tessera.accelerate`."""
    cells = [cell for cell in json.loads((RESULTS / "python_cuda.json").read_text())
             if cell["graph"] == graph and cell["mode"] == "eager"]
    return Row(what, "PyG", "H200", "python.md", sorted({f"`{cell['commit']}`" for cell in cells}),
               {f"{cell['model']}, {cell['precision']}": cell["pyg"]["median_ms"] / cell["tessera"]["median_ms"]
                for cell in cells if cell["pyg"].get("median_ms")})


def mean(ratios):
    return math.exp(sum(map(math.log, ratios.values())) / len(ratios))


def table(rows):
    lines = ["| what | against | on | cases | mean speed-up | worst case | best case | commit |",
             "|---|---|---|---:|---:|---|---|---|"]
    for row in rows:
        worst, best = min(row.ratios, key=row.ratios.get), max(row.ratios, key=row.ratios.get)
        lines.append(f"| {row.what} | {row.against} | [{row.machine}](docs/results/{row.page}) | {len(row.ratios)} "
                     f"| **{mean(row.ratios):.1f} x** | {row.ratios[worst]:.2f} x ({worst}) "
                     f"| {row.ratios[best]:.1f} x | {', '.join(row.commits)} |")
    return "\n".join(lines)


def svg(rows):
    """A bar for every mean and a line from the worst to the best case, over a logarithmic axis."""
    left, right, top, step = 330, 860, 46, 34
    low, high = 0.5, 150.0
    at = lambda ratio: left + (right - left) * math.log(ratio / low) / math.log(high / low)
    height = top + step * len(rows) + 50
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="900" height="{height}" viewBox="0 0 900 {height}" '
           'font-family="DejaVu Sans, Verdana, Arial, sans-serif" font-size="12">',
           f'<rect width="900" height="{height}" fill="#ffffff"/>',
           '<text x="20" y="26" font-size="14" fill="#222222">How many times as fast as others: mean, and worst to '
           'best case</text>']
    bottom = top + step * len(rows)
    for tick in [0.5, 1, 2, 5, 10, 20, 50, 100]:
        colour = "#222222" if tick == 1 else "#dddddd"
        out.append(f'<line x1="{at(tick):.1f}" y1="{top}" x2="{at(tick):.1f}" y2="{bottom}" stroke="{colour}"/>')
        out.append(f'<text x="{at(tick):.1f}" y="{bottom + 18}" text-anchor="middle" fill="#777777">{tick:g} x</text>')
    for i, row in enumerate(rows):
        y = top + step * i + step / 2
        value = mean(row.ratios)
        colour = "#1f62ad" if row.machine == "H200" else "#d95f02"
        out.append(f'<text x="{left - 12}" y="{y - 2:.0f}" text-anchor="end" fill="#222222">'
                   f'{html.escape(row.what)}</text>')
        out.append(f'<text x="{left - 12}" y="{y + 11:.0f}" text-anchor="end" font-size="10" fill="#777777">'
                   f'against {html.escape(row.against)}, {html.escape(row.machine)}</text>')
        out.append(f'<rect x="{at(1):.1f}" y="{y - 8:.0f}" width="{at(value) - at(1):.1f}" height="16" '
                   f'fill="{colour}" fill-opacity="0.75"/>')
        ends = at(min(row.ratios.values())), at(max(row.ratios.values()))
        out.append(f'<path d="M{ends[0]:.1f} {y - 5:.0f}v10M{ends[0]:.1f} {y:.0f}H{ends[1]:.1f}m0 -5v10" '
                   'stroke="#222222" fill="none"/>')
        out.append(f'<text x="{ends[1] + 8:.1f}" y="{y + 4:.0f}" fill="#222222">{value:.1f} x</text>')
    out.append(f'<text x="20" y="{height - 10}" font-size="10" fill="#777777">Left of 1 x Tessera is slower. Blue: '
               'one NVIDIA H200; orange: CPUs. Medians of checked runs, from the records in docs/results.</text>')
    return "\n".join(out) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing, fail where something is not up to date")
    check = parser.parse_args().check
    compared = [compare(*comparison) for comparison in COMPARISONS]
    on_gpu = [row for row in compared if row.machine == "H200"]
    rows = on_gpu + [
        fused_attention("fwd", "attention, all forms, forward"),
        fused_attention("fwd+bwd", "attention, all forms, both passes"),
        pyg_epochs("arxiv", "epoch in Python, 169 k vertices"),
        pyg_epochs("reddit", "epoch in Python, 233 k vertices, 115 M edges"),
    ] + [row for row in compared if row not in on_gpu]
    readme, picture = ROOT / "README.md", RESULTS / "summary.svg"
    before, rest = readme.read_text().split(BEGIN)
    after = rest.split(END)[1]
    wanted = {readme: f"{before}{BEGIN}\n{table(rows)}\n{END}{after}", picture: svg(rows)}
    for path, text in wanted.items():
        if not check:
            path.write_text(text)
        elif not path.exists() or path.read_text() != text:
            sys.exit(f"readme_results.py: error: {path.relative_to(ROOT)} is not what the records say; run "
                     "tools/readme_results.py")


if __name__ == "__main__":
    main()
