// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/gemm/cuda/normed_tiles.cuh"
#include "ops/gemm/cuda/stream_moments.cuh"

/// What the gradient of a batch norm before a layer begins with, found where the gradient of the
/// layer's input is written.
namespace tessera::ops {

/// Sums for the batch norm before the layer: of 16 columns for a lane's four lanes, added up over
/// the rows of a warp in fp32, over tiles in double.
class NormedSums {
 public:
  /// Begins to read what a lane needs of x, as it is in memory; the tile came from there before.
  __device__ static void fetch(const NormedLaunch& launch, std::int64_t first, float (&x)[32]) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::int64_t row = first + static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
#pragma unroll
    for (int j = 0; j < 8; ++j) {
      const int col = j * 8 + lane % 4 * 2;
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const bool exists = row + half * 8 < launch.rows && col < launch.in;
        const float* const place = launch.x.data + (row + half * 8) * launch.x.stride + col;
        const float2 both = exists ? *reinterpret_cast<const float2*>(place) : make_float2(0, 0);
        x[j * 4 + half * 2] = both.x;
        x[j * 4 + half * 2 + 1] = both.y;
      }
    }
  }

  /// `x` lies as products do.
  template <class Tiles>
  __device__ void add(const NormedLaunch& launch, const Tiles& tiles, const float (&x)[32],
                      const float (&products)[32], std::int64_t first) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int line = static_cast<int>(threadIdx.x) / 32 % 4 * 16 + lane / 4;
    const bool exist[2] = {first + line < launch.rows, first + line + 8 < launch.rows};
#pragma unroll
    for (int set = 0; set < 4; ++set) {
      float values[8] = {};
#pragma unroll
      for (int i = 0; i < 2; ++i) {
        const int j = set * 2 + i;
        const int col = j * 8 + lane % 4 * 2;
        const float2 a = tiles.x_numbers(0, col), b = tiles.x_numbers(1, col);
        const float2 c = tiles.x_numbers(2, col);
#pragma unroll
        for (int half = 0; half < 2; ++half) {
#pragma unroll
          for (int k = 0; k < 2; ++k) {
            const float distance = x[j * 4 + half * 2 + k] - (k == 0 ? a.x : a.y);
            const float z = k == 0 ? distance * b.x + c.x : distance * b.y + c.y;
            const bool counts = exist[half] && !(launch.x_columns.relu && z <= 0);
            const float gradient = counts ? products[j * 4 + half * 2 + k] : 0.0f;
            values[i * 2 + k] += gradient;
            values[4 + i * 2 + k] = fmaf(gradient, distance, values[4 + i * 2 + k]);
          }
        }
      }
      totals_[set] += static_cast<double>(add_across_eight_lanes(values, lane));
    }
  }

  /// Writes those of a warp to `of_warp`, 2 x 64.
  __device__ void write(double* of_warp) const {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int which = lane / 4 % 4;
#pragma unroll
    for (int set = 0; set < 4; ++set) {
      of_warp[lane / 16 * 64 + (set * 2 + which / 2) * 8 + lane % 4 * 2 + which % 2] = totals_[set];
    }
  }

 private:
  double totals_[4] = {};
};

}  // namespace tessera::ops
