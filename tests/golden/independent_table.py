# SPDX-License-Identifier: Apache-2.0
"""Tables of vertices read in plain Python by what docs/formats.md says of them, to compare the program with."""
import csv
import re
import struct

MISSING = {"", "na", "n/a", "#n/a", "<na>", "nan", "-nan", "null", "none", "?", "-"}
IDS = ["id", "node", "node_id", "nodeid", "vertex", "vertex_id"]
LABELS = ["label", "class", "target", "y"]
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-]?inf(inity)?", re.IGNORECASE)
PARTS = {"train": "train", "training": "train", "val": "val", "valid": "val", "validation": "val", "dev": "val",
         "test": "test", "testing": "test", "unused": None}


class Refused(Exception):
    """What the program has to say no to; the text is part of its message."""


def float32(value):
    try:
        return struct.unpack("<f", struct.pack("<f", value))[0]
    except OverflowError:
        return float("inf") if value > 0 else float("-inf")


def is_missing(field):
    return field.lower() in MISSING


def truth(field):
    return {"true": True, "false": False}.get(field.lower())


def is_number(field):
    return NUMBER.fullmatch(field) is not None


def value_of(field):
    """A number or a truth value as a float, None for any other text."""
    if truth(field) is not None:
        return 1.0 if truth(field) else 0.0
    return float32(float(field)) if is_number(field) else None


def category(field):
    return field.lower() if truth(field) is not None else field


def outside_quotes(line, character):
    return sum(part.count(character) for part in line.split('"')[::2])


