# SPDX-License-Identifier: Apache-2.0
"""Scores of pairs, losses on them, and the best candidates, on any device. See :mod:`tessera.links`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from ._checks import FLOATS, _check_tensor, check_ends
from ._link_draws import checked_pairs
from .functional import sddmm
from .graph import Graph


def _pair_graph(sources: Tensor, pairs: Tensor, targets: Tensor | None) -> tuple[Graph, Tensor]:
    """The pairs as edges, and the embeddings of their targets."""
    targets = sources if targets is None else targets
    for name, embeddings in (("sources", sources), ("targets", targets)):
        _check_tensor(name, embeddings)
        if embeddings.dim() != 2:
            raise ValueError(f"{name} has shape {tuple(embeddings.shape)}: use (vertices, features)")
    return Graph(checked_pairs("pairs", pairs), targets.size(0), sources.size(0)), targets


def dot(sources: Tensor, pairs: Tensor, targets: Tensor | None = None) -> Tensor:
    """The score of each pair: the product of its source's row and its target's. Without ``targets``, both are rows of
    ``sources``.

    Scores are those of :func:`tessera.sddmm`, with its types and derivatives: nothing of the size of pairs x features
    is made.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> h = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> links.dot(h, torch.tensor([[0, 0], [1, 0]]))
        tensor([11.,  5.])
    """
    graph, targets = _pair_graph(sources, pairs, targets)
    return sddmm(graph, targets, sources).view(-1)


def distmult(sources: Tensor, pairs: Tensor, relations: Tensor, of: Tensor | None = None,
             targets: Tensor | None = None) -> Tensor:
    """DistMult's score of each pair: the sum over k of ``source[k] * relation[k] * target[k]``.

    Args:
        relations: a row for each relation.
        of: the relation of each pair; where there is one relation alone it may be left out, and scores are then those
            of :func:`dot` with the sources times the relation.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> h = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> relations = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> links.distmult(h, torch.tensor([[0, 0], [1, 1]]), relations, of=torch.tensor([0, 1]))
        tensor([11., -5.])
    """
    graph, targets = _pair_graph(sources, pairs, targets)
    _check_tensor("relations", relations)
    if relations.dim() != 2 or relations.size(1) != sources.size(1):
        raise ValueError(f"relations has shape {tuple(relations.shape)}: use (relations, {sources.size(1)})")
    if of is None:
        if relations.size(0) != 1:
            raise ValueError(f"there are {relations.size(0)} relations: say by of= which each pair has")
        return dot(sources * relations, pairs, targets)
    _check_tensor("of", of)
    if of.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"of has type {of.dtype}: use torch.int64 or torch.int32")
    if of.dim() != 1 or of.size(0) != graph.num_edges:
        raise ValueError(f"of has shape {tuple(of.shape)}: use ({graph.num_edges},), a relation for each pair")
    # Pairs with their relations are checked as edges are: from relations to targets.
    check_ends(graph)
    check_ends(Graph(torch.stack([of.to(pairs), pairs[1]]), targets.size(0), relations.size(0)))
    return (sources[pairs[0]] * relations[of] * targets[pairs[1]]).sum(1)


def _differences(positives: Tensor, negatives: Tensor) -> Tensor:
    """Of each positive less each of its negatives."""
    rows = positives.numel()
    if positives.dim() != 1 or (negatives.numel() % rows if rows > 0 else negatives.numel()) != 0:
        raise ValueError(f"{tuple(negatives.shape)} negatives for {tuple(positives.shape)} positives: give as many for "
                         "each positive, those of positive i at i * per_positive and behind it")
    return positives.view(-1, 1) - negatives.reshape(rows, -1 if negatives.numel() > 0 else 0)


def _mean(losses: Tensor) -> Tensor:
    return losses.sum() / max(losses.numel(), 1)


def bce_loss(positives: Tensor, negatives: Tensor) -> Tensor:
    """The binary cross-entropy of ``sigmoid(score)``, a mean over positives and negatives together: torch's
    ``binary_cross_entropy_with_logits`` with labels 1 and 0. No pairs give 0.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.bce_loss(torch.tensor([100.0, 0.0]), torch.tensor([-100.0]))
        tensor(0.2310)
    """
    return _mean(-logsigmoid(torch.cat([positives.flatten(), -negatives.flatten()])))


def bpr_loss(positives: Tensor, negatives: Tensor) -> Tensor:
    """Bayesian personalised ranking: the mean of ``log(1 + exp(negative - positive))`` over the negatives of each
    positive, as :func:`negative_sampling` has them, or in a row each. No pairs give 0.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.bpr_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0, -100.0, -100.0]))
        tensor(0.3466)
    """
    return _mean(-logsigmoid(_differences(positives, negatives)))


def margin_loss(positives: Tensor, negatives: Tensor, margin: float = 1.0) -> Tensor:
    """The mean of ``max(0, margin + negative - positive)`` over the negatives of each positive: torch's
    ``margin_ranking_loss``. No pairs give 0.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.margin_loss(torch.tensor([1.0, 2.0]), torch.tensor([0.5, -3.0]))
        tensor(0.2500)
    """
    if not 0 <= margin < float("inf"):
        raise ValueError(f"margin is {margin}: use a number from 0 on")
    return _mean((margin - _differences(positives, negatives)).clamp(min=0))


class TopLists(NamedTuple):
    candidates: Tensor  #: row i names those of query i, the best first; -1 where there are no more
    scores: Tensor  #: -infinity where there are no more


_WIDEST = 4096  # candidates of a block


def top(queries: Tensor, candidates: Tensor, count: int = 10, leave_out: Tensor | None = None, *,
        block_bytes: int = 64 << 20) -> TopLists:
    """The candidates with the highest dot products for every query: exact, the lower id first among ties, where the
    tensors lie. Products are compared in blocks of ``block_bytes``, of which a few are there at a time. Embeddings of 16
    bits are widened to fp32.

    Args:
        leave_out: pairs (query, candidate), ``2 x pairs``, that are not to be listed: those that are known already.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> queries, items = torch.tensor([[1.0]]), torch.tensor([[3.0], [5.0], [3.0], [4.0]])
        >>> links.top(queries, items, count=4, leave_out=torch.tensor([[0], [1]])).candidates
        tensor([[ 3,  0,  2, -1]])
    """
    queries, candidates = _embeddings("queries", queries), _embeddings("candidates", candidates)
    if queries.size(1) != candidates.size(1):
        raise ValueError(f"queries have {queries.size(1)} numbers, candidates {candidates.size(1)}: use as many in both")
    if queries.device != candidates.device:
        raise ValueError(f"queries lie on {queries.device}, candidates on {candidates.device}: move one of them")
    if count < 1 or block_bytes < 1:
        raise ValueError(f"{count} candidates by blocks of {block_bytes} bytes: use positive numbers")
    known = _sorted_rows(leave_out, queries, candidates)
    width = min(_WIDEST, max(candidates.size(0), 1))
    height = max(1, block_bytes // (width * 8))  # keys of 64 bits
    blocks = [_best(queries[first:first + height], first, candidates, width, count, known)
              for first in range(0, queries.size(0), height)]
    keys = torch.cat(blocks) if blocks else queries.new_empty((0, count), dtype=torch.int64)
    listed = keys != _NONE
    ids = torch.where(listed, _LOW - (keys & _LOW), -1)
    return TopLists(ids, torch.where(listed, _score_of(keys), float("-inf")))


def _embeddings(name: str, embeddings: Tensor) -> Tensor:
    _check_tensor(name, embeddings)
    if embeddings.dtype not in FLOATS or embeddings.dtype == torch.float64:
        raise TypeError(f"{name} has type {embeddings.dtype}: use float32, bfloat16 or float16")
    if embeddings.dim() != 2:
        raise ValueError(f"{name} has shape {tuple(embeddings.shape)}: use (rows, features)")
    return embeddings.detach().float()


def _sorted_rows(pairs: Tensor | None, queries: Tensor, candidates: Tensor) -> tuple[Tensor, Tensor]:
    """The pairs by their queries, and where those of each query begin."""
    if pairs is None:
        pairs = torch.empty((2, 0), dtype=torch.int64, device=queries.device)
    if checked_pairs("leave_out", pairs).device != queries.device:
        raise ValueError(f"leave_out lies on {pairs.device}, queries on {queries.device}: move one of them")
    check_ends(Graph(pairs, candidates.size(0), queries.size(0)))
    order = torch.argsort(pairs[0], stable=True)
    counts = torch.bincount(pairs[0], minlength=queries.size(0))
    return pairs[:, order], torch.nn.functional.pad(counts.cumsum(0), (1, 0)).cpu()


# A score and a candidate as one number of 64 bits, so that the largest are the best, the lower id first among ties:
# the score's bits, in their order as a whole number, above what is left of 2^32 - 1 by the id.
_LOW = 2**32 - 1
_NONE = torch.iinfo(torch.int64).min


def _ordered(bits: Tensor) -> Tensor:
    """Bits of floats as whole numbers in the order of the floats, and back."""
    return torch.where(bits < 0, bits ^ 0x7FFFFFFF, bits)


def _keys(scores: Tensor, ids: Tensor) -> Tensor:
    bits = (scores + 0.0).view(torch.int32)  # -0 is 0
    return (_ordered(bits).long() << 32) | (_LOW - ids)


def _score_of(keys: Tensor) -> Tensor:
    return _ordered((keys >> 32).int()).view(torch.float32)


def _best_of_block(scores: Tensor, first: int, count: int, left_out: tuple[Tensor, Tensor]) -> Tensor:
    """The keys of candidates from ``first`` on that may be the best. Only where a tie decides which of them are, or where
    there may be fewer than asked for, are they those of all candidates."""
    scores[left_out] = float("-inf")
    highest = scores.topk(min(count, scores.size(1)), dim=1)
    if bool(highest.values.isnan().any()):  # which is the largest number for topk
        raise ValueError("a score is not a number: one of the embeddings is not finite")
    last = highest.values[:, -1:]
    decided = ((scores >= last).sum(1, keepdim=True) == highest.values.size(1)) & (last > float("-inf"))
    if bool(decided.all()):
        return _keys(highest.values, highest.indices + first)
    keys = _keys(scores, torch.arange(first, first + scores.size(1), device=scores.device))
    keys[left_out] = _NONE
    return keys


def _best(queries: Tensor, first_query: int, candidates: Tensor, width: int, count: int,
          known: tuple[Tensor, Tensor]) -> Tensor:
    """The keys of the best candidates of some queries, the best first."""
    best = torch.full((queries.size(0), count), _NONE, device=queries.device)
    begin, end = (int(known[1][first_query + place]) for place in (0, queries.size(0)))
    query, candidate = known[0][:, begin:end]
    for first in range(0, candidates.size(0), width):
        with torch.autocast(queries.device.type, enabled=False):
            scores = queries @ candidates[first:first + width].t()
        here = (candidate >= first) & (candidate < first + width)
        keys = _best_of_block(scores, first, count, (query[here] - first_query, candidate[here] - first))
        best = torch.cat([best, keys], dim=1).topk(count, dim=1).values
    return best
