# SPDX-License-Identifier: Apache-2.0
"""Which matrices can be ordered to fit which V:N:M pattern, and what the orders cost: docs/results/nm_reordering.md and .json."""
import concurrent.futures
import json
import pathlib
import statistics
import subprocess
import tempfile

GROUP = ["1:2:4", "1:2:8", "4:2:8", "8:2:8", "16:2:8", "32:2:8", "1:2:16", "4:2:16", "8:2:16", "16:2:16", "32:2:16"]
PAPER = ["1:2:4"]
CLASSES = [("small", 0, 1_000), ("medium", 1_000, 10_000), ("large", 10_000, 1 << 31)]

HEAD = """# Orders that fit sparse tensor cores

Made by `tools/nm_report.py FOLDER` at commit {commit}{later} with {count} matrices, one thread, on {machine}. Small matrices have less than 1,000 rows, medium
ones less than 10,000. Edges count in both directions, self loops do not. Counterpart of SOGRE's Tables 7 and 8.
A matrix is *possible* unless its longest row or the number of its entries forbids the pattern (docs/reorder.md).
"""


def order(program, path, pattern, algorithm, pad, repeats):
    command = [program, "reorder", str(path), "--method", "nm", "--pattern", pattern, "--algorithm", algorithm,
               "--ignore-loops", "--threads", "1", "--duplicates", "first", "--nonfinite", "allow", "--json", "-"]
    runs = [json.loads(subprocess.run(command + (["--pad"] if pad else []), check=True, capture_output=True,
                                      text=True).stdout) for _ in range(repeats)]
    best = min(runs, key=lambda run: run["nm"]["order_seconds"])
    return {"matrix": best["name"], "rows": best["vertices"], **best["nm"],
            "reuse_before": best["before"]["window_reuse"], "reuse_after": best["after"]["window_reuse"]}


def best_pattern(program, path):
    """What the paper's search finds: M doubled from 4 on, then V from 1 on, while the graph conforms."""
    run = subprocess.run([program, "reorder", str(path), "--method", "nm", "--pattern", "best", "--search", "paper", "--ignore-loops", "--json", "-"],
                         check=True, capture_output=True, text=True)
    report = json.loads(run.stdout)
    return {"graph": report["name"], "vertices": report["vertices"], "edges": report["edges"], "pattern": report["nm"]["pattern"],
            "seconds": report["nm"]["order_seconds"]}


# A sparse product of 32 columns takes as long as 1.38 dense ones of 16, measured on an H200 (mma.sp against mma.sync, bf16).
SPARSE_STEP = 1.38
WORK_PATTERNS = ["1:2:4", "16:2:16"]


def arranging_us(program, graph):
    """What one thread takes to arrange the columns of all windows, translation included, by the rows of a window."""
    with tempfile.TemporaryDirectory() as folder:
        output = pathlib.Path(folder) / "bench.json"
        subprocess.run([program, "bench", "translate_quads", "--features", "16,32,64,128,256", "--threads", "1", "--quick", "--quiet", "--data", graph,
                        "--json", str(output)], check=True, capture_output=True)
        return {str(record["features"]): record["min_us"] for record in json.loads(output.read_text())["records"]}


def tiles(program, path, is_large):
    """What windows of 16 rows have to do: condensed, with columns in a 2:4 order, and in symmetric orders."""
    with tempfile.TemporaryDirectory() as folder:
        both_ways = str(pathlib.Path(folder) / "graph.tsr")
        subprocess.run([program, "convert", str(path), "--duplicates", "first", "--nonfinite", "allow", "--symmetrise",
                        "--self-loops", "remove", "-o", both_ways], check=True, capture_output=True)
        run = subprocess.run([program, "tiles", both_ways, "--json", "-"], check=True, capture_output=True, text=True)
        report = json.loads(run.stdout)
        arranging = arranging_us(program, both_ways) if is_large else {}
        orders = {}
        for pattern in WORK_PATTERNS:
            run = subprocess.run([program, "reorder", both_ways, "--method", "nm", "--pattern", pattern, "--json", "-"], check=True,
                                 capture_output=True, text=True)
            nm = json.loads(run.stdout)["nm"]
            if nm["conforms"]:
                orders[pattern] = nm["work"]
    condensed = next(h for h in report["heights"] if h["height"] == 16)
    return {"matrix": path.name.split(".")[0], "quads": report["quads"], "edges": report["edges"],
            "condensed": {"distinct_columns": condensed["distinct_columns"]}, "orders": orders, "arranging_us": arranging}


def size_class(record):
    return next(name for name, low, high in CLASSES if low <= record["rows"] < high)


def possible(record):
    return "obstacle" not in record


def share(part, whole):
    return f"{100 * part / whole:.1f} %" if whole else "–"


