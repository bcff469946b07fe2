#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Captured training steps and reductions of groups, beside PyG, torch and torch_scatter.

    python bench/python/captured.py --device cuda --json captured.json
    python bench/python/captured.py --device cpu --quick

Steps are forward, cross entropy, backward and Adam of two layers with 64 hidden features on a graph of cora's size:
PyG's eager loop, PyG's step captured, and the step after `tessera.accelerate` captured by `tessera.capture`. PyG gets what
it is fastest with: norms that are kept (cached=True), self loops that are there already, and of an edge_index and a sparse
matrix the better. Losses after the same steps are compared before anything is timed. On a CPU nothing is captured, and
"captured" is the eager loop.

Reductions are sums and maxima of rows by a sorted index (or its offsets) and by one in any order, on shapes with hubs, wide
and narrow rows. Each is compared with its definition in fp64 first. What is kept of an unsorted index is made once, and its
time stands by itself.

All that is compared is measured in turns, and its median counts.
"""

import argparse
import copy
import json
import platform
import statistics
import time

import torch
import torch.nn.functional as F
from training import Net, commit, make_graph, versions

import tessera

KINDS = ["GCN", "SAGE", "GIN", "GAT", "GATv2"]
CHECKED_AFTER = 8  # steps
BOUNDS = {"sum": 1e-4, "max": 0.0}
# entries, groups, features, how entries are spread
SHAPES = [(20_000, 1_000, 1, "even"), (20_000, 1_000, 64, "even"), (20_000, 20, 64, "even"), (20_000, 15_000, 64, "even"),
          (100_000, 5_000, 16, "even"), (100_000, 5_000, 16, "skewed"), (100_000, 100, 128, "skewed"), (100_000, 100_000, 32, "skewed"),
          (500_000, 10_000, 1, "even"), (500_000, 10_000, 8, "skewed"), (500_000, 10_000, 64, "hub"), (500_000, 10, 64, "even"),
          (1_000_000, 50_000, 3, "skewed"), (1_000_000, 50_000, 32, "even"), (1_000_000, 50_000, 32, "hub"), (1_000_000, 1, 16, "even"),
          (2_000_000, 100_000, 128, "skewed"), (2_000_000, 200_000, 16, "hub"), (200_000, 4_000, 512, "even"), (200_000, 4_000, 512, "skewed")]
SMALL = [(2_000, 100, 1, "even"), (2_000, 100, 16, "skewed"), (2_000, 7, 33, "hub")]


class Clock:
    """Times of several functions, in turns."""

    def __init__(self, device, rounds, seconds):
        self.on_gpu, self.rounds, self.seconds = device.type == "cuda", rounds, seconds

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def once(self, function, times):
        self.wait()
        begin = time.perf_counter()
        for _ in range(times):
            function()
        self.wait()
        return (time.perf_counter() - begin) / times

    def medians(self, functions, block):
        """Milliseconds of each, by name."""
        found, begin = {name: [] for name in functions}, time.perf_counter()
        for name, function in functions.items():
            self.once(function, 3)
        for done in range(self.rounds):
            for name, function in functions.items():
                found[name].append(self.once(function, block))
            if done >= 2 and time.perf_counter() - begin > self.seconds:
                break
        return {name: 1e3 * statistics.median(times) for name, times in found.items()}


def with_loops(index, vertices):
    index = index[:, index[0] != index[1]]
    loops = torch.arange(vertices, device=index.device)
    return torch.cat([index, torch.stack([loops, loops])], dim=1)


def of_pyg(kind, data, form):
    """A model with the best settings of PyG's, and its edges."""
    x, index, labels = data
    torch.manual_seed(0)
    model = Net(kind, x.size(1), int(labels.max()) + 1).to(x.device)
    if kind in ("GAT", "GATv2"):
        index = with_loops(index, x.size(0))
    for layer in model.layers:
        if kind == "GCN":
            layer.cached = True
        elif kind in ("GAT", "GATv2"):
            layer.add_self_loops = False
    if form == "matrix":
        index = torch.sparse_coo_tensor(index.flip(0), torch.ones(index.size(1), device=x.device), (x.size(0),) * 2).coalesce().to_sparse_csr()
    return model, index


def train_step(model, optimiser, x, edges, labels):
    optimiser.zero_grad()
    loss = F.cross_entropy(model(x, edges), labels)
    loss.backward()
    optimiser.step()
    return loss


