# SPDX-License-Identifier: Apache-2.0
"""SOGRE's Figure 4 and Tables 3 to 6 on a GPU: products on sparse tensor cores, training steps, batches, accuracy.

    tools/report.py nm_cuda MATRICES --device cuda --data GRAPHS --pyg python3

MATRICES is a folder of matrices, of which those with at least 10,000 rows are multiplied. Parts: dense (where windows
share most edges), products (Figure 4, against cuSPARSE), models (Tables 3 and 4, as graphs come and ordered), pyg (the
same steps in PyG), batches (Table 6), accuracy (Table 5, ordered and pruned). The last two run on the CPU as well.
"""
import math
import sys

from . import common, nm_reordering

GRAPHS = nm_reordering.GRAPHS
MODELS = ["gcn", "sage", "cheb", "sgc"]
BATCH_MODELS = ["gcn", "sgc"]
HIDDEN = {"gcn": 16, "cheb": 16, "sgc": 16, "sage": 64}  # as wide as in bench/baselines/nm_torch.py
WIDTHS = [64, 128, 256, 512]
DRAWN_LABELS = {"corafull-structure"}  # which say nothing of accuracy
# Graphs without a split of their own have features as they are, and no decay of weights.
OWN_SPLIT, WITHOUT_SPLIT = {"cora", "citeseer", "citation"}, ["--normalise", "off", "--weight-decay", "0"]
AS_PATTERN = [*nm_reordering.AS_PATTERN, "--symmetrise", "--self-loops", "remove"]
CONFORMING = ["--method", "nm", "--pattern", "1:2:4"]
DENSE = {"proteins-size, communities": "generate:sbm?vertices=132534&communities=100&mean_degree=450&inside=1",
         "reddit-size, communities": "generate:sbm?vertices=232965&communities=50&mean_degree=381&inside=1",
         "proteins-size": "twin:proteins", "reddit-size": "twin:reddit"}
GROUPS = {"communities": ["nm_*", "tall_*"], "size": ["nm_split*", "split*"]}


def add_options(parser):
    nm_reordering.add_options(parser)


def graphs(run):
    """Real graphs; the embedded one where nothing but a trial is asked for."""
    return ["embedded:citation"] if run.options.quick else common.real_graphs(run.options, GRAPHS)


@common.needs_gpu
def measure_dense(run):
    records = []
    for name, source in DENSE.items():
        for group in GROUPS[name.rsplit(" ")[-1].rsplit("-")[-1]]:
            for one in run.bench(["spmm"], [source], "--precision", "bf16", "--features", ",".join(map(str, WIDTHS)),
                                 "--kernel", f"spmm/cuda/{group}", "--tune", "measured"):
                records.append({"graph": name, "features": one["features"], "kernel": common.kernel_of(one),
                                "median_us": one["median_us"]})
    return records


@common.needs_gpu
def measure_products(run):
    records, words = [], ["--precision", "bf16,fp32", "--features", ",".join(map(str, WIDTHS))]
    for matrix in nm_reordering.matrices(run):
        plain, ordered = (run.folder / f"{common.name_of(matrix)}{end}.tsr" for end in ("", "_ordered"))
        try:
            run.command([run.program, "convert", matrix, *AS_PATTERN, "-o", plain])
            if run.call("info", plain)["vertices"] < 10_000 or run.is_late(f"products of {matrix}"):
                continue
            run.command([run.program, "reorder", plain, *CONFORMING, "-o", ordered])
        except common.Failed as problem:
            print(f"left out: {problem}", file=sys.stderr)
            continue
        plans = run.bench(["spmm"], [plain], *words)
        found = {"plan": plans, "plan, ordered": run.bench(["spmm"], [ordered], *words),
                 "cuSPARSE": run.bench(["spmm"], [plain], *words, "--kernel", "spmm/cuda/cusparse*", "--tune", "measured"),
                 "2:4, ordered": run.bench(["spmm"], [ordered], *words, "--kernel", "spmm/cuda/nm*", "--tune", "measured"),
                 "plan without 2:4": [other for one in plans for other in without_quads(run, plain, one)]}
        records += [{"form": form, "graph": plain.stem, **{key: one[key] for key in
                     ("features", "precision", "kernel", "median_us", "chain_us", "floor_us") if key in one}}
                    for form, ones in found.items() for one in ones]
    return records


def without_quads(run, source, plan):
    """What a plan takes where there are no sparse tensor cores; one that took another kernel stands for itself."""
    if "/nm_" not in plan["kernel"]:
        return [plan]
    words = ["--precision", plan["precision"], "--features", plan["features"]]
    offered = [one for one in run.call("plan", source, "--device", "cuda", *words)["candidates"]
               if one["verdict"].startswith("slower") and "/nm_" not in one["kernel"]]
    best = min(offered, key=lambda one: one["predicted_us"], default=None)
    return run.bench(["spmm"], [source], *words, "--kernel", best["kernel"]) if best else []


