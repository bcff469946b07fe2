# SPDX-License-Identifier: Apache-2.0
"""Layers as one operator: products with matrices, sums over neighbours and biases, with their
derivatives."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from .. import _layer_operators, errors
from .._derivatives import PLAIN
from .._shapes import CAST, WIDE
from .._torch_names import global_hooks
from ..functional import TUNE, autocast_dtype, dropout_seed, tf32_flag
from ..graph import Graph

LINEAR = (Linear, torch.nn.Linear)


def linear_of(lin: torch.nn.Module) -> tuple[Tensor, Tensor | None] | None:
    """The matrix and bias of a linear layer that is that and no more: nobody looks on, and nothing has
    taken its place. None for all others, which have to be called."""
    if type(lin) not in LINEAR or any(global_hooks):
        return None
    own = lin.__dict__
    if (own["_forward_hooks"] or own["_forward_pre_hooks"] or own["_backward_hooks"]
            or own["_backward_pre_hooks"] or "forward" in own):
        return None  # PyG's layers without a size have such a hook until they have one
    parameters = own["_parameters"]
    weight = parameters.get("weight")
    return (weight, parameters["bias"]) if type(weight) in PLAIN else None


def _layer_flags(graph: Graph, x: Tensor, tune: bool, wide: bool = False) -> int:
    """Flags of a layer's operator, which casts for autocast itself, once graph and features fit."""
    if x.device != graph.index.device:
        raise ValueError(f"edge_index lies on {graph.index.device}, x on {x.device}: use edge_index.to({str(x.device)!r})")
    if not torch.compiler.is_compiling() and x.size(0) != graph.num_sources:
        raise ValueError(f"x has {x.size(0)} rows for {graph.num_sources} vertices: use one for each")
    return (TUNE if tune else 0) | autocast_flags(x, wide) | (tf32_flag() if x.is_cuda else 0)


def autocast_flags(x: Tensor, wide: bool) -> int:
    """What tells a layer's operator which type autocast wants, and whether results are fp32 all the same."""
    cast = CAST.get(autocast_dtype(x), 0)
    return cast | WIDE if cast and wide else cast


def as_pyg_returns(out: Tensor) -> Tensor:
    """What a layer returns that is fp32 in PyG under autocast, since something in fp32 enters it."""
    return out if autocast_dtype(out) is None else out.float()


def sums_go_first(x: Tensor, outputs: int, inputs: int) -> bool:
    """Sum and product commute: what has the narrower sums goes first. A backward pass sums once more,
    unless nobody wants the gradient of features that were summed first."""
    only_forward = not x.requires_grad and torch.is_grad_enabled()
    return inputs < (2 * outputs if only_forward else outputs)


def _called(op: Any, function: Any, tensors: tuple, numbers: tuple) -> Tensor:
    """Compiled code calls the operator itself."""
    if torch.compiler.is_compiling():
        return op(*tensors, *numbers)[0]
    return errors.direct(function, *tensors, numbers)


def linear_sum(
    graph: Graph,
    x: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    *,
    root: Tensor | None = None,
    root_weight: Tensor | None = None,
    own_scale: Tensor | None = None,
    edge_weight: Tensor | None = None,
    loops: int = 0,
    loop_weight: float = 1.0,
    norm: int = 0,
    reduce: int = 0,
    tune: bool = False,
    wide: bool = False,
) -> Tensor:
    """``B x weight^T + root root_weight^T + bias``, with ``B`` the graph's matrix, or that plus
    ``1 + own_scale`` on its diagonal. Without a ``root``, that is ``x``. ``wide``: fp32 under autocast, too."""
    flags = _layer_flags(graph, x, tune, wide)
    return _called(
        _layer_operators.spmm_linear_op, _layer_operators.spmm_linear,
        (x, weight, root, root_weight, bias, own_scale, edge_weight, graph.index, graph.offsets),
        (graph.num_targets, graph.num_sources, graph.layout, loops, loop_weight, norm, reduce,
         sums_go_first(x, *weight.shape), flags),
    )


def gin(graph: Graph, x: Tensor, first: tuple[Tensor, Tensor | None], last: tuple[Tensor, Tensor | None],
        own_scale: Tensor, *, reduce: int, tune: bool = False) -> Tensor:
    """GIN with the usual network: two linear layers, their matrices and biases, with a ReLU between them."""
    flags = _layer_flags(graph, x, tune)
    return _called(
        _layer_operators.gin_op, _layer_operators.gin,
        (x, *first, *last, own_scale, graph.index, graph.offsets),
        (graph.num_targets, graph.num_sources, graph.layout, 0, reduce, sums_go_first(x, *first[0].shape), flags),
    )


def _attention_layer(op: Any, function: Any, graph: Graph, x: Tensor, parameters: tuple, *, loops: int, heads: int,
                     negative_slope: float, dropout: float = 0.0, tune: bool = False) -> Tensor:
    """A layer of attention, heads side by side, on a graph whose targets are its sources. Under autocast results are
    fp32: so are PyG's, whose softmax is."""
    flags = _layer_flags(graph, x, tune, wide=True)
    seed = dropout_seed(x.device) if dropout > 0 else None
    return _called(
        op, function, (x, *parameters, seed, graph.index, graph.offsets),
        (graph.num_targets, graph.num_sources, graph.layout, loops, heads, negative_slope, dropout,
         flags),
    )


def gat(graph: Graph, x: Tensor, weight: Tensor, att_src: Tensor, att_dst: Tensor, bias: Tensor | None,
        **options: Any) -> Tensor:
    """GAT's layer. The options are those of a layer of attention."""
    return _attention_layer(_layer_operators.gat_op, _layer_operators.gat, graph, x,
                            (weight, att_src, att_dst, bias), **options)


def gatv2(graph: Graph, x: Tensor, source_weight: Tensor, source_bias: Tensor | None, target_weight: Tensor,
          target_bias: Tensor | None, att: Tensor, bias: Tensor | None, **options: Any) -> Tensor:
    """GATv2's layer."""
    return _attention_layer(_layer_operators.gatv2_op, _layer_operators.gatv2, graph, x,
                            (source_weight, source_bias, target_weight, target_bias, att, bias), **options)
