# SPDX-License-Identifier: Apache-2.0
"""The short way of a layer through Python: what one call found out serves the next that is alike."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from .. import errors
from .._derivatives import PLAIN
from .._layer_operators import gat, gatv2, gin, spmm_linear
from .._shapes import CAST, WIDE
from .._torch_names import global_hooks, tracing_state
from ..functional import dropout_seed
from ._fused import sums_go_first, tf32_flag

_is_autocast_enabled = torch.is_autocast_enabled
_STRIDED = torch.strided

#: What runs a layer: features, edges and flags of the operator.
Call = Callable[[Tensor, Tensor, int], Tensor]


def hooks_of(module: torch.nn.Module) -> tuple[dict, ...]:
    """Where those who look on are noted."""
    own = module.__dict__
    return tuple(own[name] for name in ("_forward_hooks", "_forward_pre_hooks", "_backward_hooks",
                                        "_backward_pre_hooks"))


class Route:
    """A layer that ran as one operator on an ``edge_index`` without weights and features of edges.

    It serves calls with the same ``edge_index`` and features of the same shape, type and device, while
    nobody looks on and no module was replaced; parameters are read anew each time. A layer forgets its
    route when an attribute of it is set.
    """

    __slots__ = ("_edges", "_shape", "_dtype", "_device", "_kind", "_hooks", "_modules", "_kinds",
                 "_parameters", "_biases", "_sequence", "_scales", "_call", "_steps", "_flags", "_wide")

    def __init__(
        self,
        layer: torch.nn.Module,
        hooks: Sequence[dict],
        x: Tensor,
        edge_index: Tensor,
        linears: Sequence[torch.nn.Module],
        call: Call,
        *,
        vectors: Sequence[str] = (),
        scaled: bool = False,
        sequence: torch.nn.Module | None = None,
        then: Sequence[torch.nn.Module] = (),
        flags: int = 0,
        wide: bool = False,
    ) -> None:
        """``call`` takes matrices and biases of ``linears``, and of the layer itself the bias, if it has
        any, the parameters named ``vectors`` and, where it is ``scaled``, its ``eps``. ``sequence`` is what
        the first of ``linears`` is the first of, if it is the first of any; ``then`` comes after the call.
        ``wide``: results are fp32 under autocast, too."""
        self._edges = weakref.ref(edge_index)
        self._shape, self._dtype, self._device = x.shape, x.dtype, x.device
        self._kind = x.device.type
        parts = () if sequence is None else tuple(sequence._modules.values())
        watched = tuple(linears) if sequence is None else (*linears, sequence, *parts[1:])
        self._hooks = (*hooks, *(hook for module in watched for hook in hooks_of(module)),
                       *global_hooks)
        self._modules = layer._modules, tuple(layer._modules.items())
        self._kinds = tuple((module.__dict__, module, type(module)) for module in watched)
        self._parameters = (*((linear._parameters, "weight") for linear in linears),
                            *((layer._parameters, name) for name in vectors))
        self._biases = tuple((module._parameters, module._parameters["bias"] is None)
                             for module in (layer, *linears) if "bias" in module._parameters)
        self._scales = layer._buffers if scaled else None
        self._sequence = None if sequence is None else (sequence._modules, parts)
        self._call, self._steps, self._flags = call, tuple(map(_step_of, then)), flags
        self._wide = WIDE if wide else 0

    # A copy of a layer finds its own way.
    def __deepcopy__(self, memo: Any) -> None:
        return None

    def __reduce__(self) -> Any:
        return _nothing, ()

    def fits(self, x: Any, edge_index: Any) -> bool:
        # Asked for at every call, so that every question counts.
        if (self._edges() is not edge_index or type(x) is not Tensor or x.dtype is not self._dtype
                or x.shape != self._shape or x.device != self._device or x.layout is not _STRIDED
                or any(self._hooks) or tracing_state() is not None):
            return False
        modules, known = self._modules
        for name, module in known:
            if modules.get(name) is not module:
                return False
        for own, module, kind in self._kinds:
            if type(module) is not kind or "forward" in own:
                return False
        for own, name in self._parameters:
            if type(own.get(name)) not in PLAIN:
                return False
        for own, absent in self._biases:
            if "bias" not in own or (own["bias"] is None) is not absent:
                return False
        if self._sequence is not None and tuple(self._sequence[0].values()) != self._sequence[1]:
            return False
        if self._scales is None:
            return True
        eps = self._scales.get("eps")
        return eps is not None and not eps.requires_grad

    def run(self, x: Tensor, edge_index: Tensor) -> Tensor:
        kind, flags = self._kind, self._flags
        if _is_autocast_enabled(kind) and self._dtype is not torch.float64:
            cast = CAST.get(torch.get_autocast_dtype(kind), 0)
            flags |= cast | self._wide if cast else 0
        if kind == "cuda":
            flags |= tf32_flag()
        try:
            out = self._call(x, edge_index, flags)
        except RuntimeError as error:
            errors.reraise(error)
        for step in self._steps:  # of users, whose errors are theirs
            out = step(out)
        return out


def _nothing() -> None:
    return None


def _step_of(module: torch.nn.Module) -> Callable[[Tensor], Tensor]:
    """What a module does, without a module's own way to it where it is of the usual ones."""
    if type(module) is torch.nn.ReLU and not module.inplace:
        return torch.relu
    if type(module) is torch.nn.Linear:
        own = module._parameters
        return lambda x: F.linear(x, own["weight"], own["bias"])
    return module


