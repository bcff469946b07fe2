#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures what fuseGNN's Figures 4 and 9 to 12 and Tables 3 to 5 show and writes docs/results/fusegnn.md.

    tools/fusegnn_report.py --device cuda --commit 3bbdb77 --program build/cuda/bin/tessera cora.npz pubmed.npz twin:reddit
    tools/fusegnn_report.py --quick --commit 3bbdb77 --output /tmp embedded:karate

Figure 4, where the time of a step goes with the graph kept and with the graph new in every step; Figure 9 and Tables 3
and 4, steps by model and width; Figure 10, aggregation by width, both passes; Figure 11, aggregation from edges in no
order, each added to its target (scatter) or by rows that are made first (reduce); Figure 12, peak memory of training;
Table 5, kernels and bytes of the aggregation, where ncu is installed. --pyg PYTHON, a Python that has PyG, puts PyG's
figures beside ours (bench/baselines/fusegnn_torch.py). --seconds N begins no measurement after that; what is missing
stays empty. The records go beside the page as fusegnn.json. --only times, sums (of these, Figures 10 and 11) or bytes measures
that part alone, and --add FILE takes the other tables from such a file, as bytes can be counted while others use the GPU.
SOURCE is what `tessera bench --data` takes.
"""
import argparse
import csv
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parents[1]
MODELS = ["gcn", "gat"]
FORMS = ["scatter", "reduce"]
PHASES = ["batches_us", "forward_us", "loss_us", "backward_us", "optimiser_us", "device_us"]
BYTES = {"read": "dram__bytes_read.sum", "written": "dram__bytes_write.sum", "L2": "lts__t_bytes.sum"}


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--program", default=str(ROOT / "build" / "bin" / "tessera"))
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--quick", action="store_true", help="few widths, few repeats")
    parser.add_argument("--seconds", type=float, default=float("inf"), metavar="N", help="begin nothing after so many")
    parser.add_argument("--pyg", metavar="PYTHON", help="a Python that has PyG")
    parser.add_argument("--only", choices=["times", "sums", "bytes"],
                        help="measure only what takes a clock, of that aggregations alone, or only ncu's table")
    parser.add_argument("--add", metavar="FILE", help="a fusegnn.json whose tables stand where nothing is measured")
    parser.add_argument("--commit", default=os.environ.get("TESSERA_COMMIT", ""))
    parser.add_argument("--output", default=str(ROOT / "docs" / "results"), metavar="FOLDER")
    parser.add_argument("sources", nargs="+", metavar="SOURCE")
    options = parser.parse_args()
    if not options.commit:
        parser.error("--commit, or TESSERA_COMMIT, says what was measured")
    options.hidden = [16, 64] if options.quick else [16, 64, 128, 256, 512]
    return options


class Pyg:
    """PyG's records of all sources, by op and width: one process measures them."""

    script = str(ROOT / "bench" / "baselines" / "fusegnn_torch.py")

    def __init__(self, options, folder, deadline):
        self.options = options
        self.folder = pathlib.Path(folder)
        self.deadline = deadline
        self.known = None
        self.records = []

    def file_of(self, source):
        """The source as a file that NumPy reads, or None where it cannot be converted."""
        if source.endswith(".npz"):
            return source
        path = self.folder / (source.replace(":", "_").replace("/", "_") + ".npz")
        if not path.exists():
            command = [self.options.program, "convert", source, "-o", str(path)]
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
            if done.returncode != 0:
                print(f"left out: {' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
                return None
        return str(path)

    def measure(self):
        files = {source: file for source in self.options.sources if (file := self.file_of(source)) is not None}
        report = self.folder / "pyg.json"
        command = [self.options.pyg, self.script, "--device", self.options.device, "--hidden",
                   ",".join(map(str, self.options.hidden)), "--json", str(report), *files.values()]
        if self.options.quick:
            command += ["--repeats", "8"]
        left = self.deadline - time.monotonic()
        try:
            done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                  timeout=left if left < float("inf") else None)
            if done.returncode != 0:
                print(f"left out: {' '.join(command)}: {done.stderr.strip()[-300:]}", file=sys.stderr)
        except subprocess.TimeoutExpired:
            print("not all of PyG was measured in time", file=sys.stderr)
        self.records = json.loads(report.read_text())["records"] if report.exists() else []
        return {source: {(record["op"], record["hidden"]): record for record in self.records
                         if record["graph"] == pathlib.PurePath(file).stem} for source, file in files.items()}

    def of(self, source):
        if not self.options.pyg or (self.known is None and time.monotonic() > self.deadline):
            return {}
        if self.known is None:
            self.known = self.measure()
        return self.known.get(source, {})


