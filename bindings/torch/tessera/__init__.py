# SPDX-License-Identifier: Apache-2.0
"""Tessera in PyTorch: graph operators, PyG's layers on top of them, and one line for a whole model.

Example:
    >>> import torch, tessera
    >>> from torch_geometric.nn import GCN
    >>> model = tessera.accelerate(GCN(16, 32, num_layers=2, out_channels=4))
    >>> edge_index = torch.tensor([[0, 1, 2], [1, 2, 0]])
    >>> model(torch.ones(3, 16), edge_index).shape
    torch.Size([3, 4])
"""

from __future__ import annotations

from . import _layer_operators, _operators, bits, links
from ._cache import cache_info, clear_cache, set_cache_limits
from ._library import counters, has_cuda, kernels, trace
from .captured_step import CapturedStep, capture
from .errors import CannotBeCaptured
from .functional import attention, attention_weights, edge_softmax, messages, sddmm, spmm
from .graph import Graph
from .grouped import grouped_linear, grouped_matmul
from .segments import gather, scatter, segment_reduce, softmax

__version__ = "0.1.0"
__all__ = [
    "CannotBeCaptured",
    "CapturedStep",
    "Fit",
    "Graph",
    "TrainedModel",
    "accelerate",
    "attention",
    "attention_weights",
    "bits",
    "cache_info",
    "capture",
    "clear_cache",
    "counters",
    "edge_softmax",
    "explain",
    "fit",
    "gather",
    "grouped_linear",
    "grouped_matmul",
    "has_cuda",
    "kernels",
    "links",
    "load",
    "messages",
    "restore",
    "save",
    "scatter",
    "sddmm",
    "segment_reduce",
    "set_cache_limits",
    "softmax",
    "spmm",
    "trace",
]

del _layer_operators, _operators


def __getattr__(name: str):
    # Layers need PyG, operators do not.
    if name in ("accelerate", "explain", "restore"):
        from . import models

        return getattr(models, name)
    if name in ("fit", "Fit"):
        from . import fitting

        return getattr(fitting, name)
    if name in ("load", "save", "TrainedModel"):
        from . import files

        return getattr(files, name)
    if name in ("distributed", "loader", "nn"):
        import importlib

        return importlib.import_module("." + name, __name__)
    raise AttributeError(f"module 'tessera' has no attribute {name!r}")
