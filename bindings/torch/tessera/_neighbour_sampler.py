# SPDX-License-Identifier: Apache-2.0
"""A sampler of PyG's kind that draws neighbours by this library."""

from __future__ import annotations

import functools
import itertools
import warnings
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.sampler import BaseSampler, SamplerOutput
from torch_geometric.sampler.base import NumNeighbors, SubgraphType
from torch_geometric.sampler.neighbor_sampler import edge_sample

from ._library import has_cuda
from ._sampling_operators import draw_neighbours, neighbour_candidates
from .errors import direct
from .graph import BY_TARGET, Graph

_CALLS = 1 << 62  # steps of what no epoch draws


def random_seed() -> int:
    """Drawn from torch's numbers, so that ``torch.manual_seed`` decides it."""
    return int(torch.randint(1 << 62, ()))


class NeighborSampler(BaseSampler):
    """PyG's ``NeighborSampler`` for graphs with one type of vertices and edges: a ``Data``, or a pair of stores.

    What is drawn depends on ``seed``, the step, the hop and the vertex (where samples are disjoint, also on the place of its
    seed among the seeds) alone. ``device`` draws it, the CPU by default; a GPU draws the same, and
    reads edges from its own memory, or with ``edge_memory="host"`` from pinned memory of this process.
    """

    def __init__(
        self,
        data: Any,
        num_neighbors: NumNeighbors | list[int],
        subgraph_type: SubgraphType | str = "directional",
        replace: bool = False,
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        is_sorted: bool = False,
        share_memory: bool = False,
        directed: bool = True,
        seed: int | None = None,
        device: torch.device | str | None = None,
        edge_memory: str = "device",
    ) -> None:
        if temporal_strategy not in ("uniform", "last"):
            raise ValueError(f"temporal_strategy is {temporal_strategy!r}: use 'uniform' or 'last'")
        if not directed:
            warnings.warn("'directed=False' is deprecated: use subgraph_type='induced'", stacklevel=2)
            subgraph_type = SubgraphType.induced
        self.num_neighbors = num_neighbors
        self.subgraph_type = SubgraphType(subgraph_type)
        self.replace = replace
        self.temporal_strategy = temporal_strategy
        graph, self._permutation = _graph_of(data)
        self.num_nodes = graph.num_targets
        self.seed = random_seed() if seed is None else seed
        self._calls = itertools.count(_CALLS)

        self.node_time = self.edge_time = None
        if isinstance(data, tuple) and (time_attr is not None or weight_attr is not None):
            raise NotImplementedError("time_attr and weight_attr need a Data, not a pair of stores")
        for name, attribute in (("time_attr", time_attr), ("weight_attr", weight_attr)):
            if attribute is not None and attribute not in data:
                raise ValueError(f"{name} is {attribute!r}, which the data has not: it has {', '.join(data.keys())}")
        if time_attr is not None:
            if data.is_node_attr(time_attr):
                self.node_time = _times(data[time_attr], time_attr)
            elif data.is_edge_attr(time_attr):
                self.edge_time = _times(data[time_attr], time_attr)
            else:
                raise ValueError(f"time_attr {time_attr!r} is no attribute of the vertices or edges")
        self.disjoint = disjoint or self.is_temporal
        weight = None if weight_attr is None else _on_cpu(data[weight_attr], weight_attr)
        self._candidates = direct(
            neighbour_candidates, graph.index, graph.offsets, graph.num_targets, graph.num_sources, graph.layout, 0, weight,
            self.edge_time, self.node_time)
        self.device = _checked_device(device, self.subgraph_type)
        if self.device.type == "cuda":
            self._candidates = _on_gpu(self._candidates, self.device, edge_memory)
            self._permutation = None if self._permutation is None else self._permutation.to(self.device)

    @property
    def edge_permutation(self) -> Tensor | None:
        """Which of the data's edges each sampled one is; None where samples say it themselves."""
        return self._permutation

    @property
    def is_temporal(self) -> bool:
        return self.node_time is not None or self.edge_time is not None

    @property
    def num_neighbors(self) -> NumNeighbors:
        return self._num_neighbors

    @num_neighbors.setter
    def num_neighbors(self, given: NumNeighbors | list[int]) -> None:
        values = given if isinstance(given, NumNeighbors) else NumNeighbors(given)
        if isinstance(values.values, dict):
            raise NotImplementedError("num_neighbors by types of edges: tessera samples graphs with one type; use a list")
        self._num_neighbors = values
        self._fan_outs = torch.tensor(values.get_mapped_values(), dtype=torch.int64)

    def sample_from_nodes(self, inputs: Any, step: int | None = None) -> SamplerOutput:
        out = self._sample(inputs.node, inputs.time, step)
        out.metadata = (inputs.input_id, inputs.time)
        return self._finished(out)

    def sample_from_edges(self, inputs: Any, neg_sampling: Any = None, step: int | None = None) -> SamplerOutput:
        sample = functools.partial(self._sample, step=step)
        return self._finished(edge_sample(inputs, sample, self.num_nodes, self.disjoint, self.node_time, neg_sampling))

    def _finished(self, out: SamplerOutput) -> SamplerOutput:
        return out.to_bidirectional() if self.subgraph_type == SubgraphType.bidirectional else out

    def _sample(self, seed: Tensor, seed_time: Tensor | None = None, step: int | None = None, **_: Any) -> SamplerOutput:
        seeds = seed.to("cpu", torch.int64).contiguous()
        if seed_time is not None:
            seed_time = _times(seed_time, "the time of the seeds")
        elif self.node_time is not None:
            seed_time = self.node_time[seeds]
        elif self.edge_time is not None:
            raise ValueError("edges have times, and seeds have none: give input_time")
        induced = self.subgraph_type == SubgraphType.induced
        node, row, col, edge, tree, nodes_until, edges_until = direct(
            draw_neighbours, self._candidates, seeds, seed_time, self._fan_outs, self.replace, self.disjoint,
            self.is_temporal and self.temporal_strategy == "last", induced, self.seed,
            next(self._calls) if step is None else step)
        return SamplerOutput(
            node=node, row=row, col=col, edge=edge, batch=tree if self.disjoint else None,
            num_sampled_nodes=None if induced else nodes_until.diff(prepend=nodes_until.new_zeros(1)).tolist(),
            num_sampled_edges=None if induced else edges_until.diff().tolist())


