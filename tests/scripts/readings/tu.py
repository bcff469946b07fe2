# SPDX-License-Identifier: Apache-2.0
"""Folders of the TU collection: how they are drawn, and how docs/formats.md reads them."""
import math

from npz import to_float
from refusal import Refused

ENDING = ""
NAME = "toy"


# --- drawing ---

def lines_of(draw, rows):
    comma = draw.choice([",", ", ", " ,  "])
    end = draw.choice(["\n", "\n", "\r\n"])
    return end.join(comma.join(map(str, row)) for row in rows) + (end if draw.random() < 0.8 else "")


def real(draw):
    return draw.choice(["0.5", "-1", "3e-2", "1.0", "7.25", " 2"])


def draw_tables(draw):
    sizes = [draw.randint(1, 5) for _ in range(draw.randint(1, 6))]
    indicator = [(graph + 1,) for graph, size in enumerate(sizes) for _ in range(size)]
    edges, first = [], 1
    for size in sizes:
        pairs = [(a, b) for a in range(first, first + size) for b in range(first, first + size)]
        edges += draw.sample(pairs, draw.randint(0, min(len(pairs), 6)))
        first += size
    tables = {"A": edges, "graph_indicator": indicator}
    rows = {"node_labels": len(indicator), "node_attributes": len(indicator), "edge_labels": len(edges),
            "edge_attributes": len(edges), "graph_labels": len(sizes), "graph_attributes": len(sizes)}
    for part, count in rows.items():
        if draw.random() < 0.5:
            continue
        width = 1 if part == "graph_labels" else draw.randint(1, 3)
        values = draw.choice([(0, 1), (1, -1), (3, 7, 1000000), (-5, 0, 2)])
        tables[part] = [tuple(real(draw) if "attributes" in part else draw.choice(values) for _ in range(width))
                        for _ in range(count)]
    return tables, len(sizes)


def damage(draw, tables, graphs):
    """One thing that is wrong, or none where the tables have no place for it."""
    edges, indicator = tables["A"], tables["graph_indicator"]
    part = draw.choice(sorted(tables))
    kind = draw.choice(["across", "range", "word", "unsorted", "jump", "short", "long", "ragged", "twice", "missing"])
    if kind == "across" and edges and graphs > 1:
        edges[draw.randrange(len(edges))] = (1, len(indicator))
    elif kind == "range" and edges:
        edges[draw.randrange(len(edges))] = (draw.choice([0, -3, len(indicator) + 1, 10**12]), 1)
    elif kind == "word" and tables[part]:
        row = draw.randrange(len(tables[part]))
        tables[part][row] = (draw.choice(["x", "NA", "1.5.2", "nan"]),) + tables[part][row][1:]
    elif kind == "unsorted" and graphs > 1:
        indicator[-1] = (1,) if graphs > 2 else (3,)
    elif kind == "jump":
        tables["graph_indicator"] = [row if row[0] < graphs else (graphs + 1,) for row in indicator]
    elif kind == "short" and part not in ("A", "graph_indicator") and len(tables[part]) > 1:
        tables[part].pop()
    elif kind == "long" and part not in ("A", "graph_indicator") and tables[part]:
        tables[part].append(tables[part][-1])
    elif kind == "ragged" and len(tables[part]) > 1:
        tables[part][-1] += (1,)
    elif kind == "twice" and edges:
        tables["A"] = [*edges, edges[0]]
        for of_edges in ("edge_labels", "edge_attributes"):
            if of_edges in tables:
                tables[of_edges].append(tables[of_edges][-1])
    elif kind == "missing":
        del tables[draw.choice(["A", "graph_indicator"])]


def draw(draw):
    tables, graphs = draw_tables(draw)
    if draw.random() < 0.5:
        damage(draw, tables, graphs)
    options = {"duplicates": draw.choice(["sum", "first"])} if draw.random() < 0.4 else {}
    return {f"{NAME}_{part}.txt": lines_of(draw, rows) for part, rows in tables.items()}, options


def command_line(options):
    return [word for option, value in options.items() for word in (f"--{option}", value)]


# --- reading ---

