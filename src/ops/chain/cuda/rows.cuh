// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "ops/chain/cuda/steps.cuh"

/// The rows of a block of a chain. A thread has four columns of a row at once.
namespace tessera::ops {

/// Four neighbours of a row.
struct FourOfRow {
  float values[4];
};

/// What a block has of a matrix: a copy in shared memory, in fp32 and filled up with 0, and where
/// its rows lie. Rows are counted from the first one of the block.
template <class T>
class ChainRows {
 public:
  __device__ ChainRows(const ChainMatrix<T>& matrix, float* copy, int first_row)
      : copy_(copy),
        data_(matrix.data + first_row * matrix.stride),
        stride_(matrix.stride),
        cols_(matrix.cols),
        in_fours_(reinterpret_cast<std::uintptr_t>(matrix.data) % alignof(Four) == 0 &&
                  matrix.stride % 4 == 0 && matrix.cols % 4 == 0) {}

  __device__ int cols() const { return cols_; }

  __device__ FourOfRow load(int row, int first) const {
    const float4 four = *reinterpret_cast<const float4*>(copy_ + row * chain_width + first);
    return {{four.x, four.y, four.z, four.w}};
  }

  __device__ float value(int row, int col) const { return copy_[row * chain_width + col]; }

  /// The copy keeps all digits of `values`, which the next steps read; the matrix gets them
  /// rounded, and `values` are left as it has them.
  __device__ void store(float (&values)[4], int row, int first) const {
    T* const place = data_ + row * stride_ + first;
#pragma unroll
    for (int i = 0; i < 4; ++i) values[i] = first + i < cols_ ? values[i] : 0.0f;
    keep(FourOfRow{{values[0], values[1], values[2], values[3]}}, row, first);
    const Four four = round(values);
    if (in_fours_) {
      if (first < cols_) *reinterpret_cast<Four*>(place) = four;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + i < cols_) place[i] = four.values[i];
      }
    }
  }

  /// Four neighbours in flight from where the rows lie: nothing is done to them before they are
  /// kept, as it would wait for them. Those of 16 bits are two words, or one number in each of
  /// four.
  struct FetchedWords {
    std::uint32_t words[4];
  };
  using Fetched = std::conditional_t<sizeof(T) == 4, FourOfRow, FetchedWords>;

  __device__ Fetched fetch(int row, int first) const {
    const T* const place = data_ + row * stride_ + first;
    Fetched fetched{};
    if (in_fours_) {
      if (first < cols_) fetched = whole(place);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + i < cols_) fetch_one(place + i, fetched, i);
      }
    }
    return fetched;
  }
  __device__ void keep_fetched(const Fetched& fetched, int row, int first) const {
    if constexpr (sizeof(T) == 4) {
      keep(fetched, row, first);
    } else {
      constexpr std::uint32_t upper = 0xffff0000u;
      const auto& words = fetched.words;
      const std::uint32_t bits[4] = {words[0] << 16, in_fours_ ? words[0] & upper : words[1] << 16,
                                     (in_fours_ ? words[1] : words[2]) << 16,
                                     in_fours_ ? words[1] & upper : words[3] << 16};
      FourOfRow four;
#pragma unroll
      for (int i = 0; i < 4; ++i) four.values[i] = __uint_as_float(bits[i]);
      keep(four, row, first);
    }
  }
  __device__ void keep(const FourOfRow& four, int row, int first) const {
    *reinterpret_cast<float4*>(copy_ + row * chain_width + first) = {
        four.values[0], four.values[1], four.values[2], four.values[3]};
  }

 private:
  using Four = cuda::Pack<T, 4>;

  static_assert(sizeof(T) == 4 || std::is_same_v<T, __nv_bfloat16>);
  __device__ static Fetched whole(const T* place) {
    if constexpr (sizeof(T) == 4) {
      const float4 four = *reinterpret_cast<const float4*>(place);
      return {{four.x, four.y, four.z, four.w}};
    } else {
      const auto pair = *reinterpret_cast<const cuda::Pack<std::uint32_t, 2>*>(place);
      return {{pair.values[0], pair.values[1], 0, 0}};
    }
  }
  __device__ static void fetch_one(const T* place, Fetched& fetched, int i) {
    if constexpr (sizeof(T) == 4) {
      fetched.values[i] = *place;
    } else {
      fetched.words[i] = *reinterpret_cast<const std::uint16_t*>(place);
    }
  }

  /// Leaves in `values` what is stored of them.
  __device__ static Four round(float (&values)[4]) {
    Four four;
    if constexpr (std::is_same_v<T, __nv_bfloat16>) {
#pragma unroll
      for (int pair = 0; pair < 4; pair += 2) {
        const __nv_bfloat162 both = __floats2bfloat162_rn(values[pair], values[pair + 1]);
        four.values[pair] = both.x, four.values[pair + 1] = both.y;
        values[pair] = cuda::widen(both.x), values[pair + 1] = cuda::widen(both.y);
      }
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) four.values[i] = values[i];
    }
    return four;
  }

  float* copy_;
  T* data_;
  int stride_, cols_;
  bool in_fours_;  ///< on boundaries
};

