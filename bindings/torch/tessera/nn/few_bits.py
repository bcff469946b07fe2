# SPDX-License-Identifier: Apache-2.0
"""Layers with ``bits=``: features, weights and what is summed as codes of so many bits.

In evaluation the products and sums are those of integers (:mod:`tessera.bits`), without derivatives. In
training the same numbers are rounded to the same codes and then computed with as floats, and gradients
pass the rounding unchanged (straight-through), so that a model learns what it loses by it. Ranges are
those of the numbers of each call.
"""

from __future__ import annotations

from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import Tensor
from torch.nn.parameter import UninitializedParameter
from torch_geometric.nn import Aggregation

from .. import bits as codes
from ..functional import spmm, sum_of_each_edge_once
from ..graph import Graph
from . import _gcn_norm, convolutions
from ._fused import linear_of


class Quantised:
    """Linear layers and sums over one graph, with codes of so many bits."""

    def __init__(self, graph: Graph, bits: int, training: bool) -> None:
        self.graph, self.bits, self.training = graph, bits, training

    def linear(self, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        if self.training:
            return F.linear(rounded(x, self.bits), rounded(weight, self.bits), bias)
        return codes.linear(codes.quantise(x, self.bits), codes.quantise(weight, self.bits),
                            bias).to(x.dtype)

    def sums(self, x: Tensor, loops: str, scale: Tensor | None = None) -> Tensor:
        """Over each target's sources, times a factor for each target."""
        if self.training:
            out = sum_of_each_edge_once(self.graph, rounded(x, self.bits), loops)
            return out if scale is None else out * scale.to(out.dtype)
        return codes.aggregate(self.graph, codes.quantise(x, self.bits), loops=loops,
                               scale=scale).to(x.dtype)

    def degrees(self, loops: str) -> Tensor:
        """Of every target, targets x 1."""
        ones = torch.ones(self.graph.num_sources, 1, device=self.graph.device)
        return spmm(self.graph, ones, loops=loops)

    def network(self, module: torch.nn.Module, x: Tensor) -> Tensor:
        """Linear layers with codes, alone or in a row; other modules as they are."""
        first, others = convolutions.first_of(module)
        if first is not None and first is not module:
            for part in (first, *others):
                x = self.network(part, x)
            return x
        linear = linear_of(module)
        return module(x) if linear is None else self.linear(x, *linear)

    def layer(self, lin: torch.nn.Module, x: Tensor) -> Tensor:
        """A linear layer of its own with codes."""
        if isinstance(getattr(lin, "weight", None), UninitializedParameter):
            lin.initialize_parameters(lin, (x,))  # takes its hook away
        linear = linear_of(lin)
        if linear is None:
            raise ValueError(f"a layer with bits= cannot run with {type(lin).__name__} in the place of a "
                             "plain linear layer, or with hooks on it: use bits=None")
        return self.linear(x, *linear)


def rounded(x: Tensor, bits: int) -> Tensor:
    """The numbers that the codes of ``x`` stand for; gradients pass unchanged."""
    if x.numel() == 0:
        return x
    with torch.no_grad():
        exact = x.to(torch.float32)
        lower, upper = exact.min(), exact.max()
        scale = torch.where(upper > lower, upper - lower, torch.ones_like(lower)) / (2**bits - 1)
        change = lower + scale * ((exact - lower) / scale).round() - exact
    return x + change.to(x.dtype)


def _checked(bits: int | None) -> int | None:
    if bits is None or (isinstance(bits, int) and not isinstance(bits, bool) and 1 <= bits <= 16):
        return bits
    raise ValueError(f"bits={bits!r}: use 1 to 16, or None for floats")


class FewBits:
    """A layer that takes ``bits=``: 1 to 16, or None for floats."""

    bits: int | None = None

    def __prepare_scriptable__(self) -> torch.nn.Module:
        if self.bits is not None:
            raise TypeError("a layer with bits= has no TorchScript: export one with bits=None")
        return super().__prepare_scriptable__()  # type: ignore[misc, no-any-return]

    def _gradients(self) -> Any:
        """Evaluation has none."""
        training: bool = self.training  # type: ignore[attr-defined]
        return torch.set_grad_enabled(training and torch.is_grad_enabled())

    def _quantised(self, x: Any, adjacency: Any, edge_weight: Any = None) -> Quantised:
        """What a call with bits computes with; errors where it cannot."""
        obstacle = self._obstacle(x, adjacency)  # type: ignore[attr-defined]
        if obstacle is None and not isinstance(x, Tensor):
            obstacle = "a pair of features"
        if obstacle is None and getattr(self, "flow", "source_to_target") != "source_to_target":
            obstacle = "a reversed flow"
        if obstacle is None and getattr(self, "cached", False):
            obstacle = "cached=True"
        if obstacle is not None:
            raise ValueError(f"a layer with bits= cannot run with {obstacle}: use bits=None")
        graph = self._graph(adjacency, x.size(0), x.size(0))  # type: ignore[attr-defined]
        if edge_weight is not None or graph.weight is not None:
            raise ValueError("sums of bits are of graphs without weights: leave edge_weight out, "
                             "or use bits=None")
        self._notice(None)  # type: ignore[attr-defined]
        assert self.bits is not None
        return Quantised(graph, self.bits, self.training)  # type: ignore[attr-defined]


class GCNConv(FewBits, convolutions.GCNConv):
    """``torch_geometric.nn.GCNConv`` on tessera's kernels; with ``bits=``, on integers.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GCNConv(4, 2, bits=8).eval()
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, in_channels: int, out_channels: int, improved: bool = False, cached: bool = False,
                 add_self_loops: bool | None = None, normalize: bool = True, bias: bool = True, *,
                 bits: int | None = None, **kwargs: Any) -> None:
        super().__init__(in_channels, out_channels, improved, cached, add_self_loops, normalize, bias, **kwargs)
        self.bits = _checked(bits)

    def forward(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None = None) -> Tensor:
        way = self._known_way(x, edge_index) if edge_weight is None else None
        if way is not None:
            return way.run(x, edge_index)
        if self.bits is None:
            return super().forward(x, edge_index, edge_weight)
        with self._gradients():
            return self._in_bits(x, edge_index, edge_weight)

    def _in_bits(self, x: Tensor, edge_index: Any, edge_weight: Tensor | None) -> Tensor:
        loops = self._loops(edge_index)
        quantised = self._quantised(x, edge_index, edge_weight)
        moved = quantised.layer(self.lin, x)
        scale = None
        if self.normalize:
            degrees = quantised.degrees(loops)
            scale = torch.where(degrees > 0, degrees, torch.ones_like(degrees)).rsqrt()
            # Factors of sources belong to the numbers before they become codes.
            moved = moved * scale.to(moved.dtype)
        out = quantised.sums(moved, loops, scale)
        return out if self.bias is None else out + self.bias

    def _loops(self, edge_index: Any) -> str:
        sums_loops = not convolutions.is_list_of_edges(edge_index)
        if self.improved and sums_loops and self.normalize:
            raise ValueError("improved=True gives loops the weight 2, which bits do not have: use "
                             "an edge_index, or bits=None")
        return _gcn_norm.loops_of(bool(self.add_self_loops) and self.normalize, sums_loops)


class SAGEConv(FewBits, convolutions.SAGEConv):
    """``torch_geometric.nn.SAGEConv`` on tessera's kernels: sum, mean, max and min; with ``bits=``,
    sum and mean on integers.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.SAGEConv(4, 2, bits=4).eval()
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, in_channels: int | tuple[int, int], out_channels: int,
                 aggr: str | list[str] | Aggregation | None = "mean", normalize: bool = False, root_weight: bool = True,
                 project: bool = False, bias: bool = True, *, bits: int | None = None, **kwargs: Any) -> None:
        super().__init__(in_channels, out_channels, aggr, normalize, root_weight, project, bias, **kwargs)
        self.bits = _checked(bits)

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        way = self._known_way(x, edge_index) if size is None else None
        if way is not None:
            return way.run(x, edge_index)
        if self.bits is None:
            return super().forward(x, edge_index, size)
        with self._gradients():
            return self._in_bits(x, edge_index)

    def _in_bits(self, x: Any, edge_index: Any) -> Tensor:
        reduce = self._reduction()
        if reduce not in ("sum", "mean"):
            raise ValueError(f"a layer with bits= has no aggregation {self.aggr}: use sum or mean")
        quantised = self._quantised(x, edge_index)
        sources = x
        if self.project:
            sources = quantised.layer(self.lin, x).relu()
        scale = 1 / quantised.degrees("given").clamp(min=1) if reduce == "mean" else None
        out = quantised.sums(sources, "given", scale)
        out = quantised.layer(self.lin_l, out)
        if self.root_weight:
            out = out + quantised.layer(self.lin_r, x)
        return F.normalize(out, p=2.0, dim=-1) if self.normalize else out


