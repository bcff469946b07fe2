# SPDX-License-Identifier: Apache-2.0
"""One graph on several ranks is the graph in one process: losses, gradients, checkpoints, and what travels."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
import torch_geometric.nn as pyg
from conftest import random_edges
from ranks import run_ranks
from torch_geometric.data import Data

import tessera

WIDTHS = {"in_channels": 12, "hidden_channels": 8, "num_layers": 3, "out_channels": 4}


def some_data(dtype=torch.float64, vertices=240, edges=1500):
    """With hubs, repeated edges, loops and vertices without edges."""
    draw = torch.Generator().manual_seed(11)
    index = random_edges(vertices, vertices, edges, seed=12)
    near = index[0] % 8 != 0  # most edges stay near, so that parts have inner rows
    index[1] = torch.where(near, (index[0] + index[1] % 7 - 3) % vertices, index[1])
    data = Data(x=torch.randn(vertices, 12, generator=draw, dtype=dtype), edge_index=index, num_nodes=vertices,
                y=torch.randint(4, (vertices,), generator=draw))
    data.train_mask = torch.rand(vertices, generator=draw) < 0.4
    data.edge_weight = torch.rand(edges, generator=draw, dtype=dtype)
    return data


def a_model(kind, dtype=torch.float64, **options):
    torch.manual_seed(3)
    return {"gcn": pyg.GCN, "sage": pyg.GraphSAGE, "gat": pyg.GAT}[kind](**{**WIDTHS, **options}).to(dtype)


def trained(model, inputs, loss_of, steps, optimiser=None):
    optimiser = optimiser or torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(steps):
        optimiser.zero_grad()
        loss = loss_of(model(*inputs))
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    return losses


def in_one_process(data, kind, steps, **options):
    model = a_model(kind, data.x.dtype, **options)
    return trained(model, (data.x, data.edge_index),
                   lambda out: F.cross_entropy(out[data.train_mask], data.y[data.train_mask]), steps)


def loss_on(part):
    return lambda out: part.mean(F.cross_entropy(out, part.y, reduction="none"), part.train_mask)


def losses_of_ranks(data, kinds, steps):
    tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data)
    found = {}
    for kind in kinds:
        model = tessera.distributed.whole_graph(a_model(kind, data.x.dtype))
        found[kind] = trained(model, (part.x, part.edge_index), loss_on(part), steps)
    return found


@pytest.mark.parametrize("ranks", [1, 2, 4])
def test_losses_are_those_of_one_process(ranks):
    data = some_data()
    outcomes = run_ranks(ranks, losses_of_ranks, data, ["gcn", "sage", "gat"], 50)
    for kind in outcomes[0]:
        expected = in_one_process(data, kind, 50)
        assert expected[-1] < 0.9 * expected[0]
        for found in outcomes:
            assert np.abs(np.array(found[kind]) - expected).max() <= 1e-8, kind


def test_single_precision_changes_as_by_another_order_of_edges():
    data = some_data(torch.float32)
    (found, _) = run_ranks(2, losses_of_ranks, data, ["gcn", "sage", "gat"], 50)
    other = data.clone()
    other.edge_index = data.edge_index[:, torch.randperm(data.num_edges)]
    for kind, losses in found.items():
        expected = np.array(in_one_process(data, kind, 50))
        change = np.abs(in_one_process(other, kind, 50) - expected).max()
        assert 0 < np.abs(losses - expected).max() <= 10 * max(change, 1e-6), kind


# ---- options of layers, and gradients ----

LAYERS = {
    "gcn with weights": (lambda: pyg.GCNConv(12, 8), True),
    "gcn, loops of 2": (lambda: pyg.GCNConv(12, 8, improved=True, bias=False), True),
    "gcn without loops": (lambda: pyg.GCNConv(12, 8, add_self_loops=False), True),
    "gcn without norm": (lambda: pyg.GCNConv(12, 8, normalize=False), True),
    "gcn without weights": (lambda: pyg.GCNConv(12, 8, improved=True), False),
    "sage, wide": (lambda: pyg.SAGEConv(12, 20), False),
    "sage, max": (lambda: pyg.SAGEConv(12, 5, aggr="max", project=True), False),
    "sage, sum": (lambda: pyg.SAGEConv(12, 5, aggr="sum", root_weight=False, normalize=True), False),
    "gat": (lambda: pyg.GATConv(12, 5, heads=3), False),
    "gat, mean of heads": (lambda: pyg.GATConv(12, 5, heads=2, concat=False, residual=True), False),
    "gat without loops": (lambda: pyg.GATConv(12, 5, add_self_loops=False), False),
}


def a_layer(name):
    torch.manual_seed(5)
    return LAYERS[name][0]().double()


def result_and_gradients(layer, x, edges, weight):
    x = x.clone().requires_grad_()
    weight = None if weight is None else weight.clone().requires_grad_()
    out = layer(x, edges) if weight is None else layer(x, edges, weight)
    return x, weight, out


def layers_of_ranks(data):
    tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data)
    found = {}
    for name, (_, weighted) in LAYERS.items():
        layer = tessera.distributed.whole_graph(a_layer(name))
        weight = part.edge_weight if weighted else None
        x, weight, out = result_and_gradients(layer, part.x, part.edge_index, weight)
        part.mean((out * torch.cos(out)).sum(1)).backward()
        rows = part.collect(torch.cat([out, x.grad], 1))
        of_weights = None if weight is None else weight.grad.square().sum().item()
        found[name] = rows, [parameter.grad for parameter in layer.parameters()], of_weights
    return found


def test_options_of_layers():
    data = some_data()
    outcomes = run_ranks(3, layers_of_ranks, data)
    for name, (_, weighted) in LAYERS.items():
        layer = a_layer(name)
        x, weight, out = result_and_gradients(layer, data.x, data.edge_index, data.edge_weight if weighted else None)
        (out * torch.cos(out)).sum(1).mean().backward()
        torch.testing.assert_close(outcomes[0][name][0], torch.cat([out, x.grad], 1).detach(), rtol=1e-10, atol=1e-12, msg=name)
        for outcome in outcomes:
            for actual, parameter in zip(outcome[name][1], layer.parameters()):
                torch.testing.assert_close(actual, parameter.grad, rtol=1e-10, atol=1e-12)
        if weighted:
            total = sum(outcome[name][2] for outcome in outcomes)
            assert total == pytest.approx(weight.grad.square().sum().item(), rel=1e-10)


# ---- parts ----


def odd_parts(data, parts):
    tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data, parts)
    model = tessera.distributed.whole_graph(a_model("gcn"))
    loss = loss_on(part)(model(part.x, part.edge_index))
    loss.backward()
    collected = part.collect(part.x)
    assert collected is None or torch.equal(collected, data.x)
    return loss.item(), part.edge_index.num_inner, part.edge_index.num_boundary, part.n_id.numel()


@pytest.mark.parametrize("edges", [0, 1, 40])
def test_odd_graphs(edges):
    data = some_data(vertices=17, edges=edges)
    data.train_mask[:] = False
    data.train_mask[3] = True  # all ranks but one train nothing
    parts = torch.tensor([0] + [1] * 14 + [2] * 2)
    outcomes = run_ranks(3, odd_parts, data, parts)
    expected, = in_one_process(data, "gcn", 1)
    for loss, inner, boundary, rows in outcomes:
        assert loss == pytest.approx(expected, abs=1e-12)
        assert edges > 0 or (inner == rows and boundary == 0)
    assert sum(outcome[3] for outcome in outcomes) == 17


def from_a_file(data, path):
    run = tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data if run.rank == 0 else None, path)  # the others get their parts
    return part.n_id.tolist(), part.x


def test_parts_of_a_file_and_data_of_rank_0(tmp_path):
    data = some_data()
    parts = np.arange(240) // 7 % 2
    np.savetxt(tmp_path / "parts.txt", parts, fmt="%d")
    for rank, (ids, x) in enumerate(run_ranks(2, from_a_file, data, tmp_path / "parts.txt")):
        assert sorted(ids) == np.flatnonzero(parts == rank).tolist()
        assert torch.equal(x, data.x[ids])


def test_parts_that_do_not_fit(tmp_path):
    np.savetxt(tmp_path / "parts.txt", np.arange(240) % 3, fmt="%d")
    for error in run_ranks(2, from_a_file, some_data(), tmp_path / "parts.txt"):
        assert error.kind == "ValueError" and "there are 2 ranks" in error.text and "--parts 2" in error.text


# ---- checkpoints ----


def go_on(data, path, steps):
    run = tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data)
    model = tessera.distributed.whole_graph(a_model("gat"))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    if path.exists():
        kept = torch.load(path)
        model.load_state_dict(kept["model"])
        optimiser.load_state_dict(kept["optimiser"])
    losses = trained(model, (part.x, part.edge_index), loss_on(part), steps, optimiser)
    if run.rank == 0:
        torch.save({"model": model.state_dict(), "optimiser": optimiser.state_dict()}, path)
    return losses


def test_checkpoints_are_those_of_one_process(tmp_path):
    data, path = some_data(), tmp_path / "checkpoint.pt"
    losses = [loss for ranks in (4, 2, 1) for loss in run_ranks(ranks, go_on, data, path, 8)[0]]
    assert np.abs(np.array(losses) - in_one_process(data, "gat", 24)).max() <= 1e-8
    a_model("gat").load_state_dict(torch.load(path)["model"])


# ---- what travels ----


def bytes_of_ranks(data, parts):
    run = tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data, parts)
    model = tessera.distributed.whole_graph(a_model("gcn"))
    trained(model, (part.x, part.edge_index), loss_on(part), 1)  # degrees travel once
    before = run.sent
    trained(model, (part.x, part.edge_index), loss_on(part), 3)
    return (run.sent - before) / 3


def test_bytes_are_those_that_the_partition_says():
    data = some_data()
    parts = torch.arange(240) // 60
    outcomes = run_ranks(4, bytes_of_ranks, data, parts)
    pairs = {(parts[target].item(), source) for source, target in data.edge_index.T.tolist() if parts[source] != parts[target]}
    widths = [8, 8, 4]  # of what the layers multiply before they sum
    assert sum(outcomes) == pytest.approx(len(pairs) * sum(widths) * 8 * 2, rel=0.05)


# ---- what is refused ----


def refused(module):
    tessera.distributed.start(time_limit=120)
    tessera.distributed.whole_graph(module)


@pytest.mark.parametrize("module, text", [
    (pyg.GraphSAGE(4, 8, 2, norm="batch_norm"), "BatchNorm counts the rows of one rank alone"),
    (pyg.GIN(4, 8, 2), "GINConv, a layer without a form"),
    (torch.nn.Sequential(torch.nn.BatchNorm1d(4)), "0 (BatchNorm1d"),
])
def test_models_that_are_refused(module, text):
    (error,) = run_ranks(1, refused, module)
    assert error.kind == "NotImplementedError" and text in error.text


# ---- sampled batches ----


def batches_of_ranks(data, fan_outs, epochs):
    """Trains by DDP; where each batch began, its loss, and the batches."""
    tessera.distributed.start(time_limit=120)
    part = tessera.distributed.partition(data, torch.arange(data.num_nodes) % torch.distributed.get_world_size())
    torch.manual_seed(3)
    model = torch.nn.parallel.DistributedDataParallel(a_model("sage"))
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    loader = tessera.distributed.NeighborLoader(
        part, fan_outs, input_nodes=part.train_mask, batch_size=16, shuffle=True, seed=7)
    steps = []
    for _ in range(epochs):
        for batch in loader:
            optimiser.zero_grad()
            out = model(batch.x, batch.edge_index)[:batch.batch_size]
            loss = F.cross_entropy(out, batch.y[:batch.batch_size])
            loss.backward()
            optimiser.step()
            steps.append((loss.item(), batch))
        assert len(steps) % len(loader) == 0
    return steps


@pytest.mark.parametrize("ranks", [1, 3])
def test_batches_of_all_neighbours_train_as_one_process(ranks):
    data = some_data()
    outcomes = run_ranks(ranks, batches_of_ranks, data, [-1, -1, -1], 2)
    assert len({len(steps) for steps in outcomes}) == 1
    model = a_model("sage")
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    seen = []
    for of_ranks in zip(*outcomes):
        optimiser.zero_grad()
        losses = []
        for found, batch in of_ranks:
            seeds = batch.n_id[:batch.batch_size]
            seen.extend(seeds.tolist())
            losses.append(F.cross_entropy(model(data.x, data.edge_index)[seeds], data.y[seeds]))
            assert losses[-1].item() == pytest.approx(found, abs=1e-8)
        torch.stack(losses).mean().backward()
        optimiser.step()
    wanted = set(data.train_mask.nonzero().view(-1).tolist())
    assert set(seen) == wanted and len(seen) <= 2 * (len(wanted) + ranks - 1)


def test_what_batches_hold():
    data = some_data()
    outcomes = run_ranks(2, batches_of_ranks, data, [4, 2], 1)
    again = run_ranks(2, batches_of_ranks, data, [4, 2], 1)
    edges = {}
    for source, target in data.edge_index.T.tolist():
        edges[source, target] = edges.get((source, target), 0) + 1
    degree = torch.bincount(data.edge_index[1], minlength=240)
    for steps, same in zip(outcomes, again):
        for (_, batch), (_, other) in zip(steps, same):
            assert torch.equal(batch.n_id, other.n_id) and torch.equal(batch.edge_index, other.edge_index)
            ids = batch.n_id
            assert ids.unique().numel() == ids.numel() == sum(batch.num_sampled_nodes)
            assert torch.equal(batch.x, data.x[ids]) and torch.equal(batch.y, data.y[ids])
            assert torch.equal(batch.train_mask, data.train_mask[ids])
            drawn = {}
            for source, target in ids[batch.edge_index].T.tolist():
                drawn[source, target] = drawn.get((source, target), 0) + 1
            assert all(count <= edges[edge] for edge, count in drawn.items())
            found = torch.bincount(ids[batch.edge_index[1]], minlength=240)
            hops = torch.tensor(batch.num_sampled_nodes).cumsum(0).tolist()
            for begin, end, fan_out in ((0, hops[0], 4), (hops[0], hops[1], 2)):
                assert torch.equal(found[ids[begin:end]], degree[ids[begin:end]].clamp(max=fan_out))
            assert sum(batch.num_sampled_edges) == batch.edge_index.size(1)
