// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/results.cuh"

namespace tessera::ops {

/// Gradients of the rows of a window in bf16, of one number each and, `with_features`, of the
/// head's features. Those of a cut window are added up in order. A matrix may be absent. A row of a
/// slot has features of all heads, then their numbers.
template <int width, bool with_features>
class GatGradientResults : public ShortPieceResults<> {
  using T = __nv_bfloat16;

 public:
  using ShortPieceResults<>::ShortPieceResults;

  /// Of the row at `place`; all eight lanes of a row call it.
  __device__ void store_number(int place, float number) const {
    if (threadIdx.x % 32 >= 4) return;
    if (piece_.slot >= 0) {
      slot_row(piece_.slot, place)[number_at()] = number;
    } else if (place < piece_.num_rows && launch_.score_gradient != nullptr) {
      *number_of(std::int64_t{piece_.first_row} + place) = cuda::narrow<T>(number);
    }
  }
  /// Eight features, from `feature` of the head on.
  __device__ void store_features(int place, int feature, const float (&features)[8]) const {
    if (piece_.slot >= 0) {
      store_eight(slot_row(piece_.slot, place) + first_feature() + feature, features);
    } else if (place < piece_.num_rows && launch_.output != nullptr) {
      store_eight<T>(features_of(std::int64_t{piece_.first_row} + place) + feature, features, 1.0f);
    }
  }

  /// After all rows of a piece.
  __device__ void finish() const {
    finish_piece(blockIdx.y, [&](const tiles::CutWindow& window) { join(window); });
  }

 private:
  __device__ void join(const tiles::CutWindow& window) const {
    const int lane = static_cast<int>(threadIdx.x % 32);
    if (launch_.score_gradient != nullptr) {
      for (int place = lane; place < window.num_rows; place += 32) {
        *number_of(std::int64_t{window.first_row} + place) =
            cuda::narrow<T>(joined(window, place, number_at()));
      }
    }
    if constexpr (with_features) {
      if (launch_.output == nullptr) return;
      for (int i = lane; i < window.num_rows * width; i += 32) {
        features_of(std::int64_t{window.first_row} + i / width)[i % width] =
            cuda::narrow<T>(joined(window, i / width, first_feature() + i % width));
      }
    }
  }
  __device__ float joined(const tiles::CutWindow& window, int place, std::int64_t at) const {
    float sum = 0;
    for (int k = 0; k < window.num_slots; ++k) {
      sum += __ldcg(slot_row(window.first_slot + k, place) + at);
    }
    return sum;
  }

  __device__ T* number_of(std::int64_t row) const {
    return static_cast<T*>(launch_.score_gradient) + row * launch_.score_gradient_stride +
           blockIdx.y;
  }
  __device__ T* features_of(std::int64_t row) const {
    return static_cast<T*>(launch_.output) + row * launch_.output_stride + first_feature();
  }
  __device__ static std::int64_t first_feature() { return std::int64_t{blockIdx.y} * width; }
  __device__ std::int64_t number_at() const {
    return (with_features ? launch_.heads * width : 0) + blockIdx.y;
  }
};

}  // namespace tessera::ops
