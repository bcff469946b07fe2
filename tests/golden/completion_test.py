# SPDX-License-Identifier: Apache-2.0
"""Completion and the manual page know every verb and every option that help knows."""
import re
import shutil
import subprocess
import unittest

import cli

SHELLS = ["bash", "zsh", "fish"]


def options_of(verb):
    """What help lists: [(names, placeholder)]."""
    found = []
    for line in cli.Run([verb, "--help"]).out.split("\nExamples:")[0].splitlines():
        match = re.match(r"  (?:(-\w), |    )(--[\w-]+)(?: (\S+))?", line)
        if match:
            found.append(([name for name in match.groups()[:2] if name], match.group(3)))
    return found


class Completion(cli.CliTest):
    def complete(self, line, cwd=None):
        """What bash offers at the end of a line."""
        script = self.succeed("completion", "bash").out
        test = script + ('\nCOMP_LINE=$1; COMP_POINT=${#COMP_LINE}; _tessera tessera 2>&1\n'
                         '[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\\n" "${COMPREPLY[@]}"\n')
        done = subprocess.run(["bash", "-c", test, "bash", line], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              cwd=cwd or self.folder, check=True)
        return done.stdout.decode().split()

    def test_every_verb_and_option(self):
        for verb in cli.verbs():
            options = options_of(verb)
            self.assertGreater(len(options), 5, verb)
            names = [name for spellings, _ in options for name in spellings]
            self.assertEqual(sorted(self.complete(f"tessera {verb} -")), sorted(names))
        self.assertEqual(self.complete("tessera "), [*cli.verbs(), "help", "--help", "--version"])
        self.assertEqual(self.complete("tessera help "), cli.verbs())

    def test_zsh_and_fish_name_them_too(self):
        for verb in cli.verbs():
            zsh = self.succeed("completion", "zsh").out.split(f"\n    {verb})\n")[1].split("\n      ;;")[0]
            fish = [line for line in self.succeed("completion", "fish").out.splitlines()
                    if f"'__fish_seen_subcommand_from {verb}'" in line]
            for spellings, _ in options_of(verb):
                self.assertRegex(zsh, rf"{re.escape(','.join(spellings))}[}}'\[]", verb)
                wanted = "".join(f" -l {name[2:]}" if name.startswith("--") else f" -s {name[1:]}"
                                 for name in spellings)
                self.assertEqual(sum(f"{wanted} -" in line for line in fish), 1, (verb, spellings))

    def test_values(self):
        self.assertEqual(self.complete("tessera train x --model g"), ["gcn", "gin", "gine", "gat", "gatv2"])
        self.assertEqual(self.complete("tessera train x --model=sg"), ["sgc"])
        self.assertEqual(self.complete("tessera info x --color n"), ["never"])
        self.assertEqual(self.complete("tessera reorder x -m r"), ["rcm", "random"])
        self.assertEqual(self.complete("tessera completion "), SHELLS)
        self.assertEqual(self.complete("tessera bench epoch_ga"), ["epoch_gat", "epoch_gatv2"])
        self.assertEqual(self.complete("tessera train x --epochs "), [])

    def test_files_and_data(self):
        (self.folder / "embers.npz").touch()
        self.assertEqual(self.complete("tessera info emb"),
                         ["embers.npz", "embedded:karate", "embedded:citation"])
        # bash itself has cut the word at the colon.
        self.assertEqual(self.complete("tessera info embedded:k"), ["karate"])
        self.assertEqual(self.complete("tessera info --json em"), ["embers.npz"])

    def test_scripts_are_whole(self):
        for shell in SHELLS:
            script = self.succeed("completion", shell).out
            if shutil.which(shell):
                checked = subprocess.run([shell, "-n"], input=script.encode(), stderr=subprocess.PIPE)
                self.assertEqual((checked.returncode, checked.stderr), (0, b""), shell)
            self.assertEqual(self.json("completion", shell)["script"], script)
            self.assertEqual(self.succeed("completion", shell, "--color", "always").out, script)

    def test_a_shell_must_be_named(self):
        self.assertIn("bash, zsh or fish", self.fail_with(cli.USAGE, "completion").err)
        self.assertIn("bash, zsh or fish", self.fail_with(cli.USAGE, "completion", "tcsh").err)


class Manual(cli.CliTest):
    def test_every_verb_and_option(self):
        page = self.succeed("man").out
        common = page.split(".SH OPTIONS OF EVERY VERB")[1]
        for verb in cli.verbs():
            section = page.split(f".SS tessera {verb}\n")[1].split("\n.SS")[0].split("\n.SH")[0]
            for spellings, placeholder in options_of(verb):
                entry = ", ".join("\\fB" + name.replace("-", "\\-") + "\\fR" for name in spellings)
                if placeholder:
                    entry += " \\fI" + placeholder.replace("-", "\\-") + "\\fR"
                self.assertIn(f".TP\n{entry}\n", section + common, verb)

    def test_groff_has_nothing_to_say(self):
        if not shutil.which("groff"):
            self.skipTest("no groff here")
        done = subprocess.run(["groff", "-man", "-Tascii", "-ww", "-z"], input=self.succeed("man").out.encode(),
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr.decode()), (0, ""))


if __name__ == "__main__":
    unittest.main()
