# SPDX-License-Identifier: Apache-2.0
"""fuseGNN's Figures 4 and 9 to 12 and Tables 3 to 5: steps, aggregation, memory and bytes of fused layers.

    tools/report.py fusegnn --device cuda --pyg python3 cora.npz pubmed.npz twin:amazon
    tools/report.py fusegnn --quick embedded:citation

Parts: steps (Figures 4, 9 and 12, Tables 3 and 4), sums (Figures 10 and 11), pyg (the same in PyG, with --pyg), bytes
(Table 5, where ncu is installed). SOURCE is what `tessera bench --data` takes; without one twin:cora and twin:pubmed are
measured, which every machine has.
"""
import csv
import shutil
import sys

from . import common

SOURCES = ["twin:cora", "twin:pubmed"]
MODELS = ["gcn", "gat"]
FORMS = ["scatter", "reduce"]
PHASES = ["batches_us", "forward_us", "loss_us", "backward_us", "optimiser_us", "device_us"]
PYG_PHASES = ["process_us", "forward_us", "backward_us", "optimiser_us"]
BYTES = {"read": "dram__bytes_read.sum", "written": "dram__bytes_write.sum", "L2": "lts__t_bytes.sum"}
OUR_KERNELS = "regex:reduce_rows|sum_tall_windows|sum_short_windows"


def hidden_of(run):
    return [16, 64] if run.options.quick else [16, 64, 128, 256, 512]


def measure_steps(run):
    """Steps of all models at each width; at the first one with all that comes before them."""
    records = []
    for source in run.options.sources:
        for hidden in hidden_of(run):
            ops = [f"step_{model}" for model in MODELS]
            if hidden == hidden_of(run)[0]:
                ops += [f"{kind}_{model}" for model in MODELS for kind in ("process", "inductive")]
            if not run.is_late(f"steps of {source}, {hidden} wide"):
                records += [{**one, "hidden": hidden} for one in run.bench(ops, [source], "--hidden", hidden)]
    return records


def measure_sums(run):
    """Aggregation at all widths: of a graph, and of edges in no order in both forms."""
    edges = [f"edges_{form}{way}" for form in FORMS for way in ("", "_backward")]
    widths = ",".join(map(str, hidden_of(run)))
    return [one for source in run.options.sources if not run.is_late(f"sums of {source}")
            for one in run.bench(["spmm", "spmm_backward", *edges], [source], "--features", widths)]


@common.needs_pyg
def measure_pyg(run):
    return run.baseline("fusegnn_torch.py", "--device", run.device, "--hidden", ",".join(map(str, hidden_of(run))),
                        "--repeats", 8 if run.options.quick else 20, *map(run.npz, run.options.sources))


def profiled(run, command):
    """The kernels that ncu saw, each with its bytes."""
    try:
        said = run.command(["ncu", "--csv", "--page", "raw", "--metrics", ",".join(BYTES.values()), *command])
    except common.Failed as problem:
        print(f"left out: {problem}", file=sys.stderr)
        return []
    lines = list(csv.reader(line for line in said.splitlines() if line.startswith('"')))
    if len(lines) < 3:
        return []
    head, units, *launches = lines
    scale = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}

    def number(row, metric):
        place = head.index(metric)
        return float(row[place].replace(",", "")) * scale[units[place]]

    return [{name: number(row, metric) for name, metric in BYTES.items()} for row in launches]


@common.needs(lambda run: run.device == "cuda" and shutil.which("ncu"), "needs --device cuda and ncu")
def measure_bytes(run):
    """Of ours the first kernel of an aggregation, of PyG all kernels of one."""
    found = []
    for source in run.options.sources:
        commands = {"tessera": ["--kernel-name", OUR_KERNELS, "--launch-count", 1, "--kill", "yes", run.program, "bench",
                                "spmm", "--device", "cuda", "--data", source, "--features", 256, "--quick"]}
        if run.options.pyg:
            commands["PyG"] = ["--profile-from-start", "off", run.options.pyg, common.BASELINES / "fusegnn_torch.py",
                               "--device", "cuda", "--aggregate", 256, run.npz(source)]
        for who, command in commands.items():
            launches = profiled(run, command)
            if launches:
                sums = {name: sum(one[name] for one in launches) / 1e6 for name in BYTES}
                found.append({"graph": common.graph_of(source), "who": who, "kernels": len(launches), **sums})
    return found


PARTS = {"steps": measure_steps, "sums": measure_sums, "pyg": measure_pyg, "bytes": measure_bytes}


def figure(record, name, unit=1, digits=1):
    value = (record or {}).get("figures", {}).get(name)
    return "" if value is None else f"{value / unit:,.{digits}f}"


def microseconds(record):
    return f"{common.time_of(record):.1f}" if record else ""


def with_pyg(record, other):
    """A time, and in brackets how many times as long PyG takes as ours without a chain."""
    text = microseconds(record)
    return f"{text} ({other['mean_us'] / record['median_us']:.1f} x)" if record and other else text


