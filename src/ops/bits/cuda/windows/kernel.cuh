// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "ops/bits/cuda/integer_mma.cuh"
#include "ops/bits/cuda/windows/launch.hpp"
#include "ops/bits/cuda/windows/store.cuh"
#include "ops/windows/loaders.cuh"
#include "ops/windows/stages.cuh"

/// Codes summed over windows of 64 rows by products of bytes, stage by stage as spmm/cuda/tall sums
/// features. The codes of a window's columns are gathered once, as they are. A transposing load
/// brings a lane two columns of two rows; of two such loads one permutation each makes what the
/// matrix unit wants, four rows of an even column and of the odd one beside it. In which order a
/// product goes through the rows does not matter to a sum, as long as both operands have the same.
namespace tessera::ops {

/// How a block of four warps shares a window: `row_warps` of them lie below one another, the others
/// have other columns. So many blocks share a processor.
template <int width_, int row_warps, int min_blocks_>
struct ByteWindowsShape {
  static constexpr int width = width_;
  static constexpr int threads = 128;
  static constexpr int rows = 128;  ///< of a stage
  static constexpr int num_stages = 3;
  static constexpr int units = width / 16;
  static constexpr int stage_bytes = rows * width;
  static constexpr int column_warps = 4 / row_warps;
  static constexpr int strips = 4 / row_warps;         ///< of 16 rows that a warp has
  static constexpr int groups = units / column_warps;  ///< of 16 columns that a warp has
  static constexpr int num_sums = width / 2;           ///< of a thread
  static_assert(groups == 2 || groups % 4 == 0);
  using Share = RowShare<std::uint8_t, width, rows, threads>;
  using Feed = StageFeed<rows, threads, false, false>;
  using Record = typename Feed::Record;
  static constexpr int shared_bytes = num_stages * stage_bytes + Feed::bytes;
  static constexpr int min_blocks = min_blocks_;

  /// Where 16 bytes of a row lie: those of eight neighbouring rows never in the same banks.
  __device__ static std::uint32_t offset(int row, int unit) {
    return static_cast<std::uint32_t>(row * width + (unit ^ exchange(row)) * 16);
  }
  /// The same unit `on` rows further on; `address` is of a row whose number is a multiple of a
  /// power of two above `on`.
  __device__ static std::uint32_t further(std::uint32_t address, int on) {
    return address ^ static_cast<std::uint32_t>(on * width + exchange(on) * 16);
  }

 private:
  __device__ static constexpr int exchange(int row) { return row / (128 / width) % units; }
};

template <class Shape>
class ByteStages {
 public:
  __device__ ByteStages(const TallLaunch& launch, std::uint32_t memory)
      : share_(launch), to_(memory + Shape::offset(share_.first_row, share_.unit)) {}

  __device__ void load(int num_steps, typename Shape::Record record, int place) const {
    share_.template copy<Shape>(num_steps, record.columns(),
                                to_ + static_cast<std::uint32_t>(place * Shape::stage_bytes));
  }

