# SPDX-License-Identifier: Apache-2.0
"""Steps of training as one replay: what is checked before and between replays. A stand-in records where there is no GPU: it
runs the step again for each replay, and what would wait for a GPU is an error while it watches."""

import contextlib
import random

import numpy
import pytest
import torch
import torch.nn.functional as F
from conftest import random_edges
from torch_geometric.data import Data, HeteroData
from torch_geometric.nn import GCN

import tessera
import waits
from tessera import captured_step, errors

class StandIn:
    """Records by running: what is recorded counts as the first replay."""

    def __init__(self):
        self.recordings = self.replays = 0

    def run(self, step):
        return step()

    @contextlib.contextmanager
    def watching(self):
        with waits.Waits():
            yield

    def record(self, step):
        self.recordings, self.step, self.is_new = self.recordings + 1, step, True
        self.result = step()
        return self.result

    def replay(self):
        self.replays += 1
        if not self.is_new:
            with torch.no_grad():
                found = torch.enable_grad()(self.step)()
                if found is not None:
                    self.result.detach().copy_(found.detach())
        self.is_new = False


@pytest.fixture
def recorder(monkeypatch):
    stand_in = StandIn()
    monkeypatch.setattr(captured_step, "recorder_for", lambda device: stand_in)
    monkeypatch.setattr(errors, "_LIBRARIES", (*errors._LIBRARIES, waits.__file__))
    return stand_in


def train_step(model, optimiser, x, edge_index, y):
    optimiser.zero_grad()
    loss = F.cross_entropy(model(x, edge_index), y)
    loss.backward()
    optimiser.step()
    return loss


def setting(dropout=0.0, optimiser=torch.optim.SGD, **options):
    torch.manual_seed(3)
    model = tessera.accelerate(GCN(6, 8, num_layers=2, out_channels=3, dropout=dropout))
    inputs = torch.randn(20, 6), random_edges(20, 20, 90), torch.randint(0, 3, (20,))
    return model, optimiser(model.parameters(), lr=0.1, **options), inputs


def losses_of(step, calls, *inputs):
    return [step(*inputs).item() for _ in range(calls)]


def test_without_a_gpu_the_step_runs_as_it_is():
    model, optimiser, inputs = setting(dropout=0.5)
    step = tessera.capture(train_step, model, optimiser, inputs)
    found = losses_of(step, 6)
    model, optimiser, inputs = setting(dropout=0.5)
    assert found == [train_step(model, optimiser, *inputs).item() for _ in range(6)]
    assert not step.is_captured and repr(step) == "CapturedStep(train_step, cpu, eager)"
    with pytest.raises(ValueError, match=r"x is torch.float32 \(19, 6\) on cpu, in the example torch.float32 \(20, 6\)"):
        step(inputs[0][:19], *inputs[1:])


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_calls_are_those_of_the_eager_loop(recorder, momentum):
    model, optimiser, inputs = setting(momentum=momentum)
    step = tessera.capture(train_step, model, optimiser, inputs)
    untouched = setting()[0].state_dict()
    assert all(torch.equal(untouched[name], now) for name, now in model.state_dict().items())
    found = losses_of(step, 8, *inputs)
    assert step.is_captured and (recorder.recordings, recorder.replays) == (1, 5)
    other, optimiser, inputs = setting(momentum=momentum)
    assert found == [train_step(other, optimiser, *inputs).item() for _ in range(8)]
    assert all(torch.equal(mine, theirs) for mine, theirs in zip(model.parameters(), other.parameters()))


def test_results_outlive_replays(recorder):
    model, optimiser, inputs = setting()
    step = tessera.capture(train_step, model, optimiser, inputs)
    losses = [step() for _ in range(6)]
    assert len({loss.item() for loss in losses}) == 6 and not any(loss.requires_grad for loss in losses)


def test_inputs_that_change_are_copied(recorder):
    model, optimiser, (x, edges, y) = setting()
    step = tessera.capture(train_step, model, optimiser, (x, edges, y))
    batches = [(torch.randn(20, 6), edges, torch.randint(0, 3, (20,))) for _ in range(9)]
    kept = [tensor.clone() for batch in batches for tensor in batch]
    found = [step(*batch).item() for batch in batches]
    assert recorder.recordings == 1
    found.append(step().item())  # the example itself
    other, optimiser, _ = setting()
    assert found == [train_step(other, optimiser, *batch).item() for batch in [*batches, (x, edges, y)]]
    assert all(map(torch.equal, kept, [tensor for batch in batches for tensor in batch]))


