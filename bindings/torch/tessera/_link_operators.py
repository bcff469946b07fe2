# SPDX-License-Identifier: Apache-2.0
"""The operators on links, ``torch.ops.tessera.*``, that have no derivatives: splits and metrics, on the CPU; pairs that are
no edges, and top lists, where their tensors lie."""

from __future__ import annotations

from typing import Any

import torch

from . import errors
from ._schemas import GRAPH, TAGS

_GRAPH = f"Tensor index, Tensor? offsets, %s{GRAPH}"
_SCHEMAS = {
    "link_parts": f"({_GRAPH % 'Tensor? times, '}, float validation, float test, float supervision, int seed) -> Tensor",
    "check_link_parts": f"({_GRAPH % 'Tensor parts, '}) -> bool",
    "negative_pairs": f"({_GRAPH % 'Tensor positives, Tensor? clock, '}, int kind, int per_positive, int seed, int step) -> Tensor",
    "pair_batch": "(Tensor pairs, Tensor? clock, int size, int seed, int step) -> Tensor",
    "top_lists": "(Tensor queries, Tensor candidates, Tensor? offsets, Tensor? left_out, int count, int block_bytes) "
                 "-> Tensor[]",
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
def _(index, offsets, positives, clock, targets, sources, layout, loops, kind, per_positive, seed, step):
    return index.new_empty((2, positives.size(1) * per_positive))


@torch.library.register_fake("tessera::pair_batch", lib=_definitions)
def _(pairs, clock, size, seed, step):
    return pairs.new_empty((2, size))


@torch.library.register_fake("tessera::top_lists", lib=_definitions)
def _(queries, candidates, offsets, left_out, count, block_bytes):
    shape = (queries.size(0), count)
    return [queries.new_empty(shape, dtype=torch.int64), queries.new_empty(shape),
            queries.new_empty((1, 1), dtype=torch.int32)]


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
    """Calls an operator. None of them has a derivative."""
    with torch.no_grad():
        return errors.direct(getattr(torch.ops.tessera, name).default, *arguments)
