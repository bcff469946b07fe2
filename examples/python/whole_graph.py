#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One graph trained whole by several ranks, each with a part of it.

    torchrun --nproc-per-node=2 examples/python/whole_graph.py [--epochs 50] [--checkpoint FILE]
"""

# %% The same graph on every rank: three groups, whose members know each other more often than others
import argparse
import os

import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCN

import tessera

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=50)
parser.add_argument("--checkpoint")
options = parser.parse_args()

torch.manual_seed(0)
group = torch.arange(3000) // 1000
source = torch.randint(3000, (40_000,))
target = torch.where(torch.rand(40_000) < 0.9, group[source] * 1000 + source.roll(1) % 1000, source.roll(2))
data = Data(x=torch.randn(3000, 16) + F.one_hot(group, 16), y=group, edge_index=torch.stack([source, target]))
data.train_mask = torch.rand(3000) < 0.1

# %% Each rank gets its part; the model is PyG's
run = tessera.distributed.start(time_limit=60)
part = tessera.distributed.partition(data)
model = tessera.distributed.whole_graph(GCN(16, 32, num_layers=2, out_channels=3))
optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
done = 0
if options.checkpoint and os.path.exists(options.checkpoint):  # of any number of ranks
    kept = torch.load(options.checkpoint)
    model.load_state_dict(kept["model"])
    optimiser.load_state_dict(kept["optimiser"])
    done = kept["epochs"]

for epoch in range(done, options.epochs):
    optimiser.zero_grad()
    losses = F.cross_entropy(model(part.x, part.edge_index), part.y, reduction="none")
    loss = part.mean(losses, part.train_mask)  # over all ranks
    loss.backward()
    optimiser.step()

# %% All ranks have the same weights; rank 0 keeps them
predicted = model(part.x, part.edge_index).argmax(1)
accuracy = part.mean((predicted == part.y).float(), ~part.train_mask)
if run.rank == 0:
    print(f"{run.ranks} ranks, {options.epochs} epochs: loss {loss.item():.6f}, accuracy {accuracy.item():.3f}")
    if options.checkpoint:
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict(), "epochs": options.epochs},
                   options.checkpoint + ".new")
        os.replace(options.checkpoint + ".new", options.checkpoint)  # never half a file
