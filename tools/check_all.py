#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs `tessera check`, all kernels and precisions, on many graphs and writes a table.

    tools/check_all.py --data FOLDER --device cpu --out FILE.md

--data may be given several times: a folder (all its .npz, .mtx, .mtx.gz and .tsr files, at any depth), a file, or anything
else that `tessera` takes, such as twin:cora. --twins adds the generated twins. The same records go to FILE.json.

So that hundreds of graphs take minutes, the reference computes rows with about --sample edges, spread over the graph, and as
many of hubs; of a graph with more than --max-edges edges the kernels see blocks of 256 neighbouring rows with about that many.
Small files are checked at all widths of --features, larger ones and generated graphs at one each, in turn, so that every
kernel sees every width on many of them. Several graphs are checked at once, each with all threads. --seconds bounds the whole:
what was not begun by then is listed. --records FILE keeps what was found graph by graph; a later run with the same file goes
on from there.

Exit code 1 where a check failed, a graph could not be checked, or a problem was declined by every kernel of an op for another
reason than that a precision cannot hold the graph's weights.
"""
import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ENDINGS = (".npz", ".mtx", ".mtx.gz", ".tsr")
TWINS = ("cora", "pubmed", "molecules", "amazon", "rmat17", "proteins", "reddit", "products", "dbpedia")
WEIGHTS_DO_NOT_FIT = re.compile(r"\w+ ends at .*, and the largest weight of the graph is ")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", action="append", default=[], metavar="FOLDER|SOURCE")
    parser.add_argument("--twins", default="", metavar="LIST", help="names with commas between them, or 'all'")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--out", required=True, metavar="FILE.md")
    parser.add_argument("--tessera", default="build/bin/tessera", help="the program (default %(default)s)")
    parser.add_argument("--features", default="1,33,64", help="widths (default %(default)s)")
    parser.add_argument("--sample", type=int, default=1 << 12, metavar="EDGES")
    parser.add_argument("--max-edges", type=int, default=1 << 18, metavar="EDGES")
    parser.add_argument("--all-widths", type=int, default=1 << 16, metavar="BYTES",
                        help="files up to this size are checked at all widths (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="graphs at once (default: one per core)")
    parser.add_argument("--threads", type=int, default=0, help="of each check (default: one per core)")
    parser.add_argument("--patience", type=int, default=300, metavar="SECONDS",
                        help="a check that takes longer counts as an error (default %(default)s)")
    parser.add_argument("--records", metavar="FILE", help="goes on from what this file has, and adds to it")
    parser.add_argument("--seconds", type=float, default=float("inf"), help="begin nothing after this time")
    return parser.parse_args()


def sources(options):
    """What to check, as `tessera` names it: the smallest files first, so that a short run sees many."""
    found = []
    for given in options.data:
        folder = pathlib.Path(given)
        if folder.is_dir():
            files = [path for path in folder.rglob("*") if path.name.endswith(ENDINGS)]
            found += sorted(files, key=lambda path: (path.stat().st_size, str(path)))
        else:
            found.append(given)
    names = TWINS if options.twins == "all" else [name for name in options.twins.split(",") if name]
    return [str(source) for source in found] + [f"twin:{name}" for name in names]


def named(found):
    """Names for the table by source: without the ending of a file, where that is nobody else's name."""
    names = {}
    for source in found:
        name = pathlib.PurePath(source).name
        for ending in sorted(ENDINGS, key=len, reverse=True):
            name = name.removesuffix(ending)
        names[source] = pathlib.PurePath(source).name if name in names.values() else name
    return names


def widths_of(source, number, options):
    """The widths that a graph is checked at, as `tessera` takes them."""
    path = pathlib.Path(source)
    if path.is_file() and path.stat().st_size <= options.all_widths:
        return options.features
    widths = options.features.split(",")
    return widths[number % len(widths)]


def check(source, name, widths, options, deadline):
    """The record of one graph: what `tessera check` said, or why it said nothing."""
    if time.monotonic() > deadline:
        return {"source": name, "skipped": "out of time"}
    begin = time.monotonic()
    command = [options.tessera, "check", "--data", source, "--device", options.device, "--features", widths,
               "--sample", str(options.sample), "--max-edges", str(options.max_edges), "--json", "-"]
    if str(source).endswith((".mtx", ".mtx.gz")):
        command += ["--duplicates", "sum"]
    if options.threads:
        command += ["--threads", str(options.threads)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=options.patience)
    except subprocess.TimeoutExpired:
        return {"source": name, "error": f"not done after {options.patience} s"}
    record = {"source": name, "seconds": round(time.monotonic() - begin, 1)}
    if done.returncode not in (0, 7):
        lines = done.stderr.strip().splitlines()
        return record | {"error": lines[-1] if lines else f"exit code {done.returncode}"}
    said = json.loads(done.stdout)
    return record | {key: said[key] for key in said if key not in ("verb", "passed")}


def reason_of(one):
    """Why a kernel declined, without its name and what other kernels there are."""
    return re.sub(r"^.*cannot run this: ", "", one.get("reason", "")).split(" (")[0].split("; kernels")[0]


def unexplained(record):
    """Problems of an op that no kernel took, except where a precision cannot hold the weights."""
    problems = collections.defaultdict(list)
    for one in record.get("checks", []):
        problems[one["op"], one["precision"], one["features"]].append(one)
    return [problem for problem, tries in problems.items()
            if all(one["verdict"] == "unsupported" for one in tries)
            and not all(WEIGHTS_DO_NOT_FIT.search(one.get("reason", "")) for one in tries)]


