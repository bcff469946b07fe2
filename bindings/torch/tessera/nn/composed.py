# SPDX-License-Identifier: Apache-2.0
"""Modules of PyG's that pass no messages themselves: models made of layers, and what combines the results of layers."""

from __future__ import annotations

from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor
from torch_geometric.utils import to_edge_index

from .._derivatives import other_derivatives
from .._link_scores import dot
from ..graph import Graph
from .products import LabelPropagation, LGConv


class LightGCN(pyg.LightGCN):
    """``torch_geometric.nn.LightGCN`` on tessera's kernels, its scores of links, too: nothing of the size of links x
    features is made.

    Example:
        >>> import torch, tessera.nn
        >>> model = tessera.nn.LightGCN(num_nodes=3, embedding_dim=4, num_layers=2)
        >>> model(torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3])
    """

    def __init__(self, num_nodes: int, embedding_dim: int, num_layers: int, alpha: float | Tensor | None = None,
                 **kwargs: Any) -> None:
        super().__init__(num_nodes, embedding_dim, num_layers, alpha, **kwargs)
        self.convs = torch.nn.ModuleList([LGConv(**kwargs) for _ in range(num_layers)])

    def forward(self, edge_index: Any, edge_label_index: Tensor | None = None, edge_weight: Tensor | None = None) -> Tensor:
        links = _edges_of(edge_index) if edge_label_index is None else edge_label_index
        if other_derivatives() is not None or type(links) is not Tensor or links.dim() != 2 or links.size(0) != 2:
            return super().forward(edge_index, links, edge_weight)
        out = self.get_embedding(edge_index, edge_weight)
        with torch.autocast(out.device.type, enabled=False):  # of products and sums PyG makes none in 16 bits
            return dot(out, links)


def _edges_of(adjacency: Any) -> Tensor:
    """Both ends of every edge, the sources first; of a sparse matrix the rows, as PyG has it."""
    if isinstance(adjacency, Graph):
        return torch.stack(adjacency.targets_and_sources()[::-1])
    if isinstance(adjacency, Tensor) and adjacency.layout == torch.strided:
        return adjacency
    return to_edge_index(adjacency)[0]


class CorrectAndSmooth(pyg.CorrectAndSmooth):
    """``torch_geometric.nn.CorrectAndSmooth`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> model = tessera.nn.CorrectAndSmooth(2, 0.9, 2, 0.8)
        >>> soft, labels, mask = torch.full((3, 2), 0.5), torch.tensor([0, 1]), torch.tensor([0, 1])
        >>> model(soft, labels, mask, torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, num_correction_layers: int, correction_alpha: float, num_smoothing_layers: int, smoothing_alpha: float,
                 autoscale: bool = True, scale: float = 1.0) -> None:
        super().__init__(num_correction_layers, correction_alpha, num_smoothing_layers, smoothing_alpha, autoscale, scale)
        self.prop1 = LabelPropagation(num_correction_layers, correction_alpha)
        self.prop2 = LabelPropagation(num_smoothing_layers, smoothing_alpha)


class JumpingKnowledge(pyg.JumpingKnowledge):
    """``torch_geometric.nn.JumpingKnowledge``: maxima are taken over whole tensors instead of a last dimension of few.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.JumpingKnowledge("max")([torch.tensor([[1.0, 4.0]]), torch.tensor([[3.0, 2.0]])])
        tensor([[3., 4.]])
    """

    def forward(self, xs: list[Tensor]) -> Tensor:
        if self.mode == "max":
            return torch.stack(list(xs), dim=0).max(dim=0)[0]
        return super().forward(xs)
