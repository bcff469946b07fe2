// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "tessera/core/parallel.hpp"
#include "tessera/ops/dropout.hpp"

#include "ops/attention/fused.hpp"
#include "ops/attention/kernel.hpp"
#include "ops/attention/on_unit_rows.hpp"
#include "ops/attention/scratch.hpp"
#include "ops/plan/check.hpp"
#include "ops/rows/row_schedule.hpp"

namespace tessera::ops {
namespace {

template <class T>
fused::Rows<T> rows_of(const ConstOperand& operand) {
  return {static_cast<const T*>(operand.data), operand.stride};
}

/// Edges of a block: enough to fill vectors and to hide latency, few enough for the first-level
/// cache.
std::int64_t choose_block_edges(std::int64_t heads) {
  constexpr std::int64_t numbers = 1024;
  return std::clamp<std::int64_t>(numbers / heads, 16, fused::max_block_edges);
}

/// The fused kernel: forward over rows; backward over rows, then over columns. Long lines are cut
/// into pieces whose results lie in slots until they are joined in order.
template <class T>
class FusedAttention final : public PreparedAttention {
  using S = SumOf<T>;
  using Problem = fused::Problem<T>;
  using Scratch = fused::ThreadScratch<S>;

 public:
  explicit FusedAttention(const AttentionProblem& problem)
      : graph_(problem.graph),
        options_(problem.options),
        functions_(fused_attention().of<T>()),
        rows_(make_row_schedule(graph_.num_rows(), graph_.row_offsets().data())) {
    const std::int64_t heads = options_.heads;
    const std::int64_t width = options_.features / heads;
    functions_.make_slices(
        heads, width,
        [](const fused::Slice<T>& slice, void* list) {
          static_cast<std::vector<fused::Slice<T>>*>(list)->push_back(slice);
        },
        &slices_);
    slot_size_ = options_.features + 2 * heads;
    slots_ = Buffer<S>(checked_area(rows_.num_slots, slot_size_));
    if (!options_.backward) return;
    row_state_ = Buffer<S>(checked_area(graph_.num_rows(), 2 * heads));
    if (keeps_gradients()) edge_gradients_ = Buffer<S>(checked_area(graph_.num_edges(), heads));
  }

  void run(const AttentionInputs& inputs, const AttentionOutputs& outputs, Stream,
           const WorkspaceView&) const override {
    Problem p = problem_of(inputs);
    // Without log_sum there is no backward.
    if (p.drops && !outputs.log_sum.absent()) kept_.record(graph_.num_edges(), p);
    for_ranges(rows_, [&](const RowRange& range, std::int64_t) {
      const Scratch scratch = scratch_for(p);
      if (range.slot >= 0) {
        functions_.forward_piece(p, row_lines(range), slot_sums(range.slot), scratch);
        return;
      }
      for_lines(p, range, graph_.row_offsets(), [&](const RowRange& rows, bool is_long) {
        if (is_long) {
          functions_.forward_piece(p, row_lines(rows), scratch.row, scratch);
          functions_.finish(p, scratch.row, results(outputs, rows.row_begin));
        } else {
          functions_.forward(p, row_lines(rows), results(outputs, rows.row_begin), scratch);
        }
      });
    });
    for_long_rows(rows_, [&](const LongRow& row) {
      const fused::RowSums<S> total = slot_sums(row.first_slot);
      for (std::int64_t i = 1; i < row.num_slots; ++i) {
        functions_.merge(p, slot_sums(row.first_slot + i), total);
      }
      functions_.finish(p, total, results(outputs, row.row));
    });
  }

  void run_backward(const AttentionInputs& inputs, ConstOperand output, ConstOperand log_sum,
                    ConstOperand grad_output, const AttentionGradOutputs& gradients, Stream,
                    const WorkspaceView&) const override {
    Problem p = problem_of(inputs);
    p.grad_output = rows_of<T>(grad_output);
    compute_row_state(p, rows_of<T>(output), log_sum.as<S>());
    p.row_state = row_state_.data();
    kept_.recall(p);
    if (sums_kept_gradients(gradients)) {
      p.edge_gradients = edge_gradients_.data();
      backward_by_columns(p, gradients);
      sum_gradients_by_rows(p, gradients.target.as<T>());
      return;
    }
    if (!gradients.target.absent() || !gradients.vector.absent() || gradients.scale != nullptr) {
      backward_by_rows(p, gradients);
    }
    if (!gradients.source.absent() || !gradients.value.absent()) backward_by_columns(p, gradients);
  }

