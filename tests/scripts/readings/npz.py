# SPDX-License-Identifier: Apache-2.0
"""Archives as the program writes them, read with nothing but the standard library."""
import array
import ast
import struct
import zipfile

CODES = {"<i4": "i", "<i8": "q", "<f4": "f", "|u1": "B"}


def to_float(value):
    """The number as a float of 32 bits has it."""
    return struct.unpack("<f", struct.pack("<f", value))[0]


def read_npy(content):
    length, = struct.unpack("<H", content[8:10])
    header = ast.literal_eval(content[10:10 + length].decode())
    values = array.array(CODES[header["descr"]])
    values.frombytes(content[10 + length:])
    return values.tolist(), header["shape"]


def texts(values, ends):
    begins = [0, *ends[:-1]]
    return [bytes(values[begin:end]).decode() for begin, end in zip(begins, ends)]


def dense_rows(offsets, columns, values, width):
    rows = [[0.0] * width[0] for _ in offsets[1:]]
    for row, begin, end in zip(rows, offsets, offsets[1:]):
        for k in range(begin, end):
            row[columns[k]] = values[k]
    return rows


def read_npz(path):
    """The graph as a dictionary of (target, source): weight, with what is known of the vertices."""
    with zipfile.ZipFile(path) as archive:
        arrays = {name[:-4]: read_npy(archive.read(name)) for name in archive.namelist()}
    row, col = arrays["row"][0], arrays["col"][0]
    weights = arrays["value"][0] if "value" in arrays else [1.0] * len(row)
    # Without edges nobody can say whether they have weights.
    found = {"vertices": arrays["num_nodes"][0][0], "edges": dict(zip(zip(row, col), weights)),
             "weighted": "value" in arrays and bool(row)}
    for name in ("vertex_name", "feature_name", "class_name", "edge_attr_name", "target_name"):
        if name in arrays:
            found[name] = texts(arrays[name][0], arrays[name + "_end"][0])
    if "x_indptr" in arrays:
        found["x"] = dense_rows(*(arrays[f"x_{part}"][0] for part in ("indptr", "indices", "data", "dim")))
    for name in ("x", "edge_attr", "targets", "graph_targets"):
        if name in arrays:
            values, (rows, columns) = arrays[name]
            values = [None if value != value else value for value in values]  # numbers that are missing
            found[name] = [values[i * columns:(i + 1) * columns] for i in range(rows)]
    for name in ("y", "graph_id", "graph_label"):
        if name in arrays:
            found[name] = arrays[name][0]
    return found
