# SPDX-License-Identifier: Apache-2.0
"""Layers of graphs with kinds of vertices and of edges, which are made of a layer for each kind of edges."""

from __future__ import annotations

from typing import Any

import torch
import torch_geometric.nn as pyg
from torch import Tensor

from .._kinds import begins_of, graph_of_edges, host_numbers, joined
from .._relations import Relations
from .._torch_names import global_hooks
from ..graph import Graph
from ..grouped import product
from .few_bits import SAGEConv

Relation = tuple[str, str, str]


class HeteroConv(pyg.HeteroConv):
    """``torch_geometric.nn.HeteroConv`` on tessera's kernels. Where its layers are ``SAGEConv`` that differ in nothing but
    their weights, all of them run at once: one sum over neighbours, one grouped product, and one for what vertices have
    themselves. Other layers run one after the other, each as it does alone.

    Example:
        >>> import torch, tessera, torch_geometric.nn as pyg
        >>> cites = ("paper", "cites", "paper")
        >>> conv = tessera.accelerate(pyg.HeteroConv({cites: pyg.SAGEConv((4, 4), 2)}))
        >>> conv({"paper": torch.ones(3, 4)}, {cites: torch.tensor([[0, 1, 2], [1, 2, 0]])})["paper"].shape
        torch.Size([3, 2])
    """

    def forward(self, *args_dict: Any, **kwargs_dict: Any) -> dict[str, Tensor]:
        names = ("x_dict", "edge_index_dict")
        given = {**dict(zip(names, args_dict)), **kwargs_dict}
        if (self.aggr in ("sum", "mean") and len(args_dict) + len(kwargs_dict) == 2 and set(given) == set(names)
                and not torch.compiler.is_compiling()):
            out = self._at_once(*(given[name] for name in names))
            if out is not None:
                return out
        return super().forward(*args_dict, **kwargs_dict)

    def _at_once(self, x_dict: dict[str, Tensor], edge_index_dict: dict[Relation, Any]) -> dict[str, Tensor] | None:
        """All layers as one; None where they cannot be."""
        layers = {relation: layer for relation, layer in self.convs.items() if relation in edge_index_dict}
        if len(layers) < 2 or not all(source in x_dict and target in x_dict for source, _, target in layers):
            return None
        if not _alike(list(layers.values())) or not _fit(layers, x_dict, edge_index_dict):
            return None
        for layer in layers.values():
            layer._notice(None)
        return _AtOnce(layers, x_dict, edge_index_dict).run(self.aggr == "mean")


def _alike(layers: list[torch.nn.Module]) -> bool:
    """Whether layers are those of one class with the same options, and have no hooks."""
    first = layers[0]
    if any(type(layer) is not SAGEConv for layer in layers) or any(global_hooks):
        return False
    reduce = first._reduction()
    return reduce is not None and all(
        layer._reduction() == reduce and layer.bits is None and not (layer.project or layer.normalize)
        and layer.flow == "source_to_target" and layer.out_channels == first.out_channels
        and layer.root_weight == first.root_weight and _unwatched(layer) and layer._linear(layer.lin_l) is not None
        and (not layer.root_weight or layer._linear(layer.lin_r) is not None)
        for layer in layers)


def _unwatched(layer: torch.nn.Module) -> bool:
    """By others than :func:`tessera.explain`, which looks at all of them then."""
    own = layer.__dict__
    hooks = [hook for when in ("", "_pre") for way in ("forward", "backward") for hook in own[f"_{way}{when}_hooks"].values()]
    return all(getattr(hook, "of_explain", False) for hook in hooks) and "forward" not in own


def _fit(layers: dict[Relation, SAGEConv], x_dict: dict[str, Tensor], edge_index_dict: dict[Relation, Any]) -> bool:
    """Whether features can be one matrix, and kernels run each layer."""
    features = [x_dict[kind] for source, _, target in layers for kind in (source, target)]
    first = features[0]
    if any(not isinstance(x, Tensor) or x.dim() != 2 or x.size(1) != first.size(1) or x.dtype != first.dtype for x in features):
        return False
    return all(isinstance(edge_index_dict[relation], Tensor) and edge_index_dict[relation].layout == torch.strided
               and layer._obstacle((x_dict[relation[0]], x_dict[relation[-1]]), edge_index_dict[relation]) is None
               for relation, layer in layers.items())


