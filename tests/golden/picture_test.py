# SPDX-License-Identifier: Apache-2.0
"""Pictures: whole files of their formats, every edge in its cell, and never in place of other files."""
import base64
import collections
import re
import struct
import unittest
import xml.etree.ElementTree
import zlib

import cli

SVG = "{http://www.w3.org/2000/svg}"
CITATION = "embedded:citation"


def read_png(data):
    """Width, height, palette and rows of a PNG as this program writes them; every checksum is checked."""
    if data[:8] != b"\x89PNG\r\n\x1a\n":
        raise ValueError("no PNG")
    chunks, at = collections.OrderedDict(), 8
    while at < len(data):
        length, kind = struct.unpack(">I4s", data[at:at + 8])
        content = data[at + 8:at + 8 + length]
        if struct.unpack(">I", data[at + 8 + length:at + 12 + length])[0] != zlib.crc32(kind + content):
            raise ValueError(f"checksum of {kind}")
        chunks[kind.decode()] = content
        at += 12 + length
    if list(chunks)[-1] != "IEND":
        raise ValueError("no end")
    width, height, bits, colour = struct.unpack(">IIBB", chunks["IHDR"][:10])
    samples = {2: 3, 3: 1}[colour]
    raw = zlib.decompress(chunks["IDAT"])
    if bits != 8 or len(raw) != height * (width * samples + 1):
        raise ValueError("size")
    rows = [raw[y * (width * samples + 1) + 1:(y + 1) * (width * samples + 1)] for y in range(height)]
    return width, height, chunks.get("PLTE"), rows


