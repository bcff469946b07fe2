# SPDX-License-Identifier: Apache-2.0
"""Graphs as sparse matrices, rows are targets: sums, products, and parts of them. In torch's operations on the device of the
graph; sums run in one order, and weights have derivatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from .graph import Graph
from .segments import gather, segment_reduce


def _ends(graph: Graph) -> tuple[Tensor, Tensor, Tensor | None]:
    weight = graph.weight
    if weight is not None and weight.dim() != 1:
        raise ValueError(f"edge_weight has shape {tuple(weight.shape)}: arithmetic on graphs has one number for each edge")
    targets, sources = graph.targets_and_sources()
    return targets.to(torch.int64), sources.to(torch.int64), weight


def _made(targets: Tensor, sources: Tensor, weight: Tensor | None, num_targets: int, num_sources: int) -> Graph:
    return Graph(torch.stack([sources, targets]), num_targets, num_sources, weight)


def _weights_of(first: Graph, second: Graph) -> tuple[Tensor | None, Tensor | None]:
    """Of both in one type, or of neither."""
    weights = _ends(first)[2], _ends(second)[2]
    present = [weight for weight in weights if weight is not None]
    if not present:
        return None, None
    dtype = torch.promote_types(present[0].dtype, present[-1].dtype)
    one, other = (present[0].new_ones(graph.num_edges, dtype=dtype) if weight is None else weight.to(dtype)
                  for graph, weight in zip((first, second), weights))
    return one, other


def _check_same(first: Graph, second: Graph, what: str) -> None:
    shapes = [(graph.num_targets, graph.num_sources) for graph in (first, second)]
    if shapes[0] != shapes[1]:
        raise ValueError(f"{what} of graphs of {shapes[0][0]} x {shapes[0][1]} and {shapes[1][0]} x {shapes[1][1]} vertices: use the same")
    _check_device(first, second)


def _check_device(first: Graph, second: Graph) -> None:
    if first.device != second.device:
        raise ValueError(f"one graph lies on {first.device}, the other on {second.device}: move one of them")


def _merged(targets: Tensor, sources: Tensor, weight: Tensor | None, num_targets: int, num_sources: int) -> Graph:
    """Each edge once, by targets and then sources; of repeated edges the sum of their weights, or how many there are."""
    key, order = torch.sort(targets * max(num_sources, 1) + sources, stable=True)
    places, counts = torch.unique_consecutive(key, return_counts=True)
    ends = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    if weight is not None:
        weight = segment_reduce(gather(weight, order), ends)
    elif places.numel() < key.numel():
        weight = counts.to(torch.get_default_dtype())
    return _made(places.div(max(num_sources, 1), rounding_mode="floor"), places % max(num_sources, 1), weight, num_targets, num_sources)


def coalesced(graph: Graph) -> Graph:
    return _merged(*_ends(graph), graph.num_targets, graph.num_sources)


def _runs(begins: Tensor, sizes: Tensor) -> tuple[Tensor, Tensor]:
    """The numbers begin to begin + size of each run, one run after the other, and the run of each."""
    runs = torch.repeat_interleave(sizes)
    firsts = sizes.cumsum(0) - sizes
    return torch.arange(runs.numel(), device=runs.device) + (begins - firsts)[runs], runs


def _by_target(targets: Tensor, num_targets: int) -> tuple[Tensor, Tensor, Tensor]:
    """Edges in the order of their targets; where those of each begin, and how many it has."""
    order = torch.sort(targets, stable=True).indices
    # A count of integers is the same in any order.
    sizes = torch.bincount(targets, minlength=num_targets)
    return order, sizes.cumsum(0) - sizes, sizes


def product(first: Graph, second: Graph) -> Graph:
    """Each edge of one is followed by each edge of the other that ends where it begins."""
    if first.num_sources != second.num_targets:
        raise ValueError(f"a product of graphs of {first.num_targets} x {first.num_sources} and {second.num_targets} x "
                         f"{second.num_sources} vertices: sources of the first are targets of the second")
    _check_device(first, second)
    targets, middles, _ = _ends(first)
    ends, sources, _ = _ends(second)
    order, begins, sizes = _by_target(ends, second.num_targets)
    places, runs = _runs(begins[middles], sizes[middles])
    places = order[places]
    weight, other = _weights_of(first, second)
    if weight is not None:
        weight = gather(weight, runs) * gather(other, places)
    return _merged(targets[runs], sources[places], weight, first.num_targets, second.num_sources)


def total(first: Graph, second: Graph) -> Graph:
    _check_same(first, second, "a sum")
    ends = [torch.cat(both) for both in zip(_ends(first)[:2], _ends(second)[:2])]
    weights = _weights_of(first, second)
    return _merged(*ends, None if weights[0] is None else torch.cat(weights), first.num_targets, first.num_sources)


def common(first: Graph, second: Graph) -> Graph:
    """Edges that are in both, with the products of their weights."""
    _check_same(first, second, "a product by elements")
    first, second = coalesced(first), coalesced(second)
    keys = [targets * max(graph.num_sources, 1) + sources
            for graph in (first, second) for targets, sources, _ in [_ends(graph)]]
    if not keys[0].numel() or not keys[1].numel():
        kept = places = keys[0][:0]
    else:
        places = torch.searchsorted(keys[0], keys[1]).clamp(max=keys[0].numel() - 1)
        kept = (keys[0][places] == keys[1]).nonzero().view(-1)
        places = places[kept]
    targets, sources, _ = _ends(first)
    weight, other = _weights_of(first, second)
    if weight is not None:
        weight = gather(weight, places) * gather(other, kept)
    return _made(targets[places], sources[places], weight, first.num_targets, first.num_sources)


def scaled(graph: Graph, factor: float | Tensor) -> Graph:
    """All weights times a number, or each edge's times its own."""
    if isinstance(factor, Tensor) and factor.dim() > 0 and factor.shape != (graph.num_edges,):
        raise ValueError(f"factors have shape {tuple(factor.shape)}: use one number, or ({graph.num_edges},) for the edges")
    weight = graph.weight
    if weight is None:
        dtype = factor.dtype if isinstance(factor, Tensor) and factor.is_floating_point() else torch.get_default_dtype()
        weight = torch.ones(graph.num_edges, dtype=dtype, device=graph.device)
    return Graph._make(graph.index, graph.offsets, weight * factor, graph.num_targets, graph.num_sources, graph.layout)


