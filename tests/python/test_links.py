# SPDX-License-Identifier: Apache-2.0
"""Splits of links and pairs that are none: what PyG's RandomLinkSplit and negative_sampling promise, and more."""

import pytest
import torch
from conftest import opcheck, random_edges
from torch_geometric.data import Data
from torch_geometric.transforms import RandomLinkSplit

import tessera
from tessera import links
from tessera.links import Part


def drawn_edges(vertices=60, edges=400, symmetric=True, device="cpu", dtype=torch.int64, seed=3):
    """In no order, each once, without loops."""
    index = random_edges(vertices, vertices, edges, repeated=False, seed=seed)
    index = index[:, index[0] != index[1]]
    if symmetric:
        index = torch.unique(torch.cat([index, index.flip(0)], dim=1), dim=1)
    draw = torch.Generator().manual_seed(seed)
    return index[:, torch.randperm(index.size(1), generator=draw)].to(device, dtype)


def pairs_of(index):
    return [tuple(pair) for pair in index.t().tolist()]


def both_ways(pairs, symmetric):
    return set(pairs) | ({(b, a) for a, b in pairs} if symmetric else set())


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("supervision", [0.0, 0.3])
def test_splits_give_nothing_away(device, symmetric, supervision):
    index = drawn_edges(symmetric=symmetric, device=device)
    found = links.split(index, 0.1, 0.2, supervision, seed=5)
    seen = [set(pairs_of(edges)) for edges in found[:3]]
    asked = [both_ways(pairs_of(pairs), symmetric) for pairs in found[3:6]]
    assert seen[0] <= seen[1] <= seen[2] <= set(pairs_of(index))
    assert all(edges == {(b, a) for a, b in edges} for edges in seen) == symmetric
    if supervision > 0:
        assert seen[0].isdisjoint(asked[0]) and seen[0] | asked[0] == seen[1]
    else:
        assert seen[0] == asked[0] == seen[1]
    assert seen[1].isdisjoint(asked[1]) and seen[1] | asked[1] == seen[2]
    assert seen[2].isdisjoint(asked[2]) and seen[2] | asked[2] == set(pairs_of(index))
    assert all(pairs.device.type == device.type for pairs in found)


def undirected(pairs):
    return len({tuple(sorted(pair)) for pair in pairs})


@pytest.mark.parametrize("symmetric", [True, False])
@pytest.mark.parametrize("supervision", [0.0, 0.3])
def test_splits_have_the_counts_of_pygs(symmetric, supervision):
    """PyG rounds down, and counts an edge and its reverse of a directed graph as two."""
    index = drawn_edges(symmetric=symmetric)
    pyg = RandomLinkSplit(0.1, 0.2, is_undirected=symmetric, disjoint_train_ratio=supervision, add_negative_train_samples=False,
                          neg_sampling_ratio=0.0)(Data(edge_index=index, num_nodes=60))
    found = links.split(index, 0.1, 0.2, supervision, seed=5)
    for ours, theirs in zip(found[:3], pyg):
        assert abs(ours.size(1) - theirs.edge_index.size(1)) <= (8 if symmetric else 0.1 * index.size(1))
    for ours, theirs in zip(found[3:6], pyg):
        labelled = theirs.edge_label_index
        assert abs(undirected(pairs_of(ours)) - undirected(pairs_of(labelled))) <= (4 if symmetric else 0.1 * index.size(1))
        if symmetric:
            assert ours.size(1) == undirected(pairs_of(ours))  # each pair once, as PyG lists them


def test_edges_keep_their_order_and_their_attributes(device):
    index = drawn_edges(device=device, dtype=torch.int32)
    attributes = torch.arange(index.size(1), device=device)
    found = links.split(index, seed=1)
    assert found.train_edges.dtype == torch.int32
    assert torch.equal(found.train_edges, index[:, found.parts == Part.TRAIN])
    assert torch.equal(found.train_edges, index[:, attributes[found.parts == Part.TRAIN]])


def test_splits_depend_on_the_seed_alone(device):
    index = drawn_edges(device=device)
    first = links.split(index, seed=1)
    assert torch.equal(first.parts, links.split(index.clone(), seed=1).parts)
    assert not torch.equal(first.parts, links.split(index, seed=2).parts)
    assert torch.equal(first.parts.cpu(), links.split(index.cpu(), seed=1).parts)


def test_the_latest_edges_are_for_the_test(device):
    index = drawn_edges(symmetric=False, device=device)
    times = torch.rand(index.size(1), device=device, dtype=torch.float64)
    found = links.split(index, 0.1, 0.2, 0.2, times=times)
    known = {pair: time for pair, time in zip(pairs_of(index), times.tolist())}
    ages = torch.tensor([min(known[a, b], known.get((b, a), 2.0)) for a, b in pairs_of(index)], device=device)
    order = [ages[found.parts == part] for part in Part]
    assert all(earlier.max() <= later.min() for earlier, later in zip(order, order[1:]))


