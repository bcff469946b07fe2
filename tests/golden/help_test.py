# SPDX-License-Identifier: Apache-2.0
import unittest

import cli


class Help(cli.CliTest):
    def test_program_alone_prints_help(self):
        alone = self.succeed().out
        self.compare_golden("help.txt", alone)
        for spelling in ["help", "--help", "-h"]:
            self.assertEqual(self.succeed(spelling).out, alone)
        self.assertLess({"info", "generate", "convert", "reorder", "partition"}, set(cli.verbs()))

    def test_each_verb_explains_itself(self):
        for verb in cli.verbs():
            with self.subTest(verb=verb):
                text = self.succeed(verb, "--help").out
                self.assertEqual(self.succeed("help", verb).out, text)
                for part in ["Usage: ", "Common options:", "Examples:", "Exit codes:", "--json",
                             "--threads", "--seed", "--quiet"]:
                    self.assertIn(part, text)
                self.assertGreaterEqual(text.count(f"\n  tessera {verb}"), 2)
                self.assertLessEqual(max(map(len, text.splitlines())), 100)
                self.compare_golden(f"help_{verb}.txt", text)

    def test_version(self):
        self.assertRegex(self.succeed("--version").out, r"^tessera \d+\.\d+\.\d+\n$")


if __name__ == "__main__":
    unittest.main()