class Tessera:
    """The program, and all records of its benchmarks."""

    def __init__(self, options, folder):
        self.options = options
        self.report = pathlib.Path(folder) / "report.json"
        self.records = []
        self.known = {}
        self.machine = None
        self.deadline = time.monotonic() + options.seconds
        self.pyg = Pyg(options, folder, self.deadline)

    def call(self, *words):
        if time.monotonic() > self.deadline:
            print(f"not measured, {self.options.seconds:.0f} s have passed: {' '.join(words)}", file=sys.stderr)
            return None
        command = [self.options.program, *words, "--device", self.options.device, "--json", str(self.report), "--force"]
        done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        if done.returncode not in (0, 7):
            print(f"not all was measured: {' '.join(command)}: {done.stderr.strip()[-200:]}", file=sys.stderr)
        if not self.report.exists():
            return None
        found = json.loads(self.report.read_text())
        self.report.unlink()
        return found

    def bench(self, ops, source, *flags):
        """By op and width; each source is asked for the same only once."""
        key = (tuple(ops), source, flags)
        if key not in self.known:
            quick = ["--quick"] if self.options.quick else []
            found = self.call("bench", *ops, "--data", source, *flags, *quick)
            records = found["records"] if found else []
            self.machine = self.machine or (found or {}).get("machine")
            self.records += records
            self.known[key] = {(record["op"], record["features"]): record for record in records}
        return self.known[key]

    def steps(self, source, hidden):
        """Steps of all models at a width; at the first one with all that comes before them."""
        ops = [f"step_{model}" for model in MODELS]
        if hidden == self.options.hidden[0]:
            ops += [f"{kind}_{model}" for model in MODELS for kind in ("process", "inductive")]
        return self.bench(ops, source, "--hidden", str(hidden))

    def sums(self, source):
        """Aggregation at all widths: of a graph, and of edges in no order in both forms."""
        edges = [f"edges_{form}{way}" for form in FORMS for way in ("", "_backward")]
        return self.bench(["spmm", "spmm_backward", *edges], source, "--features",
                          ",".join(map(str, self.options.hidden)))


def name_of(source):
    return pathlib.PurePath(source).stem if source.endswith(".npz") else source


def table(head, rows):
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 1)
    for row in rows:
        yield "| " + " | ".join(row) + " |"


def microseconds(record):
    return "" if record is None else f"{record.get('chain_us') or record['median_us']:.1f}"


def first(records, op):
    return next((record for (name, _), record in records.items() if name == op), None)


def figure(record, name, unit=1, digits=1):
    value = (record or {}).get("figures", {}).get(name)
    return "" if value is None else f"{value / unit:,.{digits}f}"


def with_pyg(record, other):
    """A time, in a chain where that was taken, and in brackets how many times as long as ours without a chain PyG takes."""
    text = microseconds(record)
    return text if record is None or other is None else f"{text} ({other['mean_us'] / record['median_us']:.1f} x)"


def breakdown(tessera, source):
    """Figure 4: a step with the graph kept, the phases before it, and a step that does all of it."""
    for model in MODELS:
        found = tessera.steps(source, tessera.options.hidden[0])
        process, step = first(found, f"process_{model}"), first(found, f"step_{model}")
        whole = first(found, f"inductive_{model}")
        figures = whole["figures"] if whole else {}
        yield [f"{name_of(source)}, {model}", microseconds(process),
               f"{process['figures']['planning_us']:.1f}" if process else "", microseconds(step), microseconds(whole),
               *(f"{figures[phase]:.1f}" if phase in figures else "" for phase in PHASES), figure(step, "launches", digits=0)]


def pyg_breakdown(tessera, source):
    """Figure 4: the same of PyG, its phases one by one."""
    for model in MODELS:
        record = tessera.pyg.of(source).get((f"step_{model}", tessera.options.hidden[0]))
        phases = [figure(record, name) for name in ("process_us", "forward_us", "backward_us", "optimiser_us")]
        yield [f"{name_of(source)}, {model}", f"{record['mean_us']:.1f}" if record else "", *phases, figure(record, "launches", digits=0)]


