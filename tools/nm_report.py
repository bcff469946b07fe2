#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Counterparts of SOGRE's Tables 3 to 8 and Figure 4, as pages and figures of docs/results.

    tools/nm_report.py FOLDER --program build/cuda/bin/tessera --device cuda --data GRAPHS --commit 3bbdb77
    tools/nm_report.py FOLDER --commit 3bbdb77

FOLDER holds matrices (.mtx, .mtx.gz, .npz, .tsr), GRAPHS folders of graphs like those of TESSERA_DATA. The first makes
everything, the second what needs no GPU and no graphs. --parts names some of:

    orders      which matrices can be ordered to fit which pattern, on one thread (Tables 7 and 8), and graphs (Table 3): nm_reordering
    accuracy    of ordering beside pruning (Table 5), on the device: nm_accuracy
    dense       sparse against dense tensor cores where windows share most edges: nm_cuda
    products    of matrices of at least 10,000 rows, against cuSPARSE and our other kernels (Figure 4): nm_cuda
    ordered     plans for many epochs on shuffled graphs, whose rows may find another order: nm_cuda
    models      training steps, as the graphs come and ordered, and
    torch       the same steps in PyG (Tables 3 and 4): nm_cuda
    batches     steps on parts of a graph, as they come, ordered one by one, and in PyG (Table 6): nm_cuda
    translation of windows into 2:4 beside that into bits: nm_cuda

--again writes the pages of the figures that are there, without measuring. Figures of nm_cuda that are not measured again, or
not reached when a run is ended, stay as they are, with their commits, and so do the remarks in nm_cuda.json.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import pathlib
import platform
import subprocess

import nm_gpu
import nm_orders
import nm_pages

GPU_PARTS = ["dense", "products", "ordered", "models", "torch", "batches", "translation"]
OF_GRAPHS = {"accuracy", "models", "torch", "batches", "translation"}
PARTS = ["orders", "accuracy", *GPU_PARTS]
SUFFIXES = (".mtx", ".mtx.gz", ".npz", ".tsr")


def rows_of(program, path):
    if ".mtx" in path.name:
        with (gzip.open if path.name.endswith(".gz") else open)(path, "rt") as file:
            return int(next(line for line in file if not line.startswith("%")).split()[0])
    run = subprocess.run([program, "info", str(path), "--duplicates", "first", "--json", "-"], check=False, capture_output=True,
                         text=True)
    return json.loads(run.stdout)["vertices"] if run.returncode == 0 else 0


def large_ones(program, paths):
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        rows = list(pool.map(lambda path: rows_of(program, path), paths))
    return [path for path, count in zip(paths, rows) if count >= 10_000]


def case_of(record):
    """What a measurement replaces: of dense parts one kernel's, elsewhere that of all kernels, since the fastest or the plan's was taken."""
    names = ("form", "graph", "features", "precision", "model", "pattern", "height", "encoding")
    return (*(record.get(name) for name in names), record["kernel"] if record.get("form") == "dense" else None)


def put(results, part, records, commit):
    """New records, and those of other cases as they were."""
    replaced = {case_of(record) for record in records}
    results[part] = [record for record in results[part] if case_of(record) not in replaced]
    results[part] += [{**record, "commit": commit} for record in records]


def on_gpu(arguments, paths, output):
    program, data = arguments.program, arguments.data
    measures = {
        "dense": lambda: nm_gpu.measure_dense(program, arguments.widths),
        "products": lambda: nm_gpu.measure_products(program, large_ones(program, paths), arguments.widths, arguments.forms),
        "ordered": lambda: nm_gpu.measure_ordered(program),
        "models": lambda: nm_gpu.measure_models(program, data, "cuda"),
        "torch": lambda: [nm_gpu.torch_steps(nm_gpu.graphs_in(data))],
        "batches": lambda: nm_gpu.measure_batches(program, data, "cuda"),
        "translation": lambda: nm_gpu.measure_translation(program, data)}

    results = nm_pages.kept(output, GPU_PARTS)
    results["commit"] = arguments.commit
    if "products" in arguments.parts and (results.get("launch") or {}).get("commit") != arguments.commit:
        measured = nm_gpu.measure_launch()
        results["launch"] = {**measured, "commit": arguments.commit} if measured else results.get("launch")
    for part in [part for part in GPU_PARTS if part in arguments.parts]:
        for records in measures[part]():
            put(results, part, records, arguments.commit)
            nm_pages.write(results, output)


