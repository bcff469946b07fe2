// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/vectors.cuh"
#include "ops/attention/cuda/short/results.cuh"

namespace tessera::ops {

/// Gradients of the rows of a window. Those of a cut window are added up in order. A matrix may be
/// absent. A row of a slot has the features of all heads of one matrix after another.
template <class T, int width, int num_matrices>
class ShortGradientResults : public ShortPieceResults<> {
 public:
  struct Matrix {
    void* data;
    std::int64_t stride;
    float factor;

    __device__ T* at(std::int64_t row) const {
      return static_cast<T*>(data) + row * stride + std::int64_t{blockIdx.y} * width;
    }
  };

  __device__ ShortGradientResults(const WindowsLaunch& launch, const tiles::Piece& piece,
                                  const Matrix (&matrices)[num_matrices])
      : ShortPieceResults<>(launch, piece) {
#pragma unroll
    for (int m = 0; m < num_matrices; ++m) matrices_[m] = matrices[m];
  }

  /// Two neighbouring features.
  __device__ void store(int m, int place, int feature, float low, float high) const {
    if (piece_.slot >= 0) {
      *reinterpret_cast<float2*>(slot_row(piece_.slot, place, m) + feature) = {low, high};
    } else if (place < piece_.num_rows && matrices_[m].data != nullptr) {
      T* const to = matrices_[m].at(std::int64_t{piece_.first_row} + place) + feature;
      const float factor = matrices_[m].factor;
      *reinterpret_cast<std::uint32_t*>(to) = packed<T>(low * factor, high * factor);
    }
  }

  /// All features of the row at `place`, which four lanes have together (quad_rows.cuh).
  __device__ void store_row(int m, int place, int row,
                            const float (&features)[width / 8][4]) const {
    const Matrix& to = matrices_[m];
    if (piece_.slot >= 0) {
      store_quad_row(slot_row(piece_.slot, place, m), features, row);
    } else if (to.data != nullptr) {
      store_quad_row(to.at(std::int64_t{piece_.first_row} + place), place < piece_.num_rows,
                     features, row, to.factor);
    }
  }

  /// Where two neighbouring features of all rows go: what is the same for every row is found once.
  class Pairs {
   public:
    __device__ Pairs(const ShortGradientResults& results, int m, int feature) {
      const Matrix& to = results.matrices_[m];
      const tiles::Piece& piece = results.piece_;
      if (piece.slot >= 0) {
        slot_ = results.slot_row(piece.slot, 0, m) + feature;
        slot_stride_ = results.launch_.slot_row;
      } else if (to.data != nullptr) {
        first_ = reinterpret_cast<char*>(to.at(piece.first_row) + feature);
        row_bytes_ = to.stride * static_cast<std::int64_t>(sizeof(T));
        num_rows_ = piece.num_rows;
      }
    }

    __device__ void store(int place, float low, float high) const {
      if (slot_ != nullptr) {
        *reinterpret_cast<float2*>(slot_ + place * slot_stride_) = {low, high};
      } else if (place < num_rows_) {
        *reinterpret_cast<std::uint32_t*>(first_ + place * row_bytes_) = packed<T>(low, high);
      }
    }

   private:
    float* slot_ = nullptr;
    std::int64_t slot_stride_ = 0;
    char* first_ = nullptr;
    std::int64_t row_bytes_ = 0;
    int num_rows_ = 0;
  };

  /// After all rows of a piece.
  __device__ void finish() const {
    finish_piece(blockIdx.y, [&](const tiles::CutWindow& window) {
#pragma unroll
      for (int m = 0; m < num_matrices; ++m) {
        if (matrices_[m].data != nullptr) join(window, m);
      }
    });
  }

 private:
  /// Several features of a lane are on their way at once. A slot has all rows of a window, be there
  /// as many or not.
  __device__ void join(const tiles::CutWindow& window, int m) const {
    constexpr int at_once = 4;
    static_assert(short_window_height * width % (32 * at_once) == 0);
    const int count = window.num_rows * width;
    for (int i = static_cast<int>(threadIdx.x) % 32; i < count; i += 32 * at_once) {
      float sums[at_once] = {};
      for (int k = 0; k < window.num_slots; ++k) {
#pragma unroll
        for (int j = 0; j < at_once; ++j) {
          const int at = i + 32 * j;
          sums[j] += __ldcg(slot_row(window.first_slot + k, at / width, m) + at % width);
        }
      }
#pragma unroll
      for (int j = 0; j < at_once; ++j) {
        const int at = i + 32 * j;
        if (at >= count) break;
        matrices_[m].at(std::int64_t{window.first_row} + at / width)[at % width] =
            cuda::narrow<T>(sums[j] * matrices_[m].factor);
      }
    }
  }

  __device__ float* slot_row(int slot, int place, int m) const {
    const std::int64_t row = std::int64_t{slot} * short_window_height + place;
    return launch_.slots + row * launch_.slot_row + (m * launch_.heads + blockIdx.y) * width;
  }

  Matrix matrices_[num_matrices];
};

}  // namespace tessera::ops
