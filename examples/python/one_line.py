#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""From a PyG tutorial's model to tessera's kernels in one line, with the times printed.

    python examples/python/one_line.py [--device cuda] [--epochs 50]
"""

# %% A model as PyG's tutorials have it, on a random graph of 20 000 vertices and 400 000 edges
import argparse
import time

import torch
import torch.nn.functional as F
from torch_geometric.nn import GATConv, GCNConv

import tessera

parser = argparse.ArgumentParser()
parser.add_argument("--device", default="cpu")
parser.add_argument("--epochs", type=int, default=20)
options = parser.parse_args()


class Net(torch.nn.Module):
    def __init__(self, features, classes):
        super().__init__()
        self.conv1 = GATConv(features, 8, heads=8)
        self.conv2 = GCNConv(64, classes)

    def forward(self, x, edge_index):
        x = F.elu(self.conv1(x, edge_index))
        return self.conv2(x, edge_index)


torch.manual_seed(0)
x = torch.randn(20_000, 64, device=options.device)
edge_index = torch.randint(0, 20_000, (2, 400_000), device=options.device)
y = torch.randint(0, 10, (20_000,), device=options.device)


# %% Its training loop, which stays as it is
def train(model, epochs):
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    times = []
    for _ in range(epochs):
        start = time.perf_counter()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x, edge_index), y)
        loss.backward()
        optimiser.step()
        value = loss.item()  # waits for a GPU, too
        times.append(time.perf_counter() - start)
    return value, 1e3 * sorted(times)[len(times) // 2]


torch.manual_seed(1)
plain = Net(64, 10).to(options.device)
loss, plain_ms = train(plain, options.epochs)
print(f"PyG:     loss {loss:.5f}, {plain_ms:.1f} ms an epoch")

# %% The one line
torch.manual_seed(1)
model = tessera.accelerate(Net(64, 10).to(options.device))
loss, ms = train(model, options.epochs)
print(f"tessera: loss {loss:.5f}, {ms:.1f} ms an epoch, {plain_ms / ms:.1f} times as fast")

# %% Which kernels that were
print(tessera.explain(model, x, edge_index))
