// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <type_traits>

#include <fmt/format.h>

#include "ops/check.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/rows.hpp"
#include "ops/spmm/schedule.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Below this many products a run takes a few microseconds, less than waking threads.
constexpr std::int64_t min_parallel_work = 1 << 16;

/// Work that one task should have at least, in products.
constexpr std::int64_t min_task_work = 1 << 15;

template <class T>
using SumOf = std::conditional_t<std::is_same_v<T, double>, double, float>;

/// A scale in the precision of the sums; the graph's own array where that is fp32.
template <class S>
SharedArray<S> scale_as(const SharedArray<float>& scale) {
  if constexpr (std::is_same_v<S, float>) {
    return scale;
  } else {
    Buffer<S> converted(scale.size());
    std::copy(scale.begin(), scale.end(), converted.begin());
    return SharedArray<S>(std::move(converted));
  }
}

/// row_scale / degree of every row: a mean's share of each of its edges.
template <class S>
SharedArray<S> mean_scale(const Graph& graph) {
  Buffer<S> scale(graph.num_rows());
  parallel_for(graph.num_rows(), 1 << 14, [&](std::int64_t i) {
    const auto row = static_cast<VertexId>(i);
    const S own = graph.has_row_scale() ? static_cast<S>(graph.row_scale()[i]) : S(1);
    scale[i] = graph.degree(row) == 0 ? S(0) : own / static_cast<S>(graph.degree(row));
  });
  return SharedArray<S>(std::move(scale));
}

/// Row by row over the CSR arrays, or over the CSC arrays for the gradient.
template <class T>
class SpmmByRows final : public PreparedSpmm {
  using S = SumOf<T>;

 public:
  SpmmByRows(const SpmmProblem& problem, std::int64_t tile)
      : problem_(problem),
        tile_(std::clamp<std::int64_t>(tile, 1, std::max<std::int64_t>(1, problem.features))) {
    const Graph& graph = problem.graph;
    if (problem.pass == SpmmPass::forward) {
      num_rows_ = graph.num_rows();
      row_offsets_ = graph.row_offsets();
      col_indices_ = graph.col_indices();
      row_scale_ = scale_as<S>(graph.row_scale());
      col_scale_ = scale_as<S>(graph.col_scale());
    } else {
      num_rows_ = graph.num_cols();
      row_offsets_ = graph.csc().col_offsets;
      col_indices_ = graph.csc().row_indices;
      positions_ = graph.csc().csr_positions;
      row_scale_ = scale_as<S>(graph.col_scale());
      col_scale_ = problem.reduction == Reduction::mean ? mean_scale<S>(graph)
                                                        : scale_as<S>(graph.row_scale());
    }
    schedule_ = make_row_schedule(num_rows_, row_offsets_.data());
    const std::int64_t slot_elements = checked_area(schedule_.num_slots, problem.features);
    slots_ = Buffer<double>(slot_elements);
    if (is_best()) slot_winners_ = Buffer<VertexId>(slot_elements);
    const std::int64_t range_work = max_edges_per_range * std::min(tile_, problem.features);
    ranges_per_task_ =
        std::max<std::int64_t>(1, min_task_work / std::max<std::int64_t>(1, range_work));
  }

  void run(const SpmmInputs& inputs, const SpmmOutputs& outputs, Stream) const override {
    const SpmmRows rows = operands(inputs, outputs);
    const std::int64_t features = problem_.features;
    if (features == 0) return;
    const SpmmRowsFunctions& functions = is_best() ? spmm_rows().best : spmm_rows().sum;
    const SpmmRowsFunction function = select(functions);
    const auto num_ranges = static_cast<std::int64_t>(schedule_.ranges.size());
    const std::int64_t groups = (num_ranges + ranges_per_task_ - 1) / ranges_per_task_;
    const std::int64_t tiles = (features + tile_ - 1) / tile_;
    const auto task = [&](std::int64_t index) {
      const std::int64_t feature = index / groups * tile_;
      const std::int64_t first = index % groups * ranges_per_task_;
      const std::int64_t last = std::min(first + ranges_per_task_, num_ranges);
      for (std::int64_t i = first; i < last; ++i) {
        function(rows, schedule_.ranges[static_cast<std::size_t>(i)], feature,
                 std::min(feature + tile_, features));
      }
    };
    if ((col_indices_.size() + num_rows_) * features < min_parallel_work) {
      for (std::int64_t index = 0; index < tiles * groups; ++index) task(index);
    } else {
      parallel_tasks(tiles * groups, task);
    }
    combine(rows);
  }

