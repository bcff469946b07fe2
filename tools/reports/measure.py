# SPDX-License-Identifier: Apache-2.0
"""Measures what README's table shows: training by the program and in Python, beside PyG. Makes summary.json.

    tools/report.py measure --device cpu --pyg python3 --output docs/results
    tools/report.py measure --device cuda --pyg python3 --output docs/results
    tools/report.py summary --from docs/results/summary.json --output docs/results --readme README.md

The Python that --pyg names (default: this one) has torch, PyG and tessera. Each call takes a few minutes and adds its
device to the record; both are of one commit. Graphs are random ones that every machine can make. An epoch is a forward
pass, the loss, a backward pass and Adam, of two layers with 64 hidden features in fp32. The program checks its results
against a reference before it times them; in Python losses after five epochs must agree.

summary.json has "commit" and "parts": "cpu" and "cuda", each with "machine", "versions" (of torch and PyG) and "cases",
a list of {"way": "program" or "python", "size": "small" or "large", "graph", "vertices", "edges", "model", "pyg_ms",
"ours_ms"}: medians in milliseconds; "pyg_out_of_memory" names what PyG could not train.
"""
import sys

from . import common

MODELS = ["gcn", "sage", "gat"]
FEATURES, HIDDEN, CLASSES, HEADS = 128, 64, 16, 8
SMALL = ["twin:cora", "twin:pubmed"]
LARGE = {"cpu": ["generate:sbm?vertices=100000&communities=1000&mean_degree=14&inside=0.7&seed=1"],
         "cuda": ["twin:amazon", "twin:reddit"]}
QUICK = ["generate:erdos_renyi?vertices=500&edges=2000&seed=1"]
LOSSES_AGREE = 1e-3
DEVICES = "cpu and cuda"  # are parts of one record


def record_name(_):
    return "summary"


def add_options(parser):
    parser.set_defaults(pyg=sys.executable)


def graphs_of(run, device):
    """(size, the file, vertices, edges) of each graph, without features: both sides draw their own."""
    sizes = {"small": QUICK, "large": []} if run.options.quick else {"small": SMALL, "large": LARGE[device]}
    for number, (size, source) in enumerate((size, source) for size, sources in sizes.items() for source in sources):
        name = source.split(":")[1].split("?")[0] if source.startswith("twin") else f"{source.split(':')[1].split('?')[0]}_{number}"
        file = run.folder / f"{name}.npz"
        made = run.call("convert", source, "--graph-only", "-o", file)
        yield size, file, made["vertices"], made["edges"]


def measure(device, run):
    if run.device != device:
        return None
    graphs = list(graphs_of(run, device))
    epochs = run.records([run.options.pyg, common.ROOT / "bench" / "python" / "summary.py"], "--device", device, "--features",
                         FEATURES, "--classes", CLASSES, *(["--seconds", 1] if run.options.quick else []),
                         *(file for _, file, _, _ in graphs))
    if not epochs:
        raise common.Missing(f"{run.options.pyg} could not train PyG's models: it must have torch, PyG and tessera "
                             "(pip install .); --pyg names another Python")
    wrong = [one for one in epochs if (one["loss_difference"] or 0) > LOSSES_AGREE]
    if wrong:
        raise common.Missing(f"losses differ by {wrong[0]['loss_difference']:.1e} ({wrong[0]['model']} on {wrong[0]['graph']}): "
                             "times of wrong results say nothing")
    cases = []
    for size, file, vertices, edges in graphs:
        steps = run.bench([f"step_{model}" for model in MODELS], [file], "--features", FEATURES, "--hidden", HIDDEN, "--classes",
                          CLASSES, "--heads", HEADS)
        own = {one["op"].removeprefix("step_"): one["median_us"] / 1e3 for one in steps}
        for one in [one for one in epochs if one["graph"] == file.stem and one["pyg_ms"]]:
            case = {"size": size, "graph": file.stem, "vertices": vertices, "edges": edges, "model": one["model"], "pyg_ms": one["pyg_ms"]}
            cases += [{"way": "python", **case, "ours_ms": one["tessera_ms"]}] if one["tessera_ms"] else []
            cases += [{"way": "program", **case, "ours_ms": own[one["model"]]}] if one["model"] in own else []
    too_large = [f"{one['model'].upper()} on {one['graph']}" for one in epochs if not one["pyg_ms"]]
    return {"machine": run.machine, "versions": epochs[0]["versions"], "cases": cases, "pyg_out_of_memory": too_large}


PARTS = {device: lambda run, device=device: measure(device, run) for device in ("cpu", "cuda")}


def pages(record):
    print(f"measured: {', '.join(record['parts'])}; tools/report.py summary makes the table and the picture of it")
    return {}
