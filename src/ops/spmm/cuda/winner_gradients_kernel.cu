// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/winner_gradients.hpp"

#include "cuda/launch.cuh"
#include "cuda/offsets.cuh"
#include "cuda/vectors.cuh"

namespace tessera::ops {
namespace {

constexpr int block_threads = 128;
constexpr int edges_per_warp = 8;

/// A warp takes some edges, one after the other; its lanes share the features.
template <class T>
__global__ void winner_gradients(const WinnerGradientsLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t warp = (std::int64_t{blockIdx.x} * block_threads + threadIdx.x) / 32;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const EdgeOffset begin = warp * edges_per_warp;
  const EdgeOffset end =
      begin + edges_per_warp < launch.num_edges ? begin + edges_per_warp : launch.num_edges;
  if (begin >= end) return;
  const RowsLaunch::Matrix& matrix = launch.rows.matrix;
  const RowsLaunch::Features& features = launch.rows.features;
  const float* const row_scale = launch.rows.epilogue.row_scale;
  VertexId row = cuda::row_of(matrix.offsets, matrix.num_rows, begin);
  for (EdgeOffset edge = begin; edge < end; ++edge) {
    if (edge >= cuda::fixed_offset_at(matrix.offsets, std::int64_t{row} + 1)) {
      row = cuda::row_of(matrix.offsets, matrix.num_rows, edge);
    }
    const VertexId column = __ldg(matrix.indices + edge);
    const T* const grad_y = static_cast<const T*>(launch.grad_y) + row * launch.grad_y_stride;
    const T* const x = static_cast<const T*>(features.x) + column * features.x_stride;
    const VertexId* const winners = launch.winners + row * launch.winners_stride;
    float sum = 0;
    for (std::int64_t k = lane; k < features.count; k += 32) {
      if (winners[k] == column) sum = fmaf(cuda::widen(grad_y[k]), cuda::widen(x[k]), sum);
    }
    for (int distance = 16; distance > 0; distance /= 2) {
      sum += __shfl_xor_sync(~0u, sum, distance);
    }
    if (lane != 0) continue;
    if (row_scale != nullptr) sum *= __ldg(row_scale + row);
    if (matrix.col_scale != nullptr) sum *= __ldg(matrix.col_scale + column);
    static_cast<T*>(launch.result)[edge * launch.result_stride] = cuda::narrow<T>(sum);
  }
}

template <class T>
void launch_as(const WinnerGradientsLaunch& launch, Stream stream) {
  constexpr int edges_per_block = edges_per_warp * block_threads / 32;
  cuda::launch_overlapped(winner_gradients<T>,
                          dim3(cuda::num_blocks(launch.num_edges, edges_per_block)), block_threads,
                          stream, launch);
}

}  // namespace

void launch_winner_gradients(const WinnerGradientsLaunch& launch, Precision precision,
                             Stream stream) {
  switch (precision) {
    case Precision::bf16: return launch_as<__nv_bfloat16>(launch, stream);
    case Precision::fp16: return launch_as<__half>(launch, stream);
    default: return launch_as<float>(launch, stream);
  }
}

}  // namespace tessera::ops
