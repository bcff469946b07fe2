#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what QGTC's Figures 7 to 10 and Table 3 show and writes docs/results/qgtc.md.

    tools/qgtc_report.py --device cuda --commit 3bbdb77 --program build/cuda/bin/tessera PROTEINS_full.npz:29 ppi-small.npz:50
    tools/qgtc_report.py --quick --commit 3bbdb77 --output /tmp

Figure 7 (a, b), inference over batches of parts by bits; Figure 7 (c) and Table 3, the rate of the aggregation as a
dense product; Figure 8, the share of tiles with edges; Figure 9, sizes of the adjacency and of the embedding; Figure
10, what a loaded tile saves when it serves all planes. The records go beside the page as qgtc.json. SOURCE is what
`tessera bench --data` takes, with :WIDTH for drawn features of another width than its own.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
BATCH_BITS = [2, 4, 8]
SHOWN_BITS = [1, 2, 3, 4, 8]
REUSE_BITS = [2, 4, 8]


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--quick", action="store_true", help="few sizes, small ones")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    parser.add_argument("sources", nargs="*", metavar="SOURCE[:WIDTH]")
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
    return options


class Bench:
    """`tessera bench`, and all records of it."""

    def __init__(self, options, folder):
        self.options = options
        self.report = pathlib.Path(folder) / "report.json"
        self.records = []
        self.machine = None

    def __call__(self, ops, source, *flags):
        command = [self.options.program, "bench", *ops, "--device", self.options.device, "--data", source, *flags,
                   "--json", str(self.report), "--force"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if not self.report.exists() or done.returncode not in (0, 7):
            print(f"left out: {' '.join(command)}: {done.stderr.strip()[-200:]}", file=sys.stderr)
            return []
        found = json.loads(self.report.read_text())
        records = found["records"]
        self.machine = self.machine or found.get("machine")
        self.report.unlink()
        self.records += records
        return records


def time_of(record):
    """Per launch in a chain where that was measured."""
    return record.get("chain_us") or record["median_us"]


def dense(size):
    """A graph whose adjacency has no tile of 8 x 128 without an edge, almost surely."""
    return f"generate:erdos_renyi?vertices={size}&edges={size * size // 32}&seed=1"


def rate(record, size):
    """Operations of a product of numbers, in 10^12 a second."""
    return 2 * size * size * record["features"] / time_of(record) * 1e-6


def bits_text(bits):
    return "1 bit" if bits == 1 else f"{bits} bits"


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def batches(bench, source):
    """Rows of Figure 7 (a, b) and of Figure 8."""
    name, _, width = source.partition(":") if not source.startswith("generate:") else (source, "", "")
    flags = ["--features", width] if width else []
    times, tiles = [], None
    for model in ("gcn", "gin"):
        float_flags = ["--precision", "fp32,bf16"] if bench.options.device == "cuda" else []
        floats = bench([f"batches_{model}"], name, *flags, *float_flags)
        bits = bench([f"batches_{model}_{count}" for count in BATCH_BITS], name, *flags)
        cells = {record["precision"]: record for record in floats}
        cells.update({int(record["op"].rsplit("_", 1)[1]): record for record in bits})
        graph = next((record["graph"] for record in floats + bits), name)
        row = [f"{graph}, {model}"]
        for key in ("fp32", "bf16", *BATCH_BITS):
            record = cells.get(key)
            row.append("" if record is None else
                       f"{record['median_us']:.0f} ({record['figures']['bytes_to_device'] / 1e6:.2f})")
        times.append(row)
        if bits and tiles is None:
            figures = bits[0]["figures"]
            tiles = [graph, f"{figures['batches']:.0f}", f"{100 * figures['tiles_with_edges']:.1f} %",
                     f"{100 * figures['tiles_stored']:.1f} %"]
    return times, tiles


def rates(bench, sizes, widths):
    ops = [f"bit_gemm_{bits}" for bits in SHOWN_BITS]
    for size in sizes:
        for width in widths:
            records = {record["op"]: record for record in bench(ops, dense(size), "--features", str(width))}
            yield [f"{size}, {width}"] + [
                f"{time_of(records[op]):.1f} ({rate(records[op], size):.3g})" if op in records else "" for op in ops]


def sweep(bench, sizes, widths):
    for size in sizes:
        found = {record["features"]: record
                 for record in bench(["bit_gemm_2"], dense(size), "--features", ",".join(map(str, widths)))}
        yield [str(size)] + [f"{rate(found[width], size):.3g}" if width in found else "" for width in widths]


def reuse(bench, sizes, width):
    ops = [f"bit_gemm_{bits}" for bits in (1, *REUSE_BITS)]
    for size in sizes:
        records = {record["op"]: record for record in bench(ops, dense(size), "--features", str(width))}
        one = records.get("bit_gemm_1")
        yield [str(size)] + [
            f"{bits * time_of(one) / time_of(records[op]):.2f}" if one and op in records else ""
            for bits, op in zip(REUSE_BITS, ops[1:])]


def page(options, bench):
    where = "an NVIDIA GPU" if options.device == "cuda" else "the CPU"
    yield "# Counterparts of QGTC's figures\n"
    yield (f"Made by `tools/qgtc_report.py` on {where}; commit {options.commit}. Microseconds are per "
           "launch in a recorded chain where that was measured, otherwise medians of single runs; sums are checked "
           "first." + ("" if options.device == "cuda" else " The shares are what to read here; "
                       "[cuda_bits.md](cuda_bits.md) has times of a GPU.") + "\n")
    figure_8 = []
    if options.sources:
        figure_7 = []
        for source in options.sources:
            times, tiles = batches(bench, source)
            figure_7 += times
            figure_8 += [tiles] if tiles else []
        yield "## Figure 7 (a, b): inference over batches of 20 parts\n"
        yield "Microseconds for all batches, copies included, and in brackets megabytes over the bus.\n"
        yield from table(["graph, model", "fp32", "bf16", *map(bits_text, BATCH_BITS)], figure_7)
        yield ""
    yield "## Figure 7 (c) and Table 3: aggregation as a dense product\n"
    yield "Microseconds, and in brackets 2 N N D operations in 10^12 a second.\n"
    yield from table(["N, D", *map(bits_text, SHOWN_BITS)],
                     rates(bench, options.table_sizes, options.table_widths))
    yield ""
    if figure_8:
        yield "## Figure 8: tiles of 8 x 128 of a batch's adjacency\n"
        yield from table(["graph", "batches", "with an edge", "stored in blocks"], figure_8)
        yield ""
    yield "## Figure 9: sizes\n"
    yield "2 N N D operations in 10^12 a second with 2 bits; N down, D across.\n"
    yield from table(["N", *map(str, options.sweep_widths)], sweep(bench, options.sweep_sizes, options.sweep_widths))
    yield ""
    yield "## Figure 10: a loaded tile serves all planes\n"
    yield f"So many products of one plane over one product of all planes, {options.reuse_width} columns.\n"
    yield from table(["N", *map(bits_text, REUSE_BITS)],
                     reuse(bench, options.reuse_sizes, options.reuse_width))


def main():
    options = arguments()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(options, folder)
        text = "\n".join(page(options, bench)) + "\n"
    output = pathlib.Path(options.output)
    (output / "qgtc.md").write_text(text)
    (output / "qgtc.json").write_text(json.dumps(
        {"commit": options.commit, "machine": bench.machine, "records": bench.records}, indent=1) + "\n")


if __name__ == "__main__":
    main()
