// SPDX-License-Identifier: Apache-2.0
#include "ops/cuda/units_copy.hpp"

#include "cuda/any_start.cuh"
#include "cuda/launch.cuh"
#include "cuda/overlap.cuh"

namespace tessera::ops {
namespace {

constexpr unsigned block_threads = 256;

/// Rows of a thread, all of them in flight before the first is stored.
constexpr int rows_at_once = 4;

template <class T>
__global__ void __launch_bounds__(block_threads) copy_units(const UnitsCopy copy) {
  cuda::begin_overlapped();
  const std::int64_t rows_apart = block_threads / copy.lanes;
  const std::int64_t first = blockIdx.x * rows_at_once * rows_apart + threadIdx.x / copy.lanes;
  if (first >= copy.rows) return;
#pragma unroll 1
  for (int unit = static_cast<int>(threadIdx.x) % copy.lanes; unit < copy.units;
       unit += copy.lanes) {
    const char* const from = copy.x + unit * 16;
    const int bytes = copy.bytes - unit * 16;
    uint4* const to = static_cast<uint4*>(copy.to) + unit;
    cuda::UnitBlocks<T> blocks[rows_at_once];
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
      const std::int64_t row = first + i * rows_apart;
      blocks[i].load_if(row < copy.rows_in_blocks, from + row * copy.x_row_bytes, bytes);
    }
#pragma unroll
    for (int i = 0; i < rows_at_once; ++i) {
      const std::int64_t row = first + i * rows_apart;
      if (row < copy.rows_in_blocks) to[row * copy.units] = blocks[i].unit();
    }
    // The last rows of X.
#pragma unroll 1
    for (std::int64_t row = first; row < min(copy.rows, first + rows_at_once * rows_apart);
         row += rows_apart) {
      if (row < copy.rows_in_blocks) continue;
      blocks[0].load_alone(true, from + row * copy.x_row_bytes, bytes);
      to[row * copy.units] = blocks[0].unit();
    }
  }
}

}  // namespace

void run_units_copy(const UnitsCopy& copy, Stream stream) {
  cuda::launch_overlapped(
      copy.element_bytes == 2 ? copy_units<std::uint16_t> : copy_units<float>,
      dim3(cuda::num_blocks(copy.rows * copy.lanes, std::int64_t{block_threads} * rows_at_once)),
      block_threads, stream, copy);
}

}  // namespace tessera::ops
