# SPDX-License-Identifier: Apache-2.0
"""What sparse tensor cores are worth on a GPU: products of matrices against cuSPARSE and our other kernels, and training."""
import concurrent.futures
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

WIDTHS = [64, 128, 256, 512]
MODELS = ["gcn", "sage", "cheb", "sgc"]
GRAPHS = ["cora", "citeseer", "facebook-page-page", "amazon-computers", "coauthor-cs", "corafull-structure", "coauthor-physics"]

HEAD = """# Sparse tensor cores on a GPU

Made by `tools/nm_report.py FOLDER --device cuda --data GRAPHS` on one NVIDIA H200 at commit {commit}; nm_cuda.json has every
number. Warm caches; every kernel is the fastest of its group by timing. *Alone* is the median between two events, with about five
microseconds of launching; *in a chain* is one of 20 launches in a row inside a captured CUDA graph.

- `2:4` are the kernels on sparse tensor cores (`nm_*`) on the matrix as it comes: an order of columns within each window makes every
  row 2:4.
- `2:4, ordered` are the same after `tessera reorder --method nm --pattern 1:2:4`, which orders the vertices themselves.
- `best` is the fastest of all our deterministic kernels, `plan` what a default plan takes by its cost models, `cuSPARSE` the fastest
  of its algorithms that add in fp32, called directly after its preprocessing, `torch` cuSPARSE as PyTorch calls it (torch.sparse.mm
  of a CSR tensor in the same precision). –: not measured.
"""

# Every pair of edges once, as the orders see them: both directions, no weights, no loops.
PATTERN = ["--duplicates", "first", "--nonfinite", "allow", "--symmetrise", "--self-loops", "remove"]
# What a ratio against cuSPARSE is held to, and the share of its floor at which a case counts as met.
GOALS = {"fp32": 2.5, "bf16": 8.0}
NEAR_FLOOR = 0.8


def run(command):
    """A command that may fail; what it says then is printed."""
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        print(f"failed ({done.returncode}): {' '.join(command)}: {done.stderr.strip()[-200:]}", file=sys.stderr)
    return done


def candidates_of(store):
    """The choices of a file of plans, in order: (features and precision, kernel, {candidate: [predicted, measured]})."""
    choices = []
    for line in store.read_text().splitlines():
        fields = line.split("\t")
        if fields[0] == "choice":
            choices.append((", ".join(fields[3].split(", ")[:2]), fields[5], {}))
        elif fields[0] == "candidate" and float(fields[2]) > 0 and "not deterministic" not in fields[4]:
            choices[-1][2][fields[1].split("/")[-1]] = [float(fields[2]), float(fields[3])]
    return choices


def bench(program, sources, precisions, widths, kernel, measured=True):
    """Records with the times of all candidates, in chains where they are short."""
    with tempfile.TemporaryDirectory() as folder:
        output, store = pathlib.Path(folder) / "bench.json", pathlib.Path(folder) / "plans"
        command = [program, "bench", "spmm", "--device", "cuda", "--precision", ",".join(precisions), "--features",
                   ",".join(map(str, widths)), "--tune", "measured" if measured else "predicted", "--quick", "--json", str(output), "--plans", str(store), "--quiet"]
        command += ["--kernel", kernel] if kernel else []
        for source in sources:
            command += ["--data", str(source)]
        run(command)
        records = json.loads(output.read_text())["records"] if output.exists() else []
        choices = candidates_of(store) if store.exists() else []
        cases = [(f"features {record['features']}, {record['precision']}", record["kernel"]) for record in records]
        matched = [choice[:2] for choice in choices] == cases
        for record, (_, _, candidates) in zip(records, choices if matched else []):
            record["candidates"] = candidates
        return records


def prepared_copies(program, sources, folder, with_ordered):
    """Patterns of matrices, as they come and, if asked for, ordered."""
    ordered_folder = pathlib.Path(folder) / "ordered"
    ordered_folder.mkdir()

    def copies(source):
        name = source.name.split(".")[0] + ".tsr"
        copy, ordered = pathlib.Path(folder) / name, ordered_folder / name
        order = [program, "reorder", str(copy), "--method", "nm", "--pattern", "1:2:4", "-o", str(ordered)]
        run([program, "convert", str(source), *PATTERN, "-o", str(copy)]).returncode == 0 and with_ordered and run(order)
        return copy, ordered

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        both = list(pool.map(copies, sources))
    return [copy for copy, _ in both if copy.exists()], [ordered for _, ordered in both if ordered.exists()]


