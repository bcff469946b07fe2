# SPDX-License-Identifier: Apache-2.0
"""The tables of the report `hygnn`."""
import math

from . import _cores, _plans, common

# A kernel belongs to the kind of cores that it runs on.
KINDS = {"rows": "CUDA cores", "tall": "tensor cores", "short": "tensor cores", "nm_split": "both, by columns",
         "nm": "tensor cores", "split": "both, by columns", "mixed": "both, by columns", "hybrid": "both, by windows",
         "ordered": "both, by windows in another order", "vectors": "CUDA cores", "stream": "CUDA cores",
         "panels": "CUDA cores", "scalars": "CUDA cores", "tiles": "tensor cores"}
PURE = ("CUDA cores", "tensor cores")
HYBRID = ("both, by columns", "both, by windows")
BOTH = 0.05  # of a graph's edges, from which on a kind of cores occurs in it
EPOCHS = 200  # that HyGNN sets the time of its layout beside
SWEPT_VERTICES = 65536
UPDATE_OPS = ("aggregate_update", "aggregate_update_kept", "aggregate_update_backward")
UPDATE_KERNELS = ("windows", "fused", "staged")


def kind_of(kernel):
    name = kernel.rsplit("/", 1)[-1]
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), None)


def timed(record):
    return [one for one in record["candidates"] if (one["measured_us"] or 0) > 0]


def best_by_kind(record):
    best = {}
    for one in timed(record):
        kind = kind_of(one["kernel"])
        if kind and (kind not in best or one["measured_us"] < best[kind]["measured_us"]):
            best[kind] = one
    return best


def plan_of(record, kind=None):
    """What the costs take, of all kernels or of those of a kind; nothing where that was not timed."""
    offered = [one for one in record["candidates"] if kind is None or kind_of(one["kernel"]) == kind]
    chosen = min(offered, key=lambda one: one["predicted_us"], default=None)
    return chosen if chosen and (chosen["measured_us"] or 0) > 0 else None


def short(details):
    """"128, fp32" of "features 128, fp32, sum, pattern"."""
    return ", ".join(details.replace("features ", "").split(", ")[:2])


def cell(one):
    return f"{one['measured_us']:.1f}" if one else ""


def hybrid_cases(records):
    """(record, plan, its speed over the better plan of one kind) of sums."""
    for record in records:
        plan = plan_of(record)
        pure = [one["measured_us"] for one in (plan_of(record, kind) for kind in PURE) if one]
        if record["op"] == "spmm" and plan and pure:
            yield record, plan, min(pure) / plan["measured_us"]


def hybrid_speeds(records):
    return [speed for _, _, speed in hybrid_cases(records)]


def hybrid_section(records, windows):
    shares = {one["graph"]: one["tensor_edges"][0] for one in windows}
    rows, groups = [], {"in all": [], f"where windows of each kind have at least {100 * BOTH:.0f} % of the edges": [],
                        "where plans take both kinds of cores": []}
    for record, plan, speed in hybrid_cases(records):
        best = best_by_kind(record)
        belongs = [True, BOTH <= shares.get(record["graph"], 0) <= 1 - BOTH, kind_of(plan["kernel"]) in HYBRID]
        for members, does in zip(groups.values(), belongs):
            members += [speed] if does else []
        rows.append([record["graph"], short(record["details"]), plan["kernel"].rsplit("/", 1)[-1],
                     *(cell(best.get(kind)) for kind in (*PURE, *HYBRID)), cell(plan), f"{speed:.2f}"])
    yield ("Microseconds of the fastest kernel of each kind, and of the one that the costs take (the plan). Speed is that of the\n"
           "plan over the better of the plans that have one kind of cores alone.\n")
    yield from common.table(["graph", "features, precision", "plan", *PURE, *HYBRID, "plan us", "speed"], rows, 3)
    for name, speeds in groups.items():
        if speeds:
            yield f"Cases {name}: {len(speeds)}, geometric mean {common.geometric_mean(speeds):.3f}, worst {min(speeds):.2f}.\n"


def sweep_section(records):
    yield (f"{SWEPT_VERTICES:,} vertices in communities, all edges inside: a window of 64 rows has the columns of its community,\n"
           "and sparsity is the share of places without an edge. Microseconds, and nanoseconds of 1,000 edges in brackets.\n")
    rows = []
    for record in sorted(records, key=lambda one: (one["community"], one["degree"], "bf16" in one["details"])):
        best = best_by_kind(record)
        if best:
            thousands = SWEPT_VERTICES * record["degree"] / 1000
            times = [f"{cell(best[kind])} ({1000 * best[kind]['measured_us'] / thousands:.0f})" if kind in best else ""
                     for kind in (*PURE, "both, by windows")]
            chosen = min(record["candidates"], key=lambda one: one["predicted_us"])["kernel"].rsplit("/", 1)[-1]
            rows.append([short(record["details"]), min(best, key=lambda kind: best[kind]["measured_us"]), chosen,
                         record["community"], record["degree"], f"{100 * (1 - record['degree'] / record['community']):.1f} %",
                         *times])
    yield from common.table(["features, precision", "faster", "plan", "community", "degree", "sparsity", *PURE,
                             "both, by windows"], rows, 3)


