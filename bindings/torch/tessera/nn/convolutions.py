# SPDX-License-Identifier: Apache-2.0
"""Layers that are sums, means or maxima over neighbours."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor

from ..functional import REDUCTIONS, autocast_dtype, spmm
from ..graph import LOOPS, NORMS, Graph
from . import _gcn_norm
from ._base import Accelerated, for_pyg, sizes
from ._fused import gin, linear_of, linear_sum


def is_list_of_edges(adjacency: Any) -> bool:
    """True for an edge_index; sparse matrices treat existing self loops in another way."""
    if isinstance(adjacency, Graph):
        return adjacency.offsets is None
    return isinstance(adjacency, Tensor) and adjacency.layout == torch.strided


_SUMS = ("sum", "mean")


def _without_values(adjacency: Any, graph: Graph) -> Graph:
    """Where PyG sums without weights, it drops those of its SparseTensor, but not those of ``torch.sparse``."""
    return graph if isinstance(adjacency, (Tensor, Graph)) else graph.without_weight()


def edge_weights(adjacency: Any, graph: Graph, edge_weight: Tensor | None) -> Tensor | None:
    """Those that were given, or the graph's; of sparse matrices PyG takes their values alone."""
    given = edge_weight is not None and (isinstance(adjacency, Graph) or is_list_of_edges(adjacency))
    return edge_weight if given else graph.weight


class GCNConv(Accelerated, pyg.GCNConv):
    """``torch_geometric.nn.GCNConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GCNConv(4, 2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)):
            obstacle = "a pair of features"
        if obstacle is None:
            obstacle = self._obstacle_of_cache(edge_index)
        if obstacle is None and not isinstance(edge_index, (Tensor, Graph)):
            obstacle = "a SparseTensor"
        obstacle = obstacle or self._obstacle_of_weights(x, edge_index, edge_weight)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        edge_index, edge_weight = self._first_graph(
            edge_index, edge_weight, x.size(0), self.improved, self.add_self_loops, self.flow,
            x.dtype)
        graph = self._graph(edge_index, x.size(0), x.size(0))
        weight = edge_weights(edge_index, graph, edge_weight)
        sums_loops = not is_list_of_edges(edge_index)
        # PyG gives loops the weight 1 where an edge_index comes without weights.
        doubled = self.improved and (sums_loops or weight is not None)
        options = dict(add_self_loops=bool(self.add_self_loops), sums_loops=sums_loops,
                       loop_weight=2.0 if doubled else 1.0)
        wide = self._multiplies_wide(x, weight)
        linear = self._linear(self.lin, weight, biased=False)
        if linear is not None:
            loops, norm = "given", None
            if self.normalize:
                loops = _gcn_norm.loops_of(options["add_self_loops"], sums_loops)
                if weight is None:
                    norm = "symmetric"
                else:
                    weight = _gcn_norm.normalised(graph, weight.view(-1), x.dtype, **options)
            matrix = {"loops": LOOPS[loops], "norm": NORMS[norm],
                      "loop_weight": options["loop_weight"] if norm is not None else 1.0}
            out = linear_sum(graph, x, linear[0], self.bias, edge_weight=weight,
                             tune=self._tessera_tune, wide=wide, **matrix)
            if weight is None and not self.cached:
                self._keep_sum(x, edge_index, self.lin, reduce=0, biased=self, wide=wide, **matrix)
            return out
        x = self.lin(x)
        dtype = x.dtype
        wide = wide and autocast_dtype(x) is not None
        bias = self.bias if self._tessera_dtype is None and not wide else None
        narrow = self._narrowed(x)
        if self.normalize:
            out = _gcn_norm.propagate(graph, narrow, weight, bias=bias, tune=self._tessera_tune,
                                      **options)
        else:
            out = spmm(graph, narrow, weight, bias=bias, tune=self._tessera_tune)
        if bias is None and (wide or self.bias is not None):
            out = out.to(torch.float32 if wide else dtype)
            return out if self.bias is None else out + self.bias
        return out

    def _multiplies_wide(self, x: Tensor, weight: Tensor | None) -> bool:
        """Whether PyG multiplies or adds something in fp32 to what autocast made 16 bits, and returns fp32."""
        factor = x if weight is None else weight  # whose type the degrees' roots have
        return (self.bias is not None and self.bias.dtype == torch.float32
                or (weight is not None or self.normalize) and factor.dtype == torch.float32)


class SumsBesideOwn(Accelerated):
    """A layer that multiplies sums over neighbours by a matrix, and adds what a vertex has itself, times another."""

    _reductions = ("sum", "mean", "max", "min")

    def _obstacle_of_sums(self, x: Any, edge_index: Any) -> str | None:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)) and self.flow != "source_to_target":
            obstacle = "a reversed flow with a pair of features"
        return obstacle

    def _sums_beside_own(self, graph: Graph, sources: Tensor, targets: Tensor | None, lin: torch.nn.Module,
                         root: torch.nn.Module | None, weight: Tensor | None) -> tuple[Tensor, bool]:
        """The result, and whether one operator made it."""
        reduce = self._reduction()
        root = None if targets is None else root
        out = self._in_one(graph, sources, targets, reduce, lin, root, weight) if reduce in _SUMS else None
        if out is not None:
            return out, True
        return self._step_by_step(graph, sources, targets, reduce, lin, root, weight), False

    def _in_one(self, graph: Graph, sources: Tensor, targets: Tensor | None, reduce: str, lin: torch.nn.Module,
                root: torch.nn.Module | None, weight: Tensor | None) -> Tensor | None:
        """By one operator, where that can be."""
        linear = self._linear(lin, weight)
        of_root = (None, None) if root is None else self._linear(root, biased=False)
        if linear is None or of_root is None:
            return None
        own = None if root is None or targets is sources else targets
        return linear_sum(graph, sources, *linear, root=own, root_weight=of_root[0], edge_weight=weight,
                          reduce=REDUCTIONS[reduce], tune=self._tessera_tune)

    def _step_by_step(self, graph: Graph, sources: Tensor, targets: Tensor | None, reduce: str, lin: torch.nn.Module,
                      root: torch.nn.Module | None, weight: Tensor | None) -> Tensor:
        def aggregate(x: Tensor, **bias: Tensor | None) -> Tensor:
            return self._sum(graph, x, weight, **bias)

        # A matrix product and a sum over neighbours commute: the narrower side goes first.
        linear = linear_of(lin) if reduce in _SUMS else None
        dtype = sources.dtype
        if linear is not None and 0 < linear[0].size(0) < linear[0].size(1):
            matrix, bias = linear
            moved = F.linear(sources, matrix)
            if self._tessera_dtype is None:
                out = aggregate(moved, bias=bias)
            else:
                out = aggregate(moved).to(moved.dtype)
                out = out if bias is None else out + bias
        else:
            out = lin(self._widened(aggregate(sources), dtype))
        return out if root is None else out + root(targets)


class SAGEConv(SumsBesideOwn, pyg.SAGEConv):
    """``torch_geometric.nn.SAGEConv`` on tessera's kernels: sum, mean, max and min.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.SAGEConv(4, 2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        if not self._notice(self._obstacle_of_sums(x, edge_index), x, edge_index):
            return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], size)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        if self.project and hasattr(self, "lin"):
            sources = self.lin(sources).relu()
        graph = _without_values(edge_index, self._graph(edge_index, *sizes(x, size)))
        root = self.lin_r if self.root_weight else None
        out, in_one = self._sums_beside_own(graph, sources, targets, self.lin_l, root, graph.weight)
        if in_one and sources is x and graph.weight is None and not self.normalize:
            self._keep_sum(x, edge_index, self.lin_l, 0, 1.0, 0, REDUCTIONS[self._reduction()], root=root)
        return F.normalize(out, p=2.0, dim=-1) if self.normalize else out


