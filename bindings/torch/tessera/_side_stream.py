# SPDX-License-Identifier: Apache-2.0
"""Work of other threads on a GPU, beside the work that uses its results."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor


class SideStream:
    """A stream on which threads make what the caller's stream then uses: a ``Data``."""

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._stream = torch.cuda.Stream(device)

    def follow(self) -> None:
        """What the caller's stream has been given so far is done before anything that is made from now on."""
        self._stream.wait_stream(torch.cuda.current_stream(self._device))

    def make(self, make: Callable[[], Any]) -> tuple[Any, torch.cuda.Event]:
        """What ``make`` returns, and when it will be there."""
        with torch.cuda.stream(self._stream):
            made = make()
            return made, self._stream.record_event()

    def hand_over(self, made: Any, event: torch.cuda.Event) -> Any:
        """The same for the caller's stream, which waits for it, without the host."""
        stream = torch.cuda.current_stream(self._device)
        stream.wait_event(event)

        def use(tensor: Tensor) -> Tensor:
            if tensor.is_cuda:
                tensor.record_stream(stream)
            return tensor

        return made.apply(use)
