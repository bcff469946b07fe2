# SPDX-License-Identifier: Apache-2.0
"""Work that is killed or interrupted at random moments loses no file, leaves none behind, and ends in the
bits of undisturbed work. TESSERA_KILLS says how often (default 120), TESSERA_KILL_SEED which moments."""
import os
import random
import re
import signal
import subprocess
import time
import unittest

import cli

KILLS = int(os.environ.get("TESSERA_KILLS", 120))
SEED = int(os.environ.get("TESSERA_KILL_SEED", 7))
EPOCHS = 150
SIGNALS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
DATA = "generate:sbm?vertices=3000&mean_degree=10"
WRITERS = {
    "convert .tsr": ["convert", DATA, "-o", "out.tsr"],
    "convert .npz": ["convert", DATA, "-o", "out.npz"],
    "convert .mtx": ["convert", DATA, "-o", "out.mtx", "--graph-only"],
    "convert .mtx.gz": ["convert", DATA, "-o", "out.mtx.gz", "--graph-only"],
    "reorder": ["reorder", DATA, "--method", "degree", "-o", "out.tsr"],
    "permutation": ["reorder", DATA, "--method", "degree", "--permutation", "out.txt"],
    "partition": ["partition", DATA, "--parts", "4", "--method", "contiguous", "-o", "out.txt"],
    "report": ["info", "embedded:karate", "--json", "out.json"],
    "plans": ["plan", DATA, "--save", "out.plans"],
}


def handlers_are_in_place(pid):
    """Before its first instruction a program can answer no signal; this says when it can."""
    try:
        with open(f"/proc/{pid}/status") as status:
            caught = int(re.search(r"SigCgt:\s*(\w+)", status.read()).group(1), 16)
    except (OSError, AttributeError):
        return True
    return all(caught >> (number - 1) & 1 for number in SIGNALS)


class Disturbed(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.moments = random.Random(SEED)
        self.kills = 0

    def start(self, arguments):
        return subprocess.Popen([cli.PROGRAM, *arguments], cwd=self.folder,
                                stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                stderr=subprocess.PIPE)

    def disturb(self, arguments, sent, seconds):
        """Its exit code; negative if it was killed."""
        process = self.start(arguments)
        if sent != signal.SIGKILL:
            while process.poll() is None and not handlers_are_in_place(process.pid):
                time.sleep(0.0005)
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.send_signal(sent)
            _, errors = process.communicate(timeout=60)
        allowed = (0, -signal.SIGKILL) if sent == signal.SIGKILL else (0, cli.INTERRUPTED)
        self.assertIn(process.returncode, allowed, f"seed {SEED}: {errors.decode()}")
        self.kills += process.returncode != 0
        return process.returncode

    def temporary_files(self):
        return [name for name in os.listdir(self.folder) if name.endswith(".tmp")]

    def duration_of(self, arguments):
        begin = time.monotonic()
        process = self.start(arguments)
        _, errors = process.communicate()
        self.assertEqual(process.returncode, 0, errors.decode())
        return time.monotonic() - begin


class Writers(Disturbed):
    def content(self, path):
        """A report has times in it; all else is the same every time."""
        return b"{" if path.suffix == ".json" and path.exists() else path.read_bytes()

    def test_random_moments(self):
        rounds = 0
        while self.kills < KILLS // 2 and rounds < 20 * KILLS:
            for name, arguments in WRITERS.items():
                rounds += 1
                out = self.folder / arguments[next(i for i, word in enumerate(arguments)
                                                   if word.startswith("out."))]
                out.unlink(missing_ok=True)
                arguments = [*arguments, "--threads", "1", "--quiet", "--force"]
                duration = self.duration_of(arguments)
                expected = self.content(out)
                old = b"old" if self.moments.random() < 0.5 else None
                out.unlink() if old is None else out.write_bytes(old)
                sent = self.moments.choice([signal.SIGKILL, *SIGNALS])
                code = self.disturb(arguments, sent, self.moments.uniform(0, duration))
                with self.subTest(name=name, seed=SEED, code=code):
                    there = out.read_bytes() if out.exists() else None
                    if code == cli.INTERRUPTED:
                        self.assertEqual(there, old)
                        self.assertEqual(self.temporary_files(), [])
                    elif code == 0:
                        self.assertEqual(self.content(out), expected)
                    elif there != old:
                        self.assertEqual(self.content(out), expected)
        # The next writer removes what killed ones have left.
        self.succeed("convert", "embedded:karate", "-o", self.folder / "last.tsr")
        self.assertEqual(self.temporary_files(), [])
        print(f"{self.kills} kills and interrupts of writers")


class Training(Disturbed):
    def arguments(self, path, seed):
        return ["train", "embedded:karate", "--model", "gcn", "--epochs", str(EPOCHS), "--seed",
                str(seed), "--split", "0.3,0.3,0.4", "--threads", "1", "--checkpoint", path.name,
                "--checkpoint-every", "1", "--resume", "--quiet"]

    def epochs_done(self, path):
        """How far a checkpoint has come."""
        if not path.exists():
            return 0
        return int(re.search(rb"\nrun\.0\.epochs = (\d+)\n", path.read_bytes()).group(1))

    def test_random_moments(self):
        seed = 0
        while self.kills < (KILLS + 1) // 2:
            seed += 1
            whole, broken = self.folder / f"whole-{seed}.tsr", self.folder / f"broken-{seed}.tsr"
            duration = self.duration_of(self.arguments(whole, seed))
            done = 0
            while done < EPOCHS:
                sent = self.moments.choice([signal.SIGKILL, *SIGNALS])
                seconds = self.moments.uniform(0, duration / 10)
                self.disturb(self.arguments(broken, seed), sent, seconds)
                now = self.epochs_done(broken)
                self.assertGreaterEqual(now, done, f"seed {SEED}")
                done = now
            self.assertEqual(broken.read_bytes(), whole.read_bytes(), f"seed {SEED}")
        self.succeed("convert", "embedded:karate", "-o", self.folder / "last.tsr")
        self.assertEqual(self.temporary_files(), [])
        print(f"{self.kills} kills and interrupts of training")


if __name__ == "__main__":
    unittest.main()
