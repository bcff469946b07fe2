# SPDX-License-Identifier: Apache-2.0
"""The operators that are whole layers, ``torch.ops.tessera.spmm_linear`` and ``gat``: their derivatives,
and both as functions for code that is not compiled, which are called for every layer and do little
themselves."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from ._operators import (PLAIN, applied, below_autograd, derive, refuse_second_derivative,
                         spmm_gradient, transforms_at_work)


def _builtin(name: str) -> Any:
    """What torch calls for an operator, without a turn through Python."""
    op = getattr(torch.ops.tessera, name).default
    return getattr(op, "_op", op)


def _cast(dtype: torch.dtype, *tensors: Tensor | None) -> list[Tensor | None]:
    return [None if tensor is None else tensor.to(dtype) for tensor in tensors]


# ---- spmm_linear -----------------------------------------------------------------------------------

_spmm_linear, _spmm_linear_backward = map(_builtin, ("spmm_linear", "spmm_linear_backward"))


def _spmm_linear_setup(ctx, inputs, output):
    x, weight, root, root_weight, _, own_scale, edge_weight, index, offsets, *rest = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.rest = tuple(rest)
    ctx.save_for_backward(x, weight, root, root_weight, own_scale, edge_weight, output[1], index,
                          offsets)


def _spmm_linear_gradients(ctx, grad, *_):
    needed = ctx.needs_input_grad
    x, weight, root, root_weight, bias, own_scale, edge_weight = needed[:7]
    if own_scale or edge_weight:
        raise NotImplementedError("spmm_linear has no derivatives of own_scale and edge_weight: use "
                                  "spmm and a product of its own")
    needs = x + 2 * weight + 4 * root + 8 * root_weight + 16 * bias
    if torch.is_grad_enabled():
        if getattr(ctx, "has_cast", False):  # what was kept has no history
            refuse_second_derivative("layers under autocast")(ctx)
        found = _differentiable_gradients(ctx, grad, needs)
    elif type(grad) in PLAIN:
        with below_autograd():
            found = _spmm_linear_backward(grad, *ctx.saved_tensors, *ctx.rest, needs)
    else:
        found = _spmm_linear_backward(grad, *ctx.saved_tensors, *ctx.rest, needs)
    found = iter(found)
    return (next(found) if x else None, next(found) if weight else None,
            next(found) if root else None, next(found) if root_weight else None,
            next(found) if bias else None) + (None,) * (len(needed) - 5)


def _differentiable_gradients(ctx, grad, needs):
    """The gradients by operators that have derivatives themselves, one after the other."""
    x, weight, root, root_weight, own_scale, edge_weight, sums, index, offsets = ctx.saved_tensors
    *numbers, sum_first, flags = ctx.rest

    def back(gradient):
        moved = spmm_gradient(gradient, None, None, index, offsets, edge_weight, *numbers, flags,
                              True, False)[0]
        return moved if own_scale is None else moved + (1 + own_scale) * gradient

    def forth(features):
        moved = torch.ops.tessera.spmm.default(features, index, offsets, edge_weight, None, *numbers,
                                               flags)[0]
        return moved if own_scale is None else moved + (1 + own_scale) * features

    moved = None if sum_first else back(grad)
    own = x if root is None else root
    if needs & 1:
        to_x = back(grad @ weight) if sum_first else moved @ weight
        yield to_x if root_weight is None or root is not None else to_x + grad @ root_weight
    if needs & 2:
        yield grad.t() @ forth(x) if sum_first else moved.t() @ x
    if needs & 4:
        yield grad @ root_weight
    if needs & 8:
        yield grad.t() @ own
    if needs & 16:
        yield grad.sum(0)


def _spmm_linear_forward(ctx, x, weight, root, root_weight, bias, own_scale, edge_weight, index,
                         offsets, rest, dtype):
    if dtype is not None:
        x, weight, root, root_weight = _cast(dtype, x, weight, root, root_weight)
        ctx.has_cast = True
    with below_autograd():
        y, sums = _spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index,
                               offsets, *rest)
    ctx.rest = rest
    ctx.save_for_backward(x, weight, root, root_weight, own_scale, edge_weight, sums, index, offsets)
    return y


_apply_spmm_linear = applied("spmm_linear", _spmm_linear_forward, _spmm_linear_gradients)
_spmm_linear_op = derive("spmm_linear", _spmm_linear_setup, _spmm_linear_gradients)
derive("spmm_linear_backward", None, refuse_second_derivative("spmm_linear"))


def spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets, rest,
                dtype=None) -> Tensor:
    """Arguments of the operator, those that are no tensors as one; ``dtype`` is that of autocast."""
    plain = type(x) in PLAIN and not transforms_at_work()
    if plain and torch.is_grad_enabled() and (
            weight.requires_grad or x.requires_grad or bias is not None and bias.requires_grad
            or root is not None and root.requires_grad
            or root_weight is not None and root_weight.requires_grad):
        return _apply_spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index,
                                  offsets, rest, dtype)
    if dtype is not None:
        x, weight, root, root_weight = _cast(dtype, x, weight, root, root_weight)
    arguments = (x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets, *rest)
    if not plain:
        return _spmm_linear_op(*arguments)[0]
    with below_autograd():
        return _spmm_linear(*arguments)[0]


# ---- gat -------------------------------------------------------------------------------------------

_gat, _gat_backward = map(_builtin, ("gat", "gat_backward"))


def _gat_keep(ctx, x, weight, att_src, bias, seed, index, offsets, rest, output):
    y, before_bias, *others = output
    ctx.rest = rest
    ctx.shape = att_src.shape
    ctx.save_for_backward(x, weight, seed, y if bias is None else before_bias, *others, index, offsets)


def _gat_setup(ctx, inputs, output):
    x, weight, att_src, _, bias, seed, index, offsets, *rest = inputs
    ctx.mark_non_differentiable(*output[1:])
    _gat_keep(ctx, x, weight, att_src, bias, seed, index, offsets, tuple(rest), output)


def _gat_gradients(ctx, grad, *_):
    needed = ctx.needs_input_grad
    x, weight, att_src, att_dst, bias = needed[:5]
    needs = x + 2 * weight + 4 * att_src + 8 * att_dst + 16 * bias
    arguments = grad, *ctx.saved_tensors, *ctx.rest, needs
    if not torch.is_grad_enabled() and type(grad) in PLAIN:
        with below_autograd():
            found = iter(_gat_backward(*arguments))
    else:
        found = iter(_gat_backward(*arguments))
    return (next(found) if x else None, next(found) if weight else None,
            next(found).view(ctx.shape) if att_src else None,
            next(found).view(ctx.shape) if att_dst else None,
            next(found) if bias else None) + (None,) * (len(needed) - 5)


def _gat_forward(ctx, x, weight, att_src, att_dst, bias, seed, index, offsets, rest, dtype):
    if dtype is not None:
        x, weight, att_src, att_dst = _cast(dtype, x, weight, att_src, att_dst)
    with below_autograd():
        output = _gat(x, weight, att_src, att_dst, bias, seed, index, offsets, *rest)
    _gat_keep(ctx, x, weight, att_src, bias, seed, index, offsets, rest, output)
    return output[0]


_apply_gat = applied("gat", _gat_forward, _gat_gradients)
_gat_op = derive("gat", _gat_setup, _gat_gradients)
derive("gat_backward", None, refuse_second_derivative("gat"))


def gat(x, weight, att_src, att_dst, bias, seed, index, offsets, rest, dtype=None) -> Tensor:
    """Arguments of the operator, those that are no tensors as one; ``dtype`` is that of autocast."""
    plain = type(x) in PLAIN and not transforms_at_work()
    if plain and torch.is_grad_enabled() and (
            weight.requires_grad or x.requires_grad or att_src.requires_grad
            or att_dst.requires_grad or bias is not None and bias.requires_grad):
        return _apply_gat(x, weight, att_src, att_dst, bias, seed, index, offsets, rest, dtype)
    if dtype is not None:
        x, weight, att_src, att_dst = _cast(dtype, x, weight, att_src, att_dst)
    arguments = (x, weight, att_src, att_dst, bias, seed, index, offsets, *rest)
    if not plain:
        return _gat_op(*arguments)[0]
    with below_autograd():
        return _gat(*arguments)[0]
