# SPDX-License-Identifier: Apache-2.0
"""What was wrong with a call of a layer that ended with an error of torch's, in the words of this package.

It is looked for only after such an error, so that calls that work are asked for nothing.
"""

from __future__ import annotations

import functools
import inspect
from typing import Any, Callable, Iterator

import torch
from torch import Tensor
from torch.nn.parameter import UninitializedTensorMixin

from .. import errors

_is_compiling = torch.compiler.is_compiling
# What may be said of a call better than torch and PyG say it: not of others, such as no memory.
_KINDS = (RuntimeError, NotImplementedError, AssertionError, TypeError, ValueError, IndexError)


def label_of(layer: torch.nn.Module) -> str:
    """Its class, and its place in a model that was accelerated."""
    path = layer.__dict__.get("_tessera_path")
    return f"{type(layer).__name__} ({path})" if path else type(layer).__name__


def diagnosed(forward: Callable[..., Any]) -> Callable[..., Any]:
    """A layer's ``forward`` whose errors name the layer, and the argument that is wrong."""
    names = list(inspect.signature(forward).parameters)[1:]

    @functools.wraps(forward)
    def checked(self: Any, *arguments: Any, **named: Any) -> Any:
        if _is_compiling():
            return forward(self, *arguments, **named)
        try:
            return forward(self, *arguments, **named)
        except _KINDS as error:
            ours = _package_of(error) == "tessera"
            better = _explained(self, error, ours, {**dict(zip(names, arguments)), **named})
            if better is None:
                raise
            raise better from (None if ours else error)

    # Compilation counts what it compiled by code: layers must not share theirs.
    checked.__code__ = checked.__code__.replace(co_name=f"checked_{forward.__module__.rpartition('.')[2]}")
    return checked


def _package_of(error: BaseException) -> str:
    """Whose code raised it."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    module = "" if trace is None else trace.tb_frame.f_globals.get("__name__", "")
    return module.partition(".")[0]


def _explained(layer: torch.nn.Module, error: Exception, ours: bool, arguments: dict[str, Any]) -> Exception | None:
    """The same error with the layer and the argument that is wrong; None where nothing can be added to it. What a
    module of the user's raises is the user's, unless it is one of torch's in it."""
    if hasattr(error, "tessera_layer") or type(error) not in _KINDS:
        return None
    of_torch = isinstance(error, (RuntimeError, AssertionError)) or _package_of(error) in ("torch", "torch_geometric")
    wrong = problem_of(layer, arguments) if ours or of_torch else None
    if wrong is None and ours:
        wrong = type(error)(f"{label_of(layer)}: {error}")
    if wrong is not None:
        wrong.tessera_layer = label_of(layer)  # type: ignore[attr-defined]
    return wrong


def _tensors(arguments: dict[str, Any]) -> Iterator[tuple[str, Tensor]]:
    """By name, but for what holds edges; of a pair, each by its place."""
    for name, argument in arguments.items():
        if name == "edge_index":
            continue
        if isinstance(argument, Tensor):
            yield name, argument
        elif isinstance(argument, (tuple, list)):
            yield from ((f"{name}[{place}]", part) for place, part in enumerate(argument) if isinstance(part, Tensor))


def problem_of(layer: torch.nn.Module, arguments: dict[str, Any]) -> Exception | None:
    """The first thing that is wrong; None where nothing is that can be told."""
    layer_name = label_of(layer)
    numbers = getattr(layer, "_may_be_numbers", ())
    given = [(name, tensor) for name, tensor in _tensors(arguments)
             if name != "batch" and (tensor.is_floating_point() or not name.startswith(numbers))]
    own = [parameter for parameter in layer.parameters() if not isinstance(parameter, UninitializedTensorMixin)]
    edges = arguments.get("edge_index")
    if isinstance(edges, Tensor) and edges.layout == torch.strided:
        if edges.dtype not in (torch.int64, torch.int32):
            return TypeError(f"{layer_name}: edge_index has type {edges.dtype}: use int64 or int32")
        if edges.dim() != 2 or edges.size(0) != 2:
            return ValueError(f"{layer_name}: edge_index has shape {tuple(edges.shape)}: use (2, edges)")
    for name, tensor in given:
        if not tensor.is_floating_point():
            use = f"{name}.real" if tensor.is_complex() else f"{name}.float()"
            return TypeError(f"{layer_name}: {name} has type {tensor.dtype}: use {use}")
    for name, tensor in given:
        problem = _other_type(layer_name, name, tensor, own) or _other_device(layer_name, name, tensor, own, edges)
        if problem is not None:
            return problem
    x = arguments.get("x")
    if isinstance(x, Tensor) and x.dim() != 2 and any(tensor is x for _, tensor in given):
        return ValueError(f"{layer_name}: x has shape {tuple(x.shape)}: use (vertices, features)")
    return (_missing(layer_name, layer, arguments) or _other_width(layer_name, layer, arguments)
            or _other_edges(layer_name, given, edges) or _outside(layer_name, layer, arguments)
            or _other_weights(layer_name, arguments) or _sparse(layer_name, x))


