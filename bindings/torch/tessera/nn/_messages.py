# SPDX-License-Identifier: Apache-2.0
"""Layers of any class whose messages are the features of the sources, times numbers of edges or of the layer: sums, means,
maxima and minima of those run on kernels.

The code of a message says what it is, and is read before it runs: it may multiply and divide, ask whether an argument is
None, and give numbers of edges another shape. Such code does nothing else, so that it can be called with a stand-in for the
features, which notes the factors. All other messages are left to PyG.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any, Callable

import torch
from torch import Tensor
from torch_geometric.nn import MessagePassing

from ..functional import spmm
from ..graph import Graph
from ._base import Accelerated, for_pyg, is_pygs

_SHAPES = ("view", "reshape", "unsqueeze")
_NODES = (ast.Return, ast.If, ast.IfExp, ast.BinOp, ast.Mult, ast.Div, ast.UnaryOp, ast.USub, ast.Load, ast.Store, ast.Is,
          ast.IsNot, ast.Constant)


def _is_none_test(node: ast.AST) -> bool:
    return (isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(node.comparators[0], ast.Constant)
            and node.comparators[0].value is None)


def _is_plain(node: ast.AST, names: set[str]) -> bool:
    """Whether an expression or statement, and all inside of it, is one of those that are understood."""
    inside = list(ast.iter_child_nodes(node))
    if isinstance(node, ast.Name):
        return node.id in names
    if isinstance(node, ast.Attribute):  # of the layer, such as a factor
        return isinstance(node.value, ast.Name) and node.value.id == "self"
    if isinstance(node, (ast.If, ast.IfExp)):
        return _is_none_test(node.test) and all(_is_plain(part, names) for part in inside if part is not node.test)
    if isinstance(node, ast.Assign):
        return (len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id in names
                and _is_plain(node.value, names))
    if isinstance(node, ast.Subscript):  # such as weight[:, None]
        place = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return _is_plain(node.value, names) and all(ast.unparse(part) in (":", "None", "...") for part in place)
    if isinstance(node, ast.Call):
        of = node.func
        return (isinstance(of, ast.Attribute) and of.attr in _SHAPES and _is_plain(of.value, names) and not node.keywords
                and all(isinstance(_literal(argument), int) for argument in node.args))
    return isinstance(node, _NODES) and all(_is_plain(part, names) for part in inside)


def _literal(node: ast.AST) -> Any:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _definition(function: Callable[..., Any]) -> ast.FunctionDef | None:
    """The source of a plain function, where that can be read. It is that of the function if :func:`_is_source_of` says so."""
    if not inspect.isfunction(function) or hasattr(function, "__wrapped__") or function.__closure__:
        return None
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, TypeError, SyntaxError):
        return None
    found = tree.body[0]
    return found if isinstance(found, ast.FunctionDef) and not found.decorator_list else None


def _is_source_of(definition: ast.FunctionDef, function: Callable[..., Any]) -> bool:
    """Whether it was compiled to the function: a file may have changed since. Annotations and defaults belong to what
    surrounds it."""
    for argument in definition.args.args:
        argument.annotation = None
    definition.args.defaults, definition.returns = [], None
    compiled = compile(ast.Module([definition], []), "message", "exec")
    ours, theirs = next(constant for constant in compiled.co_consts if inspect.iscode(constant)), function.__code__
    return (ours.co_code == theirs.co_code and ours.co_names == theirs.co_names and ours.co_varnames == theirs.co_varnames
            and _numbers_of(ours) == _numbers_of(theirs))


def _numbers_of(code: Any) -> list[Any]:
    """The constants of code but for its text."""
    return [constant for constant in code.co_consts if not isinstance(constant, str)]


_OTHER = "its messages are more than features of sources times numbers of edges"


def _replaced(cls: type) -> list[str]:
    return [name for name in ("aggregate", "update") if getattr(cls, name) is not getattr(MessagePassing, name)]


@functools.cache
def why_no_product(cls: type) -> str | None:
    """Why messages of a class may be no products; None where they are."""
    if not issubclass(cls, MessagePassing):
        return "it passes no messages"
    if _replaced(cls):
        return f"it has its own {' and '.join(_replaced(cls))}"
    if not is_pygs(cls, "propagate", cls.propagate):
        return "it has its own propagate"
    definition = _definition(cls.message)
    if definition is None:
        return "the source of its message cannot be read"
    takes = definition.args
    names = [argument.arg for argument in takes.args]
    if takes.vararg or takes.kwarg or takes.kwonlyargs or takes.posonlyargs or names[:1] != ["self"]:
        return _OTHER
    of_sources = [name for name in names if name.endswith("_j")]
    if len(of_sources) != 1 or any(name.endswith("_i") or name in MessagePassing.special_args for name in names):
        return _OTHER
    local = {node.id for node in ast.walk(definition) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    body = definition.body
    if isinstance(body[0], ast.Expr) and isinstance(body[0].value, ast.Constant):
        body = body[1:]
    known = {*names[1:], *local}
    if "self" in local or not body or not all(_is_plain(statement, known) for statement in body):
        return _OTHER
    return None if _is_source_of(definition, cls.message) else "the source of its message is not what was compiled"


class _Rows:
    """Stands for the features of the sources in a message, and notes what they are multiplied by."""

    def __init__(self, factor: Any = None) -> None:
        self.factor = factor

    def __mul__(self, other: Any) -> _Rows:
        if not isinstance(other, (Tensor, int, float)):
            return NotImplemented
        return _Rows(other if self.factor is None else self.factor * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> _Rows:
        if not isinstance(other, (Tensor, int, float)):
            return NotImplemented
        return _Rows((1.0 if self.factor is None else self.factor) / other)

    def __neg__(self) -> _Rows:
        return self * -1.0


_NOT_CALLED = "its forward did not call propagate"


class _Unknown(Exception):
    """PyG's code has to run, and why."""


