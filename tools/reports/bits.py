# SPDX-License-Identifier: Apache-2.0
"""QGTC's Table 2: accuracy against the bits of weights, features and activations.

    tools/report.py bits --device cuda --data GRAPHS
    tools/report.py bits --quick embedded:citation

Trains a GCN on each data set with all bits and for a few (quantisation-aware), and quantises the one with all bits after
training. SOURCE is what `tessera train` takes; without one the real graphs of --data are trained on.
"""
import math
import statistics

from . import common

SOURCES = []
GRAPHS = ["cora", "citeseer", "pubmed", "amazon-computers", "coauthor-cs"]
BITS = ["16", "8", "4", "2"]
# With rows divided by their sums the paper's GCN learns nothing on it, with all bits either.
EXTRA = {"amazon-computers": ["--normalise", "off", "--hidden", 64, "--batch-norm", "--weight-decay", 0, "--input-dropout", 0]}
MEMORY = ["feature_bytes", "activation_bytes", "full_feature_bytes", "full_activation_bytes"]


def add_options(parser):
    parser.add_argument("--runs", type=int, default=10, help="of each training (default: 10)")


def measure(run):
    rows = []
    runs = 2 if run.options.quick else run.options.runs
    for source in run.options.sources or common.real_graphs(run.options, GRAPHS):
        name, full = common.name_of(source), run.folder / "full.tsr"
        if run.is_late(f"training on {name}"):
            continue

        def tests(*flags):
            said = run.call("train", source, "--runs", runs, *EXTRA.get(name, []), "--device", run.device, *flags)
            return [one["test"] for one in said["runs"]]

        full.unlink(missing_ok=True)
        rows.append({"graph": name, "bits": "all", "tests": tests("--checkpoint", full)})
        for bits in BITS:
            # All devices compute with the same integers, but sums of codes of 16 bits need more bits than a GPU sums in.
            later = run.call("predict", source, "--checkpoint", full, "--bits", bits, "--device", "cpu")["bits"]
            rows.append({"graph": name, "bits": bits, "tests": tests("--bits", bits), "lost_after_training": later.get("lost"),
                         **{key: later[key] for key in ["weight_bytes", "full_weight_bytes", *MEMORY]}})
    return rows


PARTS = {"training": measure}


def mean_of(row):
    return 100 * statistics.mean(row["tests"])


def error_of(numbers):
    """The standard error of their mean."""
    return statistics.stdev(numbers) / math.sqrt(len(numbers)) if len(numbers) > 1 else 0.0


def difference(row, full):
    """Points against all bits and their standard error: runs of one seed have the same split and first weights."""
    points = [100 * (few - all_bits) for few, all_bits in zip(row["tests"], full["tests"])]
    return statistics.mean(points), error_of(points)


def cell(row, full):
    text = f"{mean_of(row):.1f} ± {100 * error_of(row['tests']):.1f}"
    return text if row is full else f"{text} ({difference(row, full)[0]:+.1f} ± {difference(row, full)[1]:.1f})"


def sets_of(rows):
    return {name: {row["bits"]: row for row in rows if row["graph"] == name} for name in dict.fromkeys(row["graph"] for row in rows)}


def worst(sets, bits):
    """The set that loses most with so many bits, and how much."""
    losses = {name: difference(found[bits], found["all"])[0] for name, found in sets.items() if bits in found}
    return min(losses.items(), key=lambda item: item[1]) if losses else None


def kilobytes(row, prefix=""):
    return f"{row[prefix + 'feature_bytes'] / 1e3:,.0f} \\| {row[prefix + 'activation_bytes'] / 1e3:,.0f}"


