// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/elements.cuh"
#include "ops/gemm/cuda/split_sums.cuh"

/// The moments of a product's columns, found while its rows are written: batch norm needs no pass
/// of its own for them. The sums of a tile are fp32, all others double, in an order that depends on
/// the shape alone.
namespace tessera::ops {

inline constexpr int stream_threads = 256;
/// Two blocks per processor of a large GPU: rows do not depend on each other, so any number may do
/// them, but it must not depend on the GPU where sums are cut so.
inline constexpr std::int64_t most_stream_blocks = 264;

/// Shared memory of their own.
inline constexpr int stream_moments_bytes = 9 << 10;

/// Of twice `count` values the lane keeps those that its bit says, and adds its partner's.
template <int count>
__device__ void halve(float (&values)[8], int bit, int lane) {
  const bool upper = (lane & bit) != 0;
#pragma unroll
  for (int i = 0; i < count; ++i) {
    const float sent = upper ? values[i] : values[count + i];
    const float kept = upper ? values[count + i] : values[i];
    values[i] = kept + __shfl_xor_sync(~0u, sent, bit);
  }
}

/// Eight values of the lanes that are a multiple of four apart: each lane ends up with the sum over
/// all of them of one value, number lane / 4.
__device__ inline float add_across_eight_lanes(float (&values)[8], int lane) {
  halve<4>(values, 16, lane);
  halve<2>(values, 8, lane);
  halve<1>(values, 4, lane);
  return values[0];
}

template <int cols, bool fused>
class StreamMoments {
 public:
  static constexpr bool wanted = false;
  __device__ StreamMoments(const ProductLaunch&, bool, std::int64_t) {}
  __device__ void add(int, const cuda::Pack<float, 4> (&)[2], std::int64_t, bool, bool) {}
  __device__ void finish(const ProductLaunch&, std::int64_t) {}
};

template <int cols>
class StreamMoments<cols, true> {
 public:
  static constexpr bool wanted = true;
  /// Ends before the barrier that the caller has.
  __device__ StreamMoments(const ProductLaunch& launch, bool inner_in_row, std::int64_t first_col)
      : wanted_(launch.moments.totals != nullptr) {
    const int thread = static_cast<int>(threadIdx.x);
    if (!wanted_ || thread >= sharers * cols) return;
    const std::int64_t col = first_col + thread / sharers;
    float first = first_of_column(launch, inner_in_row, col);
    if (!isfinite(first)) first = 0;
    if (thread % sharers == 0) shifts()[thread / sharers] = first;
  }

  /// Four columns of two rows, of which so many are there.
  __device__ void add(int j, const cuda::Pack<float, 4> (&rows)[2], std::int64_t columns,
                      bool has_first, bool has_second) {
    if (!wanted_) return;
    const int lane = static_cast<int>(threadIdx.x) % 32;
    float values[8];
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const float shift = shifts()[j * 16 + lane % 4 * 4 + i];
      const bool exists = i < columns;
      const float first = exists && has_first ? rows[0].values[i] - shift : 0.0f;
      const float second = exists && has_second ? rows[1].values[i] - shift : 0.0f;
      values[i] = first + second;
      values[4 + i] = fmaf(first, first, second * second);
    }
    // Eight lanes have these columns.
    sums_[j] += static_cast<double>(add_across_eight_lanes(values, lane));
  }

  __device__ void finish(const ProductLaunch& launch, std::int64_t first_col) {
    if (!wanted_) return;
    const int thread = static_cast<int>(threadIdx.x);
    const int lane = thread % 32;
    __shared__ double of_warps[stream_threads / 32][2][cols];
#pragma unroll
    for (int j = 0; j < cols / 16; ++j) {
      of_warps[thread / 32][lane / 16][j * 16 + lane % 4 * 4 + lane / 4 % 4] = sums_[j];
    }
    __syncthreads();
    const int sum = thread / cols;
    const int col = thread % cols;
    // Columns beyond the last have sums that are not read.
    double* const partials = launch.moments.partials;
    if (sum < 2) {
      double total = 0;
#pragma unroll
      for (int warp = 0; warp < stream_threads / 32; ++warp) total += of_warps[warp][sum][col];
      __stcg(partials + (std::int64_t{blockIdx.x} * 2 + sum) * cols + col, total);
    }
    if (!cuda::is_last_block(launch.moments.counter, gridDim.x)) return;
    // All threads share the blocks among them: 256 / (2 * cols) for each number.
    constexpr int shares = stream_threads / (2 * cols);
    const int share = thread / (2 * cols);
    const int number = thread % (2 * cols);
    double total = 0;
#pragma unroll 32
    for (unsigned block = static_cast<unsigned>(share); block < gridDim.x; block += shares) {
      total += __ldcg(partials + std::int64_t{block} * 2 * cols + number);
    }
    double* const flat = &of_warps[0][0][0];
    flat[share * 2 * cols + number] = total;
    __syncthreads();
    if (thread >= 2 * cols) return;
    total = 0;
#pragma unroll
    for (int i = 0; i < shares; ++i) total += flat[i * 2 * cols + number];
    const std::int64_t at = first_col + number % cols;
    if (at >= launch.cols) return;
    launch.moments.totals[(1 + number / cols) * launch.moments.stride + at] = total;
    if (number < cols) launch.moments.totals[at] = static_cast<double>(shifts()[number]);
  }

 private:
  /// Lanes that find the first number of a column together.
  static constexpr int sharers = 4;
  static_assert(sharers * cols <= stream_threads && sharers * cols % 32 == 0);

  /// The first row of the product as it will be stored, or almost; 0 where there is no such column.
  __device__ static float first_of_column(const ProductLaunch& launch, bool inner_in_row,
                                          std::int64_t col) {
    const float* const right = launch.right.data + (inner_in_row ? col * launch.right.stride : col);
    const std::int64_t step = inner_in_row ? 1 : launch.right.stride;
    const bool exists = col < launch.cols;
    float sum = 0;
#pragma unroll 16
    for (std::int64_t k = threadIdx.x % sharers; k < (exists ? launch.inner : 0); k += sharers) {
      float x = launch.left.data[k];
      if (launch.left_columns.numbers != nullptr) {
        x = launch.left_columns.value(x, launch.left_columns.numbers[k]);
      }
      sum = fmaf(x, right[k * step], sum);
    }
#pragma unroll
    for (int distance = 1; distance < sharers; distance *= 2) {
      sum += __shfl_xor_sync(~0u, sum, distance);
    }
    sum *= launch.alpha;
    return !exists || launch.target.bias == nullptr ? sum : sum + launch.target.bias[col];
  }

  __device__ static float* shifts() {
    __shared__ float of_columns[cols];
    return of_columns;
  }

  bool wanted_;
  double sums_[cols / 16] = {};
};

}  // namespace tessera::ops
