#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Hybrid plans against plans on one kind of core, how well cores are chosen, and what HyGNN's other figures show.

The counterparts of HyGNN's comparison of cores (Figures 1 and 10), of its core choice and of its sweep of sparsity
(Table 10) come from plans that time their candidates, so that the kernels of one kind of core, hybrid ones and the
plan's own choice are measured in the same process on the same operands. Layouts, fused layers, widths and training
steps (Figures 5 and 11 to 15, Tables 3 to 6) are in hygnn_parts.py; `--parts` names some of them.

  tools/hygnn_report.py --program build/cuda/bin/tessera --data-folder graphs --commit 3bbdb77 \\
    --machine "NVIDIA H200" -o docs/results/hygnn

writes hygnn.json (every candidate, predicted and measured) and hygnn.md, below whose tables hygnn_notes.txt goes where it lies beside them; with --pictures also
pictures of each graph and of its windows before and after LOA. With --from hygnn.json, which may be given several times, nothing is
measured: the page and what all of them have together are written, each record with the commit that it was measured at.
"""
import argparse
import itertools
import json
import math
import pathlib
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import hygnn_parts
import logistic_cores
import plan_loss
import window_figure

# A kernel belongs to the kind of core that it runs on.
KINDS = {"rows": "CUDA cores", "tall": "tensor cores", "short": "tensor cores", "nm_split": "both, by columns", "nm": "tensor cores",
         "split": "both, by columns", "mixed": "both, by columns", "hybrid": "both, by windows", "ordered": "both, by windows in another order",
         "vectors": "CUDA cores", "stream": "CUDA cores", "panels": "CUDA cores", "scalars": "CUDA cores", "tiles": "tensor cores"}
PURE = ("CUDA cores", "tensor cores")
BOTH = 0.05  # of a graph's edges, from which on a kind of cores occurs in it
HYBRID = ("both, by columns", "both, by windows")
# Rows in communities: windows of 64 rows have at most as many columns, and a share of their places is used.
SWEPT_VERTICES = 65536
SAME_SPARSITY = [(size, size // 16) for size in (64, 128, 256, 512)]  # columns differ, the share of places that is used does not
SWEPT = list(dict.fromkeys(SAME_SPARSITY + [(size, degree) for size in (64, 512) for degree in (2, 4, 8, 16, 32, 48)]))


def kind_of(kernel):
    name = kernel.rsplit("/", 1)[-1]
    return next((kind for start, kind in KINDS.items() if name.startswith(start)), None)


def swept_sources():
    for size, degree in SWEPT:
        source = (f"generate:sbm?vertices={SWEPT_VERTICES}&communities={SWEPT_VERTICES // size}"
                  f"&mean_degree={degree}&inside=1&seed=1")
        yield (size, degree), source


def measure(arguments, save):
    """Records as plan_loss.py has them; those of the sweep with `community` and `degree`. `save` gets them after each graph."""
    records, problems = [], []
    begin = time.monotonic()
    jobs = [(name, source, {}) for name, source in plan_loss.sources_of(arguments)]
    if not arguments.no_sweep:
        jobs += [(f"communities of {size}, degree {degree}", plan_loss.made_before(source, arguments.made), {"community": size, "degree": degree})
                 for (size, degree), source in swept_sources()]
    with tempfile.TemporaryDirectory() as folder:
        for name, source, more in jobs:
            if time.monotonic() - begin > arguments.seconds:
                problems.append(f"{name}: not measured, {arguments.seconds:.0f} s had passed")
                continue
            try:
                choices = plan_loss.measured_plans(arguments.program, source, arguments, folder)
            except (RuntimeError, plan_loss.subprocess.TimeoutExpired) as error:
                problems.append(f"{name}: {error}")
                continue
            for op, details, candidates in choices:
                records.append({"graph": pathlib.Path(name).stem, "op": op, "details": details, "candidates": candidates,
                                "fitted": pathlib.Path(name).stem in plan_loss.FITTED, **more})
            save(records, {})
            print(f"{name}: {len(choices)} plans, {time.monotonic() - begin:.1f} s", file=sys.stderr)
    return records, problems


def measure_parts(arguments, save):
    """What each part that was asked for measures, by the part's name. `save` gets it after each graph."""
    parts, problems = {name: [] for name in arguments.parts.split(",") if name}, []
    begin = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        for part, records in parts.items():
            for name, source in plan_loss.sources_of(arguments):
                if time.monotonic() - begin > arguments.seconds:
                    problems.append(f"{part} of {name}: not measured, {arguments.seconds:.0f} s had passed")
                    continue
                try:
                    records += hygnn_parts.PARTS[part][0](arguments, pathlib.Path(name).stem, source, folder)
                    save(parts)
                except (RuntimeError, plan_loss.subprocess.TimeoutExpired) as error:
                    problems.append(f"{part} of {name}: {error}")
    return parts, problems


