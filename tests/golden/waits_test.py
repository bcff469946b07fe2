# SPDX-License-Identifier: Apache-2.0
"""tools/check_waits.py on machine code written here, one instruction after the other."""
import json
import pathlib
import struct
import subprocess
import sys
import tempfile
import unittest

import cli

TOOL = cli.SOURCE / "tools" / "check_waits.py"
sys.path.insert(0, str(TOOL.parent))

import check_waits  # noqa: E402


def instruction(operation, predicate=check_waits.ALWAYS, above=0, high=0):
    return struct.pack("<QQ", operation | predicate << 12 | above, high)


def load(bits, read_only=True):
    return instruction(check_waits.LOAD, high=check_waits.BITS.index(bits) << 9 | (4 << 13 if read_only else 0))


def branch(instructions, predicate=check_waits.ALWAYS, operation=check_waits.BRANCH, kind=0):
    """To so many instructions behind the next one."""
    words = instructions * 4 & (1 << 56) - 1
    rest = words >> 8
    above = (words & 0xFF) << 16 | kind << 32 | (rest & (1 << 30) - 1) << 34
    return instruction(operation, predicate, above, rest >> 30)


def call(instructions):
    return branch(instructions, operation=check_waits.CALL)


WAIT = instruction(check_waits.WAIT)
EXIT = instruction(check_waits.EXIT)
RETURN = instruction(check_waits.RETURN)
INDIRECT = instruction(check_waits.INDIRECT)
ADD = instruction(0x210)
SOMETIMES = 0
IF_DIVERGED = 2


def cubin(kernels):
    """An ELF file with the code of each kernel."""
    names = b"\0"
    places, contents, heads = 64 + 64 * (len(kernels) + 2), b"", [bytes(64)]
    for name, code in kernels.items():
        heads.append(struct.pack("<IIQQQQIIQQ", len(names), 1, 6, 0, places + len(contents), len(code), 0, 0, 128, 0))
        names += f".text.{name}\0".encode()
        contents += code
    heads.append(struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, places + len(contents), len(names), 0, 0, 1, 0))
    head = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHIQQQIHHHHHH", 2, check_waits.MACHINE_CUDA, 1, 0, 0, 64, 0, 64, 0, 0,
                                                       64, len(heads), len(heads) - 1)
    return head + b"".join(heads) + contents + names


