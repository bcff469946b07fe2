# SPDX-License-Identifier: Apache-2.0
"""The script that turns objects of Python's graph libraries into archives, with stand-ins for the objects."""
import collections
import contextlib
import io
import pickle
import subprocess
import sys
import types
import unittest
import unittest.mock

import cli

try:
    import numpy as np
except ImportError:
    np = None
sys.path.insert(0, str(cli.SOURCE / "examples" / "python"))


class Tensor:
    """Looks like a tensor of torch's, for those who only want its numbers."""

    def __init__(self, values):
        self.values = np.array(values)

    def detach(self):
        return self

    def cpu(self):
        return self

    def numpy(self):
        return self.values


class Networkx:
    """The part of networkx.Graph that is used."""

    def __init__(self, nodes, edges, directed=False):
        self.nodes = nodes
        self._edges = edges
        self._directed = directed

    def edges(self, data):
        return self._edges

    def is_directed(self):
        return self._directed


@unittest.skipIf(np is None, "needs NumPy")
class ToNpz(cli.CliTest):
    def info(self, arrays):
        import to_npz
        to_npz.save(self.folder / "g.npz", arrays)
        return self.json("info", self.folder / "g.npz")

    def test_pyg(self):
        import to_npz
        data = types.SimpleNamespace(
            num_nodes=4, edge_index=Tensor([[0, 1, 2], [1, 2, 3]]), x=Tensor(np.ones((4, 2))),
            y=Tensor([[0], [1], [1], [0]]), train_mask=Tensor([True, True, False, False]),
            test_mask=Tensor([False, False, True, True]), edge_attr=Tensor(np.ones((3, 2))), names=["a", "b"])
        said = io.StringIO()
        with contextlib.redirect_stderr(said):
            info = self.info(to_npz.from_pyg(data))
        self.assertEqual(said.getvalue(), "to_npz.py: left out: names, which is no array of numbers\n")
        self.assertEqual((info["edge_features"], info["extras"]), (2, []))
        self.assertEqual((info["vertices"], info["edges"], info["features"], info["classes"]), (4, 3, 2, 2))
        self.assertEqual((info["train"], info["test"]), (2, 2))

    def test_dgl(self):
        import to_npz
        graph = types.SimpleNamespace(
            edges=lambda: (Tensor([0, 1]), Tensor([1, 2])), num_nodes=lambda: 5,
            ndata={"feat": Tensor(np.zeros((5, 3))), "label": Tensor([0., 1., float("nan"), 0., 1.])},
            edata={"w": Tensor([0.5, 2]), "kind": Tensor([3, 4])})
        info = self.info(to_npz.from_dgl(graph, weights="w"))
        self.assertEqual(info["extras"], ["edge_kind"])
        self.assertEqual((info["vertices"], info["edges"], info["features"], info["labelled"]), (5, 2, 3, 4))
        self.assertTrue(info["weighted"])

    def test_networkx(self):
        import to_npz
        nodes = {"ann": {"age": 3, "club": "x"}, "bob": {"age": 4, "club": "y"}, "eve": {"age": 5}}
        graph = Networkx(nodes, [("ann", "bob", {"weight": 1}), ("bob", "eve", {"weight": 2})])
        arrays = to_npz.from_networkx(graph, features=["age"], label="club", weight="weight")
        info = self.info(arrays)
        self.assertEqual((info["vertices"], info["edges"], info["labelled"]), (3, 4, 2))
        self.assertEqual(bytes(arrays["vertex_name"]), b"annbobeve")
        with self.assertRaisesRegex(ValueError, "from 'ann' to 'bob' has no 'weight'"):
            to_npz.from_networkx(Networkx(nodes, [("ann", "bob", {})]), weight="weight")
        empty = to_npz.from_networkx(Networkx({"a": {}}, [], directed=True))
        self.assertEqual(self.info(empty)["edges"], 0)

    def test_help_and_wrong_uses(self):
        script = cli.SOURCE / "examples" / "python" / "to_npz.py"
        for option in ("-h", "--help"):
            found = subprocess.run([sys.executable, script, option], capture_output=True, text=True)
            self.assertEqual((found.returncode, found.stderr), (0, ""))
            self.assertIn("to_npz.py planetoid FOLDER NAME OUT.npz", found.stdout)
        for arguments in ([], ["pyg", "data.pt"], ["dgl", "a", "b"]):
            found = subprocess.run([sys.executable, script, *arguments], capture_output=True, text=True)
            self.assertEqual((found.returncode, found.stdout), (2, ""))
            self.assertIn("to_npz.py: error: no such use: " + " ".join(arguments), found.stderr)



