# SPDX-License-Identifier: Apache-2.0
"""Layers that multiply features by the graph's matrix, once or several times."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any, Callable

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor
from torch_geometric.utils import one_hot

from ..functional import autocast_off
from ..graph import Graph
from . import _gcn_norm
from ._base import Accelerated, for_pyg
from ._fused import linear_of
from .convolutions import edge_weights, is_list_of_edges

#: What multiplies features by a matrix.
Product = Callable[[Tensor], Tensor]


class Multiplying(Accelerated):
    """A layer that multiplies features by the graph's matrix: as it is, or normalised as GCN does it."""

    def _product(self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, *, normalize: bool = False,
                 add_self_loops: bool = False, norm_dtype: torch.dtype | None = None) -> Product | None:
        """What multiplies features by the matrix; None where PyG's code has to run. ``norm_dtype`` is the type of the
        matrix where edges have no weights: that of the features, if none is given."""
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and not isinstance(x, Tensor):
            obstacle = "a pair of features"
        if obstacle is None and normalize:
            obstacle = self._obstacle_of_cache(edge_index) if getattr(self, "cached", False) else None
            if obstacle is None and not isinstance(edge_index, (Tensor, Graph)):
                obstacle = "a SparseTensor"
        obstacle = obstacle or self._obstacle_of_weights(x, edge_index, edge_weight)
        if not self._notice(obstacle, x, edge_index):
            return None
        if normalize and getattr(self, "cached", False):
            edge_index, edge_weight = self._first_graph(edge_index, edge_weight, x.size(0), False, add_self_loops,
                                                        self.flow, x.dtype)
        graph = self._graph(edge_index, x.size(0), x.size(0))
        weight = edge_weights(edge_index, graph, edge_weight)
        dtype = (norm_dtype or x.dtype) if normalize and weight is None else None if weight is None else weight.dtype
        options: dict[str, Any] = {}
        if normalize:
            sums_loops = not is_list_of_edges(edge_index)
            options["loops"] = _gcn_norm.loops_of(add_self_loops, sums_loops)
            if weight is None:
                options["norm"] = "symmetric"
            else:
                weight = _gcn_norm.normalised(graph, weight.view(-1), x.dtype, add_self_loops, 1.0, sums_loops)
        elif weight is not None:
            weight = weight.view(-1)

        def multiply(features: Tensor) -> Tensor:
            # Numbers of a matrix that is not normalised may grow beyond what 16 bits of autocast hold.
            with nullcontext() if normalize else autocast_off(features):
                out = self._sum(graph, features, weight, **options)
            return out.to(features.dtype if dtype is None else torch.promote_types(features.dtype, dtype))

        return multiply


