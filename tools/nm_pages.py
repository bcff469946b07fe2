# SPDX-License-Identifier: Apache-2.0
"""Pages of what was measured of sparse tensor cores on a GPU, and of accuracy: docs/results/nm_cuda.md and nm_accuracy.md."""
import json
import math
import re

import nm_figure
import whole_file

WIDTHS = [64, 128, 256, 512]

HEAD = """# Sparse tensor cores on a GPU

Made by `tools/nm_report.py FOLDER --device cuda --data GRAPHS` on one NVIDIA H200 at commit {commit} where nothing else is
said; nm_cuda.json has every number. Warm caches; every kernel is the fastest of its group by timing. *Alone* is the median between
two events, with about five microseconds of launching; *in a chain* is one of 20 launches in a row inside a captured CUDA graph.

- `2:4` are the kernels on sparse tensor cores (`nm_*`) on the matrix as it comes: an order of columns within each window makes every
  row 2:4.
- `2:4, ordered` are the same after `tessera reorder --method nm --pattern 1:2:4`, which orders the vertices themselves.
- `best` is the fastest of all our deterministic kernels, `plan` what a default plan takes by its cost models, `cuSPARSE` the fastest
  of its algorithms that add in fp32, called directly after its preprocessing, `torch` cuSPARSE as PyTorch calls it (torch.sparse.mm
  of a CSR tensor in the same precision). `plan, laid out` is a default plan after `tessera reorder --method layout`, `plan, ordered` one after the same
  order as `2:4, ordered`. –: not measured.
"""

# What a ratio against cuSPARSE is held to, and the share of its floor at which a case counts as met.
GOALS = {"fp32": 2.5, "bf16": 8.0}
NEAR_FLOOR = 0.8


def dense_table(records):
    widths = sorted({r["features"] for r in records})
    yield "| graph, kernel | " + " | ".join(f"{width}" for width in widths) + " |"
    yield "|---|" + "---:|" * len(widths)
    by_key = {(r["graph"], r["kernel"], r["features"]): r["median_us"] for r in records}
    for graph, kernel in dict.fromkeys((r["graph"], r["kernel"]) for r in records):
        cells = [f"{by_key[graph, kernel, w]:.0f}" if (graph, kernel, w) in by_key else "–" for w in widths]
        yield f"| {graph}, `{kernel}` | " + " | ".join(cells) + " |"
    for graph in dict.fromkeys(r["graph"] for r in records):
        cells = []
        for width in widths:
            of = {k: t for (g, k, w), t in by_key.items() if g == graph and w == width}
            sparse = [t for k, t in of.items() if k.startswith("nm_")]
            dense = [t for k, t in of.items() if not k.startswith("nm_")]
            cells.append(f"{min(dense) / min(sparse):.2f} ×" if sparse and dense else "–")
        yield f"| {graph}: sparse against dense, best of each | " + " | ".join(cells) + " |"


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def chain_of(record):
    """One run in a captured chain: as timed for the record or for its plan, up to 150 us; None where neither was."""
    if record.get("chain_us"):
        return record["chain_us"]
    measured = re.search(r": ([0-9.]+) us measured", record.get("plan", ""))
    return float(measured.group(1)) if measured and float(measured.group(1)) < 150 else None


def times_by_case(products):
    """For every matrix, precision and width what each form takes: alone, in a chain, and its kernel."""
    cases = {}
    for record in products:
        case = cases.setdefault((record["graph"], record["precision"], record["features"]), {})
        if record.get("floor_us"):
            case["floor"] = {"alone": record["floor_us"], "chain": record["floor_us"]}
        if record["form"] in case and case[record["form"]]["alone"] <= record["median_us"]:
            continue
        case[record["form"]] = {"alone": record["median_us"], "chain": chain_of(record), "kernel": record["kernel"].split("/")[-1]}
    return cases


