# SPDX-License-Identifier: Apache-2.0
"""What is made of tensors once, and kept for as long as they live and do not change."""

from __future__ import annotations

import weakref
from typing import Any, Callable, Hashable, TypeVar

import torch
from torch import Tensor
from torch.utils.weak import WeakIdKeyDictionary

Made = TypeVar("Made")

# By the tensor that things are kept with, and by what they are.
_made: WeakIdKeyDictionary = WeakIdKeyDictionary()


def _owner(tensor: Tensor) -> Tensor:
    """The tensor itself; of a view, which code often makes anew for each call, what it is a view of."""
    return tensor if tensor._base is None else tensor._base


def _place(tensor: Tensor) -> tuple:
    return tensor._version, tensor.storage_offset(), tuple(tensor.shape), tensor.stride()


def kept(tensors: tuple[Tensor, ...], key: Hashable, make: Callable[[], Made]) -> Made:
    """What ``make`` makes of these tensors. ``key`` says what that is, and all else that it depends on. It is made again once
    a tensor has changed; compiled code and tensors whose changes torch does not count have it made for each call."""
    if torch.compiler.is_compiling() or any(tensor.is_inference() for tensor in tensors):
        return make()
    owners = [_owner(tensor) for tensor in tensors]
    places = tuple(map(_place, tensors))
    of_first = _made.setdefault(owners[0], {})
    known: Any = of_first.get(key)
    if known is None or known[1] != places or any(ref() is not owner for ref, owner in zip(known[0], owners[1:])):
        with torch.inference_mode(False):  # others may want gradients
            made = make()
        known = of_first[key] = ([weakref.ref(owner) for owner in owners[1:]], places, made)
    return known[2]
