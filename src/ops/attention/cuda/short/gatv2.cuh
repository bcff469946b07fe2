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
  static constexpr int slot_bytes = 2 * Rows::bytes;
  static constexpr int stages = width == 64 ? 3 : 2;
  static constexpr int own_bytes = Rows::bytes;

  __device__ ShortGatV2(const TallAttentionLaunch& launch, char* own)
      : Softmax(launch),
        own_(own),
        scores_(static_cast<const T*>(launch.vector) + std::int64_t{blockIdx.y} * width,
                launch.slope) {}

  __device__ void start(char* memory, VertexId column) const {
    const TallAttentionLaunch& launch = this->launch_;
    const std::uint32_t to = cuda::shared_address(memory);
    Rows::start(to, {launch.source, launch.source_stride, width, 0}, column);
    Rows::start(to + Rows::bytes, {launch.value, launch.value_stride, width, 0}, column);
  }
  __device__ void start_own(const tiles::Piece& piece) const {
    const TallAttentionLaunch& launch = this->launch_;
    Rows::start(cuda::shared_address(own_), {launch.target, launch.target_stride, width, 0},
                piece.first_row, piece.num_rows);
  }

  /// The window's own rows go to registers.
  __device__ void begin(const tiles::Piece&) {
    scores_.begin(
        [&](int row, int unit) { return Rows::load(own_, WarpLane::group() + 8 * row, unit); });
  }
  __device__ void multiply(const char*) const {}
  __device__ void add(const char* step, std::uint32_t bits) {
    StepCells cells;
    scores_.find(cells.of, cuda::shared_address(step), used_pairs(bits));
    Softmax::settle(cells, bits);
    this->sums_.add(StepOperands<T>(cells), step + Rows::bytes);
  }
  __device__ void end() const {}

  /// Which pairs of columns have an edge: bit 4 group + pair.
  __device__ static std::uint32_t used_pairs(std::uint32_t bits) {
    bits |= bits >> 16;
    bits |= bits >> 1;
    const int q = WarpLane::quarter();
    return __reduce_or_sync(~0u, (bits & 1u) << q | (bits & 4u) << (2 + q));
  }

 private:
  char* own_;
  RectifiedScores<T, width, ShortScores<width>> scores_;
};

/// Warps that an SM should hold, as registers allow.
template <int width>
inline constexpr int short_gatv2_blocks = width == 64 ? 12 : 8;

template <class T, int width>
__global__ __launch_bounds__(32, (short_gatv2_blocks<width>)) void attend_short_gatv2(
    const TallAttentionLaunch launch) {
  run_short_windows<RingRun<ShortGatV2<T, width>>>(launch);
}

template <class T>
constexpr ShortAttentionFunctions make_short_gatv2() {
  return []<std::size_t... i>(std::index_sequence<i...>) {
    return ShortAttentionFunctions{
        short_function<RingRun<ShortGatV2<T, short_head_widths[i]>>,
                       attend_short_gatv2<T, short_head_widths[i]>>()...};
  }
  (std::make_index_sequence<short_head_widths.size()>{});
}

}  // namespace tessera::ops