def ratio(case, over, under, which):
    slow, fast = case.get(over, {}).get(which), case.get(under, {}).get(which)
    return slow / fast if slow and fast else None


def is_met(case, precision):
    """As fast as asked for, or near the floor of bytes alone, between two events or in a chain."""
    return any((ratio(case, "cuSPARSE", form, which) or 0) >= GOALS[precision] for form in ("best", "plan") for which in ("alone", "chain")) or \
        any((ratio(case, "floor", form, which) or 0) >= NEAR_FLOOR for form in ("best", "plan") for which in ("alone", "chain"))


def near_floor(case, which, launch_us):
    """Whether a plan takes no more than its floor and a launch allow."""
    floor, plan = case.get("floor", {}).get(which), case.get("plan", {}).get(which)
    return bool(floor and plan) and floor + launch_us >= NEAR_FLOOR * plan


# What an empty kernel takes counts as part of the floor here, and not as part of it.
FLOOR_COLUMNS = [("at 80 % of its floor, alone", "alone", False), ("in a chain", "chain", False),
                 ("at 80 % of floor and launch, alone", "alone", True), ("in a chain", "chain", True)]


def of_other_commits(products, form):
    """The commits of a form, in brackets, where they are not that of the first record."""
    commits = {record.get("commit") for record in products if record["form"] == form}
    return f" ({', '.join(sorted(commits))})" if commits - {products[0].get("commit")} else ""


def ratio_table(products, launch):
    cases = times_by_case(products)
    floors = [column for column in FLOOR_COLUMNS if launch or not column[2]]
    columns = [("plan against cuSPARSE, alone", "cuSPARSE", "plan", "alone"), ("plan, in a chain", "cuSPARSE", "plan", "chain"),
               ("plan against torch, alone", "torch", "plan", "alone"), ("plan against torch, in a chain", "torch", "plan", "chain"),
               ("plan, laid out, in a chain", "cuSPARSE", "plan, laid out", "chain"),
               ("plan, ordered, in a chain", "cuSPARSE", "plan, ordered", "chain"), ("best, alone", "cuSPARSE", "best", "alone"),
               ("best, in a chain", "cuSPARSE", "best", "chain"), ("2:4, alone", "cuSPARSE", "2:4", "alone"),
               ("2:4, ordered, alone", "cuSPARSE", "2:4, ordered", "alone"),
               ("plan against plan without 2:4", "plan without 2:4", "plan", "alone"),
               ("the floor against cuSPARSE, alone", "cuSPARSE", "floor", "alone"), ("part of the floor, plan in a chain", "floor", "plan", "chain")]
    columns = [column for column in columns if any(ratio(case, *column[1:]) for case in cases.values())]
    heads = [f"{column[0]}{of_other_commits(products, column[2])}" for column in columns]
    yield "| precision, features | matrices | " + " | ".join(heads + [head for head, _, _ in floors]) + " | met |"
    yield "|---|---:|" + "---:|" * (len(columns) + len(floors) + 1)
    for precision in ("bf16", "fp32"):
        for width in WIDTHS + [None]:
            chosen = [case for (_, p, f), case in cases.items() if p == precision and width in (None, f)]
            if not chosen:
                continue
            cells = []
            for _, over, under, which in columns:
                ratios = [r for r in (ratio(case, over, under, which) for case in chosen) if r]
                count = f", {len(ratios)} matrices" if len(ratios) < len(chosen) else ""
                cells.append(f"{geometric_mean(ratios):.2f} ({min(ratios):.2f}{count})" if ratios else "–")
            for _, which, with_launch in floors:
                launch_us = launch[which] if with_launch else 0
                cells.append(f"{sum(near_floor(case, which, launch_us) for case in chosen)}")
            met = sum(is_met(case, precision) for case in chosen)
            yield f"| {precision}, {width or 'all'} | {len(chosen)} | " + " | ".join(cells) + f" | {met} of {len(chosen)} |"


