# SPDX-License-Identifier: Apache-2.0
"""PyG's loaders of sampled neighbours, drawn by this library: neither pyg-lib nor torch_sparse is needed.

Example:
    >>> import torch, tessera
    >>> from torch_geometric.data import Data
    >>> data = Data(x=torch.eye(4), edge_index=torch.tensor([[1, 2, 3], [0, 0, 1]]))
    >>> loader = tessera.loader.NeighborLoader(data, num_neighbors=[-1, -1], batch_size=1, input_nodes=torch.tensor([0]))
    >>> next(iter(loader)).n_id
    tensor([0, 1, 2, 3])
"""

from __future__ import annotations

import itertools
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.loader import LinkLoader, NodeLoader

from ._neighbour_sampler import NeighborSampler
from ._side_stream import SideStream

__all__ = ["LinkNeighborLoader", "NeighborLoader"]

# What only makes sense for processes.
_OF_PROCESSES = ("worker_init_fn", "multiprocessing_context")
_STEPS_OF_EPOCH = 1 << 32


class _DrawnAhead:
    """Draws batches by threads while earlier ones are used. Which batches come, and what is in them, does not depend on it:
    batch k of epoch e is step ``(e << 32) + k``."""

    def _take(self, arguments: dict[str, Any], device: torch.device) -> dict[str, Any]:
        """Takes what concerns threads out of the arguments for PyG's loader."""
        odd = [name for name in _OF_PROCESSES if arguments.get(name) is not None]
        if odd:
            raise TypeError(f"{odd[0]}: batches are drawn by threads of this process, so there is none to set up")
        arguments.pop("persistent_workers", None)
        self._threads = max(1, arguments.pop("num_workers", 0))
        self._ahead = self._threads * (arguments.pop("prefetch_factor", None) or 2)
        self._epochs = itertools.count()
        self._side_stream = SideStream(device) if device.type == "cuda" else None
        return {**arguments, "filter_per_worker": False, "transform": None}

    def _drawn(self, index: list[int], step: int) -> Any:
        raise NotImplementedError

    def _joined(self, index: list[int], step: int) -> Data:
        data = super().filter_fn(self._drawn(index, step))
        return data.pin_memory() if self.pin_memory and torch.cuda.is_available() else data

    def _made(self, index: list[int], step: int) -> Callable[[], Data]:
        """Makes a batch. Who uses it calls the result."""
        if self._side_stream is None:
            data = self._joined(index, step)
            return lambda: data
        made = self._side_stream.make(lambda: self._joined(index, step))
        return lambda: self._side_stream.hand_over(*made)

    def filter_fn(self, out: Any) -> Data:
        data = super().filter_fn(out)
        return data if self._transform is None else self._transform(data)

    def _get_iterator(self) -> Iterator[Data]:
        first_step = next(self._epochs) * _STEPS_OF_EPOCH
        batches = self.sampler if self.batch_sampler is None else self.batch_sampler
        tasks = ((index if isinstance(index, list) else [index], step) for step, index in enumerate(batches, first_step))
        if self._side_stream is not None:
            self._side_stream.follow()
        for take in self._in_order(tasks):
            data = take()
            yield data if self._transform is None else self._transform(data)

    def _in_order(self, tasks: Iterator[tuple[list[int], int]]) -> Iterator[Callable[[], Data]]:
        if self._ahead == 0:
            yield from itertools.starmap(self._made, tasks)
            return
        waiting: deque = deque()
        threads = ThreadPoolExecutor(self._threads, thread_name_prefix="tessera-loader")
        try:
            waiting.extend(threads.submit(self._made, *task) for task in itertools.islice(tasks, self._ahead))
            while waiting:
                first = waiting.popleft()
                waiting.extend(threads.submit(self._made, *task) for task in itertools.islice(tasks, 1))
                yield first.result()
        finally:
            threads.shutdown(cancel_futures=True)


