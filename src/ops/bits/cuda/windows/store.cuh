// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/bits/cuda/emit.cuh"
#include "ops/bits/cuda/windows/launch.hpp"
#include "ops/windows/merge.cuh"
#include "ops/windows/store.cuh"

/// What becomes of the sums of a window of bytes.
namespace tessera::ops {

/// Small sums grow from the bits of 2^23 in fp32 on and are numbers of fp32 without being
/// converted.
inline constexpr std::uint32_t small_sum_start = 0x4B000000u;
inline constexpr float small_sum_unit = 8388608.0f;

/// Whether this block was the last with a piece of a window, and has its sums. `sum_at(i)` is what
/// a thread has, which began at `start`; without a sign, since sums wrap around while the starts of
/// other pieces are taken off them.
template <int num_sums, int threads, class SumAt>
__device__ bool merge_byte_sums(const ByteWindowsLaunch& launch, const tiles::CutWindow& window,
                                int slot, std::int32_t start, SumAt&& sum_at) {
  const auto others = static_cast<std::uint32_t>(window.num_slots - 1);
  return merge_in_turn<uint4, num_sums>(
      launch.tall.work, window, slot, threads, 0u - static_cast<std::uint32_t>(start) * others,
      [&](int i) -> std::uint32_t& { return reinterpret_cast<std::uint32_t&>(sum_at(i)); });
}

/// What a thread has of a window: of each strip two rows, and of every 16 columns the four from
/// 4 * (lane % 4) on, even ones before odd ones. A part is a strip, or 64 columns of one.
template <class Shape>
struct ByteWindowSums {
  static constexpr int groups = Shape::groups < 4 ? Shape::groups : 4;  ///< of a part
  static constexpr int parts_of_strip = Shape::groups / groups;
  static constexpr int parts = Shape::strips * parts_of_strip;
  static constexpr int count = groups * 4;    ///< of one row
  static constexpr int at_once = 4 / groups;  ///< rows that have four words of codes

  using Own = std::int32_t[parts][groups][2][4];
  Own own;

  __device__ explicit ByteWindowSums(const ByteWindowsLaunch& launch)
      : launch_(launch),
        start_(launch.small_sums ? static_cast<std::int32_t>(small_sum_start) : 0),
        lane_(static_cast<int>(threadIdx.x % 32)),
        warp_(static_cast<int>(threadIdx.x / 32)) {
    begin();
  }

  /// The sums of a piece are complete; new ones begin.
  __device__ void finish(const tiles::Stage& stage) {
    VertexId first_row = stage.target;
    bool complete = true;
    if (stage.end == tiles::StageEnd::slot) {
      const tiles::CutWindow window = launch_.tall.work.slot_windows[stage.target];
      complete = merge_byte_sums<Shape::num_sums, Shape::threads>(
          launch_, window, stage.target, start_, [&](int i) -> std::int32_t& {
            return own[i / 8 / groups][i / 8 % groups][i / 4 % 2][i % 4];
          });
      first_row = window.first_row;
    }
    if (complete) store(first_row);
    begin();
  }

 private:
  __device__ void begin() {
    for_all([&](std::int32_t& sum) { sum = start_; });
  }

  template <class Function>
  __device__ void for_all(Function&& function) {
#pragma unroll
    for (int i = 0; i < Shape::num_sums; ++i) {
      function(own[i / 8 / groups][i / 8 % groups][i / 4 % 2][i % 4]);
    }
  }

  /// Four words at a time, which is what four lanes exchange: those of one row, or of two. Codes of
  /// plain sums are made by themselves; for everything else there is code for one time only, and
  /// the sums move up.
  __device__ void store(VertexId first_row) {
    const int first_strip = warp_ / Shape::column_warps * Shape::strips;
    const int first_column = static_cast<int>(blockIdx.y) * Shape::width +
                             warp_ % Shape::column_warps * (Shape::groups * 16);
    const std::int64_t row = std::int64_t{first_row} + first_strip * 16 + lane_ / 4;
    if (launch_.out.plain) {
      if (launch_.out.result.finish.direct) return store_plain<true>(row, first_column);
      return store_plain<false>(row, first_column);
    }
#pragma unroll 1
    for (int i = 0; i < 2 * parts; i += at_once) {
      const std::int64_t row_of = row + row_at(i);
      const int column = first_column + column_at_part(i / 2);
      std::uint32_t words[4];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        finish_row(k, row_of + k * 8, column + lane_ % 4 * 4, words + k * groups);
      }
      if (gives_codes(launch_.out.result)) store_words(row_of, column, words);
      move_up();
    }
  }

  template <bool direct>
  __device__ void store_plain(std::int64_t row, int first_column) const {
#pragma unroll
    for (int i = 0; i < 2 * parts; i += at_once) {
      const int column = first_column + column_at_part(i / 2);
      std::uint32_t words[4];
#pragma unroll
      for (int k = 0; k < at_once; ++k) {
        plain_codes<direct>(i / 2, i % 2 + k, column + lane_ % 4 * 4, words + k * groups);
      }
      transpose_quad(words);
      store_bytes(launch_.out, row + row_at(i) + row_of_word(), column + column_of_word(), words);
    }
  }

  /// Of half `i` of all parts, two for each.
  __device__ static int row_at(int i) { return i / 2 / parts_of_strip * 16 + i % 2 * 8; }
  __device__ static int column_at_part(int part) { return part % parts_of_strip * 64; }

