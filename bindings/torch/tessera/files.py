# SPDX-License-Identifier: Apache-2.0
"""Data sets and models in tessera's files: what the program writes opens here, and the other way."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from . import container, nn


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
        container.write(path, what._arrays())
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
    if "x" in arrays:
        data.x = torch.from_numpy(arrays["x"].copy())
    elif "x_indptr" in arrays:
        width = int(arrays["x_dim"].reshape(-1)[0])
        data.x = torch.sparse_csr_tensor(
            arrays["x_indptr"].copy(), arrays["x_indices"].astype(np.int64), arrays["x_data"].copy(),
            (vertices, width)).to_dense()
    if "y" in arrays:
        data.y = torch.from_numpy(arrays["y"].copy())
    for part in ("train", "val", "test"):
        if f"{part}_idx" in arrays:
            mask = torch.zeros(vertices, dtype=torch.bool)
            mask[torch.from_numpy(arrays[f"{part}_idx"].copy())] = True
            data[f"{part}_mask"] = mask
    return data


def _arrays_of(data: Any) -> dict[str, np.ndarray]:
    vertices = int(data.num_nodes)
    sources, targets = data.edge_index.cpu().to(torch.int64)
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
    weight = getattr(data, "edge_weight", None)
    if weight is not None:
        arrays["value"] = weight.detach().cpu().float()[order].numpy()
    if getattr(data, "x", None) is not None:
        arrays["x"] = data.x.detach().cpu().float().numpy()
    labels = getattr(data, "y", None)
    if labels is not None:
        labels = labels.detach().cpu()
        arrays["y"] = (labels.float() if labels.dim() == 2 else labels.long()).numpy()
    for part in ("train", "val", "test"):
        mask = getattr(data, f"{part}_mask", None)
        if mask is not None and mask.dim() == 1:
            arrays[f"{part}_idx"] = mask.cpu().nonzero().view(-1).numpy().astype(np.int64)
    return arrays


# ---- models ----------------------------------------------------------------------------------------

_DEFAULTS = {
    "kind": "gcn", "layers": "2", "hidden": "16", "heads": "1", "output_heads": "1",
    "input_dropout": "0", "dropout": "0", "head_dropout": "0", "attention_dropout": "0",
    "negative_slope": "0.2", "share_weights": "false", "aggregation": "mean", "hops": "2",
    "train_eps": "false", "fix_first_beta": "false", "activation": "relu", "batch_norm": "false",
    "residual": "false", "readout": "none", "precomputed": "false",
    "decay_first_layer_only": "false",
}  # fmt: skip


class TrainedModel(torch.nn.Module):
    """A model of the program ``tessera``: PyG's layers and names of parameters, on our kernels.

    Made by :func:`tessera.load` of a checkpoint, or by :meth:`of`. It can be trained further, and
    saved for ``tessera predict``. Layers of GCN, SAGE, GAT, GATv2, SGC and ChebNet.

    Example:
        >>> import torch, tessera
        >>> model = tessera.TrainedModel.of("gat", features=4, hidden=8, outputs=3, heads=2)
        >>> model(torch.ones(3, 4), torch.tensor([[0, 1, 2], [1, 2, 0]])).shape
        torch.Size([3, 3])
    """

    def __init__(self, settings: dict[str, str], features: int, outputs: int,
                 row_normalised: bool = False,
                 standard: tuple[np.ndarray, np.ndarray] | None = None) -> None:
        super().__init__()
        self.settings = {**_DEFAULTS, **settings}
        self.features, self.outputs = features, outputs
        self.row_normalised = row_normalised
        # Means and factors of features that training brought to mean 0 and deviation 1.
        self.standard = standard
        self.class_values = np.zeros(0, np.int64)
        for name, reason in (("batch_norm", "batch norm"), ("residual", "residual connections")):
            if self.settings[name] == "true":
                raise NotImplementedError(f"models with {reason} do not open in Python yet")
        if self.settings["readout"] != "none":
            raise NotImplementedError("models of whole graphs do not open in Python yet")
        self.convs = torch.nn.ModuleList(self._layer(i) for i in range(self.num_layers))

    @classmethod
    def of(cls, kind: str, features: int, hidden: int, outputs: int, **settings: Any) -> TrainedModel:
        """A new model; ``settings`` are those of ``tessera train``: layers, heads, aggregation …"""
        texts = {name: str(value).lower() for name, value in settings.items()}
        return cls({"kind": kind, "hidden": str(hidden), **texts}, features, outputs)

    @property
    def num_layers(self) -> int:
        return 1 if self.settings["kind"] == "sgc" else int(self.settings["layers"])

    def _layer(self, i: int) -> torch.nn.Module:
        s, kind = self.settings, self.settings["kind"]
        last = i == self.num_layers - 1
        hidden, heads = int(s["hidden"]), int(s["heads"])
        if kind in ("gat", "gatv2"):
            layer = nn.GATConv if kind == "gat" else nn.GATv2Conv
            options: dict[str, Any] = {"negative_slope": float(s["negative_slope"]),
                                       "dropout": float(s["attention_dropout"])}
            if kind == "gatv2":
                options["share_weights"] = s["share_weights"] == "true"
            width = self.features if i == 0 else hidden * heads
            if last:
                return layer(width, self.outputs, heads=int(s["output_heads"]), concat=False, **options)
            return layer(width, hidden, heads=heads, **options)
        width = self.features if i == 0 else hidden
        out = self.outputs if last else hidden
        if kind == "gcn":
            return nn.GCNConv(width, out)
        if kind == "sage":
            return nn.SAGEConv(width, out, aggr=s["aggregation"])
        if kind == "cheb":
            return nn.ChebConv(width, out, K=int(s["hops"]))
        if kind == "sgc":
            return nn.SGConv(width, out, K=int(s["hops"]))
        raise NotImplementedError(f"models of kind '{kind}' do not open in Python yet")

    def forward(self, x: Tensor, edge_index: Any) -> Tensor:
        s = self.settings
        if self.row_normalised:
            sums = x.abs().sum(dim=1, keepdim=True)
            x = x / torch.where(sums > 0, sums, 1)
        if self.standard is not None:
            means, factors = (torch.from_numpy(part).to(x.device) for part in self.standard)
            x = ((x.double() - means) * factors).to(x.dtype)
        x = F.dropout(x, float(s["input_dropout"]), self.training)
        activate = {"relu": F.relu, "elu": F.elu, "leaky_relu": F.leaky_relu,
                    "none": lambda x: x}[s["activation"]]
        for layer in self.convs[:-1]:
            x = F.dropout(activate(layer(x, edge_index)), float(s["dropout"]), self.training)
        return self.convs[-1](x, edge_index)

    def _all_settings(self) -> dict[str, Any]:
        """With those of a training of one epoch: the program looks at them, too."""
        settings: dict[str, Any] = {f"model.{name}": value for name, value in self.settings.items()}
        settings |= {"training.epochs": 1, "training.evaluate_every": 1, "training.runs": 1}
        settings |= {f"data.{name}": 1 for name in ("vertices", "edges", "training_items")}
        return settings | {"data.features": self.features, "data.outputs": self.outputs}

    def _arrays(self) -> dict[str, np.ndarray]:
        progress = {"version": 2, "features": self.features, "outputs": self.outputs,
                    "graph_task": 0, "multi_label": 0, "row_normalised": int(self.row_normalised),
                    "metric": "accuracy", "runs": 1,
                    "run.0.epochs": 1, "run.0.steps": 1}
        arrays = {
            "checkpoint": container.from_text(_lines(progress)),
            "settings": container.from_text(_lines(self._all_settings())),
            "class_values": self.class_values,
            "plans": container.from_text(""),
        }
        if self.standard is not None:
            arrays["feature_means"], arrays["feature_factors"] = self.standard
        weights = {}
        for name, tensor in self.state_dict().items():
            value = tensor.detach().cpu().float().numpy()
            weights[name] = value if name.endswith("weight") else value.reshape(1, -1)
        # Best weights belong to a run: one of a single epoch, of which nothing is known.
        arrays["curve:0"] = np.zeros(5)
        arrays |= {f"model:0:{name}": value for name, value in weights.items()}
        for moment in ("first", "second"):
            arrays |= {f"moments:0:{moment}.{name}": np.zeros_like(value)
                       for name, value in weights.items()}
        arrays |= {f"weights:{name}": value for name, value in weights.items()}
        return arrays


def _lines(values: dict[str, Any]) -> str:
    return "".join(f"{name} = {value}\n" for name, value in values.items())


def _settings(array: np.ndarray) -> dict[str, str]:
    pairs = (line.partition(" = ") for line in container.text(array).splitlines() if line)
    return {name: value for name, _, value in pairs}


def _standard(arrays: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    if "feature_means" not in arrays:
        return None
    return arrays["feature_means"].copy(), arrays["feature_factors"].copy()


def _trained_model(arrays: dict[str, np.ndarray], path: Any) -> TrainedModel:
    progress = _settings(arrays["checkpoint"])
    if progress.get("version") != "2":
        raise ValueError(f"{path}: a checkpoint of version {progress.get('version')}")
    if progress.get("graph_task") == "1":
        raise NotImplementedError(f"{path}: models of whole graphs do not open in Python yet")
    settings = {name.removeprefix("model."): value
                for name, value in _settings(arrays["settings"]).items() if name.startswith("model.")}
    model = TrainedModel(settings, int(progress["features"]), int(progress["outputs"]),
                         progress["row_normalised"] == "1", _standard(arrays))
    model.class_values = arrays["class_values"]
    stored = {name.removeprefix("weights:"): torch.from_numpy(array.copy())
              for name, array in arrays.items() if name.startswith("weights:")}
    own = model.state_dict()
    if set(own) != set(stored):
        missing = sorted(set(own) ^ set(stored))
        raise ValueError(f"{path}: parameters that do not belong together: {', '.join(missing[:4])}")
    model.load_state_dict({name: stored[name].view(own[name].shape) for name in own})
    return model.eval()
