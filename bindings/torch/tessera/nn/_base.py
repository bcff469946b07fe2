# SPDX-License-Identifier: Apache-2.0
"""What the layers share: they are PyG's, with another ``forward``.

Whatever the kernels cannot do is left to PyG's own ``forward``, and the reason is kept.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch_geometric.inspector import Inspector
from torch_geometric.nn import MessagePassing
from torch_geometric.nn.aggr import MaxAggregation, MeanAggregation, MinAggregation, SumAggregation
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from .._checks import check_ends
from .._derivatives import other_derivatives
from .._library import has_cpu, has_cuda
from .._torch_names import forward_mode, tracing_state, transforms_at_work
from ..functional import FLOATS, TUNE, autocast_dtype, spmm
from ..graph import BY_TARGET, SOURCE_TARGET, TARGET_SOURCE, Graph
from ..segments import gather, scatter
from ._diagnosis import diagnosed
from ._fused import linear_of
from .pooling import AGGREGATIONS as OF_GROUPS
from ._route import Route, gin_call, hooks_of, linear_sum_call
from ._scripted import pyg_class

_is_compiling = torch.compiler.is_compiling
_STRIDED = torch.strided
_INDICES = (torch.int64, torch.int32)

_HOOKS = (
    "_propagate_forward_pre_hooks",
    "_propagate_forward_hooks",
    "_message_forward_pre_hooks",
    "_message_forward_hooks",
    "_aggregate_forward_pre_hooks",
    "_aggregate_forward_hooks",
    "_message_and_aggregate_forward_pre_hooks",
    "_message_and_aggregate_forward_hooks",
    "_edge_update_forward_pre_hooks",
    "_edge_update_forward_hooks",
)

# What PyG's code calls for messages, in whose place somebody may put something else: of layers, ...
_METHODS = ("message", "aggregate", "update", "message_and_aggregate", "edge_update", "__norm__")
# ... and of all, in whose place PyG puts code that it writes for each class.
_WRITTEN = ("propagate", "edge_updater")

# How layers name the aggregations that kernels have; the operators' own name is the first.
_AGGREGATIONS = {
    SumAggregation: ("sum", "add", "SumAggregation()"),
    MeanAggregation: ("mean", "MeanAggregation()"),
    MaxAggregation: ("max", "MaxAggregation()"),
    MinAggregation: ("min", "MinAggregation()"),
}
_AGGREGATIONS |= {ours: _AGGREGATIONS[pyg_class(ours)] for ours in OF_GROUPS}


class _Tally:
    """How often layers ran on the kernels, how often of that with a sparse matrix, and how often on PyG's code: for
    tests. Threads may lose counts, and compiled code counts nothing."""

    __slots__ = ("kernels", "sparse", "fallbacks")

    def __init__(self) -> None:
        self.kernels = self.sparse = self.fallbacks = 0


tally = _Tally()


class Accelerated:
    """A layer of PyG that runs on tessera's kernels where it can."""

    # Of accelerate(): None is the type of the features.
    _tessera_dtype: torch.dtype | None = None
    _tessera_tune: bool = False
    _tessera_cached: tuple[Any, Tensor | None] | None = None
    _tessera_route: Route | None = None
    #: Ways to aggregate messages for which the layer has kernels.
    _reductions: tuple[str, ...] = ("sum",)
    #: Whether somebody's subclass has methods for messages of its own.
    _other_messages: bool = False
    #: Arguments that need not be floats, as they begin.
    _may_be_numbers: tuple[str, ...] = ("edge_type",)
    #: Why the last call ran PyG's code; None where it ran the kernels, or there was no call.
    tessera_fallback: str | None = None

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if not issubclass(cls, MessagePassing):
            return
        if "forward" in cls.__dict__:
            cls.forward = diagnosed(cls.forward)  # type: ignore[attr-defined]
        base = cls.__dict__.get("_tessera_original") or pyg_class(cls)
        cls._other_messages = any(getattr(cls, name, None) is not getattr(base, name, None) for name in _METHODS)
        for name in _WRITTEN:
            # What PyG wrote for a base it keeps there: a subclass must not inherit it. In the place of what somebody else
            # wrote it writes nothing, if it finds that in the class itself.
            method = getattr(cls, name)
            pygs = is_pygs(cls, name, method)
            setattr(cls, name, getattr(MessagePassing, name) if pygs else method)
            cls._other_messages |= not pygs
        inspector = Inspector(base)
        for method in ("propagate", "edge_updater"):
            try:
                found = inspector.get_params_from_method_call(
                    method, exclude=[0, "edge_index", "size"]
                )
            except Exception:
                continue
            setattr(cls, f"{method}_type", {name: kind.type for name, kind in found.items()})

    def _write_templates(self) -> None:
        """PyG writes code that passes messages for each class, when a layer of it is made, and layers run that. Those
        that were accelerated or unpickled were made as another class, or in another process: without it they would run
        PyG's older code, which is wrong for some (scores of edges where the flow is reversed)."""
        if "_jinja_propagate" not in type(self).__dict__:
            self._set_jittable_templates()  # type: ignore[attr-defined]

    def _set_jittable_templates(self, *options: Any) -> None:
        """Always with the part for sparse matrices: PyG leaves it out where the aggregation of the first layer of a class
        has none, and later layers of the class, which do, would be refused."""
        fuses, self.fuse = self.fuse, self.inspector.implements("message_and_aggregate")
        try:
            super()._set_jittable_templates(*options)  # type: ignore[misc]
        finally:
            self.fuse = fuses

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)  # type: ignore[misc]
        self._write_templates()

    def __setattr__(self, name: str, value: Any) -> None:
        self.__dict__.pop("_tessera_route", None)
        super().__setattr__(name, value)

    def _apply(self, *args: Any, **kwargs: Any) -> Any:
        self.__dict__.pop("_tessera_route", None)  # parameters change their type in place
        return super()._apply(*args, **kwargs)  # type: ignore[misc]

    def _known_way(self, x: Any, edge_index: Any) -> Route | None:
        """The way of an earlier call, if this one can take it."""
        if _is_compiling():
            return None
        route = self.__dict__.get("_tessera_route")
        if (route is None or transforms_at_work() or forward_mode()
                or not route.fits(x, edge_index)):
            return None
        tally.kernels += 1
        return route

    def _layout(self) -> int:
        """Of an ``edge_index``."""
        return SOURCE_TARGET if self.flow == "source_to_target" else TARGET_SOURCE

    def _can_keep_way(self, x: Any, edge_index: Any, biased: torch.nn.Module) -> bool:
        """``biased`` has the bias: one that is made of others (parametrised) is no parameter."""
        return (not _is_compiling() and type(x) is Tensor and type(edge_index) is Tensor
                and edge_index.layout == _STRIDED and "bias" in biased._parameters)

    def _keep_way(self, x: Tensor, edge_index: Tensor, linears: Any, call: Any, **parts: Any) -> None:
        """So that calls like this one take less time. The arguments are those of :class:`Route`."""
        own = self.__dict__
        hooks = [own[name] for name in _HOOKS if name in own]
        own["_tessera_route"] = Route(
            self, [*hooks, *hooks_of(self.aggr_module)], x, edge_index, linears, call,
            flags=TUNE if self._tessera_tune else 0, **parts)

    def _keep_sum(self, x: Tensor, edge_index: Any, linear: torch.nn.Module, loops: int,
                  loop_weight: float, norm: int, reduce: int, *, biased: torch.nn.Module | None = None,
                  root: torch.nn.Module | None = None, scaled: bool = False,
                  sequence: torch.nn.Module | None = None, wide: bool = False) -> None:
        """Keeps the way of a layer that ran as one ``spmm_linear``. ``biased`` has the bias (default:
        ``linear``), ``root`` the matrix of a vertex's own features; ``scaled``: those are scaled by 1 + the
        layer's ``eps``. ``sequence`` is what ``linear`` is the first of, if it is the first of any."""
        with_bias = linear if biased is None else biased
        if not self._can_keep_way(x, edge_index, with_bias):
            return
        numbers = (x.size(0), x.size(0), self._layout(), loops, loop_weight, norm, reduce)
        scales = self._buffers if scaled else {}
        then = () if sequence is None else tuple(sequence._modules.values())[1:]
        if scaled and [type(part) for part in then] == [torch.nn.ReLU, torch.nn.Linear]:
            linears = linear, then[1]
            call = gin_call(numbers, linear, then[1], scales)
            then = ()  # the whole network is part of an operator
        else:
            linears = (linear,) if root is None else (linear, root)
            call = linear_sum_call(numbers, linear, with_bias, root, scales)
        self._keep_way(x, edge_index, linears, call, scaled=scaled, sequence=sequence, then=then, wide=wide)

    def __prepare_scriptable__(self) -> torch.nn.Module:
        """TorchScript gets PyG's layer."""
        import copy

        if not type(self).__module__.startswith(f"{__package__}."):
            raise TypeError(f"{type(self).__name__} is a layer of tessera's with code of its own, which has no TorchScript: "
                            f"make it of torch_geometric.nn.{pyg_class(type(self)).__name__}")
        twin = copy.copy(self)
        twin.__class__ = getattr(self, "_tessera_original", None) or pyg_class(type(self))
        for name in ("propagate", "_tessera_route"):
            twin.__dict__.pop(name, None)
        twin._set_jittable_templates()  # type: ignore[attr-defined]
        return twin  # type: ignore[return-value]

    def _reduction(self) -> str | None:
        """How PyG's code aggregates messages, as operators call it; None where they cannot, or somebody looks on. PyG
        goes by the module, and with sparse matrices by the name: they must agree."""
        aggregation = self.aggr_module
        names = _AGGREGATIONS.get(type(aggregation), ())
        if self.aggr not in names or "forward" in aggregation.__dict__ or any(hooks_of(aggregation)):
            return None
        return names[0]

    def _obstacle(self, x: Any, adjacency: Any) -> str | None:
        """Why the kernels cannot run this call, whatever the layer; None if they can."""
        if not _is_compiling() and tracing_state() is not None:
            return "TorchScript"
        wanted = None if _is_compiling() else other_derivatives()
        if wanted is not None:
            return wanted
        own = self.__dict__
        if any(map(own.get, _HOOKS)):
            return "hooks on messages"
        if own.get("_explain"):
            return "an explainer looks at messages"
        if own.get("_decomposed_layers", 1) > 1:
            return "decomposed layers"
        features = x[0] if isinstance(x, (tuple, list)) else x
        if not isinstance(features, Tensor) or features.layout != _STRIDED:
            if not isinstance(features, Tensor) and not hasattr(features, "sparse_sizes"):
                raise TypeError(f"x is a {type(features).__name__}, not a tensor")
            return "sparse features"
        if features.dim() < 2:
            raise ValueError(f"x has shape {tuple(features.shape)}: use (vertices, features)")
        if features.dim() != 2:
            return f"features of {features.dim()} dimensions"
        if features.dtype not in FLOATS:
            return f"features of type {features.dtype}"
        if features.is_cpu:
            if not has_cpu():
                return "the operators for the CPU are not installed"
        else:
            if not features.is_cuda:
                return f"features on {features.device}"
            if not has_cuda():
                return "the operators for CUDA are not installed"
            if features.dtype == torch.float64:
                return "features of type torch.float64 on a GPU"
        return self._obstacle_in(adjacency) or _obstacle_in_size(x, adjacency) or self._obstacle_of_messages()

    def _obstacle_of_messages(self) -> str | None:
        if self._reduction() not in self._reductions:
            return f"the aggregation {self.aggr}"
        return self._obstacle_of_replaced()

    def _obstacle_of_replaced(self) -> str | None:
        own = self.__dict__
        replaced = self._other_messages or any(map(own.__contains__, _METHODS)) or any(
            name in own and not is_pygs(type(self), name, getattr(own[name], "__func__", None)) for name in _WRITTEN)
        return "a method for messages that was replaced" if replaced else None

    def _obstacle_in(self, adjacency: Any) -> str | None:
        if type(adjacency) is Tensor and adjacency.layout == _STRIDED:
            return self._obstacle_in_list(adjacency)
        flows_back = getattr(self, "flow", "source_to_target") != "source_to_target"
        if isinstance(adjacency, Graph):
            if flows_back:
                raise ValueError("edge_index is a Graph, which says itself where its edges go: use its reversed() and a layer "
                                 "with flow='source_to_target'")
            return None
        if not isinstance(adjacency, Tensor):
            if hasattr(adjacency, "csr"):
                return None
            if adjacency is not None or not getattr(self, "cached", False):  # which may need none
                raise TypeError(f"edge_index is a {type(adjacency).__name__}, not a tensor or graph: use (2, edges), "
                                "int64 or int32")
            return "no edges"
        if adjacency.layout != torch.strided:
            if torch.compiler.is_compiling():
                return "a sparse tensor in compiled code"
            return "a reversed flow with a sparse tensor" if flows_back else None
        return self._obstacle_in_list(adjacency)

    @staticmethod
    def _obstacle_in_list(adjacency: Tensor) -> str | None:
        if adjacency.dim() != 2 or adjacency.size(0) != 2:
            raise ValueError(f"edge_index has shape {tuple(adjacency.shape)}: use (2, edges)")
        if adjacency.is_floating_point() or adjacency.is_complex() or adjacency.dtype == torch.bool:
            raise TypeError(f"edge_index has type {adjacency.dtype}: use int64 or int32")
        return None if adjacency.dtype in _INDICES else f"indices of type {adjacency.dtype}"

    def _graph(self, adjacency: Any, num_sources: int, num_targets: int) -> Graph:
        """The graph in the direction of the layer's flow."""
        if type(adjacency) is Tensor and adjacency.layout == _STRIDED:
            return Graph._make(adjacency, None, None, num_targets, num_sources, self._layout())
        if isinstance(adjacency, Graph):
            return adjacency
        if not isinstance(adjacency, Tensor) or adjacency.layout != _STRIDED:
            return Graph.of(adjacency)
        # An EdgeIndex; it has a size of its own.
        if self.flow != "source_to_target":
            return Graph.of(adjacency, num_sources, num_targets).reversed()
        return Graph.of(adjacency, num_targets, num_sources)

    @staticmethod
    def _obstacle_of_weights(x: Any, adjacency: Any, edge_weight: Any) -> str | None:
        """Kernels take weights of edges in the type of the features; PyG's code computes in the wider of both."""
        weight = adjacency.weight if edge_weight is None and isinstance(adjacency, Graph) else edge_weight
        x = x[0] if isinstance(x, (tuple, list)) else x
        if not isinstance(weight, Tensor) or not isinstance(x, Tensor) or autocast_dtype(x) is not None:
            return None
        if torch.promote_types(x.dtype, weight.dtype) == x.dtype:
            return None
        return f"features of type {x.dtype} with weights of edges of type {weight.dtype}"

    def _obstacle_of_cache(self, edge_index: Any) -> str | None:
        """Why a layer with ``cached=True`` cannot run on the kernels."""
        if not (self.cached and self.normalize):  # type: ignore[attr-defined]
            return None
        if torch.compiler.is_compiling():
            return "cached=True in compiled code"
        if not isinstance(edge_index, Tensor):
            return f"cached=True with edges in a {type(edge_index).__name__}"
        if self._cached_edge_index is not None and self._tessera_cached is None:  # type: ignore[attr-defined]
            return "a graph that PyG's code cached before"
        return None

    def _first_graph(self, edge_index: Any, edge_weight: Tensor | None, *of_norm: Any) -> Any:
        """With ``cached=True``, the graph of the first call serves all others. What PyG's own code
        would have kept of it is kept, too, so that :func:`tessera.restore` changes nothing."""
        if not (self.cached and self.normalize):  # type: ignore[attr-defined]
            return edge_index, edge_weight
        if self._cached_edge_index is None:  # type: ignore[attr-defined, has-type]
            self._cached_edge_index = gcn_norm(edge_index, edge_weight, *of_norm)
            # Copies, which stay as they are when the caller's tensors change.
            self._tessera_cached = (edge_index.clone(), None if edge_weight is None else edge_weight.clone())
        return self._tessera_cached

    def _notice(self, obstacle: str | None, x: Any = None, adjacency: Any = None) -> bool:
        """Counts a call, and says whether the kernels run it. What PyG's code runs on a GPU is looked at first, since
        an index outside would end all that follows there."""
        if not _is_compiling():
            own = self.__dict__  # a module's own way to set attributes takes longer
            own["tessera_fallback"] = obstacle
            if obstacle is None:
                tally.kernels += 1
                tally.sparse += isinstance(adjacency, Tensor) and adjacency.layout != _STRIDED
            else:
                own.pop("_tessera_route", None)  # so that calls that take it find no obstacle noted
                tally.fallbacks += 1
                if type(adjacency) is Tensor and adjacency.is_cuda:
                    self._check_ends(x, adjacency)
                elif isinstance(adjacency, Graph):  # of which PyG would not know what is wrong
                    self._obstacle_in(adjacency)
                    _obstacle_in_size(x, adjacency)
        return obstacle is None

    def _check_ends(self, x: Any, edge_index: Tensor) -> None:
        """Of an ``edge_index`` for PyG's code, where it is known how many vertices there are. What a layer cached takes
        the place of any other."""
        if edge_index.layout != _STRIDED or getattr(self, "cached", False) or tracing_state() is not None:
            return
        pair = (x, x) if isinstance(x, Tensor) else tuple(x) if isinstance(x, (tuple, list)) else ()
        if len(pair) == 2 and all(isinstance(part, Tensor) and part.dim() > 1 for part in pair):
            sources, targets = (part.size(-2) for part in pair)
            if self.flow != "source_to_target":  # whose pairs are targets and sources
                sources, targets = targets, sources
            check_ends(Graph._make(edge_index, None, None, targets, sources, self._layout()))

    def _linear(self, lin: torch.nn.Module, edge_weight: Tensor | None = None,
                biased: bool = True) -> tuple[Tensor, Tensor | None] | None:
        """The matrix and bias of a linear layer where one operator can run this one with it. Some have no
        bias in PyG (``biased`` is false): another that has one has to be called."""
        if self._tessera_dtype is not None:
            return None
        if edge_weight is not None and edge_weight.requires_grad:
            return None
        linear = linear_of(lin)
        return None if linear is not None and not biased and linear[1] is not None else linear

    def _narrowed(self, x: Tensor) -> Tensor:
        """In the type that accelerate() was asked for."""
        return x if self._tessera_dtype is None else x.to(self._tessera_dtype)

    def _widened(self, x: Tensor, dtype: torch.dtype) -> Tensor:
        """Back in the type that it had."""
        return x if self._tessera_dtype is None else x.to(dtype)

    def _sum(self, graph: Graph, x: Tensor, weight: Tensor | None, **options: Any) -> Tensor:
        """Features of the sources, times weights of the edges where they have some, as the layer aggregates them. Kernels
        have no maxima and minima of weighted edges that may be repeated: those are of messages that are made."""
        reduce = self._reduction()
        if weight is None or reduce not in ("max", "min"):
            return spmm(graph, self._narrowed(x), weight, reduce, tune=self._tessera_tune, **options)
        to, of = graph.targets_and_sources()
        return scatter(self._narrowed(weight.view(-1, 1) * gather(x, of)), to, 0, graph.num_targets, reduce)