  void weights(const AttentionInputs& inputs, ConstOperand log_sum, Operand weights, Stream,
               const WorkspaceView&) const override {
    const Problem p = problem_of(inputs);
    const auto to = weights.as<T>();
    for_ranges(rows_, [&](const RowRange& range, std::int64_t) {
      const Scratch scratch = scratch_for(p);
      EdgeOffset begin = range.edge_begin;
      for (VertexId row = range.row_begin; row < range.row_end; ++row) {
        const EdgeOffset end = std::min(graph_.row_offsets()[row + 1], range.edge_end);
        functions_.weights(p, row_lines({row, row + 1, begin, end}), log_sum.as<S>().row(row),
                           to.row(begin), to.stride, scratch);
        begin = end;
      }
    });
  }

  std::int64_t own_bytes() const noexcept override {
    const std::int64_t sums =
        slots_.size() + row_state_.size() + grad_slots_.size() + edge_gradients_.size();
    return sums * static_cast<std::int64_t>(sizeof(S)) + kept_.bytes() +
           shared_sums_.size() * static_cast<std::int64_t>(sizeof(double));
  }

 private:
  Problem problem_of(const AttentionInputs& inputs) const {
    Problem p;
    p.form = options_.form;
    p.heads = options_.heads;
    p.features = options_.features;
    p.width = p.features / p.heads;
    p.score_cols = p.form == AttentionForm::gat ? p.heads : p.features;
    p.block_edges = choose_block_edges(p.heads);
    p.slices = slices_.data();
    p.num_slices = static_cast<std::int64_t>(slices_.size());
    p.partial_lanes = slices_.empty() ? 1 : slices_.front().place.partial_lanes;
    p.slope = static_cast<S>(options_.negative_slope);
    p.scale = static_cast<S>(inputs.scale);
    const Dropout dropout{options_.dropout, inputs.random, inputs.clock};
    p.drops = dropout.active();
    p.dropout = dropout.constants().at_present();
    p.target = rows_of<T>(inputs.target);
    p.source = rows_of<T>(inputs.source);
    p.value = rows_of<T>(inputs.value);
    p.vector = static_cast<const T*>(inputs.vector.data);
    return p;
  }

  static Scratch scratch_for(const Problem& p) {
    return Scratch(p.heads, p.features, p.block_edges, p.partial_lanes);
  }

  template <class Body>
  static void for_ranges(const RowSchedule& schedule, Body&& body) {
    parallel_tasks(static_cast<std::int64_t>(schedule.ranges.size()),
                   [&](std::int64_t i) { body(schedule.ranges[static_cast<std::size_t>(i)], i); });
  }
  template <class Body>
  static void for_long_rows(const RowSchedule& schedule, Body&& body) {
    parallel_tasks(static_cast<std::int64_t>(schedule.long_rows.size()),
                   [&](std::int64_t i) { body(schedule.long_rows[static_cast<std::size_t>(i)]); });
  }

  /// Calls body(rows, is_long) for the lines of a range in order: several that fit a block
  /// together, or one that does not fit a block.
  template <class Body>
  static void for_lines(const Problem& p, const RowRange& range,
                        const SharedArray<EdgeOffset>& offsets, Body&& body) {
    VertexId line = range.row_begin;
    while (line < range.row_end) {
      const EdgeOffset begin = offsets[line];
      VertexId end = line + 1;
      while (end < range.row_end && end - line < p.block_edges &&
             offsets[end + 1] - begin <= p.block_edges) {
        ++end;
      }
      body(RowRange{line, end, begin, offsets[end]}, offsets[end] - begin > p.block_edges);
      line = end;
    }
  }

  /// The lines of a range, which are whole or one piece.
  static fused::Lines lines_of(const RowRange& range, const EdgeOffset* offsets,
                               const VertexId* others, EdgeOffset num_edges) {
    fused::Lines lines;
    lines.vertex = range.row_begin;
    lines.num_lines = range.row_end - range.row_begin;
    lines.offsets = offsets + range.row_begin;
    lines.others = others + range.edge_begin;
    lines.count = range.edge_end - range.edge_begin;
    lines.readable = num_edges - range.edge_begin;
    return lines;
  }
  fused::Lines row_lines(const RowRange& range) const {
    fused::Lines lines = lines_of(range, graph_.row_offsets().data(), graph_.col_indices().data(),
                                  graph_.num_edges());
    lines.first_position = range.edge_begin;
    return lines;
  }
  fused::Lines column_lines(const Csc& csc, const RowRange& range) const {
    fused::Lines lines =
        lines_of(range, csc.col_offsets.data(), csc.row_indices.data(), graph_.num_edges());
    lines.positions = csc.csr_positions.data() + range.edge_begin;
    return lines;
  }

  fused::RowSums<S> slot_sums(std::int64_t slot) const {
    S* const features = slots_.data() + slot * slot_size_;
    S* const max = features + options_.features;
    return {features, max, max + options_.heads};
  }

