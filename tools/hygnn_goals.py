#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets what was measured beside what hybrid plans, layouts and fused layers were to reach.

  tools/hygnn_goals.py --results docs/results --peers peers.csv

reads the records of that folder (hygnn.json, plan_loss_fresh.json, cuda_spmm_default.json, cuda_sddmm_default.json,
cuda_spmm_epochs.json, cuda_mma.json, hygnn_large.json, hygnn_loa.json, calibration.json), writes hygnn_goals.md, and keeps the public kernels' times that count in
hygnn_goals.json, so that --peers is needed only once. What has no record is said to be missing. Text below
`## Notes` in an earlier page stays.
"""
import argparse
import collections
import csv
import json
import math
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import epochs_report
import hygnn_parts
import hygnn_report
import plan_loss

geometric_mean = hygnn_report.geometric_mean
# Generated graphs have other names in the table of public kernels.
TWINS = {"amazon-sbm": "amazon", "blog-rmat17": "rmat17", "mol1.7M": "molecules", "products-rmat21": "products", "proteins-sbm": "proteins",
         "reddit-sbm": "reddit"}
KINDS = {"fp32": ("fp32", "tf32"), "bf16": ("fp16", "bf16")}
WIDTH = 128
LAUNCH_US = 20  # runs below are mostly launch
FLOOR = 0.8  # of its floor, from which on a case counts as met
NOTES = "## Notes"

Goal = collections.namedtuple("Goal", "what asked measured met source")


def public_times(path):
    """The fastest public kernel of each case: (op, graph, kind of precision) by name and time."""
    best = {}
    with open(path, encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            kind = next((kind for kind, types in KINDS.items() if row["dtype"] in types), None)
            if kind is None or int(row["features"]) != WIDTH:
                continue
            key = row["op"], TWINS.get(row["graph"], row["graph"]), kind
            if key not in best or float(row["kernel_us"]) < best[key]["us"]:
                best[key] = {"op": key[0], "graph": key[1], "kind": kind, "peer": row["peer"], "type": row["dtype"], "us": float(row["kernel_us"])}
    return list(best.values())


def at_least(value, bound):
    return "yes" if value >= bound else f"no, {100 * (1 - value / bound):.0f} % below"


def at_most(value, bound):
    return "yes" if value <= bound else f"no, {100 * (value / bound - 1):.0f} % above"


def time_of(record):
    return record.get("chain_us") or record["median_us"]


def source_of(name, content, records):
    """A file and the commits that those of its records were measured at: its own where a record has none."""
    commits = sorted({record.get("commit", content["commit"]) for record in records})
    return f"{name}, " + ", ".join(f"`{commit}`" for commit in commits)


def hybrid_goals(hygnn):
    """Of sums over graphs that were not made for the sweep: the plan over the better one of one kind of core."""
    shares = {one["graph"]: one["tensor_edges"][0] for one in hygnn["parts"].get("windows", [])}
    speeds = []
    for record in hygnn["records"]:
        plan = hygnn_report.plan_of(record)
        pure = [one["measured_us"] for one in (hygnn_report.plan_of(record, kind) for kind in hygnn_report.PURE) if one]
        if not record.get("community") and record["op"] == "spmm" and plan and pure:
            speeds.append((min(pure) / plan["measured_us"], min(pure), record["graph"].removeprefix("twin "), plan_loss.precision_of(record["details"]), record))

    def source(counted):
        return source_of("hygnn.json", hygnn, [one[4] for one in counted])

    worst = min(speeds, key=lambda one: one[0])
    long_worst = min((one for one in speeds if one[1] >= LAUNCH_US), key=lambda one: one[0])
    yield Goal("hybrid against one kind of core, worst", "0.98", f"{long_worst[0]:.2f} ({long_worst[2]}, {long_worst[3]}) from {LAUNCH_US} µs on, "
               f"{worst[0]:.2f} ({worst[2]}, {worst[3]}, {worst[1]:.0f} µs) with shorter runs", at_least(long_worst[0], 0.98), source(speeds))
    both = [one for one in speeds if hygnn_report.BOTH <= shares.get(one[2], 0) <= 1 - hygnn_report.BOTH and one[1] >= LAUNCH_US]
    if both:
        mean = geometric_mean([one[0] for one in both])
        yield Goal("the same where windows of both kinds occur, mean", "1.15", f"{mean:.2f} over {len(both)} cases from {LAUNCH_US} µs on", at_least(mean, 1.15), source(both))
    large = [one for one in speeds if one[2] in ("reddit", "proteins")]
    if large:
        mean = geometric_mean([one[0] for one in large])
        yield Goal("the same on reddit- and proteins-size, mean", "1.3", f"{mean:.2f} over {len(large)} cases, worst {min(large, key=lambda one: one[0])[0]:.2f}", at_least(mean, 1.3), source(large))


def public_goals(op, content, others, means):
    """Speeds of default plans over the best public kernel, by kind of precision."""
    name = f"cuda_{op}_default.json"
    by_case = {(one["op"], one["graph"], one["kind"]): one for one in others}
    for precision, bound in means.items():
        found = []
        for record in content["records"]:
            other = by_case.get((op, record["graph"], precision))
            if other and (record["op"], record["precision"], record["features"]) == (op, precision, WIDTH):
                found.append((other["us"] / record["median_us"], record, other))
        if not found:
            continue
        source = source_of(name, content, [one[1] for one in found])
        mean = geometric_mean([one[0] for one in found])
        counted = [one for one in found if one[1]["floor_us"] < FLOOR * one[1]["median_us"] and (op == "spmm" or time_of(one[1]) >= LAUNCH_US)]
        worst = min(counted, key=lambda one: one[0])
        below = [f"{one[1]['graph']} {one[0]:.2f}" for one in sorted(counted, key=lambda one: one[0]) if one[0] < 0.97]
        if bound:
            yield Goal(f"{op} in {precision} against the best public kernel, mean", str(bound), f"{mean:.2f} over {len(found)} graphs", at_least(mean, bound), source)
            yield Goal(f"the same, worst", "0.97", f"{worst[0]:.2f} ({worst[1]['graph']}, {worst[1]['median_us']:.1f} µs)", at_least(worst[0], 0.97), source)
        else:
            yield Goal(f"{op} in {precision} against the best public kernel, worst where it is not the launch", "0.97",
                       f"{worst[0]:.2f} ({worst[1]['graph']}); below: {', '.join(below) or 'none'}; mean of all {len(found)} {mean:.2f}", at_least(worst[0], 0.97), source)
    times = {(one["graph"], one["precision"]): one for one in content["records"] if one["op"] == op and one["features"] == WIDTH}
    if op == "spmm":
        for graph, most in (("reddit", 1100), ("proteins", 290), ("fb100-Cornell5", 45)):
            if (graph, "bf16") in times:
                us = times[graph, "bf16"]["median_us"]
                yield Goal(f"{graph} in bf16, µs", str(most), f"{us:.1f}", at_most(us, most), source_of(name, content, [times[graph, "bf16"]]))
    else:
        ratios = [(time_of(times[graph, "fp32"]) / time_of(one), graph) for (graph, precision), one in times.items() if precision == "bf16" and (graph, "fp32") in times]
        if ratios:
            yield Goal("sddmm in bf16 over fp32, worst", "1", f"{min(ratios)[0]:.2f} ({min(ratios)[1]}) of {len(ratios)} graphs", at_least(min(ratios)[0], 1), source_of(name, content, times.values()))


def epochs_goals(content, default, others, bounds):
    """Plans that may order rows since they will be used often: no goal of their own, beside that of default plans."""
    for precision, bound in bounds.items():
        found = epochs_report.means(epochs_report.rows_of(content, default, others, precision))
        if found:
            mean, by_default, graphs = found
            yield Goal(f"spmm in {precision} by plans for {content['epochs']:,} epochs, which may order rows, against the best public kernel, mean", f"none ({bound} is that of default plans)",
                       f"{mean:.2f} over {graphs} graphs, by default plans {by_default:.2f} on the same", "", source_of("cuda_spmm_epochs.json", content, content["records"]))


def twin_goals(large):
    """Shuffled twins in order, and dbpedia-size."""
    source = f"hygnn_large.json, `{large['commit']}`"
    times = {(one["graph"], one["precision"], one["kernel"] if "cusparse" in one["kernel"] else ""): one["median_us"] for one in large["records"]}
    for graph in ("reddit", "proteins"):
        us = [times.get((name, "bf16", "")) for name in (f"{graph}@shuffled-communities", graph)]
        if all(us):
            yield Goal(f"{graph}'s shuffled twin in order over the unshuffled, bf16", "1.3", f"{us[0] / us[1]:.2f} ({us[0]:.0f} and {us[1]:.0f} µs)", at_most(us[0] / us[1], 1.3), source)
    vendor = min((us for (graph, _, kernel), us in times.items() if graph == "dbpedia" and kernel), default=None)
    ours = times.get(("dbpedia", "fp32", ""))
    if ours and vendor:
        yield Goal("dbpedia-size against cuSPARSE", "1", f"{vendor / ours:.2f} ({ours / 1000:.1f} and {vendor / 1000:.1f} ms)", at_least(vendor / ours, 1), source)


def choice_goals(content):
    """Losses of plans, on graphs that took no part in any fit."""
    groups = collections.defaultdict(list)
    for record in content["records"]:
        found = plan_loss.loss_of(record["candidates"])
        if found and not record["fitted"] and found[2]["measured_us"] >= LAUNCH_US:
            groups[record["op"], plan_loss.precision_of(record["details"])].append((found[0], record))
    for (op, precision), found in sorted(groups.items()):
        mean, (worst, of) = geometric_mean([one[0] for one in found]), max(found, key=lambda one: one[0])
        yield Goal(f"{op} in {precision}, what plans lose on graphs outside of all fits, from {LAUNCH_US} µs on", "3 %, worst 10",
                   f"{100 * (mean - 1):.1f} %, worst {100 * (worst - 1):.0f} ({of['graph'].split('?')[0]}), {len(found)} cases",
                   "yes" if mean <= 1.03 and worst <= 1.1 else "no",
                   source_of("plan_loss_fresh.json", content, [one[1] for one in found]))


def window_goals(calibration):
    """Choices among kernels of windows that calibration held out."""
    own, majority = calibration["built_in"], calibration["majority"]
    right = (lambda of: f"{of['right'] * of['clear']:.0f} of {of['clear']}" if of["clear"] else "none of which there is") if "clear" in own else lambda of: f"{100 * of['right']:.0f} %"
    yield Goal("what calibration held out, what choices lose", "3 %, worst 10", f"{100 * (own['mean_regret'] - 1):.1f} %, worst {100 * (own['worst_regret'] - 1):.0f}; "
               f"right where candidates differ by a tenth {right(own)} (most frequent winner {right(majority)}, which loses "
               f"{100 * (majority['mean_regret'] - 1):.1f} %)", "yes" if own["mean_regret"] <= 1.03 and own["worst_regret"] <= 1.1 else "no",
               f"calibration.json, `{calibration['commit']}`")


def layout_goals(hygnn, loa):
    source = source_of("hygnn.json", hygnn, hygnn["parts"].get("layout", []))
    gains = collections.defaultdict(list)
    for one in hygnn["parts"].get("layout", []):
        gains[one["shuffled"], one["precision"]].append(hygnn_parts.layout_gain(one))
    for (is_shuffled, precision), found in sorted(gains.items()):
        mean, bound = geometric_mean(found), 1.3 if is_shuffled else 1.084
        yield Goal(f"reordering {'shuffled' if is_shuffled else 'real'} graphs, {precision}, mean gain", f"{100 * (bound - 1):.1f} %",
                   f"{100 * (mean - 1):.1f} % over {len(found)} graphs, least 0", "yes" if mean >= bound else "no", source)
    if loa:
        seconds = min(loa["order_seconds"])
        yield Goal("LOA on COLLAB, s on 16 cores", "0.5", f"{seconds:.2f}", at_most(seconds, 0.5), f"hygnn_loa.json, `{loa['commit']}`")


def update_goals(hygnn):
    """Both passes of training: forward with the sums kept, and backward."""
    times = collections.defaultdict(dict)
    for one in hygnn["parts"].get("update", []):
        times[one["graph"], one["features"], one["precision"], one["op"]][one["kernel"]] = one["us"]
    for precision in KINDS:
        for ops, what in ((hygnn_parts.UPDATE_OPS[:1] + hygnn_parts.UPDATE_OPS[2:], "forward and backward"), (hygnn_parts.UPDATE_OPS[1:], "forward that keeps the sums, and backward")):
            ratios = []
            for (_, _, of, op), found in times.items():
                fused = min((us for kernel, us in found.items() if kernel != "staged"), default=None)
                if of == precision and op in ops and fused and "staged" in found:
                    ratios.append(found["staged"] / min(fused, found["staged"]))
            if ratios:
                mean = geometric_mean(ratios)
                yield Goal(f"fused layer against separate kernels, {precision}, {what}", "1.25", f"{mean:.2f} over {len(ratios)} cases", at_least(mean, 1.25),
                           source_of("hygnn.json", hygnn, hygnn["parts"]["update"]))


def mma_goals(content):
    source = f"cuda_mma.json, `{content['commit']}`"
    times = collections.defaultdict(dict)
    for one in content["records"]:
        times[one["op"], one["graph"], one["features"], one["precision"]][one["kernel"].rsplit("/", 1)[-1]] = one["median_us"]
    others = {(one["op"], one["graph"], one["features"], one["precision"]): one["us"] for one in content["others"]}
    beside = {"bf16": "fp16", "fp32": "tf32"}
    for op, (warps, groups) in {"spmm": ("tall_64_mma", "tall_64"), "sddmm": ("tiles_64_mma", "tiles_64")}.items():
        cases = {key: found for key, found in times.items() if key[0] == op and warps in found and groups in found}
        if not cases:
            continue
        mean = geometric_mean([found[warps] / found[groups] for found in cases.values()])
        yield Goal(f"{op} on `mma.sync` over `wgmma`", "1.6", f"{mean:.2f}", at_most(mean, 1.6), source)
        speeds = [others[key[:3] + (beside[key[3]],)] / min(us for kernel, us in found.items() if kernel != groups)
                  for key, found in cases.items() if key[:3] + (beside[key[3]],) in others]
        if speeds:
            yield Goal(f"{op} on `mma.sync` (its fastest kernel) against FlashSparse and DTC, worst", "1", f"{min(speeds):.2f}, mean {geometric_mean(speeds):.2f}",
                       at_least(min(speeds), 1), source)


def page(goals, missing, notes):
    lines = ["# What hybrid plans, layouts and fused layers were to reach", "",
             f"Made by `tools/hygnn_goals.py`; NVIDIA H200, {WIDTH} features where nothing else is said. Public kernels' times are between events, and so are ours beside them. "
             f"A case at {100 * FLOOR:.0f} % of its floor or better is left out of the worst.", "", "| what | goal | measured | met | record, commit |", "|---|---|---|---|---|"]
    lines += [f"| {goal.what} | {goal.asked} | {goal.measured} | {goal.met} | {goal.source} |" for goal in goals]
    if missing:
        lines += ["", f"Without a record: {', '.join(missing)}."]
    return "\n".join(lines) + "\n" + (f"\n{notes}" if notes else "")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--results", default="docs/results", help="the folder with the records")
    parser.add_argument("--peers", help="a table of public kernels: op, graph, features, peer, dtype, kernel_us")
    arguments = parser.parse_args()
    folder = pathlib.Path(arguments.results)
    out = folder / "hygnn_goals.md"
    if arguments.peers:
        out.with_suffix(".json").write_text(json.dumps({"others": public_times(arguments.peers)}, indent=0) + "\n", encoding="utf-8")
    missing = []

    def read(name):
        file = folder / name
        if not file.exists():
            missing.append(name)
            return None
        return json.loads(file.read_text(encoding="utf-8"))

    others = (read("hygnn_goals.json") or {"others": []})["others"]
    hygnn, large, mma, fresh, loa, calibration = (read(name) for name in ("hygnn.json", "hygnn_large.json", "cuda_mma.json", "plan_loss_fresh.json",
                                                                          "hygnn_loa.json", "calibration.json"))
    goals = list(hybrid_goals(hygnn)) if hygnn else []
    sums = {"fp32": 1.7, "bf16": 2.6}
    for op, means in (("spmm", sums), ("sddmm", {"fp32": None})):
        content = read(f"cuda_{op}_default.json")
        goals += public_goals(op, content, others, means) if content else []
        if op == "spmm" and content and (often := read("cuda_spmm_epochs.json")):
            goals += epochs_goals(often, content, others, sums)
    goals += choice_goals(fresh) if fresh else []
    goals += window_goals(calibration) if calibration else []
    goals += [*layout_goals(hygnn, loa), *update_goals(hygnn)] if hygnn else []
    goals += mma_goals(mma) if mma else []
    goals += twin_goals(large) if large else []
    earlier = out.read_text(encoding="utf-8") if out.exists() else ""
    notes = earlier[earlier.index(NOTES):] if NOTES in earlier else ""
    out.write_text(page(goals, missing, notes), encoding="utf-8")
    print(out.read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
