# SPDX-License-Identifier: Apache-2.0
"""Layers of any class whose messages are the features of the sources, times anything that is made without them: sums,
means, maxima and minima of those run on kernels.

:mod:`._read_messages` reads the code of a message. Where it proves to be a product, it is called with a stand-in for the
features, which notes the factors; compiled code calls it with ones instead. All other messages are left to PyG.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from ..functional import FLOATS, autocast_off, messages
from ..graph import Graph
from ..segments import gather, scatter
from ._base import Accelerated, for_pyg
from ._read_messages import features_of, matrix_of, replaced

_STRIDED = torch.strided
_MULTIPLY = {torch.mul, torch.multiply, Tensor.mul, Tensor.multiply, Tensor.__mul__, Tensor.__rmul__}
_DIVIDE = {torch.div, torch.true_divide, Tensor.div, Tensor.true_divide, Tensor.__truediv__}
_NUMBERS = (Tensor, int, float)

# What PyG says of a graph by the names of arguments, and what it takes values of sparse matrices for.
_OF_GRAPHS = ("index", "edge_index_i", "edge_index_j", "size_i", "size_j", "dim_size")
_OF_MATRICES = ("edge_weight", "edge_attr", "edge_type")


class _Rows:
    """Stands for the features of the sources in a message, and notes what they are multiplied by."""

    def __init__(self, factor: Any = None) -> None:
        self.factor = factor

    def __mul__(self, other: Any) -> _Rows:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        return _Rows(other if self.factor is None else self.factor * other)

    __rmul__ = mul = __mul__

    def __truediv__(self, other: Any) -> _Rows:
        if not isinstance(other, _NUMBERS):
            return NotImplemented
        return _Rows((1.0 if self.factor is None else self.factor) / other)

    div = __truediv__

    def __neg__(self) -> _Rows:
        return self * -1.0

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, given: Any = (), named: Any = None) -> Any:
        first, second = given if len(given) == 2 and not named else (None, None)
        if function in _MULTIPLY and first is not None:
            return first * second if isinstance(first, _Rows) else second * first
        if function in _DIVIDE and isinstance(first, _Rows):
            return first / second
        return NotImplemented


_NOT_CALLED = "its forward did not call propagate"
_DOUBLE = "messages of type torch.float64 on a GPU"
_NO_PRODUCT = "messages that are no products of features and what is made without them"


class _Call:
    """One call of ``propagate``: the graph, and what methods of a layer ask for by their arguments, as PyG collects it."""

    def __init__(self, layer: MessagePassing, edge_index: Any, size: Any, named: dict[str, Any]) -> None:
        self.named, self.edge_index = named, edge_index
        self.place = 0 if layer.flow == "source_to_target" else 1
        is_list = isinstance(edge_index, Tensor) and edge_index.layout == _STRIDED
        if is_list:
            self.rows, self.edges = [None, None] if size is None else list(size), edge_index.size(1)
        else:
            matrix = layer._graph(edge_index, 0, 0)
            self.rows, self.edges = [matrix.num_sources, matrix.num_targets], matrix.num_edges
        self.values = self.weight = None
        if not is_list:
            self.weight = matrix.weight
            self.values = edge_index.weight if isinstance(edge_index, Graph) else edge_index.values()
        self.graph: Graph | None = None

    def of_end(self, name: str) -> Any:
        """What was given for features of one end, ``x_j`` or ``x_i``."""
        given = self.named.get(name[:-2])
        is_pair = isinstance(given, (tuple, list))
        return given[self.end(name)] if is_pair and len(given) == 2 else given

    def end(self, name: str) -> int:
        return self.place if name.endswith("_j") else 1 - self.place

    def fits(self, names: list[str]) -> bool:
        """Notes how many vertices there are; False where that is not clear."""
        for name in names:
            if not name.endswith(("_i", "_j")) or name in MessagePassing.special_args:
                continue
            given, end = self.named.get(name[:-2]), self.end(name)
            parts = [(end, self.of_end(name))]
            if isinstance(given, (tuple, list)):
                if len(given) != 2:
                    return False
                parts.append((1 - end, given[1 - end]))
            for place, part in parts:
                if not isinstance(part, Tensor):
                    continue
                if self.rows[place] is not None and self.rows[place] != part.size(0):
                    return False
                self.rows[place] = part.size(0)
        return True

    def make_graph(self, layer: Any) -> bool:
        sources, targets = self.rows[self.place], self.rows[1 - self.place]
        sources, targets = (targets if sources is None else sources), (sources if targets is None else targets)
        if sources is None:
            return False
        self.graph = layer._graph(self.edge_index, sources, targets).without_weight()
        return True

    def argument(self, name: str) -> Any:
        """What PyG would pass to a method. A name that was not given is None, or an error of the method."""
        graph = self.graph
        assert graph is not None
        if name in ("index", "edge_index_i", "edge_index_j"):
            ends = graph.targets_and_sources()
            return ends[1 if name == "edge_index_j" else 0]
        if name in ("size_i", "dim_size", "size_j"):
            return graph.num_sources if name == "size_j" else graph.num_targets
        if name.endswith(("_i", "_j")):
            return self._lifted(self.of_end(name), graph.targets_and_sources()[1 if name.endswith("_j") else 0])
        if self.values is not None and self.named.get(name) is None:
            return None if name == "edge_attr" else self.values
        return self.named[name]

    @staticmethod
    def _lifted(given: Any, ends: Tensor) -> Any:
        if not isinstance(given, Tensor):
            return given
        has_kernels = given.dtype in FLOATS and not (given.is_cuda and given.dtype == torch.float64)
        return gather(given, ends) if has_kernels else given.index_select(0, ends)

    def arguments(self, names: list[str]) -> dict[str, Any]:
        """Of those that there are: names that were not given have defaults, or the method fails, as it does in PyG."""
        known = {*self.named, *_OF_GRAPHS, *(() if self.values is None else _OF_MATRICES)}
        found = {name: self.argument(name) for name in names if name in known or name.endswith(("_i", "_j"))}
        return {**found, "ptr": None} if "ptr" in names else found


class OfMessages(Accelerated):
    """A layer of any class, whose messages are products."""

    _reductions = ("sum", "mean", "max", "min")
    #: What was read, and what it says: the argument that is the features, and what else methods ask for.
    _tessera_message: Any = None
    _tessera_features: str | None = None
    _tessera_asked: tuple[list[str], list[str]] = ([], [])

    def _set_jittable_templates(self, *options: Any) -> None:
        """What PyG writes for the class is kept for what the kernels cannot do."""
        cls = type(self)
        if "_tessera_written" in cls.__dict__:
            return
        super()._set_jittable_templates(*options)
        cls._tessera_written = cls.propagate
        cls._tessera_features = features_of(cls._tessera_original)
        asked = self.inspector.get_param_names
        cls._tessera_asked = asked("message"), [] if cls.update is MessagePassing.update else asked("update")
        cls.propagate = OfMessages._propagate_by_kernels

    def forward(self, *arguments: Any, **named: Any) -> Any:
        own = self.__dict__
        if not torch.compiler.is_compiling():
            own["tessera_fallback"] = _NOT_CALLED
            written = getattr(own.get("propagate"), "__func__", None)
            if written is not None and written is type(self)._tessera_written and not self.explain:
                del own["propagate"]  # which PyG left after an explanation
            elif written is not None:
                own["tessera_fallback"] = "an explainer, or a method for messages that was replaced"
        return super().forward(*arguments, **named)

    def _propagate_by_kernels(self, edge_index: Any, size: Any = None, **named: Any) -> Tensor:
        found = self._aggregated(edge_index, size, named)
        if isinstance(found, str):
            self._note(found, edge_index)
            edges = for_pyg(edge_index, takes_weights=False)[0]
            return type(self)._tessera_written(self, edges, size=size, **named)
        self._note(None, edge_index)
        out, call = found
        if type(self).update is MessagePassing.update:
            return out
        return self.update(out, **call.arguments(self._tessera_asked[1]))

    def _note(self, obstacle: str | None, edge_index: Any) -> None:
        """Of several propagates of one call the first obstacle counts."""
        before = None if torch.compiler.is_compiling() else self.__dict__.get("tessera_fallback")
        self._notice(obstacle, None, edge_index)
        if before not in (None, _NOT_CALLED):
            self.__dict__["tessera_fallback"] = before

    def _aggregated(self, edge_index: Any, size: Any, named: dict[str, Any]) -> tuple[Tensor, _Call] | str:
        """Messages of all targets, summed, with what they were made of; or why PyG's code has to do it."""
        obstacle = self._obstacle_of_edges(edge_index)
        if obstacle is not None:
            return obstacle
        by_matrix = self._matrix_for(edge_index)
        if by_matrix == "":
            return "its own product with a sparse matrix"
        key = by_matrix or self._tessera_features
        call = _Call(self, edge_index, size, named)
        x = call.of_end(key) if key else None
        obstacle = self._obstacle_of_features(x, edge_index) if key else self._obstacle_without_features(edge_index)
        if obstacle is not None:
            return obstacle
        asked = [*self._tessera_asked[0], *self._tessera_asked[1], *([key] if key else [])]
        if not call.fits(asked) or not call.make_graph(self):
            return "sizes that do not fit"
        assert call.graph is not None
        if x is not None and x.size(0) != call.graph.num_sources:
            return "sizes that do not fit"
        if by_matrix:
            if call.weight is not None and call.weight.dtype != x.dtype:
                return f"features of type {x.dtype} with a matrix of type {call.weight.dtype}"
            return self._of_product(call.graph, x, None if call.weight is None else call.weight.view(-1, 1)), call
        message = self._message(call, key, x)
        if message is None:
            return _NO_PRODUCT
        out = self._summed(call.graph, x, message)
        return out if isinstance(out, str) else (out, call)

    def _obstacle_of_edges(self, edge_index: Any) -> str | None:
        """What is asked of a call before its messages are: it must not be answered by an error, since of layers of other
        classes nothing is known."""
        if isinstance(edge_index, Graph):
            return "a reversed flow with a Graph" if self.flow != "source_to_target" else None
        if not isinstance(edge_index, Tensor):
            return "edges that are no edge_index or sparse matrix"
        if edge_index.layout == _STRIDED:
            if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.dtype not in (torch.int64, torch.int32):
                return "an edge_index that PyG will refuse"
            return None
        if torch.compiler.is_compiling() or self.flow != "source_to_target":
            return "a sparse matrix in compiled code, or with a reversed flow"
        if edge_index.layout == torch.sparse_coo and not edge_index.is_coalesced():
            return "a sparse matrix that is not coalesced"
        return None if edge_index.dim() == 2 and edge_index.values().dim() == 1 else "a sparse matrix of more dimensions"

    def _matrix_for(self, edge_index: Any) -> str | None:
        """The features that PyG's code multiplies by a sparse matrix, where it makes no messages; "" where it does something
        else with it."""
        if not isinstance(edge_index, Tensor) or edge_index.layout == _STRIDED:
            return None
        implemented = self.inspector.implements("message_and_aggregate")
        return matrix_of(type(self)) or "" if implemented and self.fuse else None

    def _obstacle_of_features(self, x: Any, edge_index: Any) -> str | None:
        if not isinstance(x, Tensor) or x.layout != _STRIDED or x.dim() < 2 or not x.is_floating_point():
            return "features that are no matrix of floats"
        if self.node_dim not in (0, -x.dim()):
            return "vertices in another dimension"
        if edge_index.device != x.device:
            return "edges on another device"
        return self._obstacle(x.flatten(1), edge_index)

    def _obstacle_without_features(self, edge_index: Any) -> str | None:
        if type(edge_index) is not Tensor or edge_index.layout != _STRIDED:
            return "messages of edges alone, which are no edge_index"
        return self._obstacle(edge_index.new_empty((0, 1), dtype=torch.float32), edge_index)

    def _obstacle_of_messages(self) -> str | None:
        if self._reduction() not in self._reductions:
            return f"the aggregation {self.aggr}"
        cls = type(self)
        changed = (any(name in self.__dict__ for name in ("message", "aggregate", "update"))
                   or cls.message is not cls._tessera_message or replaced(cls))
        return "a method for messages that was replaced" if changed else None

    def _message(self, call: _Call, key: str | None, x: Tensor | None) -> Any:
        """What the layer's code makes of the stand-in, or of edges alone."""
        arguments = call.arguments([name for name in self._tessera_asked[0] if name != key])
        if key is None or x is None:
            return self.message(**arguments)
        if torch.compiler.is_compiling():  # which knows no stand-ins
            ones = x.new_ones((call.edges, *(1,) * (x.dim() - 1)))
            message = self.message(**arguments, **{key: ones})
            return _Rows() if message is ones else _Rows(message)
        try:
            return self.message(**arguments, **{key: _Rows()})
        except (TypeError, AttributeError, RuntimeError):  # PyG's code says what is wrong, if anything is
            return None

    def _summed(self, graph: Graph, x: Tensor | None, message: Any) -> Tensor | str:
        if isinstance(message, Tensor):
            if message.dim() < 2 or message.dtype not in FLOATS or message.size(0) != graph.num_edges:
                return _NO_PRODUCT
            return _DOUBLE if message.is_cuda and message.dtype == torch.float64 else self._scattered(graph, message)
        if not isinstance(message, _Rows) or x is None:
            return _NO_PRODUCT
        factor = message.factor
        if factor is None:
            return self._of_product(graph, x, None)
        if not isinstance(factor, Tensor):
            factor = torch.tensor(float(factor), dtype=x.dtype, device=x.device)
        if factor.device != x.device or factor.dim() > x.dim() or not factor.is_floating_point():
            return _NO_PRODUCT
        if factor.dim() > 0:
            x = x.to(torch.promote_types(x.dtype, factor.dtype))  # the type of their product
        if x.is_cuda and x.dtype == torch.float64:
            return _DOUBLE
        factor = factor.to(x.dtype).view(*(1,) * (x.dim() - factor.dim()), *factor.shape)
        if any(size != 1 and size != whole for size, whole in zip(factor.shape, (graph.num_edges, *x.shape[1:]))):
            return _NO_PRODUCT
        return self._of_product(graph, x, factor)

    def _of_product(self, graph: Graph, x: Tensor, factor: Tensor | None) -> Tensor:
        """Of factors that have as many dimensions as features: one of each is of the edges, and all may be 1. Messages have
        the types that their parts have, under autocast, too."""
        with autocast_off(x):
            rows, shape = x.flatten(1), x.shape[1:]
            if factor is None:
                out = self._sum(graph, rows, None)
            elif factor.numel() == 1 and self._reduction() in ("sum", "mean"):
                out = self._sum(graph, rows, None).to(x.dtype) * factor.view(1, 1)
            elif all(size == 1 for size in factor.shape[1:]):
                out = self._sum(graph, rows, factor.reshape(-1).expand(graph.num_edges))
            elif factor.dim() > 2 and factor.shape[1] == shape[0] and all(size == 1 for size in factor.shape[2:]) and (
                    self._reduction() in ("sum", "mean")):
                out = self._sum(graph, rows, factor.reshape(factor.size(0), -1).expand(graph.num_edges, -1))  # by heads
            else:
                return self._of_many(graph, rows, factor.expand(graph.num_edges, *shape).flatten(1)).unflatten(1, shape)
        return out.to(x.dtype).unflatten(1, shape)

    def _of_many(self, graph: Graph, x: Tensor, factors: Tensor) -> Tensor:
        """Of factors for each number of an edge."""
        if self._reduction() == "sum":
            out = messages(graph, self._narrowed(x), self._narrowed(factors), message="product", tune=self._tessera_tune)
            return self._widened(out, x.dtype)
        return self._scattered(graph, gather(x, graph.targets_and_sources()[1]) * factors)

    def _scattered(self, graph: Graph, message: Tensor) -> Tensor:
        to, _ = graph.targets_and_sources()
        return self._widened(scatter(self._narrowed(message), to, 0, graph.num_targets, self._reduction()), message.dtype)
