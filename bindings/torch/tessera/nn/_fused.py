# SPDX-License-Identifier: Apache-2.0
"""Layers as one operator: products with matrices, sums over neighbours and biases, with their
derivatives. Compiled code takes them apart, so that torch's compiler sees the products."""

from __future__ import annotations

import torch
import torch.nn.modules.module as modules
from torch import Tensor
from torch_geometric.nn.dense.linear import Linear

from .. import _layer_operators, errors
from .._operators import PLAIN
from ..functional import _flags, autocast_dtype, dropout_seed
from ..graph import Graph

_LINEAR = (Linear, torch.nn.Linear)


def matrix_of(lin: torch.nn.Module) -> Tensor | None:
    """The matrix of a linear layer that is that and no more: nobody looks on, and nothing has taken
    its place. None for all others, which have to be called."""
    if type(lin) not in _LINEAR or modules._global_forward_hooks or modules._global_forward_pre_hooks:
        return None
    if (lin._forward_hooks or lin._forward_pre_hooks or lin._backward_hooks
            or lin._backward_pre_hooks):
        return None  # PyG's layers without a size have such a hook until they have one
    weight = lin._parameters.get("weight")
    return weight if type(weight) in PLAIN else None


def _checked(graph: Graph, x: Tensor) -> torch.device:
    """The device of both, where they fit each other."""
    device = x.device
    if device != graph.index.device:
        raise ValueError(f"x lies on {device}, the graph on {graph.index.device}: move one of them")
    if x.size(0) != graph.num_sources:
        raise ValueError(f"x has {x.size(0)} rows for {graph.num_sources} vertices")
    return device


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
) -> Tensor:
    """``B x weight^T + root root_weight^T + bias``, with ``B`` the graph's matrix, or that plus
    ``1 + own_scale`` on its diagonal. Without a ``root``, that is ``x``."""
    device = _checked(graph, x)
    outputs, inputs = weight.shape
    # The sum and the product commute: what has the narrower sums goes first. A backward pass sums
    # once more, unless nobody wants the gradient of features that were summed first.
    only_forward = not x.requires_grad and torch.is_grad_enabled()
    sum_first = inputs < (2 * outputs if only_forward else outputs)
    return errors.direct(
        _layer_operators.spmm_linear, x, weight, root, root_weight, bias, own_scale, edge_weight,
        graph.index, graph.offsets,
        (graph.num_targets, graph.num_sources, graph.layout, loops, loop_weight, norm, reduce,
         sum_first, _flags(tune, device)),
        autocast_dtype(x),
    )


def gat(
    graph: Graph,
    x: Tensor,
    weight: Tensor,
    att_src: Tensor,
    att_dst: Tensor,
    bias: Tensor | None,
    *,
    loops: int,
    heads: int,
    negative_slope: float,
    dropout: float = 0.0,
    tune: bool = False,
) -> Tensor:
    """GAT's layer, heads side by side, on a graph whose targets are its sources."""
    device = _checked(graph, x)
    seed = dropout_seed(device) if dropout > 0 else None
    return errors.direct(
        _layer_operators.gat, x, weight, att_src, att_dst, bias, seed, graph.index, graph.offsets,
        (graph.num_targets, graph.num_sources, graph.layout, loops, heads, negative_slope, dropout,
         _flags(tune, device)),
        autocast_dtype(x),
    )
