// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/byte_windows.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/wide_windows_store.cuh"

/// Windows of 64 rows on Hopper's matrix units, sides exchanged: sums of columns by rows. Gathered
/// codes go through a transposing load into registers, once for all rows, and the pattern stands as
/// bytes in shared memory, expanded once for all columns, a stage ahead.
///
/// In which order a product goes through the sources is free as long as both sides have the same.
/// The pattern has them as its words (tiles/fragment.hpp) expand: of every 64 sources, place
/// 16 u + 4 s + j is source 16 s + 2 u + {0, 8, 1, 9}[j].
namespace tessera::ops {

/// Of 64 or 128 columns. So many blocks share a processor.
template <int width_, int min_blocks_>
struct WideShape {
  static constexpr int width = width_;
  static_assert(width == 64 || width == 128);
  static constexpr int halves = width / 64;
  static constexpr int units = width / 16;
  static constexpr int threads = 128;
  static constexpr int num_sums = halves * 32;  ///< of a thread
  static constexpr int rows = 128;              ///< of a stage
  static constexpr int num_stages = 3;
  static constexpr int stage_bytes = rows * width;
  static constexpr int pattern_bytes = 64 * rows;
  using Share = RowShare<std::uint8_t, width, rows, threads>;
  using Feed = StageFeed<rows, threads, false, false>;
  using Record = typename Feed::Record;
  static constexpr int patterns_at = num_stages * stage_bytes;
  static constexpr int feed_at = patterns_at + 2 * pattern_bytes;
  static constexpr int shared_bytes = feed_at + Feed::bytes + 1024;
  static constexpr int min_blocks = min_blocks_;

  /// Where 16 bytes of a row lie. Rows eight apart, of which the matrix unit wants eight at once,
  /// lie side by side, and never in the same banks.
  __device__ static std::uint32_t offset(int row, int unit) {
    const int place = row % 8 * (rows / 8) + row / 8;
    return static_cast<std::uint32_t>(place * width + (unit ^ place * width / 128 % units) * 16);
  }
  /// The same unit so many rows further on, within the same eight rows.
  __device__ static std::uint32_t further(std::uint32_t address, int on) {
    return address + static_cast<std::uint32_t>(on * (rows / 8) * width);
  }
};

/// The pattern of a stage as bytes, lines of 128 sources for each row.
template <class Shape>
__device__ void expand_stage(typename Shape::Record record, int num_steps, std::uint32_t lines) {
  using Layout = cuda::RowLayout<128>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int tile = 0; tile < Shape::rows / 64; ++tile) {
    // Steps that are not this stage's have no edges.
    const int left = num_steps - tile * 4;
    const std::uint32_t kept = left >= 4 ? ~0u : left <= 0 ? 0u : ((1u << left * 4) - 1) * 0x10001u;
    const std::uint32_t bits = record.word(tile) & kept;
    std::uint32_t first[4], second[4];
    expand_bytes(bits, 0, first);
    expand_bytes(bits, 1, second);
#pragma unroll
    for (int lower = 0; lower < 2; ++lower) {
      asm volatile("st.shared.v4.b32 [%0], {%1, %2, %3, %4};" ::"r"(
                       lines + Layout::offset(row + lower * 8, tile * 4 + lane % 4)),
                   "r"(first[lower]), "r"(first[lower + 2]), "r"(second[lower]),
                   "r"(second[lower + 2])
                   : "memory");
    }
  }
  cuda::fence_shared_for_wgmma();
}

/// Four steps of 32 sources, of 16 columns of each half for each warp.
template <class Shape>
struct StageFragments {
  std::uint32_t of[4][Shape::halves][4];

