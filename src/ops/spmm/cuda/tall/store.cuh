// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/epilogue.cuh"
#include "ops/spmm/cuda/tall/stages.cuh"

/// What becomes of the sums of a window.
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

/// A thread holds two rows of its warp's 16: for every 8 features the two at 2 * (lane % 4). Y is
/// the first that the cache may forget: rows of X are needed again, those of Y not.
template <class T, int width, bool aligned, bool epilogue>
class TallStore {
 public:
  /// Stores the rows first_row .. first_row + last_row.
  __device__ TallStore(const TallLaunch& launch, VertexId first_row, int last_row)
      : launch_(launch),
        first_row_(first_row),
        last_row_(last_row),
        lane_(static_cast<int>(threadIdx.x) % 32),
        first_feature_(std::int64_t{blockIdx.y} * width) {}

  __device__ void operator()(float (&sums)[width / 2]) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int row = static_cast<int>(threadIdx.x) / 32 * 16 + half * 8 + lane_ / 4;
      const bool exists = row <= last_row_;
      const VertexId target = first_row_ + (exists ? row : 0);
      const float scale =
          launch_.epilogue.row_scale != nullptr ? __ldg(launch_.epilogue.row_scale + target) : 1.0f;
      if (launch_.epilogue.rest != nullptr) {
        multiply(sums, half, launch_.epilogue.unit);
        add_rest(sums, half, target);
        multiply(sums, half, scale);
      } else {
        // The unit is a power of two: nothing is rounded twice.
        multiply(sums, half, launch_.epilogue.unit * scale);
      }
      if (launch_.epilogue.row_divisor != nullptr)
        divide(sums, half, __ldg(launch_.epilogue.row_divisor + target));
      to_y(sums, half, target, exists);
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
        launch_.epilogue.rest + row * launch_.epilogue.rest_stride + first_feature_ + lane_ % 4 * 2;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const float2 pair = __ldg(reinterpret_cast<const float2*>(rest + block * 8));
      sums[place(half, block)] += pair.x;
      sums[place(half, block) + 1] += pair.y;
    }
  }

  __device__ void to_y(const float (&sums)[width / 2], int half, VertexId row, bool exists) const {
    [[maybe_unused]] T* const y =
        static_cast<T*>(launch_.features.y) + row * launch_.features.y_stride;
    if constexpr (epilogue) {
      through_epilogue(sums, half, row, exists);
    } else if constexpr (aligned && sizeof(T) == 2) {
      whole_units(y, sums, half, exists);
    } else {
#pragma unroll
      for (int block = 0; block < width / 8; ++block) {
        const int at = place(half, block);
        const std::int64_t feature = first_feature_ + block * 8 + lane_ % 4 * 2;
        if (!exists || feature >= launch_.features.count) continue;
        if constexpr (aligned) {
          __stcs(reinterpret_cast<float2*>(y + feature), make_float2(sums[at], sums[at + 1]));
        } else {
          y[feature] = cuda::narrow<T>(sums[at]);
          if (feature + 1 < launch_.features.count) y[feature + 1] = cuda::narrow<T>(sums[at + 1]);
        }
      }
    }
  }

  __device__ void through_epilogue(const float (&sums)[width / 2], int half, VertexId row,
                                   bool exists) const {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const int at = place(half, block);
      const std::int64_t feature = first_feature_ + block * 8 + lane_ % 4 * 2;
      if (!exists || feature >= launch_.features.count) continue;
      float pair[2] = {sums[at], sums[at + 1]};
      store_with_epilogue<T>(launch_.epilogue, launch_.features.y, launch_.features.y_stride,
                             {row, feature, launch_.features.count}, pair);
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
      if (exists && feature < launch_.features.count) {
        __stcs(reinterpret_cast<uint4*>(y + feature),
               make_uint4(words[0], words[1], words[2], words[3]));
      }
    }
  }

  const TallLaunch& launch_;
  VertexId first_row_;
  int last_row_;
  int lane_;
  std::int64_t first_feature_;
};

}  // namespace tessera::ops
