// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/wgmma_rows.cuh"
#include "ops/bits/cuda/windows/kernel.cuh"
#include "ops/bits/cuda/windows/store.cuh"

/// Windows of 64 rows on Hopper's matrix units, sides exchanged: sums of columns by rows. Gathered
/// codes go through a transposing load into registers, once for all rows, and the pattern stands as
/// bytes in shared memory, expanded once for all columns, a stage ahead.
///
/// In which order a product goes through the sources is free as long as both sides have the same.
/// The pattern has them as its words (tiles/fragment.hpp) expand: of every 64 sources, place
/// 16 u + 4 s + j is source 16 s + 2 u + {0, 8, 1, 9}[j].
namespace tessera::ops {

/// Stores four 8 x 8 blocks of 16-bit numbers; lane 4 g + q has number g of rows 2q and 2q + 1, and
/// gives the address of one block's row: lanes 0-7 those of the first block, and so on.
__device__ inline void store_blocks_transposed(std::uint32_t address,
                                               const std::uint32_t (&blocks)[4]) {
#if __CUDA_ARCH__ >= 900
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1, %2, %3, %4};" ::"r"(address),
      "r"(blocks[0]), "r"(blocks[1]), "r"(blocks[2]), "r"(blocks[3])
      : "memory");
#endif
}

/// A thread has two neighbouring columns of 16 rows, in each half of 64 columns: sum 4 j + k
/// of a half belongs to row 8 j + 2 (lane % 4) + k % 2 and to the column k / 2.
template <class Shape>
struct WideWindowSums {
  static constexpr int halves = Shape::halves;
  static constexpr int threads = Shape::threads;
  static constexpr int width = Shape::width;

  std::int32_t own[halves][32];

  __device__ explicit WideWindowSums(const ByteWindowsLaunch& launch)
      : launch_(launch),
        start_(launch.small_sums ? static_cast<std::int32_t>(small_sum_start) : 0),
        lane_(static_cast<int>(threadIdx.x % 32)),
        warp_(static_cast<int>(threadIdx.x / 32)) {
    begin();
  }

  /// The sums of a piece are complete; new ones begin. When all threads have come here `lines`, 64
  /// lines of 128 bytes, are no operand of a product any more.
  __device__ void finish(const tiles::Stage& stage, std::uint32_t lines) {
    VertexId first_row = stage.target;
    bool complete = true;
    if (stage.end == tiles::StageEnd::slot) {
      const tiles::CutWindow window = launch_.tall.work.slot_windows[stage.target];
      complete = merge_byte_sums<Shape::num_sums, threads>(
          launch_, window, stage.target, start_,
          [&](int i) -> std::int32_t& { return own[i / 32][i % 32]; });
      first_row = window.first_row;
    }
    if (complete) store(first_row, lines);
    begin();
  }

 private:
  __device__ void begin() {
#pragma unroll
    for (auto& half : own) {
#pragma unroll
      for (std::int32_t& sum : half) sum = start_;
    }
  }

  /// The first of this thread's two columns in a half, counted from the block's first.
  __device__ int column_of(int half) const { return half * 64 + warp_ * 16 + lane_ / 4 * 2; }
  __device__ static std::uint32_t offset(int line, int unit) {
    return static_cast<std::uint32_t>(line * 128 + (unit ^ line % 8) * 16);
  }

  __device__ void store(std::int64_t first_row, std::uint32_t lines) {
    const BitResult& result = launch_.out.result;
    const bool codes = gives_codes(result);
    if (codes) __syncthreads();
    if (!launch_.out.plain) {
      finish_all(first_row, lines);
    } else if (result.finish.direct) {
      put_plain<true>(lines);
    } else {
      put_plain<false>(lines);
    }
    if (!codes) return;
    __syncthreads();
    store_lines(first_row, lines);
  }

  /// Four words of codes, of 32 rows from 8 * `first` on.
  __device__ void put(std::uint32_t lines, int half, int first,
                      const std::uint32_t (&words)[4]) const {
    store_blocks_transposed(lines + offset(first * 8 + lane_, half * 4 + warp_), words);
  }

