# SPDX-License-Identifier: Apache-2.0
"""Sums over neighbours and dot products on edges on a CPU, beside PyTorch's.

    tools/report.py cpu --data GRAPHS --threads 1,2,16 --pyg python3

Parts: tessera, torch (the fastest of torch's ways, with --pyg).
"""
from . import common

SOURCES = []
GRAPHS = ["cora", "pubmed", "amazon-computers", "ego-twitter", "COLLAB"]
OPS = {"spmm": "Sums over neighbours (spmm)", "sddmm": "Dot products on edges (sddmm)"}


def add_options(parser):
    parser.add_argument("--threads", default="0", metavar="LIST", help="0 is all cores (default)")
    parser.add_argument("--features", default="16,32,64,128,256", metavar="LIST", help="default: %(default)s")


def words(run):
    sources = run.options.sources or common.real_graphs(run.options, GRAPHS)
    return sources, ["--features", run.options.features, "--threads", run.options.threads]


def measure_own(run):
    sources, more = words(run)
    return run.bench(list(OPS), sources, *more)


@common.needs_pyg
def measure_torch(run):
    sources, more = words(run)
    data = [word for source in sources for word in ("--data", run.npz(source))]
    few = ["--repeats", 3, "--min-seconds", 0.03, "--max-seconds", 0.5]
    return [one for op in OPS for one in run.baseline(f"{op}_torch.py", *data, *more, *few)]


PARTS = {"tessera": measure_own, "torch": measure_torch}


def lines(record):
    keys = ("op", "graph", "features", "threads")
    own, theirs = (common.by(record["parts"].get(who, []), *keys) for who in ("tessera", "torch"))
    ratios = {key: theirs[key]["median_us"] / own[key]["median_us"] for key in own if key in theirs}
    yield "# Kernels on a CPU beside PyTorch\n"
    yield "Question: how fast are sums over neighbours and dot products on edges on a CPU?\n"
    for op in OPS:
        of = {key: ratio for key, ratio in ratios.items() if key[0] == op}
        if of:
            worst = min(of, key=of.get)
            yield (f"- {op}: {common.geometric_mean(of.values()):.1f} times as fast as PyTorch in the mean of {len(of)} cases, "
                   f"{of[worst]:.2f} at worst ({worst[1]}, {worst[2]} features, {worst[3]} threads).")
    yield "\n" + common.where(record)
    yield "Medians in microseconds, fp32, warm caches, results checked before timing. PyTorch is the fastest of its ways.\n"
    threads = sorted({key[3] for key in own})
    for op, title in OPS.items():
        rows = []
        for graph, features in sorted({key[1:3] for key in own if key[0] == op}):
            cells = []
            for count in threads:
                key = op, graph, features, count
                cells += [f"{theirs[key]['median_us']:.0f}" if key in theirs else "–", f"{own[key]['median_us']:.0f}" if key in own else "–",
                          f"{ratios[key]:.2f}" if key in ratios else "–"]
            rows.append([graph, features, *cells])
        if rows:
            yield f"## {title}\n"
            head = [text for count in threads for text in (f"torch, {count} thread{'s' * (count > 1)}", "tessera", "times as fast")]
            yield from common.table(["graph", "features", *head], rows)
    yield from common.again("cpu --data GRAPHS --threads 1,2,16 --pyg python3", "The record is [cpu.json](cpu.json).")


def pages(record):
    return {"cpu.md": common.joined(lines(record))}
