# SPDX-License-Identifier: Apache-2.0
"""The part of a graph that one rank holds."""

from __future__ import annotations

import os
import zlib
from typing import Any

import numpy as np
import torch
import torch.distributed as dist
from torch import Tensor

from .._sampling_operators import vertex_parts
from ..errors import direct
from ..graph import Graph
from ._edges import Edges
from ._exchange import exchange_of
from ._session import Session, session


class Part:
    """What a rank holds of a graph: all that the data has of its vertices (``x``, ``y``, masks) and of the edges to them, by the
    names of the data, in the order of ``n_id``. ``edge_index`` goes to a model of :func:`whole_graph` as it is."""

    #: Which vertices of the graph the rows are.
    n_id: Tensor
    #: Edges from the vertices of all ranks to those of this one.
    edge_index: Edges

    def __init__(self, run: Session, pieces: dict[str, Any]) -> None:
        self._session, self.num_nodes = run, pieces["vertices"]
        owner, own, index = pieces["owner"], pieces["own"], pieces["index"]
        is_mine = owner[index[0]] == run.rank
        reaches_out = torch.zeros(self.num_nodes, dtype=torch.bool)
        reaches_out[index[1][~is_mine]] = True
        own_out = reaches_out[own]
        order = torch.cat([(~own_out).nonzero().view(-1), own_out.nonzero().view(-1)])
        self.n_id, inner = own[order], int((~own_out).sum())
        wanted = torch.unique(index[0][~is_mine])
        owners, by_owner = owner[wanted].sort(stable=True)
        wanted = wanted[by_owner]
        place = torch.full((self.num_nodes,), -1)
        place[self.n_id] = torch.arange(own.numel())
        place[wanted] = own.numel() + torch.arange(wanted.numel())
        index = place[index]
        of_inner = index[1] < inner
        edge_order = torch.cat([of_inner.nonzero().view(-1), (~of_inner).nonzero().view(-1)])
        exchange = exchange_of(run, wanted, owners, place)
        exchange.rows = exchange.rows.to(run.device)
        self.edge_index = Edges(exchange, index[:, edge_order].to(run.device), own.numel(), inner, wanted.numel())
        for name, values in pieces["of_vertices"].items():
            setattr(self, name, values[order].to(run.device))
        for name, values in pieces["of_edges"].items():
            setattr(self, name, values[edge_order].to(run.device))
        self._of_vertices = list(pieces["of_vertices"])
        self._owner, self._columns = owner, torch.cat([self.n_id, wanted])
        self._sorted, self._places = self.n_id.sort()
        self.n_id = self.n_id.to(run.device)

    def _rows_of(self, ids: Tensor) -> Tensor:
        """Of vertices that this rank has."""
        return self._places[torch.searchsorted(self._sorted, ids)]

    def mean(self, values: Tensor, mask: Tensor | None = None) -> Tensor:
        """The mean of a number for each vertex over those of all ranks, or over those that a mask names. Every rank gets it, and
        gradients go to the ranks that hold the vertices.

        Example:
            >>> import torch, tessera
            >>> from torch_geometric.data import Data
            >>> run = tessera.distributed.start()
            >>> part = tessera.distributed.partition(Data(edge_index=torch.tensor([[0, 1], [1, 0]]), num_nodes=2))
            >>> part.mean(torch.tensor([1.0, 3.0]))
            tensor(2.)
            >>> tessera.distributed.end()
        """
        if values.dim() != 1 or values.size(0) != self.n_id.numel():
            raise ValueError(f"values have shape {tuple(values.shape)}: use one number for each of {self.n_id.numel()} vertices")
        chosen = values if mask is None else values[mask]
        return _Mean.apply(chosen.sum(), chosen.numel(), self._session)

    def collect(self, rows: Tensor) -> Tensor | None:
        """A row for each vertex of the graph, in its order, on rank 0; None elsewhere."""
        if rows.size(0) != self.n_id.numel():
            raise ValueError(f"there are {rows.size(0)} rows: use one for each of {self.n_id.numel()} vertices")
        pairs = _gathered(self._session, (self.n_id.cpu(), rows.detach().cpu()), "collecting rows")
        if self._session.rank != 0:
            return None
        whole = rows.detach().cpu().new_empty((self.num_nodes, *rows.shape[1:]))
        for ids, values in pairs:
            whole[ids] = values
        return whole

    def __repr__(self) -> str:
        edges = self.edge_index
        return (f"Part(rank={self._session.rank} of {self._session.ranks}, vertices={edges.num_rows}, inner={edges.num_inner}, "
                f"boundary={edges.num_boundary}, edges={edges.num_edges})")


class _Mean(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, total: Tensor, count: int, run: Session) -> Tensor:
        both = torch.stack([total.double(), total.new_tensor(count, dtype=torch.float64)])
        if run.ranks > 1:
            run.waiting("adding a mean", lambda: dist.all_reduce(both))
        if int(both[1]) == 0:
            raise ValueError("the mean of no vertices: the mask names none on any rank")
        ctx.count = float(both[1])
        return (both[0] / both[1]).to(total.dtype)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad / ctx.count, None, None


