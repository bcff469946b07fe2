# SPDX-License-Identifier: Apache-2.0
"""Layers over edges of many relations."""

from __future__ import annotations

from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor

from .._relations import Relations
from ..functional import autocast_dtype
from ..graph import Graph
from ._base import Accelerated, for_pyg

_INDICES = (torch.int64, torch.int32)


class OverRelations(Accelerated):
    """R-GCN: of each relation the neighbours, reduced, times its matrix."""

    #: Whether a source without features takes the rows of matrices that its number names, or those of its place.
    _takes_numbers = True
    _may_be_numbers = ("edge_type", "x")

    def _on_kernels(self, x: Any, edge_index: Any, edge_type: Tensor | None) -> Tensor | None:
        """What the layer gives; None where PyG's code has to run."""
        sources, targets = x if isinstance(x, tuple) else (x, x)
        types = edge_index.storage.value() if hasattr(edge_index, "csr") and edge_type is None else edge_type
        if types is None and (isinstance(edge_index, (Tensor, Graph))):
            raise ValueError("edge_type is None: give the relation of each edge")
        rows = (self.in_channels_l if sources is None else sources.size(0),)
        rows += (rows[0] if targets is None else targets.size(0),)
        obstacle = self._obstacle_of_relations(x, sources, targets, rows, edge_index, types)
        if not self._notice(obstacle, x, edge_index):
            return None
        relations = Relations(self._graph(edge_index, *rows), types, self.num_relations)
        weight = self.weight
        if self.num_bases is not None:
            weight = (self.comp @ weight.flatten(1)).view(self.num_relations, *weight.shape[1:])
        reduce, tune = self._reduction(), self._tessera_tune
        if sources is None or not sources.is_floating_point():
            with torch.autocast(weight.device.type, enabled=False):  # of rows that are no products PyG makes none in 16 bits
                out = relations.sum_of_rows(sources if self._takes_numbers else None, weight, reduce, tune)
        else:
            out = relations.sum(sources, weight, reduce, self._tessera_dtype, tune)
        return self._with_own(self._as_pygs(out), targets)

    def _with_own(self, out: Tensor, x: Tensor | None) -> Tensor:
        """Plus what a vertex has itself, and the bias."""
        if self.root is not None:
            if x is None:
                out = out + self.root[:out.size(0)]
            elif not x.is_floating_point():
                out = out + self.root[x]
            elif autocast_dtype(x) is None and x.dtype == out.dtype:
                out = torch.addmm(out, x, self.root)
            else:
                out = out + x @ self.root
        return out if self.bias is None else out + self.bias

    def _obstacle_of_relations(self, x: Any, sources: Tensor | None, targets: Tensor | None, rows: tuple[int, int],
                               edge_index: Any, edge_type: Any) -> str | None:
        numbered = [part is None or not part.is_floating_point() for part in (sources, targets)]
        if numbered[0] != numbered[1]:
            return "features of one end alone"
        if numbered[0] and self.num_blocks is not None:
            return "blocks of matrices with numbers of vertices"
        if any(part is not None and part.dim() != 1 for part in (sources, targets)) and numbered[0]:
            return "numbers of vertices of several dimensions"
        if numbered[0] and not self._takes_numbers and rows[0] > self.in_channels_l:
            return "more vertices than matrices have rows"
        one = self.weight.flatten()[:1]
        if numbered[0]:
            x = tuple(one.expand(number, 1) for number in rows)
        obstacle = self._obstacle(x, edge_index)
        if obstacle is not None:
            return obstacle
        if isinstance(x, tuple) and self.flow != "source_to_target" and rows[0] != rows[1]:
            return "a reversed flow with a pair of features"
        return self._obstacle_of_types(edge_index, edge_type)

    @staticmethod
    def _obstacle_of_types(edge_index: Any, edge_type: Any) -> str | None:
        if isinstance(edge_index, Tensor) and edge_index.layout != torch.strided:
            return "several relations in a sparse matrix"
        if not isinstance(edge_type, Tensor) or edge_type.dim() != 1 or edge_type.dtype not in _INDICES:
            return "an edge_type that has no number for each edge"
        if isinstance(edge_index, Tensor) and not torch.compiler.is_compiling() and edge_type.size(0) != edge_index.size(1):
            raise ValueError(f"edge_type has {edge_type.size(0)} numbers for {edge_index.size(1)} edges: use one for each")
        return None

    def _as_pygs(self, out: Tensor) -> Tensor:
        """In the type that PyG's sums over relations have."""
        return out

    def __prepare_scriptable__(self) -> torch.nn.Module:
        twin = super().__prepare_scriptable__()
        twin.__dict__.setdefault("_use_segment_matmul_heuristic_output", False)  # which a call of PyG's code leaves there
        return twin


class RGCNConv(OverRelations, pyg.RGCNConv):
    """``torch_geometric.nn.RGCNConv`` on tessera's kernels: all relations at once, and nothing of the size of vertices x
    relations, unless that is less than edges.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.RGCNConv(4, 2, num_relations=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0, 2, 2])).shape
        torch.Size([3, 2])
    """

    _reductions = ("sum", "mean", "max", "min")

    def forward(self, x: Any, edge_index: Any, edge_type: Tensor | None = None) -> Tensor:
        out = self._on_kernels(x, edge_index, edge_type)
        return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], edge_type) if out is None else out

    def _as_pygs(self, out: Tensor) -> Tensor:
        return out.to(torch.promote_types(out.dtype, torch.get_default_dtype()))  # of the zeros that it begins with


class FastRGCNConv(OverRelations, pyg.FastRGCNConv):
    """``torch_geometric.nn.FastRGCNConv`` on tessera's kernels, the same as those of :class:`RGCNConv`.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.FastRGCNConv(4, 2, num_relations=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]]), torch.tensor([0, 2, 2])).shape
        torch.Size([3, 2])
    """

    _reductions = ("sum", "mean")

    _takes_numbers = False

    def forward(self, x: Any, edge_index: Any, edge_type: Tensor | None = None) -> Tensor:
        out = self._on_kernels(x, edge_index, edge_type)
        return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], edge_type) if out is None else out