def cases_of_both_kinds(records):
    """By precision: ((sparsity, columns), measured times of both pure kinds, predicted ones) of sums."""
    cases = {}
    for record in records:
        best = best_by_kind(record)
        if record["op"] == "spmm" and all(kind in best for kind in PURE):
            predicted = [min(one["predicted_us"] for one in timed(record) if kind_of(one["kernel"]) == kind) for kind in PURE]
            window = record.get("window") or (1 - record["degree"] / record["community"], record["community"])
            cases.setdefault(_plans.precision_of(record["details"]), []).append(
                (window, [best[kind]["measured_us"] for kind in PURE], predicted))
    return cases


def model_section(sweep, choices):
    groups = {"the sweep": cases_of_both_kinds(sweep),
              "graphs": cases_of_both_kinds([record for record in choices if record.get("window")])}
    yield ("A logistic regression on sparsity and columns of windows of 64 rows, fitted to all other cases of the group, beside\n"
           "the costs and the kind that wins most of the others: what each loses when it chooses between the fastest kernels.\n")
    yield from common.table(["cases of", "precision", "way to choose", "cases", "mean loss", "worst",
                             "right where they differ by over 10 %"], _cores.rows(groups), 3)


def layout_section(records):
    yield ("spmm of 128 features, microseconds: the default plan of the graph as it is and in the densest order (`tessera reorder\n"
           "--method layout`), and windows of rows in a plan's own order, where nothing moves. Where nothing is gained, the old\n"
           "order stays and counts 1.\n")
    gains, rows = {}, []
    for one in sorted(records, key=lambda one: (one["shuffled"], one["graph"], one["precision"])):
        gain = max(1.0, one["before_us"] / min(one.get("ordered_us", math.inf), one["moved_us"]))
        gains.setdefault((one["shuffled"], one["precision"]), []).append(gain)
        rows.append([one["graph"], "shuffled" if one["shuffled"] else "as it came", one["precision"], f"{one['before_us']:.1f}",
                     f"{one['moved_us']:.1f}", f"{one['ordered_us']:.1f}" if "ordered_us" in one else "", f"{gain:.2f}"])
    yield from common.table(["graph", "order", "precision", "as it is", "reordered", "order in the plan", "gain"], rows, 3)
    for (is_shuffled, precision), found in sorted(gains.items()):
        yield (f"{'Shuffled' if is_shuffled else 'As they came'}, {precision}: geometric mean "
               f"{common.geometric_mean(found):.3f} over {len(found)} graphs, least {min(found):.2f}.\n")


def window_section(records):
    yield ("LOA, before and after: edges per column of 16 rows, the share of edges in windows that suit tensor cores, and blocks\n"
           "of 16 x 8.\n")
    rows = [[one["graph"], f"{one['edges']:,}", f"{one['loa_seconds']:.3f}", " → ".join(f"{n:.2f}" for n in one["reuse"]),
             " → ".join(f"{100 * n:.0f} %" for n in one["tensor_edges"]), " → ".join(f"{n:,}" for n in one["blocks"])]
            for one in records]
    yield from common.table(["graph", "edges", "seconds", "edges per column", "on tensor cores", "blocks"], rows)


def overhead_section(windows, steps):
    training = {one["graph"]: EPOCHS * one["ms"] / 1000 for one in steps if one["op"] == "step_gcn"}
    rows = [[one["graph"], f"{one['loa_seconds']:.3f}", f"{training[one['graph']]:.3f}",
             f"{100 * one['loa_seconds'] / (one['loa_seconds'] + training[one['graph']]):.0f} %"]
            for one in windows if one["graph"] in training]
    yield f"LOA on a CPU beside {EPOCHS} steps of a GCN (96 → 64 → 8, fp32).\n"
    yield from common.table(["graph", "LOA, s", f"{EPOCHS} steps, s", "share"], rows)


def update_section(records):
    times, ratios, rows = {}, {}, []
    for one in records:
        times.setdefault((one["graph"], one["features"], one["precision"]), {})[one["op"], one["kernel"]] = one["us"]
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
        rows.append([graph, precision, features, *cells])
    yield "Microseconds on windows / row by row / in stages, and how many times as fast the better of the first two is.\n"
    yield from common.table(["graph", "precision", "features", "forward", "", "sums kept", "", "backward", ""], rows, 2)
    for (op, features, precision), found in sorted(ratios.items()):
        yield (f"`{op}`, {features} features, {precision}: geometric mean {common.geometric_mean(found):.2f}, worst "
               f"{min(found):.2f}.\n")