def conforming_table(records):
    yield "| pattern, algorithm | " + " | ".join(f"{name}: conform | possible" for name, _, _ in CLASSES) + " |"
    yield "|---|" + "---:|" * (2 * len(CLASSES))
    for pattern, algorithm in [(p, "group") for p in GROUP] + [(p, "paper") for p in PAPER]:
        cells = [f"{pattern}, {algorithm}"]
        for name, _, _ in CLASSES:
            group = [r for r in records if (r["pattern"], r["algorithm"], size_class(r)) == (pattern, algorithm, name)]
            conform = sum(r["conforms"] for r in group)
            cells += [f"{conform} of {len(group)}, {share(conform, len(group))}", str(sum(map(possible, group)))]
        yield "| " + " | ".join(cells) + " |"


def quality_table(records):
    yield ("| 1:2:4 | violating vectors before, mean (median) | after, mean (median) | improvement | "
           "iterations | time of possible ones, mean (worst) |")
    yield "|---|---:|---:|---:|---:|---:|"
    for algorithm in ("group", "paper"):
        for name, _, _ in CLASSES:
            group = [r for r in records if (r["pattern"], r["algorithm"], size_class(r)) == ("1:2:4", algorithm, name)]
            if not group:
                continue
            before = [r["before"]["vectors"] for r in group]
            after = [r["after"]["vectors"] for r in group]
            times = [1e3 * r["order_seconds"] for r in group if possible(r)] or [0]
            yield (f"| {algorithm}, {name} | {statistics.mean(before):,.1f} ({statistics.median(before):,.0f}) | "
                   f"{statistics.mean(after):,.2f} ({statistics.median(after):,.0f}) | "
                   f"{100 * statistics.mean(r['improvement'] for r in group):.2f} % | "
                   f"{statistics.mean(r['iterations'] for r in group):,.1f} | "
                   f"{statistics.mean(times):.2f} ms ({max(times):.1f} ms) |")


def padding_table(padded):
    yield "| matrix | rows | empty vertices added | conforms |"
    yield "|---|---:|---:|---|"
    for r in padded:
        yield f"| {r['matrix']} | {r['rows']:,} | {r['padding']:,} | {'yes' if r['conforms'] else 'no'} |"


def graph_table(graphs):
    yield "| graph | vertices | edges | pattern | its order |"
    yield "|---|---:|---:|---:|---:|"
    for g in graphs:
        yield f"| {g['graph']} | {g['vertices']:,} | {g['edges']:,} | {g['pattern']} | {g['seconds']:.2g} s |"


def reuse_table(records):
    yield "| pattern | edges per gathered row before | after | matrices that gather less |"
    yield "|---|---:|---:|---:|"
    for pattern in GROUP:
        group = [r for r in records if r["pattern"] == pattern and r["algorithm"] == "group" and r["conforms"]
                 and r["reuse_before"] > 0]
        if not group:
            continue
        before, after = (statistics.geometric_mean(r[key] for r in group) for key in ("reuse_before", "reuse_after"))
        less = sum(r["reuse_after"] > r["reuse_before"] for r in group)
        yield f"| {pattern} | {before:.2f} | {after:.2f} | {less} of {len(group)} |"


def window_table(windows):
    yield "| rows of a window | places per column, geometric mean | worst | million edges per second and core, large matrices | least |"
    yield "|---:|---:|---:|---:|---:|"
    for i, at_height in enumerate(windows[0]["quads"] if windows else []):
        places = [w["quads"][i]["places_per_column"] for w in windows if w["quads"][i]["quads"] > 0]
        height = str(at_height["height"])
        rates = [w["edges"] / w["arranging_us"][height] for w in windows if height in w.get("arranging_us", {})]
        speed = f"{statistics.geometric_mean(rates):.1f} | {min(rates):.1f}" if rates else "– | –"
        yield f"| {height} | {statistics.geometric_mean(places):.4f} | {max(places):.2f} | {speed} |"


def work_rows(windows):
    """For every matrix: (name, gathers and work of condensed tiles, of 2:4 windows, of each order), orders as None where impossible."""
    for w in windows:
        condensed = w["condensed"]
        quads = next(h for h in w["quads"] if h["height"] == 16)["quads"]
        if not condensed["distinct_columns"]:
            continue
        cells = [(condensed["distinct_columns"], condensed["distinct_columns"] / 16), (4 * quads, SPARSE_STEP * quads / 8)]
        for pattern in WORK_PATTERNS:
            order = w["orders"].get(pattern)
            cells.append((order["gathered_rows"], SPARSE_STEP * order["quads"] / 8) if order else None)
        yield w["matrix"], w["edges"], cells


def marked(value, condensed):
    """Bold where it is less than what condensed tiles have."""
    return f"**{value:,.0f}**" if value < condensed else f"{value:,.0f}"


