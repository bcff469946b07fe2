# SPDX-License-Identifier: Apache-2.0
"""The operators that are whole layers, ``torch.ops.tessera.spmm_linear``, ``gat`` and ``gin``: their
derivatives, and all as functions for code that is not compiled, which are called for every layer and do little
themselves."""

from __future__ import annotations

import torch
from torch import Tensor

from ._derivatives import (PLAIN, applied, derive, gradients_of, refuse_second_derivative,
                           transforms_at_work, twin)
from ._operators import spmm_gradient
from ._shapes import CAST, joined

_CASTS = sum(CAST.values())


# ---- spmm_linear -----------------------------------------------------------------------------------

_spmm_linear, _spmm_linear_backward = map(twin, ("spmm_linear", "spmm_linear_backward"))


def _spmm_linear_setup(ctx, inputs, output):
    x, weight, root, root_weight, _, own_scale, edge_weight, index, offsets, *rest = inputs
    ctx.mark_non_differentiable(*output[1:])
    ctx.rest = tuple(rest)
    ctx.save_for_backward(x, weight, root, root_weight, own_scale, edge_weight, index, offsets,
                          *output[1:])


def _spmm_linear_gradients(ctx, grad, *_):
    needed = ctx.needs_input_grad
    x, weight, root, root_weight, bias, own_scale, edge_weight = needed[:7]
    if own_scale or edge_weight:
        raise NotImplementedError("spmm_linear has no derivatives of own_scale and edge_weight: use "
                                  "spmm and a product of its own")
    needs = x + 2 * weight + 4 * root + 8 * root_weight + 16 * bias
    saved = ctx.saved_tensors
    if torch.is_grad_enabled():
        found = list(_differentiable_gradients(saved, ctx.rest, grad, needs))
    else:
        found = gradients_of(lambda grad: _spmm_linear_backward(
            grad, *saved[:6], saved[8:], saved[6], saved[7], *ctx.rest, needs), grad)
        if (weight or root_weight) and joined(saved[2], saved[3], ctx.rest[-2]):
            place = 1 if x else 0
            both = found[place].chunk(2)
            found[place : place + 1] = both if weight and root_weight else both[root_weight :][:1]
    found = iter(found)
    return (next(found) if x else None, next(found) if weight else None,
            next(found) if root else None, next(found) if root_weight else None,
            next(found) if bias else None) + (None,) * (len(needed) - 5)


def _differentiable_gradients(saved, rest, grad, needs):
    """The gradients by operators that have derivatives themselves, one after the other."""
    x, weight, root, root_weight, own_scale, edge_weight, index, offsets, *_ = saved
    *numbers, sum_first, flags = rest
    if flags & _CASTS:
        refuse_second_derivative("layers under autocast")(None)

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
                         offsets, rest):
    y, *kept = _spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets,
                            *rest)
    ctx.rest = rest
    ctx.save_for_backward(x, weight, root, root_weight, own_scale, edge_weight, index, offsets, *kept)
    return y


_apply_spmm_linear = applied("spmm_linear", _spmm_linear_forward, _spmm_linear_gradients)
spmm_linear_op = derive("spmm_linear", _spmm_linear_setup, _spmm_linear_gradients)
derive("spmm_linear_backward", None, refuse_second_derivative("spmm_linear"))


def spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets,
                rest) -> Tensor:
    """Arguments of the operator, those that are no tensors as one."""
    if type(x) not in PLAIN or transforms_at_work():
        return spmm_linear_op(x, weight, root, root_weight, bias, own_scale, edge_weight, index,
                               offsets, *rest)[0]
    if torch.is_grad_enabled() and (
            weight.requires_grad or x.requires_grad or bias is not None and bias.requires_grad
            or root is not None and root.requires_grad
            or root_weight is not None and root_weight.requires_grad):
        return _apply_spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index,
                                  offsets, rest)
    return _spmm_linear(x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets,
                        *rest)[0]


# ---- gat -------------------------------------------------------------------------------------------

_gat, _gat_backward = map(twin, ("gat", "gat_backward"))


def _gat_keep(ctx, x, weight, att_src, bias, seed, index, offsets, rest, output):
    ctx.rest = rest
    ctx.shape = att_src.shape
    first = 0 if bias is None else 1  # results before the bias
    ctx.save_for_backward(x, weight, seed, output[first], index, offsets, *output[first + 1 :])


def _gat_setup(ctx, inputs, output):
    x, weight, att_src, _, bias, seed, index, offsets, *rest = inputs
    ctx.mark_non_differentiable(*output[1:])
    _gat_keep(ctx, x, weight, att_src, bias, seed, index, offsets, tuple(rest), output)


def _gat_gradients(ctx, grad, *_):
    needed = ctx.needs_input_grad
    x, weight, att_src, att_dst, bias = needed[:5]
    needs = x + 2 * weight + 4 * att_src + 8 * att_dst + 16 * bias
    saved = ctx.saved_tensors
    run = torch.ops.tessera.gat_backward.default if torch.is_grad_enabled() else _gat_backward
    found = iter(gradients_of(lambda grad: run(
        grad, *saved[:4], saved[6:], saved[4], saved[5], *ctx.rest, needs), grad))
    return (next(found) if x else None, next(found) if weight else None,
            next(found).view(ctx.shape) if att_src else None,
            next(found).view(ctx.shape) if att_dst else None,
            next(found) if bias else None) + (None,) * (len(needed) - 5)


