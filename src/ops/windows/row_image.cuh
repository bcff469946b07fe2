// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstring>

#include "cuda/vectors.cuh"

namespace tessera::ops {

/// Rows of results that begin on no boundary, on their way through shared memory: a warp lays a few
/// of its rows down there, and its lanes store words of 4 bytes that follow each other in Y.
///
///     a lane has      two features of a row, 8 features apart from its next two
///     packed          | row 0           | row 1           | row 2           |  as in Y
///     spread          | row 0           |    | row 1           |               lanes find banks
///
/// fp32 rows that follow each other are packed, and what is stored is one run. Rows with gaps
/// between them in Y are spread, and each is a run. 16-bit rows that follow each other are spread,
/// too, in pairs: packed ones would lie in the same banks where two of them fill a line nearly. A
/// word of Y may have the end of a row and the beginning of the next then.
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
      Out* const first_to = row_of(to, first);
      const int row = lane_ / 4 - first;
      const bool laid = row >= 0 && row < rows;
      if constexpr (of_word == 2) {
        if (follow) {
          __syncwarp();
          if (laid) put_pairs(memory_ + row * spread, pair);
          __syncwarp();
          store_rows(first_to, present, features);
          continue;
        }
      }
      const int stride = follow ? features : spread;
      __syncwarp();
      if (laid) put(memory_ + row * stride + shift_of(to), features, pair);
      __syncwarp();
      if (follow) {
        store_run(first_to, memory_, present * features);
      } else {
        for (int i = 0; i < present; ++i) {
          store_run(row_of(to, first + i), memory_ + i * stride, features);
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

  /// Elements between the word that an address is in and the address.
  __device__ static int shift_of(const Out* to) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % 4 / sizeof(Out));
  }

  template <class Pair>
  __device__ void put(Out* row, int features, const Pair& pair) const {
    const int feature = lane_ % 4 * 2;
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const float2 both = pair(block);
      const int at = 8 * block + feature;
      if (at < features) row[at] = cuda::narrow<Out>(both.x);
      if (at + 1 < features) row[at + 1] = cuda::narrow<Out>(both.y);
    }
  }

  /// So many results that lie at `from` but for the shift of `to`. Y is the first that the cache
  /// may forget.
  __device__ void store_run(Out* to, const Out* from, int count) const {
    const int begin = shift_of(to);
    const int end = begin + count;
    Out* const words = to - begin;
#pragma unroll 4
    for (int at = lane_ * of_word; at < end; at += 32 * of_word) {
      const auto word = *reinterpret_cast<const std::uint32_t*>(from + at);
      if (of_word == 1 || (at >= begin && at + 1 < end)) {
        __stcs(reinterpret_cast<std::uint32_t*>(words + at), word);
      } else {
        const int one = at >= begin ? at : at + 1;
        __stcs(words + one, from[one]);
      }
    }
  }

  template <class Pair>
  __device__ void put_pairs(Out* row, const Pair& pair) const {
#pragma unroll
    for (int block = 0; block < width / 8; ++block) {
      const float2 both = pair(block);
      const Out stored[2] = {cuda::narrow<Out>(both.x), cuda::narrow<Out>(both.y)};
      std::uint32_t word = 0;
      memcpy(&word, stored, sizeof(word));
      *reinterpret_cast<std::uint32_t*>(row + 8 * block + lane_ % 4 * 2) = word;
    }
  }

  /// Rows of the image that follow each other in Y. Several words of a lane are read before the
  /// first is stored.
  __device__ void store_rows(Out* to, int num_rows, int features) const {
    constexpr int step = 64;
    constexpr int at_once = 4;
    const int count = num_rows * features;
    const int head = shift_of(to);
    int at = head + lane_ * 2;
    Place place = {0, at};
    while (place.feature >= features && place.row < num_rows) place.on(1, -features);
    const int rows_on = step / features;
    const int features_on = step % features;
#pragma unroll 1
    while (at + 2 <= count) {
      std::uint32_t words[at_once];
#pragma unroll
      for (int i = 0; i < at_once; ++i) {
        // Beyond the end the last row again, which is not stored: so no lane waits for another.
        words[i] = word_at({min(place.row, num_rows - 1), place.feature}, features);
        place.on(rows_on, features_on);
        if (place.feature >= features) place.on(1, -features);
      }
#pragma unroll
      for (int i = 0; i < at_once; ++i, at += step) {
        if (at + 2 <= count) __stcs(reinterpret_cast<std::uint32_t*>(to + at), words[i]);
      }
    }
    // Halves of words at both ends.
    if (lane_ == 0 && head != 0) __stcs(to, *memory_);
    if (lane_ == 1 && (count - head) % 2 != 0) {
      __stcs(to + count - 1, memory_[(num_rows - 1) * spread + features - 1]);
    }
  }

  __device__ std::uint32_t word_at(const Place& place, int features) const {
    const Out* const first = memory_ + place.row * spread + place.feature;
    const Out both[2] = {*first,
                         place.feature + 1 < features ? first[1] : first[spread - place.feature]};
    std::uint32_t word = 0;
    memcpy(&word, both, sizeof(word));
    return word;
  }

  Out* memory_;
  int lane_;
};

}  // namespace tessera::ops
