// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/blocks.hpp"

/// The backward pass over lines: rows for what belongs to targets, columns for what belongs to
/// sources. The weights are computed again from the scores and each row's log_sum.
namespace tessera::ops::TESSERA_ISA::attention {

using fused::LineGradients;

/// Weights P = exp(score - log_sum), and from dP (in `grads`) the gradients of the scores,
/// P (dP - dO . O), into `grads`. For gat the latter go on through leaky_relu, and their sums are
/// added to `per_head`. A row's own state comes from tiles, that of gathered rows from arrays.
template <bool Gat, bool ByRows, class T, class S>
void edge_gradients(const Problem<T>& p, std::int64_t edges, const Scratch<S>& scratch,
                    S* per_head) {
  const S slope = p.slope;
  const S* const from = Gat ? scratch.activations : scratch.scores;
  const S* const score_tile = scratch.score_tile;
  const S* const log_sums = ByRows ? scratch.max_tile : scratch.log_sums;
  const S* const dots = ByRows ? scratch.dot_tile : scratch.dots;
  S* const weights = scratch.weights;
  S* const grads = scratch.grads;
  using Vector = FullVector<S>;
  map_heads<Add>(edges, p.heads, grads, per_head, [=](std::int64_t offset) {
    const Vector fixed = Gat ? load_full(score_tile + offset) : Vector{};
    const Vector own_log_sum = ByRows ? load_full(log_sums + offset) : Vector{};
    const Vector own_dot = ByRows ? load_full(dots + offset) : Vector{};
    return [=](std::int64_t k) __attribute__((always_inline)) {
      Vector score = load_full(from + k);
      Vector derivative = Vector{} + S{1};
      if constexpr (Gat) {
        const Vector sum = score + fixed;
        derivative = select_where<S, lanes<S>>(sum > 0, derivative, Vector{} + slope);
        score = sum * derivative;
      }
      const Vector log_sum = ByRows ? own_log_sum : load_full(log_sums + k);
      const Vector dot = ByRows ? own_dot : load_full(dots + k);
      const Vector weight = exp_lanes<S, lanes<S>>(score - log_sum);
      store_full(weights + k, weight);
      Vector grad = weight * (load_full(grads + k) - dot);
      if constexpr (Gat) grad *= derivative;
      store_full(grads + k, grad);
      return grad;
    };
  });
}

template <class T, class S>
void edge_gradients(const Problem<T>& p, bool by_rows, std::int64_t edges,
                    const Scratch<S>& scratch, S* per_head) {
  if (p.form == AttentionForm::gat) {
    by_rows ? edge_gradients<true, true>(p, edges, scratch, per_head)
            : edge_gradients<true, false>(p, edges, scratch, per_head);
  } else {
    by_rows ? edge_gradients<false, true>(p, edges, scratch, per_head)
            : edge_gradients<false, false>(p, edges, scratch, per_head);
  }
}

/// Sends the gradients of a block's scores on to the fixed vertex's features, the vector and the
/// scale. (For gat, `edge_gradients` has done so.)
template <class T, class S>
void score_backward(const Problem<T>& p, const Gathered<T>& gathered,
                    const LineGradients<S>& gradients, const Scratch<S>& scratch) {
  const std::int64_t size = gathered.count * p.heads;
  if (p.form == AttentionForm::dot) {
    if (gradients.scale != nullptr) {
      S sum = 0;
      for (std::int64_t k = 0; k < size; ++k) sum += scratch.grads[k] * scratch.activations[k];
      *gradients.scale += static_cast<double>(sum);
    }
    if (gradients.scores == nullptr) return;
    for (std::int64_t k = 0; k < size; ++k) scratch.grads[k] *= p.scale;
    add_weighted_rows(p, gathered, scratch.grads, gradients.scores);
  } else if (p.form == AttentionForm::gatv2) {
    S* const activated = gradients.vector == nullptr ? nullptr : scratch.activated_sums;
    for (std::int64_t i = 0; i < p.num_strips; ++i) {
      p.strips[i].functions->additive_backward(p.strips[i].place, gathered, scratch.fixed_scores,
                                               scratch.grads, p.slope, gradients.scores, activated);
    }
  }
}

/// Loads what backward needs of the rows' states: of the fixed row once, or of a block's rows.
template <class T, class S>
void load_fixed_state(const Problem<T>& p, std::int64_t row, const Scratch<S>& scratch) {
  const S* const state = p.row_state + row * 2 * p.heads;
  make_tile(state, p.heads, scratch.max_tile);
  make_tile(state + p.heads, p.heads, scratch.dot_tile);
}
template <class T, class S>
void gather_state(const Problem<T>& p, const Gathered<T>& block, const Scratch<S>& scratch) {
  const std::int64_t stride = 2 * p.heads;
  prefetch_ahead(Gathered<S>{{p.row_state, stride}, block.ids, block.count, block.readable});
  gather_heads(p.row_state, stride, block.ids, block.count, p.heads, scratch.log_sums);
  gather_heads(p.row_state + p.heads, stride, block.ids, block.count, p.heads, scratch.dots);
}

/// What a line reads: its own vertex's rows, and those at the other ends.
template <class T>
struct Sides {
  Sides(const Problem<T>& p, bool by_rows)
      : fixed_scores(by_rows ? p.target : p.source),
        gathered_scores(by_rows ? p.source : p.target),
        fixed_values(by_rows ? p.grad_output : p.value),
        gathered_values(by_rows ? p.value : p.grad_output) {}
  Rows<T> fixed_scores, gathered_scores, fixed_values, gathered_values;
};

/// One block: weights, gradients of scores, and what they are summed into.
template <class T, class S>
void backward_block(const Problem<T>& p, const Line& line, std::int64_t begin, bool by_rows,
                    const Sides<T>& sides, const LineGradients<S>& sums,
                    const Scratch<S>& scratch) {
  const Gathered<T> scores = block_of(p, line, begin, sides.gathered_scores);
  const Gathered<T> values = block_of(p, line, begin, sides.gathered_values);
  const std::int64_t size = values.count * p.heads;
  const bool wants_scores = sums.scores != nullptr || sums.scale != nullptr;
  prepare_scores(p, scores, scratch);
  if (!by_rows) gather_state(p, values, scratch);
  if (p.drops) block_factors(p, line, begin, values.count, scratch);
  if (wants_scores) {
    dot_products(p, values, scratch.fixed_values, scratch, scratch.grads);
    if (p.drops) multiply(size, scratch.factors, scratch.grads);
  } else {
    fill(scratch.grads, size, S{0});
  }
  const bool sums_heads = p.form == AttentionForm::gat && sums.scores != nullptr;
  edge_gradients(p, by_rows, values.count, scratch,
                 sums_heads ? sums.scores : scratch.head_numbers);
  if (wants_scores) score_backward(p, scores, sums, scratch);
  if (sums.values == nullptr) return;
  if (p.drops) multiply(size, scratch.factors, scratch.weights);
  Gathered<T> again = values;
  if (wants_scores) again.readable = 0;  // the dot products have asked for what comes next
  add_weighted_rows(p, again, scratch.weights, sums.values);
}

template <class T>
void backward(const Problem<T>& p, const Line& line, bool by_rows,
              const LineGradients<SumOf<T>>& gradients, const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const Sides<T> sides(p, by_rows);
  LineGradients<S> sums = gradients;
  // The vector's gradient comes out of the same loop as the scores'.
  if (gradients.vector != nullptr && gradients.scores == nullptr) sums.scores = scratch.sums;
  if (sums.scores != nullptr) fill(sums.scores, p.score_cols, S{0});
  if (sums.values != nullptr) fill(sums.values, p.features, S{0});
  if (sums.vector != nullptr) fill(scratch.activated_sums, p.features, S{0});
  load_fixed_scores(p, sides.fixed_scores, line.vertex, scratch);
  load_row(sides.fixed_values.data + line.vertex * sides.fixed_values.stride, p.features,
           scratch.fixed_values);
  if (by_rows) load_fixed_state(p, line.vertex, scratch);
  for (std::int64_t begin = 0; begin < line.count; begin += p.block_edges) {
    backward_block(p, line, begin, by_rows, sides, sums, scratch);
  }
  if (p.form == AttentionForm::gatv2 && gradients.scores != nullptr) {
    for (std::int64_t f = 0; f < p.features; ++f) gradients.scores[f] *= scratch.vector[f];
  }
  if (gradients.vector != nullptr) {
    for (std::int64_t f = 0; f < p.features; ++f) {
      gradients.vector[f] += static_cast<double>(scratch.activated_sums[f]);
    }
  }
}

template <class T>
void row_state(const Problem<T>& p, const Rows<T>& output, VertexId row, const SumOf<T>* log_sum,
               SumOf<T>* state, const Scratch<SumOf<T>>& scratch) {
  load_row(p.grad_output.data + row * p.grad_output.stride, p.features, scratch.fixed_values);
  dot_products(p, Gathered<T>{output, &row, 1, 1}, scratch.fixed_values, scratch, scratch.grads);
  for (std::int64_t h = 0; h < p.heads; ++h) {
    state[h] = log_sum[h];
    state[p.heads + h] = scratch.grads[h];
  }
}

template <class T>
void weights(const Problem<T>& p, const Line& line, const SumOf<T>* log_sum, T* to,
             std::int64_t stride, const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  load_fixed_scores(p, p.target, line.vertex, scratch);
  make_tile(log_sum, p.heads, scratch.max_tile);
  fill(scratch.dot_tile, p.heads + lanes<S>, S{0});
  for (std::int64_t begin = 0; begin < line.count; begin += p.block_edges) {
    const Gathered<T> block = block_of(p, line, begin, p.source);
    prepare_scores(p, block, scratch);
    fill(scratch.grads, block.count * p.heads, S{0});
    edge_gradients(p, true, block.count, scratch, scratch.head_numbers);
    for (std::int64_t b = 0; b < block.count; ++b) {
      store_row<T>(scratch.weights + b * p.heads, p.heads, to + (begin + b) * stride);
    }
  }
}

}  // namespace tessera::ops::TESSERA_ISA::attention
