// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include <cstdint>
#include <type_traits>

#include "cuda/finite_bf16.cuh"
#include "cuda/vectors.cuh"
#include "ops/aggregate_update/cuda/fused/launch.hpp"
#include "ops/gemm/cuda/stream_rows.cuh"

/// How rows and weights are laid out for the matrix units: as of `stream_rows`, for two element
/// types and up to 128 columns.
namespace tessera::ops {

template <class T>
struct UpdateLayout {
  static constexpr bool is_fp32 = std::is_same_v<T, float>;
  /// 16-bit weights are a plane as they are, and sums of 16-bit features are rounded once, as they
  /// are where somebody wants them stored.
  static constexpr int left_planes = is_fp32 ? 3 : 1;
  static constexpr int right_planes = is_fp32 ? 3 : 1;
  /// A lane loads 16 bytes of a row, four neighbouring lanes a unit.
  static constexpr int lane_cols = 16 / static_cast<int>(sizeof(T));
  static constexpr int unit_cols = 4 * lane_cols;
  static constexpr int unit_steps = unit_cols / 16;
  static constexpr int chunk_units = update_chunk_units(static_cast<int>(sizeof(T)));
  static constexpr int edges_at_once = update_edges_at_once(static_cast<int>(sizeof(T)));
  /// Which planes are multiplied, the smallest parts first.
  static constexpr int num_pairs = is_fp32 ? 6 : 1;
  __device__ static constexpr int left_of(int pair) {
    constexpr int of_fp32[6] = {2, 0, 1, 1, 0, 0};
    return is_fp32 ? of_fp32[pair] : 0;
  }
  __device__ static constexpr int right_of(int pair) {
    constexpr int of_fp32[6] = {0, 2, 1, 0, 1, 0};
    return is_fp32 ? of_fp32[pair] : 0;
  }

  __host__ __device__ static std::int64_t padded(std::int64_t inner) {
    return (inner + unit_cols - 1) / unit_cols * unit_cols;
  }
  /// From 64 columns of a plane to the next 64.
  __host__ __device__ static std::int64_t block_bytes(std::int64_t inner, bool root) {
    return padded(inner) * (root ? 2 : 1) * 128;
  }
  __host__ __device__ static std::int64_t plane_bytes(std::int64_t inner, bool root,
                                                      std::int64_t cols) {
    return block_bytes(inner, root) * ((cols + 63) / 64);
  }
  /// A lane's four numbers of a step are two pairs eight apart for the matrix unit.
  __device__ static int line_of(int inner) {
    const int lane = inner % unit_cols / lane_cols;
    const int of_lane = inner % lane_cols;
    const int place = of_lane % 4;
    return inner / unit_cols * unit_cols + of_lane / 4 * 16 + (place < 2 ? 0 : 8) + lane * 2 +
           place % 2;
  }
  /// Where a column of Y stands, so that a lane has four neighbours of every 16.
  __device__ static int place_of_column(int col) { return exchanged_column(col); }
};

/// Writes a weight into shared memory, as planes, from line `first_line` on. A warp takes a row of
/// the matrix as it lies in memory, which has a column of Y or, without `in_row`, a line.
template <class T, class Layout, bool in_row>
__device__ void keep_weight(const UpdateLaunch& launch, const void* weight, std::int64_t stride,
                            int first_line, bool root, int cols, char* planes) {
  const auto inner = static_cast<int>(launch.features.inner);
  const auto width = static_cast<int>(launch.features.cols);
  const auto padded = static_cast<int>(Layout::padded(inner));
  const auto block_bytes = static_cast<int>(Layout::block_bytes(inner, root));
  const auto plane_bytes = static_cast<int>(Layout::plane_bytes(inner, root, cols));
  const auto place_of = [&](int row, int i) {
    const int col = in_row ? row : i;
    const int line = first_line + Layout::line_of(in_row ? i : row);
    const int at = Layout::place_of_column(col) % 64;
    return planes + col / 64 * block_bytes + line * 128 + ((at / 8) ^ (line % 8)) * 16 + at % 8 * 2;
  };
  const int rows = in_row ? cols : padded, length = in_row ? padded : cols;
  const int there = in_row ? width : inner, long_there = in_row ? inner : width;
  // Several are on their way at once: a store to shared memory may not be passed by a load.
  constexpr int batch = 12;
  const auto warps = static_cast<int>(blockDim.x) / 32;
  for (int first = static_cast<int>(threadIdx.x) / 32; first < rows; first += batch * warps) {
    for (int i = static_cast<int>(threadIdx.x) % 32; i < length; i += 32) {
      const T* from = static_cast<const T*>(weight) + first * stride + i;
      float values[batch];
#pragma unroll
      for (int b = 0; b < batch; ++b, from += warps * stride) {
        const bool exists = first + b * warps < there && i < long_there;
        values[b] = exists ? cuda::widen(*from) : 0.0f;
      }
#pragma unroll
      for (int b = 0; b < batch; ++b) {
        const int row = first + b * warps;
        if (row >= rows) break;
        char* const place = place_of(row, i);
#pragma unroll
        for (int plane = 0; plane < Layout::right_planes; ++plane) {
          const __nv_bfloat16 part = __float2bfloat16_rn(values[b]);
          *reinterpret_cast<__nv_bfloat16*>(place + plane * plane_bytes) = part;
          values[b] -= __bfloat162float(part);
        }
      }
    }
  }
}

/// The weight, and the root weight behind it where there is one, filled up to `cols` columns of Y.
template <class T, class Layout = UpdateLayout<T>>
__device__ void keep_weights(const UpdateLaunch& launch, int cols, char* planes) {
  const UpdateLaunch::Weights& weights = launch.weights;
  const bool root = weights.root != nullptr;
  const auto padded = static_cast<int>(Layout::padded(launch.features.inner));
  for (int number = 0; number < (root ? 2 : 1); ++number) {
    const void* const weight = number == 0 ? weights.weight : weights.root;
    const std::int64_t stride = number == 0 ? weights.stride : weights.root_stride;
    if (weights.inner_in_row) {
      keep_weight<T, Layout, true>(launch, weight, stride, number * padded, root, cols, planes);
    } else {
      keep_weight<T, Layout, false>(launch, weight, stride, number * padded, root, cols, planes);
    }
  }
}

/// Four neighbours of two rows as the matrix unit takes them, in planes. Infinity is in the last
/// plane alone, which meets the largest part of the weights and nothing else: products with it are
/// infinite with the sign that they should have.
template <class T>
struct UpdateFragment {
  static constexpr int planes = UpdateLayout<T>::left_planes;
  std::uint32_t words[planes][4];

