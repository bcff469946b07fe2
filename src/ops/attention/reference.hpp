// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tessera/graph/graph.hpp"
#include "tessera/ops/attention.hpp"

/// The specification of attention: sequential, in double precision. The operands are those of the
/// op, all stored as fp64.
namespace tessera::ops::reference {

void attention(const Graph& graph, const AttentionOptions& options, const AttentionInputs& inputs,
               const AttentionOutputs& outputs);

/// Every gradient that is present is written whole.
void attention_backward(const Graph& graph, const AttentionOptions& options,
                        const AttentionInputs& inputs, ConstOperand grad_output,
                        const AttentionGradOutputs& gradients);

/// The weights before dropout, num_edges x heads.
void attention_weights(const Graph& graph, const AttentionOptions& options,
                       const AttentionInputs& inputs, Operand weights);

}  // namespace tessera::ops::reference
