# SPDX-License-Identifier: Apache-2.0
"""What the code of a layer's ``message`` says before it runs: whether messages are the features of the sources, times
anything that is made without them.

Features may be multiplied, divided and negated, bound to names, chosen by conditions that do not look at them, and returned.
What is multiplied with them may be any expression in which they do not occur and that changes nothing in place: where it
turns out to be more than a factor, PyG's code evaluates it again. The source, compiled again, must have the bytes of the
function that runs.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any, Callable

import torch
from torch_geometric.nn import MessagePassing
from torch_geometric.utils import spmm

from ._base import is_pygs

_TIMES, _OVER = ("mul", "multiply"), ("div", "true_divide")
_ASKING = ("edge_index", "adj_t", "size")  # what only PyG's code has
_OTHER = "its messages are more than features of sources times what is made without them"


class _NoProduct(Exception):
    """The code does something else with features."""


class _Reader:
    """Reads statements in their order. ``features``: the names that may stand for features, or a product of them."""

    def __init__(self, features: str | None, names: dict[str, Any]) -> None:
        self.features = set() if features is None else {features}
        self.names = names  # of the module that the code is in

    def read(self, statements: list[ast.stmt]) -> None:
        for statement in statements:
            if isinstance(statement, ast.Return) and statement.value is not None:
                self.holds(statement.value)
            elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
                self._bind(statement.targets[0], statement.value)
            elif isinstance(statement, ast.AugAssign) and self.holds(statement.target):
                self._bind(statement.target, ast.BinOp(statement.target, statement.op, statement.value))
            elif isinstance(statement, ast.If):
                self._ask(statement.test)
                self.read(statement.body)
                self.read(statement.orelse)
            elif isinstance(statement, ast.Assert):
                self._ask(statement.test)
            elif not (isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)):
                raise _NoProduct

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        if not isinstance(target, ast.Name) or target.id == "self":
            raise _NoProduct
        if self.holds(value):
            self.features.add(target.id)

    def _ask(self, test: ast.expr) -> None:
        if not _is_none_test(test) and self.holds(test):
            raise _NoProduct

    def holds(self, node: ast.AST) -> bool:
        """Whether an expression may be a product of the features."""
        inside = list(ast.walk(node))
        if any(map(_changes_something, inside)):
            raise _NoProduct
        if not any(isinstance(part, ast.Name) and part.id in self.features for part in inside):
            return False
        if isinstance(node, ast.Name):
            return True
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            return self._times(node.left, node.right)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            return self._over(node.left, node.right)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return self.holds(node.operand)
        if isinstance(node, ast.IfExp):
            self._ask(node.test)
            return self.holds(node.body) | self.holds(node.orelse)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and not node.keywords:
            return self._called(node.func, node.args)
        raise _NoProduct

    def _times(self, left: ast.AST, right: ast.AST) -> bool:
        if self.holds(left) and self.holds(right):
            raise _NoProduct
        return True

    def _over(self, above: ast.AST, below: ast.AST) -> bool:
        if self.holds(below):
            raise _NoProduct
        return True

    def _called(self, of: ast.Attribute, arguments: list[ast.expr]) -> bool:
        """``torch.mul(a, b)`` and ``a.mul(b)``, and quotients."""
        is_torchs = isinstance(of.value, ast.Name) and self.names.get(of.value.id) is torch
        both = arguments if is_torchs else [of.value, *arguments]
        if len(both) != 2 or of.attr not in (*_TIMES, *_OVER) or not (is_torchs or self.holds(of.value)):
            raise _NoProduct
        return (self._times if of.attr in _TIMES else self._over)(*both)


def _changes_something(node: ast.AST) -> bool:
    """Whether it binds names, or by its name changes tensors in place."""
    if isinstance(node, ast.Attribute):
        return node.attr.endswith("_") and not node.attr.endswith("__")
    return (isinstance(node, (ast.NamedExpr, ast.Yield, ast.YieldFrom, ast.Await))
            or isinstance(node, ast.keyword) and node.arg in ("inplace", "out"))


def _is_none_test(node: ast.AST) -> bool:
    return (isinstance(node, ast.Compare) and isinstance(node.left, ast.Name) and len(node.ops) == 1
            and isinstance(node.ops[0], (ast.Is, ast.IsNot)) and isinstance(node.comparators[0], ast.Constant)
            and node.comparators[0].value is None)


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
    surrounds it. Python calls functions of what a file imports in its own way, so what may be imported is, for a try."""
    for argument in definition.args.args:
        argument.annotation = None
    definition.args.defaults, definition.returns = [], None
    theirs = function.__code__
    modules = [name for name in theirs.co_names if inspect.ismodule(function.__globals__.get(name))]
    for imported in ([], modules, [name for name in theirs.co_names if name in function.__globals__]):
        before: list[ast.stmt] = [ast.Import([ast.alias(name)]) for name in imported]
        compiled = compile(ast.fix_missing_locations(ast.Module([*before, definition], [])), "message", "exec")
        ours = next(constant for constant in compiled.co_consts if inspect.iscode(constant))
        if (ours.co_code == theirs.co_code and ours.co_names == theirs.co_names and ours.co_varnames == theirs.co_varnames
                and _numbers_of(ours) == _numbers_of(theirs)):
            return True
    return False


