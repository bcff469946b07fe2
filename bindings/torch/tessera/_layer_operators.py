# SPDX-License-Identifier: Apache-2.0
"""The operators that are whole layers, ``torch.ops.tessera.spmm_linear``, ``gat``, ``gatv2`` and ``gin``: their
derivatives, and all as functions for code that is not compiled, which are called for every layer and do little
themselves."""

from __future__ import annotations

from typing import Any, Callable

import torch
from torch import Tensor

from ._derivatives import PLAIN, applied, derive, gradients_of, num_tensors, refuse_second_derivative, twin
from ._operators import spmm_gradient
from ._shapes import CAST, KEEP_SUMS, joined, keeps_sums
from ._torch_names import transforms_at_work

_CASTS = sum(CAST.values())
_is_grad_enabled = torch.is_grad_enabled


def _layer(name: str, derived: int, keep, gradients, also: int = 0) -> tuple[Any, Callable[..., Tensor]]:
    """The operator, and a function of the same tensors that takes what is no tensor as one tuple. The
    first ``derived`` tensors may have gradients; ``keep(ctx, tensors, rest, output)`` keeps what those need.
    ``also``: flags of runs whose gradients are wanted, outside of compiled code."""
    run = twin(name)
    tensors = num_tensors(name)

    def setup(ctx, inputs, output):
        ctx.mark_non_differentiable(*output[1:])
        keep(ctx, inputs[:tensors], tuple(inputs[tensors:]), output)

    # What has no derivative goes in one piece: torch looks at each argument.
    def forward(ctx, *arguments):
        others, rest = arguments[derived]
        given = arguments[:derived] + others
        output = run(*given, *rest[:-1], rest[-1] | also)
        keep(ctx, given, rest, output)
        return output[0]

    op, apply = derive(name, setup, gradients), applied(name, forward, gradients)

    def called(*arguments):
        if type(arguments[0]) not in PLAIN or transforms_at_work():
            return op(*arguments[:-1], *arguments[-1])[0]
        if _is_grad_enabled():
            may_have = arguments[:derived]
            for argument in may_have:
                if argument is not None and argument.requires_grad:
                    return apply(*may_have, (arguments[derived:-1], arguments[-1]))
        return run(*arguments[:-1], *arguments[-1])[0]

    return op, called


def _halves(both: Tensor) -> tuple[Tensor, ...]:
    """Of two gradients, one above the other: in fewer steps of torch's than by chunk."""
    half = both.size(0) // 2
    return both.split_with_sizes((half, half))


def _by_steps(name: str, run: Callable[..., Tensor], tensors, grad, needed, seed, flags: int) -> tuple:
    """The gradients of a layer by operators that have derivatives themselves."""
    if flags & _CASTS:
        refuse_second_derivative("layers under autocast")(None)
    if seed is not None:
        refuse_second_derivative(f"{name} with dropout")(None)
    with torch.enable_grad():
        # Views of their own: one tensor may be two of them, or be made of another.
        own = [None if tensor is None else tensor.view_as(tensor) for tensor in tensors]
        y = run(*own)
    found = iter(torch.autograd.grad(y, [one for one, need in zip(own, needed) if need], grad, create_graph=True))
    return tuple(next(found) if need else None for need in needed[: len(own)]) + (None,) * (len(needed) - len(own))


# ---- spmm_linear -----------------------------------------------------------------------------------

_spmm_linear_backward = twin("spmm_linear_backward")


def _spmm_linear_keep(ctx, tensors, rest, output):
    x, weight, root, root_weight, _, own_scale, edge_weight, index, offsets = tensors
    ctx.rest = rest
    ctx.save_for_backward(x, weight, root, root_weight, own_scale, edge_weight, index, offsets,
                          *output[1:])


