# SPDX-License-Identifier: Apache-2.0
"""TC-GNN's Figures 8 to 10 and Table 6: translation, windows, widths and dense blocks on tensor cores.

    tools/report.py tc_gnn --device cuda --data GRAPHS --pyg python3

Parts: share (Figure 8, translation beside 200 epochs of training), warps (Figure 9, kernels by the height of their
windows), widths (Figure 10), blocks (Table 6, dense blocks in every window, beside cuSPARSE's Blocked-ELL where --pyg
names a Python with torch). SOURCE is what `tessera bench --data` takes; without one the real graphs of --data are
measured. Figure 7 is the report `tiles`.
"""
import random

from . import common

SOURCES = []
GRAPHS = ["cora", "pubmed", "amazon-computers", "COLLAB"]
EPOCHS = 200
ON_TILES = ("tall_", "split_", "short_")
MODELS = ["gcn", "agnn"]
WIDTHS = [16, 32, 64, 128, 256, 512, 1024]
BLOCKS_PER_WINDOW = [1, 2, 4, 8, 16, 32, 64]
VERTICES, SIDE = 4096, 16
BLOCK_WIDTHS = [16, 128]


def sources_of(run):
    return run.options.sources or common.real_graphs(run.options, GRAPHS)


def widths_of(run):
    return WIDTHS[:2] if run.options.quick else WIDTHS


def measure_share(run):
    records = []
    for source in sources_of(run):
        trained = run.bench([f"epoch_{model}" for model in MODELS], [source])
        records += trained + (run.bench(["translate"], [source], "--features", 64) if trained else [])
    return records


@common.needs_gpu
def measure_warps(run):
    records = []
    for source in sources_of(run):
        plan = run.call("plan", source, "--device", "cuda", "--features", 128, "--precision", "bf16")
        kernels = [one["kernel"] for one in plan["candidates"] if one.get("predicted_us")]
        for kernel in [k for k in kernels if k.rsplit("/", 1)[-1].startswith(ON_TILES)] + ["spmm/cuda/rows*"]:
            records += run.bench(["spmm"], [source], "--features", 128, "--precision", "bf16", "--kernel", kernel)
    return records


def measure_widths(run):
    edges = {}
    for source in sources_of(run):
        info = run.call("info", source)
        edges[info["name"]] = info["edges"]
    records = run.bench(["spmm"], sources_of(run), "--features", ",".join(map(str, widths_of(run))),
                        "--precision", "fp32,bf16", "--tune", "measured")
    return {"edges": edges, "records": records}


