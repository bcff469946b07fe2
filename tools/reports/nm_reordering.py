# SPDX-License-Identifier: Apache-2.0
"""SOGRE's Tables 3, 7 and 8: which matrices can be ordered to fit which N:M pattern, and what the orders cost.

    tools/report.py nm_reordering MATRICES --data GRAPHS
    tools/report.py nm_reordering --quick

MATRICES is a folder of matrices (.mtx, .mtx.gz, .npz, .tsr); without one a few random graphs are ordered. Needs no GPU.
Parts: orders (Tables 7 and 8), windows (what an order inside of windows costs instead), graphs (Table 3, the largest
pattern that each graph of --data conforms to). --jobs orders are looked for at once, each on one thread.
"""
import concurrent.futures
import json
import pathlib
import statistics
import sys

from . import common

PATTERNS = ["1:2:4", "1:2:8", "4:2:8", "8:2:8", "16:2:8", "32:2:8", "1:2:16", "4:2:16", "8:2:16", "16:2:16", "32:2:16"]
CLASSES = [("small", 0, 1_000), ("medium", 1_000, 10_000), ("large", 10_000, 1 << 31)]
SUFFIXES = (".mtx", ".mtx.gz", ".npz", ".tsr")
STAND_INS = ["molecules?graphs=20&seed=1", "rmat?scale=8&edges=600&seed=1", "erdos_renyi?vertices=1200&edges=2400&seed=1"]
GRAPHS = ["cora", "citeseer", "facebook-page-page", "amazon-computers", "coauthor-cs", "corafull-structure",
          "coauthor-physics"]
AS_PATTERN = ["--duplicates", "first", "--nonfinite", "allow"]
# A sparse product of 32 columns takes as long as 1.38 dense ones of 16, measured on an H200 (mma.sp against mma.sync, bf16).
SPARSE_STEP = 1.38
WORK_PATTERNS = ["1:2:4", "16:2:16"]
HEIGHTS = [16, 32, 64, 128, 256]


def add_options(parser):
    parser.add_argument("matrices", nargs="?", type=pathlib.Path, metavar="MATRICES")
    parser.add_argument("--jobs", type=int, default=1, help="default: 1")


def matrices(run):
    folder = run.options.matrices
    if folder is None:
        files = [run.folder / f"matrix_{number}.tsr" for number in range(len(STAND_INS))]
        for source, file in zip(STAND_INS, files):
            if not file.exists():
                run.command([run.program, "generate", source, "-o", file])
        return files
    found = sorted(path for path in folder.iterdir() if path.name.endswith(SUFFIXES)) if folder.is_dir() else []
    if not found:
        raise common.Missing(f"{folder} has no matrices ({', '.join(SUFFIXES)})")
    return found


def side_by_side(run, function, tasks):
    with concurrent.futures.ThreadPoolExecutor(run.options.jobs) as pool:
        return list(pool.map(lambda task: function(run, *task), tasks))


def order(run, path, pattern, algorithm, pad=False):
    words = ["reorder", path, "--method", "nm", "--pattern", pattern, "--algorithm", algorithm, "--ignore-loops",
             "--threads", 1, *AS_PATTERN, *(["--pad"] if pad else [])]
    repeats = 3 if (pattern, algorithm, pad) == ("1:2:4", "group", False) else 1
    best = min((run.call(*words) for _ in range(repeats)), key=lambda one: one["nm"]["order_seconds"])
    return {"matrix": best["name"], "rows": best["vertices"], **best["nm"], "reuse_before": best["before"]["window_reuse"],
            "reuse_after": best["after"]["window_reuse"]}


def measure_orders(run):
    tasks = [(path, pattern, "group") for path in matrices(run) for pattern in PATTERNS]
    tasks += [(path, "1:2:4", "paper") for path in matrices(run)]
    records = side_by_side(run, order, tasks)
    impossible = [(path, "1:2:4", "group", True) for (path, _, algorithm), one in zip(tasks, records)
                  if algorithm == "paper" and not possible(one)]
    return {"orders": records, "padded": side_by_side(run, order, impossible)}