# What is measured of every matrix; kernels of a group by name leave their times in no file of plans.
FORMS = {"plan": None, "plan without 2:4": None, "cuSPARSE": "spmm/cuda/cusparse*", "torch": None, "best": None, "2:4": "spmm/cuda/nm*",
         "2:4, ordered": "spmm/cuda/nm*"}


def torch_products(program, sources, widths, folder):
    """The same products as PyTorch's users call cuSPARSE."""
    copies = [pathlib.Path(folder) / (source.stem + ".npz") for source in sources]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda pair: run([program, "convert", str(pair[0]), "-o", str(pair[1]), "--force"]), zip(sources, copies)))
    script = pathlib.Path(__file__).parent.parent / "bench" / "baselines" / "spmm_torch_gpu.py"
    output = pathlib.Path(folder) / "torch.json"
    run([sys.executable, str(script), "--features", ",".join(map(str, widths)), "--json", str(output),
         *(word for copy in copies if copy.exists() for word in ("--data", str(copy)))])
    return json.loads(output.read_text())["records"] if output.exists() else []


def is_sparse(kernel):
    return kernel.split("/")[-1].startswith("nm_")


def second_choice(program, source, record):
    """What a default plan takes where there are no kernels on sparse tensor cores."""
    done = run([program, "plan", str(source), "--device", "cuda", "--precision", record["precision"], "--features", str(record["features"]),
                "--json", "-"])
    candidates = json.loads(done.stdout)["candidates"] if done.returncode == 0 else []
    slower = [c for c in candidates if c["verdict"].startswith("slower") and not is_sparse(c["kernel"])]
    return min(slower, key=lambda c: c["predicted_us"], default=None)


def plans_without(program, sources, plans):
    """Records of plans that were made without 2:4; a plan that took another kernel stands for itself."""
    by_name = {source.stem: source for source in sources}
    for record in plans:
        if not is_sparse(record["kernel"]):
            yield record
            continue
        source = by_name[record["graph"]]
        other = second_choice(program, source, record)
        if other:
            yield from bench(program, [source], [record["precision"]], [record["features"]], other["kernel"], False)


def measure_products(program, sources, widths, forms, precisions=("bf16", "fp32")):
    """Lists of records, as they come. Plans without 2:4 follow plans."""
    keep = ("graph", "features", "precision", "kernel", "median_us", "chain_us", "floor_us", "max_error", "plan", "candidates")
    with tempfile.TemporaryDirectory() as folder:
        plain, ordered = prepared_copies(program, sources, folder, "2:4, ordered" in forms)
        plans = []
        for form in forms:
            if form == "torch":
                records = torch_products(program, plain, widths, folder)
            elif form == "plan without 2:4":
                records = list(plans_without(program, plain, plans))
            else:
                records = bench(program, ordered if "ordered" in form else plain, precisions, widths, FORMS[form], form != "plan")
            plans = records if form == "plan" else plans
            yield [{"form": form, **{key: record[key] for key in keep if key in record}} for record in records]


# The communities alone of proteins-size and reddit-size: the edges that tall windows share.
DENSE_PARTS = {"proteins-size, communities": "sbm?vertices=132534&communities=100&mean_degree=450&inside=1",
               "reddit-size, communities": "sbm?vertices=232965&communities=50&mean_degree=381&inside=1"}
DENSE_GROUPS = ["nm_*", "tall_*"]
TWINS = {"proteins-size": "twin:proteins", "reddit-size": "twin:reddit"}
TWIN_GROUPS = ["nm_split*", "split*"]


def measure_dense(program, widths):
    with tempfile.TemporaryDirectory() as folder:
        for sources, groups in ((DENSE_PARTS, DENSE_GROUPS), (TWINS, TWIN_GROUPS)):
            for name, source in sources.items():
                path = pathlib.Path(folder) / "graph.tsr"
                verb = ["generate", source] if sources is DENSE_PARTS else ["convert", source]
                if run([program, *verb, "-o", str(path), "--force"]).returncode != 0:
                    continue
                for group in groups:
                    for record in bench(program, [path], ["bf16"], widths, "spmm/cuda/" + group):
                        times = {record["kernel"].split("/")[-1]: record["median_us"]}
                        times |= {kernel: us for kernel, (_, us) in record.get("candidates", {}).items() if us > 0}
                        yield [{"form": "dense", "graph": name, "features": record["features"], "precision": record["precision"],
                                "kernel": kernel, "median_us": us, "max_error": record["max_error"]} for kernel, us in times.items()]