def adam(model):
    """torch's fastest of each device."""
    return torch.optim.Adam(model.parameters(), lr=0.01, fused=True, capturable=next(model.parameters()).is_cuda)


def loop(model, x, edges, labels, captured):
    """What runs a step."""
    optimiser = adam(model)
    if captured:
        step = tessera.capture(train_step, model, optimiser, (x, edges, labels))
        return lambda: step()
    return lambda: train_step(model, optimiser, x, edges, labels)


def steps_of(kind, data, clock, program):
    x, index, labels = data
    made, why = {}, {}
    for form in ("edges", "matrix"):
        for captured in (False, True):
            model, edges = of_pyg(kind, data, form)
            made[f"pyg {'captured' if captured else 'eager'} {form}"] = loop(model, x, edges, labels, captured)
    torch.manual_seed(0)
    model = Net(kind, x.size(1), int(labels.max()) + 1).to(x.device)
    made["tessera captured"] = loop(tessera.accelerate(model), x, index, labels, True)
    losses = {}
    for name, step in list(made.items()):
        try:
            losses[name] = [step().item() for _ in range(CHECKED_AFTER)][-1]
        except Exception as error:  # one that cannot run must not end the others
            why[name] = f"{type(error).__name__}: {error}"[:200]
            del made[name]
    expected = losses["pyg eager edges"]
    apart = {name: abs(loss - expected) / abs(expected) for name, loss in losses.items()}
    wrong = {name: f"its loss is {difference:.1e} from PyG's" for name, difference in apart.items() if difference > 1e-2}
    times = clock.medians({name: step for name, step in made.items() if name not in wrong}, 20)
    best = {way: min((time for name, time in times.items() if name.startswith(f"pyg {way}")), default=None) for way in ("eager", "captured")}
    return {"part": "steps", "model": kind, "pyg_eager_ms": best["eager"], "pyg_captured_ms": best["captured"],
            "tessera_captured_ms": times.get("tessera captured"), "program_ms": program.get(kind), "all_ms": times,
            "loss_difference": apart.get("tessera captured"), "left_out": {**why, **wrong}}


