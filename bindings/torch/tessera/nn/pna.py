# SPDX-License-Identifier: Apache-2.0
"""Principal neighbourhood aggregation: several reductions of the same messages."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from torch import Tensor
from torch_geometric.nn import aggr as pygs

from ..segments import gather, scatter
from ._base import for_pyg
from ._fused import linear_of
from ._route import hooks_of
from .convolutions import first_of, is_list_of_edges
from .edge_networks import OverEdges

_REDUCTIONS = {pygs.SumAggregation: "sum", pygs.MeanAggregation: "mean", pygs.MaxAggregation: "max",
               pygs.MinAggregation: "min", pygs.VarAggregation: "var", pygs.StdAggregation: "std"}


def _is_plain(module: torch.nn.Module) -> bool:
    """Whether no hook watches the layer, and a variance has its whole gradient."""
    variance = getattr(module, "var_aggr", module)
    return not any(hooks_of(module)) and "forward" not in module.__dict__ and not getattr(variance, "semi_grad", False)


class _Reduced:
    """Stands for PyG's aggregation in its own code, where its reductions are made."""

    def __init__(self, module: pygs.DegreeScalerAggregation, reduced: Tensor) -> None:
        self.reduced, self.scaler = reduced, module.scaler
        self.avg_deg_lin, self.avg_deg_log = module.avg_deg_lin, module.avg_deg_log

    def aggr(self, *_: Any) -> Tensor:
        return self.reduced

    def assert_index_present(self, index: Tensor) -> None:
        pass


class PNAConv(OverEdges, pyg.PNAConv):
    """``torch_geometric.nn.PNAConv`` on tessera's kernels: sum, mean, max, min, var and std. The first linear layers of its
    networks are multiplied by features of vertices, of which there are fewer than edges.

    Example:
        >>> import torch, tessera.nn
        >>> conv = tessera.nn.PNAConv(4, 2, ["mean", "max"], ["identity", "linear"], deg=torch.tensor([0, 3]))
        >>> conv(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 2])
    """

    def forward(self, x: Tensor, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        obstacle = self._obstacle(x, edge_index)
        if obstacle is None and isinstance(x, (tuple, list)):
            obstacle = "a pair of features"
        if obstacle is None and (edge_attr is None) != (self.edge_dim is None):
            obstacle = "features of edges that the layer has no use for, or none where it wants some"
        if obstacle is None and edge_attr is not None and not is_list_of_edges(edge_index):
            obstacle = "features of edges with a sparse matrix"
        networks = [first_of(network) for network in self.pre_nns]
        linears = [None if first is None else linear_of(first) for first, _ in networks]
        if obstacle is None and None in linears:
            obstacle = "linear layers that somebody looks at"
        if not self._notice(obstacle, x, edge_index):
            return super().forward(x, for_pyg(edge_index, takes_weights=False)[0], edge_attr)
        to, of = self._ends(x, edge_index)
        shape = (-1, self.towers, self.F_in) if self.divide_input else (-1, 1, self.F_in)
        rows = x.view(shape).expand(-1, self.towers, -1)
        encoded = None if edge_attr is None else self.edge_encoder(edge_attr)

        own, others, of_edges = [], [], []
        for tower, (matrix, bias) in enumerate(linears):
            of_target, of_source, *of_edge = matrix.split(self.F_in, dim=1)
            own.append(F.linear(rows[:, tower], of_target, bias))
            others.append(F.linear(rows[:, tower], of_source))
            of_edges += [F.linear(encoded, part) for part in of_edge]
        messages = gather(torch.cat(own, dim=1), to) + gather(torch.cat(others, dim=1), of)
        messages = messages + torch.cat(of_edges, dim=1) if of_edges else messages
        if len(networks[0][1]) > 0:
            parts = messages.chunk(self.towers, dim=1)
            messages = torch.cat([torch.nn.Sequential(*rest)(part) for part, (_, rest) in zip(parts, networks)], dim=1)

        out = torch.cat([rows, self._scaled(messages, to, x.size(0))], dim=-1)
        return self.lin(torch.cat([network(out[:, tower]) for tower, network in enumerate(self.post_nns)], dim=1))

    def _scaled(self, messages: Tensor, to: Tensor, targets: int) -> Tensor:
        """PyG's scalers of what kernels reduced: targets x towers x features."""
        narrow, module = self._narrowed(messages), self.aggr_module
        reduced = torch.cat([
            self._widened(scatter(narrow, to, 0, targets, _REDUCTIONS[type(one)]), messages.dtype).unflatten(1, (self.towers, -1))
            for one in module.aggr.aggrs], dim=-1)
        return pygs.DegreeScalerAggregation.forward(_Reduced(module, reduced), messages, to.long(), dim_size=targets, dim=0)

    def _obstacle_of_messages(self) -> str | None:
        module = self.aggr_module
        several = getattr(module, "aggr", None)
        if (type(module) is not pygs.DegreeScalerAggregation or type(several) is not pygs.MultiAggregation or several.mode != "cat"
                or not all(type(one) in _REDUCTIONS for one in several.aggrs)):
            return f"the aggregation {self.aggr}"
        if not all(map(_is_plain, (module, several, *several.aggrs))):
            return "an aggregation that somebody looks at"
        return self._obstacle_of_replaced()