/// The share of a block, and what of it a thread has.
template <class T>
class ChainBlock {
 public:
  __device__ ChainBlock(const ChainLaunch<T>& launch, float* copies)
      : launch_(launch),
        copies_(copies),
        first_row_(static_cast<int>(blockIdx.x) * launch.rows_per_block),
        rows_(rows_of(static_cast<int>(blockIdx.x))) {}

  __device__ int first_row() const { return first_row_; }
  __device__ int rows() const { return rows_; }
  __device__ int rows_of(int block) const {
    return max(0, min(launch_.rows_per_block, launch_.rows - block * launch_.rows_per_block));
  }
  __device__ int first_col() const { return static_cast<int>(threadIdx.x) % chain_lanes * 4; }

  __device__ ChainRows<T> matrix(int number) const {
    return {launch_.matrix[number], copies_ + number * launch_.rows_per_block * chain_width,
            first_row_};
  }
  __device__ int cols(int number) const { return launch_.matrix[number].cols; }

  /// Calls `work(row)` for the rows of a thread.
  template <class Work>
  __device__ void each_row(Work&& work) const {
#pragma unroll 1
    for (int row = first_own(); row < rows_; row += chain_rows) work(row);
  }

  /// What a thread has of two matrices that are read before a step writes them, in flight.
  struct FetchedPair {
    static constexpr int rows_at_once = most_block_rows / chain_rows;
    typename ChainRows<T>::Fetched of[2 * rows_at_once];
  };
  /// Those from the number `first` on among them.
  __device__ FetchedPair fetch_pair(int first) const {
    FetchedPair fetched;
    each_of_pair(first, fetched, [&](const ChainRows<T>& rows, int row, auto& of_row) {
      of_row = rows.fetch(row, first_col());
    });
    return fetched;
  }
  __device__ void keep_pair(int first, FetchedPair& fetched) const {
    each_of_pair(first, fetched, [&](const ChainRows<T>& rows, int row, const auto& of_row) {
      rows.keep_fetched(of_row, row, first_col());
    });
  }

 private:
  template <class Visit>
  __device__ void each_of_pair(int first, FetchedPair& fetched, Visit&& visit) const {
    if (first >= launch_.given) return;
    const bool has_second = first + 1 < launch_.given;
    const ChainRows<T> pair[2] = {matrix(launch_.given_matrix[first]),
                                  matrix(launch_.given_matrix[first + (has_second ? 1 : 0)])};
#pragma unroll
    for (int i = 0; i < 2 * FetchedPair::rows_at_once; ++i) {
      const int row = first_own() + i / 2 * chain_rows;
      if (row < rows_ && (i % 2 == 0 || has_second)) visit(pair[i % 2], row, fetched.of[i]);
    }
  }
  static __device__ int first_own() { return static_cast<int>(threadIdx.x) / chain_lanes; }

  const ChainLaunch<T>& launch_;
  float* copies_;
  int first_row_, rows_;
};

}  // namespace tessera::ops
