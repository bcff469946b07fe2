# SPDX-License-Identifier: Apache-2.0
"""Scores of pairs, losses on them, and the best candidates, on any device. See :mod:`tessera.links`."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from . import _link_operators, _pair_operators, errors
from ._checks import FLOATS, _check_tensor
from ._link_draws import check_pair_ends, checked_pairs
from ._torch_names import transforms_at_work
from .functional import _autocast as cast_for_autocast
from .functional import autocast_dtype


def _checked_ends(sources: Tensor, pairs: Tensor, targets: Tensor | None) -> int:
    """Refuses what does not fit; returns how many rows the targets have."""
    others = sources if targets is None else targets
    for name, embeddings in (("sources", sources), ("targets", others)):
        _check_tensor(name, embeddings)
        if embeddings.dim() != 2:
            raise ValueError(f"{name} has shape {tuple(embeddings.shape)}: use (vertices, features)")
        if embeddings.dtype not in FLOATS:
            raise TypeError(f"{name} has type {embeddings.dtype}: use float64, float32, bfloat16 or float16")
        if embeddings.device != pairs.device:
            raise ValueError(f"{name} lies on {embeddings.device}, pairs on {pairs.device}: move one of them")
    if sources.size(1) != others.size(1):
        raise ValueError(f"sources has {sources.size(1)} features, targets has {others.size(1)}: use as many in both")
    if sources.dtype != others.dtype and autocast_dtype(sources) is None:
        raise TypeError(f"targets has type {others.dtype}, sources {sources.dtype}: use targets.to({sources.dtype})")
    check_pair_ends(pairs, sources.size(0), others.size(0))
    return others.size(0)


def _cast(sources: Tensor, targets: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Under autocast, as the factors of a product; one matrix stays one."""
    return cast_for_autocast(sources, None if targets is sources else targets)


def dot(sources: Tensor, pairs: Tensor, targets: Tensor | None = None) -> Tensor:
    """The score of each pair: the product of its source's row and its target's. Without ``targets``, both are rows of
    ``sources``.

    Nothing of the size of pairs x features is made, and nothing is planned for a list, which may be another one in
    every step. Gradients are the same bits at every run.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> h = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> links.dot(h, torch.tensor([[0, 0], [1, 0]]))
        tensor([11.,  5.])
    """
    _checked_ends(sources, checked_pairs("pairs", pairs), targets)
    return errors.run(_pair_operators.dot, *_cast(sources, targets), pairs)


def distmult(sources: Tensor, pairs: Tensor, relations: Tensor, of: Tensor | None = None,
             targets: Tensor | None = None) -> Tensor:
    """DistMult's score of each pair: the sum over k of ``source[k] * relation[k] * target[k]``.

    Args:
        relations: a row for each relation.
        of: the relation of each pair; where there is one relation alone it may be left out.

    Each source is multiplied by each relation once, however many pairs it is in, unless there are fewer pairs: then
    scores are made of the rows of their three ends.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> h = torch.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> relations = torch.tensor([[1.0, 1.0], [1.0, -1.0]])
        >>> links.distmult(h, torch.tensor([[0, 0], [1, 1]]), relations, of=torch.tensor([0, 1]))
        tensor([11., -5.])
    """
    rows = _checked_ends(sources, checked_pairs("pairs", pairs), targets)
    _check_tensor("relations", relations)
    if relations.dim() != 2 or relations.size(1) != sources.size(1):
        raise ValueError(f"relations has shape {tuple(relations.shape)}: use (relations, {sources.size(1)})")
    targets = sources if targets is None else targets
    if of is None:
        if relations.size(0) != 1:
            raise ValueError(f"there are {relations.size(0)} relations: say by of= which each pair has")
        return dot(sources * relations, pairs, targets)
    _check_tensor("of", of)
    if of.dtype not in (torch.int64, torch.int32):
        raise TypeError(f"of has type {of.dtype}: use torch.int64 or torch.int32")
    if of.dim() != 1 or of.size(0) != pairs.size(1):
        raise ValueError(f"of has shape {tuple(of.shape)}: use ({pairs.size(1)},), a relation for each pair")
    # Pairs with their relations are checked as edges are: from relations to targets.
    check_pair_ends(torch.stack([of.to(pairs), pairs[1]]), relations.size(0), rows)
    if sources.size(0) * relations.size(0) <= pairs.size(1):
        # Number r * sources + i is source i times relation r.
        products = (relations.unsqueeze(1) * sources.unsqueeze(0)).flatten(0, 1)
        numbered = torch.stack([of.to(pairs.dtype) * sources.size(0) + pairs[0], pairs[1]])
        return errors.run(_pair_operators.dot, *_cast(products, targets), numbered)
    return (sources[pairs[0]] * relations[of] * targets[pairs[1]]).sum(1)


