# SPDX-License-Identifier: Apache-2.0
"""A calibration: where it goes, and what plans say of one that they use and of one that they do not."""
import json
import os
import signal
import subprocess
import unittest

import cli

KARATE = "embedded:karate"
QUICK = ["calibrate", "--quick", "--windows", "2", "--op", "spmm", "--features", "4", "--precision", "fp32"]


class Calibrate(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "costs.tsv"
        self.here = {**os.environ, "TESSERA_CALIBRATION": str(self.file)}

    def plan(self, **options):
        return self.succeed("plan", KARATE, **options).out.splitlines()[-1]

    def doctor(self):
        return next(check for check in json.loads(self.succeed("doctor", "--json", "-", env=self.here).out)["checks"] if check["name"] == "costs, CPU")

    def test_it_goes_to_the_folder_of_the_user(self):
        environment = {**os.environ, "XDG_DATA_HOME": str(self.folder / "new" / "folder")}
        del environment["TESSERA_CALIBRATION"]
        self.assertNotIn("calibra", self.plan(env=environment))
        self.succeed(*QUICK, env=environment)
        files = list((self.folder / "new" / "folder" / "tessera").iterdir())
        self.assertEqual(len(files), 1)
        self.assertIn("costs calibrated on CPU", self.plan(env=environment))
        # It is this program's own: the next one replaces it.
        self.succeed(*QUICK, "--commit", "1a2b3c", env=environment)
        self.assertIn("1a2b3c", files[0].read_text(encoding="utf-8"))

    def test_a_folder_that_cannot_be_written_is_an_error_before_the_work(self):
        (self.folder / "file").write_text("")
        environment = {**os.environ, "XDG_DATA_HOME": str(self.folder / "file")}
        del environment["TESSERA_CALIBRATION"]
        # With so many windows the work would take longer than this test may.
        self.assertIn("cannot write", self.fail_with(cli.IO, "calibrate", "--windows", "16777216", env=environment).err)

    def test_what_is_no_calibration_is_not_replaced(self):
        self.file.write_text("precious\n")
        self.assertIn("is no calibration", self.fail_with(cli.USAGE, *QUICK, env=self.here).err)
        self.assertEqual(self.file.read_text(), "precious\n")

    def test_plans_say_why_they_do_not_use_one(self):
        self.assertIn("costs.tsv is no file", self.plan(env=self.here))
        self.succeed(*QUICK, env=self.here)
        self.assertIn("costs calibrated", self.plan(env=self.here))
        self.assertEqual(self.doctor()["status"], "ok")
        good = self.file.read_text(encoding="utf-8")
        made = next(line for line in good.splitlines() if line.startswith("made"))
        version = made.split("\t")[-1]
        for text, why in [(good.replace("device\tCPU", "device\tGPU"), "is of GPU"),
                          (good.replace(made, made.replace(version, "0.0.1")), "made by version 0.0.1"),
                          (good.replace("calibration\t2", "calibration\t1", 1), "made by another version")]:
            self.file.write_text(text, encoding="utf-8")
            self.assertIn(why, self.plan(env=self.here))
            self.assertEqual(self.doctor()["status"], "missing")
            self.assertIn("calibrate", self.doctor()["fix"])

    def test_a_damaged_one_is_an_error_until_it_is_made_again(self):
        self.succeed(*QUICK, env=self.here)
        text = self.file.read_text(encoding="utf-8")
        self.file.write_text(text[:len(text) // 2], encoding="utf-8")
        self.assertIn("tessera calibrate", self.fail_with(cli.BAD_DATA, "plan", KARATE, env=self.here).err)
        self.assertEqual(cli.Run(["doctor"], env=self.here).code, cli.CHECK_FAILED)
        self.succeed(*QUICK, env=self.here)
        self.assertIn("costs calibrated", self.plan(env=self.here))

    def test_an_interrupted_one_leaves_the_old_file(self):
        self.succeed(*QUICK, env=self.here)
        before = self.file.read_bytes()
        with subprocess.Popen([cli.PROGRAM, "calibrate", "--windows", "2000"], env=self.here, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            try:
                process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                process.send_signal(signal.SIGINT)
            process.communicate(timeout=60)
        self.assertEqual(process.returncode, cli.INTERRUPTED)
        self.assertEqual(self.file.read_bytes(), before)
        self.assertEqual(self.leftovers("costs.tsv"), [])


if __name__ == "__main__":
    unittest.main()
