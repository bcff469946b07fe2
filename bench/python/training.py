# SPDX-License-Identifier: Apache-2.0
"""Models of PyG, plain and accelerated, the graphs that they are trained on, and how long an epoch takes."""

import functools
import os
import statistics
import subprocess
import time
import types

import torch
import torch.nn.functional as F
import torch_geometric
import torch_geometric.nn as pyg

import tessera

GRAPHS = {  # vertices, edges (both directions), features, classes
    "cora": (2708, 10556, 1433, 7),
    "arxiv": (169343, 2315598, 128, 40),
    "reddit": (232965, 114615892, 602, 41),
    "small": (20000, 400000, 64, 16),
}
LOSSES_AFTER = (5, 20, 50)  # epochs


@functools.cache
def commit():
    """Which one is measured: TESSERA_COMMIT, or git's."""
    if "TESSERA_COMMIT" in os.environ:
        return os.environ["TESSERA_COMMIT"]
    found = subprocess.run(["git", "-C", os.path.dirname(os.path.abspath(__file__)), "rev-parse", "--short", "HEAD"],
                           capture_output=True, text=True)
    return found.stdout.strip() or "unknown"


def versions():
    return f"torch {torch.__version__}, PyG {torch_geometric.__version__}"


class Net(torch.nn.Module):
    """Two layers, 64 hidden, no dropout."""

    def __init__(self, kind, features, classes, hidden=64):
        super().__init__()
        if kind == "GIN":
            def mlp(a, b):
                return torch.nn.Sequential(torch.nn.Linear(a, b), torch.nn.ReLU(),
                                           torch.nn.Linear(b, b))

            layers = [pyg.GINConv(mlp(features, hidden)), pyg.GINConv(mlp(hidden, classes))]
        elif kind in ("GAT", "GATv2"):
            conv = pyg.GATConv if kind == "GAT" else pyg.GATv2Conv
            layers = [conv(features, hidden // 8, heads=8), conv(hidden, classes, heads=1)]
        else:
            conv = {"GCN": pyg.GCNConv, "SAGE": pyg.SAGEConv}[kind]
            layers = [conv(features, hidden), conv(hidden, classes)]
        self.layers = torch.nn.ModuleList(layers)

    def forward(self, x, edge_index):
        return self.layers[1](F.relu(self.layers[0](x, edge_index)), edge_index)


def class_of(name):
    """Net with code of its own: torch.compile keeps what it made with the code, and looks through all of that at every
    call, so that of two models with the same code one would wait for the other."""
    code = Net.forward.__code__.replace(co_name=name)
    return type(name, (Net,), {"forward": types.FunctionType(code, globals(), name)})


def make_graph(name, device):
    vertices, edges, features, classes = GRAPHS[name]
    draw = {"generator": torch.Generator(device).manual_seed(1), "device": device}
    # Skewed, as real graphs are: ends are drawn with a density that falls from vertex 0 on.
    ends = torch.rand(2, edges // 2, **draw).square().mul(vertices).long()
    half = torch.randperm(vertices, **draw)[ends]
    index = torch.cat([half, half.flip(0)], dim=1)
    # Labels that features tell: losses then follow from the numbers, and not from how they were rounded.
    labels = torch.randint(0, classes, (vertices,), **draw)
    centres = torch.randn(classes, features, **draw)
    x = (torch.randn(vertices, features, **draw) + centres[labels]) / features**0.5
    return x, index, labels


def reordered(data):
    """The same graph with its edges in another order."""
    x, index, labels = data
    order = torch.randperm(index.size(1), generator=torch.Generator().manual_seed(5))
    return x, index[:, order.to(index.device)], labels


class Training:
    """One model, and how a step of it is run."""

    def __init__(self, kind, accelerated, mode, data, dtype):
        self.take(data)
        self.device, self.mode, self.dtype = self.x.device, mode, dtype
        self.done = 0
        self.gradients = None  # of the first step
        torch.manual_seed(0)
        net = class_of("accelerated" if accelerated else "plain")
        self.net = net(kind, self.x.size(1), int(self.labels.max()) + 1).to(self.device)
        if accelerated:
            tessera.accelerate(self.net)
        self.model = torch.compile(self.net) if mode == "compiled" else self.net
        self.optimiser = torch.optim.Adam(self.net.parameters(), lr=0.01,
                                          capturable=mode == "captured")
        self.epoch = self.step
        if mode == "captured":
            self.capture()

    def take(self, data):
        """The graph to train on. `take((None, None, None))` lets go of its memory."""
        self.x, self.index, self.labels = data

    def step(self):
        self.optimiser.zero_grad(set_to_none=self.mode != "captured")
        with torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=self.dtype == "bf16"):
            loss = F.cross_entropy(self.model(self.x, self.index), self.labels)
        loss.backward()
        if self.gradients is None:
            self.gradients = [parameter.grad.clone() for parameter in self.net.parameters()]
        self.optimiser.step()
        return loss

    def capture(self):
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(2):
                self.step()
            torch.cuda.set_sync_debug_mode("error")
            try:
                self.step()
            except RuntimeError as error:
                raise RuntimeError(f"cannot be captured: {str(error).splitlines()[0]}") from None
            finally:
                torch.cuda.set_sync_debug_mode("default")
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            kept = self.step()

        def replay():
            graph.replay()
            return kept

        self.done, self.epoch = 3, replay

    def run(self, epochs):
        """The losses after LOSSES_AFTER, as far as these epochs have them."""
        found = {}
        for _ in range(epochs):
            loss = self.epoch()
            self.done += 1
            if self.done in LOSSES_AFTER:
                found[f"loss_after_{self.done}"] = loss.detach().clone()
        return found


class Clock:
    """How long epochs of one training take, in blocks between which the host waits for the GPU."""

    def __init__(self, training, clock):
        self.training, self.clock = training, clock
        self.on_gpu = training.device.type == "cuda"
        self.times, self.queued = [], []  # of an epoch
        self.block, self.first = 1, training.done

    def wait(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def run(self):
        """A block; its losses."""
        self.wait()
        start = self.clock()
        losses = self.training.run(self.block)
        self.queued.append((self.clock() - start) / self.block)
        self.wait()
        self.times.append((self.clock() - start) / self.block)
        if self.on_gpu and self.times[-1] < 0.05:
            self.block = 5  # waiting takes a part of short ones
        return losses

    def result(self):
        """All but the first block, which is not counted."""
        counted = self.times[1:] or self.times
        found = {"median_ms": 1e3 * statistics.median(counted), "min_ms": 1e3 * min(counted),
                 "epochs": self.training.done - self.first}
        if self.on_gpu:
            found["host_ms"] = 1e3 * statistics.median(self.queued[1:] or self.queued)
        return found


def measure(training, epochs, seconds, clock):
    """The clock of so many epochs, or of those that these seconds leave, and the losses."""
    measured, losses = Clock(training, clock), {}
    begin = float("inf")
    while training.done < epochs:
        losses.update(measured.run())
        begin = min(begin, time.perf_counter())  # after the first block
        if (time.perf_counter() - begin > seconds and len(measured.times) >= 4
                and training.done >= LOSSES_AFTER[0]):
            break
    return measured, {name: loss.item() for name, loss in losses.items()}
