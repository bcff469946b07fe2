# SPDX-License-Identifier: Apache-2.0
"""Linear layers and attention over kinds of vertices and of edges."""

from __future__ import annotations

import math
from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor

from .._derivatives import other_derivatives
from .._kinds import begins_of, host_numbers, joined
from .._torch_names import tracing_state
from ..functional import FLOATS, attention
from ..grouped import grouped_linear, grouped_matmul, product
from ._base import Accelerated, for_pyg, tally
from ._fused import linear_of
from ._scripted import Scripted


class OfKinds(Scripted):
    """A linear layer of each kind."""

    @staticmethod
    def _notice(fits: bool) -> bool:
        """Counts a call, and says whether it is ours."""
        if torch.compiler.is_compiling():
            return fits
        fits = fits and tracing_state() is None and other_derivatives() is None
        tally.kernels += fits
        tally.fallbacks += not fits
        return fits


class HeteroLinear(OfKinds, pyg.HeteroLinear):
    """``torch_geometric.nn.HeteroLinear`` by :func:`tessera.grouped_linear`.

    Example:
        >>> import torch, tessera.nn
        >>> linear = tessera.nn.HeteroLinear(4, 2, num_types=3)
        >>> linear(torch.ones(5, 4), torch.tensor([2, 0, 0, 1, 2])).shape
        torch.Size([5, 2])
    """

    def forward(self, x: Tensor, type_vec: Tensor) -> Tensor:
        if not self._notice(x.dim() == 2 and x.dtype in FLOATS):
            return super().forward(x, type_vec)
        return grouped_linear(x, self.weight, self.bias, index=type_vec).to(x.dtype)


class HeteroDictLinear(OfKinds, pyg.HeteroDictLinear):
    """``torch_geometric.nn.HeteroDictLinear`` by :func:`tessera.grouped_matmul`, with pyg-lib and without it.

    Example:
        >>> import torch, tessera.nn
        >>> linear = tessera.nn.HeteroDictLinear({"paper": 4, "author": 3}, 2)
        >>> linear({"paper": torch.ones(5, 4)})["paper"].shape
        torch.Size([5, 2])
    """

    def forward(self, x_dict: dict[Any, Tensor]) -> dict[Any, Tensor]:
        linears = {kind: linear_of(linear) for kind, linear in self.lins.items() if kind in x_dict}
        if not self._notice(None not in linears.values()):
            return super().forward(x_dict)
        weights, biases = zip(*linears.values()) if linears else ((), ())
        made = grouped_matmul([x_dict[kind] for kind in linears], [weight.t() for weight in weights], biases)
        return dict(zip(linears, made))


class HGTConv(Accelerated, pyg.HGTConv):
    """``torch_geometric.nn.HGTConv`` on tessera's kernels: the matrices of all relations are one grouped product, and all
    relations one run of attention.

    Example:
        >>> import torch, tessera.nn
        >>> cites = ("paper", "cites", "paper")
        >>> conv = tessera.nn.HGTConv(4, 2, (["paper"], [cites]))
        >>> conv({"paper": torch.ones(3, 4)}, {cites: torch.tensor([[0, 1, 2], [1, 2, 0]])})["paper"].shape
        torch.Size([3, 2])
    """

    def forward(self, x_dict: dict[str, Tensor], edge_index_dict: dict[Any, Any]) -> dict[str, Tensor | None]:
        obstacle = self._obstacle_of_kinds(x_dict, edge_index_dict)
        if not self._notice(obstacle):
            return super().forward(x_dict, {relation: for_pyg(edges, takes_weights=False)[0]
                                            for relation, edges in edge_index_dict.items()})
        keys, queries, values = {}, {}, {}
        for kind, made in self.kqv_lin(x_dict).items():
            keys[kind], queries[kind], values[kind] = made.tensor_split(3, dim=1)
        graphs = [self._graph(edges, keys[source].size(0), queries[target].size(0))
                  for (source, _, target), edges in edge_index_dict.items()]
        *starts, rows = begins_of([x.size(0) for x in queries.values()])
        targets = dict(zip(queries, starts))
        begins = begins_of([graph.num_sources for graph in graphs])
        graph = joined(graphs, begins[:-1], [targets[target] for _, _, target in edge_index_dict], begins[-1], rows)
        ptr = host_numbers(graphs, begins)
        source, value = (self._by_relation(of_kinds, edge_index_dict, ptr, linear, scales) for of_kinds, linear, scales in (
            (keys, self.k_rel, self._scales(edge_index_dict)), (values, self.v_rel, None)))
        query = torch.cat(list(queries.values()))
        out = self._widened(attention(graph, self._narrowed(query), self._narrowed(source), self._narrowed(value), form="dot",
                                      heads=self.heads, tune=self._tessera_tune), value.dtype)
        parts = {kind: out[begin:begin + queries[kind].size(0)] for kind, begin in targets.items()
                 if kind in self.dst_node_types}
        return self._with_own(parts, x_dict)

    def _scales(self, edge_index_dict: dict[Any, Any]) -> Tensor:
        """What scores are multiplied by: a number for each relation and head."""
        priors = torch.cat([self.p_rel["__".join(relation)] for relation in edge_index_dict])
        return priors / math.sqrt(self.out_channels // self.heads)

    def _by_relation(self, of_kinds: dict[str, Tensor], edge_index_dict: dict[Any, Any], ptr: Tensor, linear: pyg.HeteroLinear,
                     scales: Tensor | None) -> Tensor:
        """Keys or values of the sources of each relation, each head times the relation's matrix."""
        weight = linear.weight.unflatten(0, (self.heads, -1))
        weight = torch.stack([weight[:, self.edge_types_map[relation]] for relation in edge_index_dict])
        if scales is not None:
            weight = weight * scales[..., None, None]
        x = torch.cat([of_kinds[source] for source, _, _ in edge_index_dict])
        return product(x, weight, ptr)

    def _with_own(self, parts: dict[str, Tensor], x_dict: dict[str, Tensor]) -> dict[str, Tensor | None]:
        made = self.out_lin({kind: F.gelu(x) for kind, x in parts.items()})
        for kind in parts:
            out, x = made[kind], x_dict[kind]
            if out.size(-1) == x.size(-1):
                share = self.skip[kind].sigmoid()
                out = share * out + (1 - share) * x
            parts[kind] = out
        return parts

    def _obstacle_of_kinds(self, x_dict: dict[str, Tensor], edge_index_dict: dict[Any, Any]) -> str | None:
        if not edge_index_dict:
            return "no edges"
        if self.flow != "source_to_target":
            return "a reversed flow between kinds"
        known = self.edge_types_map
        if any(relation not in known or relation[0] not in x_dict or relation[-1] not in x_dict for relation in edge_index_dict):
            return "edges of an unknown relation, or between kinds without features"
        for (source, _, target), edges in edge_index_dict.items():
            obstacle = self._obstacle((x_dict[source], x_dict[target]), edges)
            if obstacle is not None:
                return obstacle
        return None