def _order(linear: torch.nn.Module) -> Callable[[Tensor], bool]:
    """Whether sums go before the product with a layer's matrix; most need not be asked for each call."""
    outputs, inputs = linear._parameters["weight"].shape
    if 2 * outputs <= inputs or inputs < outputs:  # whatever gradients are wanted
        first = inputs < outputs
        return lambda x: first
    return lambda x: sums_go_first(x, outputs, inputs)


def linear_sum_call(numbers: tuple, linear: torch.nn.Module, biased: torch.nn.Module,
                    root: torch.nn.Module | None, scales: dict) -> Call:
    """``spmm_linear``. ``numbers`` describe the graph and its sums."""
    weights, biases = linear._parameters, biased._parameters
    roots = {} if root is None else root._parameters
    sum_first = _order(linear)

    def call(x: Tensor, edge_index: Tensor, flags: int) -> Tensor:
        return spmm_linear(x, weights["weight"], None, roots.get("weight"), biases["bias"],
                           scales.get("eps"), None, edge_index, None, (*numbers, sum_first(x), flags))

    return call


def gin_call(numbers: tuple, first: torch.nn.Module, last: torch.nn.Module, scales: dict) -> Call:
    """GIN with the usual network."""
    weights, then = first._parameters, last._parameters
    targets, sources, layout, loops, _, _, reduce = numbers
    sum_first = _order(first)

    def call(x: Tensor, edge_index: Tensor, flags: int) -> Tensor:
        return gin(x, weights["weight"], weights["bias"], then["weight"], then["bias"], scales["eps"],
                   edge_index, None, (targets, sources, layout, loops, reduce, sum_first(x), flags))

    return call


def _attention_call(function: Callable[..., Tensor], numbers: tuple, *parameters: tuple[dict, str]) -> Call:
    """``numbers``: of the operator, up to the share of dropout; ``parameters`` by what has them."""
    drops = numbers[-1] > 0

    def call(x: Tensor, edge_index: Tensor, flags: int) -> Tensor:
        seed = dropout_seed(x.device) if drops else None
        return function(x, *[own[name] for own, name in parameters], seed, edge_index, None, (*numbers, flags))

    return call


def gat_call(numbers: tuple, layer: torch.nn.Module, linear: torch.nn.Module) -> Call:
    own = layer._parameters
    return _attention_call(gat, numbers, (linear._parameters, "weight"), (own, "att_src"), (own, "att_dst"),
                           (own, "bias"))


def gatv2_call(numbers: tuple, layer: torch.nn.Module, source: torch.nn.Module,
               target: torch.nn.Module) -> Call:
    matrices = [(linear._parameters, name) for linear in (source, target) for name in ("weight", "bias")]
    own = layer._parameters
    return _attention_call(gatv2, numbers, *matrices, (own, "att"), (own, "bias"))
