// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "ops/attention/kernel.hpp"

namespace tessera::ops {

/// The same problem with dot products instead of cosines.
AttentionProblem as_dot_products(const AttentionProblem& problem);

/// Attention by cosines from a kernel that was prepared for dot products: it sees rows of unit
/// length, the targets multiplied by the factor.
std::unique_ptr<const PreparedAttention> on_unit_rows(
    std::unique_ptr<const PreparedAttention> dot_products, const AttentionProblem& problem);

}  // namespace tessera::ops
