# SPDX-License-Identifier: Apache-2.0
"""Opens what torch.save wrote of PyG's graphs, for to_npz.py.

A file of PyTorch's is a pickle, and a pickle may run any code. So nothing is opened but tensors, plain containers and
the classes listed here, and in place of PyG's classes stand ones that only keep what they are given: no code of the
file runs, and PyG need not be installed.
"""
import collections
import os
import pickle
import re

# Sparse matrices of PyTorch's are opened since this version with a list of classes by name.
OLDEST_TORCH = "2.6"


class Refused(ValueError):
    """What is not read, in one sentence."""


class Kept:
    """Keeps the attributes of an object."""

    def __setstate__(self, state):
        self.__dict__.update(state)


class Data(Kept):
    """One graph."""


class HeteroData(Kept):
    """A graph with vertices or edges of several kinds."""


class TemporalData(Kept):
    """Events in time."""


# Where PyG has been imported, its own classes may stand in their place: only names tell what an object is.
GRAPHS = ("Data", "HeteroData", "TemporalData")
STAND_INS = {
    "torch_geometric.data.data.Data": Data,
    "torch_geometric.data.data.DataEdgeAttr": Kept,
    "torch_geometric.data.data.DataTensorAttr": Kept,
    "torch_geometric.data.hetero_data.HeteroData": HeteroData,
    "torch_geometric.data.temporal.TemporalData": TemporalData,
    "torch_geometric.data.storage.BaseStorage": Kept,
    "torch_geometric.data.storage.EdgeStorage": Kept,
    "torch_geometric.data.storage.GlobalStorage": Kept,
    "torch_geometric.data.storage.NodeStorage": Kept,
    "torch_geometric.data.feature_store.TensorAttr": Kept,
    "torch_geometric.data.graph_store.EdgeAttr": Kept,
    "torch_sparse.storage.SparseStorage": Kept,
    "torch_sparse.tensor.SparseTensor": Kept,
    "collections.defaultdict": collections.defaultdict,
    "builtins.dict": dict,
}


def file_in(folder):
    """The file with the data in a folder of PyG's, which may be the one above `processed`."""
    for place in (folder, os.path.join(folder, "processed")):
        names = sorted(os.listdir(place)) if os.path.isdir(place) else []
        found = [name for name in names if name.endswith(".pt") and not name.startswith("pre_")]
        if len(found) == 1:
            return os.path.join(place, found[0])
        if found:
            raise Refused(f"{place} holds {', '.join(found)}: name one of them")
    raise Refused(f"{folder} holds no .pt file, and its folder 'processed' neither")


def unpickled(path):
    try:
        import torch
    except ImportError:
        raise Refused("PyTorch is missing, which wrote the file: pip install torch") from None
    if not hasattr(torch.serialization, "safe_globals"):
        raise Refused(f"PyTorch {torch.__version__} is too old to open files safely: use {OLDEST_TORCH} or later")
    try:
        with torch.serialization.safe_globals([(stand_in, name) for name, stand_in in STAND_INS.items()]):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        unknown = re.search(r"GLOBAL ([\w.]+)", str(error))
        if not unknown:
            raise Refused(f"{path} is damaged, or not written by torch.save") from None
        raise Refused(f"{path} holds an object of {unknown.group(1)}, which is not opened, since it could run code: open "
                      "it in Python where you trust it, and convert the graph with from_pyg") from None
    except (AttributeError, EOFError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise Refused(f"{path} is damaged: {(str(error) or type(error).__name__).splitlines()[0]}") from None


def attributes(graph):
    """The attributes of a graph by name; those of PyG 1 lie in the object itself."""
    if isinstance(graph, dict):
        return graph
    if type(graph).__name__ == "HeteroData":
        kinds = ", ".join(map(str, vars(graph).get("_node_store_dict", {})))
        raise Refused(f"vertices and edges of several kinds (HeteroData: {kinds}) are not read: use "
                      "data.to_homogeneous() in Python, and convert that")
    if type(graph).__name__ == "TemporalData":
        raise Refused("events in time (TemporalData) are not read: make a Data of their src and dst in Python")
    store = vars(graph).get("_store")
    if store is None:
        return {name: value for name, value in vars(graph).items() if not name.startswith("_")}
    mapping = dict(vars(store)["_mapping"])
    if "_num_nodes" in vars(store):
        mapping["_num_nodes"] = vars(store)["_num_nodes"]
    return mapping


def is_graph(value):
    return type(value).__name__ in GRAPHS or isinstance(value, dict) and ("edge_index" in value or "adj_t" in value)


def opened(path):
    """What the file holds: (a graph, None), (many graphs side by side, where each begins), or (a list of graphs,
    None); a graph is a dictionary of its attributes."""
    if os.path.isdir(path):
        path = file_in(path)
    found = unpickled(path)
    if is_graph(found):
        return attributes(found), None
    # What InMemoryDataset.save writes: the graph or its attributes, slices, and perhaps sizes and a class.
    if isinstance(found, tuple) and len(found) > 1 and (found[1] is None or isinstance(found[1], dict)):
        if is_graph(found[0]):
            return attributes(found[0]), found[1]
        if isinstance(found[0], dict) and any(isinstance(value, dict) for value in found[0].values()):
            raise Refused("vertices and edges of several kinds (HeteroData) are not read: use data.to_homogeneous() in "
                          "Python, and convert that")
    if isinstance(found, (list, tuple)) and found and all(map(is_graph, found)):
        return (attributes(found[0]), None) if len(found) == 1 else ([attributes(graph) for graph in found], None)
    raise Refused(f"{path} holds no graph of PyG's, but {described(found)}")


def described(value):
    if isinstance(value, dict):
        return f"a dictionary without edge_index ({', '.join(map(str, list(value)[:4]))})" if value else "an empty dictionary"
    if isinstance(value, (list, tuple)) and value:
        return f"a {type(value).__name__} of {type(value[0]).__name__}"
    return f"a {type(value).__name__}"
