# SPDX-License-Identifier: Apache-2.0
"""Data sets and checkpoints travel between Python and the program."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest
import torch
from conftest import random_edges
from torch_geometric.data import Data

import tessera

PROGRAM = os.environ.get("TESSERA_PROGRAM") or shutil.which("tessera") or str(
    Path(__file__).parents[2] / "build" / "bin" / "tessera")
needs_program = pytest.mark.skipif(not os.access(PROGRAM, os.X_OK), reason="the program is not built")


def run(*arguments):
    result = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def example():
    index = torch.unique(random_edges(30, 30, 150), dim=1)
    data = Data(edge_index=index, x=torch.rand(30, 6), y=torch.randint(0, 3, (30,)), num_nodes=30)
    data.train_mask = torch.arange(30) < 10
    data.val_mask = (torch.arange(30) >= 10) & (torch.arange(30) < 20)
    data.test_mask = torch.arange(30) >= 20
    return data


def test_data_comes_back(tmp_path):
    data = example()
    data.edge_weight = torch.rand(data.edge_index.size(1))
    tessera.save(data, tmp_path / "data.tsr")
    back = tessera.load(tmp_path / "data.tsr")
    x = torch.eye(30)
    assert torch.equal(tessera.spmm(back.edge_index, x, back.edge_weight),
                       tessera.spmm(data.edge_index, x, data.edge_weight))
    for name in ("x", "y", "train_mask", "val_mask", "test_mask"):
        assert torch.equal(back[name], data[name])


def test_damage_is_noticed(tmp_path):
    path = tmp_path / "data.tsr"
    tessera.save(example(), path)
    whole = path.read_bytes()
    for position in (3, 20, 70, len(whole) - 5):
        broken = bytearray(whole)
        broken[position] ^= 1
        path.write_bytes(broken)
        with pytest.raises(ValueError, match="damaged|version"):
            tessera.load(path)
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(ValueError, match="damaged"):
        tessera.load(path)


def test_repeated_edges_cannot_be_saved(tmp_path):
    data = Data(edge_index=torch.tensor([[0, 0], [1, 1]]), num_nodes=2)
    with pytest.raises(ValueError, match="coalesce"):
        tessera.save(data, tmp_path / "data.tsr")


@needs_program
@pytest.mark.parametrize("normalise", ["rows", "standard"])
@pytest.mark.parametrize("kind", ["gcn", "sage", "gin", "gat", "gatv2", "agnn", "sgc", "cheb"])
def test_models_travel_both_ways(kind, normalise, tmp_path):
    travel(tmp_path, kind, "--normalise", normalise)


@needs_program
@pytest.mark.parametrize("kind", ["gcn", "gat", "gin"])
@pytest.mark.parametrize("options", [["--residual", "--layers", 3], ["--batch-norm", "--layers", 4],
                                     ["--batch-norm", "--residual", "--layers", 4]])
def test_stacks_travel_both_ways(kind, options, tmp_path):
    travel(tmp_path, kind, *options)


def travel(tmp_path, kind, *options):
    data = example()
    graph, theirs, ours = (tmp_path / name for name in ("data.tsr", "theirs.tsr", "ours.tsr"))
    tessera.save(data, graph)
    run("train", "--data", graph, "--model", kind, "--epochs", 3, "--runs", 1, "--checkpoint", theirs,
        *options)
    model = tessera.load(theirs)
    with torch.no_grad():
        expected = model(data.x, data.edge_index).argmax(1)
    tessera.save(model, ours)
    for checkpoint in (theirs, ours):
        classes = tmp_path / (checkpoint.stem + ".txt")
        run("predict", "--data", graph, "--checkpoint", checkpoint, "-o", classes)
        predicted = [int(line.split()[-1]) for line in classes.read_text().splitlines()
                     if line and not line.startswith("#")]
        assert predicted == expected.tolist()
