# SPDX-License-Identifier: Apache-2.0
"""How much default plans lose beside the fastest kernel, and where.

    tools/report.py plan_loss --device cuda --data GRAPHS --source twin:molecules

For every graph, width and precision a plan is made that times its candidates (`tessera bench --tune measured`). It
leaves the predicted and the measured time of each, so that the loss of a default plan, which takes the candidate with the
smallest prediction, is known: its measured time over the smallest one. Graphs that the costs were fitted to
(tools/reports/fitted_graphs.txt) are counted apart. --data measures all graphs of a folder, --source others.
"""
import collections
import pathlib
import re
import sys

from . import common

FITTED = set((pathlib.Path(__file__).parent / "fitted_graphs.txt").read_text(encoding="utf-8").splitlines())


def add_options(parser, ops="spmm,sddmm", features="16,32,64,128,256"):
    parser.add_argument("--source", action="append", default=[], help="any other data set; may be given several times")
    parser.add_argument("--ops", default=ops, help="default: %(default)s")
    parser.add_argument("--features", default=features, help="default: %(default)s")
    parser.add_argument("--precisions", default="fp32,bf16", help="default: %(default)s")
    parser.add_argument("--seconds-per-graph", type=float, default=60, help="default: 60")


def sources_of(run):
    """{name: source}: those that were named, or the files of the folder."""
    named = {common.name_of(source): source for source in run.options.source}
    files = sorted(pathlib.Path(run.options.data).glob("*/*.npz")) if run.options.data and not named else []
    found = named | {path.stem: str(path) for path in files}
    if not found:
        raise common.Missing("no graph is named: --source SOURCE, or --data FOLDER with NAME/NAME.npz")
    return found


def plans_of(run, sources, more=lambda name: {}):
    """Records of all graphs that could be measured."""
    records, options = [], run.options
    for name, source in sources.items():
        if run.is_late(name):
            continue
        try:
            choices = run.plans(options.ops.split(","), source, options.features, options.precisions,
                                options.seconds_per_graph)
        except common.Failed as problem:
            print(f"left out: {problem}", file=sys.stderr)
            continue
        records += [{"graph": name, "op": op, "details": details, "candidates": candidates, "fitted": name in FITTED,
                     **more(name)} for op, details, candidates in choices]
        print(f"{name}: {len(choices)} plans", file=sys.stderr)
    return records


def record_name(_):
    return "plan_loss_fresh"


PARTS = {"plans": lambda run: plans_of(run, sources_of(run))}


def loss_of(candidates):
    """(loss, default, fastest), or None where the default choice was not timed."""
    timed = [one for one in candidates if one["measured_us"] > 0]
    default = min(candidates, key=lambda one: one["predicted_us"], default=None)
    if not timed or default["measured_us"] <= 0:
        return None
    fastest = min(timed, key=lambda one: one["measured_us"])
    return default["measured_us"] / fastest["measured_us"], default, fastest


def precision_of(details):
    return re.search(r"\b(fp32|tf32|bf16|fp16)\b", details).group(1)


def summary_rows(losses):
    groups = collections.defaultdict(list)
    for found, record in losses:
        groups[record["op"], precision_of(record["details"]), record["fitted"]].append((found, record))
    for (op, precision, fitted), members in sorted(groups.items(), key=str):
        of = [found[0] for found, _ in members]
        long_ones = [found[0] for found, _ in members if found[2]["measured_us"] >= 20]
        worst, where = max(members, key=lambda member: member[0][0])
        yield [op, precision, "fitted" if fitted else "new", f"{where['graph']}, {where['details'].split(',')[0]}",
               len({record["graph"] for _, record in members}), len(of), f"{common.geometric_mean(of):.3f}",
               f"{worst[0]:.2f}", sum(loss > 1.1 for loss in of), f"{max(long_ones):.2f}" if long_ones else ""]


def lines(record):
    plans = record["parts"]["plans"] if "parts" in record else record["records"]
    losses = [(found, one) for one in plans if (found := loss_of(one["candidates"]))]
    all_losses = [found[0] for found, _ in losses]
    yield "# How well plans choose\n"
    yield "Question: how much slower is the kernel that a default plan takes than the fastest one that it could take?\n"
    yield (f"{100 * (common.geometric_mean(all_losses) - 1):.1f} % in the mean of {len(losses)} plans on "
           f"{len({one['graph'] for _, one in losses})} graphs, {100 * (max(all_losses) - 1):.0f} % at worst; "
           f"{sum(loss > 1.1 for loss in all_losses)} plans lose more than 10 %.\n")
    yield common.where(record)
    yield ("A loss is the measured time of the kernel with the smallest predicted time over that of the fastest. Runs are\n"
           "timed in chains where they are short; times of a few microseconds vary by some 10 %. *New* graphs took no part in "
           "any fit.\n")
    yield from common.table(["op", "precision", "graphs", "worst on", "number", "cases", "mean loss", "worst", "above 1.1",
                             "worst from 20 us on"], summary_rows(losses), 4)
    yield "## The largest losses\n"
    rows = [[f"{one['graph']}", f"{one['op']}, {one['details']}", default["kernel"], fastest["kernel"], f"{loss:.2f}",
             f"{default['measured_us']:.1f}", f"{fastest['measured_us']:.1f}"]
            for (loss, default, fastest), one in sorted(losses, key=lambda member: -member[0][0])[:20]]
    yield from common.table(["graph", "plan", "default", "fastest", "loss", "default us", "fastest us"], rows, 4)
    yield from common.again("plan_loss --device cuda --data GRAPHS",
                            "The record is plan_loss_fresh.json.gz; earlier ones are listed in [records.md](records.md).")


def pages(record):
    return {"plan_loss.md": common.joined(lines(record))}
