# SPDX-License-Identifier: Apache-2.0
"""Data sets and checkpoints travel between Python and the program."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
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


def test_features_of_edges_come_back_with_their_edges(tmp_path):
    data = example()
    ends = data.edge_index.T.float()
    for attr, expected in ((ends, ends), (ends[:, 0].double(), ends[:, :1])):
        data.edge_attr = attr
        tessera.save(data, tmp_path / "data.tsr")
        back = tessera.load(tmp_path / "data.tsr")
        assert torch.equal(back.edge_attr, back.edge_index.T.float()[:, :expected.size(1)])
    data.edge_attr = torch.full_like(ends, float("inf"))
    with pytest.raises(ValueError, match="data.edge_attr holds numbers that are not finite"):
        tessera.save(data, tmp_path / "data.tsr")


def test_several_splits_come_back(tmp_path):
    data = example()
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.stack([data[f"{part}_mask"], data[f"{part}_mask"].flip(0)], dim=1)
    tessera.save(data, tmp_path / "data.tsr")
    back = tessera.load(tmp_path / "data.tsr")
    for part in ("train", "val", "test"):
        assert torch.equal(back[f"{part}_mask"], data[f"{part}_mask"])


@needs_program
def test_the_program_trains_on_several_splits(tmp_path):
    data = example()
    for part in ("train", "val", "test"):
        data[f"{part}_mask"] = torch.stack([data[f"{part}_mask"], data[f"{part}_mask"].roll(5)], dim=1)
    tessera.save(data, tmp_path / "data.tsr")
    run("train", tmp_path / "data.tsr", "--epochs", 2, "--split-index", "all", "--json", tmp_path / "report.json")
    runs = json.loads((tmp_path / "report.json").read_text())["runs"]
    assert [one["split"] for one in runs] == [0, 1]


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


NOT_HELD = {
    "labels of graphs": ({"y": torch.tensor([1])}, ValueError, r"data.y has shape \(1,\): .* for each of 30 vertices"),
    "a square mask": ({"train_mask": torch.ones(30, 30, dtype=torch.bool)}, ValueError, "leave out a split"),
    "a list of vertices": ({"val_mask": torch.arange(30)}, TypeError, "data.val_mask has type torch.int64: use torch.bool"),
    "a short mask": ({"test_mask": torch.ones(3, dtype=torch.bool)}, ValueError, "data.test_mask has shape"),
    "features of other edges": ({"edge_attr": torch.ones(149, 2)}, ValueError, "data.edge_attr has shape"),
    "a column of weights": ({"edge_weight": torch.ones(150, 1)}, ValueError, "a number for each of"),
    "one feature": ({"x": torch.ones(30)}, ValueError, "data.x has shape"),
    "a vertex that is not there": ({"edge_index": torch.tensor([[0, 1], [1, 30]])}, IndexError, "index 30 is outside"),
    "no edges": ({"edge_index": None}, ValueError, "no edge_index"),
}


@pytest.mark.parametrize("what", NOT_HELD)
def test_what_a_file_cannot_hold_is_not_left_out(what, tmp_path):
    changes, error, words = NOT_HELD[what]
    data = example()
    for name, value in changes.items():
        data[name] = value
    with pytest.raises(error, match=words):
        tessera.save(data, tmp_path / "data.tsr")
    assert not list(tmp_path.iterdir())


def test_other_ways_to_write_the_same_data(tmp_path):
    data = example()
    data.y[3] = -1  # no class
    tessera.save(data, tmp_path / "data.tsr")
    expected = (tmp_path / "data.tsr").read_bytes()
    as_ogb = data.y.view(-1, 1).float()
    as_ogb[3] = float("nan")
    for name, value in {"y": as_ogb, "x": data.x.to_sparse(), "edge_index": data.edge_index.int(),
                        "train_mask": data.train_mask.byte()}.items():
        other = data.clone()
        other[name] = value
        tessera.save(other, tmp_path / "other.tsr")
        assert (tmp_path / "other.tsr").read_bytes() == expected
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        tessera.save(data, tmp_path / "nowhere" / "data.tsr")


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


@needs_program
@pytest.mark.parametrize("normalise", ["off", "rows", "standard"])
def test_models_of_edges_travel_both_ways(normalise, tmp_path):
    data = example()
    data.edge_attr = torch.rand(data.edge_index.size(1), 3) + 1
    travel(tmp_path, "gine", "--normalise", normalise, "--layers", 3, data=data)
    model = tessera.load(tmp_path / "theirs.tsr")
    assert model.edge_feature_names == []
    with pytest.raises(ValueError, match="give them as edge_attr"):
        model(data.x, data.edge_index)


def travel(tmp_path, kind, *options, data=None):
    data = example() if data is None else data
    graph, theirs, ours = (tmp_path / name for name in ("data.tsr", "theirs.tsr", "ours.tsr"))
    tessera.save(data, graph)
    run("train", "--data", graph, "--model", kind, "--epochs", 3, "--runs", 1, "--checkpoint", theirs,
        *options)
    model = tessera.load(theirs)
    with torch.no_grad():
        expected = model(data.x, data.edge_index, data.edge_attr).argmax(1)
    tessera.save(model, ours)
    for checkpoint in (theirs, ours):
        classes = tmp_path / (checkpoint.stem + ".txt")
        run("predict", "--data", graph, "--checkpoint", checkpoint, "-o", classes)
        predicted = [int(line.split()[-1]) for line in classes.read_text().splitlines()
                     if line and not line.startswith("#")]
        assert predicted == expected.tolist()


@pytest.mark.parametrize("shape", [(30,), (30, 2)])
def test_numbers_to_predict_come_back(shape, tmp_path):
    data = example()
    data.y = torch.rand(shape)
    data.y[3] = float("nan")
    tessera.save(data, tmp_path / "data.tsr")
    assert torch.equal(tessera.load(tmp_path / "data.tsr").y.nan_to_num(-1), data.y.nan_to_num(-1))


@needs_program
@pytest.mark.parametrize("kind", ["gcn", "agnn"])
def test_models_of_numbers_travel_both_ways(kind, tmp_path):
    data = example()
    data.y = 1000 + 50 * torch.rand(30, 2)
    graph, theirs, ours = (tmp_path / name for name in ("data.tsr", "theirs.tsr", "ours.tsr"))
    tessera.save(data, graph)
    run("train", graph, "--task", "numbers", "--model", kind, "--epochs", 3, "-c", theirs)
    model = tessera.load(theirs)
    assert model.target_names == []
    with torch.no_grad():
        expected = model(data.x, data.edge_index)
    tessera.save(model, ours)
    for checkpoint in (theirs, ours):
        run("predict", graph, "-c", checkpoint, "-o", tmp_path / "numbers.npz", "--force")
        predicted = torch.from_numpy(np.load(tmp_path / "numbers.npz")["prediction"])
        torch.testing.assert_close(predicted, expected, rtol=1e-5, atol=1e-2)


@needs_program
def test_names_of_features_and_classes_are_kept(tmp_path):
    rows = [f"v{i},{i * 0.5},{'red' if i % 3 else 'blue'},{'spam' if i % 2 else 'ham'}" for i in range(30)]
    (tmp_path / "nodes.csv").write_text("\n".join(["id,age,colour,label", *rows]) + "\n")
    (tmp_path / "edges.csv").write_text("".join(f"v{i},v{(i + 1) % 30}\n" for i in range(30)))
    graph, theirs, ours = (tmp_path / name for name in ("data.tsr", "theirs.tsr", "ours.tsr"))
    run("convert", tmp_path / "edges.csv", "--nodes", tmp_path / "nodes.csv", "--header", "no", "--nodes-header", "yes",
        "-o", graph)
    run("train", graph, "--epochs", 2, "-c", theirs)
    model = tessera.load(theirs)
    assert model.feature_names == ["age", "colour=blue", "colour=red"]
    assert model.class_names == ["ham", "spam"]
    tessera.save(model, ours)
    for checkpoint in (theirs, ours):
        # The parts of the training's split are the program's to know.
        run("predict", graph, "-c", checkpoint, "--short", "-o", tmp_path / (checkpoint.stem + ".csv"))
    assert (tmp_path / "ours.csv").read_text() == (tmp_path / "theirs.csv").read_text()
    assert tessera.load(ours).graph_form == model.graph_form != {}
