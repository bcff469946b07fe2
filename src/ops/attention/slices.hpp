// SPDX-License-Identifier: Apache-2.0
#pragma once

#ifdef __aarch64__
#include <arm_neon.h>
#endif

#include <cstdint>

#include "ops/attention/fused.hpp"
#include "ops/simd/lanes.hpp"

/// The inner loops of fused attention. A row of `heads` x `width` features is cut into slices of
/// `Heads` heads by `Vectors` vectors of N lanes, so that a slice's sums stay in registers while
/// the edges of a block pass by. What is left of a head's width goes to slices of narrower vectors,
/// down to a single lane: no masks, and nothing is read past a row's end. Only heads that nearly
/// fill one vector (3 features of 4) are taken by one each, which overlaps the next head.
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
  return [&]<int... I>(std::integer_sequence<int, I...>) TESSERA_INLINED {
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

/// Calls body(line, first edge, number of edges).
template <class Body>
TESSERA_INLINE void for_lines(const fused::Lines& lines, Body&& body) {
  const EdgeOffset first = lines.offsets[0];
  EdgeOffset begin = 0;
  for (std::int64_t line = 0; line < lines.num_lines; ++line) {
    const EdgeOffset end = lines.offsets[line + 1] - first;
    body(line, begin, end - begin);
    begin = end;
  }
}

template <class T>
TESSERA_INLINE bool wanted(const fused::LineSums<T>& sums) {
  return sums.rows != nullptr || sums.sums != nullptr;
}

/// The row of a line's own vertex.
template <class T>
TESSERA_INLINE const T* fixed_row(const fused::Rows<T>& rows, const fused::Lines& lines,
                                  std::int64_t line) {
  return rows.data + (lines.vertex + line) * rows.stride;
}

/// `Narrow`: heads have fewer than N features, and one vector.
template <class T, int N, int Heads, int Vectors, bool Narrow>
struct SliceLoops {
  using S = SumOf<T>;
  using Vector = Lanes<S, N>;
  using Place = fused::SlicePlace;
  using Lines = fused::Lines;
  using Rows = fused::Rows<T>;
  using LineSums = fused::LineSums<T>;
  // Loops work on copies of these: a store through a pointer cannot change a copy, so its numbers
  // stay in registers.

  /// The slice's part of a row that has one number per feature.
  struct Block {
    Vector values[Heads][Vectors];
  };

  TESSERA_INLINE std::int64_t first_feature(const Place& place) {
    return place.head * place.width + place.feature;
  }

  /// The slice's part of a gathered row. Asks for one of the next rows by the way.
  TESSERA_INLINE const T* gathered_row(const Rows& rows, const Lines& lines, std::int64_t edge,
                                       const Place& place) {
    constexpr std::int64_t line = 64;
    constexpr std::int64_t bytes = Heads * Vectors * N * static_cast<std::int64_t>(sizeof(T));
    const std::int64_t coming = edge + prefetch_edges;
    const std::int64_t first = first_feature(place);
    if (coming < lines.readable) {
      const auto* const next = reinterpret_cast<const char*>(
          rows.data + static_cast<std::int64_t>(lines.others[coming]) * rows.stride + first);
      for (std::int64_t at = 0; at < bytes; at += line) __builtin_prefetch(next + at);
    }
    return rows.data + static_cast<std::int64_t>(lines.others[edge]) * rows.stride + first;
  }

  /// Where a head's vectors begin in the slice.
  template <int H>
  TESSERA_INLINE std::int64_t head_start(const Place& place, std::integral_constant<int, H>) {
    return H * place.width - (Narrow && H == Heads - 1 ? place.set_back : 0);
  }

  /// 0 in lanes that belong to other heads.
  template <int H>
  TESSERA_INLINE Vector own_lanes(const Place& place, std::integral_constant<int, H>,
                                  Vector values) {
    if constexpr (Narrow) {
      const std::int64_t skipped = H == Heads - 1 ? place.set_back : 0;
      Lanes<IndexOf<S>, N> numbers;
      for (int i = 0; i < N; ++i) numbers[i] = i;
      const auto first = static_cast<IndexOf<S>>(skipped);
      const auto end = static_cast<IndexOf<S>>(skipped + place.width);
      return select_where<S, N>((numbers >= first) & (numbers < end), values, Vector{});
    } else {
      return values;
    }
  }

  /// Calls body(head, vector) with compile-time numbers.
  template <class Body>
  TESSERA_INLINE void each(Body&& body) {
    unrolled<Heads>([&](auto h) TESSERA_INLINED {
      unrolled<Vectors>([&](auto v) TESSERA_INLINED { body(h, v); });
    });
  }

  template <class From>
  TESSERA_INLINE Block load_block(const Place& place, const From* features) {
    Block block;
    each([&](auto h, auto v) TESSERA_INLINED {
      block.values[h.value][v.value] =
          load_lanes<N>(features + first_feature(place) + head_start(place, h) + v.value * N);
    });
    return block;
  }

  TESSERA_INLINE void add_block(const Place& place, const Block& block, S* features) {
    each([&](auto h, auto v) TESSERA_INLINED {
      S* const to = features + first_feature(place) + head_start(place, h) + v.value * N;
      const Vector values = own_lanes(place, h, block.values[h.value][v.value]);
      store_lanes<N>(to, Vector(load_lanes<N>(to) + values));
    });
  }

  /// Hands over the sums of a line.
  TESSERA_INLINE void keep_block(const Place& place, const Block& block, std::int64_t line,
                                 const LineSums& sums) {
    if (sums.rows == nullptr) return add_block(place, block, sums.sums);
    T* const features = sums.rows + line * sums.stride + first_feature(place);
    each([&](auto h, auto v) TESSERA_INLINED {
      const Vector values = block.values[h.value][v.value];
      if constexpr (Narrow && h.value == Heads - 1) {
        S single[N];
        store_lanes<N>(single, values);
        for (std::int64_t i = 0; i < place.width; ++i) {
          store_lanes<1>(features + h.value * place.width + i, single[place.set_back + i]);
        }
      } else {
        // What reaches into the next head is overwritten with it.
        store_lanes<N>(features + head_start(place, h) + v.value * N, values);
      }
    });
  }

  /// term(h, v, gathered vector) summed over the vectors of head h, lane by lane.
  template <class Term>
  TESSERA_INLINE Vector head_sum(const T* head, auto h, Term&& term) {
    Vector sum = term(h, std::integral_constant<int, 0>{}, load_lanes<N>(head));
    unrolled<Vectors - 1>([&](auto i) TESSERA_INLINED {
      constexpr int v = i.value + 1;
      sum += term(h, std::integral_constant<int, v>{}, load_lanes<N>(head + v * N));
    });
    return sum;
  }

  /// Leaves the sums of each head's lanes apart.
  template <bool Adds, class MakeTerm>
  TESSERA_INLINE void partial_sums(const Place place, const Lines lines, const Rows gathered,
                                   S* partial, MakeTerm&& make_term) {
    const std::int64_t lanes_kept = place.partial_lanes;
    S* to = partial + place.head * lanes_kept;
    for_lines(
        lines, [&](std::int64_t line, std::int64_t begin, std::int64_t count) TESSERA_INLINED {
          const auto term = make_term(line);
          for (std::int64_t edge = begin; edge < begin + count; ++edge) {
            const T* const from = gathered_row(gathered, lines, edge, place);
            unrolled<Heads>([&](auto h) TESSERA_INLINED {
              Vector sum = own_lanes(place, h, head_sum(from + head_start(place, h), h, term));
              S* const here = to + h.value * lanes_kept;
              if constexpr (Adds) sum += load_lanes<N>(here);
              store_lanes<N>(here, sum);
            });
            to += place.heads * lanes_kept;
          }
        });
  }

  /// Sums the lanes too, N heads at once.
  template <class MakeTerm>
  TESSERA_INLINE void whole_sums(const Place place, const Lines lines, const Rows gathered, S* sums,
                                 MakeTerm&& make_term) {
    S* to = sums + place.head;
    for_lines(lines, [&](std::int64_t line, std::int64_t begin,
                         std::int64_t count) TESSERA_INLINED {
      const auto term = make_term(line);
      for (std::int64_t edge = begin; edge < begin + count; ++edge) {
        const T* const from = gathered_row(gathered, lines, edge, place);
        unrolled<Heads / N>([&](auto group) TESSERA_INLINED {
          Vector vectors[N];
          unrolled<N>([&](auto i) TESSERA_INLINED {
            constexpr std::integral_constant<int, group.value * N + i.value> h{};
            vectors[i.value] = own_lanes(place, h, head_sum(from + head_start(place, h), h, term));
          });
          store_lanes<N>(to + group.value * N, sum_lanes<S, N>(vectors));
        });
        to += place.heads;
      }
    });
  }

  /// `make_term(line)` loads what a line's terms have in common.
  template <class MakeTerm>
  TESSERA_INLINE void sums_of(const Place& place, const Lines& lines, const Rows& gathered,
                              S* partial, MakeTerm&& make_term) {
    if constexpr (Heads % N == 0) {
      if (place.sums_lanes) return whole_sums(place, lines, gathered, partial, make_term);
    }
    if (place.adds) {
      partial_sums<true>(place, lines, gathered, partial, make_term);
    } else {
      partial_sums<false>(place, lines, gathered, partial, make_term);
    }
  }

  static void dot(const Place& place, const Lines& lines, const Rows& fixed, const Rows& gathered,
                  S* partial) {
    sums_of(place, lines, gathered, partial, [&](std::int64_t line) TESSERA_INLINED {
      const Block block = load_block(place, fixed_row(fixed, lines, line));
      return [block](auto h, auto v, Vector x)
                 TESSERA_INLINED { return Vector(block.values[h.value][v.value] * x); };
    });
  }

  static void additive(const Place& place, const Lines& lines, const Rows& fixed,
                       const Rows& gathered, const S* vector, S slope, S* partial) {
    const Block factors = load_block(place, vector);
    sums_of(place, lines, gathered, partial, [&](std::int64_t line) TESSERA_INLINED {
      const Block block = load_block(place, fixed_row(fixed, lines, line));
      return [block, factors, slope](auto h, auto v, Vector x) TESSERA_INLINED {
        const Vector sum = block.values[h.value][v.value] + x;
        const Vector activated = select_where<S, N>(sum > 0, sum, sum * slope);
        return Vector(factors.values[h.value][v.value] * activated);
      };
    });
  }

  static void weighted_sum(const Place& whole_place, const Lines& all_lines,
                           const Rows& all_gathered, const S* weights, const S* scales,
                           const LineSums& line_sums) {
    const Place place = whole_place;
    const Lines lines = all_lines;
    const Rows gathered = all_gathered;
    const LineSums sums = line_sums;
    for_lines(lines,
              [&](std::int64_t line, std::int64_t begin, std::int64_t count) TESSERA_INLINED {
                Block block = {};
                for (std::int64_t edge = begin; edge < begin + count; ++edge) {
                  const T* const from = gathered_row(gathered, lines, edge, place);
                  const S* const weight = weights + edge * place.heads + place.head;
                  each([&](auto h, auto v) TESSERA_INLINED {
                    block.values[h.value][v.value] +=
                        weight[h.value] * load_lanes<N>(from + head_start(place, h) + v.value * N);
                  });
                }
                if (scales != nullptr) {
                  const S* const scale = scales + line * place.heads + place.head;
                  each([&](auto h, auto v)
                           TESSERA_INLINED { block.values[h.value][v.value] *= scale[h.value]; });
                }
                keep_block(place, block, line, sums);
              });
  }

  template <bool WithActivated>
  TESSERA_INLINE void additive_sums(const Place place, const Lines lines, const Rows fixed,
                                    const Rows gathered, const S* grads, const S* vector, S slope,
                                    const LineSums sums, S* activated_sums) {
    const Vector ones = Vector{} + S{1};
    const Vector slopes = Vector{} + slope;
    for_lines(lines,
              [&](std::int64_t line, std::int64_t begin, std::int64_t count) TESSERA_INLINED {
                const Block block = load_block(place, fixed_row(fixed, lines, line));
                Block derivative_total = {};
                Block activated_total = {};
                for (std::int64_t edge = begin; edge < begin + count; ++edge) {
                  const T* const from = gathered_row(gathered, lines, edge, place);
                  const S* const grad = grads + edge * place.heads + place.head;
                  each([&](auto h, auto v) TESSERA_INLINED {
                    const Vector sum = block.values[h.value][v.value] +
                                       load_lanes<N>(from + head_start(place, h) + v.value * N);
                    // Both products are formed in one step with their sums, so that one does not
                    // depend on whether the other is wanted.
                    const Vector slope_here = select_where<S, N>(sum > 0, ones, slopes);
                    derivative_total.values[h.value][v.value] += grad[h.value] * slope_here;
                    if constexpr (WithActivated) {
                      const Vector activated = slope_here * sum;
                      activated_total.values[h.value][v.value] += grad[h.value] * activated;
                    }
                  });
                }
                if constexpr (WithActivated) add_block(place, activated_total, activated_sums);
                if (!wanted(sums)) return;
                const Block factors = load_block(place, vector);
                each([&](auto h, auto v) TESSERA_INLINED {
                  derivative_total.values[h.value][v.value] *= factors.values[h.value][v.value];
                });
                keep_block(place, derivative_total, line, sums);
              });
  }

  static void additive_backward(const Place& place, const Lines& lines, const Rows& fixed,
                                const Rows& gathered, const S* grads, const S* vector, S slope,
                                const LineSums& sums, S* activated_sums) {
    if (activated_sums == nullptr) {
      additive_sums<false>(place, lines, fixed, gathered, grads, vector, slope, sums, nullptr);
    } else {
      additive_sums<true>(place, lines, fixed, gathered, grads, vector, slope, sums,
                          activated_sums);
    }
  }
};

template <class S, int N>
void sum_partials_of(const S* partial, std::int64_t size, S* sums) {
  for (std::int64_t k = 0; k < size; k += N) {
    Lanes<S, N> vectors[N];
    unrolled<N>([&](auto i) TESSERA_INLINED {
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
