# SPDX-License-Identifier: Apache-2.0
"""The shapes and types of the operators' results, for code that is compiled or exported."""

from __future__ import annotations

import torch
from torch import Tensor

from ._schemas import definitions

ADDED_LOOPS = (1, 3)  # one_each, one_more


def caller_edges(index: Tensor, targets: int, sources: int, loops: int) -> int:
    """How many values a caller has for edges: those given, then one for each added loop."""
    edges = index.size(-1)
    return edges + torch.sym_min(targets, sources) if loops in ADDED_LOOPS else edges


def _fake(name: str):
    def register(function):
        for twin in (name, f"{name}_run"):
            torch.library.register_fake(f"tessera::{twin}", function, lib=definitions)

    return register


@_fake("spmm")
def _(x, index, offsets, weight, bias, targets, sources, layout, loops, loop_weight, norm, reduce,
      flags):
    shape = (targets, x.size(1))
    winners = [x.new_empty(shape, dtype=torch.int32)] if reduce >= 2 else []
    return [x.new_empty(shape), *winners]


@_fake("spmm_backward")
def _(grad, x, winners, index, offsets, weight, targets, sources, layout, loops, loop_weight, norm,
      reduce, flags, need_x, need_weight):
    grad_x = [grad.new_empty((sources, grad.size(1)))] if need_x else []
    return grad_x + ([weight.new_empty((weight.numel(),))] if need_weight else [])


CAST = {torch.bfloat16: 8, torch.float16: 16}  # bits of flags, of layers under autocast
WIDE = 64  # beside them: results are fp32
KEEP_SUMS = 128  # of gat: one more result, where its backward run has a use for it


def _layer_dtype(x: Tensor, flags: int) -> torch.dtype:
    return next((dtype for dtype, bit in CAST.items() if flags & bit), x.dtype)


def _result_dtype(x: Tensor, flags: int) -> torch.dtype:
    return torch.float32 if flags & WIDE else _layer_dtype(x, flags)


def joined(root: Tensor | None, root_weight: Tensor | None, sum_first: bool) -> bool:
    """Whether the same features are multiplied by both matrices of spmm_linear: it is done at once, and
    so are the gradients of the matrices."""
    return root is None and root_weight is not None and not sum_first


@_fake("spmm_linear")
def _(x, weight, root, root_weight, bias, own_scale, edge_weight, index, offsets, targets, sources,
      layout, loops, loop_weight, norm, reduce, sum_first, flags):
    dtype = _layer_dtype(x, flags)
    both = joined(root, root_weight, sum_first)
    results = [x.new_empty((targets, weight.size(0)), dtype=_result_dtype(x, flags))]
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


@_fake("pair_dot")
def _(sources, targets, pairs):
    return sources.new_empty((pairs.size(1),))


@_fake("pair_dot_backward")
def _(grad, sources, targets, pairs, need_sources, need_targets):
    return [matrix.new_empty(matrix.shape) for matrix, needed in ((sources, need_sources), (targets, need_targets))
            if needed and matrix is not None]


@_fake("pair_sum")
def _(sources, targets, pairs):
    return sources.new_empty((pairs.size(1), sources.size(1)))


@_fake("pair_sum_backward")
def _(grad, pairs, sources, targets, are_one, need_sources, need_targets):
    return [grad.new_empty((rows, grad.size(1))) for rows, needed in
            ((sources, need_sources), (targets, need_targets and not are_one)) if needed]


@_fake("pair_loss")
def _(positives, negatives, kind, margin):
    return [positives.new_empty(()), positives.new_empty((positives.size(0) + negatives.size(0),))]


@_fake("pair_loss_backward")
def _(grad, slopes, positives, negatives):
    return slopes.new_empty(slopes.shape)


@_fake("messages")
def _(x, edge_features, index, offsets, targets, sources, layout, loops, message, flags):
    return x.new_empty((targets, x.size(1)))


@_fake("messages_backward")
def _(grad, x, edge_features, index, offsets, targets, sources, layout, loops, message, flags, need_x, need_edges):
    return [tensor.new_empty(tensor.shape) for tensor, needed in ((x, need_x), (edge_features, need_edges)) if needed]


@_fake("edge_softmax")
def _(scores, index, offsets, targets, sources, layout, loops, flags):
    return scores.new_empty(scores.shape)


@_fake("edge_softmax_backward")
def _(weights, grad, index, offsets, targets, sources, layout, loops, flags):
    return weights.new_empty(weights.shape)


