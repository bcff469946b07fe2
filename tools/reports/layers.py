# SPDX-License-Identifier: Apache-2.0
"""Steps of single layers and small models of PyG, plain and after `tessera.accelerate`, on a CPU.

    tools/report.py layers --pyg python3

The Python that --pyg names has torch, PyG and tessera. Steps are run by bench/python/layers.py: forty cases, which its
options --layers and --graphs name.
"""
from . import common

SCRIPT = common.ROOT / "bench" / "python" / "layers.py"
MOSTLY = 0.5  # of PyG's time


def add_options(parser):
    parser.add_argument("--threads", type=int, default=2, help="default: 2")


def measure(run):
    if not run.options.pyg:
        raise common.Missing("--pyg names no Python; it must have torch, PyG and tessera (pip install .)")
    if run.device != "cpu":
        raise common.Missing("the layers are measured on a CPU: leave --device out")
    words = ["--graphs", "small", "--seconds", 0.5] if run.options.quick else []
    return run.records([run.options.pyg, SCRIPT], "--threads", run.options.threads, *words)


PARTS = {"layers": measure}


def speed(record):
    times = [record[who].get("median_ms") for who in ("pyg", "tessera")]
    return times[0] / times[1] if all(times) else None


def summary(records, what):
    found = {f"{one['layer']} on the {one['graph']} graph": speed(one) for one in records if speed(one)}
    if not found:
        return
    worst = min(found, key=found.get)
    yield f"- {what}: {common.geometric_mean(found.values()):.1f} times as fast in the mean, {found[worst]:.2f} at worst ({worst})."


def cells(record):
    times = [f"{record[who]['median_ms']:.2f}" if "median_ms" in record[who] else "differs" for who in ("pyg", "tessera")]
    return [record["layer"], record["graph"], f"{100 * record['share']:.0f} %", *times,
            f"{speed(record):.2f}" if speed(record) else "–", *(f"{record[who]['difference']:.0e}" for who in ("pyg", "tessera"))]


def lines(record):
    records = record["parts"]["layers"]
    yield "# Layers of PyG after `tessera.accelerate`\n"
    yield "Question: how much faster does a step of each layer become on a CPU, and is any slower?\n"
    yield from summary(records, f"All {len(records)} cases")
    mostly = [one for one in records if one["share"] > MOSTLY]
    yield from summary(mostly, f"The {len(mostly)} of them in which aggregation takes more than half of PyG's time")
    yield "\n" + common.where(record)
    sizes = "2.7 k vertices and 10.6 k edges (small), 20 k vertices and 400 k edges (large)"
    yield (f"{records[0]['versions']}, {records[0]['threads']} threads, {records[0]['clock']} time. A step is the forward pass and the\n"
           f"backward pass, in fp32, of 64 features on random and skewed graphs of {sizes}; what learns nothing has no backward pass.\n"
           "PyG and Tessera take turns; medians in milliseconds. *Aggregation*: the share of PyG's forward pass that goes into\n"
           "`propagate`; of pooling, all. The differences are those of results and gradients from PyG's in double precision,\n"
           "relative to the largest number of each tensor.\n")
    yield from common.table(["layer", "graph", "aggregation", "PyG", "Tessera", "times as fast", "difference of PyG", "of Tessera"],
                            map(cells, records), 2)
    yield from common.again("layers --pyg python3", "The record is [layers.json](layers.json).")


def pages(record):
    return {"layers.md": common.joined(lines(record))}
