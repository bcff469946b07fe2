// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cuda/rows.hpp"

/// The distinct columns of a window of rows, found by the block that translates it.
namespace tessera::tiles {

inline constexpr int translation_threads = 512;

struct TranslationLaunch {
  VertexId num_rows = 0;
  int height = 64;
  int bitmap_words = 0;
  /// Columns are counted in so many binary digits, from `first_count` on: it is the use that makes
  /// a column dense which carries out of them.
  int digits = 0;
  unsigned first_count = 0;
  cuda::Offsets offsets;
  const VertexId* indices = nullptr;

  std::int32_t* counts = nullptr;  ///< dense columns of each window
  /// Where not all edges are on tiles: for every edge whether it is not, and how many there are in
  /// each row, in one of two arrays.
  bool leaves_rest = false;
  std::uint8_t* in_rest = nullptr;
  std::int32_t* rest_narrow = nullptr;
  EdgeOffset* rest_wide = nullptr;

  const EdgeOffset* step_offsets = nullptr;
  const EdgeOffset* tile_offsets = nullptr;
  VertexId* columns = nullptr;
  std::uint32_t* words = nullptr;
  /// Words of the set of rows that is written for each column; 0 where tiles are written.
  int set_words = 0;
};

__device__ inline EdgeOffset offset_at(const cuda::Offsets& offsets, std::int64_t row) {
  return offsets.narrow != nullptr ? __ldg(offsets.narrow + row) : __ldg(offsets.wide + row);
}

/// One window and the columns of it that are dense: a bit each, and the digits of its count.
class WindowBitmap {
 public:
  /// The window that begins at a row.
  __device__ WindowBitmap(const TranslationLaunch& launch, std::uint32_t* memory,
                          std::int64_t first_row)
      : launch_(launch),
        bits_(memory),
        digits_(memory + launch.bitmap_words),
        first_row_(first_row),
        num_rows_(static_cast<int>(launch.num_rows - first_row_ < launch.height
                                       ? launch.num_rows - first_row_
                                       : launch.height)) {
    __shared__ VertexId lowest, highest;
    if (threadIdx.x == 0) {
      lowest = 0x7fffffff;
      highest = -1;
    }
    __syncthreads();
    for (int row = static_cast<int>(threadIdx.x); row < num_rows_; row += translation_threads) {
      const EdgeOffset begin = offset_at(launch_.offsets, first_row_ + row);
      const EdgeOffset end = offset_at(launch_.offsets, first_row_ + row + 1);
      if (begin == end) continue;
      // Columns rise within a row.
      atomicMin(&lowest, __ldg(launch_.indices + begin));
      atomicMax(&highest, __ldg(launch_.indices + end - 1));
    }
    __syncthreads();
    next_column_ = lowest / 32 * 32;
    last_column_ = highest;
    begin_ = offset_at(launch.offsets, first_row_);
    end_ = offset_at(launch.offsets, first_row_ + num_rows_);
  }

  /// Goes to the next columns that the bitmap has room for, and marks the dense ones; false if none
  /// are left.
  __device__ bool mark() {
    first_column_ = next_column_;
    if (first_column_ > last_column_) return false;
    const std::int64_t room = std::int64_t{launch_.bitmap_words} * 32;
    const std::int64_t left = std::int64_t{last_column_} + 1 - first_column_;
    span_ = static_cast<int>(left < room ? left : room);
    next_column_ = first_column_ + span_;
    __syncthreads();
    for (int word = static_cast<int>(threadIdx.x); word < num_words();
         word += translation_threads) {
      bits_[word] = 0;
      for (int digit = 0; digit < launch_.digits; ++digit) {
        digits_[digit * launch_.bitmap_words + word] =
            (launch_.first_count >> digit & 1) != 0 ? ~0u : 0u;
      }
    }
    __syncthreads();
    for_edges([&](EdgeOffset, int at) { count_use(at / 32, 1u << (at % 32)); });
    __syncthreads();
    return true;
  }

  /// Calls body(word, bits) for this thread's share, which is contiguous.
  template <class Body>
  __device__ void for_own_words(Body&& body) const {
    const int share = (num_words() + translation_threads - 1) / translation_threads;
    const int begin = static_cast<int>(threadIdx.x) * share;
    const int end = begin + share < num_words() ? begin + share : num_words();
    for (int word = begin; word < end; ++word) body(word, bits_[word]);
  }

  /// Calls body(edge, place in the bitmap) for every edge whose column the bitmap has room for.
  template <class Body>
  __device__ void for_edges(Body&& body) const {
    for (EdgeOffset edge = begin_ + threadIdx.x; edge < end_; edge += translation_threads) {
      const int at = __ldg(launch_.indices + edge) - first_column_;
      if (at >= 0 && at < span_) body(edge, at);
    }
  }

  /// The last row that starts at or before the edge, counted within the window.
  __device__ int row_of(EdgeOffset edge) const {
    int low = 0;
    for (int high = num_rows_; high - low > 1;) {
      const int middle = (low + high) / 2;
      (offset_at(launch_.offsets, first_row_ + middle) <= edge ? low : high) = middle;
    }
    return low;
  }

  __device__ EdgeOffset num_edges() const { return end_ - begin_; }
  __device__ bool is_dense(int at) const { return (bits_[at / 32] >> (at % 32) & 1) != 0; }
  __device__ std::int64_t first_row() const { return first_row_; }
  __device__ int num_rows() const { return num_rows_; }
  __device__ std::uint32_t bits(int word) const { return bits_[word]; }
  __device__ VertexId column(int at) const { return first_column_ + at; }

 private:
  __device__ int num_words() const { return (span_ + 31) / 32; }

  /// Adds 1 to a column's count. Whichever edge comes first: a digit that changes twice carries
  /// once, so the digits end the same.
  __device__ void count_use(int word, std::uint32_t bit) {
    for (int digit = 0; digit < launch_.digits; ++digit) {
      if ((atomicXor(digits_ + digit * launch_.bitmap_words + word, bit) & bit) == 0) return;
    }
    atomicOr(bits_ + word, bit);
  }

  const TranslationLaunch& launch_;
  std::uint32_t* bits_;
  std::uint32_t* digits_;
  std::int64_t first_row_;
  int num_rows_;
  VertexId first_column_ = 0;
  VertexId next_column_ = 0;
  VertexId last_column_ = -1;
  int span_ = 0;
  EdgeOffset begin_ = 0;
  EdgeOffset end_ = 0;
};

/// The sum of the threads' numbers before this one; `total` becomes that of all.
__device__ inline int scan_block(int mine, int& total) {
  constexpr int block_warps = translation_threads / 32;
  __shared__ int warp_sums[block_warps];
  const int lane = static_cast<int>(threadIdx.x) % 32;
  const int warp = static_cast<int>(threadIdx.x) / 32;
  int sum = mine;
#pragma unroll
  for (int distance = 1; distance < 32; distance *= 2) {
    const int other = __shfl_up_sync(~0u, sum, distance);
    if (lane >= distance) sum += other;
  }
  if (lane == 31) warp_sums[warp] = sum;
  __syncthreads();
  int before = 0;
  total = 0;
#pragma unroll
  for (int w = 0; w < block_warps; ++w) {
    before += w < warp ? warp_sums[w] : 0;
    total += warp_sums[w];
  }
  __syncthreads();
  return before + sum - mine;
}

}  // namespace tessera::tiles
