# SPDX-License-Identifier: Apache-2.0
"""The operators as functions of graphs and tensors, with checks that name what is wrong."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor

from . import _operators, errors
from ._checks import (FLOATS, check_bias, check_edge_features, check_edge_term, check_features, check_heads, check_type,
                      check_vector, check_weight, rows_of)
from ._library import kernel_number
from ._shapes import ADDED_LOOPS
from ._torch_names import forward_mode, fp32_precision
from .graph import NORMS, Graph, loops_number

REDUCTIONS = {"sum": 0, "add": 0, "mean": 1, "max": 2, "amax": 2, "min": 3, "amin": 3}
MESSAGES = {"sum": 0, "relu": 1, "product": 2}
FORMS = {"additive": 0, "v2": 1, "dot": 2, "cosine": 3}

TUNE, TF32, STRICT = 1, 2, 4
_EACH_EDGE_ONCE = 32


def tf32_flag() -> int:
    return TF32 if fp32_precision("cuda", "matmul") == "tf32" else 0


# Compilation cannot look inside: it takes what it gets, and guards this setting anyway. torch.compiler.assume_constant_result
# marks a function in the same way, and imports the compiler for that.
tf32_flag._dynamo_marked_constant = True


def flags_of(tune: bool, features: Tensor, kernel: str | None = None) -> int:
    flags = (TUNE if tune else 0) | (tf32_flag() if features.is_cuda else 0)
    return flags if kernel is None else flags | kernel_number(kernel, features.is_cuda) << 8


def autocast_dtype(features: Tensor) -> torch.dtype | None:
    """The type that features get under autocast, as those of a matrix product would."""
    if not (features.is_cuda or features.is_cpu):
        return None
    kind = "cuda" if features.is_cuda else "cpu"
    if not torch.is_autocast_enabled(kind) or features.dtype == torch.float64:
        return None
    return torch.get_autocast_dtype(kind)


def autocast_off(features: Tensor) -> AbstractContextManager[Any]:
    """Nothing where it is off already: to enter and leave autocast takes as long as a small operator."""
    kind = features.device.type
    return torch.autocast(kind, enabled=False) if torch.is_autocast_enabled(kind) else nullcontext()


def _autocast(first: Tensor, *others: Tensor | None) -> tuple[Tensor | None, ...]:
    dtype = autocast_dtype(first)
    if dtype is None:
        return (first, *others)
    return tuple(None if tensor is None else tensor.to(dtype) for tensor in (first, *others))


def dropout_seed(device: torch.device) -> Tensor:
    """What dropout inside of an operator draws from, on the device: two numbers of torch's generator."""
    return torch.randint(0, 2**31 - 1, (2,), dtype=torch.int64, device=device)


def _graph_numbers(graph: Graph, loops: str) -> tuple[int, int, int, int]:
    return graph.num_targets, graph.num_sources, graph.layout, loops_number(loops)


