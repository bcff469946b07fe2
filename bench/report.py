#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets our records beside those of other kernels on the same machine, as a table in Markdown.

    python3 bench/report.py bench.json --peers peers.csv --op spmm -o docs/results/spmm.md

The records come from `tessera bench --json`; cuSPARSE's times from the same run (`--baseline`) where it has
any, else its deterministic ones from the table. The CSV has the columns op, graph, features, peer, dtype,
kernel_us, variant; where it has several variants of a peer for a case, the fastest counts. Speed is the
peer's time over ours: above 1 we are faster. A case that runs at 80 % of its own floor or better counts as
met, whatever the ratio, and has a star. Nothing but the standard library is needed.
"""
import argparse
import collections
import csv
import json
import math
import sys

# Generated graphs have other names there; real ones the same.
TWINS = {
    "amazon-sbm": "amazon",
    "blog-rmat17": "rmat17",
    "mol1.7M": "molecules",
    "products-rmat21": "products",
    "proteins-sbm": "proteins",
    "reddit-sbm": "reddit",
}
# What a precision of ours is held against, the easier group first; the table shows the last.
RIVALS = {
    "fp32": {"public fp32": {"fp32"}, "public fp32 or tf32": {"fp32", "tf32"}},
    "bf16": {"public 16-bit": {"fp16", "bf16"},
             "public of any precision": {"fp32", "tf32", "fp16", "bf16"}},
}
RIVALS["fp16"] = RIVALS["bf16"]
ANY_PRECISION = {"public of any precision": {"fp32", "tf32", "fp16", "bf16"}}
# cuSPARSE's own precision beside ours. Only ALG3 of CSR is said to give the same bits twice.
CUSPARSE = "cuSPARSE"
CUSPARSE_DTYPES = {"fp32": {"fp32"}, "bf16": {"bf16", "fp16"}, "fp16": {"bf16", "fp16"}}
NOT_DETERMINISTIC = {"cusparse_spmm_alg1", "cusparse_spmm_alg2"}

Best = collections.namedtuple("Best", "name us")


def fail(problem):
    sys.exit(f"report.py: error: {problem}")


def read_records(paths, op):
    """The fastest record of each (graph, features, precision), ours and baselines apart."""
    best, baselines, header = {}, {}, {}
    for path in paths:
        try:
            with open(path, encoding="utf-8") as file:
                content = json.load(file)
            records = content["records"]
        except (OSError, ValueError, KeyError, TypeError) as problem:
            fail(f"{path}: not a file of tessera bench ({problem})")
        header = header or content
        for record in records:
            if record["op"] != op:
                continue
            key = (record["graph"], record["features"], record["precision"])
            found = baselines if record.get("baseline") else best
            if key not in found or record["median_us"] < found[key]["median_us"]:
                found[key] = record
    if not best:
        fail(f"no record of {op} in {', '.join(paths)}")
    return best, baselines, header


def read_peers(path, op):
    """All measurements of an op: (graph, features) -> list of rows."""
    peers = collections.defaultdict(list)
    try:
        with open(path, encoding="utf-8", newline="") as file:
            for row in csv.DictReader(file):
                if row["op"] == op:
                    graph = TWINS.get(row["graph"], row["graph"])
                    peers[graph, int(row["features"])].append(
                        (row["peer"], row["dtype"], row["variant"], float(row["kernel_us"])))
    except (OSError, KeyError, ValueError) as problem:
        fail(f"{path}: not a table of peers ({problem!r})")
    return peers


def fastest(rows, accepts):
    rows = [row for row in rows if accepts(*row[:3])]
    if not rows:
        return None
    peer, dtype, _, us = min(rows, key=lambda row: row[3])
    return Best(f"{peer} {dtype}", us)


def best_public(rows, dtypes):
    return fastest(rows, lambda peer, dtype, variant: dtype in dtypes)


def best_beside(rows, precision, baseline):
    """From the same run where it was measured there, else cuSPARSE's from the table."""
    if baseline:
        return Best(baseline["kernel"].rsplit("/", 1)[-1], baseline["median_us"])
    return fastest(rows, lambda peer, dtype, variant: peer == "cusparse" and
                   dtype in CUSPARSE_DTYPES[precision] and variant not in NOT_DETERMINISTIC)


class Tally:
    """Ratios of one comparison."""

    def __init__(self, name):
        self.name = name
        self.ratios = []
        self.excused = set()

    def add(self, case, ratio, near_floor):
        self.ratios.append((ratio, case))
        if near_floor:
            self.excused.add(case)

    def line(self):
        mean = math.exp(sum(math.log(ratio) for ratio, _ in self.ratios) / len(self.ratios))
        worst, where = min(self.ratios)
        counted = [pair for pair in self.ratios if pair[1] not in self.excused]
        worst_counted = f"{min(counted)[0]:.2f} ({min(counted)[1]})" if counted else "none"
        return (f"| {self.name} | {len(self.ratios)} | {mean:.2f} | {worst:.2f} ({where}) | "
                f"{worst_counted} | {sum(ratio < 0.97 for ratio, _ in counted)} |")


