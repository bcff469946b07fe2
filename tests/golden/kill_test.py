# SPDX-License-Identifier: Apache-2.0
"""Training that is killed again and again loses no checkpoint and ends in the bits of an unbroken one."""
import random
import re
import signal
import subprocess
import time
import unittest

import cli

KILLS = 200
EPOCHS = 150


class Kills(cli.CliTest):
    def arguments(self, path, seed):
        return ["train", "embedded:karate", "--model", "gcn", "--epochs", str(EPOCHS), "--seed",
                str(seed), "--split", "0.3,0.3,0.4", "--threads", "1", "--checkpoint", str(path),
                "--checkpoint-every", "1", "--resume", "--quiet"]

    def epochs_done(self, path):
        """How far a checkpoint has come."""
        if not path.exists():
            return 0
        return int(re.search(rb"\nrun\.0\.epochs = (\d+)\n", path.read_bytes()).group(1))

    def run_for(self, arguments, seconds):
        """True if the program was killed, False if it came to its end before."""
        process = subprocess.Popen([cli.PROGRAM, *arguments], stdin=subprocess.DEVNULL,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGKILL)
            _, errors = process.communicate()
        self.assertIn(process.returncode, (0, -signal.SIGKILL), errors.decode())
        return process.returncode != 0

    def unbroken(self, seed):
        """The file of a run that nobody disturbs, and how long that takes."""
        path = self.folder / f"whole-{seed}.tsr"
        begin = time.monotonic()
        self.succeed(*self.arguments(path, seed))
        return path.read_bytes(), time.monotonic() - begin

    def test_random_moments(self):
        moments = random.Random(7)
        kills = 0
        seed = 0
        while kills < KILLS:
            seed += 1
            expected, duration = self.unbroken(seed)
            path = self.folder / f"broken-{seed}.tsr"
            done = 0
            while done < EPOCHS:
                if kills == KILLS:
                    self.succeed(*self.arguments(path, seed))
                elif self.run_for(self.arguments(path, seed), moments.uniform(0, duration / 20)):
                    kills += 1
                now = self.epochs_done(path)
                self.assertGreaterEqual(now, done)
                done = now
            self.assertEqual(path.read_bytes(), expected)


if __name__ == "__main__":
    unittest.main()
