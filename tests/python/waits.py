# SPDX-License-Identifier: Apache-2.0
"""What would wait for a GPU, as an error where there is none."""

import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

WAITS = {"_local_scalar_dense", "nonzero", "masked_select", "is_nonzero", "equal"}


def is_of_an_optimiser():
    """Which reads numbers that lie on the host, also where there is a GPU."""
    frame = sys._getframe(2)
    while frame is not None:
        if "/torch/optim/" in frame.f_code.co_filename:
            return True
        frame = frame.f_back
    return False


class Waits(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, arguments=(), named=None):
        masked = function.overloadpacket is torch.ops.aten.index and any(
            one is not None and one.dtype == torch.bool for one in arguments[1])
        if (masked or function.overloadpacket.__name__ in WAITS) and not is_of_an_optimiser():
            raise RuntimeError("called a synchronizing operation")
        return function(*arguments, **(named or {}))
