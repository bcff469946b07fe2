#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what kernels take of what their cost models count, by a record of measured times, and writes src/ops/plan/cost_fits.hpp.

    tools/fit_costs.py --data GRAPHS [--keep FOLDER]         fit, and say how well fits of one half of the graphs do on the other
    tools/fit_costs.py --data GRAPHS --keep FOLDER --write   write the fits of all graphs, too

Takes what tools/judge_costs.py takes, and expects as it does: the build may have any fits, which are taken out first. Each line
of the table that is there is fitted anew: `start_us` and `share` with which the mean of |log(measured / expected)| is least, over
all times of the whole GPU and of 64 of its processors. Kernels that are made of others (staged ones) are counted with the fits of
these that the build has: fit, build and fit again.
"""
import collections
import math
import pathlib
import re
import statistics
import sys
import tempfile
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge_costs as judge  # noqa: E402
from reports import common  # noqa: E402

TABLE = judge.ROOT / "src/ops/plan/cost_fits.hpp"
LINE = re.compile(r'\{"([a-z0-9_/]+)", (-?[0-9.]+), (-?[0-9.]+)\}')
LEAST_LEFT = 0.15  # cost_fit.hpp
STARTS = [0.5 * step for step in range(49)]
LEAST_CASES = 20


def table():
    """{kernel: (start_us, share)} as it is."""
    return {kernel: (float(start), float(share)) for kernel, start, share in LINE.findall(TABLE.read_text(encoding="utf-8"))}


def line_of(kernel, fits):
    """The line of a kernel: the longest name that its own begins with; None where there is none."""
    name = kernel.replace("cuda/", "", 1)
    return max((line for line in fits if name == line or name.startswith(line + "_")), key=len, default=None)


def counted(us, fit):
    """What a model counted of which this is the fitted time."""
    start, share = fit
    left = us / share
    return left + start if left >= start * LEAST_LEFT / (1 - LEAST_LEFT) else left / LEAST_LEFT


def fitted(us, fit):
    start, share = fit
    return share * max(us - start, LEAST_LEFT * us)


def best(times):
    """(start_us, share) of pairs (counted, measured)."""
    found = (math.inf, 0.0, 1.0)
    for start in STARTS:
        logs = [math.log(us / fitted(count, (start, 1))) for count, us in times]
        middle = statistics.median(logs)
        found = min(found, (statistics.fmean(abs(one - middle) for one in logs), start, math.exp(middle)))
    return found[1], round(found[2], 3)


def half_of(case):
    return zlib.crc32((case["case"] if case["graph"] == "products" else case["graph"]).encode()) % 2


def counts(gpus, fits):
    """The same cases with what is counted in the place of what is expected."""
    def one(kernel, times):
        line = line_of(kernel, fits)
        return times if line is None else (counted(times[0], fits[line]), times[1])
    return {gpu: [{**case, "times": {kernel: one(kernel, times) for kernel, times in case["times"].items()}} for case in cases]
            for gpu, cases in gpus.items()}


def fits_of(gpus, fits, admits=lambda case: True):
    times = collections.defaultdict(list)
    for gpu in ("whole", "64 processors"):
        for case in filter(admits, gpus[gpu]):
            for kernel, pair in case["times"].items():
                times[line_of(kernel, fits)].append(pair)
    return {line: best(times[line]) if len(times[line]) >= LEAST_CASES else fits[line] for line in fits}


def applied(gpus, fits_for):
    """Cases with expected times by the fits of each: `fits_for(case)`."""
    def one(case, kernel, times):
        fits = fits_for(case)
        line = line_of(kernel, fits)
        return times if line is None else (fitted(times[0], fits[line]), times[1])
    return {gpu: [{**case, "times": {kernel: one(case, kernel, times) for kernel, times in case["times"].items()}} for case in cases]
            for gpu, cases in gpus.items()}


def errors(gpus, fits):
    """{line: share of its times, each by a fit of the other half, that are within 25 %}."""
    times = collections.defaultdict(list)
    for gpu in ("whole", "64 processors"):
        for case in gpus[gpu]:
            for kernel, pair in case["times"].items():
                times[line_of(kernel, fits)].append(pair)
    return {line: (len(times[line]), judge.close(times[line])) for line in fits}


def written(fits, found):
    def change(match):
        kernel = match[1]
        start, share = fits[kernel]
        return f'{{"{kernel}", {start:g}, {share:g}}}'
    lines = []
    for text in TABLE.read_text(encoding="utf-8").splitlines():
        match = LINE.search(text)
        if match:
            number, close = found[match[1]]
            text = LINE.sub(change, text).split("  //")[0].rstrip() + f"  // {close:.0%} of {number} within 25 %"
        lines.append(text)
    TABLE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def fit(chosen, folder):
    record, expectations = judge.read(chosen, folder)
    before = judge.joined(record, expectations, chosen.events_us)
    fits = table()
    gpus = counts(before, fits)
    of_halves = [fits_of(gpus, fits, lambda case, half=half: half_of(case) != half) for half in (0, 1)]
    held_out = applied(gpus, lambda case: of_halves[half_of(case)])
    everything = fits_of(gpus, fits)
    found = errors(held_out, fits)
    heads = ["cases", "mean loss", f"from {judge.LONG_US} us on", "worst", "chosen within 25 %", "all within 25 %"]
    for title, cases in (("as the build has it", before), ("by fits of the other half of the graphs", held_out)):
        yield title + "\n"
        yield from common.table(["op", "GPU", *heads], list(judge.summaries(cases, chosen.op)), 2)
    yield from common.table(["kernels", "start us", "share", "times", "within 25 %"],
                            [[line, f"{start:g}", f"{share:g}", found[line][0], f"{found[line][1]:.0%}"]
                             for line, (start, share) in everything.items()])
    if chosen.write:
        written(everything, found)


def main():
    parser = judge.parser(__doc__)
    parser.add_argument("--write", action="store_true", help="write the table")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(common.joined(fit(chosen, judge.kept(chosen, folder))))


if __name__ == "__main__":
    main()