def lines(record):
    sets = sets_of(record["parts"]["training"])
    head = [f"{bits} bits" for bits in BITS]
    yield "# Accuracy against bits (QGTC, Table 2)\n"
    yield "Question: how much accuracy does a GCN lose whose weights, features and activations have few bits?\n"
    found = {bits: worst(sets, bits) for bits in ("8", "4", "2")}
    if all(found.values()):
        yield (f"Trained for 8 bits, the worst change is {found['8'][1]:+.1f} points ({found['8'][0]}), for 4 bits "
               f"{found['4'][1]:+.1f} ({found['4'][0]}); 2 bits are too few ({found['2'][1]:+.1f} on {found['2'][0]}).\n")
    yield common.where(record)
    yield ("A GCN of its paper's shape: test accuracy in percent, mean and standard error over the runs, trained with all bits\n"
           "and for so many (`tessera train --bits`). In brackets the points against all bits over the same seeds.\n")
    yield "![accuracy against bits](bits.svg)\n"
    yield from common.table(["data", "runs", "all bits", *head],
                            [[name, len(of["all"]["tests"]), cell(of["all"], of["all"]),
                              *(cell(of[bits], of["all"]) if bits in of else "" for bits in BITS)] for name, of in sets.items()])
    yield "The best run with all bits, quantised after training (`tessera predict --bits`): points lost.\n"
    yield from common.table(["data", *head], [[name, *(f"{100 * of[bits]['lost_after_training']:.1f}"
                                                       if bits in of and of[bits]["lost_after_training"] is not None else ""
                                                       for bits in BITS)] for name, of in sets.items()])
    yield "What the codes take in integers, in kilobytes: features | activations between two products.\n"
    few = {name: next(row for row in of.values() if row["bits"] != "all") for name, of in sets.items()}
    yield from common.table(["data", "in fp32", *head], [[name, kilobytes(few[name], "full_"),
                                                          *(kilobytes(of[bits]) if bits in of else "" for bits in BITS)]
                                                         for name, of in sets.items()])
    if "amazon-computers" in sets:
        yield ("amazon-computers has its features as they are, 64 hidden features, batch norm, and no weight decay or dropout of\n"
               "features: without, it is learnt from some starts alone.\n")
    yield from common.again("bits --device cuda --data GRAPHS", "The record is [bits.json](bits.json).")


def picture(sets):
    width, height, left, right, top, bottom = 720, 400, 60, 190, 30, 50
    marks = ["all", *BITS]
    points = {name: [(place, mean_of(of[bits]), 100 * error_of(of[bits]["tests"])) for place, bits in enumerate(marks) if bits in of]
              for name, of in sets.items()}
    low = 10 * (min([90, *(mean for found in points.values() for _, mean, _ in found)]) // 10)

    def x(place):
        return left + (width - left - right) * place / (len(marks) - 1)

    def y(percent):
        return top + (height - top - bottom) * (100 - percent) / (100 - low)

    out = []
    for percent in range(int(low), 101, 10):
        out += [common.svg_line(left, y(percent), x(len(marks) - 1), y(percent)),
                common.svg_text(left - 8, y(percent) + 4, f"{percent} %", "end")]
    out += [common.svg_text(x(place), height - bottom + 22, mark, "middle") for place, mark in enumerate(marks)]
    out.append(common.svg_text(x((len(marks) - 1) / 2), height - 8, "bits of weights, features and activations", "middle"))
    for number, (name, found) in enumerate(points.items()):
        colour, row = common.COLOURS[number % len(common.COLOURS)], top + 20 + 22 * number
        out.append(common.svg_curve([(x(place), y(mean)) for place, mean, _ in found], colour))
        for place, mean, error in found:
            out += [common.svg_dot(x(place), y(mean), colour),
                    common.svg_line(x(place), y(mean - error), x(place), y(mean + error), colour)]
        out += [common.svg_line(width - right + 20, row, width - right + 44, row, colour, stroke_width=2),
                common.svg_text(width - right + 52, row + 4, name)]
    return common.svg(width, height, out)


def pages(record):
    return {"bits.md": common.joined(lines(record)), "bits.svg": picture(sets_of(record["parts"]["training"]))}
