# SPDX-License-Identifier: Apache-2.0
"""Errors of the operators as the exceptions that Python users expect."""

from __future__ import annotations

import os
import re
import traceback
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


def outside(end: str, indices: torch.Tensor, vertices: int) -> str | None:
    """What is wrong with indices of sources or targets (``end``); None where there are vertices for all of them."""
    least, largest = (int(found) for found in torch.aminmax(indices))
    if least >= 0 and largest < vertices:
        return None
    return _outside(end, least if least < 0 else largest, vertices)


def _outside(end: str, index: int | str, vertices: int | str) -> str:
    return f"edge_index: {end} index {index} is outside [0, {vertices}): there are {vertices} {end} vertices"


# Of the library, whose rows are targets.
_OUTSIDE = re.compile(r"(row|column) index (-?\d+) is outside \[0, (\d+)\)")
_ENDS = {"row": "target", "column": "source"}


def _translated(error: RuntimeError) -> Exception | None:
    text = str(error)
    begin = text.find("tessera ")
    if begin < 0:
        if "'tessera::" in text and "backend" in text:
            return RuntimeError(NOT_INSTALLED)
        return None
    kind, _, message = text[begin + len("tessera ") :].partition(": ")
    message = message.split("\nException raised from")[0].strip()
    found = _OUTSIDE.search(message) if kind == "bad_data" else None
    if found is not None:
        return IndexError(_outside(_ENDS[found[1]], found[2], found[3]))
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


class CannotBeCaptured(RuntimeError):
    """What a step does cannot be part of a CUDA graph."""


# Code in which users do not look for the line that is wrong.
_LIBRARIES = tuple(os.path.dirname(path) + os.sep for path in (torch.__file__, __file__))


def _is_library(file: str) -> bool:
    return file.startswith((*_LIBRARIES, "<")) or f"{os.sep}torch_geometric{os.sep}" in file


def line_of(error: BaseException, within: str = "") -> str:
    """Where the caller's code was when this happened, and where the library's; of ``within`` a file's name, nothing
    where that has no part in it."""
    frames = traceback.extract_tb(error.__traceback__)
    if not any(within in frame.filename for frame in frames):
        return ""
    own = next((frame for frame in reversed(frames) if not _is_library(frame.filename)), None)
    said = [f"{os.path.basename(frame.filename)}:{frame.lineno}: {frame.line}"
            for frame in (own, frames[-1] if frames and frames[-1] is not own else None) if frame is not None]
    return ", in ".join(said)
