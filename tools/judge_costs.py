#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Judges the costs of this build by a record of measured times, without a GPU.

    tools/judge_costs.py --data GRAPHS                      by docs/results/candidates.json.gz
    tools/judge_costs.py --data GRAPHS --op spmm --strategies

Every case of the record is planned again for a GPU that need not be here (bench_candidates --expected, cmake --build build
--target bench_candidates, in a build with CUDA). For each op, on the whole GPU, on 64 of its processors and without wgmma, it
prints what default plans lose beside the fastest candidate and how many of the expected times are within 25 % of the measured
ones. Kernels that the record or the build does not have do not count. GRAPHS is a folder as TESSERA_DATA names one.
"""
import argparse
import collections
import gzip
import json
import math
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from reports import common  # noqa: E402
from reports.candidates import LONG_US, NEED_WGMMA  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
CHAIN_BELOW_US = 30  # as bench_candidates times them
EVENTS_US = 7.0
LIMITS = {"whole": "", "processors_64": "processors=64"}
GPUS = {"whole": ("whole", False), "no wgmma": ("whole", True), "64 processors": ("processors_64", False)}


def key_of(case):
    return case["graph"], case["op"], case["case"]


def sources_of(record, data):
    """What to read for each graph of the record; those that are not in the folder are named, and left out."""
    found = {path.name.split(".")[0]: path for pattern in ("*/*.npz", "suitesparse/*.mtx.gz") for path in sorted(data.glob(pattern))}
    graphs = dict.fromkeys(case["graph"] for part in record["parts"].values() for case in part)
    missing = [graph for graph in graphs if ":" not in graph and graph != "products" and graph not in found]
    if missing:
        print(f"left out, not in {data}: {', '.join(missing)}", file=sys.stderr)
    return [str(found.get(graph, graph)) for graph in graphs if graph not in missing]


def expected(program, profile, part, sources, folder):
    """{case: {kernel: expected us}} of a part; a file of an earlier call is gone on with."""
    lines = folder / f"expected_{part}.jsonl"
    done = subprocess.run([program, "--expected", profile, lines, "1e9", *sources],
                          env={**os.environ, "TESSERA_GPU_LIMITS": LIMITS[part]}, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{program} ended with {done.returncode}: {done.stderr.strip().splitlines()[-1:]}")
    cases = map(json.loads, lines.read_text(encoding="utf-8").splitlines())
    return {key_of(case): {kernel: us for kernel, us, _ in case["candidates"]} for case in cases}


def in_chain(us, part, events_us):
    """A measured time as it is in a chain of launches: whole GPUs have timed short ones so, and the others between two events."""
    return us if part == "whole" and us < CHAIN_BELOW_US else max(us - events_us, us / 4)


def joined(record, expectations, events_us):
    """{GPU: [case]}, a case with its times: (expected, measured) by kernel."""
    gpus = {}
    for gpu, (part, no_wgmma) in GPUS.items():
        gpus[gpu] = []
        for case in record["parts"].get(part, []):
            known = expectations.get(part, {}).get(key_of(case), {})
            times = {kernel: (known[kernel], in_chain(us, part, events_us)) for kernel, _, us in case["candidates"]
                     if kernel in known and not (no_wgmma and NEED_WGMMA.match(kernel))}
            if len(times) > 1:
                gpus[gpu].append({**case, "times": times})
    return gpus


def loss(case):
    """(what the plan takes over the fastest, the fastest, the kernel of the plan)."""
    chosen = min(case["times"], key=lambda kernel: case["times"][kernel][0])
    best = min(us for _, us in case["times"].values())
    return case["times"][chosen][1] / best, best, chosen


def close(times):
    times = list(times)
    return sum(1 / 1.25 <= wanted / us <= 1.25 for wanted, us in times) / max(1, len(times))


def strategy_of(kernel):
    op, _, name = kernel.split("/")
    return op + "/" + re.match(r"(list|[a-z]+)", name)[0]


def summary(cases):
    losses = [loss(case) for case in cases]
    long_ones = [one for one in losses if one[1] >= LONG_US]
    every = [times for case in cases for times in case["times"].values()]
    return [len(cases), f"{common.geometric_mean(one[0] for one in losses):.3f}",
            f"{common.geometric_mean(one[0] for one in long_ones):.3f}" if long_ones else "",
            f"{max(one[0] for one in long_ones):.2f}" if long_ones else "",
            f"{close(case['times'][one[2]] for case, one in zip(cases, losses)):.0%}", f"{close(every):.0%}"]


def strategies(cases):
    """A line for each strategy: how far its expected times are from the measured ones."""
    times = collections.defaultdict(list)
    for case in cases:
        for kernel, pair in case["times"].items():
            times[strategy_of(kernel)].append(pair)
    for strategy, pairs in sorted(times.items()):
        logs = [math.log(wanted / us) for wanted, us in pairs]
        mean = sum(logs) / len(logs)
        spread = math.sqrt(sum((one - mean) ** 2 for one in logs) / len(logs))
        yield [strategy, len(pairs), f"{math.exp(mean):.2f}", f"{math.exp(spread) - 1:.0%}", f"{close(pairs):.0%}"]


def worst(cases, count):
    for (ratio, best, chosen), case in sorted(((loss(case), case) for case in cases), key=lambda one: -one[0][0])[:count]:
        fastest = min(case["times"], key=lambda kernel: case["times"][kernel][1])
        yield [f"{case['graph']}, {case['case']}", chosen, fastest, f"{best:.1f}", f"{ratio:.2f}"]


def summaries(gpus, op=None):
    """A line for each op and GPU."""
    for name in sorted({case["op"] for case in gpus["whole"] if op in (None, case["op"])}):
        for gpu, cases in gpus.items():
            of_op = [case for case in cases if case["op"] == name]
            if of_op:
                yield [name, gpu, *summary(of_op)]


def parser(about):
    options = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--data", type=pathlib.Path, required=True, metavar="GRAPHS", help="folder of the graphs of the record")
    options.add_argument("--record", type=pathlib.Path, default=ROOT / "docs/results/candidates.json.gz")
    options.add_argument("--program", type=pathlib.Path, default=ROOT / "build/bin/bench_candidates")
    options.add_argument("--profile", default="h200", help="built-in profile of the GPU of the record (default h200)")
    options.add_argument("--events-us", type=float, default=EVENTS_US, metavar="US",
                         help=f"what a time between two events has more than one in a chain of launches (default {EVENTS_US})")
    options.add_argument("--op", help="judge this op alone")
    options.add_argument("--keep", type=pathlib.Path, metavar="FOLDER", help="keep the expected times here, and go on with those of before")
    return options


def kept(chosen, folder):
    """Where expected times go."""
    if chosen.keep is None:
        return pathlib.Path(folder)
    chosen.keep.mkdir(parents=True, exist_ok=True)
    return chosen.keep


def read(chosen, folder):
    """(the record, {part: what this build expects})."""
    opener = gzip.open if chosen.record.suffix == ".gz" else open
    with opener(chosen.record, "rt", encoding="utf-8") as file:
        record = json.load(file)
    sources = sources_of(record, chosen.data)
    return record, {part: expected(chosen.program, chosen.profile, part, sources, folder) for part in LIMITS}


def judged(chosen, folder):
    record, expectations = read(chosen, folder)
    gpus = joined(record, expectations, chosen.events_us)
    yield from common.table(["op", "GPU", "cases", "mean loss", f"from {LONG_US} us on", "worst", "chosen within 25 %", "all within 25 %"],
                            list(summaries(gpus, chosen.op)), 2)
    for op in sorted({case["op"] for case in gpus["whole"] if chosen.op in (None, case["op"])}):
        for gpu, all_cases in gpus.items():
            cases = [case for case in all_cases if case["op"] == op]
            if chosen.strategies and cases:
                yield f"{op}, {gpu}\n"
                yield from common.table(["strategy", "times", "expected over measured", "spread", "within 25 %"], list(strategies(cases)), 1)
            if chosen.worst and cases:
                yield from common.table(["case", "chosen", "fastest", "us", "loss"], list(worst(cases, chosen.worst)), 3)


def main():
    options = parser(__doc__)
    options.add_argument("--strategies", action="store_true", help="also print how far each strategy's times are off")
    options.add_argument("--worst", type=int, default=0, metavar="N", help="also print the N cases that lose most")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(common.joined(judged(chosen, kept(chosen, folder))))


if __name__ == "__main__":
    main()
