# SPDX-License-Identifier: Apache-2.0
"""GraphML files: how they are drawn, and how docs/formats.md reads them."""
import math
import xml.etree.ElementTree
from xml.sax.saxutils import escape, quoteattr

from npz import to_float
from refusal import Refused

ENDING = ".graphml"
MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "?", "-"}  # in any letter case
LABELS = {"label", "class", "target", "y"}
MOST_CATEGORIES = 256


# --- drawing ---

def draw_value(draw, kind):
    """A value of an attribute, now and then one that is missing or not of its type."""
    if draw.random() < 0.05:
        return draw.choice(["", "NA", " ", "null", "nAn"])
    if draw.random() < 0.004:
        return draw.choice(["x7", "1.5.2", "inf", "yes"])
    if kind == "boolean":
        return draw.choice(["true", "false", "1", "0"])
    if kind in ("int", "long"):
        return draw.choice(["0", "1", "2", "-1", "12", "+3"])
    if kind in ("float", "double"):
        return draw.choice(["0.5", "1", "-2.25", "1e-2", "3.5E1", " 4 "])
    return draw.choice(["red", "blue", "dark green", "a<b", "é", "x=y", "True", "true"])


def draw_keys(draw):
    keys = []
    for i in range(draw.choice([0, 1, 2, 4])):
        kind = draw.choice(["boolean", "int", "long", "float", "double", "string"])
        keys.append({"id": f"d{i}", "for": draw.choice(["node", "node", "all"]), "attr.name": f"a{i}", "attr.type": kind})
    if draw.random() < 0.4:
        keys.append({"id": "dl", "for": "node", "attr.name": draw.choice(["label", "class", "y", "target"]),
                     "attr.type": draw.choice(["int", "string"])})
    if draw.random() < 0.5:
        keys.append({"id": "dw", "for": "edge", "attr.name": "weight", "attr.type": "double"})
    if draw.random() < 0.2:
        keys.append({"id": "de", "for": "edge", "attr.name": "colour", "attr.type": draw.choice(["string", "double"])})
    draw.shuffle(keys)
    for key in keys:
        if draw.random() < 0.4:
            key["default"] = draw_value(draw, key["attr.type"])
        if draw.random() < 0.1:
            del key["attr.type"]
    if keys and draw.random() < 0.02:
        keys.append(dict(draw.choice(keys)))
    return keys


def element(name, attributes, inside=""):
    words = "".join(f" {key}={quoteattr(value)}" for key, value in attributes.items())
    return f"<{name}{words}>{inside}</{name}>" if inside else f"<{name}{words}/>"


def draw_data(draw, keys, kind, share):
    """<data> of an item, one a line."""
    text = ""
    for key in keys:
        if key["for"] in (kind, "all") and draw.random() < share:
            value = escape(draw_value(draw, key.get("attr.type", "double" if key["id"] == "dw" else "string")))
            text += "\n" + element("data", {"key": key["id"]}, value)
            if draw.random() < 0.003:
                text += "\n" + element("data", {"key": key["id"]}, value)
    if draw.random() < 0.003:
        text += "\n" + element("data", {"key": "unknown"}, "1")
    return text


def draw(draw):
    keys = draw_keys(draw)
    share = draw.choice([1, 1, 0.95, 0.6, 0])
    lines = ['<?xml version="1.0" encoding="UTF-8"?>', '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">']
    for key in keys:
        default = key.get("default")
        attributes = {name: value for name, value in key.items() if name != "default"}
        lines.append(element("key", attributes, "" if default is None else element("default", {}, escape(default))))
    direction = draw.choice(["directed", "undirected", "undirected"])
    if draw.random() < 0.02:
        direction = "both"
    lines.append("<graph" + (f' edgedefault="{direction}"' if draw.random() < 0.95 else "") + ">")
    nodes = [draw.choice(["n{}", "{}", "ä {}", "<{}>"]).format(i) for i in range(draw.choice([1, 2, 5, 12]))]
    if draw.random() < 0.02:
        nodes.append(nodes[0])
    lines += [element("node", {"id": node}, draw_data(draw, keys, "node", share)) for node in nodes]
    pairs = [(a, b) for a in nodes for b in nodes]
    draw.shuffle(pairs)
    for source, target in pairs[:draw.choice([0, 1, 3, 10])]:
        attributes = {"source": source, "target": target if draw.random() > 0.01 else "nowhere"}
        if draw.random() < 0.1:
            attributes["directed"] = draw.choice(["true", "false", "false", "maybe"] if draw.random() < 0.2 else ["true", "false"])
        lines.append(element("edge", attributes, draw_data(draw, keys, "edge", share)))
    if draw.random() < 0.01:
        lines.append('<graph edgedefault="directed"/>')
    lines += ["</graph>", "</graphml>"]
    options = {"duplicates": draw.choice(["sum", "first"])} if draw.random() < 0.3 else {}
    return "\n".join(lines) + "\n", options


