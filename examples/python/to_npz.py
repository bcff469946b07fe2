#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Turns graphs of PyTorch Geometric, DGL and networkx, and Planetoid's files, into .npz for Tessera.

    from to_npz import from_pyg, from_dgl, from_networkx, save
    save("graph.npz", from_pyg(data))

    python3 to_npz.py pyg DATA.pt OUT.npz                # what torch.save wrote of a Data, of a list of them
                                                         # or of an InMemoryDataset; also its folder
    python3 to_npz.py planetoid FOLDER NAME OUT.npz      # FOLDER/ind.NAME.x and its siblings

Every function returns a dictionary of arrays as docs/formats.md describes them. Files of PyTorch's and Planetoid's are
pickles; no code of theirs is run.
"""
import sys

from torch_files import Refused, attributes

try:
    import numpy as np
except ImportError:
    if __name__ != "__main__":
        raise
    np = None  # its help needs none


def array(value):
    """A NumPy array of a tensor of any library, or of a list."""
    if str(getattr(value, "dtype", "")) == "torch.bfloat16":  # NumPy has no such numbers
        value = value.float()
    for step in ("detach", "cpu", "numpy"):
        if hasattr(value, step):
            value = getattr(value, step)()
    return np.asarray(value)


def save(path, arrays):
    np.savez_compressed(path, **arrays)


def notice(text):
    print(f"to_npz.py: {text}", file=sys.stderr)


def with_labels(arrays, y, num_nodes):
    if y is None:
        return
    y = array(y)
    if y.ndim == 2 and y.shape[1] == 1:
        y = y[:, 0]
    if y.shape[:1] != (num_nodes,):
        raise Refused(f"y has {len(y) if y.ndim else 1} labels for {num_nodes} vertices: a graph that has a label itself "
                      "belongs into a list of graphs")
    missing = np.isnan(y) if np.issubdtype(y.dtype, np.floating) else np.zeros(y.shape, bool)
    if y.ndim == 1 and np.array_equal(y[~missing], np.floor(y[~missing])):
        arrays["y"] = np.where(missing, -1, y).astype(np.int64)
    elif y.ndim == 2 and np.isin(y, (0, 1)).all():
        arrays["y"] = y.astype(np.float32)
    else:
        arrays["targets"] = y.astype(np.float32)
        notice("y holds numbers that are no classes: kept as targets, numbers to predict")


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
            notice(f"left out: {name}, which is no array of numbers")


def sparse_rows(matrix):
    """Row offsets, columns, values or nothing, and width of a sparse matrix of PyTorch's or of torch_sparse's; nothing
    for other arrays."""
    storage = getattr(matrix, "storage", None)
    if storage is not None and hasattr(storage, "_col"):  # torch_sparse's: rows as offsets, or one by one
        rows, width = storage._sparse_sizes
        offsets = storage._rowptr
        if offsets is None:
            offsets = np.searchsorted(array(storage._row), np.arange(rows + 1))
        return array(offsets), array(storage._col), None if storage._value is None else array(storage._value), width
    if "sparse" not in str(getattr(matrix, "layout", "")):
        return None
    rows = matrix.to_sparse_csr()
    return array(rows.crow_indices()), array(rows.col_indices()), array(rows.values()), rows.shape[1]


def with_edges(arrays, get, num_nodes):
    if get("edge_index") is not None:
        arrays["edge_index"] = array(get("edge_index")).astype(np.int64)
        if get("edge_weight") is not None:
            arrays["edge_weight"] = array(get("edge_weight")).astype(np.float32)
        return
    rows = None if get("adj_t") is None else sparse_rows(get("adj_t"))
    if rows is None:
        raise Refused("the graph has no edges: neither edge_index nor a sparse adj_t")
    offsets, columns, values, _ = rows
    arrays["row"] = np.repeat(np.arange(num_nodes, dtype=np.int32), np.diff(offsets))
    arrays["col"] = columns.astype(np.int32)
    if values is not None and not (values == 1).all():
        arrays["value"] = values.astype(np.float32)


def with_features(arrays, x):
    if x is None:
        return
    rows = sparse_rows(x)
    if rows is None:
        x = array(x).astype(np.float32)
        arrays["x"] = x[:, None] if x.ndim == 1 else x
        return
    offsets, columns, values, width = rows
    values = np.ones(len(columns)) if values is None else values
    arrays.update(x_indptr=offsets.astype(np.int64), x_indices=columns.astype(np.int32),
                  x_data=values.astype(np.float32), x_dim=np.int64(width))


def vertices_of(get):
    """How many vertices a graph has, found out as PyG does."""
    if get("num_nodes") is not None:
        return int(get("num_nodes"))
    for name in ("x", "pos", "batch", "z", "train_mask"):
        if get(name) is not None:
            rows = sparse_rows(get(name))
            return len(rows[0]) - 1 if rows else len(array(get(name)))
    if get("adj_t") is not None:
        return len(sparse_rows(get("adj_t"))[0]) - 1
    edges = array(get("edge_index"))
    return int(edges.max()) + 1 if edges.size else 0


def from_graph(attributes):
    """One graph of PyG's."""
    get = attributes.get
    num_nodes = vertices_of(get)
    arrays = {"num_nodes": np.int64(num_nodes)}
    with_edges(arrays, get, num_nodes)
    with_features(arrays, get("x"))
    with_labels(arrays, get("y"), num_nodes)
    with_masks(arrays, get, {name: name for name in ("train_mask", "val_mask", "test_mask")})
    with_others(arrays, {name: value for name, value in attributes.items()
                         if name not in ("x", "y", "adj_t", "edge_weight") and not name.startswith("_")})
    return arrays