def steps(tessera, source):
    """Figure 9, Tables 3 and 4."""
    for model in MODELS:
        row = [f"{name_of(source)}, {model}"]
        for hidden in tessera.options.hidden:
            record = first(tessera.steps(source, hidden), f"step_{model}")
            row.append(with_pyg(record, tessera.pyg.of(source).get((f"step_{model}", hidden))))
        yield row


def aggregation(tessera, source):
    """Figure 10: both passes by width."""
    found = tessera.sums(source)
    for op in ("spmm", "spmm_backward"):
        row = [f"{name_of(source)}, {op}"]
        for width in tessera.options.hidden:
            record = found.get((op, width))
            row.append(with_pyg(record, tessera.pyg.of(source).get((op, width))))
        yield row


def forms(tessera, source):
    """Figure 11: a forward and a backward pass over edges in no order, and all that comes before the first of them."""
    found = tessera.sums(source)
    for width in tessera.options.hidden:
        row, whole = [f"{name_of(source)}, {width}"], []
        for form in FORMS:
            passes = [found.get((f"edges_{form}{way}", width)) for way in ("", "_backward")]
            if None in passes:
                return
            making = passes[1]["figures"]["making_us"]
            times = [float(microseconds(record)) for record in passes]
            row += [f"{making:.1f}", *(f"{time_us:.1f}" for time_us in times)]
            whole.append((making, sum(times)))
        (scatter_once, scatter), (reduce_once, reduce) = whole
        saved = scatter - reduce
        used = f"{(reduce_once - scatter_once) / saved:.0f}" if saved > 0 else "never"
        yield row + [used]


def peaks(tessera, source):
    """Figure 12: what training takes of the device's memory, by hidden width."""
    for model in MODELS:
        row = [f"{name_of(source)}, {model}"]
        for hidden in tessera.options.hidden:
            own = figure(first(tessera.steps(source, hidden), f"step_{model}"), "peak_memory_bytes", 2**20)
            other = figure(tessera.pyg.of(source).get((f"step_{model}", hidden)), "peak_memory_bytes", 2**20)
            row.append(own + (f" ({other})" if other else ""))
        yield row


def profiled(command):
    """The kernels that ncu saw, each with its bytes."""
    done = subprocess.run(["ncu", "--csv", "--page", "raw", "--metrics", ",".join(BYTES.values()), *command],
                          capture_output=True, text=True)
    lines = list(csv.reader(line for line in done.stdout.splitlines() if line.startswith('"')))
    if len(lines) < 3:
        return []
    head, units, *launches = lines
    scale = {"byte": 1, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9}

    def number(row, metric):
        place = head.index(metric)
        return float(row[place].replace(",", "")) * scale[units[place]]

    return [{name: number(row, metric) for name, metric in BYTES.items()} for row in launches]


def movement(tessera, source):
    """Table 5: the bytes of a forward aggregation, from ncu."""
    own = profiled(["--kernel-name", "regex:reduce_rows|sum_tall_windows|sum_short_windows", "--launch-count", "1", "--kill", "yes",
                    tessera.options.program, "bench", "spmm", "--device", "cuda", "--data", source, "--features", "256", "--quick"])
    found = [("tessera", own)]
    file = tessera.pyg.file_of(source) if tessera.options.pyg and time.monotonic() < tessera.deadline else None
    if file is not None:
        found.append(("PyG", profiled(["--profile-from-start", "off", tessera.options.pyg, Pyg.script, "--device", "cuda",
                                       "--aggregate", "256", file])))
    for who, launches in found:
        if launches:
            sums = [sum(numbers[name] for numbers in launches) / 1e6 for name in BYTES]
            yield [f"{name_of(source)}, {who}", str(len(launches)), *(f"{megabytes:,.1f}" for megabytes in sums)]


