// SPDX-License-Identifier: Apache-2.0
#include "ops/simd/lanes.hpp"
#include "ops/spmm/scatter.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

/// The edges of one row, a few at a time, with their weights.
template <class T>
struct RowPiece {
  static constexpr EdgeOffset most = 64;
  VertexId cols[most];
  T weights[most];
  int count;
};

/// Whether all elements are finite: 0 times any other is not 0.
template <class T>
TESSERA_INLINE bool is_finite(const T* values, std::int64_t count) {
  constexpr int n = lanes<T>;
  Lanes<T, n> sums = {};
  T rest = 0;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) sums += load_lanes<n>(values + i) * T(0);
  for (; i < count; ++i) rest += values[i] * T(0);
  return horizontal_sum<T, n>(sums) + rest == T(0);
}

/// Edges [begin, end) of a row, at most `RowPiece::most`. Those of weight 0 add nothing to the sums
/// where the row is finite, and are left out: dropout on sparse features leaves many of them.
template <class T>
TESSERA_INLINE void load_piece(const ScatterRows& rows, EdgeOffset begin, EdgeOffset end, T scale,
                               bool row_is_finite, RowPiece<T>& piece) {
  int count = 0;
  for (EdgeOffset edge = begin; edge < end; ++edge) {
    const std::int64_t at = edge * rows.value_stride;
    T value = 1;
    if (rows.values != nullptr) {
      value = rows.values_are_stored ? static_cast<const T*>(rows.values)[at]
                                     : static_cast<T>(static_cast<const float*>(rows.values)[at]);
    }
    const T weight = value * scale;
    piece.cols[count] = rows.col_indices[edge];
    piece.weights[count] = weight;
    count += weight == T(0) && row_is_finite ? 0 : 1;
  }
  piece.count = count;
}

/// Adds weight * y to V vectors of N columns of the sums of every source of the piece.
template <int N, int V, class T>
TESSERA_INLINE void add_columns(const RowPiece<T>& piece, const T* y, std::int64_t features,
                                T* sums) {
  Lanes<T, N> row[V];
  unrolled<V>([&](auto v)
                  __attribute__((always_inline)) { row[v] = load_lanes<N>(y + v.value * N); });
  for (int e = 0; e < piece.count; ++e) {
    T* const to = sums + static_cast<std::int64_t>(piece.cols[e]) * features;
    const T weight = piece.weights[e];
    unrolled<V>([&](auto v) __attribute__((always_inline)) {
      T* const at = to + v.value * N;
      store_lanes<N>(at, Lanes<T, N>(load_lanes<N>(at) + weight * row[v]));
    });
  }
}

template <class T>
void add_piece(const RowPiece<T>& piece, const T* y, std::int64_t features, T* sums) {
  constexpr int N = lanes<T>;
  std::int64_t column = 0;
  for (; column + 8 * N <= features; column += 8 * N) {
    add_columns<N, 8>(piece, y + column, features, sums + column);
  }
  for (; column + 2 * N <= features; column += 2 * N) {
    add_columns<N, 2>(piece, y + column, features, sums + column);
  }
  for (; column + N <= features; column += N) {
    add_columns<N, 1>(piece, y + column, features, sums + column);
  }
  for (; column < features; ++column) {
    add_columns<1, 1>(piece, y + column, features, sums + column);
  }
}

template <class T>
void add_rows(const ScatterRows& rows, VertexId row_begin, VertexId row_end, void* sums) {
  const auto* const row_scale = static_cast<const T*>(rows.row_scale);
  RowPiece<T> piece;
  for (VertexId row = row_begin; row < row_end; ++row) {
    const T scale = row_scale == nullptr ? T(1) : row_scale[row];
    const T* const y = static_cast<const T*>(rows.y) + row * rows.y_stride;
    const EdgeOffset end = rows.row_offsets[row + 1];
    const bool row_is_finite = is_finite(y, rows.features);
    for (EdgeOffset edge = rows.row_offsets[row]; edge < end; edge += piece.most) {
      const EdgeOffset piece_end = end - edge < piece.most ? end : edge + piece.most;
      load_piece(rows, edge, piece_end, scale, row_is_finite, piece);
      add_piece(piece, y, rows.features, static_cast<T*>(sums));
    }
  }
}

}  // namespace

const ScatterTable& spmm_scatter_table() {
  static constexpr ScatterTable table = {add_rows<double>, add_rows<float>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