def mlp(sources: Tensor, pairs: Tensor, hidden_weight: Tensor, hidden_bias: Tensor | None, weight: Tensor,
        bias: Tensor | None = None, targets: Tensor | None = None) -> Tensor:
    """The score of each pair by a perceptron of one hidden layer on the embeddings of both ends, one behind the other:
    ``weight . relu(hidden_weight [source, target] + hidden_bias) + bias``. It tells the two directions apart.

    Args:
        hidden_weight: ``hidden x 2 features``, as ``torch.nn.Linear(2 * features, hidden)`` has it.
        weight: ``1 x hidden``, as ``torch.nn.Linear(hidden, 1)`` has it.

    Each vertex is multiplied by the half of the matrix that is its own once, however many pairs it is in.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> h = torch.tensor([[1.0], [-2.0]])
        >>> links.mlp(h, torch.tensor([[0, 1], [1, 0]]), torch.tensor([[1.0, 0.0]]), None, torch.tensor([[2.0]]))
        tensor([2., 0.])
    """
    _checked_ends(sources, checked_pairs("pairs", pairs), targets)
    width = sources.size(1)
    for name, tensor in (("hidden_weight", hidden_weight), ("weight", weight)):
        _check_tensor(name, tensor)
    if hidden_weight.dim() != 2 or hidden_weight.size(1) != 2 * width:
        raise ValueError(f"hidden_weight has shape {tuple(hidden_weight.shape)}: use (hidden, {2 * width})")
    hidden = hidden_weight.size(0)
    if tuple(weight.shape) != (1, hidden):
        raise ValueError(f"weight has shape {tuple(weight.shape)}: use (1, {hidden})")
    of_sources = torch.nn.functional.linear(sources, hidden_weight[:, :width])
    of_targets = torch.nn.functional.linear(sources if targets is None else targets, hidden_weight[:, width:], hidden_bias)
    sums = errors.run(_pair_operators.sum_of_ends, of_sources, of_targets, pairs)
    return torch.nn.functional.linear(sums.relu(), weight, bias).view(-1)


def _check_numbers(positives: Tensor, negatives: Tensor) -> None:
    rows = positives.numel()
    if positives.dim() != 1 or (negatives.numel() % rows if rows > 0 else negatives.numel()) != 0:
        raise ValueError(f"{tuple(negatives.shape)} negatives for {tuple(positives.shape)} positives: give as many for "
                         "each positive, those of positive i at i * per_positive and behind it")


def _differences(positives: Tensor, negatives: Tensor) -> Tensor:
    """Of each positive less each of its negatives."""
    return positives.view(-1, 1) - negatives.reshape(positives.numel(), -1 if negatives.numel() > 0 else 0)


_KINDS = {"bce": 0, "bpr": 1, "margin": 2}  # ops::PairLossKind


_MANY = 1 << 14


def _fused(kind: str, positives: Tensor, negatives: Tensor, margin: float = 1.0) -> Tensor | None:
    """The loss by the operator; None where torch's operations make it: in double precision on a GPU, while torch.func is
    at work, which may want derivatives of the derivative, and of many scores on a CPU, where torch's take vectors."""
    one_type = positives.dtype == negatives.dtype and positives.dtype in FLOATS and positives.device == negatives.device
    if not one_type or transforms_at_work() or not (positives.is_cpu or positives.is_cuda):
        return None
    if positives.is_cuda and positives.dtype == torch.float64:
        return None
    if positives.is_cpu and positives.numel() + negatives.numel() > _MANY:
        return None
    return errors.run(_pair_operators.loss, positives.flatten(), negatives.flatten(), _KINDS[kind], margin)[0]


def _mean(*losses: Tensor) -> Tensor:
    count = sum(each.numel() for each in losses)
    return sum(each.sum() for each in losses) / max(count, 1)  # type: ignore[return-value]


