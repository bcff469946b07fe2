// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/finish_sums.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int tile = 32;
constexpr int tile_threads = 256;
constexpr int value_threads = 256;

__global__ void values_kernel(const FinishLaunch launch, float* values, std::int64_t stride) {
  cuda::begin_overlapped();
  const std::int64_t i = std::int64_t{blockIdx.x} * value_threads + threadIdx.x;
  if (i >= launch.rows * launch.cols) return;
  const std::int64_t row = i / launch.cols;
  const std::int64_t col = i % launch.cols;
  values[row * stride + col] = launch.finish.value(row, col, static_cast<float>(launch.sums[i]));
}

/// A thread makes four codes.
__global__ void bytes_kernel(const FinishLaunch launch, std::uint8_t* bytes, std::int64_t stride) {
  cuda::begin_overlapped();
  const std::int64_t units = (launch.cols + 15) / 16 * 4;
  const std::int64_t i = std::int64_t{blockIdx.x} * value_threads + threadIdx.x;
  if (i >= launch.rows * units) return;
  const std::int64_t row = i / units;
  const std::int64_t first = i % units * 4;
  std::uint32_t codes = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    const std::int64_t col = first + k;
    if (col >= launch.cols) break;
    const auto sum = static_cast<float>(launch.sums[row * launch.cols + col]);
    codes |= launch.finish.code(col, launch.finish.value(row, col, sum)) << (k * 8);
  }
  *reinterpret_cast<std::uint32_t*>(bytes + row * stride + first) = codes;
}

/// A block has 32 x 32 sums; outside of the matrix codes are 0, which fills the padding. A warp
/// then makes a word of every plane of the codes of one row, or of one column.
template <bool by_rows>
__global__ void codes_kernel(const FinishLaunch launch, const PackedCodes codes) {
  cuda::begin_overlapped();
  __shared__ std::uint32_t of_tile[tile][tile + 1];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_row = std::int64_t{by_rows ? blockIdx.x : blockIdx.y} * tile;
  const std::int64_t first_col = std::int64_t{by_rows ? blockIdx.y : blockIdx.x} * tile;
  for (int r = warp; r < tile; r += tile_threads / 32) {
    const std::int64_t row = first_row + r;
    const std::int64_t col = first_col + lane;
    std::uint32_t code = 0;
    if (row < launch.rows && col < launch.cols) {
      const auto sum = static_cast<float>(launch.sums[row * launch.cols + col]);
      code = launch.finish.code(col, launch.finish.value(row, col, sum));
    }
    of_tile[r][lane] = code;
  }
  __syncthreads();
  for (int line = warp; line < tile; line += tile_threads / 32) {
    const std::int64_t row = (by_rows ? first_row : first_col) + line;
    if (row >= codes.padded_rows) continue;
    const std::uint32_t code = by_rows ? of_tile[line][lane] : of_tile[lane][line];
    for (int plane = 0; plane < codes.bits; ++plane) {
      const std::uint32_t word = __ballot_sync(0xFFFFFFFFu, code >> plane & 1u);
      if (lane == 0) {
        codes.words[(plane * codes.padded_rows + row) * codes.words_per_row + blockIdx.y] = word;
      }
    }
  }
}

}  // namespace

void finish_values(const FinishLaunch& launch, float* values, std::int64_t stride, Stream stream) {
  cuda::launch_overlapped(values_kernel, cuda::num_blocks(launch.rows * launch.cols, value_threads),
                          value_threads, stream, launch, values, stride);
}

void finish_bytes(const FinishLaunch& launch, std::uint8_t* bytes, std::int64_t stride,
                  Stream stream) {
  const std::int64_t units = (launch.cols + 15) / 16 * 4;
  cuda::launch_overlapped(bytes_kernel, cuda::num_blocks(launch.rows * units, value_threads),
                          value_threads, stream, launch, bytes, stride);
}

void finish_codes(const FinishLaunch& launch, const PackedCodes& codes, bool by_rows,
                  Stream stream) {
  const dim3 grid(cuda::num_blocks(codes.padded_rows, tile),
                  static_cast<unsigned>(codes.words_per_row));
  cuda::launch_overlapped(by_rows ? codes_kernel<true> : codes_kernel<false>, grid, tile_threads,
                          stream, launch, codes);
}

}  // namespace tessera::ops
