# SPDX-License-Identifier: Apache-2.0
"""The parts of tools/hygnn_report.py that measure more than choices of kernels.

Each part is a function that measures, and one that writes its lines of the page: layouts (HyGNN's Figure 13) and what they do to
windows (5, 14 and 15), layers whose sums and product are one kernel (Table 3), widths that fill no warp (Table 4) and training steps
(Figures 11 and 12). What Tables 5 and 6 compare is in the candidates of plans: column ids in shared memory, and rows loaded straight into registers.
"""
import json
import math
import pathlib
import subprocess

WIDTHS = (47, 64, 89, 96)  # those that fill no warp, each before the next that does


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def tessera(arguments, *words):
    """What a verb says in JSON."""
    done = subprocess.run([arguments.program, *map(str, words), "--json", "-"], capture_output=True, text=True,
                          timeout=arguments.seconds_per_graph, check=False)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip().splitlines()[-1] if done.stderr.strip() else "no message")
    return json.loads(done.stdout)


def bench(arguments, source, ops, *words):
    return tessera(arguments, "bench", *ops, "--device", arguments.device, "--quick", "--data", source, *words)["records"]


def time_of(record):
    return record.get("chain_us") or record["median_us"]


# Orders of vertices.

ORDERED_KERNEL = "spmm/cuda/ordered_64"


def ordered_files(arguments, name, source, folder):
    """Files of the shuffled graph, and of both in the densest order; those that --orders has already are not made again."""
    folder = pathlib.Path(arguments.orders or folder)
    files = {what: folder / f"{name}_{what}.tsr" for what in ("shuffled", "ordered", "shuffled_ordered")}

    def make(graph, method, file):
        if not file.exists():
            tessera(arguments, "reorder", "--data", graph, "--method", method, "--seed", 1, "--graph-only", "-o", file)

    make(source, "random", files["shuffled"])
    make(source, "layout", files["ordered"])
    make(files["shuffled"], "layout", files["shuffled_ordered"])
    return files


def measure_layout(arguments, name, source, folder):
    """Default plans of the graph and of its shuffled twin, before and after; and, unless that is not asked for, windows of rows in a plan's own order,
    where nothing moves: each such plan finds the order again."""
    files = ordered_files(arguments, name, source, folder)
    precisions = arguments.precisions.split(",")
    graphs = [source, files["ordered"], files["shuffled"], files["shuffled_ordered"]]
    words = ["--features", 128, "--precision", arguments.precisions]
    plans = bench_each(arguments, graphs, *words)
    inside = None if arguments.no_plan_orders else bench_each(arguments, graphs[::2], *words, "--kernel", ORDERED_KERNEL)
    for precision in precisions:
        for turn, is_shuffled in enumerate((False, True)):
            before, after = plans[2 * turn][precision], plans[2 * turn + 1][precision]
            record = {"graph": name, "shuffled": is_shuffled, "precision": precision, "before_us": time_of(before), "before_kernel": before["kernel"],
                      "moved_us": time_of(after), "moved_kernel": after["kernel"]}
            yield record | ({"ordered_us": time_of(inside[turn][precision])} if inside else {})


def layout_gain(record):
    """Of the faster order; the old one stays where neither is."""
    return max(1.0, record["before_us"] / min(record.get("ordered_us", math.inf), record["moved_us"]))


def bench_each(arguments, sources, *words):
    """Sums over each of the graphs, all in one process: a dictionary by precision for each."""
    data = [word for source in sources[1:] for word in ("--data", source)]
    records = bench(arguments, sources[0], ["spmm"], *data, *words)
    count = len(records) // len(sources)
    return [{one["precision"]: one for one in records[i * count:(i + 1) * count]} for i in range(len(sources))]


def layout_lines(records):
    if not records:
        return []
    lines = ["## Orders of vertices (Figure 13)", "",
             "spmm of 128 features, microseconds: the default plan of the graph as it is, the default plan of the graph in the densest order (`tessera "
             "reorder --method layout`), and windows of rows in a plan's own order, where nothing moves. The gain is that of the better of both over "
             "the first; where there is none, the old order stays, and it counts 1.", "",
             "| graph | order | precision | as it is | reordered | order in the plan | gain |", "|---|---|---|---:|---:|---:|---:|"]
    gains = {}
    for one in sorted(records, key=lambda one: (one["shuffled"], one["graph"], one["precision"])):
        gain = layout_gain(one)
        gains.setdefault((one["shuffled"], one["precision"]), []).append(gain)
        inside = f"{one['ordered_us']:.1f}" if "ordered_us" in one else ""
        lines.append(f"| {one['graph']} | {'shuffled' if one['shuffled'] else 'as it came'} | {one['precision']} | "
                     f"{one['before_us']:.1f} | {one['moved_us']:.1f} | {inside} | {gain:.2f} |")
    for (is_shuffled, precision), found in sorted(gains.items()):
        lines += ["", f"{'Shuffled' if is_shuffled else 'As they came'}, {precision}: geometric mean {geometric_mean(found):.3f} over "
                  f"{len(found)} graphs, least {min(found):.2f}."]
    return lines


