// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/row_starts.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

__global__ void fill_starts(const RowSlice* slices, std::int64_t count, const VertexId* indices,
                            RowStart* starts) {
  const std::int64_t at = std::int64_t{blockIdx.x} * block_threads + threadIdx.x;
  if (at >= count) return;
  RowStart start;
  start.slice = slices[at];
  for (int i = 0; i < 4; ++i) {
    start.columns[i] = i < start.slice.count ? indices[start.slice.begin + i] : 0;
  }
  starts[at] = start;
}

}  // namespace

void fill_row_starts(const RowSlice* slices, std::int64_t count, const VertexId* indices,
                     RowStart* starts, Stream stream) {
  cuda::launch(fill_starts, dim3(cuda::num_blocks(count, block_threads)), block_threads, stream,
               slices, count, indices, starts);
}

}  // namespace tessera::ops
