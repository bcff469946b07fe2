# SPDX-License-Identifier: Apache-2.0
"""PyG's layers on tessera's kernels: the same names, arguments, defaults and state_dict keys.

Example:
    >>> import torch, tessera.nn, torch_geometric.nn
    >>> theirs, ours = torch_geometric.nn.GCNConv(4, 2), tessera.nn.GCNConv(4, 2)
    >>> ours.load_state_dict(theirs.state_dict())
    <All keys matched successfully>
"""

from .attention import AGNNConv, GATConv, GATv2Conv, TransformerConv
from .composed import CorrectAndSmooth, JumpingKnowledge, LightGCN
from .convolutions import APPNP, ChebConv, GraphConv, SGConv
from .edge_networks import EdgeConv, FiLMConv
from .few_bits import ClusterGCNConv, GCNConv, GINConv, SAGEConv
from .gine import GINEConv
from .hetero import HeteroConv
from .kinds import HeteroDictLinear, HeteroLinear, HGTConv
from .pna import PNAConv
from .pooling import (MaxAggregation, MeanAggregation, MinAggregation, SumAggregation, global_add_pool, global_max_pool,
                      global_mean_pool)
from .products import ARMAConv, GatedGraphConv, GCN2Conv, LabelPropagation, LGConv, TAGConv
from .relational import FastRGCNConv, RGCNConv

__all__ = [
    "AGNNConv",
    "APPNP",
    "ARMAConv",
    "ChebConv",
    "ClusterGCNConv",
    "CorrectAndSmooth",
    "EdgeConv",
    "FastRGCNConv",
    "FiLMConv",
    "GATConv",
    "GATv2Conv",
    "GCN2Conv",
    "GCNConv",
    "GINConv",
    "GINEConv",
    "GatedGraphConv",
    "GraphConv",
    "HGTConv",
    "HeteroConv",
    "HeteroDictLinear",
    "HeteroLinear",
    "JumpingKnowledge",
    "LGConv",
    "LabelPropagation",
    "LightGCN",
    "MaxAggregation",
    "MeanAggregation",
    "MinAggregation",
    "PNAConv",
    "RGCNConv",
    "SAGEConv",
    "SGConv",
    "SumAggregation",
    "TAGConv",
    "TransformerConv",
    "global_add_pool",
    "global_max_pool",
    "global_mean_pool",
]
