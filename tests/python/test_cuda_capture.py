# SPDX-License-Identifier: Apache-2.0
"""Captured loops on a GPU. Skipped where there is none; test_capture.py has what needs none."""

import pytest
import torch
import torch.nn.functional as F
from conftest import random_edges

import tessera

pytestmark = pytest.mark.skipif(not (torch.cuda.is_available() and tessera.has_cuda()),
                                reason="needs a GPU and the operators for CUDA")
KINDS = ["GCN", "GraphSAGE", "GIN", "GAT", "GATv2"]


def train_step(model, optimiser, x, edge_index, y):
    model.train()
    optimiser.zero_grad()
    loss = F.cross_entropy(model(x, edge_index), y)
    loss.backward()
    optimiser.step()
    return loss


def setting(kind="GCN", dropout=0.0, **options):
    import torch_geometric.nn as pyg

    torch.manual_seed(4)
    inputs = torch.randn(300, 16, device="cuda"), random_edges(300, 300, 3600, "cuda"), torch.randint(0, 5, (300,), device="cuda")
    more = {"v2": True} if kind == "GATv2" else {}
    model = getattr(pyg, kind.removesuffix("v2"))(16, 32, num_layers=2, out_channels=5, dropout=dropout, **more).cuda()
    options = {key: one() if callable(one) else one for key, one in options.items()}
    return tessera.accelerate(model), torch.optim.Adam(model.parameters(), **{"lr": 0.01, "capturable": True, **options}), inputs


def trained(captured, steps=30, function=train_step, kind="GCN", dropout=0.0, each=lambda optimiser: None, **options):
    """The losses, and the weights at the end."""
    model, optimiser, inputs = setting(kind, dropout, **options)
    torch.cuda.manual_seed(11)
    step = tessera.capture(function, model, optimiser, inputs) if captured else lambda *given: function(model, optimiser, *given)
    after = each(optimiser)
    losses = []
    for _ in range(steps):
        losses.append(step(*inputs).detach().clone())
        if after is not None:
            after()
    if captured:
        assert step.is_captured
    return torch.stack(losses), [parameter.detach() for parameter in model.parameters()]


def same_bits(**options):
    (losses, weights), (eager, expected) = (trained(captured, **options) for captured in (True, False))
    assert torch.equal(losses, eager)
    assert all(map(torch.equal, weights, expected))
    return losses


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", KINDS)
def test_the_bits_of_the_eager_loop(kind, dropout):
    """With dropout, too: random numbers go on from replay to replay as they do from step to step."""
    losses = same_bits(kind=kind, dropout=dropout)
    assert losses.unique().numel() == 30


def test_learning_rates_that_schedulers_change():
    same_bits(lr=lambda: torch.tensor(0.01, device="cuda"), each=lambda optimiser: torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9).step)
    with pytest.raises(ValueError, match="lr of the optimiser went from 0.0072.* to 0.0065"):
        trained(True, each=lambda optimiser: torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.9).step)


@pytest.mark.parametrize("kind", ["GCN", "GAT"])
def test_under_autocast(kind):
    def step(model, optimiser, x, edge_index, y):
        optimiser.zero_grad()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            loss = F.cross_entropy(model(x, edge_index), y)
        loss.backward()
        optimiser.step()
        return loss

    same_bits(kind=kind, function=step)


@pytest.mark.parametrize("fused", [False, True])
def test_scalers(fused):
    def scaled():
        scaler = torch.amp.GradScaler("cuda")

        def step(model, optimiser, x, edge_index, y):
            optimiser.zero_grad()
            with torch.autocast("cuda", dtype=torch.float16):
                loss = F.cross_entropy(model(x, edge_index), y)
            scaler.scale(loss).backward()
            scaler.step(optimiser)
            scaler.update()
            return loss

        return step

    if not fused:
        with pytest.raises(tessera.CannotBeCaptured, match="GradScaler asks whether gradients are finite"):
            trained(True, function=scaled())
        return
    (losses, weights), (eager, expected) = (trained(captured, function=scaled(), fused=True) for captured in (True, False))
    assert torch.equal(losses, eager) and all(map(torch.equal, weights, expected))


