#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single layers and small models of PyG, plain and after `tessera.accelerate`, eager, side by side.

    python bench/python/layers.py --threads 2 --json layers.json
    python bench/python/layers.py --device cuda --json layers_gpu.json

Forty cases: twenty layers and models on two graphs, on a GPU those of the size of cora and of ogbn-arxiv. A step is the
forward pass and, where there is anything to learn, the backward pass. Results and gradients of both are compared with PyG's
in double precision first; a case that is further from them than PyG in single precision may be has no times. Then both run
in turns, one step each, and medians are kept; on a GPU a turn is as many steps as take 20 ms, and the host waits at its end.
Graphs are random and skewed. What aggregation takes of PyG's time is the share of the forward pass that goes into
`propagate` (of pooling: all of it).
"""

import argparse
import copy
import json
import platform
import statistics
import sys
import time

import torch
import torch_geometric.nn as pyg
from torch_geometric.nn import MessagePassing
from training import commit, versions

import tessera
import tessera.nn

SIZES = {"small": (2708, 10556), "large": (20000, 400000), "arxiv": (169343, 2332486)}  # vertices and edges, both directions
GRAPHS_OF = {"cpu": ["small", "large"], "cuda": ["small", "arxiv"]}
TURN_SECONDS = 0.02  # on a GPU
WIDTH, CLASSES, GRAPHS = 64, 16, 256
TOLERANCE = 1e-3  # relative to the largest number of a tensor


class Inputs:
    """A graph and what is on it."""

    def __init__(self, name, seed=1):
        self.vertices, edges = SIZES[name]
        draw = torch.Generator().manual_seed(seed)
        ends = torch.rand(2, edges // 2, generator=draw).square().mul(self.vertices).long()
        half = torch.randperm(self.vertices, generator=draw)[ends]
        self.edges = torch.cat([half, half.flip(0)], dim=1)
        self.x = torch.randn(self.vertices, WIDTH, generator=draw)
        self.weight = torch.rand(self.edges.size(1), generator=draw) + 0.1
        self.labels = torch.randint(0, CLASSES, (self.vertices,), generator=draw)
        self.mask = torch.rand(self.vertices, generator=draw) < 0.5
        self.batch = torch.randint(0, GRAPHS, (self.vertices,), generator=draw).sort().values
        self.degrees = torch.bincount(torch.bincount(self.edges[1], minlength=self.vertices))

    def to(self, device):
        for name, value in vars(self).items():
            if isinstance(value, torch.Tensor):
                setattr(self, name, value.to(device))
        return self

    def double(self):
        other = copy.copy(self)
        other.x, other.weight = self.x.double(), self.weight.double()
        return other


class Weighted(MessagePassing):
    """A layer of a user's own."""

    def __init__(self):
        super().__init__(aggr="mean")
        self.lin = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, x, edge_index, weight):
        return self.propagate(edge_index, x=self.lin(x), weight=weight)

    def message(self, x_j, weight):
        return weight.view(-1, 1) * x_j


class Mixed(torch.nn.Module):
    """Layers with and without parameters by turns."""

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.ModuleList([pyg.GraphConv(WIDTH, WIDTH), pyg.SimpleConv(aggr="mean"), pyg.TAGConv(WIDTH, WIDTH, K=2),
                                           pyg.LGConv()])
        self.norm = pyg.LayerNorm(WIDTH)

    def forward(self, x, edge_index):
        for layer in self.layers:
            x = self.norm(layer(x, edge_index)).relu()
        return x


class Pool(torch.nn.Module):
    """A function of a batch of graphs. PyG's is called by PyG's model, ours by the accelerated one."""

    def __init__(self, name):
        super().__init__()
        self.name, self.package = name, "torch_geometric.nn"

    def forward(self, x, batch):
        return getattr(sys.modules[self.package], self.name)(x, batch, GRAPHS)


def network():
    return torch.nn.Sequential(torch.nn.Linear(2 * WIDTH, WIDTH), torch.nn.ReLU(), torch.nn.Linear(WIDTH, WIDTH))


def plain(inputs):
    return inputs.x, inputs.edges


def weighted(inputs):
    return inputs.x, inputs.edges, inputs.weight


def pooled(inputs):
    return inputs.x, inputs.batch


def scores(inputs):
    return inputs.x[:, :CLASSES].softmax(dim=1), inputs.labels[inputs.mask], inputs.mask, inputs.edges


