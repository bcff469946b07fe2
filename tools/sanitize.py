#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs tests of the GPU under compute-sanitizer, a process for each.

Memcheck takes a test of odd shapes of every kernel from each suite that has one, and the tests that are not
about one kernel, of those with parameters the ones of odd shapes; racecheck takes one of every kernel, and of
the other tests those of work on the GPU. A kernel may decline all cases of a test, which then shows nothing:
the next one takes its place. A kernel of which no test compares anything is a failure.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import time

# Tests that time kernels run each of them hundreds of times; those of the CPU have nothing to check.
LEFT_OUT = re.compile(r"^(Tune|Big|Suites|Measure)|/cpu$|_cpu_")
# Kernels are parameters of the conformance bodies.
IS_KERNEL = re.compile(r"_cuda_(?!\d)")  # not the number of a GPU
# Memory, streams and plans: the kernels that they run are checked for races elsewhere.
OF_THE_HOST = re.compile(r"^(Gpu(Chain|Memory|Planning|RowOrders)|OtherGpu|Plans|SpmmPlans)")
# Bodies of odd shapes, in the order in which they are tried: the quickest first.
BODIES = [re.compile(body) for body in ("EveryWidth", "FewWidths", "Small", "Odd", "LongRows")]

# Tests that take each other's place, in that order. Without a kernel: one test, which may skip.
Group = collections.namedtuple("Group", "program tool kernel tests")


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("programs", nargs="+", metavar="PROGRAM", help="GoogleTest programs")
    parser.add_argument("--tools", default="memcheck racecheck", help="with spaces between them")
    parser.add_argument("--filter", default="*", help="tests of the GPU (a GoogleTest filter)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seconds", type=float, default=100, help="the time of one test")
    return parser.parse_args()


def names_of(program, tests):
    """The tests of a program that a filter takes."""
    listed = subprocess.run([program, "--gtest_list_tests", f"--gtest_filter={tests}"], stdout=subprocess.PIPE,
                            stderr=subprocess.DEVNULL, text=True, check=True).stdout
    suite, names = "", []
    for line in listed.splitlines():
        if line.startswith("  "):
            names.append(suite + line.split()[0])
        elif line.split("#")[0].strip().endswith("."):
            suite = line.split()[0]
    return names


def rank(name):
    """The place of a test's body among `BODIES`, or behind them."""
    found = [i for i, body in enumerate(BODIES) if body.search(name.partition(".")[2])]
    return found[0] if found else len(BODIES)


def groups_of(program, tool, names):
    alone, kernels = [], collections.defaultdict(list)
    for name in names:
        if LEFT_OUT.search(name):
            continue
        suite, _, test = name.partition(".")
        kernel = test.partition("/")[2]
        if kernel.startswith("on_cuda_"):  # dense ops: a suite and a precision
            kernel = f"{suite} {kernel}"
        if IS_KERNEL.search(kernel):
            kernels[kernel].append(name)
        elif kernel and rank(name) == len(BODIES):
            continue
        elif tool == "memcheck" or not OF_THE_HOST.match(name):
            alone.append(Group(program, tool, "", [name]))
    groups = []
    for kernel, tests in kernels.items():
        first, *others = by_suites(sorted(tests, key=rank))
        groups.append(Group(program, tool, kernel, first + [name for name in tests if name not in first]))
        if tool == "memcheck":
            groups += [Group(program, tool, kernel, other) for other in others]
    return alone + groups


def by_suites(tests):
    """Tests of odd shapes, a list for each suite; where there are none, one list of none."""
    suites = collections.defaultdict(list)
    for name in tests:
        if rank(name) < len(BODIES):
            suites[name.partition(".")[0]].append(name)
    return list(suites.values()) or [[]]


def output_of(command, seconds):
    """(exit code, or None when the time was over; what was said)"""
    threads = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                               env={**os.environ, **threads}, start_new_session=True)
    try:
        said, _ = process.communicate(timeout=seconds)
        return process.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)  # the sanitizer and the test that it started
        return None, process.communicate()[0]


def sanitized(group, test, seconds):
    """clean, skipped or bad; says which."""
    begin = time.monotonic()
    code, said = output_of(["compute-sanitizer", "--tool", group.tool, "--error-exitcode", "99", "--print-limit", "5",
                            group.program, f"--gtest_filter={test}", "--gtest_brief=1"], seconds)
    what = f"{group.tool} {test}, {time.monotonic() - begin:.0f} s"
    passed = "PASSED" in said
    # What a test says that counts its comparisons; others that show nothing are skipped.
    compared = re.findall(r"^compared \S+ (\d+)$", said, re.MULTILINE)
    shows = any(map(int, compared)) if compared else "SKIPPED" not in said
    if code is None:
        verdict, text = "bad", f"OUT OF TIME: {what}"
    elif passed and "terminated before first instrumented API call" in said:
        verdict, text = "skipped", f"no kernel: {what}"
    elif code != 0 or not passed:
        verdict, text = "bad", f"NOT CLEAN: {what}\n{said[:10000]}"
    elif shows:
        verdict, text = "clean", f"clean: {what}"
    else:
        verdict, text = "skipped", f"skipped: {what}"
    print(text, flush=True)
    return verdict


def check(group, seconds):
    """What the first of a group's tests is that shows anything."""
    for test in group.tests:
        verdict = sanitized(group, test, seconds)
        if verdict != "skipped":
            return verdict
    return "skipped"


def main():
    options = arguments()
    groups = [group for tool in options.tools.split() for program in options.programs
              for group in groups_of(program, tool, names_of(program, options.filter))]
    if not groups:
        sys.exit("nothing was checked: is there a GPU? (tessera doctor)")
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        verdicts = list(pool.map(lambda group: check(group, options.seconds), groups))
    of_kernels = {(group.tool, group.kernel) for group in groups if group.kernel}
    clean = {(group.tool, group.kernel) for group, verdict in zip(groups, verdicts) if verdict == "clean"}
    for tool, kernel in sorted(of_kernels - clean):
        print(f"NOT CHECKED: {tool} {kernel}: no test of it compared anything and was clean")
    print(f"{verdicts.count('clean')} clean, {verdicts.count('skipped')} skipped, {verdicts.count('bad')} not clean")
    return 1 if "bad" in verdicts or of_kernels - clean else 0


if __name__ == "__main__":
    sys.exit(main())
