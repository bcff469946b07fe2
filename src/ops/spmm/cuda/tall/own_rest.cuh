// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/offsets.cuh"
#include "cuda/vectors.cuh"
#include "ops/spmm/cuda/tall/store.cuh"

/// Edges of a window whose columns too few of its rows share for a matrix unit: the block that has
/// multiplied the others gathers their rows of X when the window ends, while other blocks of its
/// processor multiply.
namespace tessera::ops {

/// A kernel whose blocks add up what their windows leave out.
template <class Loader>
struct WithOwnRest : Loader {
  using Loader::Loader;
  static constexpr bool own_rest = true;
};
template <class Loader>
concept HasOwnRest = Loader::own_rest;

/// Four lanes have a row, in the order of the sums; each loads every fourth 16 bytes of its rows of
/// X.
template <class T, int width>
class OwnRest {
 public:
  __device__ OwnRest(const TallLaunch& launch, VertexId first_row, int last_row)
      : launch_(launch),
        first_row_(first_row),
        last_row_(last_row),
        quarter_(static_cast<int>(threadIdx.x) % 4),
        row_bytes_(static_cast<std::uint32_t>(launch.features.x_stride * sizeof(T))) {
    const std::int64_t feature = std::int64_t{blockIdx.y} * width + quarter_ * elements;
    features_left_ = static_cast<int>(launch.features.count - feature);
    source_ = static_cast<const char*>(launch.features.x) + feature * std::int64_t{sizeof(T)};
  }

  __device__ void add_to(float (&sums)[width / 2]) const {
    // Once in the program: two of them would need registers that multiplying has.
#pragma unroll 1
    for (int half = 0; half < 2; ++half) {
      exchange(sums);
      gather(sums, half);
      exchange(sums);
      swap_halves(sums);
    }
  }

 private:
  static constexpr int elements = 16 / static_cast<int>(sizeof(T));
  static constexpr int units = width / elements / 4;  ///< of a lane, in each row
  static constexpr int together = 8 / units < 1 ? 1 : 8 / units < 4 ? 8 / units : 4;
  using Unit = cuda::Vector<T, 16>;
  static_assert(sizeof(T) == 2);

  /// From pairs of every 8 features of a row to 8 neighbouring ones of every 32, and back.
  __device__ static void exchange(float (&sums)[width / 2]) {
#pragma unroll
    for (int unit = 0; unit < units; ++unit) {
#pragma unroll
      for (int odd = 0; odd < 2; ++odd) {
        std::uint32_t words[4];
#pragma unroll
        for (int i = 0; i < 4; ++i) words[i] = __float_as_uint(sums[place(unit, i) + odd]);
        transpose_quad(words);
#pragma unroll
        for (int i = 0; i < 4; ++i) sums[place(unit, i) + odd] = __uint_as_float(words[i]);
      }
    }
  }

  /// Where features 2 i and 2 i + 1 of a unit are, of the first row that a thread has.
  __device__ static constexpr int place(int unit, int i) { return 4 * (4 * unit + i); }

  __device__ static void swap_halves(float (&sums)[width / 2]) {
#pragma unroll
    for (int i = 0; i < width / 2; i += 4) {
      const float first[2] = {sums[i], sums[i + 1]};
      sums[i] = sums[i + 2];
      sums[i + 1] = sums[i + 3];
      sums[i + 2] = first[0];
      sums[i + 3] = first[1];
    }
  }

  __device__ void gather(float (&sums)[width / 2], int half) const {
    const int row =
        static_cast<int>(threadIdx.x) / 32 * 16 + half * 8 + static_cast<int>(threadIdx.x) % 32 / 4;
    EdgeOffset begin = 0;
    int count = 0;
    if (row <= last_row_) {
      begin = cuda::offset_at(launch_.matrix.rest_offsets, first_row_ + row);
      count = static_cast<int>(
          cuda::offset_at(launch_.matrix.rest_offsets, std::int64_t{first_row_} + row + 1) - begin);
    }
    const VertexId* const indices = launch_.matrix.rest_indices + begin;
    const int longest = static_cast<int>(__reduce_max_sync(~0u, static_cast<unsigned>(count)));
    VertexId column = quarter_ < count ? __ldcs(indices + quarter_) : 0;
#pragma unroll 1
    for (int first = 0; first < longest; first += 4) {
      const int ahead = first + 4 + quarter_;
      const VertexId next = ahead < count ? __ldcs(indices + ahead) : 0;
#pragma unroll
      for (int edge = 0; edge < 4; edge += together) {
        Unit rows[together][units];
#pragma unroll
        for (int i = 0; i < together; ++i) {
          const auto of_edge = static_cast<std::uint32_t>(__shfl_sync(~0u, column, edge + i, 4));
          const char* const from = source_ + std::uint64_t{of_edge} * row_bytes_;
#pragma unroll
          for (int unit = 0; unit < units; ++unit) {
            const bool wanted = first + edge + i < count && 4 * elements * unit < features_left_;
            rows[i][unit] = Unit::load_if(wanted, from + unit * 64);
          }
        }
#pragma unroll
        for (int i = 0; i < together; ++i) {
#pragma unroll
          for (int unit = 0; unit < units; ++unit) {
            float values[elements];
            rows[i][unit].widen_to(values);
#pragma unroll
            for (int k = 0; k < elements; ++k) {
              sums[place(unit, k / 2) + k % 2] += values[k];
            }
          }
        }
      }
      column = next;
    }
  }

  const TallLaunch& launch_;
  VertexId first_row_;
  int last_row_;
  int quarter_;
  std::uint32_t row_bytes_;
  int features_left_;
  const char* source_;
};

}  // namespace tessera::ops
