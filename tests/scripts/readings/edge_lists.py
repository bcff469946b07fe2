# SPDX-License-Identifier: Apache-2.0
"""Edge lists: how they are drawn, and how docs/formats.md reads them."""
import re

from npz import to_float
from refusal import Refused

ENDING = ".txt"
SEPARATORS = ["\t", ",", ";", "|"]
WORDS = {"source": ["source", "src", "from", "u"], "target": ["target", "dst", "to", "v"],
         "weight": ["weight", "w", "value"]}
KNOWN = {word for words in WORDS.values() for word in words}
FIRST_LINES = 64
MOST_VERTICES = 1 << 24


# --- drawing ---

def quoted(draw, text, separator):
    must = separator in text or '"' in text or (separator == " " and " " in text) or text != text.strip()
    if must or draw.random() < 0.1:
        return '"' + text.replace('"', '""') + '"'
    return text


def padded(draw, text, separator):
    if separator == " " or draw.random() < 0.8:
        return text
    return draw.choice(["", " ", "  "]) + text + draw.choice(["", " ", "   "])


def draw_ids(draw):
    size = draw.choice([2, 3, 5, 10, 30])
    if draw.random() < 0.65:
        start = draw.choice([0, 0, 0, 1, 7])
        return [str(start + i) for i in range(size)]
    style = draw.choice(["v{}", "{}x", 'the "{}"', "a,{}", "paper {}", "ü{}", "{}.5"])
    return [style.format(i) for i in range(size)]


def draw_weight(draw):
    if draw.random() < 0.04:
        return draw.choice(["", "abc", "nan", "inf", "1e99", "0,5", "1.5x"])
    return draw.choice(["1", "0.5", "-2", "+3.25", "1e-3", "2E2", ".75", "8.", "1e-60", "00.25"])


def draw(draw):
    """A text, and the options that it is read with."""
    separator = draw.choice([*SEPARATORS, ",", " "])
    ids = draw_ids(draw)
    columns = ["source", "target"]
    if draw.random() < 0.4:
        columns.append("weight")
    header = draw.random() < 0.5
    if header and draw.random() < 0.3:
        columns.append("kind")
    if header and draw.random() < 0.2:
        draw.shuffle(columns)
    lines = []
    if header:
        names = [draw.choice(WORDS[column]) if column in WORDS else column for column in columns]
        if draw.random() < 0.2:
            names = [name.upper() for name in names]
        lines.append([quoted(draw, name, separator) for name in names])
    pairs = [(a, b) for a in ids for b in ids]
    draw.shuffle(pairs)
    pairs = pairs[:draw.choice([1, 2, 4, 20, 90])]
    if draw.random() < 0.1:
        pairs.append(draw.choice(pairs))
    for source, target in pairs:
        ends = {"source": source, "target": target}
        for end in ends:
            if draw.random() < (0.2 if len(pairs) < 4 else 0.003):
                ends[end] = draw.choice(["", "1O", "1.0", "1e3", "0x10", "-3", "+2", "007", "99999999999", "zoo"])
        cells = {**ends, "weight": draw_weight(draw), "kind": draw.choice(["a", "b", ""])}
        lines.append([padded(draw, quoted(draw, cells[column], separator), separator) for column in columns])
    if draw.random() < 0.03:
        draw.choice(lines).append("more")
    if draw.random() < 0.03:
        draw.choice(lines).pop()
    texts = []
    for fields in lines:
        while draw.random() < 0.05:
            texts.append(draw.choice(["# a remark", "% 1,2", "// 0 1", "", "   "]))
        glue = separator if separator != " " else draw.choice([" ", "  ", " \t "])
        texts.append(glue.join(fields))
    end = draw.choice(["\n", "\n", "\r\n"])
    text = ("\ufeff" if draw.random() < 0.05 else "") + end.join(texts) + draw.choice([end, ""])
    options = {}
    for option, values in {"ids": ["numbers", "names"], "duplicates": ["sum", "first"], "header": ["yes", "no"],
                           "weight": ["none"], "base": ["1"]}.items():
        if draw.random() < 0.08:
            options[option] = draw.choice(values)
    return text, options


def command_line(options):
    return [word for option, value in options.items() for word in (f"--{option}", value)]


# --- reading ---

def is_whole(text):
    return re.fullmatch(r"[+-]?[0-9]+", text) is not None


def is_number(text):
    return re.fullmatch(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eEdD][+-]?[0-9]+)?|[+-]?(nan|inf|infinity)", text,
                        re.IGNORECASE) is not None


def is_remark(line):
    line = line.lstrip()
    return not line or line[0] in "#%" or line.startswith("//")


def count_unquoted(line, separator):
    return sum(part.count(separator) for part in line.split('"')[::2])


