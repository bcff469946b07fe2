# SPDX-License-Identifier: Apache-2.0
"""Draws the windows of a graph by their columns and sparsity, before and after LOA: the counterpart of HyGNN's Figure 5, for tools/hygnn_report.py.

The line is where the paper's model, a logistic regression that was fitted to the sweep of sparsity (logistic_cores.py), changes its mind between CUDA
cores and tensor cores; windows that it gives to tensor cores are orange.
"""
import math
import pathlib
import subprocess
import tempfile

ROWS = 64  # of a window, as of the sweep
MOST_EDGES = 3_000_000  # graphs with more are not drawn: edges go through text
MOST_POINTS = 1500
PANEL, GAP, MARGIN = 420, 90, 60


def windows_of(matrix):
    """(sparsity, columns) of each window of a Matrix Market file that has an edge."""
    columns, edges = {}, {}
    with open(matrix, encoding="utf-8") as file:
        symmetric = "symmetric" in file.readline()
        size_seen = False
        for line in file:
            if line.startswith("%"):
                continue
            if not size_seen:
                size_seen = True
                continue
            row, column = map(int, line.split()[:2])
            for row, column in {(row, column), (column, row)} if symmetric else ((row, column),):
                window = (row - 1) // ROWS
                columns.setdefault(window, set()).add(column)
                edges[window] = edges.get(window, 0) + 1
    return [(1 - edges[window] / (ROWS * len(columns[window])), len(columns[window])) for window in sorted(columns)]


def boundary(suits, most_columns):
    """Points (sparsity, columns) where the model changes its mind, by columns."""
    line = []
    for step in range(101):
        columns = most_columns ** (step / 100)
        low, high = 0.0, 1.0
        if suits((low, columns)) == suits((high, columns)):
            continue
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (middle, high) if suits((middle, columns)) == suits((0.0, columns)) else (low, middle)
        line.append((low, columns))
    return line


def svg(name, panels, suits):
    """`panels` are (title, windows)."""
    most = max(columns for _, windows in panels for _, columns in windows)
    least = min(sparsity for _, windows in panels for sparsity, _ in windows)
    bottom = max(0.0, math.floor(10 * least) / 10)
    width, height = 2 * MARGIN + 2 * PANEL + GAP, PANEL + 150
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="13">',
           f'<rect width="{width}" height="{height}" fill="white"/>', f'<text x="{MARGIN}" y="24">{name}: windows of {ROWS} rows</text>']
    for number, (title, windows) in enumerate(panels):
        left, top = MARGIN + number * (PANEL + GAP), 66

        def at(sparsity, columns, left=left, top=top):
            return left + PANEL * math.log(columns) / math.log(max(most, 2)), top + PANEL * (1 - sparsity) / (1 - bottom)
        share = sum(suits(window) for window in windows) / len(windows)
        out.append(f'<text x="{left}" y="{top - 14}">{title}: {100 * share:.0f} % of {len(windows):,} windows suit tensor cores (orange)</text>')
        out.append(f'<rect x="{left}" y="{top}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#888"/>')
        for window in windows[::1 + len(windows) // MOST_POINTS]:
            x, y = at(*window)
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="2" fill="{"#e6821e" if suits(window) else "#2b6cb0"}" fill-opacity="0.6"/>')
        inside = [at(*point) for point in boundary(suits, most) if point[0] >= bottom]
        if len(inside) > 1:
            out.append('<polyline fill="none" stroke="#c00" points="' + " ".join(f"{x:.1f},{y:.1f}" for x, y in inside) + '"/>')
        for sparsity in (bottom, 1.0):
            out.append(f'<text x="{left - 8}" y="{at(sparsity, 1)[1] + 4:.1f}" text-anchor="end">{100 * sparsity:.0f} %</text>')
        for columns in (1, most):
            out.append(f'<text x="{at(1, columns)[0]:.1f}" y="{top + PANEL + 20}" text-anchor="middle">{columns}</text>')
        out.append(f'<text x="{left + PANEL / 2}" y="{top + PANEL + 40}" text-anchor="middle">columns that a window uses; upwards: sparsity</text>')
    return "\n".join(out) + "\n</svg>\n"


def draw(program, name, source, suits, file):
    """The share of windows that suit tensor cores before and after, or nothing where the graph is too large."""
    with tempfile.TemporaryDirectory() as folder:
        before, after = pathlib.Path(folder) / "before.mtx", pathlib.Path(folder) / "after.mtx"
        subprocess.run([program, "convert", "--data", source, "--graph-only", "-o", before], check=True, capture_output=True)
        with open(before, encoding="utf-8") as matrix:
            size = next(line for line in matrix if not line.startswith("%"))
        if int(size.split()[2]) > MOST_EDGES:
            return None
        subprocess.run([program, "reorder", "--data", before, "--method", "loa", "--graph-only", "-o", after], check=True, capture_output=True)
        panels = [("before", windows_of(before)), ("after LOA", windows_of(after))]
    if not all(windows for _, windows in panels):
        return None
    file.write_text(svg(name, panels, suits), encoding="utf-8")
    return [sum(map(suits, windows)) / len(windows) for _, windows in panels]
