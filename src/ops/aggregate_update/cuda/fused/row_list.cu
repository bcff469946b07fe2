// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/aggregate_update/cuda/fused/rows.cuh"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"

namespace tessera::ops {
namespace {

/// A thread has a row, and counts those that come before it.
__global__ void list_block(VertexId num_rows, cuda::Offsets offsets, RowSlice* list) {
  extern __shared__ std::int32_t counts[];
  cuda::begin_overlapped();
  const std::int64_t first_row = std::int64_t{blockIdx.x} * blockDim.x;
  const auto own = static_cast<int>(threadIdx.x);
  const std::int64_t row = first_row + own;
  RowSlice slice;
  slice.count = -1;  // behind all others
  if (row < num_rows) slice = slice_of(offsets, row);
  counts[own] = slice.count;
  __syncthreads();
  if (row >= num_rows) return;
  int before = 0;
  for (int i = 0; i < static_cast<int>(blockDim.x); ++i) {
    before += counts[i] > slice.count || (counts[i] == slice.count && i < own) ? 1 : 0;
  }
  list[first_row + before] = slice;
}

}  // namespace

void list_update_rows(const cuda::DeviceRows& matrix, int block_rows, RowSlice* list,
                      Stream stream) {
  const auto threads = static_cast<unsigned>(block_rows);
  cuda::launch_overlapped(list_block, dim3(cuda::num_blocks(matrix.num_rows, block_rows)), threads,
                          threads * sizeof(std::int32_t), stream, matrix.num_rows, matrix.offsets(),
                          list);
}

}  // namespace tessera::ops