def width_section(records):
    times = {(one["graph"], one["precision"], one["features"]): one["us"] for one in records}
    widths = sorted({key[2] for key in times})
    pairs, rows = list(zip(widths[::2], widths[1::2])), []
    for graph, precision in sorted({key[:2] for key in times}):
        cells = []
        for pair in pairs:
            narrow, wide = (times.get((graph, precision, width)) for width in pair)
            cells += [f"{narrow:.1f}", f"{wide:.1f}", f"{narrow / wide:.2f}"] if narrow and wide else ["", "", ""]
        rows.append([graph, precision, *cells])
    yield "Default plans, microseconds. Rows of such widths do not begin on 16-byte boundaries.\n"
    head = [text for narrow, wide in pairs for text in (str(narrow), str(wide), "ratio")]
    yield from common.table(["graph", "precision", *head], rows, 2)


def step_section(records):
    times = {(one["graph"], one["op"]): one["ms"] for one in records}
    rows = []
    for graph in dict.fromkeys(one["graph"] for one in records):
        row = [graph]
        for model in ("gcn", "gin"):
            forward, both, step = (times.get((graph, op)) for op in (f"layer_{model}_forward", f"layer_{model}",
                                                                      f"step_{model}"))
            row += ["" if ms is None else f"{ms:.3f}"
                    for ms in (forward, both - forward if both and forward else None, step)]
        rows.append(row)
    yield ("Milliseconds in fp32: a layer that keeps 96 features, forward and backward (both together less forward), and a whole\n"
           "step with Adam, 96 → 64 → 8.\n")
    yield from common.table(["graph", *(f"{model} {what}" for model in ("GCN", "GIN") for what in ("forward", "backward",
                                                                                                  "step"))], rows)


def pair_section(records, op, text, first, second):
    """Candidates of the same plan that differ in one thing."""
    rows, ratios = [], []
    for record in records:
        best = {}
        for one in timed(record) if record["op"] == op else []:
            name = one["kernel"].rsplit("/", 1)[-1]
            kind = "with" if first(name) else "without" if second(name) else None
            if kind and one["measured_us"] < best.get(kind, math.inf):
                best[kind] = one["measured_us"]
        if len(best) == 2:
            ratios.append(best["without"] / best["with"])
            rows.append([record["graph"], short(record["details"]), f"{best['with']:.1f}", f"{best['without']:.1f}",
                         f"{ratios[-1]:.2f}"])
    if rows:
        yield text + f" Geometric mean {common.geometric_mean(ratios):.3f}.\n"
        yield from common.table(["graph", "features, precision", "with, us", "without, us", "times as fast"], rows, 2)


def is_shared(name):
    return name.startswith("rows") and "shared" in name


def all_sections(parts):
    """Every section whose parts were measured."""
    choices, sweep, windows, steps = (parts.get(name, []) for name in ("choices", "sweep", "windows", "steps"))
    sections = [
        ("Plans on both kinds against one kind of cores (Figure 10)", choices and hybrid_section(choices, windows)),
        ("Sweep of sparsity (Figure 1, Table 10)", sweep and sweep_section(sweep)),
        ("How well cores are chosen, and the paper's model", (choices or sweep) and model_section(sweep, choices)),
        ("Orders of vertices (Figure 13)", parts.get("layout") and layout_section(parts["layout"])),
        ("What LOA does to windows (Figure 14)", windows and window_section(windows)),
        ("What LOA takes (Figure 15)", windows and steps and overhead_section(windows, steps)),
        ("Sums and product in one kernel (Table 3)", parts.get("update") and update_section(parts["update"])),
        ("Widths that fill no warp (Table 4)", parts.get("widths") and width_section(parts["widths"])),
        ("Training steps (Figures 11 and 12, Tables 8 and 9)", steps and step_section(steps)),
        ("Column ids in shared memory (Table 5)", choices and pair_section(
            choices, "spmm", "Kernels by rows that keep column ids in shared memory, and those whose lanes read their own.",
            is_shared, lambda name: name.startswith("rows") and not is_shared(name))),
        ("Rows straight into registers (Table 6)", choices and pair_section(
            choices, "sddmm", "Dot products of windows of 16 rows, loaded as the matrix unit takes them or through shared memory.",
            lambda name: name.startswith("short_16_direct"), lambda name: name == "short_16")),
    ]
    for title, section in sections:
        found = list(section) if section else []
        if found:
            yield f"## {title}\n"
            yield from found
