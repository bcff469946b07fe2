// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/launch.hpp"

#include "cuda/launch.cuh"

namespace tessera::ops {
namespace {

constexpr int tile = 32;
constexpr int tile_threads = 256;
constexpr int value_threads = 256;

struct Sums {
  const std::int32_t* data;
  std::int64_t rows, cols;

  __device__ float value(const BitFinish& finish, std::int64_t row, std::int64_t col) const {
    return finish.value(row, col, static_cast<float>(data[row * cols + col]));
  }
  __device__ std::uint32_t code(const BitFinish& finish, std::int64_t row, std::int64_t col) const {
    return finish.code(col, value(finish, row, col));
  }
};

__global__ void values_kernel(const Sums sums, const BitResult result) {
  cuda::begin_overlapped();
  const std::int64_t i = std::int64_t{blockIdx.x} * value_threads + threadIdx.x;
  if (i >= sums.rows * sums.cols) return;
  const std::int64_t row = i / sums.cols;
  const std::int64_t col = i % sums.cols;
  result.values[row * result.stride + col] = sums.value(result.finish, row, col);
}

/// A thread makes four codes; zeros fill rows up to multiples of 16.
__global__ void bytes_kernel(const Sums sums, const BitResult result) {
  cuda::begin_overlapped();
  const std::int64_t units = (sums.cols + 15) / 16 * 4;
  const std::int64_t i = std::int64_t{blockIdx.x} * value_threads + threadIdx.x;
  if (i >= sums.rows * units) return;
  const std::int64_t row = i / units;
  const std::int64_t first = i % units * 4;
  std::uint32_t codes = 0;
#pragma unroll
  for (int k = 0; k < 4; ++k) {
    if (first + k >= sums.cols) break;
    codes |= sums.code(result.finish, row, first + k) << (k * 8);
  }
  *reinterpret_cast<std::uint32_t*>(result.bytes + row * result.stride + first) = codes;
}

/// A block has 32 x 32 sums; outside of the matrix codes are 0, which fills the padding. A warp
/// then makes a word of every plane of the codes of one row, or of one column.
template <bool by_rows>
__global__ void codes_kernel(const Sums sums, const BitResult result) {
  cuda::begin_overlapped();
  const PackedCodes& codes = result.codes;
  __shared__ std::uint32_t of_tile[tile][tile + 1];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  const std::int64_t first_row = std::int64_t{by_rows ? blockIdx.x : blockIdx.y} * tile;
  const std::int64_t first_col = std::int64_t{by_rows ? blockIdx.y : blockIdx.x} * tile;
  for (int r = warp; r < tile; r += tile_threads / 32) {
    const std::int64_t row = first_row + r;
    const std::int64_t col = first_col + lane;
    const bool exists = row < sums.rows && col < sums.cols;
    of_tile[r][lane] = exists ? sums.code(result.finish, row, col) : 0u;
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

/// A warp for each row, a lane for 16 bytes at a time of each plane.
__global__ void row_terms_kernel(const BitRows codes, const float* row_scale,
                                 std::int64_t scale_stride, float* terms, int count) {
  cuda::begin_overlapped();
  const std::int64_t row = (std::int64_t{blockIdx.x} * value_threads + threadIdx.x) / 32;
  if (row >= codes.rows) return;
  long long sum = 0;
  for (int plane = 0; plane < codes.planes; ++plane) {
    const auto* words = reinterpret_cast<const uint4*>(codes.words + plane * codes.plane_words +
                                                       row * codes.row_words);
    long long bits = 0;
    for (std::int64_t i = threadIdx.x % 32; i < codes.row_words / 4; i += 32) {
      const uint4 four = words[i];
      bits += __popc(four.x) + __popc(four.y) + __popc(four.z) + __popc(four.w);
    }
    sum += bits << plane;
  }
#pragma unroll
  for (int distance = 16; distance > 0; distance /= 2) {
    sum += __shfl_xor_sync(0xFFFFFFFFu, sum, distance);
  }
  if (threadIdx.x % 32 != 0) return;
  const float scale = row_scale == nullptr ? 1.0f : row_scale[row * scale_stride];
  terms[row * count] = scale * static_cast<float>(sum);
  if (count > 1) terms[row * count + 1] = scale;
}

}  // namespace

void finish_in_pass(const std::int32_t* data, std::int64_t rows, std::int64_t cols,
                    const BitResult& result, Stream stream) {
  const Sums sums{data, rows, cols};
  if (result.kind == BitResultKind::values || result.kind == BitResultKind::bytes) {
    const bool codes = result.kind == BitResultKind::bytes;
    const std::int64_t items = rows * (codes ? (cols + 15) / 16 * 4 : cols);
    cuda::launch_overlapped(codes ? bytes_kernel : values_kernel,
                            cuda::num_blocks(items, value_threads), value_threads, stream, sums,
                            result);
    return;
  }
  const dim3 grid(cuda::num_blocks(result.codes.padded_rows, tile),
                  static_cast<unsigned>(result.codes.words_per_row));
  cuda::launch_overlapped(
      result.kind == BitResultKind::rows ? codes_kernel<true> : codes_kernel<false>, grid,
      tile_threads, stream, sums, result);
}

void make_row_terms(const BitRows& codes, const float* row_scale, std::int64_t scale_stride,
                    float* terms, int count, Stream stream) {
  cuda::launch_overlapped(row_terms_kernel, cuda::num_blocks(codes.rows * 32, value_threads),
                          value_threads, stream, codes, row_scale, scale_stride, terms, count);
}

}  // namespace tessera::ops