def ordered_copy(run, source):
    copy = run.folder / f"ordered_{common.name_of(source).replace(' ', '_')}.npz"
    if not copy.exists():
        run.command([run.program, "reorder", source, *CONFORMING, "-o", copy])
    return copy


def measure_models(run):
    """Steps on the graphs as they come and ordered."""
    records = []
    for source in graphs(run):
        name = common.name_of(source)
        for pattern, data in (("off", source), ("1:2:4", ordered_copy(run, source))):
            for hidden in sorted(set(HIDDEN.values())):
                steps = [f"step_{model}" for model, width in HIDDEN.items() if width == hidden]
                records += [{"graph": name, "model": one["op"].removeprefix("step_"), "pattern": pattern,
                             "step_ms": one["median_us"] / 1e3} for one in run.bench(steps, [data], "--hidden", hidden)]
    return records


@common.needs_gpu
@common.needs_pyg
def measure_pyg(run):
    return run.baseline("nm_torch.py", *(word for path in graphs(run) for word in ("--data", run.npz(path))))


def train(run, path, model, pattern, *options):
    try:
        report = run.call("train", path, "--model", model, "--early-stopping", 0, "--pattern", pattern, "--device",
                          run.device, *options)
    except common.Failed as problem:
        print(f"left out: {problem}", file=sys.stderr)
        return []
    return [{"graph": common.name_of(path), "model": model, "pattern": pattern, "step_ms": report["step_ms"],
             "test": report["test"]["mean"], "deviation": report["test"]["std"]}]


def measure_batches(run):
    """Eight parts of a graph, as they come and each ordered on its own, and the same parts in PyG."""
    records, words = [], ["--epochs", 30, "--evaluate-every", 30, "--dropout", 0, "--batch", "clusters"]
    parts = run.folder / "partitions"
    parts.mkdir(exist_ok=True)
    for source in graphs(run):
        file = parts / f"{common.name_of(source)}.txt"
        run.command([run.program, "partition", source, "--parts", 8, "--method", "multilevel", "-o", file])
        records += [one for model in BATCH_MODELS for pattern in ("off", "1:2:4")
                    for one in train(run, source, model, pattern, *words, "--partition", file)]
    if run.options.pyg and run.device == "cuda":
        data = [word for path in graphs(run) for word in ("--data", run.npz(path))]
        records += [{"graph": one["graph"], "model": one["model"], "pattern": "PyG", "step_ms": one["best_us"] / 1e3}
                    for one in run.baseline("nm_torch.py", "--partitions", parts, "--models", ",".join(BATCH_MODELS), *data)]
    return records


def measure_accuracy(run):
    """Five seeds of each: as it is, ordered, and pruned to the same pattern in the order of the data."""
    records = []
    for source in graphs(run):
        name, pruned = common.name_of(source), run.folder / "pruned.npz"
        if name in DRAWN_LABELS:
            continue
        pruned.unlink(missing_ok=True)
        dropped = run.call("prune", source, "--pattern", "1:2:4", "-o", pruned)
        words = ["--runs", 2 if run.options.quick else 5]
        words += [] if name.removeprefix("embedded ") in OWN_SPLIT else WITHOUT_SPLIT
        for model in BATCH_MODELS if run.options.quick else MODELS:
            for data, file, pattern in (("as it is", source, "off"), ("ordered", source, "1:2:4"), ("pruned", pruned, "off")):
                records += [{**one, "graph": name, "data": data, "dropped": dropped["dropped"] / dropped["edges_before"]}
                            for one in train(run, file, model, pattern, *words)]
    return records


PARTS = {"dense": measure_dense, "products": measure_products, "models": measure_models, "pyg": measure_pyg,
         "batches": measure_batches, "accuracy": measure_accuracy}


def dense_rows(records):
    times = {(one["graph"], one["kernel"], one["features"]): one["median_us"] for one in records}
    widths = sorted({one["features"] for one in records})
    for graph, kernel in dict.fromkeys((one["graph"], one["kernel"]) for one in records):
        yield [f"{graph}, `{kernel}`", *(f"{times[graph, kernel, w]:.0f}" if (graph, kernel, w) in times else "–"
                                         for w in widths)]
    for graph in dict.fromkeys(one["graph"] for one in records):
        best = [[min((us for (g, k, w), us in times.items() if (g, w) == (graph, width) and k.startswith("nm_") == sparse),
                     default=None) for sparse in (False, True)] for width in widths]
        yield [f"{graph}: sparse against dense, best of each",
               *(f"{dense / sparse:.2f} ×" if dense and sparse else "–" for dense, sparse in best)]