class GraphConv(SumsBesideOwn, pyg.GraphConv):
    """``torch_geometric.nn.GraphConv`` on tessera's kernels: sum, mean, max and min.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GraphConv(4, 2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Any, edge_index: Any, edge_weight: Tensor | None = None, size: Any = None) -> Tensor:
        way = self._known_way(x, edge_index) if edge_weight is None and size is None else None
        if way is not None:
            return way.run(x, edge_index)
        obstacle = self._obstacle_of_sums(x, edge_index) or self._obstacle_of_weights(x, edge_index, edge_weight)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, *for_pyg(edge_index, edge_weight), size)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        graph = self._graph(edge_index, *sizes(x, size))
        weight = edge_weights(edge_index, graph, edge_weight)
        weight = None if weight is None else weight.view(-1)
        out, in_one = self._sums_beside_own(graph, sources, targets, self.lin_rel, self.lin_root, weight)
        if in_one and sources is x and weight is None:
            self._keep_sum(x, edge_index, self.lin_rel, 0, 1.0, 0, REDUCTIONS[self._reduction()], root=self.lin_root)
        return out


def first_of(network: torch.nn.Module) -> tuple[torch.nn.Module | None, list[torch.nn.Module]]:
    """The first layer of a plain sequence that nobody looks at, and the others."""
    if type(network) is not torch.nn.Sequential:
        return network, []
    watched = (network._forward_hooks or network._forward_pre_hooks or network._backward_hooks
               or network._backward_pre_hooks or "forward" in network.__dict__)
    modules = list(network._modules.values())
    return (None, []) if watched or not modules else (modules[0], modules[1:])


def _last_after_relu(modules: list[torch.nn.Module]) -> tuple[Tensor, Tensor | None] | None:
    """The matrix and bias of a linear layer that nothing but a ReLU stands before and nothing after."""
    if len(modules) != 2 or type(modules[0]) is not torch.nn.ReLU:
        return None
    relu = modules[0].__dict__
    watched = (relu["_forward_hooks"] or relu["_forward_pre_hooks"] or relu["_backward_hooks"]
               or relu["_backward_pre_hooks"] or "forward" in relu)
    return None if watched else linear_of(modules[1])


class GINConv(Accelerated, pyg.GINConv):
    """``torch_geometric.nn.GINConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GINConv(torch.nn.Linear(4, 2))
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    _reductions = ("sum", "mean", "max", "min")

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)) and self.flow != "source_to_target":
            obstacle = "a reversed flow with a pair of features"
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], size)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        graph = _without_values(edge_index, self._graph(edge_index, *sizes(x, size)))
        reduce = self._reduction()
        if sources is targets and reduce in _SUMS:
            first, rest = first_of(self.nn)
            out = None if first is None else self._through(first, rest, graph, sources, edge_index, reduce)
            if out is not None:
                return out
        out = spmm(graph, self._narrowed(sources), reduce=reduce, tune=self._tessera_tune)
        out = self._widened(out, sources.dtype)
        if targets is not None:
            out = out + (1 + self.eps) * targets
        return self.nn(out)

    def _through(self, first: torch.nn.Module, rest: list[torch.nn.Module], graph: Graph, x: Tensor,
                 edge_index: Any, reduce: str) -> Tensor | None:
        """What the network makes of the sums, where they commute with its first layer."""
        eps = self.eps
        linear = None if eps.requires_grad or graph.weight is not None else self._linear(first)
        if linear is not None:
            options = {"reduce": REDUCTIONS[reduce], "tune": self._tessera_tune}
            last = _last_after_relu(rest)
            out = (linear_sum(graph, x, *linear, own_scale=eps, **options) if last is None
                   else gin(graph, x, linear, last, eps, **options))
            if "eps" in self._buffers:
                self._keep_sum(x, edge_index, first, 0, 1.0, 0, REDUCTIONS[reduce], scaled=True,
                               sequence=self.nn if self.nn is not first else None)
            if last is not None:
                return out
        else:
            linear = linear_of(first)
            if linear is None or linear[0].size(0) >= linear[0].size(1):
                return None
            matrix, bias = linear
            moved = F.linear(x, matrix)
            out = spmm(graph, self._narrowed(moved), reduce=reduce, tune=self._tessera_tune)
            out = self._widened(out, moved.dtype) + (1 + eps) * moved
            out = (out if bias is None else out + bias).to(moved.dtype)  # autocast leaves eps and bias wide
        for module in rest:
            out = module(out)
        return out


