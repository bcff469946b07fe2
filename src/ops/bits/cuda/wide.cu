// SPDX-License-Identifier: Apache-2.0
#include "cuda/launch.cuh"
#include "ops/bits/cuda/aggregate.hpp"

namespace tessera::ops {
namespace {

constexpr int threads = 256;
constexpr int rows_of_block = threads / 32;
constexpr int columns_of_lane = 8;
constexpr int columns_of_block = 32 * columns_of_lane;

/// A warp has a row and up to 256 columns, 8 to a lane; where it needs fewer lanes for these,
/// groups of them share the sources.
template <int lanes>
__global__ __launch_bounds__(threads) void aggregate_wide_kernel(const WideLaunch launch) {
  cuda::begin_overlapped();
  constexpr int groups = 32 / lanes;
  constexpr int together = 4;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const std::int64_t row = std::int64_t{blockIdx.x} * rows_of_block + threadIdx.x / 32;
  if (row >= launch.rows) return;
  const std::int64_t column =
      std::int64_t{blockIdx.y} * columns_of_block + lane % lanes * columns_of_lane;
  const bool exists = column < launch.width;
  const bool narrow = launch.offsets.narrow != nullptr;
  const std::int64_t begin = narrow ? launch.offsets.narrow[row] : launch.offsets.wide[row];
  const std::int64_t end = narrow ? launch.offsets.narrow[row + 1] : launch.offsets.wide[row + 1];
  std::int32_t sums[columns_of_lane] = {};
  if (exists) {
    const std::uint16_t* const codes = launch.codes + column;
    for (std::int64_t edge = begin + lane / lanes; edge < end; edge += groups * together) {
      uint4 loaded[together];
#pragma unroll
      for (int i = 0; i < together; ++i) {
        loaded[i] = make_uint4(0, 0, 0, 0);
        if (edge + i * groups < end) {
          const std::int64_t source = __ldg(launch.sources + edge + i * groups);
          loaded[i] = __ldg(reinterpret_cast<const uint4*>(codes + source * launch.width));
        }
      }
#pragma unroll
      for (int i = 0; i < together; ++i) {
        const std::uint32_t words[4] = {loaded[i].x, loaded[i].y, loaded[i].z, loaded[i].w};
#pragma unroll
        for (int w = 0; w < 4; ++w) {
          sums[w * 2] += static_cast<std::int32_t>(words[w] & 0xFFFFu);
          sums[w * 2 + 1] += static_cast<std::int32_t>(words[w] >> 16);
        }
      }
    }
  }
#pragma unroll
  for (int distance = lanes; distance < 32; distance *= 2) {
#pragma unroll
    for (std::int32_t& sum : sums) sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  }
  if (!exists || lane >= lanes) return;
  std::int32_t* const to = launch.sums + row * launch.stride + column;
#pragma unroll
  for (int i = 0; i < columns_of_lane; ++i) {
    if (column + i < launch.cols) to[i] = sums[i];
  }
}

}  // namespace

void aggregate_wide(const WideLaunch& launch, Stream stream) {
  if (launch.cols == 0 || launch.rows == 0) return;
  const dim3 grid(cuda::num_blocks(launch.rows, rows_of_block),
                  cuda::num_blocks(launch.width, columns_of_block));
  const auto kernel = launch.width <= 32    ? aggregate_wide_kernel<4>
                      : launch.width <= 128 ? aggregate_wide_kernel<16>
                                            : aggregate_wide_kernel<32>;
  cuda::launch_overlapped(kernel, grid, threads, stream, launch);
}

}  // namespace tessera::ops
