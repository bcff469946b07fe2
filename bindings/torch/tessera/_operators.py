# SPDX-License-Identifier: Apache-2.0
"""The operators ``torch.ops.tessera.*`` that functions of the package call: their derivatives."""

from __future__ import annotations

from . import _second_derivatives, _shapes  # noqa: F401
from ._derivatives import autograd, autograd_of_gradients, differentiable, refuse_second_derivative
from ._torch_names import forward_mode

_messages_gradient = differentiable("messages_backward")
spmm_gradient, _sddmm_gradient, _attention_gradient = map(
    differentiable, ("spmm_backward", "sddmm_backward", "attention_backward"))
_edge_softmax_gradient = differentiable("edge_softmax_backward", grad_at=1)


def _spmm_setup(ctx, inputs, output):
    x, index, offsets, weight, bias, *rest = inputs
    winners = output[1] if len(output) > 1 else None  # of max and min
    if winners is not None:
        ctx.mark_non_differentiable(winners)
    ctx.set_materialize_grads(False)
    needs_weight = weight is not None and (ctx.needs_input_grad[3] or forward_mode())
    ctx.rest = rest
    ctx.has_bias = bias is not None
    ctx.save_for_backward(index, offsets, weight, x if needs_weight else None, winners)


def _spmm_backward(ctx, grad, *_):
    index, offsets, weight, x, winners = ctx.saved_tensors
    if grad is None:
        return (None,) * 13
    need_x = ctx.needs_input_grad[0]
    need_weight = weight is not None and ctx.needs_input_grad[3]
    grad_x = grad_weight = grad_bias = None
    if need_x or need_weight:
        found = iter(spmm_gradient(
            grad, x, winners, index, offsets, weight, *ctx.rest, need_x, need_weight))
        grad_x = next(found) if need_x else None
        grad_weight = next(found).view(weight.shape) if need_weight else None
    if ctx.has_bias and ctx.needs_input_grad[4]:
        grad_bias = grad.sum(0)
    return (grad_x, None, None, grad_weight, grad_bias) + (None,) * 8


spmm = autograd("spmm", _spmm_setup, _spmm_backward, _second_derivatives.spmm_tangent)


def _spmm_backward_setup(ctx, inputs, output):
    ctx.set_materialize_grads(False)
    _second_derivatives.keep_inputs(6)(ctx, inputs, output)


autograd_of_gradients("spmm_backward", _spmm_backward_setup, _second_derivatives.spmm)


def _sddmm_setup(ctx, inputs, output):
    u, v, index, offsets, *rest = inputs
    ctx.rest = rest
    ctx.save_for_backward(u, v, index, offsets)


def _sddmm_backward(ctx, grad):
    u, v, index, offsets = ctx.saved_tensors
    grad_u, grad_v = _sddmm_gradient(grad, u, v, index, offsets, *ctx.rest)
    return (grad_u, grad_v) + (None,) * 9


sddmm = autograd("sddmm", _sddmm_setup, _sddmm_backward, _second_derivatives.sddmm_tangent)
autograd_of_gradients("sddmm_backward", _second_derivatives.keep_inputs(5), _second_derivatives.sddmm)


def _messages_setup(ctx, inputs, output):
    x, edge_features, index, offsets, *rest = inputs
    ctx.rest = rest
    ctx.save_for_backward(x, edge_features, index, offsets)


def _messages_backward(ctx, grad):
    needs = ctx.needs_input_grad[:2]
    found = iter(_messages_gradient(grad, *ctx.saved_tensors, *ctx.rest, *needs) if any(needs) else ())
    return tuple(next(found) if needed else None for needed in needs) + (None,) * 8


messages = autograd("messages", _messages_setup, _messages_backward)
autograd_of_gradients("messages_backward", None, refuse_second_derivative("messages"))


def _edge_softmax_setup(ctx, inputs, output):
    _, index, offsets, *rest = inputs
    ctx.rest = rest
    ctx.save_for_backward(output, index, offsets)


def _edge_softmax_backward(ctx, grad):
    weights, index, offsets = ctx.saved_tensors
    result = _edge_softmax_gradient(weights, grad, index, offsets, *ctx.rest)
    return (result,) + (None,) * 7


edge_softmax = autograd("edge_softmax", _edge_softmax_setup, _edge_softmax_backward,
                        _second_derivatives.edge_softmax_tangent)
autograd_of_gradients("edge_softmax_backward", _second_derivatives.keep_inputs(4), _second_derivatives.edge_softmax)


def _attention_setup(ctx, inputs, output):
    target, source, value, vector, edge_term, seed, index, offsets, *rest = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.rest = rest
    ctx.save_for_backward(target, source, value, vector, edge_term, seed, index, offsets, *output)


def _attention_backward(ctx, grad, *_):
    target, source, value, vector, edge_term, seed, index, offsets, output, log_sum = ctx.saved_tensors
    if grad is None:
        return (None,) * 18
    to_target, to_source, to_value, *others = _attention_gradient(
        grad, output, log_sum, target, source, value, vector, edge_term, seed, index, offsets, *ctx.rest
    )
    to_vector = None if vector is None else others[0].view(vector.shape)
    to_term = None if edge_term is None else others[-1].to(edge_term.dtype)
    return (to_target, to_source, to_value, to_vector, to_term) + (None,) * 13


attention = autograd("attention", _attention_setup, _attention_backward,
                     _second_derivatives.attention_tangent)
autograd_of_gradients("attention_backward", _second_derivatives.keep_inputs(11), _second_derivatives.attention)
attention_weights = autograd("attention_weights", None,
                              refuse_second_derivative("attention_weights"))

