# SPDX-License-Identifier: Apache-2.0
"""What plans would choose and expect on GPUs that need not be there. Nothing is measured.

    tools/report.py other_gpus
    tools/report.py other_gpus twin:cora generate:rmat?scale=16&edges=1000000&seed=1

Needs a program with CUDA, which has the kernels, and no GPU: `tessera plan --device-profile` plans every op on every
graph for each of the built-in profiles.
"""
from . import common

SOURCES = ["twin:pubmed", "twin:molecules", "twin:amazon", "twin:rmat17", "twin:proteins"]
QUICK = ["generate:erdos_renyi?vertices=500&edges=2000&seed=1"]
GPUS = {"H200": "h200", "H100": "h100", "A100": "a100", "L40S": "l40s", "B200": "b200"}
OPS = {"spmm": ("Sums over neighbours", []), "sddmm": ("Dot products on edges", []),
       "attention": ("Attention, GAT with one head", []), "aggregate_update": ("Sums and a product in one op", [])}
PRECISIONS = ["fp32", "bf16"]
WIDTH = 128


def measure(run):
    if not run.call("doctor")["build"]["cuda"]:
        raise common.Missing("the program was built without CUDA, and has no kernels of GPUs: build the preset cuda, and name "
                             "its program with --program")
    found = []
    for source in QUICK if run.options.quick else run.options.sources:
        path = run.folder / "graph.tsr"
        run.command([run.program, "convert", source, "-o", path, "--force"])
        for op, (_, flags) in OPS.items():
            for precision in PRECISIONS:
                for gpu, profile in GPUS.items():
                    plan = run.call("plan", path, "--op", op, "--features", WIDTH, "--precision", precision, *flags, "--device-profile",
                                    profile)
                    chosen = next(one for one in plan["candidates"] if one["verdict"] == "chosen")
                    found.append({"graph": common.name_of(source), "edges": plan["edges"], "op": op, "precision": precision, "gpu": gpu,
                                  "kernel": plan["kernel"], "expected_us": round(chosen["predicted_us"], 2)})
    return found


PARTS = {"plans": measure}


def kernel_name(plan):
    return plan["kernel"].rsplit("/", 1)[-1]


def cell(plan):
    us = plan["expected_us"]
    return f"{us:,.0f} {kernel_name(plan)}" if us >= 100 else f"{us:.3g} {kernel_name(plan)}"


def op_table(plans, op):
    cells = {(plan["graph"], plan["precision"], plan["gpu"]): plan for plan in plans if plan["op"] == op}
    rows = dict.fromkeys((plan["graph"], plan["precision"], plan["edges"]) for plan in plans)
    yield f"## {OPS[op][0]}\n"
    yield from common.table(["graph", "edges", "type", *GPUS],
                            [[graph, f"{edges:,}", precision, *(cell(cells[graph, precision, gpu]) for gpu in GPUS)]
                             for graph, precision, edges in rows])


def changed(plans):
    """In how many cases a GPU gets another kernel than the H200."""
    first = {(plan["graph"], plan["op"], plan["precision"]): plan["kernel"] for plan in plans if plan["gpu"] == "H200"}
    others = [plan for plan in plans if plan["gpu"] != "H200"]
    return sum(plan["kernel"] != first[plan["graph"], plan["op"], plan["precision"]] for plan in others), len(others)


def lines(record):
    plans = record["parts"]["plans"]
    other, all_others = changed(plans)
    yield "# What plans expect on other GPUs\n"
    yield "Question: which kernels would run on a GPU that is not here, and how long should they take?\n"
    yield ("**Not measured.** Costs were fitted on an H200, whose profile was measured; the others are data sheets, with what these do\n"
           "not state scaled from the H200 (`tessera doctor --device-profile a100` shows one). `tessera calibrate` measures the profile\n"
           f"of a GPU that is there. In {other} of {all_others} cases another kernel is chosen than on the H200.\n")
    yield (f"Microseconds that the chosen kernel is expected to take, and its name; {WIDTH} features. Commit `{record['commit']}`, "
           f"{record['date']}.\n")
    for op in OPS:
        yield from op_table(plans, op)
    yield from common.again("other_gpus", "The record is [other_gpus.json](other_gpus.json).")


def pages(record):
    return {"other_gpus.md": common.joined(lines(record))}