def dense_table(records):
    widths = sorted({r["features"] for r in records})
    yield "| graph, kernel | " + " | ".join(f"{width}" for width in widths) + " |"
    yield "|---|" + "---:|" * len(widths)
    by_key = {(r["graph"], r["kernel"], r["features"]): r["median_us"] for r in records}
    for graph, kernel in dict.fromkeys((r["graph"], r["kernel"]) for r in records):
        cells = [f"{by_key[graph, kernel, w]:.0f}" if (graph, kernel, w) in by_key else "–" for w in widths]
        yield f"| {graph}, `{kernel}` | " + " | ".join(cells) + " |"
    for graph in dict.fromkeys(r["graph"] for r in records):
        cells = []
        for width in widths:
            of = {k: t for (g, k, w), t in by_key.items() if g == graph and w == width}
            sparse = [t for k, t in of.items() if k.startswith("nm_")]
            dense = [t for k, t in of.items() if not k.startswith("nm_")]
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


# PyG's layers are as wide (bench/baselines/nm_torch.py).
HIDDEN = {"gcn": 16, "cheb": 16, "sgc": 16, "sage": 64}


def ordered_graphs(program, paths, folder):
    """Copies of data sets whose vertices are ordered to fit 1:2:4, features and all."""
    copies = [pathlib.Path(folder) / path.name for path in paths]
    for path, copy in zip(paths, copies):
        run([program, "reorder", str(path), "--method", "nm", "--pattern", "1:2:4", "-o", str(copy)])
    return [copy for copy in copies if copy.exists()]


def measure_models(program, folder, device):
    """Steps on the graphs as they come and ordered."""
    paths = graphs_in(folder)
    with tempfile.TemporaryDirectory() as scratch:
        for pattern, sources in (("off", paths), ("1:2:4", ordered_graphs(program, paths, scratch))):
            for hidden in sorted(set(HIDDEN.values())):
                output = pathlib.Path(scratch) / "steps.json"
                steps = [f"step_{model}" for model, width in HIDDEN.items() if width == hidden]
                data = [word for source in sources for word in ("--data", str(source))]
                run([program, "bench", *steps, "--device", device, "--hidden", str(hidden), "--quick", "--quiet", "--json", str(output),
                     *data])
                records = json.loads(output.read_text())["records"] if output.exists() else []
                yield [{"graph": r["graph"], "model": r["op"].removeprefix("step_"), "pattern": pattern, "step_ms": r["median_us"] / 1e3}
                       for r in records]


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


def chain_of(record):
    """One run in a captured chain: as timed for the record or for its plan, up to 150 us; None where neither was."""
    if record.get("chain_us"):
        return record["chain_us"]
    measured = re.search(r": ([0-9.]+) us measured", record.get("plan", ""))
    return float(measured.group(1)) if measured and float(measured.group(1)) < 150 else None


def times_by_case(products):
    """For every matrix, precision and width what each form takes: alone, in a chain, and its kernel."""
    cases = {}
    for record in products:
        case = cases.setdefault((record["graph"], record["precision"], record["features"]), {})
        case["floor_us"] = record.get("floor_us") or case.get("floor_us")
        if record["form"] in case and case[record["form"]]["alone"] <= record["median_us"]:
            continue
        case[record["form"]] = {"alone": record["median_us"], "chain": chain_of(record), "kernel": record["kernel"].split("/")[-1]}
    return cases


def ratio(case, over, under, which):
    slow, fast = case.get(over, {}).get(which), case.get(under, {}).get(which)
    return slow / fast if slow and fast else None


def is_met(case, precision):
    """As fast as asked for, or near the floor, alone or in a chain."""
    times = [case.get(form, {}).get(which) for form in ("best", "plan") for which in ("alone", "chain")]
    return any((ratio(case, "cuSPARSE", form, which) or 0) >= GOALS[precision] for form in ("best", "plan") for which in ("alone", "chain")) or \
        any(time and (case["floor_us"] or 0) / time >= NEAR_FLOOR for time in times)


def of_other_commits(products, form):
    """The commits of a form, in brackets, where they are not that of the first record."""
    commits = {record.get("commit") for record in products if record["form"] == form}
    return f" ({', '.join(sorted(commits))})" if commits - {products[0].get("commit")} else ""


