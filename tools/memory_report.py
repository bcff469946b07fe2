#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sets the memory that `tessera train --dry-run` predicts beside what training then takes.

    tools/memory_report.py --device cuda --commit 3bbdb77 --program build/cuda/bin/tessera amazon-size molecules

Needs NumPy. The graphs are random ones of the sizes that SIZES names, with random features and labels. Writes memory.json
and memory.md into --output. --seconds N begins nothing after that; what is missing stays out of the table.
"""
import argparse
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy

ROOT = pathlib.Path(__file__).resolve().parents[1]
# vertices, edges, how far apart the ends of an edge are at most, features, hidden, classes
SIZES = {
    "small": (3000, 12000, 3000, 64, 16, 7),
    "amazon-size": (410236, 3356824, 410236, 96, 64, 22),
    "molecules": (1714625, 3677124, 24, 74, 64, 2),
    "reddit-size": (232965, 57307946, 232965, 602, 128, 41),
}
MODELS = ["gcn", "sage", "gat", "gin", "agnn"]
HEADS = 8
ALLOWED = 0.1


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--models", default=",".join(MODELS), metavar="LIST")
    parser.add_argument("--precision", default="fp32", metavar="LIST")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    parser.add_argument("sizes", nargs="+", choices=SIZES, metavar="SIZE")
    options = parser.parse_args()
    if not options.commit:
        parser.error("--commit, or TESSERA_COMMIT, says what was measured")
    return options


def write_graph(size, path):
    vertices, edges, distance, features, _, classes = SIZES[size]
    draw = numpy.random.default_rng(1)
    row = draw.integers(vertices, size=edges, dtype=numpy.int64)
    col = (row + draw.integers(1, distance, size=edges, dtype=numpy.int64)) % vertices
    pairs = numpy.unique(row * vertices + col)
    numpy.savez(path, row=(pairs // vertices).astype(numpy.int32), col=(pairs % vertices).astype(numpy.int32),
                num_nodes=vertices, x=draw.random((vertices, features), dtype=numpy.float32),
                y=draw.integers(classes, size=vertices))


def train(options, path, size, model, precision, *more):
    hidden = SIZES[size][4]
    shape = ["--hidden", str(hidden // HEADS), "--heads", str(HEADS)] if model == "gat" else ["--hidden", str(hidden)]
    report = path.with_suffix(".json")
    command = [options.program, "train", str(path), "--model", model, "--device", options.device, "--precision", precision,
               "--layers", "2", *shape, "--epochs", "3", "--json", str(report), "--force", *more]
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        print(f"left out: {' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        return None
    return json.loads(report.read_text())


def measure(options, deadline):
    with tempfile.TemporaryDirectory() as folder:
        for size in options.sizes:
            path = pathlib.Path(folder) / f"{size}.npz"
            write_graph(size, path)
            for precision in options.precision.split(","):
                for model in options.models.split(","):
                    if time.monotonic() > deadline:
                        return
                    predicted = train(options, path, size, model, precision, "--dry-run")
                    taken = train(options, path, size, model, precision)
                    if predicted and taken:
                        yield {"size": size, "model": model, "precision": precision,
                               "predicted": predicted["predicted_memory_bytes"], "peak_bytes": taken["peak_memory_bytes"]}
            path.unlink()


def page(options, records):
    yield "# Memory of training: predicted and taken"
    yield ""
    yield (f"Made by `tools/memory_report.py`, device {options.device}; commit {options.commit}, records in `memory.json`. "
           "MiB at the peak; the last column is what `--dry-run` predicts over what training takes.")
    yield ""
    yield "| graph | model | precision | taken | predicted | predicted / taken |"
    yield "|---|---|---|---:|---:|---:|"
    for record in records:
        total, taken = record["predicted"]["total"], record["peak_bytes"]
        mark = "" if abs(total / taken - 1) <= ALLOWED else " (too far)"
        yield (f"| {record['size']} | {record['model']} | {record['precision']} | {taken / 2**20:.1f} | {total / 2**20:.1f} | "
               f"{total / taken:.3f}{mark} |")


def main():
    options = arguments()
    records = list(measure(options, time.monotonic() + options.seconds))
    output = pathlib.Path(options.output)
    (output / "memory.md").write_text("\n".join(page(options, records)) + "\n")
    (output / "memory.json").write_text(json.dumps({"commit": options.commit, "records": records}, indent=1) + "\n")
    print(f"wrote {output / 'memory.md'}")


if __name__ == "__main__":
    main()
