#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits what kernels take of what their cost models count, by a record of measured times, and writes src/ops/plan/cost_fits.hpp.

    tools/fit_costs.py --data GRAPHS [--keep FOLDER]         fit, and say how well fits of one half of the graphs do on the other
    tools/fit_costs.py --data GRAPHS --keep FOLDER --write   write the fits of all graphs, too

Takes what tools/judge_costs.py takes, and expects as it does: the build may have any fits, which are taken out first. Each line
of the table that is there is fitted anew: `start_us` and `share` with which the mean of |log(measured / expected)| is least, over
all times of the whole GPU and of 64 of its processors. Kernels that are made of others (staged ones) are counted with the fits of
these that the build has: fit, build and fit again. Lines of several shares are fitted by what the build counts, all those of an op
together. A kernel has the line of its name, or those that begin with it and a slash, one for each of its passes; a line that is
no kernel's counts for all of the op.
"""
import collections
import json
import math
import pathlib
import re
import statistics
import sys
import tempfile
import typing
import zlib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import judge_costs as judge  # noqa: E402
from reports import common  # noqa: E402

TABLE = judge.ROOT / "src/ops/plan/cost_fits.hpp"
LINE = re.compile(r'\{"([a-z0-9_/]+)", (-?[0-9.]+), (-?[0-9.]+)\}')
COUNTED = re.compile(r'\{"([a-z0-9_/]+)", \{([0-9., ]+)\}\}')
LEAST_LEFT = 0.15  # cost_fit.hpp
LAUNCH_US = 1.1  # there, too
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


def write(lines, found):
    """Writes what is fitted into the table; `found`: {line: (times, share of them within 25 %)}."""
    texts = []
    for text in TABLE.read_text(encoding="utf-8").splitlines():
        match = LINE.search(text) or COUNTED.search(text)
        if match:
            text = text[:match.start()] + f'{{"{match[1]}", {lines[match[1]]}}}' + text[match.end():].split("  //")[0].rstrip()
            if match[1] in found:
                text += f"  // {found[match[1]][1]:.0%} of {found[match[1]][0]} within 25 %"
        texts.append(text)
    TABLE.write_text("\n".join(texts) + "\n", encoding="utf-8")


def counted_table():
    """{line: [share]} as it is."""
    return {line: [float(one) for one in shares.split(",")] for line, shares in COUNTED.findall(TABLE.read_text(encoding="utf-8"))}


def notes(folder):
    """{(part, case): {line: (launches, [count])}} of files that this build has written."""
    found = {}
    for part in judge.LIMITS:
        for text in (folder / f"expected_{part}.jsonl").read_text(encoding="utf-8").splitlines():
            case = json.loads(text)
            found[part, judge.key_of(case)] = {line: (launches, counts) for line, launches, *counts in case.get("counts", [])}
    return found


def skips(case, line):
    """Whether a kernel had less to do than is counted: these leave out the parts of an adjacency matrix that have no edge."""
    return case["case"].endswith("adjacency") and line in ("bit_gemm/planes", "bit_gemm/bytes")


def own_lines(kernel, lines):
    """Those of several shares that a kernel may have."""
    name = kernel.replace("cuda/", "", 1)
    passes = [line for line in lines if line.startswith(name + "/")]
    return passes or [line for line in [line_of(kernel, lines)] if line]


class Row(typing.NamedTuple):
    """A time of a kernel, and what it is made of."""
    gpu: str
    case: dict
    kernel: str
    line: str  # the last of its own
    counts: dict  # {(line, index): count}
    started_us: float
    us: float

    def expected(self, shares):
        return self.started_us + sum(shares[key] * count for key, count in self.counts.items())


def rows_of(gpus, lines, noted):
    """{op: [Row]} of the kernels that have lines of several shares."""
    rows = collections.defaultdict(list)
    own = {kernel: own_lines(kernel, lines) for cases in gpus.values() for case in cases for kernel in case["times"]}
    owned = {line for each in own.values() for line in each}
    for gpu, cases in gpus.items():
        for case in cases:
            counts = noted[judge.GPUS[gpu][0], judge.key_of(case)]
            shared = [line for line in counts if line in lines and line.startswith(case["op"] + "/") and line not in owned]
            for kernel, (_, us) in case["times"].items():
                passes = [line for line in own[kernel] if line in counts]
                if not passes:
                    continue
                together = [*passes, *shared]
                found = {(line, i): count for line in together for i, count in enumerate(counts[line][1]) if i < len(lines[line])}
                started = LAUNCH_US * sum(counts[line][0] for line in together)
                rows[case["op"]].append(Row(gpu, case, kernel, passes[-1], found, started, us))
    return rows


def least_shares(rows, rounds=12, turns=40):
    """{(line, index): share}, none negative, with which the mean of |log(measured / expected)| is about least."""
    shares = collections.defaultdict(float)
    holders = collections.defaultdict(list)
    for i, row in enumerate(rows):
        for key, count in row.counts.items():
            if count > 0:
                holders[key].append((i, count))
    weights = [1 / row.us for row in rows]
    for _ in range(rounds):
        left = [row.us - row.expected(shares) for row in rows]
        for _ in range(turns):
            for key, held in holders.items():
                square = sum((weights[i] * count) ** 2 for i, count in held)
                step = max(sum(weights[i] ** 2 * count * left[i] for i, count in held) / square, -shares[key])
                shares[key] += step
                for i, count in held:
                    left[i] -= step * count
        # Large errors count for no more than their size.
        errors = [abs(math.log(max(row.expected(shares), row.us / 100) / row.us)) for row in rows]
        weights = [1 / (row.us * math.sqrt(max(error, 0.03))) for error, row in zip(errors, rows)]
    return shares


def fit_counts(gpus, noted):
    """({line: [share]}, {line: errors}, the same cases by shares of the other half of the graphs)."""
    lines = counted_table()
    found, held_out, times = dict(lines), {}, collections.defaultdict(list)
    for rows in rows_of(gpus, lines, noted).values():
        fitted_rows = [row for row in rows if row.gpu != "no wgmma" and not skips(row.case, row.line)]
        shares = least_shares(fitted_rows)
        halves = [least_shares([row for row in fitted_rows if half_of(row.case) != half]) for half in (0, 1)]
        for row in rows:
            us = row.expected(halves[half_of(row.case)])
            held_out[id(row.case), row.kernel] = us
            if row.gpu != "no wgmma" and not skips(row.case, row.line):
                times[row.line].append((us, row.us))
        for line in {line for row in rows for line, _ in row.counts}:
            found[line] = [shares[line, i] for i in range(len(lines[line]))]
    cases = {gpu: [{**case, "times": {kernel: (held_out.get((id(case), kernel), pair[0]), pair[1])
                                      for kernel, pair in case["times"].items()}} for case in of_gpu]
             for gpu, of_gpu in gpus.items()}
    return found, {line: (len(pairs), judge.close(pairs)) for line, pairs in times.items()}, cases


def fit(chosen, folder):
    record, expectations = judge.read(chosen, folder)
    before = judge.joined(record, expectations, chosen.events_us)
    shares, found, by_counts = fit_counts(before, notes(folder))
    fits = table()
    gpus = counts(by_counts, fits)
    of_halves = [fits_of(gpus, fits, lambda case, half=half: half_of(case) != half) for half in (0, 1)]
    held_out = applied(gpus, lambda case: of_halves[half_of(case)])
    everything = fits_of(gpus, fits)
    found |= errors(held_out, fits)
    heads = ["cases", "mean loss", f"from {judge.LONG_US} us on", "worst", "chosen within 25 %", "all within 25 %"]
    for title, cases in (("as the build has it", before), ("by fits of the other half of the graphs", held_out)):
        yield title + "\n"
        yield from common.table(["op", "GPU", *heads], list(judge.summaries(cases, chosen.op)), 2)
    lines = {line: f"{start:g}, {share:g}" for line, (start, share) in everything.items()}
    lines |= {line: "{" + ", ".join(f"{one:.4g}" for one in each) + "}" for line, each in shares.items()}
    errors_of = {line: [number, f"{close:.0%}"] for line, (number, close) in found.items()}
    yield from common.table(["kernels", "fit", "times", "within 25 %"],
                            [[line, text, *errors_of.get(line, ["", ""])] for line, text in lines.items()])
    if chosen.write:
        write(lines, found)


def main():
    parser = judge.parser(__doc__)
    parser.add_argument("--write", action="store_true", help="write the table")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print(common.joined(fit(chosen, judge.kept(chosen, folder))))


if __name__ == "__main__":
    main()
