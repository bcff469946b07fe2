// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_bf16.h>

#include "ops/windows/number_pairs.cuh"
#include "ops/windows/tile_rows.cuh"

/// Gathered rows as operands: 16-bit numbers as they are, fp32 as two planes of bf16, high and low,
/// which together are right to 2^-18. What a thread brings it also cuts, where it lies: eight
/// numbers of four bytes become eight high parts and eight low ones.
namespace tessera::ops {

template <class T, int features>
struct PlaneRows {
  using Rows = TileRows<features>;
  using Part = T;
  using Copy = typename Rows::Copy;
  static constexpr int planes = 1;
  static constexpr int units = Rows::units;
  static constexpr int bytes = Rows::bytes;
  static constexpr int share = Rows::share;

  __device__ static void load_ids(VertexId (&vertices)[share], const VertexId* columns,
                                  int num_columns) {
    Rows::load_ids(vertices, columns, num_columns);
  }
  __device__ static constexpr int unit_in(int, int unit) { return unit; }
  __device__ static void cut(char*, int) {}

  /// Eight features from `from` on, of one row, by a copy to be waited for.
  __device__ static void put(char* memory, int row, int unit, const T* from) {
    cuda::copy_16_async(cuda::shared_address(memory + Rows::offset(row, unit)), from);
  }
  __device__ static void clear(char* memory, int row, int unit) {
    *reinterpret_cast<uint4*>(memory + Rows::offset(row, unit)) = {};
  }
};

template <int features>
struct PlaneRows<float, features> {
  using Part = __nv_bfloat16;
  static constexpr int planes = 2;
  using Rows = TileRows<2 * features>;  ///< both planes side by side
  static constexpr int units = features / 8;
  static constexpr int bytes = Rows::bytes;
  /// Rows that a thread brings eight features of.
  using Share = TileRows<features>;
  static constexpr int share = Share::share;

  __device__ static int unit_of_thread() { return static_cast<int>(threadIdx.x % unsigned{units}); }
  __device__ static void load_ids(VertexId (&vertices)[share], const VertexId* columns,
                                  int num_columns) {
    Share::load_ids(vertices, columns, num_columns);
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
      if (Share::row_of_thread(0) >= num_rows) return;
#pragma unroll
      for (int i = 0; i < share; ++i) {
        const int row = Share::row_of_thread(i);
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
    if (Share::row_of_thread(0) >= num_rows) return;
#pragma unroll
    for (int i = 0; i < share; ++i) {
      const int row = Share::row_of_thread(i);
      const float4 first = *reinterpret_cast<float4*>(at(memory, row, 0, unit_of_thread()));
      const float4 second = *reinterpret_cast<float4*>(at(memory, row, 1, unit_of_thread()));
      store(memory, row, unit_of_thread(), first, second);
    }
  }

  /// Eight features from `from` on, of one row.
  __device__ static void put(char* memory, int row, int unit, const float* from) {
    const auto* const vectors = reinterpret_cast<const float4*>(from);
    store(memory, row, unit, __ldg(vectors), __ldg(vectors + 1));
  }
  __device__ static void clear(char* memory, int row, int unit) {
    *at(memory, row, 0, unit) = {};
    *at(memory, row, 1, unit) = {};
  }

 private:
  __device__ static uint4* at(char* memory, int row, int plane, int unit) {
    return reinterpret_cast<uint4*>(memory + Rows::offset(row, unit_in(plane, unit)));
  }
  __device__ static void store(char* memory, int row, int unit, const float4& first,
                               const float4& second) {
    const PackedTwice<Part> pairs[4] = {
        {first.x, first.y}, {first.z, first.w}, {second.x, second.y}, {second.z, second.w}};
    *at(memory, row, 0, unit) = {pairs[0].high, pairs[1].high, pairs[2].high, pairs[3].high};
    *at(memory, row, 1, unit) = {pairs[0].low, pairs[1].low, pairs[2].low, pairs[3].low};
  }
};

}  // namespace tessera::ops
