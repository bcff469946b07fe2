# SPDX-License-Identifier: Apache-2.0
"""Edges from the vertices of all ranks to those of one, which stand in for an ``edge_index``."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor

from ..graph import Graph
from ._exchange import Exchange


class Blocks(NamedTuple):
    """The edges of inner rows, which need nothing of other ranks, and those of the other rows."""

    inner: Graph
    outer: Graph
    edges: Tensor  #: which edge each one is; an added loop of row r counts as the edge after all, and r more

    def of_both(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Values of edges, block by block."""
        return values[:self.inner.num_edges], values[self.inner.num_edges:]


class Edges:
    """Rows are the vertices of this rank, inner ones first; columns are they, and then the boundary: vertices of other ranks.

    Sums of a row are those that one process makes, in the same order.
    """

    def __init__(self, exchange: Exchange, index: Tensor, num_rows: int, num_inner: int, num_boundary: int) -> None:
        self.exchange, self.index = exchange, index
        self.num_rows, self.num_inner, self.num_boundary = num_rows, num_inner, num_boundary
        self.blocks = functools.cache(self._blocks)
        self.symmetric = functools.cache(self._symmetric)

    @property
    def num_edges(self) -> int:
        return self.index.size(1)

    @torch.inference_mode(False)
    def _blocks(self, one_loop_each: bool) -> Blocks:
        """``one_loop_each``: edges from vertices to themselves are dropped, and each vertex gets one."""
        index = self.index
        edges = torch.arange(self.num_edges, device=index.device)
        if one_loop_each:
            edges = edges[index[0] != index[1]]
            rows = torch.arange(self.num_rows, device=index.device)
            index = torch.cat([index[:, edges], rows.expand(2, -1)], dim=1)
            edges = torch.cat([edges, self.num_edges + rows])
        of_inner = index[1] < self.num_inner
        inner, outer = index[:, of_inner], index[:, ~of_inner]
        outer = torch.stack([outer[0], outer[1] - self.num_inner])
        return Blocks(Graph(inner, self.num_inner, self.num_rows),
                      Graph(outer, self.num_rows - self.num_inner, self.num_rows + self.num_boundary),
                      torch.cat([edges[of_inner], edges[~of_inner]]))

    def rows_of(self, block: int, rows: Tensor) -> Tensor:
        """Of what there is for every row, that of inner rows (0) or of the others (1)."""
        return rows[:self.num_inner] if block == 0 else rows[self.num_inner:]

    def over(self, x: Tensor, run: Callable[[int, Tensor], Tensor]) -> Tensor:
        """What ``run`` makes of the inner rows from the features of this rank, while those of the boundary are in flight,
        and then of the others."""
        if x.dim() != 2 or x.size(0) != self.num_rows:
            raise ValueError(f"x has shape {tuple(x.shape)}: use a row for each of the {self.num_rows} vertices of this rank")
        on_their_way = self.exchange.leave(x)
        inner = run(0, x)
        return torch.cat([inner, run(1, torch.cat([x, self.exchange.arrive(on_their_way)]))])

    def with_boundary(self, x: Tensor) -> Tensor:
        return torch.cat([x, self.exchange.arrive(self.exchange.leave(x))])

    @torch.inference_mode(False)
    def _symmetric(self, dtype: torch.dtype, one_loop_each: bool) -> tuple[Tensor, Tensor]:
        return self.normalised(torch.ones(self.num_edges, dtype=dtype, device=self.index.device), one_loop_each)

    def normalised(self, weight: Tensor, one_loop_each: bool, loop_weight: float = 1.0) -> tuple[Tensor, Tensor]:
        """D^-1/2 (A + loops) D^-1/2 as values of edges, block by block, with D the sums of rows of the whole graph."""
        blocks = self.blocks(one_loop_each)
        if one_loop_each:  # a loop that is there keeps its weight
            given = (self.index[0] == self.index[1]).nonzero().view(-1)
            loops = weight.new_full((self.num_rows,), loop_weight).index_put((self.index[1][given],), weight[given])
            weight = torch.cat([weight, loops])
        values = weight[blocks.edges]
        sources = torch.cat([blocks.inner.index[0], blocks.outer.index[0]])
        targets = torch.cat([blocks.inner.index[1], blocks.outer.index[1] + self.num_inner])
        degree = weight.new_zeros(self.num_rows).index_add(0, targets, values)
        scale = torch.where(degree != 0, degree, torch.ones_like(degree)).rsqrt()
        scale = self.with_boundary(torch.where(degree != 0, scale, torch.zeros_like(scale)).view(-1, 1)).view(-1)
        return blocks.of_both(scale[targets] * values * scale[sources])