RATIOS = [("plan against cuSPARSE", "cuSPARSE", "plan", "alone"), ("in a chain", "cuSPARSE", "plan", "chain"),
          ("plan, ordered, in a chain", "cuSPARSE", "plan, ordered", "chain"),
          ("2:4, ordered", "cuSPARSE", "2:4, ordered", "alone"),
          ("plan against plan without 2:4", "plan without 2:4", "plan", "alone")]


def cases_of(products):
    """What each form takes of every (matrix, precision, width): alone and in a chain."""
    cases = {}
    for one in products:
        case = cases.setdefault((one["graph"], one["precision"], one["features"]), {})
        if one["form"] not in case or one["median_us"] < case[one["form"]]["alone"]:
            case[one["form"]] = {"alone": one["median_us"], "chain": one.get("chain_us")}
    return cases


def ratio(case, over, under, which):
    slow, fast = case.get(over, {}).get(which), case.get(under, {}).get(which)
    return slow / fast if slow and fast else None


def ratios_of(cases):
    """The columns that something was measured for."""
    return [of for of in RATIOS if any(ratio(case, *of[1:]) for case in cases.values())]


def ratio_rows(cases):
    for precision, width in [(precision, width) for precision in ("bf16", "fp32") for width in [*WIDTHS, None]]:
        chosen = [case for (_, p, w), case in cases.items() if p == precision and width in (None, w)]
        if not chosen:
            continue
        cells = []
        for _, *of in ratios_of(cases):
            found = [one for one in (ratio(case, *of) for case in chosen) if one]
            count = f", {len(found)}" if len(found) < len(chosen) else ""
            cells.append(f"{common.geometric_mean(found):.2f} ({min(found):.2f}{count})" if found else "–")
        yield [f"{precision}, {width or 'all'}", len(chosen), *cells]


def picture(cases):
    """Figure 4: a dot for each matrix and width, a panel for each precision, from the slowest matrix to the fastest."""
    left, right, top, height, step = 60, 790, 34, 260, 320
    ticks, out = [0.5, 1, 2, 4, 8, 16, 32], []
    shown = {key: found for key, case in cases.items() if (found := ratio(case, "cuSPARSE", "plan", "alone"))}
    low = max((tick for tick in ticks if tick <= min([*shown.values(), 1])), default=ticks[0])
    high = 1.1 * max([*shown.values(), 8])
    precisions = sorted({key[1] for key in shown})
    for number, precision in enumerate(precisions):
        begin = top + number * step
        matrices = sorted({key[0] for key in shown if key[1] == precision}, key=lambda name: common.geometric_mean(
            found for (graph, p, _), found in shown.items() if (graph, p) == (name, precision)))

        def y(times, begin=begin):
            return begin + height * math.log(high / times) / math.log(high / low)

        out.append(common.svg_text(left, begin - 10, f"{precision}: default plans against cuSPARSE, a place for each matrix",
                                   font_weight="bold"))
        for tick in (tick for tick in ticks if low <= tick <= high):
            out += [common.svg_line(left, y(tick), right, y(tick), "#555" if tick == 1 else "#ddd"),
                    common.svg_text(left - 8, y(tick) + 4, f"{tick:g} ×", "end")]
        for place, width in enumerate(sorted({key[2] for key in shown})):
            colour = common.COLOURS[place]
            out += [common.svg_dot(left + (right - left) * (matrices.index(graph) + 0.5) / len(matrices), y(found), colour,
                                   title=f"{graph}, {width}: {found:.2f}")
                    for (graph, p, w), found in shown.items() if (p, w) == (precision, width)]
            out += [common.svg_dot(right + 20, begin + 14 + 22 * place, colour, 4),
                    common.svg_text(right + 32, begin + 18 + 22 * place, f"{width} wide")]
    return common.svg(900, top + step * len(precisions), out)


def model_rows(models, pyg):
    times = {(one["graph"], one["model"], one["pattern"]): 1e3 * one["step_ms"] for one in models}
    other = common.by(pyg, "graph", "model")
    ratios = []
    for graph, model in dict.fromkeys(key[:2] for key in times):
        plain, ordered = (times.get((graph, model, pattern)) for pattern in ("off", "1:2:4"))
        theirs = other.get((graph, model))
        eager = theirs and theirs["times_us"].get("edge_index, eager")
        best = theirs and theirs["best_us"]
        ratios.append([eager and plain and eager / plain, best and plain and best / plain, ordered and plain and plain / ordered])
        yield [f"{graph}, {model}", *(f"{us:.0f}" if us else "–" for us in (eager, best, plain, ordered)),
               *(f"{one:.2f}" if one else "–" for one in ratios[-1])]
    yield ["geometric mean", "", "", "", "", *(f"{common.geometric_mean(found):.2f}" if (found := [row[i] for row in ratios if row[i]])
                                               else "–" for i in range(3))]


