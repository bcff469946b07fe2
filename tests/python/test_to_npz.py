# SPDX-License-Identifier: Apache-2.0
"""Files that PyG users have, converted by examples/python/to_npz.py and read by the program."""

import contextlib
import io
import json
import pickle
import subprocess
import sys
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from test_files import PROGRAM, needs_program
from torch_geometric.data import Batch, Data, HeteroData, InMemoryDataset, TemporalData

SCRIPT = Path(__file__).parents[2] / "examples" / "python" / "to_npz.py"
sys.path.insert(0, str(SCRIPT.parent))
import to_npz  # noqa: E402


def convert(path, out):
    """The exit code of the script, and what it says: in this process, since importing torch takes its time."""
    said, code = io.StringIO(), 0
    with contextlib.redirect_stderr(said):
        try:
            to_npz.main(["pyg", str(path), str(out)])
        except SystemExit as end:
            code = 1
            print(end.code, file=said)
    return code, said.getvalue()


def converted(what, tmp_path, said=""):
    """The arrays of what was saved; `said` is all that the script says."""
    torch.save(what, tmp_path / "data.pt")
    return converted_file(tmp_path / "data.pt", tmp_path, said)


def converted_file(path, tmp_path, said=""):
    assert convert(path, tmp_path / "data.npz") == (0, said)
    return np.load(tmp_path / "data.npz", allow_pickle=False)


def refused(what, tmp_path):
    torch.save(what, tmp_path / "data.pt")
    return refused_file(tmp_path / "data.pt", tmp_path)


def refused_file(path, tmp_path):
    code, said = convert(path, tmp_path / "data.npz")
    assert code == 1 and not (tmp_path / "data.npz").exists()
    assert len(said.splitlines()) == 1 and said.startswith("to_npz.py: error: "), said
    return said


