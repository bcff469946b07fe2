# SPDX-License-Identifier: Apache-2.0
"""Sums of what sources and the edges from them say."""

from __future__ import annotations

from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor

from .._checks import check_edge_attr
from ..functional import messages
from ._base import Accelerated, for_pyg, sizes
from .convolutions import is_list_of_edges


class GINEConv(Accelerated, pyg.GINEConv):
    """``torch_geometric.nn.GINEConv`` on tessera's kernels: nothing of the size of edges x features is made but what
    its linear layer makes of features of edges.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GINEConv(torch.nn.Linear(4, 2), edge_dim=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.ones(3, 3)).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None, size: Any = None) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)) and self.flow != "source_to_target":
            obstacle = "a reversed flow with a pair of features"
        if obstacle is None and not is_list_of_edges(edge_index):
            obstacle = "features of edges with a sparse matrix"
        if obstacle is None and edge_attr is None:
            obstacle = "no features of edges"
        if obstacle is None and edge_attr.dim() != 2:
            obstacle = f"features of edges of {edge_attr.dim()} dimensions"
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        if obstacle is None and self.lin is None:
            obstacle = self._obstacle_of_raw(sources, edge_attr)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], edge_attr, size)
        graph = self._graph(edge_index, *sizes(x, size))
        check_edge_attr(edge_attr, graph)
        if self.lin is not None:
            edge_attr = self.lin(edge_attr)
        out = messages(graph, self._narrowed(sources), self._narrowed(edge_attr), tune=self._tessera_tune)
        out = self._widened(out, sources.dtype)
        if targets is not None:
            out = out + (1 + self.eps) * targets
        return self.nn(out)

    @staticmethod
    def _obstacle_of_raw(x: Tensor, edge_attr: Tensor) -> str | None:
        """Why features of edges as they are given cannot be added to those of vertices."""
        if x.size(-1) != edge_attr.size(-1):
            return "features of edges that are not as wide as those of vertices"
        if torch.promote_types(x.dtype, edge_attr.dtype) != x.dtype or not edge_attr.is_floating_point():
            return f"features of type {x.dtype} with those of edges of type {edge_attr.dtype}"
        return None