def windows_of(run, path):
    """What windows of 16 rows have to do: condensed, with columns in a 2:4 order, and in symmetric orders."""
    both_ways = run.folder / f"{common.name_of(path)}_both_ways.tsr"
    run.command([run.program, "convert", path, *AS_PATTERN, "--symmetrise", "--self-loops", "remove", "-o", both_ways])
    report = run.call("tiles", both_ways)
    orders = {pattern: run.call("reorder", both_ways, "--method", "nm", "--pattern", pattern)["nm"]
              for pattern in WORK_PATTERNS}
    arranging = {}
    if run.call("info", both_ways)["vertices"] >= CLASSES[-1][1]:
        bench = run.folder / f"{common.name_of(path)}_bench.json"
        run.command([run.program, "bench", "translate_quads", "--features", ",".join(map(str, HEIGHTS)), "--threads", 1,
                     "--quick", "--quiet", "--data", both_ways, "--json", bench])
        arranging = {str(one["features"]): one["min_us"] for one in json.loads(bench.read_text())["records"]}
    both_ways.unlink()
    condensed = next(one for one in report["heights"] if one["height"] == 16)
    return {"matrix": common.name_of(path), "quads": report["quads"], "edges": report["edges"],
            "condensed": {"distinct_columns": condensed["distinct_columns"]}, "arranging_us": arranging,
            "orders": {pattern: nm["work"] for pattern, nm in orders.items() if nm["conforms"]}}


def measure_windows(run):
    return side_by_side(run, windows_of, [(path,) for path in matrices(run)])


def measure_graphs(run):
    """The paper's search: M doubled from 4 on, then V from 1 on, while the graph conforms."""
    try:
        paths = common.real_graphs(run.options, GRAPHS)
    except common.Missing as problem:
        print(f"left out: {problem}", file=sys.stderr)
        return None
    found = [run.call("reorder", path, "--method", "nm", "--pattern", "best", "--search", "paper", "--ignore-loops")
             for path in paths]
    return [{"graph": one["name"], "vertices": one["vertices"], "edges": one["edges"], "pattern": one["nm"]["pattern"],
             "seconds": one["nm"]["order_seconds"]} for one in found]


PARTS = {"orders": measure_orders, "windows": measure_windows, "graphs": measure_graphs}


def size_class(record):
    return next(name for name, low, high in CLASSES if low <= record["rows"] < high)


def possible(record):
    return "obstacle" not in record


def of(records, pattern, algorithm, name=None):
    return [one for one in records if (one["pattern"], one["algorithm"]) == (pattern, algorithm)
            and name in (None, size_class(one))]


def conforming_rows(records):
    for pattern, algorithm in [*((pattern, "group") for pattern in PATTERNS), ("1:2:4", "paper")]:
        cells = []
        if not of(records, pattern, algorithm):
            continue
        for name, _, _ in CLASSES:
            group = of(records, pattern, algorithm, name)
            conform = sum(one["conforms"] for one in group)
            share = f", {100 * conform / len(group):.1f} %" if group else ""
            cells += [f"{conform} of {len(group)}{share}", sum(map(possible, group))]
        yield [f"{pattern}, {algorithm}", *cells]


def quality_rows(records):
    for algorithm, name in [(algorithm, name) for algorithm in ("group", "paper") for name, _, _ in CLASSES]:
        group = of(records, "1:2:4", algorithm, name)
        if not group:
            continue
        before, after = ([one[side]["vectors"] for one in group] for side in ("before", "after"))
        times = [1e3 * one["order_seconds"] for one in group if possible(one)] or [0]
        yield [f"{algorithm}, {name}", f"{statistics.mean(before):,.1f} ({statistics.median(before):,.0f})",
               f"{statistics.mean(after):,.2f} ({statistics.median(after):,.0f})",
               f"{100 * statistics.mean(one['improvement'] for one in group):.2f} %",
               f"{statistics.mean(one['iterations'] for one in group):,.1f}",
               f"{statistics.mean(times):.2f} ms ({max(times):.1f} ms)"]


def reuse_rows(records):
    for pattern in PATTERNS:
        group = [one for one in of(records, pattern, "group") if one["conforms"] and one["reuse_before"] > 0]
        if group:
            yield [pattern, *(f"{common.geometric_mean(one[key] for one in group):.2f}"
                              for key in ("reuse_before", "reuse_after")),
                   f"{sum(one['reuse_after'] > one['reuse_before'] for one in group)} of {len(group)}"]


def window_rows(windows):
    for i, at_height in enumerate(windows[0]["quads"] if windows else []):
        places = [one["quads"][i]["places_per_column"] for one in windows if one["quads"][i]["quads"] > 0]
        height = str(at_height["height"])
        rates = [one["edges"] / one["arranging_us"][height] for one in windows if height in one["arranging_us"]]
        yield [height, f"{common.geometric_mean(places):.4f}" if places else "–", f"{max(places, default=0):.2f}",
               *([f"{common.geometric_mean(rates):.1f}", f"{min(rates):.1f}"] if rates else ["–", "–"])]


