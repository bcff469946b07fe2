# SPDX-License-Identifier: Apache-2.0
"""Linear layers of groups of rows: each group has a matrix of its own."""

from __future__ import annotations

from typing import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from . import _grouped_operators, errors
from ._checks import FLOATS, check_inside, check_type
from ._kept import kept
from ._library import note
from .functional import autocast_dtype
from .segments import check_index, check_ptr


def _check(x: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    for name, tensor in (("x", x), ("weight", weight), ("bias", bias)):
        if tensor is None:
            continue
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name} is a {type(tensor).__name__}, not a tensor")
        if tensor.dtype not in FLOATS:
            raise TypeError(f"{name} has type {tensor.dtype}: use float64, float32, bfloat16 or float16")
        if tensor.device != x.device:
            raise ValueError(f"{name} lies on {tensor.device}, x on {x.device}: use {name}.to({str(x.device)!r})")
        check_type(name, tensor, x, autocast_dtype(x) is not None)
    if x.dim() != 2:
        raise ValueError(f"x has shape {tuple(x.shape)}: use (rows, features)")
    if weight.dim() not in (3, 4):
        raise ValueError(f"weight has shape {tuple(weight.shape)}: use (groups, inputs, outputs), or (groups, blocks, inputs, "
                         "outputs) with those of a block")
    blocks = weight.size(1) if weight.dim() == 4 else 1
    if x.size(1) != blocks * weight.size(-2):
        raise ValueError(f"x has {x.size(1)} features, weight is for {blocks * weight.size(-2)}")
    if bias is not None and tuple(bias.shape) != (weight.size(0), blocks * weight.size(-1)):
        raise ValueError(f"bias has shape {tuple(bias.shape)}: use {(weight.size(0), blocks * weight.size(-1))}")


def _order_of(index: Tensor, groups: int) -> tuple[Tensor | None, Tensor | None, Tensor]:
    """Rows by their groups, the way back, and where groups begin, on the host. No order where rows are in it."""
    if torch.compiler.is_compiling():
        return torch.ops.tessera.group_order(index, groups)
    check_inside("index", index, groups, "groups")
    order, inverse, ptr = torch.ops.tessera.group_order(index, groups)
    if bool((index.diff() >= 0).all()):
        return None, None, ptr
    return order, inverse, ptr


def product(x: Tensor, weight: Tensor, ptr: Tensor, bias: Tensor | None = None) -> Tensor:
    """Rows of groups that lie side by side, times the matrix of each; ``ptr`` lies on the host."""
    dtype = autocast_dtype(x)
    if dtype is not None:
        x, weight, bias = x.to(dtype), weight.to(dtype), None if bias is None else bias.to(dtype)
    return errors.run(_grouped_operators.product, x, weight, bias, ptr, False)


def grouped_linear(x: Tensor, weight: Tensor, bias: Tensor | None = None, *, index: Tensor | None = None,
                   ptr: Tensor | None = None) -> Tensor:
    """Rows times the matrix of their group: ``x[i] @ weight[g] + bias[g]``, where row ``i`` is of group ``g``. Groups are few
    launches on a GPU, however many there are.

    Args:
        x: the rows, ``rows x inputs``.
        weight: a matrix for each group, ``groups x inputs x outputs``; or one that has blocks on its diagonal and nothing
            beside them, ``groups x blocks x (inputs / blocks) x (outputs / blocks)``.
        bias: ``groups x outputs``.
        index: for each row its group, in any order. What is made of it is kept for as long as it lives.
        ptr: where rows of a group stand side by side: group ``g`` has the rows ``ptr[g]`` to ``ptr[g + 1]``.

    Example:
        >>> import torch, tessera
        >>> weight = torch.tensor([[[1.0]], [[10.0]]])
        >>> tessera.grouped_linear(torch.ones(3, 1), weight, index=torch.tensor([1, 0, 1]))
        tensor([[10.],
                [ 1.],
                [10.]])
    """
    _check(x, weight, bias)
    if (index is None) == (ptr is None):
        raise ValueError("groups have one description: give index or ptr")
    groups = weight.size(0)
    if index is None:
        check_index("ptr", ptr, x)
        check_ptr(ptr, x.size(0), "the rows of x")
        if ptr.size(0) != groups + 1:
            raise ValueError(f"ptr has {ptr.size(0)} numbers for {groups} groups of weight: use one for each, and one more")
        return product(x, weight, kept((ptr,), "on the host", lambda: ptr.to("cpu", torch.int64, copy=True)), bias)
    check_index("index", index, x)
    if not torch.compiler.is_compiling() and index.size(0) != x.size(0):
        raise ValueError(f"index has {index.size(0)} numbers for {x.size(0)} rows of x: use one for each")
    order, inverse, host = kept((index,), ("groups", groups), lambda: _order_of(index, groups))
    if order is None:
        return product(x, weight, host, bias)
    return product(x.index_select(0, order), weight, host, bias).index_select(0, inverse)


def grouped_matmul(inputs: Sequence[Tensor], others: Sequence[Tensor],
                   biases: Sequence[Tensor | None] | None = None) -> list[Tensor]:
    """Each matrix of ``inputs`` times that of ``others``, plus a bias where there is one, with the arguments of
    ``pyg_lib.ops.grouped_matmul``; they may have any shapes.

    Example:
        >>> import torch, tessera
        >>> inputs, others = [torch.ones(2, 3), torch.ones(4, 1)], [torch.ones(3, 5), torch.ones(1, 2)]
        >>> [y.shape for y in tessera.grouped_matmul(inputs, others)]
        [torch.Size([2, 5]), torch.Size([4, 2])]
    """
    for name, given in (("others", others), ("biases", biases)):
        if given is not None and len(given) != len(inputs):
            raise ValueError(f"{name} has {len(given)} tensors for {len(inputs)} inputs: use one for each")
    if inputs and not torch.compiler.is_compiling():
        note(f"grouped_matmul/{inputs[0].device.type}/torch")
    biases = [None] * len(inputs) if biases is None else biases
    return [F.linear(x, other.t(), bias) for x, other, bias in zip(inputs, others, biases)]


__all__ = ["grouped_linear", "grouped_matmul"]
