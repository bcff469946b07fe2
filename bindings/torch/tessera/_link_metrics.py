# SPDX-License-Identifier: Apache-2.0
"""How well scores tell edges from other pairs. See :mod:`tessera.links`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from . import _link_operators
from ._checks import FLOATS, _check_tensor
from ._link_draws import checked_pairs


def _scores(name: str, scores: Tensor, dimensions: int = 1) -> Tensor:
    """On the CPU."""
    _check_tensor(name, scores)
    if scores.dtype not in FLOATS:
        raise TypeError(f"{name} has type {scores.dtype}: use a float")
    if scores.dim() != dimensions:
        expected = "(pairs,)" if dimensions == 1 else "(rows, candidates)"
        raise ValueError(f"{name} has shape {tuple(scores.shape)}: use {expected}")
    return scores.detach().to("cpu")


def _ids(name: str, ids: Tensor) -> Tensor:
    _check_tensor(name, ids)
    if ids.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"{name} has type {ids.dtype}: use torch.int64 or torch.int32")
    return ids.to("cpu")


def _both(positives: Tensor, negatives: Tensor) -> tuple[Tensor, Tensor]:
    return _scores("positives", positives), _scores("negatives", negatives)


def roc_auc(positives: Tensor, negatives: Tensor) -> float:
    """The chance that a positive scores higher than a negative; ties count half. scikit-learn's ``roc_auc_score``.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.roc_auc(torch.tensor([0.35, 0.8]), torch.tensor([0.1, 0.4]))
        0.75
    """
    return _link_operators.run("roc_auc", *_both(positives, negatives))


def average_precision(positives: Tensor, negatives: Tensor) -> float:
    """The mean over the positives of the precision where each is found: scikit-learn's ``average_precision_score``.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> round(links.average_precision(torch.tensor([0.35, 0.8]), torch.tensor([0.1, 0.4])), 4)
        0.8333
    """
    return _link_operators.run("average_precision", *_both(positives, negatives))


def hits_at(positives: Tensor, negatives: Tensor, k: int) -> float:
    """Hits@K of ogbl-ppa, -collab and -ddi: the share of positives that score higher than the K-th best of all
    negatives; 1 where there are fewer than K of them.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.hits_at(torch.tensor([3.0, 1.0]), torch.tensor([2.0, 1.0, 0.0]), k=2)
        0.5
    """
    return _link_operators.run("hits_at", *_both(positives, negatives), k)


def ranks(positives: Tensor, negatives: Tensor) -> Tensor:
    """The rank of each positive among negatives of its own, a row each, from 1: ogbl-citation2's. Ties take the mean of
    their places.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.ranks(torch.tensor([3.0, 1.0]), torch.tensor([[2.0, 1.0], [5.0, 1.0]]))
        tensor([1.0000, 2.5000], dtype=torch.float64)
    """
    found = _link_operators.run("ranks", _scores("positives", positives), _scores("negatives", negatives, 2))
    return found.to(positives.device)


def ranks_of(scores: Tensor, truths: Tensor, known: Tensor | None = None) -> Tensor:
    """The rank of each row's true candidate among all: row i of ``scores`` has one for each candidate, ``truths[i]`` is
    the true one. Pairs (row, candidate) in ``known``, ``2 x pairs``, are true, too, and do not count (the filtered
    setting); without, all do (the raw one).

    Example:
        >>> import torch
        >>> from tessera import links
        >>> scores = torch.tensor([[0.5, 0.1, 0.9]])
        >>> links.ranks_of(scores, torch.tensor([0])), links.ranks_of(scores, torch.tensor([0]), torch.tensor([[0], [2]]))
        (tensor([2.], dtype=torch.float64), tensor([1.], dtype=torch.float64))
    """
    left_out = None if known is None else _ids("known", checked_pairs("known", known))
    found = _link_operators.run("ranks_of", _scores("scores", scores, 2), _ids("truths", truths), left_out)
    return found.to(scores.device)


def mean_reciprocal_rank(ranks: Tensor) -> float:
    """The mean of 1 / rank. No ranks give 0."""
    return float((1 / ranks.double()).mean()) if ranks.numel() > 0 else 0.0


def hits_within(ranks: Tensor, k: int) -> float:
    """The share of ranks up to K. No ranks give 0."""
    if k < 1:
        raise ValueError(f"k is {k}: use 1 or more")
    return float((ranks <= k).double().mean()) if ranks.numel() > 0 else 0.0


class ListQuality(NamedTuple):
    recall: float
    ndcg: float
    rows: int  #: that have something to find: the others are left out


def list_quality(lists: Tensor, truth: Tensor) -> ListQuality:
    """Recall@K and NDCG@K of lists of recommendations, as LightGCN's code has them. Row i of ``lists`` names K
    candidates, best first, -1 for none; pairs (row, candidate) in ``truth``, ``2 x pairs``, are those that are right.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.list_quality(torch.tensor([[3, 1], [2, 0]]), torch.tensor([[0, 0, 1], [1, 4, 2]]))
        ListQuality(recall=0.75, ndcg=0.6934264036172708, rows=2)
    """
    lists = _ids("lists", lists)
    if lists.dim() != 2:
        raise ValueError(f"lists has shape {tuple(lists.shape)}: use (rows, K)")
    truth = _ids("truth", checked_pairs("truth", truth))
    candidates = int(truth[1].max()) + 1 if truth.numel() > 0 else 0
    recall, ndcg, rows = _link_operators.run("list_quality", lists, truth, candidates).tolist()
    return ListQuality(recall, ndcg, int(rows))