  std::int64_t workspace_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(double)) +
           slot_winners_.size() * static_cast<std::int64_t>(sizeof(VertexId));
  }

 private:
  bool is_best() const {
    return problem_.pass == SpmmPass::forward &&
           (problem_.reduction == Reduction::max || problem_.reduction == Reduction::min);
  }

  static SpmmRowsFunction select(const SpmmRowsFunctions& functions) {
    if constexpr (std::is_same_v<T, double>) return functions.fp64;
    if constexpr (std::is_same_v<T, float>) return functions.fp32;
    if constexpr (std::is_same_v<T, Bfloat16>) return functions.bf16;
  }

  SpmmRows operands(const SpmmInputs& inputs, const SpmmOutputs& outputs) const {
    SpmmRows rows;
    rows.row_offsets = row_offsets_.data();
    rows.col_indices = col_indices_.data();
    rows.num_edges = col_indices_.size();
    if (!inputs.edge_values.absent()) {
      rows.values = inputs.edge_values.data;
      rows.value_stride = inputs.edge_values.stride;
      rows.values_are_stored = true;
    } else if (problem_.graph.has_values()) {
      rows.values = problem_.graph.values().data();
    }
    rows.positions = positions_.data();
    rows.row_scale = row_scale_.data();
    rows.col_scale = col_scale_.data();
    rows.mean = problem_.pass == SpmmPass::forward && problem_.reduction == Reduction::mean;
    rows.sign = problem_.reduction == Reduction::min ? -1 : 1;
    rows.x = inputs.x.data;
    rows.x_stride = inputs.x.stride;
    rows.y = outputs.y.data;
    rows.y_stride = outputs.y.stride;
    rows.winners = outputs.winners.data;
    rows.winners_stride = outputs.winners.stride;
    rows.slots = slots_.data();
    rows.slot_winners = slot_winners_.data();
    rows.slot_stride = problem_.features;
    return rows;
  }

  /// Puts the partial results of long rows together, in order.
  void combine(const SpmmRows& rows) const {
    if (schedule_.long_rows.empty()) return;
    const auto one_row = [&](const LongRow& long_row) {
      if (is_best()) {
        combine_best(rows, long_row);
      } else {
        combine_sums(rows, long_row);
      }
    };
    if (slots_.size() < min_parallel_work) {
      for (const LongRow& long_row : schedule_.long_rows) one_row(long_row);
    } else {
      parallel_for(static_cast<std::int64_t>(schedule_.long_rows.size()), 1, [&](std::int64_t i) {
        one_row(schedule_.long_rows[static_cast<std::size_t>(i)]);
      });
    }
  }

  void combine_sums(const SpmmRows& rows, const LongRow& long_row) const {
    const VertexId row = long_row.row;
    const S scale = row_scale_.empty() ? S(1) : row_scale_[row];
    const S divisor = rows.mean ? static_cast<S>(row_offsets_[row + 1] - row_offsets_[row]) : S(1);
    T* const y = static_cast<T*>(rows.y) + row * rows.y_stride;
    for (std::int64_t feature = 0; feature < problem_.features; ++feature) {
      double sum = 0;
      for (std::int64_t slot = 0; slot < long_row.num_slots; ++slot) {
        sum += slots_[(long_row.first_slot + slot) * problem_.features + feature];
      }
      y[feature] = static_cast<T>(static_cast<S>(sum) * scale / divisor);
    }
  }

  void combine_best(const SpmmRows& rows, const LongRow& long_row) const {
    T* const y = static_cast<T*>(rows.y) + long_row.row * rows.y_stride;
    for (std::int64_t feature = 0; feature < problem_.features; ++feature) {
      std::int64_t best = long_row.first_slot * problem_.features + feature;
      for (std::int64_t slot = 1; slot < long_row.num_slots; ++slot) {
        const std::int64_t other = (long_row.first_slot + slot) * problem_.features + feature;
        const bool other_is_nan = slots_[other] != slots_[other];
        const bool best_is_nan = slots_[best] != slots_[best];
        if (slots_[other] > slots_[best] || (other_is_nan && !best_is_nan)) best = other;
      }
      y[feature] = static_cast<T>(static_cast<S>(slots_[best] * rows.sign));
      if (rows.winners != nullptr) {
        rows.winners[long_row.row * rows.winners_stride + feature] = slot_winners_[best];
      }
    }
  }

  SpmmProblem problem_;
  std::int64_t tile_;  ///< features a task computes
  VertexId num_rows_ = 0;
  SharedArray<EdgeOffset> row_offsets_;
  SharedArray<VertexId> col_indices_;
  SharedArray<EdgeOffset> positions_;
  SharedArray<S> row_scale_;
  SharedArray<S> col_scale_;
  RowSchedule schedule_;
  std::int64_t ranges_per_task_ = 1;
  mutable Buffer<double> slots_;
  mutable Buffer<VertexId> slot_winners_;
};

std::string why_not_rows(const SpmmProblem& problem) {
  return why_not_cpu_precision(problem.precision);
}

double predicted_rows_us(const SpmmProblem& problem) {
  return static_cast<double>(problem.graph.num_edges() * problem.features) * 1e-3;
}

std::unique_ptr<const PreparedSpmm> prepare_rows(const SpmmProblem& problem) {
  return visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<SpmmByRows<T>>(problem, problem.features);
  });
}

}  // namespace

std::span<const SpmmKernel> spmm_kernels() {
  static const std::array<SpmmKernel, 1> table = {{
      {{"spmm/cpu/rows", "rows in ranges of equal edges, sums in vector registers", "spmm",
        DeviceKind::cpu, true},
       why_not_rows,
       predicted_rows_us,
       prepare_rows},
  }};
  return table;
}

}  // namespace tessera::ops