class NeighborLoader(_DrawnAhead, NodeLoader):
    """``torch_geometric.loader.NeighborLoader`` for a ``Data``, with its arguments and batches.

    ``seed`` decides what is drawn; without it, torch's numbers do. ``num_workers`` is how many threads draw batches ahead
    (one at least), ``prefetch_factor`` how many batches each (2). Threads share the features, so ``filter_per_worker`` makes
    no difference; ``transform`` runs where the batch is used. ``is_sorted`` makes none either. ``device`` is where neighbours
    are drawn: ``"cuda"`` draws the batches of the CPU, the default, on a GPU. Features are gathered where they lie. With
    ``edge_memory="host"`` the GPU reads edges from pinned memory of this process.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.data import Data
        >>> data = Data(x=torch.rand(100, 8), edge_index=torch.randint(100, (2, 900)))
        >>> loader = tessera.loader.NeighborLoader(data, num_neighbors=[5, 5], batch_size=25, seed=1)
        >>> [batch.batch_size for batch in loader]
        [25, 25, 25, 25]
    """

    def __init__(
        self,
        data: Data,
        num_neighbors: list[int],
        input_nodes: Any = None,
        input_time: Tensor | None = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Callable | None = None,
        transform_sampler_output: Callable | None = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: NeighborSampler | None = None,
        directed: bool = True,
        seed: int | None = None,
        device: torch.device | str | None = None,
        edge_memory: str = "device",
        **kwargs: Any,
    ) -> None:
        if input_time is not None and time_attr is None:
            raise ValueError("input_time is given and time_attr is not: name the attribute that holds times")
        if neighbor_sampler is None:
            neighbor_sampler = NeighborSampler(
                data, num_neighbors, subgraph_type, replace, disjoint, temporal_strategy, time_attr, weight_attr,
                directed=directed, seed=seed, device=device, edge_memory=edge_memory)
        self._transform = transform
        super().__init__(
            data=data, node_sampler=neighbor_sampler, input_nodes=input_nodes, input_time=input_time,
            transform_sampler_output=transform_sampler_output, **self._take(kwargs, neighbor_sampler.device))

    def _drawn(self, index: list[int], step: int) -> Any:
        return self.node_sampler.sample_from_nodes(self.input_data[index], step)


class LinkNeighborLoader(_DrawnAhead, LinkLoader):
    """``torch_geometric.loader.LinkNeighborLoader`` for a ``Data``, with its arguments and batches.

    As :class:`NeighborLoader`. Negative edges are drawn by PyG with torch's numbers, and such batches not ahead, so that
    ``torch.manual_seed`` decides them.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.data import Data
        >>> data = Data(x=torch.rand(100, 8), edge_index=torch.randint(100, (2, 900)))
        >>> loader = tessera.loader.LinkNeighborLoader(data, num_neighbors=[5], batch_size=300, neg_sampling_ratio=1.0, seed=1)
        >>> [batch.edge_label_index.shape[1] for batch in loader]
        [600, 600, 600]
    """

    def __init__(
        self,
        data: Data,
        num_neighbors: list[int],
        edge_label_index: Any = None,
        edge_label: Tensor | None = None,
        edge_label_time: Tensor | None = None,
        replace: bool = False,
        subgraph_type: Any = "directional",
        disjoint: bool = False,
        temporal_strategy: str = "uniform",
        neg_sampling: Any = None,
        neg_sampling_ratio: float | None = None,
        time_attr: str | None = None,
        weight_attr: str | None = None,
        transform: Callable | None = None,
        transform_sampler_output: Callable | None = None,
        is_sorted: bool = False,
        filter_per_worker: bool | None = None,
        neighbor_sampler: NeighborSampler | None = None,
        directed: bool = True,
        seed: int | None = None,
        device: torch.device | str | None = None,
        edge_memory: str = "device",
        **kwargs: Any,
    ) -> None:
        if (edge_label_time is None) != (time_attr is None):
            raise ValueError("edge_label_time and time_attr belong together: give both or none")
        if neighbor_sampler is None:
            neighbor_sampler = NeighborSampler(
                data, num_neighbors, subgraph_type, replace, disjoint, temporal_strategy, time_attr, weight_attr,
                directed=directed, seed=seed, device=device, edge_memory=edge_memory)
        self._transform = transform
        super().__init__(
            data=data, link_sampler=neighbor_sampler, edge_label_index=edge_label_index, edge_label=edge_label,
            edge_label_time=edge_label_time, neg_sampling=neg_sampling, neg_sampling_ratio=neg_sampling_ratio,
            transform_sampler_output=transform_sampler_output, **self._take(kwargs, neighbor_sampler.device))
        if self.neg_sampling is not None:
            self._ahead = 0

    def _drawn(self, index: list[int], step: int) -> Any:
        return self.link_sampler.sample_from_edges(self.input_data[index], self.neg_sampling, step)