def figure(products):
    """Figure 4: default plans against cuSPARSE, alone."""
    panels = {}
    for (graph, precision, width), case in sorted(times_by_case(products).items()):
        times = ratio(case, "cuSPARSE", "plan", "alone")
        if times:
            panels.setdefault(f"{precision}: default plans against cuSPARSE, a place for each matrix", {}).setdefault(width, {})[graph] = times
    return nm_figure.svg(panels) if panels else None


def matrix_table(products, precision, width=128):
    """Alone, and in a chain where that was timed, in brackets."""
    cases = times_by_case(products)
    forms = [form for form in ("cuSPARSE", "torch", "plan", "plan, laid out", "plan, ordered", "best", "2:4", "2:4, ordered")
             if any(form in case for case in cases.values())]
    yield "| matrix | floor | " + " | ".join(forms) + " |"
    yield "|---|" + "---:|" * (1 + len(forms))
    for graph in sorted({g for g, p, f in cases if (p, f) == (precision, width)}):
        case = cases[graph, precision, width]
        cells = [f"{case['floor']['alone']:.1f}" if "floor" in case else "–"]
        for form in forms:
            times = case.get(form)
            chain = f" ({times['chain']:.1f})" if times and times["chain"] else ""
            cells.append(f"{times['alone']:.1f}{chain} `{times['kernel']}`" if times else "–")
        yield f"| {graph} | " + " | ".join(cells) + " |"


def model_table(models, torch):
    by_key = {(m["graph"], m["model"], m["pattern"]): m["step_ms"] * 1e3 for m in models}
    pyg = {(t["graph"], t["model"]): t for t in torch}
    yield "| graph, model | PyG eager, us | PyG, its fastest, us | as it is, us | 1:2:4, us | PyG eager / as it is | PyG / as it is | as it is / 1:2:4 |"
    yield "|---|" + "---:|" * 7
    ratios = []
    for graph, model in dict.fromkeys((m["graph"], m["model"]) for m in models):
        plain, ordered, other = by_key.get((graph, model, "off")), by_key.get((graph, model, "1:2:4")), pyg.get((graph, model))
        if not plain:
            continue
        eager = other["times_us"].get("edge_index, eager") if other else None
        values = [eager, other and other["best_us"], plain, ordered]
        quotients = [eager and eager / plain, other and other["best_us"] / plain, ordered and plain / ordered]
        ratios.append(quotients)
        cells = [f"{v:.0f}" if v else "–" for v in values] + [f"{q:.2f}" if q else "–" for q in quotients]
        yield f"| {graph}, {model} | " + " | ".join(cells) + " |"
    means = [geometric_mean([q[i] for q in ratios if q[i]]) for i in range(3)]
    yield "| geometric mean | | | | | " + " | ".join(f"{mean:.2f}" if mean == mean else "–" for mean in means) + " |"


def batch_table(batches):
    by_key = {(b["graph"], b["model"], b["pattern"]): b["step_ms"] * 1e3 for b in batches}
    yield "| graph, model | PyG eager, us per batch | as it is | 1:2:4 | PyG / as it is | as it is / 1:2:4 |"
    yield "|---|---:|---:|---:|---:|---:|"
    for graph, model in dict.fromkeys((b["graph"], b["model"]) for b in batches):
        times = [by_key.get((graph, model, pattern)) for pattern in ("PyG", "off", "1:2:4")]
        cells = [f"{time:.0f}" if time else "–" for time in times]
        cells += [f"{slow / fast:.2f}" if slow and fast else "–" for slow, fast in zip(times[:-1], times[1:])]
        yield f"| {graph}, {model} | " + " | ".join(cells) + " |"


