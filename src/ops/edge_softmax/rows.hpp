// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/simd/isa.hpp"

/// The inner kernels of edge_softmax on the CPU, and their table. Plain data only, since
/// `rows_simd.cpp` is compiled several times.
namespace tessera::ops::softmax {

/// Numbers of consecutive edges, `heads` in a row.
template <class T>
struct Edges {
  T* data = nullptr;
  std::int64_t stride = 0;
};

/// Numbers that are worked on at once; a piece is read in blocks of as many edges as fit.
inline constexpr std::int64_t block_numbers = 2048;

/// Memory of one thread: two arrays for a block, and three for the heads of an edge. Vectors may
/// reach past the last number, by less than one of the widest.
template <class S>
struct Scratch {
  S* first;
  S* second;
  S* tile;
  S* scale_tile;
  S* max_before;
};
template <class S>
inline constexpr std::int64_t scratch_slack = 64 / static_cast<std::int64_t>(sizeof(S));

template <class S>
struct Shape {
  std::int64_t heads = 1;
  S scale = 1;  ///< of scores
};

/// A row is a sum over its edges (`measure`), then a change of each (`apply`), so that a long row
/// can be cut into pieces, whose sums are joined (`merge`). `sums` holds two numbers per head: the
/// maximum and the sum of exponentials forward; 0 and the sum of P dP backward. Numbers of edges
/// are scores; backward: weights and their gradients.
template <class T>
struct Pass {
  using S = SumOf<T>;
  using Numbers = Edges<const T>;
  void (*measure)(const Shape<S>&, const Numbers& first, const Numbers& second, std::int64_t edges,
                  S* sums, const Scratch<S>&);
  void (*merge)(const S* piece, std::int64_t heads, S* sums);
  void (*apply)(const Shape<S>&, const Numbers& first, const Numbers& second,
                const Edges<T>& results, std::int64_t edges, const S* sums, const Scratch<S>&);
};

template <class T>
struct Functions {
  Pass<T> forward, backward;
};

}  // namespace tessera::ops::softmax

TESSERA_SIMD_TABLE(ByStorage<softmax::Functions>, edge_softmax_rows)