  __device__ void load(std::uint32_t rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const int unit = static_cast<int>(threadIdx.x) / 32;
    const std::uint32_t first = Shape::further(rows + Shape::offset(lane % 8 * 8, unit), lane / 8);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int half = 0; half < Shape::halves; ++half) {
        std::uint32_t blocks[4];
        // 64 rows further on are eight places.
        cuda::load_blocks_transposed(
            blocks, Shape::further(first ^ static_cast<std::uint32_t>(half * 64), step % 2 * 4) +
                        static_cast<std::uint32_t>(step / 2 * 8 * Shape::width));
#pragma unroll
        for (int odd = 0; odd < 2; ++odd) {
          const unsigned places = odd == 0 ? 0x6420u : 0x7531u;
          of[step][half][odd] = __byte_perm(blocks[0], blocks[1], places);
          of[step][half][odd + 2] = __byte_perm(blocks[2], blocks[3], places);
        }
      }
    }
  }
  __device__ void keep() {
#pragma unroll
    for (auto& step : of) {
#pragma unroll
      for (auto& half : step) cuda::keep_in_place(half);
    }
  }
};

template <class Shape>
__device__ void start_products(StageFragments<Shape>& fragments, std::uint32_t lines,
                               WideWindowSums<Shape>& sums) {
  const std::uint64_t pattern = cuda::RowLayout<128>::descriptor(lines);
  fragments.keep();
#pragma unroll
  for (auto& half : sums.own) keep_in_place(half);
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int half = 0; half < Shape::halves; ++half) {
      wgmma_bytes(sums.own[half], fragments.of[step][half], pattern + step * cuda::row_step);
    }
  }
  cuda::wgmma_commit();
}

template <class Shape>
__device__ void sum_wide_stages(const ByteWindowsLaunch& launch, char* memory) {
  const std::uint32_t base = cuda::shared_address(memory);
  const auto rows_at = [&](int place) {
    return base + static_cast<std::uint32_t>(place * Shape::stage_bytes);
  };
  const auto lines_at = [&](int place) {
    return base + static_cast<std::uint32_t>(Shape::patterns_at + place * Shape::pattern_bytes);
  };
  const typename Shape::Feed feed(launch.tall, memory + Shape::feed_at);
  feed.start_stages();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  feed.start_records();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  expand_stage<Shape>(feed.record(0), feed.stage(0).num_steps, lines_at(0));
  cuda::wait_for_previous();
  const ByteStages<Shape> stages(launch.tall, base);
  for (int turn = 0; turn < 2; ++turn) {
    stages.load(feed.stage(turn).num_steps, feed.record(turn), turn);
    cuda::commit_copies();
  }

  WideWindowSums<Shape> sums(launch);
  for (int turn = 0, place = 0;; ++turn) {
    // All but the latest group: the rows of this stage, and the record of the stage after next.
    cuda::wait_for_copies<1>();
    __syncthreads();
    const tiles::Stage stage = feed.stage(turn);
    if (stage.end == tiles::StageEnd::work) break;
    StageFragments<Shape> fragments;
    fragments.load(rows_at(place));
    start_products(fragments, lines_at(turn % 2), sums);
    // Its fence may wait for all that is under way, so the next rows are asked for behind it.
    expand_stage<Shape>(feed.record(turn + 1), feed.stage(turn + 1).num_steps,
                        lines_at((turn + 1) % 2));
    // Into the place of the stage before, with which all warps are done.
    stages.load(feed.stage(turn + 2).num_steps, feed.record(turn + 2), place == 0 ? 2 : place - 1);
    feed.advance(turn);
    cuda::commit_copies();
    wgmma_wait_for<0>();
    fragments.keep();
#pragma unroll
    for (auto& half : sums.own) keep_in_place(half);
    if (stage.end != tiles::StageEnd::none) sums.finish(stage, lines_at(turn % 2));
    place = place + 1 < Shape::num_stages ? place + 1 : 0;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

template <class Shape>
__global__ __launch_bounds__(Shape::threads, Shape::min_blocks) void sum_wide_windows(
    const ByteWindowsLaunch launch) {
#ifdef TESSERA_HAS_WGMMA
  cuda::let_next_begin();
  extern __shared__ __align__(1024) char shared[];
  const std::uint32_t address = cuda::shared_address(shared);
  sum_wide_stages<Shape>(launch, shared + ((address + 1023u) & ~1023u) - address);
#else
  __trap();
#endif
}

template <class Shape>
constexpr ByteWindowsFunction wide_windows_function() {
  return windows_function<Shape, sum_wide_windows<Shape>>();
}

}  // namespace tessera::ops
