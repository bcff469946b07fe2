# SPDX-License-Identifier: Apache-2.0
"""Reductions of groups of rows, and their inverse: sums over the neighbours of a graph whose sources are the rows."""

from __future__ import annotations

import math
from typing import Any, Callable

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from . import _operators, errors
from ._checks import FLOATS
from ._derivatives import applied, other_derivatives
from .functional import REDUCTIONS
from .graph import BY_SOURCE, BY_TARGET, Graph

_LEAST_VARIANCE = 1e-5  # as of PyG's aggregation: less counts as none

# Numbers of entries, 0, 1, 2 and so on, for as long as the tensor that they belong to lives: graphs that were built with them
# are found again.
_counted: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _numbers_to(end: int, owner: Tensor) -> Tensor:
    if torch.compiler.is_compiling():
        return torch.arange(end, dtype=owner.dtype, device=owner.device)
    owner = owner if owner._base is None else owner._base  # of a view that torch makes anew for each who asks
    known = _counted.get(owner)
    if known is None or known.numel() != end:
        with torch.inference_mode(False):  # others may want gradients
            known = _counted[owner] = torch.arange(end, dtype=owner.dtype, device=owner.device)
    return known


def check_index(name: str, index: Tensor, src: Tensor) -> None:
    if not isinstance(index, Tensor):
        raise TypeError(f"{name} is a {type(index).__name__}, not a tensor: use torch.as_tensor({name})")
    if index.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} has type {index.dtype}: use torch.int64 or torch.int32")
    if index.dim() != 1:
        raise ValueError(f"{name} has shape {tuple(index.shape)}: use one dimension")
    if index.device != src.device:
        raise ValueError(f"{name} lies on {index.device}, src on {src.device}: use {name}.to({str(src.device)!r})")


def _checked_dim(src: Tensor, dim: int) -> int:
    if not isinstance(src, Tensor):
        raise TypeError(f"src is a {type(src).__name__}, not a tensor")
    if src.dtype not in FLOATS:
        raise TypeError(f"src has type {src.dtype}: use float64, float32, bfloat16 or float16")
    if not -src.dim() <= dim < src.dim():
        raise ValueError(f"dim is {dim}: use {-src.dim()} to {src.dim() - 1}, src has {src.dim()} dimensions")
    return dim % src.dim()


def _groups_by_index(index: Tensor, src: Tensor, dim: int, groups: int | None) -> Graph:
    """An edge from each entry to its group."""
    check_index("index", index, src)
    entries = index.size(0)
    if not torch.compiler.is_compiling() and entries != src.size(dim):
        raise ValueError(f"index has {entries} numbers for {src.size(dim)} entries of src: use one for each")
    if groups is None:
        groups = int(index.max()) + 1 if index.numel() > 0 else 0
    return Graph._make(index, _numbers_to(entries + 1, index), None, groups, entries, BY_SOURCE)


# How many entries a ptr was found to be for, as long as it does not change.
_checked: WeakIdKeyDictionary = WeakIdKeyDictionary()


def check_ptr(ptr: Tensor, entries: int, what: str = "the entries of src") -> None:
    """Once for each: it has to be read."""
    if ptr.numel() == 0:
        raise ValueError("ptr is empty: use one number for each group, and one more")
    if torch.compiler.is_compiling() or (ptr.is_cuda and torch.cuda.is_current_stream_capturing()):
        return
    known = None if ptr.is_inference() else (ptr._version, entries)
    if known is not None and _checked.get(ptr) == known:
        return
    if int(ptr[0]) != 0 or int(ptr[-1]) != entries or bool((ptr.diff() < 0).any()):
        raise ValueError(f"ptr goes from {int(ptr[0])} to {int(ptr[-1])}: use numbers from 0 to {entries}, {what}, none smaller than "
                         "the one before")
    if known is not None:
        _checked[ptr] = known


def _groups_by_ptr(ptr: Tensor, src: Tensor, dim: int) -> Graph:
    """The same where entries of a group stand side by side."""
    check_index("ptr", ptr, src)
    entries = src.size(dim)
    check_ptr(ptr, entries)
    return Graph._make(_numbers_to(entries, ptr), ptr, None, ptr.size(0) - 1, entries, BY_TARGET)


def _run(operator, *arguments):
    try:
        return errors.run(operator, *arguments)
    except IndexError as error:
        text = str(error).replace("edge_index: target index", "index").replace("target vertices", "groups")
        raise IndexError(text.replace("edge_index: source index", "index").replace("source vertices", "entries of src")) from None


