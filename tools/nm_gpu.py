# SPDX-License-Identifier: Apache-2.0
"""What sparse tensor cores are worth on a GPU: products of matrices against cuSPARSE and our other kernels, and training."""
import json
import math
import pathlib
import subprocess
import sys
import tempfile

WIDTHS = [64, 128, 256, 512]
MODELS = ["gcn", "sage", "cheb", "sgc"]
GRAPHS = ["cora", "citeseer", "facebook-page-page", "amazon-computers", "coauthor-cs", "corafull-structure", "coauthor-physics"]

HEAD = """# Sparse tensor cores on a GPU

Made by `tools/nm_report.py FOLDER --device cuda --data GRAPHS` on one NVIDIA H200 at commit {commit}; nm_cuda.json has every
number. Products are timed one by one, warm caches, median; every kernel is the fastest of its group by timing.

- `2:4` are the kernels on sparse tensor cores (`nm_16`, `nm_128`, `nm_256`) on the matrix as it comes: an order of columns within each
  window makes every row 2:4.
- `2:4, ordered` are the same after `tessera reorder --method nm --pattern 1:2:4`, which orders the vertices themselves.
- `tiles` are our kernels on dense tensor cores, `plan` is what a plan takes of all deterministic ones, `cuSPARSE` the fastest of its
  algorithms, ours excluded. –: not measured.
"""