 private:
  typename Shape::Share share_;
  std::uint32_t to_;
};

/// The edges of 16 rows and of one half of 64 columns as bytes, from a lane's word
/// (tiles/fragment.hpp). A register has the columns 2q, 2q + 8, 2q + 1 and 2q + 9 of a row, where
/// q = lane % 4, from column 0 or 16 of the half on.
__device__ inline void expand_bytes(std::uint32_t bits, int half, std::uint32_t (&a)[4]) {
  // The bits of upper columns in the bytes above.
  const std::uint32_t pairs =
      half == 0 ? __byte_perm(bits, bits << 6, 0x7250) : __byte_perm(bits, bits >> 2, 0x7351);
  a[0] = pairs & 0x01010101u;
  a[1] = pairs >> 1 & 0x01010101u;
  a[2] = pairs >> 4 & 0x01010101u;
  a[3] = pairs >> 5 & 0x01010101u;
}

/// Adds a stage of so many steps of 16 columns.
template <class Shape>
__device__ void multiply_stage(typename Shape::Record record, int num_steps, std::uint32_t memory,
                               std::int32_t (&sums)[Shape::strips][Shape::groups][2][4]) {
  const auto lane = static_cast<int>(threadIdx.x % 32);
  const auto warp = static_cast<int>(threadIdx.x / 32);
  const int first_strip = warp / Shape::column_warps * Shape::strips;
  const int first_unit = warp % Shape::column_warps * Shape::groups;
  const auto* words =
      reinterpret_cast<const std::uint32_t*>(record.memory + Shape::Record::words_at) +
      first_strip * 32 + lane;
  std::uint32_t from = memory + Shape::offset(lane, first_unit);
#pragma unroll 1
  for (int left = num_steps; left > 0; left -= 4, words += Shape::threads) {
    std::uint32_t bits[Shape::strips];
#pragma unroll
    for (int strip = 0; strip < Shape::strips; ++strip) bits[strip] = words[strip * 32];
    if (left < 4) {
      // Rows of steps that are not this stage's were not brought.
      const std::uint32_t kept = ((1u << left * 4) - 1) * 0x00010001u;
#pragma unroll
      for (int strip = 0; strip < Shape::strips; ++strip) bits[strip] &= kept;
    }
#pragma unroll
    for (int half = 0; half < 2; ++half, from += 32 * Shape::width) {
      if (half == 1 && left <= 2) break;
      std::uint32_t a[Shape::strips][4];
#pragma unroll
      for (int strip = 0; strip < Shape::strips; ++strip) {
        expand_bytes(bits[strip], half, a[strip]);
      }
#pragma unroll
      for (int group = 0; group < Shape::groups; ++group) {
        std::uint32_t blocks[4];
        // Further groups differ from the first in the same bits whatever the row.
        cuda::load_blocks_transposed(blocks, from ^ static_cast<std::uint32_t>(group * 16));
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const unsigned places = odd == 0 ? 0x6240u : 0x7351u;
          const std::uint32_t b[2] = {__byte_perm(blocks[0], blocks[1], places),
                                      __byte_perm(blocks[2], blocks[3], places)};
#pragma unroll
          for (int strip = 0; strip < Shape::strips; ++strip) {
            multiply_16x8(sums[strip][group][odd], a[strip], b);
          }
        }
      }
    }
  }
}

template <class Shape>
__device__ void sum_byte_stages(const ByteWindowsLaunch& launch, char* memory) {
  using Sums = ByteWindowSums<Shape>;
  const std::uint32_t rows = cuda::shared_address(memory);
  const typename Shape::Feed feed(launch.tall, memory + Shape::num_stages * Shape::stage_bytes);
  feed.start();
  cuda::wait_for_previous();
  const ByteStages<Shape> stages(launch.tall, rows);
  for (int turn = 0; turn < 2; ++turn) {
    stages.load(feed.stage(turn).num_steps, feed.record(turn), turn);
    cuda::commit_copies();
  }

  Sums sums(launch);
  for (int turn = 0, place = 0;; ++turn) {
    // All but the latest group: the rows of this stage, and the record of the stage after next.
    cuda::wait_for_copies<1>();
    __syncthreads();
    const tiles::Stage stage = feed.stage(turn);
    if (stage.end == tiles::StageEnd::work) break;
    // Into the place of the stage before, with which all warps are done.
    stages.load(feed.stage(turn + 2).num_steps, feed.record(turn + 2), place == 0 ? 2 : place - 1);
    feed.advance(turn);
    cuda::commit_copies();
    multiply_stage<Shape>(feed.record(turn), stage.num_steps,
                          rows + static_cast<std::uint32_t>(place * Shape::stage_bytes), sums.own);
    if (stage.end != tiles::StageEnd::none) sums.finish(stage);
    place = place + 1 < Shape::num_stages ? place + 1 : 0;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::min_blocks) void sum_byte_windows(
    const ByteWindowsLaunch launch) {
  cuda::let_next_begin();
  extern __shared__ __align__(1024) char shared[];
  sum_byte_stages<Shape>(launch, shared);
}

template <class Shape, auto kernel>
constexpr ByteWindowsFunction windows_function() {
  return {Shape::width, Shape::num_sums * Shape::threads, Shape::rows / 16,
          [](const ByteWindowsLaunch& launch, Stream stream) {
            const dim3 grid(static_cast<unsigned>(launch.tall.work.num_workers),
                            cuda::num_blocks(launch.out.cols, Shape::width));
            cuda::launch_overlapped(kernel, grid, Shape::threads, std::size_t{Shape::shared_bytes},
                                    stream, launch);
          },
          [] { return cuda::resident_blocks(kernel, Shape::threads, Shape::shared_bytes); }};
}

}  // namespace tessera::ops
