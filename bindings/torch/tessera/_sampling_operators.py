# SPDX-License-Identifier: Apache-2.0
"""The operators that draw neighbours: ``torch.ops.tessera.neighbour_candidates``, on the CPU, and ``draw_neighbours``, which a
GPU runs where candidates lie there; their kernels are in bindings/torch/src/sampling_cpu.cpp and sampling_cuda.cpp. And
``vertex_parts``, which splits a graph, in parts_cpu.cpp."""

from __future__ import annotations

import torch

from ._schemas import GRAPH

_definitions = torch.library.Library("tessera", "FRAGMENT")
_definitions.define(
    f"neighbour_candidates(Tensor index, Tensor? offsets, {GRAPH}, Tensor? edge_weight, Tensor? edge_time, "
    "Tensor? vertex_time) -> Tensor[]")
_definitions.define(
    "draw_neighbours(Tensor[] candidates, Tensor seeds, Tensor? seed_times, Tensor fan_outs, bool replace, bool disjoint, "
    "bool latest, bool induced, int seed, int step) -> Tensor[]")
_definitions.define(f"vertex_parts(Tensor index, Tensor? offsets, {GRAPH}, int parts, int seed) -> Tensor")


@torch.library.register_fake("tessera::vertex_parts", lib=_definitions)
def _(index, offsets, targets, sources, layout, loops, parts, seed):
    return index.new_empty((targets,), dtype=torch.int64)


neighbour_candidates = torch.ops.tessera.neighbour_candidates.default
draw_neighbours = torch.ops.tessera.draw_neighbours.default
vertex_parts = torch.ops.tessera.vertex_parts.default
