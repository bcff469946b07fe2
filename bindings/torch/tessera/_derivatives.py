# SPDX-License-Identifier: Apache-2.0
"""How operators get their derivatives: for compiled code, for code that is called for every layer and must do
little itself, and for transforms of functions (``torch.func``)."""

from __future__ import annotations

from typing import Any, Callable, NamedTuple

import torch
from torch import Tensor
from torch.autograd import forward_ad

from ._schemas import SCHEMAS, definitions
from ._torch_names import (add_batch_dim, any_requires_grad, forward_mode, is_batched, remove_batch_dim,
                           tangents_count, transforms_at_work)

PLAIN = (Tensor, torch.nn.Parameter)


class Operator(NamedTuple):
    """An operator of torch, which compiled code calls, and the same for all other code, where calls
    cost a third as much: torch looks through a schema argument by argument to fill in its defaults."""

    op: Any
    eager: Callable[..., Any]


def twin(name: str) -> Any:
    """The operator without derivatives, as torch itself calls it."""
    op = getattr(torch.ops.tessera, name + "_run").default
    return getattr(op, "_op", op)


def num_tensors(name: str) -> int:
    """How many of an operator's arguments are tensors, or lists of some; they come first."""
    arguments = SCHEMAS[name].partition(" ->")[0]
    return sum("Tensor" in argument for argument in arguments.split(","))


def other_derivatives() -> str | None:
    """Which derivatives somebody wants that are not those of ``backward()``."""
    if transforms_at_work():
        return "a transform of torch.func"
    return "forward-mode derivatives" if forward_mode() else None


def _results(output: Any) -> Any:
    """Of an operator, as a function with a derivative returns them."""
    return tuple(output) if isinstance(output, list) else output


def _have_tangents(arguments: tuple) -> bool:
    return tangents_count() and any(
        isinstance(argument, Tensor) and forward_ad.unpack_dual(argument).tangent is not None for argument in arguments)


def refuse_tangents(name: str) -> None:
    """A tangent must not be lost without a word."""
    raise NotImplementedError(f"tessera has no forward-mode derivative of {name}; use backward(), "
                              "or plain torch and PyG's layers (tessera.restore)")


def applied(name: str, forward, backward) -> Callable[..., Any]:
    """A function with a derivative. torch's own ``apply`` looks at every argument for transforms of
    functions (torch.func) first; this one must not be called while one is at work."""
    function = type(f"Tessera_{name}", (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})
    return super(torch.autograd.Function, function).apply  # type: ignore[misc]


def derive(name: str, setup, backward) -> Any:
    """Registers the derivative of an operator. Where ``setup`` is None, nothing is kept for it."""
    op, run = getattr(torch.ops.tessera, name).default, twin(name)
    returns_list = SCHEMAS[name].endswith("-> Tensor[]")

    def forward(ctx, *arguments):
        output = _results(run(*arguments))
        if setup is not None:
            setup(ctx, arguments, output)
        return output

    function = type(f"Tessera_{name}_derived", (torch.autograd.Function,),
                    {"forward": staticmethod(forward), "backward": staticmethod(backward)})

    def kernel(*arguments):
        if forward_mode() and _have_tangents(arguments):
            refuse_tangents(f"torch.ops.tessera.{name}, but where a function of the package calls it")
        if torch.is_grad_enabled() and any_requires_grad(*arguments):
            if transforms_at_work():
                raise NotImplementedError(f"torch.ops.tessera.{name} knows no torch.func: call the function "
                                          "of the package (tessera.spmm and others), or PyG's layer")
            output = function.apply(*arguments)
            return list(output) if returns_list else output
        return run(*arguments)

    definitions.impl(name, kernel, "Autograd")
    return op


# What runs an operator while transforms of functions are at work, by its name.
_transformed: dict[str, Callable[..., Any]] = {}


def _transformable(name: str, setup, backward, tangent=None) -> Callable[..., Any]:
    """The operator as a function that torch.func takes derivatives of, and maps one by one. ``tangent`` makes the tangents
    of its results of those of its arguments and of what ``setup`` keeps."""
    run = twin(name)

    def forward(*arguments):
        return _results(run(*arguments))

    def setup_context(ctx, inputs, output):
        if setup is not None:
            setup(ctx, inputs, output)
        if tangent is not None:
            ctx.save_for_forward(*ctx.to_save)

    def vmap(info, in_dims, *arguments):
        size = info.batch_size

        def one(argument, place, number):
            if place is None:
                return argument
            # Of nothing, the sum is a zero that has the shape of one and keeps derivatives.
            return argument.select(place, number) if size > 0 else argument.sum(place, dtype=argument.dtype)

        results = [apply(*(one(argument, place, number) for argument, place in zip(arguments, in_dims)))
                   for number in range(max(size, 1))]
        if not isinstance(results[0], tuple):
            return torch.stack(results)[:size], 0
        return tuple(torch.stack(each)[:size] for each in zip(*results)), (0,) * len(results[0])

    methods = {"forward": forward, "setup_context": setup_context, "backward": backward, "vmap": vmap}
    if tangent is not None:
        methods["jvp"] = tangent
    function = type(f"Tessera_{name}_transformed", (torch.autograd.Function,),
                    {key: staticmethod(method) for key, method in methods.items()})
    apply = function.apply
    _transformed[name] = apply
    return apply


