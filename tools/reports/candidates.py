# SPDX-License-Identifier: Apache-2.0
"""Which kernels earn their place: the times of all candidates, and what removing each would cost.

    tools/report.py candidates --device cuda --data GRAPHS
    tools/report.py candidates --from docs/results/candidates.json.gz

Every kernel that can run a case is timed by bench_candidates (cmake --build ... --target bench_candidates), which lies beside
the program. A run that was cut off goes on where it stopped. Parts are GPUs: whole (this one), processors_64 (a green context of
64 processors); this one without wgmma follows from the first. The kernel whose removal costs least goes, again and again, until
each one left costs more than 5 % of a time above 10 us on two unrelated graphs, by the fastest candidate or by a default plan.
"""
import collections
import json
import math
import os
import pathlib
import re
import subprocess

from . import common

SOURCES = []
TWINS = ["twin:amazon", "twin:molecules", "twin:rmat17", "twin:proteins", "generate:rmat?scale=18&edges=8000000&seed=3",
         "generate:erdos_renyi?vertices=100000&edges=4000000&seed=5", "products"]
LEAST, SHORT_US, LONG_US = 1.05, 10, 20
NEED_WGMMA = re.compile(r"spmm/cuda/(ordered_)?(tall|split|nm|hybrid|valued)_(64|128|256|split)(_long|_strict|_256)?$|"
                        r"sddmm/cuda/tiles_64$|aggregate_update/cuda/windows$|bit_aggregate/cuda/tall$")
# Those that stay though the rule could do without them, and for what.
KEPT = {"spmm/cuda/split_128": "sums over 60 million edges and more", "spmm/cuda/tall_64_strict": "strict plans on tensor cores",
        "spmm/cuda/nm_256": "SOGRE's own case: matrices ordered for 2:4", "spmm/cuda/nm_split_256": "the same, on graphs of reddit's size"}
FAMILIES = ("fb100", "gemsec", "twitch", "blogcatalog", "NCI", "com-", "ca-")  # graphs of one origin count once


def measure(limits, run):
    program = pathlib.Path(run.program).parent / "bench_candidates"
    if not program.exists():
        raise common.Missing(f"there is no {program}: build the target bench_candidates")
    graphs = sorted(run.options.data.glob("*/*.npz")) + sorted(run.options.data.glob("suitesparse/*.mtx.gz")) if run.options.data else []
    sources = run.options.sources or [*map(str, graphs), *TWINS]
    lines = run.options.output / f"candidates_{limits or 'whole'}.jsonl"
    done = subprocess.run([program, lines, str(run.left() or 1e9), *sources], env={**os.environ, "TESSERA_GPU_LIMITS": limits})
    if done.returncode != 0:
        raise common.Failed(f"{program.name} ended with {done.returncode}; {lines.name} has what was measured")
    return [json.loads(line) for line in lines.read_text(encoding="utf-8").splitlines()]


PARTS = {"whole": lambda run: measure("", run), "processors_64": lambda run: measure("processors=64", run)}


def family(case):
    graph = case["case"].split(",")[0] if case["graph"] == "products" else case["graph"]
    return next((one for one in FAMILIES if graph.startswith(one)), "rmat" if "rmat" in graph else graph)


def conditions(parts, op):
    """{GPU: [case]}; a case has the times of its candidates, (predicted, measured) by kernel."""
    def cases(part, admits=lambda kernel: True):
        found = [{**case, "times": {kernel: (predicted, us) for kernel, predicted, us in case["candidates"] if admits(kernel)}}
                 for case in parts.get(part, []) if case["op"] == op]
        return [case for case in found if len(case["times"]) > 1]
    return {"whole": cases("whole"), "no wgmma": cases("whole", lambda kernel: not NEED_WGMMA.match(kernel)),
            "64 processors": cases("processors_64")}


def fastest(case, kernels):
    """The kernel of these that takes least, None where there is none."""
    return min((kernel for kernel in case["times"] if kernel in kernels), key=lambda kernel: case["times"][kernel][1], default=None)


