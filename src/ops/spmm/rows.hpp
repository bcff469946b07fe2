// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/rows/row_schedule.hpp"
#include "ops/simd/isa.hpp"
#include "tessera/core/types.hpp"

/// The inner kernels of spmm on the CPU: what one range of rows needs, and their table. Plain data
/// only, since `rows_simd.cpp` is compiled several times.
namespace tessera::ops {

/// Sums this long stay in fp32; longer ones add such sums in fp64. It bounds the rounding error of
/// a hub's row without slowing the others.
inline constexpr EdgeOffset max_chain = 256;

/// The operands of one run. S is fp64 for fp64 storage, else fp32.
struct SpmmRows {
  const EdgeOffset* row_offsets = nullptr;
  const VertexId* col_indices = nullptr;
  EdgeOffset num_edges = 0;

  /// The value of edge e is values[at * value_stride], at = positions[e] or e; 1 if null.
  const void* values = nullptr;
  const EdgeOffset* positions = nullptr;
  std::int64_t value_stride = 1;
  bool values_are_stored = false;   ///< as the features are; else fp32
  const void* row_scale = nullptr;  ///< S, or null
  const void* col_scale = nullptr;  ///< S, or null
  bool mean = false;
  double sign = 1;  ///< -1 turns the largest into the smallest

  const void* x = nullptr;
  std::int64_t x_stride = 0;
  bool x_is_finite = false;  ///< all of it; false where nobody has looked
  void* y = nullptr;
  std::int64_t y_stride = 0;
  bool y_is_wide = false;       ///< y has S where features are stored in 16 bits
  VertexId* winners = nullptr;  ///< of `best`, or null
  std::int64_t winners_stride = 0;
  const VertexId* won_by = nullptr;  ///< of `won`: the winning source of each element of x
  std::int64_t won_by_stride = 0;

  double* slots = nullptr;  ///< one row of sums (or best values, times sign) per slot
  VertexId* slot_winners = nullptr;
  std::int64_t slot_stride = 0;
};

/// Computes features [feature_begin, feature_end) of the rows of a range.
using SpmmRowsFunction = void (*)(const SpmmRows& rows, const RowRange& range,
                                  std::int64_t feature_begin, std::int64_t feature_end);

/// Of features stored as T.
template <class T>
struct SpmmRowsFunctions {
  SpmmRowsFunction sum;            ///< weight * x of every source
  SpmmRowsFunction won;            ///< the same where the source's element was won by this row
  SpmmRowsFunction edge_features;  ///< the row of x that belongs to the edge, not to its source
  SpmmRowsFunction best;           ///< the largest product, not their sum
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByStorage<SpmmRowsFunctions>, spmm_rows)