class GINConv(FewBits, convolutions.GINConv):
    """``torch_geometric.nn.GINConv`` on tessera's kernels; with ``bits=``, its sums and the linear
    layers of its network on integers.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GINConv(torch.nn.Linear(4, 2), bits=4).eval()
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, nn: Callable[[Tensor], Tensor], eps: float = 0.0, train_eps: bool = False, *,
                 bits: int | None = None, **kwargs: Any) -> None:
        super().__init__(nn, eps, train_eps, **kwargs)
        self.bits = _checked(bits)

    def forward(self, x: Any, edge_index: Any, size: Any = None) -> Tensor:
        way = self._known_way(x, edge_index) if size is None else None
        if way is not None:
            return way.run(x, edge_index)
        if self.bits is None:
            return super().forward(x, edge_index, size)
        with self._gradients():
            return self._in_bits(x, edge_index)

    def _in_bits(self, x: Any, edge_index: Any) -> Tensor:
        if self._reduction() != "sum":
            raise ValueError(f"a layer with bits= has no aggregation {self.aggr}: use sum")
        quantised = self._quantised(x, edge_index)
        own = (1 + self.eps) * rounded(x, quantised.bits)
        return quantised.network(self.nn, quantised.sums(x, "given") + own)


class ClusterGCNConv(FewBits, convolutions.ClusterGCNConv):
    """``torch_geometric.nn.ClusterGCNConv`` on tessera's kernels, with self loops added; with
    ``bits=``, on integers.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.ClusterGCNConv(4, 2, diag_lambda=0.5, bits=8).eval()
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def __init__(self, in_channels: int, out_channels: int, diag_lambda: float = 0.0, add_self_loops: bool = True,
                 bias: bool = True, *, bits: int | None = None, **kwargs: Any) -> None:
        super().__init__(in_channels, out_channels, diag_lambda, add_self_loops, bias, **kwargs)
        self.bits = _checked(bits)

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        if self.bits is None:
            return super().forward(x, edge_index)
        with self._gradients():
            return self._in_bits(x, edge_index)

    def _in_bits(self, x: Tensor, edge_index: Any) -> Tensor:
        if not self.add_self_loops:
            raise ValueError("a layer with bits= adds loops: use add_self_loops=True, or bits=None")
        graph = edge_index.without_weight() if isinstance(edge_index, Graph) else edge_index
        quantised = self._quantised(x, graph)
        scale = 1 / quantised.degrees("one_each")
        own = self.diag_lambda * scale.to(x.dtype) * rounded(x, quantised.bits)
        out = quantised.sums(x, "one_each", scale) + own
        return quantised.layer(self.lin_out, out) + quantised.layer(self.lin_root, x)