def _spmm_linear_gradients(ctx, grad, *_):
    needed, saved, rest = ctx.needs_input_grad, ctx.saved_tensors, ctx.rest
    x, weight, root, root_weight, bias, own_scale, edge_weight = needed[:7]
    if own_scale or edge_weight:
        raise NotImplementedError("spmm_linear has no derivatives of own_scale and edge_weight: use "
                                  "spmm and a product of its own")
    needs = x + 2 * weight + 4 * root + 8 * root_weight + 16 * bias
    if _is_grad_enabled():
        found = list(_differentiable_gradients(saved, rest, grad, needs))
    else:
        found = gradients_of(_spmm_linear_backward, grad, *saved[:6], saved[8:], saved[6], saved[7], *rest,
                             needs)
        if (weight or root_weight) and joined(saved[2], saved[3], rest[-2]):
            both = _halves(found[x])
            found[x : x + 1] = both if weight and root_weight else both[root_weight :][:1]
    found.reverse()
    take = found.pop
    return (take() if x else None, take() if weight else None, take() if root else None,
            take() if root_weight else None, take() if bias else None) + (None,) * (len(needed) - 5)


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


spmm_linear_op, spmm_linear = _layer("spmm_linear", 7, _spmm_linear_keep, _spmm_linear_gradients)
derive("spmm_linear_backward", None, refuse_second_derivative("spmm_linear"))


# ---- gat -------------------------------------------------------------------------------------------

_gat_backward = twin("gat_backward")


def _gat_keep(ctx, tensors, rest, output):
    seed, index, offsets = tensors[5:]
    ctx.rest = rest
    first = 1 if keeps_sums(tensors[4], rest[-1]) else 0
    ctx.save_for_backward(*tensors[:5], seed, output[first], index, offsets, *output[first + 1 :])


def _gat_gradients(ctx, grad, *_):
    needed, saved = ctx.needs_input_grad, ctx.saved_tensors
    x, weight, att_src, att_dst, bias = needed[:5]
    if _is_grad_enabled():
        return _by_steps("GAT", _gat_by_steps(saved[7], saved[8], ctx.rest), saved[:5], grad, needed, saved[5], ctx.rest[-1])
    needs = x + 2 * weight + 4 * att_src + 8 * att_dst + 16 * bias
    found = iter(gradients_of(_gat_backward, grad, saved[0], saved[1], saved[5], saved[6], saved[9:], saved[7], saved[8], *ctx.rest,
                              needs))
    shape = saved[2].shape
    return (next(found) if x else None, next(found) if weight else None,
            next(found).view(shape) if att_src else None,
            next(found).view(shape) if att_dst else None,
            next(found) if bias else None) + (None,) * (len(needed) - 5)


def _gat_by_steps(index, offsets, rest):
    targets, sources, layout, loops, heads, slope, _, _ = rest

    def run(x, weight, att_src, att_dst, bias):
        value = x @ weight.t()
        to, of = ((value.unflatten(1, (heads, -1)) * att.view(1, heads, -1)).sum(-1) for att in (att_dst, att_src))
        out = torch.ops.tessera.attention.default(to[:targets], of, value, None, None, None, index, offsets, targets, sources, layout,
                                                  loops, 0, heads, 1.0, slope, 0.0, 0)[0]
        return out if bias is None else out + bias

    return run


# How many numbers are kept is the plan's affair, which compiled code knows nothing of.
gat_op, gat = _layer("gat", 5, _gat_keep, _gat_gradients, also=KEEP_SUMS)
derive("gat_backward", None, refuse_second_derivative("gat"))


# ---- gatv2 -----------------------------------------------------------------------------------------

_gatv2_backward = twin("gatv2_backward")


def _gatv2_keep(ctx, tensors, rest, output):
    seed, index, offsets = tensors[7:]
    ctx.rest = rest
    first = 1 if keeps_sums(tensors[6], rest[-1]) else 0
    ctx.save_for_backward(*tensors[:7], seed, output[first], index, offsets, *output[first + 1 :])


