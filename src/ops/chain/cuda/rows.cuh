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

/// Which rows a block has, and which of their columns a thread.
struct ChainShare {
  int begin, end;
  int first_col;

  /// Calls `work(row, fetched)` for the rows of a thread, of which `fetch(row)` reads several
  /// ahead; the code of both is there as often.
  template <int ahead = 3, class Fetch, class Work>
  __device__ void each_row(Fetch&& fetch, Work&& work) const {
    const int own = begin + static_cast<int>(threadIdx.x) / chain_lanes;
#pragma unroll 1
    for (int first = own; first < end; first += ahead * chain_rows) {
      decltype(fetch(first)) fetched[ahead];
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const int row = first + i * chain_rows;
        if (row < end) fetched[i] = fetch(row);
      }
#pragma unroll
      for (int i = 0; i < ahead; ++i) {
        const int row = first + i * chain_rows;
        if (row < end) work(row, fetched[i]);
      }
    }
  }
};

/// A matrix of which threads have four columns of a row each, filled up with 0. Its numbers can be
/// counted in 32 bits.
template <class T>
struct ChainRows {
  using Four = cuda::Pack<std::remove_const_t<T>, 4>;
  T* data;
  int stride, cols;
  bool in_fours;  ///< on boundaries

  template <class U>
  __device__ ChainRows(cuda::Rows<U> rows, int columns)
      : data(rows.data),
        stride(static_cast<int>(rows.stride)),
        cols(columns),
        in_fours(reinterpret_cast<std::uintptr_t>(rows.data) % alignof(Four) == 0 &&
                 rows.stride % 4 == 0 && columns % 4 == 0) {}

  __device__ void load(int row, int first, float (&values)[4]) const {
    const T* const place = data + row * stride + first;
    if (in_fours) {
      Four four{};
      if (first < cols) four = *reinterpret_cast<const Four*>(place);
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = cuda::widen(four.values[i]);
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) values[i] = first + i < cols ? cuda::widen(place[i]) : 0.0f;
    }
  }

  __device__ FourOfRow load(int row, int first) const {
    FourOfRow four;
    load(row, first, four.values);
    return four;
  }

  /// Leaves in `values` what the rows hold now.
  __device__ void store(float (&values)[4], int row, int first) const {
    T* const place = data + row * stride + first;
    Four four;
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      four.values[i] = cuda::narrow<T>(values[i]);
      values[i] = cuda::widen(four.values[i]);
    }
    if (in_fours) {
      if (first < cols) *reinterpret_cast<Four*>(place) = four;
    } else {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        if (first + i < cols) place[i] = four.values[i];
      }
    }
  }
};

}  // namespace tessera::ops