class Pictures(cli.CliTest):
    def svg(self, path):
        tree = xml.etree.ElementTree.parse(path).getroot()
        self.assertEqual(tree.tag, SVG + "svg")
        width, height = float(tree.get("width")), float(tree.get("height"))
        for text in tree.iter(SVG + "text"):
            self.assertTrue(0 <= float(text.get("x")) <= width and 0 <= float(text.get("y")) <= height,
                            xml.etree.ElementTree.tostring(text))
        return tree

    def texts(self, tree):
        return [text.text for text in tree.iter(SVG + "text")]

    def rasters(self, tree):
        """Cells of the matrices, row by row: numbers of colours, 0 for no edge."""
        found = []
        for image in tree.iter(SVG + "image"):
            kind, data = image.get("href").split(",")
            self.assertEqual(kind, "data:image/png;base64")
            width, height, palette, rows = read_png(base64.b64decode(data))
            self.assertLess(max(max(row) for row in rows), len(palette) // 3)
            found.append([list(row) for row in rows])
        return [rows for rows in found if len(rows) > 1]

    def picture_of(self, source, verb="info", **options):
        path = self.folder / f"{verb}.svg"
        self.succeed(verb, source, "--picture", path, "--quiet", **options)
        return self.svg(path)

    def test_every_edge_is_in_its_cell(self):
        entries = [(0, 1), (1, 2), (2, 2), (3, 0)]
        tree = self.picture_of(cli.write_mtx(self.folder / "five.mtx", 5, 5, entries))
        cells, = self.rasters(tree)
        self.assertEqual(len(cells), 5)
        drawn = {(row, col) for row in range(5) for col in range(5) if cells[row][col]}
        self.assertEqual(drawn, set(entries))
        said = " ".join(self.texts(tree))
        for words in ["five: 5 vertices, 4 edges", "in-degree", "out-degree", "one pair of vertices"]:
            self.assertIn(words, said)

    def test_large_and_rectangular_graphs_are_counted_in_cells(self):
        rows, cols = 1300, 700
        entries = sorted({(i * i % rows, i * 7 % cols) for i in range(4000)})
        tree = self.picture_of(cli.write_mtx(self.folder / "wide.mtx", rows, cols, entries))
        cells, = self.rasters(tree)
        self.assertEqual((len(cells), len(cells[0])), (512, 512))
        counts = collections.Counter((row * 512 // rows, col * 512 // cols) for row, col in entries)
        shades = {}
        for row in range(512):
            for col in range(512):
                shades.setdefault(counts[row, col], set()).add(cells[row][col])
        self.assertTrue(all(len(same) == 1 for same in shades.values()), shades)
        ordered = [shades[count].pop() for count in sorted(shades)]
        self.assertEqual(ordered, sorted(set(ordered)), "more edges are darker")
        self.assertEqual(ordered[0], 0)

    def test_odd_graphs_have_pictures(self):
        for name, rows, cols, entries in [("none", 0, 0, []), ("one", 1, 1, []), ("loop", 1, 1, [(0, 0)]),
                                          ("empty", 7, 7, []), ("row", 1, 9, [(0, 8)])]:
            with self.subTest(name=name):
                source = cli.write_mtx(self.folder / f"{name}.mtx", rows, cols, entries)
                for ending in ["svg", "png"]:
                    path = self.folder / f"{name}.{ending}"
                    self.succeed("info", source, "--picture", path)
                self.svg(self.folder / f"{name}.svg")
                read_png((self.folder / f"{name}.png").read_bytes())

    def test_png_shows_the_same_cells(self):
        source = cli.write_mtx(self.folder / "two.mtx", 2, 2, [(0, 1)])
        self.succeed("info", source, "--picture", self.folder / "two.png")
        width, height, _, rows = read_png((self.folder / "two.png").read_bytes())
        self.assertEqual((width, height), (1920, 1380))
        # Middles of the four cells: the matrix starts at (60, 70) and is 512 wide, two pixels per unit.
        middles = {(r, c): tuple(rows[2 * (70 + 128 + 256 * r)][3 * 2 * (60 + 128 + 256 * c):][:3])
                   for r in range(2) for c in range(2)}
        self.assertEqual({at for at, colour in middles.items() if colour != (255, 255, 255)}, {(0, 1)})

    def test_names_cannot_break_the_file(self):
        for name in ["<b>&amp;.mtx", "ünï çødé.mtx", "tab\there.mtx", b"\xff\xfe.mtx".decode("utf8", "surrogateescape")]:
            with self.subTest(name=name):
                source = self.folder / name
                cli.write_mtx(source, 2, 2, [(0, 1)])
                self.assertTrue(any("2 vertices" in text for text in self.texts(self.picture_of(source))))

    def test_training(self):
        for ending, options in [("svg", []), ("png", []), ("svg", ["--runs", "3"]), ("svg", ["--evaluate-every", "3"])]:
            path = self.folder / f"run.{ending}"
            found = self.json("train", CITATION, "--epochs", "6", *options, "--plot", path)
            self.assertEqual(found["plot"], str(path))
            if ending == "png":
                self.assertEqual(read_png(path.read_bytes())[:2], (1520, 1280))
                continue
            tree = self.svg(path)
            said = " ".join(self.texts(tree))
            for words in ["loss", "accuracy", "training", "validation", "test", "epoch", "gcn", "citation",
                          f"{100 * found['test']['mean']:.2f}"]:
                self.assertIn(words, said)
            runs = int(options[1]) if "--runs" in options else 1
            points = 2 if "--evaluate-every" in options else 6
            lengths = collections.Counter(len(line.get("points").split()) for line in tree.iter(SVG + "polyline")
                                          if line.get("stroke-width") == "1.6")
            # Training loss in every epoch; four curves where it was evaluated.
            self.assertEqual(lengths[6] if points == 6 else lengths[6] + lengths[2] + lengths[3], 5 * runs, lengths)

    def test_reordering_shows_before_and_after(self):
        tree = self.picture_of(CITATION, "reorder")
        before, after = self.rasters(tree)
        self.assertEqual((len(before), len(after)), (512, 512))
        self.assertNotEqual(before, after)
        said = " ".join(self.texts(tree))
        found = self.json("reorder", CITATION)
        for part in ["before", "after"]:
            self.assertIn(f"bandwidth {found[part]['bandwidth']:,}", said)

    def test_own_pictures_alone_are_replaced(self):
        for ending in ["svg", "png"]:
            path = self.folder / f"picture.{ending}"
            self.succeed("info", "embedded:karate", "--picture", path)
            first = path.read_bytes()
            self.succeed("info", CITATION, "--picture", path)
            self.assertNotEqual(path.read_bytes(), first)
            foreign = {"svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>", "png": b"\x89PNG\r\n\x1a\nphoto"}[ending]
            path.write_bytes(foreign)
            run = self.fail_with(cli.USAGE, "info", CITATION, "--picture", path)
            self.assertIn("--force", run.err)
            self.assertEqual(path.read_bytes(), foreign)
            self.succeed("info", "embedded:karate", "--picture", path, "--force")
            self.assertEqual(path.read_bytes(), first)

    def test_other_endings_are_errors_before_the_work(self):
        for arguments in [["info", CITATION, "--picture"], ["reorder", CITATION, "--picture"],
                          ["train", CITATION, "--plot"]]:
            run = self.fail_with(cli.USAGE, *arguments, self.folder / "picture.jpg")
            self.assertTrue(re.search(r"--(picture|plot): .*use \.svg or \.png", run.err), run.err)
        self.assertEqual(self.leftovers(), [])


if __name__ == "__main__":
    unittest.main()
