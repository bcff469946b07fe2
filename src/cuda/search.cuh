// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace tessera::cuda {

/// This thread's number in a grid of one dimension.
__device__ inline std::int64_t thread_number() {
  return std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x;
}

/// The first position in [begin, end) whose value is not below `wanted`; `end` if there is none.
template <class T>
__device__ std::int64_t lower_bound(const T* values, std::int64_t begin, std::int64_t end,
                                    T wanted) {
  while (begin < end) {
    const std::int64_t middle = begin + (end - begin) / 2;
    if (values[middle] < wanted) {
      begin = middle + 1;
    } else {
      end = middle;
    }
  }
  return begin;
}

/// The row whose edges include `edge`: offsets[row] <= edge < offsets[row + 1].
__device__ inline std::int32_t row_of_edge(const std::int64_t* offsets, std::int32_t num_rows,
                                           std::int64_t edge) {
  return static_cast<std::int32_t>(lower_bound(offsets, 0, std::int64_t{num_rows} + 1, edge + 1) -
                                   1);
}

}  // namespace tessera::cuda
