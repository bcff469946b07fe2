# SPDX-License-Identifier: Apache-2.0
"""The operators ``torch.ops.tessera.*``: schemas, shapes and derivatives. The kernels are C++."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor

from . import _library

# How every operator knows its graph, see bindings/torch/src/structure.hpp. The structure is looked up
# inside the operator, so that torch.compile sees tensors and numbers only.
_GRAPH = "SymInt targets, SymInt sources, int layout, int loops"
_SCHEMAS = {
    "spmm": "(Tensor x, Tensor index, Tensor? offsets, Tensor? weight, Tensor? bias, "
    f"{_GRAPH}, float loop_weight, int norm, int reduce, int flags) -> (Tensor, Tensor)",
    "spmm_backward": "(Tensor grad, Tensor? x, Tensor? winners, Tensor index, Tensor? offsets, "
    f"Tensor? weight, {_GRAPH}, float loop_weight, int norm, int reduce, int flags, bool need_x, "
    "bool need_weight) -> (Tensor, Tensor)",
    "spmm_linear": "(Tensor x, Tensor weight, Tensor? root, Tensor? root_weight, Tensor? bias, "
    f"Tensor? own_scale, Tensor? edge_weight, Tensor index, Tensor? offsets, {_GRAPH}, "
    "float loop_weight, int norm, int reduce, bool sum_first, int flags) -> Tensor[]",
    "spmm_linear_backward": "(Tensor grad, Tensor x, Tensor weight, Tensor? root, "
    "Tensor? root_weight, Tensor? own_scale, Tensor? edge_weight, Tensor[] kept, Tensor index, "
    f"Tensor? offsets, {_GRAPH}, float loop_weight, int norm, int reduce, bool sum_first, "
    "int flags, int needs) -> Tensor[]",
    "gin": "(Tensor x, Tensor weight, Tensor? bias, Tensor then_weight, Tensor? then_bias, "
    f"Tensor own_scale, Tensor index, Tensor? offsets, {_GRAPH}, int reduce, bool sum_first, "
    "int flags) -> Tensor[]",
    "gin_backward": "(Tensor grad, Tensor x, Tensor weight, Tensor then_weight, Tensor own_scale, "
    f"Tensor[] kept, Tensor index, Tensor? offsets, {_GRAPH}, int reduce, bool sum_first, int flags, "
    "int needs) -> Tensor[]",
    "sddmm": f"(Tensor u, Tensor v, Tensor index, Tensor? offsets, {_GRAPH}, int heads, "
    "int function, int flags) -> Tensor",
    "sddmm_backward": "(Tensor grad, Tensor u, Tensor v, Tensor index, Tensor? offsets, "
    f"{_GRAPH}, int heads, int function, int flags) -> (Tensor, Tensor)",
    "edge_softmax": f"(Tensor scores, Tensor index, Tensor? offsets, {_GRAPH}, int flags) -> Tensor",
    "edge_softmax_backward": "(Tensor weights, Tensor grad, Tensor index, Tensor? offsets, "
    f"{_GRAPH}, int flags) -> Tensor",
    "attention": "(Tensor target, Tensor source, Tensor value, Tensor? vector, Tensor? seed, "
    f"Tensor index, Tensor? offsets, {_GRAPH}, int form, int heads, float scale, float slope, "
    "float dropout, int flags) -> (Tensor, Tensor)",
    "attention_backward": "(Tensor grad, Tensor output, Tensor log_sum, Tensor target, Tensor source, "
    f"Tensor value, Tensor? vector, Tensor? seed, Tensor index, Tensor? offsets, {_GRAPH}, int form, "
    "int heads, float scale, float slope, float dropout, int flags) "
    "-> (Tensor, Tensor, Tensor, Tensor)",
    "gat": "(Tensor x, Tensor weight, Tensor att_src, Tensor att_dst, Tensor? bias, Tensor? seed, "
    f"Tensor index, Tensor? offsets, {_GRAPH}, int heads, float slope, float dropout, int flags) "
    "-> Tensor[]",
    "gat_backward": "(Tensor grad, Tensor x, Tensor weight, Tensor? seed, Tensor output, "
    "Tensor[] kept, Tensor index, Tensor? offsets, "
    f"{_GRAPH}, int heads, float slope, float dropout, int flags, int needs) -> Tensor[]",
    "attention_weights": "(Tensor target, Tensor source, Tensor value, Tensor log_sum, "
    f"Tensor? vector, Tensor index, Tensor? offsets, {_GRAPH}, int form, int heads, float scale, "
    "float slope, int flags) -> Tensor",
}

# A plan belongs to a structure. CUDA-graph trees would copy another graph's indices into the buffer
# of the first and replay the first one's plan, so they have to leave these operators out.
_TAGS = tuple(
    getattr(torch.Tag, name)
    for name in ("pt2_compliant_tag", "cudagraph_unsafe")
    if hasattr(torch.Tag, name)
)

# Each operator has a twin without derivatives, which those that have them run: torch would call Python for
# them once more.
_definitions = torch.library.Library("tessera", "DEF")
for _name, _schema in _SCHEMAS.items():
    _definitions.define(_name + _schema, tags=_TAGS)
    _definitions.define(f"{_name}_run" + _schema, tags=_TAGS)
_library.load()

ADDED_LOOPS = (1, 3)  # one_each, one_more


def caller_edges(index: Tensor, targets: int, sources: int, loops: int) -> int:
    """How many values a caller has for edges: those given, then one for each added loop."""
    edges = index.size(-1)
    return edges + torch.sym_min(targets, sources) if loops in ADDED_LOOPS else edges


def _fake(name: str):
    def register(function):
        for twin in (name, f"{name}_run"):
            torch.library.register_fake(f"tessera::{twin}", function, lib=_definitions)

    return register


@_fake("spmm")
def _(x, index, offsets, weight, bias, targets, sources, layout, loops, loop_weight, norm, reduce,
      flags):
    y = x.new_empty((targets, x.size(1)))
    picks = reduce >= 2
    shape = (targets, x.size(1)) if picks else (0, 0)
    return y, x.new_empty(shape, dtype=torch.int32)


@_fake("spmm_backward")
def _(grad, x, winners, index, offsets, weight, targets, sources, layout, loops, loop_weight, norm,
      reduce, flags, need_x, need_weight):
    grad_x = grad.new_empty((sources, grad.size(1)) if need_x else (0, 0))
    dtype = grad.dtype if weight is None else weight.dtype
    return grad_x, grad.new_empty((weight.numel() if need_weight else 0,), dtype=dtype)


CAST = {torch.bfloat16: 8, torch.float16: 16}  # bits of flags, of layers under autocast


def _layer_dtype(x: Tensor, flags: int) -> torch.dtype:
    return next((dtype for dtype, bit in CAST.items() if flags & bit), x.dtype)


def joined(root: Tensor | None, root_weight: Tensor | None, sum_first: bool) -> bool:
    """Whether the same features are multiplied by both matrices of spmm_linear: it is done at once, and
    so are the gradients of the matrices."""
    return root is None and root_weight is not None and not sum_first


@_fake("spmm_linear")
def _(x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets, targets, sources,
      layout, loops, loop_weight, norm, reduce, sum_first, flags):
    dtype = _layer_dtype(x, flags)
    both = joined(root, root_weight, sum_first)
    results = [x.new_empty((targets, weight.size(0)), dtype=dtype)]
    if sum_first:
        results.append(x.new_empty((targets, x.size(1)), dtype=dtype))
    if x.dtype != dtype:
        results.append(x.new_empty(x.shape, dtype=dtype))
    if both or weight.dtype != dtype:
        rows = weight.size(0) * (2 if both else 1)
        results.append(x.new_empty((rows, weight.size(1)), dtype=dtype))
    return results


@_fake("spmm_linear_backward")
def _(grad, x, weight, root, root_weight, own_scale, edge_weight, kept, index, offsets, targets,
      sources, layout, loops, loop_weight, norm, reduce, sum_first, flags, needs):
    matrices = [weight.new_empty(tensor.shape) if needs & bit else None
                for bit, tensor in ((2, weight), (8, root_weight))]
    if joined(root, root_weight, sum_first) and needs & 10:
        matrices = [weight.new_empty((2 * weight.size(0), weight.size(1))), None]
    found = (x.new_empty(x.shape) if needs & 1 else None, matrices[0],
             root.new_empty(root.shape) if needs & 4 else None, matrices[1],
             weight.new_empty((weight.size(0),)) if needs & 16 else None)
    return [tensor for tensor in found if tensor is not None]


@_fake("gin")
def _(x, weight, bias, then_weight, then_bias, own_scale, index, offsets, targets, sources, layout,
      loops, reduce, sum_first, flags):
    dtype = _layer_dtype(x, flags)
    results = [x.new_empty((targets, matrix.size(0)), dtype=dtype) for matrix in (then_weight, weight)]
    if then_weight.dtype != dtype:
        results.append(x.new_empty(then_weight.shape, dtype=dtype))
    if sum_first:
        results.append(x.new_empty((targets, x.size(1)), dtype=dtype))
    results += [x.new_empty(tensor.shape, dtype=dtype) for tensor in (x, weight)
                if tensor.dtype != dtype]
    return results


@_fake("gin_backward")
def _(grad, x, weight, then_weight, own_scale, kept, index, offsets, targets, sources, layout, loops,
      reduce, sum_first, flags, needs):
    found = (then_weight.new_empty(then_weight.shape), then_weight.new_empty((then_weight.size(0),)),
             x.new_empty(x.shape), weight.new_empty(weight.shape),
             weight.new_empty((weight.size(0),)))
    return [tensor for bit, tensor in enumerate(found) if needs >> bit & 1]


@_fake("sddmm")
def _(u, v, index, offsets, targets, sources, layout, loops, heads, function, flags):
    return u.new_empty((caller_edges(index, targets, sources, loops), heads))


@_fake("sddmm_backward")
def _(grad, u, v, index, offsets, targets, sources, layout, loops, heads, function, flags):
    return u.new_empty(u.shape), u.new_empty(v.shape)


@_fake("edge_softmax")
def _(scores, index, offsets, targets, sources, layout, loops, flags):
    return scores.new_empty(scores.shape)


@_fake("edge_softmax_backward")
def _(weights, grad, index, offsets, targets, sources, layout, loops, flags):
    return weights.new_empty(weights.shape)


def _sum_dtype(value: Tensor) -> torch.dtype:
    return torch.float64 if value.dtype == torch.float64 else torch.float32


@_fake("attention")
def _(target, source, value, vector, seed, index, offsets, targets, sources, layout, loops, form,
      heads, scale, slope, dropout, flags):
    output = value.new_empty((targets, value.size(1)))
    return output, value.new_empty((targets, heads), dtype=_sum_dtype(value))


@_fake("attention_backward")
def _(grad, output, log_sum, target, source, value, vector, seed, index, offsets, targets, sources,
      layout, loops, form, heads, scale, slope, dropout, flags):
    vector_size = 0 if vector is None else vector.numel()
    return (value.new_empty(target.shape), value.new_empty(source.shape),
            value.new_empty(value.shape), value.new_empty((vector_size,)))


@_fake("gat")
def _(x, weight, att_src, att_dst, bias, seed, index, offsets, targets, sources, layout, loops,
      heads, slope, dropout, flags):
    features, dtype = weight.size(0), _layer_dtype(x, flags)
    shapes = [(targets, features)] * (1 if bias is None else 2)
    shapes += [(sources, features), (sources, 2 * heads), (targets, heads), (2 * heads, features)]
    results = [x.new_empty(shape, dtype=dtype) for shape in shapes]
    results[-2] = results[-2].to(_sum_dtype(results[0]))
    results += [x.new_empty(tensor.shape, dtype=dtype) for tensor in (x, weight)
                if tensor.dtype != dtype]
    return results


@_fake("gat_backward")
def _(grad, x, weight, seed, output, kept, index, offsets, targets, sources, layout, loops, heads,
      slope, dropout, flags, needs):
    features = weight.size(0)
    vectors = (heads, features // heads)
    shapes = (x.shape, weight.shape, vectors, vectors, (features,))
    return [(x if bit == 0 else weight).new_empty(shape) for bit, shape in enumerate(shapes)
            if needs >> bit & 1]


@_fake("attention_weights")
def _(target, source, value, log_sum, vector, index, offsets, targets, sources, layout, loops, form,
      heads, scale, slope, flags):
    return value.new_empty((caller_edges(index, targets, sources, loops), heads))


# ---- derivatives -----------------------------------------------------------------------------------


class Operator(NamedTuple):
    """An operator of torch, which compiled code calls, and the same for all other code, where calls
    cost a third as much: torch looks through a schema argument by argument to fill in its defaults."""

    op: Any
    eager: Callable[..., Any]


PLAIN = (Tensor, torch.nn.Parameter)


def twin(name: str) -> Any:
    """The operator without derivatives, as torch itself calls it."""
    op = getattr(torch.ops.tessera, name + "_run").default
    return getattr(op, "_op", op)


def _backward_of(name: str) -> Callable[..., Any]:
    op, run = getattr(torch.ops.tessera, name + "_backward").default, twin(name + "_backward")

    def gradients(*arguments):
        return op(*arguments) if torch.is_grad_enabled() else run(*arguments)

    return gradients


def applied(name: str, forward, backward) -> Callable[..., Any]:
    """A function with a derivative. torch's own ``apply`` looks at every argument for transforms of
    functions (torch.func) first; this one must not be called while one is at work."""
    function = type(f"Tessera_{name}", (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


transforms_at_work = getattr(torch._C, "_are_functorch_transforms_active", lambda: True)


_any_requires_grad = torch._C._any_requires_grad


def derive(name: str, setup, backward) -> Any:
    """Registers the derivative of an operator. Where ``setup`` is None, nothing is kept for it."""
    op, run = getattr(torch.ops.tessera, name).default, twin(name)
    returns_list = "List" in str(op._schema.returns[0].type)

    def forward(ctx, *arguments):
        output = run(*arguments)
        if setup is not None:
            setup(ctx, arguments, output)
        return tuple(output) if returns_list else output

    function = type(f"Tessera_{name}_derived", (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def kernel(*arguments):
        if torch.is_grad_enabled() and _any_requires_grad(*arguments):
            output = function.apply(*arguments)
            return list(output) if returns_list else output
        return run(*arguments)

    _definitions.impl(name, kernel, "Autograd")
    return op


def _autograd(name: str, setup, backward) -> Operator:
    op = derive(name, setup, backward)
    if setup is None:
        return Operator(op, op)
    run = twin(name)
    tensors = sum("Tensor" in str(argument.type) for argument in op._schema.arguments)

    def forward(ctx, *arguments):
        arguments = arguments[:tensors] + arguments[tensors]
        output = run(*arguments)
        setup(ctx, arguments, output)
        return output

    # What is no tensor goes in one piece: torch looks at each argument, and wants something for it
    # from the derivative.
    def eager_backward(ctx, *grads):
        return backward(ctx, *grads)[: tensors + 1]

    apply = applied(name, forward, eager_backward)

    def eager(*arguments):
        if torch.is_grad_enabled():
            for argument in arguments[:tensors]:
                if argument is not None and argument.requires_grad:
                    if transforms_at_work():
                        return op(*arguments)
                    return apply(*arguments[:tensors], arguments[tensors:])
        return run(*arguments)

    return Operator(op, eager)


def refuse_second_derivative(name: str):
    def backward(ctx, *grads):
        raise NotImplementedError(
            f"tessera has no second derivative of {name}; use PyG's layer where one is needed "
            "(tessera.restore)"
        )

    return backward


spmm_gradient, _sddmm_gradient, _edge_softmax_gradient, _attention_gradient = map(
    _backward_of, ("spmm", "sddmm", "edge_softmax", "attention"))


def _spmm_setup(ctx, inputs, output):
    x, index, offsets, weight, bias, *rest = inputs
    y, winners = output
    ctx.mark_non_differentiable(winners)
    ctx.set_materialize_grads(False)
    needs_weight = weight is not None and ctx.needs_input_grad[3]
    picks = rest[6] >= 2
    ctx.rest = rest
    ctx.has_bias = bias is not None
    ctx.save_for_backward(index, offsets, weight, x if needs_weight else None,
                          winners if picks else None)


def _spmm_backward(ctx, grad, _):
    index, offsets, weight, x, winners = ctx.saved_tensors
    if grad is None:
        return (None,) * 13
    need_x = ctx.needs_input_grad[0]
    need_weight = weight is not None and ctx.needs_input_grad[3]
    grad_x = grad_weight = grad_bias = None
    if need_x or need_weight:
        grad_x, grad_weight = spmm_gradient(
            grad, x, winners, index, offsets, weight, *ctx.rest, need_x, need_weight
        )
        grad_weight = grad_weight.view(weight.shape) if need_weight else None
    if ctx.has_bias and ctx.needs_input_grad[4]:
        grad_bias = grad.sum(0)
    return (grad_x if need_x else None, None, None, grad_weight, grad_bias) + (None,) * 8


spmm = _autograd("spmm", _spmm_setup, _spmm_backward)


def _spmm_backward_setup(ctx, inputs, output):
    grad, x, winners, index, offsets, weight, *rest = inputs
    ctx.set_materialize_grads(False)
    ctx.rest = rest
    ctx.save_for_backward(grad, x, index, offsets, weight)


def _spmm_second(ctx, of_grad_x, of_grad_weight):
    """Sums are linear in all they take, so their second derivatives are sums again."""
    grad, x, index, offsets, weight = ctx.saved_tensors
    *rest, need_x, need_weight = ctx.rest
    if rest[6] >= 2:
        refuse_second_derivative("spmm with max or min")(ctx)
    to_grad = to_x = to_weight = None

    def product(features, values):
        return torch.ops.tessera.spmm.default(features, index, offsets, values, None, *rest)[0]

    if need_x and of_grad_x is not None:
        to_grad = product(of_grad_x, weight)
        if weight is not None:
            to_weight = spmm_gradient(
                grad, of_grad_x, None, index, offsets, weight, *rest, False, True
            )[1].view(weight.shape)
    if need_weight and of_grad_weight is not None:
        of_grad_weight = of_grad_weight.view(weight.shape)
        more = product(x, of_grad_weight)
        to_grad = more if to_grad is None else to_grad + more
        to_x = spmm_gradient(
            grad, None, None, index, offsets, of_grad_weight, *rest, True, False
        )[0]
    return (to_grad, to_x, None, None, None, to_weight) + (None,) * 10


_autograd("spmm_backward", _spmm_backward_setup, _spmm_second)


def _sddmm_setup(ctx, inputs, output):
    u, v, index, offsets, *rest = inputs
    ctx.rest = rest
    ctx.save_for_backward(u, v, index, offsets)


def _sddmm_backward(ctx, grad):
    u, v, index, offsets = ctx.saved_tensors
    grad_u, grad_v = _sddmm_gradient(grad, u, v, index, offsets, *ctx.rest)
    return (grad_u, grad_v) + (None,) * 9


sddmm = _autograd("sddmm", _sddmm_setup, _sddmm_backward)
_autograd("sddmm_backward", None, refuse_second_derivative("sddmm"))


def _edge_softmax_setup(ctx, inputs, output):
    _, index, offsets, *rest = inputs
    ctx.rest = rest
    ctx.save_for_backward(output, index, offsets)


def _edge_softmax_backward(ctx, grad):
    weights, index, offsets = ctx.saved_tensors
    result = _edge_softmax_gradient(weights, grad, index, offsets, *ctx.rest)
    return (result,) + (None,) * 7


edge_softmax = _autograd("edge_softmax", _edge_softmax_setup, _edge_softmax_backward)
_autograd("edge_softmax_backward", None, refuse_second_derivative("edge_softmax"))


def _attention_setup(ctx, inputs, output):
    target, source, value, vector, seed, index, offsets, *rest = inputs
    ctx.mark_non_differentiable(output[1])
    ctx.set_materialize_grads(False)
    ctx.rest = rest
    ctx.save_for_backward(target, source, value, vector, seed, index, offsets, *output)


def _attention_backward(ctx, grad, _):
    target, source, value, vector, seed, index, offsets, output, log_sum = ctx.saved_tensors
    if grad is None:
        return (None,) * 17
    to_target, to_source, to_value, to_vector = _attention_gradient(
        grad, output, log_sum, target, source, value, vector, seed, index, offsets, *ctx.rest
    )
    to_vector = None if vector is None else to_vector.view(vector.shape).to(vector.dtype)
    return (to_target.to(target.dtype), to_source.to(source.dtype), to_value, to_vector) + (
        None,
    ) * 13


attention = _autograd("attention", _attention_setup, _attention_backward)
_autograd("attention_backward", None, refuse_second_derivative("attention"))
attention_weights = _autograd("attention_weights", None,
                              refuse_second_derivative("attention_weights"))

