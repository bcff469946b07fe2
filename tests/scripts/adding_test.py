# SPDX-License-Identifier: Apache-2.0
"""Follows docs/design/add_a_verb.md and add_a_format.md: what they add is compiled as the build compiles its neighbours,
the program is linked with it, and run."""
import json
import pathlib
import shutil
import struct
import subprocess
import tempfile
import unittest

import pages
from builds import BUILD, SOURCE, compile_command, link_command


class Adding(unittest.TestCase):
    def setUp(self):
        temporary = tempfile.TemporaryDirectory()
        self.addCleanup(temporary.cleanup)
        self.work = pathlib.Path(temporary.name)

    def do(self, *words, **options):
        done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **options)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def follow(self, name):
        """Takes the steps of a page: new files, and lines in copies of those there are. Returns the units to compile."""
        shutil.copytree(SOURCE / "apps" / "tessera", self.work / "apps" / "tessera", ignore=shutil.ignore_patterns("*.cpp"))
        units = set()
        for block in pages.blocks(SOURCE / "docs" / "design" / name):
            file, _, before = block.marks.get("added to", block.marks.get("file", "")).partition(" before ")
            if not file:
                continue
            units.add(file)
            there = self.work / file
            there.parent.mkdir(parents=True, exist_ok=True)
            if before:
                text = (there if there.exists() else SOURCE / file).read_text(encoding="utf-8")
                self.assertIn(before, text, f"{block.place}: {file} has no such line")
                there.write_text(text.replace(before, block.text + before), encoding="utf-8")
            else:
                there.write_text(block.text, encoding="utf-8")
        return sorted(unit for unit in units if unit.endswith(".cpp"))

    def program(self, page):
        """The program with what the page adds."""
        link, objects = link_command("tessera_app"), []
        for unit in map(pathlib.Path, self.follow(page)):
            objects.append(self.work / f"{unit.stem}_added.o")
            self.do(*compile_command(unit.parent), f"-I{self.work / 'include'}", f"-I{self.work / 'src'}",
                    "-c", self.work / unit, "-o", objects[-1], cwd=BUILD)
            link = [word for word in link if not word.endswith(f"/tessera_app.dir/{unit.name}.o")]
        program = self.work / "tessera"
        link[link.index("-o") + 1] = str(program)
        self.do(*link[:1], *objects, *link[1:], cwd=BUILD)
        return program

    def test_a_verb(self):
        program = self.program("add_a_verb.md")
        self.assertIn("longest  ", self.do(program))
        report = json.loads(self.do(program, "longest", "embedded:karate", "--json", "-"))
        self.assertEqual((report["verb"], report["longest_row"]), ("longest", 17))

    def test_a_format(self):
        program = self.program("add_a_format.md")
        file = self.work / "triangle.pairs"
        content = b"pairs\n" + struct.pack("<6i", 0, 1, 1, 2, 2, 0)
        file.write_bytes(content)
        self.assertEqual(json.loads(self.do(program, "info", file, "--json", "-"))["edges"], 3)
        file.write_bytes(content[:-1])
        cut = subprocess.run([program, "info", file], capture_output=True, text=True, check=False)
        self.assertEqual(cut.returncode, 3)
        self.assertIn("ends within an edge", cut.stderr)


if __name__ == "__main__":
    unittest.main()