def timed(record):
    return [one for one in record["candidates"] if (one["measured_us"] or 0) > 0]


def best_by_kind(record):
    best = {}
    for one in timed(record):
        kind = kind_of(one["kernel"])
        if kind and (kind not in best or one["measured_us"] < best[kind]["measured_us"]):
            best[kind] = one
    return best


def geometric_mean(numbers):
    return math.exp(sum(map(math.log, numbers)) / len(numbers))


def short(details):
    """"128, fp32" of "features 128, fp32, sum, pattern"."""
    return ", ".join(details.replace("features ", "").split(", ")[:2])


def cell(one):
    return f"{one['measured_us']:.1f}" if one else ""


def plan_of(record, kind=None):
    """What the cost model takes, of all kernels or of those of a kind; nothing where that was not timed."""
    offered = [one for one in record["candidates"] if kind is None or kind_of(one["kernel"]) == kind]
    chosen = min(offered, key=lambda one: one["predicted_us"], default=None)
    return chosen if chosen and (chosen["measured_us"] or 0) > 0 else None


def hybrid_section(records, windows):
    """`windows` are the records of the part of that name, which say how many edges suit tensor cores."""
    shares = {one["graph"]: one["tensor_edges"][0] for one in windows}
    lines = ["## Hybrid plans against one kind of core (Figure 10)", "",
             "Microseconds of the fastest kernel of each kind, and what the cost model takes of all of them (\"plan\"). Speed is that of the plan over the "
             "better of the plans that have one kind of core alone.", "",
             "| graph | features, precision | CUDA cores | tensor cores | both, by columns | both, by windows | plan | us | speed |",
             "|---|---|---:|---:|---:|---:|---|---:|---:|"]
    groups = {"in all": [], f"where windows of each kind have at least {100 * BOTH:.0f} % of the edges": [], "where plans take both kinds of cores": []}
    for record in records:
        best, plan = best_by_kind(record), plan_of(record)
        pure = [one["measured_us"] for one in (plan_of(record, kind) for kind in PURE) if one]
        if record.get("community") or record["op"] != "spmm" or not plan or not pure:
            continue
        speed = min(pure) / plan["measured_us"]
        belongs = [True, BOTH <= shares.get(record["graph"], 0) <= 1 - BOTH, kind_of(plan["kernel"]) in HYBRID]
        for members, does in zip(groups.values(), belongs):
            members += [speed] if does else []
        lines.append(f"| {record['graph']} | {short(record['details'])} | " + " | ".join(cell(best.get(kind)) for kind in (*PURE, *HYBRID))
                     + f" | {plan['kernel'].rsplit('/', 1)[-1]} | {cell(plan)} | {speed:.2f} |")
    for name, speeds in groups.items():
        if speeds:
            lines += ["", f"Cases {name}: {len(speeds)}, geometric mean {geometric_mean(speeds):.3f}, worst {min(speeds):.2f}."]
    return lines


