// SPDX-License-Identifier: Apache-2.0
#include "ops/attention/fused.hpp"
#include "ops/attention/strips.hpp"
#include "ops/simd/dropout.hpp"
#include "ops/simd/heads.hpp"

namespace tessera::ops::TESSERA_ISA {
namespace {

using fused::Gathered;
using fused::Line;
using fused::LineGradients;
using fused::Problem;
using fused::Rows;
using fused::RowSums;
using fused::Scratch;

constexpr double infinity = __builtin_inf();

/// Asks for gathered rows while the scores are computed. Longer rows are read in order anyway.
template <class T>
void prefetch(const Gathered<T>& gathered, std::int64_t cols) {
  constexpr std::int64_t line = 64;
  constexpr std::int64_t max_bytes = 512;
  const std::int64_t bytes = cols * static_cast<std::int64_t>(sizeof(T));
  const std::int64_t wanted = bytes < max_bytes ? bytes : max_bytes;
  for (std::int64_t b = 0; b < gathered.count; ++b) {
    const auto* const row = reinterpret_cast<const char*>(
        gathered.rows.data + static_cast<std::int64_t>(gathered.ids[b]) * gathered.rows.stride);
    for (std::int64_t at = 0; at < wanted; at += line) __builtin_prefetch(row + at);
  }
}

template <class T, class S>
void load_row(const T* from, std::int64_t count, S* to) {
  std::int64_t i = 0;
  for (; i + lanes<S> <= count; i += lanes<S>) store_full(to + i, load_lanes<lanes<S>>(from + i));
  for (; i < count; ++i) to[i] = load_lanes<1>(from + i);
}

template <class T>
void store_row(const fused::SumOf<T>* from, std::int64_t count, T* to) {
  using S = fused::SumOf<T>;
  constexpr int n = lanes<S>;
  std::int64_t i = 0;
  for (; i + n <= count; i += n) store_lanes<n>(to + i, load_lanes<n>(from + i));
  for (; i < count; ++i) store_lanes<1>(to + i, from[i]);
}

template <class S>
void fill(S* values, std::int64_t count, S value) {
  for (std::int64_t i = 0; i < count; ++i) values[i] = value;
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

/// Adds up what the strips have left of each edge and head; nothing where heads have no features.
template <class T, class S>
void finish_partials(const Problem<T>& p, std::int64_t size, const Scratch<S>& scratch, S* sums) {
  if (p.num_strips == 0) return fill(sums, size, S{0});
  sum_partials(scratch.partial, p.partial_lanes, size, sums);
}

/// Dot products, head by head, of the fixed features with those of every gathered row.
template <class T, class S>
void dot_products(const Problem<T>& p, const Gathered<T>& gathered, const S* fixed,
                  const Scratch<S>& scratch, S* products) {
  for (std::int64_t i = 0; i < p.num_strips; ++i) {
    p.strips[i].functions->dot(p.strips[i].place, gathered, fixed, scratch.partial);
  }
  finish_partials(p, gathered.count * p.heads, scratch, products);
}

/// sums += weights * gathered rows, head by head.
template <class T, class S>
void add_weighted_rows(const Problem<T>& p, const Gathered<T>& gathered, const S* weights,
                       S* sums) {
  for (std::int64_t i = 0; i < p.num_strips; ++i) {
    p.strips[i].functions->weighted_sum(p.strips[i].place, gathered, weights, sums);
  }
}

template <class T, class S>
void gat_scores(const Problem<T>& p, const Gathered<T>& gathered, const Scratch<S>& scratch) {
  const std::int64_t size = gathered.count * p.heads;
  gather_heads(gathered.rows.data, gathered.rows.stride, gathered.ids, gathered.count, p.heads,
               scratch.activations);
  for_vectors<S>(size, p.heads, [&](std::int64_t k, std::int64_t phase) {
    const FullVector<S> sum =
        load_full(scratch.activations + k) + load_full(scratch.score_tile + phase);
    store_full(scratch.activations + k, sum);
    store_full(scratch.scores + k, FullVector<S>(sum > 0 ? sum : FullVector<S>(sum * p.slope)));
  });
}

/// Scores of a block into `scores`, and for gat and dot what their derivatives need into
/// `activations`. Padded with -inf, whose weight is 0.
template <class T, class S>
void block_scores(const Problem<T>& p, const Gathered<T>& gathered, const Scratch<S>& scratch) {
  const std::int64_t size = gathered.count * p.heads;
  if (p.form == AttentionForm::gat) {
    gat_scores(p, gathered, scratch);
  } else if (p.form == AttentionForm::dot) {
    dot_products(p, gathered, scratch.fixed_scores, scratch, scratch.activations);
    for (std::int64_t k = 0; k < size; ++k) scratch.scores[k] = p.scale * scratch.activations[k];
  } else {
    for (std::int64_t i = 0; i < p.num_strips; ++i) {
      p.strips[i].functions->additive(p.strips[i].place, gathered, scratch.fixed_scores,
                                      scratch.vector, p.slope, scratch.partial);
    }
    finish_partials(p, size, scratch, scratch.scores);
  }
  pad(scratch.scores, size, static_cast<S>(-infinity));
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
  pad(scratch.factors, edges * p.heads);
}

/// Raises the running maximum to that of a block, and scales what was summed before to it.
template <class T, class S>
void raise_max(const Problem<T>& p, std::int64_t edges, const RowSums<S>& sums,
               const Scratch<S>& scratch) {
  S* const before = scratch.head_numbers;
  for (std::int64_t h = 0; h < p.heads; ++h) before[h] = sums.max[h];
  reduce_heads<Max>(scratch.scores, edges, p.heads, sums.max);
  for (std::int64_t h = 0; h < p.heads; ++h) {
    if (!(sums.max[h] > before[h])) continue;
    // What was summed so far has a smaller maximum; nothing was if that is still -inf.
    const S factor = exp_lanes<S, 1>(before[h] - sums.max[h]);
    sums.sum[h] *= factor;
    S* const features = sums.features + h * p.width;
    if (before[h] > static_cast<S>(-infinity)) {
      for (std::int64_t f = 0; f < p.width; ++f) features[f] *= factor;
    }
  }
  // All scores -inf so far: their weights are 0, unless the whole row stays so (see finish).
  for (std::int64_t h = 0; h < p.heads; ++h) {
    before[h] = sums.max[h] > static_cast<S>(-infinity) ? sums.max[h] : S{0};
  }
  make_tile(before, p.heads, scratch.max_tile);
}

template <class T>
void forward(const Problem<T>& p, const Line& line, const RowSums<fused::SumOf<T>>& sums,
             const Scratch<fused::SumOf<T>>& scratch) {
  using S = fused::SumOf<T>;
  fill(sums.features, p.features, S{0});
  fill(sums.max, p.heads, static_cast<S>(-infinity));
  fill(sums.sum, p.heads, S{0});
  load_fixed_scores(p, p.target, line.vertex, scratch);
  for (std::int64_t begin = 0; begin < line.count; begin += p.block_edges) {
    const std::int64_t left = line.count - begin;
    const std::int64_t edges = left < p.block_edges ? left : p.block_edges;
    const Gathered<T> values{p.value, line.others + begin, edges};
    prefetch(values, p.features);
    block_scores(p, Gathered<T>{p.source, line.others + begin, edges}, scratch);
    raise_max(p, edges, sums, scratch);
    for_vectors<S>(edges * p.heads, p.heads, [&](std::int64_t k, std::int64_t phase) {
      store_full(scratch.weights + k, exp_lanes<S, lanes<S>>(load_full(scratch.scores + k) -
                                                             load_full(scratch.max_tile + phase)));
    });
    reduce_heads<Add>(scratch.weights, edges, p.heads, sums.sum);
    if (p.drops) {
      block_factors(p, line, begin, edges, scratch);
      for (std::int64_t k = 0; k < edges * p.heads; ++k) scratch.weights[k] *= scratch.factors[k];
    }
    add_weighted_rows(p, values, scratch.weights, sums.features);
  }
}

template <class T>
void merge(const Problem<T>& p, const RowSums<fused::SumOf<T>>& piece,
           const RowSums<fused::SumOf<T>>& total) {
  using S = fused::SumOf<T>;
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
void finish(const Problem<T>& p, const RowSums<fused::SumOf<T>>& sums, T* output,
            fused::SumOf<T>* log_sum) {
  using S = fused::SumOf<T>;
  for (std::int64_t h = 0; h < p.heads; ++h) {
    // A row of nothing but -inf divides 0 by 0, as the reference does.
    const S reciprocal = S{1} / sums.sum[h];
    for (std::int64_t f = h * p.width; f < (h + 1) * p.width; ++f) sums.features[f] *= reciprocal;
    if (log_sum == nullptr) continue;
    if constexpr (sizeof(S) == sizeof(double)) {
      log_sum[h] = sums.max[h] + __builtin_log(sums.sum[h]);
    } else {
      log_sum[h] = sums.max[h] + __builtin_logf(sums.sum[h]);
    }
  }
  store_row<T>(sums.features, p.features, output);
}

/// weights = exp(scores - log_sum), with the log_sum of the fixed row in `max_tile`, or those of
/// the gathered rows in `log_sums`.
template <class T, class S>
void block_weights(const Problem<T>& p, std::int64_t edges, bool gathered_state,
                   const Scratch<S>& scratch) {
  for_vectors<S>(edges * p.heads, p.heads, [&](std::int64_t k, std::int64_t phase) {
    const S* const log_sums = gathered_state ? scratch.log_sums + k : scratch.max_tile + phase;
    store_full(scratch.weights + k,
               exp_lanes<S, lanes<S>>(load_full(scratch.scores + k) - load_full(log_sums)));
  });
}

/// grads = weights * (factor * dP - dO . O): the gradient of the scores, where dP is in `grads`.
template <class T, class S>
void block_score_grads(const Problem<T>& p, std::int64_t edges, bool gathered_state,
                       const Scratch<S>& scratch) {
  const std::int64_t size = edges * p.heads;
  pad(scratch.grads, size);
  for_vectors<S>(size, p.heads, [&](std::int64_t k, std::int64_t phase) {
    FullVector<S> grad = load_full(scratch.grads + k);
    if (p.drops) grad *= load_full(scratch.factors + k);
    const S* const dots = gathered_state ? scratch.dots + k : scratch.dot_tile + phase;
    store_full(scratch.grads + k,
               FullVector<S>(load_full(scratch.weights + k) * (grad - load_full(dots))));
  });
  pad(scratch.grads, size);
}

/// Sends the gradient of a block's scores on to the fixed vertex, the vector and the scale.
template <class T, class S>
void block_backward(const Problem<T>& p, const Gathered<T>& gathered,
                    const LineGradients<S>& gradients, const Scratch<S>& scratch) {
  const std::int64_t size = gathered.count * p.heads;
  if (p.form == AttentionForm::gat) {
    for (std::int64_t k = 0; k < size; ++k) {
      scratch.grads[k] *= scratch.activations[k] > 0 ? S{1} : p.slope;
    }
    reduce_heads<Add>(scratch.grads, gathered.count, p.heads, gradients.scores);
  } else if (p.form == AttentionForm::dot) {
    if (gradients.scale != nullptr) {
      S sum = 0;
      for (std::int64_t k = 0; k < size; ++k) sum += scratch.grads[k] * scratch.activations[k];
      *gradients.scale += static_cast<double>(sum);
    }
    if (gradients.scores == nullptr) return;
    for (std::int64_t k = 0; k < size; ++k) scratch.grads[k] *= p.scale;
    add_weighted_rows(p, gathered, scratch.grads, gradients.scores);
  } else {
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
void gather_state(const Problem<T>& p, const VertexId* rows, std::int64_t edges,
                  const Scratch<S>& scratch) {
  const std::int64_t stride = 2 * p.heads;
  gather_heads(p.row_state, stride, rows, edges, p.heads, scratch.log_sums);
  gather_heads(p.row_state + p.heads, stride, rows, edges, p.heads, scratch.dots);
  pad(scratch.log_sums, edges * p.heads);
  pad(scratch.dots, edges * p.heads);
}

template <class T>
void backward(const Problem<T>& p, const Line& line, bool by_rows,
              const LineGradients<fused::SumOf<T>>& gradients,
              const Scratch<fused::SumOf<T>>& scratch) {
  using S = fused::SumOf<T>;
  const Rows<T>& fixed_scores = by_rows ? p.target : p.source;
  const Rows<T>& gathered_scores = by_rows ? p.source : p.target;
  const Rows<T>& fixed_values = by_rows ? p.grad_output : p.value;
  const Rows<T>& gathered_values = by_rows ? p.value : p.grad_output;
  const bool wants_scores =
      gradients.scores != nullptr || gradients.vector != nullptr || gradients.scale != nullptr;
  LineGradients<S> sums = gradients;
  // The vector's gradient comes out of the same loop as the scores'.
  if (gradients.vector != nullptr && gradients.scores == nullptr) sums.scores = scratch.fixed_sums;
  if (sums.scores != nullptr) fill(sums.scores, p.score_cols, S{0});
  if (sums.values != nullptr) fill(sums.values, p.features, S{0});
  if (sums.vector != nullptr) fill(scratch.activated_sums, p.features, S{0});
  load_fixed_scores(p, fixed_scores, line.vertex, scratch);
  load_row(fixed_values.data + line.vertex * fixed_values.stride, p.features, scratch.fixed_values);
  if (by_rows) load_fixed_state(p, line.vertex, scratch);
  for (std::int64_t begin = 0; begin < line.count; begin += p.block_edges) {
    const std::int64_t left = line.count - begin;
    const std::int64_t edges = left < p.block_edges ? left : p.block_edges;
    const VertexId* const others = line.others + begin;
    const Gathered<T> scores{gathered_scores, others, edges};
    const Gathered<T> values{gathered_values, others, edges};
    prefetch(values, p.features);
    block_scores(p, scores, scratch);
    if (!by_rows) gather_state(p, others, edges, scratch);
    block_weights(p, edges, !by_rows, scratch);
    if (p.drops) block_factors(p, line, begin, edges, scratch);
    if (wants_scores) {
      dot_products(p, values, scratch.fixed_values, scratch, scratch.grads);
      block_score_grads(p, edges, !by_rows, scratch);
      block_backward(p, scores, sums, scratch);
    }
    if (sums.values != nullptr) {
      if (p.drops) {
        for (std::int64_t k = 0; k < edges * p.heads; ++k) scratch.weights[k] *= scratch.factors[k];
      }
      add_weighted_rows(p, values, scratch.weights, sums.values);
    }
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
void row_state(const Problem<T>& p, const Rows<T>& output, VertexId row,
               const fused::SumOf<T>* log_sum, fused::SumOf<T>* state,
               const Scratch<fused::SumOf<T>>& scratch) {
  load_row(p.grad_output.data + row * p.grad_output.stride, p.features, scratch.fixed_values);
  dot_products(p, Gathered<T>{output, &row, 1}, scratch.fixed_values, scratch, scratch.grads);
  for (std::int64_t h = 0; h < p.heads; ++h) {
    state[h] = log_sum[h];
    state[p.heads + h] = scratch.grads[h];
  }
}

template <class T>
void weights(const Problem<T>& p, const Line& line, const fused::SumOf<T>* log_sum, T* to,
             std::int64_t stride, const Scratch<fused::SumOf<T>>& scratch) {
  load_fixed_scores(p, p.target, line.vertex, scratch);
  make_tile(log_sum, p.heads, scratch.max_tile);
  for (std::int64_t begin = 0; begin < line.count; begin += p.block_edges) {
    const std::int64_t left = line.count - begin;
    const std::int64_t edges = left < p.block_edges ? left : p.block_edges;
    block_scores(p, Gathered<T>{p.source, line.others + begin, edges}, scratch);
    block_weights(p, edges, false, scratch);
    for (std::int64_t b = 0; b < edges; ++b) {
      store_row<T>(scratch.weights + b * p.heads, p.heads, to + (begin + b) * stride);
    }
  }
}

template <class T>
constexpr fused::Functions<T> functions_of() {
  return {make_strips<T>, forward<T>,   merge<T>,   finish<T>,
          backward<T>,    row_state<T>, weights<T>, store_row<T>};
}

}  // namespace

const fused::Table& fused_attention_table() {
  static constexpr fused::Table table = {functions_of<double>(), functions_of<float>(),
                                         functions_of<Bfloat16>()};
  return table;
}

}  // namespace tessera::ops::TESSERA_ISA
