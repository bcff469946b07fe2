# SPDX-License-Identifier: Apache-2.0
"""What a batch of graphs has for each graph: PyG's pooling functions on tessera's kernels."""

from __future__ import annotations

from torch import Tensor

from ..segments import scatter


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