def _gatv2_gradients(ctx, grad, *_):
    needed = ctx.needs_input_grad
    x, source_weight, source_bias, target_weight, target_bias, att, bias = needed[:7]
    weights, biases = source_weight or target_weight, source_bias or target_bias
    needs = x + 2 * weights + 4 * biases + 8 * att + 16 * bias
    saved = ctx.saved_tensors
    if _is_grad_enabled():
        return _by_steps("GATv2", _gatv2_by_steps(saved[9], saved[10], ctx.rest), saved[:7], grad, needed, saved[7], ctx.rest[-1])
    found = iter(gradients_of(_gatv2_backward, grad, saved[0], saved[1], saved[5], saved[7], saved[8], saved[11:], saved[9], saved[10],
                              *ctx.rest, needs))
    to_x = next(found) if x else None
    to_weights = _halves(next(found)) if weights else (None, None)
    to_biases = _halves(next(found)) if biases else (None, None)
    return (to_x, to_weights[0] if source_weight else None, to_biases[0] if source_bias else None,
            to_weights[1] if target_weight else None, to_biases[1] if target_bias else None,
            next(found).view(saved[5].shape) if att else None,
            next(found) if bias else None) + (None,) * (len(needed) - 7)


def _gatv2_by_steps(index, offsets, rest):
    targets, sources, layout, loops, heads, slope, _, _ = rest

    def run(x, source_weight, source_bias, target_weight, target_bias, att, bias):
        source = torch.nn.functional.linear(x, source_weight, source_bias)
        target = torch.nn.functional.linear(x, target_weight, target_bias)[:targets]
        out = torch.ops.tessera.attention.default(target, source, source, att, None, None, index, offsets, targets, sources, layout,
                                                  loops, 1, heads, 1.0, slope, 0.0, 0)[0]
        return out if bias is None else out + bias

    return run


gatv2_op, gatv2 = _layer("gatv2", 7, _gatv2_keep, _gatv2_gradients)
derive("gatv2_backward", None, refuse_second_derivative("gatv2"))


# ---- gin -------------------------------------------------------------------------------------------

_gin_backward = twin("gin_backward")


def _gin_keep(ctx, tensors, rest, output):
    ctx.rest = rest
    ctx.save_for_backward(*tensors, *output[1:])


def _gin_gradients(ctx, grad, *_):
    needed, saved = ctx.needs_input_grad, ctx.saved_tensors
    x, weight, bias, then_weight, then_bias, own_scale = needed[:6]
    if own_scale:
        raise NotImplementedError("gin has no derivative of own_scale: use spmm and products")
    if _is_grad_enabled():
        return _by_steps("GIN", _gin_by_steps(*saved[5:8], ctx.rest), saved[:5], grad, needed, None, ctx.rest[-1])
    needs = then_weight + 2 * then_bias + 4 * x + 8 * weight + 16 * bias
    found = gradients_of(_gin_backward, grad, saved[0], saved[1], saved[3], saved[5], saved[8:], saved[6],
                         saved[7], *ctx.rest, needs)
    found.reverse()
    take = found.pop
    to_then = take() if then_weight else None, take() if then_bias else None
    return (take() if x else None, take() if weight else None, take() if bias else None,
            *to_then) + (None,) * (len(needed) - 5)


def _gin_by_steps(own_scale, index, offsets, rest):
    *graph, reduce, sum_first, flags = rest

    def run(x, weight, bias, then_weight, then_bias):
        first = spmm_linear_op(x, weight, None, None, bias, own_scale, None, index, offsets, *graph,
                               1.0, 0, reduce, sum_first, flags)[0]
        return torch.nn.functional.linear(torch.relu(first), then_weight, then_bias)

    return run


gin_op, gin = _layer("gin", 6, _gin_keep, _gin_gradients)
derive("gin_backward", None, refuse_second_derivative("gin"))