def _summed(graph: Graph, x: Tensor, reduce: str) -> Tensor:
    """In the type that numbers have: autocast has no say."""
    return _run(_operators.spmm, x, graph.index, graph.offsets, None, None, graph.num_targets, graph.num_sources,
                graph.layout, 0, 1.0, 0, REDUCTIONS[reduce], 0)[0]


def _with_gradient(name: str, run: Callable[[Graph, Tensor], Tensor],
                   back: Callable[[Graph, Tensor], Tensor]) -> Callable[[Graph, Tensor], Tensor]:
    """``run``, a linear function of rows, with ``back`` as its gradient. A call costs the host less than one of the general
    operator, whose formula of the derivative serves every reduction and weight."""
    def forward(ctx: Any, x: Tensor, graph: Graph) -> Tensor:
        ctx.graph = graph
        ctx.save_for_backward(graph.index)  # one that changes before the backward pass is an error there
        return run(graph, x)

    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        ctx.saved_tensors
        return back(ctx.graph, grad), None

    apply = applied(name, forward, backward)

    def called(graph: Graph, x: Tensor) -> Tensor:
        plain = torch.compiler.is_compiling() or not (x.requires_grad and torch.is_grad_enabled())
        return run(graph, x) if plain or other_derivatives() is not None else apply(x, graph)

    return called


def _spread_back(graph: Graph, of_groups: Tensor) -> Tensor:
    """Of groups by an index by torch's own operator, which has less to do before it: the forward pass has checked the index.
    Where the gradient has a derivative itself, that is of the same bits each time."""
    if graph.layout != BY_SOURCE or torch.is_grad_enabled():
        return _spread(graph, of_groups)
    return of_groups.index_select(0, graph.index)


_sum = _with_gradient("sum_of_groups", lambda graph, x: _summed(graph, x, "sum"), _spread_back)
# For each entry the numbers of its group; the derivative is a sum over its entries.
_spread = _with_gradient("rows_of_groups", lambda graph, of_groups: _summed(graph.reversed(), of_groups, "sum"),
                         lambda graph, grad: _sum(graph, grad))


def _logsumexp(graph: Graph, x: Tensor) -> Tensor:
    largest = _summed(graph, x.detach(), "max")
    largest = largest.masked_fill(~largest.isfinite(), 0)
    total = _summed(graph, (x - _spread(graph, largest)).exp(), "sum")
    empty = _summed(graph, x.new_ones(x.size(0), 1), "sum") == 0
    return (total.masked_fill(empty, 1).log() + largest).to(x.dtype)  # autocast makes logarithms in fp32


def _var(graph: Graph, x: Tensor) -> Tensor:
    away = x - _spread(graph, _summed(graph, x, "mean"))
    return _summed(graph, away * away, "mean")


def _std(graph: Graph, x: Tensor) -> Tensor:
    variance = _var(graph, x)
    return variance.clamp(min=_LEAST_VARIANCE).sqrt().masked_fill(variance <= _LEAST_VARIANCE, 0)


def _softmax(graph: Graph, x: Tensor) -> Tensor:
    return _run(_operators.edge_softmax, x, graph.index, graph.offsets, graph.num_targets, graph.num_sources,
                graph.layout, 0, 0)


_OTHERS: dict[str, Callable[[Graph, Tensor], Tensor]] = {"logsumexp": _logsumexp, "std": _std, "var": _var}


def _reduced(graph: Graph, src: Tensor, dim: int, function: Callable[[Graph, Tensor], Tensor]) -> Tensor:
    """Of rows, whatever dimension the groups are in."""
    if dim == 0 and src.dim() == 2:
        return function(graph, src)
    moved = src.movedim(dim, 0)
    out = function(graph, moved.reshape(moved.size(0), math.prod(moved.shape[1:])))
    return out.view(out.size(0), *moved.shape[1:]).movedim(0, dim)


def _function_for(reduce: str) -> Callable[[Graph, Tensor], Tensor]:
    if reduce in _OTHERS:
        return _OTHERS[reduce]
    if reduce not in REDUCTIONS:
        raise ValueError(f"unknown reduction {reduce!r}: use sum, mean, max, min, logsumexp, std or var")
    return lambda graph, x: _summed(graph, x, reduce)


