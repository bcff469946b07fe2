# SPDX-License-Identifier: Apache-2.0
"""The README's example is the one that is compiled, and its table lists the verbs there are."""
import re
import textwrap
import unittest

import cli


class Readme(unittest.TestCase):
    def setUp(self):
        self.readme = (cli.SOURCE / "README.md").read_text()

    def test_example_is_the_compiled_one(self):
        example = (cli.SOURCE / "examples" / "01_first_graph.cpp").read_text()
        region = re.search(r"// \[readme\]\n(.*?) *// \[/readme\]", example, re.S).group(1)
        shown = re.search(r"```cpp\n(.*?)```", self.readme, re.S).group(1)
        self.assertEqual(shown, textwrap.dedent(region))

    def test_table_lists_every_verb(self):
        self.assertEqual(re.findall(r"(?m)^\| `tessera (\w+)` \|", self.readme), cli.verbs())

    def test_pages_it_points_to_exist(self):
        for page in re.findall(r"\]\(([^)#:]+)\)", self.readme):
            self.assertTrue((cli.SOURCE / page).exists(), page)


if __name__ == "__main__":
    unittest.main()
