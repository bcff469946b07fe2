// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/byte_windows_store.cuh"

/// What becomes of the sums of a window whose codes were multiplied as columns.
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

  /// The sums of a piece are complete; new ones begin. Nobody multiplies by what is in `lines`, 64
  /// lines of 128 bytes, when all threads have come here.
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

}  // namespace tessera::ops