def ordered_table(records):
    """The fastest of each kind by timing, what was predicted of it in brackets."""
    kinds = {"in their order": lambda kernel: not kernel.startswith("ordered"), "ordered, dense": lambda kernel: kernel == "ordered_64",
             "ordered, sparse": lambda kernel: kernel.startswith("ordered_nm")}
    yield "| graph, precision | " + " | ".join(kinds) + " | dense / sparse | a plan takes |"
    yield "|---|" + "---:|" * (len(kinds) + 1) + "---|"
    for record in records:
        candidates = record["candidates"]
        best = [min(filter(kind, candidates), key=lambda kernel: candidates[kernel][1], default=None) for kind in kinds.values()]
        cells = [f"{candidates[k][1]:.1f} ({candidates[k][0]:.0f}) `{k}`" if k else "–" for k in best]
        ratio_of = f"{candidates[best[1]][1] / candidates[best[2]][1]:.2f}" if best[1] and best[2] else "–"
        chosen = min(candidates, key=lambda kernel: candidates[kernel][0])
        yield f"| {record['graph']}, {record['precision']} | " + " | ".join(cells) + f" | {ratio_of} | `{chosen}` |"


def translation_table(records):
    """Both encodings of a graph as they were measured last, at one commit."""
    by_key = {(r["graph"], r["height"], r["commit"], r["encoding"]): r["median_us"] for r in records}
    last = {}
    for graph, height, commit, encoding in by_key:
        if encoding == "2:4" and (graph, height, commit, "bits") in by_key:
            last[graph, height] = commit
    yield "| graph | rows of a window | bits, us | 2:4, us | 2:4 / bits | commit |"
    yield "|---|---:|---:|---:|---:|---|"
    for (graph, height), commit in sorted(last.items()):
        bits, quads = by_key[graph, height, commit, "bits"], by_key[graph, height, commit, "2:4"]
        yield f"| {graph} | {height} | {bits:.0f} | {quads:.0f} | {quads / bits:.2f} | {commit} |"


def accuracy_table(records):
    by_key = {(r["graph"], r["model"], r["data"]): r for r in records}
    yield "| graph, model | as it is | ordered | pruned | edges dropped |"
    yield "|---|---:|---:|---:|---:|"
    for graph, model in dict.fromkeys((r["graph"], r["model"]) for r in records):
        cells = []
        for name in ("as it is", "ordered", "pruned"):
            record = by_key.get((graph, model, name))
            cells.append(f"{100 * record['test']:.2f} ± {100 * record['deviation']:.2f} %" if record else "–")
        dropped = (by_key.get((graph, model, "pruned")) or {}).get("prune")
        cells.append(f"{100 * dropped['dropped'] / dropped['edges_before']:.2f} %" if dropped else "–")
        yield f"| {graph}, {model} | " + " | ".join(cells) + " |"


ACCURACY_HEAD = """# Accuracy of ordering and of pruning

Counterpart of SOGRE's Table 5, made by `tools/nm_report.py FOLDER --parts accuracy --data GRAPHS` ({places}).
Test accuracy over five seeds with the papers' training (mean ± deviation); pruned to 1:2:4 in the order of the data by
`tessera prune`. Ordering is lossless; with dropout, which draws by the number of a row, it trains as if with other seeds.
Graphs without a split of their own have one drawn (60, 20 and 20 %), features as they are, and no decay of weights.
"""


def write_accuracy(records, machine, commit, output):
    """Records of graphs that are not measured anew stay as they were, with their machine and commit."""
    new = [{"commit": commit, "machine": machine, **record} for record in records]
    graphs = {record["graph"] for record in new}
    before = [record for record in whole_file.load(output.with_suffix(".json")) or [] if record["graph"] not in graphs]
    write_accuracy_page(before + new, output)


def write_accuracy_page(records, output):
    measured = {}
    for record in records:
        measured.setdefault((record["machine"], record["commit"]), {})[record["graph"]] = None
    places = "; ".join(f"{', '.join(graphs)}: {machine} at commit {commit}" for (machine, commit), graphs in measured.items())
    output.with_suffix(".md").write_text("\n".join([ACCURACY_HEAD.format(places=places), *accuracy_table(records), ""]))
    whole_file.write(output.with_suffix(".json"), "[\n" + ",\n".join(map(json.dumps, records)) + "\n]\n")


