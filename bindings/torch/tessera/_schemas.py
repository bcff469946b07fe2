# SPDX-License-Identifier: Apache-2.0
"""The operators ``torch.ops.tessera.*``: their schemas. The kernels are C++, shapes are in ``_shapes.py``,
derivatives in ``_operators.py`` and ``_layer_operators.py``."""

from __future__ import annotations

import torch

from . import _library

# How every operator knows its graph, see bindings/torch/src/structure.hpp. The structure is looked up
# inside the operator, so that torch.compile sees tensors and numbers only.
GRAPH = "SymInt targets, SymInt sources, int layout, int loops"
SCHEMAS = {
    "spmm": "(Tensor x, Tensor index, Tensor? offsets, Tensor? weight, Tensor? bias, "
    f"{GRAPH}, float loop_weight, int norm, int reduce, int flags) -> Tensor[]",
    "spmm_backward": "(Tensor grad, Tensor? x, Tensor? winners, Tensor index, Tensor? offsets, "
    f"Tensor? weight, {GRAPH}, float loop_weight, int norm, int reduce, int flags, bool need_x, "
    "bool need_weight) -> Tensor[]",
    "spmm_linear": "(Tensor x, Tensor weight, Tensor? root, Tensor? root_weight, Tensor? bias, "
    f"Tensor? own_scale, Tensor? edge_weight, Tensor index, Tensor? offsets, {GRAPH}, "
    "float loop_weight, int norm, int reduce, bool sum_first, int flags) -> Tensor[]",
    "spmm_linear_backward": "(Tensor grad, Tensor x, Tensor weight, Tensor? root, "
    "Tensor? root_weight, Tensor? own_scale, Tensor? edge_weight, Tensor[] kept, Tensor index, "
    f"Tensor? offsets, {GRAPH}, float loop_weight, int norm, int reduce, bool sum_first, "
    "int flags, int needs) -> Tensor[]",
    "gin": "(Tensor x, Tensor weight, Tensor? bias, Tensor then_weight, Tensor? then_bias, "
    f"Tensor own_scale, Tensor index, Tensor? offsets, {GRAPH}, int reduce, bool sum_first, "
    "int flags) -> Tensor[]",
    "gin_backward": "(Tensor grad, Tensor x, Tensor weight, Tensor then_weight, Tensor own_scale, "
    f"Tensor[] kept, Tensor index, Tensor? offsets, {GRAPH}, int reduce, bool sum_first, int flags, "
    "int needs) -> Tensor[]",
    "sddmm": f"(Tensor u, Tensor v, Tensor index, Tensor? offsets, {GRAPH}, int heads, "
    "int function, int flags) -> Tensor",
    "sddmm_backward": "(Tensor grad, Tensor u, Tensor v, Tensor index, Tensor? offsets, "
    f"{GRAPH}, int heads, int function, int flags) -> (Tensor, Tensor)",
    "pair_dot": "(Tensor sources, Tensor? targets, Tensor pairs) -> Tensor",
    "pair_dot_backward": "(Tensor grad, Tensor sources, Tensor? targets, Tensor pairs, bool need_sources, "
    "bool need_targets) -> Tensor[]",
    "pair_sum": "(Tensor sources, Tensor? targets, Tensor pairs) -> Tensor",
    "pair_sum_backward": "(Tensor grad, Tensor pairs, SymInt sources, SymInt targets, bool are_one, bool need_sources, "
    "bool need_targets) -> Tensor[]",
    "pair_loss": "(Tensor positives, Tensor negatives, int kind, float margin) -> Tensor[]",
    # Scores play no part, but that derivatives by them are refused.
    "pair_loss_backward": "(Tensor grad, Tensor slopes, Tensor positives, Tensor negatives) -> Tensor",
    "messages": f"(Tensor x, Tensor edge_features, Tensor index, Tensor? offsets, {GRAPH}, int message, "
    "int flags) -> Tensor",
    "messages_backward": "(Tensor grad, Tensor x, Tensor edge_features, Tensor index, Tensor? offsets, "
    f"{GRAPH}, int message, int flags, bool need_x, bool need_edges) -> Tensor[]",
    "grouped_product": "(Tensor x, Tensor weight, Tensor? bias, Tensor ptr, bool transposed) -> Tensor",
    "grouped_outer": "(Tensor x, Tensor y, Tensor ptr, int blocks) -> Tensor",
    "group_order": "(Tensor index, SymInt groups) -> (Tensor, Tensor, Tensor)",
    "relation_pairs": "(Tensor targets, Tensor relations, SymInt num_targets, SymInt num_relations) -> (Tensor, Tensor, Tensor)",
    "edge_softmax": f"(Tensor scores, Tensor index, Tensor? offsets, {GRAPH}, int flags) -> Tensor",
    "edge_softmax_backward": "(Tensor weights, Tensor grad, Tensor index, Tensor? offsets, "
    f"{GRAPH}, int flags) -> Tensor",
    "attention": "(Tensor target, Tensor source, Tensor value, Tensor? vector, Tensor? edge_term, Tensor? seed, "
    f"Tensor index, Tensor? offsets, {GRAPH}, int form, int heads, float scale, float slope, "
    "float dropout, int flags) -> (Tensor, Tensor)",
    "attention_backward": "(Tensor grad, Tensor output, Tensor log_sum, Tensor target, Tensor source, "
    f"Tensor value, Tensor? vector, Tensor? edge_term, Tensor? seed, Tensor index, Tensor? offsets, {GRAPH}, "
    "int form, int heads, float scale, float slope, float dropout, int flags) -> Tensor[]",
    "gat": "(Tensor x, Tensor weight, Tensor att_src, Tensor att_dst, Tensor? bias, Tensor? seed, "
    f"Tensor index, Tensor? offsets, {GRAPH}, int heads, float slope, float dropout, int flags) "
    "-> Tensor[]",
    "gat_backward": "(Tensor grad, Tensor x, Tensor weight, Tensor? seed, Tensor output, "
    "Tensor[] kept, Tensor index, Tensor? offsets, "
    f"{GRAPH}, int heads, float slope, float dropout, int flags, int needs) -> Tensor[]",
    "gatv2": "(Tensor x, Tensor source_weight, Tensor? source_bias, Tensor target_weight, "
    "Tensor? target_bias, Tensor att, Tensor? bias, Tensor? seed, Tensor index, Tensor? offsets, "
    f"{GRAPH}, int heads, float slope, float dropout, int flags) -> Tensor[]",
    "gatv2_backward": "(Tensor grad, Tensor x, Tensor source_weight, Tensor att, Tensor? seed, "
    f"Tensor output, Tensor[] kept, Tensor index, Tensor? offsets, {GRAPH}, int heads, float slope, "
    "float dropout, int flags, int needs) -> Tensor[]",
    "attention_weights": "(Tensor target, Tensor source, Tensor value, Tensor log_sum, "
    f"Tensor? vector, Tensor index, Tensor? offsets, {GRAPH}, int form, int heads, float scale, "
    "float slope, int flags) -> Tensor",
}

# A plan belongs to a structure. CUDA-graph trees would copy another graph's indices into the buffer
# of the first and replay the first one's plan, so they have to leave these operators out.
TAGS = tuple(
    getattr(torch.Tag, name)
    for name in ("pt2_compliant_tag", "cudagraph_unsafe")
    if hasattr(torch.Tag, name)
)

# Each operator has a twin without derivatives, which those that have them run: torch would call Python for
# them once more.
definitions = torch.library.Library("tessera", "DEF")
for _name, _schema in SCHEMAS.items():
    definitions.define(_name + _schema, tags=TAGS)
    definitions.define(f"{_name}_run" + _schema, tags=TAGS)
_library.load()