def spmm(
    graph: Any,
    x: Tensor,
    edge_weight: Tensor | None = None,
    reduce: str = "sum",
    *,
    bias: Tensor | None = None,
    loops: str = "given",
    loop_weight: float = 1.0,
    norm: str | None = None,
    tune: bool = False,
    kernel: str | None = None,
) -> Tensor:
    """Every target gathers the features of its sources.

    Args:
        graph: a :class:`Graph`, or what :meth:`Graph.of` takes. A plain ``edge_index`` is taken for
            a square graph of as many vertices as ``x`` has rows.
        x: features of the sources, ``num_sources x features``.
        edge_weight: a factor for each edge, or ``edges x heads`` of them, each for its share of the
            features (one run for sums, one for each head otherwise); in front of the graph's own
            weights. With added loops, one more for each of them, at the end. They are taken in the
            type of ``x``.
        reduce: ``"sum"``, ``"mean"``, ``"max"`` or ``"min"``. A target without edges gets 0. Of sources with equal
            numbers, the first gets the gradient of a maximum.
        bias: added to every row, of the type of ``x`` (under autocast both get its type).
        loops: what becomes of edges from a vertex to itself: ``"given"`` (as they are),
            ``"one_each"`` (each vertex has one, whatever was given), ``"dropped"``, ``"one_more"``.
        loop_weight: the weight of added loops in a graph without weights; 1 for max and min.
        norm: scales the entries of a graph without weights: ``"symmetric"`` as GCN does, ``"mean"``; not for max and min.
        tune: find the fastest kernel by measuring, when the graph is first used.
        kernel: the one to use (:func:`tessera.kernels`), such as ``"spmm/cuda/nm_16"`` for 2:4 sparse
            tensor cores. One that cannot run this is an error; the backward pass chooses its own.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1, 2], [2, 2, 0]])
        >>> x = torch.tensor([[1.0], [2.0], [3.0]])
        >>> tessera.spmm(edge_index, x)
        tensor([[3.],
                [0.],
                [3.]])
        >>> tessera.spmm(edge_index, x, reduce="mean")
        tensor([[3.0000],
                [0.0000],
                [1.5000]])
    """
    rows = rows_of("x", x)
    graph = _graph_for(graph, rows, rows)
    if reduce not in REDUCTIONS:
        raise ValueError(f"unknown reduction {reduce!r}: use sum, mean, max or min")
    if norm not in NORMS:
        raise ValueError(f"unknown norm {norm!r}: use symmetric, mean or None")
    check_features("x", x, graph, graph.num_sources)
    check_bias(bias, x, autocast_dtype(x) is not None)
    weight = edge_weight if edge_weight is not None else graph.weight
    if weight is not None:
        check_weight(weight, graph, loops_number(loops))
        if norm is not None:
            raise ValueError("norm is for graphs without weights: scale the weights instead")
        if weight.dim() == 2 and weight.size(1) > 1:
            return _spmm_by_heads(graph, x, weight, reduce, bias, loops, tune, kernel)
    x, bias = _autocast(x, bias)
    return errors.run(
        _operators.spmm, x, graph.index, graph.offsets, weight, bias,
        *_graph_numbers(graph, loops), loop_weight, NORMS[norm], REDUCTIONS[reduce],
        flags_of(tune, x, kernel),
    )[0]


def sum_of_each_edge_once(graph: Graph, x: Tensor, loops: str) -> Tensor:
    """A sum over neighbours; repeated edges are an error, as they are in :func:`tessera.bits.aggregate`."""
    (x,) = _autocast(x)
    return errors.run(_operators.spmm, x, graph.index, graph.offsets, None, None,
                      *_graph_numbers(graph, loops), 1.0, 0, 0, flags_of(False, x) | _EACH_EDGE_ONCE)[0]


def sum_of_other_edges(graph: Graph, attr: Tensor, mean: bool) -> Tensor:
    """Features of edges, summed at their targets but for those of loops, or their mean. In the precision
    that they have: neither autocast nor TF32 has a say."""
    def summed(values: Tensor | None, features: int) -> Tensor:
        return errors.run(_operators.spmm, attr.new_ones(graph.num_sources, features), graph.index,
                          graph.offsets, values, None, *_graph_numbers(graph, "dropped"), 1.0, 0, 0, 0)[0]

    total = summed(attr, attr.size(1))
    return total / summed(None, 1).clamp(min=1) if mean else total


def _spmm_by_heads(graph: Graph, x: Tensor, weight: Tensor, reduce: str, bias: Tensor | None,
                   loops: str, tune: bool, kernel: str | None) -> Tensor:
    """Each head's share of the features with the weights of that head."""
    heads = weight.size(1)
    check_heads(heads, x.size(1))
    if REDUCTIONS[reduce] == 0:
        (x,) = _autocast(x)
        out = errors.run(
            _operators.spmm, x, graph.index, graph.offsets, weight, None,
            *_graph_numbers(graph, loops), 1.0, 0, 0, flags_of(tune, x, kernel),
        )[0]
    else:
        shares = x.unflatten(1, (heads, -1)).unbind(1)
        out = torch.cat([spmm(graph, share, values, reduce, loops=loops, tune=tune, kernel=kernel)
                         for share, values in zip(shares, weight.unbind(1))], dim=1)
    return out if bias is None else out + bias.to(out.dtype)


def _graph_for(graph: Any, targets: int, sources: int) -> Graph:
    if isinstance(graph, Graph):
        return graph
    if isinstance(graph, Tensor) and graph.layout != torch.strided:
        return Graph.of(graph)
    return Graph.of(graph, targets, sources)


