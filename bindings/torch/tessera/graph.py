# SPDX-License-Identifier: Apache-2.0
"""Graphs: which tensors describe the edges, and how."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

from ._kept import kept

# Numbers of bindings/torch/src/structure.hpp.
SOURCE_TARGET, TARGET_SOURCE, BY_TARGET, BY_SOURCE = range(4)
LOOPS = {"given": 0, "one_each": 1, "dropped": 2, "one_more": 3}
NORMS = {None: 0, "symmetric": 1, "mean": 2, "symmetric_by_source": 3}


def loops_number(loops: str) -> int:
    """What operators call a way to treat self loops."""
    if loops not in LOOPS:
        raise ValueError(f"unknown loops {loops!r}: use given, one_each, dropped or one_more")
    return LOOPS[loops]


def _check_indices(tensor: Tensor, name: str) -> None:
    if not isinstance(tensor, Tensor):
        raise TypeError(f"{name} is a {type(tensor).__name__}, not a tensor: use torch.as_tensor({name})")
    if tensor.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} has type {tensor.dtype}: use torch.int64 or torch.int32")


def _check_count(count: int | None, name: str) -> None:
    """Of vertices; not in compiled code, where sizes are no ints."""
    if count is None or torch.compiler.is_compiling() or isinstance(count, torch.SymInt):
        return
    try:
        operator.index(count)
    except TypeError:
        raise TypeError(f"{name} is a {type(count).__name__}, not an int") from None
    if count < 0:
        raise ValueError(f"{name} is {count}: use 0 or more")


def _check_weight(weight: Tensor | None, index: Tensor) -> None:
    """One number for each edge, and then for loops that will be added; or one for each edge and head."""
    if weight is None:
        return
    if not isinstance(weight, Tensor):
        raise TypeError(f"edge_weight is a {type(weight).__name__}, not a tensor")
    if not weight.is_floating_point():
        raise TypeError(f"edge_weight has type {weight.dtype}: use a float")
    if weight.device != index.device:
        raise ValueError(f"edge_weight lies on {weight.device}, the graph on {index.device}: move one of them")
    if weight.dim() not in (1, 2) or (not torch.compiler.is_compiling() and weight.size(0) < index.size(-1)):
        raise ValueError(f"edge_weight has shape {tuple(weight.shape)}: use ({index.size(-1)},)")


def _vertices_of(edge_index: Tensor) -> int:
    return int(edge_index.max()) + 1 if edge_index.numel() > 0 else 0


class Graph:
    """Edges from sources to targets, described by tensors that stay where they are.

    Every function and layer of this package takes a graph, or anything that :meth:`of` makes one of.
    What kernels need (rows, transposes, self loops, plans) is made when it is first needed, on the
    device of the tensors, and kept by the operators for as long as the tensors do not change; see
    :func:`tessera.set_cache_limits`. Repeated edges count as often as they occur, as in PyG.

    Args:
        edge_index: sources and targets, ``2 x edges``, int64 or int32.
        num_targets: vertices that receive. Default: one more than the largest target.
        num_sources: vertices that send. Default: ``num_targets`` or more, for a square graph.
        edge_weight: one number for each edge.

    Example:
        >>> import torch, tessera
        >>> graph = tessera.Graph(torch.tensor([[0, 1, 2], [1, 2, 0]]))
        >>> graph
        Graph(targets=3, sources=3, edges=3)
        >>> tessera.spmm(graph, torch.eye(3))
        tensor([[0., 0., 1.],
                [1., 0., 0.],
                [0., 1., 0.]])
    """

    def __init__(
        self,
        edge_index: Tensor,
        num_targets: int | None = None,
        num_sources: int | None = None,
        edge_weight: Tensor | None = None,
    ) -> None:
        _check_indices(edge_index, "edge_index")
        if edge_index.dim() != 2 or edge_index.size(0) != 2:
            raise ValueError(f"edge_index has shape {tuple(edge_index.shape)}: use (2, edges)")
        _check_count(num_targets, "num_targets")
        _check_count(num_sources, "num_sources")
        _check_weight(edge_weight, edge_index)
        if num_targets is None and num_sources is None:
            # Asked once for each edge_index: to read a number of a GPU waits for it.
            num_targets = num_sources = kept((edge_index,), "vertices", lambda: _vertices_of(edge_index))
        self.index = edge_index
        self.offsets: Tensor | None = None
        self.weight = edge_weight
        self.num_targets = num_targets if num_targets is not None else num_sources
        self.num_sources = num_sources if num_sources is not None else num_targets
        self.layout = SOURCE_TARGET

    @classmethod
    def _make(
        cls,
        index: Tensor,
        offsets: Tensor | None,
        weight: Tensor | None,
        num_targets: int,
        num_sources: int,
        layout: int,
    ) -> Graph:
        graph = cls.__new__(cls)
        graph.index, graph.offsets, graph.weight = index, offsets, weight
        graph.num_targets, graph.num_sources, graph.layout = num_targets, num_sources, layout
        return graph

    @classmethod
    def from_sparse(cls, matrix: Tensor) -> Graph:
        """Of a ``torch.sparse`` tensor whose rows are targets (PyG's ``adj_t``): CSR, CSC or COO.

        Values that are all 1 are dropped: the graph is then unweighted. Entries of a COO tensor that name one place are one
        edge with the sum of their values, as in PyG.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph.from_sparse(torch.eye(3).to_sparse_csr())
            Graph(targets=3, sources=3, edges=3)
        """
        if not isinstance(matrix, Tensor):
            raise TypeError(f"the matrix is a {type(matrix).__name__}, not a tensor: use Graph.of")
        if matrix.layout == torch.sparse_csr:
            index, offsets, layout = matrix.col_indices(), matrix.crow_indices(), BY_TARGET
            values = matrix.values()
        elif matrix.layout == torch.sparse_csc:
            index, offsets, layout = matrix.row_indices(), matrix.ccol_indices(), BY_SOURCE
            values = matrix.values()
        elif matrix.layout == torch.sparse_coo:
            matrix = matrix.coalesce()  # entries of one place are one, their sum, as everywhere in torch
            index, offsets, layout = matrix.indices(), None, TARGET_SOURCE
            values = matrix.values()
        else:
            raise TypeError(f"a tensor of layout {matrix.layout} is no sparse matrix")
        if matrix.dim() != 2 or values.dim() != 1:
            raise ValueError("the sparse matrix holds more than one value for each edge")
        if values.is_complex():
            raise TypeError(f"the sparse matrix has values of type {values.dtype}: use a float")
        if not values.is_floating_point():
            values = values.to(torch.float32)
        trivial = not values.requires_grad and bool((values == 1).all())
        return cls._make(index, offsets, None if trivial else values, matrix.size(0),
                         matrix.size(1), layout)

    @classmethod
    def from_scipy(cls, matrix: Any) -> Graph:
        """Of a SciPy sparse matrix whose rows are targets.

        Example:
            >>> import scipy.sparse, tessera
            >>> tessera.Graph.from_scipy(scipy.sparse.identity(4).tocsr())
            Graph(targets=4, sources=4, edges=4)
        """
        if not hasattr(matrix, "tocsr"):
            raise TypeError(f"{type(matrix).__name__} is no sparse matrix of SciPy")
        matrix = matrix.tocsr()
        values = torch.from_numpy(matrix.data)
        if values.is_complex():
            raise TypeError(f"the sparse matrix has values of type {values.dtype}: use a float")
        if not values.is_floating_point():
            values = values.to(torch.float32)
        weight = None if bool((values == 1).all()) else values
        return cls._make(torch.from_numpy(matrix.indices), torch.from_numpy(matrix.indptr), weight,
                         matrix.shape[0], matrix.shape[1], BY_TARGET)

    @classmethod
    def of(
        cls, adjacency: Any, num_targets: int | None = None, num_sources: int | None = None
    ) -> Graph:
        """Of whatever holds edges: an ``edge_index``, a ``torch.sparse`` tensor, PyG's ``Data``, edges of one type
        of ``HeteroData``, ``EdgeIndex`` or ``SparseTensor``, a SciPy matrix, or a graph.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph.of(torch.tensor([[0, 1], [1, 0]]), 2, 2)
            Graph(targets=2, sources=2, edges=2)
        """
        if isinstance(adjacency, Graph):
            return adjacency
        if isinstance(adjacency, Tensor):
            if adjacency.layout != torch.strided:
                return _known_sparse(adjacency)
            if hasattr(adjacency, "sparse_size") and hasattr(adjacency, "as_tensor"):  # EdgeIndex
                size = adjacency.sparse_size()
                num_sources = num_sources if num_sources is not None else size[0]
                num_targets = num_targets if num_targets is not None else size[1]
                adjacency = adjacency.as_tensor()
            return cls(adjacency, num_targets, num_sources)
        if hasattr(adjacency, "sparse_sizes") and hasattr(adjacency, "csr"):  # SparseTensor
            offsets, index, values = adjacency.csr()
            return cls._make(index, offsets, values, adjacency.size(0), adjacency.size(1), BY_TARGET)
        if hasattr(adjacency, "edge_types"):  # HeteroData
            raise TypeError(f"{type(adjacency).__name__} holds edges of several types: use Graph.of(data[edge_type])")
        if hasattr(adjacency, "edge_index"):  # Data, or the edges of one type
            if adjacency.edge_index is None:
                raise ValueError(f"the {type(adjacency).__name__} has no edge_index: tessera.Graph.of(data.adj_t) takes "
                                 "a sparse matrix")
            vertices = getattr(adjacency, "num_nodes", None)
            sources, targets = (vertices, vertices) if vertices is not None else adjacency.size()
            if num_targets is not None:
                sources = targets = num_targets
            if num_sources is not None:
                sources = num_sources
            weight = getattr(adjacency, "edge_weight", None)
            return cls(adjacency.edge_index, targets, sources, weight)
        if hasattr(adjacency, "tocsr"):
            return cls.from_scipy(adjacency)
        raise TypeError(f"{type(adjacency).__name__} holds no edges that tessera knows how to read")

    def reversed(self) -> Graph:
        """The same edges from targets to sources.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph(torch.tensor([[0, 1], [1, 2]]), 3).reversed().targets_and_sources()
            (tensor([0, 1]), tensor([1, 2]))
        """
        layout = {SOURCE_TARGET: TARGET_SOURCE, TARGET_SOURCE: SOURCE_TARGET, BY_TARGET: BY_SOURCE,
                  BY_SOURCE: BY_TARGET}[self.layout]
        return Graph._make(self.index, self.offsets, self.weight, self.num_sources,
                           self.num_targets, layout)

    def without_weight(self) -> Graph:
        """The same edges, each of weight 1.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph(torch.tensor([[0], [1]]), 2, 2, torch.tensor([0.5])).without_weight()
            Graph(targets=2, sources=2, edges=1)
        """
        if self.weight is None:
            return self
        return Graph._make(self.index, self.offsets, None, self.num_targets, self.num_sources,
                           self.layout)

    def targets_and_sources(self) -> tuple[Tensor, Tensor]:
        """Both ends of every edge, in the caller's order."""
        if self.layout == SOURCE_TARGET:
            return self.index[1], self.index[0]
        if self.layout == TARGET_SOURCE:
            return self.index[0], self.index[1]
        assert self.offsets is not None
        rows = torch.repeat_interleave(self.offsets.diff().to(torch.int64))
        return (rows, self.index) if self.layout == BY_TARGET else (self.index, rows)

    def to(self, device: torch.device | str) -> Graph:
        """On another device."""
        def move(tensor: Tensor | None) -> Tensor | None:
            return None if tensor is None else tensor.to(device)

        index = self.index.to(device)
        return Graph._make(index, move(self.offsets), move(self.weight), self.num_targets,
                           self.num_sources, self.layout)

    def coalesced(self) -> Graph:
        """Each edge once, sorted by targets and then sources. Repeated edges become one with the sum of their weights, or,
        without weights, with how many they were.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph(torch.tensor([[0, 0, 1], [1, 1, 0]])).coalesced().weight
            tensor([1., 2.])
        """
        return _algebra().coalesced(self)

    def to_sparse(self) -> Tensor:
        """As ``torch.sparse_csr``, whose rows are targets.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph(torch.tensor([[0, 1], [1, 2]])).to_sparse().crow_indices()
            tensor([0, 0, 1, 2])
        """
        return _algebra().to_sparse(self)

    def to_dense(self) -> Tensor:
        """As a matrix, whose rows are targets.

        Example:
            >>> import torch, tessera
            >>> tessera.Graph(torch.tensor([[0], [1]]), 2, 2, torch.tensor([0.5])).to_dense()
            tensor([[0.0000, 0.0000],
                    [0.5000, 0.0000]])
        """
        return _algebra().to_dense(self)

    def __matmul__(self, other: Any) -> Any:
        """The product with a graph, which is one; or with features, which is :func:`tessera.spmm`."""
        if isinstance(other, Graph):
            return _algebra().product(self, other)
        if isinstance(other, Tensor):
            from .functional import spmm

            return spmm(self, other)
        return NotImplemented

    def __add__(self, other: Any) -> Graph:
        return _algebra().total(self, other) if isinstance(other, Graph) else NotImplemented

    def __sub__(self, other: Any) -> Graph:
        return self + -other if isinstance(other, Graph) else NotImplemented

    def __mul__(self, other: Any) -> Graph:
        """With a graph, edges that are in both, by the product of their weights; or all weights by a factor, or by one each."""
        if isinstance(other, Graph):
            return _algebra().common(self, other)
        return _algebra().scaled(self, other) if isinstance(other, (int, float, Tensor)) else NotImplemented

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Graph:
        return _algebra().scaled(self, 1 / other) if isinstance(other, (int, float, Tensor)) else NotImplemented

    def __neg__(self) -> Graph:
        return self * -1.0

    def __getitem__(self, chosen: Any) -> Graph:
        """Targets, or targets and sources, by slices, numbers or masks; they are numbered anew."""
        return _algebra().part(self, chosen)

    __iter__ = None  # of what has numbers of vertices, and no first one

    @property
    def num_edges(self) -> int:
        return self.index.size(-1)

    @property
    def device(self) -> torch.device:
        return self.index.device

    def __repr__(self) -> str:
        weighted = ", weighted" if self.weight is not None else ""
        return (f"Graph(targets={self.num_targets}, sources={self.num_sources}, "
                f"edges={self.num_edges}{weighted})")


def _algebra() -> Any:
    from . import graph_algebra

    return graph_algebra


# What looking at the values of a sparse tensor said, for as long as the tensor lives.
_sparse_graphs: WeakIdKeyDictionary = WeakIdKeyDictionary()
# The tensors of its indices, which torch makes anew for each who asks, while operators keep graphs for as long as they live.
_sparse_indices: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _known_sparse(matrix: Tensor) -> Graph:
    if matrix.requires_grad or matrix.is_inference():  # of which torch counts no changes
        graph = Graph.from_sparse(matrix)
        if matrix not in _sparse_indices:
            _sparse_indices[matrix] = graph.index, graph.offsets
        return graph
    known = _sparse_graphs.get(matrix)
    if known is None or known[0] != matrix._version:
        graph = Graph.from_sparse(matrix)
        if graph.weight is not None:
            graph.weight = graph.weight.data  # a view would keep the matrix alive
        known = _sparse_graphs[matrix] = (matrix._version, graph)
    return known[1]
