# SPDX-License-Identifier: Apache-2.0
"""Links beside what others call the same: scores and losses of PyG and torch, metrics of scikit-learn, ogb and PyG, in double
precision on the CPU to 1e-6, results and gradients, with ties; on a GPU in fp32 within what fp32 can do."""

import pytest
import torch
import torch_geometric.nn as pyg
from conftest import random_edges
from torch.nn import functional
from torch_geometric.metrics import LinkPredMRR, LinkPredNDCG, LinkPredRecall
from torch_geometric.nn.models.lightgcn import BPRLoss
from torch_geometric.utils import negative_sampling

from tessera import links

metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn, which make test-python installs")


def wide(device):
    """The type of a comparison, and how close results have to be."""
    return (torch.float64, 1e-6) if device.type == "cpu" else (torch.float32, 1e-4)


def same(ours, theirs, leaves, bound):
    """Results and gradients."""
    assert (ours - theirs).abs().max().item() <= bound * max(theirs.abs().max().item(), 1)
    weights = torch.randn(theirs.shape, device=theirs.device, dtype=theirs.dtype)
    for found, expected in zip(torch.autograd.grad(ours, leaves, weights), torch.autograd.grad(theirs, leaves, weights)):
        assert (found - expected).abs().max().item() <= bound * max(expected.abs().max().item(), 1)


def leaf(device, *shape):
    return torch.randn(*shape, device=device, dtype=wide(device)[0], requires_grad=True)


def test_pygs_inner_product_decoder(device):
    h, pairs = leaf(device, 30, 16), random_edges(30, 30, 200, device)
    same(links.dot(h, pairs), pyg.InnerProductDecoder()(h, pairs, sigmoid=False), [h], wide(device)[1])


@pytest.mark.parametrize("relations", [3, 40])  # more rows of products than pairs, and fewer
def test_pygs_distmult(device, relations):
    theirs = pyg.DistMult(30, relations, 16).to(device, wide(device)[0])
    pairs, of = random_edges(30, 30, 200, device), torch.randint(0, relations, (200,), device=device)
    h, r = theirs.node_emb.weight, theirs.rel_emb.weight
    same(links.distmult(h, pairs, r, of), theirs(pairs[0], of, pairs[1]), [h, r], wide(device)[1])


def test_a_perceptron_of_torchs_layers(device):
    layers = torch.nn.Sequential(torch.nn.Linear(32, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1)).to(device, wide(device)[0])
    h, pairs = leaf(device, 30, 16), random_edges(30, 30, 200, device)
    theirs = layers(torch.cat([h[pairs[0]], h[pairs[1]]], dim=1)).view(-1)
    ours = links.mlp(h, pairs, layers[0].weight, layers[0].bias, layers[2].weight, layers[2].bias)
    same(ours, theirs, [h, *layers.parameters()], wide(device)[1])


def test_torchs_cross_entropy(device):
    positives, negatives = leaf(device, 50), leaf(device, 70)
    labels = torch.cat([torch.ones_like(positives), torch.zeros_like(negatives)])
    theirs = functional.binary_cross_entropy_with_logits(torch.cat([positives, negatives]), labels)
    same(links.bce_loss(positives, negatives), theirs, [positives, negatives], wide(device)[1])


def test_the_loss_of_pygs_auto_encoder(device):
    """Two means, which are one where there are as many negatives; its 1e-15 inside of the logarithm is below 1e-6."""
    h, pairs, others = leaf(device, 30, 4), random_edges(30, 30, 90, device), random_edges(30, 30, 90, device, seed=9)
    theirs = pyg.GAE(torch.nn.Identity()).recon_loss(h, pairs, others) / 2
    same(links.bce_loss(links.dot(h, pairs), links.dot(h, others)), theirs, [h], wide(device)[1])


def test_pygs_bpr_loss(device):
    positives, negatives = leaf(device, 50), leaf(device, 50)
    same(links.bpr_loss(positives, negatives), BPRLoss(0)(positives, negatives), [positives, negatives], wide(device)[1])


def test_torchs_margin_loss(device):
    positives, negatives = leaf(device, 50), leaf(device, 50)
    theirs = functional.margin_ranking_loss(positives, negatives, torch.ones_like(positives), 0.5)
    same(links.margin_loss(positives, negatives, 0.5), theirs, [positives, negatives], wide(device)[1])


