# SPDX-License-Identifier: Apache-2.0
"""Which classes of layers have kernels: PyG's own, users' subclasses of them that change nothing of what they do, and all
others whose messages are products."""

from __future__ import annotations

import functools
from typing import Any

import torch

from . import (_messages, _read_messages, attention, composed, convolutions, edge_networks, few_bits, gine, hetero, kinds, pna,
               pooling, products, relational)
from ._base import Accelerated, is_pygs, pyg_class

_OURS = (few_bits.GCNConv, few_bits.SAGEConv, few_bits.GINConv, few_bits.ClusterGCNConv, convolutions.APPNP,
         gine.GINEConv,
         convolutions.ChebConv, convolutions.SGConv, attention.AGNNConv, attention.GATConv, attention.GATv2Conv,
         attention.TransformerConv, convolutions.GraphConv, products.LGConv, products.TAGConv, products.GCN2Conv,
         products.ARMAConv, products.GatedGraphConv, products.LabelPropagation, edge_networks.EdgeConv,
         edge_networks.FiLMConv, pna.PNAConv, relational.RGCNConv, relational.FastRGCNConv,
         kinds.HGTConv)
_LAYERS: dict[type, type] = {pyg_class(layer): layer for layer in _OURS}
# What passes no messages itself, and is taken where it is of PyG's own class.
_COMPOSED: dict[type, type] = {pyg_class(module): module for module in (
    composed.LightGCN, composed.CorrectAndSmooth, composed.JumpingKnowledge, hetero.HeteroConv, kinds.HeteroLinear,
    kinds.HeteroDictLinear, *pooling.AGGREGATIONS)}
_PYGS: dict[type, type] = {ours: theirs for theirs, ours in (_LAYERS | _COMPOSED).items()}

# What every class has, and what has no part in a call of a layer.
_OF_NO_MATTER = {"__module__", "__qualname__", "__doc__", "__annotations__", "__annotate__", "__dict__", "__weakref__",
                 "__firstlineno__", "__static_attributes__", "__orig_bases__", "__parameters__", "__init__", "__repr__",
                 "__str__", "extra_repr", "reset_parameters"}
# What PyG writes into a class when its first layer is made.
_WRITTEN = {"_jinja_propagate", "_orig_propagate", "_jinja_edge_updater", "_orig_edge_updater", "collect", "edge_collect"}


class _OfUsers:
    """A layer of a user's class, on the kernels. Such classes are made while a program runs, so that files name the
    user's."""

    _tessera_original: type

    def __reduce_ex__(self, protocol: Any) -> Any:
        _, _, *state = super().__reduce_ex__(protocol)
        return _new, (self._tessera_original,), *state


def _new(original: type) -> Any:
    ours = layer_for(original)
    if ours is None:
        raise TypeError(f"{original.__name__} was accelerated when it was saved, and cannot be: {why_not(original)}")
    return ours.__new__(ours)


def _base_of(cls: type) -> type | None:
    """The layer of PyG's with kernels that a class is, or is made of."""
    return next((base for base in cls.__mro__ if base in _LAYERS), None)


def _changes(cls: type, base: type) -> list[str]:
    """What a class and those between have in the place of what its base has. Names that the base does not know are
    never asked for by its code."""
    found = {}
    for between in cls.__mro__[: cls.__mro__.index(base)]:
        for name, value in vars(between).items():
            written = name in _WRITTEN or (name in ("propagate", "edge_updater") and is_pygs(between, name, value))
            if name not in _OF_NO_MATTER and not written and hasattr(base, name):
                found[name] = None
    return list(found)


@functools.cache
def _made(cls: type, ours: type) -> type:
    return type(cls)(cls.__name__, (_OfUsers, ours, cls), {
        "__module__": f"{__package__}.{cls.__module__}", "__qualname__": cls.__qualname__, "__doc__": cls.__doc__,
        "_tessera_original": cls, "_tessera_message": getattr(cls, "message", None)})


def layer_for(cls: type) -> type | None:
    """The class that runs on kernels in the place of a class of PyG's layers; None where there is none, or it is one."""
    base = _base_of(cls)
    if issubclass(cls, Accelerated):
        return None
    if base is None:
        return _made(cls, _messages.OfMessages) if _read_messages.why_no_product(cls) is None else None
    if _changes(cls, base):
        return None
    return _LAYERS[base] if cls is base else _made(cls, _LAYERS[base])


def composed_for(cls: type) -> type:
    """The class that stands in for one of PyG's modules that pass no messages; the class itself where there is none."""
    return _COMPOSED.get(cls, cls)


def original_of(cls: type) -> type:
    """The class that was there before."""
    return getattr(cls, "_tessera_original", None) or _PYGS.get(cls, cls)


def why_not(cls: type) -> str:
    """Why layers of a class stay PyG's."""
    base = _base_of(cls)
    if base is None:
        reason = _read_messages.why_no_product(cls)
        return "not accelerated: call tessera.accelerate" if reason is None else f"tessera has no such layer, and {reason}"
    changes = _changes(cls, base)
    if changes:
        return f"it has its own {', '.join(changes)} in the place of {base.__name__}'s"
    return "not accelerated: call tessera.accelerate"


def is_known(module: Any) -> bool:
    """Whether it is a layer that tessera.accelerate takes where it sees it."""
    return isinstance(module, torch.nn.Module) and layer_for(type(module)) is not None