def choice_section(records):
    lines = ["## Choice of cores", "",
             "A loss is the time of the kernel that the cost model takes over that of the fastest. \"Right\" counts plans whose kinds "
             "of cores differ by more than 10 %: the share where the model takes the faster kind; \"majority\" is the share that the kind "
             "that wins most often would have.", "",
             "| op | precision | cases | mean loss | worst | worst from 20 us on | differ | right | majority |",
             "|---|---|---:|---:|---:|---:|---:|---:|---:|"]
    groups = {}
    for record in records:
        groups.setdefault((record["op"], plan_loss.precision_of(record["details"])), []).append(record)
    for (op, precision), members in sorted(groups.items()):
        found = [plan_loss.loss_of(record["candidates"]) for record in members]
        losses = [one[0] for one in found if one]
        if not losses:
            continue
        long_ones = [one[0] for one in found if one and one[2]["measured_us"] >= 20]
        rights, winners = [], []
        for record in members:
            best = best_by_kind(record)
            ranked = sorted(best.values(), key=lambda one: one["measured_us"])
            if len(ranked) < 2 or ranked[1]["measured_us"] < 1.1 * ranked[0]["measured_us"]:
                continue
            chosen = min(record["candidates"], key=lambda one: one["predicted_us"])
            winner = kind_of(ranked[0]["kernel"])
            winners.append(winner)
            rights.append(kind_of(chosen["kernel"]) == winner)
        majority = max((winners.count(kind) for kind in set(winners)), default=0)
        share = (lambda count: f"{100 * count / len(winners):.0f} %") if winners else (lambda count: "")
        worst_long = f"{max(long_ones):.2f}" if long_ones else ""
        lines.append(f"| {op} | {precision} | {len(losses)} | {geometric_mean(losses):.3f} | {max(losses):.2f} | "
                     f"{worst_long} | {len(winners)} | {share(sum(rights))} | {share(majority)} |")
    return lines


def sweep_section(records):
    swept = sorted((record for record in records if record.get("community")), key=lambda one: (one["community"], one["degree"], "bf16" in one["details"]))
    if not swept:
        return []
    lines = ["## Sweep of sparsity (Figure 1, Table 10)", "",
             f"{SWEPT_VERTICES:,} vertices in communities of 64 to 512, all edges inside: a window of 64 rows has the columns of its "
             "community, and sparsity is the share of places without an edge.", "",
             "| community | degree | sparsity | features, precision | CUDA cores | tensor cores | both, by windows | faster | plan |",
             "|---:|---:|---:|---|---:|---:|---:|---|---|"]
    for record in swept:
        best = best_by_kind(record)
        if not best:
            continue
        sparsity = 100 * (1 - record["degree"] / record["community"])
        ranked = sorted(best, key=lambda kind: best[kind]["measured_us"])
        chosen = min(record["candidates"], key=lambda one: one["predicted_us"])["kernel"].rsplit("/", 1)[-1]
        lines.append(f"| {record['community']} | {record['degree']} | {sparsity:.1f} % | {short(record['details'])} | "
                     + " | ".join(cell(best.get(kind)) for kind in (*PURE, "both, by windows"))
                     + f" | {ranked[0] if ranked else ''} | {chosen} |")
    same = [record for size, degree in SAME_SPARSITY for record in swept
            if (record["community"], record["degree"]) == (size, degree) and best_by_kind(record)]
    if len({record["community"] for record in same}) > 2:
        lines += ["", f"Columns of a window at one sparsity, {100 * (1 - 1 / 16):.1f} % (the right half of Figure 1): edges grow with the columns, so that microseconds "
                  "stand beside nanoseconds of 1,000 edges.", "", "| columns | features, precision | CUDA cores | of 1,000 edges | tensor cores | of 1,000 edges |",
                  "|---:|---|---:|---:|---:|---:|"]
        for record in sorted(same, key=lambda one: (short(one["details"]), one["community"])):
            best, thousands = best_by_kind(record), SWEPT_VERTICES * record["degree"] / 1000
            cells = [f"{cell(best[kind])} | {1000 * best[kind]['measured_us'] / thousands:.0f}" if kind in best else " | " for kind in PURE]
            lines.append(f"| {record['community']} | {short(record['details'])} | " + " | ".join(cells) + " |")
    return lines


