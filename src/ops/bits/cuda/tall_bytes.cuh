// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/byte_windows.cuh"

/// Windows of 64 rows on Hopper's matrix units. The pattern is expanded to bytes in registers;
/// codes stand in shared memory as lines, one for each column, with the sources of a stage side by
/// side, which is the only order in which the unit reads bytes.
///
/// Rows are gathered as they are. The warp that asked for 32 of them turns them into parts of lines
/// once for all rows of the window, while the stage before is multiplied, so that turn k
///
///     multiplies stage k - 1, turns stage k into lines, and asks for stage k + 2.
///
/// In a line the sources of a step stand as its words (tiles/fragment.hpp) expand: place 4 q + j is
/// source 2 q + {0, 8, 1, 9}[j].
namespace tessera::ops {

template <int width, int min_blocks>
struct TallBytesShape : ByteWindowsShape<width, 4, min_blocks> {
  using Base = ByteWindowsShape<width, 4, min_blocks>;
  static constexpr int line_bytes = 128 * width;
  static constexpr int rows_at = 2 * line_bytes;
  static constexpr int feed_at = rows_at + 2 * Base::stage_bytes;
  static constexpr int shared_bytes = feed_at + Base::Feed::bytes;
  static constexpr int tiles = Base::rows / 64;
  static_assert(Base::rows == 128, "a line has 128 bytes");
};

/// The bits of a stage, which are multiplied a turn after they are read.
template <class Shape>
struct StageBits {
  std::uint32_t of_tile[Shape::tiles];

  __device__ StageBits(typename Shape::Record record, int num_steps) {
#pragma unroll
    for (int tile = 0; tile < Shape::tiles; ++tile) of_tile[tile] = record.word(tile);
    if (num_steps == Shape::Record::max_steps) return;
      // Steps that are not this stage's have no edges.
#pragma unroll
    for (int tile = 0; tile < Shape::tiles; ++tile) {
      const int left = num_steps - tile * 4;
      of_tile[tile] &= left >= 4 ? ~0u : left <= 0 ? 0u : ((1u << left * 4) - 1) * 0x00010001u;
    }
  }
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

/// The edges of a stage as bytes, and their products, which are under way when `start` returns.
template <class Shape>
class StageProducts {
 public:
  __device__ explicit StageProducts(const StageBits<Shape>& bits) {
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      expand_bytes(bits.of_tile[step / 2], step % 2, pattern_[step]);
    }
  }
  __device__ void start(std::uint32_t lines, std::int32_t (&sums)[Shape::num_sums]) {
    keep();
    keep_in_place(sums);
    cuda::wgmma_fence();
#pragma unroll
    for (int step = 0; step < steps; ++step) {
      wgmma_bytes(sums, pattern_[step],
                  cuda::RowLayout<128>::descriptor(lines + static_cast<std::uint32_t>(step * 32)));
    }
    cuda::wgmma_commit();
  }
  __device__ void finish(std::int32_t (&sums)[Shape::num_sums]) {
    wgmma_wait_for<0>();
    keep();
    keep_in_place(sums);
  }

 private:
  static constexpr int steps = Shape::rows / 32;

  __device__ void keep() {
#pragma unroll
    for (auto& step : pattern_) cuda::keep_in_place(step);
  }

  std::uint32_t pattern_[steps][4];
};

template <class Shape>
__device__ void sum_tall_stages(const ByteWindowsLaunch& launch, char* memory) {
  const std::uint32_t lines = cuda::shared_address(memory);
  const std::uint32_t rows = lines + Shape::rows_at;
  const typename Shape::Feed feed(launch.tall, memory + Shape::feed_at);
  feed.start_stages();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  feed.start_records();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  cuda::wait_for_previous();
  const ByteStages<Shape> stages(launch.tall, rows);
  const RowTurner<Shape> turner(rows, lines);
  for (int turn = 0; turn < 2; ++turn) {
    stages.load(feed.stage(turn).num_steps, feed.record(turn), turn);
    cuda::commit_copies();
  }

  ByteWindowSums<Shape> sums(launch);
  auto& own = reinterpret_cast<std::int32_t(&)[Shape::num_sums]>(sums.own);
  tiles::Stage before = {.end = tiles::StageEnd::none};
  StageBits<Shape> bits(feed.record(0), 0);
  for (int turn = 0, place = 0;; ++turn, place ^= 1) {
    // All but the latest group: the rows of this stage, and the record of the stage after next.
    cuda::wait_for_copies<1>();
    __syncthreads();
    StageProducts<Shape> products(bits);
    products.start(lines + static_cast<std::uint32_t>((place ^ 1) * Shape::line_bytes), own);
    const tiles::Stage stage = feed.stage(turn);
    bits = StageBits<Shape>(feed.record(turn), stage.num_steps);
    turner.turn(place);
    // It may wait for all that is under way, so the next rows are asked for behind it. They go to
    // where these were, which nobody but this warp has read.
    cuda::fence_shared_for_wgmma();
    __syncwarp();
    stages.load(feed.stage(turn + 2).num_steps, feed.record(turn + 2), place);
    feed.advance(turn);
    cuda::commit_copies();
    products.finish(own);
    if (before.end != tiles::StageEnd::none) sums.finish(before);
    if (stage.end == tiles::StageEnd::work) break;
    before = stage;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::min_blocks) void sum_tall_bytes(
    const ByteWindowsLaunch launch) {
#ifdef TESSERA_HAS_WGMMA
  cuda::let_next_begin();
  extern __shared__ __align__(1024) char shared[];
  sum_tall_stages<Shape>(launch, shared);
#else
  __trap();
#endif
}

template <class Shape>
constexpr ByteWindowsFunction tall_bytes_function() {
  return windows_function<Shape, sum_tall_bytes<Shape>>();
}

}  // namespace tessera::ops