def add_translations(files, output):
    """Records of `tessera bench translate` and `translate_quads` that were measured elsewhere."""
    results = nm_pages.kept(output, GPU_PARTS)
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"))
        put(results, "translation", nm_gpu.translations_of(content["records"]), content["commit"][:7])
    nm_pages.write(results, output)


def write_again(folder):
    for name, write in (("nm_reordering", nm_orders.write_again), ("nm_cuda", nm_pages.write_again),
                        ("nm_accuracy", nm_pages.write_accuracy_again)):
        if (folder / f"{name}.json").exists():
            write(folder / name)


def parsed_arguments():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path, nargs="?", metavar="FOLDER")
    parser.add_argument("--program", default="build/bin/tessera")
    parser.add_argument("--machine", default=f"a CPU ({platform.machine()})", help="the processor, for pages of CPU results")
    parser.add_argument("--output", type=pathlib.Path, default=pathlib.Path("docs/results"), help="the folder to write to (docs/results)")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--data", type=pathlib.Path, metavar="GRAPHS", help="graphs to train on")
    parser.add_argument("--parts", type=lambda text: text.split(","), help="default: all that device and data allow")
    parser.add_argument("--jobs", type=int, default=1, help="orders that are looked for at once, each on one thread (1)")
    parser.add_argument("--widths", default=nm_pages.WIDTHS, type=lambda text: [int(width) for width in text.split(",")])
    parser.add_argument("--forms", default=list(nm_gpu.FORMS), type=lambda text: text.split(";"), help="of products, as in \"plan;cuSPARSE\"")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--translations", type=pathlib.Path, nargs="+", metavar="FILE", help="add these records of `tessera bench` to the page, and measure nothing")
    parser.add_argument("--again", action="store_true", help="pages only, of the figures in the output folder")
    arguments = parser.parse_args()
    if arguments.again or arguments.translations:
        return arguments
    refused = {part for part in PARTS if (part in GPU_PARTS and arguments.device == "cpu") or (part in OF_GRAPHS and not arguments.data)}
    arguments.parts = arguments.parts or [part for part in PARTS if part not in refused]
    if set(arguments.parts) - set(PARTS):
        parser.error(f"--parts: no {', '.join(sorted(set(arguments.parts) - set(PARTS)))}; there are {', '.join(PARTS)}")
    if set(arguments.parts) & refused:
        parser.error(f"--parts {', '.join(sorted(set(arguments.parts) & refused))}: give --data GRAPHS, and for what runs on a GPU --device cuda")
    if set(arguments.forms) - set(nm_gpu.FORMS):
        parser.error(f"--forms: there are {'; '.join(nm_gpu.FORMS)}")
    if not arguments.folder:
        parser.error("FOLDER names the matrices")
    if not arguments.commit:
        parser.error("--commit, or TESSERA_COMMIT, says what was measured")
    return arguments


def main():
    arguments = parsed_arguments()
    if arguments.again:
        write_again(arguments.output)
        return
    if arguments.translations:
        add_translations(arguments.translations, arguments.output / "nm_cuda")
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    paths = sorted(p for p in arguments.folder.iterdir() if p.name.endswith(SUFFIXES))
    if "orders" in arguments.parts:
        graphs = nm_gpu.graphs_in(arguments.data) if arguments.data else []
        nm_orders.measure(arguments.program, paths, graphs, arguments.machine, arguments.commit, arguments.jobs, arguments.output / "nm_reordering")
    if "accuracy" in arguments.parts:
        records = [r for records in nm_gpu.measure_accuracy(arguments.program, arguments.data, arguments.device) for r in records]
        nm_pages.write_accuracy(records, arguments.machine, arguments.commit, arguments.output / "nm_accuracy")
    if set(arguments.parts) & set(GPU_PARTS):
        on_gpu(arguments, paths, arguments.output / "nm_cuda")


if __name__ == "__main__":
    main()
