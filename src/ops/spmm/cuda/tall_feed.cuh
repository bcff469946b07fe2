// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "ops/spmm/cuda/tall_windows.hpp"

/// What a block works on, stage by stage, brought into shared memory long before it is needed:
/// which columns, which bits, and where the sums go.
namespace tessera::ops {

enum class StageKind : int {
  middle,
  last,  ///< of its piece: the sums are complete
  end,   ///< of the block's work
};

struct alignas(16) StageHead {
  int num_steps = 0;
  int bit_shift = 0;  ///< where the stage's first step stands in a word
  StageKind kind = StageKind::end;
  int reserved = 0;
  VertexId first_row = 0;
  int num_rows = 0;
  int slot = -1;
  int reserved_too = 0;
};

/// Records lie in a ring. `rows` of X fill a stage.
template <int rows, bool with_scales>
struct StageRecord {
  static constexpr int max_steps = rows / 16;
  static constexpr int max_tiles = rows < 64 ? 1 : rows / 64;
  static constexpr int columns_at = sizeof(StageHead);
  static constexpr int scales_at = columns_at + rows * 4;
  static constexpr int words_at = scales_at + (with_scales ? rows * 4 : 0);

  __host__ __device__ static int bytes(int height) { return words_at + max_tiles * 2 * height * 4; }

  char* memory;

  __device__ StageHead& head() const { return *reinterpret_cast<StageHead*>(memory); }
  __device__ const VertexId* columns() const {
    return reinterpret_cast<const VertexId*>(memory + columns_at);
  }
  __device__ const std::uint32_t* scales() const {
    return reinterpret_cast<const std::uint32_t*>(memory + scales_at);
  }
  __device__ const std::uint32_t* words() const {
    return reinterpret_cast<const std::uint32_t*>(memory + words_at);
  }
};

/// Walks over the pieces of a block; the first warp fills the records. Pieces come through a ring
/// of their own, three ahead: one is used up in a call at most, and what was asked for two calls
/// ago is there.
template <class Record>
class StageFeed {
 public:
  static constexpr int ring_pieces = 4;
  static constexpr int bytes = ring_pieces * static_cast<int>(sizeof(tiles::Piece));

  __device__ StageFeed(const TallLaunch& launch, char* memory)
      : launch_(launch), pieces_(reinterpret_cast<tiles::Piece*>(memory)), lane_(threadIdx.x) {
    index_ = __ldg(launch.worker_offsets + blockIdx.x);
    end_ = __ldg(launch.worker_offsets + blockIdx.x + 1);
  }

  /// Asks for the first pieces; they must have arrived, and be visible, before the first `put`.
  __device__ void start() {
    for (int i = 0; i + 1 < ring_pieces; ++i) fetch_piece(index_ + i);
  }

  /// Called by all lanes of the first warp. Copies are under way when it returns.
  __device__ void put(Record record) {
    if (index_ >= end_) {
      if (lane_ == 0) record.head() = StageHead{};
      return;
    }
    const tiles::Piece& piece = pieces_[index_ % ring_pieces];
    const int left = piece.num_steps - steps_done_;
    const int steps = left < Record::max_steps ? left : Record::max_steps;
    copy_columns(record, std::int64_t{piece.first_step} + steps_done_, steps);
    copy_words(record, std::int64_t{piece.first_tile} + steps_done_ / 4, steps);
    const bool last = steps == left;
    if (lane_ == 0) {
      record.head() = {steps,
                       steps_done_ % 4 * 4,
                       last ? StageKind::last : StageKind::middle,
                       0,
                       piece.first_row,
                       piece.num_rows,
                       piece.slot,
                       0};
    }
    steps_done_ += steps;
    if (!last) return;
    steps_done_ = 0;
    __syncwarp();
    fetch_piece(index_ + ring_pieces - 1);
    ++index_;
  }

 private:
  __device__ void fetch_piece(int index) const {
    if (index >= end_ || lane_ >= 2) return;
    cuda::copy_16_async(cuda::shared_address(pieces_ + index % ring_pieces) +
                            static_cast<std::uint32_t>(lane_) * 16,
                        reinterpret_cast<const char*>(launch_.pieces + index) + lane_ * 16);
  }

  __device__ void copy_columns(Record record, std::int64_t first_step, int steps) const {
    for (int unit = lane_; unit < steps * 4; unit += 32) {
      const std::int64_t from = first_step * 16 + unit * 4;
      cuda::copy_16_async(cuda::shared_address(record.memory + Record::columns_at + unit * 16),
                          launch_.columns + from);
      if (Record::words_at > Record::scales_at && launch_.scales != nullptr) {
        cuda::copy_16_async(cuda::shared_address(record.memory + Record::scales_at + unit * 16),
                            launch_.scales + from);
      }
    }
  }

  __device__ void copy_words(Record record, std::int64_t first_tile, int steps) const {
    const int words_per_tile = 2 * launch_.height;
    const int units = (steps + 3) / 4 * words_per_tile / 4;
    const std::uint32_t* from = launch_.words + first_tile * words_per_tile;
    for (int unit = lane_; unit < units; unit += 32) {
      cuda::copy_16_async(cuda::shared_address(record.memory + Record::words_at + unit * 16),
                          from + unit * 4);
    }
  }

  const TallLaunch& launch_;
  tiles::Piece* pieces_;
  int lane_;
  int index_;  ///< of the present piece
  int end_;
  int steps_done_ = 0;
};

}  // namespace tessera::ops