class Tables:
    def __init__(self, parts):
        self.steps = common.by(parts.get("steps", []), "graph", "op", "hidden")
        self.sums = common.by(parts.get("sums", []), "graph", "op", "features")
        self.pyg = common.by(parts.get("pyg", []), "graph", "op", "hidden")
        self.bytes = parts.get("bytes", [])
        self.graphs = list(dict.fromkeys(key[0] for key in [*self.steps, *self.sums]))
        self.hidden = sorted({key[2] for key in [*self.steps, *self.sums]})

    def models(self):
        return [(graph, model) for graph in self.graphs for model in MODELS]

    def breakdown(self):
        for graph, model in self.models():
            process, step, whole = (self.steps.get((graph, f"{kind}_{model}", self.hidden[0]))
                                    for kind in ("process", "step", "inductive"))
            yield [f"{graph}, {model}", microseconds(process), figure(process, "planning_us"), microseconds(step),
                   microseconds(whole), *(figure(whole, phase) for phase in PHASES), figure(step, "launches", digits=0)]

    def pyg_breakdown(self):
        for graph, model in self.models():
            record = self.pyg.get((graph, f"step_{model}", self.hidden[0]))
            if record:
                yield [f"{graph}, {model}", f"{record['mean_us']:.1f}", *(figure(record, name) for name in PYG_PHASES),
                       figure(record, "launches", digits=0)]

    def by_width(self, kind, keys, cell):
        for graph, name in [(graph, name) for graph in self.graphs for name in keys]:
            yield [f"{graph}, {name.removeprefix('step_')}",
                   *(cell(kind.get((graph, name, width)), self.pyg.get((graph, name, width))) for width in self.hidden)]

    def forms(self):
        """A forward and a backward pass over edges in no order, and all that comes before the first of them."""
        for graph, width in [(graph, width) for graph in self.graphs for width in self.hidden]:
            row, whole = [f"{graph}, {width}"], []
            for form in FORMS:
                passes = [self.sums.get((graph, f"edges_{form}{way}", width)) for way in ("", "_backward")]
                if None in passes:
                    break
                making, times = passes[1]["figures"]["making_us"], [common.time_of(one) for one in passes]
                row += [f"{making:.1f}", *(f"{us:.1f}" for us in times)]
                whole.append((making, sum(times)))
            if len(whole) == 2:
                (scatter_once, scatter), (reduce_once, reduce) = whole
                pays = f"{(reduce_once - scatter_once) / (scatter - reduce):.0f}" if scatter > reduce else "never"
                yield row + [pays]

    def peaks(self, own, other):
        mine, theirs = (figure(one, "peak_memory_bytes", 2**20) for one in (own, other))
        return mine + (f" ({theirs})" if theirs else "")

    def speeds(self):
        """PyG's time over ours of every step that both have."""
        return {key: self.pyg[key]["mean_us"] / one["median_us"] for key, one in self.steps.items() if key in self.pyg}

    def moved(self):
        for one in self.bytes:
            yield [f"{one['graph']}, {one['who']}", one["kernels"], *(f"{one[name]:,.1f}" for name in BYTES)]


def lines(record):
    tables = Tables(record["parts"])
    speeds = tables.speeds()
    steps = [f"step_{model}" for model in MODELS]
    yield "# What fusing a layer gives training (fuseGNN)\n"
    yield "Question: how much faster are steps whose gathers, products and sums are fused, and what do they hold in memory?\n"
    pays = [int(row[-1]) for row in tables.forms() if row[-1] != "never"]
    if speeds:
        yield (f"Steps are {min(speeds.values()):.0f} to {max(speeds.values()):.0f} times as fast as PyG's where both were "
               "measured.\n" + (f"Sorting the edges first pays after {min(pays)} to {max(pays)} epochs on the same graph.\n" if pays else ""))
    yield common.where(record) + " Microseconds; every result is checked first. In brackets how many times as long PyG takes.\n"
    if tables.steps:
        yield "## Where the time of a step goes (Figure 4)\n"
        yield ("Processing, planning and the step by themselves; then a step that does all three, and where the host spent its\n"
               "time. Work of a GPU is queued in its phase; `device` is the wait for it. `launches`: of a step with the graph kept.\n")
        yield from common.table(["graph, model", "process", "plan", "step, graph kept", "step, graph new",
                                 *(phase.removesuffix("_us") for phase in PHASES), "launches"], tables.breakdown())
        if tables.pyg:
            yield "The same in PyG: the step queued, its phases each waited for.\n"
            yield from common.table(["graph, model", "step", *(name.removesuffix("_us") for name in PYG_PHASES), "launches"],
                                    tables.pyg_breakdown())
        yield "## Steps by hidden width (Figure 9, Tables 3 and 4)\n"
        yield "Ours is a recorded step, PyG's runs eagerly; both are queued many times and waited for once.\n"
        yield from common.table(["graph, model", *map(str, tables.hidden)], tables.by_width(tables.steps, steps, with_pyg))
    if tables.sums:
        yield "## Aggregation by width (Figure 10)\n"
        yield ("Gather, apply and reduce on a graph that is there; ours in a chain where it is short. PyG gathers, weights and\n"
               "scatters.\n")
        yield from common.table(["graph, pass", *map(str, tables.hidden)],
                                tables.by_width(tables.sums, ["spmm", "spmm_backward"], with_pyg))
        yield "## Aggregation from edges in no order (Figure 11)\n"
        yield ("Scatter adds each edge to its target as it comes; before the first pass it counts degrees. Reduce makes rows\n"
               "and columns of the edges first. The last column: after how many epochs on the same graph that pays.\n")
        yield from common.table(["graph, width", "scatter: before", "forward", "backward", "reduce: before", "forward",
                                 "backward", "rows pay after"], tables.forms())
    if tables.steps:
        yield "## Peak memory of training, MiB (Figure 12)\n"
        yield "Everything on the device: features, graph, plans, activations, moments. In brackets PyG's.\n"
        yield from common.table(["graph, model", *map(str, tables.hidden)], tables.by_width(tables.steps, steps, tables.peaks))
    if tables.bytes:
        yield "## Bytes moved by an aggregation of 256 features, MB (Table 5)\n"
        yield from common.table(["graph", "kernels", *BYTES], tables.moved())
    yield from common.again("fusegnn --device cuda --pyg python3 cora.npz pubmed.npz twin:amazon",
                            "The record is [fusegnn.json](fusegnn.json).")


def pages(record):
    return {"fusegnn.md": common.joined(lines(record))}