def ratio_table(products):
    cases = times_by_case(products)
    columns = [("plan against cuSPARSE, alone", "cuSPARSE", "plan", "alone"), ("plan, in a chain", "cuSPARSE", "plan", "chain"),
               ("plan against torch, alone", "torch", "plan", "alone"), ("plan against torch, in a chain", "torch", "plan", "chain"),
               ("best, alone", "cuSPARSE", "best", "alone"),
               ("best, in a chain", "cuSPARSE", "best", "chain"), ("2:4, alone", "cuSPARSE", "2:4", "alone"),
               ("2:4, ordered, alone", "cuSPARSE", "2:4, ordered", "alone"),
               ("plan against plan without 2:4", "plan without 2:4", "plan", "alone")]
    heads = [f"{column[0]}{of_other_commits(products, column[2])}" for column in columns]
    yield "| precision, features | matrices | " + " | ".join(heads) + " | met |"
    yield "|---|---:|" + "---:|" * (len(columns) + 1)
    for precision in ("bf16", "fp32"):
        for width in WIDTHS + [None]:
            chosen = [case for (_, p, f), case in cases.items() if p == precision and width in (None, f)]
            if not chosen:
                continue
            cells = []
            for _, over, under, which in columns:
                ratios = [r for r in (ratio(case, over, under, which) for case in chosen) if r]
                count = f", {len(ratios)} matrices" if len(ratios) < len(chosen) else ""
                cells.append(f"{geometric_mean(ratios):.2f} ({min(ratios):.2f}{count})" if ratios else "–")
            met = sum(is_met(case, precision) for case in chosen)
            yield f"| {precision}, {width or 'all'} | {len(chosen)} | " + " | ".join(cells) + f" | {met} of {len(chosen)} |"


def matrix_table(products, precision, width=128):
    """Alone, and in a chain where that was timed, in brackets."""
    cases = times_by_case(products)
    forms = ["cuSPARSE", "torch", "plan", "best", "2:4", "2:4, ordered"]
    yield "| matrix | floor | " + " | ".join(forms) + " |"
    yield "|---|" + "---:|" * (1 + len(forms))
    for graph in sorted({g for g, p, f in cases if (p, f) == (precision, width)}):
        case = cases[graph, precision, width]
        cells = [f"{case['floor_us']:.1f}" if case["floor_us"] else "–"]
        for form in forms:
            times = case.get(form)
            chain = f" ({times['chain']:.1f})" if times and times["chain"] else ""
            cells.append(f"{times['alone']:.1f}{chain} `{times['kernel']}`" if times else "–")
        yield f"| {graph} | " + " | ".join(cells) + " |"


def model_table(models, torch):
    by_key = {(m["graph"], m["model"], m["pattern"]): m["step_ms"] * 1e3 for m in models}
    pyg = {(t["graph"], t["model"]): t for t in torch}
    yield "| graph, model | PyG eager, us | PyG, its fastest, us | as it is, us | 1:2:4, us | PyG eager / as it is | PyG / as it is | as it is / 1:2:4 |"
    yield "|---|" + "---:|" * 7
    ratios = []
    for graph, model in dict.fromkeys((m["graph"], m["model"]) for m in models):
        plain, ordered, other = by_key.get((graph, model, "off")), by_key.get((graph, model, "1:2:4")), pyg.get((graph, model))
        if not plain:
            continue
        eager = other["times_us"].get("edge_index, eager") if other else None
        values = [eager, other and other["best_us"], plain, ordered]
        quotients = [eager and eager / plain, other and other["best_us"] / plain, ordered and plain / ordered]
        ratios.append(quotients)
        cells = [f"{v:.0f}" if v else "–" for v in values] + [f"{q:.2f}" if q else "–" for q in quotients]
        yield f"| {graph}, {model} | " + " | ".join(cells) + " |"
    means = [geometric_mean([q[i] for q in ratios if q[i]]) for i in range(3)]
    yield "| geometric mean | | | | | " + " | ".join(f"{mean:.2f}" if mean == mean else "–" for mean in means) + " |"


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
        lines += ["## Products (SOGRE's Figure 4)", "", "How many times as fast, geometric mean (worst, and how many matrices where not all were measured). *Met*: 2.5 times as fast "
                  "as cuSPARSE in fp32, 8 times in bf16, or at 80 % of the floor (every operand once, by the copy's bandwidth).", "",
                  *ratio_table(results["products"]), ""]
        for precision in ("bf16", "fp32"):
            lines += [f"Microseconds at 128 features in {precision}, alone (in a chain):", "",
                      *matrix_table(results["products"], precision), ""]
    if results["models"]:
        lines += ["## Training steps (Tables 3 and 4)", "",
                  "Forward, backward and Adam in fp32 without dropout. PyG by edges, eager; and the fastest of eager or recorded, by edges or CSR.", "",
                  *model_table(results["models"], results["torch"]), ""]
    if results.get("batches"):
        lines += ["## Parts of a graph, ordered one by one (Table 6)", "",
                  "A step on one of eight parts, as `train --batch clusters` makes them.", "", *batch_table(results["batches"]), ""]
    output.with_suffix(".md").write_text("\n".join(lines + results.get("remarks", [])))
    output.with_suffix(".json").write_text(json.dumps(results, indent=None, separators=(",", ":")).replace('{"form"', '\n{"form"') + "\n")