def _log_loss(*scores: Tensor) -> Tensor:
    """The mean of log(1 + exp(-score)). A factor costs a pass over all scores, but not of their sum."""
    return -_mean(*map(logsigmoid, scores))


def bce_loss(positives: Tensor, negatives: Tensor) -> Tensor:
    """The binary cross-entropy of ``sigmoid(score)``, a mean over positives and negatives together: torch's
    ``binary_cross_entropy_with_logits`` with labels 1 and 0. No pairs give 0.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.bce_loss(torch.tensor([100.0, 0.0]), torch.tensor([-100.0]))
        tensor(0.2310)
    """
    found = _fused("bce", positives, negatives)
    if found is not None:
        return found
    return _log_loss(positives, -negatives)


def bpr_loss(positives: Tensor, negatives: Tensor) -> Tensor:
    """Bayesian personalised ranking: the mean of ``log(1 + exp(negative - positive))`` over the negatives of each
    positive, as :func:`negative_sampling` has them, or in a row each. No pairs give 0.

    Example:
        >>> import torch
        >>> from tessera import links
        >>> links.bpr_loss(torch.tensor([1.0, 2.0]), torch.tensor([1.0, 1.0, -100.0, -100.0]))
        tensor(0.3466)
    """
    _check_numbers(positives, negatives)
    found = _fused("bpr", positives, negatives)
    return _log_loss(_differences(positives, negatives)) if found is None else found


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
    _check_numbers(positives, negatives)
    found = _fused("margin", positives, negatives, float(margin))
    return _mean((margin - _differences(positives, negatives)).clamp(min=0)) if found is None else found


class TopLists(NamedTuple):
    candidates: Tensor  #: row i names those of query i, the best first; -1 where there are no more
    scores: Tensor  #: -infinity where there are no more


def top(queries: Tensor, candidates: Tensor, count: int = 10, leave_out: Tensor | None = None, *,
        block_bytes: int = 0) -> TopLists:
    """The candidates with the highest dot products for every query: exact, the lower id first among ties, where the
    tensors lie. Products are made in fp32, never of TF32, and compared in blocks of ``block_bytes``, of which there is one
    at a time (0: 32 MiB on a CPU, 512 MiB on a GPU). Embeddings of 16 bits are widened to fp32. On a GPU lists are of 4096 at most; while a CUDA graph is captured
    no score is looked at: one that is not a number is no error there, and is not listed.

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
    if count < 1 or block_bytes < 0:
        raise ValueError(f"{count} candidates by blocks of {block_bytes} bytes: use positive numbers")
    offsets, known = _rows_of_pairs(leave_out, queries, candidates)
    ids, scores, problem = _link_operators.run("top_lists", queries, candidates, offsets, known, count, block_bytes)
    capturing = problem.is_cuda and torch.cuda.is_current_stream_capturing()
    if not capturing and bool(problem):
        raise ValueError("a score is not a number: one of the embeddings is not finite")
    return TopLists(ids, scores)


def _embeddings(name: str, embeddings: Tensor) -> Tensor:
    _check_tensor(name, embeddings)
    if embeddings.dtype not in FLOATS or embeddings.dtype == torch.float64:
        raise TypeError(f"{name} has type {embeddings.dtype}: use float32, bfloat16 or float16")
    if embeddings.dim() != 2:
        raise ValueError(f"{name} has shape {tuple(embeddings.shape)}: use (rows, features)")
    return embeddings.detach().float()


def _rows_of_pairs(pairs: Tensor | None, queries: Tensor, candidates: Tensor) -> tuple[Tensor | None, Tensor | None]:
    """Where the pairs of each query begin, and their candidates in order."""
    if pairs is None:
        return None, None
    if checked_pairs("leave_out", pairs).device != queries.device:
        raise ValueError(f"leave_out lies on {pairs.device}, queries on {queries.device}: move one of them")
    check_pair_ends(pairs, queries.size(0), candidates.size(0))
    width = max(candidates.size(0), 1)
    places = (pairs[0].long() * width + pairs[1]).sort().values
    begins = torch.arange(queries.size(0) + 1, device=pairs.device) * width
    return torch.searchsorted(places, begins), (places % width).int()
