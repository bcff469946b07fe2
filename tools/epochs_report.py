#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets plans of spmm that will be used often, which may order rows, beside default plans and public kernels.

  tools/epochs_report.py bench.json [...] --results docs/results

reads what `tessera bench spmm --epochs N --json` wrote, default plans of the same graphs from cuda_spmm_default.json and
public kernels from hygnn_goals.json of that folder, keeps the records in cuda_spmm_epochs.json and writes
cuda_spmm_epochs.md. Without files the page is written again from what was kept.
"""
import argparse
import json
import math
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import hygnn_report

WIDTH = 128
geometric_mean = hygnn_report.geometric_mean


def times_of(record, default):
    """Of both in a chain where both have one: a launch takes a large part of short runs."""
    how = "chain_us" if record.get("chain_us") and default.get("chain_us") else "median_us"
    return record[how], default[how]


def order_of(record):
    """Seconds that the order of a plan took, and how it was found; nothing where none was looked for."""
    found = re.search(r"([0-9.e+-]+) s went into an order of rows \(([^)]*)\)", record.get("plan", ""))
    return (float(found[1]), found[2]) if found else (None, "")


def takes_order(record):
    return "/ordered" in record["kernel"]


def break_even(record, default):
    """Runs that make up for the order: none where it is not taken, infinitely many where nothing is gained by it."""
    seconds, _ = order_of(record)
    if seconds is None or not takes_order(record):
        return None
    us, default_us = times_of(record, default)
    saved_us = default_us - us
    return math.ceil(seconds * 1e6 / saved_us) if saved_us > 0 else math.inf


def runs_text(runs):
    if runs is None:
        return ""
    return "never" if math.isinf(runs) else f"{runs:,}"


def kept(files, folder):
    """The records of these files, or those that were kept where there is none."""
    out = folder / "cuda_spmm_epochs.json"
    if files:
        contents = [json.loads(pathlib.Path(file).read_text(encoding="utf-8")) for file in files]
        whole = {key: contents[0].get(key) for key in ("commit", "date", "machine", "epochs")}
        whole["records"] = [{"commit": content["commit"], **record} for content in contents for record in content["records"] if record["features"] == WIDTH]
        out.write_text(json.dumps(whole, indent=0) + "\n", encoding="utf-8")
    return json.loads(out.read_text(encoding="utf-8"))


def rows_of(content, default, others, precision):
    """(record, default record, time of the best public kernel), each of which the last two may miss."""
    defaults = {one["graph"]: one for one in default["records"] if (one["op"], one["precision"], one["features"]) == ("spmm", precision, WIDTH)}
    public = {one["graph"]: one["us"] for one in others if (one["op"], one["kind"]) == ("spmm", precision)}
    return [(one, defaults.get(one["graph"]), public.get(one["graph"]))
            for one in sorted(content["records"], key=lambda one: one["graph"]) if (one["op"], one["precision"]) == ("spmm", precision)]


def means(rows):
    """Geometric means over the graphs that have all three: of plans and of default plans over the best public kernel, and how many."""
    whole = [row for row in rows if row[1] and row[2]]
    if not whole:
        return None
    return (geometric_mean([us / record["median_us"] for record, _, us in whole]), geometric_mean([us / default["median_us"] for _, default, us in whole]), len(whole))


def table_of(rows, precision):
    lines = [f"## {precision}", "", "| graph | default plan us | chain us | this plan us | chain us | kernel | gain | order s | found by | runs that make up for it | best public us | speed |",
             "|---|---:|---:|---:|---:|---|---:|---:|---|---:|---:|---:|"]
    for record, default, public in rows:
        number = lambda value: "" if not value else f"{value:.1f}" if value < 1000 else f"{value:.0f}"
        seconds, method = order_of(record)
        us, default_us = times_of(record, default) if default else (0, 0)
        lines.append("| " + " | ".join([
            record["graph"], number(default and default["median_us"]), number(default and default.get("chain_us")), number(record["median_us"]), number(record.get("chain_us")),
            record["kernel"].rsplit("/", 1)[-1], f"{default_us / us:.2f}" if default else "", "" if seconds is None else f"{seconds:.2g}", method,
            runs_text(break_even(record, default)) if default else "", number(public), f"{public / record['median_us']:.2f}" if public else ""]) + " |")
    found = means(rows)
    if found:
        lines += ["", f"Against the best public kernel, geometric mean over {found[2]} graphs: {found[0]:.2f}, by default plans {found[1]:.2f}."]
    return lines + [""]


def page(content, default, others):
    commits = sorted({one.get("commit", default["commit"]) for one in default["records"]})
    lines = ["# Sums by plans that will be used often", "",
             f"Made by `tools/epochs_report.py`; NVIDIA H200, {WIDTH} features, commit {content['commit']}, {content['date']}; default plans of {', '.join(commits)} "
             "([beside public kernels](cuda_spmm_default.md)). `tessera bench spmm --epochs "
             f"{content['epochs']}`: a plan for so many runs may look for an order of rows ([ops](../ops.md#kernels-and-why-one-was-chosen)); features and results stay where they are, and "
             "nothing moves in a run. The order is found once, on the host, before the first run: its seconds are in no time here, as the preparation of public kernels "
             "is in none of theirs; the runs that make up for it are in a column of their own. The gain is by times in a chain where both have one.", ""]
    for precision in ("fp32", "bf16"):
        rows = rows_of(content, default, others, precision)
        lines += table_of(rows, precision) if rows else []
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="*", help="what tessera bench spmm --epochs N --json wrote")
    parser.add_argument("--results", default="docs/results", help="the folder with the records")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.results)
    content = kept(arguments.files, folder)
    default = json.loads((folder / "cuda_spmm_default.json").read_text(encoding="utf-8"))
    others = json.loads((folder / "hygnn_goals.json").read_text(encoding="utf-8"))["others"]
    (folder / "cuda_spmm_epochs.md").write_text(page(content, default, others), encoding="utf-8")


if __name__ == "__main__":
    main()
