# SPDX-License-Identifier: Apache-2.0
"""Random edge lists, GraphML files and TU folders, read by the program and by a second reader: plain Python, written
from docs/formats.md. Both find the same graph and the same columns, or both refuse the file, for the same line.

    TESSERA_DRAWS=6000 TESSERA_DRAW_SEED=7 python3 tests/scripts/readings_test.py

draws other files; a failure keeps its file and prints seed, draw and command."""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "readings"))
import edge_lists  # noqa: E402
import graphml  # noqa: E402
import tu  # noqa: E402
from npz import read_npz  # noqa: E402
from refusal import Refused  # noqa: E402

PROGRAM = os.environ.get("TESSERA_BIN", os.path.abspath("build/bin/tessera"))
DRAWS = int(os.environ.get("TESSERA_DRAWS", 300))
SEED = int(os.environ.get("TESSERA_DRAW_SEED", 40))
BAD_DATA = (3, 6)  # exit codes of data that is damaged, or not supported


def program_reads(folder, path, options):
    """The arrays that the program finds in a file, or its refusal."""
    out = folder / "out.npz"
    run = subprocess.run([PROGRAM, "convert", path, *options, "-o", out, "--force", "--threads", "1"],
                         capture_output=True, timeout=120, check=False)
    if run.returncode == 0:
        return read_npz(out)
    error = run.stderr.decode()
    if run.returncode not in BAD_DATA or len(error.splitlines()) != 1:
        raise AssertionError(f"exit code {run.returncode}: {error}")
    line = re.search(r": line (\d+): ", error)
    return Refused(error.strip(), {int(line.group(1))} if line else set())


def difference(expected, found):
    """What the two readings disagree on; empty: nothing."""
    if isinstance(expected, Refused) or isinstance(found, Refused):
        if type(expected) is not type(found):
            return f"expected {expected}, found {found}"
        if found.lines and expected.lines and not found.lines <= expected.lines:
            return f"refused for line {found.lines}, but wrong are {sorted(expected.lines)}: {expected}, {found}"
        return ""
    for name in sorted(set(expected) | set(found)):
        if expected.get(name) != found.get(name):
            return f"{name}: expected {expected.get(name)}, found {found.get(name)}"
    return ""


def write(path, text):
    """A file, or a folder of several."""
    if isinstance(text, str):
        path.write_bytes(text.encode())
        return
    path.mkdir()
    for name, content in text.items():
        write(path / name, content)


def remove(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def try_one(folder, kind, number):
    """Draws a file, reads it twice, and says what differs."""
    draw = random.Random(f"{SEED} {kind.__name__} {number}")
    text, options = kind.draw(draw)
    path = folder / f"{kind.__name__}-{number}{kind.ENDING}"
    write(path, text)
    try:
        expected = kind.read(text, options)
    except Refused as refused:
        expected = refused
    try:
        found = program_reads(folder, path, kind.command_line(options))
        problem = difference(expected, found)
    except AssertionError as error:
        problem = str(error)
    if not problem:
        remove(path)
        return None, isinstance(expected, Refused)
    return f"{path} {' '.join(kind.command_line(options))}: {problem}", False


class Readings(unittest.TestCase):
    def compare(self, kind, draws):
        top = pathlib.Path(tempfile.mkdtemp(prefix="tessera_readings_"))
        folders = [top / str(i) for i in range(2)]
        for folder in folders:
            folder.mkdir()

        def try_many(worker):
            return [try_one(folders[worker], kind, number) for number in range(worker, draws, len(folders))]
        with concurrent.futures.ThreadPoolExecutor(len(folders)) as pool:
            results = [result for part in pool.map(try_many, range(len(folders))) for result in part]
        problems = [problem for problem, _ in results if problem]
        refused = sum(refused for _, refused in results)
        print(f"{kind.__name__}: seed {SEED}, {draws} files, {refused} refused by both, {len(problems)} differ")
        if not problems:
            shutil.rmtree(top)
        self.assertEqual(problems, [], f"seed {SEED}; the files are kept in {top}")
        # Draws that are nearly all refused, or all taken, would compare little.
        self.assertLess(refused, 0.8 * draws)
        self.assertGreater(refused, 0.05 * draws)

    def test_edge_lists(self):
        self.compare(edge_lists, DRAWS * 2 // 3)

    def test_graphml(self):
        self.compare(graphml, DRAWS - DRAWS * 2 // 3)

    def test_tu_folders(self):
        self.compare(tu, DRAWS)

    @unittest.skipUnless(os.environ.get("TESSERA_DATA"), "TESSERA_DATA names no folder of real data")
    def test_real_tu_folders(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tessera_readings_"))
        self.addCleanup(shutil.rmtree, folder)
        for data in sorted(pathlib.Path(os.environ["TESSERA_DATA"], "tu").iterdir()):
            files = {path.name.replace(data.name, tu.NAME): path.read_text() for path in data.glob(f"{data.name}_*.txt")}
            self.assertEqual("", difference(tu.read(files, {}), program_reads(folder, data, [])), data)


if __name__ == "__main__":
    unittest.main()