def model_section(records):
    groups = {"the sweep": [record for record in records if record.get("community")],
              "graphs": [record for record in records if record.get("window")]}
    lines = logistic_cores.lines({name: cases_of_both_kinds(members) for name, members in groups.items()})
    return ["## The paper's model", ""] + lines if lines else []


def cases_of_both_kinds(records):
    """By precision: ((sparsity, columns), measured times of both pure kinds, predicted ones) of sums."""
    cases = {}
    for record in records:
        best = best_by_kind(record)
        if record["op"] == "spmm" and all(kind in best for kind in PURE):
            # The model chooses among all kernels of a kind, so that its best counts, not the prediction of the fastest.
            predicted = [min(one["predicted_us"] for one in timed(record) if kind_of(one["kernel"]) == kind) for kind in PURE]
            window = record.get("window") or (1 - record["degree"] / record["community"], record["community"])
            cases.setdefault(plan_loss.precision_of(record["details"]), []).append(
                (window, [best[kind]["measured_us"] for kind in PURE], predicted))
    return cases


def add_windows(records, arguments):
    """The sparsity and the columns of windows of 64 rows, in the mean of each graph, where its file is at hand."""
    sources = {pathlib.Path(name).stem: source for name, source in plan_loss.sources_of(arguments)}
    found = {}
    for record in records:
        graph = record["graph"]
        if record.get("community") or record.get("window") or graph not in sources:
            continue
        if graph not in found:
            said = hygnn_parts.tessera(arguments, "tiles", "--data", sources[graph], "--height", 64)
            tall = next(one for one in said["heights"] if one["height"] == 64)
            columns = tall["distinct_columns"] / max(1, tall["windows"])
            found[graph] = (1 - tall["reuse"] / 64, columns)
        record["window"] = found[graph]


def draw_windows(records, arguments):
    """Windows of each graph by columns and sparsity (Figure 5), with the line of the paper's model, where the sweep was measured."""
    swept = cases_of_both_kinds([record for record in records if record.get("community")]).get("fp32", [])
    if not swept:
        return
    suits = logistic_cores.fitted([(features, times[1] < times[0]) for features, times, _ in swept])
    for name, source in plan_loss.sources_of(arguments):
        file = pathlib.Path(f"{arguments.out}_{pathlib.Path(name).stem}_windows.svg")
        shares = window_figure.draw(arguments.program, pathlib.Path(name).stem, source, suits, file)
        if shares:
            print(f"{file}: {100 * shares[0]:.0f} % of windows suit tensor cores, {100 * shares[1]:.0f} % after LOA", file=sys.stderr)