class LGConv(Multiplying, pyg.LGConv):
    """``torch_geometric.nn.LGConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.LGConv()
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        multiply = self._product(x, edge_index, edge_weight, normalize=self.normalize)
        if multiply is None:
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        return multiply(x)


class TAGConv(Multiplying, pyg.TAGConv):
    """``torch_geometric.nn.TAGConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.TAGConv(4, 2, K=2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        multiply = self._product(x, edge_index, edge_weight, normalize=self.normalize)
        if multiply is None:
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        linears = [linear_of(lin) for lin in self.lins]
        if all(linear is not None and linear[0].size(0) < linear[0].size(1) for linear in linears):
            # A polynomial of the matrix from its highest power on: what is multiplied by it has as few columns as results.
            out = self.lins[-1](x)
            for lin in list(self.lins)[-2::-1]:
                own = lin(x)
                out = multiply(out).to(own.dtype) + own
        else:
            out = self.lins[0](x)
            for lin in list(self.lins)[1:]:
                x = multiply(x)
                out = out + lin.forward(x)
        return out if self.bias is None else out + self.bias


class GCN2Conv(Multiplying, pyg.GCN2Conv):
    """``torch_geometric.nn.GCN2Conv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv, x = tessera.nn.GCN2Conv(4, alpha=0.1), torch.ones(3, 4)
        >>> conv(x, x, torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    def forward(self, x: Tensor, x_0: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        multiply = self._product(x, edge_index, edge_weight, normalize=self.normalize, add_self_loops=self.add_self_loops)
        if multiply is None:
            return super().forward(x, x_0, *for_pyg(edge_index, edge_weight))
        x = multiply(x) * (1 - self.alpha)
        start = self.alpha * x_0[:x.size(0)]
        scales = {"beta": 1.0 - self.beta, "alpha": self.beta}
        if self.weight2 is None:
            out = (x + start).to(x.dtype)
            return torch.addmm(out, out, self.weight1, **scales)
        return (torch.addmm(x, x, self.weight1, **scales)
                + torch.addmm(start, start, self.weight2, **scales))


def _side_by_side(stacks: Tensor) -> Tensor:
    """Matrices of several stacks as one, so that one product serves all."""
    return stacks.transpose(0, 1).flatten(1)


class ARMAConv(Multiplying, pyg.ARMAConv):
    """``torch_geometric.nn.ARMAConv`` on tessera's kernels; sparse matrices on PyG's code.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.ARMAConv(4, 2, num_stacks=3, num_layers=2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        multiply = self._product(x, edge_index, edge_weight, normalize=True)
        if multiply is None:
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        shape, out = (x.size(0), self.num_stacks, self.out_channels), x
        for t in range(self.num_layers):
            of_layer = 0 if self.shared_weights else t
            if t == 0:
                out = x @ _side_by_side(self.init_weight)
            else:
                stacks = out.view(shape).transpose(0, 1) @ self.weight[0 if self.shared_weights else t - 1]
                out = stacks.transpose(0, 1).flatten(1)
            own = F.dropout(x, p=self.dropout, training=self.training)
            out = multiply(out) + own @ _side_by_side(self.root_weight[of_layer])
            if self.bias is not None:
                out = out + self.bias[of_layer].view(-1)
            if self.act is not None:
                out = self.act(out)
        return out.view(shape).mean(dim=1)

    def _obstacle(self, x: Any, adjacency: Any) -> str | None:
        obstacle = super()._obstacle(x, adjacency)
        if obstacle is None and isinstance(adjacency, Tensor) and adjacency.layout != torch.strided:
            return "a sparse matrix, of which PyG's layer takes none"
        return obstacle


class GatedGraphConv(Multiplying, pyg.GatedGraphConv):
    """``torch_geometric.nn.GatedGraphConv`` on tessera's kernels: sum, mean, max and min.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GatedGraphConv(4, num_layers=2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    _reductions = ("sum", "mean", "max", "min")

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        multiply = self._product(x, edge_index, edge_weight)
        if multiply is None or x.size(-1) > self.out_channels:  # of which PyG's code says what is wrong
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        if x.size(-1) < self.out_channels:
            x = F.pad(x, (0, self.out_channels - x.size(-1)))
        for matrix in self.weight:
            x = _gated(self.rnn, multiply(x @ matrix), x)
        return x


def _gated(cell: torch.nn.GRUCell, x: Tensor, state: Tensor) -> Tensor:
    """The cell; in compiled code for a GPU by its formula, since torch's fused operator cannot be part of any."""
    return gru(cell, x, state) if x.is_cuda and torch.compiler.is_compiling() else cell(x, state)


def gru(cell: torch.nn.GRUCell, x: Tensor, state: Tensor) -> Tensor:
    """What the cell computes, of torch's other operators."""
    reset, update, new = F.linear(x, cell.weight_ih, cell.bias_ih).chunk(3, dim=1)
    own_reset, own_update, own_new = F.linear(state, cell.weight_hh, cell.bias_hh).chunk(3, dim=1)
    new = (new + (reset + own_reset).sigmoid() * own_new).tanh()
    return new + (update + own_update).sigmoid() * (state - new)


class LabelPropagation(Multiplying, pyg.LabelPropagation):
    """``torch_geometric.nn.LabelPropagation`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> model = tessera.nn.LabelPropagation(num_layers=2, alpha=0.5)
        >>> model(torch.tensor([0, 1, 1]), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    @torch.no_grad()
    def forward(self, y: Tensor, edge_index: Any, mask: Tensor | None = None, edge_weight: Tensor | None = None,
                post_step: Callable[[Tensor], Tensor] | None = None) -> Tensor:
        given = y
        if y.dtype == torch.long and y.size(0) == y.numel():
            y = one_hot(y.view(-1))
        multiply = self._product(y, edge_index, edge_weight, normalize=edge_weight is None, norm_dtype=torch.get_default_dtype())
        if multiply is None:
            edges, weight = for_pyg(edge_index, edge_weight)
            return super().forward(given, edges, mask, weight, post_step)
        out = y
        if mask is not None:
            out = torch.zeros_like(y)
            out[mask] = y[mask]
        kept = (1 - self.alpha) * out
        for _ in range(self.num_layers):
            out = multiply(out).mul_(self.alpha).add_(kept)
            out = out.clamp_(0.0, 1.0) if post_step is None else post_step(out)
        return out
