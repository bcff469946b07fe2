# SPDX-License-Identifier: Apache-2.0
"""The operators on lists of pairs that have derivatives: their formulas. See :mod:`tessera.links`."""

from __future__ import annotations

from . import _shapes  # noqa: F401
from ._derivatives import autograd, autograd_of_gradients, differentiable, refuse_second_derivative

_dot_gradient, _sum_gradient, _loss_gradient = map(
    differentiable, ("pair_dot_backward", "pair_sum_backward", "pair_loss_backward"))


def _of_both(ctx, found: list) -> tuple:
    """Gradients of what the operator is given, of which those that are needed were found."""
    left = iter(found)
    return tuple(next(left) if needed else None for needed in ctx.needs_input_grad[:2]) + (None, None)


def _dot_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3])


def _dot_backward(ctx, grad):
    return _of_both(ctx, _dot_gradient(grad, *ctx.saved_tensors, *ctx.needs_input_grad[:2]))


def _sum_setup(ctx, inputs, output):
    sources, targets, pairs = inputs[:3]
    ctx.rows = (sources.size(0), sources.size(0) if targets is None else targets.size(0), targets is None)
    ctx.save_for_backward(pairs)


def _sum_backward(ctx, grad):
    return _of_both(ctx, _sum_gradient(grad, *ctx.saved_tensors, *ctx.rows, *ctx.needs_input_grad[:2]))


def _loss_setup(ctx, inputs, output):
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.save_for_backward(output[1], *inputs[:2])


def _loss_backward(ctx, grad, *_):
    if grad is None:
        return (None,) * 4
    slopes, positives, negatives = ctx.saved_tensors
    found = _loss_gradient(grad, slopes, positives, negatives)
    return found[:positives.size(0)], found[positives.size(0):], None, None


dot = autograd("pair_dot", _dot_setup, _dot_backward)
autograd_of_gradients("pair_dot_backward", None, refuse_second_derivative("scores of pairs"))
sum_of_ends = autograd("pair_sum", _sum_setup, _sum_backward)
autograd_of_gradients("pair_sum_backward", None, refuse_second_derivative("scores of pairs"))
loss = autograd("pair_loss", _loss_setup, _loss_backward)
autograd_of_gradients("pair_loss_backward", None, refuse_second_derivative("losses of pairs"))
