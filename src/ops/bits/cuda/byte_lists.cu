// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/byte_lists.hpp"

#include "cuda/launch.cuh"
#include "ops/bits/cuda/emit.cuh"

namespace tessera::ops {
namespace {

constexpr int threads = 128;
constexpr int lane_columns = 16;
/// Sources whose codes are under way at once.
constexpr int in_flight = 4;
/// Two sums share a word while they grow, up to so many sources.
constexpr int most_at_once = 256;

/// The sums of 16 columns over up to `most_at_once` sources, added to `totals`.
__device__ void add_sources(const std::uint16_t* sources, int count, const std::uint8_t* codes,
                            std::uint32_t stride, std::int32_t (&totals)[lane_columns]) {
  std::uint32_t even[4] = {}, odd[4] = {};
  for (int first = 0; first < count; first += in_flight) {
    std::uint32_t words[in_flight][4];
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
      uint4 loaded{};
      if (first + k < count) {
        const auto offset = static_cast<std::uint64_t>(__ldg(sources + first + k)) * stride;
        loaded = __ldg(reinterpret_cast<const uint4*>(codes + offset));
      }
      memcpy(words[k], &loaded, sizeof(loaded));
    }
#pragma unroll
    for (int k = 0; k < in_flight; ++k) {
#pragma unroll
      for (int w = 0; w < 4; ++w) {
        even[w] += words[k][w] & 0x00FF00FFu;
        odd[w] += __byte_perm(words[k][w], 0, 0x4341);
      }
    }
  }
#pragma unroll
  for (int w = 0; w < 4; ++w) {
    totals[w * 4] += static_cast<std::int32_t>(even[w] & 0xFFFFu);
    totals[w * 4 + 1] += static_cast<std::int32_t>(odd[w] & 0xFFFFu);
    totals[w * 4 + 2] += static_cast<std::int32_t>(even[w] >> 16);
    totals[w * 4 + 3] += static_cast<std::int32_t>(odd[w] >> 16);
  }
}

/// A row for each team of lanes.
template <int lanes>
__global__ void __launch_bounds__(threads) sum_lists(const ByteListsLaunch launch) {
  cuda::begin_overlapped();
  const std::int64_t row =
      std::int64_t{blockIdx.x} * (threads / lanes) + static_cast<int>(threadIdx.x) / lanes;
  const std::int64_t column = std::int64_t{blockIdx.y} * (lanes * lane_columns) +
                              static_cast<int>(threadIdx.x) % lanes * lane_columns;
  std::int32_t totals[lane_columns] = {};
  if (row < launch.out.rows && column < launch.out.cols) {
    const int begin = __ldg(launch.offsets + row);
    const int end = __ldg(launch.offsets + row + 1);
    const std::uint8_t* const codes =
        launch.codes + __ldg(launch.starts + row / 64) * launch.code_stride + column;
    for (int first = begin; first < end; first += most_at_once) {
      add_sources(launch.sources + first, min(end - first, most_at_once), codes,
                  static_cast<std::uint32_t>(launch.code_stride), totals);
    }
  }
  __syncwarp();
  emit<lanes>(launch.out, row, column, row < launch.out.all_rows, totals);
}

template <int lanes>
void launch_lists(const ByteListsLaunch& launch, Stream stream) {
  const dim3 grid(cuda::num_blocks(launch.out.all_rows, threads / lanes),
                  cuda::num_blocks(launch.out.cols, lanes * lane_columns));
  cuda::launch_overlapped(sum_lists<lanes>, grid, threads, stream, launch);
}

}  // namespace

void sum_byte_lists(const ByteListsLaunch& launch, Stream stream) {
  if (launch.out.cols <= 16) return launch_lists<1>(launch, stream);
  if (launch.out.cols <= 32) return launch_lists<2>(launch, stream);
  if (launch.out.cols <= 64) return launch_lists<4>(launch, stream);
  launch_lists<8>(launch, stream);
}

}  // namespace tessera::ops
