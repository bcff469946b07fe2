// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cpu.hpp"

#include <algorithm>
#include <vector>

#include "ops/rows/scales.hpp"
#include "ops/spmm/edge_blocks.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Ranges of rows with sums of their own. A constant, so that the bits do not depend on threads.
constexpr std::int64_t most_tasks = 8;
constexpr EdgeOffset min_task_edges = 1 << 14;

/// Rows cut into `tasks` ranges of about equal numbers of edges.
std::vector<VertexId> equal_cuts(const Graph& graph, std::int64_t tasks) {
  std::vector<VertexId> cuts = {0};
  const auto& offsets = graph.row_offsets();
  for (std::int64_t task = 1; task < tasks; ++task) {
    const EdgeOffset wanted = graph.num_edges() / tasks * task;
    const auto* const at = std::lower_bound(offsets.begin(), offsets.end(), wanted);
    cuts.push_back(std::min(static_cast<VertexId>(at - offsets.begin()), graph.num_rows()));
  }
  cuts.push_back(graph.num_rows());
  return cuts;
}

template <class T>
class SpmmScatter final : public PreparedSpmm {
 public:
  explicit SpmmScatter(const SpmmProblem& problem)
      : graph_(problem.graph),
        features_(problem.features),
        elements_(checked_area(graph_.num_cols(), features_)),
        cuts_(equal_cuts(
            graph_, std::clamp<std::int64_t>(graph_.num_edges() / min_task_edges, 1, most_tasks))),
        row_scale_(problem.reduction == Reduction::mean ? mean_scale<T>(graph_)
                                                        : scale_as<T>(graph_.row_scale())),
        col_scale_(scale_as<T>(graph_.col_scale())),
        chains_(checked_area(num_tasks(), elements_)),
        sums_(checked_area(num_tasks(), elements_)) {}

  void run(const SpmmCall& call, Stream, const WorkspaceView&) const override {
    parallel_tasks(num_tasks(), [&](std::int64_t task) { run_task(call, task); });
    combine(call.y.as<T>());
  }

  std::int64_t own_bytes() const noexcept override {
    return chains_.size() * static_cast<std::int64_t>(sizeof(T)) +
           sums_.size() * static_cast<std::int64_t>(sizeof(double));
  }

 private:
  std::int64_t num_tasks() const noexcept { return static_cast<std::int64_t>(cuts_.size()) - 1; }

  void run_task(const SpmmCall& call, std::int64_t task) const {
    T* const chain = chains_.data() + task * elements_;
    double* const sums = sums_.data() + task * elements_;
    std::fill_n(sums, elements_, 0.0);
    std::fill_n(chain, elements_, T(0));
    EdgeAdder<T> adder({call.x.data, call.x.stride, chain, features_, features_});
    const VertexId end = cuts_[static_cast<std::size_t>(task) + 1];
    for (VertexId row = cuts_[static_cast<std::size_t>(task)]; row < end;) {
      const VertexId chain_end = std::min(row + scatter_chain, end);
      for (; row < chain_end; ++row) add_row(call, row, adder);
      adder.flush();
      for (std::int64_t i = 0; i < elements_; ++i) {
        sums[i] += static_cast<double>(chain[i]);
        chain[i] = 0;
      }
    }
  }

  /// Edges of weight 0 add nothing where the row is finite, and are left out: dropout on sparse
  /// features leaves many of them.
  void add_row(const SpmmCall& call, VertexId row, EdgeAdder<T>& adder) const {
    const T* const y = call.x.as<T>().row(row);
    const bool is_finite = std::all_of(y, y + features_, [](T value) { return value * 0 == T(0); });
    const T scale = row_scale_.empty() ? T(1) : row_scale_[row];
    for (EdgeOffset e = graph_.row_offsets()[row]; e < graph_.row_offsets()[row + 1]; ++e) {
      const T weight = value_of(call.edge_values, e) * scale;
      if (weight == T(0) && is_finite) continue;
      adder.add(row, graph_.col_indices()[e], weight);
    }
  }
  T value_of(const ConstOperand& edge_values, EdgeOffset edge) const {
    if (!edge_values.absent()) return edge_values.as<T>()(edge, 0);
    return graph_.has_values() ? static_cast<T>(graph_.values()[edge]) : T(1);
  }

  void combine(MatrixView<T> y) const {
    parallel_for(graph_.num_cols(), 64, [&](std::int64_t col) {
      const T scale = col_scale_.empty() ? T(1) : col_scale_[col];
      for (std::int64_t k = 0; k < features_; ++k) {
        double sum = 0;
        for (std::int64_t task = 0; task < num_tasks(); ++task) {
          sum += sums_[task * elements_ + col * features_ + k];
        }
        y(col, k) = static_cast<T>(sum) * scale;
      }
    });
  }

  Graph graph_;
  std::int64_t features_;
  std::int64_t elements_;  ///< of one task's sums
  std::vector<VertexId> cuts_;
  SharedArray<T> row_scale_;
  SharedArray<T> col_scale_;
  mutable Buffer<T> chains_;
  mutable Buffer<double> sums_;
};

}  // namespace

std::unique_ptr<const PreparedSpmm> prepare_spmm_scatter(const SpmmProblem& problem) {
  if (problem.precision == Precision::fp64) return std::make_unique<SpmmScatter<double>>(problem);
  return std::make_unique<SpmmScatter<float>>(problem);
}

}  // namespace tessera::ops