def default(case, kernels):
    """The one that is predicted to take least."""
    return min((kernel for kernel in case["times"] if kernel in kernels), key=lambda kernel: case["times"][kernel][0], default=None)


def costs_of(kernels, gpus):
    """{kernel: what its removal costs}: the log of all losses, who loses, the worst loss, and whether it serves a case alone."""
    costs = {kernel: {"total": 0.0, "losers": set(), "worst": (1.0, KEPT.get(kernel, ""))} for kernel in sorted(kernels)}
    for kernel in costs.keys() & KEPT.keys():
        costs[kernel]["kept"] = True
    for gpu, case, choose in [(gpu, case, choose) for gpu, cases in gpus.items() for case in cases for choose in (fastest, default)]:
        winner = choose(case, kernels)
        if winner is None:
            continue
        cost, other = costs[winner], choose(case, kernels - {winner})
        if other is None:
            cost["alone"] = True
            continue
        before, after = case["times"][winner][1], case["times"][other][1]
        cost["total"] += max(0.0, math.log(after / before))
        if after > SHORT_US and after / before > LEAST:
            cost["losers"].add(family(case))
            cost["worst"] = max(cost["worst"], (after / before, f"{case['graph']}, {case['case']} ({gpu})"))
    return costs


def judged(gpus):
    """(the costs of the kernels that are left, the kernels that went in their order)."""
    kernels, removed = {kernel for cases in gpus.values() for case in cases for kernel in case["times"]}, []
    while True:
        costs = costs_of(kernels, gpus)
        free = [kernel for kernel, cost in costs.items() if len(cost["losers"]) < 2 and not {"alone", "kept"} & cost.keys()]
        if not free:
            return costs, removed
        removed.append(min(free, key=lambda kernel: (len(costs[kernel]["losers"]), costs[kernel]["total"])))
        kernels.discard(removed[-1])


def row(kernel, cost):
    loss, where = cost["worst"]
    return [kernel, where, "alone" if "alone" in cost else len(cost["losers"]), f"{loss:.2f}" if loss > 1 else ""]


def default_losses(cases):
    times = [[case["times"][choose(case, case["times"])][1] for choose in (fastest, default)] for case in cases]
    long_ones = [chosen / best for best, chosen in times if best >= LONG_US]
    return [len(times), f"{common.geometric_mean(chosen / best for best, chosen in times):.3f}", f"{max(long_ones):.2f}" if long_ones else ""]


def lines(record):
    parts = record["parts"]
    ops = sorted({case["op"] for case in parts["whole"]})
    graphs = collections.Counter(case["graph"] for case in parts["whole"])
    verdicts = {op: judged(conditions(parts, op)) for op in ops}
    yield "# Which kernels earn their place\n"
    yield "Question: what would be lost without each kernel, and how much do default plans lose beside the fastest one?\n"
    yield (f"All candidates of {sum(graphs.values())} cases on {len(graphs)} graphs. A kernel earns its place where its removal costs more "
           "than 5 % of a time above 10 us on two unrelated graphs, by the fastest candidate or by a default plan, on the whole GPU, "
           "on 64 of its processors or without wgmma, or where it serves a case alone.\n")
    yield common.where(record) + "\n"
    yield "## Default plans beside the fastest candidate\n"
    yield from common.table(["op", "GPU", "cases", "mean loss", "worst from 20 us on"],
                            [[op, gpu, *default_losses(cases)] for op in ops for gpu, cases in conditions(parts, op).items() if cases], 2)
    for op in ops:
        left, removed = verdicts[op]
        yield f"## {op}\n"
        yield from common.table(["kernel", "what is lost most without it", "graphs", "times as long"],
                                [row(kernel, cost) for kernel, cost in left.items()], 2)
        if removed:
            yield "Not needed by the rule: " + ", ".join(kernel.rsplit("/", 1)[-1] for kernel in removed) + ".\n"
    yield from common.again("candidates --device cuda --data GRAPHS", "The record is candidates.json.gz, "
                            "a line for each case: candidates with their predicted and measured times in us.")


def pages(record):
    return {"candidates.md": common.joined(lines(record))}