class Waits(unittest.TestCase):
    def loads(self, *instructions):
        found = check_waits.loads_ahead(b"".join(instructions))
        return None if found is None else dict(found)

    def test_loads_before_and_after(self):
        self.assertEqual(self.loads(load(32), load(128), WAIT, load(16), EXIT), {32: 1, 128: 1})
        self.assertEqual(self.loads(WAIT, load(16), EXIT), {})
        self.assertIsNone(self.loads(load(16), EXIT))

    def test_plain_loads_stay_where_they_are(self):
        self.assertEqual(self.loads(load(32, read_only=False), WAIT, load(32), EXIT), {})

    def test_all_ways_to_a_wait_count(self):
        # One way loads, the other jumps over that.
        self.assertEqual(self.loads(branch(1, SOMETIMES), load(64), WAIT, load(16), EXIT), {64: 1})
        # What is loaded first stands behind the wait.
        self.assertEqual(self.loads(branch(3), WAIT, load(16), EXIT, load(64), branch(-5)), {64: 1})
        # Each way has its own wait.
        self.assertEqual(self.loads(branch(4, SOMETIMES), load(64), WAIT, load(16), EXIT, load(128), WAIT, load(8), EXIT),
                         {64: 1, 128: 1})
        # A way that ends without one.
        self.assertEqual(self.loads(branch(2, SOMETIMES), load(64), EXIT, WAIT, load(16), EXIT), {})

    def test_a_branch_of_diverged_threads_has_two_ways(self):
        self.assertEqual(self.loads(branch(4, kind=IF_DIVERGED), load(64), WAIT, ADD, EXIT, load(32), branch(-5)), {32: 1, 64: 1})

    def test_what_is_called_counts(self):
        self.assertEqual(self.loads(call(3), WAIT, ADD, EXIT, load(32), RETURN), {32: 1})
        self.assertEqual(self.loads(WAIT, call(1), EXIT, load(32), RETURN), {})
        # What a way around the wait calls does not return to it.
        self.assertEqual(self.loads(call(5), branch(1, SOMETIMES), WAIT, call(4), EXIT, EXIT, load(32), RETURN, load(64), RETURN),
                         {32: 1})

    def test_an_indirect_branch_leaves_it_open(self):
        with self.assertRaisesRegex(ValueError, "indirect branch"):
            self.loads(INDIRECT, load(32), WAIT, ADD, EXIT)
        self.assertEqual(self.loads(load(32), WAIT, INDIRECT, EXIT), {32: 1})

    def test_a_loop_waits_the_first_time(self):
        self.assertEqual(self.loads(ADD, load(32), WAIT, load(128), branch(-4, SOMETIMES), EXIT), {32: 1})

    def test_a_kernel_that_only_writes_after_its_wait(self):
        self.assertEqual(self.loads(load(128), WAIT, instruction(0x986), EXIT), {128: 1})

    def test_a_wait_at_the_end_is_for_others(self):
        self.assertEqual(self.loads(load(32), branch(1, SOMETIMES), WAIT, EXIT), {})
        # Of two kernels that follow each other: the second one waits where it does not follow, else at its end.
        self.assertEqual(self.loads(load(32), branch(1, SOMETIMES), WAIT, load(128), branch(1, SOMETIMES), WAIT, EXIT), {32: 1})

    def test_names(self):
        self.assertEqual(check_waits.plain_name("_ZN7tessera3ops11reduce_rowsILi4ELi1EfEEvNS0_10RowsLaunchE"), "reduce_rows")
        self.assertEqual(check_waits.plain_name("_Z3addPf"), "add")
        self.assertEqual(check_waits.plain_name("plain"), "plain")

    def run_tool(self, kernels, *options):
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "a.cu.o"
            path.write_bytes(b"host code" + cubin(kernels))
            return subprocess.run([sys.executable, TOOL, folder, *options], capture_output=True, text=True)

    def test_files(self):
        known = {"_ZN7tessera3ops16sum_tall_windowsIfEEvv": load(32) * 2 + WAIT + load(32) + EXIT}
        done = self.run_tool(known, "--list")
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertIn("1 sum_tall_windows: 2 of 32 bits", done.stdout)
        done = self.run_tool(known | {"_ZN7tessera3ops7unknownEvv": load(16) + WAIT + load(32) + EXIT})
        self.assertEqual(done.returncode, 1)
        self.assertIn("_ZN7tessera3ops7unknownEvv loads ahead of its wait: 1 of 16 bits", done.stderr)
        self.assertIn("2 kernels wait, 1 of them", done.stdout)
        for others in (1, 3):
            code = load(32) * others + WAIT + load(32) + EXIT
            self.assertEqual(self.run_tool({"_ZN7tessera3ops16sum_tall_windowsIfEEvv": code}).returncode, 1)
        done = self.run_tool({"_ZN7tessera3ops16sum_tall_windowsIfEEvv": INDIRECT + WAIT + ADD + EXIT})
        self.assertEqual(done.returncode, 1)
        self.assertIn("cannot tell what it reads ahead", done.stderr)

    def test_objects_of_deleted_sources_do_not_count(self):
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for stem in ("kept", "deleted"):
                (folder / f"{stem}.cu.o").write_bytes(b"")
            self.assertEqual([path.stem for path in check_waits.objects([folder])], ["deleted.cu", "kept.cu"])
            commands = [{"directory": name, "file": f"/{stem}.cu", "command": f"nvcc -c /{stem}.cu -o {stem}.cu.o"}
                        for stem in ("kept", "not_built")]
            commands.append({"directory": name, "file": "/host.cpp", "command": "g++ -c /host.cpp -o host.cpp.o"})
            (folder / "compile_commands.json").write_text(json.dumps(commands))
            self.assertEqual([path.stem for path in check_waits.objects([folder])], ["kept.cu"])

    def test_nothing_to_look_at_is_an_error(self):
        done = self.run_tool({"a": EXIT})
        self.assertEqual(done.returncode, 1)
        self.assertIn("no kernel that waits was found", done.stderr)


if __name__ == "__main__":
    unittest.main()
