# SPDX-License-Identifier: Apache-2.0
"""QGTC's Figures 7 to 10 and Table 3: products of few bits and inference over batches of parts.

    tools/report.py qgtc --device cuda --data GRAPHS --pyg python3
    tools/report.py qgtc --quick

Parts: batches (Figure 7 a and b, beside PyG with --pyg, and Figure 8), products (Figure 7 c and Table 3), sizes
(Figure 9), reuse (Figure 10). Table 2, accuracy against bits, is the report `bits`. Without --data the real graphs are
left out.
"""
from . import common

MODELS = {"gcn": "Cluster-GCN, 3 x 16", "gin": "GIN, 3 x 64"}
BATCH_BITS = [2, 4, 8]
SHOWN_BITS = [1, 2, 3, 4, 8]
REUSE_BITS = [2, 4, 8, 16]
# The source ({data}: the folder of real graphs), the width of its features, the number of parts (0: of about 100
# vertices) and the method that makes them. Large graphs are drawn: as the published comparisons draw them, and with one
# community for each part, as a partitioner finds them in graphs that have such.
WORKLOADS = {
    "PROTEINS_full": ("{data}/PROTEINS_full/PROTEINS_full.npz", 29, 0, "contiguous"),
    "ppi-small": ("{data}/ppi-small/ppi-small.npz", 50, 0, "auto"),
    "blogcatalog-attr": ("{data}/blogcatalog-attr/blogcatalog-attr.npz", 128, 0, "auto"),
    "arxiv-communities": ("generate:sbm?vertices=169343&communities=1500&mean_degree=13&seed=1", 128, 1500, "contiguous"),
    "products-communities": ("generate:sbm?vertices=2449029&communities=1500&mean_degree=20&seed=1", 100, 1500, "contiguous"),
    "arxiv-size": ("generate:sbm?vertices=169343&communities=40&mean_degree=13.7&inside=0.65&seed=1", 128, 1500, "auto"),
    "products-size": ("twin:products", 100, 1500, "contiguous"),
}
QUICK_WORKLOADS = {"communities": ("generate:sbm?vertices=2000&communities=20&mean_degree=12&seed=1", 32, 0, "contiguous")}


def workloads(run):
    if run.options.quick:
        return QUICK_WORKLOADS
    return {name: one for name, one in WORKLOADS.items() if run.options.data or "{data}" not in one[0]}


def parts_of(run, name, workload):
    """Files of a workload's graph and of the part of each vertex, and what the partition is like."""
    source, _, parts, method = workload
    source = source.format(data=run.options.data)
    if not source.endswith(".npz"):
        run.command([run.program, "convert", source, "-o", run.folder / f"{name}.tsr", "--graph-only"])
        source = str(run.folder / f"{name}.tsr")
    parts = parts or max(1, run.call("info", source)["vertices"] // 100)
    file = str(run.folder / f"{name}.txt")
    made = run.call("partition", source, "--parts", parts, "--method", method, "-o", file)
    return source, file, {key: made[key] for key in ("vertices", "edges", "method", "parts", "cut_share")}


def measure_batches(run):
    """Bits, floating point, and PyG over the same parts."""
    partitions, records = {}, []
    for name, workload in workloads(run).items():
        if run.is_late(f"batches of {name}"):
            continue
        source, file, partitions[name] = parts_of(run, name, workload)
        width, words = workload[1], ["--partition", file]
        few = [f"batches_{model}_{bits}" for model in MODELS for bits in BATCH_BITS]
        whole = [f"batches_{model}" for model in MODELS]
        found = run.bench(few, [source], "--features", width, *words)
        found += run.bench(whole, [source], "--features", width, "--precision", "fp32" if run.device == "cpu" else "bf16", *words)
        found += run.baseline("batches_torch.py", source, file, width, "--device", run.device, "--repeats", 3, "--max-seconds", 2)
        records += [{**one, "graph": name} for one in found]
    return {"partitions": partitions, "records": records}


def measure_dense(run, sizes, widths, bits):
    """Products with adjacencies that have no tile of 8 x 128 without an edge, almost surely."""
    records = []
    for size in sizes:
        if not run.is_late(f"products of {size}"):
            source = f"generate:erdos_renyi?vertices={size}&edges={size * size // 32}&seed=1"
            found = run.bench([f"bit_gemm_{count}" for count in bits], [source], "--features", ",".join(map(str, widths)))
            records += [{**one, "graph": str(size)} for one in found]
    return records


def measure_products(run):
    quick = run.options.quick
    return measure_dense(run, [256, 512] if quick else [2048, 4096, 8192], [32] if quick else [32, 64], SHOWN_BITS)


def measure_sizes(run):
    quick = run.options.quick
    return measure_dense(run, [128, 256] if quick else [128 << i for i in range(9)], [16, 64] if quick else
                         [16, 32, 64, 128, 256, 512, 1024], [1])


def measure_reuse(run):
    quick = run.options.quick
    return measure_dense(run, [256] if quick else [1024, 2048, 4096, 8192], [64] if quick else [1024], [1, *REUSE_BITS])


PARTS = {"batches": measure_batches, "products": measure_products, "sizes": measure_sizes, "reuse": measure_reuse}


def rate(record):
    """Operations of a product of numbers, in 10^12 a second."""
    return 2 * int(record["graph"]) ** 2 * record["features"] / common.time_of(record) * 1e-6


def digits(number):
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}"


def bits_text(bits):
    return "1 bit" if bits == 1 else f"{bits} bits"


