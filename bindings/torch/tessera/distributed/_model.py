# SPDX-License-Identifier: Apache-2.0
"""A model that every rank runs on its part of one graph."""

from __future__ import annotations

from typing import Any, TypeVar
from weakref import WeakKeyDictionary

import torch
import torch.distributed as dist
from torch import Tensor
from torch_geometric.nn import Aggregation, MessagePassing

from ..models import accelerate
from ..nn._base import pyg_class
from ._layers import LAYERS
from ._part import _gathered
from ._session import Session, is_started, session

Model = TypeVar("Model", bound=torch.nn.Module)


def whole_graph(model: Model) -> Model:
    """Lets a model of PyG's layers run on one graph that lies on all ranks. The model itself is changed and returned: it begins
    with rank 0's weights, takes ``part.x`` and ``part.edge_index``, and when the backward pass ends, gradients are their sums
    over all ranks. Its ``state_dict`` is that of one process.

    Layers: ``GCNConv``, ``SAGEConv`` and ``GATConv``, and all that treats rows one by one.

    Example:
        >>> import torch, tessera
        >>> from torch_geometric.data import Data
        >>> from torch_geometric.nn import GCN
        >>> run = tessera.distributed.start()
        >>> data = Data(x=torch.rand(4, 2), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
        >>> part = tessera.distributed.partition(data)
        >>> model = tessera.distributed.whole_graph(GCN(2, 8, num_layers=2, out_channels=3))
        >>> model(part.x, part.edge_index).shape
        torch.Size([4, 3])
        >>> tessera.distributed.end()
    """
    run = session()
    if model in _taken:
        return model
    obstacles = [f"{name or type(model).__name__} ({problem})" for name, module in _outermost(model)
                 if (problem := _obstacle(module)) is not None]
    if obstacles:
        raise NotImplementedError(f"whole_graph cannot take {', '.join(obstacles)}: it has GCNConv, SAGEConv and GATConv, and "
                                  "what treats rows one by one")
    accelerate(model)
    for module in model.modules():
        module.__class__ = LAYERS.get(type(module), type(module))
    model.to(run.device)
    shapes = [(name, tuple(tensor.shape), tensor.dtype) for name, tensor in model.state_dict().items()]
    for rank, other in enumerate(_gathered(run, shapes, "comparing models")):
        if other != shapes:
            odd = sorted({str(one) for one in shapes} ^ {str(one) for one in other})[:2]
            raise ValueError(f"rank {rank} has another model than rank {run.rank}: {'; '.join(odd)}. Make the same on every rank")
    with torch.no_grad():
        for tensor in model.state_dict().values():
            run.waiting("sending weights", lambda tensor=tensor: dist.broadcast(tensor, 0))
    _taken[model] = _Gradients(run, model)
    model.register_forward_pre_hook(_count_step)
    return model


def _count_step(model: torch.nn.Module, _: Any) -> None:
    if model.training and is_started():
        session().step += 1
        _taken[model].watch()


def _outermost(model: torch.nn.Module, name: str = "") -> Any:
    """Modules but for those inside of layers."""
    yield name, model
    if not isinstance(model, MessagePassing):
        for child, module in model.named_children():
            yield from _outermost(module, f"{name}.{child}" if name else child)


def _obstacle(module: torch.nn.Module) -> str | None:
    kind = type(module).__name__
    if isinstance(module, MessagePassing):
        known = {pyg_class(layer) for layer in LAYERS} | {*LAYERS, *LAYERS.values()}
        few_bits = getattr(module, "bits", None) is not None
        return None if type(module) in known and not few_bits else f"{kind}, a layer without a form for several ranks"
    if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
        return f"{kind} counts the rows of one rank alone"
    if isinstance(module, Aggregation):
        return f"{kind} reads out the rows of one rank alone"
    of_rows = kind == "LayerNorm" and getattr(module, "mode", "node") == "node"
    if type(module).__module__.startswith("torch_geometric.nn.norm") and not of_rows:
        return f"{kind} counts the rows of one rank alone"
    return None


class _Gradients:
    """Adds gradients up over the ranks when a backward pass ends, all in one exchange."""

    def __init__(self, run: Session, model: torch.nn.Module) -> None:
        self._run = run
        self._all = list(model.parameters())
        self._parameters: list[Tensor] = []
        self._before: dict[int, Tensor] = {}
        self._waits = False
        self.watch()

    def watch(self) -> None:
        """Parameters may be frozen at first, and trained later."""
        known = {id(parameter) for parameter in self._parameters}
        for parameter in self._all:
            if parameter.requires_grad and id(parameter) not in known:
                self._parameters.append(parameter)
                if self._run.ranks > 1:
                    parameter.register_hook(self._begin)

    def _begin(self, _: Tensor) -> None:
        if self._waits:
            return
        self._waits = True
        # What was there before this pass was added up already.
        self._before = {i: parameter.grad.clone() for i, parameter in enumerate(self._parameters) if parameter.grad is not None}
        torch.autograd.Variable._execution_engine.queue_callback(self._add)

    @torch.no_grad()
    def _add(self) -> None:
        self._waits = False
        new = []
        for i, parameter in enumerate(self._parameters):
            grad = torch.zeros_like(parameter) if parameter.grad is None else parameter.grad
            new.append(grad - self._before[i] if i in self._before else grad)
        for dtype in sorted({grad.dtype for grad in new}, key=str):
            chosen = [i for i, grad in enumerate(new) if grad.dtype == dtype]
            flat = torch.cat([new[i].reshape(-1) for i in chosen])
            self._run.waiting("adding gradients", lambda flat=flat: dist.all_reduce(flat))
            for i, total in zip(chosen, flat.split([new[i].numel() for i in chosen])):
                total = total.view_as(new[i])
                self._parameters[i].grad = self._before[i] + total if i in self._before else total.clone()
        self._before = {}


_taken: WeakKeyDictionary[torch.nn.Module, _Gradients] = WeakKeyDictionary()