class OfMessages(Accelerated):
    """A layer of any class, whose messages are products."""

    _reductions = ("sum", "mean", "max", "min")
    #: What was read.
    _tessera_message: Any = None

    def _set_jittable_templates(self, *options: Any) -> None:
        """What PyG writes for the class is kept for what the kernels cannot do."""
        cls = type(self)
        if "_tessera_written" in cls.__dict__:
            return
        super()._set_jittable_templates(*options)
        cls._tessera_written = cls.propagate
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
        if torch.compiler.is_compiling():
            return type(self)._tessera_written(self, edge_index, size=size, **named)
        before = self.__dict__.get("tessera_fallback")
        try:
            # Messages have the types that their factors have, under autocast, too.
            with torch.autocast(edge_index.device.type if isinstance(edge_index, Tensor) else "cpu", enabled=False):
                x, graph, weight = self._as_product(edge_index, size, named)
                self._notice(None, x, edge_index)
                if before not in (None, _NOT_CALLED):  # of another propagate of the same call
                    self.__dict__["tessera_fallback"] = before
                out = spmm(graph, self._narrowed(x), weight, self._reduction(), tune=self._tessera_tune)
            return out.to(x.dtype)
        except _Unknown as unknown:
            self._notice(str(unknown), None, edge_index)
        return type(self)._tessera_written(self, for_pyg(edge_index)[0], size=size, **named)

    def _as_product(self, edge_index: Any, size: Any, named: dict[str, Any]) -> tuple[Tensor, Graph, Tensor | None]:
        """The features, the graph and its weights whose product is what the messages give."""
        place = 0 if self.flow == "source_to_target" else 1
        names = self.inspector.get_param_names("message")
        key = next(name for name in names if name.endswith("_j"))[:-2]
        given = named.get(key)
        pair = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, given)
        x = pair[place]
        self._require_known(x, pair[1 - place], edge_index)
        rows = [None, None] if size is None else list(size)
        for end, part in ((place, x), (1 - place, pair[1 - place] if pair[1 - place] is not given else None)):
            if isinstance(part, Tensor):
                if rows[end] is not None and rows[end] != part.size(0):
                    raise _Unknown("sizes that do not fit")
                rows[end] = part.size(0)
        targets = rows[1 - place] if rows[1 - place] is not None else rows[place]
        factor = self._factor(names, key, named)
        weight = None if factor is None else _of_each_edge(factor, edge_index.size(1), x)
        obstacle = self._obstacle_of_weights(x, edge_index, weight) or self._obstacle_of_extremes(edge_index, weight)
        if obstacle is not None:
            raise _Unknown(obstacle)
        return x, self._graph(edge_index, x.size(0), targets), weight

    def _require_known(self, x: Any, other: Any, edge_index: Any) -> None:
        """What is asked of a call before its messages are: it must not be answered by an error, since of layers of other
        classes nothing is known."""
        if type(edge_index) is not Tensor or edge_index.layout != torch.strided:
            raise _Unknown("edges that are no edge_index")
        if not isinstance(x, Tensor) or x.layout != torch.strided or x.dim() != 2 or not x.is_floating_point():
            raise _Unknown("features that are no matrix of floats")
        if self.node_dim not in (-2, 0) or (other is not None and not isinstance(other, Tensor)):
            raise _Unknown("vertices in another dimension")
        if edge_index.dim() != 2 or edge_index.size(0) != 2 or edge_index.dtype not in (torch.int64, torch.int32):
            raise _Unknown("an edge_index that PyG will refuse")
        if edge_index.device != x.device:
            raise _Unknown("edges on another device")
        obstacle = self._obstacle(x, edge_index)
        if obstacle is not None:
            raise _Unknown(obstacle)

    def _obstacle_of_messages(self) -> str | None:
        if self._reduction() not in self._reductions:
            return f"the aggregation {self.aggr}"
        cls = type(self)
        replaced = (any(name in self.__dict__ for name in ("message", "aggregate", "update"))
                    or cls.message is not cls._tessera_message or _replaced(cls))
        return "a method for messages that was replaced" if replaced else None

    def _factor(self, names: list[str], key: str, named: dict[str, Any]) -> Any:
        """What messages multiply the features by; None where they are the features."""
        arguments: dict[str, Any] = {}
        for name in names:
            if name == f"{key}_j":
                arguments[name] = _Rows()
            elif name in named:
                arguments[name] = named[name]
        try:
            message = self.message(**arguments)
        except (TypeError, AttributeError, RuntimeError):  # PyG's code says what is wrong, if anything is
            message = None
        if not isinstance(message, _Rows):
            raise _Unknown("messages that are no products of features and numbers of edges")
        return message.factor


def _of_each_edge(factor: Any, edges: int, x: Tensor) -> Tensor:
    """A factor of messages as a number for each edge."""
    if not isinstance(factor, Tensor):
        return x.new_full((edges,), float(factor))
    if factor.device == x.device and factor.is_floating_point():
        if factor.dim() == 2 and tuple(factor.shape) == (edges, 1):
            return factor.reshape(-1)
        if factor.numel() == 1 and factor.dim() <= 2:
            return factor.reshape(1).expand(edges)
    raise _Unknown("messages with more than one number for each edge")