  /// Where the results of a row, and of those after it, go.
  static fused::RowResults<T> results(const AttentionOutputs& outputs, VertexId row) {
    const MatrixView<T> output = outputs.output.as<T>();
    fused::RowResults<T> results{output.row(row), output.stride};
    if (!outputs.log_sum.absent()) {
      results.log_sum = outputs.log_sum.as<S>().row(row);
      results.log_sum_stride = outputs.log_sum.stride;
    }
    return results;
  }

  /// log_sum and dO . O of every row, side by side: columns gather both at once.
  void compute_row_state(const Problem& p, const fused::Rows<T>& output,
                         MatrixView<const S> log_sum) const {
    constexpr std::int64_t grain = 512;
    parallel_ranges(graph_.num_rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      const Scratch scratch = scratch_for(p);
      for (std::int64_t row = begin; row < end; row += p.block_edges) {
        functions_.row_state(p, output, static_cast<VertexId>(row),
                             std::min(end - row, p.block_edges), {log_sum.data, log_sum.stride},
                             row_state_.data() + row * 2 * p.heads, scratch);
      }
    });
  }

  /// Whether columns leave the gradients of scores to rows, which then have only to sum them. Not
  /// where these are more than caches hold: then rows compute them again.
  bool keeps_gradients() const {
    constexpr std::int64_t most_bytes = std::int64_t{32} << 20;
    const std::int64_t bytes =
        checked_area(graph_.num_edges(), options_.heads) * static_cast<std::int64_t>(sizeof(S));
    return options_.form == AttentionForm::gat && bytes <= most_bytes;
  }
  bool sums_kept_gradients(const AttentionGradOutputs& gradients) const {
    const bool by_columns = !gradients.source.absent() || !gradients.value.absent();
    return keeps_gradients() && !gradients.target.absent() && by_columns;
  }

  /// Gradients of targets from those of all scores.
  void sum_gradients_by_rows(const Problem& p, MatrixView<T> target) const {
    constexpr std::int64_t grain = 512;
    parallel_ranges(graph_.num_rows(), grain, [&](std::int64_t begin, std::int64_t end) {
      const Scratch scratch = scratch_for(p);
      for (std::int64_t row = begin; row < end; ++row) {
        const EdgeOffset first = graph_.row_offsets()[row];
        functions_.sum_edges(p.edge_gradients + first * p.heads,
                             graph_.row_offsets()[row + 1] - first, p.heads, scratch.row_gradients);
        functions_.store(scratch.row_gradients, p.heads, target.row(row));
      }
    });
  }

  /// What one walk of the backward pass goes over, and where its gradients go. Rows give those of
  /// targets, columns those of sources.
  struct Walk {
    const Csc* csc;  ///< of columns; null: rows
    const RowSchedule& schedule;
    const SharedArray<EdgeOffset>& offsets;
    MatrixView<T> scores, values;  ///< without memory: not wanted
  };

  /// Gradients that belong to targets, and those that all edges share.
  void backward_by_rows(const Problem& p, const AttentionGradOutputs& gradients) const {
    // The sums that all edges share are kept apart for each range, and added in order.
    const auto num_ranges = static_cast<std::int64_t>(rows_.ranges.size());
    const bool shares = !gradients.vector.absent() || gradients.scale != nullptr;
    if (shares) shared_sums_ = Buffer<double>(checked_area(num_ranges, p.features + 1), 0.0);
    backward_over({nullptr, rows_, graph_.row_offsets(), gradients.target.as<T>(), {}}, p,
                  [&](std::int64_t range) {
                    double* const shared = shared_sums_.data() + range * (p.features + 1);
                    fused::LineGradients<T> sums;
                    if (!gradients.vector.absent()) sums.vector = shared;
                    if (gradients.scale != nullptr) sums.scale = shared + p.features;
                    return sums;
                  });
    if (shares) store_shared_sums(p, num_ranges, gradients);
  }

  void store_shared_sums(const Problem& p, std::int64_t num_ranges,
                         const AttentionGradOutputs& gradients) const {
    std::vector<double> total(static_cast<std::size_t>(p.features + 1), 0.0);
    for (std::int64_t range = 0; range < num_ranges; ++range) {
      const double* const sums = shared_sums_.data() + range * (p.features + 1);
      for (std::size_t f = 0; f < total.size(); ++f) total[f] += sums[f];
    }
    if (gradients.scale != nullptr) *gradients.scale = total.back();
    if (gradients.vector.absent()) return;
    const std::vector<S> rounded(total.begin(), total.end() - 1);
    functions_.store(rounded.data(), p.features, gradients.vector.as<T>().row(0));
  }