def work_table(windows):
    names = ["condensed", "2:4 windows", *WORK_PATTERNS]
    yield "| matrix | edges | " + " | ".join(f"{name}: gathers | work" for name in names) + " |"
    yield "|---|" + "---:|" * (1 + 2 * len(names))
    rows = list(work_rows(windows))
    for name, edges, cells in rows:
        texts = [" | ".join(marked(c[k], cells[0][k]) for k in range(2)) if c else "– | –" for c in cells]
        yield f"| {name} | {edges:,} | " + " | ".join(texts) + " |"
    means = []
    for i in range(len(names)):
        pairs = [(cells[i], cells[0]) for _, _, cells in rows if cells[i]]
        means += [f"{statistics.geometric_mean(a[k] / b[k] for a, b in pairs):.2f}" for k in range(2)] if pairs else ["–", "–"]
    yield "| of condensed, geometric mean | | " + " | ".join(means) + " |"
    less = [f"{sum(bool(cells[i]) and cells[i][k] < cells[0][k] for _, _, cells in rows)}" for i in range(len(names)) for k in range(2)]
    yield f"| less than condensed, of {len(rows)} | | " + " | ".join(less) + " |"


def matrix_table(records):
    names = sorted({r["matrix"] for r in records})
    by_key = {(r["matrix"], r["pattern"], r["algorithm"]): r for r in records}
    yield "| matrix | rows | " + " | ".join(GROUP) + " | 1:2:4, paper |"
    yield "|---|---:|" + "---:|" * (len(GROUP) + 1)
    for name in names:
        runs = [by_key[name, p, "group"] for p in GROUP] + [by_key[name, "1:2:4", "paper"]]
        cells = ["✓" if r["conforms"] else f"{r['after']['meta_blocks']:,}" + ("" if possible(r) else " ∅") for r in runs]
        yield f"| {name} | {runs[0]['rows']:,} | " + " | ".join(cells) + " |"


def later_commits(records, commit):
    """In brackets, what was measured at others: records that say so."""
    patterns = {}
    for record in records:
        if record.get("commit", commit) != commit:
            patterns.setdefault(record["commit"], {})[record["pattern"]] = None
    return "".join(f" ({', '.join(found)} at {other})" for other, found in patterns.items())


def write(records, padded, windows, graphs, machine, commit, output):
    head = HEAD.format(count=len({r["matrix"] for r in records}), machine=machine, commit=commit, later=later_commits(records, commit))
    lines = [head, "## How many conform", "",
             *conforming_table(records), "", "## 1:2:4", "", *quality_table(records), "",
             "Impossible at 1:2:4, and with the fewest empty vertices that the longest row needs:", "",
             *padding_table(padded), "",
             *(["The largest patterns that graphs of SOGRE's Table 3 conform to, by its search (M doubled from 4 on, then V from 1 on):", "",
                *graph_table(graphs), ""] if graphs else []), "## What conforming costs", "",
             "Edges for each row of features that a window of 16 rows gathers, geometric means over conforming matrices:", "",
             *reuse_table(records), "", "## Instead: an order inside of windows", "",
             "The columns of each window in an order in which every row is 2:4 (docs/formats.md); how fast one thread makes it, "
             "translation included (`tessera bench translate_quads`).", "",
             *window_table(windows), "", "## Work of orders, matrix by matrix", "",
             "Windows of 16 rows: rows of features that are gathered, and the work of tensor cores in dense products of 16 columns (a "
             f"sparse one of 32 counts {SPARSE_STEP}; products that are not full count as parts). *Condensed* are tiles of distinct columns in the order of the data, *2:4 windows* the "
             "same with columns arranged inside of each window; the others are symmetric orders of the vertices. Bold where there is less than in condensed tiles: "
             "everywhere else the order loses to them. –: does not conform.", "",
             *work_table(windows), "", "## Matrix by matrix", "",
             "✓ where the matrix conforms, else the violating meta-blocks that are left; ∅ marks impossible ones.", "",
             *matrix_table(records), ""]
    output.with_suffix(".md").write_text("\n".join(lines))
    kinds = {"about": [{"machine": machine, "commit": commit}], "orders": records, "padded": padded, "windows": windows,
             "graphs": graphs}
    output.with_suffix(".json").write_text(
        "{\n" + ",\n".join(f'"{kind}": [\n' + ",\n".join(map(json.dumps, found)) + "\n]" for kind, found in kinds.items()) + "\n}\n")


def measure(program, paths, graphs, machine, commit, jobs, output):
    tasks = [(path, pattern, algorithm) for path in paths for pattern, algorithm in [*((p, "group") for p in GROUP), *((p, "paper") for p in PAPER)]]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        records = list(pool.map(lambda task: order(program, *task, False, 3 if task[1:] == ("1:2:4", "group") else 1), tasks))
        impossible = [path for (path, _, algorithm), record in zip(tasks, records) if algorithm == "paper" and not possible(record)]
        padded = list(pool.map(lambda path: order(program, path, "1:2:4", "group", True, 1), impossible))
        large = {path for (path, _, _), record in zip(tasks, records) if size_class(record) == "large"}
        windows = list(pool.map(lambda path: tiles(program, path, path in large), paths))
    write(records, padded, windows, [best_pattern(program, graph) for graph in graphs], machine, commit, output)


def write_again(output):
    """The page of the figures that are there."""
    kinds = json.loads(output.with_suffix(".json").read_text())
    write(kinds["orders"], kinds["padded"], kinds["windows"], kinds["graphs"], **kinds["about"][0], output=output)