def command_line(options):
    return [word for option, value in options.items() for word in (f"--{option}", value)]


# --- reading ---

def name_of(item):
    return item.tag.rpartition("}")[2]


def children(item, name):
    return [child for child in item if name_of(child) == name]


def number(text):
    """A real number of Python's that is one of docs/formats.md; None: it is none."""
    try:
        return None if "_" in text else float(text)
    except ValueError:
        return None


def is_missing(text):
    return text.lower() in MISSING


def is_truth(text):
    return text.lower() in ("true", "false")


def category_of(text):
    return text.lower() if is_truth(text) else text


def value_of(text, kind):
    text = (text or "").strip(" \t\r\n")
    if is_missing(text):
        return text
    if kind == "boolean":
        if text.lower() not in ("true", "false", "1", "0"):
            raise Refused(f"{text} is no boolean")
        return "true" if text.lower() in ("true", "1") else "false"
    if kind in ("int", "long"):
        if not text.lstrip("+-").isdigit() or len(text) - len(text.lstrip("+-")) > 1:
            raise Refused(f"{text} is no {kind}")
    elif kind in ("float", "double"):
        if number(text) is None or not math.isfinite(number(text)):
            raise Refused(f"{text} is no {kind}")
    return text


def read_weight(text):
    value = number((text or "").strip(" \t\r\n"))
    if value is None or not math.isfinite(value):
        raise Refused(f"weight {text}")
    return to_float(value)


class Key:
    def __init__(self, item):
        self.id = item.get("id")
        self.name = item.get("attr.name", self.id)
        self.kind = item.get("attr.type", "")
        self.domain = item.get("for", "all")
        self.is_weight = self.of("edge") and self.name == "weight"
        defaults = children(item, "default")
        self.default = self.default_weight = None
        if defaults and (self.of("node") or not self.is_weight):
            self.default = value_of(defaults[0].text, self.kind)
        if defaults and self.is_weight:
            self.default_weight = read_weight(defaults[0].text)

    def of(self, domain):
        return self.domain in (domain, "all")


def data_of(item, keys, domain):
    """{key: text} of a vertex or an edge."""
    found = {}
    for data in children(item, "data"):
        key = keys.get(data.get("key"))
        if key is None or not key.of(domain):
            raise Refused(f"key {data.get('key')}")
        if key.id in found:
            raise Refused(f"key {key.id} twice")
        found[key.id] = read_weight(data.text) if domain == "edge" and key.is_weight else value_of(data.text, key.kind)
    return found


def as_numbers(column):
    """The values as floats, None where one is missing; nothing where one is no number."""
    numbers = []
    for text in column:
        if is_missing(text):
            numbers.append(None)
        elif is_truth(text):
            numbers.append(float(text.lower() == "true"))
        elif number(text) is None or not math.isfinite(number(text)):
            return None
        else:
            numbers.append(to_float(number(text)))
    return numbers


def categories_of(column):
    present = [category_of(text) for text in column if not is_missing(text)]
    categories = sorted(set(present), key=lambda text: text.encode())
    all_different = len(categories) == len(present) > 2
    return [] if all_different or len(categories) > MOST_CATEGORIES else categories


def take_labels(name, column, found):
    """True where the column holds what is to be found out."""
    present = [text for text in column if not is_missing(text)]
    numbers = None if present and all(map(is_truth, present)) else as_numbers(column)
    if numbers is not None:
        if any(value is not None and value != math.floor(value) for value in numbers):
            found["targets"], found["target_name"] = [[value] for value in numbers], [name]
        elif all(value is None or value >= -1 for value in numbers):  # others are no classes, and no feature either
            found["y"] = [-1 if value is None else int(value) for value in numbers]
        return True
    categories = categories_of(column)
    if not categories:
        return False
    found["y"] = [-1 if is_missing(text) else categories.index(category_of(text)) for text in column]
    found["class_name"] = categories
    return True


