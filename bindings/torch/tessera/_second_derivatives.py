# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the formulas of derivatives, and those of forward mode, made of operators that have some: nothing of them
runs where first ones of ``backward()`` do."""

from __future__ import annotations

from typing import Callable

import torch
from torch import Tensor

from ._derivatives import differentiable, refuse_second_derivative, refuse_tangents

_spmm, _spmm_gradient, _sddmm, _sddmm_gradient, _edge_softmax = map(
    differentiable, ("spmm", "spmm_backward", "sddmm", "sddmm_backward", "edge_softmax"))
_edge_softmax_gradient = differentiable("edge_softmax_backward", grad_at=1)

_DOT, _ADD = 0, 1  # functions of sddmm
_ADDITIVE, _V2, _DOT_FORM, _COSINE = range(4)  # forms of attention


def _sums(values: Tensor, index: Tensor, offsets: Tensor | None, graph: tuple) -> Tensor:
    """Of edges x heads, at their targets."""
    ones = values.new_ones((graph[1], values.size(1)))
    return _spmm(ones, index, offsets, values, None, *graph, 1.0, 0, 0, 0)[0]


def _spread(of_targets: Tensor, index: Tensor, offsets: Tensor | None, graph: tuple) -> Tensor:
    """What targets have, at their edges."""
    nothing = of_targets.new_zeros((graph[1], of_targets.size(1)))
    return _sddmm(of_targets, nothing, index, offsets, *graph, of_targets.size(1), _ADD, 0)


def _chosen(x: Tensor, winners: Tensor) -> Tensor:
    """Of the sources that a maximum or minimum chose; nothing of targets without any."""
    if x.size(0) == 0:
        return x.new_zeros(winners.shape)
    numbers = winners.to(torch.int64)
    return x.gather(0, numbers.clamp(min=0)).masked_fill(numbers < 0, 0)


def keep_inputs(tensors: int) -> Callable:
    """Setup of an operator whose first arguments are so many tensors, or None."""
    def setup(ctx, inputs, output):
        ctx.rest = inputs[tensors:]
        ctx.save_for_backward(*inputs[:tensors])

    return setup


def spmm(ctx, *of_gradients):
    """Sums are linear in all they take, so their second derivatives are sums again; a maximum is a choice."""
    grad, x, winners, index, offsets, weight = ctx.saved_tensors
    *rest, need_x, need_weight = ctx.rest
    of_grad_x = of_gradients[0] if need_x else None
    of_grad_weight = of_gradients[-1] if need_weight else None
    to_grad = to_x = to_weight = None
    if rest[6] >= 2:
        if weight is not None or rest[4] != 1 or rest[5] != 0:
            refuse_second_derivative("spmm with max or min of weighted edges")(ctx)
        if of_grad_x is not None:
            to_grad = _chosen(of_grad_x, winners)
        return (to_grad,) + (None,) * 15

    def product(features, values):
        return _spmm(features, index, offsets, values, None, *rest)[0]

    if of_grad_x is not None:
        to_grad = product(of_grad_x, weight)
        if weight is not None:
            to_weight = _spmm_gradient(grad, of_grad_x, None, index, offsets, weight, *rest, False, True)[0].view(weight.shape)
    if of_grad_weight is not None:
        of_grad_weight = of_grad_weight.view(weight.shape)
        more = product(x, of_grad_weight)
        to_grad = more if to_grad is None else to_grad + more
        to_x = _spmm_gradient(grad, None, None, index, offsets, of_grad_weight, *rest, True, False)[0]
    return (to_grad, to_x, None, None, None, to_weight) + (None,) * 10


def sddmm(ctx, of_grad_u, of_grad_v):
    """Bilinear, or linear."""
    grad, u, v, index, offsets = ctx.saved_tensors
    function = ctx.rest[5]
    if function == _ADD:
        return (_sddmm(of_grad_u, of_grad_v, index, offsets, *ctx.rest),) + (None,) * 11
    to_grad = _sddmm(of_grad_u, v, index, offsets, *ctx.rest) + _sddmm(u, of_grad_v, index, offsets, *ctx.rest)
    to_u, to_v = _sddmm_gradient(grad, of_grad_u, of_grad_v, index, offsets, *ctx.rest)
    return (to_grad, to_u, to_v) + (None,) * 9


def edge_softmax(ctx, of_result):
    """Of w (g - sum of w g) over the edges of a target, with w the weights and g their gradient."""
    weights, grad, index, offsets = ctx.saved_tensors
    graph = ctx.rest[:4]

    def mean(values: Tensor) -> Tensor:
        return _spread(_sums(weights * values, index, offsets, graph), index, offsets, graph)

    to_grad = _edge_softmax_gradient(weights, of_result, index, offsets, *ctx.rest)
    to_weights = of_result * (grad - mean(grad)) - grad * mean(of_result)
    return (to_weights, to_grad) + (None,) * 7


def _ends(target, source, edge_term, index, offsets, graph, form, heads, scale) -> Tensor:
    """What attention makes of both ends of an edge first."""
    if form == _V2:
        found = _sddmm(target, source, index, offsets, *graph, target.size(1), _ADD, 0)  # a feature is a head
    elif form == _ADDITIVE:
        found = _sddmm(target, source, index, offsets, *graph, heads, _ADD, 0)
    else:
        found = scale * _sddmm(target, source, index, offsets, *graph, heads, _DOT, 0)
    return found if edge_term is None else found + edge_term.to(found.dtype)


def _by_vector(ends: Tensor, vector: Tensor, heads: int) -> Tensor:
    return (ends * vector.reshape(1, -1)).view(ends.size(0), heads, -1).sum(-1)


def _attention(target, source, value, vector, edge_term, index, offsets, graph, form, heads, scale, slope) -> Tensor:
    """Attention with a tensor for every step of it."""
    scores = _ends(target, source, edge_term, index, offsets, graph, form, heads, scale)
    if form != _DOT_FORM:
        scores = torch.nn.functional.leaky_relu(scores, slope)
    if form == _V2:
        scores = _by_vector(scores, vector, heads)
    weights = _edge_softmax(scores, index, offsets, *graph, 0)
    return _spmm(value, index, offsets, weights, None, *graph, 1.0, 0, 0, 0)[0]


def _refuse_others(name: str, form: int, seed: Tensor | None, refuse: Callable[[str], None]) -> None:
    if seed is not None:
        refuse(f"{name} with dropout")
    if form == _COSINE:
        refuse(f"{name} in the form cosine")


def attention(ctx, *of_gradients):
    grad, _, _, target, source, value, vector, edge_term, seed, index, offsets = ctx.saved_tensors
    tensors = (target, source, value, vector, edge_term)
    *graph, form, heads, scale, slope, _, _ = ctx.rest
    _refuse_others("attention", form, seed, lambda name: refuse_second_derivative(name)(ctx))
    present = [tensor for tensor in tensors if tensor is not None]

    def run(*given: Tensor) -> Tensor:
        left = iter(given)
        full = [None if tensor is None else next(left) for tensor in tensors]
        return _attention(*full, index, offsets, tuple(graph), form, heads, scale, slope)

    def gradients(grad: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        return torch.func.vjp(run, *given)[1](grad)

    found, back = torch.func.vjp(gradients, grad, *present)
    to_grad, *others = back(tuple(of.reshape(one.shape).to(one.dtype) for of, one in zip(of_gradients, found)))
    left = iter(others)
    return (to_grad, None, None, *(None if tensor is None else next(left) for tensor in tensors)) + (None,) * 13


def spmm_tangent(ctx, of_x, _, __, of_weight, of_bias, *others):
    index, offsets, weight, x, winners = ctx.saved_tensors
    parts = []
    if winners is not None:
        if weight is not None:
            refuse_tangents("spmm with max or min of weighted edges")
        parts += [] if of_x is None else [_chosen(of_x, winners)]
    else:
        if of_x is not None:
            parts.append(_spmm(of_x, index, offsets, weight, None, *ctx.rest)[0])
        if of_weight is not None:
            parts.append(_spmm(x, index, offsets, of_weight, None, *ctx.rest)[0])
    total = sum(parts[1:], parts[0]) if parts else of_bias.expand(ctx.rest[0], -1)
    total = total + of_bias if parts and of_bias is not None else total
    return (total,) if winners is None else (total, None)


def sddmm_tangent(ctx, of_u, of_v, *others):
    u, v, index, offsets = ctx.saved_tensors
    if ctx.rest[5] == _ADD:
        of_u = torch.zeros_like(u) if of_u is None else of_u
        return _sddmm(of_u, torch.zeros_like(v) if of_v is None else of_v, index, offsets, *ctx.rest)
    pairs = [pair for pair, of in (((of_u, v), of_u), ((u, of_v), of_v)) if of is not None]
    parts = [_sddmm(*pair, index, offsets, *ctx.rest) for pair in pairs]
    return sum(parts[1:], parts[0])


def edge_softmax_tangent(ctx, of_scores, *others):
    """Its matrix of derivatives is its own transpose."""
    weights, index, offsets = ctx.saved_tensors
    return _edge_softmax_gradient(weights, of_scores, index, offsets, *ctx.rest)


def attention_tangent(ctx, *tangents):
    """By the steps of attention, one after the other."""
    target, source, value, vector, edge_term, seed, index, offsets, *_ = ctx.saved_tensors
    *graph, form, heads, scale, slope, _, _ = ctx.rest
    _refuse_others("attention", form, seed, refuse_tangents)
    tensors = (target, source, value, vector, edge_term)
    of_target, of_source, of_value, of_vector, of_term = (
        torch.zeros_like(tensor) if of is None and tensor is not None else of for tensor, of in zip(tensors, tangents))
    edges = (index, offsets, tuple(graph), form, heads, scale)
    scores = _ends(target, source, edge_term, *edges)
    if form == _DOT_FORM:
        of_scores = _ends(of_target, source, of_term, *edges) + _ends(target, of_source, None, *edges)
    else:
        of_scores = _ends(of_target, of_source, of_term, *edges) * torch.where(scores > 0, 1.0, slope).to(scores.dtype)
        scores = torch.nn.functional.leaky_relu(scores, slope)
    if form == _V2:
        of_scores = _by_vector(of_scores, vector, heads) + _by_vector(scores, of_vector, heads)
        scores = _by_vector(scores, vector, heads)
    weights = _edge_softmax(scores, index, offsets, *graph, 0)
    of_weights = _edge_softmax_gradient(weights, of_scores, index, offsets, *graph, 0)
    parts = [_spmm(features, index, offsets, numbers, None, *graph, 1.0, 0, 0, 0)[0]
             for features, numbers in ((of_value, weights), (value, of_weights))]
    return parts[0] + parts[1], None


__all__ = ["attention", "attention_tangent", "edge_softmax", "edge_softmax_tangent", "keep_inputs", "sddmm", "sddmm_tangent", "spmm",
           "spmm_tangent"]
