#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what TC-GNN's Figures 8 to 10 and Table 6 show, on a GPU, and writes docs/results/tc_gnn.md.

    tools/tc_gnn_report.py --blocked-ell python3 pubmed.npz COLLAB.npz twin:molecules

Figure 8, the share of translation in training; Figure 9, the warps of a block; Figure 10, the width of the
features; Table 6, dense blocks in every window beside cuSPARSE's Blocked-ELL, which a Python with PyTorch
(--blocked-ell) calls. The records go beside the page as tc_gnn.json. SOURCE is what `tessera bench --data` takes;
the first that have features and labels are trained on.
"""
import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
EPOCHS = 200
ON_TILES = ("tall_", "split_", "short_")
MODELS = ["gcn", "agnn"]
WIDTHS = [16, 32, 64, 128, 256, 512, 1024]
BLOCKS_PER_WINDOW = [1, 2, 4, 8, 16, 32, 64]
BLOCK_VERTICES, SIDE = 4096, 16
BLOCK_WIDTHS = [16, 128]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "cuda" / "bin" / "tessera"))
    parser.add_argument("--blocked-ell", metavar="PYTHON", help="also run cuSPARSE's Blocked-ELL through this Python")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    return parser.parse_args()


def records_of(command, report):
    """What a command wrote to the file after --json; nothing where it failed."""
    done = subprocess.run([*command, "--json", str(report)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                          text=True)
    if done.returncode != 0:
        print(f"left out: {' '.join(command)}: {done.stderr.strip().splitlines()[-1:]}", file=sys.stderr)
        return []
    return json.loads(report.read_text())["records"]


class Bench:
    def __init__(self, options, folder):
        self.program = options.program
        self.report = pathlib.Path(folder) / "report.json"

    def __call__(self, ops, sources, *flags):
        data = [word for source in sources for word in ("--data", source)]
        return records_of([self.program, "bench", *ops, "--device", "cuda", *data, *flags], self.report)


def with_blocks(folder, count):
    """A file whose windows of 16 rows have `count` dense blocks of 16 x 16, at random."""
    import numpy
    dice = random.Random(count)
    rows, columns = [], []
    inside = numpy.arange(SIDE)
    for window in range(BLOCK_VERTICES // SIDE):
        for block in dice.sample(range(BLOCK_VERTICES // SIDE), count):
            rows.append(numpy.repeat(window * SIDE + inside, SIDE))
            columns.append(numpy.tile(block * SIDE + inside, SIDE))
    path = pathlib.Path(folder) / f"blocks_{count}.npz"
    numpy.savez(path, row=numpy.concatenate(rows), col=numpy.concatenate(columns), num_nodes=BLOCK_VERTICES)
    return str(path)


def kernels_on_tiles(program, source):
    """Those that can run it."""
    run = subprocess.run([program, "plan", source, "--device", "cuda", "--features", "128", "--precision", "bf16",
                          "--json", "-"], check=True, capture_output=True, text=True)
    names = [candidate["kernel"] for candidate in json.loads(run.stdout)["candidates"]
             if candidate.get("predicted_us")]
    return [name for name in names if name.rsplit("/", 1)[-1].startswith(ON_TILES)]


def measure(options):
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        found = {"share": [], "warps": [], "widths": [], "blocks": [], "blocked_ell": []}
        for source in options.sources:
            trained = bench([f"epoch_{model}" for model in MODELS], [source])
            if trained:
                found["share"] += trained + bench(["translate"], [source], "--features", "64")
            for kernel in kernels_on_tiles(options.program, source) + ["spmm/cuda/rows*"]:
                found["warps"] += bench(["spmm"], [source], "--features", "128", "--precision", "bf16",
                                        "--kernel", kernel)
        found["widths"] = bench(["spmm"], options.sources, "--features", ",".join(map(str, WIDTHS)),
                                "--precision", "fp32,bf16", "--tune", "measured")
        files = [with_blocks(folder, count) for count in BLOCKS_PER_WINDOW]
        widths = ",".join(map(str, BLOCK_WIDTHS))
        found["blocks"] = bench(["spmm"], files, "--features", widths, "--precision", "fp16", "--tune", "measured")
        if options.blocked_ell:
            script = ROOT / "bench" / "baselines" / "blocked_ell_torch.py"
            data = [word for file in files for word in ("--data", file)]
            found["blocked_ell"] = records_of([options.blocked_ell, str(script), *data, "--features", widths],
                                              bench.report)
        return found


def table(heads, rows):
    yield "| " + " | ".join(heads) + " |"
    yield "|---|" + "---:|" * (len(heads) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def share_table(records):
    by_graph = {}
    for record in records:
        by_graph.setdefault(record["graph"], {})[record["op"]] = record["median_us"]
    rows = []
    for graph, times in by_graph.items():
        translation = times.get("translate")
        if translation is None:
            continue
        row = [graph, f"{translation / 1e3:.2f}"]
        for model in MODELS:
            epoch = times.get(f"epoch_{model}")
            total = None if epoch is None else EPOCHS * epoch + translation
            row += ["", ""] if total is None else [f"{epoch / 1e3:.2f}", f"{100 * translation / total:.2f} %"]
        rows.append(row)
    heads = ["graph", "translation ms"] + [text for m in MODELS for text in (f"{m} epoch ms", "share")]
    return table(heads, rows)


def kernel_of(record):
    return record["kernel"].rsplit("/", 1)[-1]


def warps_table(records):
    on_tiles = [r for r in records if kernel_of(r).startswith(ON_TILES)]
    kernels = list(dict.fromkeys(kernel_of(record) for record in on_tiles))
    rows = []
    for graph in dict.fromkeys(record["graph"] for record in records):
        times = {kernel_of(r): r["median_us"] for r in on_tiles if r["graph"] == graph}
        others = [r["median_us"] for r in records if r["graph"] == graph and kernel_of(r).startswith("rows_")]
        rows.append([graph, *(f"{times[k]:.1f}" if k in times else "" for k in kernels),
                     f"{min(others):.1f}" if others else ""])
    return table(["graph", *kernels, "best on CUDA cores"], rows)


def rate(record, edges):
    return 2e-6 * edges * record["features"] / record["median_us"]


def widths_table(records, edges):
    for precision in ("fp32", "bf16"):
        rows = []
        for graph in dict.fromkeys(record["graph"] for record in records):
            of_width = {r["features"]: r for r in records if r["graph"] == graph and r["precision"] == precision}
            if graph in edges:
                rows.append([graph, *(f"{rate(of_width[w], edges[graph]):.2f}" if w in of_width else ""
                                      for w in WIDTHS)])
        yield f"{precision}:\n"
        yield from table(["graph", *map(str, WIDTHS)], rows)


def blocks_table(ours, theirs):
    def found(records, count, width):
        return next((r for r in records if r["graph"] == f"blocks_{count}" and r["features"] == width), None)

    rows = []
    for count in BLOCKS_PER_WINDOW:
        edges = BLOCK_VERTICES * count * SIDE
        row = [str(count), f"{100 - 100 * count * SIDE / BLOCK_VERTICES:.2f} %"]
        for width in BLOCK_WIDTHS:
            mine, other = found(ours, count, width), found(theirs, count, width)
            row += [f"{1e3 * rate(r, edges):.0f}" if r else "" for r in (other, mine)]
            row.append(f"{other['median_us'] / mine['median_us']:.2f} x" if mine and other else "")
        rows.append(row)
    heads = ["dense blocks in a window", "sparsity"]
    for width in BLOCK_WIDTHS:
        heads += [f"Blocked-ELL, {width}", f"ours, {width}", "faster"]
    return table(heads, rows)


def edges_of(options):
    """The number of edges of each graph, by its name."""
    edges = {}
    for source in options.sources:
        run = subprocess.run([options.program, "info", source, "--json", "-"], check=True, capture_output=True,
                             text=True)
        info = json.loads(run.stdout)
        edges[info["name"]] = info["edges"]
    return edges


def page(found, edges, options):
    return "\n".join([
        "# TC-GNN's other figures, on one H200", "",
        f"Made by `tools/tc_gnn_report.py`, commit {options.commit or 'unknown'}; Figure 7 is in [tiles.md](tiles.md). "
        "Medians; every result was checked before it was timed. Raw records: `tc_gnn.json`.", "",
        "## The share of translation in training (Figure 8)", "",
        f"Translation on the GPU into windows of 64 rows, once, against {EPOCHS} epochs of training there "
        "(forward, backward, Adam, evaluation). The paper reports 4.43 % on average.", "",
        *share_table(found["share"]),
        "## Warps of a block (Figure 9)", "",
        "The paper varies the warps that share a window. Here the height of the windows and the length at which they "
        "are cut are what a plan varies: four warps for every 64 rows. 128 features, bf16, microseconds.", "",
        *warps_table(found["warps"]),
        "## Width of the features (Figure 10)", "",
        "Tera-operations a second (two for every edge and feature) by width, the plan's choice after measuring.", "",
        *widths_table(found["widths"], edges),
        "## Dense blocks in every window (Table 6)", "",
        f"{BLOCK_VERTICES} x {BLOCK_VERTICES}, so many random dense blocks of 16 x 16 in each window of 16 rows; "
        "giga-operations a second at 16 features, as in the paper, and at 128; fp16. Blocked-ELL is cuSPARSE's, called "
        "directly.", "",
        *blocks_table(found["blocks"], found["blocked_ell"])])


def main():
    options = arguments()
    found = measure(options)
    folder = pathlib.Path(options.output)
    (folder / "tc_gnn.json").write_text(json.dumps({"commit": options.commit, **found}, indent=1) + "\n")
    (folder / "tc_gnn.md").write_text(page(found, edges_of(options), options))


if __name__ == "__main__":
    main()
