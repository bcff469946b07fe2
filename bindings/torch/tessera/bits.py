# SPDX-License-Identifier: Apache-2.0
"""Numbers as codes of few bits, and products of codes that are exact in integers.

A number ``x`` has the code ``round((x - lower) / scale)``, between 0 and ``2^bits - 1``; the code stands
for ``lower + scale * code``. Codes are kept as planes of bits, 32 of them in a word, which is what the
kernels multiply. There are no derivatives: this is for predictions.

Example:
    >>> import torch, tessera.bits
    >>> a = tessera.bits.quantise(torch.tensor([[0.0, 1.0], [3.0, 2.0]]), bits=2)
    >>> tessera.bits.products(a, a)
    tensor([[ 1,  2],
            [ 2, 13]], dtype=torch.int32)
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import torch
from torch import Tensor

from . import _bit_operators, errors
from .functional import _graph_for
from .graph import loops_number

# Numbers of include/tessera/ops/bit_forms.hpp.
_SUMS32, _SUMS64, _VALUES, _ROWS = range(4)
_SINGLE = torch.finfo(torch.float32)
ACTIVATIONS = {None: 0, "relu": 1, "tanh": 2}


class Range(NamedTuple):
    """Where codes begin, and how far apart two of them are."""

    lower: float
    scale: float
    bits: int

    @classmethod
    def between(cls, lower: float, upper: float, bits: int) -> Range:
        """Codes from ``lower`` to ``upper``.

        Example:
            >>> import tessera.bits
            >>> tessera.bits.Range.between(-1.0, 2.0, bits=2)
            Range(lower=-1.0, scale=1.0, bits=2)
        """
        if not 1 <= bits <= 16:
            raise ValueError(f"{bits} bits: use 1 to 16")
        if not lower < upper or not math.isfinite(upper - lower):
            raise ValueError(f"a range from {lower} to {upper}: use finite bounds, the upper one above the "
                             "lower")
        lower, upper = float(lower), float(upper)
        scale = (upper - lower) / (2**bits - 1)
        if max(-lower, upper, upper - lower) > _SINGLE.max or scale < _SINGLE.tiny:
            raise ValueError(f"a range from {lower:g} to {upper:g} in {2**bits - 1} steps, which single "
                             "precision does not hold: scale the numbers first")
        return cls(lower, scale, bits)


class BitMatrix:
    """A matrix of codes, packed along its rows.

    Example:
        >>> import torch, tessera.bits
        >>> x = tessera.bits.quantise(torch.tensor([[0.0, 0.4], [2.0, 3.0]]), bits=2)
        >>> x
        BitMatrix(2 x 2, bits=2, lower=0, scale=1)
        >>> x.values()
        tensor([[0., 0.],
                [2., 3.]])
    """

    def __init__(self, words: Tensor, shape: tuple[int, int], range: Range) -> None:
        self.words, self.shape, self.range = words, (int(shape[0]), int(shape[1])), range

    @property
    def bits(self) -> int:
        return self.range.bits

    @property
    def device(self) -> torch.device:
        return self.words.device

    def codes(self) -> Tensor:
        """The codes, one int32 each."""
        planes = self.words[:, : self.shape[0], :, None] >> _counting(32, self.device) & 1
        planes = planes.flatten(2)[:, :, : self.shape[1]]
        weights = (1 << _counting(self.bits, self.device)).view(-1, 1, 1)
        return (planes * weights).sum(0, dtype=torch.int32)

    def values(self) -> Tensor:
        """What the codes stand for."""
        return self.range.lower + self.range.scale * self.codes().to(torch.float32)

    def sums(self) -> Tensor:
        """The sum of the codes of each row, int64."""
        return self.codes().sum(1, dtype=torch.int64)

    def to(self, device: torch.device | str) -> BitMatrix:
        """On another device."""
        return BitMatrix(self.words.to(device), self.shape, self.range)

    def __repr__(self) -> str:
        rows, cols = self.shape
        lower, scale, bits = self.range
        return f"BitMatrix({rows} x {cols}, bits={bits}, lower={lower:g}, scale={scale:g})"


def _counting(size: int, device: torch.device) -> Tensor:
    return torch.arange(size, device=device, dtype=torch.int32)


def pack(codes: Tensor, range: Range) -> BitMatrix:
    """Codes that are there already.

    Example:
        >>> import torch, tessera.bits
        >>> codes = torch.tensor([[5, 2], [7, 0]])
        >>> tessera.bits.pack(codes, tessera.bits.Range(0.0, 1.0, bits=3)).codes()
        tensor([[5, 2],
                [7, 0]], dtype=torch.int32)
    """
    if codes.dim() != 2 or codes.is_floating_point() or codes.dtype == torch.bool:
        raise TypeError(f"codes of type {codes.dtype} and {codes.dim()} dimensions: use a matrix of "
                        "whole numbers")
    rows, cols = codes.shape
    if codes.numel() > 0 and not 0 <= int(codes.min()) <= int(codes.max()) < 2**range.bits:
        raise ValueError(f"a code that is not one of {range.bits} bits")
    planes = codes.new_zeros((-(-rows // 8) * 8, -(-cols // 128) * 128), dtype=torch.int32)
    planes[:rows, :cols] = codes
    words = []
    for plane in torch.arange(range.bits).tolist():
        bit = (planes >> plane & 1).view(planes.size(0), planes.size(1) // 32, 32)
        # The highest bit is that of the sign, so that sums of the others do not run over.
        word = (bit[..., :31] << _counting(31, codes.device)).sum(-1, dtype=torch.int32)
        words.append(torch.where(bit[..., 31] == 1, word + torch.iinfo(torch.int32).min, word))
    return BitMatrix(torch.stack(words), (rows, cols), range)


def quantise(x: Tensor, bits: int = 8, lower: float | None = None,
             upper: float | None = None) -> BitMatrix:
    """The codes of a matrix; numbers outside of the bounds become their ends.

    Args:
        x: a matrix of floats. As the right operand of a product, the matrix as ``torch.nn.Linear`` has
            it: outputs x features.
        bits: 1 to 16.
        lower, upper: the bounds. Default: the least and the greatest number; where all are the same, they
            have code 0.

    Example:
        >>> import torch, tessera.bits
        >>> x = torch.tensor([[-1.0, 0.2, 5.0]])
        >>> tessera.bits.quantise(x, bits=2, lower=0.0, upper=3.0).codes()
        tensor([[0, 0, 3]], dtype=torch.int32)
    """
    if x.dim() != 2 or not x.is_floating_point():
        raise TypeError(f"x has type {x.dtype} and {x.dim()} dimensions: use a matrix of floats")
    if (lower is None or upper is None) and x.numel() == 0:
        raise ValueError("an empty matrix has no least and no greatest number: give the bounds")
    x = x.detach()
    if bool(x.isnan().any()):
        raise ValueError("a number of x is not a number (NaN): no code stands for it")
    if lower is None or upper is None:
        least, greatest = float(x.min()), float(x.max())
        if not math.isfinite(greatest - least):
            raise ValueError(f"numbers from {least} to {greatest} have no steps: give finite bounds")
        lower = least if lower is None else lower
        upper = greatest if upper is None else upper
        if lower == upper and abs(lower) <= _SINGLE.max:
            zeros = torch.zeros_like(x, dtype=torch.int32)
            return pack(zeros, Range.between(0.0, 1.0, bits)._replace(lower=float(lower)))
    return _coded(x, Range.between(lower, upper, bits))


def _coded(x: Tensor, range: Range) -> BitMatrix:
    # Single precision as the library has it; doubles may differ by less than it can tell apart.
    x = x if x.dtype == torch.float64 else x.to(torch.float32)
    steps = ((x - range.lower) / range.scale).round()
    return pack(steps.clamp(0, 2**range.bits - 1).to(torch.int32), range)


def _check_pair(a: BitMatrix, b: BitMatrix) -> None:
    if a.shape[1] != b.shape[1]:
        raise ValueError(f"rows of {a.shape[1]} and of {b.shape[1]} codes have no product: the right "
                         "operand is outputs x features")
    if a.device != b.device:
        raise ValueError(f"a lies on {a.device}, b on {b.device}: move one of them")


def products(a: BitMatrix, b: BitMatrix) -> Tensor:
    """The products of all rows of codes of ``a`` with all of ``b``: int32, or int64 where sums may be
    too large for that."""
    _check_pair(a, b)
    if not _fits_32_bits(a, b) and a.device.type == "cuda":
        return _products_by_halves(a, b)
    return _gemm(a, b, (None,) * 5, None, _SUMS32 if _fits_32_bits(a, b) else _SUMS64, None)


def _fits_32_bits(a: BitMatrix, b: BitMatrix) -> bool:
    return a.shape[1] * (2**a.bits - 1) * (2**b.bits - 1) < 2**31


def _products_by_halves(a: BitMatrix, b: BitMatrix) -> Tensor:
    """Sums of 64 bits where kernels have 32: codes are their low bits and their high ones."""
    if _fits_32_bits(a, b):
        return _gemm(a, b, (None,) * 5, None, _SUMS32, None).to(torch.int64)
    of_a = a.bits >= b.bits
    whole = a if of_a else b
    half = whole.bits // 2
    low, high = (BitMatrix(words, whole.shape, Range(0.0, 1.0, words.size(0)))
                 for words in (whole.words[:half], whole.words[half:]))
    pairs = ((low, b), (high, b)) if of_a else ((a, low), (a, high))
    first, second = (_products_by_halves(*pair) for pair in pairs)
    return first + (second << half)


def linear(a: BitMatrix, weight: BitMatrix, bias: Tensor | None = None, *,
           activation: str | None = None, to: Range | None = None) -> Any:
    """What ``torch.nn.functional.linear`` gives for the numbers that the codes stand for, with the
    product in integers; then the activation (``"relu"``, ``"tanh"``). With ``to``, as codes again.

    Example:
        >>> import torch, tessera.bits as bits
        >>> x, w = torch.tensor([[0.0, 1.0]]), torch.tensor([[1.0, 3.0], [0.0, 2.0]])
        >>> bits.linear(bits.quantise(x, 1), bits.quantise(w, 2), torch.tensor([0.5, 0.0]))
        tensor([[3.5000, 2.0000]])
    """
    _check_pair(a, weight)
    if not _fits_32_bits(a, weight) and a.device.type == "cuda":
        return _linear_of_wide_sums(a, weight, bias, activation, to)
    (la, sa, _), (lw, sw, _) = a.range, weight.range
    rows, depth = a.shape
    # (la + sa c)(lw + sw d) summed: sa sw c.d + sa lw sum(c) + la sw sum(d) + depth la lw.
    row_terms = col_terms = None
    if lw != 0:
        row_terms = (sa * lw * a.sums()).to(torch.float32).view(-1, 1)
        col_terms = row_terms.new_ones(1, weight.shape[0])
    offset = (la * sw * weight.sums() + depth * la * lw).to(torch.float32)
    added = offset if bias is None else offset + bias.detach().to(torch.float32)
    scale = added.new_full((rows, 1), sa * sw)
    return _gemm(a, weight, (scale, None, row_terms, col_terms, added), activation,
                 _VALUES if to is None else _ROWS, to)


def _linear_of_wide_sums(a: BitMatrix, weight: BitMatrix, bias: Tensor | None, activation: str | None,
                         to: Range | None) -> Any:
    """The same by sums of 64 bits, in double precision: terms that are larger than what is left of them
    cancel."""
    if activation not in ACTIVATIONS:
        raise ValueError(_unknown(activation))
    (la, sa, _), (lw, sw, _) = a.range, weight.range
    y = sa * sw * _products_by_halves(a, weight).double()
    y += sa * lw * a.sums().double().view(-1, 1)
    y += la * sw * weight.sums().double() + a.shape[1] * la * lw
    y = (y if bias is None else y + bias.detach()).to(torch.float32)
    y = y if activation is None else getattr(torch, activation)(y)
    return y if to is None else _coded(y, to)


def aggregate(graph: Any, x: BitMatrix, *, loops: str = "given", scale: Tensor | None = None,
              to: Range | None = None) -> Any:
    """The sum over each target's sources of the numbers that their codes stand for, times a ``scale``
    for each target; the sums of codes are made in integers. With ``to``, as codes again.

    Example:
        >>> import torch, tessera.bits as bits
        >>> x = bits.quantise(torch.tensor([[1.0], [2.0], [4.0]]), bits=2)
        >>> bits.aggregate(torch.tensor([[0, 1, 2], [2, 2, 0]]), x)
        tensor([[4.],
                [0.],
                [3.]])
    """
    if not isinstance(x, BitMatrix):
        raise TypeError(f"x is a {type(x).__name__}, not codes: use bits.quantise(x, bits=...)")
    sources, features = x.shape
    graph = _graph_for(graph, sources, sources)
    if graph.num_sources != sources:
        raise ValueError(f"x has {sources} rows for {graph.num_sources} vertices")
    if graph.weight is not None:
        raise ValueError("sums of bits are of graphs without weights: use Graph.without_weight")
    if graph.device != x.device:
        raise ValueError(f"x lies on {x.device}, the graph on {graph.device}: move one of them")
    lower, step, _ = x.range
    factor = torch.full((graph.num_targets, 1), step, device=x.device)
    if scale is not None:
        factor = factor * scale.detach().to(torch.float32).view(-1, 1)
    terms: tuple[Tensor | None, Tensor | None] = (None, None)
    if lower != 0:
        ones = pack(torch.ones(sources, 1, dtype=torch.int32, device=x.device), Range(0.0, 1.0, 1))
        edges = _aggregate(graph, ones, loops, (None,) * 5, _SUMS32, None)
        terms = (factor / step * lower * edges, factor.new_ones(1, features))
    return _aggregate(graph, x, loops, (factor, None, *terms, None),
                      _VALUES if to is None else _ROWS, to)


def _result(found: Tensor, shape: tuple[int, int], to: Range | None) -> Any:
    return found if to is None else BitMatrix(found, shape, to)


def _unknown(activation: str | None) -> str:
    return f"unknown activation {activation!r}: use relu or tanh"


def _ending(activation: str | None, output: int, to: Range | None) -> tuple[Any, ...]:
    if activation not in ACTIVATIONS:
        raise ValueError(_unknown(activation))
    lower, scale, bits = to if to is not None else (0.0, 1.0, 1)
    return ACTIVATIONS[activation], output, bits, lower, scale


def _gemm(a: BitMatrix, b: BitMatrix, factors: tuple[Tensor | None, ...], activation: str | None,
          output: int, to: Range | None) -> Any:
    shape = a.shape[0], b.shape[0]
    found = errors.run(_bit_operators.bit_gemm, a.words, b.words, *factors, *shape, a.shape[1],
                       *_ending(activation, output, to))
    return _result(found, shape, to)


def _aggregate(graph: Any, x: BitMatrix, loops: str, factors: tuple[Tensor | None, ...], output: int,
               to: Range | None) -> Any:
    found = errors.run(_bit_operators.bit_aggregate, x.words, *factors, graph.index, graph.offsets,
                       graph.num_targets, graph.num_sources, graph.layout, loops_number(loops), x.shape[1],
                       *_ending(None, output, to))
    return _result(found, (graph.num_targets, x.shape[1]), to)


__all__ = ["BitMatrix", "Range", "aggregate", "linear", "pack", "products", "quantise"]