def scatter(src: Tensor, index: Tensor, dim: int = 0, dim_size: int | None = None, reduce: str = "sum") -> Tensor:
    """Reduces the entries of ``src`` that have the same number in ``index``, with the arguments of
    ``torch_geometric.utils.scatter``. The same bits twice, also on a GPU.

    Args:
        src: the entries, along ``dim``; any number of other dimensions.
        index: for each entry its group, in any order, int64 or int32.
        dim: the dimension that ``index`` is for.
        dim_size: how many groups there are. Default: one more than the largest number.
        reduce: ``"sum"``, ``"mean"``, ``"max"``, ``"min"``, ``"logsumexp"``, ``"var"`` or ``"std"`` (of all entries, not of a
            sample; in ``"std"`` variances up to 1e-5 count as none, as in PyG). Groups without entries get 0. Of entries
            that are equal, the first gets the gradient of a maximum.

    Example:
        >>> import torch, tessera
        >>> tessera.scatter(torch.tensor([1.0, 2.0, 5.0]), torch.tensor([2, 0, 2]))
        tensor([2., 0., 6.])
    """
    function, dim = _sum if reduce == "sum" else _function_for(reduce), _checked_dim(src, dim)
    return _reduced(_groups_by_index(index, src, dim, dim_size), src, dim, function)


def segment_reduce(src: Tensor, ptr: Tensor, reduce: str = "sum", dim: int = 0) -> Tensor:
    """Reduces the entries ``ptr[i]`` to ``ptr[i + 1]`` of ``src``, for each ``i``, as :func:`scatter` does those of a group.

    Example:
        >>> import torch, tessera
        >>> tessera.segment_reduce(torch.tensor([1.0, 2.0, 5.0]), torch.tensor([0, 2, 2, 3]), "mean")
        tensor([1.5000, 0.0000, 5.0000])
    """
    function, dim = _function_for(reduce), _checked_dim(src, dim)
    return _reduced(_groups_by_ptr(ptr, src, dim), src, dim, function)


def softmax(src: Tensor, index: Tensor | None = None, ptr: Tensor | None = None, num_nodes: int | None = None,
            dim: int = 0) -> Tensor:
    """Entries as weights that sum to 1 in each group, with the arguments of ``torch_geometric.utils.softmax``: groups by
    ``index`` (``num_nodes`` of them) or, where entries of a group stand side by side, by ``ptr``.

    Example:
        >>> import torch, tessera
        >>> tessera.softmax(torch.zeros(3), torch.tensor([1, 0, 1]))
        tensor([0.5000, 1.0000, 0.5000])
    """
    dim = _checked_dim(src, dim)
    if (index is None) == (ptr is None):
        raise ValueError("groups have one description: give index or ptr")
    graph = _groups_by_index(index, src, dim, num_nodes) if ptr is None else _groups_by_ptr(ptr, src, dim)
    return _reduced(graph, src, dim, _softmax)


def gather(src: Tensor, index: Tensor, dim: int = 0, ptr: Tensor | None = None, reduce: str = "sum") -> Tensor:
    """The rows of ``src`` that ``index`` names, as ``src.index_select(dim, index)``; their gradients are summed in the same
    order each time, also on a GPU. With ``ptr``, those that ``index[ptr[i]]`` to ``index[ptr[i + 1]]`` name become one,
    reduced as by :func:`segment_reduce`, and nothing of the size of all of them is made for a sum, mean, maximum or minimum.

    Example:
        >>> import torch, tessera
        >>> src, index = torch.tensor([1.0, 2.0]), torch.tensor([1, 1, 0])
        >>> tessera.gather(src, index)
        tensor([2., 2., 1.])
        >>> tessera.gather(src, index, ptr=torch.tensor([0, 1, 3]))
        tensor([2., 3.])
    """
    function, dim = _function_for(reduce), _checked_dim(src, dim)
    check_index("index", index, src)
    entries = index.size(0)
    if ptr is None:
        if reduce != "sum":
            raise ValueError(f"reduce={reduce!r} needs ptr: where the rows that become one begin in index")
        graph = Graph._make(index, _numbers_to(entries + 1, index), None, src.size(dim), entries, BY_SOURCE)
        return _reduced(graph, src, dim, _spread)
    if reduce in _OTHERS:
        return segment_reduce(gather(src, index, dim), ptr, reduce, dim)
    check_index("ptr", ptr, src)
    check_ptr(ptr, entries, "the numbers in index")
    return _reduced(Graph._make(index, ptr, None, ptr.size(0) - 1, src.size(dim), BY_TARGET), src, dim, function)


__all__ = ["gather", "scatter", "segment_reduce", "softmax"]