  /// Gradients that belong to sources.
  void backward_by_columns(const Problem& p, const AttentionGradOutputs& gradients) const {
    const Csc& csc = graph_.csc();
    if (!has_columns_) {
      columns_ = make_row_schedule(graph_.num_cols(), csc.col_offsets.data());
      has_columns_ = true;
    }
    backward_over(
        {&csc, columns_, csc.col_offsets, gradients.source.as<T>(), gradients.value.as<T>()}, p,
        [](std::int64_t) { return fused::LineGradients<T>(); });
  }

  /// `shared(range)` says where the sums of a range go that belong to no line.
  template <class Shared>
  void backward_over(const Walk& walk, const Problem& p, Shared&& shared) const {
    const std::int64_t slot_size = p.score_cols + (walk.values.data == nullptr ? 0 : p.features);
    S* const slots = fused::grown(grad_slots_, checked_area(walk.schedule.num_slots, slot_size));
    for_ranges(walk.schedule, [&](const RowRange& range, std::int64_t index) {
      const Scratch scratch = scratch_for(p);
      S* const sums = range.slot < 0 ? scratch.row_gradients : slots + range.slot * slot_size;
      fused::LineGradients<T> gradients = shared(index);
      const auto backward = [&](const RowRange& lines, bool is_long) {
        gradients.scores = line_sums(walk.scores, lines.row_begin, is_long, sums);
        gradients.values = line_sums(walk.values, lines.row_begin, is_long, sums + p.score_cols);
        const bool by_rows = walk.csc == nullptr;
        functions_.backward(p, by_rows ? row_lines(lines) : column_lines(*walk.csc, lines), by_rows,
                            gradients, scratch);
        if (is_long && range.slot < 0) store_line(p, sums, walk, lines.row_begin);
      };
      if (range.slot >= 0) return backward(range, true);
      for_lines(p, range, walk.offsets, backward);
    });
    for_long_rows(walk.schedule, [&](const LongRow& line) {
      // The sum of its slots, in order, replaces the first of them.
      S* const total = slots + line.first_slot * slot_size;
      for (std::int64_t i = 1; i < line.num_slots; ++i) {
        for (std::int64_t f = 0; f < slot_size; ++f) total[f] += total[i * slot_size + f];
      }
      store_line(p, total, walk, line.row);
    });
  }

  /// Where the sums of short lines from `first` on, or those of a long one, go.
  static fused::LineSums<T> line_sums(MatrixView<T> to, VertexId first, bool is_long, S* sums) {
    if (to.data == nullptr) return {};
    if (is_long) return {nullptr, 0, sums};
    return {to.row(first), to.stride, nullptr};
  }

  /// Stores what a long line summed up: gradients of its scores, then of its values.
  void store_line(const Problem& p, const S* sums, const Walk& walk, VertexId line) const {
    if (walk.scores.data != nullptr) functions_.store(sums, p.score_cols, walk.scores.row(line));
    if (walk.values.data == nullptr) return;
    functions_.store(sums + p.score_cols, p.features, walk.values.row(line));
  }

  Graph graph_;
  AttentionOptions options_;
  const fused::Functions<T>& functions_;
  std::vector<fused::Slice<T>> slices_;
  RowSchedule rows_;
  std::int64_t slot_size_ = 0;
  mutable Buffer<S> slots_;
  mutable fused::KeptWeights<T> kept_;
  // Of plans that have a backward pass.
  mutable Buffer<S> row_state_;
  mutable Buffer<S> edge_gradients_;
  // Made at the first backward run.
  mutable RowSchedule columns_;
  mutable bool has_columns_ = false;
  mutable Buffer<S> grad_slots_;
  mutable Buffer<double> shared_sums_;
};

std::string why_not_fused(const AttentionProblem& problem) {
  return why_not_cpu_precision(problem.options.precision);
}

/// Nanoseconds per edge on one core of about 3 GHz: a part for each exponential, and one for each
/// feature that is gathered.
double predicted_fused_us(const AttentionProblem& problem) {
  const AttentionOptions& options = problem.options;
  const double per_edge =
      2 * static_cast<double>(options.heads) + 0.25 * static_cast<double>(options.features);
  return static_cast<double>(problem.graph.num_edges()) * per_edge * 1e-3 / num_threads();
}

std::unique_ptr<const PreparedAttention> prepare_fused(const AttentionProblem& problem) {
  if (problem.options.form == AttentionForm::cosine) {
    return on_unit_rows(prepare_fused(as_dot_products(problem)), problem);
  }
  return prepare_as<PreparedAttention, FusedAttention>(problem.options.precision, problem);
}

}  // namespace

AttentionKernel cpu_attention_kernel() {
  return {{"attention/cpu/fused",
           "scores, softmax, dropout and weighted sum row by row in blocks of edges; backward "
           "recomputes them",
           "attention", DeviceKind::cpu, true},
          why_not_fused,
          predicted_fused_us,
          prepare_fused};
}

}  // namespace tessera::ops
