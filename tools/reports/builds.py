# SPDX-License-Identifier: Apache-2.0
"""Two builds of the program side by side: what a change does to the time of every op.

    tools/report.py builds --device cuda --data GRAPHS --before OTHER/build/bin/tessera

Each case is checked and timed by both builds in turn, twice; the shorter of a build's two medians counts. Parts: sums, dots,
attention, updates, steps, each on the graphs of the tables of kernels and on generated ones, at usual and at odd widths.
"""
from . import common
from .kernels import GRAPHS, TWINS

SOURCES = []
DRAWN = ["erdos_renyi?vertices=20000&edges=160000&seed=11", "erdos_renyi?vertices=60000&edges=3000000&seed=12",
         "rmat?scale=14&edges=300000&seed=13", "rmat?scale=16&edges=2000000&seed=14", "rmat?scale=17&edges=1000000&seed=15",
         "sbm?vertices=30000&communities=300&mean_degree=40&seed=16", "sbm?vertices=50000&communities=50&mean_degree=100&inside=0.9&seed=17",
         "sbm?vertices=100000&communities=5000&mean_degree=12&inside=0.8&seed=18", "sbm?vertices=8000&communities=40&mean_degree=150&seed=19",
         "erdos_renyi?vertices=5000&edges=1000000&seed=20", "rmat?scale=12&edges=400000&seed=21", "rmat?scale=18&edges=4000000&seed=22",
         "erdos_renyi?vertices=200000&edges=1200000&seed=23", "sbm?vertices=16000&communities=1000&mean_degree=15&inside=1&seed=24"]
QUICK = ["generate:erdos_renyi?vertices=500&edges=4000&seed=1"]
BOTH = ["--precision", "fp32,bf16"]
WIDTHS = "7,41,47,64,96,100,128,200,264"
FORMS = ("gat", "gatv2", "dot")
HEADS = {1: "64,128", 4: "128", 8: "64,128"}
OPS = {
    "sums": [(["spmm", "spmm_backward"], ["--features", WIDTHS]), (["spmm_weighted", "spmm_edge_values", "spmm_max"], ["--features", "41,64,128"])],
    "dots": [(["sddmm"], ["--features", WIDTHS]), (["edge_softmax"], [])],
    "attention": [*(([f"attention_{form}{way}" for form in FORMS for way in ("", "_step")], ["--heads", heads, "--features", widths])
                    for heads, widths in HEADS.items()), (["attention_cosine"], ["--heads", "1", "--features", "64"])],
    "updates": [(["aggregate_update", "aggregate_update_kept", "aggregate_update_backward"], ["--features", "32,47,64,128"])],
    "steps": [(["step_gcn", "step_sage", "step_gin", "step_gat", "step_gatv2", "step_agnn"], [])],
}
LONG_US, MUCH = 20, 0.95


def add_options(parser):
    parser.add_argument("--before", metavar="FILE", help="the program of the other build")


def key(record):
    return "|".join(str(record.get(name)) for name in ("op", "graph", "features", "heads", "hidden", "precision"))


def time_of(record):
    return record.get("chain_us") or record["median_us"]


def measure(part, run):
    """[op, graph, features and heads, precision, before us, after us, kernels]; a case that one build alone has is left out."""
    if run.options.before is None:
        raise common.Missing("--before FILE names the program of the other build")
    sources = run.options.sources or (QUICK if run.options.quick else
                                      [*common.real_graphs(run.options, GRAPHS), *TWINS, *(f"generate:{one}" for one in DRAWN)])
    programs, cases = {"before": run.options.before, "after": run.program}, []
    for source in sources:
        if run.is_late(f"{part} on {source}"):
            break
        best = {"before": {}, "after": {}}
        for build in 2 * list(programs):
            run.program = programs[build]
            for ops, flags in OPS[part]:
                for record in run.bench(ops, [source], *BOTH, *([] if run.options.quick else flags)):
                    known = best[build].get(key(record))
                    if known is None or time_of(record) < time_of(known):
                        best[build][key(record)] = record
        for one, after in best["after"].items():
            before = best["before"].get(one)
            if before:
                shape = f"{after['features']}" + (f", {after['heads']} heads" if (after.get("heads") or 1) > 1 else "")
                cases.append([after["op"], after["graph"], shape, after["precision"], round(time_of(before), 3), round(time_of(after), 3),
                              common.kernel_of(before), common.kernel_of(after)])
    run.program = programs["after"]
    return cases


PARTS = {part: lambda run, part=part: measure(part, run) for part in OPS}


def summary(cases):
    """A row for each op and precision."""
    for op, precision in sorted({(case[0], case[3]) for case in cases}):
        found = [(case[4] / case[5], max(case[4], case[5])) for case in cases if (case[0], case[3]) == (op, precision)]
        long_ones = [ratio for ratio, us in found if us >= LONG_US]
        yield [op, precision, len(found), f"{common.geometric_mean(ratio for ratio, _ in found):.3f}",
               f"{min(long_ones):.2f}" if long_ones else ""]


def lines(record):
    cases = [case for part in record["parts"].values() for case in part]
    slower = sorted((case for case in cases if max(case[4:6]) >= LONG_US and case[4] / case[5] < MUCH), key=lambda case: case[4] / case[5])
    yield "# Two builds side by side\n"
    yield "Question: what did a change do to the time of every op?\n"
    yield (f"{len(cases)} cases by default plans, each timed by both builds in turn, twice; numbers are how many times as fast "
           f"the later build is as the one before. {len(slower)} cases from {LONG_US} us on are below {MUCH}.\n")
    yield common.where(record) + "\n"
    yield from common.table(["op", "precision", "cases", "mean", f"worst from {LONG_US} us on"], summary(cases), 2)
    if slower:
        yield "## Slower cases\n"
        yield from common.table(["op", "graph", "features", "precision", "kernel before", "kernel after", "before us", "after us", "times as fast"],
                                [[*case[:4], *case[6:], case[4], case[5], f"{case[4] / case[5]:.2f}"] for case in slower], 6)
    yield from common.again("builds --device cuda --data GRAPHS --before OTHER/build/bin/tessera", "The record is builds.json.")


def pages(record):
    return {"builds.md": common.joined(lines(record))}
