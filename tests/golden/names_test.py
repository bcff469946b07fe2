# SPDX-License-Identifier: Apache-2.0
"""Names that talk to terminals, spreadsheets and browsers, drawn with a seed and sent through every format and verb: of
vertices, classes, columns, arrays, kernels, graphs and files. Whatever they hold, reports are printable UTF-8 with as many
lines as those of harmless names, errors are one line, JSON is ASCII, pictures are XML, and no cell of a CSV is a
formula. TESSERA_NAMES and TESSERA_DRAW_SEED choose how many draws, and others."""
import csv
import io
import json
import os
import random
import struct
import unittest
import xml.dom.minidom

import cli

DRAWS = int(os.environ.get("TESSERA_NAMES", 12))
SEED = int(os.environ.get("TESSERA_DRAW_SEED", 31))

PIECES = [piece.encode() for piece in [
    "\n", "\r", "\r\n", "\t", "\x1b[31m", "\x1b]0;title\x07", "\x08\x08", "\x7f", "\x9b31m", "\x85", "\u202e", "\u2066",
    "\u2028", "\u2029", "\u200b", "\ufeff", "\u00ad", "\u00a0", "\u3000", "\U000e0041", "\ufffe", "\ue000", "=cmd|' /C calc'!A0",
    "=1+1", "+SUM(A1)", "-2+3", "@x", "-1", "'", '"', ",", ";", "#", "%", "<b>", "&amp;", "]]>", "</text>", "%s%n", "{}",
    "\\n", "\\x1b", "..", "caf\u00e9", "\u540d\u524d", "\U0001f600", "a", "b", " ", "  ok  ", "FAILED"]]
