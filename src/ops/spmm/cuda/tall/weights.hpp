// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "ops/spmm/kernel.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/placed_array.hpp"

/// What windows multiply edges by, before it is packed (values.hpp).
namespace tessera::ops {

/// What each column of the translated side is multiplied by.
PlacedArray<float> column_scales(const SpmmProblem& problem);

/// Why the matrix unit cannot take a problem's values of edges, times the scales of columns; empty
/// if it can.
std::string why_not_values(const SpmmProblem& problem);
/// The same where edges may also have no values, but their columns scales.
std::string why_not_weights(const SpmmProblem& problem);

/// What the graph's own values, or 1 where it has none, are multiplied by, so that fp16 holds their
/// products with scales.
float value_factor(const SpmmProblem& problem);

/// The graph's own values, each times the scale of the column that its edge has in the translated
/// side.
Buffer<float> scaled_values(const SpmmProblem& problem, std::span<const float> column_scales);

}  // namespace tessera::ops