def features_of(columns):
    """Names and rows of features."""
    names, features = [], []
    for name, column in columns:
        numbers = as_numbers(column)
        if numbers is not None:
            there = [value for value in numbers if value is not None]
            mean = to_float(math.fsum(there) / len(there)) if there else 0.0
            names.append(name)
            features.append([mean if value is None else value for value in numbers])
            continue
        for category in categories_of(column):
            names.append(f"{name}={category}")
            features.append([float(not is_missing(text) and category_of(text) == category) for text in column])
    return names, [list(row) for row in zip(*features)]


def add_columns(columns, found):
    left, labelled = [], False
    for name, column in columns:
        if name.lower() in LABELS and not labelled and column and take_labels(name, column, found):
            labelled = True
        else:
            left.append((name, column))
    names, rows = features_of(left)
    if names:
        found["x"], found["feature_name"] = rows, names


def read(text, options):
    root = xml.etree.ElementTree.fromstring(text.encode())
    graphs = children(root, "graph")
    if len(graphs) != 1 or any(children(graph, "graph") for graph in graphs):
        raise Refused("not one graph")
    graph = graphs[0]
    keys = {}
    for key in map(Key, children(root, "key")):
        if key.id in keys:
            raise Refused("a key twice")
        keys[key.id] = key
    if graph.get("edgedefault", "directed") not in ("directed", "undirected"):
        raise Refused("edgedefault")
    nodes = children(graph, "node")
    number_of = {node.get("id"): i for i, node in enumerate(nodes)}
    if len(number_of) != len(nodes):
        raise Refused("a vertex twice")
    values = [data_of(node, keys, "node") for node in nodes]
    found = read_edges(graph, keys, number_of, options)
    found["vertices"] = len(nodes)
    found["vertex_name"] = list(number_of)
    columns = [(key.name, [value.get(key.id, key.default) or "" for value in values])
               for _, key in sorted(keys.items()) if key.of("node")]
    add_columns(columns, found)
    return found


def read_edges(graph, keys, number_of, options):
    weight_key = next((key for key in keys.values() if key.is_weight), None)
    edges, weights, values = [], [], []
    for edge in children(graph, "edge"):
        directed = edge.get("directed", {"directed": "true", "undirected": "false"}[graph.get("edgedefault", "directed")])
        if directed not in ("true", "false") or edge.get("target") not in number_of:
            raise Refused("an edge")
        values.append(data_of(edge, keys, "edge"))
        weights.append(values[-1].get(weight_key.id if weight_key else None))
        ends = number_of[edge.get("source")], number_of[edge.get("target")]
        edges.append((ends, directed == "true"))
    default = weight_key.default_weight if weight_key else None
    weighted = default is not None or any(weight is not None for weight in weights)
    if weighted and default is None and None in weights:
        raise Refused("an edge without a weight")
    names, rows = features_of(
        [(key.name, [value.get(key.id, key.default) or "" for value in values]) for _, key in sorted(keys.items())
         if key.of("edge") and not key.is_weight
         and (any(key.id in value for value in values) or (key.domain == "edge" and key.default is not None))])
    entries, row_of, merged = {}, {}, False
    for k, (((source, target), directed), weight) in enumerate(zip(edges, weights)):
        value = (default if weight is None else weight) if weighted else 1.0
        for entry in [(target, source)] if directed or source == target else [(target, source), (source, target)]:
            if entry not in entries:
                entries[entry] = value
                row_of[entry] = k
                continue
            merged = True
            if "duplicates" not in options:
                raise Refused("an edge twice")
            if options["duplicates"] == "sum" and names and rows[k] != rows[row_of[entry]]:
                raise Refused("merged edges have different features")
            if options["duplicates"] == "sum":
                entries[entry] = to_float(entries[entry] + value)
    features = {"edge_attr_name": names, "edge_attr": [rows[row_of[entry]] for entry in sorted(entries)]} if names and rows else {}
    return {**features, "edges": entries,
            "weighted": bool(entries) and (weighted or (merged and options["duplicates"] == "sum"))}
