// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ops/attention/fused.hpp"
#include "ops/attention/slices.hpp"
#include "ops/simd/dropout.hpp"
#include "ops/simd/heads.hpp"

/// What forward and backward do with one block of edges: gather, score, drop, sum.
namespace tessera::ops::TESSERA_ISA::attention {

using fused::Lines;
using fused::LineSums;
using fused::Problem;
using fused::Rows;
using fused::Scratch;

template <class S>
TESSERA_INLINE void fill(S* values, std::int64_t count, S value) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
}

/// values *= by.
template <class S>
TESSERA_INLINE void multiply(std::int64_t size, const S* by, S* values) {
  for (std::int64_t k = 0; k < size; k += lanes<S>) {
    store_full(values + k, FullVector<S>(load_full(values + k) * load_full(by + k)));
  }
}

/// Calls body(block) for the blocks of some lines: all of several, which fit one together, or the
/// pieces of one line.
template <class T, class Body>
TESSERA_INLINE void for_line_blocks(const Problem<T>& p, const Lines& lines, Body&& body) {
  if (lines.num_lines > 1) return body(lines);
  std::int64_t begin = 0;
  do {
    const std::int64_t left = lines.count - begin;
    Lines block = lines;
    block.count = left < p.block_edges ? left : p.block_edges;
    const EdgeOffset offsets[2] = {0, block.count};
    block.offsets = offsets;
    block.others += begin;
    block.readable -= begin;
    block.first_position += begin;
    if (block.positions != nullptr) block.positions += begin;
    body(block);
    begin += block.count;
  } while (begin < lines.count);
}

/// Asks for the rows of edges that come after a block; most fit one cache line. Loops over features
/// ask for theirs themselves.
template <class T>
TESSERA_INLINE void prefetch_ahead(const Lines& block, const Rows<T>& rows) {
  constexpr std::int64_t ahead = 32;
  const std::int64_t end = block.count + ahead;
  for (std::int64_t b = ahead; b < (end < block.readable ? end : block.readable); ++b) {
    __builtin_prefetch(rows.data + static_cast<std::int64_t>(block.others[b]) * rows.stride);
  }
}

/// What all lines share, loaded before the first.
template <class T, class S>
TESSERA_INLINE void load_vector(const Problem<T>& p, const Scratch<S>& scratch) {
  if (p.form == AttentionForm::gatv2) load_row(p.vector, p.features, scratch.vector);
}

/// Runs `slice(functions, place, to)` for all slices, which leave sums of each edge and head, or
/// parts of them, at `to`; finishes them into `sums`. Heads without features sum to nothing.
template <class T, class S, class RunSlice>
TESSERA_INLINE void sum_slices(const Problem<T>& p, std::int64_t size, const Scratch<S>& scratch,
                               S* sums, RunSlice&& slice) {
  if (p.num_slices == 0) return fill(sums, size, S{0});
  const bool finished = p.slices[0].place.sums_lanes;
  for (std::int64_t i = 0; i < p.num_slices; ++i) {
    slice(*p.slices[i].functions, p.slices[i].place, finished ? sums : scratch.partial);
  }
  if (!finished) sum_partials(scratch.partial, p.partial_lanes, size, sums);
}

/// Dot products, head by head, of each line's own features with those of its gathered rows.
template <class T, class S>
void dot_products(const Problem<T>& p, const Lines& block, const Rows<T>& fixed,
                  const Rows<T>& gathered, const Scratch<S>& scratch, S* products) {
  sum_slices(p, block.count * p.heads, scratch, products,
             [&](const auto& functions, const auto& place, S* to) {
               functions.dot(place, block, fixed, gathered, to);
             });
}

/// The sums of each line's weights * gathered rows, head by head, times its `scales` unless null.
template <class T, class S>
TESSERA_INLINE void sum_weighted_rows(const Problem<T>& p, const Lines& block,
                                      const Rows<T>& gathered, const S* weights, const S* scales,
                                      const LineSums<T>& sums) {
  for (std::int64_t i = 0; i < p.num_slices; ++i) {
    p.slices[i].functions->weighted_sum(p.slices[i].place, block, gathered, weights, scales, sums);
  }
}

