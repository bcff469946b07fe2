# SPDX-License-Identifier: Apache-2.0
"""Layers that weigh neighbours by a softmax."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor

from .._checks import check_edge_attr
from ..functional import attention, attention_weights, edge_softmax, sddmm, spmm, sum_of_other_edges
from ..graph import LOOPS, Graph
from ..segments import gather, scatter
from ._base import Accelerated, for_pyg, sizes
from ._fused import as_pyg_returns, gat, gatv2, linear_of
from ._route import gat_call, gatv2_call


def _by_heads(vectors: Tensor) -> Tensor:
    """A vector for each head (``1 x heads x channels``) as the matrix that features are multiplied
    by, so that nothing of their size is made: ``heads * channels x heads``."""
    _, heads, channels = vectors.shape
    if heads == 1:
        return vectors.view(channels, 1)
    unit = torch.eye(heads, dtype=vectors.dtype, device=vectors.device)
    return (vectors.view(heads, channels, 1) * unit.view(heads, 1, heads)).view(-1, heads)


def _own(out: Tensor, of_operator: Tensor) -> Tensor:
    """A result that is not kept for gradients, as those of operators are: users change in place what a
    layer returns."""
    return out.clone() if out is of_operator and out.requires_grad else out


class _Attentive(Accelerated):
    def _attend(self, graph: Any, *tensors: Tensor | None, **options: Any) -> Tensor:
        """Attention in the type that accelerate() was asked for."""
        def narrowed(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else self._narrowed(tensor)

        dtype = tensors[2].dtype  # of the values
        options["edge_term"] = narrowed(options.get("edge_term"))
        vector = narrowed(options.pop("vector", None))
        out = attention(graph, *map(narrowed, tensors), vector, tune=self._tessera_tune, **options)
        return out.to(dtype) if self._tessera_dtype is not None else out

    def _obstacle_of_edges(self, x: Any, edge_index: Any, edge_attr: Any, weights: Any):
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and (edge_attr is not None or self._takes_values(edge_index)):
            obstacle = self._obstacle_of_features(edge_index)
        if obstacle is None and weights is not None:
            if torch.compiler.is_compiling():
                obstacle = "return_attention_weights in compiled code"
            elif not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
                obstacle = "return_attention_weights with a sparse matrix"
            elif self._dropout > 0:
                obstacle = "return_attention_weights with dropout"
            elif self.flow != "source_to_target":
                obstacle = "return_attention_weights with a reversed flow"
        if obstacle is None and isinstance(x, (tuple, list)) and self.flow != "source_to_target":
            obstacle = "a reversed flow with a pair of features"
        return obstacle

    def _takes_values(self, edge_index: Any) -> bool:
        """True where PyG takes the values of a sparse matrix for features of edges."""
        if isinstance(edge_index, Graph) or getattr(self, "lin_edge", None) is None:
            return False
        return not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided

    def _obstacle_of_features(self, edge_index: Any) -> str | None:
        """Why features of edges cannot enter the scores."""
        if isinstance(self, AGNNConv):
            return "features of edges"
        if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
            return "features of edges with a sparse matrix"
        if self.flow != "source_to_target":
            return "features of edges with a reversed flow"
        if self.lin_edge is None and not isinstance(self, GATConv):
            return "features of edges without edge_dim"
        if isinstance(self, TransformerConv):
            return None
        fill = self.fill_value
        if self.add_self_loops and isinstance(fill, str) and fill not in ("mean", "add", "sum"):
            return f"loops whose features are the {fill} of others"
        return None

    def _edge_features(self, graph: Any, edge_attr: Tensor) -> Tensor:
        """Features of the edges given, and then of the loops added, which take the place of given ones:
        whatever those have, zeros enter products and their derivatives."""
        check_edge_attr(edge_attr, graph)
        edge_attr = edge_attr.view(-1, 1) if edge_attr.dim() == 1 else edge_attr
        if not self.add_self_loops:
            return edge_attr
        targets, sources = graph.targets_and_sources()
        edge_attr = edge_attr.masked_fill((targets == sources).view(-1, 1), 0.0)
        loops = torch.sym_min(graph.num_targets, graph.num_sources)
        fill = self.fill_value
        if isinstance(fill, str):
            wide = edge_attr if edge_attr.dtype == torch.float64 else edge_attr.float()
            filled = sum_of_other_edges(graph, wide, fill == "mean")[:loops].to(edge_attr.dtype)
        else:
            row = fill.to(edge_attr) if isinstance(fill, Tensor) else edge_attr.new_full(
                (1,), 1.0 if fill is None else fill)
            filled = row.view(1, -1).expand(loops, edge_attr.size(1))
        return torch.cat([edge_attr, filled])

    def _with_weights(self, out: Tensor, graph: Any, edge_index: Tensor, loops: str,
                      *tensors: Tensor, **options: Any) -> tuple[Tensor, tuple[Tensor, Tensor]]:
        """What PyG returns with return_attention_weights: other edges first, then the loops."""
        weights = attention_weights(graph, *tensors, loops=loops, **options)
        if loops == "given":
            return out, (edge_index, weights)
        others = edge_index[0] != edge_index[1]
        vertices = torch.arange(weights.size(0) - others.numel(), device=edge_index.device)
        kept = torch.cat([others, torch.ones_like(vertices, dtype=torch.bool)])
        looped = vertices.to(edge_index.dtype).expand(2, -1)
        return out, (torch.cat([edge_index[:, others], looped], dim=1), weights[kept])

    def _joined(self, out: Tensor) -> Tensor:
        """Heads side by side, or their mean."""
        if self.concat:
            return out
        return out.view(-1, self.heads, self.out_channels).mean(dim=1)

    def _adds_bias_alone(self) -> bool:
        """Whether a bias is all that comes after the sums, which then is part of the operator."""
        return self.res is None and (self.concat or self.heads == 1) and self.bias is not None

    def _numbers(self) -> dict[str, Any]:
        """What a layer in one operator is besides its tensors."""
        return {"loops": LOOPS[self._loops], "heads": self.heads,
                "negative_slope": self.negative_slope, "dropout": self._dropout,
                "tune": self._tessera_tune}

    def _finished(self, out: Tensor, targets: Tensor | None) -> Tensor:
        """What attention leaves to do."""
        joined = self._joined(as_pyg_returns(out))
        if self.res is not None and targets is not None:
            joined = joined + self.res(targets)
        return _own(joined, out) if self.bias is None else joined + self.bias

    def _keep_attention(self, x: Tensor, edge_index: Any, linears: tuple, vectors: tuple,
                        make_call: Any) -> None:
        """Keeps the way of a layer that ran as one operator, its bias included."""
        if not self._can_keep_way(x, edge_index, self):
            return
        vertices = x.size(0)
        call = make_call((vertices, vertices, self._layout(), LOOPS[self._loops], self.heads,
                          self.negative_slope, self._dropout))
        self._keep_way(x, edge_index, linears, call, vectors=vectors, wide=True)

    @property
    def _loops(self) -> str:
        return "one_each" if self.add_self_loops else "given"

    @property
    def _dropout(self) -> float:
        return self.dropout if self.training else 0.0


class GATConv(_Attentive, pyg.GATConv):
    """``torch_geometric.nn.GATConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GATConv(4, 2, heads=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 6])
    """

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        size: Any = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        plain = edge_attr is None and not return_attention_weights
        way = self._known_way(x, edge_index) if plain and size is None else None
        if way is not None:
            return way.run(x, edge_index)
        obstacle = self._obstacle_of_edges(x, edge_index, edge_attr, return_attention_weights)
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index)[0], edge_attr, size, return_attention_weights)
        heads = self.heads
        single = isinstance(x, Tensor)
        sources, targets = (x, x) if single else x
        num_sources, num_targets = sizes(x, size)
        if single and plain and self.lin is not None:
            linear = self._linear(self.lin, biased=False)
            if linear is not None:
                return self._in_one(x, edge_index, linear[0])
        if single and self.lin is not None:
            value = goal = self.lin(x)
        elif self.lin is not None:
            value = self.lin(sources)
            goal = None if targets is None else self.lin(targets)
        else:
            value = self.lin_src(sources)
            goal = None if targets is None else self.lin_dst(targets)
        source = value @ _by_heads(self.att_src)
        target = (source.new_zeros(num_targets, heads) if goal is None
                  else goal @ _by_heads(self.att_dst))
        graph = self._graph(edge_index, num_sources, num_targets)
        if goal is None and num_targets != graph.num_targets:
            target = source.new_zeros(graph.num_targets, heads)
        score = {"form": "additive", "heads": heads, "negative_slope": self.negative_slope,
                 "edge_term": self._edge_term(graph, edge_attr)}
        attended = self._attend(graph, target, source, value, dropout=self._dropout,
                                loops=self._loops, **score)
        out = self._finished(attended, targets)
        if return_attention_weights:
            return self._with_weights(out, graph, edge_index, self._loops, target, source, value,
                                      **score)
        return out

    def _edge_term(self, graph: Any, edge_attr: Tensor | None) -> Tensor | None:
        """What features of edges add to scores. Where a linear layer is that and no more, its matrix
        is multiplied by the vectors first, and nothing of the size of edges x channels is made."""
        if edge_attr is None or self.lin_edge is None:
            return None
        edge_attr = self._edge_features(graph, edge_attr)
        linear = linear_of(self.lin_edge)
        if linear is None or linear[1] is not None:
            return self.lin_edge(edge_attr) @ _by_heads(self.att_edge)
        weight = linear[0].view(self.heads, self.out_channels, -1)
        return F.linear(edge_attr, (weight * self.att_edge.view(self.heads, -1, 1)).sum(1))

    def _in_one(self, x: Tensor, edge_index: Any, matrix: Tensor) -> Tensor:
        """By one operator; the bias is a part of it where nothing comes between."""
        whole = self._adds_bias_alone()
        out = gat(self._graph(edge_index, x.size(0), x.size(0)), x, matrix, self.att_src,
                  self.att_dst, self.bias if whole else None, **self._numbers())
        if whole:
            self._keep_attention(x, edge_index, (self.lin,), ("att_src", "att_dst"),
                                 lambda numbers: gat_call(numbers, self, self.lin))
        return out if whole else self._finished(out, x)


class GATv2Conv(_Attentive, pyg.GATv2Conv):
    """``torch_geometric.nn.GATv2Conv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.GATv2Conv(4, 2, heads=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 6])
    """

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        plain = edge_attr is None and not return_attention_weights
        way = self._known_way(x, edge_index) if plain else None
        if way is not None:
            return way.run(x, edge_index)
        obstacle = self._obstacle_of_edges(x, edge_index, edge_attr, return_attention_weights)
        if obstacle is None and not isinstance(x, Tensor) and x[1] is None:
            obstacle = "a pair without targets"
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index)[0], edge_attr, return_attention_weights)
        if plain and isinstance(x, Tensor) and not self.share_weights:
            source, target = self._linear(self.lin_l), self._linear(self.lin_r)
            if source is not None and target is not None and (source[1] is None) == (target[1] is None):
                return self._in_one(x, edge_index, source, target)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        source = self.lin_l(sources)
        shares = self.share_weights and isinstance(x, Tensor)
        target = source if shares else self.lin_r(targets)
        graph = self._graph(edge_index, *sizes(x, None))
        vector = self.att.view(-1)
        term = None if edge_attr is None else self.lin_edge(self._edge_features(graph, edge_attr))
        score = {"form": "v2", "heads": self.heads, "negative_slope": self.negative_slope,
                 "edge_term": term}
        attended = self._attend(graph, target, source, source, vector=vector, dropout=self._dropout,
                                loops=self._loops, **score)
        out = self._finished(attended, targets)
        if return_attention_weights:
            return self._with_weights(out, graph, edge_index, self._loops, target, source, source,
                                      vector, **score)
        return out

    def _in_one(self, x: Tensor, edge_index: Any, source: tuple, target: tuple) -> Tensor:
        """By one operator, as in GATConv."""
        whole = self._adds_bias_alone()
        out = gatv2(self._graph(edge_index, x.size(0), x.size(0)), x, *source, *target, self.att,
                    self.bias if whole else None, **self._numbers())
        if whole:
            self._keep_attention(x, edge_index, (self.lin_l, self.lin_r), ("att",),
                                 lambda numbers: gatv2_call(numbers, self, self.lin_l, self.lin_r))
        return out if whole else self._finished(out, x)


class AGNNConv(_Attentive, pyg.AGNNConv):
    """``torch_geometric.nn.AGNNConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.AGNNConv()
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 4])
    """

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)):
            obstacle = "a pair of features"
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index)[0])
        graph = self._graph(edge_index, x.size(0), x.size(0))
        out = self._attend(graph, None, None, x, vector=self.beta, form="cosine", loops=self._loops)
        return _own(as_pyg_returns(out), out)


class TransformerConv(_Attentive, pyg.TransformerConv):
    """``torch_geometric.nn.TransformerConv`` on tessera's kernels.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.TransformerConv(4, 2, heads=3)
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 6])
    """

    def forward(
        self,
        x: Any,
        edge_index: Any,
        edge_attr: Tensor | None = None,
        return_attention_weights: bool | None = None,
    ) -> Any:
        obstacle = self._obstacle_of_edges(x, edge_index, edge_attr, return_attention_weights)
        sources, targets = (x, x) if isinstance(x, Tensor) else x
        if targets is None:
            raise ValueError(f"{type(self).__name__}: x[1] is None: use a pair of features")
        if obstacle is None and edge_attr is None and self.lin_edge is not None:
            obstacle = "no features of edges"
        if obstacle is None and edge_attr is not None and edge_attr.dim() != 2:
            obstacle = f"features of edges of {edge_attr.dim()} dimensions"
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index)[0], edge_attr, return_attention_weights)
        graph = self._graph(edge_index, sources.size(0), targets.size(0))
        tensors = self.lin_query(targets), self.lin_key(sources), self.lin_value(sources)
        score = {"form": "dot", "heads": self.heads, "scale": 1.0 / math.sqrt(max(self.out_channels, 1))}
        weights = None
        if edge_attr is None:
            attended = self._attend(graph, *tensors, dropout=self._dropout, **score)
        else:
            check_edge_attr(edge_attr, graph)
            attended, weights = self._attend_edges(graph, *tensors, edge_attr, score["scale"])
        # Autocast sums and exponentiates in fp32 on a GPU, and on a CPU it does not.
        out = self._joined(as_pyg_returns(attended) if attended.is_cuda else attended)
        if self.root_weight:
            skipped = self.lin_skip(targets)
            if self.lin_beta is not None:
                gate = self.lin_beta(torch.cat([out, skipped, out - skipped], dim=-1)).sigmoid()
                out = gate * skipped + (1 - gate) * out
            else:
                out = out + skipped
        else:
            out = _own(out, attended)
        if return_attention_weights is not None and weights is not None:
            return out, (edge_index, weights)
        if return_attention_weights is not None:
            return self._with_weights(out, graph, edge_index, "given", *tensors, **score)
        return out

    def _attend_edges(self, graph: Any, query: Tensor, key: Tensor, value: Tensor, edge_attr: Tensor,
                      scale: float) -> tuple[Tensor, Tensor]:
        """Attention whose keys and values have a part of edges, and the weights before dropout. Where features of edges
        are narrower than a head, its matrix is multiplied by vertices: q W a = (q W) a, and W sum(w a) = sum(w W a)."""
        dtype = query.dtype
        query, key, value = map(self._narrowed, (query, key, value))
        heads, width = self.heads, self.out_channels
        linear = linear_of(self.lin_edge)
        to, _ = graph.targets_and_sources()
        moves = linear is not None and linear[1] is None and edge_attr.size(1) < width
        if moves:
            matrix = linear[0].view(heads, width, -1).to(query.dtype)
            asked = torch.einsum("nhc,hcd->nhd", query.view(-1, heads, width), matrix)
            of_edges = self._narrowed(edge_attr).to(query.dtype).unsqueeze(1)
        else:
            asked = query.view(-1, heads, width)
            of_edges = self._narrowed(self.lin_edge(edge_attr)).view(-1, heads, width)
        terms = (gather(asked.flatten(1), to).view(-1, *asked.shape[1:]) * of_edges).sum(-1)
        scores = scale * (sddmm(graph, query, key, heads=heads, tune=self._tessera_tune) + terms)
        weights = edge_softmax(graph, scores)
        dropped = F.dropout(weights, self.dropout, self.training)
        out = spmm(graph, value, dropped, tune=self._tessera_tune)
        summed = scatter((dropped.unsqueeze(-1) * of_edges).flatten(1), to, 0, out.size(0)).view(-1, heads, asked.size(-1))
        if moves:
            summed = torch.einsum("nhd,hcd->nhc", summed, matrix)
        return self._widened(out + summed.flatten(1), dtype), self._widened(weights, dtype)