def drawn(entries, groups, spread, device):
    """The group of each entry, in order; of a hub a quarter of all."""
    draw = torch.Generator().manual_seed(entries + groups)
    if spread == "skewed":
        index = (torch.rand(entries, generator=draw) ** 3 * groups).long()
    else:
        index = torch.randint(0, groups, (entries,), generator=draw)
    if spread == "hub":
        index[: entries // 4] = groups // 2
    return index.sort().values.to(device)


def defined(src, index, groups, reduce):
    place = index[:, None].expand(-1, src.size(1))
    name = {"sum": "sum", "max": "amax"}[reduce]
    return src.new_zeros(groups, src.size(1), dtype=torch.float64).scatter_reduce(0, place, src.double(), name, include_self=False)


def ways(src, index, ptr, groups, reduce):
    """Who reduces, and how: for a sorted index all of them, for another those that take one."""
    shape, place = (groups, src.size(1)), index[:, None].expand(-1, src.size(1))
    torchs = {"sum": "sum", "max": "amax"}[reduce]
    sizes = ptr.diff()

    def scatter_reduce():
        return src.new_zeros(shape).scatter_reduce(0, place, src, torchs, include_self=False)

    def segment_reduce():
        return torch.segment_reduce(src, reduce, offsets=ptr, axis=0, initial=0 if reduce == "sum" else None, unsafe=True)

    any_order = {"torch.scatter_reduce": scatter_reduce}
    in_order = {"torch.segment_reduce": segment_reduce} if reduce == "sum" or bool((sizes > 0).all()) else {}
    if reduce == "sum":
        any_order["torch.index_add"] = lambda: src.new_zeros(shape).index_add(0, index, src)
    try:
        import torch_scatter

        any_order["torch_scatter.scatter"] = lambda: torch_scatter.scatter(src, index, 0, dim_size=groups, reduce=reduce)
        in_order["torch_scatter.segment_csr"] = lambda: torch_scatter.segment_csr(src, ptr, reduce=reduce)
    except ImportError:
        pass
    return any_order, in_order


def check(functions, expected, reduce):
    """Those that compute what they should."""
    bound = BOUNDS[reduce] * (1 + float(expected.abs().max()))
    return {name: function for name, function in functions.items() if float((function().double() - expected).abs().max()) <= bound}


def reductions(shape, device, clock):
    entries, groups, features, spread = shape
    index = drawn(entries, groups, spread, device)
    ptr = torch.cat([index.new_zeros(1), torch.bincount(index, minlength=groups).cumsum(0)])
    src = torch.randn(entries, features, device=device)
    order = torch.randperm(entries, generator=torch.Generator().manual_seed(1)).to(device)
    mixed = index[order]
    for reduce in ("sum", "max"):
        any_order, in_order = ways(src, index, ptr, groups, reduce)
        ours = {"tessera": lambda: tessera.segment_reduce(src, ptr, reduce)}
        yield record(shape, reduce, "sorted", {**ours, **in_order, **any_order}, defined(src, index, groups, reduce), clock, None)
        tessera.clear_cache()
        fresh = mixed.clone()
        first = clock.once(lambda: tessera.scatter(src, fresh, 0, groups, reduce), 1)
        ours = {"tessera": lambda: tessera.scatter(src, fresh, 0, groups, reduce)}
        again = clock.once(ours["tessera"], 1)
        any_order, _ = ways(src, mixed, ptr, groups, reduce)
        yield record(shape, reduce, "unsorted", {**ours, **any_order}, defined(src, mixed, groups, reduce), clock, 1e3 * max(first - again, 0))


def record(shape, reduce, order, functions, expected, clock, order_ms):
    right = check(functions, expected, reduce)
    entries, groups, features, spread = shape
    return {"part": "reductions", "entries": entries, "groups": groups, "features": features, "spread": spread, "reduce": reduce,
            "order": order, "ms": clock.medians(right, 5), "order_ms": order_ms, "wrong": sorted(functions.keys() - right.keys())}


def others(times):
    return {name: time for name, time in times.items() if name != "tessera"}


def line(one):
    if one["part"] == "steps":
        text = ", ".join(f"{name} {time:.3f}" for name, time in one["all_ms"].items())
        left = "; ".join(f"{name} left out: {why}" for name, why in one["left_out"].items())
        return f"{one['model']:6} {text} ms{'; ' + left if left else ''}"
    text = ", ".join(f"{name} {time:.3f}" for name, time in one["ms"].items())
    made = "" if one["order_ms"] is None else f"; order made in {one['order_ms']:.3f} ms"
    wrong = f"; wrong: {', '.join(one['wrong'])}" if one["wrong"] else ""
    return f"{one['entries']} x {one['features']} to {one['groups']} {one['spread']} {one['reduce']} {one['order']}: {text} ms{made}{wrong}"


def of_program(path):
    """Milliseconds of a step of the program by its records (`tessera bench --json`)."""
    if path is None:
        return {}
    with open(path) as file:
        records = json.load(file)["records"]
    names = {"step_gcn": "GCN", "step_sage": "SAGE", "step_gin": "GIN", "step_gat": "GAT", "step_gatv2": "GATv2"}
    return {names[one["op"]]: one["median_us"] / 1e3 for one in records if one.get("op") in names and one.get("precision") == "fp32"}


def all_records(options):
    device = torch.device(options.device)
    clock = Clock(device, 5 if options.quick else 15, options.seconds)
    if "steps" in options.parts:
        data, program = make_graph("cora", device), of_program(options.program_steps)
        for kind in KINDS[:1] if options.quick else KINDS:
            yield steps_of(kind, copy.copy(data), clock, program)
    if "reductions" in options.parts:
        for shape in SMALL if options.quick else SHAPES:
            yield from reductions(shape, device, clock)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--parts", nargs="+", choices=["steps", "reductions"], default=["steps", "reductions"])
    parser.add_argument("--quick", action="store_true", help="few and small cases")
    parser.add_argument("--seconds", type=float, default=0.5, help="limit for what is measured in turns")
    parser.add_argument("--program-steps", metavar="FILE", help="records of `tessera bench` that have the program's steps at these widths")
    parser.add_argument("--json")
    options = parser.parse_args()
    machine = torch.cuda.get_device_name() if torch.device(options.device).type == "cuda" else platform.machine()
    records = []
    for one in all_records(options):
        records.append({**one, "device": machine, "commit": commit(), "versions": versions()})
        print(line(one), flush=True)
        if options.json:
            with open(options.json, "w") as file:
                json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
