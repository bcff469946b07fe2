# SPDX-License-Identifier: Apache-2.0
"""Sums over relations: of each relation the neighbours, reduced, times its matrix.

Neighbours are reduced into pairs of a relation and a target, of which there are never more than edges; the pairs are rows
of one grouped product, and a target sums its pairs. Where almost all pairs have edges, those of a target lie side by side
and the product makes the sum, too. Where matrices make features narrower, features go through all of them first.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from . import _shapes  # noqa: F401
from ._checks import check_ends, check_inside
from ._kept import kept
from ._schemas import definitions
from .functional import spmm
from .graph import SOURCE_TARGET, Graph
from .grouped import product
from .segments import scatter

_COMMUTE = ("sum", "mean")
_MOST_VERTICES = 2**31 - 1
# So many more pairs than have edges are multiplied, too, where they need not be told apart then.
_ALMOST_ALL = 1.25


class Pairs(NamedTuple):
    """Pairs of a relation and a target that have edges, by relations."""

    of_edges: Tensor
    targets: Tensor
    ptr: Tensor  # where those of a relation begin; on the host


def _find_pairs(targets: Tensor, relations: Tensor, num_targets: int, num_relations: int) -> tuple[Tensor, Tensor, Tensor]:
    numbers = relations.to(torch.int64) * num_targets + targets
    possible = num_targets * num_relations
    if possible <= 16 * numbers.numel():
        present = torch.zeros(possible, dtype=torch.bool, device=numbers.device)
        present[numbers] = True
        found, of_edges = present.nonzero().view(-1), (present.cumsum(0) - 1)[numbers]
    else:
        found, of_edges = torch.unique(numbers, return_inverse=True)
    begins = torch.arange(num_relations + 1, device=numbers.device) * num_targets
    return of_edges, found % max(num_targets, 1), torch.searchsorted(found, begins).cpu()


for _twin in ("relation_pairs", "relation_pairs_run"):
    definitions.impl(_twin, _find_pairs, "CompositeExplicitAutograd")


class Relations:
    """The edges of a graph, each of a relation."""

    def __init__(self, graph: Graph, edge_type: Tensor, number: int) -> None:
        self.graph, self.edge_type, self.number = graph, edge_type, number
        if not torch.compiler.is_compiling():
            self._kept("checked", self._check)

    def _check(self) -> bool:
        check_ends(self.graph)
        return check_inside("edge_type", self.edge_type, self.number, "relations")

    def _kept(self, what, make, *others: Tensor):
        graph = self.graph
        offsets = () if graph.offsets is None else (graph.offsets,)
        key = (what, graph.num_targets, graph.num_sources, graph.layout, self.number)
        return kept((self.edge_type, graph.index, *offsets, *others), key, make)

    def _graph(self, what, make, sources: int, targets: int, *others: Tensor) -> Graph:
        """Of the same edges, between vertices that are numbered in another way."""
        def made() -> Tensor:
            to, of = self.graph.targets_and_sources()
            return torch.stack(make(to.to(torch.int64), of.to(torch.int64)))

        return Graph._make(self._kept(what, made, *others), None, None, targets, sources, SOURCE_TARGET)

    def pairs(self) -> Pairs:
        def made() -> Pairs:
            to, _ = self.graph.targets_and_sources()
            return Pairs(*torch.ops.tessera.relation_pairs(to, self.edge_type, self.graph.num_targets, self.number))

        return self._kept("pairs", made)

    def scales(self, dtype: torch.dtype) -> Tensor:
        """For each edge one over how many its pair has."""
        def made() -> Tensor:
            pairs = self.pairs()
            counts = torch.zeros(pairs.targets.size(0), dtype=dtype, device=pairs.targets.device)
            counts = counts.index_add(0, pairs.of_edges, torch.ones_like(pairs.of_edges, dtype=dtype))
            return (1 / counts)[pairs.of_edges]

        return self._kept(("scales", dtype), made)

    def sum(self, x: Tensor, weight: Tensor, reduce: str, stored: torch.dtype | None = None, tune: bool = False) -> Tensor:
        """``weight`` holds a matrix for each relation, or its blocks; ``stored`` is the type that neighbours are reduced in."""
        graph, dtype = self.graph, x.dtype
        stored = dtype if stored is None else stored
        if weight.dim() == 3 and reduce in _COMMUTE and self._multiply_first(weight):
            return self._product_then_sum(x, weight, reduce, stored, tune).to(dtype)
        pairs = self.pairs()
        possible = graph.num_targets * self.number
        if (weight.dim() == 3 and not torch.compiler.is_compiling() and possible <= _MOST_VERTICES
                and possible <= _ALMOST_ALL * pairs.targets.size(0)):
            of_targets = self._graph("side by side", lambda to, of: (of, to * self.number + self.edge_type), graph.num_sources,
                                     possible)
            sums = spmm(of_targets, x.to(stored), reduce=reduce, tune=tune).to(dtype)
            return F.linear(sums.view(graph.num_targets, -1), weight.flatten(0, 1).t())
        of_pairs = self._graph("to pairs", lambda to, of: (of, pairs.of_edges), graph.num_sources, pairs.targets.size(0))
        sums = spmm(of_pairs, x.to(stored), reduce=reduce, tune=tune).to(dtype)
        return scatter(product(sums, weight, pairs.ptr), pairs.targets, 0, graph.num_targets)

    def _multiply_first(self, weight: Tensor) -> bool:
        rows = self.graph.num_sources * self.number
        return weight.size(2) < weight.size(1) and rows <= self.graph.num_edges and rows <= _MOST_VERTICES

    def _product_then_sum(self, x: Tensor, weight: Tensor, reduce: str, stored: torch.dtype, tune: bool) -> Tensor:
        made = F.linear(x, weight.transpose(1, 2).flatten(0, 1)).view(-1, weight.size(2))
        of_rows = self._graph("of rows", lambda to, of: (of * self.number + self.edge_type, to), made.size(0),
                              self.graph.num_targets)
        return spmm(of_rows, made.to(stored), self._scales_for(reduce, made.dtype), tune=tune)

    def _scales_for(self, reduce: str, dtype: torch.dtype) -> Tensor | None:
        return self.scales(torch.float64 if dtype == torch.float64 else torch.float32) if reduce == "mean" else None

    def sum_of_rows(self, numbers: Tensor | None, weight: Tensor, reduce: str, tune: bool = False) -> Tensor:
        """The same where each source has one feature of 1: the one that ``numbers`` names, or that of its own number. It
        takes that row of each matrix."""
        inputs, rows, targets = weight.size(1), weight.flatten(0, 1), self.graph.num_targets
        others = () if numbers is None else (numbers,)
        if numbers is not None and not torch.compiler.is_compiling():
            kept((numbers,), ("inside of", inputs), lambda: check_inside("x", numbers, inputs, "rows of each matrix"))

        def row(of: Tensor) -> Tensor:
            return self.edge_type * inputs + (of if numbers is None else numbers[of])

        if reduce in _COMMUTE:
            of_rows = self._graph(("of matrices", inputs), lambda to, of: (row(of), to), rows.size(0), targets, *others)
            return spmm(of_rows, rows, self._scales_for(reduce, rows.dtype), tune=tune)
        pairs = self.pairs()
        of_pairs = self._graph(("of matrices to pairs", inputs), lambda to, of: (row(of), pairs.of_edges), rows.size(0),
                               pairs.targets.size(0), *others)
        return scatter(spmm(of_pairs, rows, reduce=reduce, tune=tune), pairs.targets, 0, targets)


__all__ = ["Relations"]
