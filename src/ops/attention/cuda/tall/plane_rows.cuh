// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include "ops/attention/cuda/tall/packed.cuh"
#include "ops/attention/cuda/tall/tile_rows.cuh"

/// Gathered rows of fp32 as two planes of bf16, high and low: together they are right to 2^-18.
/// What a thread brings it also cuts, where it lies: eight numbers of four bytes become eight high
/// parts and eight low ones.
namespace tessera::ops {

template <int features>
struct PlaneRows {
  using Rows = TileRows<2 * features>;  ///< both planes side by side
  static constexpr int units = features / 8;
  static constexpr int bytes = Rows::bytes;
  /// Rows that a thread brings eight features of.
  static constexpr int share = tiles::tile_columns * units / tall_attention_threads;

  __device__ static int unit_of_thread() { return static_cast<int>(threadIdx.x) % units; }
  __device__ static int row_of_thread(int i) {
    return static_cast<int>(threadIdx.x) / units + i * (tall_attention_threads / units);
  }
  /// Of eight features in a plane.
  __device__ static constexpr int unit_in(int plane, int unit) { return plane * units + unit; }

  /// What this thread brings of `matrix`; nothing where the unit lies beyond the last feature.
  struct Copy {
    const float* from;
    std::int64_t stride;
    bool active;

    __device__ Copy(const void* matrix, std::int64_t row_stride, std::int64_t first_feature,
                    std::int64_t num_features) {
      const std::int64_t feature = first_feature + unit_of_thread() * 8;
      active = feature < num_features;
      from = static_cast<const float*>(matrix) + feature;
      stride = row_stride;
    }
    __device__ void start(std::uint32_t to, const VertexId (&vertices)[share], int num_rows) const {
#pragma unroll
      for (int i = 0; i < share; ++i) {
        const int row = row_of_thread(i);
        if (row >= num_rows) continue;
#pragma unroll
        for (int plane = 0; plane < 2; ++plane) {
          const std::uint32_t at = to + Rows::offset(row, unit_in(plane, unit_of_thread()));
          if (active) {
            cuda::copy_16_async(at, from + std::int64_t{vertices[i]} * stride + 4 * plane);
          } else {
            cuda::zero_16_async(at, from);
          }
        }
      }
    }
  };

  /// Cuts what this thread has brought of the first `num_rows` rows at `memory`.
  __device__ static void cut(char* memory, int num_rows) {
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int row = row_of_thread(i);
      if (row >= num_rows) continue;
      float4* const first = at(memory, row, 0);
      float4* const second = at(memory, row, 1);
      const float4 low_half = *first, high_half = *second;
      const PackedTwice<__nv_bfloat16> pairs[4] = {{low_half.x, low_half.y},
                                                   {low_half.z, low_half.w},
                                                   {high_half.x, high_half.y},
                                                   {high_half.z, high_half.w}};
      *reinterpret_cast<uint4*>(first) = {pairs[0].high, pairs[1].high, pairs[2].high,
                                          pairs[3].high};
      *reinterpret_cast<uint4*>(second) = {pairs[0].low, pairs[1].low, pairs[2].low, pairs[3].low};
    }
  }

 private:
  __device__ static float4* at(char* memory, int row, int plane) {
    return reinterpret_cast<float4*>(memory + Rows::offset(row, unit_in(plane, unit_of_thread())));
  }
};

}  // namespace tessera::ops
