// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/precision.cuh"
#include "ops/dense/cuda/epilogue.cuh"
#include "ops/spmm/cuda/short/launch.hpp"

namespace tessera::ops {

/// What a lane adds up of a window: four sums of each of some tiles, and where they are left when a
/// window has several pieces.
template <int num_tiles>
class WindowSums {
 public:
  __device__ explicit WindowSums(const ShortLaunch& launch) : launch_(launch) { clear(); }

  __device__ void clear() {
#pragma unroll
    for (auto& tile : sums_) {
#pragma unroll
      for (float& sum : tile) sum = 0;
    }
  }

  /// Leaves the sums of a piece in its slot.
  __device__ void to_slot(int slot) const {
    float4* const own = place(slot);
#pragma unroll
    for (int i = 0; i < num_tiles; ++i) {
      own[i * 32] = make_float4(sums_[i][0], sums_[i][1], sums_[i][2], sums_[i][3]);
    }
  }

  __device__ void add_slot(int slot) {
    const float4* const piece = place(slot);
#pragma unroll
    for (int i = 0; i < num_tiles; ++i) {
      const float4 part = __ldcg(piece + i * 32);
      sums_[i][0] += part.x;
      sums_[i][1] += part.y;
      sums_[i][2] += part.z;
      sums_[i][3] += part.w;
    }
  }

 protected:
  __device__ static int lane() { return static_cast<int>(threadIdx.x) % 32; }

  /// Multiplies the sums of a row, which are two of each tile, by the unit and the row's scale.
  __device__ void scale_row(VertexId row, int first, int second) {
    const float* const scales = launch_.epilogue.row_scale;
    if (scales == nullptr && launch_.epilogue.unit == 1) return;
    const float scale =
        scales == nullptr ? launch_.epilogue.unit : launch_.epilogue.unit * __ldg(scales + row);
#pragma unroll
    for (auto& tile : sums_) {
      tile[first] *= scale;
      tile[second] *= scale;
    }
  }

  template <class T>
  __device__ T* row_of_y(VertexId row) const {
    return static_cast<T*>(launch_.features.y) + row * launch_.features.y_stride;
  }

  /// Brings neighbouring features of a row, which begins at `y`, to Y, which is the first that the
  /// cache may forget: rows of X are needed again, those of Y not.
  template <class T, bool epilogue, bool whole_rows, int count>
  __device__ void to_y([[maybe_unused]] T* y, VertexId row, int feature,
                       float (&sums)[count]) const {
    const ShortLaunch::Features& features = launch_.features;
    const EpiloguePlace place = {row, feature, features.count};
    if constexpr (epilogue) {
      store_with_epilogue<T, !whole_rows>(launch_.epilogue, features.y, features.y_stride, place,
                                          sums);
    } else if constexpr (!whole_rows) {
      put_features<T>(features.y, features.y_stride, place, sums);
    } else {
      T values[count];
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = cuda::narrow<T>(sums[i]);
      using Raw = std::conditional_t<sizeof(values) == 8, uint2, uint4>;
      Raw raw[sizeof(values) / sizeof(Raw)];
      memcpy(raw, values, sizeof(raw));
#pragma unroll
      for (int i = 0; i < static_cast<int>(sizeof(values) / sizeof(Raw)); ++i) {
        __stcs(reinterpret_cast<Raw*>(y + feature) + i, raw[i]);
      }
    }
  }

  const ShortLaunch& launch_;
  float sums_[num_tiles][4];

 private:
  __device__ float4* place(int slot) const {
    const std::int64_t first_of_chunk = std::int64_t{blockIdx.y} * launch_.work.num_slots;
    return reinterpret_cast<float4*>(launch_.work.slots) +
           (first_of_chunk + slot) * num_tiles * 32 + lane();
  }
};

}  // namespace tessera::ops