def test_inputs_that_change():
    _, _, (_, edge_index, y) = setting()
    batches = [torch.randn(300, 16, device="cuda") for _ in range(12)]
    found = []
    for captured in (True, False):
        model, optimiser, inputs = setting()
        step = tessera.capture(train_step, model, optimiser, (batches[0], edge_index, y)) if captured else (
            lambda *given: train_step(model, optimiser, *given))
        found.append(torch.stack([step(x, edge_index, y).detach().clone() for x in batches]))
    assert torch.equal(*found)


def test_graphs_that_change():
    model, optimiser, (x, edge_index, y) = setting()
    step = tessera.capture(train_step, model, optimiser, (x, edge_index, y))
    for _ in range(5):
        step(x, edge_index, y)
    with pytest.raises(ValueError, match="edge_index is not the tensor of the example: kernels are planned for its graph"):
        step(x, edge_index.clone(), y)
    edge_index[0, 0] = (edge_index[0, 0] + 1) % 300
    with pytest.raises(ValueError, match="edge_index was changed in place after the step was captured"):
        step()


def waits_by(what):
    def step(model, optimiser, x, edge_index, y):
        mask = y > 2
        loss = F.cross_entropy(model(x, edge_index)[mask], y[mask]) if what == "mask" else F.cross_entropy(model(x, edge_index), y)
        if what == "item":
            loss.item()
        elif what == "synchronize":
            torch.cuda.synchronize()
        elif what == "to the host":
            loss.cpu()
        return loss

    return step


@pytest.mark.parametrize("what, line", [("mask", "[mask]"), ("item", "loss.item()"), ("synchronize", "torch.cuda.synchronize()"),
                                        ("to the host", "loss.cpu()")])
def test_a_step_that_waits_says_where(what, line):
    model, optimiser, inputs = setting()
    step = tessera.capture(waits_by(what), model, optimiser, inputs)
    with pytest.raises(tessera.CannotBeCaptured) as error:
        for _ in range(5):
            step()
    assert "test_cuda_capture.py:" in str(error.value) and line in str(error.value)
    assert torch.cuda.get_sync_debug_mode() == 0
    trained(True, steps=6)  # the next one can be captured


def test_an_optimiser_that_counts_on_the_host():
    model, optimiser, inputs = setting(capturable=False)
    with pytest.raises(tessera.CannotBeCaptured, match=r"use torch.optim.Adam\(..., capturable=True\)"):
        tessera.capture(train_step, model, optimiser, inputs)
    optimiser = torch.optim.Adagrad(model.parameters())
    step = tessera.capture(train_step, model, optimiser, inputs)
    with pytest.raises(tessera.CannotBeCaptured, match="step of Adagrad is counted on the host"):
        for _ in range(3):
            step()


def test_inputs_on_the_host():
    model, optimiser, (x, edge_index, y) = setting()
    with pytest.raises(tessera.CannotBeCaptured, match="y lies on cpu, the model on cuda:0: move it once"):
        tessera.capture(train_step, model, optimiser, (x, edge_index, y.cpu()))


class Reading(torch.nn.Module):
    def __init__(self, layers):
        super().__init__()
        self.layers = layers

    def forward(self, x, edge_index):
        out = self.layers(x, edge_index)
        return out if out.sum().item() < 1e9 else out / 2


def test_fit_replays_where_it_can():
    from test_fit import data, model

    found = []
    for wrapped in (False, True):
        net = model().cuda()
        report = tessera.fit(Reading(net) if wrapped else net, data(), epochs=40)
        found.append((report, list(net.parameters())))
    (replayed, weights), (eager, expected) = found
    assert replayed.captured and replayed.why_not is None
    assert not eager.captured and "out.sum().item()" in eager.why_not
    assert replayed.losses == eager.losses and replayed.best_epoch == eager.best_epoch
    assert all(map(torch.equal, weights, expected))


def test_fit_stops():
    from test_fit import data, model

    report = tessera.fit(model().cuda(), data(), epochs=200, patience=5)
    assert report.captured and report.epochs - report.best_epoch == 5 and len(report.losses) == report.epochs