def verdict(record):
    if "skipped" in record:
        return record["skipped"]
    if "error" in record:
        return "ERROR: " + record["error"]
    failed = sum(one["verdict"] == "FAILED" for one in record["checks"])
    if failed:
        return f"{failed} FAILED"
    return "UNEXPLAINED DECLINE" if unexplained(record) else "ok"


def share(one):
    """How much of its bound an error took."""
    return one["max_error"] / one["bound"] if one["bound"] > 0 else 0.0


def row(cells):
    return "| " + " | ".join(str(cell) for cell in cells) + " |\n"


def by_op(records):
    groups = collections.defaultdict(list)
    for record in records:
        for one in record.get("checks", []):
            groups[one["op"], one["precision"]].append((one, record["source"]))
    text = row(["op", "precision", "compared", "declined", "failed", "most of the bound", "on"])
    text += row(["---", "---", "---:", "---:", "---:", "---:", "---"])
    for (op, precision), ones in groups.items():
        compared = [(one, source) for one, source in ones if one["verdict"] != "unsupported"]
        worst = max(compared, key=lambda pair: share(pair[0]), default=None)
        failed = sum(one["verdict"] == "FAILED" for one, _ in compared)
        text += row([op, precision, len(compared), len(ones) - len(compared), failed,
                     f"{share(worst[0]):.2f}" if worst else "", worst[1] if worst else ""])
    return text


def by_reason(records):
    graphs = collections.defaultdict(list)
    for record in records:
        for one in record.get("checks", []):
            if one["verdict"] == "unsupported":
                graphs[one["op"], re.sub(r"[-+]?\d[\d.e+-]*", "N", reason_of(one))].append(record["source"])
    text = row(["op", "why a kernel declined (numbers as N)", "cases", "graphs"])
    text += row(["---", "---", "---:", "---:"])
    for (op, reason), found in sorted(graphs.items()):
        text += row([op, reason, len(found), len(set(found))])
    return text if graphs else "No kernel declined anything.\n"


def by_graph(records):
    text = row(["graph", "rows", "edges", "compared", "declined", "most of the bound", "seconds", ""])
    text += row(["---", "---:", "---:", "---:", "---:", "---:", "---:", "---"])
    for record in sorted(records, key=lambda record: record["source"].lower()):
        checks = record.get("checks", [])
        compared = [one for one in checks if one["verdict"] != "unsupported"]
        worst = max((share(one) for one in compared), default=0)
        text += row([record["source"], record.get("vertices", record.get("rows", "")), record.get("edges", ""), len(compared),
                     len(checks) - len(compared), f"{worst:.2f}", record.get("seconds", ""), verdict(record)])
    return text


def report(records, options, seconds):
    compared = sum(one["verdict"] != "unsupported" for record in records for one in record.get("checks", []))
    good = sum(verdict(record) == "ok" for record in records)
    return (f"# Every kernel against the reference, {options.device}\n\n"
            f"`tools/check_all.py --device {options.device} --features {options.features} --sample {options.sample} "
            f"--max-edges {options.max_edges}`: {compared:,} comparisons on {len(records)} graphs in "
            f"{seconds / 60:.1f} minutes, {good} graphs without a failure or an unexplained decline. Files of up "
            f"to {options.all_widths:,} bytes are checked at all widths, other graphs at one each, in turn. Each "
            f"comparison is one kernel, precision and width on rows with about {options.sample:,} edges spread "
            f"over the graph, and as many of its hubs; graphs of more than {options.max_edges:,} edges are represented by "
            "blocks of 256 neighbouring rows. An error counts as a share of its bound ([ops.md](../ops.md)).\n\n"
            f"## By op\n\n{by_op(records)}\n## Declined\n\n{by_reason(records)}\n## By graph\n\n{by_graph(records)}")


def kept_records(options):
    if not options.records or not pathlib.Path(options.records).exists():
        return []
    return [json.loads(line) for line in pathlib.Path(options.records).read_text(encoding="utf-8").splitlines()]


def main():
    options = arguments()
    begin = time.monotonic()
    deadline = begin + options.seconds
    todo = named(sources(options))
    if not todo:
        sys.exit("check_all.py: nothing to check; name some graphs with --data or --twins")
    records = kept_records(options)
    done = {record["source"] for record in records}
    todo = [(source, name, widths_of(source, number, options))
            for number, (source, name) in enumerate(todo.items()) if name not in done]
    total = len(records) + len(todo)
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        for record in pool.map(lambda item: check(*item, options, deadline), todo):
            records.append(record)
            if options.records and "checks" in record:
                with open(options.records, "a", encoding="utf-8") as file:
                    file.write(json.dumps(record) + "\n")
            print(f"{len(records)}/{total} {record['source']}: {verdict(record)}", file=sys.stderr, flush=True)
    out = pathlib.Path(options.out)
    seconds = sum(record.get("seconds", 0) for record in records) / options.jobs
    out.write_text(report(records, options, seconds), encoding="utf-8")
    lines = ",\n".join(json.dumps(record) for record in summary(records))
    out.with_suffix(".json").write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0 if all(verdict(record) in ("ok", "out of time") for record in records) else 1


def summary(records):
    """What is kept: everything of what failed, of the rest what came nearest to its bound in each precision."""
    kept = []
    for record in records:
        worst = {}
        for one in record.get("checks", []):
            which = (one["op"], one["kernel"], one["precision"], one["features"])
            key = which if one["verdict"] == "FAILED" else one["precision"]
            if key not in worst or share(one) > share(worst[key]):
                worst[key] = one
        kept.append({key: value for key, value in record.items() if key != "checks"} | {"verdict": verdict(record), "worst": [
            [one[key] for key in ("op", "kernel", "precision", "features", "max_error", "verdict")]
            for one in worst.values() if one["verdict"] != "unsupported"]})
    return kept


if __name__ == "__main__":
    sys.exit(main())