  __device__ void move_up() {
#pragma unroll
    for (int i = 0; i < Shape::num_sums; ++i) {
      const int part = i / 8 / groups;
      const int group = i / 8 % groups;
      const int odd = i / 4 % 2;
      std::int32_t& to = own[part][group][odd][i % 4];
      if (at_once == 1 && i % 4 < 2) {
        to = own[part][group][odd][i % 4 + 2];
      } else if (part + 1 < parts) {
        to = own[part + 1][group][odd][at_once == 1 ? i % 4 - 2 : i % 4];
      }
    }
  }

  /// After four lanes have exchanged their words each has the 16 columns of one row and one group,
  /// so many rows and columns further on: a row's lanes lie side by side.
  __device__ int row_of_word() const { return lane_ % 4 / groups * 8; }
  __device__ int column_of_word() const { return lane_ % 4 % groups * 16; }

  __device__ void store_words(std::int64_t first_row, int first_column,
                              std::uint32_t (&words)[4]) const {
    transpose_quad(words);
    const std::int64_t row = first_row + row_of_word();
    store_codes<groups, 4, Shape::width>(launch_.out, row, first_column + column_of_word(),
                                         row < launch_.out.all_rows, words);
  }

  /// Sum `i` of one row of a part.
  __device__ std::int32_t sum_at(int part, int half, int i) const {
    return own[part][i / 4][i % 2][half * 2 + i % 4 / 2];
  }
  __device__ static int column_at(int column, int i) { return column + i / 4 * 16 + i % 4; }

  /// Codes of small sums that nothing is done to, in one range from 0 on.
  template <bool direct>
  __device__ void plain_codes(int part, int half, int column, std::uint32_t* words) const {
    const BitFinish& finish = launch_.out.result.finish;
    const int cols = static_cast<int>(launch_.out.cols);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      std::uint32_t codes[4];
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        const float sum = __int_as_float(sum_at(part, half, group * 4 + k)) - small_sum_unit;
        codes[k] = plain_code<direct>(finish, sum);
      }
      words[group] = bytes_before(cols - column_at(column, group * 4), codes);
    }
  }

  /// Codes of columns that do not exist are 0.
  __device__ static std::uint32_t bytes_before(int left, const std::uint32_t (&codes)[4]) {
    if (left <= 0) return 0;
    const std::uint32_t bytes = bytes_of(codes[0], codes[1], codes[2], codes[3]);
    return left < 4 ? bytes & ((1u << left * 8) - 1) : bytes;
  }

  /// A row of the first part, `half` 0 or 1.
  __device__ void finish_row(int half, std::int64_t row, int column, std::uint32_t* words) const {
    const BitResult& result = launch_.out.result;
    const int cols = static_cast<int>(launch_.out.cols);
#pragma unroll
    for (int group = 0; group < groups; ++group) words[group] = 0;
    if (row >= launch_.out.rows) return;
    const auto sum_of = [&](int i) { return sum_at(0, half, i); };
    if (result.kind == BitResultKind::sums) {
#pragma unroll
      for (int i = 0; i < count; i += 4) {
        store_numbers<4>(result.sums + row * result.stride + column_at(column, i), result.stride,
                         cols - column_at(column, i), result.sums,
                         [&](int k) { return sum_of(i + k) - start_; });
      }
      return;
    }
    float values[count];
    if (launch_.small_sums) {
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = __int_as_float(sum_of(i)) - small_sum_unit;
    } else {
#pragma unroll
      for (int i = 0; i < count; ++i) values[i] = static_cast<float>(sum_of(i));
    }
    if (result.finish.own != 0) add_own(row, column, values);
    const auto column_of = [&](int i) {
      const int at = column_at(column, i);
      return at < cols ? at : cols - 1;
    };
    finish_values(result.finish, result.finish.row(row), column_of, values);
    if (result.kind == BitResultKind::values) {
#pragma unroll
      for (int i = 0; i < count; i += 4) {
        store_numbers<4>(result.values + row * result.stride + column_at(column, i), result.stride,
                         cols - column_at(column, i), result.values,
                         [&](int k) { return values[i + k]; });
      }
      return;
    }
    std::uint32_t codes[count];
    finish_codes(result.finish, column_of, values, codes);
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const std::uint32_t four[4] = {codes[group * 4], codes[group * 4 + 1], codes[group * 4 + 2],
                                     codes[group * 4 + 3]};
      words[group] = bytes_before(cols - column_at(column, group * 4), four);
    }
  }

  __device__ void add_own(std::int64_t row, int column, float (&values)[count]) const {
    const BitFinish& finish = launch_.out.result.finish;
    const std::uint8_t* const codes = finish.own_codes.bytes + row * finish.own_codes.stride;
#pragma unroll
    for (int group = 0; group < groups; ++group) {
      const int at = column + group * 16;
      if (at >= launch_.out.cols) continue;
      const std::uint32_t four = __ldg(reinterpret_cast<const std::uint32_t*>(codes + at));
#pragma unroll
      for (int k = 0; k < 4; ++k) {
        float& value = values[group * 4 + k];
        value = fmaf(finish.own, static_cast<float>(four >> k * 8 & 255u), value);
      }
    }
  }

  const ByteWindowsLaunch& launch_;
  std::int32_t start_;
  int lane_;
  int warp_;
};

}  // namespace tessera::ops
