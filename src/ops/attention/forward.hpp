// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/blocks.hpp"

/// The forward pass over rows: short ones together, long ones with a running maximum, block by
/// block.
namespace tessera::ops::TESSERA_ISA::attention {

using fused::RowSums;

/// Scores of a line's edges, and the largest of each head, where it is above what `max` holds, into
/// `max`. The line's numbers begin at `first` in the block's arrays.
template <class T, class S>
TESSERA_INLINE void line_scores(const Problem<T>& p, const T* fixed_scores, std::int64_t first,
                                std::int64_t edges, const Scratch<S>& scratch, S* max) {
  const bool gat = p.form == AttentionForm::gat;
  if (gat) make_tile(fixed_scores, p.heads, scratch.score_tile);
  const S slope = p.slope;
  const S* const from = (gat ? scratch.activations : scratch.scores) + first;
  S* const scores = scratch.scores + first;
  const S* const tile = scratch.score_tile;
  map_heads<Max>(edges, p.heads, scores, max, [=](std::int64_t offset) TESSERA_INLINED {
    const FullVector<S> fixed = gat ? load_full(tile + offset) : FullVector<S>{};
    return [=](std::int64_t k) TESSERA_INLINED {
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

/// Lets some weights fall to dropout.
template <class T, class S>
TESSERA_INLINE void drop_weights(const Problem<T>& p, const Lines& block,
                                 const Scratch<S>& scratch) {
  if (!p.drops) return;
  block_factors(p, block, scratch);
  if (p.kept != nullptr) keep_bits(p, block, scratch);
  multiply(block.count * p.heads, scratch.factors, scratch.weights);
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
void forward(const Problem<T>& p, const Lines& rows, const fused::RowResults<T>& results,
             const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const std::int64_t size = rows.num_lines * p.heads;
  fill(scratch.maxima, size, static_cast<S>(-infinity));
  fill(scratch.line_sums, size, S{0});
  load_vector(p, scratch);
  prepare_scores(p, rows, p.target, p.source, scratch);
  // One loop after the other: the exponentials of a row would wait for its maximum.
  for_lines(rows, [&](std::int64_t row, std::int64_t begin, std::int64_t edges) TESSERA_INLINED {
    line_scores(p, fixed_row(p.target, rows, row), begin * p.heads, edges, scratch,
                scratch.maxima + row * p.heads);
  });
  for_lines(rows, [&](std::int64_t row, std::int64_t begin, std::int64_t edges) TESSERA_INLINED {
    S* const sum = scratch.line_sums + row * p.heads;
    // So that dividing by it gives 0, and its log_sum is -inf.
    if (edges == 0) return fill(sum, p.heads, S{1});
    const std::int64_t first = begin * p.heads;
    exponentials(edges, p.heads, scratch.scores + first, scratch.maxima + row * p.heads,
                 scratch.max_tile, scratch.weights + first, sum);
  });
  for (std::int64_t k = 0; k < size; ++k) scratch.scales[k] = S{1} / scratch.line_sums[k];
  drop_weights(p, rows, scratch);
  sum_weighted_rows(p, rows, p.value, scratch.weights, scratch.scales,
                    {results.output, results.output_stride});
  if (results.log_sum == nullptr) return;
  for (std::int64_t row = 0; row < rows.num_lines; ++row) {
    store_log_sum(scratch.maxima + row * p.heads, scratch.line_sums + row * p.heads, p.heads,
                  results.log_sum + row * results.log_sum_stride);
  }
}

template <class T>
void forward_piece(const Problem<T>& p, const Lines& piece, const RowSums<SumOf<T>>& sums,
                   const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  fill(sums.features, p.features, S{0});
  fill(sums.max, p.heads, static_cast<S>(-infinity));
  fill(sums.sum, p.heads, S{0});
  load_vector(p, scratch);
  for_line_blocks(p, piece, [&](const Lines& block) {
    for (std::int64_t h = 0; h < p.heads; ++h) scratch.max_before[h] = sums.max[h];
    prepare_scores(p, block, p.target, p.source, scratch);
    line_scores(p, fixed_row(p.target, block, 0), 0, block.count, scratch, sums.max);
    raise_max(p, scratch.max_before, sums);
    exponentials(block.count, p.heads, scratch.scores, sums.max, scratch.max_tile, scratch.weights,
                 sums.sum);
    drop_weights(p, block, scratch);
    LineSums<T> features;
    features.sums = sums.features;
    sum_weighted_rows<T, S>(p, block, p.value, scratch.weights, nullptr, features);
  });
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
void finish(const Problem<T>& p, const RowSums<SumOf<T>>& sums,
            const fused::RowResults<T>& results) {
  using S = SumOf<T>;
  for (std::int64_t h = 0; h < p.heads; ++h) {
    const S reciprocal = S{1} / sums.sum[h];
    for (std::int64_t f = h * p.width; f < (h + 1) * p.width; ++f) sums.features[f] *= reciprocal;
  }
  store_row<T>(sums.features, p.features, results.output);
  if (results.log_sum != nullptr) store_log_sum(sums.max, sums.sum, p.heads, results.log_sum);
}

}  // namespace tessera::ops::TESSERA_ISA::attention