def sparse(rows, protocol):
    """As a matrix of SciPy's is pickled."""
    kind = type("csr_matrix", (), {"__module__": "scipy.sparse.csr"})
    matrix, rows = kind(), np.array(rows)
    places = np.argwhere(rows)
    matrix.__dict__.update(_shape=rows.shape, indices=places[:, 1], data=rows[rows != 0],
                           indptr=np.searchsorted(places[:, 0], np.arange(len(rows) + 1)))
    module = types.SimpleNamespace(csr_matrix=kind)
    names = ("scipy", "scipy.sparse", "scipy.sparse.csr")
    with unittest.mock.patch.dict(sys.modules, {name: module for name in names}):
        return pickle.dumps(matrix, protocol)


@unittest.skipIf(np is None, "needs NumPy")
class Planetoid(cli.CliTest):
    def setUp(self):
        super().setUp()
        self.raw = self.folder / "Toy" / "raw"
        self.raw.mkdir(parents=True)
        parts = {"x": sparse(np.eye(2, 3), 2), "tx": sparse(np.ones((2, 3)), 1), "allx": pickle.dumps(np.eye(600, 3), 2)}
        others = {"y": np.eye(2), "ty": np.eye(2), "ally": np.tile(np.eye(2), (300, 1)),
                  "graph": collections.defaultdict(list, {0: [1], 601: [600]})}
        for name, content in (parts | {name: pickle.dumps(other, 2) for name, other in others.items()}).items():
            (self.raw / f"ind.toy.{name}").write_bytes(content)
        (self.raw / "ind.toy.test.index").write_text("601\n600\n")

    def test_the_program_names_the_command(self):
        for path in (self.folder / "Toy", self.raw, self.raw / "ind.toy.graph", self.raw / "ind.toy.test.index"):
            error = self.fail_with(cli.UNAVAILABLE, "train", path).err.strip()
            command = error[error.index("python3 ") + len("python3 "):].split()
            self.assertEqual(command[1:], ["planetoid", str(self.raw), "toy", "toy.npz"])
            subprocess.run([sys.executable, *command], cwd=self.folder, check=True)
            info = self.json("info", self.folder / "toy.npz")
            self.assertEqual([info[key] for key in ("vertices", "edges", "train", "validation", "test")], [602, 4, 2, 500, 2])
            self.assertEqual((info["features"], info["classes"]), (3, 2))
            (self.folder / "toy.npz").unlink()

    def refused(self):
        import to_npz
        with self.assertRaises(SystemExit) as end, contextlib.redirect_stderr(io.StringIO()):
            to_npz.main(["planetoid", str(self.folder / "Toy"), "toy", str(self.folder / "toy.npz")])
        self.assertFalse((self.folder / "toy.npz").exists())
        return end.exception.code

    def test_no_code_of_a_file_runs(self):
        class Hostile:
            def __reduce__(self):
                return open, (str(path), "w")
        path = self.folder / "trace"
        (self.raw / "ind.toy.y").write_bytes(pickle.dumps(Hostile(), protocol=2))
        self.assertIn("ind.toy.y holds an object of io.open, which is not opened, since it could run code", self.refused())
        self.assertFalse(path.exists())

    def test_what_else_is_refused(self):
        for found, said in ((b"\x80\x02}q\x00", "ind.toy.y is damaged: "), (pickle.dumps([1]), "ind.toy.y holds no matrix, but a list")):
            (self.raw / "ind.toy.y").write_bytes(found)
            self.assertIn(said, self.refused())
        (self.raw / "ind.toy.y").unlink()
        self.assertIn("ind.toy.y", self.refused())


if __name__ == "__main__":
    unittest.main()
