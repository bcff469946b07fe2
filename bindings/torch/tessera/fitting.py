# SPDX-License-Identifier: Apache-2.0
"""Training of a model for vertices without a loop."""

from __future__ import annotations

import copy
import inspect
from dataclasses import dataclass
from typing import Any, Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from .captured_step import capture
from .errors import CannotBeCaptured
from .models import accelerate

_PARTS = ("train", "val", "test")
_ASKED_EVERY = 16  # epochs; asking whether training is over waits for a GPU


@dataclass(frozen=True)
class Fit:
    """What :func:`tessera.fit` did. Accuracies are those of the weights that the model was left with."""

    epochs: int  #: that were run, to where training stopped
    best_epoch: int  #: whose weights the model has, from 1 on
    losses: list[float]  #: of training, in each epoch
    accuracies: dict[str, float]  #: of ``train``, and of ``val`` and ``test`` where there are masks
    captured: bool  #: whether epochs were replays
    why_not: str | None = None  #: what cannot be captured

    def __str__(self) -> str:
        found = ", ".join(f"{part} {100 * accuracy:.1f} %" for part, accuracy in self.accuracies.items())
        return f"{self.epochs} epochs, weights of epoch {self.best_epoch}: {found}"


def _mask(data: Any, part: str, split: int | None) -> Tensor | None:
    mask = getattr(data, f"{part}_mask", None)
    if mask is None:
        return None
    if mask.dtype != torch.bool or mask.size(0) != data.y.size(0):
        raise ValueError(f"data.{part}_mask has type {mask.dtype} and shape {tuple(mask.shape)}: use torch.bool, one for each vertex")
    if mask.dim() == 2:
        if split is None or not 0 <= split < mask.size(1):
            raise ValueError(f"data.{part}_mask holds {mask.size(1)} splits: give split=0 to {mask.size(1) - 1}")
        mask = mask[:, split]
    if not bool(mask.any()):
        raise ValueError(f"data.{part}_mask names no vertices")
    return mask


def _masks(data: Any, split: int | None) -> dict[str, Tensor]:
    for name in ("x", "y"):
        if getattr(data, name, None) is None:
            raise ValueError(f"the {type(data).__name__} has no {name}: fit trains on data.x, data.y and data.train_mask")
    if data.y.dim() != 1 or data.y.dtype != torch.int64:
        raise ValueError(f"data.y has type {data.y.dtype} and shape {tuple(data.y.shape)}: use torch.int64, a class for each vertex")
    found = {part: mask for part in _PARTS if (mask := _mask(data, part, split)) is not None}
    if "train" not in found:
        raise ValueError(f"the {type(data).__name__} has no train_mask: name the vertices to train on")
    return found


def _edges(data: Any) -> Any:
    edges = getattr(data, "adj_t", None)
    edges = getattr(data, "edge_index", None) if edges is None else edges
    if edges is None:
        raise ValueError(f"the {type(data).__name__} has neither edge_index nor adj_t")
    return edges


class _Run:
    """One training from the start, whose every epoch leaves all that it finds on the device."""

    def __init__(self, model: torch.nn.Module, call: Callable[[], Tensor], labels: Tensor, masks: dict[str, Tensor],
                 epochs: int, patience: int | None) -> None:
        device = labels.device
        self.call, self.labels, self.masks = call, labels, masks
        self.wanted = labels.masked_fill(~masks["train"], -100)  # of which a loss knows nothing
        self.counts = {part: mask.sum() for part, mask in masks.items()}
        self.patience = epochs if patience is None else patience
        self.losses = torch.zeros(epochs, device=device)
        self.epoch, self.best_epoch = torch.zeros(2, dtype=torch.int64, device=device)
        self.best = torch.tensor(-1.0, device=device)
        self.kept = [tensor.detach().clone() for tensor in self.state(model)]

    @staticmethod
    def state(model: torch.nn.Module) -> list[Tensor]:
        return [*model.parameters(), *model.buffers()]

    def accuracy(self, part: str, predicted: Tensor) -> Tensor:
        return ((predicted == self.labels) & self.masks[part]).sum() / self.counts[part]

    def step(self, model: torch.nn.Module, optimiser: torch.optim.Optimizer) -> None:
        model.train()
        optimiser.zero_grad()
        loss = F.cross_entropy(self.call(), self.wanted)
        loss.backward()
        optimiser.step()
        with torch.no_grad():
            going = self.going()
            self.losses.index_copy_(0, self.epoch.view(1), loss.detach().float().view(1))
            self.epoch += going
            self.keep_best(model, going)

    def going(self) -> Tensor:
        """Whether training is not over: epochs after that change nothing that is kept."""
        return self.epoch - self.best_epoch < self.patience

    def keep_best(self, model: torch.nn.Module, going: Tensor) -> None:
        if "val" not in self.masks:
            self.best_epoch.copy_(self.epoch)
            return
        model.eval()
        found = self.accuracy("val", self.call().argmax(1))
        better = going & (found > self.best)
        for kept, tensor in zip(self.kept, self.state(model)):
            kept.copy_(torch.where(better, tensor, kept))
        self.best.copy_(torch.where(better, found, self.best))
        self.best_epoch.copy_(torch.where(better, self.epoch, self.best_epoch))

    def finish(self, model: torch.nn.Module, captured: bool, why_not: str | None) -> Fit:
        model.eval()
        with torch.no_grad():
            if "val" in self.masks:
                for kept, tensor in zip(self.kept, self.state(model)):
                    tensor.copy_(kept)
            predicted = self.call().argmax(1)
            accuracies = {part: float(self.accuracy(part, predicted)) for part in self.masks}
        done = int(self.epoch)
        return Fit(done, int(self.best_epoch), self.losses[:done].tolist(), accuracies, captured, why_not)