# What HyGNN's layout does to windows; nothing of it runs on a GPU.

def measure_windows(arguments, name, source, folder):
    picture = pathlib.Path(f"{arguments.out}_{name}_loa.svg")
    drawn = ["--picture", picture] if arguments.pictures else []
    found = tessera(arguments, "reorder", "--data", source, "--method", "loa", "--report", *drawn)
    sides = [found["before"], found["after"]]
    yield {"graph": name, "loa_seconds": found["order_seconds"], "edges": found["edges"],
           "reuse": [side["window_reuse"] for side in sides],
           "tensor_edges": [side["windows"]["tensor_cores"]["edges"] / max(1, found["edges"]) for side in sides],
           "blocks": [side["windows"]["blocks"] for side in sides]}


def window_lines(records):
    if not records:
        return []
    lines = ["## What the layout does to windows (Figures 5 and 14)", "",
             "LOA, before and after: edges per column of 16 rows, the share of edges in windows that suit tensor cores, and blocks of 16 x 8; "
             "pictures (`--pictures`) show them.", "",
             "| graph | edges | seconds | edges per column | on tensor cores | blocks |", "|---|---:|---:|---:|---:|---:|"]
    for one in records:
        row = [one["graph"], f"{one['edges']:,}", f"{one['loa_seconds']:.3f}", " → ".join(f"{reuse:.2f}" for reuse in one["reuse"]),
               " → ".join(f"{100 * share:.0f} %" for share in one["tensor_edges"]),
               " → ".join(f"{count:,}" for count in one["blocks"])]
        lines.append("| " + " | ".join(row) + " |")
    return lines


EPOCHS = 200  # that HyGNN sets the time of its layout beside


def overhead_lines(windows, steps):
    """What the layout takes beside training, of graphs that both parts measured."""
    of_epochs = {one["graph"]: EPOCHS * one["ms"] / 1000 for one in steps if one["op"] == "step_gcn"}
    rows = [(one["graph"], one["loa_seconds"], of_epochs[one["graph"]]) for one in windows if one["graph"] in of_epochs]
    if not rows:
        return []
    lines = ["## What the layout takes (Figure 15)", "", f"LOA on a CPU beside {EPOCHS} steps of a GCN (96 → 64 → 8, fp32).", "",
             f"| graph | LOA, s | {EPOCHS} steps, s | share |", "|---|---:|---:|---:|"]
    return lines + [f"| {graph} | {loa:.3f} | {training:.3f} | {100 * loa / (loa + training):.0f} % |" for graph, loa, training in rows]


# Sums and product in one kernel.

UPDATE_OPS = ("aggregate_update", "aggregate_update_kept", "aggregate_update_backward")
UPDATE_KERNELS = ("windows", "fused", "staged")


def measure_update(arguments, name, source, folder):
    for kernel in UPDATE_KERNELS:
        precisions = [one for one in arguments.precisions.split(",") if kernel != "windows" or one == "bf16"]
        if not precisions:
            continue
        for record in bench(arguments, source, UPDATE_OPS, "--features", "64,96", "--precision", ",".join(precisions),
                            "--kernel", f"aggregate_update/cuda/{kernel}"):
            yield {"graph": name, "op": record["op"], "features": record["features"], "precision": record["precision"],
                   "kernel": kernel, "us": time_of(record)}


def update_lines(records):
    times = {}
    for one in records:
        times.setdefault((one["graph"], one["features"], one["precision"]), {})[one["op"], one["kernel"]] = one["us"]
    if not times:
        return []
    lines = ["## Sums and product in one kernel (Table 3)", "", "Microseconds on windows / row by row / in stages, and how many times as fast the better of the first two is.", "",
             "| graph | features | precision | forward | | sums kept | | backward | |", "|---|---:|---|---:|---:|---:|---:|---:|---:|"]
    ratios = {}
    for (graph, features, precision), found in times.items():
        cells = []
        for op in UPDATE_OPS:
            taken = [found.get((op, kernel)) for kernel in UPDATE_KERNELS]
            fused = min(filter(None, taken[:-1]), default=None)
            if fused and taken[-1]:
                ratios.setdefault((op, features, precision), []).append(taken[-1] / fused)
                cells += [" / ".join(f"{us:.0f}" if us else "–" for us in taken), f"{taken[-1] / fused:.2f}"]
            else:
                cells += ["", ""]
        lines.append(f"| {graph} | {features} | {precision} | " + " | ".join(cells) + " |")
    for (op, features, precision), found in sorted(ratios.items()):
        lines += ["", f"`{op}`, {features} features, {precision}: geometric mean {geometric_mean(found):.2f}, worst {min(found):.2f}."]
    return lines


# Widths.

