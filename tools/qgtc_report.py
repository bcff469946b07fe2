#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what QGTC's Figures 7 to 10 and Tables 2 and 3 show, and writes docs/results/qgtc.md (of a CPU: qgtc_cpu.md).

    tools/qgtc_report.py --device cuda --program build/cuda/bin/tessera --data GRAPHS --pyg python3 --commit 3bbdb77
    tools/qgtc_report.py --quick --output /tmp --commit 3bbdb77

Figure 7 (a, b), inference over batches of parts by bits, beside PyG with --pyg; Figure 7 (c) and Table 3, the rate of
the aggregation as a dense product; Table 2, accuracy against bits (by tools/bits_accuracy.py); Figure 8, the share of
tiles with edges; Figure 9, sizes of the adjacency and of the embedding; Figure 10, what a loaded tile saves
when it serves all planes. Records are kept beside the page (.json) after every step, each with its commit: a run that
was cut off goes on where it stopped, and what was measured of another commit stays until it is measured again. GRAPHS
has NAME/NAME.npz for every real graph.
"""
import argparse
import json
import os
import pathlib
import platform
import subprocess
import sys
import tempfile

from qgtc_records import Records

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ["gcn", "gin"]
BATCH_BITS = [2, 4, 8]
SHOWN_BITS = [1, 2, 3, 4, 8]
REUSE_BITS = [2, 4, 8, 16]
STEPS = ["batches", "products", "sizes", "reuse", "accuracy"]

# Where graphs come from ({data}: the folder of real ones), how wide their features are, how many parts they are cut
# into (0: of about 100 vertices) and by what. The four large ones are drawn: arxiv-size and products-size as the
# published comparisons draw them, of which hardly an edge lies inside a part, whatever cuts them; and with one
# community for each part, as a partitioner finds them in graphs that have such.
WORKLOADS = {
    "PROTEINS_full": ("{data}/PROTEINS_full/PROTEINS_full.npz", 29, 0, "contiguous"),
    "ppi-small": ("{data}/ppi-small/ppi-small.npz", 50, 0, "auto"),
    "blogcatalog-attr": ("{data}/blogcatalog-attr/blogcatalog-attr.npz", 128, 0, "auto"),
    "arxiv-communities": ("generate:sbm?vertices=169343&communities=1500&mean_degree=13&seed=1", 128, 1500, "contiguous"),
    "products-communities": ("generate:sbm?vertices=2449029&communities=1500&mean_degree=20&seed=1", 100, 1500, "contiguous"),
    "arxiv-size": ("generate:sbm?vertices=169343&communities=40&mean_degree=13.7&inside=0.65&seed=1", 128, 1500, "auto"),
    "products-size": ("twin:products", 100, 1500, "contiguous"),
}
QUICK_WORKLOADS = {"communities": ("generate:sbm?vertices=2000&communities=20&mean_degree=12&seed=1", 32, 0, "contiguous")}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--data", default=os.environ.get("TESSERA_DATA", ""), metavar="GRAPHS",
                        help="folder of the real graphs (default: TESSERA_DATA); without it they are left out")
    parser.add_argument("--workloads", nargs="*", metavar="NAME", help=f"of batches (default all): {', '.join(WORKLOADS)}")
    parser.add_argument("--pyg", metavar="PYTHON", help="a Python that has PyG, to run the same batches in it")
    parser.add_argument("--pyg-seconds", type=float, default=600, help="end it after this long")
    parser.add_argument("--only", nargs="*", choices=STEPS, default=STEPS, help="measure only this")
    parser.add_argument("--no-fp32", action="store_true", help="on a GPU, leave out batches in fp32")
    parser.add_argument("--quick", action="store_true", help="few sizes, small ones")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    options = parser.parse_args()
    if not options.commit:
        parser.error("--commit, or TESSERA_COMMIT, says what was measured")
    small = options.quick
    options.table_sizes = [256, 512] if small else [2048, 4096, 8192]
    options.table_widths = [32] if small else [32, 64]
    options.sweep_sizes = [128, 256, 512] if small else [128, 256, 512, 1024, 2048, 4096, 8192, 16384, 32768]
    options.sweep_widths = [16, 64] if small else [16, 32, 64, 128, 256, 512, 1024]
    options.reuse_sizes = [256] if small else [1024, 2048, 4096, 8192]
    options.reuse_width = 64 if small else 1024
    known = QUICK_WORKLOADS if small else WORKLOADS
    for name in options.workloads or []:
        if name not in known:
            parser.error(f"no workload is called {name}; there are {', '.join(known)}")
    options.known = known
    options.chosen = {name: known[name] for name in options.workloads or known
                      if options.data or "{data}" not in known[name][0]}
    return options


def float_precisions(options):
    """What batches of bits stand beside; on a GPU bf16 is measured first, since bits must not be slower."""
    if options.device == "cpu":
        return ["fp32"]
    return ["bf16"] if options.no_fp32 else ["bf16", "fp32"]


def parts_of(records, folder, name, workload):
    """Files of a workload's graph and of the part of each vertex."""
    options = records.options
    source, _, parts, method = workload
    source = source.format(data=options.data)
    if not source.endswith(".npz"):
        target = folder / f"{name}.tsr"
        subprocess.run([options.program, "convert", source, "-o", str(target), "--graph-only"], check=True,
                       stdout=subprocess.DEVNULL)
        source = str(target)
    if not parts:
        found = subprocess.run([options.program, "info", source, "--json", "-"], check=True, capture_output=True, text=True)
        parts = max(1, json.loads(found.stdout)["vertices"] // 100)
    file = folder / f"{name}.txt"
    made = subprocess.run([options.program, "partition", source, "--parts", str(parts), "--method", method,
                           "-o", str(file), "--json", "-"], check=True, capture_output=True, text=True)
    made = json.loads(made.stdout)
    records.partitions[name] = {key: made[key] for key in ("vertices", "edges", "method", "parts", "cut_share")}
    return source, str(file)


def measure_batches(records, folder):
    """What matters first: bits beside floating point of 16 bits, then PyG, then fp32."""
    options = records.options
    files = {name: parts_of(records, folder, name, workload) for name, workload in options.chosen.items()}
    first, *later = float_precisions(options)

    def bench(name, ops, precision="fp32"):
        source, parts = files[name]
        records.bench(folder, name, source, ops, [options.chosen[name][1]], [precision], "--partition", parts)

    for name in options.chosen:
        bench(name, [f"batches_{model}_{bits}" for model in MODELS for bits in BATCH_BITS])
        bench(name, [f"batches_{model}" for model in MODELS], first)
    missing = [name for name, (_, width, _, _) in options.chosen.items()
               if not all(records.has(f"batches_{model}", name, width, by_pyg=True) for model in MODELS)]
    if options.pyg and missing:
        report = folder / "pyg.json"
        records.run([options.pyg, str(ROOT / "bench/baselines/batches_torch.py"),
                     *(word for name in missing for word in (*files[name], str(options.chosen[name][1]))),
                     "--device", options.device, "--repeats", "3", "--max-seconds", "2", "--json", str(report)],
                    report, seconds=options.pyg_seconds)
    for precision in later:
        for name in options.chosen:
            bench(name, [f"batches_{model}" for model in MODELS], precision)


def dense(size):
    """A graph whose adjacency has no tile of 8 x 128 without an edge, almost surely."""
    return f"generate:erdos_renyi?vertices={size}&edges={size * size // 32}&seed=1"


def measure_dense(records, folder, sizes, widths, bits):
    for size in sizes:
        records.bench(folder, str(size), dense(size), [f"bit_gemm_{count}" for count in bits], widths)


def measure_accuracy(options):
    """Table 2: the page of tools/bits_accuracy.py, beside this one."""
    if not options.data or options.quick:
        return
    machine = "an NVIDIA GPU" if options.device == "cuda" else platform.processor() or platform.machine()
    subprocess.run([sys.executable, str(ROOT / "tools/bits_accuracy.py"), "--tessera", options.program, "--data", options.data,
                    "--device", options.device, "--commit", options.commit, "--machine", machine, "--output", options.output],
                   check=True)


def time_of(record):
    """Per launch in a chain where that was measured."""
    return record.get("chain_us") or record["median_us"]


def rate(record):
    """Operations of a product of numbers, in 10^12 a second."""
    return 2 * int(record["graph"]) ** 2 * record["features"] / time_of(record) * 1e-6


def digits(number):
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def bits_text(bits):
    return "1 bit" if bits == 1 else f"{bits} bits"


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def commits(records):
    return ", ".join(dict.fromkeys(f"`{one['commit']}`" for one in records if one))


def batch_rows(records, model):
    for name, (_, width, _, _) in records.options.known.items():
        op = f"batches_{model}"
        cells = [records.find(op, name, width, by_pyg=True),
                 *(records.find(op, name, width, precision) for precision in float_precisions(records.options)),
                 *(records.find(f"{op}_{bits}", name, width) for bits in BATCH_BITS)]
        if not any(cells):
            continue
        yield [f"{name}, {width}", commits(cells)] + [
            "" if one is None else f"{one['median_us']:.0f} ({digits(one['figures']['bytes_to_device'] / 1e6)})" for one in cells]


def tile_rows(records):
    for name, (_, width, _, _) in records.options.known.items():
        one = next(filter(None, (records.find(f"batches_gcn_{bits}", name, width) for bits in BATCH_BITS)), None)
        if one is None or name not in records.partitions:
            continue
        cut, figures = records.partitions[name], one["figures"]
        yield [name, f"{cut['vertices']:,}", f"{cut['edges']:,}", f"{cut['parts']}, {cut['method']}",
               f"{100 * cut['cut_share']:.1f} %", f"{figures['batches']:.0f}", f"{100 * figures['tiles_with_edges']:.1f} %",
               f"{100 * figures['tiles_stored']:.1f} %"]


def reuse_rows(records):
    """Of all sizes where the same commit has one plane and several; a newer product is not held against an older one."""
    options = records.options
    for size in sorted({*options.table_sizes, *options.reuse_sizes}):
        for width in (*options.table_widths, options.reuse_width):
            one, *several = (records.find(f"bit_gemm_{bits}", str(size), width) for bits in (1, *REUSE_BITS))
            several = [all_planes if one and all_planes and all_planes["commit"] == one["commit"] else None for all_planes in several]
            if any(several):
                yield [f"{size}, {width}", commits([one])] + [
                    f"{bits * time_of(one) / time_of(all_planes):.2f}" if all_planes else ""
                    for bits, all_planes in zip(REUSE_BITS, several)]


def page(records):
    options = records.options
    yield "# Counterparts of QGTC's figures\n"
    yield (f"Made by `tools/qgtc_report.py` on {'an NVIDIA H200' if options.device == 'cuda' else 'a CPU'}. Microseconds "
           "are per launch in a recorded chain where that was measured, otherwise medians of single runs; results are "
           "checked first. What is empty was not measured.\n")
    yield "## Figure 7 (a, b): inference over batches of 20 parts\n"
    yield ("Microseconds for all batches, copies included, and in brackets megabytes over the bus; after each graph the "
           "width of its features. PyG: fp32, the same batches, the faster of copying in order and copying ahead.\n")
    for model, title in (("gcn", "Cluster-GCN, 3 x 16"), ("gin", "GIN, 3 x 64")):
        yield from table([title, "commit", "PyG", *float_precisions(options), *map(bits_text, BATCH_BITS)], batch_rows(records, model))
    yield "## Figure 8: tiles of 8 x 128 of a batch's adjacency\n"
    yield from table(["graph", "vertices", "edges", "parts", "edges cut", "batches", "tiles with an edge", "stored in blocks"],
                     tile_rows(records))
    yield "## Figure 7 (c) and Table 3: aggregation as a dense product\n"
    shown = [records.find(f"bit_gemm_{bits}", str(size), width)
             for size in options.table_sizes for width in options.table_widths for bits in SHOWN_BITS]
    yield f"Microseconds, and in brackets 2 N N D operations in 10^12 a second; {commits(shown) or 'not measured'}.\n"
    yield from table(["N, D", *map(bits_text, SHOWN_BITS)], (
        [f"{size}, {width}"] + ["" if one is None else f"{time_of(one):.1f} ({digits(rate(one))})" for one in
                                (records.find(f"bit_gemm_{bits}", str(size), width) for bits in SHOWN_BITS)]
        for size in options.table_sizes for width in options.table_widths))
    yield "## Figure 9: sizes\n"
    shown = [records.find("bit_gemm_1", str(size), width) for size in options.sweep_sizes for width in options.sweep_widths]
    yield f"2 N N D operations in 10^12 a second with one bit; N down, D across; {commits(shown) or 'not measured'}.\n"
    yield from table(["N", *map(str, options.sweep_widths)], (
        [str(size)] + ["" if one is None else digits(rate(one)) for one in
                       (records.find("bit_gemm_1", str(size), width) for width in options.sweep_widths)]
        for size in options.sweep_sizes))
    yield "## Figure 10: a loaded tile serves all planes\n"
    yield ("So many products of one plane over one product of all planes, where both were measured of one commit. Where only "
           "one plane was timed in a chain, and all planes by single runs with their launch, the number is too low.\n")
    yield from table(["N, D", "commit", *map(bits_text, REUSE_BITS)], reuse_rows(records))
    yield "## Table 2: accuracy\n"
    accuracy = "bits_gpu" if options.device == "cuda" else "bits"
    yield f"[{accuracy}.md]({accuracy}.md) has accuracy against bits."


def main():
    options = arguments()
    name = "qgtc" if options.device == "cuda" else "qgtc_cpu"
    records = Records(options, name)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        steps = {"batches": lambda: measure_batches(records, folder),
                 "products": lambda: measure_dense(records, folder, options.table_sizes, options.table_widths, SHOWN_BITS),
                 "sizes": lambda: measure_dense(records, folder, options.sweep_sizes, options.sweep_widths, [1]),
                 "reuse": lambda: measure_dense(records, folder, options.reuse_sizes, [options.reuse_width], (1, *REUSE_BITS)),
                 "accuracy": lambda: measure_accuracy(options)}
        for step in STEPS:
            if step in options.only:
                steps[step]()
    (pathlib.Path(options.output) / f"{name}.md").write_text("\n".join(page(records)) + "\n")


if __name__ == "__main__":
    main()
