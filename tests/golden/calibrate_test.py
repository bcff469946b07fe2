# SPDX-License-Identifier: Apache-2.0
"""A measured profile: where it goes, and what plans say of one that they use and of one that they do not."""
import json
import os
import unittest

import cli

PLAN = ["plan", "embedded:karate", "--device", "cuda"]


class WithoutAGpu(cli.CliTest):
    def test_there_has_to_be_one(self):
        if cli.Run(PLAN).code == cli.OK:
            self.skipTest("this machine has a GPU")
        for arguments in (["calibrate"], ["calibrate", "-o", str(self.folder / "mine.profile")]):
            self.assertIn("no GPU to measure", self.fail_with(cli.UNAVAILABLE, *arguments).err)
        self.assertEqual(self.leftovers(), [])
        self.assertIn("a CPU has no profile", self.fail_with(cli.USAGE, "calibrate", "--device", "cpu").err)


class OnDevice(cli.CliTest):
    def setUp(self):
        super().setUp()
        if cli.Run(PLAN).code != cli.OK:
            self.skipTest("no GPU here; tools/gpu.sh test runs it")
        self.file = self.folder / "mine.profile"
        self.here = {**os.environ, "TESSERA_DEVICE_PROFILE": str(self.file)}

    def plan(self):
        return self.succeed(*PLAN, env=self.here).out.splitlines()[-1]

    def doctor(self):
        record = json.loads(self.succeed("doctor", "--json", "-", env=self.here).out)
        return next(check for check in record["checks"] if check["name"] == "GPU's profile")

    def test_it_goes_to_the_folder_of_the_user(self):
        environment = {**os.environ, "XDG_DATA_HOME": str(self.folder / "new" / "folder")}
        del environment["TESSERA_DEVICE_PROFILE"]
        text = self.succeed("calibrate", env=environment).out
        self.assertIn("l2_gather, rows of 512 bytes", text)
        files = list((self.folder / "new" / "folder" / "tessera").iterdir())
        self.assertEqual(len(files), 1)
        self.assertIn("costs by the profile measured on", self.succeed(*PLAN, env=environment).out)
        self.succeed("calibrate", env=environment)  # it is this program's own: the next one replaces it

    def test_what_is_no_profile_is_not_replaced(self):
        self.file.write_text("precious\n")
        self.assertIn("is no profile", self.fail_with(cli.USAGE, "calibrate", env=self.here).err)
        self.assertEqual(self.file.read_text(), "precious\n")

    def test_plans_say_why_they_do_not_use_one(self):
        self.assertIn("mine.profile is no file", self.plan())
        record = json.loads(self.succeed("calibrate", "--json", "-", env=self.here).out)
        self.assertEqual(record["device_profile"]["processors"], record["expected_profile"]["processors"])
        self.assertLess(record["calibrate_seconds"], 120)
        self.assertIn("costs by the profile measured on", self.plan())
        self.assertEqual(self.doctor()["status"], "ok")
        good = self.file.read_text(encoding="utf-8")
        for field, why in [("driver", "was measured with driver other"), ("build", "was measured by build other"),
                           ("name", "is of other with")]:
            lines = [f"{field}\tother" if line.startswith(field + "\t") else line for line in good.splitlines()]
            self.file.write_text("\n".join(lines) + "\n", encoding="utf-8")
            self.assertIn(why, self.plan())
            self.assertEqual(self.doctor()["status"], "missing")
            self.assertIn("calibrate", self.doctor()["fix"])
        self.file.write_text(good[:len(good) // 2], encoding="utf-8")
        self.assertIn("tessera calibrate", self.fail_with(cli.BAD_DATA, *PLAN, env=self.here).err)
        self.assertEqual(cli.Run(["doctor"], env=self.here).code, cli.CHECK_FAILED)


if __name__ == "__main__":
    cli.main()