def _sum_dtype(value: Tensor) -> torch.dtype:
    return torch.float64 if value.dtype == torch.float64 else torch.float32


@_fake("attention")
def _(target, source, value, vector, edge_term, seed, index, offsets, targets, sources, layout, loops,
      form, heads, scale, slope, dropout, flags):
    output = value.new_empty((targets, value.size(1)))
    return output, value.new_empty((targets, heads), dtype=_sum_dtype(value))


@_fake("attention_backward")
def _(grad, output, log_sum, target, source, value, vector, edge_term, seed, index, offsets, targets,
      sources, layout, loops, form, heads, scale, slope, dropout, flags):
    shapes = [target.shape, source.shape, value.shape]
    shapes += [] if vector is None else [(vector.numel(),)]
    shapes += [] if edge_term is None else [edge_term.shape]
    return [value.new_empty(shape) for shape in shapes]


def keeps_sums(bias: Tensor | None, flags: int) -> bool:
    """Whether gat and gatv2 return their sums behind the results, which are something else."""
    return bias is not None or bool(flags & WIDE)


@_fake("gat")
def _(x, weight, att_src, att_dst, bias, seed, index, offsets, targets, sources, layout, loops,
      heads, slope, dropout, flags):
    features, dtype = weight.size(0), _layer_dtype(x, flags)
    shapes = [(targets, features)] * (2 if keeps_sums(bias, flags) else 1)
    shapes += [(sources, features), (sources, 2 * heads), (targets, heads), (2 * heads, features)]
    results = [x.new_empty(shape, dtype=dtype) for shape in shapes]
    results[-2] = results[-2].to(_sum_dtype(results[-2]))
    results[0] = results[0].to(_result_dtype(x, flags))
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


@_fake("gatv2")
def _(x, source_weight, source_bias, target_weight, target_bias, att, bias, seed, index, offsets,
      targets, sources, layout, loops, heads, slope, dropout, flags):
    features, dtype = source_weight.size(0), _layer_dtype(x, flags)
    shapes = [(targets, features)] * (2 if keeps_sums(bias, flags) else 1)
    shapes += [(sources, 2 * features), (targets, heads), (2 * features, x.size(1))]
    results = [x.new_empty(shape, dtype=dtype) for shape in shapes]
    results[-2] = results[-2].to(_sum_dtype(results[-2]))
    results[0] = results[0].to(_result_dtype(x, flags))
    if att.dtype != dtype:
        results.append(x.new_empty((1, att.numel()), dtype=dtype))
    if x.dtype != dtype:
        results.append(x.new_empty(x.shape, dtype=dtype))
    return results


@_fake("gatv2_backward")
def _(grad, x, source_weight, att, seed, output, kept, index, offsets, targets, sources, layout, loops,
      heads, slope, dropout, flags, needs):
    features = source_weight.size(0)
    shapes = (x.shape, (2 * features, x.size(1)), (2 * features,), (features,), (features,))
    return [(x if bit == 0 else source_weight).new_empty(shape) for bit, shape in enumerate(shapes)
            if needs >> bit & 1]


@_fake("grouped_product")
def _(x, weight, bias, ptr, transposed):
    blocks = weight.size(1) if weight.dim() == 4 else 1
    return x.new_empty((x.size(0), blocks * weight.size(-2 if transposed else -1)))


@_fake("grouped_outer")
def _(x, y, ptr, blocks):
    parts = max(blocks, 1)
    shape = (parts, x.size(1) // parts, y.size(1) // parts)
    return x.new_empty((ptr.size(0) - 1, *(shape if blocks > 0 else shape[1:])))


@_fake("group_order")
def _(index, groups):
    numbers = index.new_empty(index.shape, dtype=torch.int64)
    return numbers, torch.empty_like(numbers), numbers.new_empty((groups + 1,), device="cpu")


@_fake("relation_pairs")
def _(targets, relations, num_targets, num_relations):
    of_edges = relations.new_empty(relations.shape, dtype=torch.int64)
    found = of_edges.new_empty((torch.library.get_ctx().new_dynamic_size(),))
    return of_edges, found, of_edges.new_empty((num_relations + 1,), device="cpu")


@_fake("attention_weights")
def _(target, source, value, log_sum, vector, index, offsets, targets, sources, layout, loops, form,
      heads, scale, slope, flags):
    return value.new_empty((caller_edges(index, targets, sources, loops), heads))
