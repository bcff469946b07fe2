# SPDX-License-Identifier: Apache-2.0
"""GCN's normalisation of weighted edges, as a value for each edge and each added loop."""

from __future__ import annotations

import torch
from torch import Tensor

from .._checks import check_ends
from ..functional import autocast_dtype, spmm
from ..graph import Graph


def propagate(
    graph: Graph,
    x: Tensor,
    weight: Tensor | None,
    *,
    add_self_loops: bool,
    loop_weight: float,
    sums_loops: bool,
    bias: Tensor | None = None,
    tune: bool = False,
) -> Tensor:
    """D^-1/2 (A + loops) D^-1/2 x + bias.

    ``sums_loops``: loops are added to those that are there, as PyG does with sparse tensors; otherwise
    each vertex keeps the one it has.
    """
    loops = loops_of(add_self_loops, sums_loops)
    if weight is None:
        return spmm(graph, x, bias=bias, loops=loops, loop_weight=loop_weight, norm="symmetric",
                    tune=tune)
    weight = normalised(graph, weight.view(-1), x.dtype, add_self_loops, loop_weight, sums_loops)
    return spmm(graph, x, weight, bias=bias, loops=loops, tune=tune)


def loops_of(add_self_loops: bool, sums_loops: bool) -> str:
    """What becomes of self loops, as :func:`tessera.spmm` has it."""
    return ("one_more" if sums_loops else "one_each") if add_self_loops else "given"


def _check_edges(graph: Graph, weight: Tensor) -> None:
    """Refuses weights and indices that do not fit before torch adds degrees by them."""
    if torch.compiler.is_compiling():
        return
    if weight.numel() != graph.num_edges:
        raise ValueError(f"edge_weight has {weight.numel()} numbers for {graph.num_edges} edges: use one for each")
    check_ends(graph)


def normalised(
    graph: Graph,
    weight: Tensor,
    dtype: torch.dtype,
    add_self_loops: bool,
    loop_weight: float,
    sums_loops: bool,
) -> Tensor:
    _check_edges(graph, weight)
    weight = weight.to(torch.promote_types(weight.dtype, dtype))
    targets, sources = graph.targets_and_sources()
    vertices = graph.num_targets
    kept = weight
    loops = None
    if add_self_loops:
        loops = weight.new_full((vertices,), loop_weight)
        if not sums_loops:
            # An existing loop keeps its weight, which moves to the end with all others.
            is_loop = targets == sources
            kept = weight.masked_fill(is_loop, 0)
            place = torch.where(is_loop, targets, vertices).to(torch.int64)
            loops = torch.cat([loops, loops.new_zeros(1)]).scatter(
                0, place, _last_of(place, weight, vertices) if weight.is_cuda else weight)[:-1]
    index = targets.to(torch.int64)
    degree = weight.new_zeros(vertices).index_add(0, index, kept)
    if loops is not None:
        degree = degree + loops
    # Of negative degrees there is no root, as in PyG.
    scale = torch.where(degree != 0, degree, torch.ones_like(degree)).rsqrt()
    scale = torch.where(degree != 0, scale, torch.zeros_like(scale))
    values = scale[targets] * kept * scale[sources]
    if loops is not None:
        values = torch.cat([values, scale * loops * scale])
    return values.to(dtype)


def _last_of(place: Tensor, weight: Tensor, vertices: int) -> Tensor:
    """For each edge the weight of the last one that has its place, with the gradient of its own weight: of several loops
    of a vertex PyG keeps the last one's weight on a CPU, and any one's on a GPU, whose threads write in no order."""
    edges = torch.arange(place.numel(), device=place.device)
    last = edges.new_zeros(vertices + 1).scatter_reduce(0, place, edges, "amax")
    zero = weight - weight.detach()
    return weight.detach()[last[place]] + torch.where(zero == 0, zero, torch.zeros_like(zero))  # not of what is not finite


def by_sources(graph: Graph, weight: Tensor) -> Tensor:
    """D^-1/2 A D^-1/2 as a value for each edge, with D the sums over a source's edges other than loops:
    I minus this is PyG's normalised Laplacian."""
    _check_edges(graph, weight)
    targets, sources = graph.targets_and_sources()
    kept = weight.masked_fill(targets == sources, 0)
    degree = weight.new_zeros(graph.num_sources).index_add(0, sources.to(torch.int64), kept)
    scale = degree.pow(-0.5)
    scale = scale.masked_fill(scale == float("inf"), 0)
    return scale[sources] * kept * scale[targets]


_FEW_MESSAGES = 1 << 14  # numbers


def few_messages(graph: Graph, x: Tensor) -> bool:
    """True where messages of all edges take no noticeable memory or time, on a CPU. Under autocast sums take 16 bits,
    which would round messages once more."""
    if torch.compiler.is_compiling() or not x.is_cpu or autocast_dtype(x) is not None:
        return False
    return graph.num_edges * x.size(1) <= _FEW_MESSAGES


def sum_of_messages(graph: Graph, x: Tensor, entries: Tensor) -> Tensor:
    """Sums of entries times features but for those of loops. Each product is rounded before it is added, as messages
    of PyG are: with few edges for each target, sums that cancel then have PyG's bits."""
    _, sources = graph.targets_and_sources()
    messages = entries.to(x.dtype).view(-1, 1) * x[sources]
    return spmm(graph, torch.ones_like(x), messages, loops="dropped")