def joined(graphs):
    """The attributes of many graphs side by side, and where those of each begin: what PyG's collate makes."""
    attributes, slices = {}, {}
    for i, graph in enumerate(graphs):
        odd = sorted(set(graph) ^ set(graphs[0]))
        if odd:
            raise Refused(f"the graphs do not have the same attributes: {odd[0]} is in one of graph 0 and graph {i} alone")
    for name in graphs[0]:
        parts = [graph[name] for graph in graphs]
        if any(sparse_rows(part) for part in parts):
            raise Refused(f"{name} of many graphs is sparse: use dense features, and edge_index in place of adj_t")
        parts = [np.atleast_1d(array(part)) for part in parts]
        if any(part.dtype.kind not in "biuf" for part in parts):
            attributes[name] = parts
            continue
        axis = -1 if "index" in name or name == "face" else 0
        if len({part.ndim for part in parts}) > 1:
            raise Refused(f"{name} has other dimensions in some of the graphs")
        attributes[name] = np.concatenate(parts, axis=axis)
        slices[name] = np.cumsum([0] + [part.shape[axis] for part in parts])
    if "num_nodes" in graphs[0]:
        attributes["_num_nodes"] = [int(graph["num_nodes"]) for graph in graphs]
    return attributes, slices


def vertices_of_each(attributes, slices, graphs):
    if "_num_nodes" in attributes:
        return np.asarray([int(count) for count in attributes["_num_nodes"]], dtype=np.int64)
    for name in ("x", "pos", "z", "batch"):
        if name in slices:
            return np.diff(array(slices[name]))
    begins, edges = array(slices["edge_index"]), array(attributes["edge_index"])
    return np.array([edges[:, begin:end].max() + 1 if end > begin else 0
                     for begin, end in zip(begins, begins[1:])], dtype=np.int64).reshape(graphs)


def with_graph_labels(arrays, y, num_graphs):
    """The classes of graphs; other numbers are kept under a name of their own."""
    y = array(y).reshape(num_graphs, -1)
    classes = y[:, 0]
    if y.shape[1] > 1 or np.isnan(classes).any() or not np.array_equal(classes, np.floor(classes)):
        arrays["graph_targets"] = y.astype(np.float32)
        notice("y of the graphs is no class for each of them: kept as graph_targets, numbers to predict")
        return
    values, numbers = np.unique(classes.astype(np.int64), return_inverse=True)
    arrays["graph_label"] = numbers.reshape(-1).astype(np.int64)
    if not np.array_equal(values, np.arange(len(values))):
        arrays.update(names_as_arrays("class_name", values))


