// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/rows.hpp"
#include "ops/simd/heads.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

using softmax::Edges;
using softmax::Scratch;
using softmax::Shape;

template <class T, class S>
void load_block(const Edges<const T>& from, std::int64_t begin, std::int64_t edges,
                std::int64_t heads, S* to) {
  const T* const data = from.data + begin * from.stride;
  if (from.stride == heads) return load_row(data, edges * heads, to);
  for (std::int64_t b = 0; b < edges; ++b) {
    load_row(data + b * from.stride, heads, to + b * heads);
  }
}

template <class T, class S>
void load_scores(const Shape<S>& shape, const Edges<const T>& from, std::int64_t begin,
                 std::int64_t edges, S* to) {
  load_block(from, begin, edges, shape.heads, to);
  if (shape.scale == 1) return;
  for (std::int64_t k = 0; k < edges * shape.heads; ++k) to[k] *= shape.scale;
}

template <class T, class S>
void store_block(const S* from, std::int64_t begin, std::int64_t edges, std::int64_t heads,
                 const Edges<T>& to) {
  T* const data = to.data + begin * to.stride;
  if (to.stride == heads) return store_row(from, edges * heads, data);
  for (std::int64_t b = 0; b < edges; ++b) {
    store_row(from + b * heads, heads, data + b * to.stride);
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

template <class T>
void measure(const Shape<SumOf<T>>& shape, const Edges<const T>& scores, const Edges<const T>&,
             std::int64_t edges, SumOf<T>* sums, const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const std::int64_t heads = shape.heads;
  S* const max = sums;
  S* const sum = sums + heads;
  for (std::int64_t h = 0; h < heads; ++h) {
    max[h] = static_cast<S>(-infinity);
    sum[h] = 0;
  }
  const S* const block = scratch.first;
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_scores(shape, scores, begin, count, scratch.first);
    for (std::int64_t h = 0; h < heads; ++h) scratch.max_before[h] = max[h];
    map_heads<Max>(count, heads, block, max, [=](std::int64_t) TESSERA_INLINED {
      return [=](std::int64_t k) TESSERA_INLINED { return load_full(block + k); };
    });
    for (std::int64_t h = 0; h < heads; ++h) {
      const S before = scratch.max_before[h];
      if (max[h] > before) sum[h] *= exp_lanes<S, 1>(before - max[h]);
    }
    exponentials(count, heads, block, max, scratch.tile, scratch.first, sum);
  });
}

template <class T>
void merge(const SumOf<T>* piece, std::int64_t heads, SumOf<T>* sums) {
  using S = SumOf<T>;
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
void apply(const Shape<SumOf<T>>& shape, const Edges<const T>& scores, const Edges<const T>&,
           const Edges<T>& weights, std::int64_t edges, const SumOf<T>* sums,
           const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const std::int64_t heads = shape.heads;
  make_max_tile(sums, heads, scratch.tile);
  make_tile(sums + heads, heads, scratch.scale_tile,
            []<int N>(Lanes<S, N> sum) { return Lanes<S, N>(S{1} / sum); });
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_scores(shape, scores, begin, count, scratch.first);
    for_vectors<S>(count * heads, heads, [&](std::int64_t k, std::int64_t phase) {
      const FullVector<S> weight =
          exp_lanes<S, lanes<S>>(load_full(scratch.first + k) - load_full(scratch.tile + phase));
      store_full(scratch.first + k, FullVector<S>(weight * load_full(scratch.scale_tile + phase)));
    });
    store_block(scratch.first, begin, count, heads, weights);
  });
}

template <class T>
void measure_backward(const Shape<SumOf<T>>& shape, const Edges<const T>& weights,
                      const Edges<const T>& grads, std::int64_t edges, SumOf<T>* sums,
                      const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const std::int64_t heads = shape.heads;
  for (std::int64_t h = 0; h < 2 * heads; ++h) sums[h] = 0;
  S* const first = scratch.first;
  const S* const second = scratch.second;
  for_blocks_of_edges(edges, heads, [&](std::int64_t begin, std::int64_t count) {
    load_block(weights, begin, count, heads, scratch.first);
    load_block(grads, begin, count, heads, scratch.second);
    map_heads<Add>(count, heads, first, sums + heads, [=](std::int64_t) TESSERA_INLINED {
      return [=](std::int64_t k) TESSERA_INLINED {
        const FullVector<S> product = load_full(first + k) * load_full(second + k);
        store_full(first + k, product);
        return product;
      };
    });
  });
}

template <class T>
void merge_backward(const SumOf<T>* piece, std::int64_t heads, SumOf<T>* sums) {
  for (std::int64_t h = heads; h < 2 * heads; ++h) sums[h] += piece[h];
}

template <class T>
void apply_backward(const Shape<SumOf<T>>& shape, const Edges<const T>& weights,
                    const Edges<const T>& grads, const Edges<T>& grad_scores, std::int64_t edges,
                    const SumOf<T>* sums, const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const std::int64_t heads = shape.heads;
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
constexpr softmax::Functions<T> functions_of = {
    {measure<T>, merge<T>, apply<T>}, {measure_backward<T>, merge_backward<T>, apply_backward<T>}};

}  // namespace

const ByStorage<softmax::Functions>& edge_softmax_rows_table() {
  static constexpr ByStorage<softmax::Functions> table = {functions_of<double>, functions_of<float>,
                                                          functions_of<Bfloat16>};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
