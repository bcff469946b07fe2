# SPDX-License-Identifier: Apache-2.0
"""What sparse tensor cores are worth on a GPU: products of matrices against cuSPARSE and our other kernels, and training."""
import concurrent.futures
import json
import pathlib
import subprocess
import sys
import tempfile

MODELS = ["gcn", "sage", "cheb", "sgc"]
GRAPHS = ["cora", "citeseer", "facebook-page-page", "amazon-computers", "coauthor-cs", "corafull-structure", "coauthor-physics"]

# Their labels say nothing of accuracy.
DRAWN_LABELS = {"corafull-structure"}

# What the papers train citation graphs with holds GCN and SGC at the largest class of amazon-computers: graphs without a
# split of their own have features as they are, and no decay of weights.
OWN_SPLIT = {"cora", "citeseer"}
WITHOUT_SPLIT = ["--normalise", "off", "--weight-decay", "0"]

# Every pair of edges once, as the orders see them: both directions, no weights, no loops.
PATTERN = ["--duplicates", "first", "--nonfinite", "allow", "--symmetrise", "--self-loops", "remove"]


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
    """Records with the times of all candidates, in chains where they are short. Of no source none: the program would take its own."""
    if not sources:
        return []
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


# What is measured of every matrix; kernels of a group by name leave their times in no file of plans.
FORMS = {"plan": None, "plan without 2:4": None, "plan, laid out": None, "plan, ordered": None, "cuSPARSE": "spmm/cuda/cusparse*", "torch": None, "best": None,
         "2:4": "spmm/cuda/nm*", "2:4, ordered": "spmm/cuda/nm*"}
# Those of matrices whose vertices are in another order.
CONFORMING = ["--method", "nm", "--pattern", "1:2:4"]
ORDERS = {"plan, laid out": ["--method", "layout"], "plan, ordered": CONFORMING, "2:4, ordered": CONFORMING}


def prepared_copies(program, sources, folder, forms):
    """Patterns of matrices as they come, and for each form that wants one in another order."""
    folder = pathlib.Path(folder)
    orders = {form: words for form, words in ORDERS.items() if form in forms}
    for form in orders:
        (folder / form).mkdir()

    def copies(source):
        name = source.name.split(".")[0] + ".tsr"
        if run([program, "convert", str(source), *PATTERN, "-o", str(folder / name)]).returncode == 0:
            for form, words in orders.items():
                run([program, "reorder", str(folder / name), *words, "-o", str(folder / form / name)])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(copies, sources))
    return sorted(folder.glob("*.tsr")), {form: sorted((folder / form).glob("*.tsr")) for form in orders}


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


LAUNCHES = """
import torch
def median_us(run, runs):
    times = []
    for i in range(10 + 50):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        begin.record(); run(); end.record(); end.synchronize()
        times.append(begin.elapsed_time(end) * 1e3 / runs)
    return sorted(times[10:])[25]
nothing = lambda: torch.cuda._sleep(0)
nothing()
torch.cuda.synchronize()
chain = torch.cuda.CUDAGraph()
with torch.cuda.graph(chain):
    for _ in range(20): nothing()
print(median_us(nothing, 1), median_us(chain.replay, 20))
"""


def measure_launch():
    """What a kernel takes that does nothing, in microseconds: between two events, and as one of 20 in a captured chain."""
    done = run([sys.executable, "-c", LAUNCHES])
    return dict(zip(("alone", "chain"), map(float, done.stdout.split()))) if done.returncode == 0 else None


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
        plain, ordered = prepared_copies(program, sources, folder, forms)
        plans = []
        for form in forms:
            if form == "torch":
                records = torch_products(program, plain, widths, folder)
            elif form == "plan without 2:4":
                records = list(plans_without(program, plain, plans))
            else:
                records = bench(program, ordered.get(form, plain), precisions, widths, FORMS[form], not form.startswith("plan"))
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


# Shuffled, so that an order of rows is all that their windows lack.
SHUFFLED = {"64 communities of 1,024 vertices, 85 neighbours inside": "sbm?vertices=65536&communities=64&mean_degree=85&inside=1&seed=5",
            "32 communities of 2,048, 170 neighbours, 5 % outside": "sbm?vertices=65536&communities=32&mean_degree=170&inside=0.95&seed=5",
            "300 communities of 67, 40 neighbours, 5 % outside": "sbm?vertices=20000&communities=300&mean_degree=40&inside=0.95&seed=5"}


def measure_ordered(program):
    """All kernels that a plan for very many epochs may take, in an order of rows of its own or not: predicted and measured."""
    with tempfile.TemporaryDirectory() as folder:
        plain, shuffled = pathlib.Path(folder) / "plain.tsr", pathlib.Path(folder) / "shuffled.tsr"
        for name, source in SHUFFLED.items():
            run([program, "generate", source, "-o", str(plain), "--force", "--quiet"])
            run([program, "reorder", str(plain), "--method", "random", "-o", str(shuffled), "--force", "--quiet"])
            for precision in ("bf16", "fp32"):
                done = run([program, "plan", str(shuffled), "--device", "cuda", "--precision", precision, "--features", "128",
                            "--epochs", "100000000", "--tune", "measured", "--json", "-"])
                candidates = json.loads(done.stdout)["candidates"] if done.returncode == 0 else []
                times = {c["kernel"].split("/")[-1]: [c["predicted_us"], c["measured_us"]] for c in candidates if c["measured_us"] > 0}
                yield [{"graph": name, "precision": precision, "candidates": times}] if times else []


