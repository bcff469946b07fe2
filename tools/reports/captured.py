# SPDX-License-Identifier: Apache-2.0
"""Captured training steps and reductions of groups in Python, beside PyG, torch and torch_scatter.

    tools/report.py captured --device cuda --pyg python3

The Python that --pyg names has torch, PyG and tessera, and torch_scatter where that is to be compared. Both parts are run by
bench/python/captured.py; the program's steps by `tessera bench`.
"""
import json

from . import common

SCRIPT = common.ROOT / "bench" / "python" / "captured.py"
STEPS = {"step_gcn": [], "step_sage": [], "step_gin": [], "step_gat": ["--heads", 8], "step_gatv2": ["--heads", 8]}
WIDTHS = ["--features", 1433, "--hidden", 64, "--classes", 7]


def need_python(run):
    if not run.options.pyg:
        raise common.Missing("--pyg names no Python; it must have torch, PyG and tessera (pip install .)")


def measured(run, part, *words):
    need_python(run)
    quick = ["--quick"] if run.options.quick else []
    return run.records([run.options.pyg, SCRIPT], "--device", run.device, "--parts", part, *words, *quick)


def measure_steps(run):
    need_python(run)
    program = [one for step, heads in STEPS.items() for one in run.bench([step], ["twin:cora"], *WIDTHS, *heads, "--precision", "fp32")]
    path = run.folder / "program.json"
    path.write_text(json.dumps({"records": program}))
    return measured(run, "steps", "--program-steps", path)


def measure_reductions(run):
    return measured(run, "reductions")


PARTS = {"steps": measure_steps, "reductions": measure_reductions}


def ratio(one, other):
    return f"{one / other:.2f}" if one and other else "–"


def milliseconds(time):
    return "–" if time is None else f"{time:.3f}"


def step_lines(records):
    yield "## Steps\n"
    rows = [[one["model"], *(milliseconds(one[key]) for key in ("pyg_eager_ms", "pyg_captured_ms", "tessera_captured_ms", "program_ms")),
             ratio(one["pyg_eager_ms"], one["tessera_captured_ms"]), ratio(one["pyg_captured_ms"], one["tessera_captured_ms"]),
             ratio(one["tessera_captured_ms"], one["program_ms"])] for one in records]
    yield from common.table(["model", "PyG eager", "PyG captured", "captured", "program", "PyG eager / captured", "PyG captured / captured",
                             "captured / program"], rows)


def best_other(one):
    return min((time, name) for name, time in one["ms"].items() if name != "tessera")


def reduction_lines(records, order):
    chosen = [one for one in records if one["order"] == order and "tessera" in one["ms"] and len(one["ms"]) > 1]
    speeds = [best_other(one)[0] / one["ms"]["tessera"] for one in chosen]
    if not chosen:
        return
    yield f"## By {'a sorted' if order == 'sorted' else 'an unsorted'} index\n"
    yield f"{common.geometric_mean(speeds):.2f} times as fast as the best other in the mean of {len(chosen)} cases, {min(speeds):.2f} at worst.\n"
    made = order == "unsorted"
    rows = [[one["reduce"], one["entries"], one["groups"], one["features"], one["spread"], milliseconds(one["ms"]["tessera"]),
             milliseconds(best_other(one)[0]), best_other(one)[1], f"{speed:.2f}", *([milliseconds(one["order_ms"])] if made else [])]
            for one, speed in zip(chosen, speeds)]
    yield from common.table(["reduction", "entries", "groups", "features", "spread", "Tessera", "best other", "which", "times as fast",
                             *(["order made in"] if made else [])], rows)


def lines(record):
    parts = record["parts"]
    yield "# Captured loops and reductions in Python\n"
    yield "Question: what do captured steps gain, and how fast are reductions of groups beside torch's and torch_scatter's?\n"
    yield common.where(record)
    versions = ", ".join(sorted({one["versions"] for part in parts.values() for one in part}))
    yield (f"{versions}. Medians in milliseconds of what was measured in turns, each compared with PyG's losses or its definition in\n"
           "fp64 first. PyG has its best settings: norms that are kept, self loops that are there already, an edge_index or a\n"
           "sparse matrix, whichever is faster. Steps are forward, loss, backward and Adam of two layers with 64 hidden features on\n"
           "a graph of cora's size; the program's GIN has batch norms.\n")
    if parts.get("steps"):
        yield from step_lines(parts["steps"])
    for order in ("sorted", "unsorted"):
        yield from reduction_lines(parts.get("reductions", []), order)
    yield from common.again("captured --device cuda --pyg python3", "The record is [captured.json](captured.json).")


def pages(record):
    return {"captured.md": common.joined(lines(record))}
