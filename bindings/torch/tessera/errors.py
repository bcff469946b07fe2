# SPDX-License-Identifier: Apache-2.0
"""Errors of the operators as the exceptions that Python users expect."""

from __future__ import annotations

from typing import Any, NoReturn

import torch

_is_compiling = torch.compiler.is_compiling

_KINDS: dict[str, type[Exception]] = {
    "invalid_argument": ValueError,
    "bad_data": ValueError,
    "out_of_memory": MemoryError,
    "unsupported": NotImplementedError,
    "backend_unavailable": RuntimeError,
    "internal": RuntimeError,
}

NOT_INSTALLED = (
    "tessera's operators for this device are not installed: there are some for the CPU, and for CUDA "
    "where nvcc was there when the package was built and torch has CUDA 13"
)


def _translated(error: RuntimeError) -> Exception | None:
    text = str(error)
    begin = text.find("tessera ")
    if begin < 0:
        if "'tessera::" in text and "backend" in text:
            return RuntimeError(NOT_INSTALLED)
        return None
    kind, _, message = text[begin + len("tessera ") :].partition(": ")
    message = message.split("\nException raised from")[0].strip()
    if kind == "bad_data" and "outside" in message:
        return IndexError(message)
    if message.startswith("dtype: "):
        return TypeError(message)
    return _KINDS[kind](message) if kind in _KINDS else None


def reraise(error: RuntimeError) -> NoReturn:
    """Raises what a user expects in the place of an operator's error."""
    translated = _translated(error)
    if translated is None:
        raise error
    raise translated from None


def direct(function: Any, *arguments: Any) -> Any:
    """Calls a function that runs operators, outside of compiled code."""
    try:
        return function(*arguments)
    except RuntimeError as error:
        reraise(error)


def run(operator: Any, *arguments: Any) -> Any:
    """Calls an operator of :mod:`tessera._operators`; compiled code calls it as it is."""
    if _is_compiling():
        return operator.op(*arguments)
    try:
        return operator.eager(*arguments)
    except RuntimeError as error:
        reraise(error)
