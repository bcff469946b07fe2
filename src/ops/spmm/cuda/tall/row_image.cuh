// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "cuda/vectors.cuh"

namespace tessera::ops {

/// Rows of results that begin on no boundary, on their way through shared memory: a warp lays a few
/// of its rows down there, and its lanes store words of 4 bytes that follow each other in Y. Of
/// 16-bit results a word may have the end of a row and the beginning of the next.
///
///     a lane has      two features of a row, 8 features apart from its next two
///     image           | row 0           |    | row 1           |    |        lanes find banks
///     Y               | row 0           | row 1           | row 2            without gaps
///                     | row 0           |        | row 1           |         or with some
///
/// `room` bytes belong to a warp.
template <class Out, int width, int room>
class RowImage {
 public:
  /// From one row to the next: lanes of eight rows find different banks.
  static constexpr int spread = width + 8;
  /// Rows at once.
  static constexpr int rows = 8 * spread * static_cast<int>(sizeof(Out)) <= room   ? 8
                              : 4 * spread * static_cast<int>(sizeof(Out)) <= room ? 4
                                                                                   : 2;
  static_assert(rows * spread * static_cast<int>(sizeof(Out)) <= room);

  __device__ explicit RowImage(char* memory)
      : memory_(reinterpret_cast<Out*>(memory)), lane_(static_cast<int>(threadIdx.x) % 32) {}

  /// The lanes 4 i to 4 i + 3 have row i of eight: `pair(block)` is what they have of features from
  /// 8 * block on. `to` is where that row begins in Y, `features` how many of it are stored;
  /// `follow` says that the next row begins where they end. The first `num_rows` rows are stored.
  template <class Pair>
  __device__ void store(Out* to, int features, bool follow, int num_rows, const Pair& pair) const {
#pragma unroll
    for (int first = 0; first < 8; first += rows) {
      const int present = min(num_rows - first, rows);
      if (present <= 0) return;
      const int row = lane_ / 4 - first;
      __syncwarp();
      if (row >= 0 && row < rows) put(memory_ + row * spread + lane_ % 4 * 2, pair);
      __syncwarp();
      if (follow) {
        store_run(row_of(to, first), memory_, present, features);
      } else {
        for (int i = 0; i < present; ++i) {
          store_run(row_of(to, first + i), memory_ + i * spread, 1, features);
        }
      }
    }
  }

 private:
  static constexpr int of_word = 4 / static_cast<int>(sizeof(Out));

  /// Of the image.
  struct Place {
    int row;
    int feature;

    __device__ void on(int rows_on, int features_on) {
      row += rows_on;
      feature += features_on;
    }
  };

  __device__ static Out* row_of(Out* own, int row) {
    const auto address = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(own));
    return reinterpret_cast<Out*>(static_cast<std::uintptr_t>(__shfl_sync(~0u, address, 4 * row)));
  }

  template <class Pair>
  __device__ static void put(Out* row, const Pair& pair) {
    using Both = typename std::conditional_t<of_word == 1, std::type_identity<float2>,
                                             std::type_identity<std::uint32_t>>::type;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const float2 both = pair(block);
      const Out stored[2] = {cuda::narrow<Out>(both.x), cuda::narrow<Out>(both.y)};
      Both whole;
      memcpy(&whole, stored, sizeof(whole));
      *reinterpret_cast<Both*>(row + 8 * block) = whole;
    }
  }

  /// Rows of so many features that follow each other in Y, which is the first that the cache may
  /// forget. Several words of a lane are read before the first is stored.
  __device__ void store_run(Out* to, const Out* from, int num_rows, int features) const {
    constexpr int step = 32 * of_word;
    constexpr int at_once = 4;
    const int count = num_rows * features;
    const int head = of_word == 2 && reinterpret_cast<std::uintptr_t>(to) % 4 != 0 ? 1 : 0;
    int at = head + lane_ * of_word;
    Place place = {0, at};
    while (place.feature >= features && place.row < num_rows) place.on(1, -features);
    const int rows_on = step / features;
    const int features_on = step % features;
#pragma unroll 1
    while (at + of_word <= count) {
      std::uint32_t words[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        // Beyond the end the last row again, which is not stored: so no lane waits for another.
        words[i] = word_at(from, {min(place.row, num_rows - 1), place.feature}, features);
        place.on(rows_on, features_on);
        if (place.feature >= features) place.on(1, -features);
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i, at += step) {
        if (at + of_word <= count) __stcs(reinterpret_cast<std::uint32_t*>(to + at), words[i]);
      }
    }
    // Halves of words at both ends.
    if (lane_ == 0 && head != 0) __stcs(to, *from);
    if (lane_ == 1 && (count - head) % of_word != 0) {
      __stcs(to + count - 1, from[(num_rows - 1) * spread + features - 1]);
    }
  }

  __device__ static std::uint32_t word_at(const Out* from, const Place& place, int features) {
    const Out* const first = from + place.row * spread + place.feature;
    std::uint32_t word = 0;
    if constexpr (of_word == 1) {
      memcpy(&word, first, sizeof(word));
    } else {
      const Out both[2] = {*first,
                           place.feature + 1 < features ? first[1] : first[spread - place.feature]};
      memcpy(&word, both, sizeof(word));
    }
    return word;
  }

  Out* memory_;
  int lane_;
};

}  // namespace tessera::ops
