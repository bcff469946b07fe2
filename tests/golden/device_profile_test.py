# SPDX-License-Identifier: Apache-2.0
"""Profiles of GPUs: built-in ones, files, and plans for a GPU that is not there."""
import json
import unittest

import cli

PLAN = ["plan", "embedded:karate", "--features", "32"]


class DeviceProfile(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "mine.profile"
        self.has_cuda = json.loads(self.succeed("doctor", "--json", "-").out)["build"]["cuda"]

    def write(self, name="a100"):
        self.succeed("doctor", "--device-profile", name, "-o", self.file)

    def test_doctor_shows_where_numbers_come_from(self):
        text = self.succeed("doctor", "--device-profile", "l40s").out
        self.assertIn("NVIDIA L40S", text)
        self.assertIn("data sheet, the rest scaled from the H200; not measured", text)

    def test_a_file_is_what_doctor_writes(self):
        self.write()
        self.file.write_text(self.file.read_text().replace("name\tNVIDIA A100-SXM4-80GB", "name\tmine"))
        again = self.json("doctor", "--device-profile", str(self.file))["device_profile"]
        built_in = self.json("doctor", "--device-profile", "a100")["device_profile"]
        self.assertEqual(again["name"], "mine")
        self.assertEqual(again["mma_bf16_per_us"], built_in["mma_bf16_per_us"])
        self.assertEqual(again.keys(), built_in.keys())
        self.assertIn("already exists", self.fail_with(cli.USAGE, "doctor", "--device-profile", "a100", "-o", self.file).err)

    def test_mistakes_are_named(self):
        self.write()
        self.file.write_text(self.file.read_text().replace("l2_bytes\t", "l2_bytes\tmany "))
        self.assertIn("mine.profile, line", self.fail_with(cli.BAD_DATA, "doctor", "--device-profile", self.file).err)
        self.file.write_text('{"name": "mine"}')
        self.assertIn("no profile of a GPU", self.fail_with(cli.BAD_DATA, "doctor", "--device-profile", self.file).err)
        self.fail_with(cli.IO, "doctor", "--device-profile", self.folder / "none.profile")
        self.assertIn("NVIDIA A100-SXM4-80GB", self.fail_with(cli.USAGE, "doctor", "--device-profile", "cray").err)

    def test_a_plan_for_it_needs_a_program_with_cuda(self):
        result = cli.Run([*PLAN, "--device-profile", "a100"])
        if not self.has_cuda:
            self.assertEqual(result.code, 6, result.err)
            self.assertIn("built without CUDA", result.err)
            return
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("on NVIDIA A100-SXM4-80GB, which need not be here", result.out)
        record = json.loads(self.succeed(*PLAN, "--device-profile", "a100", "--json", "-").out)
        self.assertEqual(record["device"], "NVIDIA A100-SXM4-80GB")
        self.assertTrue(record["kernel"].startswith("spmm/cuda/"))

    def test_options_that_do_nothing_beside_it(self):
        for option in (["--device", "cpu"], ["--tune", "measured"], ["--epochs", "5"], ["--save", str(self.folder / "p")]):
            result = cli.Run([*PLAN, "--device-profile", "a100", *option])
            self.assertEqual(result.code, 2, result.err)
            self.assertIn("does nothing with --device-profile", result.err)


if __name__ == "__main__":
    unittest.main()