class SGConv(Accelerated, pyg.SGConv):
    """``torch_geometric.nn.SGConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.SGConv(4, 2, K=2)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and not isinstance(edge_index, (Tensor, Graph)):
            obstacle = "a SparseTensor"
        obstacle = obstacle or self._obstacle_of_weights(x, edge_index, edge_weight)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        if self._cached_x is not None:
            return self.lin(self._cached_x.detach())
        graph = self._graph(edge_index, x.size(0), x.size(0))
        dtype = x.dtype
        x = self._narrowed(x)
        for _ in range(self.K):
            x = _gcn_norm.propagate(
                graph, x, edge_weights(edge_index, graph, edge_weight), add_self_loops=self.add_self_loops,
                loop_weight=1.0, sums_loops=not is_list_of_edges(edge_index),
                tune=self._tessera_tune,
            )
        x = x.to(dtype)
        if self.cached:
            self._cached_x = x
        return self.lin(x)


class APPNP(Accelerated, pyg.APPNP):
    """``torch_geometric.nn.APPNP`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.APPNP(K=3, alpha=0.1)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and self.dropout > 0 and self.training:
            obstacle = "dropout of edges"
        if obstacle is None:
            obstacle = self._obstacle_of_cache(edge_index)
        if obstacle is None and not isinstance(edge_index, (Tensor, Graph)):
            obstacle = "a SparseTensor"
        obstacle = obstacle or self._obstacle_of_weights(x, edge_index, edge_weight)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, *for_pyg(edge_index, edge_weight))
        edge_index, edge_weight = self._first_graph(
            edge_index, edge_weight, x.size(0), False, self.add_self_loops, self.flow, x.dtype)
        graph = self._graph(edge_index, x.size(0), x.size(0))
        weight = edge_weights(edge_index, graph, edge_weight)
        start = x
        for _ in range(self.K):
            narrow = self._narrowed(x)
            if self.normalize:
                moved = _gcn_norm.propagate(
                    graph, narrow, weight, add_self_loops=self.add_self_loops, loop_weight=1.0,
                    sums_loops=not is_list_of_edges(edge_index), tune=self._tessera_tune,
                )
            else:  # numbers grow from step to step, and 16 bits of autocast would not hold them
                with torch.autocast(x.device.type, enabled=False):
                    moved = spmm(graph, narrow, weight, tune=self._tessera_tune)
            x = moved.to(start.dtype) * (1 - self.alpha) + self.alpha * start
        return x


class ChebConv(Accelerated, pyg.ChebConv):
    """``torch_geometric.nn.ChebConv`` on tessera's kernels, with ``normalization='sym'``.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.ChebConv(4, 2, K=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(
        self,
        x: Tensor,
        edge_index: Any,
        edge_weight: Tensor | None = None,
        batch: Tensor | None = None,
        lambda_max: Any = None,
    ) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and self.normalization != "sym":
            obstacle = f"the normalisation {self.normalization}"
        if obstacle is None and batch is not None:
            obstacle = "a largest eigenvalue for each graph of a batch"
        if obstacle is None and self.flow != "source_to_target":
            obstacle = "a reversed flow"
        obstacle = obstacle or self._obstacle_of_weights(x, edge_index, edge_weight)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, *for_pyg(edge_index, edge_weight), batch, lambda_max)
        graph = self._graph(edge_index, x.size(0), x.size(0))
        weight = edge_weights(edge_index, graph, edge_weight)
        by_messages = self._tessera_dtype is None and _gcn_norm.few_messages(graph, x)
        if by_messages and weight is None:
            weight = x.new_ones(graph.num_edges)
        entries = None if weight is None else _gcn_norm.by_sources(graph, weight.view(-1))
        if lambda_max is None and entries is not None:
            # Twice the largest entry of L: 1 stands on its diagonal, and the others are negative
            # unless weights are.
            least = torch.cat([entries, entries.new_full((1,), -1.0)]).min()
            lambda_max = -2.0 * least.to(x.dtype)
        elif lambda_max is not None and not isinstance(lambda_max, Tensor):
            lambda_max = torch.tensor(lambda_max, dtype=x.dtype)

        # 2 L / lambda_max - I has one number on its whole diagonal. Without weights the largest entry of L is
        # 1, so that PyG's default for lambda_max is 2, and that number 0.
        scale = 1.0 if lambda_max is None else 2.0 / lambda_max
        if entries is not None:
            entries = -(2.0 * entries) / lambda_max

        def laplacian(features: Tensor) -> Tensor:
            """(2 L / lambda_max - I) x."""
            narrow = self._narrowed(features)
            if entries is None:
                moved = -scale * spmm(graph, narrow, loops="dropped", norm="symmetric_by_source",
                                      tune=self._tessera_tune).to(features.dtype)
            elif by_messages:
                moved = _gcn_norm.sum_of_messages(graph, features, entries)
            else:
                moved = spmm(graph, narrow, entries.to(narrow.dtype), loops="dropped",
                             tune=self._tessera_tune).to(features.dtype)
            return moved if lambda_max is None else moved + (scale - 1.0) * features

        before, now = x, x
        out = self.lins[0](before)
        if len(self.lins) > 1:
            now = laplacian(x)
            out = out + self.lins[1](now)
        for lin in self.lins[2:]:
            after = 2.0 * laplacian(now) - before
            out = out + lin(after)
            before, now = now, after
        return out if self.bias is None else out + self.bias


class ClusterGCNConv(Accelerated, pyg.ClusterGCNConv):
    """``torch_geometric.nn.ClusterGCNConv`` on tessera's kernels, with self loops added.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.ClusterGCNConv(4, 2, diag_lambda=0.5)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and not self.add_self_loops:
            obstacle = "loops that are not added"
        if obstacle is None and not isinstance(edge_index, (Tensor, Graph)) and Graph.of(edge_index).weight is not None:
            obstacle = "a SparseTensor with values"
        if obstacle is None and self.flow != "source_to_target":
            obstacle = "a reversed flow"
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index)[0])
        graph = self._graph(edge_index, x.size(0), x.size(0)).without_weight()
        linear = self._linear(self.lin_out)
        root = self._linear(self.lin_root, biased=False)
        if linear is not None and root is not None:
            return linear_sum(graph, x, *linear, root_weight=root[0],
                              loops=LOOPS["one_each"], loop_weight=1.0 + self.diag_lambda,
                              norm=NORMS["mean"], tune=self._tessera_tune)
        out = spmm(graph, self._narrowed(x), loops="one_each", loop_weight=1.0 + self.diag_lambda,
                   norm="mean", tune=self._tessera_tune).to(x.dtype)
        return self.lin_out(out) + self.lin_root(x)
