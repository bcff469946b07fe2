# SPDX-License-Identifier: Apache-2.0
"""Several GPUs and machines, on ``torch.distributed``: one graph trained whole, each rank with a part of it, or batches of
sampled neighbours on each rank.

Example:
    >>> import torch, tessera
    >>> from torch_geometric.data import Data
    >>> from torch_geometric.nn import GCN
    >>> run = tessera.distributed.start()  # of torchrun; without it, one rank
    >>> data = Data(x=torch.rand(4, 2), y=torch.tensor([0, 1, 0, 1]), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    >>> part = tessera.distributed.partition(data)
    >>> model = tessera.distributed.whole_graph(GCN(2, 8, num_layers=2, out_channels=2))
    >>> out = model(part.x, part.edge_index)
    >>> part.mean(torch.nn.functional.cross_entropy(out, part.y, reduction="none")).backward()
    >>> tessera.distributed.end()
"""

from ._loader import NeighborLoader
from ._model import whole_graph
from ._part import Part, partition
from ._session import RankLost, end, start

__all__ = ["NeighborLoader", "Part", "RankLost", "end", "partition", "start", "whole_graph"]
