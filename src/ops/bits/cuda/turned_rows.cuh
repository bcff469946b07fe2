// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/byte_windows.cuh"

/// Codes of a window's columns, gathered as they are and turned into lines: one for each column of
/// codes, with the sources of a stage side by side, which is the order in which matrix units read
/// bytes. The warp that asked for 32 rows turns them once for all rows of the window.
///
/// In a line the sources of a step stand as its words (tiles/fragment.hpp) expand: place 4 q + j is
/// source 2 q + {0, 8, 1, 9}[j].
namespace tessera::ops {

/// Warps lie below one another, so many blocks share a processor.
template <int width, int min_blocks>
struct TurnedShape : ByteWindowsShape<width, 4, min_blocks> {
  using Base = ByteWindowsShape<width, 4, min_blocks>;
  static constexpr int line_bytes = 128 * width;
  static constexpr int rows_at = 2 * line_bytes;
  static constexpr int stages_at = rows_at + 2 * Base::stage_bytes;
  static constexpr int ring_stages = 8;
  static constexpr int shared_bytes = stages_at + ring_stages * 16;
  static constexpr int tiles = Base::rows / 64;
  static_assert(Base::rows == 128, "a line has 128 bytes");
};

/// The stages of a block come through a ring. What is asked for in turn k, stage k + 6, may be read
/// from turn k + 2 on.
template <class Shape>
class StageRing {
 public:
  __device__ StageRing(const TallLaunch::Work& work, char* memory)
      : stages_(work.stages),
        memory_(memory),
        first_(__ldg(work.worker_offsets + blockIdx.x)),
        last_(__ldg(work.worker_offsets + blockIdx.x + 1) - 1) {}

  __device__ void start() const {
    if (static_cast<int>(threadIdx.x) < ahead) ask(static_cast<int>(threadIdx.x));
  }
  __device__ void advance(int turn) const {
    if (threadIdx.x == Shape::threads - 1) ask(turn + ahead);
  }
  __device__ tiles::Stage stage(int turn) const {
    const uint4 raw = *reinterpret_cast<const uint4*>(place(turn));
    tiles::Stage stage;
    memcpy(&stage, &raw, sizeof(stage));
    return stage;
  }

 private:
  static constexpr int ahead = 6;

  __device__ char* place(int turn) const { return memory_ + turn % Shape::ring_stages * 16; }
  /// Beyond the end the last stage again, which is empty.
  __device__ void ask(int turn) const {
    const int index = first_ + turn < last_ ? first_ + turn : last_;
    cuda::copy_16_async(cuda::shared_address(place(turn)), stages_ + index);
  }

  const tiles::Stage* stages_;
  char* memory_;
  int first_;
  int last_;
};

/// This thread's bits of a stage. Steps that a window does not have are without edges.
template <class Shape>
struct StageBits {
  std::uint32_t of_tile[Shape::tiles] = {};
};

template <class Shape>
class BitReader {
 public:
  __device__ explicit BitReader(const std::uint32_t* words)
      : words_(reinterpret_cast<const char*>(words + threadIdx.x)) {
    // One register pair, not a sum that is formed again in every turn.
    asm volatile("" : "+l"(words_));
  }

  __device__ StageBits<Shape> read(const tiles::Stage& stage) const {
    StageBits<Shape> bits;
    const auto* const words = reinterpret_cast<const std::uint32_t*>(
        words_ + std::int64_t{stage.first_tile} * (Shape::threads * 4));
#pragma unroll
    for (int tile = 0; tile < Shape::tiles; ++tile) {
      if (tile * 4 < stage.num_steps) bits.of_tile[tile] = __ldg(words + tile * Shape::threads);
    }
    return bits;
  }

 private:
  const char* words_;
};

/// Brings this thread's part of a stage's rows.
template <class Shape>
class RowAsker {
 public:
  __device__ RowAsker(const TallLaunch& launch, std::uint32_t rows)
      : share_(launch),
        columns_(reinterpret_cast<const char*>(launch.matrix.columns)),
        to_(rows + Shape::offset(share_.first_row, share_.unit)) {
    // Not formed again in every turn.
    asm volatile("" : "+l"(columns_), "+r"(to_));
  }

  /// Which rows of X they are.
  __device__ void read(const tiles::Stage& stage) {
    live_ = share_.live(stage.num_steps);
    if (!live_) return;
    const auto* const from = reinterpret_cast<const Ids*>(
        columns_ + std::int64_t{stage.first_step} * (16 * 4) + share_.first_row * 4);
#pragma unroll
    for (int i = 0; i < count; i += ids_at_once) {
      const Ids several = __ldg(from + i / ids_at_once);
      memcpy(ids_ + i, &several, sizeof(several));
    }
  }
  __device__ void ask(int place) const {
    if (!live_) return;
    const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * Shape::stage_bytes);
#pragma unroll
    for (int i = 0; i < count; ++i) {
      cuda::copy_16_async(Shape::further(to, i), share_.of(ids_[i]));
    }
  }

 private:
  static constexpr int count = Shape::Share::count;
  using Ids = std::conditional_t<count == 2, uint2, uint4>;
  static constexpr int ids_at_once = sizeof(Ids) / 4;

  typename Shape::Share share_;
  const char* columns_;
  std::uint32_t to_;
  VertexId ids_[count] = {};
  bool live_ = false;
};

/// Turns the 32 rows of a stage that this warp asked for.
template <class Shape>
class RowTurner {
 public:
  __device__ RowTurner(std::uint32_t rows, std::uint32_t lines) {
    const auto lane = static_cast<int>(threadIdx.x % 32);
    const auto warp = static_cast<int>(threadIdx.x / 32);
    from_ = rows + Shape::offset(warp * 32 + lane, 0);
    // Even columns of 16 before odd ones.
    to_ = lines + cuda::RowLayout<128>::offset(lane % 16, warp * 2 + lane / 16);
    // Not formed again in every turn.
    asm volatile("" : "+r"(from_), "+r"(to_));
  }

  __device__ void turn(int place) const {
    const std::uint32_t from = from_ + static_cast<std::uint32_t>(place * Shape::stage_bytes);
    const std::uint32_t to = to_ + static_cast<std::uint32_t>(place * Shape::line_bytes);
#pragma unroll
    for (int group = 0; group < Shape::groups; ++group) {
      std::uint32_t blocks[4];
      // Further groups differ from the first in the same bits whatever the row.
      cuda::load_blocks_transposed(blocks, from ^ static_cast<std::uint32_t>(group * 16));
      const std::uint32_t turned[4] = {
          __byte_perm(blocks[0], blocks[1], 0x6240), __byte_perm(blocks[0], blocks[1], 0x7351),
          __byte_perm(blocks[2], blocks[3], 0x6240), __byte_perm(blocks[2], blocks[3], 0x7351)};
      cuda::store_blocks(to + static_cast<std::uint32_t>(group * 16 * 128), turned);
    }
  }

 private:
  std::uint32_t from_;
  std::uint32_t to_;
};

}  // namespace tessera::ops
