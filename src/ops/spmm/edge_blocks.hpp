// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"
#include "tessera/core/types.hpp"

/// The inner loop of gather-apply-scatter on the CPU. Plain data only, since `edge_blocks_simd.cpp`
/// is compiled several times.
namespace tessera::ops {

/// Some edges, for the inner loop: row `to` of the sums gets `weight` times row `from` of X.
struct EdgeBlock {
  static constexpr int most = 256;
  VertexId from[most];
  VertexId to[most];
  double weights[most];
  int count = 0;
};

struct EdgeBlockOperands {
  const void* x = nullptr;
  std::int64_t x_stride = 0;
  void* sums = nullptr;  ///< fp64 for fp64 features, else fp32
  std::int64_t sums_stride = 0;
  std::int64_t features = 0;
};

using EdgeBlockFunction = void (*)(const EdgeBlock& block, const EdgeBlockOperands& operands);

/// By how features are stored.
struct EdgeBlockTable {
  EdgeBlockFunction fp64 = nullptr;
  EdgeBlockFunction fp32 = nullptr;
  EdgeBlockFunction bf16 = nullptr;
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(EdgeBlockTable, edge_blocks)
