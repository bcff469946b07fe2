// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "tessera/core/types.hpp"

#include "ops/simd/exp.hpp"
#include "ops/simd/lanes.hpp"

/// Numbers of a block of edges, one per edge and head, lie edge by edge in one array: number k
/// belongs to edge k / heads and head k % heads. Vectors then run over any number of heads without
/// waste. Arrays are long enough for whole vectors.
namespace tessera::ops::TESSERA_ISA {

inline constexpr double infinity = __builtin_inf();

template <class S>
using FullVector = Lanes<S, lanes<S>>;

template <class S>
TESSERA_INLINE FullVector<S> load_full(const S* from) {
  return load_lanes<lanes<S>>(from);
}
template <class S>
TESSERA_INLINE void store_full(S* to, FullVector<S> value) {
  store_lanes<lanes<S>>(to, value);
}

/// `count` numbers, widened to what they are summed in, or rounded to how they are stored.
template <class T, class S>
TESSERA_INLINE void load_row(const T* from, std::int64_t count, S* to) {
  std::int64_t i = 0;
  for (; i + lanes<S> <= count; i += lanes<S>) store_full(to + i, load_lanes<lanes<S>>(from + i));
  for (; i < count; ++i) to[i] = load_lanes<1>(from + i);
}

template <class T>
void store_row(const SumOf<T>* from, std::int64_t count, T* to) {
  constexpr int n = lanes<SumOf<T>>;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) store_lanes<n>(to + i, load_lanes<n>(from + i));
  for (; i < count; ++i) store_lanes<1>(to + i, from[i]);
}

/// tile[i] = map(per_head[i % heads]): a vector that starts at any head can be loaded from it.
template <class T, class S, class Map>
TESSERA_INLINE void make_tile(const T* per_head, std::int64_t heads, S* tile, Map&& map) {
  constexpr int n = lanes<S>;
  if (heads % n == 0) {
    // Vectors start at multiples of n then, so none reaches past the last head.
    for (std::int64_t i = 0; i < heads; i += n) {
      store_full(tile + i, map.template operator()<n>(load_lanes<n>(per_head + i)));
    }
    return;
  }
  for (std::int64_t i = 0; i < heads; ++i) {
    tile[i] = map.template operator()<1>(load_lanes<1>(per_head + i));
  }
  for (std::int64_t i = heads; i < heads + n; ++i) tile[i] = tile[i - heads];
}

template <class T, class S>
TESSERA_INLINE void make_tile(const T* per_head, std::int64_t heads, S* tile) {
  make_tile(per_head, heads, tile, []<int N>(Lanes<S, N> value) { return value; });
}

/// Calls body(k, phase) for k = 0, lanes, … below `size`; `phase` is where in a tile the vector at
/// k starts.
template <class S, class Body>
TESSERA_INLINE void for_vectors(std::int64_t size, std::int64_t heads, Body&& body) {
  const std::int64_t step = lanes<S> % heads;
  std::int64_t phase = 0;
  for (std::int64_t k = 0; k < size; k += lanes<S>) {
    body(k, phase);
    phase += step;
    phase = phase >= heads ? phase - heads : phase;
  }
}

struct Add {
  template <class V>
  TESSERA_INLINE V apply(V a, V b) {
    return a + b;
  }
};
/// Ignores not-a-number, which the exponentials bring back.
struct Max {
  template <class V>
  TESSERA_INLINE V apply(V a, V b) {
    return b > a ? b : a;
  }
};

/// `Vectors` vectors of heads from `first` on, for all edges; the totals stay in registers.
template <int Vectors, class Combine, class S, class Prepare>
TESSERA_INLINE void map_vectors(std::int64_t first, std::int64_t size, std::int64_t heads,
                                S* per_head, Prepare&& prepare) {
  constexpr std::int64_t n = lanes<S>;
  [&]<int... I>(std::integer_sequence<int, I...>) TESSERA_INLINED {
    const decltype(prepare(first)) bodies[] = {prepare(first + I * n)...};
    FullVector<S> totals[] = {bodies[I](first + I * n)...};
    for (std::int64_t k = first + heads; k < size; k += heads) {
      ((totals[I] = Combine::apply(totals[I], bodies[I](k + I * n))), ...);
    }
    (store_full(per_head + first + I * n,
                FullVector<S>(Combine::apply(load_full(per_head + first + I * n), totals[I]))),
     ...);
  }
  (std::make_integer_sequence<int, Vectors>{});
}

/// Combines the numbers of each head with what `per_head` holds. Apart from the loops below, whose
/// registers it would take.
template <class Combine, class S>
[[gnu::noinline]] void reduce_heads(const S* values, std::int64_t edges, std::int64_t heads,
                                    S* per_head) {
  for (std::int64_t b = 0; b < edges; ++b) {
    for (std::int64_t h = 0; h < heads; ++h) {
      per_head[h] = Combine::apply(per_head[h], values[b * heads + h]);
    }
  }
}