def sections(options, tessera):
    """Every table: its title, its head, its rows by source, and a note."""
    times = [
        ("Figure 4: where the time of a step goes", ["graph, model", "process", "plan", "step, graph kept", "step, graph new"] +
         [phase.removesuffix("_us") for phase in PHASES] + ["launches"],
         lambda source: breakdown(tessera, source),
         "Processing, planning and the step by themselves; then a step that does all three, and where this process spent its "
         "time. Work of a GPU is queued in its phase; `device` is the wait for it. `launches` are those of a step whose graph is kept."),
        ("Figure 9, Tables 3 and 4: steps by hidden width", ["graph, model", *map(str, options.hidden)],
         lambda source: steps(tessera, source),
         "Ours is a recorded step, PyG's runs eagerly; both are queued many times and waited for once. In brackets how many times as long PyG takes." if options.pyg else ""),
        ("Figure 10: aggregation by width", ["graph, pass", *map(str, options.hidden)],
         lambda source: aggregation(tessera, source), "Gather-apply-reduce on a graph that is there." +
         (" Ours in a chain where it is short. In brackets how many times as long PyG takes (gathered, weighted, scattered; the mean of many queued, "
          "the host's time included) as one of ours between two events." if options.pyg else "")),
        ("Figure 11: aggregation and format conversion", ["graph, width", "scatter: before", "forward", "backward",
                                                          "reduce: before", "forward", "backward", "rows pay after"],
         lambda source: forms(tessera, source),
         "GCN's sum over edges in no order. Scatter adds each edge to its target as it comes; before the first pass it "
         "counts degrees. Reduce makes rows and columns of the edges first, and plans on them. The last column: after how "
         "many epochs (a forward and a backward pass) of the same graph that pays."),
        ("Figure 12: peak memory of training, MiB", ["graph, model", *map(str, options.hidden)],
         lambda source: peaks(tessera, source), "By hidden width. Everything on the device: features, graph, plans, activations, "
         "moments." + (" In brackets PyG's." if options.pyg else "")),
    ]
    if options.pyg:
        times.insert(1, ("Figure 4: the same in PyG", ["graph, model", "step", "process", "forward", "backward", "optimiser", "launches"],
                         lambda source: pyg_breakdown(tessera, source), "The step queued, its phases each waited for."))
    of_bytes = ("Table 5: data movement of an aggregation of 256 features, MB", ["graph", "kernels", *BYTES],
                lambda source: movement(tessera, source), "From ncu: of ours the first kernel of an aggregation alone, of PyG all kernels of one.")
    has_profiler = options.device == "cuda" and shutil.which("ncu")
    if options.only == "sums":
        times = [one for one in times if one[0].startswith(("Figure 10", "Figure 11"))]
    return ([] if options.only == "bytes" else times) + ([of_bytes] if options.only in (None, "bytes") and has_profiler else [])


class Ended(Exception):
    """Somebody wants this to end: what was measured is written."""


def end(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    raise Ended


def tables(options, tessera):
    """Measured, each source after the other; then those of --add that were not."""
    measured = []
    try:
        for title, head, rows, note in sections(options, tessera):
            measured.append({"title": title, "head": head, "note": note, "rows": []})
            for source in options.sources:
                measured[-1]["rows"] += rows(source)
    except Ended:
        print("ended before all was measured", file=sys.stderr)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    titles = {one["title"] for one in measured}
    added = json.loads(pathlib.Path(options.add).read_text())["tables"] if options.add else []
    return sorted(measured + [one for one in added if one["title"] not in titles], key=lambda one: one["title"].startswith("Table 5"))


def page(options, found):
    yield "# fuseGNN's figures"
    yield ""
    where = "on a GPU" if options.device == "cuda" else "on the CPU"
    yield f"Made by `tools/fusegnn_report.py` {where}; commit {options.commit}, records in `fusegnn.json`. Microseconds; every result is checked first."
    for one in found:
        yield ""
        yield f"## {one['title']}"
        yield ""
        if one["note"]:
            yield one["note"]
            yield ""
        yield from table(one["head"], one["rows"])


def main():
    options = arguments()
    signal.signal(signal.SIGTERM, end)
    output = pathlib.Path(options.output)
    with tempfile.TemporaryDirectory() as folder:
        tessera = Tessera(options, folder)
        found = tables(options, tessera)
    (output / "fusegnn.md").write_text("\n".join(page(options, found)) + "\n")
    (output / "fusegnn.json").write_text(json.dumps({"commit": options.commit, "machine": tessera.machine, "tables": found,
                                                     "records": tessera.records, "pyg": tessera.pyg.records}, indent=1) + "\n")
    print(f"wrote {output / 'fusegnn.md'}")


if __name__ == "__main__":
    main()