/// What scores are made of, of every edge and head: gathered numbers (gat, into `activations`),
/// dot products (dot, into `activations` and scaled into `scores`) or sums (gatv2, into `scores`).
template <class T, class S>
void prepare_scores(const Problem<T>& p, const Lines& block, const Rows<T>& fixed,
                    const Rows<T>& gathered, const Scratch<S>& scratch) {
  const std::int64_t size = block.count * p.heads;
  if (p.form == AttentionForm::gat) {
    prefetch_ahead(block, gathered);
    gather_heads(gathered.data, gathered.stride, block.others, block.count, p.heads,
                 scratch.activations);
  } else if (p.form == AttentionForm::dot) {
    dot_products(p, block, fixed, gathered, scratch, scratch.activations);
    for (std::int64_t k = 0; k < size; ++k) scratch.scores[k] = p.scale * scratch.activations[k];
  } else {
    sum_slices(p, size, scratch, scratch.scores,
               [&](const auto& functions, const auto& place, S* to) {
                 functions.additive(place, block, fixed, gathered, scratch.vector, p.slope, to);
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
    philox_words_at(p.dropout, scratch.counters + c, scratch.words + 4 * c);
  }
  if (heads % 4 == 0) {  // edges begin with a counter then
    return factors_of_words(p.dropout, scratch.words, edges * p.heads, scratch.factors);
  }
  const std::uint32_t* words = scratch.words;
  for (std::int64_t b = 0; b < edges; ++b) {
    const std::uint64_t first = static_cast<std::uint64_t>(positions[b]) * heads;
    factors_of_words(p.dropout, words + first % 4, p.heads, scratch.factors + b * p.heads);
    words += 4 * ((first + heads - 1) / 4 - first / 4 + 1);
  }
}

/// Dropout factors of a block's edges.
template <class T, class S>
void block_factors(const Problem<T>& p, const Lines& block, const Scratch<S>& scratch) {
  if (block.positions == nullptr) {
    const auto first = static_cast<std::uint64_t>(block.first_position * p.heads);
    dropout_factors(p.dropout, first, block.count * p.heads, scratch.factors);
  } else {
    scattered_factors(p, block.positions, block.count, scratch);
  }
}

/// A bit for each of eight factors that is not 0.
template <class S>
TESSERA_INLINE unsigned nonzero_bits(const S* factors) {
  constexpr int n = lanes<S> < 8 ? lanes<S> : 8;
  using Bits = Lanes<IndexOf<S>, n>;
  Bits bits = {};
  unrolled<8 / n>([&](auto part) TESSERA_INLINED {
    Bits of_lane;
    for (int i = 0; i < n; ++i) of_lane[i] = 1 << (part.value * n + i);
    bits |= (load_lanes<n>(factors + part.value * n) != S{0}) & of_lane;
  });
  return static_cast<unsigned>(horizontal_sum<IndexOf<S>, n>(bits));
}

/// Keeps which of a block's weights did not fall, for backward.
template <class T, class S>
void keep_bits(const Problem<T>& p, const Lines& block, const Scratch<S>& scratch) {
  const std::int64_t bytes = fused::kept_bytes(p.heads);
  std::uint8_t* to = p.kept + block.first_position * bytes;
  for (std::int64_t b = 0; b < block.count; ++b) {
    for (std::int64_t h = 0; h < p.heads; h += 8) {
      // What lies past the last head is never looked at.
      *to++ = static_cast<std::uint8_t>(nonzero_bits(scratch.factors + b * p.heads + h));
    }
  }
}

/// Dropout factors of a block's edges from what was kept, or drawn again.
template <class T, class S>
void factors_again(const Problem<T>& p, const Lines& block, const Scratch<S>& scratch) {
  if (p.kept == nullptr) return block_factors(p, block, scratch);
  const std::int64_t bytes = fused::kept_bytes(p.heads);
  for (std::int64_t b = 0; b < block.count; ++b) {
    const EdgeOffset position =
        block.positions == nullptr ? block.first_position + b : block.positions[b];
    const std::uint8_t* const kept = p.kept + position * bytes;
    S* const factors = scratch.factors + b * p.heads;
    // The last eight may reach past this edge, into what the next one writes.
    for (std::int64_t i = 0; i < bytes; ++i)
      load_row(p.byte_factors + 8 * kept[i], 8, factors + 8 * i);
  }
}

}  // namespace tessera::ops::TESSERA_ISA::attention