def test_an_input_that_changes_late_is_recorded_anew(recorder):
    model, optimiser, (x, edges, y) = setting()
    step = tessera.capture(train_step, model, optimiser, (x, edges, y))
    found = losses_of(step, 5) + [step(2 * x, edges, y).item(), step(x, edges, y).item()]
    assert recorder.recordings == 2
    other, optimiser, _ = setting()
    assert found == [train_step(other, optimiser, features, edges, y).item() for features in [x] * 5 + [2 * x, x]]


def test_inputs_that_change_in_place_are_read_where_they_lie(recorder):
    model, optimiser, (x, edges, y) = setting()
    step = tessera.capture(train_step, model, optimiser, (x, edges, y))
    losses_of(step, 4)
    other, optimiser, _ = setting()
    for _ in range(4):
        train_step(other, optimiser, x, edges, y)
    x.mul_(2)
    assert step().item() == train_step(other, optimiser, x, edges, y).item()
    assert recorder.recordings == 1


@pytest.mark.parametrize("kind", ["edge_index", "graph", "csr", "coo", "data"])
def test_graphs_in_every_form(recorder, kind):
    model, optimiser, (x, edges, y) = setting()
    graph = {"edge_index": lambda: edges, "graph": lambda: tessera.Graph(edges, 20, 20), "data": lambda: Data(edge_index=edges),
             "csr": lambda: torch.sparse_coo_tensor(edges.flip(0), torch.ones(90), (20, 20)).coalesce().to_sparse_csr(),
             "coo": lambda: torch.sparse_coo_tensor(edges.flip(0), torch.ones(90), (20, 20)).coalesce()}[kind]

    def on(model, optimiser, x, graph, y):
        return train_step(model, optimiser, x, graph.edge_index if kind == "data" else graph, y)

    given = graph()
    step = tessera.capture(on, model, optimiser, (x, given, y))
    losses_of(step, 5, x, given, y)
    if kind in ("edge_index", "data", "graph"):
        losses_of(step, 1, x, graph(), y)  # another holder of the same memory
    edges = random_edges(20, 20, 90, seed=9)
    with pytest.raises(ValueError, match="graph.* is not the tensor of the example: .* capture a step for each graph"
                       if kind in ("edge_index", "data", "graph") else "graph .its indices. is"):
        step(x, graph(), y)


def test_a_graph_that_changed_in_place(recorder):
    model, optimiser, (x, edges, y) = setting()
    step = tessera.capture(train_step, model, optimiser, (x, edges, y))
    losses_of(step, 5)
    edges[0, 0] = (edges[0, 0] + 1) % 20
    for inputs in ((), (x, edges, y)):
        with pytest.raises(ValueError, match="edge_index was changed in place after the step was captured"):
            step(*inputs)


def test_data_of_pyg(recorder):
    def on_data(model, optimiser, data):
        return train_step(model, optimiser, data.x, data.edge_index, data.y)

    model, optimiser, (x, edges, y) = setting()
    step = tessera.capture(on_data, model, optimiser, Data(x=x, edge_index=edges, y=y))
    batches = [Data(x=torch.randn(20, 6), edge_index=edges, y=y) for _ in range(7)]
    found = [step(batch).item() for batch in batches]
    other, optimiser, _ = setting()
    assert found == [on_data(other, optimiser, batch).item() for batch in batches]
    with pytest.raises(ValueError, match="data.x is torch.float32 .5, 6. on cpu"):
        step(Data(x=x[:5], edge_index=edges, y=y))
    with pytest.raises(TypeError, match="the step was given data.x, data.edge_index, its example has data.x"):
        step(Data(x=x, edge_index=edges))


def test_data_of_several_types(recorder):
    def on_data(model, optimiser, data):
        return train_step(model, optimiser, data["a"].x, data["a", "to", "a"].edge_index, data["a"].y)

    model, optimiser, (x, edges, y) = setting()
    data = HeteroData()
    data["a"].x, data["a"].y, data["a", "to", "a"].edge_index = x, y, edges
    step = tessera.capture(on_data, model, optimiser, data)
    found = losses_of(step, 5)
    other, optimiser, _ = setting()
    assert found == [on_data(other, optimiser, data).item() for _ in range(5)]
    data["a"].x = x[:5]
    with pytest.raises(ValueError, match=r"data\['a'\].x is torch.float32 .5, 6."):
        step(data)


