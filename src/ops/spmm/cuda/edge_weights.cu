// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/edge_weights.hpp"

#include "cuda/launch.cuh"
#include "ops/spmm/cuda/rows/reduce.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 256;

/// A warp per row.
template <class T>
__global__ void write_weights(const RowsLaunch launch, T* weights) {
  cuda::begin_overlapped();
  const std::int64_t row = (std::int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
  if (row >= launch.matrix.num_rows) return;
  const EdgeOffset begin = offset_at(launch.matrix.offsets, row);
  const EdgeOffset end = offset_at(launch.matrix.offsets, row + 1);
  for (EdgeOffset edge = begin + threadIdx.x % 32; edge < end; edge += 32) {
    const float weight[1] = {weight_of<T>(launch, edge, __ldg(launch.matrix.indices + edge))};
    float whole[1];
    Sum::finish(launch, {static_cast<VertexId>(row), 0}, weight, whole);
    weights[edge] = cuda::narrow<T>(whole[0]);
  }
}

template <class T>
void write_as(const RowsLaunch& launch, void* weights, Stream stream) {
  cuda::launch_overlapped(write_weights<T>,
                          dim3(cuda::num_blocks(launch.matrix.num_rows, block_threads / 32)),
                          block_threads, stream, launch, static_cast<T*>(weights));
}

}  // namespace

void write_edge_weights(const RowsLaunch& launch, Precision precision, void* weights,
                        Stream stream) {
  switch (precision) {
    case Precision::bf16: return write_as<__nv_bfloat16>(launch, weights, stream);
    case Precision::fp16: return write_as<__half>(launch, weights, stream);
    default: return write_as<float>(launch, weights, stream);
  }
}

}  // namespace tessera::ops
