# SPDX-License-Identifier: Apache-2.0
"""Graphs between kinds of vertices as one graph, whose vertices are those of all kinds, one kind after the other."""

from __future__ import annotations

from typing import Sequence

import torch
from torch import Tensor

from ._checks import check_ends
from ._kept import kept
from .graph import SOURCE_TARGET, Graph


def begins_of(sizes: Sequence[int]) -> list[int]:
    """Where each part begins, and where the last one ends."""
    begins = [0]
    for size in sizes:
        begins.append(begins[-1] + size)
    return begins


def _held(graphs: Sequence[Graph]) -> tuple[Tensor, ...]:
    return tuple(tensor for graph in graphs for tensor in (graph.index, graph.offsets) if tensor is not None)


def host_numbers(graphs: Sequence[Graph], numbers: Sequence[int]) -> Tensor:
    """On the host, for as long as the graphs live: plans are kept with them."""
    return kept(_held(graphs), ("numbers", tuple(numbers)), lambda: torch.tensor(numbers))


def joined(graphs: Sequence[Graph], sources: Sequence[int], targets: Sequence[int], num_sources: int, num_targets: int) -> Graph:
    """The edges of all graphs, one graph after the other; ``sources`` and ``targets`` say where the vertices of each begin."""
    def made() -> Tensor:
        parts = []
        for graph, source, target in zip(graphs, sources, targets):
            if not torch.compiler.is_compiling():
                check_ends(graph)  # of its own kinds: one more would be a vertex of another
            to, of = graph.targets_and_sources()
            parts.append(torch.stack([of.to(torch.int64) + source, to.to(torch.int64) + target]))
        return torch.cat(parts, dim=1)

    layouts = tuple(graph.layout for graph in graphs)
    index = kept(_held(graphs), ("joined", tuple(sources), tuple(targets), num_sources, num_targets, layouts), made)
    return Graph._make(index, None, None, num_targets, num_sources, SOURCE_TARGET)


def graph_of_edges(graphs: Sequence[Graph]) -> Tensor:
    """For each edge of all graphs the number of its graph."""
    def made() -> Tensor:
        counts = torch.tensor([graph.num_edges for graph in graphs])
        return torch.repeat_interleave(counts).to(graphs[0].device)

    return kept(_held(graphs), ("graph of edges", len(graphs)), made)