def batch_rows(batches):
    times = {(one["graph"], one["model"], one["pattern"]): 1e3 * one["step_ms"] for one in batches}
    for graph, model in dict.fromkeys(key[:2] for key in times):
        us = [times.get((graph, model, pattern)) for pattern in ("PyG", "off", "1:2:4")]
        yield [f"{graph}, {model}", *(f"{one:.0f}" if one else "–" for one in us),
               *(f"{slow / fast:.2f}" if slow and fast else "–" for slow, fast in zip(us[:-1], us[1:]))]


def accuracy_rows(records):
    found = common.by(records, "graph", "model", "data")
    for graph, model in dict.fromkeys(key[:2] for key in found):
        ones = [found.get((graph, model, data)) for data in ("as it is", "ordered", "pruned")]
        yield [f"{graph}, {model}", *(f"{100 * one['test']:.2f} ± {100 * (one['deviation'] or 0):.2f} %" if one else "–"
                                      for one in ones), f"{100 * ones[0]['dropped']:.2f} %" if ones[0] else "–"]


def lines(record):
    parts = record["parts"]
    cases = cases_of(parts.get("products", []))
    speeds = [found for case in cases.values() if (found := ratio(case, "cuSPARSE", "plan", "alone"))]
    yield "# Sparse tensor cores on a GPU (SOGRE)\n"
    yield "Question: do sparse tensor cores (2:4) make sums over neighbours and training faster, and what does pruning cost?\n"
    if speeds:
        yield (f"Default plans are {common.geometric_mean(speeds):.1f} times as fast as cuSPARSE in the mean of {len(speeds)} "
               f"products, {min(speeds):.2f} at worst. They hardly ever take\nsparse tensor cores: these pay where tall windows are "
               "dense, as on a graph of reddit's size.\n")
    yield common.where(record)
    yield from common.commits_note(record)
    yield ("*Alone* is the median between two events, with about five microseconds of launching; *in a chain* is one of 20\n"
           "launches in a captured CUDA graph. *Ordered*: after `tessera reorder --method nm --pattern 1:2:4`. –: not measured.\n")
    if parts.get("products"):
        yield "## Products (Figure 4)\n"
        yield ("How many times as fast, geometric mean (worst, and how many matrices where not all were measured). cuSPARSE is the\n"
               "fastest of its algorithms that add in fp32, called directly after its preprocessing.\n")
        yield from common.table(["precision, features", "products", *(title for title, *_ in ratios_of(cases))], ratio_rows(cases))
        yield "![How many times as fast as cuSPARSE](nm_cuda.svg)\n"
    if parts.get("dense"):
        yield "## Where windows share most edges\n\nMicroseconds in bf16 by features; *communities* alone are the edges that windows share.\n"
        widths = sorted({one["features"] for one in parts["dense"]})
        yield from common.table(["graph, kernel", *map(str, widths)], dense_rows(parts["dense"]))
    if parts.get("models"):
        yield "## Training steps (Tables 3 and 4)\n"
        yield "Forward, backward and Adam in fp32 without dropout; PyG eager, and the fastest of its ways.\n"
        yield from common.table(["graph, model", "PyG eager, us", "PyG, its fastest", "as it is", "1:2:4", "PyG eager / as it is",
                                 "PyG / as it is", "as it is / 1:2:4"], model_rows(parts["models"], parts.get("pyg", [])))
    if parts.get("batches"):
        yield "## Parts of a graph, ordered one by one (Table 6)\n"
        yield "A step of training in fp32 on one of eight parts of a graph, microseconds; PyG eager.\n"
        yield from common.table(["graph, model", "PyG", "as it is", "1:2:4", "PyG / as it is", "as it is / 1:2:4"],
                                batch_rows(parts["batches"]))
    if parts.get("accuracy"):
        yield "## Accuracy of ordering and of pruning (Table 5)\n"
        yield ("Test accuracy over five seeds (mean ± deviation). Ordering is lossless: with dropout, which draws by the number of a\n"
               "row, it trains as if with other seeds. Pruned: `tessera prune` to 1:2:4 in the order of the data.\n")
        yield from common.table(["graph, model", "as it is", "ordered", "pruned", "edges dropped"], accuracy_rows(parts["accuracy"]))
    yield from common.again("nm_cuda MATRICES --device cuda --data GRAPHS --pyg python3",
                            "The record is nm_cuda.json.gz. Orders by themselves: [nm_reordering.md](nm_reordering.md).")


def pages(record):
    found = {"nm_cuda.md": common.joined(lines(record))}
    cases = cases_of(record["parts"].get("products", []))
    return found | ({"nm_cuda.svg": picture(cases)} if cases else {})
