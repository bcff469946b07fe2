# SPDX-License-Identifier: Apache-2.0
"""Under a limit on memory every verb answers: with its result, or with exit code 5 and one line.

TESSERA_MEMORY_LIMITS=60 tries as many limits between 20 MB and 2 GB in place of the few that matter most."""
import os
import re
import resource
import subprocess
import unittest

import cli

MB = 1000 * 1000
SECONDS = 10 if "TESSERA_MEMORY_LIMITS" in os.environ else 60  # to answer, on a machine that has nothing else to do
NO_FURTHER_THREAD = 1 << 46  # bytes for the stack of each, which there are not

# What the program needs itself, BLAS's library and its first buffers, and one buffer more.
FEW = [mb * MB for mb in (20, 24, 28, 32, 36, 64, 76, 92, 100, 180, 230, 260, 300, 330, 400, 460, 600, 1000)]


def spread(count, first=20 * MB, last=2000 * MB):
    """So many limits, each the same factor above the one before."""
    return [round(first * (last / first) ** (i / (count - 1))) for i in range(count)]


def limits():
    count = os.environ.get("TESSERA_MEMORY_LIMITS")
    return spread(int(count)) if count else FEW


def limited(kind, amount):
    """For a child process before it becomes the program."""
    def limit():
        hard = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (amount, hard if kind == resource.RLIMIT_STACK else amount))
    return limit


class MemoryLimits(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.build = self.json("doctor")["build"]
        if self.build["sanitizers"]:
            self.skipTest("sanitizers reserve more addresses than any limit leaves")
        self.data = self.folder / "data.npz"
        self.model = self.folder / "model.tsr"
        self.succeed("convert", "embedded:citation", "-o", self.data)
        self.succeed("train", self.data, "--epochs", "2", "--checkpoint", self.model, "--quiet")

    def need_a_build_for_the_cpu(self):
        if self.build["cuda"]:
            self.skipTest("the libraries of CUDA are larger than these limits")

    def commands(self):
        out = self.folder / "out.tsr"
        return {"train": ["train", self.data, "--epochs", "2"],
                "predict": ["predict", self.data, "--checkpoint", self.model],
                "reorder": ["reorder", self.data, "-o", out, "--force"],
                "convert": ["convert", self.data, "-o", out, "--force"],
                "partition": ["partition", self.data, "--parts", "4"],
                "info": ["info", self.data, "--json", "-"],
                "doctor": ["doctor"],
                "version": ["--version"]}

    def run_limited(self, arguments, limit, threads=None):
        environment = dict(os.environ)
        if threads is not None:
            environment["OMP_NUM_THREADS"] = str(threads)
        done = subprocess.run([cli.PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, timeout=SECONDS, preexec_fn=limit, env=environment)
        return done.returncode, done.stderr

    def answers(self, arguments, bytes_allowed, threads):
        """The exit code, which is one of those that are right."""
        where = f"{arguments}, {threads} threads, {bytes_allowed} bytes"
        try:
            code, errors = self.run_limited(arguments, limited(resource.RLIMIT_AS, bytes_allowed), threads)
        except subprocess.TimeoutExpired:
            self.fail(f"no answer within {SECONDS} seconds: {where}")
        where += f": exit code {code}\n{errors}"
        if code == cli.OUT_OF_MEMORY:
            lines = errors.splitlines()
            self.assertRegex(lines[-1], r"\Atessera( [a-z]+)?: error: \S", where)
            self.assertTrue(len(lines) == 1 or "METIS" in lines[-1], where)  # which prints lines of its own
        elif code == cli.OK:
            self.assertEqual(errors, "", where)
        else:
            self.assertFalse(self.main_is_reached(bytes_allowed), where)
        return code

    def main_is_reached(self, bytes_allowed):
        """Below that the kernel cannot map the program, the loader its libraries, or one of them start."""
        code, _ = self.run_limited(["--version"], limited(resource.RLIMIT_AS, bytes_allowed))
        return code in (cli.OK, cli.OUT_OF_MEMORY)

    def test_an_answer_at_every_limit(self):
        self.need_a_build_for_the_cpu()
        codes = {}
        for name, arguments in self.commands().items():
            for threads in (1, 2):
                given = [] if name == "version" else ["--threads", str(threads)]
                for bytes_allowed in limits():
                    with self.subTest(name=name, threads=threads, bytes_allowed=bytes_allowed):
                        code = self.answers([*arguments, *given], bytes_allowed, threads)
                        codes.setdefault(name, {}).setdefault(code, []).append(bytes_allowed)
        for name, found in codes.items():
            with self.subTest(name=name):
                self.assertIn(cli.OK, found, "no limit is high enough")
                print(f"{name}:", ", ".join(f"{len(at)} x exit code {code} up to {max(at) // MB} MB"
                                            for code, at in sorted(found.items())))

    def test_blas_is_loaded_by_products_alone(self):
        """Where it has no room, all that multiplies nothing does its work."""
        self.need_a_build_for_the_cpu()
        limit = limited(resource.RLIMIT_AS, 200 * MB)
        for name, arguments in self.commands().items():
            with self.subTest(name=name):
                code, errors = self.run_limited(arguments, limit, 1)
                multiplies = name in ("train", "predict")
                self.assertEqual(code, cli.OUT_OF_MEMORY if multiplies else cli.OK, errors)
                if multiplies:
                    self.assertIn("no room for OpenBLAS", errors)

    def test_doctor_says_which_blas_is_used(self):
        check = next(check for check in self.json("doctor")["checks"] if check["name"] == "BLAS")
        self.assertEqual(check["status"], "ok")
        self.assertRegex(check["detail"], r"OpenBLAS \d.*, /.*libopenblas")

    def test_a_thread_that_cannot_be_made(self):
        for name, arguments in self.commands().items():
            with self.subTest(name=name):
                code, errors = self.run_limited(arguments, limited(resource.RLIMIT_STACK, NO_FURTHER_THREAD))
                if name == "version":
                    self.assertEqual(code, cli.OK, errors)
                    continue
                self.assertEqual(code, cli.OUT_OF_MEMORY, errors)
                self.assertTrue(re.search(r"\Atessera [a-z]+: error: the system makes no further thread; .+\n\Z",
                                          errors), errors)


if __name__ == "__main__":
    unittest.main()