PIECES += [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\xaf", b"\xf5", b"\x00"]
IN_TABLES = [piece for piece in PIECES if min(piece) >= 0x20 and b"\x7f" not in piece]  # others are refused there
FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def quoted(field):
    return b'"' + field.replace(b'"', b'""') + b'"'


def numpy_bytes(values, code, size):
    header = f"{{'descr': '{code}', 'fortran_order': False, 'shape': ({size},), }}".ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + values


def name_arrays(kind, names):
    """Names as an .npz holds them: their bytes, and where each ends."""
    ends, joined = [], b""
    for name in names:
        joined += name
        ends.append(len(joined))
    return {kind: numpy_bytes(joined, "|u1", len(joined)), f"{kind}_end": cli.npy(ends, "q")}


class Names(cli.CliTest):
    vertices = 12
    harmless = {}  # what verbs say of data without odd names

    def name(self, number, pieces=PIECES):
        """A name unlike those of other numbers."""
        drawn = b"".join(self.draw.choices(pieces, k=self.draw.randrange(1, 4)))
        return drawn + str(number).encode()

    def names(self, kind, count, pieces=PIECES):
        return [self.name(f"{kind}{i}", pieces) for i in range(count)]

    def printable(self, text, what):
        self.assertNotIn("\r", text, what)
        for line in text.split("\n"):
            self.assertTrue(line.isprintable(), f"{what}: {line!r}")

    def run_both(self, *arguments, **options):
        """The report, and the JSON of the same command, or None where it is refused."""
        run = cli.Run([*arguments, "--force"], **options)
        self.assertNotIn(run.code, (cli.INTERNAL, cli.INTERRUPTED), str(run))
        self.printable(run.out + run.err, str(run))
        self.assertLessEqual(len(run.err.splitlines()), 1, str(run))
        if run.code != cli.OK:
            return run, None
        report = cli.Run([*arguments, "--force", "--json", "-"], **options)
        self.assertTrue(report.out.isascii(), str(report))
        return run, json.loads(report.out)

    def compare(self, hostile, plain, verb, *options):
        """The same verb on the same data under two kinds of names: as many lines."""
        shown, report = self.run_both(*verb, hostile, *options)
        if report is None or verb[0] in ("train", "check"):  # notes on what is said of times may differ
            return
        asked = (plain.name, *verb, *options)
        if asked not in self.harmless:  # data of harmless names differ in random features alone
            self.harmless[asked] = cli.Run([*verb, plain, *options, "--force"]).out
        self.assertEqual(shown.out.count("\n"), self.harmless[asked].count("\n"), f"{shown}{self.harmless[asked]}")

    def write_tables(self, folder, vertices, columns, classes):
        folder.mkdir()
        lines = [b"id," + b",".join(map(quoted, columns)) + b",label"]
        for i, name in enumerate(vertices):
            row = [quoted(name), *(str(self.draw.random()).encode() for _ in columns), quoted(classes[i % len(classes)])]
            lines.append(b",".join(row))
        (folder / "nodes.csv").write_bytes(b"\n".join(lines) + b"\n")
        edges = [b"from,to"] + [quoted(name) + b"," + quoted(vertices[(i + 1) % len(vertices)])
                                for i, name in enumerate(vertices)]
        (folder / "edges.csv").write_bytes(b"\n".join(edges) + b"\n")
        return ["convert", folder / "edges.csv", "--nodes", folder / "nodes.csv", "--id", "id", "--label", "label"]

    def check_picture(self, path):
        xml.dom.minidom.parse(str(path))
        self.printable(path.read_text("utf-8"), path)

    def check_csv(self, path):
        text = path.read_bytes().decode("utf-8", "surrogateescape")
        rows = list(csv.reader(io.StringIO(text, newline="")))
        self.assertEqual(len(rows), self.vertices + 1)
        self.assertEqual(rows[0][:5], ["id", "label", "probability", "true_label", "split"])
        for row in rows:
            self.assertEqual(len(row), 7, row)
            for cell in row:
                if cell.startswith(FORMULA):
                    float(cell)

    def verbs(self, data, plain):
        """Everything that reads data, on two sets that differ in names alone."""
        for verb, *options in [(["info"],), (["tiles"],), (["reorder"], "--method", "degree"),
                               (["partition"], "--parts", "2"), (["prune"], "--pattern", "1:2:4"), (["plan"],),
                               (["train", "--epochs", "2", "--split", "0.4,0.3,0.3", "--hidden", "4"],)]:
            self.compare(data, plain, verb, *options)
        picture = self.folder / "picture.svg"
        run, report = self.run_both("info", data, "--picture", picture)
        if report is not None:
            self.check_picture(picture)

    def tables(self, number):
        n = self.vertices
        hostile, plain = self.folder / f"hostile{number}", self.folder / "plain"
        pieces = PIECES if self.draw.random() < 0.2 else IN_TABLES
        drawn = self.names("v", n, pieces), self.names("c", 3, pieces), self.names("k", 2, pieces)
        convert = self.write_tables(hostile, *drawn)
        for ending in ["npz", "tsr"]:
            data, same = hostile / f"g.{ending}", plain / f"g.{ending}"
            _, report = self.run_both(*convert, "-o", data)
            if report is None:
                return 0
            if not plain.exists():
                harmless = self.write_tables(plain, *([b"%c%d" % (kind, i) for i in range(len(names))]
                                                      for kind, names in zip(b"vck", drawn)))
                for other in ["npz", "tsr"]:
                    self.run_both(*harmless, "-o", plain / f"g.{other}")
            self.verbs(data, same)
        self.train(data)
        return 1

    def train(self, data):
        model, out, plot = self.folder / "model.tsr", self.folder / "out.csv", self.folder / "plot.svg"
        train = ["train", data, "--epochs", "2", "--split", "0.4,0.3,0.3", "--hidden", "4", "--checkpoint", model]
        self.assertIsNotNone(self.run_both(*train, "--plot", plot)[1])
        self.check_picture(plot)
        self.run_both("info", model)
        text, drawing, objects = [self.folder / name for name in ("r.txt", "r.svg", "p.json")]
        reports = ["--report", text, "--report", drawing]
        self.assertIsNotNone(self.run_both("predict", data, "--checkpoint", model, "-o", out, *reports)[1])
        self.check_csv(out)
        self.check_picture(drawing)
        self.printable(text.read_text("utf-8"), text)
        self.assertIsNotNone(self.run_both("predict", data, "--checkpoint", model, "-o", objects)[1])
        self.assertEqual(len(json.loads(objects.read_bytes().decode("ascii"))["items"]), self.vertices)

    def archives(self, number):
        """An .npz with names of vertices and of an array that is not used, in a file of an odd name."""
        n, extra = self.vertices, self.name("e")
        ring = [(i, (i + 1) % n) for i in range(n)]
        columns = {"x": cli.npy([self.draw.random() for _ in range(3 * n)], "f", shape=(n, 3)),
                   "y": cli.npy([i % 2 for i in range(n)], "q")}
        content = cli.graph_npz(n, ring, **columns, **name_arrays("vertex_name", self.names("v", n)),
                                **name_arrays("class_name", self.names("k", 2)),
                                **name_arrays("feature_name", self.names("c", 3)))
        file_name = self.name(number).replace(b"/", b"").replace(b"\x00", b"").strip(b".") or b"x"
        path = os.path.join(os.fsencode(self.folder), file_name + b".npz")
        with open(path, "wb") as file:
            file.write(content)
        plain = self.folder / "plain.npz"
        plain.write_bytes(cli.graph_npz(n, ring, **columns, **name_arrays("class_name", [b"a", b"b"])))
        path = os.fsdecode(path)
        self.verbs(path, plain)
        self.train(path)
        self.compare(path, plain, ["bench", "spmm", "--features", "4", "--quick", "--data"])
        self.run_both("info", path + self.draw.choice(["x", "/", ""]), "--format", self.draw.choice(["csv", "npz", "mtx"]))
        unused = cli.graph_npz(n, ring, unused=cli.npy([1], "q"))
        # Of the same length, so that nothing else has to change.
        forged = unused.replace(b"unused.npy", (extra + b"______")[:6] + b".npy")
        plain.write_bytes(forged)
        self.run_both("info", plain)
        self.run_both("convert", plain, "-o", self.folder / "back.npz")

    def records(self):
        """A file of plans and one of measurements."""
        plans = self.folder / "some.plans"
        cli.Run(["plan", "embedded:karate", "--save", plans, "--force"])
        drawn = self.name("x").replace(b"\t", b"").replace(b"\n", b"")
        lines = plans.read_bytes().split(b"\n")
        place = self.draw.randrange(1, len(lines) - 1)
        fields = lines[place].split(b"\t")
        fields[self.draw.randrange(len(fields))] = drawn
        lines[place] = b"\t".join(fields)
        plans.write_bytes(b"\n".join(lines))
        self.run_both("plan", "embedded:karate", "--load", plans)
        text = self.name("g").decode("utf-8", "replace")
        record = {"op": text, "graph": text, "features": 4, "precision": text, "device": "cpu", "threads": 1, "kernel": text,
                  "median_us": 2, "min_us": 1, "worst_us": 3}
        path = self.folder / f"{self.draw.choice(['a', 'b[31m', chr(0x202e)])}.json"
        path.write_text(json.dumps({"records": [record]}))
        run, report = self.run_both("bench", "compare", path, path)
        self.assertIsNotNone(report, str(run))
        self.assertEqual(run.out.count("\n"), 9, str(run))

    def xml(self):
        """GraphML whose names XML allows, and errors that quote them."""
        legal = [piece for piece in PIECES if piece.decode("utf-8", "replace").isprintable() and b"]]>" not in piece]
        legal += ["\u202e".encode(), "\u2028".encode(), "\u200b".encode(), b"&#10;", b"&#13;", b"&#x9b;", b"&#9;"]
        names = [b"".join(self.draw.choices(legal, k=2)).replace(b"<", b"&lt;").replace(b'"', b"&quot;") for _ in range(4)]
        names = [name.replace(b"& ", b"&amp; ") + str(i).encode() for i, name in enumerate(names)]
        kind = self.draw.choice([b"double", names[3]])
        target = self.draw.choice([names[1], names[3]])
        path = self.folder / "g.graphml"
        path.write_bytes(b'<?xml version="1.0"?><graphml><key id="k" for="node" attr.name="%s" attr.type="%s"/>'
                         b'<graph edgedefault="directed"><node id="%s"><data key="k">1</data></node><node id="%s"/>'
                         b'<edge source="%s" target="%s"/></graph></graphml>'
                         % (names[2], kind, names[0], names[1], names[0], target))
        self.run_both("info", path)

    def test_drawn_names(self):
        trained = 0
        for number in range(DRAWS):
            with self.subTest(seed=SEED, number=number):
                self.draw = random.Random(f"{SEED} {number}")
                trained += self.tables(number)
                self.archives(number)
                self.records()
                self.xml()
        self.assertGreater(trained, DRAWS // 4, "most names are read, not refused")

    def test_names_on_the_command_line(self):
        for number in range(10 * DRAWS):
            with self.subTest(seed=SEED, number=number):
                self.draw = random.Random(f"{SEED} line {number}")
                word = os.fsdecode(self.name(number).replace(b"\x00", b""))
                arguments = self.draw.choice([
                    [word], ["info", word], ["info", "embedded:" + word], ["info", "generate:" + word], ["--" + word],
                    ["bench", word], ["plan", "embedded:karate", "--kernel", word], ["info", "embedded:karate", "--" + word],
                    ["plan", "embedded:karate", "--op", word], ["generate", word], ["completion", word], ["help", word],
                    ["convert", "embedded:karate", "-o", word], ["calibrate", "-o", word + "/x"]])
                run = cli.Run(arguments)
                self.assertIn(run.code, (cli.USAGE, cli.IO, cli.BAD_DATA), str(run))
                self.assertEqual(len(run.err.splitlines()), 1, str(run))
                self.printable(run.err, str(run))


class Members(cli.CliTest):
    """Arrays of an archive have plain names."""

    def test_names_that_are_paths_are_refused(self):
        content = {"row": cli.npy([0], "i"), "col": cli.npy([1], "i"), "num_nodes": cli.npy([2], "q", shape=())}
        path = self.folder / "a.npz"
        for name in ["../up", "/tmp/up", "a/../../up", "..", ".", "", "a//b", "C:up", "a\\up", "a\nb", "\u202eup", "\x1b[31m"]:
            with self.subTest(name=name):
                path.write_bytes(cli.npz_bytes({**content, name: cli.npy([1], "q")}))
                run = self.fail_with(cli.BAD_DATA, "convert", path, "-o", self.folder / "b.npz")
                self.assertIn("name", run.err)
                self.assertEqual(self.leftovers(), ["a.npz"])

    def test_other_names_come_back(self):
        content = {"row": cli.npy([0], "i"), "col": cli.npy([1], "i"), "num_nodes": cli.npy([2], "q", shape=())}
        path, back = self.folder / "a.npz", self.folder / "b.npz"
        names = ["paper/x", "..a", "caf\u00e9", "a b", "\u540d\u524d"]
        path.write_bytes(cli.npz_bytes({**content, **{name: cli.npy([1], "q") for name in names}}))
        self.succeed("convert", path, "-o", back)
        self.assertEqual(self.json("info", back)["extras"], sorted(names))


if __name__ == "__main__":
    unittest.main()
