# SPDX-License-Identifier: Apache-2.0
"""Finds and loads the compiled operators: one library for the CPU, one for CUDA 13."""

from __future__ import annotations

import ctypes
import functools
import os
from pathlib import Path

import torch

_FOLDER = Path(os.environ.get("TESSERA_LIBRARY_FOLDER", Path(__file__).parent))


def _load(name: str) -> ctypes.CDLL | None:
    path = _FOLDER / f"libtessera_torch_{name}.so"
    if not path.exists():
        return None
    torch.ops.load_library(str(path))
    library = ctypes.CDLL(str(path))
    library.tessera_counter.restype = ctypes.c_int64
    library.tessera_end_trace.restype = ctypes.c_char_p
    library.tessera_kernels.restype = ctypes.c_char_p
    library.tessera_set_cache_limits.argtypes = [ctypes.c_int64, ctypes.c_int64]
    library.tessera_cache_use.restype = ctypes.c_int64
    library.tessera_forget_graphs.argtypes = [ctypes.c_void_p]
    return library


def _torch_speaks_cuda_13() -> bool:
    return (torch.version.cuda or "").split(".")[0] == "13"


class _Libraries:
    """The libraries that this process has loaded."""

    def __init__(self) -> None:
        self.cpu = _load("cpu")
        self.cuda = _load("cuda") if _torch_speaks_cuda_13() else None
        if not self.all():
            raise ImportError(
                f"tessera's operators are missing from {_FOLDER}: install the package (pip install .)"
            )

    def all(self) -> list[ctypes.CDLL]:
        return [library for library in (self.cpu, self.cuda) if library is not None]


libraries: _Libraries | None = None
_cpu_is_loaded = _cuda_is_loaded = False  # plain, since compiled code asks, too


def load() -> None:
    global libraries, _cpu_is_loaded, _cuda_is_loaded
    if libraries is None:
        libraries = _Libraries()
        _cpu_is_loaded, _cuda_is_loaded = libraries.cpu is not None, libraries.cuda is not None


def loaded() -> list[ctypes.CDLL]:
    assert libraries is not None
    return libraries.all()


def library_of(on_cuda: bool) -> ctypes.CDLL | None:
    """The one that serves a device."""
    assert libraries is not None
    return libraries.cuda if on_cuda else libraries.cpu


def has_cpu() -> bool:
    """True when the operators for the CPU are installed."""
    return _cpu_is_loaded


def has_cuda() -> bool:
    """True when the operators for CUDA are installed and fit this torch.

    Example:
        >>> import tessera
        >>> tessera.has_cuda() in (True, False)
        True
    """
    return _cuda_is_loaded


@functools.cache
def _kernels_of(on_cuda: bool) -> list[str]:
    """Of the library that serves a device."""
    library = library_of(on_cuda)
    return [] if library is None else library.tessera_kernels().decode().splitlines()


def kernel_number(name: str, on_cuda: bool) -> int:
    """What operators call a kernel by."""
    names = _kernels_of(on_cuda)
    if name not in names:
        raise ValueError(f"no kernel {name!r}: tessera.kernels() lists those there are")
    return names.index(name) + 1


def kernels(op: str | None = None) -> list[str]:
    """The kernels of this installation, ``op/device/strategy`` each; ``op`` leaves the others out.

    docs/design/kernels.md says what each is for.

    Example:
        >>> import tessera
        >>> "spmm/cpu/rows" in tessera.kernels("spmm")
        True
    """
    names = sorted({*_kernels_of(False), *_kernels_of(True)})
    return [name for name in names if op is None or name.startswith(op + "/")]


def counters() -> dict[str, int]:
    """What the operators did so far: runs of kernels, graphs built, plans made.

    Example:
        >>> import tessera
        >>> sorted(tessera.counters())
        ['graphs', 'plans', 'runs']
    """
    names = ("runs", "graphs", "plans")
    return {
        name: sum(library.tessera_counter(which) for library in loaded())
        for which, name in enumerate(names)
    }


_noted: list[list[str]] = []  # of every trace at work


def note(kernel: str) -> None:
    """Names what runs outside of the libraries to those who trace."""
    for kernels in _noted:
        kernels.append(kernel)


class trace:
    """Notes which kernels run inside of a ``with``.

    Example:
        >>> import torch, tessera
        >>> edge_index = torch.tensor([[0, 1], [1, 0]])
        >>> with tessera.trace() as kernels:
        ...     y = tessera.spmm(edge_index, torch.ones(2, 4))
        >>> kernels[0].startswith("spmm/cpu/")
        True
    """

    def __enter__(self) -> list[str]:
        self._kernels: list[str] = []
        self._others: list[str] = []
        _noted.append(self._others)
        for library in loaded():
            library.tessera_begin_trace()
        return self._kernels

    def __exit__(self, *_: object) -> None:
        for library in loaded():
            self._kernels += library.tessera_end_trace().decode().splitlines()
        _noted[:] = [others for others in _noted if others is not self._others]
        self._kernels += self._others
