#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds read-only loads that the compiler has moved ahead of the wait for the kernel before (src/cuda/overlap.cuh).

    tools/check_waits.py build/cuda

A kernel of `launch_overlapped` may read only what its plan holds before `wait_for_previous`. Loads of `__ldg` and
`Vector::load` count as independent of everything, so that the compiler may move them across the wait, and then they read
what the kernel before has yet to write: wrong numbers, in silence and seldom. Such a load needs to be a plain one.

Reads the machine code of all objects that a build in the given folders makes (without compile_commands.json: of all that lie
there), or of single files: the read-only loads on all ways from the beginning of a kernel to a wait must be what the kernel is
known to read ahead, by READS_AHEAD. Exits with 1 where they are not, and where an indirect branch ahead of the wait leaves that
open. Code of GPUs before sm_90 has no waits. --list prints what is read ahead.
"""
import argparse
import collections
import json
import pathlib
import shlex
import struct
import sys

# What kernels read ahead on purpose: parts of plans and of graphs, which were there before the plan was made. Each instance
# of a kernel has one of these numbers of loads by their bits, and no others: who changes what is read ahead, or takes another
# compiler, looks at the new loads and writes their numbers here.
READS_AHEAD = {
    # An item of the schedule, or the offsets of a row; and the columns of its first one, two or four edges.
    "attend_rows": [{128: 1, 64: 2, 32: 2 + edges} for edges in (1, 2, 4)],
    # Edges in the order of the plan, and where their rows begin.
    "edge_dots": [{64: 2, 32: 2}, {64: 2, 32: 1}, {64: 1, 32: 1}, {64: 1}],
    "edge_stream": [{64: 2, 32: 2}, {64: 2, 32: 1}],
    "multiply_bytes_kernel": [{128: 2}],  # bits of a matrix that stays
    # A row of the schedule and its first columns, by up to three ways.
    "reduce_rows": [{128: 3, 64: 2, 32: 17}, {128: 3, 64: 2, 32: 16}, {128: 1, 64: 2, 32: 18}],
    "sum_byte_rows": [{128: 2, 64: 2, 32: 6}],  # as reduce_rows
    "sum_byte_windows": [{32: 2}],  # the pieces of a block
    "sum_tall_bytes": [{32: 2}],
    "sum_tall_windows": [{32: 2}],
    "sum_wide_windows": [{32: 2}],
}

MACHINE_CUDA = 190  # of ELF
INSTRUCTION = 16  # bytes
# The lowest 12 bits of an instruction say what it does, from sm_70 on.
WAIT, LOAD, CALL, BRANCH, INDIRECT, EXIT, RETURN = 0x82E, 0x981, 0x944, 0x947, 0x949, 0x94D, 0x950
NOTHING, MEETING = 0x918, 0x941
BITS = [8, 8, 16, 16, 32, 64, 128, 128]  # of loads
ALWAYS = 7  # the predicate of what is done in any case


class Instruction:
    """As much of one as counts here."""

    def __init__(self, code, at):
        low, high = struct.unpack_from("<QQ", code, at)
        self.operation = low & 0xFFF
        # Whether threads branch may also hang on a uniform register, or on whether they have diverged.
        self.conditional = (low >> 12 & 0xF) != ALWAYS or self.operation == BRANCH and low >> 32 & 3 != 0
        self.works = self.operation not in (BRANCH, EXIT, NOTHING, MEETING)
        self.read_only_bits = BITS[high >> 9 & 7] if self.operation == LOAD and high >> 13 & 7 == 4 else 0
        self.successors = []
        if self.operation in (BRANCH, CALL):
            # Eight bits of the distance stand below the others.
            words = low >> 16 & 0xFF | (low >> 34 | (high & 0x3FFFF) << 30) << 8
            words -= (words >> 55 & 1) << 56
            self.successors.append(at // INSTRUCTION + 1 + words * 4 // INSTRUCTION)
        if self.conditional or self.operation not in (BRANCH, INDIRECT, EXIT, RETURN):
            self.successors.append(at // INSTRUCTION + 1)


def reachable(starts, neighbours, stops=frozenset()):
    """All places that are reached from those, without going on from `stops`."""
    seen, waiting = set(), list(starts)
    while waiting:
        place = waiting.pop()
        if place in seen:
            continue
        seen.add(place)
        if place not in stops:
            waiting += neighbours[place]
    return seen


def loads_ahead(code):
    """How many read-only loads of each width come before a wait; None for a kernel that waits for nothing.

    A ValueError says why that cannot be told."""
    instructions = [Instruction(code, at) for at in range(0, len(code) - INSTRUCTION + 1, INSTRUCTION)]
    waits = {place for place, one in enumerate(instructions) if one.operation == WAIT}
    if not waits:
        return None
    after = collections.defaultdict(list)
    before = collections.defaultdict(list)
    for place, one in enumerate(instructions):
        after[place] = [target for target in one.successors if 0 <= target < len(instructions)]
        for target in after[place]:
            before[target].append(place)
    # A wait at the end of a kernel is for those who come after it: nothing is done behind it.
    matter = [wait for wait in waits if any(instructions[place].works for place in reachable(after[wait], after))]
    first = reachable([0], after, waits)
    if any(instructions[place].operation == INDIRECT for place in first):
        raise ValueError("it has an indirect branch ahead of its wait")
    # What is called goes on behind its call.
    for call in [place for place in first if instructions[place].operation == CALL]:
        before[call + 1] += [place for place in reachable(after[call][:1], after) if instructions[place].operation == RETURN]
    ahead = first & reachable([place for wait in matter for place in before[wait]], before, waits)
    return collections.Counter(instructions[place].read_only_bits for place in ahead if instructions[place].read_only_bits)


def sections(image, start):
    """Names and contents of an ELF file's sections."""
    table, = struct.unpack_from("<Q", image, start + 0x28)
    size, count, of_names = struct.unpack_from("<HHH", image, start + 0x3A)
    heads = [struct.unpack_from("<IIQQQQ", image, start + table + size * i) for i in range(count)]
    names = start + heads[of_names][4]
    for name, _, _, _, offset, length in heads:
        begin = names + name
        yield image[begin:image.index(b"\0", begin)].decode(), image[start + offset:start + offset + length]


