# SPDX-License-Identifier: Apache-2.0
"""HyGNN's figures: plans on both kinds of cores, how cores are chosen, layouts, fused layers, widths and steps.

    tools/report.py hygnn --device cuda --data GRAPHS
    tools/report.py hygnn --quick --source embedded:citation

Parts: choices (Figure 10, Tables 5 and 6), sweep (Figure 1, Table 10), layout (Figure 13), windows (Figures 14 and 15),
update (Table 3), widths (Table 4), steps (Figures 11 and 12, Tables 8 and 9), pictures (Figure 5). Choices come from plans that time their
candidates, so that kernels on one kind of cores, on both and the plan's own choice are measured in one process on the same
operands. --data measures the graphs of a folder, --source others. Parts that are of a GPU are left out on the CPU.
"""
import functools
import sys

from . import _cores, _hygnn_lines, _plans, common

SWEPT_VERTICES = 65536
SAME_SPARSITY = [(size, size // 16) for size in (64, 128, 256, 512)]  # columns differ, the share of places used does not
SWEPT = list(dict.fromkeys(SAME_SPARSITY + [(size, degree) for size in (64, 512) for degree in (2, 4, 8, 16, 32, 48)]))
WIDTHS = (47, 64, 89, 96)  # those that fill no warp, each before the next that does
ORDERED_KERNEL = "spmm/cuda/ordered_64"
DRAWN = "chameleon"
MOST_DRAWN = 3_000_000  # edges, which go through text


def add_options(parser):
    _plans.add_options(parser, features="64,128")


def each_graph(part):
    """Measures graph after graph; one that fails is left out."""
    @functools.wraps(part)
    def measure(run):
        records = []
        for name, source in _plans.sources_of(run).items():
            if run.is_late(f"{part.__name__.removeprefix('measure_')} of {name}"):
                continue
            try:
                records += [{"graph": name, **one} for one in part(run, source)]
            except common.Failed as problem:
                print(f"left out: {name}: {problem}", file=sys.stderr)
        return records
    return measure


@common.needs_gpu
def measure_choices(run):
    """Plans of all graphs, with the sparsity and the columns of their windows of 64 rows in the mean."""
    sources = _plans.sources_of(run)

    def window(name):
        tall = run.call("tiles", "--data", sources[name], "--height", 64)["heights"][-1]
        return {"window": (1 - tall["reuse"] / 64, tall["distinct_columns"] / max(1, tall["windows"]))}

    return _plans.plans_of(run, sources, window)


@common.needs_gpu
def measure_sweep(run):
    """Rows in communities: windows of 64 rows have at most as many columns, and a share of their places is used."""
    swept = {f"communities of {size}, degree {degree}": (size, degree) for size, degree in SWEPT}
    sources = {name: f"generate:sbm?vertices={SWEPT_VERTICES}&communities={SWEPT_VERTICES // size}&mean_degree={degree}"
                     "&inside=1&seed=1" for name, (size, degree) in swept.items()}
    return _plans.plans_of(run, sources, lambda name: dict(zip(("community", "degree"), swept[name])))


@common.needs_gpu
@each_graph
def measure_layout(run, source):
    """Default plans of the graph and of its shuffled twin, before and after; and windows of rows in a plan's own order."""
    def ordered(graph, method, name):
        file = run.folder / name
        file.unlink(missing_ok=True)
        run.command([run.program, "reorder", "--data", graph, "--method", method, "--seed", 1, "--graph-only", "-o", file])
        return str(file)

    shuffled = ordered(source, "random", "shuffled.tsr")
    graphs = [source, ordered(source, "layout", "ordered.tsr"), shuffled, ordered(shuffled, "layout", "both.tsr")]
    words = ["--features", 128, "--precision", run.options.precisions]
    plans = [{one["precision"]: one for one in run.bench(["spmm"], [graph], *words)} for graph in graphs]
    inside = [{one["precision"]: one for one in run.bench(["spmm"], [graph], *words, "--kernel", ORDERED_KERNEL)}
              for graph in graphs[::2]]
    for precision in run.options.precisions.split(","):
        for turn, is_shuffled in enumerate((False, True)):
            before, after = plans[2 * turn].get(precision), plans[2 * turn + 1].get(precision)
            if before and after:
                own = inside[turn].get(precision)
                yield {"shuffled": is_shuffled, "precision": precision, "before_us": common.time_of(before),
                       "moved_us": common.time_of(after), **({"ordered_us": common.time_of(own)} if own else {})}


@each_graph
def measure_windows(run, source):
    found = run.call("reorder", "--data", source, "--method", "loa", "--report")
    sides = [found["before"], found["after"]]
    yield {"loa_seconds": found["order_seconds"], "edges": found["edges"], "reuse": [side["window_reuse"] for side in sides],
           "tensor_edges": [side["windows"]["tensor_cores"]["edges"] / max(1, found["edges"]) for side in sides],
           "blocks": [side["windows"]["blocks"] for side in sides]}


@common.needs_gpu
@each_graph
def measure_update(run, source):
    for kernel in _hygnn_lines.UPDATE_KERNELS:
        precisions = [one for one in run.options.precisions.split(",") if kernel != "windows" or one == "bf16"]
        for record in run.bench(_hygnn_lines.UPDATE_OPS, [source], "--features", "64,96", "--precision",
                                ",".join(precisions), "--kernel", f"aggregate_update/cuda/{kernel}") if precisions else []:
            yield {"op": record["op"], "features": record["features"], "precision": record["precision"], "kernel": kernel,
                   "us": common.time_of(record)}


@each_graph
def measure_widths(run, source):
    for record in run.bench(["spmm"], [source], "--features", ",".join(map(str, WIDTHS)), "--precision",
                            run.options.precisions):
        yield {"features": record["features"], "precision": record["precision"], "us": common.time_of(record)}


@each_graph
def measure_steps(run, source):
    ops = [op for model in ("gcn", "gin") for op in (f"step_{model}", f"layer_{model}_forward", f"layer_{model}")]
    for record in run.bench(ops, [source], "--features", 96, "--hidden", 64, "--classes", 8):
        yield {"op": record["op"], "ms": record["median_us"] / 1000}


def measure_pictures(run):
    """Windows of one graph before and after LOA: chameleon, or the first that there is."""
    sources = _plans.sources_of(run)
    name = DRAWN if DRAWN in sources else next(iter(sources))
    before, after = run.folder / "before.mtx", run.folder / "after.mtx"
    run.command([run.program, "convert", "--data", sources[name], "--graph-only", "-o", before])
    with open(before, encoding="utf-8") as matrix:
        edges = int(next(line for line in matrix if not line.startswith("%")).split()[2])
    if edges > MOST_DRAWN:
        print(f"left out: {name} has too many edges to be drawn", file=sys.stderr)
        return None
    run.command([run.program, "reorder", "--data", before, "--method", "loa", "--graph-only", "-o", after])
    return {"graph": name, "before": _cores.windows_of(before), "after LOA": _cores.windows_of(after)}


PARTS = {"choices": measure_choices, "sweep": measure_sweep, "layout": measure_layout, "windows": measure_windows,
         "update": measure_update, "widths": measure_widths, "steps": measure_steps, "pictures": measure_pictures}


def suits_of(sweep):
    """The paper's model, fitted to the sweep in fp32; without one, none."""
    cases = _hygnn_lines.cases_of_both_kinds(sweep).get("fp32", [])
    return _cores.fitted([(features, times[1] < times[0]) for features, times, _ in cases]) if cases else None


def lines(record):
    parts = record["parts"]
    speeds = _hygnn_lines.hybrid_speeds(parts.get("choices", []))
    yield "# Plans on both kinds of cores (HyGNN)\n"
    yield "Question: what do plans gain that may use CUDA cores and tensor cores, and orders and fused layers beside them?\n"
    if speeds:
        yield (f"Plans are {common.geometric_mean(speeds):.2f} times as fast as the better plan on one kind of cores in the mean of "
               f"{len(speeds)} sums, {min(speeds):.2f} at worst.\nMost of the gain on real graphs comes from renumbering "
               "vertices, not from mixing cores.\n")
    yield common.where(record)
    yield from common.commits_note(record)
    yield ""
    yield from _hygnn_lines.all_sections(parts)
    if "pictures" in parts and suits_of(parts.get("sweep", [])):
        name = parts["pictures"]["graph"]
        yield "## Windows by columns and sparsity (Figure 5)\n"
        yield ("The line is where the paper's model, fitted to the sweep, changes its mind between both kinds of cores.\n\n"
               f"![windows of {name} before and after LOA](hygnn_windows.svg)\n")
    yield from common.again("hygnn --device cuda --data GRAPHS",
                            "The record is hygnn.json.gz; `tessera reorder --method loa --report --picture FILE` draws any graph.")


def pages(record):
    found = {"hygnn.md": common.joined(lines(record))}
    suits = suits_of(record["parts"].get("sweep", []))
    if "pictures" in record["parts"] and suits:
        panels = {title: windows for title, windows in record["parts"]["pictures"].items() if title != "graph"}
        if all(panels.values()):
            found["hygnn_windows.svg"] = _cores.picture(record["parts"]["pictures"]["graph"], panels, suits)
    return found
