# SPDX-License-Identifier: Apache-2.0
"""HyGNN's own model of which cores suit a window, and its Figure 5: windows by columns and sparsity.

A logistic regression on the sparsity and the columns of windows says which kind of cores is faster. It is fitted to all
cases of a group but one and asked about that one, each in turn.
"""
import math

from . import common

ROWS = 64  # of a window, as of the sweep
MOST_POINTS = 1500
PANEL, GAP, MARGIN = 420, 90, 60


def fitted(cases, steps=4000, rate=0.5, shrinkage=1e-3):
    """Whether features belong to cases whose label is true; features are scaled to the mean and spread of the cases."""
    width = len(cases[0][0])
    means = [sum(features[i] for features, _ in cases) / len(cases) for i in range(width)]
    spreads = [math.sqrt(sum((features[i] - means[i]) ** 2 for features, _ in cases) / len(cases)) or 1.0
               for i in range(width)]

    def scaled(features):
        return [1.0] + [(one - mean) / spread for one, mean, spread in zip(features, means, spreads)]

    points = [(scaled(features), label) for features, label in cases]
    weights = [0.0] * (width + 1)
    for _ in range(steps):
        gradient = [shrinkage * weight for weight in weights]
        for features, label in points:
            says = 1 / (1 + math.exp(-sum(weight * one for weight, one in zip(weights, features))))
            for i, one in enumerate(features):
                gradient[i] += (says - label) * one / len(points)
        weights = [weight - rate * slope for weight, slope in zip(weights, gradient)]
    return lambda features: sum(weight * one for weight, one in zip(weights, scaled(features))) > 0


def regrets(cases):
    """What each way to choose loses, over (features, times of the two kinds, what the costs say of them)."""
    labels = [times[1] < times[0] for _, times, _ in cases]
    losses = {"logistic regression": [], "costs": [], "the more frequent kind": []}
    for i, (features, times, predicted) in enumerate(cases):
        others = [(one[0], label) for k, (one, label) in enumerate(zip(cases, labels)) if k != i]
        says = {"logistic regression": fitted(others)(features), "costs": predicted[1] < predicted[0],
                "the more frequent kind": 2 * sum(label for _, label in others) > len(others)}
        for way, takes_second in says.items():
            losses[way].append(times[takes_second] / min(times))
    return losses


def rows(groups):
    """Rows of a table, from {group: {precision: cases}}."""
    for group, found in groups.items():
        for precision, cases in sorted(found.items()):
            if len(cases) < 4:
                continue
            differ = [max(times) > 1.1 * min(times) for _, times, _ in cases]
            for way, losses in regrets(cases).items():
                right = [loss == 1 for loss, counts in zip(losses, differ) if counts]
                yield [group, precision, way, len(cases), f"{common.geometric_mean(losses):.3f}", f"{max(losses):.2f}",
                       f"{sum(right)} of {len(right)}" if right else ""]


def windows_of(matrix):
    """(sparsity, columns) of each window of a Matrix Market file that has an edge."""
    columns, edges = {}, {}
    with open(matrix, encoding="utf-8") as file:
        symmetric = "symmetric" in file.readline()
        lines = (line for line in file if not line.startswith("%"))
        next(lines)
        for line in lines:
            row, column = map(int, line.split()[:2])
            for one, other in {(row, column), (column, row)} if symmetric else ((row, column),):
                window = (one - 1) // ROWS
                columns.setdefault(window, set()).add(other)
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


def picture(name, panels, suits):
    """`panels` are {title: windows}; windows that the model gives to tensor cores are orange."""
    most = max(columns for windows in panels.values() for _, columns in windows)
    least = min(sparsity for windows in panels.values() for sparsity, _ in windows)
    bottom, top = max(0.0, math.floor(10 * least) / 10), 66
    out = [common.svg_text(MARGIN, 24, f"{name}: windows of {ROWS} rows")]
    for number, (title, windows) in enumerate(panels.items()):
        left = MARGIN + number * (PANEL + GAP)

        def at(sparsity, columns, left=left):
            return (left + PANEL * math.log(columns) / math.log(max(most, 2)), top + PANEL * (1 - sparsity) / (1 - bottom))

        share = sum(suits(window) for window in windows) / len(windows)
        out.append(common.svg_text(left, top - 14, f"{title}: {100 * share:.0f} % of {len(windows):,} windows suit tensor "
                                                   "cores (orange)"))
        out.append(f'<rect x="{left}" y="{top}" width="{PANEL}" height="{PANEL}" fill="none" stroke="#888"/>')
        for window in windows[::1 + len(windows) // MOST_POINTS]:
            out.append(common.svg_dot(*at(*window), "#e6821e" if suits(window) else "#2b6cb0", 2, fill_opacity=0.6))
        inside = [at(*point) for point in boundary(suits, most) if point[0] >= bottom]
        out += [common.svg_curve(inside, "#c00")] if len(inside) > 1 else []
        out += [common.svg_text(left - 8, at(sparsity, 1)[1] + 4, f"{100 * sparsity:.0f} %", "end")
                for sparsity in (bottom, 1.0)]
        out += [common.svg_text(at(1, columns)[0], top + PANEL + 20, columns, "middle") for columns in (1, most)]
        out.append(common.svg_text(left + PANEL / 2, top + PANEL + 40, "columns that a window uses; upwards: sparsity",
                                   "middle"))
    return common.svg(2 * MARGIN + 2 * PANEL + GAP, PANEL + 150, out)