def _missing(layer: str, module: Any, arguments: dict[str, Any]) -> Exception | None:
    """What a layer cannot do without."""
    x = arguments.get("x")
    for place, part in enumerate(x if isinstance(x, (tuple, list)) else ()):
        if part is None:
            return ValueError(f"{layer}: x[{place}] is None: use a pair of features")
    if arguments.get("edge_attr") is not None and getattr(module, "lin_edge", arguments) is None:
        return ValueError(f"{layer}: edge_attr is given, but the layer has no edge_dim: make it with edge_dim=...")
    return None


def _other_type(layer: str, name: str, tensor: Tensor, own: list[Tensor]) -> Exception | None:
    types = {parameter.dtype for parameter in own}
    if not types or tensor.dtype in types or not (name.startswith("x") or name == "edge_attr"):
        return None
    if torch.is_autocast_enabled(tensor.device.type) and torch.float64 not in (tensor.dtype, *types):
        return None  # which casts both
    wanted = own[0].dtype
    return TypeError(f"{layer}: {name} has type {tensor.dtype}, the layer's parameters {wanted}: use "
                     f"{name}.to({wanted}), or layer.to({tensor.dtype})")


def _other_weights(layer: str, arguments: dict[str, Any]) -> Exception | None:
    x, weight = arguments.get("x"), arguments.get("edge_weight")
    if not isinstance(x, Tensor) or not isinstance(weight, Tensor) or x.dtype == weight.dtype:
        return None
    return TypeError(f"{layer}: edge_weight has type {weight.dtype}, x {x.dtype}: use edge_weight.to({x.dtype})")


def _other_device(layer: str, name: str, tensor: Tensor, own: list[Tensor], edges: Any) -> Exception | None:
    if own and own[0].device != tensor.device:
        return ValueError(f"{layer}: {name} lies on {tensor.device}, the layer on {own[0].device}: use "
                          f"{name}.to({str(own[0].device)!r})")
    device = getattr(edges, "device", None)
    if isinstance(device, torch.device) and device != tensor.device:
        return ValueError(f"{layer}: edge_index lies on {device}, {name} on {tensor.device}: use "
                          f"edge_index.to({str(tensor.device)!r})")
    return None


def _inputs_of(module: Any) -> Any:
    """How many features a layer takes, or the network that is all of it; None where it does not say."""
    while module is not None and not hasattr(module, "in_channels"):
        if hasattr(module, "in_features"):
            return module.in_features
        parts = module if isinstance(module, torch.nn.Sequential) else (getattr(module, "nn", None),)
        module = next(iter(parts), None)
    return None if module is None else module.in_channels


def _other_width(layer: str, module: Any, arguments: dict[str, Any]) -> Exception | None:
    """Features that a layer has no weights for."""
    x, attr = arguments.get("x"), arguments.get("edge_attr")
    wanted = _inputs_of(module)
    pair = x if isinstance(x, (tuple, list)) else ()
    parts = {"x": x} if isinstance(x, Tensor) else {f"x[{place}]": part for place, part in enumerate(pair)}
    widths = wanted if isinstance(wanted, (tuple, list)) else (wanted,) * len(parts)
    for (name, part), width in [*zip(parts.items(), widths), (("edge_attr", attr), getattr(module, "edge_dim", None))]:
        if isinstance(part, Tensor) and part.dim() > 1 and isinstance(width, int) and width > 0 and part.size(-1) != width:
            return ValueError(f"{layer}: {name} has {part.size(-1)} features, the layer takes {width}")
    return None


def _sparse(layer: str, x: Any) -> Exception | None:
    """Most layers of PyG's take dense features alone."""
    if not isinstance(x, Tensor) or x.layout == torch.strided:
        return None
    return TypeError(f"{layer}: x has layout {x.layout}: use x.to_dense()")


def _other_edges(layer: str, given: list[tuple[str, Tensor]], edges: Any) -> Exception | None:
    """One row of features or weights belongs to each edge."""
    if not isinstance(edges, Tensor) or edges.layout != torch.strided:
        return None
    for name, tensor in given:
        if name in ("edge_attr", "edge_weight") and tensor.dim() > 0 and tensor.size(0) != edges.size(1):
            what = "numbers" if tensor.dim() == 1 else "rows"
            return ValueError(f"{layer}: {name} has {tensor.size(0)} {what} for {edges.size(1)} edges: use one for each")
    return None


def _outside(layer: str, module: Any, arguments: dict[str, Any]) -> Exception | None:
    """An index that there is no vertex for."""
    edges, x, size = (arguments.get(name) for name in ("edge_index", "x", "size"))
    if not isinstance(edges, Tensor) or edges.layout != torch.strided or edges.numel() == 0 or edges.is_meta:
        return None
    parts = (x, x) if isinstance(x, Tensor) else tuple(x) if isinstance(x, (tuple, list)) else ()
    counts = [part.size(-2) if isinstance(part, Tensor) and part.dim() > 1 else None for part in parts]
    if size is not None:
        counts = [count if count is not None else known for count, known in zip(counts, size)]
    ends = ("source", "target") if module.flow == "source_to_target" else ("target", "source")
    for of_edges, count, end in zip(edges, counts, ends):
        wrong = None if count is None else errors.outside(end, of_edges, count)
        if wrong is not None:
            return IndexError(f"{layer}: {wrong}")
    return None