def _obstacle_in_size(x: Any, adjacency: Any) -> str | None:
    """Of graphs that say how many vertices they are for. PyG refuses most of an EdgeIndex that are for others than there are."""
    if type(adjacency) is Tensor or _is_compiling():
        return None
    ours = isinstance(adjacency, Graph)
    if not ours and not hasattr(adjacency, "sparse_size"):
        return None
    size = (adjacency.num_sources, adjacency.num_targets) if ours else adjacency.sparse_size()
    for place, (part, vertices) in enumerate(zip((x, x) if isinstance(x, Tensor) else x, size)):
        rows = None if part is None else part.size(part.dim() - 2)
        if rows is None or vertices is None or rows == vertices:
            continue
        if ours:
            raise ValueError(f"{'x' if isinstance(x, Tensor) else f'x[{place}]'} has {rows} rows for {vertices} vertices")
        return f"an EdgeIndex for {vertices} vertices with features of {rows}"
    return None


def for_pyg(adjacency: Any, edge_weight: Tensor | None = None, *, takes_weights: bool = True) -> tuple[Any, Tensor | None]:
    """Edges and their weights as PyG's code takes them, which knows no :class:`Graph`."""
    if not isinstance(adjacency, Graph):
        return adjacency, edge_weight
    weight = adjacency.weight if edge_weight is None else edge_weight
    if adjacency.offsets is None:
        if weight is not None and not takes_weights:
            raise ValueError("edge_index is a Graph with weights, which PyG's code, that has to run here, takes as a sparse "
                             "matrix alone: use one, or graph.without_weight()")
        return (adjacency.index if adjacency.layout == SOURCE_TARGET else adjacency.index.flip(0)), weight
    values = torch.ones(adjacency.num_edges, device=adjacency.device) if adjacency.weight is None else adjacency.weight
    make = torch.sparse_csr_tensor if adjacency.layout == BY_TARGET else torch.sparse_csc_tensor
    matrix = make(adjacency.offsets, adjacency.index, values, (adjacency.num_targets, adjacency.num_sources))
    return (matrix if adjacency.layout == BY_TARGET else matrix.to_sparse_csr()), edge_weight


def is_pygs(cls: type, name: str, method: Any) -> bool:
    """Whether a method is PyG's own: that of all layers, or what it wrote for a class in its place. Of classes for which
    it could write none it notes the method that they have."""
    if method is getattr(MessagePassing, name):
        return True
    return any(method is written is not of_class.__dict__.get(f"_orig_{name}") for of_class in cls.__mro__
               if (written := of_class.__dict__.get(f"_jinja_{name}")) is not None)


def sizes(x: Any, size: Any) -> tuple[int, int]:
    """Sources and targets of a call with ``x`` (one tensor or a pair) and an optional ``size``."""
    sources, targets = (None if part is None else part.size(0) for part in ((x, x) if isinstance(x, Tensor) else x))
    if size is not None:
        for place, (rows, wanted) in enumerate(zip((sources, targets), size)):
            if rows is not None and wanted is not None and rows != wanted:
                name = "x" if isinstance(x, Tensor) else f"x[{place}]"
                raise ValueError(f"size[{place}] is {wanted}, but {name} has {rows} rows")
        targets = size[1] if targets is None else targets
    return sources, sources if targets is None else targets
