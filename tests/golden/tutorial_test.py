# SPDX-License-Identifier: Apache-2.0
"""The commands of docs/tutorial.md, in order, in a folder of their own; those for a GPU where there is one."""
import re
import shlex
import unittest

import cli


class Tutorial(cli.CliTest):
    def test_every_command_works(self):
        text = (cli.SOURCE / "docs" / "tutorial.md").read_text()
        blocks = re.findall(r"(?m)^```sh( gpu)?\n(.*?)^```", text, re.S)
        self.assertGreater(len(blocks), 8)
        has_gpu = any(check["name"] == "GPU" and check["status"] == "ok" for check in self.json("doctor")["checks"])
        for gpu, block in blocks:
            for line in block.splitlines():
                words = shlex.split(line)
                self.assertEqual(words[0], "tessera")
                if gpu and not has_gpu:
                    self.fail_with(cli.UNAVAILABLE, *words[1:], cwd=self.folder)
                else:
                    self.succeed(*words[1:], cwd=self.folder)
        self.assertEqual(set(self.leftovers()) - {"graph.plans"},
                         {"citation.svg", "classes.txt", "gcn.svg", "gcn.tsr", "order.png", "ordered.tsr", "sage.json",
                          "scores.npz"})

    def test_pages_it_points_to_exist(self):
        page = cli.SOURCE / "docs" / "tutorial.md"
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text()):
            self.assertTrue((page.parent / target).exists(), target)


if __name__ == "__main__":
    unittest.main()