def fit(model: torch.nn.Module, data: Any, *, epochs: int = 200, lr: float = 0.01, weight_decay: float = 5e-4,
        patience: int | None = None, split: int | None = None) -> Fit:
    """Trains a model of PyG's layers to tell the classes of vertices, and leaves it with its best weights.

    The layers run on our kernels (:func:`tessera.accelerate`), epochs are forward, cross entropy over ``data.train_mask``,
    backward and Adam. The best weights are those of the first epoch whose accuracy over ``data.val_mask`` no other exceeds;
    without that mask, the last. On a GPU epochs are replays (:func:`tessera.capture`) where the model allows it; the
    report says why where it does not. Where a run starts is up to ``torch.manual_seed``; the same start gives the same bits.

    Args:
        model: called with ``data.x`` and ``data.edge_index`` (or ``data.adj_t``), and with ``edge_weight`` and ``edge_attr``
            where it takes arguments of these names and the data has them. Data moves to where the model lies.
        data: PyG's ``Data`` with ``x``, ``y`` and ``train_mask``, and ``val_mask`` and ``test_mask`` where there are some.
        epochs: at most so many.
        lr: Adam's learning rate.
        weight_decay: Adam's.
        patience: stop after so many epochs without a better accuracy over ``data.val_mask``. Default: never.
        split: which column of masks that hold several splits.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCN
        >>> data = Data(x=torch.eye(6), edge_index=torch.tensor([[0, 1, 3, 4], [1, 2, 4, 5]]),
        ...             y=torch.tensor([0, 0, 0, 1, 1, 1]), train_mask=torch.ones(6, dtype=torch.bool))
        >>> print(tessera.fit(GCN(6, 8, num_layers=2, out_channels=2), data, epochs=50))
        50 epochs, weights of epoch 50: train 100.0 %
    """
    masks = _masks(data, split)
    for name, value in (("epochs", epochs), ("patience", patience)):
        if value is not None and value < 1:
            raise ValueError(f"{name} is {value}: use 1 or more")
    if patience is not None and "val" not in masks:
        raise ValueError(f"patience={patience} needs data.val_mask, over which accuracies are compared")
    edges = _edges(data)
    accelerate(model)
    device = next(model.parameters()).device
    takes = inspect.signature(model.forward).parameters
    named = {name: getattr(data, name).to(device) for name in ("edge_weight", "edge_attr")
             if name in takes and getattr(data, name, None) is not None}
    x, edges, labels = data.x.to(device), edges.to(device), data.y.to(device)
    masks = {part: mask.to(device) for part, mask in masks.items()}

    def call() -> Tensor:
        return model(x, edges, **named)

    def trained(captured: bool, why_not: str | None = None) -> Fit:
        # On a GPU the same one whether epochs are replays or not, so that both give the same bits.
        optimiser = torch.optim.Adam(model.parameters(), lr=lr, weight_decay=weight_decay, capturable=device.type == "cuda")
        run = _Run(model, call, labels, masks, epochs, patience)
        step = capture(run.step, model, optimiser) if captured else lambda: run.step(model, optimiser)
        for epoch in range(1, epochs + 1):
            step()
            if patience is not None and epoch % _ASKED_EVERY == 0 and not bool(run.going()):
                break
        return run.finish(model, captured and epochs > 3, why_not)

    if device.type != "cuda":
        return trained(False, f"there is nothing to capture on {device}")
    start = copy.deepcopy(model.state_dict())
    seeds = torch.get_rng_state(), torch.cuda.get_rng_state(device)
    try:
        return trained(True)
    except CannotBeCaptured as error:
        why_not = str(error)
    model.load_state_dict(start)
    torch.set_rng_state(seeds[0])
    torch.cuda.set_rng_state(seeds[1], device)
    return trained(False, why_not)


__all__ = ["Fit", "fit"]
