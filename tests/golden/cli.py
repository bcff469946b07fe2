# SPDX-License-Identifier: Apache-2.0
"""Runs the program and writes small input files, with nothing but the standard library."""
import array
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import unittest
import zipfile

PROGRAM = os.environ.get("TESSERA_BIN", os.path.abspath("build/bin/tessera"))
SOURCE = pathlib.Path(os.environ.get("TESSERA_SOURCE", pathlib.Path(__file__).parents[2]))
EXPECTED = pathlib.Path(__file__).parent / "expected"
SECONDS = float(os.environ.get("TESSERA_RUN_SECONDS", 300))  # of one run

# Progress in a pipe is for people who wait; here errors alone are expected on stderr, however slow the machine.
os.environ.setdefault("TESSERA_PROGRESS_SECONDS", "86400")
os.environ["TESSERA_DEVICE_PROFILE"] = "off"  # what is expected of kernels is the same on every machine

OK, INTERNAL, USAGE, BAD_DATA, IO, OUT_OF_MEMORY, UNAVAILABLE, CHECK_FAILED = range(8)
INTERRUPTED = 130
FAILED, SKIPPED = 1, 77  # of a test; ctest knows the second


def verbs():
    """The verbs that the program's own help lists."""
    return re.findall(r"(?m)^  ([a-z]+)  ", Run([]).out.split("Verbs:")[1].split("\n\n")[0])


class Run:
    """What one run of the program left behind."""

    def __init__(self, arguments, **options):
        options.setdefault("stdout", subprocess.PIPE)
        done = subprocess.run([PROGRAM, *map(str, arguments)], stderr=subprocess.PIPE,
                              stdin=subprocess.DEVNULL, timeout=SECONDS, **options)
        self.arguments = arguments
        self.code = done.returncode
        self.out = (done.stdout or b"").decode()
        self.err = done.stderr.decode()

    def __str__(self):
        line = " ".join(map(str, self.arguments))
        return f"tessera {line}: exit {self.code}\n{self.out}{self.err}"


class CliTest(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    maxDiff = None

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera_cli_"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def succeed(self, *arguments, **options):
        run = Run(arguments, **options)
        self.assertEqual(run.code, OK, str(run))
        self.assertEqual(run.err, "", str(run))
        return run

    def fail_with(self, code, *arguments, **options):
        """Every failure is one line on stderr that names the verb."""
        run = Run(arguments, **options)
        self.assertEqual(run.code, code, str(run))
        lines = run.err.splitlines()
        self.assertEqual(len(lines), 1, str(run))
        self.assertRegex(lines[0], r"^tessera( [a-z]+)?: error: \S", str(run))
        return run

    def json(self, *arguments):
        return json.loads(self.succeed(*arguments, "--json", "-").out)

    def leftovers(self, *known):
        """Files in the test's folder other than these."""
        return sorted(set(os.listdir(self.folder)) - {pathlib.Path(name).name for name in known})

    def compare_golden(self, name, text):
        """TESSERA_UPDATE_GOLDEN=1 writes the expected files anew."""
        path = EXPECTED / name
        if os.environ.get("TESSERA_UPDATE_GOLDEN"):
            path.write_text(text)
        self.assertTrue(path.exists(), f"{path} is missing: run with TESSERA_UPDATE_GOLDEN=1")
        self.assertEqual(text, path.read_text())


def main():
    """unittest.main() for tests of which some need what not every machine has: where all others pass, ctest says that
    the test was skipped, and its output why."""
    result = unittest.main(exit=False).result
    for test, reason in result.skipped:
        print(f"skipped: {test.id()}: {reason}", file=sys.stderr)
    sys.exit(FAILED if not result.wasSuccessful() else SKIPPED if result.skipped else OK)


def write_mtx(path, rows, cols, entries, field="pattern", symmetry="general"):
    """`entries` are (row, column) or (row, column, value), counted from 0."""
    lines = [f"%%MatrixMarket matrix coordinate {field} {symmetry}",
             f"{rows} {cols} {len(entries)}"]
    for row, col, *value in entries:
        lines.append(" ".join(map(str, [row + 1, col + 1, *value])))
    path.write_text("\n".join(lines) + "\n")
    return path


def npy(values, code, shape=None):
    """One NumPy array: `code` is 'i' (int32), 'q' (int64) or 'f' (float32)."""
    type_name = {"i": "<i4", "q": "<i8", "f": "<f4"}[code]
    shape = (len(values),) if shape is None else shape
    header = f"{{'descr': '{type_name}', 'fortran_order': False, 'shape': {shape}, }}"
    header = header.ljust(118 - 1) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + array.array(
        code, values).tobytes()


def npz_bytes(arrays):
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in arrays.items():
            archive.writestr(name + ".npy", content)
    return out.getvalue()


def graph_npz(vertices, entries, **more):
    """An .npz of a graph; `entries` are sorted (row, column)."""
    return npz_bytes({"row": npy([row for row, _ in entries], "i"),
                      "col": npy([col for _, col in entries], "i"),
                      "num_nodes": npy([vertices], "q", shape=()), **more})