def separator_of(lines):
    best, most = " ", (len(lines) // 2 + 1, 0)
    for candidate in "\t,;|":
        counts = [outside_quotes(line, candidate) for line in lines]
        found = (sum(count > 0 for count in counts), sum(counts))
        if found > most:
            best, most = candidate, found
    return best


def split_rows(text):
    lines = [line for line in text.splitlines() if line.strip()]
    lines = [line for line in lines if not line.lstrip().startswith(("#", "%", "//"))]
    separator = separator_of(lines[:64])
    if separator == " ":
        lines = [line.replace("\t", " ").strip() for line in lines]
    rows = csv.reader(lines, delimiter=separator, skipinitialspace=True)
    rows = [[field.strip() for field in row] for row in rows]
    # A separator at the end of every line makes no column.
    while all(len(row) == len(rows[0]) > 1 and row[-1] == "" for row in rows):
        rows = [row[:-1] for row in rows]
    return rows


def is_header(rows, given):
    first, below = rows[0], rows[1:64]
    words = [field.lower() for field in first]
    if any(name in first for name in given):
        return True
    numbers = [field for field in first if is_number(field)]
    if numbers:
        whole = all(re.fullmatch(r"[+-]?\d+", field) for field in numbers)
        return whole and len(set(numbers)) == len(numbers) and any(word in IDS for word in words)
    if any(word in IDS + LABELS + ["split"] for word in words):
        return True
    if any(name and is_missing(name) for name in first):
        return False
    for place, name in enumerate(first):
        cells = [row[place] if place < len(row) else None for row in below]
        there = [cell for cell in cells if cell is None or not is_missing(cell)]
        if is_missing(name) or truth(name) is not None or not there:
            continue
        if all(cell is not None and value_of(cell) is not None for cell in there):
            return True
    return False


class Table:
    """What a table says: `ids`, `features` (name to values), `categories`, `filled`, `labels`, `classes`, `targets`, `split`."""

    def __init__(self, text, id=None, label=None, split=None, features=(), drop=(), header=None):
        rows = split_rows(text)
        given = [name for name in [id, label, split, *features, *drop]
                 if name not in (None, "none") and not re.fullmatch(r"[+-]?\d+", name)]
        self.has_header = is_header(rows, given) if header is None else header
        self.header = rows.pop(0) if self.has_header else []
        width = len(rows[0]) if rows else len(self.header)
        if self.has_header and len(self.header) != width:
            raise Refused("the header has")
        self.width = width
        self.features_given, self.dropped = self.columns(features), self.columns(drop)
        self.choose(id, label, split)
        self.rows = rows
        self.read()

    def name(self, place):
        return (self.header[place] if self.has_header else "") or str(place + 1)

    def column(self, name):
        if self.header.count(name) > 1:
            raise Refused("are both called")
        if name in self.header:
            return self.header.index(name)
        if re.fullmatch(r"[+-]?\d+", name) and 1 <= int(name) <= self.width:
            return int(name) - 1
        raise Refused(f"has no column '{name}'")

    def columns(self, names):
        return [self.column(name) for name in names]

    def called(self, words, besides=()):
        return [place for place, name in enumerate(self.header) if name.lower() in words and place not in besides
                and place not in self.dropped and place not in self.features_given]

    def choose(self, id, label, split):
        found = [self.column(id)] if id else self.called(IDS)
        if not found and self.has_header:
            raise Refused("has no column called id")
        self.id = found[0] if found else 0
        labels = self.called(LABELS, [self.id])
        if label is None and len(labels) > 1:
            raise Refused("several columns that may be the label")
        self.label = None if label == "none" else self.column(label) if label else (labels or [None])[0]
        splits = self.called(["split"], [self.id])
        self.split_column = None if split == "none" else self.column(split) if split else (splits or [None])[0]
        roles = [place for place in (self.id, self.label, self.split_column) if place is not None]
        if len(set(roles)) < len(roles):
            raise Refused("one column cannot be two of")
        if {*roles} & {*self.features_given, *self.dropped} or {*self.features_given} & {*self.dropped}:
            raise Refused("has two roles")
        places = dict.fromkeys(self.features_given) or range(self.width)
        taken = [self.id, self.label, self.split_column, *self.dropped]
        self.places = [place for place in places if place not in taken]
        names = [self.name(place) for place in self.places]
        if len(set(names)) != len(names):
            raise Refused("are both called")

    def read(self):
        self.ids = []
        for row in self.rows:
            if len(row) != self.width:
                raise Refused("columns")
            if row[self.id] == "":
                raise Refused("is empty")
            if row[self.id] in self.ids:
                raise Refused("occurs more than once")
            self.ids.append(row[self.id])
        self.labels, self.classes, self.targets = None, [], None
        if self.label is not None:
            self.read_labels([row[self.label] for row in self.rows])
        self.split = None
        if self.split_column is not None:
            self.split = [self.part(row[self.split_column]) for row in self.rows]
        self.features, self.categories, self.filled = {}, {}, set()
        columns = {place: [row[place] for row in self.rows] for place in self.places}
        for place, fields in columns.items():
            self.refuse_commas(place, fields)
        for place, fields in columns.items():
            self.read_feature(self.name(place), fields)

    def refuse_commas(self, place, fields):
        texts = [field for field in fields if not is_missing(field) and value_of(field) is None]
        if texts and all("," in text and is_number(text.replace(",", ".", 1)) for text in texts):
            raise Refused(f"column '{self.name(place)}' holds numbers with commas")

    def read_feature(self, name, fields):
        there = [field for field in fields if not is_missing(field)]
        values = [value_of(field) for field in there]
        if None in values:
            self.categories[name] = sorted({category(field) for field in there}, key=str.encode)
            for one in self.categories[name]:
                self.features[f"{name}={one}"] = [
                    float(not is_missing(field) and category(field) == one) for field in fields]
            return
        if any(value in (float("inf"), float("-inf")) for value in values):
            raise Refused("is no finite number")
        mean = float32(sum(values) / len(values)) if values else 0.0
        self.features[name] = [mean if is_missing(field) else value_of(field) for field in fields]
        self.filled |= {(row, name) for row, field in enumerate(fields) if is_missing(field)}

    def read_labels(self, fields):
        self.refuse_commas(self.label, fields)
        there = [field for field in fields if not is_missing(field)]
        values = [value_of(field) for field in there]
        only_truths = bool(there) and all(truth(field) is not None for field in there)
        if None in values or only_truths:
            self.classes = sorted({category(field) for field in there}, key=str.encode)
            self.labels = [-1 if is_missing(field) else self.classes.index(category(field)) for field in fields]
            return
        if any(value in (float("inf"), float("-inf")) for value in values):
            raise Refused("is no finite number")
        if any(value != int(value) for value in values):
            self.targets = [None if is_missing(field) else value_of(field) for field in fields]
            return
        if any(value < -1 or value >= 2**31 - 1 for value in values):
            raise Refused("is no class number")
        self.labels = [-1 if is_missing(field) else int(value_of(field)) for field in fields]

    @staticmethod
    def part(field):
        if is_missing(field):
            return None
        if field.lower() not in PARTS:
            raise Refused("is no part of a split")
        return PARTS[field.lower()]