  __device__ void set(const float (&upper)[4], const float (&lower)[4]) {
    cut(upper, 0);
    cut(lower, 1);
#pragma unroll
    for (auto& of_plane : words) cuda::keep_in_place(of_plane);
  }

 private:
  __device__ static std::uint32_t nearest_bf16(float first, float second) {
    const __nv_bfloat162 rounded = __floats2bfloat162_rn(first, second);
    return *reinterpret_cast<const std::uint32_t*>(&rounded);
  }
  __device__ void cut(const float (&values)[4], int row) {
#pragma unroll
    for (int pair = 0; pair < 2; ++pair) {
      float first = values[2 * pair];
      float second = values[2 * pair + 1];
#pragma unroll
      for (int plane = 0; plane < planes; ++plane) {
        const std::uint32_t both = plane < planes - 1 ? cuda::nearest_finite_bf16(first, second)
                                                      : nearest_bf16(first, second);
        words[plane][2 * pair + row] = both;
        first -= __uint_as_float(both << 16);
        second -= __uint_as_float(both & 0xffff0000u);
      }
    }
  }
};

/// The sums of a lane's two rows over `cols` columns of Y.
template <int cols>
struct UpdateSums {
  static constexpr int num_first = cols == 128 ? 64 : (cols >= 64 ? 32 : 16);
  static constexpr bool has_second = cols == 96;
  float first[num_first] = {};
  float second[has_second ? 16 : 1] = {};

  __device__ void multiply(const std::uint32_t (&words)[4], std::uint64_t right,
                           std::uint64_t block_step) {
    cuda::wgmma<__nv_bfloat16>(first, words, right);
    if constexpr (has_second) cuda::wgmma<__nv_bfloat16>(second, words, right + block_step);
  }
  __device__ void keep() {
    cuda::keep_in_place(first);
    if constexpr (has_second) cuda::keep_in_place(second);
  }
  /// Of row `half` and the 16 columns of a block, the four from lane % 4 * 4 on.
  __device__ float at(int half, int block, int i) const {
    const int place = i / 2 * 4 + half * 2 + i % 2;
    if constexpr (has_second) {
      if (block >= num_first / 8) return second[(block - num_first / 8) * 8 + place];
    }
    return first[block * 8 + place];
  }
  /// A lane's sums in the order in which the matrix unit has them.
  __device__ float& entry(int i) {
    if constexpr (has_second) {
      if (i >= num_first) return second[i - num_first];
    }
    return first[i];
  }
  /// As `at`, of the first block; from four on of the next one.
  __device__ float front(int half, int i) const { return first[i / 2 * 4 + half * 2 + i % 2]; }
  /// Makes the next 16 columns the first: registers cannot be counted through.
  __device__ void shift() {
#pragma unroll
    for (int i = 0; i + 8 < num_first; ++i) first[i] = first[i + 8];
    if constexpr (has_second) {
#pragma unroll
      for (int i = 0; i < 8; ++i) first[num_first - 8 + i] = second[i];
#pragma unroll
      for (int i = 0; i < 8; ++i) second[i] = second[i + 8];
    }
  }
};

}  // namespace tessera::ops
