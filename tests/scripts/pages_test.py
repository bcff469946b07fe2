# SPDX-License-Identifier: Apache-2.0
"""Every page holds what it says: commands run, C++ compiles, options, files and sections exist, lines are short.
Blocks of Python are run by tests/python/test_documentation.py, where torch is. pages.py says how blocks are marked."""
import concurrent.futures
import json
import os
import pathlib
import re
import shlex
import subprocess
import tempfile
import unittest

import pages

PROGRAM = os.environ["TESSERA_BIN"]
BUILD = pathlib.Path(os.environ["TESSERA_BUILD"])
COMPILER = os.environ["TESSERA_CXX"]
PAGES = pages.pages()
BLOCKS = [block for page in PAGES for block in pages.blocks(page)]
COMMAND = re.compile(r"(?m)^\s*(?:\$ )?(?:tessera|make|cmake|ctest|ninja|pip|python3?|tools/\S+|bench/\S+) ")


def said(*command):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=True, timeout=60).stdout


def verbs():
    return re.findall(r"(?m)^  ([a-z]+)  ", said(PROGRAM).split("Verbs:")[1].split("\n\n")[0])


class Pages(unittest.TestCase):
    def test_lines_are_short(self):
        for page in PAGES:
            for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
                if len(line) > pages.LONGEST_LINE and not line.startswith("|"):
                    with self.subTest(page=page.name, line=number):
                        self.fail(f"{len(line)} characters, more than {pages.LONGEST_LINE}: {line[:60]} …")

    def test_first_pages_stay_short(self):
        self.assertLessEqual(len((pages.SOURCE / "README.md").read_text(encoding="utf-8").splitlines()), 120)
        newest = re.split(r"(?m)^## ", (pages.SOURCE / "CHANGELOG.md").read_text(encoding="utf-8"))[1]
        self.assertLessEqual(len(newest.splitlines()), 80)

    def test_links_lead_somewhere(self):
        seen = 0
        for page in PAGES:
            for target, path, anchor in pages.links(page):
                seen += 1
                with self.subTest(page=page.name, target=target):
                    there = page.parent / path if path else page
                    self.assertTrue(there.exists())
                    if anchor and there.suffix == ".md":
                        self.assertIn(anchor, pages.anchors(there))
        self.assertGreater(seen, 60)

    def test_every_verb_has_a_section(self):
        page = (pages.SOURCE / "docs" / "cli.md").read_text(encoding="utf-8")
        self.assertEqual(re.findall(r"(?m)^### (\w+)$", page), verbs())


class Blocks(unittest.TestCase):
    def test_are_marked_as_pages_py_says(self):
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            with self.subTest(page=page.name):
                self.assertNotRegex(text, r"(?m)^[ \t]+```")
                self.assertEqual(len(re.findall(r"(?m)^```", text)), 2 * len(pages.blocks(page)))
        for block in BLOCKS:
            with self.subTest(block=block.place):
                self.assertIn(block.language, pages.LANGUAGES)
                self.assertLessEqual(set(block.marks), pages.MARKS)
                if block.language == "text" and "file" not in block.marks:
                    self.assertNotRegex(block.text, COMMAND)

    def test_that_others_run_are_run_there(self):
        for block in BLOCKS:
            if "run by" in block.marks:
                script = (pages.SOURCE / block.marks["run by"]).read_text(encoding="utf-8")
                for line in pages.command_lines(block.text):
                    with self.subTest(block=block.place, line=line):
                        self.assertIn(" ".join(line.split()[:2]), script)

    def test_commands_have_options_that_exist(self):
        known = {verb: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", said(PROGRAM, verb, "--help"))) for verb in verbs()}
        seen = 0
        for page in PAGES:
            code = "\n".join(line for block in pages.blocks(page) if block.language == "sh"
                             for line in pages.command_lines(block.text))
            for verb, rest in pages.tessera_commands("\n".join([code, *re.findall(r"`([^`\n]+)`", pages.prose(page))])):
                with self.subTest(page=page.name, command=f"{verb}{rest}"):
                    self.assertIn(verb, {*known, "help"})
                    for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest):
                        self.assertIn(option, known[verb])
                        seen += 1
        self.assertGreater(seen, 60)

    def test_scripts_have_options_that_exist(self):
        """Those of tools/ and bench/ in blocks that are not run here."""
        for block in BLOCKS:
            if block.language == "sh" and block.marks.keys() & {"record", "gpu", "stand-in", "run by"}:
                for line in pages.command_lines(block.text):
                    words = shlex.split(line)
                    if not words[0].startswith(("tools/", "bench/")):
                        continue
                    with self.subTest(block=block.place, line=line):
                        report = words[1:2] if words[0].endswith("report.py") else []
                        explained = said(pages.SOURCE / words[0], *report, "--help")
                        for option in words:
                            self.assertTrue(not option.startswith("--") or option in explained, option)

    def test_commands_run(self):
        checks = json.loads(said(PROGRAM, "doctor", "--json", "-"))["checks"]
        has_gpu = any(check["name"] == "GPU" and check["status"] == "ok" for check in checks)
        if os.environ.get("TESSERA_PAGES_GPU"):
            self.assertTrue(has_gpu, "no GPU: tessera doctor says why")

        def run(page):
            """What went wrong, or nothing."""
            with tempfile.TemporaryDirectory(prefix="tessera_page_") as path:
                folder = pages.Folder(pathlib.Path(path), PROGRAM, BUILD)
                try:
                    for block in pages.blocks(page):
                        folder.run(block, has_gpu=has_gpu)
                except pages.Failure as failure:
                    return str(failure)
            return ""

        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            problems = dict(zip(PAGES, pool.map(run, PAGES)))
        for page, problem in problems.items():
            with self.subTest(page=page.name):
                self.assertFalse(problem, problem)

    def test_files_are_used_by_their_pages(self):
        for block in BLOCKS:
            if "file" in block.marks and not block.page.name.startswith("add_a"):
                with self.subTest(block=block.place):
                    others = [other.text for other in BLOCKS if other.page == block.page and other.language != block.language]
                    self.assertTrue(any(block.marks["file"] in text for text in others))

    def test_parts_of_files_are_parts_of_them(self):
        for block in BLOCKS:
            if "from" in block.marks:
                with self.subTest(block=block.place):
                    self.assertIn(block.text, (pages.SOURCE / block.marks["from"]).read_text(encoding="utf-8"))

    def test_cpp_compiles(self):
        includes, functions = {"#include <tessera/tessera.hpp>", "#include <iostream>"}, []
        for number, block in enumerate(block for block in BLOCKS if block.is_statements):
            code = re.sub(r"(?m)^(#include .*)$", lambda match: includes.add(match.group(1)) or "", block.text)
            functions.append(f"void block_{number}() {{\n{block.given}\n#line {block.line} \"{block.place.split(':')[0]}\"\n"
                             f"{code}}}\n")
        self.assertGreater(len(functions), 10)
        with tempfile.TemporaryDirectory() as folder:
            unit = pathlib.Path(folder) / "blocks.cpp"
            unit.write_text("\n".join([*sorted(includes), "using namespace tessera;", "namespace nn = tessera::nn;",
                                       *functions]), encoding="utf-8")
            done = subprocess.run([COMPILER, "-std=c++20", "-fsyntax-only", "-fopenmp", f"-I{pages.SOURCE / 'include'}",
                                   f"-I{BUILD / 'include'}", unit], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0, done.stderr[-6000:])


if __name__ == "__main__":
    unittest.main()
