# SPDX-License-Identifier: Apache-2.0
"""The short way of a layer through Python: what one call found out serves the next that is alike."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import errors
from .._layer_operators import gin, spmm_linear
from .._derivatives import PLAIN
from ._fused import GLOBAL_HOOKS, LINEAR, autocast_flag, sums_go_first, tf32_flag

_is_tracing = torch.jit.is_tracing


def _hooks_of(module: torch.nn.Module) -> tuple[dict, ...]:
    own = module.__dict__
    return tuple(own[name] for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                                        "_backward_pre_hooks"))


def _step_of(module: torch.nn.Module) -> Callable[[Tensor], Tensor]:
    """What a module does, without a module's own way to it where it is of the usual ones."""
    if type(module) is torch.nn.ReLU and not module.inplace:
        return torch.relu
    if type(module) is torch.nn.Linear:
        own = module._parameters
        return lambda x: F.linear(x, own["weight"], own["bias"])
    return module


class Route:
    """A layer that ran as one :func:`spmm_linear` on an ``edge_index`` without weights.

    It serves calls with the same ``edge_index`` and features of the same shape, type and device, while
    nobody looks on and no module was replaced; parameters are read anew each time. A layer forgets its
    route when an attribute of it is set.
    """

    __slots__ = ("_edges", "_shape", "_dtype", "_device", "_hooks", "_modules", "_kinds", "_linears", "_weights", "_biases",
                 "_roots", "_scales", "_sequence", "_steps", "_last", "_numbers", "_flags", "_sizes")

    def __init__(
        self,
        layer: torch.nn.Module,
        hooks: Sequence[dict],
        x: Tensor,
        edge_index: Tensor,
        linear: torch.nn.Module,
        numbers: tuple[Any, ...],
        *,
        biased: torch.nn.Module | None = None,
        root: torch.nn.Module | None = None,
        scaled: bool = False,
        sequence: torch.nn.Module | None = None,
        flags: int = 0,
    ) -> None:
        """``biased`` has the bias (default: ``linear``), ``root`` the matrix of a vertex's own features;
        ``scaled``: those are scaled by 1 + the layer's ``eps``. ``sequence`` is what ``linear`` is the
        first of, if it is the first of any."""
        self._edges = weakref.ref(edge_index)
        self._shape, self._dtype, self._device = x.shape, x.dtype, x.device
        self._linears = (linear,) if root is None else (linear, root)
        parts = () if sequence is None else tuple(sequence._modules.values())
        watched = self._linears if sequence is None else (*self._linears, sequence, *parts[1:])
        self._hooks = (*hooks, *(hook for module in watched for hook in _hooks_of(module)),
                       *GLOBAL_HOOKS)
        self._modules = (layer._modules, tuple(layer._modules.values()))
        self._kinds = tuple((module.__dict__, module, type(module)) for module in watched)
        self._weights = linear._parameters
        self._biases = (linear if biased is None else biased)._parameters
        self._roots = {} if root is None else root._parameters
        self._scales = layer._buffers if scaled else {}
        self._sequence = None if sequence is None else (sequence._modules, parts)
        self._steps = tuple(map(_step_of, parts[1:]))
        self._last = None
        if (scaled and [type(part) for part in parts[1:]] == [torch.nn.ReLU, torch.nn.Linear]):
            self._last = parts[2]._parameters  # the whole network is part of an operator
        self._numbers, self._flags = numbers, flags
        self._sizes = tuple(linear._parameters["weight"].shape)

    # A copy of a layer finds its own way.
    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return _nothing, ()

    def fits(self, x: Any, edge_index: Any) -> bool:
        if (self._edges() is not edge_index or type(x) is not Tensor or x.dtype is not self._dtype
                or x.shape != self._shape or x.device != self._device
                or x.layout is not torch.strided or any(self._hooks) or _is_tracing()):
            return False
        if "bias" not in self._biases or tuple(self._modules[0].values()) != self._modules[1]:
            return False
        for own, module, kind in self._kinds:
            if type(module) is not kind or "forward" in own:
                return False
        for linear in self._linears:
            if (type(linear) not in LINEAR
                    or type(linear.__dict__["_parameters"].get("weight")) not in PLAIN):
                return False
        sequence = self._sequence
        if sequence is not None and tuple(sequence[0].values()) != sequence[1]:
            return False
        last = self._last
        if last is not None and ("bias" not in last or type(last.get("weight")) not in PLAIN):
            return False
        eps = self._scales.get("eps")
        return eps is None or not eps.requires_grad

    def run(self, x: Tensor, edge_index: Tensor) -> Tensor:
        weight = self._weights["weight"]
        flags = self._flags | autocast_flag(x)
        if x.is_cuda:
            flags |= tf32_flag()
        try:
            if self._last is not None:
                targets, sources, layout, loops, _, _, reduce = self._numbers
                return gin(
                    x, weight, self._biases["bias"], self._last["weight"], self._last["bias"],
                    self._scales["eps"], edge_index, None,
                    (targets, sources, layout, loops, reduce, sums_go_first(x, *self._sizes), flags))
            out = spmm_linear(
                x, weight, None, self._roots.get("weight"), self._biases["bias"],
                self._scales.get("eps"), None, edge_index, None,
                (*self._numbers, sums_go_first(x, *self._sizes), flags))
        except RuntimeError as error:
            errors.reraise(error)
        for step in self._steps:
            out = step(out)
        return out


def _nothing() -> None:
    return None
