// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/blocks.hpp"

/// The forward pass over rows: a running maximum, block by block.
namespace tessera::ops::TESSERA_ISA::attention {

using fused::RowSums;

/// Scores of a block, and the largest of each head, where it is above what `max` holds, into `max`.
template <class T, class S>
void block_scores(const Problem<T>& p, const Gathered<T>& gathered, const Scratch<S>& scratch,
                  S* max) {
  prepare_scores(p, gathered, scratch);
  const bool gat = p.form == AttentionForm::gat;
  const S slope = p.slope;
  const S* const from = gat ? scratch.activations : scratch.scores;
  S* const scores = scratch.scores;
  const S* const tile = scratch.score_tile;
  map_heads<Max>(gathered.count, p.heads, scores, max, [=](std::int64_t offset) {
    const FullVector<S> fixed = gat ? load_full(tile + offset) : FullVector<S>{};
    return [=](std::int64_t k) __attribute__((always_inline)) {
      FullVector<S> score = load_full(from + k);
      if (gat) {
        const FullVector<S> sum = score + fixed;
        score = select_where<S, lanes<S>>(sum > 0, sum, sum * slope);
        store_full(scores + k, score);
      }
      return score;
    };
  });
}

/// weights = exp(scores - max), and their sums, added to what `sum` holds. What is subtracted where
/// all scores are -inf is 0: their weights are then 0, unless the whole row is so, which divides 0
/// by 0, as the reference does.
template <class T, class S>
void block_exponentials(const Problem<T>& p, std::int64_t edges, const S* max,
                        const Scratch<S>& scratch, S* sum) {
  S* const numbers = scratch.head_numbers;
  for (std::int64_t h = 0; h < p.heads; ++h) {
    numbers[h] = max[h] > static_cast<S>(-infinity) ? max[h] : S{0};
  }
  make_tile(numbers, p.heads, scratch.max_tile);
  const S* const scores = scratch.scores;
  const S* const tile = scratch.max_tile;
  S* const weights = scratch.weights;
  map_heads<Add>(edges, p.heads, weights, sum, [=](std::int64_t offset) {
    const FullVector<S> subtracted = load_full(tile + offset);
    return [=](std::int64_t k) __attribute__((always_inline)) {
      const FullVector<S> weight = exp_lanes<S, lanes<S>>(load_full(scores + k) - subtracted);
      store_full(weights + k, weight);
      return weight;
    };
  });
}

/// log_sum = max + log(sum).
template <class S>
void store_log_sum(const S* max, const S* sum, std::int64_t heads, S* log_sum) {
  constexpr int n = lanes<S>;
  std::int64_t h = 0;
  for (; h + n <= heads; h += n) {
    store_full(log_sum + h,
               FullVector<S>(load_full(max + h) + log_lanes<S, n>(load_full(sum + h))));
  }
  for (; h < heads; ++h) log_sum[h] = max[h] + log_lanes<S, 1>(sum[h]);
}

/// Scales what was summed with the maximum `before` to the present one.
template <class T, class S>
void raise_max(const Problem<T>& p, const S* before, const RowSums<S>& sums) {
  for (std::int64_t h = 0; h < p.heads; ++h) {
    // Nothing was summed while the maximum was -inf.
    if (!(sums.max[h] > before[h]) || before[h] == static_cast<S>(-infinity)) continue;
    const S factor = exp_lanes<S, 1>(before[h] - sums.max[h]);
    sums.sum[h] *= factor;
    for (std::int64_t f = h * p.width; f < (h + 1) * p.width; ++f) sums.features[f] *= factor;
  }
}

template <class T>
void forward(const Problem<T>& p, const Line& line, const RowSums<SumOf<T>>& sums,
             const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  fill(sums.features, p.features, S{0});
  fill(sums.max, p.heads, static_cast<S>(-infinity));
  fill(sums.sum, p.heads, S{0});
  load_fixed_scores(p, p.target, line.vertex, scratch);
  for (std::int64_t begin = 0; begin < line.count; begin += p.block_edges) {
    const Gathered<T> values = block_of(p, line, begin, p.value);
    S* const before = scratch.fixed_values;
    for (std::int64_t h = 0; h < p.heads; ++h) before[h] = sums.max[h];
    block_scores(p, block_of(p, line, begin, p.source), scratch, sums.max);
    raise_max(p, before, sums);
    block_exponentials(p, values.count, sums.max, scratch, sums.sum);
    if (p.drops) {
      block_factors(p, line, begin, values.count, scratch);
      multiply(values.count * p.heads, scratch.factors, scratch.weights);
    }
    add_weighted_rows(p, values, scratch.weights, sums.features);
  }
}

template <class T>
void merge(const Problem<T>& p, const RowSums<SumOf<T>>& piece, const RowSums<SumOf<T>>& total) {
  using S = SumOf<T>;
  const auto lowest = static_cast<S>(-infinity);
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const S max = piece.max[h] > total.max[h] ? piece.max[h] : total.max[h];
    // Where nothing but -inf was seen there is nothing to scale.
    const S of_piece = piece.max[h] > lowest ? exp_lanes<S, 1>(piece.max[h] - max) : S{1};
    const S of_total = total.max[h] > lowest ? exp_lanes<S, 1>(total.max[h] - max) : S{1};
    total.max[h] = max;
    total.sum[h] = total.sum[h] * of_total + piece.sum[h] * of_piece;
    for (std::int64_t f = h * p.width; f < (h + 1) * p.width; ++f) {
      total.features[f] = total.features[f] * of_total + piece.features[f] * of_piece;
    }
  }
}

template <class T>
void finish(const Problem<T>& p, const RowSums<SumOf<T>>& sums, T* output, SumOf<T>* log_sum) {
  using S = SumOf<T>;
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const S reciprocal = S{1} / sums.sum[h];
    for (std::int64_t f = h * p.width; f < (h + 1) * p.width; ++f) sums.features[f] *= reciprocal;
  }
  store_row<T>(sums.features, p.features, output);
  if (log_sum != nullptr) store_log_sum(sums.max, sums.sum, p.heads, log_sum);
}

}  // namespace tessera::ops::TESSERA_ISA::attention
