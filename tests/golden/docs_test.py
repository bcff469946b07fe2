# SPDX-License-Identifier: Apache-2.0
"""No page is stale: every verb and option that a page names exists, and so does every file that it points to."""
import re
import subprocess
import unittest

import cli


def pages():
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=cli.SOURCE, stdout=subprocess.PIPE, check=False)
    found = [cli.SOURCE / name for name in names.stdout.decode().split()]
    # Outside a checkout of git: all pages there are.
    return found or [*cli.SOURCE.glob("*.md"), *cli.SOURCE.glob("docs/**/*.md")]


def known_options():
    return {verb: set(re.findall(r"(?<![\w-])--?[a-z][a-z-]*", cli.Run([verb, "--help"]).out)) for verb in cli.verbs()}


def commands(text):
    """Command lines of the program in blocks of code and between backticks, without comments."""
    blocks = re.findall(r"(?ms)^```[^\n]*\n(.*?)^```", text)
    lines = [line for block in blocks for line in block.replace("\\\n", " ").splitlines()]
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"(?ms)^```.*?^```", "", text))
    for line in [*lines, *spans]:
        match = re.match(r"\s*(?:\$ )?(?:build/bin/)?tessera (?!plans)([a-z]+)\b(.*)", line)
        if match:
            yield match.group(1), re.split(r" [#|>] ?|  +[a-z]", match.group(2))[0]


class Pages(unittest.TestCase):
    def test_commands_exist(self):
        options, seen = known_options(), 0
        for page in pages():
            for verb, rest in commands(page.read_text()):
                with self.subTest(page=page.name, command=f"{verb}{rest}"):
                    self.assertIn(verb, {*options, "help"})
                    for option in re.findall(r"(?<=\s)--?[a-z][a-z-]*", rest):
                        self.assertIn(option, options[verb])
                        seen += 1
        self.assertGreater(seen, 60)

    def test_links_lead_somewhere(self):
        seen = 0
        for page in pages():
            text = re.sub(r"(?ms)^```.*?^```", "", page.read_text())
            for target in re.findall(r"\]\(([^)\s]+)\)", text):
                path, _, anchor = target.partition("#")
                if "://" in path:
                    continue
                seen += 1
                with self.subTest(page=page.name, target=target):
                    there = page if not path else page.parent / path
                    self.assertTrue(there.exists())
                    if anchor and there.suffix == ".md":
                        titles = re.findall(r"(?m)^#+ (.*)$", there.read_text())
                        names = {re.sub(r"[^\w -]", "", title.lower()).strip().replace(" ", "-") for title in titles}
                        self.assertIn(anchor, names)
        self.assertGreater(seen, 60)


if __name__ == "__main__":
    unittest.main()
