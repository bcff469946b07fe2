# SPDX-License-Identifier: Apache-2.0
"""A rank that is gone, slow, or has other data is an error on the others that names it."""

import os
import signal
import time

import pytest
import torch
from ranks import Raised, run_ranks
from test_distributed import a_model, loss_on, some_data

import tessera

LIMIT = 8.0  # seconds


def steps_with_trouble(data, trouble, where):
    """In step 3 one rank makes trouble: before its model is called, or between both passes."""
    run = tessera.distributed.start(time_limit=LIMIT)
    part = tessera.distributed.partition(data)
    model = tessera.distributed.whole_graph(a_model("sage"))
    for step in range(1, 6):
        if step == 3 and run.rank == 1 and where == "forward":
            trouble()
        loss = loss_on(part)(model(part.x, part.edge_index))
        if step == 3 and run.rank == 1 and where == "backward":
            trouble()
        loss.backward()
    return "done"


def be_killed():
    os.kill(os.getpid(), signal.SIGKILL)


def be_slow():
    time.sleep(3 * LIMIT)


def be_wrong():
    raise KeyError("a mistake in the user's code")


@pytest.mark.parametrize("where", ["forward", "backward"])
def test_a_killed_rank(where):
    began = time.monotonic()
    outcomes = run_ranks(3, steps_with_trouble, some_data(), be_killed, where)
    assert time.monotonic() - began < 60
    assert outcomes[1] is None
    for rank in (0, 2):
        error = outcomes[rank]
        assert error.kind == "RankLost" and error.text.startswith("step 3, "), error
        assert "rank 1 of 3 is gone" in error.text and "checkpoint" in error.text and "--nproc-per-node=2" in error.text


def test_a_rank_that_ends_by_a_mistake():
    outcomes = run_ranks(2, steps_with_trouble, some_data(), be_wrong, "forward")
    assert outcomes[1] == Raised("KeyError", "\"a mistake in the user's code\"")
    assert outcomes[0].kind == "RankLost" and "rank 1 of 2 is gone" in outcomes[0].text


def test_a_slow_rank():
    outcomes = run_ranks(3, steps_with_trouble, some_data(), be_slow, "forward")
    for rank in (0, 2):
        error = outcomes[rank]
        assert error.kind == "RankLost" and "rank 1 of 3 is slow" in error.text and "time_limit" in error.text, error
    assert outcomes[1].kind == "RankLost" and "this rank was slow" in outcomes[1].text, outcomes[1]


def start_alone():
    tessera.distributed.start(time_limit=2)


def test_a_rank_that_does_not_start():
    (error,) = run_ranks(3, start_alone, present=[0])
    assert error.kind == "RankLost" and "ranks 1, 2 of 3 did not start within 2 s" in error.text


def other_data(data, change):
    run = tessera.distributed.start(time_limit=60)
    if run.rank == 1:
        change(data)
    tessera.distributed.partition(data)


def change_a_feature(data):
    data.x[5, 2] += 1


def drop_an_edge(data):
    data.edge_index = data.edge_index[:, 1:]


def lose_labels(data):
    del data.y


@pytest.mark.parametrize("change, text", [
    (change_a_feature, "rank 1: x holds other values"),
    (drop_an_edge, "rank 1: edge_index has (2, 1499), not (2, 1500)"),
    (lose_labels, "rank 1: y is missing"),
])
def test_a_rank_with_other_data(change, text):
    for error in run_ranks(2, other_data, some_data(), change):
        assert error.kind == "ValueError" and text in error.text and "same file" in error.text, error


def other_model():
    run = tessera.distributed.start(time_limit=60)
    tessera.distributed.whole_graph(a_model("gcn", hidden_channels=8 + run.rank))


def test_a_rank_with_another_model():
    for error in run_ranks(2, other_model):
        assert error.kind == "ValueError" and "another model" in error.text and "'convs.0.bias', (9,)" in error.text, error


def test_what_comes_before_the_start():
    with pytest.raises(RuntimeError, match="call tessera.distributed.start"):
        tessera.distributed.partition(some_data())
    with pytest.raises(ValueError, match="time_limit is 0"):
        tessera.distributed.start(time_limit=0)
    assert not torch.distributed.is_initialized()
