# SPDX-License-Identifier: Apache-2.0
"""PyG's layers on tessera's kernels: the same names, arguments, defaults and state_dict keys.

Example:
    >>> import torch, tessera.nn, torch_geometric.nn
    >>> theirs, ours = torch_geometric.nn.GCNConv(4, 2), tessera.nn.GCNConv(4, 2)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
"""

from .attention import AGNNConv, GATConv, GATv2Conv, TransformerConv
from .convolutions import APPNP, ChebConv, SGConv
from .few_bits import ClusterGCNConv, GCNConv, GINConv, SAGEConv

__all__ = [
    "AGNNConv",
    "APPNP",
    "ChebConv",
    "ClusterGCNConv",
    "GATConv",
    "GATv2Conv",
    "GCNConv",
    "GINConv",
    "SAGEConv",
    "SGConv",
    "TransformerConv",
]
