# SPDX-License-Identifier: Apache-2.0
"""Nothing is overwritten unasked: one rule for every file of every verb."""
import fcntl
import json
import os
import resource
import unittest

import cli

KARATE = "embedded:karate"


class Overwriting(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.data = self.folder / "data.npz"
        self.data.write_bytes(cli.graph_npz(4, [(0, 1), (1, 2), (2, 3), (3, 0)]))
        self.model = self.folder / "model.tsr"
        self.succeed("train", KARATE, "--epochs", "2", "--split", "0.3,0.3,0.4", "--checkpoint",
                     self.model)

    def outputs(self, path):
        """Every option of every verb that writes a file which is no report."""
        return [["generate", "erdos_renyi?vertices=10&edges=20", "-o", path],
                ["convert", KARATE, "-o", path], ["reorder", KARATE, "-o", path],
                ["reorder", KARATE, "--permutation", path],
                ["partition", KARATE, "--parts", "2", "-o", path],
                ["plan", KARATE, "--save", path],
                ["predict", KARATE, "--checkpoint", self.model, "-o", path],
                ["train", KARATE, "--epochs", "2", "--split", "0.3,0.3,0.4", "--checkpoint", path]]

    def test_outputs_that_exist_need_force(self):
        out = self.folder / "out.npz"
        for arguments in self.outputs(out):
            with self.subTest(arguments=arguments):
                out.write_text("precious")
                self.assertIn("--force", self.fail_with(cli.USAGE, *arguments).err)
                self.assertEqual(out.read_text(), "precious")
                self.succeed(*arguments, "--force")
                self.assertNotEqual(out.read_bytes(), b"precious")

    def test_a_report_replaces_reports_alone(self):
        for verb in [["info", KARATE], ["tiles", KARATE], ["doctor"], ["generate", "--list"],
                     ["plan", KARATE], ["partition", KARATE, "-k", "2"]]:
            with self.subTest(verb=verb):
                report = self.folder / "report.json"
                for old in ["", '{"verb": "older"}']:
                    report.write_text(old)
                    self.succeed(*verb, "--json", report)
                    self.assertIn("verb", json.loads(report.read_text()))
                for precious in [self.data, self.model]:
                    before = precious.read_bytes()
                    self.assertIn("--force", self.fail_with(cli.USAGE, *verb, "--json",
                                                            precious).err)
                    self.assertEqual(precious.read_bytes(), before)
                report.write_text("notes")
                self.fail_with(cli.USAGE, *verb, "--json", report)
                self.succeed(*verb, "--json", report, "--force")

    def same_file(self):
        """Other names of the input."""
        link, hard = self.folder / "link.npz", self.folder / "hard.npz"
        link.symlink_to("data.npz")
        os.link(self.data, hard)
        (self.folder / "inner").mkdir()
        return [self.data, link, hard, f"{self.folder}/inner/../data.npz",
                f"{self.folder}//./data.npz"]

    def test_no_output_is_an_input(self):
        before = self.data.read_bytes()
        for name in self.same_file():
            for arguments in [["info", self.data, "--json", name],
                              ["convert", self.data, "-o", name],
                              ["reorder", self.data, "--permutation", name],
                              ["train", self.data, "--checkpoint", name],
                              ["bench", "spmm", "--data", self.data, "--plans", name],
                              ["plan", self.data, "--save", name]]:
                with self.subTest(name=name, arguments=arguments):
                    run = self.fail_with(cli.USAGE, *arguments, "--force")
                    self.assertIn("is the input of --data", run.err)
                    self.assertEqual(self.data.read_bytes(), before)
        self.fail_with(cli.USAGE, "predict", KARATE, "-c", self.model, "--json", self.model, "-f")

    def test_two_outputs_are_two_files(self):
        new = self.folder / "new.npz"
        link = self.folder / "to_new.npz"
        link.symlink_to("new.npz")
        for other in [new, link, f"{self.folder}/./new.npz"]:
            for arguments in [["reorder", KARATE, "-o", new, "--permutation", other],
                              ["reorder", KARATE, "-o", new, "--json", other],
                              ["train", KARATE, "--checkpoint", new, "--json", other],
                              ["train", KARATE, "--checkpoint", new, "--resume", "--json", other]]:
                with self.subTest(arguments=arguments):
                    run = self.fail_with(cli.USAGE, *arguments, "--force")
                    self.assertIn("is to be written by both", run.err)
        self.assertFalse(new.exists())

    def test_links_are_followed_and_stay(self):
        for verb in [["convert", KARATE, "-o"], ["info", KARATE, "--json"],
                     ["reorder", KARATE, "--permutation"]]:
            with self.subTest(verb=verb):
                target, link = self.folder / "target.npz", self.folder / "a_link.npz"
                for path in [target, link]:
                    path.unlink(missing_ok=True)
                link.symlink_to("target.npz")
                self.succeed(*verb, link)
                self.assertTrue(link.is_symlink())
                self.assertFalse(target.is_symlink())
                self.succeed(*verb, link, "--force")
                self.assertTrue(link.is_symlink())

    def test_a_circle_of_links_is_refused(self):
        one, two = self.folder / "one.npz", self.folder / "two.npz"
        one.symlink_to("two.npz")
        two.symlink_to("one.npz")
        for verb in [["convert", KARATE, "-o"], ["info", KARATE, "--json"]]:
            self.fail_with(cli.IO, *verb, one)
        self.assertTrue(one.is_symlink() and two.is_symlink())

    def test_resume_and_plans_are_input_and_output(self):
        self.succeed("train", KARATE, "--epochs", "3", "--split", "0.3,0.3,0.4", "--checkpoint",
                     self.model, "--resume")
        plans = self.folder / "plans"
        for _ in range(2):
            self.succeed("bench", "spmm", "--data", KARATE, "--features", "4", "--quick", "--plans",
                         plans)

    def test_devices_get_reports_and_nothing_else(self):
        self.succeed("info", KARATE, "--json", "/dev/null")
        self.fail_with(cli.USAGE, "convert", KARATE, "-o", "/dev/null", "--force")


class LeftBehind(cli.CliTest):
    def test_a_limit_on_the_size_of_files_is_a_full_disk(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (1024, 1024))

        run = self.fail_with(cli.IO, "convert", "embedded:citation", "-o", self.folder / "out.tsr", preexec_fn=limit)
        self.assertIn("File too large", run.err)
        self.assertEqual(self.leftovers(), [])

    def test_the_next_writer_cleans_up_what_nobody_holds(self):
        dead = self.folder / ".tessera-4194303-0.tmp"
        held = self.folder / ".tessera-4194302-7.tmp"
        others = [self.folder / name for name in [".tessera-x-0.tmp", "tessera-1-0.tmp",
                                                  ".tessera-1-0.tmp.bak", ".tessera-1.tmp"]]
        for path in [dead, held, *others]:
            path.write_text("half a file")
        with open(held) as holder:
            fcntl.flock(holder, fcntl.LOCK_EX)
            self.succeed("convert", "embedded:karate", "-o", self.folder / "out.tsr")
            self.assertEqual(self.leftovers(held, *others), ["out.tsr"])
            self.assertTrue(held.exists())
        target = self.folder / "precious"
        target.write_text("precious")
        (self.folder / ".tessera-5-5.tmp").symlink_to("precious")
        self.succeed("info", "embedded:karate", "--json", self.folder / "report.json")
        self.assertEqual(target.read_text(), "precious")
        self.assertFalse(held.exists())


if __name__ == "__main__":
    unittest.main()