def _gat_forward(ctx, x, weight, att_src, att_dst, bias, seed, index, offsets, rest):
    output = _gat(x, weight, att_src, att_dst, bias, seed, index, offsets, *rest)
    _gat_keep(ctx, x, weight, att_src, bias, seed, index, offsets, rest, output)
    return output[0]


_apply_gat = applied("gat", _gat_forward, _gat_gradients)
gat_op = derive("gat", _gat_setup, _gat_gradients)
derive("gat_backward", None, refuse_second_derivative("gat"))


def gat(x, weight, att_src, att_dst, bias, seed, index, offsets, rest) -> Tensor:
    """Arguments of the operator, those that are no tensors as one."""
    if type(x) not in PLAIN or transforms_at_work():
        return gat_op(x, weight, att_src, att_dst, bias, seed, index, offsets, *rest)[0]
    if torch.is_grad_enabled() and (
            weight.requires_grad or x.requires_grad or att_src.requires_grad
            or att_dst.requires_grad or bias is not None and bias.requires_grad):
        return _apply_gat(x, weight, att_src, att_dst, bias, seed, index, offsets, rest)
    return _gat(x, weight, att_src, att_dst, bias, seed, index, offsets, *rest)[0]


# ---- gin -------------------------------------------------------------------------------------------

_gin, _gin_backward = map(twin, ("gin", "gin_backward"))


def _gin_keep(ctx, arguments, rest, output):
    ctx.rest = rest
    ctx.save_for_backward(*arguments, *output[1:])


def _gin_setup(ctx, inputs, output):
    ctx.mark_non_differentiable(*output[1:])
    _gin_keep(ctx, inputs[:8], tuple(inputs[8:]), output)


def _gin_gradients(ctx, grad, *_):
    needed = ctx.needs_input_grad
    x, weight, bias, then_weight, then_bias, own_scale = needed[:6]
    if own_scale:
        raise NotImplementedError("gin has no derivative of own_scale: use spmm and products")
    saved = ctx.saved_tensors
    if torch.is_grad_enabled():
        return _differentiable_gin(saved, ctx.rest, grad, needed)
    needs = then_weight + 2 * then_bias + 4 * x + 8 * weight + 16 * bias
    found = iter(gradients_of(lambda grad: _gin_backward(
        grad, saved[0], saved[1], saved[3], saved[5], saved[8:], saved[6], saved[7], *ctx.rest, needs),
        grad))
    to_then = next(found) if then_weight else None, next(found) if then_bias else None
    return (next(found) if x else None, next(found) if weight else None,
            next(found) if bias else None, *to_then) + (None,) * (len(needed) - 5)


def _differentiable_gin(saved, rest, grad, needed):
    """The same by operators that have derivatives themselves."""
    *graph, reduce, sum_first, flags = rest
    if flags & _CASTS:
        refuse_second_derivative("layers under autocast")(None)
    own_scale, index, offsets = saved[5:8]
    with torch.enable_grad():
        # Views of their own: one tensor may be two of them, or be made of another.
        own = [None if tensor is None else tensor.view_as(tensor) for tensor in saved[:5]]
        x, weight, bias, then_weight, then_bias = own
        first = spmm_linear_op(x, weight, None, None, bias, own_scale, None, index, offsets, *graph,
                               1.0, 0, reduce, sum_first, flags)[0]
        y = torch.nn.functional.linear(torch.relu(first), then_weight, then_bias)
    wanted = [tensor for tensor, need in zip(own, needed) if need]
    found = iter(torch.autograd.grad(y, wanted, grad, create_graph=True))
    return tuple(next(found) if need else None for need in needed[:5]) + (None,) * (len(needed) - 5)


def _gin_forward(ctx, x, weight, bias, then_weight, then_bias, own_scale, index, offsets, rest):
    output = _gin(x, weight, bias, then_weight, then_bias, own_scale, index, offsets, *rest)
    _gin_keep(ctx, (x, weight, bias, then_weight, then_bias, own_scale, index, offsets), rest, output)
    return output[0]


_apply_gin = applied("gin", _gin_forward, _gin_gradients)
gin_op = derive("gin", _gin_setup, _gin_gradients)
derive("gin_backward", None, refuse_second_derivative("gin"))


def gin(x, weight, bias, then_weight, then_bias, own_scale, index, offsets, rest) -> Tensor:
    """Arguments of the operator, those that are no tensors as one."""
    if type(x) not in PLAIN or transforms_at_work():
        return gin_op(x, weight, bias, then_weight, then_bias, own_scale, index, offsets, *rest)[0]
    if torch.is_grad_enabled() and (
            weight.requires_grad or x.requires_grad or then_weight.requires_grad
            or bias is not None and bias.requires_grad
            or then_bias is not None and then_bias.requires_grad):
        return _apply_gin(x, weight, bias, then_weight, then_bias, own_scale, index, offsets, rest)
    return _gin(x, weight, bias, then_weight, then_bias, own_scale, index, offsets, *rest)[0]
