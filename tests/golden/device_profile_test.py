# SPDX-License-Identifier: Apache-2.0
"""Profiles of GPUs: built-in ones, files, and plans for a GPU that is not there."""
import json
import unittest

import cli

PLAN = ["plan", "embedded:karate", "--features", "32"]


class DeviceProfile(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.file = self.folder / "gpu.json"
        self.profile = json.loads(self.succeed("doctor", "--device-profile", "a100", "--json", "-").out)["device_profile"]
        self.has_cuda = json.loads(self.succeed("doctor", "--json", "-").out)["build"]["cuda"]

    def reject(self, text, *parts, code=3):
        self.file.write_text(text if isinstance(text, str) else json.dumps(text))
        result = cli.Run(["doctor", "--device-profile", str(self.file)])
        self.assertEqual(result.code, code, result.err)
        for part in ("gpu.json", *parts):
            self.assertIn(part, result.err)

    def test_doctor_shows_where_numbers_come_from(self):
        text = self.succeed("doctor", "--device-profile", "l40s").out
        self.assertIn("NVIDIA L40S", text)
        self.assertIn("data sheet, the rest scaled from the H200; not measured", text)

    def test_a_file_is_what_doctor_writes(self):
        self.profile["name"] = "mine"
        self.file.write_text(json.dumps(self.profile))
        again = json.loads(self.succeed("doctor", "--device-profile", str(self.file), "--json", "-").out)["device_profile"]
        self.assertEqual(again, self.profile)

    def test_mistakes_are_named(self):
        self.reject("{", "no JSON", "line 1")
        self.reject([1], "no object of JSON")
        self.reject({}, "it has no tessera_device_profile")
        self.reject({**self.profile, "tessera_device_profile": 2}, "another format than 1", code=6)
        self.reject({key: value for key, value in self.profile.items() if key != "l2_bytes"}, "l2_bytes is missing")
        self.reject({**self.profile, "speed": 3}, "no field 'speed'")
        self.reject({**self.profile, "processors": 1.5}, "processors is not a whole number")
        self.reject({**self.profile, "processors": 0}, "processors is 0")
        self.reject({**self.profile, "l2_gather": [[512]]}, "l2_gather is not pairs of numbers")
        self.reject({**self.profile, "l2_gather": [[512, 1], [64, 1]]}, "l2_gather has a row of 64 bytes after one of 512")
        missing = cli.Run(["doctor", "--device-profile", str(self.folder / "none.json")])
        self.assertEqual(missing.code, 4, missing.err)
        unknown = cli.Run(["doctor", "--device-profile", "cray"])
        self.assertEqual(unknown.code, 2, unknown.err)
        self.assertIn("NVIDIA A100-SXM4-80GB", unknown.err)

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
