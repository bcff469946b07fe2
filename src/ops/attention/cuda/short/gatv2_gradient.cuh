// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/rectified/mask_sums.cuh"
#include "ops/attention/cuda/short/gatv2.cuh"
#include "ops/attention/cuda/short/gradient.cuh"

/// The backward pass of GATv2 over windows of 16 rows: what rectified/gradient.cuh computes, with
/// rows that come as those of dot products do.
namespace tessera::ops {

template <class T, int width, bool by_rows>
class ShortGatV2Gradient : public ShortGradient<T, width, by_rows> {
  using Base = ShortGradient<T, width, by_rows>;
  using Masks = MaskSums<T, width, ShortScores<width>, 1, 1>;
  using Minima = RectifiedScores<T, width, ShortScores<width>>;

 public:
  using typename Base::Rows;
  static constexpr int own_bytes = Base::own_bytes + Masks::bytes;

  __device__ ShortGatV2Gradient(const TallAttentionLaunch& launch, char* own)
      : Base(launch, own), minima_(vector(), launch.slope), masks_(own + Base::own_bytes) {
    this->unit_ = 1;
  }

  __device__ void clear() {
    masks_.clear();
    totals_[0] = totals_[1] = 0;
    if constexpr (!by_rows) this->sums_[1].clear();
  }
  __device__ void begin(const tiles::Piece& piece) {
    Base::begin(piece);
    minima_.begin([&](int row, int unit) {
      return Rows::load(this->own_, WarpLane::group() + 8 * row, unit);
    });
    masks_.begin([&](int row, int unit) { return Rows::load(this->own_, row, unit); });
  }
  __device__ void multiply(const char* step) {
    this->products_ = {};
    this->products_.template add_products<T, width>(this->own_ + Rows::bytes, step + Rows::bytes);
  }
  __device__ void add(const char* step, std::uint32_t bits) {
    minima_.find(this->scores_.of, cuda::shared_address(step),
                 ShortGatV2<T, width>::used_pairs(bits));
    this->weigh(step, bits);
    StepWeights<T> gradients;
#pragma unroll
    for (int place = 0; place < 4; ++place) {
      const float* const pair = this->scores_.of[place / 2] + place % 2 * 2;
      gradients.set(place, pair[0], pair[1]);
      totals_[place % 2] += pair[0] + pair[1];
    }
    masks_.put(0, gradients);
    __syncwarp();
    masks_.add(cuda::shared_address(step), Masks::used_rows(bits & 0x000f000fu));
    if constexpr (!by_rows) {
      this->sums_[1].add(StepOperands<T>(this->products_), step + Rows::bytes);
    }
  }

  __device__ void finish(const tiles::Piece& piece) {
    using Results = ShortGradientResults<T, width, Base::num_matrices>;
    const TallAttentionLaunch& launch = this->launch_;
    typename Results::Matrix matrices[Base::num_matrices];
    matrices[0] = {launch.score_gradient, launch.score_gradient_stride, 1.0f};
    if constexpr (!by_rows) matrices[1] = {launch.output, launch.output_stride, 1.0f};
    const Results results(launch, piece, matrices);
    float sloped[2] = {0, 0};
    if constexpr (!by_rows) {
#pragma unroll
      for (int row = 0; row < 2; ++row) {
        sloped[row] = launch.slope * Minima::over_row(totals_[row]);
      }
#pragma unroll
      for (int i = 0; i < FeatureSums<T, width>::chunks * 4; ++i) {
        const int place = 8 * (i / 2 % 2) + 2 * WarpLane::quarter() + i % 2;
        float features[8];
        this->sums_[1].row(i / 4, i / 2 % 2, i % 2, features);
        results.store(1, place, i / 4 * 64 + WarpLane::group() * 8, features);
      }
    }
    masks_.finish(1 - launch.slope, sloped, vector(),
                  [&](int row, int column, float low, float high) {
                    results.store(0, row, column, low, high);
                  });
    results.finish();
    // The window's own features are overwritten by those of the next.
    __syncwarp();
  }

  /// After the last piece.
  __device__ void end() const {
    const TallAttentionLaunch& launch = this->launch_;
    if (launch.vector_sums == nullptr) return;
    masks_.store_vector_sums(launch.vector_sums +
                             (std::int64_t{blockIdx.x} * launch.heads + blockIdx.y) * width);
  }

 private:
  __device__ const T* vector() const {
    return static_cast<const T*>(this->launch_.vector) + std::int64_t{blockIdx.y} * width;
  }

  Minima minima_;
  Masks masks_;
  float totals_[2];  ///< of dS, over this lane's columns
};

template <class T, bool by_rows>
__global__ __launch_bounds__(32,
                             8) void differentiate_short_gatv2(const TallAttentionLaunch launch) {
  run_short_windows<ShortGatV2Gradient<T, 64, by_rows>>(launch);
}

/// Of heads of 64 features.
template <class T, bool by_rows>
constexpr TallAttentionFunction make_short_gatv2_gradient() {
  return short_function<ShortGatV2Gradient<T, 64, by_rows>,
                        differentiate_short_gatv2<T, by_rows>>();
}

}  // namespace tessera::ops
