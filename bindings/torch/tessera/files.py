# SPDX-License-Identifier: Apache-2.0
"""Data sets and models in tessera's files: what the program writes opens here, and the other way."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch

from . import container
from .trained_model import TrainedModel


def load(path: str | os.PathLike[str]) -> Any:
    """Opens a ``.tsr`` file: a data set as PyG's ``Data``, a checkpoint as a :class:`TrainedModel`.

    Example:
        >>> import torch, tessera, tempfile, os
        >>> from torch_geometric.data import Data
        >>> path = os.path.join(tempfile.mkdtemp(), "small.tsr")
        >>> tessera.save(Data(edge_index=torch.tensor([[0, 1], [1, 2]]), num_nodes=3), path)
        >>> tessera.load(path)
        Data(edge_index=[2, 2], num_nodes=3)
    """
    arrays = container.read(path)
    if "checkpoint" in arrays:
        return _trained_model(arrays, path)
    if "row_offsets" not in arrays or "col_indices" not in arrays:
        raise ValueError(f"{path}: neither a data set nor a checkpoint")
    return _data(arrays)


def save(what: Any, path: str | os.PathLike[str]) -> None:
    """Writes PyG's ``Data`` as a data set, or a :class:`TrainedModel` as a checkpoint, which
    ``tessera predict`` takes.

    Example:
        >>> import torch, tessera, tempfile, os
        >>> model = tessera.TrainedModel.of("gcn", features=4, hidden=8, outputs=2)
        >>> tessera.save(model, os.path.join(tempfile.mkdtemp(), "model.tsr"))
    """
    if isinstance(what, TrainedModel):
        container.write(path, _arrays_of_model(what))
    elif hasattr(what, "edge_index"):
        container.write(path, _arrays_of(what))
    else:
        raise TypeError(f"{type(what).__name__}: save takes PyG's Data or a tessera.TrainedModel")


# ---- data sets -------------------------------------------------------------------------------------


def _data(arrays: dict[str, np.ndarray]) -> Any:
    from torch_geometric.data import Data

    offsets = torch.from_numpy(arrays["row_offsets"].copy())
    sources = torch.from_numpy(arrays["col_indices"].astype(np.int64))
    targets = torch.repeat_interleave(offsets.diff())
    vertices = max(offsets.numel() - 1, int(arrays["num_cols"].reshape(-1)[0]))
    data = Data(edge_index=torch.stack([sources, targets]), num_nodes=vertices)
    if "value" in arrays:
        data.edge_weight = torch.from_numpy(arrays["value"].copy())
    if "edge_attr" in arrays:
        data.edge_attr = torch.from_numpy(arrays["edge_attr"].copy())
    if "x" in arrays:
        data.x = torch.from_numpy(arrays["x"].copy())
    elif "x_indptr" in arrays:
        width = int(arrays["x_dim"].reshape(-1)[0])
        data.x = torch.sparse_csr_tensor(
            arrays["x_indptr"].copy(), arrays["x_indices"].astype(np.int64), arrays["x_data"].copy(),
            (vertices, width)).to_dense()
    if "y" in arrays:
        data.y = torch.from_numpy(arrays["y"].copy())
    elif "targets" in arrays:  # numbers to predict
        numbers = torch.from_numpy(arrays["targets"].copy())
        data.y = numbers.squeeze(1) if numbers.size(1) == 1 else numbers
    for part in ("train", "val", "test"):
        if f"{part}_idx" in arrays:
            mask = torch.zeros(vertices, dtype=torch.bool)
            mask[torch.from_numpy(arrays[f"{part}_idx"].copy())] = True
            data[f"{part}_mask"] = mask
        elif f"{part}_mask" in arrays:  # of several splits, a column each
            data[f"{part}_mask"] = torch.from_numpy(arrays[f"{part}_mask"].copy()).bool()
    return data


def _rows(data: Any, name: str, rows: int, of: str, dimensions: tuple[int, ...]) -> torch.Tensor | None:
    """What the data set has by this name, a row for each vertex or edge; what a file cannot hold is an error, and never
    left out."""
    tensor = getattr(data, name, None)
    if tensor is None:
        return None
    tensor = torch.as_tensor(tensor).detach().cpu()
    if tensor.layout != torch.strided:
        tensor = tensor.to_dense()
    if tensor.dim() not in dimensions or tensor.size(0) != rows:
        raise ValueError(f"data.{name} has shape {tuple(tensor.shape)}: the file holds "
                         f"{'a number' if dimensions == (1,) else 'numbers'} for each of {rows} {of}")
    return tensor


def _labels(data: Any, vertices: int) -> dict[str, np.ndarray]:
    """Classes, or zeros and ones for each of several; numbers with fractions are to be predicted."""
    labels = _rows(data, "y", vertices, "vertices", (1, 2))
    if labels is None:
        return {}
    whole = labels.nan_to_num(-1.0) if labels.is_floating_point() else labels
    several = labels.dim() == 2 and labels.size(1) != 1
    if labels.is_floating_point() and not torch.equal(whole, whole.round()):
        return {"targets": labels.float().reshape(vertices, -1).numpy()}
    if several:
        return {"y": labels.float().numpy()}
    return {"y": whole.reshape(-1).long().numpy()}  # OGB has classes in a column, and none as what is not a number


def _mask(data: Any, part: str, vertices: int) -> torch.Tensor | None:
    """One truth value for each vertex; of several splits a column for each."""
    name = f"{part}_mask"
    mask = _rows(data, name, vertices, "vertices", (1, 2))
    if mask is None:
        return None
    if mask.dtype not in (torch.bool, torch.uint8):
        raise TypeError(f"data.{name} has type {mask.dtype}: use torch.bool, true for the vertices of the split")
    if mask.dim() == 2 and mask.size(1) == vertices > 1:
        raise ValueError(f"data.{name} is {vertices} x {vertices}: nothing tells its rows from its columns, so leave out a split")
    return mask.view(-1).bool() if mask.dim() == 2 and mask.size(1) == 1 else mask.bool()


def _split(data: Any, vertices: int) -> dict[str, np.ndarray]:
    """Lists of vertices; of several splits masks."""
    masks = {part: _mask(data, part, vertices) for part in ("train", "val", "test")}
    given = {part: mask for part, mask in masks.items() if mask is not None}
    if any(mask.dim() == 2 for mask in given.values()):
        return {f"{part}_mask": mask.numpy() for part, mask in given.items()}
    return {f"{part}_idx": mask.nonzero().view(-1).numpy().astype(np.int64) for part, mask in given.items()}


def _arrays_of(data: Any) -> dict[str, np.ndarray]:
    if data.edge_index is None:
        raise ValueError("the data has no edge_index: the file is made of one, and not of data.adj_t")
    vertices = int(data.num_nodes)
    sources, targets = torch.as_tensor(data.edge_index).cpu().to(torch.int64)
    if sources.numel() > 0:
        least, largest = (int(end) for end in torch.aminmax(torch.stack([sources, targets])))
        if least < 0 or largest >= vertices:
            raise IndexError(f"edge_index: index {least if least < 0 else largest} is outside [0, {vertices})")
    order = torch.argsort(targets * vertices + sources, stable=True)
    key = (targets * vertices + sources)[order]
    if bool((key[1:] == key[:-1]).any()):
        raise ValueError("the file holds each edge once: use torch_geometric.utils.coalesce first")
    counts = torch.bincount(targets, minlength=vertices)
    offsets = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
    arrays: dict[str, np.ndarray] = {
        "name": container.from_text(str(getattr(data, "name", None) or "data")),
        "edges_stored": np.array(-1, np.int64),
        "num_cols": np.array(vertices, np.int64),
        "row_offsets": offsets.numpy().astype(np.int64),
        "col_indices": sources[order].numpy().astype(np.int32),
    }
    attr = _rows(data, "edge_attr", sources.numel(), "edges", (1, 2))
    if attr is not None:
        attr = attr.float().view(-1, 1) if attr.dim() == 1 else attr.float()
        if not bool(attr.isfinite().all()):
            raise ValueError("data.edge_attr holds numbers that are not finite")
        arrays["edge_attr"] = attr[order].numpy()
    weight = _rows(data, "edge_weight", sources.numel(), "edges", (1,))
    if weight is not None:
        arrays["value"] = weight.float()[order].numpy()
    features = _rows(data, "x", vertices, "vertices", (2,))
    if features is not None:
        arrays["x"] = features.float().numpy()
    return arrays | _labels(data, vertices) | _split(data, vertices)


# ---- models ----------------------------------------------------------------------------------------

# What a checkpoint knows of the data it was trained on, kept as it is.
_INPUT_ARRAYS = ("class_names", "class_name_ends", "feature_names", "feature_name_ends",
                 "category_prefixes", "feature_fills", "target_names", "target_name_ends",
                 "edge_feature_names", "edge_feature_name_ends", "edge_category_prefixes", "edge_feature_fills")


def _all_settings(model: TrainedModel) -> dict[str, Any]:
    """With those of a training of one epoch: the program looks at them, too."""
    settings: dict[str, Any] = {f"model.{name}": value for name, value in model.settings.items()}
    settings |= {"training.epochs": 1, "training.evaluate_every": 1, "training.runs": 1}
    settings |= {f"data.{name}": 1 for name in ("vertices", "edges", "training_items")}
    return settings | {"data.features": model.features, "data.outputs": model.outputs}


def _place(name: str) -> tuple[bool, int]:
    """The program has layer after layer, each with its norm, and running statistics at the end."""
    parts = name.split(".")
    layer = int(parts[1]) if parts[0] in ("convs", "norms") else 0
    return "running_" in name, layer


def _stored_weights(model: TrainedModel) -> dict[str, np.ndarray]:
    """Matrices as they are, all else as a row; torch's count of batches is not the program's."""
    state = model.state_dict()
    weights = {}
    for name in sorted(state, key=_place):
        if name.endswith("num_batches_tracked"):
            continue
        tensor = state[name]
        value = tensor.detach().cpu().float().numpy()
        weights[name] = value if value.ndim == 2 else value.reshape(1, -1)
    return weights


def _arrays_of_model(model: TrainedModel) -> dict[str, np.ndarray]:
    progress = {"version": 2, "features": model.features, "outputs": model.outputs,
                "graph_task": 0, "multi_label": 0, "row_normalised": int(model.row_normalised),
                "metric": "accuracy" if model.target_scale is None else "rmse", "runs": 1, "run.0.epochs": 1, "run.0.steps": 1, **model.graph_form}
    arrays = {
        "checkpoint": container.from_text(_lines(progress)),
        "settings": container.from_text(_lines(_all_settings(model))),
        "class_values": model.class_values,
        "plans": container.from_text(""),
    }
    arrays |= model.input_arrays
    if model.standard is not None:
        arrays["feature_means"], arrays["feature_factors"] = model.standard
    if model.settings["kind"] == "gine":
        kind = "standard" if model.edge_standard is not None else "rows" if model.edge_row_normalised else "off"
        arrays["edge_normalise"] = container.from_text(kind)
    if model.edge_standard is not None:
        arrays["edge_feature_means"], arrays["edge_feature_factors"] = model.edge_standard
    if model.target_scale is not None:
        arrays["target_means"], arrays["target_deviations"] = model.target_scale
    weights = _stored_weights(model)
    trained = sorted((name for name, _ in model.named_parameters()), key=_place)
    # Best weights belong to a run: one of a single epoch, of which nothing is known.
    arrays["curve:0"] = np.zeros(5)
    arrays |= {f"model:0:{name}": value for name, value in weights.items()}
    for moment in ("first", "second"):
        arrays |= {f"moments:0:{moment}.{name}": np.zeros_like(weights[name]) for name in trained}
    arrays |= {f"weights:{name}": value for name, value in weights.items()}
    return arrays


def _lines(values: dict[str, Any]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in values.items())


def _settings(array: np.ndarray) -> dict[str, str]:
    pairs = (line.partition(" = ") for line in container.text(array).splitlines() if line)
    return {name: value for name, _, value in pairs}


def _pair(arrays: dict[str, np.ndarray], first: str, second: str) -> tuple[np.ndarray, np.ndarray] | None:
    return (arrays[first].copy(), arrays[second].copy()) if first in arrays else None


def _trained_model(arrays: dict[str, np.ndarray], path: Any) -> TrainedModel:
    progress = _settings(arrays["checkpoint"])
    if progress.get("version") != "2":
        raise ValueError(f"{path}: a checkpoint of version {progress.get('version')}")
    if "decoder" in progress:
        raise NotImplementedError(f"{path}: models of links do not open in Python yet")
    if progress.get("graph_task") == "1":
        raise NotImplementedError(f"{path}: models of whole graphs do not open in Python yet")
    settings = {name.removeprefix("model."): value
                for name, value in _settings(arrays["settings"]).items() if name.startswith("model.")}
    model = TrainedModel(settings, int(progress["features"]), int(progress["outputs"]),
                         progress["row_normalised"] == "1",
                         _pair(arrays, "feature_means", "feature_factors"))
    model.class_values = arrays["class_values"]
    model.target_scale = _pair(arrays, "target_means", "target_deviations")
    if "edge_normalise" in arrays:
        model.edge_row_normalised = container.text(arrays["edge_normalise"]) == "rows"
        model.edge_standard = _pair(arrays, "edge_feature_means", "edge_feature_factors")
    model.graph_form = {name: value for name, value in progress.items() if name.startswith("graph.")}
    model.input_arrays = {name: arrays[name] for name in _INPUT_ARRAYS if name in arrays}
    stored = {name.removeprefix("weights:"): torch.from_numpy(array.copy())
              for name, array in arrays.items() if name.startswith("weights:")}
    own = {name: tensor for name, tensor in model.state_dict().items()
           if not name.endswith("num_batches_tracked")}
    if set(own) != set(stored):
        missing = sorted(set(own) ^ set(stored))
        raise ValueError(f"{path}: parameters that do not belong together: {', '.join(missing[:4])}")
    model.load_state_dict({name: stored[name].view(own[name].shape) for name in own}, strict=False)
    return model.eval()