def sddmm(
    graph: Any,
    u: Tensor,
    v: Tensor,
    *,
    heads: int = 1,
    function: str = "dot",
    loops: str = "given",
    tune: bool = False,
    kernel: str | None = None,
) -> Tensor:
    """A number for each edge and head, from the features of its two ends.

    ``"dot"``: the product of the target's row of ``u`` and the source's row of ``v``, head by head.
    ``"add"``: their sum; ``u`` and ``v`` then have one number for each head.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> tessera.sddmm(edge_index, x, x)
        tensor([[11.],
                [11.]])
    """
    graph = _graph_for(graph, rows_of("u", u), rows_of("v", v))
    check_features("u", u, graph, graph.num_targets)
    check_features("v", v, graph, graph.num_sources)
    if function not in ("dot", "add"):
        raise ValueError(f"unknown function {function!r}: use dot or add")
    if u.size(1) != v.size(1):
        raise ValueError(f"u has {u.size(1)} features, v has {v.size(1)}: use as many in both")
    check_heads(heads, u.size(1))
    check_type("v", v, u, autocast_dtype(u) is not None)
    u, v = _autocast(u, v)
    return errors.run(
        _operators.sddmm, u, v, graph.index, graph.offsets, *_graph_numbers(graph, loops),
        heads, 0 if function == "dot" else 1, flags_of(tune, u, kernel),
    )


def messages(
    graph: Any,
    x: Tensor,
    edge_features: Tensor,
    *,
    message: str = "relu",
    tune: bool = False,
    kernel: str | None = None,
) -> Tensor:
    """Every target sums what its sources and the edges from them say.

    ``x`` has a row for each source, ``edge_features`` one for each edge, as wide. A message is their sum
    (``"sum"``), what of it is above 0 (``"relu"``, as in GINE), or their product (``"product"``), in the wider type of
    both. Nothing of the size of edges x features is made besides the gradient of ``edge_features``. ``kernel``: as of
    :func:`spmm`.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1, 2], [2, 2, 0]])
        >>> tessera.messages(edge_index, torch.ones(3, 1), torch.tensor([[1.0], [2.0], [-4.0]]))
        tensor([[0.],
                [0.],
                [5.]])
    """
    if message not in MESSAGES:
        raise ValueError(f"unknown message {message!r}: use sum, relu or product")
    rows = rows_of("x", x)
    graph = _graph_for(graph, rows, rows)
    check_features("x", x, graph, graph.num_sources)
    check_features("edge_features", edge_features, graph, None, shape="(edges, features)")
    check_edge_features(edge_features, graph, x.size(1))
    if graph.weight is not None:
        raise ValueError("messages are not weighed: use graph.without_weight()")
    if x.dtype != edge_features.dtype:
        dtype = torch.promote_types(x.dtype, edge_features.dtype)
        x, edge_features = x.to(dtype), edge_features.to(dtype)
    return errors.run(
        _operators.messages, x, edge_features, graph.index, graph.offsets, *_graph_numbers(graph, "given"),
        MESSAGES[message], flags_of(tune, x, kernel),
    )


def edge_softmax(
    graph: Any, scores: Tensor, *, num_targets: int | None = None, loops: str = "given"
) -> Tensor:
    """Scores of edges (``edges x heads``) as weights that sum to 1 over the edges of each target.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1, 1], [0, 0, 1]])
        >>> tessera.edge_softmax(edge_index, torch.zeros(3, 1), num_targets=2)
        tensor([[0.5000],
                [0.5000],
                [1.0000]])
    """
    graph = _graph_for(graph, num_targets, num_targets)
    check_features("scores", scores, graph, None, shape="(edges, heads)")
    return errors.run(
        _operators.edge_softmax, scores, graph.index, graph.offsets,
        *_graph_numbers(graph, loops), 0,
    )