def test_parts_of_ones_own(device):
    index = torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]], device=device)
    found = links.split(index, parts=torch.tensor([3, 3, 0, 0], device=device))
    assert pairs_of(found.test) == [(0, 1)] and pairs_of(found.train_edges) == [(1, 2), (2, 1)]
    assert found.validation.size(1) == 0
    with pytest.raises(ValueError, match="the edge from 0 to 1 and its reverse|the edge from 1 to 0 and its reverse"):
        links.split(index, parts=torch.tensor([3, 0, 0, 0], device=device))


def test_graphs_with_two_kinds_of_ends(device):
    index = random_edges(15, 40, 200, device, repeated=False)
    graph = tessera.Graph(index, 15, 40)
    found = links.split(graph, seed=1)
    assert set(pairs_of(found.test_edges)).isdisjoint(pairs_of(found.test))
    by_rows = tessera.Graph.from_sparse(torch.sparse_coo_tensor(index.flip(0), torch.ones(index.size(1), device=device),
                                                                (15, 40)).to_sparse_csr())
    rows = links.split(by_rows, seed=1)
    assert set(pairs_of(rows.test)) == set(pairs_of(found.test))


def test_splits_that_mean_nothing():
    index = drawn_edges()
    for shares in [(0.5, 0.5, 0.0), (-0.1, 0.1, 0.0), (0.1, 0.1, 1.0), (float("nan"), 0.1, 0.0)]:
        with pytest.raises(ValueError, match="shares of"):
            links.split(index, *shares)
    with pytest.raises(ValueError, match="leaves none to train on"):
        links.split(torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(ValueError, match="leaves none to train on"):
        links.split(torch.empty(2, 0, dtype=torch.int64))
    with pytest.raises(ValueError, match="given several times"):
        links.split(torch.tensor([[0, 0, 1], [1, 1, 2]]))
    with pytest.raises(ValueError, match="3 numbers for"):
        links.split(index, times=torch.zeros(3))
    with pytest.raises(ValueError, match="not a number"):
        links.split(index, times=torch.full((index.size(1),), float("nan")))
    with pytest.raises(ValueError, match="give one of them"):
        links.split(index, times=torch.zeros(index.size(1)), parts=torch.zeros(index.size(1), dtype=torch.int64))
    with pytest.raises(ValueError, match="the part 4"):
        links.split(index, parts=torch.full((index.size(1),), 4))
    with pytest.raises(TypeError, match="whole number"):
        links.split(index, parts=torch.zeros(index.size(1)))
    with pytest.raises(IndexError, match="is outside"):
        links.split(tessera.Graph(index, 5, 5))


@pytest.mark.parametrize("kind", ["uniform", "by_source", "by_degree"])
def test_negatives_are_no_edges(device, kind):
    index = drawn_edges(vertices=40, edges=500, symmetric=False, device=device, dtype=torch.int32)
    found = links.negative_sampling(index, kind=kind, per_positive=3, seed=1)
    assert found.shape == (2, 3 * index.size(1)) and found.dtype == torch.int32 and found.device.type == device.type
    known = set(pairs_of(index))
    assert all(pair not in known and pair[0] != pair[1] for pair in pairs_of(found))
    assert 0 <= int(found.min()) and int(found.max()) < 40
    if kind != "uniform":
        assert torch.equal(found[0].view(-1, 3), index[0].view(-1, 1).expand(-1, 3))


def test_negatives_depend_on_seed_and_step_alone(device):
    index = drawn_edges(device=device)
    positives = index[:, :50]
    first = links.negative_sampling(index, positives, seed=1, step=4)
    assert torch.equal(first, links.negative_sampling(index.clone(), positives, seed=1, step=4))
    assert torch.equal(first.cpu(), links.negative_sampling(index.cpu(), positives.cpu(), seed=1, step=4))
    for other in [{"seed": 2, "step": 4}, {"seed": 1, "step": 5}]:
        assert not torch.equal(first, links.negative_sampling(index, positives, **other))


def test_steps_that_lie_where_pairs_are_drawn(device):
    """As in a captured CUDA graph, which reads the step at every replay."""
    index = drawn_edges(device=device)
    step = torch.full((1,), 4, device=device)
    for expected in (4, 5):
        assert torch.equal(links.negative_sampling(index, seed=1, step=step), links.negative_sampling(index, seed=1, step=expected))
        assert torch.equal(links.batch(index, 7, seed=1, step=step), links.batch(index, 7, seed=1, step=expected))
        step += 1
    for wrong in (step.int(), step.expand(2)):
        with pytest.raises(ValueError, match="use one torch.int64"):
            links.negative_sampling(index, step=wrong)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32])
