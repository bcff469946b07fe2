# SPDX-License-Identifier: Apache-2.0
"""Sampled batches of a graph whose edges and features lie on several ranks."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor
from torch_geometric.data import Data

from .._neighbour_sampler import random_seed
from .._sampling_operators import draw_neighbours, neighbour_candidates
from ..errors import direct
from ..graph import Graph
from ._exchange import swap
from ._part import Part, _gathered


class _Owners:
    """Asks the ranks that have vertices for what there is of them."""

    def __init__(self, part: Part, ids: Tensor) -> None:
        self._run = part._session
        owner = part._owner[ids].long()
        self._order = owner.argsort(stable=True)
        self._asked = torch.bincount(owner, minlength=self._run.ranks).tolist()
        ones = [1] * self._run.ranks
        self._told = swap(self._run, torch.tensor(self._asked).view(-1, 1), ones, ones).view(-1).tolist()
        #: Rows of this rank that others (and itself) ask for.
        self.rows = part._rows_of(swap(self._run, ids[self._order], self._asked, self._told))

    def bring(self, answers: Tensor) -> Tensor:
        """One row for each that was asked of this rank, as one for each id."""
        came = swap(self._run, answers, self._told, self._asked)
        out = torch.empty_like(came)
        out[self._order.to(came.device)] = came
        return out

    def bring_lists(self, lengths: Tensor, answers: Tensor) -> tuple[Tensor, Tensor]:
        """As many rows as ``lengths`` says for each; what comes is the length of each list, and the lists."""
        came = swap(self._run, lengths, self._told, self._asked)
        to = [int(one.sum()) for one in lengths.split(self._told)]
        lists = swap(self._run, answers, to, [int(one.sum()) for one in came.split(self._asked)])
        pieces = lists.split(came.tolist())
        place = self._order.argsort()
        ordered = [pieces[i] for i in place.tolist()]
        return came[place], torch.cat(ordered) if ordered else lists


class NeighborLoader:
    """Batches of sampled neighbours, different ones on each rank, from a graph that lies on all ranks.

    The vertices to begin with are dealt to the ranks anew in each epoch, equally many to each, so that every rank makes as many
    steps, and ``DistributedDataParallel`` means what one process with batches of all ranks would. Batches are PyG's ``Data``
    with ``n_id``, ``batch_size``, ``num_sampled_nodes`` and ``num_sampled_edges``, and what the part has of vertices.

    Args:
        part: of :func:`partition`.
        num_neighbors: how many each vertex draws, hop by hop; -1 takes all.
        input_nodes: a mask of this rank's vertices to begin with. Default: all.
        batch_size: of each rank.
        shuffle: in each epoch another order.
        replace: draw with replacement.
        seed: decides order and draws, together with the parts. Default: torch's numbers of rank 0.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.data import Data
        >>> run = tessera.distributed.start()
        >>> part = tessera.distributed.partition(Data(x=torch.rand(9, 2), edge_index=torch.randint(9, (2, 30))))
        >>> loader = tessera.distributed.NeighborLoader(part, num_neighbors=[3, 3], batch_size=4, seed=1)
        >>> [batch.batch_size for batch in loader]
        [4, 4, 1]
        >>> tessera.distributed.end()
    """

    def __init__(self, part: Part, num_neighbors: list[int], *, input_nodes: Tensor | None = None, batch_size: int = 1,
                 shuffle: bool = False, replace: bool = False, seed: int | None = None) -> None:
        if batch_size < 1:
            raise ValueError(f"batch_size is {batch_size}: use 1 or more")
        rows = part.n_id.numel()
        if input_nodes is not None and (input_nodes.dtype != torch.bool or tuple(input_nodes.shape) != (rows,)):
            raise ValueError(f"input_nodes has type {input_nodes.dtype} and shape {tuple(input_nodes.shape)}: use a mask of this "
                             f"rank's {rows} vertices, such as part.train_mask")
        self._part, self._run = part, part._session
        self._fan_outs, self._batch_size, self._shuffle, self._replace = list(num_neighbors), batch_size, shuffle, replace
        own = part.n_id if input_nodes is None else part.n_id[input_nodes]
        told = _gathered(self._run, (own.cpu(), random_seed() if seed is None else seed), "telling where batches begin")
        self._inputs = torch.cat([ids for ids, _ in told]).sort().values
        self._seed = told[0][1]
        if self._inputs.numel() == 0:
            raise ValueError("there is no vertex to begin with: input_nodes names none on any rank")
        edges = part.edge_index
        columns = edges.num_rows + edges.num_boundary
        square = Graph(edges.index.cpu(), columns, columns)
        self._candidates = direct(neighbour_candidates, square.index, None, columns, columns, square.layout, 0, None, None, None)
        self._epoch = 0

    def __len__(self) -> int:
        """The same on every rank."""
        return -(-self._of_each_rank() // self._batch_size)

    def _of_each_rank(self) -> int:
        return -(-self._inputs.numel() // self._run.ranks)

    def __iter__(self) -> Iterator[Data]:
        epoch, self._epoch = self._epoch, self._epoch + 1
        order = torch.arange(self._inputs.numel())
        if self._shuffle:
            order = torch.randperm(self._inputs.numel(), generator=torch.Generator().manual_seed(self._seed % (1 << 63) + epoch))
        # Where vertices do not divide by ranks, the first ones come again.
        dealt = (torch.arange(self._of_each_rank()) * self._run.ranks + self._run.rank) % order.numel()
        for step, seeds in enumerate(self._inputs[order[dealt]].split(self._batch_size), epoch << 32):
            self._run.step += 1
            yield self._batch(seeds, step)

    def _batch(self, seeds: Tensor, step: int) -> Data:
        ids, begin, index = seeds, 0, []
        nodes, edges = [seeds.numel()], []
        for hop, fan_out in enumerate(self._fan_outs):
            degrees, sources = self._drawn(ids[begin:], fan_out, step * len(self._fan_outs) + hop)
            targets = torch.repeat_interleave(torch.arange(begin, ids.numel()), degrees)
            begin = ids.numel()
            ids, places = _numbered(ids, sources)
            index.append(torch.stack([places, targets]))
            nodes.append(ids.numel() - begin)
            edges.append(sources.numel())
        owners, device = _Owners(self._part, ids), self._run.device
        batch = Data(edge_index=torch.cat(index, 1).to(device) if index else torch.empty(2, 0, dtype=torch.int64, device=device))
        for name in self._part._of_vertices:
            values = getattr(self._part, name)
            batch[name] = owners.bring(values[owners.rows.to(values.device)])
        batch.n_id, batch.batch_size = ids.to(device), seeds.numel()
        batch.num_sampled_nodes, batch.num_sampled_edges = nodes, edges
        return batch

    def _drawn(self, ids: Tensor, fan_out: int, step: int) -> tuple[Tensor, Tensor]:
        """How many neighbours each vertex has drawn, and which, on the ranks that have their edges."""
        owners = _Owners(self._part, ids)
        vertices, sources, targets, *_ = direct(
            draw_neighbours, self._candidates, owners.rows, None, torch.tensor([fan_out]), self._replace, False, False, False,
            self._seed, step)
        degrees = torch.bincount(targets, minlength=owners.rows.numel())
        return owners.bring_lists(degrees, self._part._columns[vertices[sources]])


def _numbered(ids: Tensor, more: Tensor) -> tuple[Tensor, Tensor]:
    """Different ids and then those of ``more`` that are new, in the order in which they come; and where each of ``more`` is."""
    both = torch.cat([ids, more])
    known, places = torch.unique(both, return_inverse=True)
    first = torch.full_like(known, both.numel()).scatter_reduce(0, places, torch.arange(both.numel()), "amin")
    order = first.argsort()
    return known[order], order.argsort()[places[ids.numel():]]
