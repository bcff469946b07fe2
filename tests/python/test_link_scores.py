# SPDX-License-Identifier: Apache-2.0
"""Scores of pairs, losses, metrics and top lists, against torch, PyG and the definitions of scikit-learn, ogb and LightGCN."""

import math

import pytest
import torch
from conftest import close, opcheck, random_edges, supported
from torch.nn import functional
from torch_geometric.metrics import LinkPredNDCG, LinkPredRecall

from tessera import links

nan = float("nan")


def plain_scores(sources, pairs, targets, relations=None):
    products = sources[pairs[0].long()] * targets[pairs[1].long()]
    return (products if relations is None else products * relations).sum(1)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_dot_products(device, dtype):
    supported(device, dtype)
    pairs = random_edges(13, 17, 90, device)
    sources, targets = (torch.randn(rows, 11, device=device).to(dtype).requires_grad_() for rows in (17, 13))
    weights = torch.randn(90, device=device).to(dtype)
    found = links.dot(sources, pairs, targets)
    wide = [tensor.detach().double().requires_grad_() for tensor in (sources, targets)]
    expected = plain_scores(wide[0], pairs, wide[1])
    close(found, expected, dtype)
    gradients = torch.autograd.grad(found, (sources, targets), weights)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, wide, weights.double())):
        close(gradient, wanted, dtype)
    close(links.dot(targets, pairs % 13), plain_scores(wide[1], pairs % 13, wide[1]), dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("several", [True, False])
def test_distmult(device, several, dtype):
    supported(device, dtype)
    pairs = random_edges(13, 17, 90, device, dtype=torch.int32)
    of = torch.randint(0, 4, (90,), device=device) if several else None
    given = [torch.randn(rows, 11, device=device, dtype=dtype, requires_grad=True)
             for rows in (17, 4 if several else 1, 13)]
    found = links.distmult(given[0], pairs, given[1], of, given[2])
    wide = [tensor.detach().double().requires_grad_() for tensor in given]
    expected = plain_scores(wide[0], pairs, wide[2], wide[1][of] if several else wide[1])
    close(found, expected, dtype)
    weights = torch.randn(90, device=device, dtype=dtype)
    gradients = torch.autograd.grad(found, given, weights)
    for gradient, wanted in zip(gradients, torch.autograd.grad(expected, wide, weights.double())):
        close(gradient, wanted, dtype)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("apart", [True, False])
def test_perceptrons(device, dtype, apart):
    """As torch's layers on both embeddings, one behind the other."""
    supported(device, dtype)
    pairs = random_edges(13, 17, 90, device)
    pairs = pairs if apart else pairs % 13
    hidden, last = torch.nn.Linear(22, 9, device=device, dtype=dtype), torch.nn.Linear(9, 1, device=device, dtype=dtype)
    ends = [torch.randn(rows, 11, device=device, dtype=dtype, requires_grad=True) for rows in ((17, 13) if apart else (13,))]
    leaves = [*ends, hidden.weight, hidden.bias, last.weight, last.bias]
    found = links.mlp(ends[0], pairs, *leaves[len(ends):], *ends[1:])
    wide = [tensor.detach().double().requires_grad_() for tensor in leaves]
    both = torch.cat([wide[0][pairs[0]], wide[len(ends) - 1][pairs[1]]], dim=1)
    functions = wide[len(ends):]
    expected = functional.linear(functional.linear(both, *functions[:2]).relu(), *functions[2:]).view(-1)
    close(found, expected, dtype)
    if dtype == torch.bfloat16:  # what is rounded to 0 has another slope
        return
    weights = torch.randn(90, device=device, dtype=dtype)
    for ours, theirs in zip(torch.autograd.grad(found, leaves, weights), torch.autograd.grad(expected, wide, weights.double())):
        close(ours, theirs, dtype)


def test_perceptrons_refuse_what_does_not_fit():
    h, pairs = torch.randn(5, 3), torch.zeros(2, 4, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"hidden_weight has shape \(4, 5\): use \(hidden, 6\)"):
        links.mlp(h, pairs, torch.zeros(4, 5), None, torch.zeros(1, 4))
    with pytest.raises(ValueError, match=r"weight has shape \(2, 4\): use \(1, 4\)"):
        links.mlp(h, pairs, torch.zeros(4, 6), None, torch.zeros(2, 4))


def test_gradients_of_many_pairs_are_the_same_bits_at_every_run(device):
    """Of rows that a third of all pairs share, too."""
    pairs = torch.randint(0, 3000, (2, 60_000), device=device)
    pairs[0, ::3] = 7
    h = torch.randn(3000, 16, device=device, requires_grad=True)
    weights = torch.randn(60_000, device=device)
    found = [torch.autograd.grad(links.dot(h, pairs), h, weights)[0] for _ in range(4)]
    assert all(torch.equal(found[0], again) for again in found[1:])
    wide = h.detach().double().requires_grad_()
    close(found[0], torch.autograd.grad(plain_scores(wide, pairs, wide), wide, weights.double())[0], torch.float32)


def test_lists_of_pairs_may_change_in_every_step(device):
    """Nothing is built or planned for them."""
    import tessera
    h = torch.randn(50, 8, device=device, requires_grad=True)
    links.dot(h, torch.zeros(2, 3, dtype=torch.int64, device=device)).sum().backward()
    before = tessera.counters()
    for _ in range(3):
        links.dot(h, torch.randint(0, 50, (2, 40), device=device)).sum().backward()
    assert tessera.counters() == before


def test_scores_under_autocast(device):
    pairs, h = random_edges(9, 9, 40, device), torch.randn(9, 16, device=device, requires_grad=True)
    with torch.autocast(device.type, torch.bfloat16):
        found = links.dot(h, pairs)
        loss = links.bce_loss(found[:20], found[20:])
    assert found.dtype == torch.bfloat16
    close(found, plain_scores(h.detach().bfloat16().double(), pairs, h.detach().bfloat16().double()), torch.bfloat16)
    loss.backward()
    assert h.grad.dtype == torch.float32 and h.grad.isfinite().all()


def test_opcheck(device):
    pairs = random_edges(6, 7, 20, device)
    sources, targets = (torch.randn(rows, 4, device=device, requires_grad=True) for rows in (7, 6))
    for ends in ((sources, targets), (targets, None)):
        list_of = pairs if ends[1] is not None else pairs % 6
        opcheck("pair_dot", (*ends, list_of))
        opcheck("pair_sum", (*ends, list_of))
        given = [None if end is None else end.detach() for end in ends]
        opcheck("pair_dot_backward", (torch.randn(20, device=device), *given, list_of, True, ends[1] is not None))
        opcheck("pair_sum_backward", (torch.randn(20, 4, device=device), list_of, 7, 6, ends[1] is None, True, ends[1] is not None))
    positives, negatives = torch.randn(5, device=device, requires_grad=True), torch.randn(10, device=device, requires_grad=True)
    for kind in range(3):
        opcheck("pair_loss", (positives, negatives, kind, 1.0))
    opcheck("pair_loss_backward", (torch.randn((), device=device), torch.randn(15, device=device), positives.detach(),
                                   negatives.detach()))
    offsets = torch.tensor([0, 1, 1, 1, 1, 1, 1], device=device)
    for left_out in ((None, None), (offsets, torch.zeros(1, dtype=torch.int32, device=device))):
        opcheck("top_lists", (targets.detach(), sources.detach(), *left_out, 3, 1 << 20))


def test_second_derivatives_are_refused(device):
    h, pairs = torch.randn(5, 3, device=device, requires_grad=True), torch.zeros(2, 4, dtype=torch.int64, device=device)
    for function in (lambda: links.dot(h, pairs).square().sum(), lambda: links.bce_loss(h[0], h[1])):
        gradient, = torch.autograd.grad(function(), h, create_graph=True)
        with pytest.raises(NotImplementedError, match="no second derivative of (scores|losses) of pairs"):
            gradient.sum().backward()


def test_gradcheck_of_decoders():
    pairs = random_edges(6, 7, 20)
    of = torch.randint(0, 3, (20,))
    sources, relations, targets = (torch.randn(rows, 4, dtype=torch.float64, requires_grad=True) for rows in (7, 3, 6))
    assert torch.autograd.gradcheck(lambda s, t: links.dot(s, pairs, t), (sources, targets))
    assert torch.autograd.gradcheck(lambda s, r, t: links.distmult(s, pairs, r, of, t), (sources, relations, targets))


def test_scores_and_losses_compile(device):
    pairs, h = random_edges(9, 9, 40, device), torch.randn(9, 4, device=device)

    def loss(h):
        scores = links.dot(h, pairs)
        return links.bce_loss(scores[:20], scores[20:]) + links.bpr_loss(scores[:10], scores[10:]) + links.margin_loss(scores, scores)

    compiled = torch.compile(loss, fullgraph=True, backend="aot_eager")
    gradients = [torch.autograd.grad(run(leaf), leaf)[0] for run in (loss, compiled) for leaf in (h.clone().requires_grad_(),)]
    close(gradients[1], gradients[0].double(), torch.float32)


def test_no_pairs_have_no_scores(device):
    h = torch.randn(5, 3, device=device, requires_grad=True)
    pairs = torch.empty(2, 0, dtype=torch.int64, device=device)
    scores = torch.cat([links.dot(h, pairs), links.distmult(h, pairs, h[:1])])
    assert scores.shape == (0,)
    scores.sum().backward()
    assert torch.equal(h.grad, torch.zeros_like(h))


def test_decoders_refuse_what_does_not_fit(device):
    h, pairs = torch.randn(5, 3, device=device), torch.tensor([[0, 5], [1, 1]], device=device)
    with pytest.raises(IndexError, match="source index 5 is outside"):
        links.dot(h, pairs)
    of = torch.zeros(2, dtype=torch.int64, device=device)
    with pytest.raises(IndexError, match="source index 5 is outside"):
        links.distmult(h, pairs, h[:2], of)
    with pytest.raises(IndexError, match="index 2 is outside"):
        links.distmult(h, pairs % 5, h[:2], of + 2)
    with pytest.raises(ValueError, match="2 relations: say by of="):
        links.distmult(h, pairs % 5, h[:2])
    with pytest.raises(ValueError, match=r"use \(2,\), a relation for each pair"):
        links.distmult(h, pairs % 5, h[:2], of[:1])
    with pytest.raises(TypeError, match="of has type torch.float32"):
        links.distmult(h, pairs % 5, h[:2], of.float())
    with pytest.raises(ValueError, match=r"relations has shape \(2, 2\)"):
        links.distmult(h, pairs % 5, h[:2, :2], of)
    with pytest.raises(ValueError, match="sources has 3 features, targets has 2"):
        links.dot(h, pairs % 5, h[:, :2])
    with pytest.raises(TypeError, match="pairs has type torch.float32"):
        links.dot(h, pairs.float())


LOSSES = {
    "bce": (links.bce_loss, lambda p, n: functional.binary_cross_entropy_with_logits(
        torch.cat([p, n.flatten()]), torch.cat([torch.ones_like(p), torch.zeros_like(n.flatten())]))),
    "bpr": (links.bpr_loss, lambda p, n: functional.softplus(n - p.view(-1, 1), threshold=1000).mean()),
    "margin": (lambda p, n: links.margin_loss(p, n, 0.75), lambda p, n: functional.margin_ranking_loss(
        p.view(-1, 1).expand_as(n), n, torch.ones_like(n), 0.75)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_of_many_scores(device, name):
    """Which other code makes than those of few."""
    loss, plain = LOSSES[name]
    for dtype, bound in ((torch.float64, 1e-12), (torch.float32, 1e-5)):
        positives, negatives = (torch.randn(20_000, each, device=device, dtype=dtype, requires_grad=True) for each in (1, 2))
        positives = positives.detach().view(-1).requires_grad_()
        found, expected = loss(positives, negatives), plain(positives, negatives)
        assert abs(found.item() - expected.item()) <= bound * max(expected.item(), 1)
        for ours, theirs in zip(*(torch.autograd.grad(one, (positives, negatives)) for one in (found, expected))):
            assert (ours - theirs).abs().max() <= bound * theirs.abs().max()


@pytest.mark.parametrize("name", LOSSES)
@pytest.mark.parametrize("each", [1, 4])
def test_losses(device, name, each):
    loss, plain = LOSSES[name]
    positives = torch.randn(9, device=device, dtype=torch.float64, requires_grad=True)
    negatives = torch.randn(9, each, device=device, dtype=torch.float64, requires_grad=True)
    found, expected = loss(positives, negatives.flatten()), plain(positives, negatives)
    assert torch.allclose(found, expected, rtol=0, atol=1e-12)
    for ours, theirs in zip(torch.autograd.grad(found, (positives, negatives)),
                            torch.autograd.grad(expected, (positives, negatives))):
        assert torch.allclose(ours, theirs, rtol=0, atol=1e-12)
    assert torch.equal(loss(positives, negatives), found)
    assert torch.autograd.gradcheck(loss, (positives, negatives))


@pytest.mark.parametrize("name", LOSSES)
def test_losses_at_the_edges(device, name):
    loss = LOSSES[name][0]
    none = torch.empty(0, device=device, requires_grad=True)
    assert loss(none, none).item() == 0
    high = torch.tensor([3e38, 1e4], device=device, requires_grad=True)
    low = torch.tensor([-3e38, -1e4], device=device, requires_grad=True)
    for value in (loss(high, low), loss(low.clone(), high.clone())):
        gradients = torch.autograd.grad(value, (high, low))
        assert value.item() >= 0 and all(gradient.isfinite().all() for gradient in gradients)
    assert math.isnan(loss(torch.tensor([nan], device=device), torch.zeros(1, device=device)).item())


def test_losses_refuse_what_does_not_fit():
    for loss in (links.bpr_loss, links.margin_loss):
        for positives, negatives in [(2, 3), (0, 2)]:
            with pytest.raises(ValueError, match="give as many for each positive"):
                loss(torch.zeros(positives), torch.zeros(negatives))
    for margin in (-1.0, nan, math.inf):
        with pytest.raises(ValueError, match="margin is"):
            links.margin_loss(torch.zeros(1), torch.zeros(1), margin)


def tied(*shape, different=6, device="cpu", dtype=torch.float64):
    return torch.randint(0, different, shape, device=device).to(dtype)


def test_curves(device):
    for found, wrong, different in [(1, 1, 2), (30, 80, 6), (80, 30, 10**6)]:
        positives, negatives = tied(found, different=different, device=device), tied(wrong, different=different, device=device)
        differences = positives.view(-1, 1) - negatives
        area = ((differences > 0).double() + (differences == 0).double() / 2).mean().item()
        assert abs(links.roc_auc(positives, negatives) - area) < 1e-12
        # The sum over thresholds of what recall gains, times the precision there.
        precision, recall = 0.0, 0.0
        for threshold in torch.cat([positives, negatives]).unique().flip(0):
            right, all_of = (positives >= threshold).sum().item(), (torch.cat([positives, negatives]) >= threshold).sum().item()
            precision, recall = precision + (right / found - recall) * right / all_of, right / found
        assert abs(links.average_precision(positives, negatives) - precision) < 1e-12
        assert links.roc_auc(positives.float(), negatives.float()) == links.roc_auc(positives, negatives)


def test_ranks(device):
    """As ogb's evaluator of ogbl-citation2: the mean of the best and the worst that ties allow."""
    positives, negatives = tied(20, device=device), tied(20, 30, device=device)
    best = (negatives > positives.view(-1, 1)).sum(1)
    worst = (negatives >= positives.view(-1, 1)).sum(1)
    expected = 0.5 * (best + worst).double() + 1
    found = links.ranks(positives, negatives)
    assert torch.equal(found, expected) and found.device.type == device.type
    assert abs(links.mean_reciprocal_rank(found) - (1 / expected).mean().item()) < 1e-12
    for k in (1, 3, 10, 100):
        assert abs(links.hits_within(found, k) - (expected <= k).double().mean().item()) < 1e-12
        # As that of ogbl-ppa: above the k-th best of all negatives.
        pool = negatives.flatten()[:50]
        share = 1.0 if k > 50 else (positives > pool.topk(k).values[-1]).double().mean().item()
        assert abs(links.hits_at(positives, pool, k) - share) < 1e-12
    assert links.mean_reciprocal_rank(found[:0]) == links.hits_within(found[:0], 1) == 0


def test_filtered_ranks(device):
    scores, truths = tied(20, 30, device=device), torch.randint(0, 30, (20,), device=device)
    known = random_edges(30, 20, 200, device)
    left_out = torch.zeros(20, 30, dtype=torch.bool, device=device)
    left_out[known[0], known[1]] = True
    rows = torch.arange(20, device=device)
    left_out[rows, truths] = False
    masked = scores.masked_fill(left_out, -math.inf)
    for given, table in [(None, scores), (known, masked)]:
        truth = scores[rows, truths].view(-1, 1)
        expected = (table > truth).sum(1) + ((table == truth).sum(1) + 1) / 2
        assert torch.equal(links.ranks_of(scores, truths, given), expected.double())


def lightgcn(lists, truth):
    """Recall and NDCG as LightGCN's utils.py computes them, for those that have something to find."""
    recalls, gains = [], []
    for listed, right in zip(lists.tolist(), truth):
        hits = torch.tensor([float(item in right) for item in listed], dtype=torch.float64)
        discounts = 1 / torch.log2(torch.arange(2, len(listed) + 2, dtype=torch.float64))
        recalls.append(hits.sum().item() / len(right))
        gains.append((hits * discounts).sum().item() / discounts[:min(len(listed), len(right))].sum().item())
    return sum(recalls) / len(truth), sum(gains) / len(truth)


def test_lists(device):
    lists = torch.stack([torch.randperm(40)[:8] for _ in range(25)])
    lists[3, 5:] = -1
    pairs = random_edges(40, 26, 150, device)
    pairs = pairs[:, (pairs[0] < 25) & (pairs[0] != 7)]
    truth = [set(pairs[1, pairs[0] == row].tolist()) for row in range(25)]
    rows = [row for row in range(25) if truth[row]]
    found = links.list_quality(lists.to(device), pairs)
    recall, ndcg = lightgcn(lists[rows], [truth[row] for row in rows])
    assert found.rows == len(rows) <= 24
    assert abs(found.recall - recall) < 1e-12 and abs(found.ndcg - ndcg) < 1e-12
    once = torch.unique(pairs, dim=1).cpu()
    for metric, value in ((LinkPredRecall(8), found.recall), (LinkPredNDCG(8), found.ndcg)):
        metric.update(lists, once)
        assert abs(metric.compute().item() - value) < 1e-6
    assert links.list_quality(lists, pairs[:, :0].cpu()) == (0, 0, 0)


def test_metrics_refuse_what_means_nothing():
    some, none, odd = torch.zeros(3), torch.zeros(0), torch.tensor([0.0, nan, 0.0])
    for curve in (links.roc_auc, links.average_precision):
        for positives, negatives in [(some, none), (none, some)]:
            with pytest.raises(ValueError, match="3 positives against 0|0 positives against 3"):
                curve(positives, negatives)
    for metric in (links.roc_auc, links.average_precision, lambda p, n: links.hits_at(p, n, 1),
                   lambda p, n: links.ranks(p, n.view(-1, 1)), lambda p, n: links.ranks_of(p.view(1, -1), torch.tensor([0]))):
        with pytest.raises(ValueError, match="not a number"):
            metric(odd, some)
    with pytest.raises(ValueError, match="best 0"):
        links.hits_at(some, some, 0)
    with pytest.raises(ValueError, match="k is 0"):
        links.hits_within(some, 0)
    with pytest.raises(ValueError, match="3 positives for 2 rows|3 positives"):
        links.ranks(some, torch.zeros(2, 4))
    with pytest.raises(ValueError, match="the true candidate of row 0 is 9, of 4"):
        links.ranks_of(torch.zeros(1, 4), torch.tensor([9]))
    with pytest.raises(IndexError, match="is outside"):
        links.ranks_of(torch.zeros(1, 4), torch.tensor([0]), torch.tensor([[0], [7]]))
    with pytest.raises(IndexError, match="is outside"):
        links.list_quality(torch.zeros(2, 3, dtype=torch.int64), torch.tensor([[2], [0]]))
    with pytest.raises(TypeError, match="use a float"):
        links.roc_auc(torch.zeros(3, dtype=torch.int64), some)
    with pytest.raises(ValueError, match="use \\(rows, candidates\\)"):
        links.ranks(some, some)


def best_by_sorting(scores, count, pairs):
    scores = scores.clone()
    if pairs is not None:
        scores[pairs[0], pairs[1]] = nan
    lists = []
    for row in scores.tolist():
        order = sorted((-score, item) for item, score in enumerate(row) if not math.isnan(score))[:count]
        lists.append(order + [(math.inf, -1)] * (count - len(order)))
    table = torch.tensor(lists, dtype=torch.float64).view(len(lists), count, 2)
    return table[..., 1].long(), -table[..., 0]


@pytest.mark.parametrize("block_bytes", [1, 1 << 16, 1 << 26])
def test_top_lists(device, block_bytes):
    for rows, items, width in [(37, 90, 5), (1, 1, 1), (3, 0, 4), (0, 9, 4), (5, 5000, 3), (2, 4097, 1), (6, 9000, 1), (4, 7, 0)]:
        # Products are exact: of small whole numbers, many of them tied, or of powers of 2 with numbers that differ.
        queries, candidates = (torch.randint(-3, 4, (size, width), device=device).float() for size in (rows, items))
        if width == 1:
            queries, candidates = 2**queries, torch.randperm(items, device=device).view(-1, 1) - items / 2
        known = random_edges(items, rows, 60, device) if rows * items > 0 else None
        for leave_out in (None, known):
            for count in (1, 10, 100):
                found = links.top(queries, candidates, count, leave_out, block_bytes=block_bytes)
                ids, scores = best_by_sorting(queries.cpu() @ candidates.cpu().t(), count,
                                              None if leave_out is None else leave_out.cpu())
                assert torch.equal(found.candidates.cpu(), ids) and torch.equal(found.scores.cpu().double(), scores)


def test_top_lists_of_odd_scores(device):
    queries = torch.tensor([[1.0]], device=device)
    candidates = torch.tensor([[-0.0], [0.0], [-math.inf], [math.inf], [-2.0**127], [2.0**-100], [-2.0**-100]], device=device)
    found = links.top(queries, candidates, 7)
    assert found.candidates.tolist() == [[3, 5, 0, 1, 6, 4, 2]]
    assert torch.equal(found.scores[0], candidates[found.candidates[0], 0])
    narrow = links.top(queries.bfloat16(), candidates[:2].bfloat16(), 1)
    assert narrow.scores.dtype == torch.float32
    with torch.autocast(device.type, torch.bfloat16):
        exact = links.top(torch.tensor([[1.001]], device=device), queries, 1)
    assert exact.scores.item() == pytest.approx(1.001, abs=1e-6)


def test_top_lists_refuse_what_does_not_fit():
    queries, candidates = torch.ones(2, 3), torch.ones(4, 3)
    with pytest.raises(ValueError, match="queries have 3 numbers, candidates 2"):
        links.top(queries, candidates[:, :2])
    with pytest.raises(ValueError, match="0 candidates"):
        links.top(queries, candidates, 0)
    with pytest.raises(ValueError, match="not a number"):
        links.top(queries, candidates * nan)
    with pytest.raises(TypeError, match="float64"):
        links.top(queries.double(), candidates.double())
    for pair in ([[2], [0]], [[0], [4]]):
        with pytest.raises(IndexError, match="is outside"):
            links.top(queries, candidates, leave_out=torch.tensor(pair))
