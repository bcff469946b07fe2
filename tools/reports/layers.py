# SPDX-License-Identifier: Apache-2.0
"""Steps of single layers and small models of PyG, plain and after `tessera.accelerate`.

    tools/report.py layers --pyg python3
    tools/report.py layers --device cuda --pyg python3

The Python that --pyg names has torch, PyG and tessera. Steps are run by bench/python/layers.py: forty cases, which its
options --layers and --graphs name. A record of a GPU has a page of its own, layers_gpu.md.
"""
from . import common

SCRIPT = common.ROOT / "bench" / "python" / "layers.py"
MOSTLY = 0.5  # of PyG's time
SIZES = {"small": "2.7 k vertices and 10.6 k edges", "large": "20 k vertices and 400 k edges", "arxiv": "169 k vertices and 2.3 M edges"}


def record_name_of(on_gpu):
    return "layers_gpu" if on_gpu else "layers"


def record_name(options):
    return record_name_of(options.device != "cpu")


def add_options(parser):
    parser.add_argument("--threads", type=int, default=2, help="default: 2")


def measure(run):
    if not run.options.pyg:
        raise common.Missing("--pyg names no Python; it must have torch, PyG and tessera (pip install .)")
    words = ["--graphs", "small", "--seconds", 0.5] if run.options.quick else []
    return run.records([run.options.pyg, SCRIPT], "--device", run.device, "--threads", run.options.threads, *words)


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
    if "error" in record:
        return [record["layer"], record["graph"], record["error"].split(":")[0], *["–"] * 5]
    times = [f"{record[who]['median_ms']:.2f}" if "median_ms" in record[who] else "differs" for who in ("pyg", "tessera")]
    return [record["layer"], record["graph"], f"{100 * record['share']:.0f} %", *times,
            f"{speed(record):.2f}" if speed(record) else "–", *(f"{record[who]['difference']:.0e}" for who in ("pyg", "tessera"))]


def lines(record):
    records, on_gpu = record["parts"]["layers"], record["device"] != "cpu"
    yield "# Layers of PyG after `tessera.accelerate`" + (" on a GPU\n" if on_gpu else "\n")
    yield f"Question: how much faster does a step of each layer become on a {'GPU' if on_gpu else 'CPU'}, and is any slower?\n"
    right = [one for one in records if "error" not in one]
    yield from summary(right, f"All {len(right)} cases")
    graphs = list(dict.fromkeys(one["graph"] for one in right))
    mostly = [one for one in right if one["share"] > MOSTLY and one["graph"] == graphs[-1]] if on_gpu else [
        one for one in right if one["share"] > MOSTLY]
    where = f" on the {graphs[-1]} graph" if on_gpu else ""
    yield from summary(mostly, f"The {len(mostly)} of them{where} in which aggregation takes more than half of PyG's time")
    yield "\n" + common.where(record)
    sizes = ", ".join(f"{SIZES.get(graph, 'another size')} ({graph})" for graph in graphs)
    clock = "PyG and Tessera take turns of 20 ms, eager" if on_gpu else (f"{records[0]['threads']} threads, {records[0]['clock']} time. "
                                                                         "PyG and Tessera take turns")
    yield (f"{records[0]['versions']}. {clock}; medians in milliseconds. A step is the forward pass and the\n"
           f"backward pass, in fp32, of 64 features on random and skewed graphs of {sizes}; what learns nothing has no backward pass.\n"
           "*Aggregation*: the share of PyG's forward pass that goes into `propagate`; of pooling, all. The differences are those\n"
           "of results and gradients from PyG's in double precision, relative to the largest number of each tensor.\n")
    yield from common.table(["layer", "graph", "aggregation", "PyG", "Tessera", "times as fast", "difference of PyG", "of Tessera"],
                            map(cells, records), 2)
    name = record_name_of(on_gpu)
    yield from common.again(f"layers {'--device cuda ' if on_gpu else ''}--pyg python3", f"The record is [{name}.json]({name}.json).")


def pages(record):
    return {record_name_of(record["device"] != "cpu") + ".md": common.joined(lines(record))}
