// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __aarch64__
#include <arm_neon.h>
#endif

#include <cstdint>

#include "ops/attention/fused.hpp"
#include "ops/simd/lanes.hpp"

/// The inner loops of fused attention. A row of `heads` x `width` features is cut into strips of
/// `Heads` heads by `Vectors` vectors of N lanes, so that a strip's sums stay in registers while
/// the edges of a block pass by. What is left of a head's width goes to strips of narrower vectors,
/// down to a single lane: no masks, and nothing is read past a row's end.
namespace tessera::ops::TESSERA_ISA {

/// How many edges ahead rows are asked for.
inline constexpr std::int64_t prefetch_edges = 16;

/// Even lanes plus odd lanes: the sums of neighbours of a, then those of b.
template <class S, int N>
TESSERA_INLINE Lanes<S, N> add_neighbours(Lanes<S, N> a, Lanes<S, N> b) {
#ifdef __aarch64__
  // One instruction, which GCC does not find by itself.
  if constexpr (std::is_same_v<S, float> && N == 4) return vpaddq_f32(a, b);
#endif
  return [&]<int... I>(std::integer_sequence<int, I...>) __attribute__((always_inline)) {
    return __builtin_shufflevector(a, b, (2 * I)...) +
           __builtin_shufflevector(a, b, (2 * I + 1)...);
  }
  (std::make_integer_sequence<int, N>{});
}

/// Lane i = the sum of all lanes of vectors[i].
template <class S, int N>
TESSERA_INLINE Lanes<S, N> sum_lanes(Lanes<S, N> (&vectors)[N]) {
  if constexpr (N > 1) {
    for (int count = N / 2; count > 0; count /= 2) {
      for (int i = 0; i < count; ++i) {
        vectors[i] = add_neighbours<S, N>(vectors[2 * i], vectors[2 * i + 1]);
      }
    }
  }
  return vectors[0];
}

template <class T, int N, int Heads, int Vectors>
struct StripLoops {
  using S = ScalarOf<T>;
  using Vector = Lanes<S, N>;
  using Place = fused::StripPlace;
  using Gathered = fused::Gathered<T>;
  // Loops work on copies of these two: a store through a pointer cannot change a copy, so its
  // numbers stay in registers.

  /// The strip's part of a row that has one number per feature.
  struct Block {
    Vector values[Heads][Vectors];
  };

  TESSERA_INLINE std::int64_t first_feature(const Place& place) {
    return place.head * place.width + place.feature;
  }

  /// The strip's part of a gathered row. Asks for one of the next rows by the way.
  TESSERA_INLINE const T* gathered_row(const Gathered& gathered, std::int64_t edge,
                                       const Place& place) {
    constexpr std::int64_t line = 64;
    constexpr std::int64_t bytes = Heads * Vectors * N * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t coming = edge + prefetch_edges;
    const std::int64_t first = first_feature(place);
    if (coming < gathered.readable) {
      const auto* const next = reinterpret_cast<const char*>(
          gathered.rows.data +
          static_cast<std::int64_t>(gathered.ids[coming]) * gathered.rows.stride + first);
      for (std::int64_t at = 0; at < bytes; at += line) __builtin_prefetch(next + at);
    }
    return gathered.rows.data +
           static_cast<std::int64_t>(gathered.ids[edge]) * gathered.rows.stride + first;
  }

  /// Calls body(head, vector) with compile-time numbers.
  template <class Body>
  TESSERA_INLINE void each(Body&& body) {
    unrolled<Heads>([&](auto h) __attribute__((always_inline)) {
      unrolled<Vectors>([&](auto v) __attribute__((always_inline)) { body(h, v); });
    });
  }

  TESSERA_INLINE Block load_block(const Place& place, const S* features) {
    Block block;
    each([&](auto h, auto v) __attribute__((always_inline)) {
      block.values[h.value][v.value] =
          load_lanes<N>(features + first_feature(place) + h.value * place.width + v.value * N);
    });
    return block;
  }

  TESSERA_INLINE void add_block(const Place& place, const Block& block, S* features) {
    each([&](auto h, auto v) __attribute__((always_inline)) {
      S* const to = features + first_feature(place) + h.value * place.width + v.value * N;
      store_lanes<N>(to, Vector(load_lanes<N>(to) + block.values[h.value][v.value]));
    });
  }

  /// term(h, v, gathered vector) summed over the vectors of head h, lane by lane.
  template <class Term>
  TESSERA_INLINE Vector head_sum(const T* head, auto h, Term&& term) {
    Vector sum = term(h, std::integral_constant<int, 0>{}, load_lanes<N>(head));
    unrolled<Vectors - 1>([&](auto i) __attribute__((always_inline)) {
      constexpr int v = i.value + 1;
      sum += term(h, std::integral_constant<int, v>{}, load_lanes<N>(head + v * N));
    });
    return sum;
  }

