# SPDX-License-Identifier: Apache-2.0
"""What a batch of graphs has for each graph: PyG's pooling functions on tessera's kernels."""

from __future__ import annotations

import torch_geometric.nn as pyg
from torch import Tensor

from .._checks import FLOATS
from .._derivatives import other_derivatives
from ..segments import scatter, segment_reduce
from ._scripted import Scripted


def _pooled(x: Tensor, batch: Tensor | None, size: int | None, reduce: str) -> Tensor:
    dim = -1 if x.dim() == 1 else -2
    if batch is not None:
        return scatter(x, batch, dim, size, reduce)
    keep = x.dim() <= 2
    if reduce == "max":
        return x.max(dim=dim, keepdim=keep)[0]
    return (x.sum if reduce == "sum" else x.mean)(dim=dim, keepdim=keep)


def global_add_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    """``torch_geometric.nn.global_add_pool`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.global_add_pool(torch.ones(3, 2), torch.tensor([0, 1, 1]))
        tensor([[1., 1.],
                [2., 2.]])
    """
    return _pooled(x, batch, size, "sum")


def global_mean_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    """``torch_geometric.nn.global_mean_pool`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.global_mean_pool(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 1, 1]))
        tensor([[1.],
                [3.]])
    """
    return _pooled(x, batch, size, "mean")


def global_max_pool(x: Tensor, batch: Tensor | None, size: int | None = None) -> Tensor:
    """``torch_geometric.nn.global_max_pool`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.global_max_pool(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 1, 1]))
        tensor([[1.],
                [4.]])
    """
    return _pooled(x, batch, size, "max")


_REDUCTIONS = {"sum": "sum", "add": "sum", "mean": "mean", "max": "max", "min": "min"}


class _OfGroups(Scripted):
    """An aggregation of PyG's whose reductions run on kernels, for a batch of graphs."""

    def reduce(self, x: Tensor, index: Tensor | None = None, ptr: Tensor | None = None, dim_size: int | None = None,
               dim: int = -2, reduce: str = "sum") -> Tensor:
        left_to_pyg = (other_derivatives() is not None or x.dtype not in FLOATS or reduce not in _REDUCTIONS
                       or (index is None if ptr is None else ptr.dim() != 1))
        if left_to_pyg:
            return super().reduce(x, index, ptr, dim_size, dim, reduce)  # type: ignore[misc]
        if ptr is not None:
            return segment_reduce(x, ptr, _REDUCTIONS[reduce], dim)
        return scatter(x, index, dim, dim_size, _REDUCTIONS[reduce])


class SumAggregation(_OfGroups, pyg.SumAggregation):
    """``torch_geometric.nn.SumAggregation`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.SumAggregation()(torch.ones(3, 1), torch.tensor([0, 1, 1]))
        tensor([[1.],
                [2.]])
    """


class MeanAggregation(_OfGroups, pyg.MeanAggregation):
    """``torch_geometric.nn.MeanAggregation`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.MeanAggregation()(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 1, 1]))
        tensor([[1.],
                [3.]])
    """


class MaxAggregation(_OfGroups, pyg.MaxAggregation):
    """``torch_geometric.nn.MaxAggregation`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.MaxAggregation()(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 1, 1]))
        tensor([[1.],
                [4.]])
    """


class MinAggregation(_OfGroups, pyg.MinAggregation):
    """``torch_geometric.nn.MinAggregation`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> tessera.nn.MinAggregation()(torch.tensor([[1.0], [2.0], [4.0]]), torch.tensor([0, 1, 1]))
        tensor([[1.],
                [2.]])
    """


AGGREGATIONS = (SumAggregation, MeanAggregation, MaxAggregation, MinAggregation)