def tied(device, *shape):
    return torch.randint(0, 12, shape, device=device).to(wide(device)[0]) / 4


def test_scikit_learns_curves(device):
    positives, negatives = tied(device, 300) + 1, tied(device, 500)
    labels, scores = torch.cat([torch.ones(300), torch.zeros(500)]), torch.cat([positives, negatives]).cpu()
    assert links.roc_auc(positives, negatives) == pytest.approx(metrics.roc_auc_score(labels, scores), abs=1e-12)
    assert links.average_precision(positives, negatives) == pytest.approx(metrics.average_precision_score(labels, scores), abs=1e-12)


def ogb_mrr(positives, negatives):
    """ogb's Evaluator("ogbl-citation2").eval: `mrr_list`."""
    optimistic = (negatives > positives.view(-1, 1)).sum(dim=1)
    pessimistic = (negatives >= positives.view(-1, 1)).sum(dim=1)
    ranking = 0.5 * (optimistic + pessimistic) + 1
    return 1.0 / ranking.to(torch.float64), ranking


def ogb_hits(positives, negatives, k):
    """ogb's Evaluator("ogbl-ppa", "ogbl-collab", "ogbl-ddi").eval: `hits@K`."""
    if len(negatives) < k:
        return 1.0
    kth = torch.topk(negatives, k)[0][-1]
    return float(torch.sum(positives > kth).cpu()) / len(positives)


def test_ogbs_evaluators(device):
    positives, negatives = tied(device, 80), tied(device, 80, 60)
    reciprocal, ranking = ogb_mrr(positives, negatives)
    found = links.ranks(positives, negatives)
    assert links.mean_reciprocal_rank(found) == pytest.approx(reciprocal.mean().item(), abs=1e-12)
    for k in (1, 3, 10):
        assert links.hits_within(found, k) == pytest.approx((ranking <= k).double().mean().item(), abs=1e-12)
    for k in (1, 20, 50, 100):
        assert links.hits_at(positives, negatives[0], k) == pytest.approx(ogb_hits(positives, negatives[0], k), abs=1e-12)


def test_pygs_metrics_of_lists(device):
    lists = torch.stack([torch.randperm(40)[:10] for _ in range(30)])
    truth = torch.unique(torch.stack([torch.arange(90) % 30, torch.randint(0, 40, (90,))]), dim=1)
    found = links.list_quality(lists.to(device), truth.to(device))
    for metric, value in ((LinkPredRecall(10), found.recall), (LinkPredNDCG(10), found.ndcg)):
        metric.update(lists, truth)
        assert value == pytest.approx(metric.compute().item(), abs=1e-6)


def test_pygs_reciprocal_rank_of_one_right_candidate(device):
    """Among candidates of different scores, where ties play no part."""
    scores = torch.stack([torch.randperm(40) for _ in range(30)]).to(device, wide(device)[0])
    truths = torch.randint(0, 40, (30,), device=device)
    metric = LinkPredMRR(40)
    metric.update(scores.argsort(1, descending=True).cpu(), torch.stack([torch.arange(30), truths.cpu()]))
    assert links.mean_reciprocal_rank(links.ranks_of(scores, truths)) == pytest.approx(metric.compute().item(), abs=1e-6)


@pytest.mark.parametrize("count", [1, 10, 40, 100])
def test_torchs_topk(device, count):
    queries, candidates = (torch.randn(rows, 16, device=device) for rows in (70, 900))
    found = links.top(queries, candidates, count)
    expected = (queries.double() @ candidates.double().t()).topk(count, dim=1)
    assert torch.equal(found.candidates, expected.indices)
    assert (found.scores - expected.values).abs().max().item() < 1e-4


def test_negatives_avoid_what_pygs_avoid(device):
    index = torch.unique(random_edges(40, 40, 600, device), dim=1)
    for drawn in (links.negative_sampling(index, seed=1), negative_sampling(index, 40, index.size(1))):
        assert not torch.isin(drawn[0] * 40 + drawn[1], index[0] * 40 + index[1]).any()
