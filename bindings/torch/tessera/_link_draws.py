# SPDX-License-Identifier: Apache-2.0
"""What is drawn of edges: their parts of a split, and pairs that are none. See :mod:`tessera.links`."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from . import _link_operators
from ._checks import _check_tensor, check_ends, known_ends, knows_ends, note_part
from .graph import Graph


class Part(enum.IntEnum):
    """What an edge is for. Edges for supervision are asked for in training, and carry no messages then."""

    TRAIN = 0
    SUPERVISION = 1
    VALIDATION = 2
    TEST = 3


class LinkSplit(NamedTuple):
    """Edges that carry messages, as an ``edge_index`` in the order given, and pairs that are asked for."""

    train_edges: Tensor  #: carry messages in training
    validation_edges: Tensor  #: those for training and supervision
    test_edges: Tensor  #: those for validation, too
    train: Tensor  #: pairs: those for supervision, or where there are none ``train_edges``
    validation: Tensor
    test: Tensor
    parts: Tensor  #: the :class:`Part` of each edge: ``edge_attr[parts == Part.TRAIN]``


KINDS = {"uniform": 0, "by_source": 1, "by_degree": 2}

# Graphs on the CPU of those on a GPU, for as long as their indices live and do not change.
_on_cpu: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _cpu_graph(graph: Graph) -> Graph:
    if graph.device.type == "cpu":
        return graph
    if graph.index.is_inference():  # torch counts no changes
        return graph.to("cpu")
    state = (graph.index._version, graph.num_targets, graph.num_sources, graph.layout)
    known = _on_cpu.get(graph.index)
    if known is None or known[0] != state:
        known = _on_cpu[graph.index] = (state, graph.without_weight().to("cpu"))
    return known[1]


def _arguments(graph: Graph, between: Tensor | None) -> tuple[Any, ...]:
    return graph.index, graph.offsets, between, graph.num_targets, graph.num_sources, graph.layout, 0


def _one_each(name: str, numbers: Tensor, graph: Graph) -> Tensor:
    """A number for each edge, as a column on the CPU."""
    _check_tensor(name, numbers)
    if numbers.numel() != graph.num_edges:
        raise ValueError(f"{name} has {numbers.numel()} numbers for {graph.num_edges} edges: use one for each")
    return numbers.detach().to("cpu").reshape(-1, 1)


def split(graph: Any, validation: float = 0.05, test: float = 0.1, supervision: float = 0.0, *,
          times: Tensor | None = None, parts: Tensor | None = None, seed: int = 0) -> LinkSplit:
    """Splits the edges of a graph for predicting links. An edge and its reverse are always in the same part, so that
    none gives the other away; pairs of a symmetric graph are listed once, the smaller vertex first.

    Args:
        graph: a :class:`tessera.Graph`, or what :meth:`Graph.of` takes; every edge once.
        validation, test: shares of the edges that are held out, an edge and its reverse counted once.
        supervision: a share of those for training that is asked for and not seen. At 0 a model is asked for the edges
            that carry its messages.
        times: one number for each edge: the latest edges are for the test, those before them for validation. An edge
            and its reverse are as old as the older of the two.
        parts: the :class:`Part` of each edge, in place of shares; an edge in another part than its reverse is an error.
        seed: what is drawn depends on it alone.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> edge_index = torch.tensor([[0, 1, 1, 2, 2, 3, 0, 3], [1, 0, 2, 1, 3, 2, 3, 0]])
        >>> parts = torch.tensor([0, 0, 0, 0, 3, 3, 2, 2])
        >>> found = links.split(edge_index, parts=parts)
        >>> found.train_edges.tolist(), found.test.tolist(), found.validation.tolist()
        ([[0, 1, 1, 2], [1, 0, 2, 1]], [[2], [3]], [[0], [3]])
    """
    given = Graph.of(graph)
    on_cpu = _cpu_graph(given)
    if parts is None:
        ages = None if times is None else _one_each("times", times, given)
        chosen = _link_operators.run("link_parts", *_arguments(on_cpu, ages), float(validation), float(test),
                                     float(supervision), seed)
    else:
        if times is not None:
            raise ValueError("parts and times both say how to split: give one of them")
        chosen = _one_each("parts", parts, given)
        if chosen.is_floating_point() or chosen.dtype == torch.bool:
            raise TypeError(f"parts has type {chosen.dtype}: use a whole number, a links.Part, for each edge")
    once = _link_operators.run("check_link_parts", *_arguments(on_cpu, chosen))
    part = chosen.view(-1).to(given.device, torch.int64)
    targets, sources = given.targets_and_sources()
    edges = torch.stack([sources, targets])
    listed = sources <= targets if once else torch.ones_like(sources, dtype=torch.bool)
    supervised = bool((part == Part.SUPERVISION).any())

    def up_to(last: Part) -> Tensor:
        return edges[:, part <= last]

    def pairs(of: Part) -> Tensor:
        return edges[:, (part == of) & listed]

    found = LinkSplit(up_to(Part.TRAIN), up_to(Part.SUPERVISION), up_to(Part.VALIDATION),
                      pairs(Part.SUPERVISION if supervised else Part.TRAIN), pairs(Part.VALIDATION), pairs(Part.TEST),
                      part)
    for ends in found[:6]:
        known_ends(ends, given.num_sources, given.num_targets)
    return found


def negative_sampling(graph: Any, positives: Tensor | None = None, kind: str = "uniform", per_positive: int = 1, *,
                      seed: int = 0, step: int | Tensor = 0) -> Tensor:
    """Pairs that are no edges, ``per_positive`` for each positive pair: those of pair i stand at
    ``i * per_positive`` and behind it. They are drawn where the graph lies, and depend on seed, step and place alone, not
    on the device. Draws are exact, also in a graph that has nearly every edge.

    Args:
        graph: edges that are not to be drawn, each of them once. In training give those for training alone, so that
            pairs that are held out may be drawn like any others; to evaluate give the whole graph. In a square graph no
            vertex is paired with itself.
        positives: pairs, ``2 x pairs``; by default the edges of the graph.
        kind: ``"uniform"`` (any pair, all equally likely), ``"by_source"`` (the source of the positive pair, any
            target) or ``"by_degree"`` (the same, with targets as often as they have edges).
        step: of training; another step draws other pairs. A tensor of one int64 on the graph's device is read when the
            pairs are drawn, so that a captured CUDA graph draws others at every replay.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> edge_index = torch.tensor([[0, 0, 1], [1, 2, 2]])
        >>> links.negative_sampling(edge_index, torch.tensor([[1], [2]]), kind="by_source", per_positive=3)
        tensor([[1, 1, 1],
                [0, 0, 0]])
    """
    given = Graph.of(graph)
    if kind not in KINDS:
        raise ValueError(f"unknown kind {kind!r}: use uniform, by_source or by_degree")
    if positives is None:
        targets, sources = given.targets_and_sources()
        positives = torch.stack([sources, targets])
    elif checked_pairs("positives", positives).device != given.device:
        raise ValueError(f"positives lie on {positives.device}, the graph on {given.device}: move one of them")
    elif kind != "uniform" and positives.is_cuda:
        check_pair_ends(positives, given.num_sources, given.num_targets)
    clock, step = _clock_and_step(step, given.device, 2**32)
    drawn = _link_operators.run("negative_pairs", given.index, given.offsets, positives, clock, given.num_targets,
                                given.num_sources, given.layout, 0, KINDS[kind], per_positive, seed, step)
    known_ends(drawn, given.num_sources, given.num_targets)
    return drawn


def batch(pairs: Tensor, size: int, *, seed: int = 0, step: int | Tensor = 0) -> Tensor:
    """The pairs that a step of training is asked for: so many of them, in an order of each epoch's own. An epoch has
    ``pairs.size(1) // size`` steps; what is left over is not used in it. Nothing waits for a GPU.

    Args:
        step: of training, over all epochs; a tensor as :func:`negative_sampling` takes it.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> pairs = torch.tensor([[0, 1, 2, 3], [4, 5, 6, 7]])
        >>> epoch = [links.batch(pairs, 2, seed=1, step=step) for step in (0, 1)]
        >>> sorted(torch.cat(epoch, dim=1)[0].tolist())
        [0, 1, 2, 3]
    """
    checked_pairs("pairs", pairs)
    if not 0 < size <= pairs.size(1):
        raise ValueError(f"batches of {size} of {pairs.size(1)} pairs: use at least 1, and at most as many as there are")
    clock, step = _clock_and_step(step, pairs.device, 2**63)
    chosen = _link_operators.run("pair_batch", pairs, clock, size, seed, step)
    note_part(chosen, pairs)
    return chosen


def _clock_and_step(step: int | Tensor, device: torch.device, end: int) -> tuple[Tensor | None, int]:
    """A step that lies where pairs are drawn, or a number."""
    if isinstance(step, Tensor):
        if step.dtype != torch.int64 or step.numel() != 1 or step.device != device:
            raise ValueError(f"step is {step.numel()} numbers of {step.dtype} on {step.device}: use one torch.int64 on {device}")
        return step, 0
    if not 0 <= step < end:
        raise ValueError(f"step is {step}: use a number from 0 to 2^{end.bit_length() - 1} - 1")
    return None, step


def checked_pairs(name: str, pairs: Tensor) -> Tensor:
    _check_tensor(name, pairs)
    if pairs.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} has type {pairs.dtype}: use torch.int64 or torch.int32")
    if pairs.dim() != 2 or pairs.size(0) != 2:
        raise ValueError(f"{name} has shape {tuple(pairs.shape)}: use (2, pairs)")
    return pairs


def check_pair_ends(pairs: Tensor, sources: int, targets: int) -> None:
    """Refuses ends outside, by which kernels of a GPU would read. A list is looked at once for as long as it does not
    change, and those made here not at all, so that no step waits for them."""
    if not torch.compiler.is_compiling():
        base = pairs._base
        is_part = base is not None and base.dim() == 2 and base.stride(0) == pairs.stride(0)
        if not knows_ends(base if is_part else pairs, sources, targets):
            check_ends(Graph(pairs, targets, sources))