def from_many(attributes, slices):
    """A union of graphs: attributes side by side, as PyG's InMemoryDataset keeps them."""
    if "edge_index" not in slices:
        raise Refused("the graphs have no edge_index")
    num_graphs = len(slices["edge_index"]) - 1
    counts = vertices_of_each(attributes, slices, num_graphs)
    edges = array(attributes["edge_index"]).astype(np.int64)
    of_edge = np.repeat(np.arange(num_graphs), np.diff(array(slices["edge_index"])))
    outside = ((edges < 0) | (edges >= counts[of_edge])).any(axis=0)
    if outside.any():
        graph = of_edge[outside.argmax()]
        raise Refused(f"an edge of graph {graph} leads to a vertex that is none of its {counts[graph]}")
    num_nodes = int(counts.sum())
    arrays = {"edge_index": edges + (np.cumsum(counts) - counts)[of_edge], "num_nodes": np.int64(num_nodes),
              "graph_id": np.repeat(np.arange(num_graphs, dtype=np.int32), counts)}
    if attributes.get("edge_weight") is not None:
        arrays["edge_weight"] = array(attributes["edge_weight"]).astype(np.float32)
    with_features(arrays, attributes.get("x"))
    if attributes.get("y") is not None:
        rows = np.diff(array(slices["y"])) if "y" in slices else None
        if rows is not None and (rows == 1).all():
            with_graph_labels(arrays, attributes["y"], num_graphs)
        elif rows is not None and np.array_equal(rows, counts):
            with_labels(arrays, attributes["y"], num_nodes)
        else:
            raise Refused("y has neither a row for each graph nor one for each vertex")
    with_masks(arrays, attributes.get, {name: name for name in ("train_mask", "val_mask", "test_mask")})
    with_others(arrays, {name: value for name, value in attributes.items()
                         if name not in ("x", "y", "edge_weight", "batch", "ptr") and not name.startswith("_")})
    return arrays


def from_pyg(data):
    """A torch_geometric.data.Data, or a list of them, which becomes a union of graphs: edge_index (or adj_t),
    edge_weight, edge_attr, x, y and the masks. Other arrays are kept as they are."""
    if isinstance(data, (list, tuple)):
        return from_many(*joined([attributes(graph) for graph in data]))
    return from_graph(attributes(data))


def from_torch_file(path):
    """What torch.save wrote of such objects, and what PyG's InMemoryDataset keeps in `processed`: a file, or its folder."""
    from torch_files import opened
    found, slices = opened(path)
    if isinstance(found, list):
        return from_many(*joined(found))
    return from_many(found, slices) if slices else from_graph(found)


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
    """The public split of Cora, CiteSeer or PubMed from FOLDER/ind.NAME.*, also where these are in FOLDER/raw."""
    import os
    from planetoid_files import opened
    if not os.path.isfile(os.path.join(folder, f"ind.{name}.graph")):
        folder = os.path.join(folder, "raw")
    x, tx, allx, y, ty, ally, graph = (opened(folder, name, part) for part in ("x", "tx", "allx", "y", "ty", "ally", "graph"))
    test = np.loadtxt(os.path.join(folder, f"ind.{name}.test.index"), dtype=np.int64, ndmin=1)
    num_nodes = max(max(graph) + 1, int(test.max()) + 1)
    features = np.zeros((num_nodes, allx.shape[1]), dtype=np.float32)
    features[:allx.shape[0]] = allx
    features[test] = tx
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


def convert(kind, arguments):
    readers = {"planetoid": (from_planetoid, 2), "pyg": (from_torch_file, 1)}
    reader, inputs = readers.get(kind, (None, 0))
    if reader is None or len(arguments) != inputs + 1:
        print(f"to_npz.py: error: no such use: {' '.join([kind, *arguments]).strip() or '(no arguments)'}\n\n{__doc__.strip()}",
              file=sys.stderr)
        sys.exit(2)
    try:
        save(arguments[-1], reader(*arguments[:-1]))
    except (OSError, ValueError) as problem:  # Refused is one, and so is what NumPy says of odd shapes
        sys.exit(f"to_npz.py: error: {str(problem).splitlines()[0]}")


def main(arguments):
    if "-h" in arguments or "--help" in arguments:
        print(__doc__.strip())
    elif np is None:
        sys.exit("to_npz.py: error: NumPy is missing: pip install numpy")
    else:
        convert(arguments[0] if arguments else "", arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