def _numbers_of(code: Any) -> list[Any]:
    """The constants of code but for its text, and for code inside of it, which its names and bytes tell."""
    return [(constant.co_code, constant.co_names) if inspect.iscode(constant) else constant for constant in code.co_consts
            if not isinstance(constant, str)]


def replaced(cls: type) -> bool:
    return cls.aggregate is not MessagePassing.aggregate  # type: ignore[attr-defined]


@functools.cache
def _read(cls: type) -> tuple[str | None, str | None]:
    """Why messages of a class may be no products, and the argument that is the features: none where messages are made of
    edges alone."""
    if not issubclass(cls, MessagePassing):
        return "it passes no messages", None
    if replaced(cls):
        return "it has its own aggregate", None
    if not is_pygs(cls, "propagate", cls.propagate):
        return "it has its own propagate", None
    definition = _definition(cls.message)
    if definition is None:
        return "the source of its message cannot be read", None
    takes = definition.args
    names = [argument.arg for argument in takes.args]
    if (takes.vararg or takes.kwarg or takes.kwonlyargs or takes.posonlyargs or names[:1] != ["self"]
            or set(names) & set(_ASKING)):
        return _OTHER, None
    of_sources = [name for name in names if name.endswith("_j") and name not in MessagePassing.special_args]
    of_sources.sort(key=lambda name: name != "x_j")
    for features in of_sources or [None]:
        try:
            reader = _Reader(features, cls.message.__globals__)
            reader.read(definition.body)
        except _NoProduct:
            continue
        is_source = _is_source_of(definition, cls.message)
        return (None, features) if is_source else ("the source of its message is not what was compiled", None)
    return _OTHER, None


def why_no_product(cls: type) -> str | None:
    """Why messages of a class may be no products; None where they are."""
    return _read(cls)[0]


def features_of(cls: type) -> str | None:
    """The argument of a message that is the features of the sources; None where there is none."""
    return _read(cls)[1]


@functools.cache
def matrix_of(cls: type) -> str | None:
    """The argument of ``message_and_aggregate`` whose sources are multiplied by a sparse matrix, as an argument of a message
    would be called; None where it does anything else."""
    function = cls.message_and_aggregate  # type: ignore[attr-defined]
    definition = _definition(function)
    if definition is None or function.__globals__.get("spmm") is not spmm:
        return None
    *before, last = (statement for statement in definition.body if not isinstance(statement, (ast.Assert, ast.Expr)))
    names = [argument.arg for argument in definition.args.args]
    if len(names) != 3 or names[1] != "adj_t" or any(
            ast.unparse(one) != "if isinstance(adj_t, SparseTensor):\n    adj_t = adj_t.set_value(None, layout=None)"
            for one in before):
        return None
    features = names[2]
    products = [f"return spmm(adj_t, {features}{place}, reduce=self.aggr)" for place in ("", "[0]")]
    return f"{features}_j" if ast.unparse(last) in products and _is_source_of(definition, function) else None
