# SPDX-License-Identifier: Apache-2.0
"""Sums over neighbours and dot products on edges by default plans on a GPU, beside public kernels.

    tools/report.py kernels --device cuda --data GRAPHS --peers PEERS.json

Parts: spmm, sddmm (128 features, fp32 and bf16), others (public kernels' times: PEERS.json has "others", a list of op,
graph, kind (fp32 or bf16), peer, type and us; docs/results/hygnn_goals.json.gz is such a file).
"""
import pathlib

from . import common

SOURCES = []
GRAPHS = ["cora", "pubmed", "amazon-computers", "soc-Epinions1", "fb100-Cornell5", "tolokers", "ego-twitter", "DD", "cnr-2000",
          "gowalla-lightgcn", "web-NotreDame", "NCI-balanced-union", "COLLAB"]
TWINS = ["twin:rmat17", "twin:amazon", "twin:molecules", "twin:proteins", "twin:reddit"]
OPS = {"spmm": "Sums over neighbours (spmm)", "sddmm": "Dot products on edges (sddmm)"}
WIDTH = 128


def add_options(parser):
    parser.add_argument("--peers", type=pathlib.Path, metavar="FILE", help="public kernels' times")


def measure(op, run):
    sources = run.options.sources or [*common.real_graphs(run.options, GRAPHS), *TWINS]
    return run.bench([op], sources, "--features", WIDTH, "--precision", "fp32,bf16")


@common.needs(lambda run: run.options.peers, "needs a file of public kernels' times (--peers)")
def measure_others(run):
    return common.load(run.options.peers)["others"]


PARTS = {"spmm": lambda run: measure("spmm", run), "sddmm": lambda run: measure("sddmm", run), "others": measure_others}


def cases_of(record, op):
    """(graph, precision, record, the other's time and name)"""
    others = {(one["op"], one["graph"], one["kind"]): one for one in record["parts"].get("others", [])}
    for one in record["parts"].get(op, []):
        yield one["graph"], one["precision"], one, others.get((op, one["graph"], one["precision"]))


def speeds(record, op, precision):
    return {graph: other["us"] / one["median_us"] for graph, of, one, other in cases_of(record, op) if other and of == precision}


def lines(record):
    yield "# Kernels on a GPU beside public ones\n"
    yield "Question: how fast are sums over neighbours and dot products on edges beside the fastest public kernel?\n"
    for op, precision in [(op, precision) for op in OPS for precision in ("fp32", "bf16")]:
        found = speeds(record, op, precision)
        if found:
            worst = min(found, key=found.get)
            yield (f"- {op} in {precision}: {common.geometric_mean(found.values()):.2f} times as fast in the mean of {len(found)} graphs, "
                   f"{found[worst]:.2f} at worst ({worst}).")
    yield "\n" + common.where(record)
    yield (f"Default plans, {WIDTH} features. Medians of 50 runs between two events with a warm L2, of which a launch takes five to\n"
           "six microseconds; *in a chain*: one of 20 launches in a captured CUDA graph. The floor is the time that every operand\n"
           "takes once, by the bandwidth of a copy. bf16 stands beside the others' 16 bits.\n")
    for op, title in OPS.items():
        rows = [[graph, precision, common.kernel_of(one), f"{other['peer']} {other['type']}" if other else "", f"{one['median_us']:.1f}",
                 f"{one['chain_us']:.1f}" if one.get("chain_us") else "",
                 f"{100 * one['floor_us'] / one['median_us']:.0f} %" if one.get("floor_us") else "",
                 f"{other['us']:.1f}" if other else "", f"{other['us'] / one['median_us']:.2f}" if other else ""]
                for graph, precision, one, other in sorted(cases_of(record, op), key=lambda case: (case[1] != "fp32", case[0]))]
        if rows:
            yield f"## {title}\n"
            yield from common.table(["graph", "precision", "kernel", "fastest public", "ours us", "in a chain", "of its floor",
                                     "theirs us", "times as fast"], rows, 4)
    yield from common.again("kernels --device cuda --data GRAPHS --peers docs/results/hygnn_goals.json.gz",
                            "The record is kernels.json.gz. Attention: [attention_peers.md](attention_peers.md).")


def pages(record):
    return {"kernels.md": common.joined(lines(record))}
