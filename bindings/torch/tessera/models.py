# SPDX-License-Identifier: Apache-2.0
"""Whole models: swap PyG's layers for tessera's, back again, and say what runs where."""

from __future__ import annotations

import contextlib
import logging
import warnings
from typing import Any, Iterator, TypeVar

import torch
from torch_geometric.nn import MessagePassing

from . import _library
from .nn._base import Accelerated
from .nn._subclasses import composed_for, is_known, layer_for, original_of, why_not
from .nn.hetero import HeteroConv
from .nn.kinds import OfKinds

Model = TypeVar("Model", bound=torch.nn.Module)

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_log = logging.getLogger("tessera")


def _check_model(model: torch.nn.Module) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, not a torch.nn.Module")


def accelerate(model: Model, precision: str | torch.dtype | None = None, tune: bool = False) -> Model:
    """Lets the layers of a PyG model run on tessera's kernels. Weights, optimisers, hooks of modules
    and the training loop stay as they are; the model itself is changed and returned.

    Which layers were taken, and why others were not, is logged (``logging.getLogger("tessera")``, level INFO), and
    :func:`explain` says it, too. It is a warning where no layer was taken, and where some lie in a plain list, tuple or
    dict, in which torch does not look for modules. Subclasses of PyG's layers are taken, unless they have methods of
    their own in the place of what the layer does (``forward``, ``message`` and others); layers of other classes are taken
    where their messages are features of the sources times what is made without them.

    Args:
        model: any module that has layers of PyG in it, or is one.
        precision: what aggregation stores features as: ``"fp32"``, ``"bf16"`` or ``"fp16"``, or torch's type.
            Sums are always at least fp32, and what follows keeps its type. Default: as the features are.
        tune: find the fastest kernels by measuring, when a graph is first used.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.nn import GAT
        >>> model = tessera.accelerate(GAT(8, 16, num_layers=2))
        >>> type(model.convs[0]).__module__
        'tessera.nn.attention'
    """
    _check_model(model)
    dtype = precision if isinstance(precision, torch.dtype) else _DTYPES.get(precision or "")
    if precision is not None and dtype not in _DTYPES.values():
        raise ValueError(f"unknown precision {precision!r}: use fp32, bf16 or fp16")
    for name, module in model.named_modules():
        ours = layer_for(type(module))
        if ours is not None:
            module.__class__ = ours
            module._write_templates()
        if isinstance(module, Accelerated):
            module._tessera_dtype = dtype
            module._tessera_tune = tune
            module._tessera_path = name
    for module in _beside_layers(model):
        module.__class__ = composed_for(type(module))
    _report(model)
    return model


def _beside_layers(model: torch.nn.Module) -> Iterator[torch.nn.Module]:
    """All modules that are no layers, nor part of one: the aggregation of a layer is the layer's affair."""
    if not isinstance(model, MessagePassing):
        yield model
        for child in model.children():
            yield from _beside_layers(child)


def _report(model: torch.nn.Module) -> None:
    found = explain(model)
    _log.info("%s", found.summary)
    unseen = [f"{name} ({type(module).__name__})" for name, module in _unseen(model)]
    if unseen:
        warnings.warn(f"tessera.accelerate leaves {', '.join(unseen)} to PyG: torch does not look for modules in a plain list, "
                      "tuple or dict, and so finds no parameters there, either; use torch.nn.ModuleList or ModuleDict",
                      stacklevel=3)
    elif found.accelerated == 0 and not any(type(module) is not original_of(type(module)) for module in model.modules()):
        reason = "; ".join(found) if found else f"{type(model).__name__} has no layer of PyG's"
        warnings.warn(f"tessera.accelerate changed nothing: {reason}", stacklevel=3)


def restore(model: Model) -> Model:
    """Undoes :func:`accelerate`. Layers of your own classes, made of those of :mod:`tessera.nn`, stay as they are.

    Example:
        >>> import tessera
        >>> from torch_geometric.nn import GAT
        >>> model = tessera.restore(tessera.accelerate(GAT(8, 16, num_layers=2)))
        >>> type(model.convs[0]).__module__
        'torch_geometric.nn.conv.gat_conv'
    """
    _check_model(model)
    for module in model.modules():
        if isinstance(module, Accelerated):
            for name in ("_tessera_dtype", "_tessera_tune", "_tessera_path", "_tessera_cached", "_tessera_route",
                         "tessera_fallback"):
                module.__dict__.pop(name, None)
        module.__class__ = original_of(type(module))
    return model


class Explanation(list):
    """Lines of text, one for each layer, that print as such."""

    #: How many of the layers run on tessera's kernels.
    accelerated: int = 0

    @property
    def summary(self) -> str:
        """In one sentence: how many layers run on the kernels, and which do not, and why."""
        others = [line.replace(": PyG (", " (", 1) for line in self if ": PyG (" in line]
        left = f"; left to PyG: {', '.join(others)}" if others else ""
        return f"{self.accelerated} of {len(self)} layers run on tessera's kernels{left}"

    def __str__(self) -> str:
        return "\n".join(self)

    __repr__ = __str__


