// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "ops/simd/isa.hpp"
#include "ops/spmm/kernel.hpp"
#include "tessera/core/types.hpp"

namespace tessera::ops {

/// Rows after which sums in the storage's precision are added to those in fp64: no column can have
/// had more terms by then.
inline constexpr VertexId scatter_chain = 256;

/// dX = A^T dY by rows of A: dY[i], read once, is added to the sums of the sources of i. Faster
/// than gathering rows of dY where the sums fit the nearest caches and dY does not: the gradient of
/// a weight that sparse features were multiplied with.
std::unique_ptr<const PreparedSpmm> prepare_spmm_scatter(const SpmmProblem& problem);

/// The operands of the inner kernel. S is what T is summed in.
struct ScatterRows {
  const EdgeOffset* row_offsets = nullptr;
  const VertexId* col_indices = nullptr;
  const void* values = nullptr;  ///< as SpmmRows'
  std::int64_t value_stride = 1;
  bool values_are_stored = false;
  const void* row_scale = nullptr;  ///< S, or null
  const void* y = nullptr;          ///< dY, in T
  std::int64_t y_stride = 0;
  std::int64_t features = 0;
};

/// Adds rows [row_begin, row_end) to `sums`, num_cols x features of S.
using ScatterFunction = void (*)(const ScatterRows& rows, VertexId row_begin, VertexId row_end,
                                 void* sums);

struct ScatterTable {
  ScatterFunction fp64 = nullptr;
  ScatterFunction fp32 = nullptr;
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ScatterTable, spmm_scatter)
