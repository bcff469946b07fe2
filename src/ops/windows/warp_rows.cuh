// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/async_copy.cuh"
#include "tessera/core/types.hpp"

/// Who a lane is, and where rows of 16-bit features lie.
namespace tessera::ops {

struct WarpLane {
  __device__ static int number() { return static_cast<int>(threadIdx.x % 32); }
  __device__ static int group() { return number() / 4; }
  __device__ static int quarter() { return number() % 4; }
};

/// The rows of a matrix, from `first` of the head blockIdx.y on.
class FeatureRows {
 public:
  __device__ FeatureRows(const void* matrix, std::int64_t stride, int width, int first)
      : data_(static_cast<const char*>(matrix) + (std::int64_t{blockIdx.y} * width + first) * 2),
        row_bytes_(static_cast<std::uint32_t>(stride * 2)) {}

  /// From now on its first address stays in registers.
  __device__ void hold() { asm volatile("" : "+l"(data_)); }

  __device__ const char* at(VertexId row) const {
    return data_ + static_cast<std::uint64_t>(static_cast<std::uint32_t>(row)) * row_bytes_;
  }

 private:
  const char* data_;
  std::uint32_t row_bytes_;
};

}  // namespace tessera::ops
