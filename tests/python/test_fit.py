# SPDX-License-Identifier: Apache-2.0
"""Training without a loop: what it learns, keeps, reports and refuses."""

import pytest
import torch
import torch.nn.functional as F
from conftest import random_edges
from torch_geometric.data import Data
from torch_geometric.nn import GAT, GCN

import tessera


def data(vertices=60, classes=3, splits=None):
    draw = torch.Generator().manual_seed(5)
    y = torch.randint(0, classes, (vertices,), generator=draw)
    x = F.one_hot(y, classes).float() + 0.7 * torch.randn(vertices, classes, generator=draw)
    shape = (vertices,) if splits is None else (vertices, splits)
    part = torch.randint(0, 3, shape, generator=draw)
    masks = {f"{name}_mask": part == number for number, name in enumerate(("train", "val", "test"))}
    edges = random_edges(vertices, vertices, 1200)
    edges = edges[:, (y[edges[0]] == y[edges[1]]) & (edges[0] != edges[1])][:, :200]  # no loops: sparse matrices set theirs to 1
    return Data(x=x, edge_index=edges, y=y, **masks)


def model(dropout=0.0, kind=GCN, norm=None):
    torch.manual_seed(8)
    return kind(3, 8, num_layers=2, out_channels=3, dropout=dropout, norm=norm)


def accuracy(model, data, mask):
    return float((model(data.x, data.edge_index).argmax(1) == data.y)[mask].float().mean())


def loop(model, data, epochs):
    """What fit does, in a user's words. The best weights are those of the first best epoch."""
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    losses, found = [], []
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(model(data.x, data.edge_index)[data.train_mask], data.y[data.train_mask])
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
        model.eval()
        found.append(accuracy(model, data, data.val_mask))
    return losses, found


@pytest.mark.parametrize("patience", [None, 3, 10])
@pytest.mark.parametrize("norm", [None, "BatchNorm"])
def test_it_is_the_loop_that_users_write(patience, norm):
    given, ours, theirs = data(), model(norm=norm), tessera.accelerate(model(norm=norm))
    report = tessera.fit(ours, given, epochs=40, patience=patience)
    losses, found = loop(theirs, given, 40)
    best, stopped = 0, 40
    for epoch in range(40):
        if found[epoch] > found[best]:
            best = epoch
        if patience is not None and epoch - best >= patience:
            stopped = epoch + 1
            break
    assert (report.epochs, report.best_epoch) == (stopped, best + 1)
    assert report.losses == pytest.approx(losses[:stopped], rel=1e-5)
    assert report.accuracies["val"] == pytest.approx(found[best])
    assert not ours.training
    for part, expected in report.accuracies.items():
        assert accuracy(ours, given, given[f"{part}_mask"]) == pytest.approx(expected)
    again = tessera.accelerate(model(norm=norm))
    loop(again, given, best + 1)
    assert all(torch.allclose(mine.float(), wanted.float(), atol=1e-5) for mine, wanted in zip(ours.state_dict().values(), again.state_dict().values()))


def test_it_learns_and_says_so():
    given, net = data(), model(dropout=0.2, kind=GAT)
    report = tessera.fit(net, given)
    assert report.accuracies["train"] > 0.6 and set(report.accuracies) == {"train", "val", "test"}
    assert len(report.losses) == report.epochs == 200 and report.losses[-1] < report.losses[0]
    assert str(report).startswith(f"200 epochs, weights of epoch {report.best_epoch}: train ")
    assert not report.captured and report.why_not == "there is nothing to capture on cpu"


def test_splits_weights_of_edges_and_sparse_matrices():
    given = data(splits=4)
    assert tessera.fit(model(), given, epochs=5, split=2).epochs == 5
    given = data()
    given.edge_weight = torch.rand(200)
    weighed, plain = (tessera.fit(model(), one, epochs=5).losses for one in (given, data()))
    assert weighed != plain
    given.adj_t = torch.sparse_coo_tensor(given.edge_index.flip(0), given.edge_weight, (60, 60)).coalesce().to_sparse_csr()
    del given.edge_weight
    assert tessera.fit(model(), given, epochs=5).losses == pytest.approx(weighed, rel=1e-4)


def test_without_validation_the_last_weights_stay():
    given = data()
    del given.val_mask, given.test_mask
    report = tessera.fit(model(), given, epochs=7)
    assert report.best_epoch == report.epochs == 7 and set(report.accuracies) == {"train"}


def changed(**values):
    given = data()
    for name, value in values.items():
        given[name] = value
    return given


WRONG = [(lambda: tessera.fit(model(), Data(x=torch.ones(3, 3))), "the Data has no y: fit trains on data.x, data.y"),
         (lambda: tessera.fit(model(), changed(train_mask=None)), "the Data has no train_mask: name the vertices to train on"),
         (lambda: tessera.fit(model(), changed(edge_index=None)), "the Data has neither edge_index nor adj_t"),
         (lambda: tessera.fit(model(), changed(y=torch.ones(60, 3))), r"data.y has type torch.float32 and shape \(60, 3\)"),
         (lambda: tessera.fit(model(), changed(val_mask=torch.ones(59) > 0)), r"data.val_mask has type torch.bool and shape \(59,\)"),
         (lambda: tessera.fit(model(), changed(val_mask=torch.ones(60) < 0)), "data.val_mask names no vertices"),
         (lambda: tessera.fit(model(), data(splits=4)), "data.train_mask holds 4 splits: give split=0 to 3"),
         (lambda: tessera.fit(model(), changed(val_mask=None), patience=3), "patience=3 needs data.val_mask"),
         (lambda: tessera.fit(model(), data(), epochs=0), "epochs is 0: use 1 or more")]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    call, text = WRONG[number]
    with pytest.raises(ValueError, match=text):
        call()
