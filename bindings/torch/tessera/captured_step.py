# SPDX-License-Identifier: Apache-2.0
"""Steps of training as one replay of a CUDA graph, by the code of the eager loop."""

from __future__ import annotations

import contextlib
import copy
import inspect
import random
import sys
import warnings
from typing import Any, Callable, Iterator, Sequence

import torch
from torch import Tensor

from . import _cache
from .errors import CannotBeCaptured, line_of
from .graph import Graph

WARM_UP = 3  # calls that run the step as it is; the last of them finds what waits

_WAITS = ("what waits for the GPU cannot be replayed: read numbers (.item(), .cpu(), float(), print) after the step, and select by "
          "numbers that were made once (mask.nonzero().view(-1)), not by a mask")
_SCALER = "torch's GradScaler asks whether gradients are finite: use bf16, which needs none, or an optimiser with fused=True"


def _set_sync_debug_mode(mode: int | str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torch says that it is new
        torch.cuda.set_sync_debug_mode(mode)


class _Recorder:
    """Runs steps on a stream of their own, and keeps one as a CUDA graph."""

    def __init__(self, device: torch.device) -> None:
        self.device = device
        with torch.cuda.device(device):
            self.stream = torch.cuda.Stream()
        self.graph: torch.cuda.CUDAGraph | None = None

    def run(self, step: Callable[[], Any]) -> Any:
        current = torch.cuda.current_stream(self.device)
        self.stream.wait_stream(current)
        with torch.cuda.stream(self.stream):
            result = step()
        current.wait_stream(self.stream)
        return result

    @contextlib.contextmanager
    def watching(self) -> Iterator[None]:
        """What waits for the GPU is an error. torch does not watch ``synchronize`` itself, and one that fails a recording leaves
        its generators in a state in which they draw no more."""
        mode, synchronize = torch.cuda.get_sync_debug_mode(), torch.cuda.synchronize

        def refused(*_: Any) -> None:
            raise RuntimeError("called a synchronizing function")

        _set_sync_debug_mode("error")
        torch.cuda.synchronize = refused
        try:
            yield
        finally:
            torch.cuda.synchronize = synchronize
            _set_sync_debug_mode(mode)

    def record(self, step: Callable[[], Any]) -> Any:
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.device(self.device), torch.cuda.graph(self.graph, stream=self.stream):
            return step()

    def replay(self) -> None:
        assert self.graph is not None
        self.graph.replay()


def recorder_for(device: torch.device) -> _Recorder | None:
    return _Recorder(device) if device.type == "cuda" else None


def _leaves(value: Any, name: str) -> Iterator[tuple[str, Any, bool]]:
    """What a step is given, one by one: its name, and whether nothing else may take its place."""
    if isinstance(value, Tensor) and value.layout == torch.strided:
        yield name, value, value.requires_grad
    elif isinstance(value, Graph):
        tensors = {"index": value.index, "offsets": value.offsets, "weight": value.weight}
        yield from ((f"{name}.{key}", tensor, True) for key, tensor in tensors.items() if tensor is not None)
    elif isinstance(value, Tensor):
        graph = Graph.of(value)
        yield from ((f"{name} (its indices)", tensor, True) for tensor in (graph.index, graph.offsets) if tensor is not None)
        yield f"{name} (its values)", value.values() if value.layout != torch.sparse_coo else value._values(), True
    elif isinstance(value, dict):
        for key, one in value.items():
            yield from _leaves(one, f"{name}[{key!r}]")
    elif isinstance(value, (list, tuple)):
        for number, one in enumerate(value):
            yield from _leaves(one, f"{name}[{number}]")
    elif hasattr(value, "stores"):  # PyG's Data and HeteroData
        for store in value.stores:
            for key, one in store.items():
                yield from _leaves(one, f"{name}.{key}" if store._key is None else f"{name}[{store._key!r}].{key}")
    else:
        yield name, value, True


def _replaced(value: Any, leaves: Iterator[Any]) -> Any:
    """The same with these in the place of its leaves."""
    if isinstance(value, Tensor) and value.layout == torch.strided:
        return next(leaves)
    if isinstance(value, dict):
        return type(value)((key, _replaced(one, leaves)) for key, one in value.items())
    if isinstance(value, (list, tuple)):
        ones = [_replaced(one, leaves) for one in value]
        return type(value)(*ones) if hasattr(value, "_fields") else type(value)(ones)
    if hasattr(value, "stores"):
        value = copy.copy(value)
        for store in value.stores:
            for key, one in list(store.items()):
                store[key] = _replaced(one, leaves)
        return value
    for _ in _leaves(value, ""):
        next(leaves)
    return value


def _copied(result: Any) -> Any:
    """What a step returned, which the next replay would write over."""
    if isinstance(result, Tensor):
        return result.detach().clone()
    if isinstance(result, dict):
        return {key: _copied(one) for key, one in result.items()}
    if isinstance(result, (list, tuple)):
        ones = [_copied(one) for one in result]
        return type(result)(*ones) if hasattr(result, "_fields") else type(result)(ones)
    return result


def _is_graph(tensor: Any) -> bool:
    """Whether operators planned something by the numbers that lie there."""
    return isinstance(tensor, Tensor) and not tensor.is_floating_point() and tensor.data_ptr() in _cache._owners


def _memory(tensor: Tensor) -> tuple:
    return tensor.data_ptr(), tensor.shape, tensor.stride(), tensor.dtype, tensor.device


def _host_generators() -> list[Any]:
    """Where random numbers of the host stand."""
    states: list[Any] = [("torch's generator of the CPU", torch.get_rng_state().tolist()), ("Python's random", random.getstate())]
    if "numpy" in sys.modules:
        name, numbers, *rest = sys.modules["numpy"].random.get_state()
        states.append(("NumPy's random", (name, numbers.tolist(), *rest)))
    return states


class _Optimisers:
    """What a replay cannot change of optimisers: numbers that the host keeps."""

    def __init__(self, optimisers: Sequence[torch.optim.Optimizer]) -> None:
        self.all = optimisers

    def check(self, device: torch.device) -> None:
        for optimiser in self.all:
            kind = type(optimiser).__name__
            for group in optimiser.param_groups:
                if group.get("capturable") is False:
                    raise CannotBeCaptured(f"the optimiser was made without capturable=True, and counts its steps on the host: use "
                                           f"torch.optim.{kind}(..., capturable=True)")
                for key, value in group.items():
                    if isinstance(value, Tensor) and value.device != device:
                        raise CannotBeCaptured(f"{key} of the optimiser is a tensor on {value.device}, which a replay does not read: "
                                               f"use torch.optim.{kind}(..., {key}=torch.tensor({float(value):g}, device={str(device)!r}))")

    def settings(self) -> list[tuple[str, str, Any]]:
        return [(type(optimiser).__name__, key, value) for optimiser in self.all for group in optimiser.param_groups
                for key, value in group.items() if key != "params" and not isinstance(value, Tensor)]

    def check_settings(self, before: list[tuple[str, str, Any]]) -> None:
        now = self.settings()
        if now == before:
            return
        for (kind, key, value), (_, _, other) in zip(now, before):
            if value != other:
                raise ValueError(f"{key} of the optimiser went from {other} to {value} after the step was captured, and replays keep "
                                 f"{other}: use torch.optim.{kind}(..., {key}=torch.tensor({other}, device='cuda')), which schedulers "
                                 "change in place, or capture again")
        raise ValueError("the optimiser has other groups of parameters than when the step was captured: capture again")

    def counted_by_host(self) -> dict[str, Any]:
        found = {}
        for optimiser in self.all:
            for number, state in enumerate(optimiser.state.values()):
                for key, value in state.items():
                    if isinstance(value, Tensor) and value.device.type == "cpu" and value.numel() == 1:
                        value = value.item()
                    if isinstance(value, (int, float)):
                        found[f"{key} of {type(optimiser).__name__}", number] = value
        return found


class _Gradients:
    """What gradients a step began and ended with."""

    def __init__(self, parameters: list[Tensor]) -> None:
        self.parameters = parameters
        self.before = [parameter.grad for parameter in parameters]
        self.after = self.before

    def ended(self) -> _Gradients:
        self.after = [parameter.grad for parameter in self.parameters]
        return self

    def begin_anew(self) -> bool:
        """Whether the step let go of gradients that were there."""
        return any(before is not None and after is not before for before, after in zip(self.before, self.after))

    def check(self) -> None:
        for parameter, before, after in zip(self.parameters, self.before, self.after):
            now = parameter.grad
            if before is None and now is not None:
                raise ValueError("the step was captured without gradients from before, and now there are some, which a replay would "
                                 "not add to: call optimiser.zero_grad() within the step")
            if before is not None and before is after and now is not before:
                raise ValueError("the captured step adds to gradients that were set to None or replaced outside of it: call "
                                 "optimiser.zero_grad() within the step")

    def restore(self) -> None:
        """As the step leaves them, where its Python would have."""
        for parameter, after in zip(self.parameters, self.after):
            if parameter.grad is not after:
                parameter.grad = after


class CapturedStep:
    """What :func:`tessera.capture` returns: called in the place of the step."""

    def __init__(self, train_step: Callable[..., Any], model: torch.nn.Module, optimiser: Any, example: Any) -> None:
        self._step, self._model, self._optimiser = train_step, model, optimiser
        self._optimisers = _Optimisers(_as_list(optimiser))
        self._inputs = example if isinstance(example, tuple) else (example,)
        self._names = _names_of(train_step, len(self._inputs))
        self._given = self._flat(self._inputs)
        self._device = _device_of(model, self._given)
        self._recorder = recorder_for(self._device)
        self._calls = 0
        self._other: set[int] = set()  # inputs that change between calls
        self._buffers: dict[int, Tensor] = {}
        self._is_recorded = False
        self._begins_anew = False  # whether the step itself sets gradients to None first
        if self._recorder is None:
            return
        self._optimisers.check(self._device)
        for name, leaf, _ in self._given:
            if isinstance(leaf, Tensor) and leaf.device != self._device:
                raise CannotBeCaptured(f"{name} lies on {leaf.device}, the model on {self._device}: move it once, in front of the loop")

    @property
    def is_captured(self) -> bool:
        """Whether the next call is a replay."""
        return self._is_recorded

    def __repr__(self) -> str:
        kind = "eager" if self._recorder is None else "captured" if self._is_recorded else "not captured yet"
        return f"CapturedStep({getattr(self._step, '__name__', type(self._step).__name__)}, {self._device}, {kind})"

    def __call__(self, *inputs: Any) -> Any:
        given = self._given
        if inputs:
            given = self._flat(inputs)
            self._check_inputs(given)
        inputs = inputs or self._inputs
        if self._recorder is None:
            return _copied(self._step(self._model, self._optimiser, *inputs))
        if self._calls < WARM_UP:
            self._calls += 1
            gradients = _Gradients(self._trained())
            result = self._recorder.run(lambda: self._warm(inputs))
            self._begins_anew |= gradients.ended().begin_anew()
            return _copied(result)
        new = self._other - self._buffers.keys()
        for number in new:
            self._buffers[number] = torch.empty_like(given[number][1])
        for number, buffer in self._buffers.items():
            buffer.copy_(given[number][1])
        if self._is_recorded:
            self._check_unchanged()
        if new or not self._is_recorded:
            self._record()
        self._recorder.replay()
        self._gradients.restore()
        if self._model.training != self._training:
            self._model.train(self._training)
        return _copied(self._result)

    def _flat(self, inputs: tuple) -> list[tuple[str, Any, bool]]:
        if len(inputs) != len(self._inputs):
            raise TypeError(f"the step was given {len(inputs)} inputs, its example has {len(self._inputs)}: {', '.join(self._names)}")
        return [leaf for name, value in zip(self._names, inputs) for leaf in _leaves(value, name)]

    def _check_inputs(self, given: list[tuple[str, Any, bool]]) -> None:
        """Of the same shapes as the example's, and what replays cannot change is the same."""
        if [name for name, _, _ in given] != [name for name, _, _ in self._given]:
            raise TypeError(f"the step was given {', '.join(name for name, _, _ in given)}, its example has "
                            f"{', '.join(name for name, _, _ in self._given)}")
        for number, ((name, leaf, _), (_, known, fixed)) in enumerate(zip(given, self._given)):
            if leaf is known:
                continue
            if not isinstance(known, Tensor) or not isinstance(leaf, Tensor):
                if type(leaf) is type(known) and isinstance(leaf, (int, float, str, torch.dtype)) and leaf == known:
                    continue
                raise ValueError(f"{name} is {leaf!r}, in the example {known!r}, which replays would keep: give a tensor")
            if leaf.shape != known.shape or leaf.dtype != known.dtype or leaf.device != known.device:
                raise ValueError(f"{name} is {_described(leaf)}, in the example {_described(known)}: shapes, types and devices stay as "
                                 "they are; capture a step for each")
            if _memory(leaf) == _memory(known):
                continue
            if fixed or _is_graph(known):
                raise ValueError(f"{name} is not the tensor of the example: kernels are planned for its graph (or it needs a gradient); "
                                 "capture a step for each graph")
            self._other.add(number)

    def _warm(self, inputs: tuple) -> Any:
        """Runs the step as it is; the last time it must neither wait nor leave anything to the host."""
        if self._calls < WARM_UP:
            return self._step(self._model, self._optimiser, *inputs)
        assert self._recorder is not None
        counted, draws = self._optimisers.counted_by_host(), _host_generators()
        try:
            with self._recorder.watching():
                result = self._step(self._model, self._optimiser, *inputs)
        except RuntimeError as error:
            if "synchroniz" not in str(error):
                raise
            scaled = line_of(error, "grad_scaler")
            raise CannotBeCaptured(f"{line_of(error)}: {_SCALER if scaled else _WAITS}") from None
        for name, value in self._optimisers.counted_by_host().items():
            if counted.get(name) != value:
                raise CannotBeCaptured(f"{name[0]} is counted on the host, where a replay does not count: use an optimiser that has "
                                       "capturable=True (Adam, AdamW, RMSprop and others), or SGD")
        for (name, before), (_, after) in zip(draws, _host_generators()):
            if before != after:
                raise CannotBeCaptured(f"the step draws from {name}, and replays would repeat what was drawn: draw on the device "
                                       f"(torch.rand(..., device={str(self._device)!r})), or give what was drawn as an input")
        return result

    def _record(self) -> None:
        assert self._recorder is not None
        used = [self._buffers.get(number, leaf) for number, (_, leaf, _) in enumerate(self._given)]
        leaves = iter(used)
        values = tuple(_replaced(value, leaves) for value in self._inputs)
        self._gradients = _Gradients(self._trained())
        self._settings = self._optimisers.settings()
        try:
            self._result = self._recorder.record(lambda: self._step(self._model, self._optimiser, *values))
        except Exception as error:
            cause = error.__context__ or error  # the end of a recording that failed is an error, too
            hint = f" ({_WAITS})" if "stream is capturing" in str(cause) else ""
            raise CannotBeCaptured(f"{line_of(cause)}: {str(cause).partition(chr(10))[0]}{hint}") from cause
        self._begins_anew |= self._gradients.ended().begin_anew()
        self._training = self._model.training
        self._state = self._places()
        self._graphs = [(name, leaf, leaf._version) for (name, _, _), leaf in zip(self._given, used)
                        if _is_graph(leaf) and not leaf.is_inference()]
        self._is_recorded = True

    def _places(self) -> list[tuple[int, bool]]:
        return [(tensor.data_ptr(), tensor.requires_grad)
                for tensors in (self._model.parameters(), self._model.buffers()) for tensor in tensors]

    def _check_unchanged(self) -> None:
        """What was read while recording is as it was then."""
        for name, tensor, version in self._graphs:
            if tensor._version != version:
                raise ValueError(f"{name} was changed in place after the step was captured, and kernels are planned for the graph "
                                 "that it was: capture a step for each graph")
        if self._places() != self._state:
            raise ValueError("parameters or buffers of the model were replaced, moved or frozen after the step was captured: load into "
                             "them in place (load_state_dict), or capture again")
        self._optimisers.check_settings(self._settings)
        if not self._begins_anew:
            self._gradients.check()

    def _trained(self) -> list[Tensor]:
        return [parameter for parameter in self._model.parameters() if parameter.requires_grad]


def _described(tensor: Tensor) -> str:
    return f"{tensor.dtype} {tuple(tensor.shape)} on {tensor.device}"


def _as_list(optimiser: Any) -> list[torch.optim.Optimizer]:
    optimisers = [] if optimiser is None else list(optimiser) if isinstance(optimiser, (list, tuple)) else [optimiser]
    for one in optimisers:
        if not isinstance(one, torch.optim.Optimizer):
            raise TypeError(f"optimiser is a {type(one).__name__}, not a torch.optim.Optimizer, a list of some, or None")
    return optimisers


def _names_of(step: Callable[..., Any], inputs: int) -> list[str]:
    """What the step calls its inputs, which come after the model and the optimiser."""
    if not callable(step):
        raise TypeError(f"the step is a {type(step).__name__}, not a function of (model, optimiser, *example)")
    try:
        names = [name for name, one in inspect.signature(step).parameters.items()
                 if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][2:]
    except ValueError:
        names = []
    return [names[i] if i < len(names) else f"input {i}" for i in range(inputs)]


def _device_of(model: torch.nn.Module, given: list[tuple[str, Any, bool]]) -> torch.device:
    if not isinstance(model, torch.nn.Module):
        raise TypeError(f"model is a {type(model).__name__}, not a torch.nn.Module")
    devices = {tensor.device for tensors in (model.parameters(), model.buffers()) for tensor in tensors}
    devices = devices or {leaf.device for _, leaf, _ in given if isinstance(leaf, Tensor)}
    if len(devices) > 1:
        raise CannotBeCaptured(f"the model lies on {', '.join(sorted(map(str, devices)))}: a step is captured on one device")
    return devices.pop() if devices else torch.device("cpu")


def capture(train_step: Callable[..., Any], model: torch.nn.Module, optimiser: Any = None, example: Any = ()) -> CapturedStep:
    """A step of training as one replay of a CUDA graph, with the results of the eager loop.

    ``train_step(model, optimiser, *example)`` is any code that runs forward, backward and the optimiser, and returns tensors;
    the step that is returned takes the inputs alone. Its first three calls run ``train_step`` as it is, the third time with
    an error for what cannot be replayed; the fourth records it and every call from then on replays it. So all calls
    together are those of the eager loop, and nothing is trained before the first. Results are copies without a gradient's history.

    Inputs that are the same tensors again are read where they lie, others of the same shape are copied first. Graphs
    (``edge_index``, sparse matrices, :class:`Graph`) stay what they are: a step is captured for each. Random numbers of the
    device go on from replay to replay; learning rates that change are tensors on the device. Python in the step runs while it
    is recorded, and no more: what it prints or counts ends there.

    On a CPU there is nothing to record: every call runs ``train_step``, with the same checks of inputs.

    Args:
        train_step: a function of the model, the optimiser and the inputs.
        model: what it trains.
        optimiser: an optimiser with ``capturable=True`` where it has such an option, a list of some, or None.
        example: the inputs as a tuple, or the only one. Tensors, graphs, numbers, PyG's ``Data``, and lists and dicts of these.

    Example:
        >>> import torch, tessera
        >>> def train_step(model, optimiser, x, y):
        ...     optimiser.zero_grad()
        ...     loss = torch.nn.functional.mse_loss(model(x), y)
        ...     loss.backward()
        ...     optimiser.step()
        ...     return loss
        >>> model = torch.nn.Linear(4, 1)
        >>> x, y = torch.ones(8, 4), torch.zeros(8, 1)
        >>> step = tessera.capture(train_step, model, torch.optim.SGD(model.parameters(), lr=0.1), (x, y))
        >>> losses = [step(x, y).item() for epoch in range(5)]
        >>> losses[4] < losses[0]
        True
    """
    return CapturedStep(train_step, model, optimiser, example)


__all__ = ["CapturedStep", "capture"]