def explain(model: torch.nn.Module, *arguments: Any, **named: Any) -> Explanation:
    """Says of each layer whether it runs on tessera's kernels, and which, or why it does not.

    With arguments, the model is called with them once, without gradients; the kernels named are those
    that ran. What norms count, layers cache and dropout draws is put back then. Without arguments, only what can be
    said of the layers as such. ``summary`` of the result says it in one sentence.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.nn import GCN
        >>> model = tessera.accelerate(GCN(4, 8, num_layers=1))
        >>> tessera.explain(model, torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]]))
        convs.0 GCNConv: spmm/cpu/rows
        >>> tessera.explain(model).summary
        "1 of 1 layers run on tessera's kernels"
    """
    _check_model(model)
    kernels: dict[str, list[str]] = {}
    handles = []
    if arguments or named:
        for name, module in model.named_modules():
            if isinstance(module, (Accelerated, HeteroConv, OfKinds)):
                handles += _traced(name, module, kernels)
        try:
            with torch.no_grad(), _left_as_it_was(model):
                model(*arguments, **named)
        finally:
            for handle in handles:
                handle.remove()
    _share_with_layers(model, kernels)
    lines = Explanation()
    for name, module in model.named_modules():
        if isinstance(module, (MessagePassing, OfKinds)):
            ran = _what_ran(module, kernels.get(name))
            lines.append(f"{name} {type(module).__name__}: {ran}".lstrip())
            lines.accelerated += not ran.startswith("PyG (")
    lines += [f"{name} {type(module).__name__}: PyG (in a plain list, tuple or dict: use torch.nn.ModuleList or ModuleDict)"
              for name, module in _unseen(model)]
    return lines


def _share_with_layers(model: torch.nn.Module, kernels: dict[str, list[str]]) -> None:
    """Layers that ran at once have the kernels of the module that ran them."""
    for name, module in model.named_modules():
        if isinstance(module, HeteroConv) and name in kernels:
            for path, _ in module.convs.named_modules(prefix=f"{name}.convs".lstrip(".")):
                kernels.setdefault(path, kernels[name])


def _what_ran(layer: torch.nn.Module, kernels: list[str] | None) -> str:
    """The kernels of a layer, or why PyG's code runs it."""
    if not isinstance(layer, (Accelerated, OfKinds)):
        return f"PyG ({why_not(type(layer))})"
    if isinstance(layer, Accelerated) and layer.tessera_fallback is not None:
        return f"PyG ({layer.tessera_fallback})"
    return "tessera" if kernels is None else ", ".join(kernels)


_OF_TORCH = frozenset(vars(torch.nn.Module()))  # where torch keeps what it does see


def _unseen(model: torch.nn.Module) -> list[tuple[str, torch.nn.Module]]:
    """Layers with kernels that lie where torch does not look for modules, by where they lie."""
    seen = set(map(id, model.modules()))
    found = []

    def look(name: str, value: Any, depth: int) -> None:
        if isinstance(value, torch.nn.Module):
            for path, module in value.named_modules():
                if id(module) not in seen and is_known(module):
                    seen.add(id(module))
                    found.append((f"{name}.{path}" if path else name, module))
        elif isinstance(value, (list, tuple, dict)) and depth < 4:
            for key, part in value.items() if isinstance(value, dict) else enumerate(value):
                look(f"{name}[{key!r}]", part, depth + 1)

    for path, module in model.named_modules():
        for name, value in vars(module).items():
            if name not in _OF_TORCH and isinstance(value, (list, tuple, dict)):
                look(f"{path}.{name}" if path else name, value, 0)
    return found


_CACHES = ("_cached_edge_index", "_cached_adj_t", "_cached_x", "_tessera_cached")


@contextlib.contextmanager
def _left_as_it_was(model: torch.nn.Module) -> Iterator[None]:
    """Puts back what a call of a model leaves in it, and in torch's generators. Layers without a size keep the one they get."""
    buffers = [(buffer, buffer.clone()) for buffer in model.buffers() if not torch.nn.parameter.is_lazy(buffer)]
    caches = [(module.__dict__, name, module.__dict__.get(name, _CACHES)) for module in model.modules() for name in _CACHES]
    with torch.random.fork_rng({tensor.device for tensor in model.parameters() if tensor.is_cuda}):
        yield
    for buffer, before in buffers:
        buffer.copy_(before)
    for own, name, before in caches:
        if before is not _CACHES:
            own[name] = before
        else:
            own.pop(name, None)


def _traced(name: str, module: torch.nn.Module, kernels: dict[str, list[str]]) -> list[Any]:
    tracer = _library.trace()

    def before(*_: Any) -> None:
        kernels[name] = tracer.__enter__()

    def after(*_: Any) -> None:
        tracer.__exit__()
        kernels[name] = list(dict.fromkeys(line.split()[0] for line in kernels[name]))

    before.of_explain = after.of_explain = True  # type: ignore[attr-defined]
    return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