def run(command):
    """A command that may fail; what it says then is printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"failed ({done.returncode}): {' '.join(command)}: {done.stderr.strip()[-200:]}", file=sys.stderr)
    return done


def bench(program, sources, precisions, widths, kernel):
    with tempfile.TemporaryDirectory() as folder:
        output = str(pathlib.Path(folder) / "bench.json")
        command = [program, "bench", "spmm", "--device", "cuda", "--precision", ",".join(precisions), "--features",
                   ",".join(map(str, widths)), "--tune", "measured", "--quick", "--json", output, "--quiet"]
        command += ["--kernel", kernel] if kernel else []
        command += ["--allow-nondeterministic"] if kernel and "cusparse" in kernel else []
        for source in sources:
            command += ["--data", str(source)]
        run(command)
        return json.loads(pathlib.Path(output).read_text())["records"] if pathlib.Path(output).exists() else []


def ordered_copies(program, sources, folder):
    copies = []
    for source in sources:
        copy = pathlib.Path(folder) / (source.name.split(".")[0] + ".tsr")
        done = run([program, "reorder", str(source), "--method", "nm", "--pattern", "1:2:4", "--graph-only", "--duplicates", "first",
                    "-o", str(copy)])
        if done.returncode == 0:
            copies.append(copy)
    return copies


def measure_products(program, sources, widths, precisions=("bf16", "fp32")):
    """Lists of records, as they come."""
    with tempfile.TemporaryDirectory() as folder:
        ordered = ordered_copies(program, sources, folder)
        for form, kernel, data in (("2:4", "spmm/cuda/nm*", sources), ("cuSPARSE", "spmm/cuda/cusparse*", sources),
                                   ("plan", None, sources), ("2:4, ordered", "spmm/cuda/nm*", ordered),
                                   ("tiles", "spmm/cuda/tall*", sources)):
            keep = ("graph", "features", "precision", "kernel", "median_us", "floor_us", "max_error")
            yield [{"form": form, **{key: record[key] for key in keep}}
                   for record in bench(program, data, precisions, widths, kernel)]


# The communities alone of proteins-size and reddit-size: the edges that tall windows share.
DENSE_PARTS = {"proteins-size, communities": "sbm?vertices=132534&communities=100&mean_degree=450&inside=1",
               "reddit-size, communities": "sbm?vertices=232965&communities=50&mean_degree=381&inside=1"}
DENSE_KERNELS = ["tall_64_long", "tall_128", "nm_128", "nm_256"]
TWINS = {"proteins-size": "twin:proteins", "reddit-size": "twin:reddit"}
TWIN_KERNELS = ["split_128", "nm_split_128", "nm_split_256"]


def measure_dense(program, widths):
    with tempfile.TemporaryDirectory() as folder:
        for sources, kernels in ((DENSE_PARTS, DENSE_KERNELS), (TWINS, TWIN_KERNELS)):
            for name, source in sources.items():
                path = pathlib.Path(folder) / "graph.tsr"
                verb = ["generate", source] if sources is DENSE_PARTS else ["convert", source]
                if run([program, *verb, "-o", str(path), "--force"]).returncode != 0:
                    continue
                for kernel in kernels:
                    keep = ("features", "precision", "kernel", "median_us", "floor_us", "max_error")
                    yield [{"form": "dense", "graph": name, **{key: record[key] for key in keep}}
                           for record in bench(program, [path], ["bf16"], widths, "spmm/cuda/" + kernel)]


def dense_table(records):
    widths = sorted({r["features"] for r in records})
    yield "| graph, kernel | " + " | ".join(f"{width}" for width in widths) + " |"
    yield "|---|" + "---:|" * len(widths)
    by_key = {(r["graph"], r["kernel"], r["features"]): r["median_us"] for r in records}
    for graph, kernel in dict.fromkeys((r["graph"], r["kernel"]) for r in records):
        cells = [f"{by_key[graph, kernel, w]:.0f}" if (graph, kernel, w) in by_key else "–" for w in widths]
        yield f"| {graph}, `{kernel.split('/')[-1]}` | " + " | ".join(cells) + " |"
    for graph in dict.fromkeys(r["graph"] for r in records):
        cells = []
        for width in widths:
            of = {k: t for (g, k, w), t in by_key.items() if g == graph and w == width}
            sparse = [t for k, t in of.items() if "/nm_" in k]
            dense = [t for k, t in of.items() if "/nm_" not in k]
            cells.append(f"{min(dense) / min(sparse):.2f} ×" if sparse and dense else "–")
        yield f"| {graph}: sparse against dense, best of each | " + " | ".join(cells) + " |"


def train(program, path, model, pattern, options):
    command = [program, "train", str(path), "--model", model, "--early-stopping", "0", "--pattern", pattern, *options, "--json", "-"]
    done = run(command)
    if done.returncode != 0:
        return []
    report = json.loads(done.stdout)
    return [{"graph": path.stem, "model": model, "pattern": pattern, "step_ms": report["step_ms"], "test": report["test"]["mean"],
             "deviation": report["test"]["std"], "notes": report.get("notes", [])}]


def graphs_in(folder):
    paths = [folder / graph / f"{graph}.npz" for graph in GRAPHS]
    return [path for path in paths if path.exists()]


def measure_models(program, folder, device):
    options = ["--device", device, "--epochs", "60", "--dropout", "0"]
    for path in graphs_in(folder):
        for model in MODELS:
            for pattern in ("off", "1:2:4", "auto"):
                yield train(program, path, model, pattern, options)


def measure_batches(program, folder, device):
    """Parts of a graph, each ordered on its own."""
    options = ["--device", device, "--epochs", "20", "--dropout", "0", "--batch", "clusters", "--parts", "8", "--method", "grow"]
    for path in graphs_in(folder):
        for model in ("gcn", "sgc"):
            for pattern in ("off", "1:2:4"):
                yield train(program, path, model, pattern, options)


def measure_accuracy(program, folder, device, runs=5):
    """Five seeds of each: as it is, ordered, and pruned to the same pattern in the order of the data."""
    options = ["--device", device, "--runs", str(runs)]
    for path in graphs_in(folder):
        with tempfile.TemporaryDirectory() as scratch:
            pruned = pathlib.Path(scratch) / path.name
            done = run([program, "prune", str(path), "--pattern", "1:2:4", "-o", str(pruned), "--json", "-"])
            dropped = json.loads(done.stdout) if done.returncode == 0 else None
            for model in MODELS:
                for name, data, pattern in (("as it is", path, "off"), ("ordered", path, "1:2:4"), ("pruned", pruned, "off")):
                    if data.exists():
                        yield [{**r, "data": name, "prune": dropped} for r in train(program, data, model, pattern, options)]


def geometric_mean(values):
    return math.exp(sum(map(math.log, values)) / len(values)) if values else float("nan")


def times_by_case(products):
    cases = {}
    for record in products:
        cases.setdefault((record["graph"], record["precision"], record["features"]), {})[record["form"]] = record
    return cases


def ratio(case, over, under):
    return case[over]["median_us"] / case[under]["median_us"] if over in case and under in case else None


def ratio_table(products):
    cases = times_by_case(products)
    pairs = [("cuSPARSE", "2:4"), ("cuSPARSE", "2:4, ordered"), ("cuSPARSE", "plan"), ("tiles", "2:4"), ("plan", "2:4")]
    yield "| precision, features | matrices | " + " | ".join(f"{b} against {a}" for a, b in pairs) + " |"
    yield "|---|---:|" + "---:|" * len(pairs)
    for precision in ("bf16", "fp32"):
        for width in WIDTHS + [None]:
            chosen = [case for (_, p, f), case in cases.items() if p == precision and width in (None, f)]
            if not chosen:
                continue
            cells = []
            for over, under in pairs:
                ratios = [r for r in (ratio(case, over, under) for case in chosen) if r]
                cells.append(f"{geometric_mean(ratios):.2f} ({min(ratios):.2f})" if ratios else "–")
            yield f"| {precision}, {width or 'all'} | {len(chosen)} | " + " | ".join(cells) + " |"


def matrix_table(products, width=128):
    cases = times_by_case(products)
    forms = ["2:4", "2:4, ordered", "tiles", "plan", "cuSPARSE"]
    yield "| matrix | " + " | ".join(f"bf16: {f}" for f in forms) + " | " + " | ".join(f"fp32: {f}" for f in forms) + " |"
    yield "|---|" + "---:|" * (2 * len(forms))
    for graph in sorted({g for g, _, _ in cases}):
        cells = []
        for precision in ("bf16", "fp32"):
            case = cases.get((graph, precision, width), {})
            for form in forms:
                cells.append(f"{case[form]['median_us']:.1f}" if form in case else "–")
        yield f"| {graph} | " + " | ".join(cells) + " |"


def model_table(models, torch):
    by_key = {(m["graph"], m["model"], m["pattern"]): m for m in models}
    pyg = {(t["graph"], t["model"]): t["best_us"] for t in torch}
    yield "| graph, model | PyG, us | as it is, us | 1:2:4, us | auto, us | PyG / 1:2:4 | as it is / 1:2:4 | test, as it is | 1:2:4 |"
    yield "|---|" + "---:|" * 8
    for graph, model in dict.fromkeys((m["graph"], m["model"]) for m in models):
        plain, ordered, chosen = (by_key.get((graph, model, p)) for p in ("off", "1:2:4", "auto"))
        if not plain or not ordered:
            continue
        cells = [f"{pyg[graph, model]:.0f}" if (graph, model) in pyg else "–", f"{plain['step_ms'] * 1e3:.1f}",
                 f"{ordered['step_ms'] * 1e3:.1f}", f"{chosen['step_ms'] * 1e3:.1f}" if chosen else "–",
                 f"{pyg[graph, model] / ordered['step_ms'] / 1e3:.2f}" if (graph, model) in pyg else "–",
                 f"{plain['step_ms'] / ordered['step_ms']:.2f}", f"{plain['test']:.4f}", f"{ordered['test']:.4f}"]
        yield f"| {graph}, {model} | " + " | ".join(cells) + " |"


def batch_table(batches):
    by_key = {(b["graph"], b["model"], b["pattern"]): b for b in batches}
    yield "| graph, model | as it is, us per batch | 1:2:4, us per batch | as it is / 1:2:4 |"
    yield "|---|---:|---:|---:|"
    for graph, model in dict.fromkeys((b["graph"], b["model"]) for b in batches):
        plain, ordered = (by_key.get((graph, model, p)) for p in ("off", "1:2:4"))
        if plain and ordered:
            yield (f"| {graph}, {model} | {plain['step_ms'] * 1e3:.1f} | {ordered['step_ms'] * 1e3:.1f} | "
                   f"{plain['step_ms'] / ordered['step_ms']:.2f} |")


def accuracy_table(records):
    by_key = {(r["graph"], r["model"], r["data"]): r for r in records}
    yield "| graph, model | as it is | ordered | pruned | edges dropped |"
    yield "|---|---:|---:|---:|---:|"
    for graph, model in dict.fromkeys((r["graph"], r["model"]) for r in records):
        cells = []
        for name in ("as it is", "ordered", "pruned"):
            record = by_key.get((graph, model, name))
            cells.append(f"{100 * record['test']:.2f} ± {100 * record['deviation']:.2f} %" if record else "–")
        dropped = (by_key.get((graph, model, "pruned")) or {}).get("prune")
        cells.append(f"{100 * dropped['dropped'] / dropped['edges_before']:.2f} %" if dropped else "–")
        yield f"| {graph}, {model} | " + " | ".join(cells) + " |"


ACCURACY_HEAD = """# Accuracy of ordering and of pruning

