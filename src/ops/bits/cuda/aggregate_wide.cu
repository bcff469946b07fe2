// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/aggregate_wide.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 256;
constexpr int rows_of_block = threads / 32;
constexpr int columns_of_lane = 8;
constexpr int columns_of_block = 32 * columns_of_lane;

/// A thread makes 8 codes: a quarter of a word of each plane.
__global__ void spread_wide_kernel(const BitRows from, std::int64_t width, std::uint16_t* to) {
  cuda::begin_overlapped();
  const std::int64_t units = width / columns_of_lane;
  const std::int64_t i = std::int64_t{blockIdx.x} * threads + threadIdx.x;
  if (i >= from.rows * units) return;
  const std::int64_t row = i / units;
  const std::int64_t unit = i % units;
  std::uint32_t pairs[4] = {};
  for (int plane = 0; plane < from.planes; ++plane) {
    const std::uint32_t bits =
        from.words[plane * from.plane_words + row * from.row_words + unit / 4] >> (unit % 4 * 8);
#pragma unroll
    for (int pair = 0; pair < 4; ++pair) {
      const std::uint32_t both = bits >> (pair * 2);
      pairs[pair] |= ((both & 1u) | (both & 2u) << 15) << plane;
    }
  }
  *reinterpret_cast<uint4*>(to + row * width + unit * columns_of_lane) =
      make_uint4(pairs[0], pairs[1], pairs[2], pairs[3]);
}

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
  const bool narrow = launch.narrow_offsets != nullptr;
  const std::int64_t begin = narrow ? launch.narrow_offsets[row] : launch.wide_offsets[row];
  const std::int64_t end = narrow ? launch.narrow_offsets[row + 1] : launch.wide_offsets[row + 1];
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

void spread_wide(const BitRows& from, std::int64_t width, std::uint16_t* to, Stream stream) {
  cuda::launch_overlapped(spread_wide_kernel,
                          cuda::num_blocks(from.rows * (width / columns_of_lane), threads), threads,
                          stream, from, width, to);
}

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