TRANSLATIONS = {"bits": "translate", "2:4": "translate_quads"}
TRANSLATED = ["cora", "pubmed", "soc-Epinions1", "COLLAB", "DD", "ego-twitter", "cnr-2000"]
TRANSLATION_HEIGHTS = [16, 64, 128, 256]


def translations_of(records):
    encodings = {suite: encoding for encoding, suite in TRANSLATIONS.items()}
    return [{"graph": r["graph"], "height": r["features"], "encoding": encodings[r["op"]], "median_us": r["median_us"]} for r in records]


def measure_translation(program, folder):
    """Windows of graphs as bits, and with columns in an order in which every row is 2:4, both made on the GPU."""
    sources = [path for path in (folder / graph / f"{graph}.npz" for graph in TRANSLATED) if path.exists()]
    with tempfile.TemporaryDirectory() as scratch:
        for suite in TRANSLATIONS.values() if sources else []:  # of none the program would take its own
            output = pathlib.Path(scratch) / f"{suite}.json"
            run([program, "bench", suite, "--device", "cuda", "--quick", "--quiet", "--features", ",".join(map(str, TRANSLATION_HEIGHTS)),
                 "--json", str(output), *(word for source in sources for word in ("--data", str(source)))])
            records = json.loads(output.read_text())["records"] if output.exists() else []
            yield translations_of(records)


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
            for hidden in sorted(set(HIDDEN.values())) if sources else []:  # of none the program would take its own
                output = pathlib.Path(scratch) / f"{hidden}, {pattern}.json"
                steps = [f"step_{model}" for model, width in HIDDEN.items() if width == hidden]
                data = [word for source in sources for word in ("--data", str(source))]
                run([program, "bench", *steps, "--device", device, "--hidden", str(hidden), "--quick", "--quiet", "--json", str(output),
                     *data])
                records = json.loads(output.read_text())["records"] if output.exists() else []
                yield [{"graph": r["graph"], "model": r["op"].removeprefix("step_"), "pattern": pattern, "step_ms": r["median_us"] / 1e3}
                       for r in records]


def torch_steps(paths, *options):
    """Steps in PyG, where there is one."""
    script = pathlib.Path(__file__).parent.parent / "bench" / "baselines" / "nm_torch.py"
    with tempfile.TemporaryDirectory() as scratch:
        output = pathlib.Path(scratch) / "torch.json"
        run([sys.executable, str(script), "--json", str(output), *options, *(word for path in paths for word in ("--data", str(path)))])
        return json.loads(output.read_text()) if output.exists() else []


BATCH_MODELS = ["gcn", "sgc"]


def measure_batches(program, folder, device):
    """Eight parts of a graph, as they come and each ordered on its own, and the same parts in PyG."""
    options = ["--device", device, "--epochs", "30", "--evaluate-every", "30", "--dropout", "0", "--batch", "clusters"]
    paths = graphs_in(folder)
    with tempfile.TemporaryDirectory() as scratch:
        for path in paths:
            parts = pathlib.Path(scratch) / f"{path.stem}.txt"
            run([program, "partition", str(path), "--parts", "8", "--method", "grow", "-o", str(parts)])
            for model in BATCH_MODELS:
                for pattern in ("off", "1:2:4"):
                    yield train(program, path, model, pattern, [*options, "--partition", str(parts)])
        records = torch_steps(paths, "--partitions", scratch, "--models", ",".join(BATCH_MODELS))
        yield [{"graph": r["graph"], "model": r["model"], "pattern": "PyG", "step_ms": r["best_us"] / 1e3} for r in records]


PRUNED = ("edges_before", "dropped", "violating_vectors", "violating_meta_blocks")


def measure_accuracy(program, folder, device, runs=5):
    """Five seeds of each: as it is, ordered, and pruned to the same pattern in the order of the data. No times: trainings run side by side."""
    options = ["--device", device, "--runs", str(runs)]
    paths = [path for path in graphs_in(folder) if path.stem not in DRAWN_LABELS]
    with tempfile.TemporaryDirectory() as scratch, concurrent.futures.ThreadPoolExecutor(1 if device == "cpu" else 6) as pool:

        def prune(path):
            done = run([program, "prune", str(path), "--pattern", "1:2:4", "-o", str(pathlib.Path(scratch) / path.name), "--json", "-"])
            return {key: json.loads(done.stdout)[key] for key in PRUNED} if done.returncode == 0 else None

        dropped = dict(zip(paths, pool.map(prune, paths)))
        cases = [(path, model, name, data, pattern) for path in paths for model in MODELS
                 for name, data, pattern in (("as it is", path, "off"), ("ordered", path, "1:2:4"), ("pruned", pathlib.Path(scratch) / path.name, "off"))
                 if data.exists()]
        trained = pool.map(lambda case: train(program, case[3], case[1], case[4],
                                              [*options, *([] if case[0].stem in OWN_SPLIT else WITHOUT_SPLIT)]), cases)
        for (path, _, name, _, _), records in zip(cases, trained):
            yield [{**{key: value for key, value in r.items() if key != "step_ms"}, "data": name, "prune": dropped[path]} for r in records]