# By name: how a model is made (with what is on the graph), and what it is called with.
CASES = {
    "GraphConv": (lambda on: pyg.GraphConv(WIDTH, WIDTH), plain),
    "GraphConv, weights": (lambda on: pyg.GraphConv(WIDTH, WIDTH), weighted),
    "GraphConv, max": (lambda on: pyg.GraphConv(WIDTH, WIDTH, aggr="max"), plain),
    "TAGConv": (lambda on: pyg.TAGConv(WIDTH, WIDTH), plain),
    "LGConv": (lambda on: pyg.LGConv(), plain),
    "LightGCN": (lambda on: pyg.LightGCN(on.vertices, WIDTH, 3), lambda on: (on.edges, on.edges[:, ::4])),
    "GCN2Conv": (lambda on: pyg.GCN2Conv(WIDTH, 0.1), lambda on: (on.x, on.x, on.edges)),
    "ARMAConv": (lambda on: pyg.ARMAConv(WIDTH, WIDTH, num_stacks=2, num_layers=2), plain),
    "PNAConv": (lambda on: pyg.PNAConv(WIDTH, WIDTH, ["mean", "min", "max", "std"], ["identity", "amplification", "attenuation"],
                                       on.degrees), plain),
    "GatedGraphConv": (lambda on: pyg.GatedGraphConv(WIDTH, 2), plain),
    "EdgeConv, max": (lambda on: pyg.EdgeConv(network()), plain),
    "FiLMConv": (lambda on: pyg.FiLMConv(WIDTH, WIDTH), plain),
    "LabelPropagation": (lambda on: pyg.LabelPropagation(3, 0.9), lambda on: (on.labels, on.edges, on.mask)),
    "CorrectAndSmooth": (lambda on: pyg.CorrectAndSmooth(3, 0.9, 3, 0.8), scores),
    "GraphSAGE, JumpingKnowledge max": (lambda on: pyg.GraphSAGE(WIDTH, WIDTH, 3, jk="max"), plain),
    "global_add_pool": (lambda on: Pool("global_add_pool"), pooled),
    "global_mean_pool": (lambda on: Pool("global_mean_pool"), pooled),
    "global_max_pool": (lambda on: Pool("global_max_pool"), pooled),
    "a layer of one's own": (lambda on: Weighted(), weighted),
    "a mixed model": (lambda on: Mixed(), plain),
}


def made(name, inputs):
    torch.manual_seed(0)
    return CASES[name][0](inputs).to(inputs.x.device)


def accelerated(model):
    model = tessera.accelerate(copy.deepcopy(model)) if not isinstance(model, Pool) else copy.copy(model)
    if isinstance(model, Pool):
        model.package = "tessera.nn"
    return model


def step_of(model, name, inputs):
    """A function that runs a step and returns the result with all gradients."""
    given = list(CASES[name][1](inputs))
    learns = [tensor for tensor in model.parameters()]
    if name not in ("LabelPropagation", "CorrectAndSmooth", "LightGCN"):
        given[0] = given[0].clone().requires_grad_()
        learns.append(given[0])

    def step():
        for tensor in learns:
            tensor.grad = None
        out = model(*given)
        if learns:
            out.backward(out.detach())
        return [out.detach(), *(tensor.grad for tensor in learns)]

    return step


def furthest(found, expected):
    """The largest difference, relative to the largest number of a tensor."""
    worst = 0.0
    for mine, theirs in zip(found, expected, strict=True):
        if theirs is not None and theirs.numel() > 0:
            worst = max(worst, float((mine.double() - theirs).abs().max() / theirs.abs().max().clamp(min=1e-30)))
    return worst


def wait_of(inputs):
    """A function that waits for the GPU, where there is one to wait for."""
    return torch.cuda.synchronize if inputs.x.is_cuda else lambda: None


def share_of_aggregation(model, name, inputs, rounds=5):
    """How much of PyG's forward pass goes into propagate; the median of a few."""
    if isinstance(model, Pool):
        return 1.0
    inside, began, handles, wait = [0.0], [0.0], [], wait_of(inputs)

    def now():
        wait()
        return time.perf_counter()

    def before(*_):
        began[0] = now()

    def after(*_):
        inside[0] += now() - began[0]

    layers = [layer for layer in model.modules() if isinstance(layer, MessagePassing)]
    for layer in layers:
        handles += [layer.register_propagate_forward_pre_hook(before), layer.register_propagate_forward_hook(after)]
    given, shares = CASES[name][1](inputs), []
    for _ in range(rounds):
        inside[0], start = 0.0, now()
        model(*given)
        shares.append(inside[0] / (now() - start))
    for handle in handles:
        handle.remove()
    return statistics.median(shares)


