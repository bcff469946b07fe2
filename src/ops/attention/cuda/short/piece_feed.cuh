// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/cuda/short/launch.hpp"
#include "ops/windows/warp_rows.cuh"

namespace tessera::ops {

/// What a warp that takes some pieces, one after another, knows of them, in shared memory: pieces
/// 16 at a time, and the columns and bits of their tiles, some of them ahead. Registers are too few
/// to hold what is on its way, and who loads a piece when it comes to it waits. Steps go from one
/// piece to the next without a seam.
///
/// Copies are closed in groups, one for each step that is gone to; when it is, all groups but the
/// last `tiles_ahead - 1` have come, of all lanes.
template <int tiles_ahead>
class PieceFeed {
  static constexpr int tile_steps = tiles::tile_columns / tiles::step_columns;
  static constexpr int columns_bytes = tiles::tile_columns * static_cast<int>(sizeof(VertexId));
  static constexpr int tile_bytes = columns_bytes + 32 * static_cast<int>(sizeof(std::uint32_t));
  static constexpr int num_tiles = tiles_ahead + 1;
  static constexpr int pieces_at = num_tiles * tile_bytes;
  static constexpr unsigned chunk = 16;  ///< pieces that come together
  static constexpr int piece_units = static_cast<int>(sizeof(tiles::Piece)) / 16;
  static_assert(chunk * piece_units == 32 && tiles_ahead <= 8);

 public:
  static constexpr int bytes =
      pieces_at + 2 * static_cast<int>(chunk) * static_cast<int>(sizeof(tiles::Piece));

  /// Of pieces [begin, end) of the launch. Waits for the first of them and of their tiles.
  __device__ PieceFeed(const WindowsLaunch& launch, std::int32_t begin, std::int32_t end,
                       char* memory)
      : launch_(launch), first_(launch.pieces + begin), count_(end - begin), memory_(memory) {
    start_pieces(0);
    settle();
#pragma unroll
    for (int i = 0; i < tiles_ahead; ++i) ask_tile();
    settle();
  }

  __device__ int count() const { return count_; }
  /// The one at hand, or one of the next.
  __device__ tiles::Piece piece(int number) const {
    return reinterpret_cast<const tiles::Piece*>(
        memory_ + pieces_at)[static_cast<unsigned>(number) % (2 * chunk)];
  }
  /// When a piece is come to. What is asked for here comes with the next steps; behind the last
  /// step, at once.
  __device__ void pass(int number) const {
    if (static_cast<unsigned>(number) % chunk == 0) {
      // Over those that all lanes are done with.
      __syncwarp();
      start_pieces(number / chunk + 1);
    }
    if (piece(number).num_steps == 0) settle();
  }

  /// Goes to the next step; false after the last.
  __device__ bool advance() {
    if (++in_tile_ < steps_) return true;
    if ((coming_ & 15) == 0) return false;
    in_tile_ = 0;
    steps_ = static_cast<int>(coming_ & 15);
    coming_ >>= 4;
    tile_at_ = behind(tile_at_);
    word_ = reinterpret_cast<const std::uint32_t*>(memory_ + tile_at_ +
                                                   columns_bytes)[WarpLane::number()];
    ask_tile();
    return true;
  }
  /// Its columns.
  __device__ const VertexId* columns() const {
    return reinterpret_cast<const VertexId*>(memory_ + tile_at_) + in_tile_ * tiles::step_columns;
  }
  /// This lane's bits of it.
  __device__ std::uint32_t bits() const { return word_ >> (4 * in_tile_); }

 private:
  __device__ static int behind(int tile_at) {
    return tile_at == (num_tiles - 1) * tile_bytes ? 0 : tile_at + tile_bytes;
  }
  /// Waits until all copies that were asked for have come, of whichever lane.
  __device__ static void settle() {
    cuda::commit_copies();
    cuda::wait_for_copies<0>();
    __syncwarp();
  }
  __device__ void start_pieces(int number) const {
    const int unit = number * 32 + WarpLane::number();
    if (unit >= count_ * piece_units) return;
    cuda::copy_16_async(cuda::shared_address(memory_ + pieces_at + unit % 64 * 16),
                        reinterpret_cast<const char*>(first_) + unit * 16);
  }
  /// Asks for another tile, if there is one. Behind a piece without steps no other piece has some.
  __device__ void ask_tile() {
    if (left_ == 0 && next_ < count_) {
      const tiles::Piece piece = this->piece(next_++);
      step_ = piece.first_step;
      tile_ = piece.first_tile;
      left_ = piece.num_steps;
    }
    const int steps = min(left_, tile_steps);
    // Sixteen lanes bring four columns each, eight as many words.
    const int lane = WarpLane::number();
    const void* const from =
        lane < 16
            ? static_cast<const void*>(launch_.columns + std::int64_t{step_} * tiles::step_columns +
                                       lane * 4)
            : static_cast<const void*>(launch_.words + std::int64_t{tile_} * 32 + (lane - 16) * 4);
    asked_at_ = behind(asked_at_);
    if (lane < 16 ? lane / 4 < steps : lane < 24 && steps > 0) {
      cuda::copy_16_async(cuda::shared_address(memory_ + asked_at_ + lane * 16), from);
    }
    coming_ |= static_cast<std::uint32_t>(steps) << (4 * num_coming());
    left_ -= steps;
    step_ += tile_steps;
    ++tile_;
  }
  /// Tiles that come before the one that is asked for: fewer at the beginning alone.
  __device__ int num_coming() const {
    return steps_ > 0 ? tiles_ahead - 1 : asked_at_ / tile_bytes;
  }

  const WindowsLaunch& launch_;
  const tiles::Piece* first_;
  int count_;
  char* memory_;
  // The tiles that are on their way, and what follows them in the piece of the last.
  std::uint32_t coming_ = 0;  ///< their steps, four bits each
  int asked_at_ = (num_tiles - 1) * tile_bytes;
  int next_ = 0;
  std::int32_t left_ = 0;
  std::int32_t step_ = 0;
  std::int32_t tile_ = 0;
  // The tile of the step.
  int tile_at_ = (num_tiles - 1) * tile_bytes;
  int steps_ = 0;
  int in_tile_ = 0;
  std::uint32_t word_ = 0;
};

}  // namespace tessera::ops
