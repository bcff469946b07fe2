#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Draws the records of `tessera bench --json` and of the baselines: one picture per op.

    plot.py after.json -o plots                 times over the width, one line per graph
    plot.py torch.json after.json -o plots      also how many times faster the last file is

Needs matplotlib and nothing else beyond Python itself.
"""
import argparse
import collections
import json
import pathlib
import sys


def read(path):
    """(label, records) of one file; the label tells files apart in legends."""
    try:
        content = json.loads(pathlib.Path(path).read_text())
        return pathlib.Path(path).stem, content["records"]
    except (OSError, ValueError, KeyError, TypeError) as problem:
        sys.exit(f"plot.py: error: {path}: not a file of records ({problem})")


def best_by_case(records):
    """The fastest record of each case."""
    best = {}
    for record in records:
        case = tuple(record[key] for key in ("op", "graph", "precision", "device", "threads", "features"))
        if case not in best or record["median_us"] < best[case]["median_us"]:
            best[case] = record
    return best


def lines_of(records):
    """{op: {(graph, precision, threads): [(features, median, floor)]}}."""
    ops = collections.defaultdict(lambda: collections.defaultdict(list))
    for (op, graph, precision, _, threads, features), record in best_by_case(records).items():
        ops[op][graph, precision, threads].append(
            (features, record["median_us"], record.get("floor_us")))
    return ops


def name_of(line):
    graph, precision, threads = line
    return f"{graph}, {precision}, {threads} thread{'s' if threads != 1 else ''}"


def draw_times(pyplot, op, files, folder):
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for label, records in files:
        for line, points in sorted(lines_of(records).get(op, {}).items()):
            points.sort()
            widths = [features for features, _, _ in points]
            name = name_of(line) + (f" ({label})" if len(files) > 1 else "")
            drawn, = axes.plot(widths, [median for _, median, _ in points], marker="o", label=name)
            if all(floor for _, _, floor in points):
                axes.plot(widths, [floor for _, _, floor in points], linestyle=":",
                          color=drawn.get_color())
    axes.set(xscale="log", yscale="log", xlabel="features", ylabel="median time, microseconds",
             title=f"{op} (dotted: floor of moving the bytes)")
    save(pyplot, figure, axes, folder / f"{op}_times.png")


def draw_ratios(pyplot, op, first, last, folder):
    before, after = best_by_case(first[1]), best_by_case(last[1])
    lines = collections.defaultdict(list)
    for case in sorted(set(before) & set(after)):
        if case[0] == op:
            ratio = before[case]["median_us"] / after[case]["median_us"]
            lines[case[1], case[2], case[4]].append((case[5], ratio))
    if not lines:
        return
    figure, axes = pyplot.subplots(figsize=(8, 5))
    for line, points in lines.items():
        axes.plot(*zip(*points), marker="o", label=name_of(line))
    axes.axhline(1, color="black", linewidth=0.8)
    axes.set(xscale="log", xlabel="features", ylabel="times as fast",
             title=f"{op}: {last[0]} against {first[0]}")
    save(pyplot, figure, axes, folder / f"{op}_ratio.png")


def save(pyplot, figure, axes, path):
    axes.grid(True, which="both", alpha=0.3)
    axes.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
    print(path)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("files", nargs="+", metavar="FILE.json")
    parser.add_argument("-o", "--output", default=".", metavar="FOLDER")
    options = parser.parse_args()
    try:
        import matplotlib
    except ImportError:
        sys.exit("plot.py: error: matplotlib is not installed; install it with "
                 "'apt install python3-matplotlib' or 'pip install matplotlib'")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    files = [read(path) for path in options.files]
    folder = pathlib.Path(options.output)
    folder.mkdir(parents=True, exist_ok=True)
    for op in sorted({record["op"] for _, records in files for record in records}):
        draw_times(pyplot, op, files, folder)
        if len(files) > 1:
            draw_ratios(pyplot, op, files[0], files[-1], folder)


if __name__ == "__main__":
    main()