def _numbers(chosen: Any, vertices: int, device: torch.device, what: str) -> Tensor | None:
    """Which vertices are chosen, in which order; None for all as they are."""
    if isinstance(chosen, slice):
        if chosen == slice(None):
            return None
        return torch.arange(vertices, device=device)[chosen]
    if isinstance(chosen, int):
        chosen = [chosen]
    if not isinstance(chosen, Tensor):
        chosen = torch.tensor(chosen, dtype=torch.int64) if len(chosen) == 0 else torch.as_tensor(chosen)
    if chosen.dim() != 1 or chosen.dtype not in (torch.bool, torch.int32, torch.int64):
        raise TypeError(f"{what} are chosen by {chosen.dtype} of shape {tuple(chosen.shape)}: use a slice, integers or a mask of one dimension")
    chosen = chosen.to(device)
    if chosen.dtype == torch.bool:
        if chosen.numel() != vertices:
            raise IndexError(f"a mask of {chosen.numel()} for {vertices} {what}: use one for each")
        return chosen.nonzero().view(-1)
    chosen = chosen.to(torch.int64)
    if chosen.numel() > 0:
        least, most = (int(end) for end in torch.aminmax(chosen))
        if least < -vertices or most >= vertices:
            raise IndexError(f"{least if least < -vertices else most} is outside of the {vertices} {what}")
    return torch.where(chosen < 0, chosen + vertices, chosen)


def _of_targets(graph: Graph, chosen: Tensor) -> Graph:
    targets, sources, weight = _ends(graph)
    order, begins, sizes = _by_target(targets, graph.num_targets)
    places, runs = _runs(begins[chosen], sizes[chosen])
    places = order[places]
    weight = None if weight is None else gather(weight, places)
    return _made(runs, sources[places], weight, chosen.numel(), graph.num_sources)


def part(graph: Graph, chosen: Any) -> Graph:
    """Of targets, or of targets and sources; what is chosen twice is there twice."""
    chosen = chosen if isinstance(chosen, tuple) else (chosen,)
    if len(chosen) > 2:
        raise IndexError(f"a graph has targets and sources, and {len(chosen)} were chosen")
    targets = _numbers(chosen[0], graph.num_targets, graph.device, "targets")
    sources = _numbers(chosen[1], graph.num_sources, graph.device, "sources") if len(chosen) == 2 else None
    if sources is not None:
        graph = _of_targets(graph.reversed(), sources).reversed()
    return graph if targets is None and sources is None else _of_targets(
        graph, torch.arange(graph.num_targets, device=graph.device) if targets is None else targets)


def to_sparse(graph: Graph) -> Tensor:
    graph = coalesced(graph)
    targets, sources, weight = _ends(graph)
    ends = torch.bincount(targets, minlength=graph.num_targets).cumsum(0)
    values = torch.ones(graph.num_edges, device=graph.device) if weight is None else weight
    return torch.sparse_csr_tensor(torch.cat([ends.new_zeros(1), ends]), sources, values, (graph.num_targets, graph.num_sources))


def to_dense(graph: Graph) -> Tensor:
    graph = coalesced(graph)
    targets, sources, weight = _ends(graph)
    values = torch.ones(graph.num_edges, device=graph.device) if weight is None else weight
    return values.new_zeros(graph.num_targets, graph.num_sources).index_put((targets, sources), values)