def test_batches_are_all_pairs_in_an_order_of_each_epoch(device, dtype):
    pairs = drawn_edges(device=device, dtype=dtype)
    steps = pairs.size(1) // 13
    epochs = [torch.cat([links.batch(pairs, 13, seed=2, step=epoch * steps + step) for step in range(steps)], dim=1)
              for epoch in range(2)]
    for epoch in epochs:
        assert epoch.dtype == dtype and epoch.device.type == device.type
        assert len(set(pairs_of(epoch))) == 13 * steps and set(pairs_of(epoch)) <= set(pairs_of(pairs))
    assert not torch.equal(*epochs)
    assert torch.equal(links.batch(pairs.cpu(), 13, seed=2, step=3), links.batch(pairs, 13, seed=2, step=3).cpu())
    for size in (0, pairs.size(1) + 1):
        with pytest.raises(ValueError, match=f"batches of {size} of"):
            links.batch(pairs, size)


def test_pairs_made_here_are_not_looked_at_again(device, monkeypatch):
    """To look at them would wait for a GPU in every step."""
    index = drawn_edges(device=device)
    found, h = links.split(index, seed=1), torch.randn(60, 4, device=device)
    monkeypatch.setattr(tessera.errors, "outside", lambda *_: pytest.fail("looked at ends"))
    batch = links.batch(found.train, 20, step=1)
    of_others = links.batch(torch.stack([found.train[0], found.train[1]]), 20)
    for pairs in (found.train, batch, of_others, found.train[:, 3:9], links.negative_sampling(found.train_edges, batch)):
        links.dot(h, pairs)


def test_negatives_see_changed_edges(device):
    index = torch.tensor([[0, 1], [1, 2]], device=device)
    positives = torch.zeros(2, 200, dtype=torch.int64, device=device)
    assert set(links.negative_sampling(index, positives, "by_source")[1].tolist()) == {2}
    index[1, 0] = 2
    assert set(links.negative_sampling(index, positives, "by_source")[1].tolist()) == {1}


def test_negatives_of_the_last_pairs_left():
    full = torch.cartesian_prod(torch.arange(30), torch.arange(30)).t()
    missing = (full[0] == 7) & (full[1] == 21)
    found = links.negative_sampling(full[:, ~missing], torch.zeros(2, 5, dtype=torch.int64))
    assert pairs_of(found) == [(7, 21)] * 5
    with pytest.raises(ValueError, match="every pair of vertices is an edge"):
        links.negative_sampling(full)


def test_negatives_that_mean_nothing():
    index = torch.tensor([[0, 0, 1], [1, 2, 2]])
    with pytest.raises(ValueError, match="source 0 has an edge to every target"):
        links.negative_sampling(index, kind="by_source")
    with pytest.raises(ValueError, match="source 9 of a positive pair, of 3"):
        links.negative_sampling(index, torch.tensor([[9], [0]]))
    with pytest.raises(ValueError, match="0 negatives"):
        links.negative_sampling(index, per_positive=0)
    with pytest.raises(ValueError, match="unknown kind"):
        links.negative_sampling(index, kind="hard")
    with pytest.raises(ValueError, match="step is -1"):
        links.negative_sampling(index, step=-1)
    with pytest.raises(ValueError, match="given several times"):
        links.negative_sampling(torch.tensor([[0, 0], [1, 1]]))
    with pytest.raises(TypeError, match="positives has type torch.float32"):
        links.negative_sampling(index, torch.zeros(2, 3))
    with pytest.raises(ValueError, match=r"positives has shape \(3,\)"):
        links.negative_sampling(index, torch.zeros(3, dtype=torch.int64))
    assert links.negative_sampling(index, index[:, :0]).shape == (2, 0)


def test_opcheck():
    index = drawn_edges(vertices=20, edges=60, symmetric=False)
    graph = (20, 20, 0, 0)
    scores, matrix = torch.rand(5), torch.rand(5, 7)
    opcheck("link_parts", (index, None, None, *graph, 0.1, 0.1, 0.0, 1))
    opcheck("negative_pairs", (index, None, index, None, *graph, 0, 2, 1, 0))
    opcheck("pair_batch", (index, None, 5, 1, 2))
    opcheck("ranks", (scores, matrix))
    opcheck("ranks_of", (matrix, torch.zeros(5, dtype=torch.int64), index[:, :0]))
    opcheck("list_quality", (torch.zeros(5, 2, dtype=torch.int64), index[:, :0], 3))
    # Those whose result is no tensor depend on the numbers they are given: code is not compiled across them.
    parts = torch.zeros(index.size(1), 1, dtype=torch.int64)
    checks = ("test_schema",)
    opcheck("check_link_parts", (index, None, parts, *graph), checks)
    opcheck("roc_auc", (scores, matrix[0]), checks)
    opcheck("average_precision", (scores, matrix[0]), checks)
    opcheck("hits_at", (scores, matrix[0], 3), checks)