def kernels(image):
    """Mangled names and machine code of all kernels in an object or a cubin."""
    start = image.find(b"\x7fELF")
    while start >= 0:
        if len(image) >= start + 64 and struct.unpack_from("<H", image, start + 0x12)[0] == MACHINE_CUDA:
            for name, code in sections(image, start):
                if name.startswith(".text."):
                    yield name.removeprefix(".text."), code
        start = image.find(b"\x7fELF", start + 1)


def plain_name(mangled):
    """`reduce_rows` of _ZN7tessera3ops11reduce_rowsI...: the last name of a nested one."""
    rest = mangled.removeprefix("_ZN") if mangled.startswith("_ZN") else mangled.removeprefix("_Z")
    name = mangled
    while rest[:1].isdigit():
        digits = len(rest) - len(rest.lstrip("0123456789"))
        length = int(rest[:digits])
        name, rest = rest[digits:digits + length], rest[digits + length:]
    return name


def is_known(name, loads):
    return not loads or dict(loads) in READS_AHEAD.get(name, [])


def built_objects(folder):
    """Of a build, those that it still makes: sources may have been deleted since."""
    commands = folder / "compile_commands.json"
    if not commands.exists():
        return folder.rglob("*.cu.o")
    lines = [shlex.split(one["command"]) for one in json.loads(commands.read_text()) if one["file"].endswith(".cu")]
    return filter(pathlib.Path.exists, {folder / words[words.index("-o") + 1] for words in lines})


def objects(paths):
    for path in map(pathlib.Path, paths):
        if not path.exists():
            sys.exit(f"{path} does not exist")
        yield from sorted(built_objects(path)) if path.is_dir() else [path]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], epilog=__doc__.split("\n\n", 1)[1],
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", metavar="PATH", help="folders of a CUDA build, objects or cubins")
    parser.add_argument("--list", action="store_true", help="print what each kernel reads ahead, known or not")
    options = parser.parse_args()
    waiting = 0
    wrong = []
    listed = collections.Counter()
    for path in objects(options.paths):
        for mangled, code in kernels(path.read_bytes()):
            try:
                loads = loads_ahead(code)
            except ValueError as error:
                wrong.append(f"{path}: {mangled}: cannot tell what it reads ahead: {error}")
                loads = {}
            if loads is None:
                continue
            waiting += 1
            name = plain_name(mangled)
            words = ", ".join(f"{count} of {bits} bits" for bits, count in sorted(loads.items()))
            if loads:
                listed[f"{name}: {words}"] += 1
            if not is_known(name, loads):
                wrong.append(f"{path}: {mangled} loads ahead of its wait: {words}")
    if options.list:
        for line, count in sorted(listed.items()):
            print(f"{count:5} {line}")
    for line in wrong:
        print(line, file=sys.stderr)
    print(f"{waiting} kernels wait, {len(wrong)} of them read ahead what they should not, or may do so")
    if waiting == 0:
        sys.exit("no kernel that waits was found: give a CUDA build for sm_90 or later")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
