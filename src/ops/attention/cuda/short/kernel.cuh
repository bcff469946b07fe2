// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/short/softmax.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// Dot products over windows of 16 rows: a warp takes a window by itself, 16 columns at a time.
namespace tessera::ops {

template <class T, int width>
class ShortDot : public ShortSoftmax<T, width> {
  using Softmax = ShortSoftmax<T, width>;

 public:
  __device__ ShortDot(const TallAttentionLaunch& launch, char* own)
      : Softmax(launch, own), unit_(launch.scale * log2_of_e) {}

  __device__ void begin(const tiles::Piece&) const {}
  __device__ void multiply(const char* step) {
    cells_ = {};
    cells_.template add_products<T, width>(this->own(), step);
  }
  __device__ void add(const char* step, std::uint32_t bits) {
    cells_.scale(unit_);
    Softmax::add(cells_, step, bits);
  }

 private:
  float unit_;
  StepCells cells_;
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_attention_blocks = width == 64 ? 16 : 12;

template <class T, int width>
__global__ __launch_bounds__(32, (short_attention_blocks<width>)) void attend_short_windows(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortDot<T, width>>(launch);
}

template <class T>
constexpr ShortAttentionFunctions make_short_dots() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortDot<T, short_head_widths[i]>,
                       attend_short_windows<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
