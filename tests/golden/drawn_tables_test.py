# SPDX-License-Identifier: Apache-2.0
"""Tables of vertices, drawn with a seed, as the program reads them and as an independent reading in Python does:
the same columns, categories, fillings, labels and split, or the same refusal. TESSERA_TABLE_DRAWS and
TESSERA_TABLE_SEED choose others."""
import ast
import os
import random
import struct
import unittest
import zipfile

import cli
from independent_table import Refused, Table, float32

DRAWS = int(os.environ.get("TESSERA_TABLE_DRAWS", 60))
SEED = int(os.environ.get("TESSERA_TABLE_SEED", 40))

MISSING = ["", "NA", "na", "N/A", "n/a", "NaN", "nan", "NAN", "null", "Null", "None", "none", "?", "-", "<NA>", "-nan"]
TEXTS = ["red", "blue", "Green", "light blue", "x", "naive", "nan1", "0x10", "1O", "yes", "no", "é", "tr ue", "=1"]
TRUTHS = ["true", "True", "TRUE", "false", "False", "FALSE", "fAlSe"]
NAMES = ["age", "income", "colour", "size", "x", "Zip code", "a=b", "été", "2019", "0", "1", "none"]


def read_npz(path):
    """Arrays of an .npz as (shape, flat list)."""
    codes = {"<f4": "f", "<i8": "q", "<i4": "i", "|u1": "B"}
    arrays = {}
    with zipfile.ZipFile(path) as archive:
        for member in archive.namelist():
            data = archive.read(member)
            length = struct.unpack_from("<H", data, 8)[0]
            header = ast.literal_eval(data[10:10 + length].decode())
            body = data[10 + length:]
            if header["descr"].startswith("<U"):
                width = 4 * int(header["descr"][2:])
                values = [body[i:i + width].decode("utf-32-le").rstrip("\0") for i in range(0, len(body), width)]
            else:
                code = codes[header["descr"]]
                values = list(struct.unpack(f"<{len(body) // struct.calcsize(code)}{code}", body))
            arrays[member.removesuffix(".npy")] = (header["shape"], values)
    return arrays


def targets_in(arrays):
    """The column of numbers to predict, None where one is missing."""
    if "targets" not in arrays:
        return None
    return [None if value != value else value for value in arrays["targets"][1]]


def names_in(arrays, key):
    if key not in arrays:
        return []
    text, names, begin = bytes(arrays[key][1]), [], 0
    for end in arrays[key + "_end"][1]:
        names.append(text[begin:end].decode())
        begin = end
    return names


class Drawing:
    """One table as text, and the options it is read with."""

    def __init__(self, draw):
        self.draw = draw
        self.separator = draw.choice(",,,;\t|")
        rows = draw.randrange(1, 12)
        self.columns = [("id", [f"n{i}" for i in range(rows)])]
        if draw.random() < 0.1:
            self.columns[0] = ("id", [str(7 * i) for i in range(rows)])
        if draw.random() < 0.03 and rows > 1:
            self.columns[0][1][-1] = draw.choice([self.columns[0][1][0], ""])
        names = draw.sample(NAMES, draw.randrange(0, 5))
        self.columns += [(name, self.cells(rows)) for name in names]
        if draw.random() < 0.5:
            self.columns.append((draw.choice(["label", "Label", "class", "y", "target", "churn"]), self.labels(rows)))
        if draw.random() < 0.1:
            self.columns.append((draw.choice(["class", "Y", "target"]), self.cells(rows)))
        if draw.random() < 0.3:
            parts = ["train", "Val", "test", "dev", "", "NA", "unused"]
            parts += ["often"] if draw.random() < 0.1 else []
            self.columns.append(("split", [draw.choice(parts) for _ in range(rows)]))
        if draw.random() < 0.05 and len(self.columns) > 1:
            self.columns[-1] = (self.columns[draw.randrange(len(self.columns))][0], self.columns[-1][1])
        draw.shuffle(self.columns)
        self.names = [name for name, _ in self.columns]
        if draw.random() < 0.3:
            self.rename_id()
        self.options = self.drawn_options()
        self.text = self.written(rows)

    def rename_id(self):
        place = self.names.index("id") if "id" in self.names else 0
        self.names[place] = self.draw.choice(["user", "Node_ID", "vertex", "key", "ID"])

    def number(self):
        draw = self.draw
        return draw.choice([str(draw.randrange(-5, 50)), f"{draw.uniform(-9, 9):.3f}", f"{draw.random():.2e}",
                            f"+{draw.randrange(9)}", f".{draw.randrange(1, 99)}", f"{draw.randrange(9)}.", "1E2",
                            "-0"])

    def cells(self, rows):
        draw = self.draw
        kind = draw.choice(["numbers", "numbers", "texts", "truths", "numbers and a text", "anything", "missing"])
        pools = {"numbers": [], "texts": TEXTS, "truths": TRUTHS, "numbers and a text": [], "missing": MISSING,
                 "anything": TEXTS + TRUTHS + ["inf", "-Infinity", "1e999"] * (draw.random() < 0.1)}
        cells = [self.number() if not pools[kind] or (kind == "anything" and draw.random() < 0.5)
                 else draw.choice(pools[kind]) for _ in range(rows)]
        if kind == "numbers and a text":
            cells[draw.randrange(rows)] = draw.choice(TEXTS + ["0,5"])
        share = draw.choice([0, 0, 0.2, 0.6])
        return [draw.choice(MISSING) if draw.random() < share else cell for cell in cells]

    def labels(self, rows):
        draw = self.draw
        pool = draw.choice([["0", "1", "2"], ["spam", "ham", "3"], TRUTHS, ["0", "1", "-1"], ["5", "1000"],
                            ["0", "1.0", "2e0"], ["0.5", "1"], ["-7", "1"], ["true", "1", "0"]])
        share = draw.choice([0, 0, 0.3])
        return [draw.choice(MISSING) if draw.random() < share else draw.choice(pool) for _ in range(rows)]

    def drawn_options(self):
        draw, options = self.draw, {}
        if draw.random() < 0.4:
            ids = [name for name in self.names if name.lower() in ("user", "node_id", "vertex", "key", "id")]
            options["id"] = draw.choice(ids + [str(draw.randrange(1, len(self.names) + 1)), "nobody"][:1 + (draw.random() < 0.1)])
        if draw.random() < 0.3:
            options["label"] = draw.choice(self.names + ["none"])
        if draw.random() < 0.15:
            options["drop"] = draw.sample(self.names, 1)
        if draw.random() < 0.15:
            options["features"] = draw.sample(self.names, min(2, len(self.names)))
        if draw.random() < 0.1:
            options["split"] = "none"
        if draw.random() < 0.2:
            options["header"] = draw.random() < 0.7
        return {key: value for key, value in options.items()
                if not any("," in word for word in ([value] if isinstance(value, str) else value or []))
                } if "header" not in options else {"header": options["header"]}

    def field(self, text):
        quoted = self.separator in text or '"' in text or text.startswith(("#", "%", "//")) or self.draw.random() < 0.1
        padding = " " if self.draw.random() < 0.05 else ""
        return padding + ('"' + text.replace('"', '""') + '"' if quoted else text) + padding

    def written(self, rows):
        draw = self.draw
        lines = [[column[1][i] for column in self.columns] for i in range(rows)]
        if draw.random() < 0.8:
            lines.insert(0, self.names)
        if draw.random() < 0.04:
            draw.choice(lines).append("extra")
        end = draw.choice(["\n", "\n", "\r\n"])
        texts = [self.separator.join(map(self.field, line)) for line in lines]
        if draw.random() < 0.1:
            texts.insert(draw.randrange(len(texts) + 1), draw.choice(["# remark", "", "// remark, too", "% 1"]))
        return end.join(texts) + draw.choice(["", end])

    def arguments(self):
        flags = {"id": "--id", "label": "--label", "split": "--split-column"}
        line = [word for key, flag in flags.items() if key in self.options for word in (flag, self.options[key])]
        for key in ("features", "drop"):
            if key in self.options:
                line += [f"--{key}", ",".join(self.options[key])]
        if "header" in self.options:
            line += ["--nodes-header", "yes" if self.options["header"] else "no"]
        return line


