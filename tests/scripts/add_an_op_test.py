# SPDX-License-Identifier: Apache-2.0
"""Follows docs/design/add_an_op.md: the op edge_difference of the folder add_an_op is added to the source tree as the page
says, compiled as the build compiles, linked with the rest of the library, and tested against its reference."""
import os
import pathlib
import re
import subprocess
import tempfile
import unittest

from builds import BUILD, SOURCE, compile_command

OP = pathlib.Path(__file__).parent / "add_an_op"
PAGE = (SOURCE / "docs" / "design" / "add_an_op.md").read_text(encoding="utf-8")
NAME = "edge_difference"


class AddAnOp(unittest.TestCase):
    def run_command(self, *words):
        done = subprocess.run([str(word) for word in words], cwd=BUILD, capture_output=True, text=True, check=False)
        self.assertEqual(done.returncode, 0, f"{words}\n{done.stdout}\n{done.stderr}")
        return done.stdout

    def compile(self, like, file, include, to):
        self.run_command(*compile_command(like), *[f"-I{folder}" for folder in include], "-c", file, "-o", to)
        return to

    def test_the_page_names_every_file_and_no_other(self):
        named = set(re.findall(r"`((?:include|src|tests)/[\w/<>.*]+\.[ch]pp)`", PAGE))
        for path in sorted(path for path in OP.rglob("*") if path.is_file()):
            with self.subTest(file=path.name):
                self.assertIn(path.relative_to(OP).as_posix().replace(NAME, "<op>"), named)
        for name in sorted(named):
            with self.subTest(named=name):
                if "<op>" in name and "<name>" not in name:
                    self.assertTrue(any(SOURCE.glob(name.replace("<op>", "spmm"))) or
                                    (OP / name.replace("<op>", NAME)).exists(), name)
                elif "<" not in name:
                    self.assertTrue((SOURCE / name).exists(), name)

    def test_the_steps_lead_to_an_op_that_passes_its_tests(self):
        with tempfile.TemporaryDirectory() as folder:
            work = pathlib.Path(folder)
            # The one file that is changed: the list of all tables.
            listing = (SOURCE / "src/ops/plan/kernels.cpp").read_text(encoding="utf-8")
            line = "  append_infos(all, sddmm_kernels());\n"
            self.assertIn(line, listing)
            listing = listing.replace(line, line.replace("sddmm", NAME) + line)
            listing = listing.replace('#include "ops/plan/registry.hpp"\n',
                                      f'#include "ops/{NAME}/kernel.hpp"\n#include "ops/plan/registry.hpp"\n')
            (work / "kernels.cpp").write_text(listing, encoding="utf-8")
            folders = [OP / "include", OP / "src"]
            objects = [self.compile("src/ops/plan/kernels.cpp", work / "kernels.cpp", folders, work / "kernels.o")]
            for unit in sorted((OP / "src/ops" / NAME).glob("*.cpp")):
                objects.append(self.compile("src/ops/plan/kernels.cpp", unit, folders, work / f"{unit.stem}_of_op.o"))
            objects.append(self.compile("tests/conformance/edge_softmax_test.cpp",
                                        OP / "tests/conformance" / f"{NAME}_test.cpp", folders, work / "test.o"))
            package = (BUILD / "tessera.pc").read_text(encoding="utf-8")
            libraries = re.search(r"Libs.private: (.*)", package).group(1).split()
            self.run_command(os.environ["TESSERA_CXX"], *objects, "-o", work / "test", BUILD / "libtessera.a",
                             *libraries, "-lgtest_main", "-lgtest", "-lpthread")
            said = self.run_command(work / "test")
            self.assertIn("[  PASSED  ] 3 tests.", said)


if __name__ == "__main__":
    unittest.main()
