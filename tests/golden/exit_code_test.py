# SPDX-License-Identifier: Apache-2.0
"""Each kind of failure has its exit code and one line that says what, where and how to fix."""
import json
import os
import subprocess
import unittest

import cli


class Usage(cli.CliTest):
    def test_unknown_names_get_a_suggestion(self):
        for arguments, hint in [(["inof"], "'info'"), (["help", "convrt"], "'convert'"),
                                (["info", "--jsno", "-", "embedded:karate"], "'--json'")]:
            with self.subTest(arguments=arguments):
                self.assertIn(hint, self.fail_with(cli.USAGE, *arguments).err)

    def test_what_cannot_mean_anything(self):
        karate = "embedded:karate"
        for arguments in [
                ["nonsense"], ["--threads", "2", "info"], ["info"], ["info", "--data"],
                ["info", karate, "extra"], ["info", karate, "--threads", "many"],
                ["info", karate, "--threads", "-1"], ["info", karate, "--duplicates", "maybe"],
                ["info", "embedded:nothing"], ["info", "twin:nothing"],
                ["info", "generate:nothing"],
                ["info", "generate:rmat?scle=3"], ["info", "generate:rmat?scale=x"],
                ["generate"], ["generate", "rmat?edges=-5"],
                ["generate", "twin:reddit", "--seed", "3"],
                ["convert", karate], ["convert", karate, "-o", self.folder / "graph.unknown"],
                ["convert", karate, "-o", self.folder / "k.npz", "--self-loops", "maybe"],
                ["reorder", karate, "--method", "nothing"],
                ["reorder", karate, "-o", self.folder / "x.npz", "--permutation",
                 self.folder / "x.npz"],
                ["tiles", karate, "--height", "24"],
                ["partition", karate], ["partition", karate, "--parts", "0"],
                ["partition", karate, "--parts", "2", "--method", "nothing"],
                ["partition", karate, "--parts", "2", "--imbalance", "-1"],
                ["doctor", "extra"]]:
            with self.subTest(arguments=arguments):
                self.fail_with(cli.USAGE, *arguments)
        self.assertEqual(self.leftovers(), [])

    def test_existing_files_are_kept_unless_forced(self):
        out = self.folder / "out.npz"
        for arguments in [["generate", "erdos_renyi?vertices=10&edges=20", "-o", out],
                          ["convert", "embedded:karate", "-o", out],
                          ["reorder", "embedded:karate", "-o", out],
                          ["reorder", "embedded:karate", "--permutation", out],
                          ["partition", "embedded:karate", "--parts", "2", "-o", out]]:
            with self.subTest(arguments=arguments):
                out.write_text("precious")
                self.assertIn("--force", self.fail_with(cli.USAGE, *arguments).err)
                self.assertEqual(out.read_text(), "precious")
                self.succeed(*arguments, "--force")
                self.assertNotEqual(out.read_bytes(), b"precious")

    def test_a_device_is_never_replaced(self):
        self.fail_with(cli.USAGE, "convert", "embedded:karate", "-o", "/dev/null", "--force")

    def test_mtx_needs_the_word_that_the_rest_may_go(self):
        out = self.folder / "karate.mtx"
        run = cli.Run(["convert", "embedded:karate", "-o", out])
        self.assertIn(run.code, (cli.USAGE, cli.UNAVAILABLE), str(run))
        self.assertFalse(out.exists())
        self.succeed("convert", "embedded:karate", "-o", out, "--graph-only")


class InputAndOutput(cli.CliTest):
    def test_missing_input(self):
        run = self.fail_with(cli.IO, "info", self.folder / "nothing.npz")
        self.assertIn("nothing.npz", run.err)

    def test_folder_as_input(self):
        self.fail_with(cli.IO, "info", self.folder)

    def test_outputs_that_cannot_be(self):
        for verb, option in [(["convert"], "-o"), (["reorder"], "-o"),
                             (["reorder"], "--permutation"),
                             (["partition", "--parts", "2"], "-o"), (["info"], "--json")]:
            for place in [self.folder / "no_such_folder" / "x.npz", self.folder]:
                with self.subTest(verb=verb, option=option, place=place):
                    self.fail_with(cli.IO, *verb, "embedded:karate", option, place)
        self.fail_with(cli.IO, "generate", "erdos_renyi", "-o",
                       self.folder / "no_such_folder" / "x.npz")

    @unittest.skipIf(os.geteuid() == 0, "root may write anywhere")
    def test_folder_without_permission(self):
        os.chmod(self.folder, 0o500)
        self.fail_with(cli.IO, "convert", "embedded:karate", "-o", self.folder / "x.npz")

    def test_full_and_closed_stdout(self):
        for arguments in [["info", "embedded:karate"], ["info", "embedded:karate", "--json", "-"],
                          ["doctor"], ["--help"], ["info", "--help"], ["--version"]]:
            with self.subTest(arguments=arguments):
                with open("/dev/full", "w") as full:
                    self.fail_with(cli.IO, *arguments, stdout=full)
                closed = subprocess.run(
                    ["sh", "-c", 'exec "$@" >&-', "sh", cli.PROGRAM, *arguments],
                    stderr=subprocess.PIPE)
                self.assertEqual(closed.returncode, cli.IO)
                self.assertIn(b"standard output", closed.stderr)

    def test_reader_that_went_away(self):
        read_end, write_end = os.pipe()
        os.close(read_end)
        self.fail_with(cli.IO, "info", "embedded:karate", stdout=write_end)
        os.close(write_end)


class OtherCodes(cli.CliTest):
    def test_out_of_memory(self):
        self.fail_with(cli.OUT_OF_MEMORY, "generate", "erdos_renyi?vertices=2000000000&edges=1e15")

    def test_unsupported(self):
        dense = self.folder / "dense.mtx"
        dense.write_text("%%MatrixMarket matrix array real general\n1 1\n1.0\n")
        self.fail_with(cli.UNAVAILABLE, "info", dense)

    def test_metis_where_it_is_not_built_in(self):
        by_metis = ["partition", "embedded:karate", "--parts", "2", "--method", "metis"]
        if self.json("doctor")["build"]["metis"]:
            self.assertEqual(self.json(*by_metis)["method"], "metis")
        else:
            self.fail_with(cli.UNAVAILABLE, *by_metis)


class WhereReportsGo(cli.CliTest):
    def test_json_alone_on_stdout(self):
        for arguments in [["info", "embedded:karate"], ["reorder", "embedded:karate"], ["doctor"],
                          ["partition", "embedded:karate", "-k", "2"], ["generate", "--list"],
                          ["generate", "erdos_renyi"],
                          ["convert", "embedded:karate", "-o", self.folder / "k.tsr"]]:
            with self.subTest(arguments=arguments):
                json.loads(self.succeed(*arguments, "--json", "-").out)

    def test_json_file_beside_the_report(self):
        path = self.folder / "info.json"
        for _ in range(2):
            report = self.succeed("info", "embedded:karate", "--json", path).out
            self.assertIn("34 vertices", report)
            self.assertEqual(json.loads(path.read_text())["vertices"], 34)
        self.assertEqual(self.leftovers(path), [])

    def test_quiet_says_nothing(self):
        self.assertEqual(self.succeed("info", "embedded:karate", "--quiet").out, "")
        self.assertEqual(self.succeed("partition", "embedded:karate", "-k", "2", "-q").out, "")


if __name__ == "__main__":
    unittest.main()
