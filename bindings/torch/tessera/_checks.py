# SPDX-License-Identifier: Apache-2.0
"""Checks of what the operators are given, each with an exception that names what is wrong."""

from __future__ import annotations

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from . import errors
from ._library import has_cuda
from ._shapes import caller_edges
from .graph import Graph

_is_compiling = torch.compiler.is_compiling
FLOATS = (torch.float64, torch.float32, torch.bfloat16, torch.float16)


def _check_tensor(name: str, tensor: Tensor) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}, not a tensor")


def rows_of(name: str, features: Tensor) -> int:
    """How many vertices features are for, where an ``edge_index`` alone does not say."""
    _check_tensor(name, features)
    return features.size(0) if features.dim() > 0 else 0


def check_features(name: str, tensor: Tensor, graph: Graph, rows: int | None,
                   shape: str = "(vertices, features)") -> None:
    # What every call is asked for, in the fewest questions: where it fits, nothing else is asked.
    if (isinstance(tensor, Tensor) and tensor.dtype in FLOATS and tensor.dim() == 2
            and tensor.layout == torch.strided
            and tensor.device == graph.index.device and (not tensor.is_cuda or has_cuda())
            and (rows is None or _is_compiling() or tensor.size(0) == rows)):
        return
    _check_tensor(name, tensor)
    if tensor.dtype not in FLOATS:
        raise TypeError(f"{name} has type {tensor.dtype}: use float64, float32, bfloat16 or float16")
    if tensor.dim() != 2:
        raise ValueError(f"{name} has shape {tuple(tensor.shape)}: use {shape}")
    if tensor.layout != torch.strided:
        raise TypeError(f"{name} has layout {tensor.layout}: use {name}.to_dense()")
    if tensor.device.type == "cuda" and not has_cuda():
        raise RuntimeError(errors.NOT_INSTALLED)
    if tensor.device != graph.device:
        raise ValueError(
            f"{name} lies on {tensor.device}, the graph on {graph.device}: use {name}.to({str(graph.device)!r})"
        )
    raise ValueError(f"{name} has {tensor.size(0)} rows for {rows} vertices: use one for each")


def check_type(name: str, tensor: Tensor | None, features: Tensor, cast: bool) -> None:
    """What meets features has their type, as it has to in torch's own products; autocast casts both."""
    if tensor is None or cast or tensor.dtype == features.dtype:
        return
    raise TypeError(f"{name} has type {tensor.dtype}, the features {features.dtype}: use {name}.to({features.dtype})")


def check_heads(heads: int, features: int) -> None:
    if heads < 1:
        raise ValueError(f"there are {heads} heads: use 1 or more")
    if features % heads != 0:
        raise ValueError(f"{features} features do not divide into {heads} heads")


def check_vector(vector: Tensor, features: Tensor) -> None:
    """What the form v2 of attention multiplies scores by."""
    _check_tensor("vector", vector)
    if vector.device != features.device:
        raise ValueError(f"vector lies on {vector.device}, value on {features.device}: use "
                         f"vector.to({str(features.device)!r})")


def check_bias(bias: Tensor | None, x: Tensor, cast: bool) -> None:
    if bias is None:
        return
    _check_tensor("bias", bias)
    if bias.dim() != 1 or bias.size(0) != x.size(1):
        raise ValueError(f"bias has shape {tuple(bias.shape)}: use ({x.size(1)},)")
    if bias.device != x.device:
        raise ValueError(f"bias lies on {bias.device}, x on {x.device}: move one of them")
    check_type("bias", bias, x, cast)


def _edges_of(name: str, numbers: Tensor, graph: Graph, loops: int) -> int | None:
    """How many edges numbers are wanted for; None in compiled code, where sizes are not known."""
    _check_tensor(name, numbers)
    if not numbers.is_floating_point():
        raise TypeError(f"{name} has type {numbers.dtype}: use a float")
    if numbers.device != graph.device:
        raise ValueError(f"{name} lies on {numbers.device}, the graph on {graph.device}: use "
                         f"{name}.to({str(graph.device)!r})")
    if _is_compiling():
        return None
    return caller_edges(graph.index, graph.num_targets, graph.num_sources, loops)