def measure_widths(arguments, name, source, folder):
    for record in bench(arguments, source, ["spmm"], "--features", ",".join(map(str, WIDTHS)), "--precision", arguments.precisions):
        yield {"graph": name, "features": record["features"], "precision": record["precision"], "us": time_of(record)}


def width_lines(records):
    times = {(one["graph"], one["precision"], one["features"]): one["us"] for one in records}
    pairs = list(zip(WIDTHS[::2], WIDTHS[1::2]))
    if not times:
        return []
    lines = ["## Widths that fill no warp (Table 4)", "",
             "Default plans, microseconds. Rows of such widths do not begin on 16-byte boundaries, so that X is copied to rows that do, or shifted "
             "as it is loaded; below 1 they take less than the next width that fills its warps.", "",
             "| graph | precision | " + " | ".join(f"{narrow} | {wide} | ratio" for narrow, wide in pairs) + " |",
             "|---|---|" + "---:|---:|---:|" * len(pairs)]
    for graph, precision in sorted({key[:2] for key in times}):
        cells = []
        for narrow, wide in pairs:
            both = [times.get((graph, precision, width)) for width in (narrow, wide)]
            cells.append(f"{both[0]:.1f} | {both[1]:.1f} | {both[0] / both[1]:.2f}" if all(both) else " | | ")
        lines.append(f"| {graph} | {precision} | " + " | ".join(cells) + " |")
    return lines


# Training steps.

def measure_steps(arguments, name, source, folder):
    ops = [op for model in ("gcn", "gin") for op in (f"step_{model}", f"layer_{model}_forward", f"layer_{model}")]
    for record in bench(arguments, source, ops, "--features", 96, "--hidden", 64, "--classes", 8):
        yield {"graph": name, "op": record["op"], "ms": record["median_us"] / 1000}


def step_lines(records):
    if not records:
        return []
    has_layers = any(one["op"].startswith("layer") for one in records)
    layers = "of a layer that keeps 96 features, forward and backward (both together less forward), and " if has_layers else ""
    columns = ["forward", "backward", "step"] if has_layers else ["step"]
    lines = ["## Training steps (Figures 11 and 12)", "", f"Milliseconds in fp32, {layers}of a whole step with Adam, 96 → 64 → 8.", "",
             "| graph | " + " | ".join(f"{model} {column}" for model in ("GCN", "GIN") for column in columns) + " |", "|---|" + "---:|" * 2 * len(columns)]
    by_graph = {}
    for one in records:
        by_graph.setdefault(one["graph"], {})[one["op"]] = one["ms"]
    for graph, found in by_graph.items():
        cells = []
        for model in ("gcn", "gin"):
            forward, both = found.get(f"layer_{model}_forward"), found.get(f"layer_{model}")
            times = {"forward": forward, "backward": both - forward if both and forward else None, "step": found.get(f"step_{model}")}
            cells += ["" if times[column] is None else f"{times[column]:.3f}" for column in columns]
        lines.append(f"| {graph} | " + " | ".join(cells) + " |")
    return lines


# Candidates of the same plan that differ in one thing.

def pair_lines(records, title, text, op, first, second):
    rows = []
    for record in records:
        if record["op"] != op:
            continue
        best = {}
        for one in record["candidates"]:
            kind = next((kind for kind, accepts in (("first", first), ("second", second))
                         if accepts(one["kernel"].rsplit("/", 1)[-1])), None)
            if kind and (one["measured_us"] or 0) > 0 and one["measured_us"] < best.get(kind, math.inf):
                best[kind] = one["measured_us"]
        if len(best) == 2:
            rows.append((record["graph"], record["details"], best["first"], best["second"]))
    if not rows:
        return []
    lines = [f"## {title}", "", text, "", "| graph | plan | with, us | without, us | times as fast |", "|---|---|---:|---:|---:|"]
    lines += [f"| {graph} | {', '.join(details.split(', ')[:2])} | {one:.1f} | {other:.1f} | {other / one:.2f} |"
              for graph, details, one, other in rows]
    return lines + ["", f"Geometric mean {geometric_mean([other / one for _, _, one, other in rows]):.3f}."]


def candidate_lines(records):
    shared = pair_lines(records, "Column ids in shared memory (Table 5)",
                        "The fastest kernel by rows whose warps keep column ids in shared memory, and the fastest whose lanes read their own.",
                        "spmm", lambda name: name.startswith("rows") and "shared" in name,
                        lambda name: name.startswith("rows") and "shared" not in name)
    direct = pair_lines(records, "Rows straight into registers (Table 6)",
                        "Dot products of windows of 16 rows: rows loaded as the matrix unit takes them, and through shared memory.",
                        "sddmm", lambda name: name.startswith("short_16_direct"), lambda name: name == "short_16")
    return shared + ([""] if shared else []) + direct


PARTS = {"layout": (measure_layout, layout_lines), "windows": (measure_windows, window_lines), "update": (measure_update, update_lines),
         "widths": (measure_widths, width_lines), "steps": (measure_steps, step_lines)}
