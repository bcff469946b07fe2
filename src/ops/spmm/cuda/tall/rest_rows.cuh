// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/rows.hpp"

namespace tessera::ops {

/// The edges of a row of the rest.
struct EdgeRange {
  EdgeOffset begin = 0;
  int count = 0;
};

__device__ inline EdgeRange row_edges(const cuda::Offsets& offsets, std::int64_t row) {
  const bool narrow = offsets.narrow != nullptr;
  const EdgeOffset begin = narrow ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
  const EdgeOffset end = narrow ? __ldg(offsets.narrow + row + 1) : __ldg(offsets.wide + row + 1);
  return {begin, static_cast<int>(end - begin)};
}

/// Rows without edges have no sums.
__device__ inline bool is_empty(const cuda::Offsets& offsets, std::int64_t row) {
  return row_edges(offsets, row).count == 0;
}

}  // namespace tessera::ops
