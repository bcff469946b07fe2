#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Predicting links with PyG and with tessera.links, side by side.

    python bench/python/links.py --device cuda --data FOLDER --json links.json
    python bench/python/links.py --device cpu --threads 2 --data FOLDER --json links_cpu.json

FOLDER has NAME/NAME.npz of cora, pubmed, amazon-computers and gowalla-lightgcn; --quick takes small random graphs instead.
Cases are those of link_cases.py. What two sides find is compared first, and a case whose results are too far apart is not
measured. Sides then run in turns, a block each; a block is as many runs as take 20 ms. On a GPU the host waits for it at the
end of each block. Times are medians, best and worst of all blocks. The encoder of PyG keeps its normalised graph, and all
sides have torch's fused Adam and fp32 without TF32.
"""

import argparse
import json
import platform
import statistics
import subprocess
import sys
import tempfile
import time

import torch
from link_cases import CPU, GPU, Graphs
from training import commit, versions

BLOCK_SECONDS = 0.02


class Side:
    """One that runs, and the times of its runs."""

    def __init__(self, run, wait):
        self.run, self.wait, self.times = run, wait, []
        begin = time.perf_counter()
        run()
        wait()
        self.first_ms = 1e3 * (time.perf_counter() - begin)
        self.count = 1
        self.count = max(1, round(BLOCK_SECONDS / max(self.block(), 1e-6)))
        self.times.clear()

    def block(self):
        self.wait()
        begin = time.perf_counter()
        for _ in range(self.count):
            self.run()
        self.wait()
        self.times.append((time.perf_counter() - begin) / self.count)
        return self.times[-1]

    def result(self, steps):
        scale = 1e3
        return {"median_ms": scale * statistics.median(self.times), "best_ms": scale * min(self.times),
                "worst_ms": scale * max(self.times), "first_ms": self.first_ms, "blocks": len(self.times), "runs": self.count,
                "steps": steps}


def measured(name, make, graphs, options):
    """The record of a case."""
    on_gpu = graphs.device.type == "cuda"
    wait = torch.cuda.synchronize if on_gpu else lambda: None
    record = {"case": name, "device": torch.cuda.get_device_name() if on_gpu else platform.machine(),
              "threads": torch.get_num_threads(), "commit": commit(), "versions": versions()}
    try:
        case = make(graphs)
    except Exception as error:  # one that cannot run must not end the others
        return {**record, "error": f"{type(error).__name__}: {error}"[:300]}
    record.update(apart=case.apart, bound=case.bound)
    if not case.apart <= case.bound:
        return {**record, "error": f"results are {case.apart:.1e} apart, more than {case.bound:.1e}"}
    sides, failed = {}, {}
    for who, run in case.runs.items():
        try:
            sides[who] = Side(run, wait)
        except Exception as error:
            failed[who] = {"error": f"{type(error).__name__}: {error}"[:300]}
    begin = time.perf_counter()
    rounds = 0
    while rounds < options.least or (rounds < options.most and time.perf_counter() - begin < options.seconds):
        for side in sides.values():
            side.block()
        rounds += 1
    record["sides"] = {**{who: side.result(case.steps) for who, side in sides.items()}, **failed}
    return record


def in_a_process_of_its_own(name, options):
    """The record of a case: a failure on a GPU can leave a process unable to measure anything else."""
    given = sys.argv[1:]
    if options.cases:
        at = given.index("--cases")
        given[at:at + 1 + len(options.cases)] = []
    with tempfile.NamedTemporaryFile("r", suffix=".json") as file:
        ended = subprocess.run([sys.executable, __file__, *given, "--cases", name, "--json", file.name])
        written = file.read()
    return json.loads(written)[0] if written else {"case": name, "error": f"ended with exit code {ended.returncode}"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, help="of the CPU")
    parser.add_argument("--data", help="folder with real graphs")
    parser.add_argument("--cases", nargs="+", metavar="NAME", help="default: all of the device")
    parser.add_argument("--quick", action="store_true", help="small random graphs: shows that it works")
    parser.add_argument("--seconds", type=float, default=3, help="for the turns of each case, once there were enough")
    parser.add_argument("--least", type=int, default=5, help="turns of each case")
    parser.add_argument("--most", type=int, default=30)
    parser.add_argument("--json", help="write records to this file")
    options = parser.parse_args()
    if options.device != "cpu" and not torch.cuda.is_available():
        sys.exit("there is no GPU that torch can use; --device cpu measures on the CPU")
    if not options.data and not options.quick:
        sys.exit("--data names no folder with real graphs; --quick takes small random ones")
    if options.threads:
        torch.set_num_threads(options.threads)
    torch.backends.cuda.matmul.allow_tf32 = False
    # In the caller's thread the backward passes of small steps take less time, of both sides.
    torch.autograd.set_multithreading_enabled(False)
    cases = GPU if options.device != "cpu" else CPU
    graphs = Graphs(options.data, torch.device(options.device), options.quick)
    records = []
    names = options.cases or list(cases)
    for name in names:
        if name not in cases:
            sys.exit(f"there is no case {name!r}; there are " + ", ".join(cases))
        if len(names) > 1 and options.device != "cpu":
            records.append(in_a_process_of_its_own(name, options))
        else:
            records.append(measured(name, cases[name], graphs, options))
            last = records[-1]
            print(name, last.get("error") or {who: round(side.get("median_ms", float("nan")), 3) for who, side in last["sides"].items()},
                  flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