def attention(
    graph: Any,
    target: Tensor | None,
    source: Tensor | None,
    value: Tensor,
    vector: Tensor | None = None,
    *,
    form: str = "additive",
    heads: int = 1,
    scale: float | Tensor = 1.0,
    negative_slope: float = 0.2,
    dropout: float = 0.0,
    edge_term: Tensor | None = None,
    loops: str = "given",
    tune: bool = False,
    kernel: str | None = None,
) -> Tensor:
    """Every target sums the values of its sources, weighted by a softmax over scores.

    With ``w = features / heads`` numbers for each head, the score of an edge is

    - ``"additive"`` (GAT): ``leaky_relu(target + source)``, one number for each head and vertex;
    - ``"v2"`` (GATv2): ``vector . leaky_relu(target + source)``, ``w`` numbers; ``vector`` holds ``w`` for
      each head, in one row or ``heads x w``;
    - ``"dot"`` (transformers): ``scale * target . source``, ``w`` numbers; ``scale`` may be a tensor of
      one number that lies on the device, and be learned;
    - ``"cosine"`` (AGNN): ``vector`` times the cosine of both ends' values, with ``vector`` one number
      that lies on the device; ``target`` and ``source`` are None, and there is one head.

    Nothing of the size of edges x features is kept, neither for the backward pass.

    ``edge_term`` adds a number for each edge and head to what is summed inside of the score (``w``
    numbers for each head in the form v2); with added loops, theirs stand at the end. Runs then take
    memory for a few numbers for each edge and head (in the form v2, as much as the terms take, too),
    and compute in fp32 where values have 16 bits. ``kernel``: as of :func:`spmm`; not in the form cosine.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1], [0, 0]])
        >>> scores, value = torch.zeros(2, 1), torch.tensor([[1.0], [3.0]])
        >>> tessera.attention(edge_index, scores, scores, value)
        tensor([[2.],
                [0.]])
    """
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}: use additive, v2, dot or cosine")
    if form == "cosine":
        if kernel is not None:
            raise ValueError(f"kernel={kernel!r}: attention in the form cosine chooses its kernels itself: "
                             "give none")
        return _attention_by_cosines(graph, target, source, value, vector, heads, dropout, edge_term,
                                     loops, tune)
    graph = _checked_graph(graph, target, source, value, vector, form, heads)
    if isinstance(scale, Tensor):
        if form != "dot" or scale.numel() != 1:
            raise ValueError("a scale that is a tensor has one number, and belongs to the form dot")
        target, scale = target * scale.view(1, 1).to(target.dtype), 1.0
    if edge_term is not None:
        check_edge_term(edge_term, graph, loops_number(loops), value.size(1) if form == "v2" else heads)
    seed = dropout_seed(value.device) if dropout > 0 else None
    value, target, source, vector = _autocast(value, target, source, vector)
    return errors.run(
        _operators.attention, target, source, value, vector, edge_term, seed, graph.index,
        graph.offsets, *_graph_numbers(graph, loops), FORMS[form], heads, scale, negative_slope,
        dropout, flags_of(tune, value, kernel),
    )[0]


def _checked_graph(graph: Any, target: Tensor | None, source: Tensor | None, value: Tensor,
                   vector: Tensor | None, form: str, heads: int) -> Graph:
    """The graph, where scores of both ends of its edges can be made of what was given."""
    if target is None or source is None:
        raise ValueError(f"the form {form} needs features of targets and sources")
    graph = _graph_for(graph, rows_of("target", target), rows_of("value", value))
    check_features("target", target, graph, graph.num_targets)
    check_features("source", source, graph, graph.num_sources)
    check_features("value", value, graph, graph.num_sources)
    if not value.dtype == target.dtype == source.dtype == (value if vector is None else vector).dtype:
        cast = autocast_dtype(value) is not None
        for name, tensor in (("target", target), ("source", source), ("vector", vector)):
            check_type(name, tensor, value, cast)
    check_heads(heads, value.size(1))
    if (vector is not None) != (form == "v2"):
        raise ValueError("a vector belongs to the forms v2 and cosine, and to no other")
    if vector is not None:
        check_vector(vector, value)
    return graph


