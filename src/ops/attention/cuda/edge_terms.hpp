// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/edge_terms_call.hpp"
#include "tessera/ops/dropout.hpp"

/// The functions of `EdgeTermOps` on a GPU.
namespace tessera::ops {

void add_terms(const EdgeTermsCall& terms, const Operand& scores, Stream stream);
void differentiate_terms(const EdgeTermsCall& terms, const Operand& gradients,
                         const Operand& of_terms, Stream stream);
void score_by_vector(const VectorTermsCall& terms, const Operand& scores, Stream stream);
void differentiate_by_vector(const VectorTermsCall& terms, const ConstOperand& of_scores,
                             const VectorTermsGradients& gradients, Stream stream);
void drop_numbers(const Operand& numbers, const DropoutConstants& dropout, Stream stream);

}  // namespace tessera::ops