def microseconds(us):
    return f"{us:.1f}" if us < 1000 else f"{us:.0f}"


def ratio_text(ratio, near_floor):
    return f"{ratio:.2f}{'*' if near_floor else ''}"


def own_fp32(records, graph, features, precision):
    """What a 16-bit case must not be slower than."""
    record = records.get((graph, features, "fp32")) if precision != "fp32" else None
    return Best("fp32", record["median_us"]) if record else None


def table_of(records, baselines, peers, precision, arguments):
    groups = ANY_PRECISION if arguments.any_precision else RIVALS[precision]
    shown, beside = list(groups)[-1], arguments.beside
    lines = [f"## {arguments.op}, {precision}", "",
             f"| graph | features | ours us | chain us | kernel | of floor | best {shown} | us | speed | "
             f"{beside} | us | speed |",
             "|---|---:|---:|---:|---|---:|---|---:|---:|---|---:|---:|"]
    tallies = {name: Tally(name) for name in [*(f"best {group}" for group in groups), beside, "our own fp32"]}
    for (graph, features, of_record), record in sorted(records.items()):
        if of_record != precision:
            continue
        ours = record["median_us"]
        share = record["floor_us"] / ours if record.get("floor_us") else 0
        near_floor = share >= 0.8
        rows = peers.get((graph, features), [])
        found = {f"best {group}": best_public(rows, dtypes) for group, dtypes in groups.items()}
        measured = baselines.get((graph, features, precision))
        found[beside] = best_beside(rows if beside == CUSPARSE else [], precision, measured)
        found["our own fp32"] = own_fp32(records, graph, features, precision)
        for name, best in found.items():
            if best:
                tallies[name].add(f"{graph}, {features}", best.us / ours, near_floor)
        cells = [graph, str(features), microseconds(ours),
                 microseconds(record["chain_us"]) if record.get("chain_us") else "",
                 record["kernel"].rsplit("/", 1)[-1], f"{100 * share:.0f} %"]
        for best in (found[f"best {shown}"], found[beside]):
            cells += [best.name, microseconds(best.us), ratio_text(best.us / ours, near_floor)] if best else [""] * 3
        lines.append("| " + " | ".join(cells) + " |")
    lines += ["", "| against | cases | geometric mean | worst | worst that is not near its floor | below 0.97 |",
              "|---|---:|---:|---|---|---:|"]
    lines += [tally.line() for tally in tallies.values() if tally.ratios]
    return lines + [""]


def report(arguments):
    records, baselines, header = read_records(arguments.records, arguments.op)
    peers = read_peers(arguments.peers, arguments.op)
    machine = header.get("machine", {})
    gpus = ", ".join(machine.get("gpus", [])) or machine.get("cpu", "unknown machine")
    earlier = sorted({(record["commit"], record["graph"]) for record in records.values() if record.get("commit", header.get("commit")) != header.get("commit")})
    others = "".join(f"; {graph} at commit {commit}" for commit, graph in earlier)
    lines = [f"# {arguments.op} beside other kernels", "",
             f"{gpus}; commit {header.get('commit') or 'unknown'}, {header.get('date', 'no date')}{others}. "
             "Median of 50 runs between two events, warm L2; speed is the other's time over ours. "
             "A star marks a case at 80 % of its floor or better, which counts as met.", ""]
    precisions = sorted({key[2] for key in records}, key=["fp32", "tf32", "bf16", "fp16"].index)
    for precision in precisions:
        lines += table_of(records, baselines, peers, precision, arguments)
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("records", nargs="+", help="files that tessera bench --json wrote")
    parser.add_argument("--peers", required=True, help="CSV of other kernels' times")
    parser.add_argument("--op", default="spmm", help="spmm or sddmm (default spmm)")
    parser.add_argument("--any-precision", action="store_true",
                        help="hold every precision against the best peer of any precision alone")
    parser.add_argument("--beside", default=CUSPARSE, metavar="NAME",
                        help="what was measured with tessera bench --baseline (default cuSPARSE)")
    parser.add_argument("-o", "--output", help="file to write instead of stdout")
    arguments = parser.parse_args()
    text = report(arguments)
    if arguments.output:
        with open(arguments.output, "w", encoding="utf-8") as file:
            file.write(text)
    else:
        print(text)


if __name__ == "__main__":
    main()