def waits_for(what):
    def step(model, optimiser, x, edges, y, mask):
        out = model(x, edges)
        loss = F.cross_entropy(out[mask], y[mask]) if what == "mask" else F.cross_entropy(out, y)
        if what == "item":
            loss.item()
        if what == "branch" and loss > 100:
            return loss
        loss.backward()
        optimiser.step()
        optimiser.zero_grad()
        return loss

    return step


@pytest.mark.parametrize("what, line", [("item", "loss.item()"), ("branch", 'if what == "branch" and loss > 100'),
                                        ("mask", "F.cross_entropy(out[mask], y[mask])")])
def test_a_step_that_waits(recorder, what, line):
    model, optimiser, inputs = setting()
    step = tessera.capture(waits_for(what), model, optimiser, (*inputs, torch.rand(20) > 0.5))
    losses_of(step, 2)
    with pytest.raises(tessera.CannotBeCaptured) as error:
        step()
    text = str(error.value)
    assert text.startswith("test_capture.py:") and line in text and "mask.nonzero().view(-1)" in text


def test_a_scaler_that_asks(recorder):
    scaler = torch.amp.GradScaler("cpu")

    def step(model, optimiser, x, edges, y):
        optimiser.zero_grad()
        loss = F.cross_entropy(model(x, edges), y)
        scaler.scale(loss).backward()
        scaler.step(optimiser)
        scaler.update()
        return loss

    model, optimiser, inputs = setting()
    captured = tessera.capture(step, model, optimiser, inputs)
    losses_of(captured, 2)
    with pytest.raises(tessera.CannotBeCaptured, match="GradScaler asks whether gradients are finite: use bf16"):
        captured()


@pytest.mark.parametrize("name, draw", [("torch's generator of the CPU", lambda: torch.rand(1)), ("Python's random", random.random),
                                        ("NumPy's random", lambda: numpy.random.rand())])
def test_random_numbers_of_the_host(recorder, name, draw):
    def step(model, optimiser, *inputs):
        draw()
        return train_step(model, optimiser, *inputs)

    model, optimiser, inputs = setting()
    captured = tessera.capture(step, model, optimiser, inputs)
    losses_of(captured, 2)
    with pytest.raises(tessera.CannotBeCaptured, match=f"the step draws from {name}"):
        captured()


def test_optimisers_that_cannot_be_captured(recorder):
    with pytest.raises(tessera.CannotBeCaptured, match=r"use torch.optim.Adam\(..., capturable=True\)"):
        model, optimiser, inputs = setting(optimiser=torch.optim.Adam)
        tessera.capture(train_step, model, optimiser, inputs)
    model, optimiser, inputs = setting(optimiser=torch.optim.Adagrad)
    step = tessera.capture(train_step, model, [optimiser], inputs)
    with pytest.raises(AttributeError):  # a list is what the step gets
        step()
    step = tessera.capture(train_step, model, optimiser, inputs)
    losses_of(step, 2)
    with pytest.raises(tessera.CannotBeCaptured, match="step of Adagrad is counted on the host"):
        step()


def test_learning_rates_that_change(recorder):
    model, optimiser, inputs = setting()
    step = tessera.capture(train_step, model, optimiser, inputs)
    schedule = torch.optim.lr_scheduler.StepLR(optimiser, 5)
    for _ in range(5):
        step()
        schedule.step()
    with pytest.raises(ValueError, match=r"lr of the optimiser went from 0.1 to 0.01.* lr=torch.tensor\(0.1, device='cuda'\)"):
        step()


def test_learning_rates_that_are_tensors(recorder):
    found = []
    for captured in (True, False):
        model, _, inputs = setting()
        optimiser = torch.optim.SGD(model.parameters(), lr=torch.tensor(0.1))
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.5)
        step = tessera.capture(train_step, model, optimiser, inputs) if captured else (
            lambda: train_step(model, optimiser, *inputs))
        found.append([])
        for _ in range(8):
            found[-1].append(step().item())
            schedule.step()
    assert found[0] == found[1]


