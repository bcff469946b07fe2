// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

#include "ops/attention/cuda/rectified/scores.cuh"
#include "ops/attention/cuda/short/softmax.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// GATv2 over windows of 16 rows: scores by minima, as over windows of 64.
namespace tessera::ops {

template <int width>
struct ShortScores : StepRows<width> {
  static constexpr int row_bytes = width * 2;
  static constexpr int block_bytes = 128;  ///< from eight units to the next
  __device__ static int unit_of_lane(int i) { return 4 * i + WarpLane::quarter(); }
};

template <class T, int width>
class ShortGatV2 : public ShortSoftmax<T, width> {
  using Softmax = ShortSoftmax<T, width>;
  using Rows = StepRows<width>;

 public:
  __device__ ShortGatV2(const TallAttentionLaunch& launch, char* own)
      : Softmax(launch, own),
        scores_(static_cast<const T*>(launch.vector) + std::int64_t{blockIdx.y} * width,
                launch.slope) {}

  /// The window's own rows go to registers.
  __device__ void begin(const tiles::Piece&) {
    scores_.begin([&](int row, int unit) {
      return Rows::load(this->own(), WarpLane::group() + 8 * row, unit);
    });
  }
  __device__ void multiply(const char*) const {}
  __device__ void add(const char* step, std::uint32_t bits) {
    StepCells cells;
    scores_.find(cells.of, cuda::shared_address(step), used_pairs(bits));
    Softmax::add(cells, step, bits);
  }

  /// Which pairs of columns have an edge: bit 4 group + pair.
  __device__ static std::uint32_t used_pairs(std::uint32_t bits) {
    bits |= bits >> 16;
    bits |= bits >> 1;
    const int q = WarpLane::quarter();
    return __reduce_or_sync(~0u, (bits & 1u) << q | (bits & 4u) << (2 + q));
  }

 private:
  RectifiedScores<T, width, ShortScores<width>> scores_;
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_gatv2_blocks = width == 64 ? 12 : 8;

template <class T, int width>
__global__ __launch_bounds__(32, (short_gatv2_blocks<width>)) void attend_short_gatv2(
    const TallAttentionLaunch launch) {
  run_short_windows<ShortGatV2<T, width>>(launch);
}

template <class T>
constexpr ShortAttentionFunctions make_short_gatv2() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<ShortGatV2<T, short_head_widths[i]>,
                       attend_short_gatv2<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
