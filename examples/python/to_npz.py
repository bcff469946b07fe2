#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns graphs of PyTorch Geometric, DGL and networkx, and Planetoid's files, into .npz for Tessera.

    from to_npz import from_pyg, from_dgl, from_networkx, save
    save("graph.npz", from_pyg(data))

    python3 to_npz.py planetoid FOLDER NAME OUT.npz      # FOLDER/ind.NAME.x and its siblings
    python3 to_npz.py pyg DATA.pt OUT.npz                # what torch.save wrote of a Data object

Every function returns a dictionary of arrays as docs/formats.md describes them. Planetoid's files and .pt
files are pickles: reading them runs what is in them, so use only those that you trust.
"""
import sys

try:
    import numpy as np
except ImportError:
    if __name__ != "__main__":
        raise
    np = None  # its help needs none


def array(value):
    """A NumPy array of a tensor of any library, or of a list."""
    for step in ("detach", "cpu", "numpy"):
        if hasattr(value, step):
            value = getattr(value, step)()
    return np.asarray(value)


def save(path, arrays):
    np.savez_compressed(path, **arrays)


def with_labels(arrays, y, num_nodes):
    if y is None:
        return
    y = array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape[:1] != (num_nodes,):
        raise ValueError(f"{y.shape[0]} labels for {num_nodes} vertices: sets of graphs are not read")
    if y.ndim == 1 and np.issubdtype(y.dtype, np.floating):
        if not np.array_equal(y[~np.isnan(y)], np.floor(y[~np.isnan(y)])):
            raise ValueError("the labels are fractions, which are no classes")
        y = np.where(np.isnan(y), -1, y)
    arrays["y"] = y.astype(np.int64 if y.ndim == 1 else np.float32)


def with_masks(arrays, get, names):
    for ours, theirs in names.items():
        mask = get(theirs)
        if mask is not None:
            arrays[ours] = array(mask).astype(bool)


def with_others(arrays, others):
    """Keeps what Tessera has no use for, as far as it is arrays, and says what it leaves out."""
    for name, value in others.items():
        if name in arrays or value is None:
            continue
        found = array(value)
        if found.dtype.kind in "biuf":
            arrays[name] = found
        else:
            print(f"to_npz.py: left out: {name}, which is no array of numbers", file=sys.stderr)


def from_pyg(data):
    """A torch_geometric.data.Data: edge_index, edge_weight, x, y and the masks. Other arrays, such as
    edge_attr, are kept as they are."""
    def get(name):
        return getattr(data, name, None)
    num_nodes = int(data.num_nodes)
    arrays = {"edge_index": array(data.edge_index).astype(np.int64), "num_nodes": np.int64(num_nodes)}
    if get("edge_weight") is not None:
        arrays["edge_weight"] = array(data.edge_weight).astype(np.float32)
    if get("x") is not None:
        arrays["x"] = array(data.x).astype(np.float32)
    with_labels(arrays, get("y"), num_nodes)
    with_masks(arrays, get, {name: name for name in ("train_mask", "val_mask", "test_mask")})
    names = getattr(data, "keys", vars(data))
    names = names() if callable(names) else names
    with_others(arrays, {name: get(name) for name in names})
    return arrays


def from_dgl(graph, features="feat", labels="label", weights=None):
    """A homogeneous DGLGraph; features, labels and masks are in ndata, weights in edata. What else is there is
    kept, that of edges with edge_ before its name."""
    sources, targets = graph.edges()
    num_nodes = int(graph.num_nodes())
    arrays = {"edge_index": np.stack([array(sources), array(targets)]).astype(np.int64),
              "num_nodes": np.int64(num_nodes)}
    if weights is not None:
        arrays["edge_weight"] = array(graph.edata[weights]).astype(np.float32)
    if features in graph.ndata:
        arrays["x"] = array(graph.ndata[features]).astype(np.float32)
    with_labels(arrays, graph.ndata[labels] if labels in graph.ndata else None, num_nodes)
    with_masks(arrays, lambda name: graph.ndata[name] if name in graph.ndata else None,
               {name: name for name in ("train_mask", "val_mask", "test_mask")})
    with_others(arrays, {name: graph.ndata[name] for name in graph.ndata if name not in (features, labels)})
    with_others(arrays, {f"edge_{name}": graph.edata[name] for name in graph.edata if name != weights})
    return arrays


def names_as_arrays(name, texts):
    encoded = [str(text).encode() for text in texts]
    ends = np.cumsum([len(text) for text in encoded], dtype=np.int64)
    return {name: np.frombuffer(b"".join(encoded), dtype=np.uint8), name + "_end": ends}


def from_networkx(graph, features=(), label=None, weight=None):
    """A networkx graph. Vertices keep their names; an undirected edge becomes two. `features` are the
    names of numeric attributes, `label` that of the class, `weight` that of an edge's weight, which every edge
    must have."""
    nodes = list(graph.nodes)
    number = {node: i for i, node in enumerate(nodes)}
    edges = []
    for source, target, attributes in graph.edges(data=True):
        if weight is not None and weight not in attributes:
            raise ValueError(f"the edge from {source!r} to {target!r} has no '{weight}'")
        value = 1.0 if weight is None else float(attributes[weight])
        edges.append((number[source], number[target], value))
        if not graph.is_directed() and source != target:
            edges.append((number[target], number[source], value))
    ends = np.array([edge[:2] for edge in edges], dtype=np.int64).reshape(-1, 2).T
    arrays = {"edge_index": ends, "num_nodes": np.int64(len(nodes))}
    arrays.update(names_as_arrays("vertex_name", nodes))
    if weight is not None:
        arrays["edge_weight"] = np.array([edge[2] for edge in edges], dtype=np.float32)
    if features:
        arrays["x"] = np.array([[float(graph.nodes[node][name]) for name in features] for node in nodes],
                               dtype=np.float32)
        arrays.update(names_as_arrays("feature_name", features))
    if label is not None:
        labels = [graph.nodes[node].get(label) for node in nodes]
        classes = sorted({value for value in labels if value is not None}, key=str)
        place = {value: i for i, value in enumerate(classes)}
        arrays["y"] = np.array([place.get(value, -1) for value in labels], dtype=np.int64)
        arrays.update(names_as_arrays("class_name", classes))
    return arrays


def from_planetoid(folder, name):
    """The public split of Cora, CiteSeer or PubMed from FOLDER/ind.NAME.*; needs SciPy."""
    import os
    import pickle

    def load(part):
        with open(os.path.join(folder, f"ind.{name}.{part}"), "rb") as file:
            return pickle.load(file, encoding="latin1")
    x, tx, allx = (load(part) for part in ("x", "tx", "allx"))
    y, ty, ally = (load(part) for part in ("y", "ty", "ally"))
    graph = load("graph")
    test = np.loadtxt(os.path.join(folder, f"ind.{name}.test.index"), dtype=np.int64, ndmin=1)
    num_nodes = max(max(graph) + 1, int(test.max()) + 1)
    features = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
    features[:allx.shape[0]] = allx.toarray() if hasattr(allx, "toarray") else allx
    features[test] = tx.toarray() if hasattr(tx, "toarray") else tx
    one_hot = np.zeros((num_nodes, ally.shape[1]), dtype=np.int64)
    one_hot[:ally.shape[0]] = ally
    one_hot[test] = ty
    pairs = np.array([(u, v) for u, neighbours in graph.items() for v in neighbours], dtype=np.int64)
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    pairs = pairs[pairs[:, 0] != pairs[:, 1]]
    trained = x.shape[0]
    return {"edge_index": pairs.T.copy(), "num_nodes": np.int64(num_nodes), "x": features,
            "y": np.where(one_hot.any(axis=1), one_hot.argmax(axis=1), -1),
            "train_idx": np.arange(trained), "val_idx": np.arange(trained, trained + 500),
            "test_idx": np.sort(test)}


def main(arguments):
    if "-h" in arguments or "--help" in arguments:
        print(__doc__.strip())
    elif np is None:
        sys.exit("to_npz.py: error: NumPy is missing: pip install numpy")
    elif len(arguments) == 4 and arguments[0] == "planetoid":
        save(arguments[3], from_planetoid(arguments[1], arguments[2]))
    elif len(arguments) == 3 and arguments[0] == "pyg":
        import torch
        data = torch.load(arguments[1], weights_only=False)
        save(arguments[2], from_pyg(data[0] if isinstance(data, (list, tuple)) else data))
    else:
        print(f"to_npz.py: error: no such use: {' '.join(arguments) or '(no arguments)'}\n\n{__doc__.strip()}",
              file=sys.stderr)
        sys.exit(2)


if __name__ == "__main__":
    main(sys.argv[1:])
