// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/rows.hpp"
#include "ops/simd/heads.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

using softmax::Edges;
using softmax::Scratch;

constexpr double infinity = __builtin_inf();

template <class T, class S>
void load_numbers(const T* from, std::int64_t count, S* to) {
  constexpr int n = lanes<S>;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) store_full(to + i, load_lanes<n>(from + i));
  for (; i < count; ++i) to[i] = load_lanes<1>(from + i);
}

template <class T, class S>
void store_numbers(const S* from, std::int64_t count, T* to) {
  constexpr int n = lanes<S>;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) store_lanes<n>(to + i, load_full(from + i));
  for (; i < count; ++i) store_lanes<1>(to + i, from[i]);
}

template <class T, class S>
void load_block(const Edges<const T>& from, std::int64_t begin, std::int64_t edges,
                std::int64_t heads, S* to) {
  const T* const data = from.data + begin * from.stride;
  if (from.stride == heads) return load_numbers(data, edges * heads, to);
  for (std::int64_t b = 0; b < edges; ++b) {
    load_numbers(data + b * from.stride, heads, to + b * heads);
  }
}

template <class T, class S>
void store_block(const S* from, std::int64_t begin, std::int64_t edges, std::int64_t heads,
                 const Edges<T>& to) {
  T* const data = to.data + begin * to.stride;
  if (to.stride == heads) return store_numbers(from, edges * heads, data);
  for (std::int64_t b = 0; b < edges; ++b) {
    store_numbers(from + b * heads, heads, data + b * to.stride);
  }
}

/// Calls body(begin, edges) for blocks of edges.
template <class Body>
TESSERA_INLINE void for_blocks_of_edges(std::int64_t edges, std::int64_t heads, Body&& body) {
  const std::int64_t fitting = softmax::block_numbers / heads;
  const std::int64_t step = fitting < 1 ? 1 : fitting;
  for (std::int64_t begin = 0; begin < edges; begin += step) {
    body(begin, edges - begin < step ? edges - begin : step);
  }
}

/// A maximum that can be subtracted: where only -inf was seen, 0 keeps the weights at 0.
template <class S>
TESSERA_INLINE S subtractable(S max) {
  return max > static_cast<S>(-infinity) ? max : S{0};
}

template <class S>
void exponentials(S* numbers, std::int64_t edges, std::int64_t heads, const S* max,
                  const Scratch<S>& scratch) {
  for (std::int64_t h = 0; h < heads; ++h) scratch.head_numbers[h] = subtractable(max[h]);
  make_tile(scratch.head_numbers, heads, scratch.tile);
  pad(numbers, edges * heads, static_cast<S>(-infinity));
  for_vectors<S>(edges * heads, heads, [&](std::int64_t k, std::int64_t phase) {
    store_full(numbers + k,
               exp_lanes<S, lanes<S>>(load_full(numbers + k) - load_full(scratch.tile + phase)));
  });
}

template <class T>
void measure(const Edges<const T>& scores, std::int64_t edges, std::int64_t heads,
             softmax::SumOf<T>* sums, const Scratch<softmax::SumOf<T>>& scratch) {
  using S = softmax::SumOf<T>;
  S* const max = sums;
  S* const sum = sums + heads;
  for (std::int64_t h = 0; h < heads; ++h) {
    max[h] = static_cast<S>(-infinity);
    sum[h] = 0;
  }
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_block(scores, begin, count, heads, scratch.first);
    pad(scratch.first, count * heads, static_cast<S>(-infinity));
    for (std::int64_t h = 0; h < heads; ++h) scratch.sums[h] = max[h];
    reduce_heads<Max>(scratch.first, count, heads, max);
    for (std::int64_t h = 0; h < heads; ++h) {
      if (max[h] > scratch.sums[h]) sum[h] *= exp_lanes<S, 1>(scratch.sums[h] - max[h]);
    }
    exponentials(scratch.first, count, heads, max, scratch);
    reduce_heads<Add>(scratch.first, count, heads, sum);
  });
}

template <class T>
void merge(const softmax::SumOf<T>* piece, std::int64_t heads, softmax::SumOf<T>* sums) {
  using S = softmax::SumOf<T>;
  const auto lowest = static_cast<S>(-infinity);
  for (std::int64_t h = 0; h < heads; ++h) {
    const S max = piece[h] > sums[h] ? piece[h] : sums[h];
    const S of_piece = piece[h] > lowest ? exp_lanes<S, 1>(piece[h] - max) : S{1};
    const S of_sums = sums[h] > lowest ? exp_lanes<S, 1>(sums[h] - max) : S{1};
    sums[h] = max;
    sums[heads + h] = sums[heads + h] * of_sums + piece[heads + h] * of_piece;
  }
}

template <class T>
void apply(const Edges<const T>& scores, const Edges<T>& weights, std::int64_t edges,
           std::int64_t heads, const softmax::SumOf<T>* sums,
           const Scratch<softmax::SumOf<T>>& scratch) {
  using S = softmax::SumOf<T>;
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_block(scores, begin, count, heads, scratch.first);
    exponentials(scratch.first, count, heads, sums, scratch);
    for (std::int64_t h = 0; h < heads; ++h) scratch.head_numbers[h] = S{1} / sums[heads + h];
    make_tile(scratch.head_numbers, heads, scratch.tile);
    for_vectors<S>(count * heads, heads, [&](std::int64_t k, std::int64_t phase) {
      store_full(scratch.first + k,
                 FullVector<S>(load_full(scratch.first + k) * load_full(scratch.tile + phase)));
    });
    store_block(scratch.first, begin, count, heads, weights);
  });
}

template <class T>
void measure_backward(const Edges<const T>& weights, const Edges<const T>& grads,
                      std::int64_t edges, std::int64_t heads, softmax::SumOf<T>* sums,
                      const Scratch<softmax::SumOf<T>>& scratch) {
  using S = softmax::SumOf<T>;
  for (std::int64_t h = 0; h < 2 * heads; ++h) sums[h] = 0;
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_block(weights, begin, count, heads, scratch.first);
    load_block(grads, begin, count, heads, scratch.second);
    for (std::int64_t k = 0; k < count * heads; ++k) scratch.first[k] *= scratch.second[k];
    pad(scratch.first, count * heads, S{0});
    reduce_heads<Add>(scratch.first, count, heads, sums + heads);
  });
}

template <class T>
void apply_backward(const Edges<const T>& weights, const Edges<const T>& grads,
                    const Edges<T>& grad_scores, std::int64_t edges, std::int64_t heads,
                    const softmax::SumOf<T>* sums, const Scratch<softmax::SumOf<T>>& scratch) {
  using S = softmax::SumOf<T>;
  make_tile(sums + heads, heads, scratch.tile);
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_block(weights, begin, count, heads, scratch.first);
    load_block(grads, begin, count, heads, scratch.second);
    for_vectors<S>(count * heads, heads, [&](std::int64_t k, std::int64_t phase) {
      const FullVector<S> grad = load_full(scratch.second + k) - load_full(scratch.tile + phase);
      store_full(scratch.first + k, FullVector<S>(load_full(scratch.first + k) * grad));
    });
    store_block(scratch.first, begin, count, heads, grad_scores);
  });
}

template <class T>
constexpr softmax::Functions<T> functions_of() {
  return {measure<T>, merge<T>, apply<T>, measure_backward<T>, apply_backward<T>};
}

}  // namespace

const softmax::Table& edge_softmax_rows_table() {
  static constexpr softmax::Table table = {functions_of<double>(), functions_of<float>(),
                                           functions_of<Bfloat16>()};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
