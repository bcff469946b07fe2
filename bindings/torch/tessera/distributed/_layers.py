# SPDX-License-Identifier: Apache-2.0
"""Layers of whole graphs: with the edges of a part they exchange rows of the boundary, with any others they are what they are
in one process."""

from __future__ import annotations

from typing import Any

import torch.nn.functional as F
from torch import Tensor

from .. import nn
from ..functional import attention, spmm
from ._edges import Edges


def _refuse(layer: Any, what: str, given: bool) -> None:
    if given:
        raise NotImplementedError(f"{type(layer).__name__} with {what} does not run on the part of a graph")


def _sum(edges: Edges, x: Tensor, one_loop_each: bool, values: tuple[Tensor, Tensor] | None, reduce: str = "sum") -> Tensor:
    """Sums over neighbours, whichever rank holds them."""
    blocks = edges.blocks(one_loop_each)
    return edges.over(x, lambda block, sources: spmm(
        blocks[block], sources, None if values is None else values[block], reduce))


class GCNConv(nn.GCNConv):
    """Degrees are those of the whole graph."""

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        if not isinstance(edge_index, Edges):
            return super().forward(x, edge_index, edge_weight)
        _refuse(self, "flow='target_to_source'", self.flow != "source_to_target")
        loops = bool(self.normalize and self.add_self_loops)
        if edge_weight is not None:
            doubled = 2.0 if self.improved else 1.0
            values = (edge_index.normalised(edge_weight, loops, doubled) if self.normalize
                      else edge_index.blocks(False).of_both(edge_weight[edge_index.blocks(False).edges]))
        else:
            values = edge_index.symmetric(x.dtype, loops) if self.normalize else None
        out = _sum(edge_index, self.lin(x), loops, values)
        return out if self.bias is None else out + self.bias


class SAGEConv(nn.SAGEConv):
    """Whichever is narrower travels: features, or what the matrix makes of them."""

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        if not isinstance(edge_index, Edges):
            return super().forward(x, edge_index, size)
        _refuse(self, "flow='target_to_source'", self.flow != "source_to_target")
        _refuse(self, f"aggr={self.aggr!r}", self.aggr not in ("mean", "sum", "add", "max", "min"))
        sources = self.lin(x).relu() if self.project else x
        if self.aggr in ("mean", "sum", "add") and self.lin_l.weight.size(0) < self.lin_l.weight.size(1):
            out = _sum(edge_index, F.linear(sources, self.lin_l.weight), False, None, self.aggr)
            out = out if self.lin_l.bias is None else out + self.lin_l.bias
        else:
            out = self.lin_l(_sum(edge_index, sources, False, None, self.aggr))
        if self.root_weight:
            out = out + self.lin_r(x)
        return F.normalize(out, p=2.0, dim=-1) if self.normalize else out


class GATConv(nn.GATConv):
    """Softmax of a row is over all its neighbours; scores of the boundary are made where they arrive."""

    def forward(self, x: Any, edge_index: Any, edge_attr: Tensor | None = None, size: Any = None,
                return_attention_weights: bool | None = None) -> Any:
        if not isinstance(edge_index, Edges):
            return super().forward(x, edge_index, edge_attr, size, return_attention_weights)
        _refuse(self, "flow='target_to_source'", self.flow != "source_to_target")
        _refuse(self, "edge_attr", edge_attr is not None)
        _refuse(self, "return_attention_weights", bool(return_attention_weights))
        _refuse(self, "a pair of widths", self.lin is None)
        value = self.lin(x)
        goal = _scores(value, self.att_dst)
        blocks = edge_index.blocks(self._loops == "one_each")
        out = edge_index.over(value, lambda block, sources: attention(
            blocks[block], edge_index.rows_of(block, goal), _scores(sources, self.att_src), sources, heads=self.heads,
            negative_slope=self.negative_slope, dropout=self._dropout))
        return self._finished(out, x)


def _scores(value: Tensor, vector: Tensor) -> Tensor:
    """A number for each row and head."""
    return (value.view(-1, *vector.shape[1:]) * vector).sum(-1)


LAYERS: dict[type, type] = {nn.GCNConv: GCNConv, nn.SAGEConv: SAGEConv, nn.GATConv: GATConv}