Counterpart of SOGRE's Table 5, made by `tools/nm_report.py FOLDER --parts accuracy --data GRAPHS` on {machine} at commit {commit}.
Test accuracy over five seeds with the papers' training (mean ± deviation); pruned to 1:2:4 in the order of the data by
`tessera prune`. Ordering is lossless; with dropout, which draws by the number of a row, it trains as if with other seeds.
"""


def write_accuracy(records, machine, commit, folder):
    lines = [ACCURACY_HEAD.format(machine=machine, commit=commit), *accuracy_table(records), ""]
    (folder / "nm_accuracy.md").write_text("\n".join(lines))
    (folder / "nm_accuracy.json").write_text(
        "[\n" + ",\n".join(json.dumps({"commit": commit, **record}) for record in records) + "\n]\n")


def write(results, output):
    lines = [HEAD.format(commit=results["commit"])]
    if results.get("dense"):
        lines += ["## Dense parts", "", "Microseconds in bf16 by features. The communities alone are the edges that windows share.", "",
                  *dense_table(results["dense"]), ""]
    if results["products"]:
        lines += ["## Products (SOGRE's Figure 4)", "", "How many times as fast, geometric mean (worst):", "",
                  *ratio_table(results["products"]), "", "Microseconds at 128 features:", "", *matrix_table(results["products"]), ""]
    if results["models"]:
        lines += ["## Training steps (Tables 3 and 4)", "",
                  "Forward, backward and Adam in fp32 without dropout; PyG eager or recorded, by edges or CSR, the fastest.", "",
                  *model_table(results["models"], results["torch"]), ""]
    if results.get("batches"):
        lines += ["## Parts of a graph, ordered one by one (Table 6)", "",
                  "A step on one of eight parts, as `train --batch clusters` makes them.", "", *batch_table(results["batches"]), ""]
    output.with_suffix(".md").write_text("\n".join(lines + results.get("remarks", [])))
    output.with_suffix(".json").write_text(json.dumps(results, indent=None, separators=(",", ":")).replace('{"form"', '\n{"form"') + "\n")