class DrawnTables(cli.CliTest):
    def read_by_program(self, drawing):
        nodes, edges, out = (self.folder / name for name in ("nodes.csv", "edges.csv", "out.npz"))
        nodes.write_text(drawing.text, encoding="utf-8", newline="")
        edges.write_text("no,body\n")
        out.unlink(missing_ok=True)
        return cli.Run(["convert", edges, "--nodes", nodes, "--unknown-ids", "drop", "--header", "no", "-o", out,
                        *(["--nodes-header", "auto"] if "header" not in drawing.options else []),
                        *drawing.arguments()]), out

    def differences(self, drawing):
        """What the two readings disagree on."""
        run, out = self.read_by_program(drawing)
        try:
            table = Table(drawing.text, **drawing.options)
        except Refused as refusal:
            right = run.code not in (cli.OK, cli.INTERNAL) and str(refusal) in run.err
            return [] if right else [f"expected a refusal with '{refusal}', got {run}"]
        if run.code != cli.OK:
            return [f"not refused in Python: {run}"]
        arrays = read_npz(out)
        names = names_in(arrays, "feature_name")
        width = len(names)
        shape, values = arrays.get("x", ((0, 0), []))
        features = {name: values[place::width] for place, name in enumerate(names)}
        prefixes = arrays.get("category_prefix", (None, [-1] * width))[1]
        categories = {}
        for name, prefix in zip(names, prefixes):
            if prefix >= 0:
                categories.setdefault(name.encode()[:prefix].decode(), []).append(name.encode()[prefix + 1:].decode())
        filled = {(cell // width, names[cell % width]) for cell in arrays.get("filled_cell", (None, []))[1]}
        split = {part: arrays.get(f"{part}_idx", (None, []))[1] for part in ("train", "val", "test")}
        parts = table.split or []
        pairs = {
            "ids": (names_in(arrays, "vertex_name"), table.ids),
            "names": (sorted(names), sorted(table.features)),
            "features": (features, table.features), "categories": (categories, table.categories),
            "filled": (filled, table.filled),
            "labels": (arrays["y"][1] if "y" in arrays else None, table.labels),
            "targets": (targets_in(arrays), table.targets),
            "classes": (names_in(arrays, "class_name"), table.classes),
            "split": (split, {part: [i for i, one in enumerate(parts) if one == part] for part in split})}
        return [f"{key}: {got} in place of {expected}" for key, (got, expected) in pairs.items() if got != expected]

    def test_the_program_reads_what_python_reads(self):
        draw = random.Random(SEED)
        refused = 0
        for number in range(DRAWS):
            drawing = Drawing(random.Random(draw.random()))
            wrong = self.differences(drawing)
            self.assertEqual(wrong, [], f"seed {SEED}, table {number}, options {drawing.options}:\n{drawing.text}")
            try:
                Table(drawing.text, **drawing.options)
            except Refused:
                refused += 1
        self.assertLess(refused, 0.7 * DRAWS, f"seed {SEED}: most tables must be readable")
        print(f"seed {SEED}: {DRAWS} tables, {refused} of them refused by both readings")


if __name__ == "__main__":
    assert float32(0.1) != 0.1
    unittest.main()