def page(records, parts, problems, commits, machine, notes):
    lines = ["# Both kinds of cores", "",
             f"Made by `tools/hygnn_report.py` on commit {', '.join(f'`{commit}`' for commit in commits)}; {machine}. Times of a plan "
             "that times its candidates: medians of a few runs, in chains where they are short.", ""]
    sections = [hybrid_section(records, parts.get("windows", [])), choice_section(records), sweep_section(records), model_section(records)] if records else []
    sections += [hygnn_parts.PARTS[part][1](found) for part, found in parts.items()]
    sections.append(hygnn_parts.overhead_lines(parts.get("windows", []), parts.get("steps", [])))
    for section in sections + [hygnn_parts.candidate_lines(records)]:
        lines += section + ([""] if section else [])
    if notes:
        lines += ["", notes]
    if problems:
        lines += ["", "## Not measured", ""] + [f"- {problem}" for problem in problems]
    return "\n".join(lines).rstrip("\n") + "\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default="build/cuda/bin/tessera")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--data-folder", help="graphs as NAME/NAME.npz")
    parser.add_argument("--source", action="append", default=[], help="any other data set; may be given several times")
    parser.add_argument("--made", help="a folder with graphs that --source and the sweep name, made before: amazon.tsr is read for twin:amazon")
    parser.add_argument("--ops", default="spmm,sddmm")
    parser.add_argument("--features", default="64,128")
    parser.add_argument("--precisions", default="fp32,bf16")
    parser.add_argument("--seconds", type=float, default=600, help="start no graph after so long")
    parser.add_argument("--seconds-per-graph", type=float, default=60)
    parser.add_argument("--parts", default=",".join(hygnn_parts.PARTS),
                        help="which of " + ", ".join(hygnn_parts.PARTS) + " to measure (default all)")
    parser.add_argument("--orders", help="a folder that keeps graphs in other orders, so that they are made once")
    parser.add_argument("--no-plan-orders", action="store_true", help="orders of vertices without those that a plan finds for itself")
    parser.add_argument("--pictures", action="store_true", help="draw each graph and its windows before and after LOA (Figure 5)")
    parser.add_argument("--no-choices", action="store_true", help="the parts alone")
    parser.add_argument("--no-sweep", action="store_true", help="without the sweep of sparsity")
    parser.add_argument("--commit", default="unknown")
    parser.add_argument("--machine", required=True, help="where it was measured, for the page")
    parser.add_argument("--from", dest="earlier", action="append", default=[], help="results to write the page of, measuring nothing")
    parser.add_argument("--notes", help="a file in Markdown that goes below the tables (default OUT_notes.txt)")
    parser.add_argument("-o", "--out", default="hygnn", help="writes OUT.json and OUT.md")
    arguments = parser.parse_args()
    out = pathlib.Path(arguments.out)
    problems = []
    if arguments.earlier:
        read = [json.loads(pathlib.Path(name).read_text(encoding="utf-8")) for name in arguments.earlier]
        for one in read:
            for record in itertools.chain(one["records"], *one.get("parts", {}).values()):
                record.setdefault("commit", one["commit"])
        records = [record for one in read for record in one["records"]]
        parts = {part: [record for one in read for record in one.get("parts", {}).get(part, [])] for part in hygnn_parts.PARTS}
        commits = sorted({record["commit"] for record in itertools.chain(records, *parts.values())})
        out.with_suffix(".json").write_text(json.dumps({"commit": ", ".join(commits), "records": records, "parts": parts}, indent=0), encoding="utf-8")
    else:
        unknown = set(filter(None, arguments.parts.split(","))) - set(hygnn_parts.PARTS)
        if unknown:
            sys.exit(f"hygnn_report: no part '{unknown.pop()}': there are {', '.join(hygnn_parts.PARTS)}")

        def save(records, parts):
            text = json.dumps({"commit": arguments.commit, "records": records, "parts": parts}, indent=0)
            out.with_suffix(".json").write_text(text, encoding="utf-8")

        records, problems = ([], []) if arguments.no_choices else measure(arguments, save)
        parts, more_problems = measure_parts(arguments, lambda parts: save(records, parts))
        problems += more_problems
        commits = [arguments.commit]
        if not records and not any(parts.values()):
            sys.exit("hygnn_report: nothing was measured: " + "; ".join(problems))
    add_windows(records, arguments)
    if arguments.pictures:
        draw_windows(records, arguments)
    notes_file = pathlib.Path(arguments.notes or f"{out}_notes.txt")
    notes = notes_file.read_text(encoding="utf-8").strip() if arguments.notes or notes_file.exists() else ""
    out.with_suffix(".md").write_text(page(records, parts, problems, commits, arguments.machine, notes), encoding="utf-8")
    print(out.with_suffix(".md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
