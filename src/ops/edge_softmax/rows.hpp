// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <type_traits>

#include "tessera/core/dtype.hpp"

#include "ops/simd/isa.hpp"

/// The inner kernels of edge_softmax on the CPU, and their table. Plain data only, since
/// `rows_simd.cpp` is compiled several times.
namespace tessera::ops::softmax {

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

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
  S* head_numbers;
  S* sums;
};
template <class S>
inline constexpr std::int64_t scratch_slack = 64 / static_cast<std::int64_t>(sizeof(S));

/// A row is a sum over its edges (`measure`), then a change of each (`apply`), so that a long row
/// can be cut into pieces. `sums` holds two numbers per head: the maximum and the sum of
/// exponentials forward; 0 and the sum of P dP backward.
template <class T>
struct Functions {
  using S = SumOf<T>;
  void (*measure)(const Edges<const T>& scores, std::int64_t edges, std::int64_t heads, S* sums,
                  const Scratch<S>&);
  void (*merge)(const S* piece, std::int64_t heads, S* sums);
  void (*apply)(const Edges<const T>& scores, const Edges<T>& weights, std::int64_t edges,
                std::int64_t heads, const S* sums, const Scratch<S>&);
  void (*measure_backward)(const Edges<const T>& weights, const Edges<const T>& grads,
                           std::int64_t edges, std::int64_t heads, S* sums, const Scratch<S>&);
  void (*apply_backward)(const Edges<const T>& weights, const Edges<const T>& grads,
                         const Edges<T>& grad_scores, std::int64_t edges, std::int64_t heads,
                         const S* sums, const Scratch<S>&);
};

struct Table {
  Functions<double> fp64;
  Functions<float> fp32;
  Functions<Bfloat16> bf16;
};

}  // namespace tessera::ops::softmax

TESSERA_SIMD_TABLE(softmax::Table, edge_softmax_rows)
