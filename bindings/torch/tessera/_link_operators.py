# SPDX-License-Identifier: Apache-2.0
"""The operators on links, ``torch.ops.tessera.*``: splits, pairs that are no edges, and metrics, on the CPU."""

from __future__ import annotations

from typing import Any

import torch

from . import errors
from ._schemas import GRAPH, TAGS

_GRAPH = f"Tensor index, Tensor? offsets, %s{GRAPH}"
_SCHEMAS = {
    "link_parts": f"({_GRAPH % 'Tensor? times, '}, float validation, float test, float supervision, int seed) -> Tensor",
    "check_link_parts": f"({_GRAPH % 'Tensor parts, '}) -> bool",
    "negative_pairs": f"({_GRAPH % 'Tensor positives, '}, int kind, int per_positive, int seed, int step) -> Tensor",
    "roc_auc": "(Tensor positives, Tensor negatives) -> float",
    "average_precision": "(Tensor positives, Tensor negatives) -> float",
    "hits_at": "(Tensor positives, Tensor negatives, int k) -> float",
    "ranks": "(Tensor positives, Tensor negatives) -> Tensor",
    "ranks_of": "(Tensor scores, Tensor truths, Tensor? known) -> Tensor",
    "list_quality": "(Tensor lists, Tensor truth, int candidates) -> Tensor",
}

_definitions = torch.library.Library("tessera", "FRAGMENT")
for _name, _schema in _SCHEMAS.items():
    _definitions.define(_name + _schema, tags=TAGS)


@torch.library.register_fake("tessera::link_parts", lib=_definitions)
def _(index, offsets, times, targets, sources, layout, loops, validation, test, supervision, seed):
    return index.new_empty((index.size(-1), 1), dtype=torch.int64)


@torch.library.register_fake("tessera::negative_pairs", lib=_definitions)
def _(index, offsets, positives, targets, sources, layout, loops, kind, per_positive, seed, step):
    return index.new_empty((2, positives.size(0) * per_positive), dtype=torch.int64)


@torch.library.register_fake("tessera::ranks", lib=_definitions)
def _(positives, negatives):
    return positives.new_empty((positives.size(0),), dtype=torch.float64)


@torch.library.register_fake("tessera::ranks_of", lib=_definitions)
def _(scores, truths, known):
    return scores.new_empty((scores.size(0),), dtype=torch.float64)


@torch.library.register_fake("tessera::list_quality", lib=_definitions)
def _(lists, truth, candidates):
    return lists.new_empty((3,), dtype=torch.float64)


def run(name: str, *arguments: Any) -> Any:
    """Calls an operator, whose tensors lie on the CPU. None of them has a derivative."""
    with torch.no_grad():
        return errors.direct(getattr(torch.ops.tessera, name).default, *arguments)
