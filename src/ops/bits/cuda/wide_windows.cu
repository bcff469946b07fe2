// SPDX-License-Identifier: Apache-2.0
#include "cuda/async_copy.cuh"
#include "cuda/blocks_8x8.cuh"
#include "cuda/launch.cuh"
#include "cuda/occupancy.cuh"
#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/byte_windows.cuh"
#include "ops/bits/cuda/instances.cuh"
#include "ops/bits/cuda/wide_windows_store.cuh"

/// Windows of 64 rows at 128 columns on Hopper's matrix units, sides exchanged: sums of columns by
/// rows. Gathered codes go through a transposing load into registers, once for all rows, and the
/// pattern stands as bytes in shared memory, expanded once for all columns, a stage ahead.
///
/// In which order a product goes through the sources is free as long as both sides have the same.
/// The pattern has them as its words (tiles/fragment.hpp) expand: of every 64 sources, place
/// 16 u + 4 s + j is source 16 s + 2 u + {0, 8, 1, 9}[j].
namespace tessera::ops {
namespace {

struct WideShape {
  static constexpr int width = 128;
  static constexpr int threads = 128;
  static constexpr int rows = 128;  ///< of a stage
  static constexpr int num_stages = 3;
  static constexpr int stage_bytes = rows * width;
  static constexpr int pattern_bytes = 64 * rows;
  using Share = RowShare<std::uint8_t, width, rows, threads>;
  using Feed = StageFeed<rows, threads, false, false>;
  using Record = typename Feed::Record;
  static constexpr int patterns_at = num_stages * stage_bytes;
  static constexpr int feed_at = patterns_at + 2 * pattern_bytes;
  static constexpr int shared_bytes = feed_at + Feed::bytes + 1024;
  static constexpr int min_blocks = 3;

  /// Where 16 bytes of a row lie: those of rows eight apart never in the same banks.
  __device__ static std::uint32_t offset(int row, int unit) {
    return static_cast<std::uint32_t>(row * width + (unit ^ row / 8 % 8) * 16);
  }
  /// The same unit up to seven rows further on; `address` is of a row whose number is a multiple of
  /// eight.
  __device__ static std::uint32_t further(std::uint32_t address, int on) {
    return address + static_cast<std::uint32_t>(on * width);
  }
};

/// The pattern of a stage as bytes, lines of 128 sources for each row.
__device__ void expand_stage(WideShape::Record record, int num_steps, std::uint32_t lines) {
  using Layout = cuda::RowLayout<128>;
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int row = static_cast<int>(threadIdx.x) / 32 * 16 + lane / 4;
#pragma unroll
  for (int tile = 0; tile < WideShape::rows / 64; ++tile) {
    // Steps that are not this stage's have no edges.
    const int left = num_steps - tile * 4;
    const std::uint32_t kept = left >= 4 ? ~0u : left <= 0 ? 0u : ((1u << left * 4) - 1) * 0x10001u;
    const std::uint32_t bits = record.word(tile) & kept;
    std::uint32_t first[4], second[4];
    expand_bytes(bits, first);
    expand_bytes(bits >> 8, second);
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
struct StageFragments {
  std::uint32_t of[4][WideWindowSums::halves][4];

  __device__ void load(std::uint32_t rows) {
    const int lane = static_cast<int>(threadIdx.x) % 32;
    const std::uint32_t first =
        rows + WideShape::offset(lane % 8 * 8, static_cast<int>(threadIdx.x) / 32) +
        static_cast<std::uint32_t>(lane / 8 * WideShape::width);
#pragma unroll
    for (int step = 0; step < 4; ++step) {
#pragma unroll
      for (int half = 0; half < WideWindowSums::halves; ++half) {
        std::uint32_t blocks[4];
        cuda::load_blocks_transposed(
            blocks,
            (first ^ static_cast<std::uint32_t>(half * 64)) +
                static_cast<std::uint32_t>((step / 2 * 64 + step % 2 * 4) * WideShape::width));
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

__device__ void start_products(StageFragments& fragments, std::uint32_t lines,
                               WideWindowSums& sums) {
  const std::uint64_t pattern = cuda::RowLayout<128>::descriptor(lines);
  fragments.keep();
#pragma unroll
  for (auto& half : sums.own) keep_in_place(half);
  cuda::wgmma_fence();
#pragma unroll
  for (int step = 0; step < 4; ++step) {
#pragma unroll
    for (int half = 0; half < WideWindowSums::halves; ++half) {
      wgmma_bytes(sums.own[half], fragments.of[step][half], pattern + step * cuda::row_step);
    }
  }
  cuda::wgmma_commit();
}

__device__ void sum_wide_stages(const ByteWindowsLaunch& launch, char* memory) {
  const std::uint32_t base = cuda::shared_address(memory);
  const auto rows_at = [&](int place) {
    return base + static_cast<std::uint32_t>(place * WideShape::stage_bytes);
  };
  const auto lines_at = [&](int place) {
    return base +
           static_cast<std::uint32_t>(WideShape::patterns_at + place * WideShape::pattern_bytes);
  };
  const WideShape::Feed feed(launch.tall, memory + WideShape::feed_at);
  feed.start_stages();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  feed.start_records();
  cuda::commit_copies();
  cuda::wait_for_copies<0>();
  __syncthreads();
  expand_stage(feed.record(0), feed.stage(0).num_steps, lines_at(0));
  cuda::wait_for_previous();
  const ByteStages<WideShape> stages(launch.tall, base);
  for (int turn = 0; turn < 2; ++turn) {
    stages.load(feed.stage(turn).num_steps, feed.record(turn), turn);
    cuda::commit_copies();
  }

  WideWindowSums sums(launch);
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
    StageFragments fragments;
    fragments.load(rows_at(place));
    start_products(fragments, lines_at(turn % 2), sums);
    expand_stage(feed.record(turn + 1), feed.stage(turn + 1).num_steps, lines_at((turn + 1) % 2));
    wgmma_wait_for<0>();
    fragments.keep();
#pragma unroll
    for (auto& half : sums.own) keep_in_place(half);
    if (stage.end != tiles::StageEnd::none) sums.finish(stage, lines_at(turn % 2));
    place = place + 1 < WideShape::num_stages ? place + 1 : 0;
  }
  // What was asked for beyond the end must have arrived before the memory is another block's.
  cuda::wait_for_copies<0>();
}

__global__ __launch_bounds__(WideShape::threads, WideShape::min_blocks) void sum_wide_windows(
    const ByteWindowsLaunch launch) {
#ifdef TESSERA_HAS_WGMMA
  cuda::let_next_begin();
  extern __shared__ __align__(1024) char shared[];
  const std::uint32_t address = cuda::shared_address(shared);
  sum_wide_stages(launch, shared + ((address + 1023u) & ~1023u) - address);
#else
  __trap();
#endif
}

}  // namespace

const ByteWindowsFunction wide_byte_windows = {
    WideShape::width, WideShape::rows / 16,
    [](const ByteWindowsLaunch& launch, Stream stream) {
      const dim3 grid(static_cast<unsigned>(launch.tall.work.num_workers),
                      cuda::num_blocks(launch.out.cols, WideShape::width));
      cuda::launch_overlapped(sum_wide_windows, grid, WideShape::threads,
                              std::size_t{WideShape::shared_bytes}, stream, launch);
    },
    [] {
      return cuda::resident_blocks(sum_wide_windows, WideShape::threads, WideShape::shared_bytes);
    }};

}  // namespace tessera::ops