def info(tmp_path, *options):
    done = subprocess.run([PROGRAM, "info", tmp_path / "data.npz", "--json", "-", *options], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def example(vertices=6):
    edges = torch.tensor([[i, (i + 1) % vertices] for i in range(vertices)]).t()
    return Data(edge_index=edges, x=torch.rand(vertices, 3), y=torch.arange(vertices) % 2)


def graphs(count=4):
    """Of 2, 3, ... vertices; the last has a vertex without an edge."""
    found = []
    for i in range(count):
        data = example(2 + i)
        data.y = torch.tensor([i % 2])
        data.edge_attr = torch.full((2 + i, 2), float(i))
        found.append(data)
    found[-1].edge_index = found[-1].edge_index[:, :1]
    found[-1].edge_attr = found[-1].edge_attr[:1]
    return found


class Processed(InMemoryDataset):
    """As people write them."""

    def __init__(self, root, made):
        self.made = made
        super().__init__(root)
        self.load(self.processed_paths[0])

    processed_file_names = "data.pt"

    def process(self):
        self.save(self.made, self.processed_paths[0])


def check_union(arrays, made):
    """Against PyG's own batch of the graphs."""
    batch = Batch.from_data_list(made)
    assert np.array_equal(arrays["edge_index"], batch.edge_index.numpy())
    assert np.array_equal(arrays["graph_id"], batch.batch.numpy())
    assert np.array_equal(arrays["graph_label"], batch.y.numpy())
    assert np.array_equal(arrays["x"], batch.x.numpy())
    assert np.array_equal(arrays["edge_attr"], batch.edge_attr.numpy())
    assert arrays["num_nodes"] == batch.num_nodes


@needs_program
def test_a_graph(tmp_path):
    data = example()
    data.edge_weight = torch.rand(6)
    data.edge_attr = torch.rand(6, 2)
    for k, part in enumerate(("train", "val", "test")):
        data[f"{part}_mask"] = torch.arange(6) % 3 == k
    data.names = ["a"]
    arrays = converted(data, tmp_path, "to_npz.py: left out: names, which is no array of numbers\n")
    assert np.array_equal(arrays["edge_index"], data.edge_index) and np.array_equal(arrays["x"], data.x)
    assert np.array_equal(arrays["edge_attr"], data.edge_attr) and np.array_equal(arrays["edge_weight"], data.edge_weight)
    found = info(tmp_path)
    assert (found["vertices"], found["edges"], found["classes"], found["train"]) == (6, 6, 2, 2)
    assert found["edge_features"] == 2 and found["extras"] == [] and found["weighted"]


@needs_program
def test_what_a_dataset_keeps(tmp_path):
    made = graphs()
    Processed(str(tmp_path / "mine"), made)
    for path in (tmp_path / "mine", tmp_path / "mine" / "processed", tmp_path / "mine" / "processed" / "data.pt"):
        check_union(converted_file(path, tmp_path), made)
    found = info(tmp_path)
    assert (found["graphs"], found["graph_classes"], found["vertices"]) == (4, 2, 14)


def test_what_older_datasets_keep(tmp_path):
    made = graphs()
    data, slices = InMemoryDataset.collate(made)
    check_union(converted((data, slices), tmp_path), made)
    check_union(converted((data.to_dict(), slices), tmp_path), made)
    check_union(converted((data.to_dict(), slices, {"sizes": 1}, Data), tmp_path), made)


def test_a_dataset_of_one_graph(tmp_path):
    Processed(str(tmp_path / "mine"), [example()])
    arrays = converted_file(tmp_path / "mine", tmp_path)
    assert "graph_id" not in arrays and arrays["num_nodes"] == 6


@needs_program
def test_lists_of_graphs(tmp_path):
    made = graphs()
    check_union(converted(made, tmp_path), made)
    assert info(tmp_path)["graphs"] == 4
    made = [Data(edge_index=torch.empty(2, 0, dtype=torch.long), num_nodes=n, y=torch.tensor(n)) for n in (3, 1, 2)]
    arrays = converted(made, tmp_path)
    assert arrays["graph_id"].tolist() == [0, 0, 0, 1, 2, 2] and arrays["graph_label"].tolist() == [2, 0, 1]
    assert bytes(arrays["class_name"]) == b"123"
    assert info(tmp_path)["graph_classes"] == 3


def test_several_splits(tmp_path):
    data = example()
    data.train_mask = torch.rand(6, 10) < 0.5
    data.val_mask = ~data.train_mask
    arrays = converted(data, tmp_path)
    assert np.array_equal(arrays["train_mask"], data.train_mask)


def test_numbers_to_predict_are_kept(tmp_path):
    data = example()
    data.y = torch.rand(6)
    arrays = converted(data, tmp_path, "to_npz.py: y holds numbers that are no classes: kept as targets, numbers to predict\n")
    assert "y" not in arrays and np.allclose(arrays["targets"], data.y)
    made = graphs()
    for i, graph in enumerate(made):
        graph.y = torch.tensor([[0.5 * i, 1.0]])
    arrays = converted(made, tmp_path, "to_npz.py: y of the graphs is no class for each of them: kept as graph_targets, "
                                       "numbers to predict\n")
    assert arrays["graph_targets"].tolist() == [[0, 1], [0.5, 1], [1, 1], [1.5, 1]]


@needs_program
def test_sparse_matrices(tmp_path):
    data = example(3)
    entries = torch.sparse_coo_tensor(torch.tensor([[1, 2, 2], [0, 0, 1]]), torch.tensor([1.0, 2.0, 3.0]), (3, 3))
    for adj_t in (entries.to_sparse_csr(), entries.coalesce()):
        data = Data(adj_t=adj_t, x=entries, y=torch.tensor([0, 1, 0]))
        arrays = converted(data, tmp_path)
        assert arrays["row"].tolist() == [1, 2, 2] and arrays["col"].tolist() == [0, 0, 1]
        assert arrays["value"].tolist() == [1, 2, 3] and arrays["x_data"].tolist() == [1, 2, 3]
        found = info(tmp_path)
        assert (found["vertices"], found["edges"], found["feature_kind"]) == (3, 3, "sparse")


@pytest.mark.parametrize("rows", [{"_row": torch.tensor([0, 2]), "_rowptr": None},
                                  {"_row": None, "_rowptr": torch.tensor([0, 1, 1, 2])}])
def test_torch_sparse(tmp_path, monkeypatch, rows):
    """With objects that have the names and the parts of torch_sparse's."""
    modules = {name: types.ModuleType(f"torch_sparse{name}") for name in ("", ".tensor", ".storage")}
    for name, module in modules.items():
        monkeypatch.setitem(sys.modules, f"torch_sparse{name}", module)
    matrix_class = type("SparseTensor", (), {"__module__": "torch_sparse.tensor"})
    storage_class = type("SparseStorage", (), {"__module__": "torch_sparse.storage"})
    modules[".tensor"].SparseTensor, modules[".storage"].SparseStorage = matrix_class, storage_class
    matrix, storage = matrix_class(), storage_class()
    vars(storage).update(rows, _col=torch.tensor([1, 0]), _value=None, _sparse_sizes=(3, 3), _rowcount=None, _colptr=None)
    matrix.storage = storage
    arrays = converted({"adj_t": matrix, "y": torch.tensor([0, 1, 0])}, tmp_path)
    assert arrays["row"].tolist() == [0, 2] and arrays["col"].tolist() == [1, 0] and arrays["num_nodes"] == 3


def test_halves(tmp_path):
    data = example()
    data.x = data.x.bfloat16()
    assert np.array_equal(converted(data, tmp_path)["x"], data.x.float())


def test_dictionaries(tmp_path):
    assert converted(example().to_dict(), tmp_path)["num_nodes"] == 6


def test_what_is_refused(tmp_path):
    hetero = HeteroData()
    hetero["author"].x, hetero["paper"].x = torch.rand(2, 3), torch.rand(3, 3)
    hetero["author", "wrote", "paper"].edge_index = torch.tensor([[0], [1]])
    assert "author, paper" in refused(hetero, tmp_path)
    Processed(str(tmp_path / "kinds"), [hetero, hetero])
    assert "HeteroData" in refused_file(tmp_path / "kinds", tmp_path)
    events = TemporalData(src=torch.tensor([0]), dst=torch.tensor([1]), t=torch.tensor([5]))
    assert "TemporalData" in refused(events, tmp_path)
    assert "no graph of PyG's, but a dictionary without edge_index (weight, bias)" in refused(
        torch.nn.Linear(2, 2).state_dict(), tmp_path)
    assert "but a Tensor" in refused(torch.ones(3), tmp_path)
    assert "but a list" in refused([], tmp_path)
    mixed = graphs()
    del mixed[2].x
    assert "x is in one of graph 0 and graph 2 alone" in refused(mixed, tmp_path)
    wild = graphs()
    wild[1].edge_index[0, 0] = 3
    assert "an edge of graph 1 leads to a vertex that is none of its 3" in refused(wild, tmp_path)
    labelled = example()
    labelled.y = torch.tensor([1])
    assert "1 labels for 6 vertices" in refused(labelled, tmp_path)
    assert "no edges" in refused(Data(x=torch.ones(3, 1)), tmp_path)


class Runs:
    """What is in the file is run by whoever opens it carelessly."""

    def __reduce__(self):
        return exec, ("raise SystemExit('the file ran')",)


def test_no_code_of_a_file_is_run(tmp_path):
    data = example()
    data.more = Runs()
    said = refused(data, tmp_path)
    assert "exec" in said and "could run code" in said
    (tmp_path / "plain.pt").write_bytes(pickle.dumps(Runs()))
    assert "to_npz.py: error: " in refused_file(tmp_path / "plain.pt", tmp_path)


def test_damaged_files(tmp_path):
    torch.save(example(), tmp_path / "whole.pt")
    whole = (tmp_path / "whole.pt").read_bytes()
    for length in range(0, len(whole), 97):
        (tmp_path / "cut.pt").write_bytes(whole[:length])
        refused_file(tmp_path / "cut.pt", tmp_path)
    refused_file(tmp_path / "none.pt", tmp_path)
    (tmp_path / "empty").mkdir()
    assert "holds no .pt file" in refused_file(tmp_path / "empty", tmp_path)


def test_pyg_need_not_be_installed(tmp_path):
    Processed(str(tmp_path / "mine"), graphs())
    (tmp_path / "hidden" / "torch_geometric").mkdir(parents=True)
    (tmp_path / "hidden" / "torch_geometric" / "__init__.py").write_text("raise ImportError('not here')\n")
    done = subprocess.run([sys.executable, "-B", "-c", "import runpy, sys; sys.path.insert(0, sys.argv[1]); "
                           "sys.argv[:] = sys.argv[2:]; sys.path.insert(0, sys.argv[0].rpartition('/')[0]); "
                           "runpy.run_path(sys.argv[0], run_name='__main__')", tmp_path / "hidden", SCRIPT, "pyg",
                           tmp_path / "mine", tmp_path / "data.npz"], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")


@needs_program
def test_the_program_names_the_command(tmp_path):
    Processed(str(tmp_path / "my data"), graphs())
    torch.save(example(), tmp_path / "old.pt", _use_new_zipfile_serialization=False)
    for path, made in (("my data", "my data.npz"), ("my data/processed/data.pt", "data.npz"), ("old.pt", "old.npz")):
        done = subprocess.run([PROGRAM, "train", path], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 6 and "runs no code" in done.stderr
        script, command = done.stderr.strip().rpartition(": python3 ")[2].split(" pyg ")
        assert Path(script).name == SCRIPT.name
        subprocess.run(f"{sys.executable} -B {SCRIPT} pyg {command}", cwd=tmp_path, shell=True, check=True)
        assert (tmp_path / made).exists()
