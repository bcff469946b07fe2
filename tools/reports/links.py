# SPDX-License-Identifier: Apache-2.0
"""Predicting links: training steps, epochs, top lists and their parts, beside PyG.

    tools/report.py links --device cuda --pyg python3 --data FOLDER
    tools/report.py links --device cpu --pyg python3 --data FOLDER

The Python that --pyg names has torch, PyG and tessera. On a GPU the part `program` trains with the program itself. A record
of the CPU has a page of its own, links_cpu.md. --data names a folder with NAME/NAME.npz of cora, pubmed, amazon-computers and
gowalla-lightgcn.
"""
from . import common

SCRIPT = common.ROOT / "bench" / "python" / "links.py"
TRAINED = ["pubmed", "amazon-computers"]
COMPARED = [  # a case, and beside whom
    ("step pubmed", "pyg"), ("step pubmed", "pyg compiled"), ("step amazon-computers", "pyg"),
    ("step amazon-computers", "pyg compiled"), ("epoch lightgcn gowalla", "pyg sparse"),
]


def record_name(options):
    return "links_cpu" if options.device == "cpu" else "links"


def measure_cases(run):
    if not run.options.pyg:
        raise common.Missing("--pyg names no Python; it must have torch, PyG and tessera (pip install .)")
    words = ["--quick", "--seconds", 0.2, "--least", 3] if run.options.quick else ["--data", run.options.data]
    if not run.options.quick and not run.options.data:
        raise common.Missing("--data names no folder with real graphs, as NAME/NAME.npz")
    threads = ["--threads", 2] if run.device == "cpu" else []
    return run.records([run.options.pyg, SCRIPT], "--device", run.device, *threads, *words)


@common.needs_gpu
def measure_program(run):
    """Medians that the program gives for its own steps."""
    names = TRAINED if not run.options.quick else []
    sources = [run.options.data / name / f"{name}.npz" for name in names] or ["embedded:citation"]
    found = []
    for source in sources:
        said = run.call("train", source, "--task", "links", "--device", run.device, "--epochs", 60 if run.options.quick else 200)
        found.append({"graph": common.graph_of(source), "model": said["model"], "step_ms": said["step_ms"],
                      "epoch_ms": said["epoch_ms"], "test": said["test"]["mean"]})
    return found


PARTS = {"cases": measure_cases, "program": measure_program}


def sides_of(record, case):
    found = common.by(record["parts"]["cases"], "case").get((case,), {}).get("sides", {})
    return {who: side for who, side in found.items() if "median_ms" in side}


def milliseconds(number):
    return f"{number:.3f}" if number < 10 else f"{number:.1f}"


def fastest(sides, begins):
    found = [who for who in sides if who.startswith(begins)]
    return min(found, key=lambda who: sides[who]["median_ms"]) if found else None


def answers(record):
    """A line for each way to run what is compared."""
    program = {one["graph"]: one for one in record["parts"].get("program") or []}
    for case, beside in COMPARED:
        sides = {**sides_of(record, f"captured {case}"), **sides_of(record, case)}
        if beside not in sides:
            continue
        theirs = sides[beside]["median_ms"]
        trained = program.get(case.partition(" ")[2], {})
        ways = {"from Python": sides.get("tessera", {}).get("median_ms"),
                "from Python by tessera.capture": sides.get("tessera captured", {}).get("median_ms"), "in the program": trained.get("step_ms")}
        found = [f"{theirs / time:.2f} times as fast {way}" for way, time in ways.items() if time]
        yield f"- {case}, beside {beside}: {', '.join(found)}."
    sides = sides_of(record, "top")
    product, listed = fastest(sides, "product"), fastest(sides, "tessera")
    if product and listed:
        yield f"- top: {sides['tessera']['median_ms'] / sides[product]['median_ms']:.2f} times as long as {product}, the best block of cuBLAS's."


def speed_of(sides):
    """Beside the first of the others."""
    others = [who for who in sides if not who.startswith("tessera") and not who.startswith("product")]
    return sides[others[0]]["median_ms"] / sides["tessera"]["median_ms"] if others and "tessera" in sides else None


def lines(record):
    cases = record["parts"].get("cases") or []
    on_gpu = record["device"] != "cpu"
    yield "# Predicting links, beside PyG\n"
    yield "Question: how long do training steps, epochs and lists of the best take, beside PyG and torch?\n"
    speeds = {one["case"]: speed_of(sides_of(record, one["case"])) for one in cases}
    known = {case: speed for case, speed in speeds.items() if speed}
    if on_gpu:
        yield from answers(record)
    elif known:
        worst = min(known, key=known.get)
        yield (f"- {common.geometric_mean(known.values()):.1f} times as fast in the mean of {len(known)} cases, {known[worst]:.2f} at "
               f"worst ({worst}).")
    yield "\n" + common.where(record)
    first = cases[0] if cases else {}
    where = "" if on_gpu else f" {first.get('threads')} threads."
    yield (f"{first.get('versions', '')}.{where} Sides run in turns, in blocks of 20 ms and more; medians, best and worst blocks in\n"
           "milliseconds. *PyG* draws negatives by `torch.randint`, which takes edges for negatives as well; its own sampler, which\n"
           "avoids them, works on the CPU. PyG's encoder keeps its normalised graph. Both sides have torch's fused Adam, and fp32\n"
           "without TF32. *Captured* steps are replayed as CUDA graphs, on both sides. Results are compared before anything is\n"
           "measured: the largest difference of a loss, score or gradient, relative to the largest number.\n")
    rows = []
    for one in cases:
        if "error" in one:
            rows.append([one["case"], one["error"], "–", "–", "–", "–", "–"])
            continue
        ours = one["sides"].get("tessera", {}).get("median_ms")
        for who, side in one["sides"].items():
            if "error" in side:
                rows.append([one["case"], f"{who}: {side['error'].split(':')[0]}", "–", "–", "–", "–", "–"])
                continue
            times = f"{side['median_ms'] / ours:.2f}" if ours else "–"
            rows.append([one["case"], who, milliseconds(side["median_ms"]), milliseconds(side["best_ms"]), milliseconds(side["worst_ms"]),
                         times, f"{one['apart']:.0e}"])
    yield from common.table(["case", "side", "median", "best", "worst", "of ours", "apart"], rows, 2)
    program = record["parts"].get("program") or []
    if program:
        yield "The program itself (`tessera train --task links`): negatives, encoder, decoder, loss and update in a step.\n"
        yield from common.table(["graph", "model", "step ms", "epoch ms with its evaluation"],
                                [[one["graph"], one["model"], milliseconds(one["step_ms"]), milliseconds(one["epoch_ms"])] for one in program
                                 if one["step_ms"]], 2)
    name = "links" if on_gpu else "links_cpu"
    yield from common.again(f"links --device {'cuda' if on_gpu else 'cpu'} --pyg python3 --data FOLDER", f"The record is [{name}.json]({name}.json).")


def pages(record):
    return {"links.md" if record["device"] != "cpu" else "links_cpu.md": common.joined(lines(record))}
