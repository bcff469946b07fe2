# SPDX-License-Identifier: Apache-2.0
"""What pip calls to build the package: scikit-build-core, with a word on the terminal about what is built, and how far it is.

pip keeps what a build prints to itself, unless it is asked for it (``pip install -v .``).
"""

from __future__ import annotations

import contextlib
import os
import re
import threading
from typing import Any, Iterator, TextIO

from scikit_build_core import build as _build
from scikit_build_core.build import *  # noqa: F403  the other hooks

_STEP = re.compile(r"\[(\d+)/(\d+)\]")  # Ninja's
_LINES = 10  # at most so many say how far a build is


def report(line: str, terminal: TextIO, said: set[int]) -> None:
    """Repeats what a line of a build's output says of the whole; ``said`` are the tenths that were spoken of."""
    if line.startswith("-- tessera: "):
        terminal.write(f"  {line[3:].strip()}\n")
    step = _STEP.match(line)
    if step is not None and int(step[2]) >= _LINES:
        tenth = _LINES * int(step[1]) // int(step[2])
        if tenth > max(said, default=0):
            said.add(tenth)
            terminal.write(f"  tessera: {step[1]} of {step[2]} steps of the build are done\n")
    terminal.flush()


@contextlib.contextmanager
def _progress() -> Iterator[None]:
    """Reads along what programs print inside of it."""
    try:
        terminal = open("/dev/tty", "w")
    except OSError:  # there is no terminal
        yield
        return
    kept = os.dup(1)
    reading, writing = os.pipe()

    def read() -> None:
        said: set[int] = set()
        with os.fdopen(reading, errors="replace") as lines, os.fdopen(kept, "w", closefd=False) as output, terminal:
            for line in lines:
                output.write(line)
                output.flush()
                report(line, terminal, said)

    reader = threading.Thread(target=read)
    os.dup2(writing, 1)
    os.close(writing)
    reader.start()
    try:
        yield
    finally:
        os.dup2(kept, 1)
        reader.join()
        os.close(kept)


def build_wheel(*arguments: Any, **named: Any) -> str:
    with _progress():
        return _build.build_wheel(*arguments, **named)


def build_editable(*arguments: Any, **named: Any) -> str:
    with _progress():
        return _build.build_editable(*arguments, **named)