def differentiable(name: str, grad_at: int = 0) -> Callable[..., Any]:
    """The operator, for formulas of derivatives that may have derivatives themselves. Its argument number ``grad_at``
    is the gradient, which may be a batch of some."""
    op, run = getattr(torch.ops.tessera, name).default, twin(name)
    returns_one = SCHEMAS[name].endswith("-> Tensor")

    def called(*arguments):
        if transforms_at_work():
            return _transformed[name](*arguments)
        if is_batched(arguments[grad_at]):
            before, grads, after = arguments[:grad_at], arguments[grad_at], arguments[grad_at + 1:]

            def run_one(grad: Tensor) -> list[Tensor]:
                found = called(*before, grad, *after)
                return [found] if returns_one else found

            found = _of_batch(run_one, grads)
            return found[0] if returns_one else found
        return op(*arguments) if torch.is_grad_enabled() else run(*arguments)

    return called


def autograd_of_gradients(name: str, setup, backward) -> None:
    """Registers the derivative of an operator that formulas of derivatives call."""
    derive(name, setup, backward)
    _transformable(name, setup, backward)


def autograd(name: str, setup, backward, tangent=None) -> Operator:
    """Registers the derivative of an operator that is a function of the package. Of several results the first
    has one."""
    op, transformed = derive(name, setup, backward), _transformable(name, setup, backward, tangent)
    run = twin(name)
    tensors = num_tensors(name)

    returns_one = SCHEMAS[name].endswith("-> Tensor")

    # What is no tensor goes in one piece: torch looks at each argument, and wants something for it
    # from the derivative. The same goes for results without one.
    def forward(ctx, *arguments):
        arguments = arguments[:tensors] + arguments[tensors]
        output = _results(run(*arguments))
        setup(ctx, arguments, output)
        return output if returns_one else output[0]

    def eager_backward(ctx, grad):
        return backward(ctx, grad)[: tensors + 1]

    apply = None if setup is None else applied(name, forward, eager_backward)

    def eager(*arguments):
        if transforms_at_work():
            return transformed(*arguments)
        if forward_mode() and _have_tangents(arguments):
            if tangent is None:
                refuse_tangents(name)
            return transformed(*arguments)
        if torch.is_grad_enabled():
            for argument in arguments[:tensors]:
                if argument is not None and argument.requires_grad:
                    if apply is None:
                        return op(*arguments)
                    first = apply(*arguments[:tensors], arguments[tensors:])
                    return first if returns_one else (first,)
        return run(*arguments)

    return Operator(op, eager)


class _OneByOne(torch.autograd.Function):
    """What makes gradients of one gradient, called for each that ``torch.func.vmap`` has."""

    @staticmethod
    def forward(grad, run):
        return tuple(run(grad))

    @staticmethod
    def setup_context(ctx, inputs, output):
        pass

    @staticmethod
    def backward(ctx, *grads):
        refuse_second_derivative("layers while gradients are batched")(ctx)

    @staticmethod
    def vmap(info, in_dims, grad, run):
        results = _of_each(lambda one: _OneByOne.apply(one, run), grad.movedim(in_dims[0], 0))
        return tuple(results), (0,) * len(results)


def _of_each(run: Callable[[Tensor], Any], grads: Tensor) -> list[Tensor]:
    """What ``run`` makes of each row of ``grads``, stacked."""
    # Of nothing, the sum is a zero that has the shape of one.
    results = [run(one) for one in (grads if grads.size(0) > 0 else (grads.sum(0),))]
    return [torch.stack(each)[:grads.size(0)] for each in zip(*results)]


_MOST_LEVELS = 64  # of batches inside of batches that torch can tell apart


def _of_batch(run: Callable[[Tensor], list[Tensor]], grad: Tensor) -> list[Tensor]:
    """The same for a batch of ``is_grads_batched``, which is made in another way."""
    if remove_batch_dim is None or add_batch_dim is None:
        raise NotImplementedError("this torch does not say what a batch of gradients is made of: use torch.func.vmap")
    # Asking torch for the level fails on a GPU: its gradients are computed in a thread of their own,
    # which knows of none.
    for level in range(1, _MOST_LEVELS + 1):
        grads = remove_batch_dim(grad, level, 1, 0)
        if not is_batched(grads):
            return [add_batch_dim(each, 0, level) for each in _of_each(run, grads)]
    raise NotImplementedError("tessera knows no batches of batches of gradients: use torch.func.vmap")


def gradients_of(run: Callable[..., list[Tensor]], grad: Tensor, *others: Any) -> list[Tensor]:
    """``run(grad, *others)``, also where ``grad`` is a batch of gradients, which operators know nothing of."""
    if not transforms_at_work() and not is_batched(grad):
        return run(grad, *others)

    def run_one(grad: Tensor) -> list[Tensor]:
        return run(grad, *others)

    return list(_OneByOne.apply(grad, run_one)) if transforms_at_work() else _of_batch(run_one, grad)


def refuse_second_derivative(name: str):
    def backward(ctx, *grads):
        raise NotImplementedError(
            f"tessera has no second derivative of {name}; use PyG's layer where one is needed "
            "(tessera.restore)"
        )

    return backward