def write_accuracy_again(output):
    write_accuracy_page(json.loads(output.with_suffix(".json").read_text()), output)


def kept(output, parts):
    """What was measured before: the records of each part with their commits, and remarks."""
    results = {"commit": "", **{part: [] for part in parts}, **(whole_file.load(output.with_suffix(".json")) or {})}
    for part in parts:
        results[part] = [{**record, "commit": record.get("commit", results["commit"])} for record in results[part]]
    return results


def measured_at(results, part):
    """A sentence of the commits of a part, unless all of it is of the page's."""
    commits = sorted({record.get("commit", results["commit"]) for record in results[part]})
    return f" Measured at {', '.join(commits)}." if commits != [results["commit"]] else ""


def launch_note(launch):
    return f" An empty kernel takes {launch['alone']:.1f} microseconds between two events and {launch['chain']:.1f} in a chain." if launch else ""


def write(results, output):
    lines = [HEAD.format(commit=results["commit"])]
    if results.get("dense"):
        lines += ["## Dense parts", "", "Microseconds in bf16 by features. The communities alone are the edges that windows share." + measured_at(results, "dense"), "",
                  *dense_table(results["dense"]), ""]
    if results["products"]:
        lines += ["## Products (SOGRE's Figure 4)", "", "How many times as fast, geometric mean (worst, and how many matrices where not all were measured). *Met*: 2.5 times as fast "
                  "as cuSPARSE in fp32, 8 times in bf16, or at 80 % of the floor (every operand once, by the copy's bandwidth)." + launch_note(results.get("launch")) + measured_at(results, "products"), "",
                  *ratio_table(results["products"], results.get("launch")), ""]
        drawn = figure(results["products"])
        if drawn:
            output.with_suffix(".svg").write_text(drawn)
            lines += [f"![How many times as fast as cuSPARSE]({output.name}.svg)", ""]
        for precision in ("bf16", "fp32"):
            lines += [f"Microseconds at 128 features in {precision}, alone (in a chain):", "",
                      *matrix_table(results["products"], precision), ""]
    if results.get("ordered"):
        lines += ["## Rows in an order of the plan's own", "", "Plans for very many epochs on shuffled graphs at 128 features: microseconds of the fastest kernel of each kind, in a chain "
                  "where that is short (predicted, with a launch)." + measured_at(results, "ordered"), "", *ordered_table(results["ordered"]), ""]
    if results["models"]:
        lines += ["## Training steps (Tables 3 and 4)", "",
                  "Forward, backward and Adam in fp32 without dropout. PyG by edges, eager; and the fastest of eager or recorded, by edges or CSR." + measured_at(results, "models"), "",
                  *model_table(results["models"], results["torch"]), ""]
    if results.get("batches"):
        lines += ["## Parts of a graph, ordered one by one (Table 6)", "",
                  "A step of training in fp32 on one of eight parts of a graph, as `tessera partition` makes them; PyG eager, its parts on the GPU before." + measured_at(results, "batches"), "", *batch_table(results["batches"]), ""]
    if results.get("translation"):
        lines += ["## Translation on the GPU", "",
                  "Windows as bits, and with columns arranged for 2:4 after that (`tessera bench translate` and `translate_quads`).", "",
                  *translation_table(results["translation"]), ""]
    output.with_suffix(".md").write_text("\n".join(lines + results.get("remarks", [])))
    whole_file.write(output.with_suffix(".json"),
                     json.dumps(results, indent=None, separators=(",", ":")).replace('{"form"', '\n{"form"') + "\n")


def write_again(output):
    write(json.loads(output.with_suffix(".json").read_text()), output)
