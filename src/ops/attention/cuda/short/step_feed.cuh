// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/step_tile.cuh"

namespace tessera::ops {

/// Brings the columns and bits of pieces [next, end) to shared memory, a tile at a time, ahead of
/// whoever asks for the rows of these columns, a step at a time: registers are too few to hold what
/// is on its way. All that was asked for must have come before the next is.
class StepFeed {
  static constexpr int steps_per_tile = tiles::tile_columns / tiles::step_columns;
  static constexpr int columns_bytes = tiles::tile_columns * static_cast<int>(sizeof(VertexId));
  static constexpr int slot_bytes = columns_bytes + 32 * static_cast<int>(sizeof(std::uint32_t));

 public:
  static constexpr int bytes = 2 * slot_bytes;

  /// Asks for the first tile.
  __device__ StepFeed(const WindowsLaunch& launch, std::int32_t begin, std::int32_t end,
                      char* memory)
      : launch_(launch), memory_(memory), next_(begin), end_(end) {
    ask_tile();
  }

  /// Goes to the next step; false after the last.
  __device__ bool advance() {
    if (++in_tile_ == steps_) {
      if (coming_steps_ == 0) {
        --in_tile_;
        return false;
      }
      in_tile_ = 0;
      steps_ = coming_steps_;
      slot_ ^= 1;
      word_ = reinterpret_cast<const std::uint32_t*>(slot() + columns_bytes)[WarpLane::number()];
      ask_tile();
    }
    turn_ ^= 1;
    return true;
  }
  /// Its columns.
  __device__ const VertexId* columns() const {
    return reinterpret_cast<const VertexId*>(slot()) + in_tile_ * tiles::step_columns;
  }
  /// This lane's bits of it.
  __device__ std::uint32_t bits() const { return word_ >> (4 * in_tile_); }
  /// Which of two places are for its rows.
  __device__ int turn() const { return turn_; }

 private:
  __device__ void ask_tile() {
    while (left_ == 0 && next_ < end_) {
      const tiles::Piece piece = launch_.pieces[next_];
      step_ = piece.first_step;
      tile_ = piece.first_tile;
      left_ = piece.num_steps;
      ++next_;
    }
    coming_steps_ = min(left_, steps_per_tile);
    // Sixteen lanes bring four columns each, eight as many words.
    const int lane = WarpLane::number();
    const auto* const from =
        lane < 16
            ? static_cast<const void*>(launch_.columns + std::int64_t{step_} * tiles::step_columns +
                                       lane * 4)
            : static_cast<const void*>(launch_.words + std::int64_t{tile_} * 32 + (lane - 16) * 4);
    if (lane < 16 ? lane / 4 < coming_steps_ : lane < 24 && coming_steps_ > 0) {
      cuda::copy_16_async(cuda::shared_address(memory_ + (slot_ ^ 1) * slot_bytes + lane * 16),
                          from);
    }
    left_ -= coming_steps_;
    step_ += coming_steps_;
    ++tile_;
  }
  __device__ const char* slot() const { return memory_ + slot_ * slot_bytes; }

  const WindowsLaunch& launch_;
  char* memory_;
  std::int32_t next_;
  std::int32_t end_;
  // The tile that is on its way, in the other slot, and what follows it in its piece.
  int coming_steps_ = 0;
  std::int32_t left_ = 0;
  std::int32_t step_ = 0;
  std::int32_t tile_ = 0;
  // The tile of the step.
  int steps_ = 0;
  int in_tile_ = -1;
  int slot_ = 0;
  int turn_ = 0;
  std::uint32_t word_ = 0;
};

/// The rows of the source and the value of the columns of a step, while those of the next are on
/// their way.
template <int width>
class StepRing {
 public:
  using Tile = StepTile<width>;
  static constexpr int bytes = 4 * Tile::bytes + StepFeed::bytes;

  __device__ StepRing(const WindowsLaunch& launch, std::int32_t begin, std::int32_t end,
                      char* memory)
      : memory_(memory),
        feed_(launch, begin, end, memory + 4 * Tile::bytes),
        source_rows_(launch.source, launch.source_stride, width, Tile::unit_of_lane() * 8),
        value_rows_(launch.value, launch.value_stride, width, Tile::unit_of_lane() * 8),
        values_are_sources_(launch.value == launch.source &&
                            launch.value_stride == launch.source_stride) {}

  /// Waits until all that was asked for has come, of whichever lane.
  __device__ static void settle() {
    cuda::commit_copies();
    cuda::wait_for_copies<0>();
    __syncwarp();
  }
  /// Asks for the rows of the next step, and calls more(columns, turn), which may ask for what else
  /// belongs to it; nothing is done after the last step.
  template <class More>
  __device__ void ask(More&& more) {
    if (!feed_.advance()) return;
    const typename Tile::Share share(feed_.columns());
    source_tile(turn()).start(source_rows_, share);
    if (!values_are_sources_) value_tile(turn()).start(value_rows_, share);
    more(feed_.columns(), turn());
  }

  /// Of the step that was asked for last: this lane's bits, and which of two places its rows are
  /// in.
  __device__ std::uint32_t bits() const { return feed_.bits(); }
  __device__ int turn() const { return feed_.turn(); }

  __device__ Tile source_tile(int turn) const { return Tile(memory_ + turn * 2 * Tile::bytes); }
  /// In layers of GATv2 values are the sources: then one tile serves as both.
  __device__ Tile value_tile(int turn) const {
    return Tile(memory_ + (turn * 2 + (values_are_sources_ ? 0 : 1)) * Tile::bytes);
  }

 private:
  char* memory_;
  StepFeed feed_;
  FeatureRows source_rows_, value_rows_;
  bool values_are_sources_;
};

}  // namespace tessera::ops
