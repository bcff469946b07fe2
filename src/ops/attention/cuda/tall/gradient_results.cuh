// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/last_arrival.cuh"
#include "cuda/vectors.cuh"
#include "ops/attention/cuda/tall/launch.hpp"
#include "ops/attention/cuda/tall/packed.cuh"

namespace tessera::ops {

/// Gradients of the rows of a window: to their matrices, or to slots where the window is cut; the
/// block that fills the last slot of a window adds them up in order. A matrix may be absent.
template <class T, int block_features, int num_matrices>
class GradientResults {
 public:
  struct Matrix {
    void* data;
    std::int64_t stride;
    float factor;
  };

  __device__ GradientResults(const TallAttentionLaunch& launch, int all_features,
                             const Matrix (&matrices)[num_matrices])
      : launch_(launch),
        first_feature_(static_cast<int>(blockIdx.y) * block_features),
        all_features_(all_features) {
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) matrices_[m] = matrices[m];
  }

  /// Two neighbouring features of the row at `place`, from `feature` of the block on.
  __device__ void store(const tiles::Piece& piece, int m, int place, int feature, float low,
                        float high) const {
    const int at = first_feature_ + feature;
    if (at >= all_features_) return;
    if (piece.slot >= 0) {
      *reinterpret_cast<float2*>(slot_row(piece.slot, place) + m * all_features_ + at) = {low,
                                                                                          high};
      return;
    }
    const Matrix& to = matrices_[m];
    if (place >= piece.num_rows || to.data == nullptr) return;
    const std::int64_t row = std::int64_t{piece.first_row} + place;
    T* const pair = static_cast<T*>(to.data) + row * to.stride + at;
    if constexpr (sizeof(T) == 4) {
      *reinterpret_cast<float2*>(pair) = {low * to.factor, high * to.factor};
    } else {
      *reinterpret_cast<std::uint32_t*>(pair) = packed<T>(low * to.factor, high * to.factor);
    }
  }

  /// After all rows of a piece.
  __device__ void finish(const tiles::Piece& piece) const {
    if (piece.slot < 0) return;
    const tiles::CutWindow window = launch_.slot_windows[piece.slot];
    unsigned* const counter =
        launch_.arrivals + std::int64_t{blockIdx.y} * launch_.num_slots + window.first_slot;
    if (!cuda::is_last_block(counter, static_cast<unsigned>(window.num_slots))) return;
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) {
      if (matrices_[m].data != nullptr) join(window, m);
    }
  }

 private:
  __device__ float* slot_row(int slot, int place) const {
    return launch_.slots + (std::int64_t{slot} * tall_attention_height + place) * launch_.slot_row;
  }

  __device__ void join(const tiles::CutWindow& window, int m) const {
    const int left = all_features_ - first_feature_;
    const int num_features = left < block_features ? left : block_features;
    const Matrix& to = matrices_[m];
    for (int i = static_cast<int>(threadIdx.x); i < window.num_rows * num_features;
         i += tall_attention_threads) {
      const int place = i / num_features;
      const int feature = first_feature_ + i % num_features;
      float sum = 0;
      for (int k = 0; k < window.num_slots; ++k) {
        sum += __ldcg(slot_row(window.first_slot + k, place) + m * all_features_ + feature);
      }
      static_cast<T*>(to.data)[(std::int64_t{window.first_row} + place) * to.stride + feature] =
          cuda::narrow<T>(sum * to.factor);
    }
  }

  const TallAttentionLaunch& launch_;
  int first_feature_;
  int all_features_;
  Matrix matrices_[num_matrices];
};

}  // namespace tessera::ops
