// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ops/attention/blocks.hpp"

/// The backward pass over lines: rows for what belongs to targets, columns for what belongs to
/// sources. The weights are computed again from the scores and each row's log_sum.
namespace tessera::ops::TESSERA_ISA::attention {

using fused::LineGradients;

/// For one line, whose numbers begin at `first` in the block's arrays: weights P = exp(score -
/// log_sum), and from dP (in `products`) the gradients of the scores, P (dP - dO . O), into
/// `grads`. For gat the latter go on through leaky_relu, and their sums are added to `per_head`. A
/// row's own state comes from tiles, that of gathered rows from arrays.
template <bool Gat, bool ByRows, class T, class S>
TESSERA_INLINE void line_gradients(const Problem<T>& p, std::int64_t first, std::int64_t edges,
                                   const Scratch<S>& scratch, S* per_head) {
  const S slope = p.slope;
  const S* const from = (Gat ? scratch.activations : scratch.scores) + first;
  const S* const score_tile = scratch.score_tile;
  const S* const log_sums = ByRows ? scratch.max_tile : scratch.log_sums + first;
  const S* const dots = ByRows ? scratch.dot_tile : scratch.dots + first;
  const S* const products = scratch.products + first;
  S* const weights = scratch.weights + first;
  S* const grads = scratch.grads + first;
  using Vector = FullVector<S>;
  map_heads<Add>(edges, p.heads, grads, per_head, [=](std::int64_t offset) TESSERA_INLINED {
    const Vector fixed = Gat ? load_full(score_tile + offset) : Vector{};
    const Vector own_log_sum = ByRows ? load_full(log_sums + offset) : Vector{};
    const Vector own_dot = ByRows ? load_full(dots + offset) : Vector{};
    return [=](std::int64_t k) TESSERA_INLINED {
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
      Vector grad = weight * (load_full(products + k) - dot);
      if constexpr (Gat) grad *= derivative;
      store_full(grads + k, grad);
      return grad;
    };
  });
}

/// The same of all lines of a block; the sums of each are added to `per_head[line]`.
template <bool Gat, bool ByRows, class T, class S>
void edge_gradients(const Problem<T>& p, const Lines& block, const Rows<T>& fixed_scores,
                    const Scratch<S>& scratch, S* per_head) {
  for_lines(block, [&](std::int64_t line, std::int64_t begin, std::int64_t edges) TESSERA_INLINED {
    if constexpr (Gat) {
      make_tile(fixed_row(fixed_scores, block, line), p.heads, scratch.score_tile);
    }
    if constexpr (ByRows) {
      const S* const state = p.row_state + (block.vertex + line) * 2 * p.heads;
      make_tile(state, p.heads, scratch.max_tile);
      make_tile(state + p.heads, p.heads, scratch.dot_tile);
    }
    line_gradients<Gat, ByRows>(p, begin * p.heads, edges, scratch, per_head + line * p.heads);
  });
}

template <class T, class S>
void edge_gradients(const Problem<T>& p, bool by_rows, const Lines& block,
                    const Rows<T>& fixed_scores, const Scratch<S>& scratch, S* per_head) {
  if (p.form == AttentionForm::gat) {
    by_rows ? edge_gradients<true, true>(p, block, fixed_scores, scratch, per_head)
            : edge_gradients<true, false>(p, block, fixed_scores, scratch, per_head);
  } else {
    by_rows ? edge_gradients<false, true>(p, block, fixed_scores, scratch, per_head)
            : edge_gradients<false, false>(p, block, fixed_scores, scratch, per_head);
  }
}

/// Sends the gradients of a block's scores on to the lines' own rows, the vector and the scale.
template <class T, class S>
void score_backward(const Problem<T>& p, const Lines& block, const Rows<T>& fixed,
                    const Rows<T>& gathered, const LineGradients<T>& gradients,
                    const Scratch<S>& scratch) {
  const std::int64_t size = block.count * p.heads;
  if (p.form == AttentionForm::gat) {
    // `edge_gradients` has done it, or has added to the sums of a long line.
    for (std::int64_t line = 0; line < block.num_lines && gradients.scores.rows != nullptr;
         ++line) {
      store_row<T>(scratch.line_sums + line * p.heads, p.heads,
                   gradients.scores.rows + line * gradients.scores.stride);
    }
  } else if (p.form == AttentionForm::dot) {
    if (gradients.scale != nullptr) {
      S sum = 0;
      for (std::int64_t k = 0; k < size; ++k) sum += scratch.grads[k] * scratch.activations[k];
      *gradients.scale += static_cast<double>(sum);
    }
    if (!wanted(gradients.scores)) return;
    for (std::int64_t k = 0; k < size; ++k) scratch.grads[k] *= p.scale;
    sum_weighted_rows<T, S>(p, block, gathered, scratch.grads, nullptr, gradients.scores);
  } else {
    S* const activated = gradients.vector == nullptr ? nullptr : scratch.activated_sums;
    for (std::int64_t i = 0; i < p.num_slices; ++i) {
      p.slices[i].functions->additive_backward(p.slices[i].place, block, fixed, gathered,
                                               scratch.grads, scratch.vector, p.slope,
                                               gradients.scores, activated);
    }
  }
}

/// Loads what backward needs of the states of gathered rows.
template <class T, class S>
void gather_state(const Problem<T>& p, const Lines& block, const Scratch<S>& scratch) {
  const std::int64_t stride = 2 * p.heads;
  prefetch_ahead(block, Rows<S>{p.row_state, stride});
  gather_heads(p.row_state, stride, block.others, block.count, p.heads, scratch.log_sums);
  gather_heads(p.row_state + p.heads, stride, block.others, block.count, p.heads, scratch.dots);
}

/// Leaves the gradients of a block's scores where rows find them.
template <class T, class S>
void keep_gradients(const Problem<T>& p, const Lines& block, const Scratch<S>& scratch) {
  for (std::int64_t b = 0; b < block.count; ++b) {
    load_row(scratch.grads + b * p.heads, p.heads, p.edge_gradients + block.positions[b] * p.heads);
  }
}

template <class T>
void sum_edges(const SumOf<T>* numbers, std::int64_t edges, std::int64_t heads, SumOf<T>* sums) {
  using S = SumOf<T>;
  constexpr int n = lanes<S>;
  if (heads % n == 0) {
    for (std::int64_t h = 0; h < heads; h += n) {
      FullVector<S> total = {};
      for (std::int64_t e = 0; e < edges; ++e) total += load_full(numbers + e * heads + h);
      store_full(sums + h, total);
    }
    return;
  }
  fill(sums, heads, S{0});
  for (std::int64_t e = 0; e < edges; ++e) {
    for (std::int64_t h = 0; h < heads; ++h) sums[h] += numbers[e * heads + h];
  }
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
void backward_block(const Problem<T>& p, const Lines& block, bool by_rows, const Sides<T>& sides,
                    const LineGradients<T>& gradients, const Scratch<S>& scratch) {
  const std::int64_t size = block.count * p.heads;
  const bool wants_scores = wanted(gradients.scores) || gradients.vector != nullptr ||
                            gradients.scale != nullptr || p.edge_gradients != nullptr;
  prepare_scores(p, block, sides.fixed_scores, sides.gathered_scores, scratch);
  if (!by_rows) gather_state(p, block, scratch);
  if (p.drops) factors_again(p, block, scratch);
  if (wants_scores) {
    dot_products(p, block, sides.fixed_values, sides.gathered_values, scratch, scratch.products);
    if (p.drops) multiply(size, scratch.factors, scratch.products);
  } else {
    fill(scratch.products, size, S{0});
  }
  const bool adds = p.form == AttentionForm::gat && gradients.scores.sums != nullptr;
  if (!adds) fill(scratch.line_sums, block.num_lines * p.heads, S{0});
  edge_gradients(p, by_rows, block, sides.fixed_scores, scratch,
                 adds ? gradients.scores.sums : scratch.line_sums);
  if (p.edge_gradients != nullptr) keep_gradients(p, block, scratch);
  if (wants_scores) {
    score_backward(p, block, sides.fixed_scores, sides.gathered_scores, gradients, scratch);
  }
  if (!wanted(gradients.values)) return;
  if (p.drops) multiply(size, scratch.factors, scratch.weights);
  Lines again = block;
  if (wants_scores) again.readable = 0;  // the dot products have asked for what comes next
  sum_weighted_rows<T, S>(p, again, sides.gathered_values, scratch.weights, nullptr,
                          gradients.values);
}

template <class T>
void backward(const Problem<T>& p, const Lines& lines, bool by_rows,
              const LineGradients<T>& gradients, const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  const Sides<T> sides(p, by_rows);
  if (gradients.scores.sums != nullptr) fill(gradients.scores.sums, p.score_cols, S{0});
  if (gradients.values.sums != nullptr) fill(gradients.values.sums, p.features, S{0});
  if (gradients.vector != nullptr) fill(scratch.activated_sums, p.features, S{0});
  load_vector(p, scratch);
  for_line_blocks(p, lines, [&](const Lines& block) {
    backward_block(p, block, by_rows, sides, gradients, scratch);
  });
  if (gradients.vector != nullptr) {
    for (std::int64_t f = 0; f < p.features; ++f) {
      gradients.vector[f] += static_cast<double>(scratch.activated_sums[f]);
    }
  }
}

template <class T>
void row_state(const Problem<T>& p, const Rows<T>& output, VertexId first, std::int64_t count,
               const Rows<SumOf<T>>& log_sum, SumOf<T>* state, const Scratch<SumOf<T>>& scratch) {
  // Each row is a line whose only edge leads to its own output.
  VertexId ids[fused::max_block_edges];
  EdgeOffset offsets[fused::max_block_edges + 1];
  for (std::int64_t i = 0; i < count; ++i) ids[i] = first + static_cast<VertexId>(i);
  for (std::int64_t i = 0; i <= count; ++i) offsets[i] = i;
  const Lines rows = {first, count, offsets, ids, count, count};
  dot_products(p, rows, p.grad_output, output, scratch, scratch.products);
  for (std::int64_t i = 0; i < count; ++i) {
    SumOf<T>* const to = state + i * 2 * p.heads;
    load_row(log_sum.data + (first + i) * log_sum.stride, p.heads, to);
    load_row(scratch.products + i * p.heads, p.heads, to + p.heads);
  }
}

template <class T>
void weights(const Problem<T>& p, const Lines& row, const SumOf<T>* log_sum, T* to,
             std::int64_t stride, const Scratch<SumOf<T>>& scratch) {
  using S = SumOf<T>;
  load_vector(p, scratch);
  for_line_blocks(p, row, [&](const Lines& block) {
    prepare_scores(p, block, p.target, p.source, scratch);
    if (p.form == AttentionForm::gat) {
      make_tile(fixed_row(p.target, block, 0), p.heads, scratch.score_tile);
    }
    make_tile(log_sum, p.heads, scratch.max_tile);
    fill(scratch.dot_tile, p.heads + lanes<S>, S{0});
    fill(scratch.products, block.count * p.heads, S{0});
    fill(scratch.line_sums, p.heads, S{0});
    p.form == AttentionForm::gat
        ? line_gradients<true, true>(p, 0, block.count, scratch, scratch.line_sums)
        : line_gradients<false, true>(p, 0, block.count, scratch, scratch.line_sums);
    for (std::int64_t b = 0; b < block.count; ++b, to += stride) {
      store_row<T>(scratch.weights + b * p.heads, p.heads, to);
    }
  });
}

}  // namespace tessera::ops::TESSERA_ISA::attention
