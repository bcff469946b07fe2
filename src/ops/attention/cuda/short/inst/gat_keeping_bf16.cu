// SPDX-License-Identifier: Apache-2.0
#include "cuda/overlap.cuh"
#include "ops/attention/cuda/short/gat_keeping.cuh"
#include "ops/attention/cuda/short/launch.hpp"

namespace tessera::ops {
namespace {

/// What the sweep over rows of GAT's backward pass finds, from sums that the forward pass kept:
///
///     dl = (1 - slope) (dO . O+ - D P+)
///
/// and the states of targets. Eight lanes share the 64 features of a row and head.
__global__ __launch_bounds__(256) void find_kept_states(const KeepingLaunch launch) {
  constexpr int width = 64;
  cuda::begin_overlapped();
  const std::int64_t item = (std::int64_t{blockIdx.x} * 256 + threadIdx.x) / 8;
  if (item >= launch.num_rows * launch.heads) return;
  const int lane = static_cast<int>(threadIdx.x % 8);
  const std::int64_t row = item / launch.heads;
  const std::int64_t head = item - row * launch.heads;
  const auto unit = [&](const void* matrix, std::int64_t stride) {
    return *reinterpret_cast<const uint4*>(static_cast<const __nv_bfloat16*>(matrix) +
                                           row * stride + head * width + lane * 8);
  };
  const uint4 gradient = unit(launch.own_values, launch.own_values_stride);
  const uint4 output = unit(launch.own_output, launch.own_output_stride);
  const uint4 above = unit(launch.above.features, launch.heads * width);
  float dot = add_unit_product<__nv_bfloat16>(gradient, above, 0.0f);
  float d = add_unit_product<__nv_bfloat16>(gradient, output, 0.0f);
  // Whole groups of eight lanes come here or none.
  const unsigned group = 0xffu << (threadIdx.x % 32 / 8 * 8);
#pragma unroll
  for (int distance = 1; distance < 8; distance *= 2) {
    dot += __shfl_xor_sync(group, dot, distance);
    d += __shfl_xor_sync(group, d, distance);
  }
  if (lane != 0) return;
  const __nv_bfloat16 term =
      static_cast<const __nv_bfloat16*>(launch.target)[row * launch.target_stride + head];
  const GatOwn<__nv_bfloat16, true> own = {
      twice(term), launch.log_sum[row * launch.log_sum_stride + head] * log2_of_e};
  static_cast<GatRowState*>(launch.row_state)[item] = own.state(launch.slope, d);
  if (launch.score_gradient == nullptr) return;
  static_cast<__nv_bfloat16*>(launch.score_gradient)[row * launch.score_gradient_stride + head] =
      cuda::narrow<__nv_bfloat16>((1 - launch.slope) * (dot - d * launch.above.weights[item]));
}

using Keeping = ShortGatKeeping<kept_head_width>;

void find_states(const KeepingLaunch& launch, Stream stream) {
  const std::int64_t lanes = 8 * (std::int64_t{launch.num_rows} * launch.heads);
  cuda::launch_overlapped(find_kept_states, dim3(cuda::num_blocks(lanes, 256)), 256, stream,
                          launch);
}

}  // namespace

const KeepingFunctions short_gat_keeping_bf16 = {launch_windows<Keeping>,
                                                 resident_window_blocks<Keeping>, find_states};

void forget_kept(float* numbers, std::int64_t count, Stream stream) {
  cuda_check(cudaMemsetAsync(numbers, 0xff, static_cast<std::size_t>(count) * sizeof(float),
                             cuda::raw(stream)),
             "forgetting what was kept");
}

}  // namespace tessera::ops
