// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/gat_windows.cuh"
#include "ops/attention/cuda/tall/gat_vertices.cuh"

/// What is known of terms of GAT before their weights are: those of a window's own rows, and
/// whether weights of a piece may be made of factors.
namespace tessera::ops {

/// The terms of rows g and g + 8 of a window, 0 where it has no such row.
template <class T>
struct OwnGatTerms {
  T raw[2];

  __device__ void load(const TallAttentionLaunch& launch, const tiles::Piece& piece) {
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      raw[row] = place < piece.num_rows
                     ? gat_term<T>(launch.target, launch.target_stride, piece.first_row + place)
                     : cuda::narrow<T>(0.0f);
    }
  }
  /// In powers of two.
  __device__ float l(int row) const { return gat_power(cuda::widen(raw[row])); }
};

/// Terms for which factors serve make weights of 2^-8 to 2^16. Over 2^8, a hundred thousand of them
/// times features of 2^-100 to 2^100 add up within fp32.
struct FactoredTerms {
  static constexpr float largest = 8;
  static constexpr float base = 8;

  template <class T>
  __device__ static bool serve(const TallAttentionLaunch& launch, const OwnGatTerms<T>& own) {
    return launch.slope >= 0 && launch.slope <= 1 && fabsf(own.l(0)) <= largest &&
           fabsf(own.l(1)) <= largest;
  }
  /// `raw` is the largest magnitude of terms of columns, as they lie in memory. What is not a
  /// number makes not-a-number of its weights, by factors too.
  __device__ static bool serve(float raw) { return raw * log2_of_e <= largest; }
};

/// Whether they do for all rows and columns of a piece.
template <class T>
__device__ bool factors_serve(const TallAttentionLaunch& launch, const tiles::Piece& piece) {
  OwnGatTerms<T> own;
  own.load(launch, piece);
  float largest = 0;
  for (int i = WarpLane::number(); i < piece.num_steps * tiles::step_columns; i += 32) {
    const VertexId column =
        launch.columns[std::int64_t{piece.first_step} * tiles::step_columns + i];
    const T term = gat_term<T>(launch.source, launch.source_stride, column);
    largest = fmaxf(largest, fabsf(cuda::widen(term)));
  }
  return __all_sync(~0u, FactoredTerms::serve(launch, own) && FactoredTerms::serve(largest)) != 0;
}

}  // namespace tessera::ops