def with_blocks(run, count):
    """A file whose windows of 16 rows have `count` dense blocks of 16 x 16, at random."""
    dice, text, graph = random.Random(count), run.folder / "blocks.mtx", run.folder / f"blocks_{count}.npz"
    lines = [f"%%MatrixMarket matrix coordinate pattern general\n{VERTICES} {VERTICES} {VERTICES * count * SIDE}"]
    for window in range(VERTICES // SIDE):
        columns = [block * SIDE + i for block in dice.sample(range(VERTICES // SIDE), count) for i in range(1, SIDE + 1)]
        lines += [f"{window * SIDE + i} {column}" for i in range(1, SIDE + 1) for column in columns]
    text.write_text("\n".join(lines) + "\n")
    run.command([run.program, "convert", text, "-o", graph])
    return str(graph)


def measure_blocks(run):
    counts = BLOCKS_PER_WINDOW[:2] if run.options.quick else BLOCKS_PER_WINDOW
    files = [with_blocks(run, count) for count in counts]
    widths = ",".join(map(str, BLOCK_WIDTHS))
    precision = "fp16" if run.device == "cuda" else "fp32"
    data = [word for file in files for word in ("--data", file)]
    return {"ours": run.bench(["spmm"], files, "--features", widths, "--precision", precision, "--tune", "measured"),
            "blocked_ell": run.baseline("blocked_ell_torch.py", *data, "--features", widths) if run.device == "cuda" else []}


PARTS = {"share": measure_share, "warps": measure_warps, "widths": measure_widths, "blocks": measure_blocks}


def share_rows(records):
    times = common.by(records, "graph", "op")
    for graph in dict.fromkeys(record["graph"] for record in records):
        if (graph, "translate") not in times:
            continue
        translation = times[graph, "translate"]["median_us"]
        row = [graph, f"{translation / 1e3:.2f}"]
        for model in MODELS:
            epoch = times.get((graph, f"epoch_{model}"))
            row += [f"{epoch['median_us'] / 1e3:.2f}", f"{share(epoch, translation):.2f} %"] if epoch else ["", ""]
        yield row


def share(epoch, translation):
    return 100 * translation / (EPOCHS * epoch["median_us"] + translation)


def most_share(records):
    times = common.by(records, "graph", "op")
    shares = [share(one, times[graph, "translate"]["median_us"]) for (graph, op), one in times.items()
              if op.startswith("epoch") and (graph, "translate") in times]
    return max(shares, default=None)


def warps_table(records):
    on_tiles = [one for one in records if common.kernel_of(one).startswith(ON_TILES)]
    kernels = list(dict.fromkeys(map(common.kernel_of, on_tiles)))
    rows = []
    for graph in dict.fromkeys(record["graph"] for record in records):
        times = {common.kernel_of(one): one["median_us"] for one in on_tiles if one["graph"] == graph}
        others = [one["median_us"] for one in records
                  if one["graph"] == graph and common.kernel_of(one).startswith("rows_")]
        rows.append([graph, *(f"{times[k]:.1f}" if k in times else "" for k in kernels),
                     f"{min(others):.1f}" if others else ""])
    return common.table(["graph", *kernels, "best on CUDA cores"], rows)


def rate(record, edges):
    return 2e-6 * edges * record["features"] / record["median_us"]


def widths_tables(found):
    cases = common.by(found["records"], "graph", "precision", "features")
    for precision in ("fp32", "bf16"):
        rows = [[graph, *(f"{rate(cases[graph, precision, w], edges):.2f}" if (graph, precision, w) in cases else ""
                          for w in WIDTHS)] for graph, edges in found["edges"].items()]
        yield f"{precision}:\n"
        yield from common.table(["graph", *map(str, WIDTHS)], rows)


def blocks_table(found):
    ours, theirs = (common.by(found[who], "graph", "features") for who in ("ours", "blocked_ell"))
    rows = []
    for count in BLOCKS_PER_WINDOW:
        edges, row = VERTICES * count * SIDE, [str(count), f"{100 - 100 * count * SIDE / VERTICES:.2f} %"]
        for width in BLOCK_WIDTHS:
            mine, other = (cases.get((f"blocks_{count}", width)) for cases in (ours, theirs))
            row += [f"{1e3 * rate(one, edges):.0f}" if one else "" for one in (other, mine)]
            row.append(f"{other['median_us'] / mine['median_us']:.2f} x" if mine and other else "")
        rows += [row] if any(row[2:]) else []
    head = [text for width in BLOCK_WIDTHS for text in (f"Blocked-ELL, {width}", f"ours, {width}", "faster")]
    return common.table(["dense blocks in a window", "sparsity", *head], rows)


def lines(record):
    parts = record["parts"]
    most = most_share(parts.get("share", []))
    yield "# What tensor cores give sums over neighbours (TC-GNN)\n"
    yield "Question: does translating a graph into dense tiles pay, and from which density and width on?\n"
    if most is not None:
        yield (f"Translation takes at most {most:.2f} % of {EPOCHS} epochs of training (the paper: 4.43 % on average). "
               "Tiles beat\nrows on CUDA cores where neighbouring rows share columns, as in COLLAB, and lose where they "
               "do not.\n")
    yield common.where(record) + " Medians; every result was checked before it was timed.\n"
    if "share" in parts:
        yield "## Translation beside training (Figure 8)\n"
        yield (f"Translation on the device into windows of 64 rows, once, beside {EPOCHS} epochs there: forward, backward, "
               "Adam and\nevaluation.\n")
        head = [text for model in MODELS for text in (f"{model} epoch ms", "share")]
        yield from common.table(["graph", "translation ms", *head], share_rows(parts["share"]))
    if "warps" in parts:
        yield "## Windows by their height (Figure 9)\n"
        yield ("The paper varies the warps that share a window. Here a plan varies the height of the windows and the length at\n"
               "which they are cut, with four warps for every 64 rows. 128 features, bf16, microseconds.\n")
        yield from warps_table(parts["warps"])
    if "widths" in parts:
        yield "## Width of the features (Figure 10)\n"
        yield "Tera-operations a second, two for every edge and feature, by the kernel that was the fastest.\n"
        yield from widths_tables(parts["widths"])
    if "blocks" in parts:
        yield "## Dense blocks in every window (Table 6)\n"
        yield (f"{VERTICES} x {VERTICES}, so many random dense blocks of 16 x 16 in each window of 16 rows; giga-operations a\n"
               "second at 16 features, as in the paper, and at 128; fp16 on a GPU. Blocked-ELL is cuSPARSE's, called directly.\n")
        yield from blocks_table(parts["blocks"])
    yield from common.again("tc_gnn --device cuda --data GRAPHS --pyg python3",
                            "Figure 7 is [tiles.md](tiles.md); the record is [tc_gnn.json](tc_gnn.json).")


def pages(record):
    return {"tc_gnn.md": common.joined(lines(record))}
