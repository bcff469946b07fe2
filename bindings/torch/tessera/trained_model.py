# SPDX-License-Identifier: Apache-2.0
"""Models of the program ``tessera`` as modules of torch, made of PyG's layers on our kernels."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from . import nn

_DEFAULTS = {
    "kind": "gcn", "layers": "2", "hidden": "16", "heads": "1", "output_heads": "1",
    "input_dropout": "0", "dropout": "0", "head_dropout": "0", "attention_dropout": "0",
    "negative_slope": "0.2", "share_weights": "false", "aggregation": "mean", "hops": "2",
    "train_eps": "false", "fix_first_beta": "false", "activation": "relu", "batch_norm": "false",
    "residual": "false", "readout": "none", "precomputed": "false",
    "decay_first_layer_only": "false", "edge_features": "0",
}  # fmt: skip

_ACTIVATIONS = {"relu": F.relu, "elu": F.elu, "leaky_relu": F.leaky_relu, "none": lambda x: x}


def _normalised(x: Tensor, rows: bool, standard: tuple[np.ndarray, np.ndarray] | None) -> Tensor:
    if rows:
        sums = x.abs().sum(dim=1, keepdim=True)
        x = x / torch.where(sums > 0, sums, 1)
    if standard is not None:
        means, factors = (torch.from_numpy(part).to(x.device) for part in standard)
        x = ((x.double() - means) * factors).to(x.dtype)
    return x


class TrainedModel(torch.nn.Module):
    """A model of the program ``tessera``: PyG's layers and names of parameters, on our kernels.

    Made by :func:`tessera.load` of a checkpoint, or by :meth:`of`. It can be trained further, and
    saved for ``tessera predict``. Every kind of model that the program has, for vertices; models
    that classify whole graphs, and those of few bits, stay with the program.

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
        # Means and deviations that bring outputs to the units of the numbers they predict.
        self.target_scale: tuple[np.ndarray, np.ndarray] | None = None
        # The same of features of edges, in a model that reads them ("gine").
        self.edge_row_normalised = False
        self.edge_standard: tuple[np.ndarray, np.ndarray] | None = None
        self.class_values = np.zeros(0, np.int64)
        # What training called features and classes, and what its data was like, as the checkpoint has it.
        self.input_arrays: dict[str, np.ndarray] = {}
        self.graph_form: dict[str, str] = {}
        if self.settings["readout"] != "none":
            raise NotImplementedError("models of whole graphs do not open in Python yet")
        if self.settings.get("bits", "all") != "all":
            raise NotImplementedError("models of few bits do not open in Python yet")
        if self.settings["kind"] == "agnn":
            self._add_propagations()
            return
        self.convs = torch.nn.ModuleList(self._layer(i) for i in range(self.num_layers))
        if self._is("batch_norm"):
            self.norms = torch.nn.ModuleList(
                torch.nn.BatchNorm1d(self._width) for _ in range(self.num_layers - 1))

    @classmethod
    def of(cls, kind: str, features: int, hidden: int, outputs: int, **settings: Any) -> TrainedModel:
        """A new model; ``settings`` are those of ``tessera train``: layers, heads, aggregation …"""
        texts = {name: str(value).lower() for name, value in settings.items()}
        return cls({"kind": kind, "hidden": str(hidden), **texts}, features, outputs)

    @property
    def feature_names(self) -> list[str]:
        """What training called the features, in the order of ``x``; empty: they had no names.

        Categories of a column are one feature each: ``colour=red``.
        """
        return self._names("feature_names", "feature_name_ends")

    @property
    def edge_feature_names(self) -> list[str]:
        """The same of the features of edges, in the order of ``edge_attr``."""
        return self._names("edge_feature_names", "edge_feature_name_ends")

    @property
    def class_names(self) -> list[str]:
        """What training called the classes; empty: they had no names but their numbers."""
        return self._names("class_names", "class_name_ends")

    @property
    def target_names(self) -> list[str]:
        """What training called the numbers that the model predicts, in the order of its outputs;
        empty: it predicts classes, or they had no names."""
        return self._names("target_names", "target_name_ends")

    def _names(self, texts: str, ends: str) -> list[str]:
        if texts not in self.input_arrays:
            return []
        text, places = self.input_arrays[texts].tobytes(), self.input_arrays[ends].tolist()
        return [text[begin:end].decode(errors="replace") for begin, end in zip([0, *places], places)]

    @property
    def num_layers(self) -> int:
        return 1 if self.settings["kind"] == "sgc" else int(self.settings["layers"])

    def _is(self, name: str) -> bool:
        return self.settings[name] == "true"

    @property
    def _width(self) -> int:
        """Of what hidden layers put out."""
        hidden, heads = int(self.settings["hidden"]), int(self.settings["heads"])
        return hidden * heads if self.settings["kind"] in ("gat", "gatv2") else hidden

    def _add_propagations(self) -> None:
        """AGNN: propagations by attention, between two linear layers."""
        self.lin1 = torch.nn.Linear(self.features, self._width)
        for i in range(self.num_layers):
            fixed = i == 0 and self._is("fix_first_beta")
            self.add_module(f"prop{i + 1}", nn.AGNNConv(requires_grad=not fixed))
        self.lin2 = torch.nn.Linear(self._width, self.outputs)

    def _layer(self, i: int) -> torch.nn.Module:
        s, kind = self.settings, self.settings["kind"]
        last = i == self.num_layers - 1
        width = self.features if i == 0 else self._width
        hidden = int(s["hidden"])
        out = self.outputs if last else hidden
        if kind in ("gat", "gatv2"):
            layer = nn.GATConv if kind == "gat" else nn.GATv2Conv
            options: dict[str, Any] = {"negative_slope": float(s["negative_slope"]),
                                       "dropout": float(s["attention_dropout"])}
            if kind == "gatv2":
                options["share_weights"] = self._is("share_weights")
            heads = int(s["output_heads" if last else "heads"])
            return layer(width, out, heads=heads, concat=not last, **options)
        if kind in ("gin", "gine"):
            mlp = torch.nn.Sequential(torch.nn.Linear(width, hidden), torch.nn.BatchNorm1d(hidden),
                                      torch.nn.ReLU(), torch.nn.Linear(hidden, out))
            if kind == "gine":
                return nn.GINEConv(mlp, train_eps=self._is("train_eps"), edge_dim=int(s["edge_features"]))
            return nn.GINConv(mlp, train_eps=self._is("train_eps"))
        if kind == "gcn":
            return nn.GCNConv(width, out)
        if kind == "sage":
            return nn.SAGEConv(width, out, aggr=s["aggregation"])
        if kind == "cheb":
            return nn.ChebConv(width, out, K=int(s["hops"]))
        if kind == "sgc":
            return nn.SGConv(width, out, K=int(s["hops"]))
        raise NotImplementedError(f"models of kind '{kind}' do not open in Python yet")

    def _prepared(self, x: Tensor) -> Tensor:
        """Features as training saw them."""
        x = _normalised(x, self.row_normalised, self.standard)
        return F.dropout(x, float(self.settings["input_dropout"]), self.training)

    def _dropped(self, x: Tensor) -> Tensor:
        return F.dropout(x, float(self.settings["dropout"]), self.training)

    def _in_units(self, out: Tensor) -> Tensor:
        if self.target_scale is None:
            return out
        means, deviations = (torch.from_numpy(part).to(out.device) for part in self.target_scale)
        return (out.double() * deviations + means).to(out.dtype)

    def forward(self, x: Tensor, edge_index: Any, edge_attr: Tensor | None = None) -> Tensor:
        """A row for each vertex: of classes their logits, of numbers these in their units.

        ``edge_attr`` are the features of the edges, for a model that reads them.
        """
        return self._in_units(self._outputs(x, edge_index, edge_attr))

    def _edges(self, edge_attr: Tensor | None) -> tuple[Tensor, ...]:
        """What layers take beside the graph."""
        if self.settings["kind"] != "gine":
            return ()
        if edge_attr is None:
            raise ValueError("this model reads features of edges: give them as edge_attr")
        return (_normalised(edge_attr, self.edge_row_normalised, self.edge_standard),)

    def _outputs(self, x: Tensor, edge_index: Any, edge_attr: Tensor | None) -> Tensor:
        x, edges = self._prepared(x), self._edges(edge_attr)
        activate = _ACTIVATIONS[self.settings["activation"]]
        if self.settings["kind"] == "agnn":
            x = activate(self.lin1(x))
            for i in range(self.num_layers):
                x = self.get_submodule(f"prop{i + 1}")(x, edge_index)
            return self.lin2(self._dropped(x))
        for i, layer in enumerate(self.convs[:-1]):
            before = x
            x = layer(x, edge_index, *edges)
            if self._is("batch_norm"):
                x = self.norms[i](x)
            x = activate(x)
            if self._is("residual") and before.size(1) == x.size(1):
                x = before + x
            x = self._dropped(x)
        return self.convs[-1](x, edge_index, *edges)
