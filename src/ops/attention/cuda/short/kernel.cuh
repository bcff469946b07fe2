// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/dot_windows.cuh"
#include "ops/attention/cuda/short/results.cuh"
#include "ops/attention/cuda/short/weighted_tiles.cuh"
#include "ops/attention/cuda/short/workers.cuh"

/// Dot products over windows of 16 rows.
namespace tessera::ops {

template <class T, int width>
class ShortDot : public ShortPass {
  using Windows = DotWindows<width>;
  using Tile = StepTile<width>;

 public:
  static constexpr int blocks = width == 64 ? 16 : 9;
  static constexpr int shared_bytes = Tile::bytes + Windows::bytes;

  __device__ ShortDot(const WindowsLaunch& launch, char* memory)
      : launch_(launch),
        memory_(memory),
        query_rows_(launch.target, launch.target_stride, width, Tile::unit_of_lane() * 8),
        unit_(launch.scale * log2_of_e) {}

  __device__ void run(std::int32_t begin, std::int32_t end) {
    Windows::walk(*this, launch_, begin, end, memory_ + Tile::bytes);
  }

  __device__ void start_own(const tiles::Piece& piece) const {
    Tile(memory_).start(query_rows_, piece.first_row, piece.num_rows);
  }
  __device__ void clear() {
    sums_ = {};
    first_step_ = true;
  }
  __device__ void begin(const tiles::Piece&) { queries_.load(Tile(memory_)); }
  __device__ void start_step(int, const VertexId*) const {}

  __device__ void add(int, std::uint32_t bits, const Tile& keys, const Tile& values) {
    StepCells cells;
    queries_.template multiply<T>(keys, cells);
    add_weighted(sums_, weights_of(cells, bits), values);
  }

  __device__ void finish(const tiles::Piece& piece) const {
    const ShortResults<T, width> results(launch_, piece);
    const float totals[2] = {sums_.total(0), sums_.total(1)};
    results.settle_both(sums_.base, totals);
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      const int place = WarpLane::group() + 8 * row;
      results.store_row(place, row, sums_.features, results.factor(place, totals[row]));
    }
    results.finish();
  }

 private:
  /// Cells without an edge have no weight; bases make room for the largest score of each row.
  __device__ StepWeights<T> weights_of(StepCells& cells, std::uint32_t bits) {
    float top[2];
    cells.settle(bits, unit_, top);
    make_room(top);
    return weights_of_scores(cells, sums_);
  }

  /// For the largest scores of this lane's rows and columns.
  __device__ void make_room(float (&top)[2]) {
    if (!first_step_) {
      if (__any_sync(~0u, sums_.must_rise(0, top[0]) || sums_.must_rise(1, top[1])) != 0) {
        sums_.make_room(top);
      }
      return;
    }
    // There are no sums yet that would have to be brought down.
    first_step_ = false;
#pragma unroll
    for (int row = 0; row < 2; ++row) {
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 1));
      top[row] = fmaxf(top[row], __shfl_xor_sync(~0u, top[row], 2));
      if (sums_.must_rise(row, top[row])) sums_.base[row] = WeightBase<T>::under(top[row]);
    }
  }

  const WindowsLaunch& launch_;
  char* memory_;
  FeatureRows query_rows_;
  float unit_;  ///< of scores, in powers of two
  HeldRows<width> queries_;
  HeadSums<T, width> sums_;
  bool first_step_ = true;  ///< of a piece
};

}  // namespace tessera::ops
