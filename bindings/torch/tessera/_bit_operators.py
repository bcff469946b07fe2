# SPDX-License-Identifier: Apache-2.0
"""The operators on codes of few bits: ``torch.ops.tessera.bit_gemm`` and ``bit_aggregate``."""

from __future__ import annotations

import torch

from ._derivatives import Operator
from ._schemas import GRAPH, TAGS

_FACTORS = ("Tensor? row_scale, Tensor? col_scale, Tensor? row_terms, Tensor? col_terms, "
            "Tensor? bias")
_ENDING = "int activation, int output, int bits, float lower, float scale"

_definitions = torch.library.Library("tessera", "FRAGMENT")
_definitions.define(
    f"bit_gemm(Tensor a, Tensor b, {_FACTORS}, SymInt rows, SymInt cols, SymInt depth, {_ENDING}) "
    "-> Tensor", tags=TAGS)
_definitions.define(
    f"bit_aggregate(Tensor b, {_FACTORS}, Tensor index, Tensor? offsets, {GRAPH}, "
    f"SymInt features, {_ENDING}) -> Tensor", tags=TAGS)


def _padded(rows, cols):
    """Rows, and words of a row, as planes of bits have them."""
    return (rows + 7) // 8 * 8, (cols + 127) // 128 * 4


def _result(beside, rows, cols, output, bits):
    if output < 3:
        return beside.new_empty((rows, cols), dtype=(torch.int32, torch.int64, torch.float32)[output])
    return beside.new_empty((bits, *(_padded(rows, cols) if output == 3 else _padded(cols, rows))))


@torch.library.register_fake("tessera::bit_gemm", lib=_definitions)
def _(a, b, row_scale, col_scale, row_terms, col_terms, bias, rows, cols, depth, activation, output,
      bits, lower, scale):
    return _result(a, rows, cols, output, bits)


@torch.library.register_fake("tessera::bit_aggregate", lib=_definitions)
def _(b, row_scale, col_scale, row_terms, col_terms, bias, index, offsets, targets, sources, layout,
      loops, features, activation, output, bits, lower, scale):
    return _result(b, targets, features, output, bits)


def _refuse(ctx, *grads):
    raise NotImplementedError("products of bits have no derivative")


for _name in ("bit_gemm", "bit_aggregate"):
    torch.library.register_autograd(f"tessera::{_name}", _refuse, lib=_definitions)
bit_gemm = Operator(torch.ops.tessera.bit_gemm.default, torch.ops.tessera.bit_gemm.default)
bit_aggregate = Operator(torch.ops.tessera.bit_aggregate.default,
                         torch.ops.tessera.bit_aggregate.default)