  /// Leaves the sums of each head's lanes apart.
  template <bool Adds, class Term>
  TESSERA_INLINE void partial_sums(const Place place, const Gathered gathered, S* partial,
                                   Term&& term) {
    const std::int64_t lanes_kept = place.partial_lanes;
    S* to = partial + place.head * lanes_kept;
    for (std::int64_t edge = 0; edge < gathered.count; ++edge, to += place.heads * lanes_kept) {
      const T* const from = gathered_row(gathered, edge, place);
      unrolled<Heads>([&](auto h) __attribute__((always_inline)) {
        Vector sum = head_sum(from + h.value * place.width, h, term);
        S* const here = to + h.value * lanes_kept;
        if constexpr (Adds) sum += load_lanes<N>(here);
        store_lanes<N>(here, sum);
      });
    }
  }

  /// Sums the lanes too, N heads at once.
  template <class Term>
  TESSERA_INLINE void whole_sums(const Place place, const Gathered gathered, S* sums, Term&& term) {
    S* to = sums + place.head;
    for (std::int64_t edge = 0; edge < gathered.count; ++edge, to += place.heads) {
      const T* const from = gathered_row(gathered, edge, place);
      unrolled<Heads / N>([&](auto group) __attribute__((always_inline)) {
        Vector vectors[N];
        unrolled<N>([&](auto i) __attribute__((always_inline)) {
          constexpr int h = group.value * N + i.value;
          vectors[i.value] =
              head_sum(from + h * place.width, std::integral_constant<int, h>{}, term);
        });
        store_lanes<N>(to + group.value * N, sum_lanes<S, N>(vectors));
      });
    }
  }

  template <class Term>
  TESSERA_INLINE void sums_of(const Place& place, const Gathered& gathered, S* partial,
                              Term&& term) {
    if constexpr (Heads % N == 0) {
      if (place.sums_lanes) return whole_sums(place, gathered, partial, term);
    }
    if (place.adds) {
      partial_sums<true>(place, gathered, partial, term);
    } else {
      partial_sums<false>(place, gathered, partial, term);
    }
  }

  static void dot(const Place& place, const Gathered& gathered, const S* fixed, S* partial) {
    const Block block = load_block(place, fixed);
    const auto term = [&](auto h, auto v, Vector x) __attribute__((always_inline)) {
      return Vector(block.values[h.value][v.value] * x);
    };
    sums_of(place, gathered, partial, term);
  }

  static void additive(const Place& place, const Gathered& gathered, const S* fixed,
                       const S* vector, S slope, S* partial) {
    const Block block = load_block(place, fixed);
    const Block factors = load_block(place, vector);
    const auto term = [&](auto h, auto v, Vector x) __attribute__((always_inline)) {
      const Vector sum = block.values[h.value][v.value] + x;
      const Vector activated = select_where<S, N>(sum > 0, sum, sum * slope);
      return Vector(factors.values[h.value][v.value] * activated);
    };
    sums_of(place, gathered, partial, term);
  }

  static void weighted_sum(const Place& whole_place, const Gathered& all_gathered, const S* weights,
                           S* sums) {
    const Place place = whole_place;
    const Gathered gathered = all_gathered;
    Block block = {};
    for (std::int64_t edge = 0; edge < gathered.count; ++edge) {
      const T* const from = gathered_row(gathered, edge, place);
      const S* const weight = weights + edge * place.heads + place.head;
      each([&](auto h, auto v) __attribute__((always_inline)) {
        block.values[h.value][v.value] +=
            weight[h.value] * load_lanes<N>(from + h.value * place.width + v.value * N);
      });
    }
    add_block(place, block, sums);
  }

  template <bool WithActivated>
  TESSERA_INLINE void additive_sums(const Place place, const Gathered gathered, const S* fixed,
                                    const S* grads, S slope, S* sums, S* activated_sums) {
    const Block block = load_block(place, fixed);
    Block derivative_total = {};
    Block activated_total = {};
    const Vector ones = Vector{} + S{1};
    const Vector slopes = Vector{} + slope;
    for (std::int64_t edge = 0; edge < gathered.count; ++edge) {
      const T* const from = gathered_row(gathered, edge, place);
      const S* const grad = grads + edge * place.heads + place.head;
      each([&](auto h, auto v) __attribute__((always_inline)) {
        const Vector sum = block.values[h.value][v.value] +
                           load_lanes<N>(from + h.value * place.width + v.value * N);
        // Both products are formed in one step with their sums, so that one does not depend on
        // whether the other is wanted.
        const Vector slope_here = select_where<S, N>(sum > 0, ones, slopes);
        derivative_total.values[h.value][v.value] += grad[h.value] * slope_here;
        if constexpr (WithActivated) {
          const Vector activated = slope_here * sum;
          activated_total.values[h.value][v.value] += grad[h.value] * activated;
        }
      });
    }
    add_block(place, derivative_total, sums);
    if constexpr (WithActivated) add_block(place, activated_total, activated_sums);
  }

