// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/attention/fused.hpp"
#include "ops/attention/strips.hpp"
#include "ops/simd/dropout.hpp"
#include "ops/simd/heads.hpp"

/// What forward and backward do with one block of a line's edges: gather, score, drop, sum.
namespace tessera::ops::TESSERA_ISA::attention {

using fused::Gathered;
using fused::Line;
using fused::Problem;
using fused::Rows;
using fused::Scratch;
using fused::SumOf;

inline constexpr double infinity = __builtin_inf();

template <class S>
TESSERA_INLINE void fill(S* values, std::int64_t count, S value) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
}

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

/// values *= by.
template <class S>
TESSERA_INLINE void multiply(std::int64_t size, const S* by, S* values) {
  for (std::int64_t k = 0; k < size; k += lanes<S>) {
    store_full(values + k, FullVector<S>(load_full(values + k) * load_full(by + k)));
  }
}

/// Edges [begin, begin + block_edges) of a line, or those that are left.
template <class T>
TESSERA_INLINE Gathered<T> block_of(const Problem<T>& p, const Line& line, std::int64_t begin,
                                    const Rows<T>& rows) {
  const std::int64_t left = line.count - begin;
  return {rows, line.others + begin, left < p.block_edges ? left : p.block_edges,
          line.readable - begin};
}

/// Asks for the rows of edges that come after a block; most fit one cache line. Loops over features
/// ask for theirs themselves.
template <class T>
TESSERA_INLINE void prefetch_ahead(const Gathered<T>& block) {
  constexpr std::int64_t ahead = 32;
  const std::int64_t end = block.count + ahead;
  for (std::int64_t b = ahead; b < (end < block.readable ? end : block.readable); ++b) {
    __builtin_prefetch(block.rows.data +
                       static_cast<std::int64_t>(block.ids[b]) * block.rows.stride);
  }
}

/// What belongs to the line's own vertex, loaded once per line.
template <class T, class S>
void load_fixed_scores(const Problem<T>& p, const Rows<T>& rows, std::int64_t vertex,
                       const Scratch<S>& scratch) {
  load_row(rows.data + vertex * rows.stride, p.score_cols, scratch.fixed_scores);
  if (p.form == AttentionForm::gat) {
    make_tile(scratch.fixed_scores, p.heads, scratch.score_tile);
  } else if (p.form == AttentionForm::gatv2) {
    load_row(p.vector, p.features, scratch.vector);
  }
}

/// Runs `strip(functions, place, to)` for all strips, which leave sums of each edge and head, or
/// parts of them, at `to`; finishes them into `sums`. Heads without features sum to nothing.
template <class T, class S, class RunStrip>
TESSERA_INLINE void sum_strips(const Problem<T>& p, std::int64_t size, const Scratch<S>& scratch,
                               S* sums, RunStrip&& strip) {
  if (p.num_strips == 0) return fill(sums, size, S{0});
  const bool finished = p.strips[0].place.sums_lanes;
  for (std::int64_t i = 0; i < p.num_strips; ++i) {
    strip(*p.strips[i].functions, p.strips[i].place, finished ? sums : scratch.partial);
  }
  if (!finished) sum_partials(scratch.partial, p.partial_lanes, size, sums);
}

/// Dot products, head by head, of the fixed features with those of every gathered row.
template <class T, class S>
void dot_products(const Problem<T>& p, const Gathered<T>& gathered, const S* fixed,
                  const Scratch<S>& scratch, S* products) {
  sum_strips(p, gathered.count * p.heads, scratch, products,
             [&](const auto& functions, const auto& place, S* to) {
               functions.dot(place, gathered, fixed, to);
             });
}

/// sums += weights * gathered rows, head by head.
template <class T, class S>
TESSERA_INLINE void add_weighted_rows(const Problem<T>& p, const Gathered<T>& gathered,
                                      const S* weights, S* sums) {
  for (std::int64_t i = 0; i < p.num_strips; ++i) {
    p.strips[i].functions->weighted_sum(p.strips[i].place, gathered, weights, sums);
  }
}

/// What scores are made of, of every edge and head: gathered numbers (gat, into `activations`),
/// dot products (dot, into `activations` and scaled into `scores`) or sums (gatv2, into `scores`).
template <class T, class S>
void prepare_scores(const Problem<T>& p, const Gathered<T>& gathered, const Scratch<S>& scratch) {
  const std::int64_t size = gathered.count * p.heads;
  if (p.form == AttentionForm::gat) {
    prefetch_ahead(gathered);
    gather_heads(gathered.rows.data, gathered.rows.stride, gathered.ids, gathered.count, p.heads,
                 scratch.activations);
  } else if (p.form == AttentionForm::dot) {
    dot_products(p, gathered, scratch.fixed_scores, scratch, scratch.activations);
    for (std::int64_t k = 0; k < size; ++k) scratch.scores[k] = p.scale * scratch.activations[k];
  } else {
    sum_strips(
        p, size, scratch, scratch.scores, [&](const auto& functions, const auto& place, S* to) {
          functions.additive(place, gathered, scratch.fixed_scores, scratch.vector, p.slope, to);
        });
  }
}

/// Dropout factors of edges that do not follow each other in CSR: the counters of all of them are
/// drawn together.
template <class T, class S>
void scattered_factors(const Problem<T>& p, const EdgeOffset* positions, std::int64_t edges,
                       const Scratch<S>& scratch) {
  const auto heads = static_cast<std::uint64_t>(p.heads);
  std::int64_t count = 0;
  for (std::int64_t b = 0; b < edges; ++b) {
    const std::uint64_t first = static_cast<std::uint64_t>(positions[b]) * heads;
    for (std::uint64_t c = first / 4; c <= (first + heads - 1) / 4; ++c) {
      scratch.counters[count++] = c;
    }
  }
  for (; count % philox_batch != 0; ++count) scratch.counters[count] = 0;
  for (std::int64_t c = 0; c < count; c += philox_batch) {
    philox_words(p.dropout, scratch.counters + c, scratch.words + 4 * c);
  }
  const auto kept = static_cast<S>(p.dropout.kept_factor);
  const std::uint32_t* words = scratch.words;
  for (std::int64_t b = 0; b < edges; ++b) {
    const std::uint64_t first = static_cast<std::uint64_t>(positions[b]) * heads;
    const std::uint32_t* const own = words + first % 4;
    for (std::int64_t h = 0; h < p.heads; ++h) {
      scratch.factors[b * p.heads + h] = own[h] >= p.dropout.threshold ? kept : S{0};
    }
    words += 4 * ((first + heads - 1) / 4 - first / 4 + 1);
  }
}

/// Dropout factors of edges [begin, begin + edges) of a line.
template <class T, class S>
void block_factors(const Problem<T>& p, const Line& line, std::int64_t begin, std::int64_t edges,
                   const Scratch<S>& scratch) {
  if (line.positions == nullptr) {
    const auto first = static_cast<std::uint64_t>((line.first_position + begin) * p.heads);
    dropout_factors(p.dropout, first, edges * p.heads, scratch.factors);
  } else {
    scattered_factors(p, line.positions + begin, edges, scratch);
  }
}

}  // namespace tessera::ops::TESSERA_ISA::attention
