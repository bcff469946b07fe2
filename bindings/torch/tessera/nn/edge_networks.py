# SPDX-License-Identifier: Apache-2.0
"""Layers that make a message of the features of both ends of an edge."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor

from .._kept import kept
from ..graph import Graph
from ..segments import gather, scatter
from ._base import Accelerated, for_pyg, sizes
from ._fused import linear_of
from .convolutions import first_of, is_list_of_edges


class OverEdges(Accelerated):
    """A layer whose messages are made of both ends of edges: kernels gather features, and reduce messages."""

    _reductions = ("sum", "mean", "max", "min")

    def _obstacle_of_ends(self, x: Any, edge_index: Any) -> str | None:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)) and self.flow != "source_to_target":
            obstacle = "a reversed flow with a pair of features"
        return obstacle

    def _ends(self, x: Any, edge_index: Any) -> tuple[Tensor, Tensor]:
        """Of each edge its target and its source."""
        return self._graph(edge_index, *sizes(x, None)).targets_and_sources()

    def _reduced(self, messages: Tensor, to: Tensor, targets: int) -> Tensor:
        return self._widened(scatter(self._narrowed(messages), to, 0, targets, self._reduction()), messages.dtype)


class EdgeConv(OverEdges, pyg.EdgeConv):
    """``torch_geometric.nn.EdgeConv`` on tessera's kernels: sum, mean, max and min. The first linear layer of its network
    is multiplied by features of vertices, of which there are fewer than edges.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.EdgeConv(torch.nn.Linear(8, 2))
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Any, edge_index: Any) -> Tensor:
        if not self._notice(self._obstacle_of_ends(x, edge_index), x, edge_index):
            return super().forward(x, for_pyg(edge_index, takes_weights=False)[0])
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        to, of = self._ends(x, edge_index)
        first, rest = first_of(self.nn)
        linear = None if first is None else linear_of(first)
        if linear is not None and linear[0].size(1) == 2 * targets.size(1):
            # W [x_i, x_j - x_i] = (W_1 - W_2) x_i + W_2 x_j
            of_target, of_source = linear[0].chunk(2, dim=1)
            ends = torch.cat([F.linear(targets, of_target - of_source, linear[1]), F.linear(sources, of_source)])
            messages = gather(ends, *_pairs(to, of, targets.size(0)))
            for module in rest:
                messages = module(messages)
        else:
            own = gather(targets, to)
            messages = self.nn(torch.cat([own, gather(sources, of) - own], dim=-1))
        return self._reduced(messages, to, targets.size(0))


def _pairs(to: Tensor, of: Tensor, targets: int) -> tuple[Tensor, int, Tensor]:
    """What makes ``gather`` add the rows of both ends of each edge: targets come first, and then sources."""
    def made() -> tuple[Tensor, Tensor]:
        both = torch.stack([to, of + targets], dim=1).view(-1)
        return both, torch.arange(0, both.size(0) + 1, 2, dtype=both.dtype, device=both.device)

    both, begins = kept((to, of), ("rows of both ends", targets), made)
    return both, 0, begins


class FiLMConv(OverEdges, pyg.FiLMConv):
    """``torch_geometric.nn.FiLMConv`` on tessera's kernels: sum, mean, max and min; several relations, too.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.FiLMConv(4, 2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Any, edge_index: Any, edge_type: Tensor | None = None) -> Tensor:
        obstacle = self._obstacle_of_ends(x, edge_index)
        if obstacle is None and self.num_relations > 1:
            obstacle = _obstacle_of_relations(edge_index, edge_type)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], edge_type)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        ends = self._ends(x, edge_index)
        parts = [ends]
        if edge_type is not None and self.num_relations > 1:
            parts = ends_of_relations(*ends, edge_type, self.num_relations)
        shift, scale = self.film_skip(targets).split(self.out_channels, dim=-1)
        out = self._activated(scale * self.lin_skip(targets) + shift)
        for (to, of), lin, film in zip(parts, self.lins, self.films):
            shift, scale = film(targets).split(self.out_channels, dim=-1)
            messages = torch.addcmul(gather(shift, to), gather(scale, to), gather(lin(sources), of))
            out = out + self._reduced(self._activated(messages), to, targets.size(0))
        return out

    def _activated(self, x: Tensor) -> Tensor:
        return x if self.act is None else self.act(x)


def _obstacle_of_relations(edge_index: Any, edge_type: Any) -> str | None:
    if not is_list_of_edges(edge_index):
        return "several relations in a sparse matrix"
    edges = edge_index.num_edges if isinstance(edge_index, Graph) else edge_index.size(1)
    if not isinstance(edge_type, Tensor) or edge_type.dim() != 1 or edge_type.size(0) != edges:
        return "an edge_type that has no number for each edge"
    return None


def ends_of_relations(to: Tensor, of: Tensor, edge_type: Tensor, relations: int) -> list[tuple[Tensor, Tensor]]:
    """Targets and sources of the edges of each relation."""
    def made() -> list[tuple[Tensor, Tensor]]:
        masks = [edge_type == relation for relation in range(relations)]
        return [(to[mask], of[mask]) for mask in masks]

    return kept((edge_type, to), ("ends of relations", relations), made)  # of which graphs are found again