def grow(model, optimiser, x, edge_index, y):
    """Without zero_grad: that is for the loop to do."""
    loss = F.cross_entropy(model(x, edge_index), y)
    loss.backward()
    optimiser.step()
    return loss


def test_gradients_that_the_loop_sets_to_none(recorder):
    model, optimiser, inputs = setting()
    step = tessera.capture(grow, model, optimiser, inputs)
    found = []
    for _ in range(7):
        optimiser.zero_grad()
        found.append(step().item())
    other, optimiser, _ = setting()
    assert found == [train_step(other, optimiser, *inputs).item() for _ in range(7)]
    with pytest.raises(ValueError, match="captured without gradients from before, and now there are some"):
        step()


@pytest.mark.parametrize("zeroes", [True, False])
def test_gradients_that_grow(recorder, zeroes):
    model, optimiser, inputs = setting()
    step = tessera.capture(grow, model, optimiser, inputs)
    for _ in range(6):
        step()
        if zeroes:
            optimiser.zero_grad(set_to_none=False)
    step()
    optimiser.zero_grad()
    with pytest.raises(ValueError, match="gradients that were set to None or replaced outside of it"):
        step()


def test_a_loop_may_zero_what_the_step_zeroes(recorder):
    model, optimiser, inputs = setting()
    step = tessera.capture(train_step, model, optimiser, inputs)
    losses_of(step, 3)
    for _ in range(3):
        optimiser.zero_grad()
        step()
        assert all(parameter.grad is not None for parameter in model.parameters())
        step()


def test_parameters_that_move_or_freeze(recorder):
    for change in (lambda model: setattr(model.convs[0].lin, "weight", torch.nn.Parameter(torch.zeros(8, 6))),
                   lambda model: model.convs[0].lin.requires_grad_(False)):
        model, optimiser, inputs = setting()
        step = tessera.capture(train_step, model, optimiser, inputs)
        losses_of(step, 5)
        model.load_state_dict(setting()[0].state_dict())
        step()
        change(model)
        with pytest.raises(ValueError, match="parameters or buffers of the model were replaced, moved or frozen"):
            step()


def test_the_model_is_left_in_the_mode_of_the_step(recorder):
    def step(model, optimiser, *inputs):
        model.train()
        return train_step(model, optimiser, *inputs)

    model, optimiser, inputs = setting()
    captured = tessera.capture(step, model, optimiser, inputs)
    for _ in range(6):
        model.eval()
        captured()
        assert model.training and model.convs[0].training


def test_without_an_optimiser(recorder):
    model, _, (x, edges, _) = setting()
    step = tessera.capture(lambda model, _, x, edges: model(x, edges), model, None, (x, edges))
    for _ in range(6):
        assert torch.equal(step(), model(x, edges))


def test_numbers_are_part_of_the_step(recorder):
    def scaled(model, optimiser, x, edge_index, y, factor):
        return train_step(model, optimiser, factor * x, edge_index, y)

    model, optimiser, inputs = setting()
    step = tessera.capture(scaled, model, optimiser, (*inputs, 2.0))
    step(*inputs, 2.0)
    with pytest.raises(ValueError, match="factor is 3.0, in the example 2.0, which replays would keep: give a tensor"):
        step(*inputs, 3.0)


MODEL, OPTIMISER, INPUTS = setting()
WRONG = [(lambda: tessera.capture(3, MODEL, OPTIMISER, INPUTS), TypeError, "the step is a int, not a function of .model, optimiser"),
         (lambda: tessera.capture(train_step, 3, OPTIMISER, INPUTS), TypeError, "model is a int, not a torch.nn.Module"),
         (lambda: tessera.capture(train_step, MODEL, 3, INPUTS), TypeError, "optimiser is a int, not a torch.optim.Optimizer, a list"),
         (lambda: tessera.capture(train_step, MODEL, OPTIMISER, INPUTS)(INPUTS[0]), TypeError,
          "given 1 inputs, its example has 3: x, edge_index, y"),
         (lambda: tessera.capture(train_step, MODEL, OPTIMISER, INPUTS)(INPUTS[0], INPUTS[1], INPUTS[2].int()), ValueError,
          r"y is torch.int32 \(20,\) on cpu, in the example torch.int64")]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_arguments(number):
    call, kind, text = WRONG[number]
    with pytest.raises(kind, match=text):
        call()