# What indices were found inside of, for as long as they live.
_checked_ends: WeakIdKeyDictionary = WeakIdKeyDictionary()


def known_ends(index: Tensor, sources: int, targets: int) -> None:
    """Notes that all ends are inside."""
    if not _is_compiling() and not index.is_inference():
        _checked_ends[index] = (index._version, targets, sources)


def knows_ends(index: Tensor, sources: int, targets: int) -> bool:
    """Whether they were found inside of these, or of fewer."""
    known = None if index.is_inference() else _checked_ends.get(index)
    return known is not None and known[0] == index._version and known[1] <= targets and known[2] <= sources


def note_part(part: Tensor, pairs: Tensor) -> None:
    """Notes of a new part of pairs which ends all of them are inside. It is found out once for as long as they do not
    change."""
    if _is_compiling() or part.is_inference() or pairs.is_inference():
        return
    known = _checked_ends.get(pairs)
    if known is None or known[0] != pairs._version:
        if pairs.is_meta or pairs.numel() == 0 or (pairs.is_cuda and torch.cuda.is_current_stream_capturing()):
            return
        least, (sources, targets) = pairs.min(), (pairs.amax(1) + 1).tolist()
        if int(least) < 0:
            return
        known_ends(pairs, sources, targets)
        known = _checked_ends[pairs]
    _checked_ends[part] = (part._version, *known[1:])


def check_ends(graph: Graph) -> None:
    """Refuses indices outside before code of torch's gathers or adds by them: on a GPU that would end every later
    operation of the process. Indices are looked at once for as long as they do not change."""
    index = graph.index
    if index.is_meta:
        return
    if knows_ends(index, graph.num_sources, graph.num_targets):
        return
    if index.is_cuda and torch.cuda.is_current_stream_capturing():
        return
    if graph.num_edges > 0:
        targets, sources = graph.targets_and_sources()
        wrong = (errors.outside("source", sources, graph.num_sources)
                 or errors.outside("target", targets, graph.num_targets))
        if wrong is not None:
            raise IndexError(wrong)
    known_ends(index, graph.num_sources, graph.num_targets)


def check_inside(name: str, numbers: Tensor, end: int, what: str) -> bool:
    """Refuses numbers that there is nothing for."""
    if numbers.numel() > 0:
        least, largest = (int(found) for found in torch.aminmax(numbers))
        if least < 0 or largest >= end:
            use = f"use 0 to {end - 1}" if end > 0 else "there are none"
            raise IndexError(f"{name} has {least if least < 0 else largest} for {end} {what}: {use}")
    return True


def check_weight(weight: Tensor, graph: Graph, loops: int) -> None:
    expected = _edges_of("edge_weight", weight, graph, loops)
    if expected is not None and (weight.dim() not in (1, 2) or weight.size(0) != expected):
        if weight.dim() not in (1, 2):
            raise ValueError(f"edge_weight has shape {tuple(weight.shape)}: use ({expected},) or ({expected}, heads)")
        raise ValueError(f"edge_weight has {weight.size(0)} numbers for {expected} edges: use one for each")


def check_edge_attr(attr: Tensor, graph: Graph) -> None:
    expected = _edges_of("edge_attr", attr, graph, 0)
    if expected is not None and (attr.dim() not in (1, 2) or attr.size(0) != expected):
        raise ValueError(f"edge_attr has shape {tuple(attr.shape)}: use ({expected}, features)")


def check_edge_features(features: Tensor, graph: Graph, width: int) -> None:
    expected = _edges_of("edge_features", features, graph, 0)
    if expected is not None and tuple(features.shape) != (expected, width):
        raise ValueError(f"edge_features has shape {tuple(features.shape)}: use ({expected}, {width})")


def check_edge_term(term: Tensor, graph: Graph, loops: int, width: int) -> None:
    expected = _edges_of("edge_term", term, graph, loops)
    if expected is not None and tuple(term.shape) != (expected, width):
        raise ValueError(f"edge_term has shape {tuple(term.shape)}: use ({expected}, {width})")