class Turns:
    """Times of a step in milliseconds, a turn each."""

    def __init__(self, step, inputs, options):
        self.step, self.wait, self.times, self.count = step, wait_of(inputs), [], 1
        self.clock = time.perf_counter if options.clock == "wall" else time.process_time
        self.turn()
        if inputs.x.is_cuda:
            self.turn()
            self.count = max(1, round(1e3 * TURN_SECONDS / self.times.pop()))
        self.times.clear()

    def turn(self):
        self.wait()
        start = self.clock()
        for _ in range(self.count):
            self.step()
        self.wait()
        self.times.append(1e3 * (self.clock() - start) / self.count)


def measured(name, graph, inputs, options):
    model = made(name, inputs)
    record = {"layer": name, "graph": graph, "share": share_of_aggregation(copy.deepcopy(model), name, inputs)}
    steps = {"pyg": step_of(model, name, inputs), "tessera": step_of(accelerated(model), name, inputs)}
    expected = step_of(copy.deepcopy(model).double(), name, inputs.double())()
    for who, step in steps.items():
        record[who] = {"difference": furthest(step(), expected)}
    if record["tessera"]["difference"] > max(TOLERANCE, 2 * record["pyg"]["difference"]):
        return record
    turns = {who: Turns(step, inputs, options) for who, step in steps.items()}
    begin, rounds = time.perf_counter(), 0
    while rounds < options.least or (time.perf_counter() - begin < options.seconds and rounds < options.most):
        for side in turns.values():
            side.turn()
        rounds += 1
    for who, side in turns.items():
        record[who].update(median_ms=statistics.median(side.times), min_ms=min(side.times), steps=rounds * side.count)
    return record


def line(record):
    if "error" in record:
        return f"{record['graph']:6} {record['layer']:32} {record['error']}"
    theirs, ours = (record[who].get("median_ms") for who in ("pyg", "tessera"))
    if ours is None:
        return f"{record['graph']:6} {record['layer']:32} differs: {record['tessera']['difference']:.1e}"
    return (f"{record['graph']:6} {record['layer']:32} PyG {theirs:9.2f} ms, tessera {ours:9.2f} ms, {theirs / ours:6.2f} x, "
            f"aggregation {100 * record['share']:3.0f} %, differences {record['pyg']['difference']:.0e} and "
            f"{record['tessera']['difference']:.0e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--layers", nargs="+", choices=CASES, default=list(CASES), metavar="LAYER")
    parser.add_argument("--graphs", nargs="+", choices=SIZES, help="default: " +
                        "; ".join(f"{' and '.join(graphs)} ({device})" for device, graphs in GRAPHS_OF.items()))
    parser.add_argument("--device", choices=list(GRAPHS_OF), default="cpu")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seconds", type=float, help="limit for each case (default: 4, on a GPU 0.6)")
    parser.add_argument("--least", type=int, default=5, help="steps, whatever they take")
    parser.add_argument("--most", type=int, default=200, help="steps")
    parser.add_argument("--clock", choices=["wall", "processor"], default="wall", help="processor: for one thread on a busy machine")
    parser.add_argument("--json")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    if options.device == "cuda" and not torch.cuda.is_available():
        sys.exit("there is no GPU that torch can use; --device cpu measures on the CPU")
    if options.seconds is None:
        options.seconds = 0.6 if options.device == "cuda" else 4
    machine = torch.cuda.get_device_name() if options.device == "cuda" else platform.processor() or platform.machine()
    records = []
    for graph in options.graphs or GRAPHS_OF[options.device]:
        inputs = Inputs(graph).to(options.device)
        for name in options.layers:
            try:
                found = measured(name, graph, inputs, options)
            except Exception as error:  # one that cannot run must not end the others
                found = {"layer": name, "graph": graph, "error": f"{type(error).__name__}: {error}"[:300]}
            records.append({**found, "threads": options.threads, "clock": options.clock,
                            "versions": versions(), "commit": commit(), "device": machine})
            print(line(records[-1]), flush=True)
            if options.json:
                with open(options.json, "w") as file:
                    json.dump(records, file, indent=1)


if __name__ == "__main__":
    main()