def find_separator(lines):
    """The one that most lines have; of equals the one that they have most often; else blanks."""
    best, most = " ", (len(lines) // 2 + 1, 0)
    for separator in SEPARATORS:
        times = [count_unquoted(line, separator) for line in lines]
        found = (sum(t > 0 for t in times), sum(times))
        if found > most:
            best, most = separator, found
    return best


def cut(line, separator, number):
    """The fields of a line: blanks around them do not count, quotes are taken off."""
    fields, rest = [], line
    blanks = " \t\r\v\f"
    while True:
        rest = rest.lstrip(blanks if separator == " " else blanks.replace(separator, ""))
        if rest.startswith('"'):
            match = re.match(r'"((?:[^"]|"")*)"', rest)
            if not match:
                raise Refused("a quote is not closed", {number})
            field, rest = match.group(1).replace('""', '"'), rest[match.end():]
            after = rest.lstrip(blanks if separator == " " else blanks.replace(separator, ""))
            if separator != " " and after and after[0] != separator:
                raise Refused("goes on after quotes", {number})
        else:
            stop = re.search(f"[{blanks}]" if separator == " " else re.escape(separator), rest)
            stop = stop.start() if stop else len(rest)
            field, rest = rest[:stop].strip(blanks), rest[stop:]
        fields.append(field)
        rest = rest.lstrip(blanks if separator == " " else blanks.replace(separator, ""))
        if not rest:
            return fields
        rest = rest if separator == " " else rest[1:]


def looks_like_header(rows):
    first = rows[0]
    if any(is_number(field) for field in first):
        return False
    if any(field.lower() in KNOWN for field in first):
        return True
    below = rows[1:]
    return bool(below) and any(all(column < len(row) and is_number(row[column]) for row in below)
                               for column in range(len(first)))


def find_columns(header, columns, options):
    """The columns of source, target and weight, which is None where there is none."""
    def called(what):
        return next((i for i, name in enumerate(header) if name.lower() in WORDS[what]), None)
    source = called("source") if header else None
    source = 0 if source is None else source
    target = called("target") if header else None
    target = (0 if source == 1 else 1) if target is None else target
    weight = None
    if options.get("weight") != "none":
        if header or columns < 3:
            weight = called("weight") if header else None
        elif columns > 3:
            raise Refused("columns that nothing explains")
        else:
            weight = 3 - source - target
    if source == target or weight in (source, target):
        raise Refused("one column is two things")
    return source, target, weight


def ids_are_names(rows, source, target):
    for column in (source, target):
        ids = [row[column] for _, row in rows if column < len(row) and row[column]]
        if 2 * sum(not is_whole(text) for text in ids) > len(ids):
            return True
    return False


def is_several_numbers(text):
    parts = [part for part in re.split(r"[ \t,;|]", text) if part]
    return len(parts) > 1 and all(is_number(part) for part in parts)


def read(text, options):
    lines = [(number, line.removesuffix("\r")) for number, line in
             enumerate(text.removeprefix("\ufeff").split("\n"), 1)]
    lines = [(number, line) for number, line in lines if not is_remark(line)]
    if not lines:
        raise Refused("no rows")
    separator = find_separator([line for _, line in lines[:FIRST_LINES]])
    rows = [(number, cut(line, separator, number)) for number, line in lines]
    first = rows[:FIRST_LINES]
    # A separator at the end of every line makes no column.
    while all(len(row) > 1 and len(row) == len(first[0][1]) and not row[-1] for _, row in first):
        for _, row in first:
            row.pop()
    header = []
    if options.get("header", "yes" if looks_like_header([row for _, row in first]) else "no") == "yes":
        header = rows[0][1]
        rows, first = rows[1:], first[1:]
    columns = len(first[0][1]) if first else len(header)
    if header and len(header) != columns:
        raise Refused("header and rows differ")
    if columns < 2:
        raise Refused("one column")
    source, target, weight = find_columns(header, columns, options)
    automatic = "ids" not in options
    names = ids_are_names(first, source, target) if automatic else options["ids"] == "names"
    if names and automatic:
        for _, row in first:
            if any(column < len(row) and is_several_numbers(row[column]) for column in (source, target)):
                raise Refused("several numbers in one id")
        if separator == " " and not header and any(re.search(r"[^+\-0-9]", field) for _, row in first for field in row):
            raise Refused("words between blanks")
    return build(rows, columns, (source, target, weight), names, options)


def read_weight(field):
    if not is_number(field) or re.search("nan|inf", field, re.IGNORECASE):
        return None
    value = float(field.replace("d", "e").replace("D", "e"))
    return to_float(value) if abs(value) < 3.4e38 else None


def build(rows, columns, places, names, options):
    source, target, weight = places
    base = int(options.get("base", 0))
    number_of, edges, wrong = {}, [], set()
    for number, row in rows:
        if len(row) == columns + 1 and not row[-1]:
            row = row[:-1]  # a separator at the end of the line is no column
        if len(row) != columns:
            wrong.add(number)
            continue
        ends = []
        for column in sorted((source, target)):
            text = row[column]
            if names and text:
                ends.append(number_of.setdefault(text, len(number_of)))
            elif not names and is_whole(text) and base <= int(text) < MOST_VERTICES + base:
                ends.append(int(text) - base)
            else:
                wrong.add(number)
        value = 1.0 if weight is None else read_weight(row[weight])
        if value is None:
            wrong.add(number)
        if number not in wrong:
            edges.append((ends if source < target else ends[::-1], value))
    if wrong:
        raise Refused("wrong lines", wrong)
    graph, merged = {}, False
    for (a, b), value in edges:
        if (b, a) in graph:
            merged = True
            if "duplicates" not in options:
                raise Refused("an edge twice")
            if options["duplicates"] == "sum":
                graph[b, a] = to_float(graph[b, a] + value)
            continue
        graph[b, a] = value
    found = {"vertices": len(number_of) if names else max((max(pair) for pair in graph), default=-1) + 1,
             "edges": graph,
             "weighted": bool(graph) and (weight is not None or (merged and options["duplicates"] == "sum"))}
    if names and number_of:
        found["vertex_name"] = list(number_of)
    return found
