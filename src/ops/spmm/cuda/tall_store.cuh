// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/tall_feed.cuh"

/// What becomes of the sums of a piece.
namespace tessera::ops {

/// Four lanes with four words each: afterwards word j of lane i is what word i of lane j was.
__device__ inline void transpose_quad(std::uint32_t (&words)[4]) {
  const auto lane = static_cast<unsigned>(threadIdx.x);
#pragma unroll
  for (int distance = 1; distance <= 2; distance *= 2) {
    const bool upper = (lane & static_cast<unsigned>(distance)) != 0;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      if ((i & distance) != 0) continue;
      const std::uint32_t sent = upper ? words[i] : words[i + distance];
      const std::uint32_t got = __shfl_xor_sync(~0u, sent, distance);
      (upper ? words[i] : words[i + distance]) = got;
    }
  }
}

/// A thread holds two rows of its warp's 16: for every 8 features the two at 2 * (lane % 4).
template <class T, int width, bool aligned>
class TallStore {
 public:
  __device__ TallStore(const TallLaunch& launch, const StageHead& head)
      : launch_(launch),
        head_(head),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_feature_(std::int64_t{blockIdx.y} * width) {}

  __device__ void operator()(float (&sums)[width / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = static_cast<int>(threadIdx.x) / 32 * 16 + half * 8 + lane_ / 4;
      const bool exists = row < head_.num_rows;
      if (head_.slot >= 0) {
        multiply(sums, half, launch_.unit);
        if (exists) to_slot(sums, half, row);
      } else {
        const VertexId target = head_.first_row + (exists ? row : 0);
        multiply(sums, half, launch_.unit);
        if (launch_.rest != nullptr) add_rest(sums, half, target);
        if (launch_.row_scale != nullptr) multiply(sums, half, __ldg(launch_.row_scale + target));
        if (launch_.row_divisor != nullptr) divide(sums, half, __ldg(launch_.row_divisor + target));
        to_y(sums, half, target, exists);
      }
    }
  }

 private:
  /// A row's features: two in every four of a thread's sums.
  __device__ static int place(int half, int block) { return 4 * block + 2 * half; }

  __device__ static void multiply(float (&sums)[width / 2], int half, float factor) {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      sums[place(half, block)] *= factor;
      sums[place(half, block) + 1] *= factor;
    }
  }
  /// A product with the reciprocal would round once more.
  __device__ static void divide(float (&sums)[width / 2], int half, float divisor) {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      sums[place(half, block)] /= divisor;
      sums[place(half, block) + 1] /= divisor;
    }
  }

  __device__ void add_rest(float (&sums)[width / 2], int half, VertexId row) const {
    const float* const rest =
        launch_.rest + row * launch_.slot_stride + first_feature_ + lane_ % 4 * 2;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const float2 pair = __ldg(reinterpret_cast<const float2*>(rest + block * 8));
      sums[place(half, block)] += pair.x;
      sums[place(half, block) + 1] += pair.y;
    }
  }

  __device__ void to_slot(const float (&sums)[width / 2], int half, int row) const {
    float* const slot = launch_.slots +
                        (std::int64_t{head_.slot} * launch_.height + row) * launch_.slot_stride +
                        first_feature_ + lane_ % 4 * 2;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const int at = place(half, block);
      *reinterpret_cast<float2*>(slot + block * 8) = make_float2(sums[at], sums[at + 1]);
    }
  }

  __device__ void to_y(const float (&sums)[width / 2], int half, VertexId row, bool exists) const {
    T* const y = static_cast<T*>(launch_.y) + row * launch_.y_stride;
    if constexpr (aligned && sizeof(T) == 2) {
      whole_units(y, sums, half, exists);
    } else {
#pragma unroll
      for (int block = 0; block < width / 8; ++block) {
        const int at = place(half, block);
        const std::int64_t feature = first_feature_ + block * 8 + lane_ % 4 * 2;
        if (!exists || feature >= launch_.features) continue;
        if constexpr (aligned) {
          *reinterpret_cast<float2*>(y + feature) = make_float2(sums[at], sums[at + 1]);
        } else {
          y[feature] = cuda::narrow<T>(sums[at]);
          if (feature + 1 < launch_.features) y[feature + 1] = cuda::narrow<T>(sums[at + 1]);
        }
      }
    }
  }

  /// 16-bit features: four lanes trade their pairs, so that each stores 16 bytes in a row and
  /// together they fill whole sectors.
  __device__ void whole_units(T* y, const float (&sums)[width / 2], int half, bool exists) const {
#pragma unroll
    for (int block = 0; block < width / 8; block += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int at = place(half, block + i);
        const T pair[2] = {cuda::narrow<T>(sums[at]), cuda::narrow<T>(sums[at + 1])};
        memcpy(&words[i], pair, sizeof(pair));
      }
      transpose_quad(words);
      const std::int64_t feature = first_feature_ + (block + lane_ % 4) * 8;
      if (exists && feature < launch_.features) {
        *reinterpret_cast<uint4*>(y + feature) = make_uint4(words[0], words[1], words[2], words[3]);
      }
    }
  }

  const TallLaunch& launch_;
  const StageHead& head_;
  int lane_;
  std::int64_t first_feature_;
};

inline constexpr int cut_rows_per_block = 4;

/// Adds the pieces of the windows that were cut, in order: a warp a row.
template <class T>
__global__ void add_pieces(const TallLaunch launch) {
  const tiles::CutWindow window = launch.cut_windows[blockIdx.x];
  const int row =
      static_cast<int>(blockIdx.y) * cut_rows_per_block + static_cast<int>(threadIdx.x) / 32;
  if (row >= window.num_rows) return;
  const VertexId target = window.first_row + row;
  const float scale = launch.row_scale != nullptr ? __ldg(launch.row_scale + target) : 1.0f;
  const float divisor = launch.row_divisor != nullptr ? __ldg(launch.row_divisor + target) : 1.0f;
  const std::int64_t slot_size = launch.height * launch.slot_stride;
  const float* const first =
      launch.slots + window.first_slot * slot_size + row * launch.slot_stride;
  T* const y = static_cast<T*>(launch.y) + target * launch.y_stride;
  for (std::int64_t feature = threadIdx.x % 32; feature < launch.features; feature += 32) {
    float total = 0;
#pragma unroll 8
    for (int slot = 0; slot < window.num_slots; ++slot) total += first[slot * slot_size + feature];
    if (launch.rest != nullptr) total += launch.rest[target * launch.slot_stride + feature];
    y[feature] = cuda::narrow<T>(total * scale / divisor);
  }
}

}  // namespace tessera::ops