def work_rows(windows):
    """Gathers and work of each way, of those of condensed tiles: geometric means, and how many have less."""
    ways = {"2:4 windows": [], **{pattern: [] for pattern in WORK_PATTERNS}}
    for one in windows:
        columns = one["condensed"]["distinct_columns"]
        quads = next(at for at in one["quads"] if at["height"] == 16)["quads"]
        if not columns:
            continue
        ways["2:4 windows"].append((4 * quads / columns, SPARSE_STEP * quads / 8 / (columns / 16)))
        for pattern, work in one["orders"].items():
            ways[pattern].append((work["gathered_rows"] / columns, SPARSE_STEP * work["quads"] / 8 / (columns / 16)))
    for way, ratios in ways.items():
        if ratios:
            yield [way, len(ratios), *(text for k in range(2) for text in
                                       (f"{common.geometric_mean(pair[k] for pair in ratios):.2f}",
                                        sum(pair[k] < 1 for pair in ratios)))]


def lines(record):
    parts = record["parts"]
    records = parts["orders"]["orders"]
    first = {algorithm: of(records, "1:2:4", algorithm) for algorithm in ("group", "paper")}
    conform = {algorithm: sum(one["conforms"] for one in group) for algorithm, group in first.items()}
    count = len(first["group"])
    yield "# Orders that fit sparse tensor cores (SOGRE)\n"
    yield "Question: how many matrices can be renumbered, without loss, so that every four entries of a row hold at most two?\n"
    yield (f"{conform['group']} of {count} fit 1:2:4 by `--algorithm group`, {conform['paper']} by the paper's two stages; "
           f"{sum(map(possible, first['group']))} can fit it at all.\n")
    yield common.where(record)
    yield (f"{count} matrices, one thread. Small ones have less than 1,000 rows, medium ones less than 10,000. Edges count in\n"
           "both directions, self loops do not. A matrix is *possible* unless its longest row or the number of its entries\n"
           "forbids the pattern ([reordering](../reorder.md)).\n")
    yield "## How many conform (Tables 7 and 8)\n"
    head = [text for name, _, _ in CLASSES for text in (f"{name}: conform", "possible")]
    yield from common.table(["pattern, algorithm", *head], conforming_rows(records))
    yield "Vectors that violate 1:2:4, mean (median), and the time of possible orders, mean (worst):\n"
    yield from common.table(["1:2:4", "before", "after", "improvement", "iterations", "time"], quality_rows(records))
    if parts["orders"]["padded"]:
        yield "Impossible at 1:2:4, and with the fewest empty vertices that the longest row needs:\n"
        yield from common.table(["matrix", "conforms", "rows", "empty vertices added"],
                                [[one["matrix"], "yes" if one["conforms"] else "no", f"{one['rows']:,}", f"{one['padding']:,}"]
                                 for one in parts["orders"]["padded"]], 2)
    if parts.get("graphs"):
        yield "## The largest pattern of graphs (Table 3)\n"
        yield from common.table(["graph", "vertices", "edges", "pattern", "its order"],
                                [[one["graph"], f"{one['vertices']:,}", f"{one['edges']:,}", one["pattern"],
                                  f"{one['seconds']:.2g} s"] for one in parts["graphs"]])
    yield "## What conforming costs\n"
    yield "Edges for each row of features that a window of 16 rows gathers, geometric means over conforming matrices:\n"
    yield from common.table(["pattern", "before", "after", "matrices that gather less"], reuse_rows(records))
    if parts.get("windows"):
        yield "## Instead: an order inside of windows\n"
        yield ("The columns of each window in an order in which every row is 2:4 ([formats](../formats.md)): places for each\n"
               "column, and how fast one thread makes it on large matrices, translation included.\n")
        yield from common.table(["rows of a window", "places per column, mean", "worst", "million edges per second, mean",
                                 "least"], window_rows(parts["windows"]), 0)
        yield ("Rows of features that windows of 16 rows gather, and work of tensor cores, relative to tiles of distinct columns\n"
               "in the order of the data (geometric means; a sparse product of 32 columns counts as "
               f"{SPARSE_STEP} dense ones of 16):\n")
        yield from common.table(["way", "matrices", "gathers", "less in", "work", "less in"], work_rows(parts["windows"]))
    yield from common.again("nm_reordering MATRICES --data GRAPHS", "The record, nm_reordering.json.gz, has every matrix.")


def pages(record):
    return {"nm_reordering.md": common.joined(lines(record))}
