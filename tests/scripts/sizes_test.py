# SPDX-License-Identifier: Apache-2.0
"""No file of tests is longer than a reader takes in at once."""
import os
import pathlib
import unittest

TESTS = pathlib.Path(os.environ["TESSERA_SOURCE"]) / "tests"
MOST_LINES = 500
KINDS = {".cpp", ".hpp", ".cu", ".cuh", ".py"}


class Sizes(unittest.TestCase):
    def test_files(self):
        paths = [path for path in TESTS.rglob("*") if path.suffix in KINDS]
        self.assertGreater(len(paths), 100)
        lines = {str(path.relative_to(TESTS)): len(path.read_bytes().splitlines()) for path in paths}
        self.assertEqual({}, {path: count for path, count in lines.items() if count > MOST_LINES})


if __name__ == "__main__":
    unittest.main()
