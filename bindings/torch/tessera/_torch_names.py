# SPDX-License-Identifier: Apache-2.0
"""What torch has no public name for. Each is asked for here alone, with what serves in a torch that has it no more:
the package then takes longer, or leaves more to PyG's code, but works and says the same."""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.modules.module as modules
from torch import Tensor
from torch.autograd import forward_ad


def _transforms_by_level() -> Callable[[], bool]:
    """Whether a transform of torch.func is at work, by its level; where nobody can tell, one may be."""
    level = getattr(getattr(torch._C, "_functorch", None), "maybe_current_level", None)
    return (lambda: True) if level is None else (lambda: level() is not None)


transforms_at_work: Callable[[], bool] = (
    getattr(torch._C, "_are_functorch_transforms_active", None) or _transforms_by_level())


def _has_gradient(argument: Any) -> bool:
    if isinstance(argument, (list, tuple)):
        return any(map(_has_gradient, argument))
    return isinstance(argument, Tensor) and argument.requires_grad


any_requires_grad: Callable[..., bool] = getattr(
    torch._C, "_any_requires_grad", lambda *arguments: _has_gradient(arguments))


def _is_traced() -> Any:
    return True if hasattr(torch, "jit") and torch.jit.is_tracing() else None


#: Not None while TorchScript traces.
tracing_state: Callable[[], Any] = getattr(torch._C, "_get_tracing_state", _is_traced)


def _forward_mode_by_trying() -> bool:
    """A tensor with a tangent can be made in forward mode alone."""
    try:
        forward_ad.make_dual(torch.zeros(()), torch.zeros(()))
    except RuntimeError:
        return False
    return True


def _forward_mode_by_level() -> bool:
    return forward_ad._current_level >= 0


#: Whether somebody takes forward-mode derivatives.
forward_mode: Callable[[], bool] = (
    _forward_mode_by_level if hasattr(forward_ad, "_current_level") else _forward_mode_by_trying)

#: Whether tangents count, in forward mode: not inside of formulas that make some.
tangents_count: Callable[[], bool] = getattr(torch._C, "_is_fwd_grad_enabled", lambda: True)

#: Hooks on all modules.
global_hooks: tuple[dict, ...] = tuple(
    getattr(modules, f"_global_{name}_hooks", {})
    for name in ("forward", "forward_pre", "backward", "backward_pre"))

#: Whether a gradient is a batch of ``is_grads_batched``, and what takes the batch apart and puts it together.
is_batched: Callable[[Tensor], bool] = getattr(
    getattr(torch._C, "_functorch", None), "is_legacy_batchedtensor", lambda tensor: False)
remove_batch_dim = getattr(torch, "_remove_batch_dim", None)
add_batch_dim = getattr(torch, "_add_batch_dim", None)

#: What torch.backends.cuda.matmul.fp32_precision asks, by a longer way. It also says what was set by allow_tf32,
#: which itself may not be read once precisions were set by name.
fp32_precision: Callable[[str, str], str] = getattr(
    torch._C, "_get_fp32_precision_getter", lambda *_: torch.backends.cuda.matmul.fp32_precision)
