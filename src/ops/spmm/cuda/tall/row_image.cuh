// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "cuda/vectors.cuh"

namespace tessera::ops {

/// Rows of results that begin on no boundary, on their way through shared memory: a few rows of a
/// warp lie there as they will lie in Y, so that the lanes store words of 4 bytes that follow each
/// other. Of 16-bit results a word may be of two rows.
///
///     a lane has      two features of a row, 8 features apart from its next two
///     image           | row 0        | row 1        | row 2        |     rows of Y without gaps
///     image           | row 0        |    | row 1        |               or a run for each
///
/// `room` bytes belong to a warp.
template <class Out, int width, int room>
class RowImage {
 public:
  /// From one run to the next: lanes of eight rows find different banks.
  static constexpr int spread = width + 8;
  /// Rows at once.
  static constexpr int rows = 8 * spread * static_cast<int>(sizeof(Out)) <= room   ? 8
                              : 4 * spread * static_cast<int>(sizeof(Out)) <= room ? 4
                                                                                   : 2;
  static_assert(rows * spread * static_cast<int>(sizeof(Out)) <= room);

  __device__ explicit RowImage(char* memory)
      : memory_(reinterpret_cast<Out*>(memory)), lane_(static_cast<int>(threadIdx.x) % 32) {}

  /// The lanes 4 i to 4 i + 3 have row i of eight: `pair(block)` is what they have of features from
  /// 8 * block on. `to` is where that row begins in Y, `features` how many it has, of which
  /// `follow` says that the next row's follow. The first `num_rows` rows are stored.
  template <class Pair>
  __device__ void store(Out* to, int features, bool follow, int num_rows, const Pair& pair) const {
#pragma unroll
    for (int first = 0; first < 8; first += rows) {
      const int present = min(num_rows - first, rows);
      if (present <= 0) return;
      Out* const first_to = row_of(to, first);
      const int stride = follow ? features : spread;
      const int row = lane_ / 4 - first;
      __syncwarp();
      if (row >= 0 && row < rows) {
        put(memory_ + row * stride + shift_of(follow ? first_to : to), features, pair);
      }
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
  /// Elements between the word that an address is in and the address.
  __device__ static int shift_of(const Out* to) {
    return static_cast<int>(reinterpret_cast<std::uintptr_t>(to) % 4 / sizeof(Out));
  }
  __device__ static Out* row_of(Out* own, int row) {
    const auto address = static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(own));
    return reinterpret_cast<Out*>(static_cast<std::uintptr_t>(__shfl_sync(~0u, address, 4 * row)));
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
    constexpr int of_word = 4 / static_cast<int>(sizeof(Out));
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

  Out* memory_;
  int lane_;
};

}  // namespace tessera::ops
