// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/blocks_8x8.cuh"
#include "ops/attention/cuda/short/launch.hpp"
#include "ops/windows/warp_rows.cuh"

namespace tessera::ops {

/// Rows of 16-bit features of the 16 columns of a step, in shared memory. The 16-byte units of a
/// row are exchanged by its number, so that banks do not collide whether a row is copied, a unit of
/// eight rows is read or four units of two.
template <int width>
class StepTile {
  static constexpr int units = width / 8;
  static constexpr int row_bytes = width * 2;
  static constexpr int at_once = 32 / units;  ///< rows that a warp copies with one instruction

 public:
  static constexpr int bytes = tiles::step_columns * row_bytes;

  __device__ explicit StepTile(char* memory) : memory_(memory) {}

  /// The rows of which a lane brings a unit each.
  struct Share {
    VertexId rows[units / 2];

    /// Of the columns of a step, which lie in shared memory.
    __device__ explicit Share(const VertexId* columns) {
#pragma unroll
      for (int i = 0; i < units / 2; ++i) rows[i] = columns[first_row() + i * at_once];
      // Copies that follow must not be held up for these loads one by one.
      __syncwarp();
    }
  };
  /// Asks for them; `rows` begin at the unit of the lane.
  __device__ void start(const FeatureRows& rows, const Share& share) const {
    const std::uint32_t to = cuda::shared_address(memory_ + offset(first_row(), unit_of_lane()));
#pragma unroll
    for (int i = 0; i < units / 2; ++i) {
      // Bits of the first row and of the other part of a row's number do not meet.
      const std::uint32_t place = to ^ static_cast<std::uint32_t>(exchange_of(i * at_once) * 16);
      cuda::copy_16_async(place + i * at_once * row_bytes, rows.at(share.rows[i]));
    }
  }
  /// The same of neighbouring rows from `first` on, of which there are `count`; zeros are put where
  /// others would be.
  __device__ void start(const FeatureRows& rows, VertexId first, int count) const {
    const std::uint32_t to = cuda::shared_address(memory_ + offset(first_row(), unit_of_lane()));
#pragma unroll
    for (int i = 0; i < units / 2; ++i) {
      const std::uint32_t place = to ^ static_cast<std::uint32_t>(exchange_of(i * at_once) * 16);
      const int row = first_row() + i * at_once;
      const bool exists = row < count;
      copy_or_zero(place + i * at_once * row_bytes, rows.at(first + (exists ? row : 0)), exists);
    }
  }
  __device__ static int unit_of_lane() { return WarpLane::number() % units; }

  __device__ uint4 unit(int row, int unit) const { return load(memory_ + offset(row, unit)); }

  /// 16 features of all rows from unit `unit` on, an even one, as the first operand of products: of
  /// rows 0 to 7 eight features, of the others, then of both the next eight.
  __device__ void load_first(std::uint32_t (&blocks)[4], int unit) const {
    cuda::load_blocks(blocks, block_row(unit));
  }
  /// The same as the second operand of products with rows: of rows 0 to 7 both eights, then of the
  /// others.
  __device__ void load_second(std::uint32_t (&blocks)[4], int unit) const {
    const int lane = WarpLane::number();
    const int place = offset(lane % 8 + lane / 16 * 8, lane / 8 % 2) ^ unit * 16;
    cuda::load_blocks(blocks, cuda::shared_address(memory_) + static_cast<std::uint32_t>(place));
  }

  /// Two neighbouring groups of eight features from unit `unit` on, an even one, as operands of
  /// products that add rows up: of each group two blocks.
  __device__ void load_columns(std::uint32_t (&blocks)[4], int unit) const {
    cuda::load_blocks_transposed(blocks, block_row(unit));
  }

  /// Units 4 c + q of rows that are known when this is compiled.
  class Quarters {
   public:
    __device__ explicit Quarters(const StepTile& tile) {
#pragma unroll
      for (int i = 0; i < 4; ++i) places_[i] = tile.memory_ + (WarpLane::quarter() ^ i) * 16;
    }
    __device__ uint4 unit(int row, int chunk) const {
      const int exchange = exchange_of(row);
      return load(places_[exchange & 3] + row * row_bytes + (chunk * 4 ^ (exchange & 4)) * 16);
    }

   private:
    const char* places_[4];
  };

 private:
  __device__ static int first_row() { return WarpLane::number() / units; }
  __device__ static constexpr int exchange_of(int row) {
    return (units < 8 ? 0 : (row & 1) << 2) | (row >> 1 & 3);
  }
  __device__ static int offset(int row, int unit) {
    return row * row_bytes + (unit ^ exchange_of(row)) * 16;
  }
  /// Where this lane's row of four blocks lies: 16 rows of unit `unit`, then of the next.
  __device__ std::uint32_t block_row(int unit) const {
    const int lane = WarpLane::number();
    return cuda::shared_address(memory_) +
           static_cast<std::uint32_t>(offset(lane % 16, lane / 16) ^ unit * 16);
  }
  /// 16 bytes, or as many zeros.
  __device__ static void copy_or_zero(std::uint32_t to, const void* from, bool exists) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(exists ? 16 : 0)
                 : "memory");
  }
  __device__ static uint4 load(const char* from) { return *reinterpret_cast<const uint4*>(from); }

  char* memory_;
};

}  // namespace tessera::ops