  template <bool direct>
  __device__ void put_plain(std::uint32_t lines) const {
    const BitFinish& finish = launch_.out.result.finish;
    const auto code_of = [&](std::int32_t sum) {
      return plain_code<direct>(finish, __int_as_float(sum) - small_sum_unit);
    };
#pragma unroll
    for (int i = 0; i < 8 * halves; i += 4) {
      std::uint32_t words[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const std::int32_t* const sums = own[i / 8] + (i % 8 + k) * 4;
        words[k] = bytes_of(code_of(sums[0]), code_of(sums[2]), code_of(sums[1]), code_of(sums[3]));
      }
      put(lines, i / 8, i % 8, words);
    }
  }

  /// Everything but codes of plain sums: there is code for eight rows only, and the sums move up.
  __device__ void finish_all(std::int64_t first_row, std::uint32_t lines) {
    std::uint32_t words[halves][4] = {};
#pragma unroll 1
    for (int j = 0; j < 8; ++j) {
      const std::int64_t row = first_row + j * 8 + lane_ % 4 * 2;
#pragma unroll
      for (int half = 0; half < halves; ++half) {
#pragma unroll
        for (int k = 0; k < 3; ++k) words[half][k] = words[half][k + 1];
        words[half][3] = finish_pair(half, 0, row) | finish_pair(half, 1, row + 1) << 16;
      }
      if (j % 4 == 3 && gives_codes(launch_.out.result)) {
#pragma unroll
        for (int half = 0; half < halves; ++half) put(lines, half, j - 3, words[half]);
      }
      move_up();
    }
  }

  __device__ void move_up() {
#pragma unroll
    for (auto& half : own) {
#pragma unroll
      for (int i = 0; i + 4 < 32; ++i) half[i] = half[i + 4];
    }
  }

  /// Two codes, where codes are asked for, of the first rows that this thread has.
  __device__ std::uint32_t finish_pair(int half, int of_row, std::int64_t row) const {
    const std::int64_t column = std::int64_t{blockIdx.y} * width + column_of(half);
    const std::int64_t left = row < launch_.out.rows ? launch_.out.cols - column : 0;
    const std::int32_t sums[2] = {own[half][of_row], own[half][of_row + 2]};
    if (launch_.out.result.kind == BitResultKind::sums || !launch_.small_sums) {
      const std::int32_t numbers[2] = {sums[0] - start_, sums[1] - start_};
      return finished(row, column, left, numbers);
    }
    const float numbers[2] = {__int_as_float(sums[0]) - small_sum_unit,
                              __int_as_float(sums[1]) - small_sum_unit};
    return finished(row, column, left, numbers);
  }
  template <class Sum>
  __device__ std::uint32_t finished(std::int64_t row, std::int64_t column, std::int64_t left,
                                    const Sum (&numbers)[2]) const {
    std::uint32_t codes[2];
    finish_sums(launch_.out.result, row, column, left, numbers, codes);
    return __byte_perm(codes[0], codes[1], 0x0040) & 0xFFFFu;
  }

  /// A lane has the 16 codes of one row: a row's lanes lie side by side. Behind the last column are
  /// zeros.
  __device__ void store_lines(std::int64_t first_row, std::uint32_t lines) const {
    constexpr int units = Shape::units;
    const int unit = static_cast<int>(threadIdx.x) % units;
    const std::int64_t column = std::int64_t{blockIdx.y} * width + unit * 16;
#pragma unroll
    for (int first = 0; first < 64; first += threads / units) {
      const int line = first + static_cast<int>(threadIdx.x) / units;
      std::uint32_t words[4];
      asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(words[0]), "=r"(words[1]), "=r"(words[2]), "=r"(words[3])
                   : "r"(lines + offset(line, unit))
                   : "memory");
      const std::int64_t left = launch_.out.cols - column;
      if (launch_.out.plain && left < 16) keep_before(left, words);
      store_codes<units>(launch_.out, first_row + line, column,
                         first_row + line < launch_.out.all_rows, words);
    }
  }

  __device__ static void keep_before(std::int64_t left, std::uint32_t (&words)[4]) {
#pragma unroll
    for (int w = 0; w < 4; ++w) {
      const std::int64_t of_word = left - w * 4;
      if (of_word < 4) words[w] &= of_word <= 0 ? 0u : (1u << of_word * 8) - 1;
    }
  }

  const ByteWindowsLaunch& launch_;
  std::int32_t start_;
  int lane_;
  int warp_;
};

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
  feed.start();
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
    // Its fence may wait for all copies in flight, so the next rows are asked for behind it.
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

}  // namespace tessera::ops