def _on_gpu(candidates: list[Tensor], device: torch.device, edge_memory: str) -> list[Tensor]:
    """Offsets of vertices on the GPU, and what there is of edges where it is wanted."""
    if edge_memory not in ("device", "host"):
        raise ValueError(f"edge_memory is {edge_memory!r}: use 'device' or 'host'")
    offsets, *of_edges = candidates
    pinned = edge_memory == "host"
    return [offsets.to(device), *(known.pin_memory() if pinned and known.numel() > 0 else known.to(device) for known in of_edges)]


def _checked_device(device: torch.device | str | None, subgraph_type: SubgraphType) -> torch.device:
    device = torch.device("cpu" if device is None else device)
    if device.type == "cpu":
        return device
    if device.type != "cuda":
        raise ValueError(f"device is {str(device)!r}: neighbours are drawn on 'cpu' or 'cuda'")
    if not (torch.cuda.is_available() and has_cuda()):
        raise ValueError(f"device is {str(device)!r}, and there are no GPU and operators for it: draw on 'cpu'")
    if subgraph_type == SubgraphType.induced:
        raise NotImplementedError("subgraph_type='induced' is not drawn on a GPU: use device='cpu'")
    return torch.device("cuda", torch.cuda.current_device() if device.index is None else device.index)


def _on_cpu(values: Tensor, name: str) -> Tensor:
    if not isinstance(values, Tensor) or values.dim() != 1:
        raise TypeError(f"{name} is no tensor of one dimension")
    return values.detach().cpu()


def _times(values: Tensor, name: str) -> Tensor:
    values = _on_cpu(values, name)
    if values.is_floating_point() or values.is_complex():
        raise TypeError(f"{name} has type {values.dtype}: times are whole numbers, of int64 for example")
    return values.to(torch.int64).contiguous()


def _graph_of(data: Any) -> tuple[Graph, Tensor | None]:
    """On the CPU; and which of the caller's edges each is, where the graph does not say it itself."""
    if isinstance(data, Data):
        adjacency = data.adj_t if "adj_t" in data else data.edge_index
        if isinstance(adjacency, Tensor) and adjacency.layout != torch.strided:
            raise TypeError("adj_t is a torch.sparse tensor, which batches of PyG cannot hold: give edge_index")
        if adjacency is None:
            adjacency = torch.empty(2, 0, dtype=torch.int64)
        return Graph.of(adjacency, data.num_nodes, data.num_nodes).without_weight().to("cpu"), None
    if isinstance(data, tuple) and [one.edge_type for one in data[1].get_all_edge_attrs()] == [None]:
        num_nodes = max(data[1].get_all_edge_attrs()[0].size)
        row, offsets, permutation = data[1].csc()
        return Graph._make(row, offsets, None, num_nodes, num_nodes, BY_TARGET).to("cpu"), permutation
    raise NotImplementedError(
        f"{type(data).__name__}: tessera samples graphs with one type of vertices and edges; PyG's loaders take others")