  static void additive_backward(const Place& place, const Gathered& gathered, const S* fixed,
                                const S* grads, S slope, S* sums, S* activated_sums) {
    if (activated_sums == nullptr) {
      additive_sums<false>(place, gathered, fixed, grads, slope, sums, nullptr);
    } else {
      additive_sums<true>(place, gathered, fixed, grads, slope, sums, activated_sums);
    }
  }
};

template <class T, int N, int Heads, int Vectors>
inline constexpr fused::StripFunctions<T> strip_functions = {
    StripLoops<T, N, Heads, Vectors>::dot, StripLoops<T, N, Heads, Vectors>::additive,
    StripLoops<T, N, Heads, Vectors>::weighted_sum,
    StripLoops<T, N, Heads, Vectors>::additive_backward};

/// The largest power of two that is at most `value`, but at most `limit`.
TESSERA_INLINE int power_of_two_within(std::int64_t value, int limit) {
  int power = limit;
  while (power > value) power /= 2;
  return power;
}

/// Widest strips: full vectors may come several to a head, narrower ones come alone.
template <class T, int N>
inline constexpr int max_strip_vectors = N == lanes<ScalarOf<T>> ? 8 : 1;
inline constexpr int max_strip_heads = 8;

template <class T, int N>
const fused::StripFunctions<T>* find_strip(int heads, int vectors) {
  const fused::StripFunctions<T>* found = nullptr;
  unrolled<4>([&](auto log_heads) {
    unrolled<4>([&](auto log_vectors) {
      constexpr int strip_heads = 1 << log_heads.value;
      constexpr int strip_vectors = 1 << log_vectors.value;
      if constexpr (strip_vectors <= max_strip_vectors<T, N> &&
                    strip_heads * strip_vectors <= accumulator_registers) {
        if (heads == strip_heads && vectors == strip_vectors) {
          found = &strip_functions<T, N, strip_heads, strip_vectors>;
        }
      }
    });
  });
  return found;
}

/// Cuts rows into strips; `List` counts or keeps them.
template <class T, class List>
struct StripMaker {
  fused::StripPlace place;
  List list;

  /// Features [first, first + vectors * N) of every head.
  template <int N>
  void add(std::int64_t first, int vectors) {
    place.feature = first;
    place.adds = first > 0;
    for (place.head = 0; place.head < place.heads;) {
      const int heads = power_of_two_within(
          place.heads - place.head,
          power_of_two_within(accumulator_registers / vectors, max_strip_heads));
      list(fused::Strip<T>{find_strip<T, N>(heads, vectors), place});
      place.head += heads;
    }
  }

  /// All features from `first` on.
  template <int N>
  void cover(std::int64_t first) {
    while (place.width - first >= N) {
      const int vectors = power_of_two_within((place.width - first) / N, max_strip_vectors<T, N>);
      add<N>(first, vectors);
      first += vectors * N;
    }
    if constexpr (N > 1) cover<N / 2>(first);
  }
};

/// True when every strip will have whole heads, and a multiple of N of them.
template <class T>
bool can_sum_lanes(std::int64_t heads, std::int64_t width) {
  constexpr int full = lanes<ScalarOf<T>>;
  const std::int64_t n = power_of_two_within(width, full);
  if (n == 0 || width % n != 0) return false;
  const std::int64_t vectors = width / n;
  const bool one_strip = vectors == 1 || (n == full && vectors <= max_strip_vectors<T, full> &&
                                          (vectors & (vectors - 1)) == 0);
  if (!one_strip) return false;
  const std::int64_t strip_heads =
      power_of_two_within(accumulator_registers / vectors, max_strip_heads);
  return strip_heads % n == 0 && heads % n == 0;
}

template <class T>
std::int64_t make_strips(std::int64_t heads, std::int64_t width, fused::Strip<T>* strips) {
  std::int64_t count = 0;
  const auto keep = [&](const fused::Strip<T>& strip) {
    if (strips != nullptr) strips[count] = strip;
    ++count;
  };
  StripMaker<T, decltype(keep)> maker{{}, keep};
  maker.place.heads = heads;
  maker.place.width = width;
  maker.place.partial_lanes = power_of_two_within(width, lanes<ScalarOf<T>>);
  maker.place.sums_lanes = can_sum_lanes<T>(heads, width);
  maker.template cover<lanes<ScalarOf<T>>>(0);
  return count;
}

template <class S, int N>
void sum_partials_of(const S* partial, std::int64_t size, S* sums) {
  for (std::int64_t k = 0; k < size; k += N) {
    Lanes<S, N> vectors[N];
    unrolled<N>([&](auto i) __attribute__((always_inline)) {
      vectors[i.value] = load_lanes<N>(partial + (k + i.value) * N);
    });
    store_lanes<N>(sums + k, sum_lanes<S, N>(vectors));
  }
}

/// Finishes dot products. Reads and writes up to the end of a vector past `size`.
template <class S>
TESSERA_INLINE void sum_partials(const S* partial, std::int64_t partial_lanes, std::int64_t size,
                                 S* sums) {
  unrolled<5>([&](auto log_lanes) {
    constexpr int n = 1 << log_lanes.value;
    if constexpr (n <= lanes<S>) {
      if (partial_lanes == n) sum_partials_of<S, n>(partial, size, sums);
    }
  });
}

}  // namespace tessera::ops::TESSERA_ISA
