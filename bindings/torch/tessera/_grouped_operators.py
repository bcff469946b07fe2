# SPDX-License-Identifier: Apache-2.0
"""Products of groups of rows with the matrix of each group. They are torch's own products: large groups one by one, small
ones of like sizes in one batch, so that hundreds of groups take few launches."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from . import _shapes  # noqa: F401
from ._derivatives import autograd, differentiable
from ._kept import kept
from ._library import note
from ._schemas import definitions

# Groups of at least so many rows are products of their own.
_LARGE = {"cpu": 64, "cuda": 2048}


class Batch(NamedTuple):
    """Groups of like sizes, padded to the largest."""

    groups: Tensor
    rows: Tensor  # of all of these groups
    places: Tensor  # of those rows in the batch
    height: int  # rows of the batch for each group

    def padded(self, x: Tensor) -> Tensor:
        batch = x.new_zeros(self.groups.numel() * self.height, x.size(1))
        return batch.index_copy_(0, self.places, x.index_select(0, self.rows))


class Groups(NamedTuple):
    """Where groups of rows lie: those that are a product of their own, and batches of the others."""

    large: list[tuple[int, int, int]]  # group, first row, end
    batches: list[Batch]


def _groups(ptr: Tensor, device: torch.device) -> Groups:
    sizes = ptr.diff()
    least = _LARGE.get(device.type, _LARGE["cuda"])
    large = [(group, int(ptr[group]), int(ptr[group + 1])) for group in (sizes >= least).nonzero().view(-1).tolist()]
    batches = []
    above = 0
    height = 1
    while height < 2 * least:
        groups = ((sizes > above) & (sizes <= height) & (sizes < least)).nonzero().view(-1)
        if groups.numel() > 0:
            batches.append(_batch(ptr, sizes, groups, device))
        above, height = height, 2 * height
    return Groups(large, batches)


def _batch(ptr: Tensor, sizes: Tensor, groups: Tensor, device: torch.device) -> Batch:
    height = int(sizes[groups].max())
    steps = torch.arange(height)
    inside = steps < sizes[groups, None]
    rows = (ptr[groups, None] + steps)[inside]
    places = inside.view(-1).nonzero().view(-1)
    return Batch(groups.to(device), rows.to(device), places.to(device), height)


def _groups_of(ptr: Tensor, device: torch.device) -> Groups:
    return kept((ptr,), ("groups", device), lambda: _groups(ptr, device))


def _blocks_first(batch: Tensor, blocks: int) -> Tensor:
    """Rows of (..., height, blocks x width) as matrices (... x blocks, height, width)."""
    height, width = batch.size(-2), batch.size(-1)
    return batch.view(-1, height, blocks, width // blocks).transpose(1, 2).reshape(-1, height, width // blocks)


def _product(x: Tensor, weight: Tensor, bias: Tensor | None, ptr: Tensor, transposed: bool) -> Tensor:
    x, matrices = x.contiguous(), weight.mT if transposed else weight
    matrices = matrices if weight.dim() == 4 else matrices.unsqueeze(1)
    blocks, width = matrices.size(1), matrices.size(-1)
    out = x.new_empty(x.size(0), blocks * width)
    groups = _groups_of(ptr, x.device)
    note(f"grouped_product/{x.device.type}/torch")
    with torch.autocast(x.device.type, enabled=False):
        for group, begin, end in groups.large:
            if blocks == 1:
                torch.mm(x[begin:end], matrices[group, 0], out=out[begin:end])
            else:
                made = torch.bmm(_blocks_first(x[begin:end], blocks), matrices[group])
                out[begin:end].view(-1, blocks, width).copy_(made.transpose(0, 1))
            if bias is not None:
                out[begin:end] += bias[group]
        for batch in groups.batches:
            padded = batch.padded(x).view(-1, batch.height, x.size(1))
            made = torch.bmm(_blocks_first(padded, blocks), matrices.index_select(0, batch.groups).flatten(0, 1))
            made = made.reshape(-1, blocks, batch.height, width).transpose(1, 2).reshape(-1, batch.height, blocks * width)
            if bias is not None:
                made = made + bias.index_select(0, batch.groups).unsqueeze(1)
            out.index_copy_(0, batch.rows, made.reshape(-1, blocks * width).index_select(0, batch.places))
    return out


def _outer(x: Tensor, y: Tensor, ptr: Tensor, blocks: int) -> Tensor:
    x, y, parts = x.contiguous(), y.contiguous(), max(blocks, 1)
    out = x.new_zeros(ptr.numel() - 1, parts, x.size(1) // parts, y.size(1) // parts)
    groups = _groups_of(ptr, x.device)
    with torch.autocast(x.device.type, enabled=False):
        for group, begin, end in groups.large:
            torch.bmm(_blocks_first(x[begin:end], parts).mT, _blocks_first(y[begin:end], parts), out=out[group])
        for batch in groups.batches:
            both = (batch.padded(rows).view(-1, batch.height, rows.size(1)) for rows in (x, y))
            left, right = (_blocks_first(rows, parts) for rows in both)
            made = torch.bmm(left.mT, right)
            out.index_copy_(0, batch.groups, made.reshape(-1, *out.shape[1:]))
    return out if blocks > 0 else out.squeeze(1)


def _order(index: Tensor, groups: int) -> tuple[Tensor, Tensor, Tensor]:
    order = index.argsort(stable=True)
    inverse = torch.empty_like(order)
    inverse[order] = torch.arange(order.numel(), device=order.device)
    ptr = torch.zeros(groups + 1, dtype=torch.int64)
    ptr[1:] = torch.bincount(index, minlength=groups).cumsum(0).cpu()
    return order, inverse, ptr


for _name, _function in (("grouped_product", _product), ("grouped_outer", _outer), ("group_order", _order)):
    for _twin in (_name, f"{_name}_run"):
        definitions.impl(_twin, _function, "CompositeExplicitAutograd")


_product_of = differentiable("grouped_product")
_outer_of = differentiable("grouped_outer", grad_at=1)


def _product_setup(ctx, inputs, output):
    x, weight, bias, ptr, transposed = inputs
    ctx.transposed, ctx.has_bias = transposed, bias is not None
    ctx.save_for_backward(x, weight, ptr)


def _product_backward(ctx, grad):
    x, weight, ptr = ctx.saved_tensors
    grad_x = grad_weight = grad_bias = None
    if ctx.needs_input_grad[0]:
        grad_x = _product_of(grad, weight, None, ptr, not ctx.transposed)
    if ctx.needs_input_grad[1]:
        blocks = weight.size(1) if weight.dim() == 4 else 0
        grad_weight = _outer_of(*((grad, x) if ctx.transposed else (x, grad)), ptr, blocks)
    if ctx.has_bias and ctx.needs_input_grad[2]:
        grad_bias = _outer_of(grad.new_ones(grad.size(0), 1), grad, ptr, 0).squeeze(1)
    return grad_x, grad_weight, grad_bias, None, None


def _outer_setup(ctx, inputs, output):
    ctx.save_for_backward(*inputs[:3])


def _outer_backward(ctx, grad):
    x, y, ptr = ctx.saved_tensors
    grad_x = _product_of(y, grad, None, ptr, True) if ctx.needs_input_grad[0] else None
    grad_y = _product_of(x, grad, None, ptr, False) if ctx.needs_input_grad[1] else None
    return grad_x, grad_y, None, None


product = autograd("grouped_product", _product_setup, _product_backward)
outer = autograd("grouped_outer", _outer_setup, _outer_backward)
