# SPDX-License-Identifier: Apache-2.0
"""Whole models: swap PyG's layers for tessera's, back again, and say what runs where."""

from __future__ import annotations

import contextlib
from typing import Any, Iterator, TypeVar

import torch

from . import _library, nn
from .nn._base import Accelerated, pyg_class

Model = TypeVar("Model", bound=torch.nn.Module)

_DTYPES = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}
_LAYERS: dict[type, type] = {pyg_class(layer): layer for layer in
                             (getattr(nn, name) for name in nn.__all__)}
_PYGS: dict[type, type] = {ours: theirs for theirs, ours in _LAYERS.items()}


def _check_model(model: torch.nn.Module) -> None:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, not a torch.nn.Module")


def accelerate(model: Model, precision: str | torch.dtype | None = None, tune: bool = False) -> Model:
    """Lets the layers of a PyG model run on tessera's kernels. Weights, optimisers, hooks of modules
    and the training loop stay as they are; the model itself is changed and returned.

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
    for module in model.modules():
        ours = _LAYERS.get(type(module))
        if ours is not None:
            module.__class__ = ours
            module._write_templates()
        if isinstance(module, Accelerated):
            module._tessera_dtype = dtype
            module._tessera_tune = tune
    return model


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
            for name in ("_tessera_dtype", "_tessera_tune", "_tessera_cached", "_tessera_route",
                         "tessera_fallback"):
                module.__dict__.pop(name, None)
            module.__class__ = _PYGS.get(type(module), type(module))
    return model


class Explanation(list):
    """Lines of text, one for each layer, that print as such."""

    def __str__(self) -> str:
        return "\n".join(self)

    __repr__ = __str__


def explain(model: torch.nn.Module, *arguments: Any, **named: Any) -> Explanation:
    """Says of each layer whether it runs on tessera's kernels, and which, or why it does not.

    With arguments, the model is called with them once, without gradients; the kernels named are those
    that ran. What norms count, layers cache and dropout draws is put back then. Without arguments, only what can be
    said of the layers as such.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.nn import GCN
        >>> model = tessera.accelerate(GCN(4, 8, num_layers=1))
        >>> tessera.explain(model, torch.ones(3, 4), torch.tensor([[0, 1], [1, 2]]))
        convs.0 GCNConv: spmm/cpu/rows
    """
    from torch_geometric.nn import MessagePassing

    _check_model(model)
    kernels: dict[str, list[str]] = {}
    handles = []
    if arguments or named:
        for name, module in model.named_modules():
            if isinstance(module, Accelerated):
                handles += _traced(name, module, kernels)
        try:
            with torch.no_grad(), _left_as_it_was(model):
                model(*arguments, **named)
        finally:
            for handle in handles:
                handle.remove()
    lines = Explanation()
    for name, module in model.named_modules():
        if not isinstance(module, MessagePassing):
            continue
        label = f"{name} {type(module).__name__}".strip()
        if not isinstance(module, Accelerated):
            known = type(module) in _LAYERS
            why = "not accelerated: call tessera.accelerate" if known else "tessera has no such layer"
            lines.append(f"{label}: PyG ({why})")
        elif name in kernels and module.tessera_fallback is None:
            lines.append(f"{label}: {', '.join(kernels[name])}")
        elif module.tessera_fallback is not None:
            lines.append(f"{label}: PyG ({module.tessera_fallback})")
        else:
            lines.append(f"{label}: tessera")
    return lines


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

    return [module.register_forward_pre_hook(before), module.register_forward_hook(after)]
