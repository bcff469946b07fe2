#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks that includes point downwards: a file may include its own folder and lower ranks only.

Public headers may also include nothing but the standard library and each other, and tessera/tessera.hpp includes every one of
them but the machinery in tessera/detail/. What a build without CUDA compiles reaches no header of CUDA's, not even through
others, so that it builds where there is no toolkit. Inside src/ops engines are below ops, and neither ops nor the strategies of
an op include each other's files, but for what tools/ops_includes.txt allows; nn and train include no file of src/ops. The
ranks are those of docs/design/layers.md. Exits with 1 and one line per violation.
"""
import pathlib
import re
import sys

RANKS = {"core": 0, "graph": 1, "cuda": 2, "data": 2, "quant": 2, "io": 3, "reorder": 3, "sample": 3, "tiles": 4, "ops": 5, "links": 6, "step": 6, "nn": 7, "train": 8}
ENGINES = {"simd": 0, "cuda": 0, "plan": 1, "dense": 2, "rows": 3, "windows": 4}  # inside ops
AN_OP, LISTS_OPS = 8, re.compile(r"ops/plan/(kernels\.cpp|calibrate/)")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]')
STANDARD_HEADER = re.compile(r"^[a-z_]+$")
CUDA_HEADER = re.compile(r"^(cuda|cublas|cusparse|cub/|thrust/|cooperative_groups|vector_types|mma\.h|driver_types)")
# As cmake/TesseraLibrary.cmake has it: of the folders of CUDA, a build without it takes costs and schedules.
WITHOUT_CUDA = re.compile(r"/cuda/.*/((window_)?cost|cut|schedule)\.cpp$")
WITH_CUDA_ONLY = re.compile(r"^#ifdef TESSERA_WITH_CUDA$.*?^#(?:else|endif)", re.MULTILINE | re.DOTALL)


def included(path, text=None):
    for number, line in enumerate((text or path.read_text(encoding="utf-8")).splitlines(), 1):
        match = INCLUDE.match(line)
        if match:
            yield number, match.group(1), match.group(2)


def folder_of(target):
    """The layer that an include path names: tessera/graph/graph.hpp or graph/sort.hpp -> graph."""
    parts = pathlib.PurePosixPath(target).parts
    while parts[0] in ("tessera", "detail"):
        parts = parts[1:]
    return parts[0] if len(parts) > 1 else None


def file_violations(path, base, root):
    where = path.relative_to(root)
    layer = folder_of(path.relative_to(base))
    public = base.name == "tessera"
    if layer not in RANKS:
        yield f"{where}: folder '{layer}' has no rank; give it one in tools/check_layers.py"
        return
    for number, bracket, target in included(path):
        other = folder_of(target) if bracket == '"' else None
        if other in RANKS and other != layer and RANKS[other] >= RANKS[layer]:
            yield f"{where}:{number}: {layer} must not include {other} ({target})"
        if layer in ("nn", "train") and target.startswith("ops/"):
            yield f'{where}:{number}: {layer} must not include the private "{target}"'
        if public and bracket == "<" and not STANDARD_HEADER.match(target):
            yield f"{where}:{number}: a public header includes <{target}>, not the standard library"
        if public and bracket == '"' and not target.startswith("tessera/"):
            yield f'{where}:{number}: a public header includes the private "{target}"'
        if public and "/detail/" in target and "detail" not in where.parts:
            yield f'{where}:{number}: a header for users includes "{target}", which is not installed'


def room_of(name):
    """The folder inside ops, and the strategy inside of an op: ops/spmm/cuda/rows/cut.hpp -> spmm, rows."""
    parts = name.split("/")
    has_strategy = len(parts) > 4 and parts[2] == "cuda" and parts[1] not in ENGINES and parts[3] != "inst"
    return parts[1], parts[3] if has_strategy else None


def ops_violations(root):
    listing = (root / "tools" / "ops_includes.txt").read_text(encoding="utf-8")
    allowed = {tuple(line.split()): 0 for line in listing.splitlines() if line and line[0] != "#"}
    for path in sorted((root / "src" / "ops").rglob("*.*")):
        name = path.relative_to(root / "src").as_posix()
        if name.count("/") == 1:
            yield f"src/{name}: belongs into a folder of ops"
            continue
        own, strategy = room_of(name)
        rank = AN_OP + 1 if LISTS_OPS.match(name) else ENGINES.get(own, AN_OP)
        for number, _, target in included(path):
            other, its_strategy = room_of(target) if target.startswith("ops/") else (own, None)
            # Within an op: files of the same strategy, or of no strategy.
            if rank <= ENGINES.get(other, AN_OP) if own != other else len({strategy, its_strategy, None}) > 2:
                rule = next((rule for rule in allowed if all(map(re.fullmatch, rule, (name, target)))), None)
                if rule:
                    allowed[rule] += 1
                else:
                    yield f"src/{name}:{number}: {own} must not include {target}"
    yield from (f"tools/ops_includes.txt: nothing needs '{' '.join(rule)}'; delete it" for rule in allowed if not allowed[rule])


def umbrella_violations(umbrella):
    listed = {target for _, _, target in included(umbrella)}
    for path in sorted(umbrella.parent.rglob("*.hpp")):
        name = path.relative_to(umbrella.parent.parent).as_posix()
        if path != umbrella and name not in listed and "/detail/" not in name:
            yield f"{name}: not included by tessera/tessera.hpp; add it there"


def way_to_cuda(path, root, known):
    """The includes from a file to the first header of CUDA's, or None where there is no such way."""
    if path not in known:
        known[path] = None  # headers that include each other end here
        for _, bracket, target in included(path, WITH_CUDA_ONLY.sub("", path.read_text(encoding="utf-8"))):
            inner = next((base / target for base in (root / "src", root / "include") if (base / target).is_file()), None)
            is_there = bracket == "<" and CUDA_HEADER.match(target)
            way = [] if is_there else way_to_cuda(inner, root, known) if inner else None
            if way is not None:
                known[path] = [target, *way]
                break
    return known[path]


def cuda_violations(root):
    known = {}
    for path in sorted((root / "src").rglob("*.cpp")):
        where = path.relative_to(root).as_posix()
        if where.endswith("cuda_backend_present.cpp") or ("/cuda/" in where and not WITHOUT_CUDA.search(where)):
            continue
        way = way_to_cuda(path, root, known)
        if way:
            yield f"{where}: is built without CUDA, and includes {' -> '.join(way)}"


def violations(root):
    yield from cuda_violations(root)
    yield from ops_violations(root)
    umbrella = root / "include" / "tessera" / "tessera.hpp"
    yield from umbrella_violations(umbrella)
    for base in (root / "include" / "tessera", root / "src"):
        for path in sorted(base.rglob("*")):
            if path.suffix in (".hpp", ".cpp", ".cuh", ".cu") and path != umbrella:
                yield from file_violations(path, base, root)


def main():
    root = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
    if not (root / "include" / "tessera").is_dir():
        sys.exit(f"check_layers: {root} is not the project's root")
    found = list(violations(root))
    print("\n".join(found) if found else "every include points downwards")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