def table(files, part, parse):
    """The rows of a table, and the line of each; nothing where there is no such file."""
    text = files.get(f"{part}.txt")
    if text is None:
        return None, None
    rows, numbers = [], []
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip() or line.strip()[0] in "#%" or line.strip().startswith("//"):
            continue
        try:
            rows.append([parse(field.strip()) for field in line.split(",")])
        except ValueError:
            raise Refused(f"{part}: no number", [number]) from None
        if len(rows[-1]) != len(rows[0]):
            raise Refused(f"{part}: another number of columns", [number])
        numbers.append(number)
    return rows, numbers


def finite(field):
    value = to_float(float(field))
    if not math.isfinite(value):
        raise ValueError(field)
    return value


def of_length(rows, count, part):
    if rows is not None and len(rows) != count:
        raise Refused(f"{part} has {len(rows)} rows for {count}")
    return rows


def read_indicator(files):
    rows, lines = table(files, "graph_indicator", int)
    if rows is None or "A.txt" not in files:
        raise Refused("a file is missing")
    graphs = [row[0] for row in rows]
    for i, graph in enumerate(graphs):
        if graph not in ((1,) if i == 0 else (graphs[i - 1], graphs[i - 1] + 1)):
            raise Refused("graphs are not in order", [lines[i]])
    return graphs


def read_edges(files, graphs, options):
    """{(target, source): (how often, the first place)}, from 0, and the ends line by line."""
    rows, lines = table(files, "A", int)
    edges = {}
    for k, ends in enumerate(rows):
        if len(ends) != 2:
            raise Refused("an edge has two ends")
        source, target = ends
        if not all(1 <= end <= len(graphs) for end in ends) or graphs[source - 1] != graphs[target - 1]:
            raise Refused("an edge leads out of its graph", [lines[k]])
        count, first = edges.get((target - 1, source - 1), (0, k))
        if count and "duplicates" not in options:
            raise Refused("an edge is there twice", [lines[k]])
        edges[target - 1, source - 1] = (count + 1, first)
    return edges, [(target - 1, source - 1) for source, target in rows]


def add_features(files, of, rows):
    """Names and rows of features from attributes and labels; nothing where there are none."""
    attributes = of_length(table(files, f"{of}_attributes", finite)[0], rows, "attributes")
    labels = of_length(table(files, f"{of}_labels", int)[0], rows, "labels")
    names, columns = [], []
    for j in range(len(attributes[0]) if attributes else 0):
        names.append(f"attribute {j + 1}")
        columns.append([row[j] for row in attributes])
    for j in range(len(labels[0]) if labels else 0):
        column = [row[j] for row in labels]
        for value in sorted(set(column)):
            names.append(("label" if len(labels[0]) == 1 else f"label {j + 1}") + f"={value}")
            columns.append([1.0 if one == value else 0.0 for one in column])
    return names, [list(row) for row in zip(*columns)]


def read(files, options):
    files = {name.removeprefix(f"{NAME}_"): text for name, text in files.items()}
    graphs = read_indicator(files)
    edges, ends = read_edges(files, graphs, options)
    listed = len(ends)
    order = sorted(edges)
    sums = options.get("duplicates") == "sum" and any(count > 1 for count, _ in edges.values())
    found = {"vertices": len(graphs), "weighted": sums, "graph_id": [graph - 1 for graph in graphs],
             "edges": {edge: float(count) if sums else 1.0 for edge, (count, _) in edges.items()}}
    names, rows = add_features(files, "edge", listed)
    if rows:
        if options.get("duplicates") == "sum" and any(rows[k] != rows[edges[edge][1]] for k, edge in enumerate(ends)):
            raise Refused("merged edges have different features")
        found["edge_attr_name"], found["edge_attr"] = names, [rows[edges[edge][1]] for edge in order]
    names, rows = add_features(files, "node", len(graphs))
    if rows:
        found["feature_name"], found["x"] = names, rows
    labels = of_length(table(files, "graph_labels", int)[0], graphs[-1], "graph labels")
    if labels is not None:
        if len(labels[0]) > 1:
            raise Refused("a graph has one label")
        values = sorted({row[0] for row in labels})
        found["graph_label"] = [values.index(row[0]) for row in labels]
        if values != list(range(len(values))):
            found["class_name"] = [str(value) for value in values]
    rows = of_length(table(files, "graph_attributes", finite)[0], graphs[-1], "graph attributes")
    if rows:
        found["graph_targets"] = rows
    return found