def partition(data: Any, parts: Any = None, *, seed: int = 1) -> Part:
    """This rank's part of a graph.

    Args:
        data: PyG's ``Data``, the same on every rank, or None on all but rank 0, which then sends each rank its part.
        parts: the rank of each vertex, a tensor or a file of ``tessera partition -o``. Default: rank 0 finds them, with few edges
            between ranks.
        seed: of the parts found.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.data import Data
        >>> run = tessera.distributed.start()
        >>> data = Data(x=torch.rand(4, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> tessera.distributed.partition(data)
        Part(rank=0 of 1, vertices=4, inner=4, boundary=0, edges=3)
        >>> tessera.distributed.end()
    """
    run = session()
    if data is not None:
        _check(data)
    known = _gathered(run, None if data is None else _fingerprint(data), "comparing data")
    if known[0] is None:
        raise ValueError("rank 0 has no data: give it to rank 0 at least")
    differences = [f"rank {rank}: {_difference(known[0], other)}" for rank, other in enumerate(known)
                   if other is not None and other != known[0]]
    if differences:
        raise ValueError(f"ranks have different data, compared with rank 0: {'; '.join(differences)}. Let every rank read the "
                         "same file, or give None on all but rank 0")
    owner = _owners(run, data, parts, seed)
    sends = None in known
    if not sends:
        return Part(run, _pieces(data, owner, run.rank))
    all_pieces = [_pieces(data, owner, rank) for rank in range(run.ranks)] if run.rank == 0 else None
    received: list[Any] = [None]
    run.waiting("sending parts", lambda: dist.scatter_object_list(received, all_pieces))
    return Part(run, received[0])


def _check(data: Any) -> None:
    if getattr(data, "edge_index", None) is None or hasattr(data, "edge_types"):
        raise TypeError(f"data is a {type(data).__name__}: use PyG's Data with an edge_index, of one type of vertices and edges")


def _tensors(data: Any) -> dict[str, Tensor]:
    return {name: value for name, value in data.items() if isinstance(value, Tensor) and value.layout == torch.strided}


def _fingerprint(data: Any) -> dict[str, tuple]:
    """What two ranks that have the same data agree on, by name."""
    found = {"num_nodes": (data.num_nodes,)}
    for name, value in _tensors(data).items():
        number = zlib.crc32(value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()) if value.numel() else 0
        found[name] = (tuple(value.shape), value.dtype, number)
    return found


def _difference(expected: dict[str, tuple], found: dict[str, tuple]) -> str:
    for name in sorted({*expected, *found}):
        if name not in found or name not in expected:
            return f"{name} is {'missing' if name not in found else 'there'}"
        if expected[name] != found[name]:
            shapes = expected[name][0] != found[name][0]
            return f"{name} has {found[name][0]}, not {expected[name][0]}" if shapes else f"{name} holds other values"
    return ""


def _owners(run: Session, data: Any, parts: Any, seed: int) -> Tensor:
    """The rank of each vertex. Rank 0 finds it or reads it, and tells the others, also what is wrong with it."""
    told: list[Any] = [None]
    if run.rank == 0:
        try:
            told[0] = _found_parts(run.ranks, data, parts, seed).to(torch.int32)
        except (ValueError, TypeError, OSError) as error:
            told[0] = error
    run.waiting("telling the parts", lambda: dist.broadcast_object_list(told))
    if isinstance(told[0], Exception):
        raise told[0]
    return told[0]


#: What a part has itself, so that data must not have it.
_OWN_NAMES = {"n_id", "mean", "collect"}


def _found_parts(ranks: int, data: Any, parts: Any, seed: int) -> Tensor:
    for name in _tensors(data):
        if name in _OWN_NAMES or name.startswith("_"):
            raise ValueError(f"data.{name} would hide what a part has under this name: give it another one")
    vertices = data.num_nodes
    if parts is None:
        graph = Graph.of(data.edge_index, vertices, vertices).without_weight().to("cpu")
        if ranks == 1:
            return torch.zeros(vertices, dtype=torch.int64)
        return direct(vertex_parts, graph.index, graph.offsets, vertices, vertices, graph.layout, 0, ranks, seed)
    where = "parts"
    if isinstance(parts, (str, os.PathLike)):
        where, parts = str(parts), np.loadtxt(parts, dtype=np.int64, ndmin=1)
    owner = torch.as_tensor(parts).cpu()
    if owner.dim() != 1 or owner.is_floating_point() or owner.numel() != vertices:
        raise ValueError(f"{where}: {tuple(owner.shape)} numbers of {owner.dtype} for {vertices} vertices: use one whole number "
                         "for each")
    held = torch.bincount(owner.clamp(min=0), minlength=ranks)
    if int(owner.min()) < 0 or held.numel() != ranks or int(held.min()) == 0:
        raise ValueError(f"{where}: the parts are {owner.unique()[:20].tolist()}, and there are {ranks} ranks: use parts 0 "
                         f"to {ranks - 1}, as tessera partition --parts {ranks} -o FILE writes them")
    return owner


def _pieces(data: Any, owner: Tensor, rank: int) -> dict[str, Any]:
    """All of the data that a rank needs."""
    own = (owner == rank).nonzero().view(-1)
    index = data.edge_index.detach().cpu().long()
    edges = (owner[index[1]] == rank).nonzero().view(-1)
    tensors = _tensors(data)
    return {
        "vertices": data.num_nodes, "owner": owner, "own": own, "index": index[:, edges],
        "of_vertices": {name: value.cpu()[own] for name, value in tensors.items() if data.is_node_attr(name)},
        "of_edges": {name: value.cpu()[edges] for name, value in tensors.items()
                     if name != "edge_index" and data.is_edge_attr(name)},
    }


def _gathered(run: Session, what: Any, doing: str) -> list[Any]:
    """What every rank says."""
    said: list[Any] = [None] * run.ranks
    run.waiting(doing, lambda: dist.all_gather_object(said, what))
    return said