/// Goes over a block and combines what it computes with what `per_head` holds, head by head.
/// `prepare(offset)` loads what it needs from tiles at this offset and returns the loop's body;
/// body(k) computes the numbers of a vector, stores them at `results` + k and returns them. Where
/// vectors and heads fit each other, the tiles and the totals stay in registers.
template <class Combine, class S, class Prepare>
TESSERA_INLINE void map_heads(std::int64_t edges, std::int64_t heads, const S* results, S* per_head,
                              Prepare&& prepare) {
  constexpr std::int64_t n = lanes<S>;
  const std::int64_t size = edges * heads;
  if (size == 0) return;
  if (heads % n == 0) {
    // Two vectors at once share what a loop over few edges costs.
    std::int64_t first = 0;
    for (; first + 2 * n <= heads; first += 2 * n) {
      map_vectors<2, Combine>(first, size, heads, per_head, prepare);
    }
    if (first < heads) map_vectors<1, Combine>(first, size, heads, per_head, prepare);
    return;
  }
  if (n % heads != 0) {
    for_vectors<S>(size, heads, [&](std::int64_t k, std::int64_t phase) { prepare(phase)(k); });
    return reduce_heads<Combine>(results, edges, heads, per_head);
  }
  const auto body = prepare(0);
  const std::int64_t whole = size - size % n;
  if (whole > 0) {
    FullVector<S> total = body(0);
    for (std::int64_t k = n; k < whole; k += n) total = Combine::apply(total, body(k));
    S parts[n];
    store_full(parts, total);
    for (std::int64_t i = 0; i < n; ++i) {
      per_head[i % heads] = Combine::apply(per_head[i % heads], parts[i]);
    }
  }
  if (whole < size) {
    body(whole);
    for (std::int64_t k = whole; k < size; ++k) {
      per_head[k % heads] = Combine::apply(per_head[k % heads], results[k]);
    }
  }
}

/// tile = what to subtract from scores: their maxima, but 0 where only -inf was seen, so that the
/// weights are 0.
template <class S>
TESSERA_INLINE void make_max_tile(const S* max, std::int64_t heads, S* tile) {
  make_tile(max, heads, tile, []<int N>(Lanes<S, N> value) {
    return select_where<S, N>(value > static_cast<S>(-infinity), value, Lanes<S, N>{});
  });
}

/// weights = exp(scores - max), and their sums, added to what `sum` holds. Where all scores of a
/// row are -inf its sum is 0, by which 0 is divided, as the reference does.
template <class S>
TESSERA_INLINE void exponentials(std::int64_t edges, std::int64_t heads, const S* scores,
                                 const S* max, S* tile, S* weights, S* sum) {
  make_max_tile(max, heads, tile);
  map_heads<Add>(edges, heads, weights, sum, [=](std::int64_t offset) TESSERA_INLINED {
    const FullVector<S> subtracted = load_full(tile + offset);
    return [=](std::int64_t k) TESSERA_INLINED {
      const FullVector<S> weight = exp_lanes<S, lanes<S>>(load_full(scores + k) - subtracted);
      store_full(weights + k, weight);
      return weight;
    };
  });
}

template <int Count, class T, class S>
TESSERA_INLINE void gather_fixed(const T* data, std::int64_t stride, const VertexId* rows,
                                 std::int64_t edges, S* out) {
  constexpr int n = Count < lanes<S> ? Count : lanes<S>;
  for (std::int64_t b = 0; b < edges; ++b) {
    const T* const from = data + static_cast<std::int64_t>(rows[b]) * stride;
    for (int h = 0; h < Count; h += n) {
      store_lanes<n>(out + b * Count + h, load_lanes<n>(from + h));
    }
  }
}

/// out[b * heads + h] = data[rows[b]][h].
template <class T, class S>
static void gather_heads(const T* data, std::int64_t stride, const VertexId* rows,
                         std::int64_t edges, std::int64_t heads, S* out) {
  switch (heads) {
    case 1: return gather_fixed<1>(data, stride, rows, edges, out);
    case 2: return gather_fixed<2>(data, stride, rows, edges, out);
    case 4: return gather_fixed<4>(data, stride, rows, edges, out);
    case 8: return gather_fixed<8>(data, stride, rows, edges, out);
    default: break;
  }
  for (std::int64_t b = 0; b < edges; ++b) {
    const T* const from = data + static_cast<std::int64_t>(rows[b]) * stride;
    for (std::int64_t h = 0; h < heads; ++h) out[b * heads + h] = load_lanes<1>(from + h);
  }
}

}  // namespace tessera::ops::TESSERA_ISA