class _AtOnce:
    """Layers over all relations as one layer over the vertices of all kinds."""

    def __init__(self, layers: dict[Relation, SAGEConv], x_dict: dict[str, Tensor], edge_index_dict: dict[Relation, Any]) -> None:
        self.layers, self.x_dict = layers, x_dict
        self.graphs = [layer._graph(edge_index_dict[relation], x_dict[relation[0]].size(0), x_dict[relation[-1]].size(0))
                       for relation, layer in layers.items()]
        self.kinds = list(dict.fromkeys(target for _, _, target in layers))
        self.begins = begins_of([x_dict[kind].size(0) for kind in self.kinds])

    def run(self, mean: bool) -> dict[str, Tensor]:
        first = next(iter(self.layers.values()))
        weight = torch.stack([layer.lin_l.weight.t() for layer in self.layers.values()])
        x, graph = self._joined()
        relations = Relations(graph, graph_of_edges(self.graphs), len(self.graphs))
        out = relations.sum(x, weight, first._reduction(), tune=first._tessera_tune)
        parts = self._with_own(self._split(out), first.root_weight)
        return {kind: part / self._count(kind) if mean else part for kind, part in zip(self.kinds, parts)}

    def _split(self, out: Tensor) -> tuple[Tensor, ...]:
        return out.split([self.x_dict[kind].size(0) for kind in self.kinds])

    def _with_own(self, parts: tuple[Tensor, ...], roots: bool) -> list[Tensor]:
        """Each a tensor of its own, which may be changed in place."""
        bias = self._biases()
        if roots:
            return [part + own for part, own in zip(parts, self._split(self._own(bias)))]
        if bias is not None:
            return [part + row.to(part.dtype) for part, row in zip(parts, bias)]
        return [part.clone() for part in parts]

    def _joined(self) -> tuple[Tensor, Graph]:
        """Features of all sources, and the graph from them to all targets."""
        kinds = list(dict.fromkeys(source for source, _, _ in self.layers))
        begins = begins_of([self.x_dict[kind].size(0) for kind in kinds])
        sources, targets = dict(zip(kinds, begins)), dict(zip(self.kinds, self.begins))
        graph = joined(self.graphs, [sources[relation[0]] for relation in self.layers],
                       [targets[relation[-1]] for relation in self.layers], begins[-1], self.begins[-1])
        return torch.cat([self.x_dict[kind] for kind in kinds]), graph

    def _count(self, kind: str) -> int:
        return sum(target == kind for _, _, target in self.layers)

    def _summed(self, kind: str, parameters: list[Tensor]) -> Tensor:
        """Of all relations that end in a kind."""
        return torch.stack([parameter for parameter, (_, _, target) in zip(parameters, self.layers) if target == kind]).sum(0)

    def _biases(self) -> Tensor | None:
        """Of each kind the sum."""
        layers = list(self.layers.values())
        biases = [layer.lin_l.bias for layer in layers]
        if all(bias is None for bias in biases):
            return None
        nothing = layers[0].lin_l.weight.new_zeros(layers[0].out_channels)
        biases = [nothing if bias is None else bias for bias in biases]
        return torch.stack([self._summed(kind, biases) for kind in self.kinds])

    def _own(self, bias: Tensor | None) -> Tensor:
        """What vertices have themselves: once for each kind, however many relations end in it."""
        weights = [layer.lin_r.weight.t() for layer in self.layers.values()]
        weight = torch.stack([self._summed(kind, weights) for kind in self.kinds])
        x = torch.cat([self.x_dict[kind] for kind in self.kinds])
        return product(x, weight, host_numbers(self.graphs, self.begins), bias)
