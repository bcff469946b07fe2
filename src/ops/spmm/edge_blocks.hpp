// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"
#include "tessera/core/types.hpp"

/// The inner loop of sums on the CPU that are taken edge by edge. Plain data only, since
/// `edge_blocks_simd.cpp` is compiled several times.
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

/// Of features stored as T.
template <class T>
struct EdgeBlockFunctions {
  void (*add)(const EdgeBlock& block, const EdgeBlockOperands& operands);
};

}  // namespace tessera::ops

TESSERA_SIMD_TABLE(ByStorage<EdgeBlockFunctions>, edge_blocks)

namespace tessera::ops {

/// Adds edges to sums, a block of them at a time.
template <class T>
class EdgeAdder {
 public:
  explicit EdgeAdder(const EdgeBlockOperands& operands) : operands_(operands) {}

  void add(VertexId from, VertexId to, SumOf<T> weight) {
    block_.from[block_.count] = from;
    block_.to[block_.count] = to;
    block_.weights[block_.count] = static_cast<double>(weight);
    if (++block_.count == EdgeBlock::most) flush();
  }
  /// What was added last is in the sums only after this.
  void flush() {
    functions_.add(block_, operands_);
    block_.count = 0;
  }

 private:
  const EdgeBlockFunctions<T>& functions_ = edge_blocks().of<T>();
  EdgeBlockOperands operands_;
  EdgeBlock block_;
};

}  // namespace tessera::ops
