// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/sums.cuh"
#include "ops/gemm/cuda/product_launch.hpp"

/// What all kernels of products do with their sums.
namespace tessera::ops {

inline constexpr int product_threads = 256;

/// One sum in fp32, for where planes cannot hold the factors: rare, so out of the way.
template <bool left_in_row, bool right_in_row>
__device__ __noinline__ float plain_sum(const ProductLaunch& launch, std::int64_t row,
                                        std::int64_t col, std::int64_t begin, std::int64_t end) {
  float sum = 0;
  // Only such factors have a row of ones; asking for it costs callers of the others registers.
  const bool is_ones = !left_in_row && launch.is_row_of_ones(row);
  const auto read = [](float x, const ReadColumns& columns, std::int64_t at) {
    return columns.numbers == nullptr ? x : columns.value(x, columns.numbers[at]);
  };
  for (std::int64_t k = begin; k < end; ++k) {
    const float of_left = is_ones       ? 1.0f
                          : left_in_row ? launch.left.data[row * launch.left.stride + k]
                                        : launch.left.data[k * launch.left.stride + row];
    const float of_right = right_in_row ? launch.right.data[col * launch.right.stride + k]
                                        : launch.right.data[k * launch.right.stride + col];
    sum = fmaf(read(of_left, launch.left_columns, left_in_row ? k : row),
               read(of_right, launch.right_columns, right_in_row ? k : col), sum);
  }
  return sum;
}

/// Adds `count` parts that are `step` numbers apart; each thread its own sums.
template <int num_sums>
__device__ void add_partials(const float* first, int count, std::int64_t step,
                             float (&sums)[num_sums]) {
#pragma unroll
  for (int i = 0; i < num_sums; ++i) sums[i] = 0;
  if (threadIdx.x >= product_threads) return;
  // Several parts are in flight together, the last ones too.
  constexpr int at_once = num_sums <= 8 ? 8 : num_sums <= 16 ? 4 : 2;
  for (int part = 0; part < count; part += at_once) {
    float parts[at_once][num_sums];
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
#pragma unroll
      for (int i = 0; i < num_sums; ++i) {
        const float* const place = first + (part + j) * step + i * product_threads + threadIdx.x;
        parts[j][i] = part + j < count ? __ldcg(place) : 0.0f;
      }
    }
#pragma unroll
    for (int j = 0; j < at_once; ++j) {
#pragma unroll
      for (int i = 0; i < num_sums; ++i) sums[i] += parts[j][i];
    }
  }
}

template <int num_sums>
__device__ void write_partial(float* place, const float (&sums)[num_sums]) {
  if (threadIdx.x >= product_threads) return;
#pragma unroll
  for (int i = 0; i < num_sums; ++i) __stcg(place + i * product_threads + threadIdx.x, sums[i]);
}

/// The tile of a block in a grid of tiles by parts.
__device__ inline TilePlace place_in_grid() {
  return {blockIdx.x, blockIdx.y, std::int64_t{blockIdx.y} * gridDim.x + blockIdx.x,
          static_cast<int>(blockIdx.z)};
}

/// True in the one block per tile that has the sum over all parts of the inner size. Of larger
/// blocks the first `product_threads` have sums. Threads whose sums are not needed say so: one
/// block reads those of all parts.
template <int num_sums>
__device__ bool add_across_splits(const ProductSplit& split, const TilePlace& place,
                                  float (&sums)[num_sums], bool needed = true) {
  if (split.splits == 1) return true;
  constexpr std::int64_t tile_numbers = num_sums * product_threads;
  const int groups = (split.splits + split.group - 1) / split.group;
  const int group = place.part / split.group;
  const int first = group * split.group;
  const int in_group = min(split.group, split.splits - first);
  float* const partials = split.partials + place.tile * split.splits * tile_numbers;
  unsigned* const counters = split.counters + place.tile * (groups + 1);
  if (needed) write_partial(partials + place.part * tile_numbers, sums);
  if (!cuda::is_last_block(counters + group, in_group)) return false;
  if (needed) add_partials(partials + first * tile_numbers, in_group, tile_numbers, sums);
  if (groups == 1) return true;
  // Only this thread reads the numbers that it writes over.
  if (needed) write_partial(partials + first * tile_numbers, sums);
  if (!cuda::is_last_block(counters + groups, groups)) return false;
  if (needed) add_partials(partials, groups, split.group * tile_numbers, sums);
  return true;
}

template <class T>
__device__ inline void write_result(const ProductLaunchOf<T>& launch, std::int64_t row,
                                    std::int64_t col, float sum) {
  const ProductTarget<T>& target = launch.target;
  if (launch.is_row_of_ones(row)) {
    launch.column_sums[col] = cuda::narrow<T>(sum);
    return;
  }
  T* const to = target.data + row * target.row_step + col * target.col_step;
  sum *= launch.alpha;
  if (target.bias != nullptr) {
    sum += cuda::widen(target.bias[row * target.bias_row_step + col * target.bias_col_step]);
  }
  *to = cuda::narrow<T>(launch.beta == 0 ? sum : fmaf(launch.beta, cuda::widen(*to), sum));
}

}  // namespace tessera::ops
