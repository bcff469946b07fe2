// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "ops/spmm/kernel.hpp"
#include "tessera/core/memory.hpp"
#include "tessera/core/placed_array.hpp"

/// What windows multiply edges by, before it is packed (values.hpp).
namespace tessera::ops {

/// What each column of the translated side is multiplied by.
PlacedArray<float> column_scales(const SpmmProblem& problem);
inline bool has_column_scales(const SpmmProblem& problem) {
  if (problem.is_forward()) return problem.graph.has_col_scale();
  return problem.graph.has_row_scale() || problem.reduction == Reduction::mean;
}
/// What its rows are, before a mean divides them.
PlacedArray<float> row_scales(const SpmmProblem& problem);

/// Why the matrix unit cannot take a problem's values of edges, times the scales of columns; empty
/// if it can.
std::string why_not_values(const SpmmProblem& problem);
/// The same where edges may also have no values, but their columns scales.
std::string why_not_weights(const SpmmProblem& problem);

/// What edges are multiplied by, packed for the matrix unit.
struct PackedWeights {
  Buffer<float> edge_scales;  ///< of the columns that edges have in the translated side
  Buffer<std::uint32_t>
      values;      ///< the graph's own, or 1, times these; an entry for each of `edges`
  float unit = 1;  ///< of results
};
PackedWeights pack_weights(const SpmmProblem& problem, std::span<const std::int32_t> edges,
                           bool with_values);

}  // namespace tessera::ops
