# SPDX-License-Identifier: Apache-2.0
"""The library asks of fmt what its stand-in in the Python package knows (bindings/torch/stand_ins/fmt/format.h)."""
import os
import pathlib
import re
import unittest

SOURCES = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "src"
ASKED = re.compile(r"\{\w*:[^:{}\s]*[{}]")
KNOWN = re.compile(r"\{:(<\d+|0\d+x|g|\.\d+[fge])\}")
TEXT = re.compile(r'"(?:[^"\\\n]|\\.)*"')


class Formats(unittest.TestCase):
    def test_the_stand_in_knows_all_of_them(self):
        asked = 0
        for path in sorted(SOURCES.rglob("*.[ch]pp")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
                for text in TEXT.findall(line):
                    for found in ASKED.findall(text):
                        asked += 1
                        self.assertRegex(found, KNOWN, f"{path}:{number}")
        self.assertGreater(asked, 20)


if __name__ == "__main__":
    unittest.main()
