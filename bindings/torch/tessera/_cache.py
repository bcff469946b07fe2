# SPDX-License-Identifier: Apache-2.0
"""What the operators keep of graphs (bindings/torch/src/cache.cpp): for how long, and how much of it.

The operators hold what they made of a graph by the memory of its indices, which they hold on to. They say which tensor
they built a graph of, and hear from here when it is gone.
"""

from __future__ import annotations

import ctypes
import functools
import threading
import weakref

import torch
from torch import Tensor

from ._library import library_of, loaded
from ._schemas import definitions

# By the address of indices: the tensors of users that have them, by id. A view lives as long as its base may be asked for
# another one like it.
_owners: dict[int, dict[int, weakref.ref]] = {}
# Tensors end at any time, also while this is held by the same thread.
_lock = threading.RLock()


def _watch(index: Tensor) -> None:
    """An operator built a graph of these indices."""
    address = index.data_ptr()
    for tensor in (index, index._base):
        if tensor is None:
            continue
        number = id(tensor)
        gone = functools.partial(_gone, library_of(index.is_cuda), address, number)
        with _lock:
            owners = _owners.get(address, {})
            known = owners.get(number)
            if known is None or known() is not tensor:
                owners[number] = weakref.ref(tensor, gone)
            _owners[address] = owners


def _gone(library: ctypes.CDLL, address: int, number: int, reference: weakref.ref) -> None:
    """A tensor ended; with the last one that had them, so do the graphs of its indices."""
    with _lock:
        owners = _owners.get(address, {})
        if owners.get(number) is not reference:
            return
        del owners[number]
        if owners:
            return
        del _owners[address]
    library.tessera_forget_graphs(address)


definitions.define("watch(Tensor index) -> ()")
definitions.impl("watch", _watch, "CompositeExplicitAutograd")
torch.library.register_fake("tessera::watch", lambda index: None, lib=definitions)


def set_cache_limits(entries: int | None = None, bytes: int | None = None) -> None:
    """Bounds what is kept of graphs for later calls, on each device.

    A graph is kept with its plans, its transpose and its copy with self loops for as long as the tensor that describes it
    (``edge_index``) lives. Beyond the limits those that were not used for longest go first. The newest stays, and so do
    graphs that a CUDA graph captured.

    Args:
        entries: how many. Default: any number.
        bytes: how much memory they may take on a device, by an estimate. Default: a quarter of the device's memory, or, on
            a CPU, of what this process may use (of a container, its limit).

    Example:
        >>> import tessera
        >>> tessera.set_cache_limits(entries=8, bytes=1 << 30)
        >>> tessera.set_cache_limits()
    """
    for name, limit in (("entries", entries), ("bytes", bytes)):
        if limit is not None and limit < 0:
            raise ValueError(f"{name} is {limit}: use 0 or more, or None for the default")
    for library in loaded():
        library.tessera_set_cache_limits(-1 if entries is None else entries, -1 if bytes is None else bytes)


def cache_info() -> dict[str, int]:
    """How many graphs are kept, and how much memory they take, by an estimate.

    Example:
        >>> import torch, tessera
        >>> tessera.clear_cache()
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> y = tessera.spmm(edge_index, torch.ones(2, 4))
        >>> tessera.cache_info()["entries"]
        1
        >>> del edge_index
        >>> tessera.cache_info()
        {'entries': 0, 'bytes': 0}
    """
    return {name: sum(library.tessera_cache_use(which) for library in loaded())
            for which, name in enumerate(("entries", "bytes"))}


def clear_cache() -> None:
    """Forgets all graphs, and gives what they took back to the system. Captured CUDA graphs that used them must not be
    replayed after this.

    Example:
        >>> import tessera
        >>> tessera.clear_cache()
    """
    for library in loaded():
        library.tessera_clear_cache()