def columns_of(batches):
    """Records by column: PyG, floating point, bits."""
    found = {}
    for one in batches["records"]:
        model, _, bits = one["op"].removeprefix("batches_").partition("_")
        who = "PyG" if one["kernel"].startswith("PyG") else f"{bits} bits" if bits else one["precision"]
        found.setdefault((one["graph"], one["features"], model), {})[who] = one
    return found


def batch_tables(batches):
    found = columns_of(batches)
    heads = [who for who in ("PyG", "bf16", "fp32", *map(bits_text, BATCH_BITS)) if any(who in cells for cells in found.values())]
    for model, title in MODELS.items():
        rows = [[f"{graph}, {width}", *(f"{cells[who]['median_us']:.0f} ({digits(cells[who]['figures']['bytes_to_device'] / 1e6)})"
                                        if who in cells else "" for who in heads)]
                for (graph, width, of), cells in found.items() if of == model]
        yield from common.table([title, *heads], rows)


def tile_rows(batches):
    for (name, _, model), cells in columns_of(batches).items():
        few = next((cells[who] for who in map(bits_text, BATCH_BITS) if who in cells), None)
        if model == "gcn" and few and name in batches["partitions"]:
            cut, figures = batches["partitions"][name], few["figures"]
            yield [name, f"{cut['vertices']:,}", f"{cut['edges']:,}", f"{cut['parts']}, {cut['method']}",
                   f"{100 * cut['cut_share']:.1f} %", f"{figures['batches']:.0f}", f"{100 * figures['tiles_with_edges']:.1f} %",
                   f"{100 * figures['tiles_stored']:.1f} %"]


def cases_of(records):
    return {(int(one["graph"]), one["features"], int(one["op"].rsplit("_", 1)[-1])): one for one in records}


def product_rows(cases):
    for size, width in sorted({key[:2] for key in cases if key[2] > 1}):
        ones = [cases.get((size, width, bits)) for bits in SHOWN_BITS]
        yield [f"{size}, {width}", *(f"{common.time_of(one):.1f} ({digits(rate(one))})" if one else "" for one in ones)]


def size_table(cases):
    single = {key[:2]: one for key, one in cases.items() if key[2] == 1}
    widths = sorted({width for _, width in single})
    return common.table(["N", *map(str, widths)],
                        [[str(size), *(digits(rate(single[size, w])) if (size, w) in single else "" for w in widths)]
                         for size in sorted({size for size, _ in single})])


def reuse_rows(cases):
    for size, width in sorted({key[:2] for key in cases}):
        one = cases.get((size, width, 1))
        several = [cases.get((size, width, bits)) for bits in REUSE_BITS]
        if one and any(several):
            yield [f"{size}, {width}", *(f"{bits * common.time_of(one) / common.time_of(found):.2f}" if found else ""
                                         for bits, found in zip(REUSE_BITS, several))]


def lines(record):
    parts = record["parts"]
    batches = parts.get("batches", {"records": [], "partitions": {}})
    cases = cases_of([one for part in ("products", "sizes", "reuse") for one in parts.get(part, [])])
    speeds = [cells["PyG"]["median_us"] / cells[who]["median_us"] for cells in columns_of(batches).values()
              for who in map(bits_text, BATCH_BITS) if who in cells and "PyG" in cells]
    yield "# Inference in few bits (QGTC)\n"
    yield "Question: how fast are sums and products of 1 to 8 bits on tensor cores, and what do they give inference?\n"
    if speeds:
        yield (f"Inference over batches of parts is {min(speeds):.0f} to {max(speeds):.0f} times as fast as PyG's in fp32, copies "
               "included; what it costs in accuracy\nis in [bits.md](bits.md).\n")
    yield common.where(record)
    yield from common.commits_note(record)
    yield "Times are per launch in a recorded chain where that was measured, else medians of single runs; results are checked first.\n"
    if batches["records"]:
        yield "## Inference over batches of 20 parts (Figure 7 a and b)\n"
        yield ("Microseconds for all batches, copies included, and in brackets megabytes over the bus; after each graph the width of\n"
               "its features. PyG: fp32, the same batches, the faster of copying in order and copying ahead.\n")
        yield from batch_tables(batches)
        yield "## Tiles of 8 x 128 of a batch's adjacency (Figure 8)\n"
        yield from common.table(["graph", "vertices", "edges", "parts", "edges cut", "batches", "tiles with an edge",
                                 "stored in blocks"], tile_rows(batches))
    if cases:
        yield "## Aggregation as a dense product (Figure 7 c, Table 3)\n"
        yield "N, D: an N x N adjacency of bits times D columns. Microseconds, and in brackets 2 N N D operations in 10^12 a second.\n"
        yield from common.table(["N, D", *map(bits_text, SHOWN_BITS)], product_rows(cases))
        yield "## Sizes (Figure 9)\n\n2 N N D operations in 10^12 a second with one bit; N down, D across.\n"
        yield from size_table(cases)
        yield "## A loaded tile serves all planes (Figure 10)\n\nSo many products of one plane over one product of all planes.\n"
        yield from common.table(["N, D", *map(bits_text, REUSE_BITS)], reuse_rows(cases))
    yield from common.again("qgtc --device cuda --data GRAPHS --pyg python3",
                            "The record is [qgtc.json](qgtc.json). Table 2, accuracy, is [bits.md](bits.md).")


def pages(record):
    return {"qgtc.md": common.joined(lines(record))}
