// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/ops/operand.hpp"

/// Gradients of what all edges share. Every warp of a sweep leaves its part; these kernels add the
/// parts in a fixed order.
namespace tessera::ops {

/// The gradient of a scale.
void store_scale(const double* sums, std::int64_t num_sums, double* to, Stream stream);
/// The same into a 1 x 1 matrix of any type.
void store_factor(const double* sums, std::int64_t num_sums, const Operand& to, Stream stream);
/// The gradient of a vector, 1 x features: parts are rows of features.
void store_vector(const float* sums, std::int64_t num_sums, const Operand& to, Stream stream);

}  // namespace tessera::ops
