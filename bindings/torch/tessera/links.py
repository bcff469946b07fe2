# SPDX-License-Identifier: Apache-2.0
"""Predicting links: splits of the edges, pairs that are no edges, scores of pairs, losses, metrics and top lists.

A list of pairs is ``2 x pairs``, sources and targets, like an ``edge_index``. Pairs are drawn, scored, judged and
listed where their tensors lie. Splits and metrics are computed on the CPU: of tensors on a GPU they move what they need
there, wait for it, and move the result back. What is drawn is the same on every device.
"""

from __future__ import annotations

from ._link_draws import LinkSplit, Part, batch, negative_sampling, split
from ._link_metrics import (ListQuality, average_precision, hits_at, hits_within, list_quality, mean_reciprocal_rank,
                            ranks, ranks_of, roc_auc)
from ._link_scores import TopLists, bce_loss, bpr_loss, distmult, dot, margin_loss, mlp, top

__all__ = [
    "LinkSplit",
    "ListQuality",
    "Part",
    "TopLists",
    "average_precision",
    "batch",
    "bce_loss",
    "bpr_loss",
    "distmult",
    "dot",
    "hits_at",
    "hits_within",
    "list_quality",
    "margin_loss",
    "mean_reciprocal_rank",
    "mlp",
    "negative_sampling",
    "ranks",
    "ranks_of",
    "roc_auc",
    "split",
    "top",
]
