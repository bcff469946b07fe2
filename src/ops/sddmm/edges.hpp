// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/rows/row_schedule.hpp"
#include "ops/simd/isa.hpp"
#include "tessera/core/types.hpp"

/// The inner kernels of sddmm on the CPU. Plain data only, since `edges_simd.cpp` is compiled
/// several times.
namespace tessera::ops {

/// The operands of one run. S is fp64 for fp64 storage, else fp32.
struct SddmmEdges {
  const EdgeOffset* row_offsets = nullptr;
  const VertexId* col_indices = nullptr;
  EdgeOffset num_edges = 0;
  std::int64_t features = 0;
  std::int64_t heads = 1;
  const void* u = nullptr;
  std::int64_t u_stride = 0;
  const void* v = nullptr;
  std::int64_t v_stride = 0;
  void* edges = nullptr;
  std::int64_t edges_stride = 0;
  const void* row_scale = nullptr;  ///< S, or null
  const void* col_scale = nullptr;  ///< S, or null
};

/// Computes the edges of a range.
using SddmmFunction = void (*)(const SddmmEdges& operands, const RowRange& range);

/// Of features stored as T.
template <class T>
struct SddmmFunctions {
  SddmmFunction dot;
  SddmmFunction add;
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByStorage<SddmmFunctions>, sddmm_edges)