def _attention_by_cosines(
    graph: Any, target: Tensor | None, source: Tensor | None, value: Tensor, factor: Tensor | None,
    heads: int, dropout: float, edge_term: Tensor | None, loops: str, tune: bool
) -> Tensor:
    if target is not None or source is not None or heads != 1:
        raise ValueError("the form cosine has values alone, and one head")
    if factor is None or factor.numel() != 1:
        raise ValueError("the form cosine needs a vector of one number")
    graph = _graph_for(graph, rows_of("value", value), rows_of("value", value))
    check_features("value", value, graph, graph.num_sources)
    if value.device.type != "cuda" or edge_term is not None:
        unit = torch.nn.functional.normalize(value, p=2.0, dim=-1)
        return attention(graph, (factor * unit).to(unit.dtype), unit, value, form="dot",
                         dropout=dropout, edge_term=edge_term, loops=loops, tune=tune)
    seed = dropout_seed(value.device) if dropout > 0 else None
    value, factor = _autocast(value, factor)
    factor = factor.to(value.dtype)
    nothing = value.new_empty((0, 0))
    return errors.run(
        _operators.attention, nothing, nothing, value, factor, None, seed, graph.index, graph.offsets,
        *_graph_numbers(graph, loops), FORMS["cosine"], 1, 1.0, 0.0, dropout,
        flags_of(tune, value),
    )[0]


def attention_weights(
    graph: Any,
    target: Tensor,
    source: Tensor,
    value: Tensor,
    vector: Tensor | None = None,
    *,
    form: str = "additive",
    heads: int = 1,
    scale: float = 1.0,
    negative_slope: float = 0.2,
    edge_term: Tensor | None = None,
    loops: str = "given",
) -> Tensor:
    """The weights by which :func:`attention` sums, ``edges x heads``, before dropout.

    They have derivatives; where none are needed, nothing of the size of edges x features is made.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1], [0, 0]])
        >>> scores = torch.zeros(2, 1)
        >>> tessera.attention_weights(edge_index, scores, scores, torch.ones(2, 4))
        tensor([[0.5000],
                [0.5000]])
    """
    if form not in ("additive", "v2", "dot"):
        raise ValueError(f"no weights of the form {form!r}: use additive, v2 or dot")
    graph = _checked_graph(graph, target, source, value, vector, form, heads)
    value, target, source, vector = _autocast(value, target, source, vector)
    tensors = [tensor for tensor in (target, source, vector) if tensor is not None]
    wants_grad = forward_mode() or (torch.is_grad_enabled() and any(tensor.requires_grad for tensor in tensors))
    if edge_term is not None or wants_grad:
        if edge_term is not None:
            check_edge_term(edge_term, graph, loops_number(loops), vector.numel() if form == "v2" else heads)
        scores = _edge_scores(graph, target, source, vector, form, heads, scale, negative_slope,
                              edge_term, loops)
        return edge_softmax(graph, scores, loops=loops)
    seed = None
    numbers = _graph_numbers(graph, loops)
    log_sum = errors.run(
        _operators.attention, target, source, value.detach(), vector, None, seed, graph.index,
        graph.offsets, *numbers, FORMS[form], heads, scale, negative_slope, 0.0, 0,
    )[1]
    return errors.run(
        _operators.attention_weights, target, source, value, log_sum, vector, graph.index,
        graph.offsets, *numbers, FORMS[form], heads, scale, negative_slope, 0,
    )


def _edge_scores(
    graph: Graph,
    target: Tensor,
    source: Tensor,
    vector: Tensor | None,
    form: str,
    heads: int,
    scale: float,
    negative_slope: float,
    edge_term: Tensor | None,
    loops: str,
) -> Tensor:
    def with_term(scores: Tensor) -> Tensor:
        return scores if edge_term is None else scores + edge_term.to(scores.dtype)

    if form == "additive":
        added = sddmm(graph, target, source, heads=heads, function="add", loops=loops)
        return torch.nn.functional.leaky_relu(with_term(added), negative_slope)
    if form == "dot":
        return with_term(scale * sddmm(graph, target, source, heads=heads, loops=loops))
    assert vector is not None
    to, of = graph.targets_and_sources()
    if loops_number(loops) in ADDED_LOOPS:
        vertices = torch.arange(torch.sym_min(graph.num_targets, graph.num_sources),
                                device=to.device)
        to, of = torch.cat([to, vertices.to(to.dtype)]), torch.cat([of, vertices.to(of.dtype)])
    ends = torch.nn.functional.leaky_relu(with_term(target[to] + source[of]), negative_slope)
    return (ends * vector.reshape(-1)).view(ends.size(0), heads, vector.numel() // heads).sum(-1)


__all__ = ["FLOATS", "attention", "attention_weights", "edge_softmax", "messages", "sddmm", "spmm"]
