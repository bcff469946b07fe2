// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/by_edges.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "graph/weight_functions.hpp"
#include "ops/check.hpp"
#include "ops/row_ranges.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/edge_blocks.hpp"
#include "ops/spmm/finish_rows.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Below this many products a run takes less than waking threads.
constexpr std::int64_t min_parallel_work = 1 << 16;

/// The value of edge k: a run's, the edges' own, or 1.
template <class T>
SumOf<T> value_of(const EdgeTerms& terms, const ConstOperand& edge_values, EdgeOffset k) {
  using S = SumOf<T>;
  if (!edge_values.absent()) return static_cast<S>(edge_values.as<T>()(k, 0));
  return terms.values.empty() ? S(1) : static_cast<S>(terms.values[k]);
}

/// A mean's share of an edge, which its gradient takes part by part.
template <class S>
S share_of(const EdgeTerms& terms, VertexId row) {
  return terms.degrees.empty() ? S(1) : S(1) / static_cast<S>(terms.degrees[row]);
}

template <class T>
class SpmmByEdges final : public PreparedSpmm {
  using S = SumOf<T>;

 public:
  explicit SpmmByEdges(const SpmmProblem& problem)
      : problem_(problem), terms_(edge_terms(problem)), finisher_(problem) {
    const bool y_holds_sums = bytes_per_element(problem.output()) == static_cast<int>(sizeof(S));
    if (!y_holds_sums) wide_ = Buffer<S>(checked_area(num_results(), problem.features));
  }

  void run(const SpmmCall& call, Stream, const WorkspaceView&) const override {
    if (problem_.features == 0) return;
    finisher_.take_bias(call);
    S* const sums = wide_.empty() ? static_cast<S*>(call.y.data) : wide_.data();
    const std::int64_t stride = wide_.empty() ? call.y.stride : problem_.features;
    const std::int64_t work = (terms_->num_edges + num_results()) * problem_.features;
    const std::int64_t tasks =
        work < min_parallel_work ? 1 : std::clamp<std::int64_t>(num_threads(), 1, num_results());
    visit_weight(terms_->function, [&](auto function) {
      parallel_tasks(tasks, [&](std::int64_t task) {
        const auto begin = static_cast<VertexId>(num_results() * task / tasks);
        const auto end = static_cast<VertexId>(num_results() * (task + 1) / tasks);
        begin_rows(function, call, sums, stride, begin, end);
        add_edges(function, call, sums, stride, begin, end);
        finish_rows(call, sums, stride, begin, end);
      });
    });
  }

  std::int64_t own_bytes() const noexcept override {
    return finisher_.bytes() + wide_.size() * static_cast<std::int64_t>(sizeof(S));
  }

 private:
  bool is_forward() const noexcept { return problem_.pass == SpmmPass::forward; }
  std::int64_t num_results() const noexcept {
    return is_forward() ? terms_->num_rows : terms_->num_cols;
  }

  /// Zeros, or the term of the loop that a rule adds.
  template <class Function>
  void begin_rows(Function function, const SpmmCall& call, S* sums, std::int64_t stride,
                  VertexId begin, VertexId end) const {
    for (VertexId i = begin; i < end; ++i) {
      S* const row = sums + i * stride;
      const S loop = terms_->loops.empty() ? S(0) : static_cast<S>(terms_->loops[i]);
      if (loop == S(0)) {
        std::fill_n(row, problem_.features, S(0));
        continue;
      }
      S weight = weight_of(*terms_, function, loop, i, i);
      if (!is_forward()) weight *= share_of<S>(*terms_, i);
      const T* const x = call.x.as<T>().row(i);
      for (std::int64_t j = 0; j < problem_.features; ++j) row[j] = weight * static_cast<S>(x[j]);
    }
  }

  template <class Function>
  void add_edges(Function function, const SpmmCall& call, S* sums, std::int64_t stride,
                 VertexId begin, VertexId end) const {
    const EdgeTerms& terms = *terms_;
    const VertexId* const from = (is_forward() ? terms.cols : terms.rows).data();
    const VertexId* const to = (is_forward() ? terms.rows : terms.cols).data();
    const EdgeBlockOperands operands = {call.x.data, call.x.stride, sums, stride,
                                        problem_.features};
    EdgeBlock block;
    for (EdgeOffset k = 0; k < terms.num_edges; ++k) {
      if (to[k] < begin || to[k] >= end) continue;
      S weight = weight_of(terms, function, value_of<T>(terms, call.edge_values, k), terms.rows[k],
                           terms.cols[k]);
      if (!is_forward()) weight *= share_of<S>(terms, terms.rows[k]);
      block.from[block.count] = from[k];
      block.to[block.count] = to[k];
      block.weights[block.count] = static_cast<double>(weight);
      if (++block.count == EdgeBlock::most) add(block, operands);
    }
    add(block, operands);
  }

  static void add(EdgeBlock& block, const EdgeBlockOperands& operands) {
    const EdgeBlockTable& table = edge_blocks();
    if constexpr (std::is_same_v<T, double>) table.fp64(block, operands);
    if constexpr (std::is_same_v<T, float>) table.fp32(block, operands);
    if constexpr (std::is_same_v<T, Bfloat16>) table.bf16(block, operands);
    block.count = 0;
  }

  void finish_rows(const SpmmCall& call, S* sums, std::int64_t stride, VertexId begin,
                   VertexId end) const {
    const bool divides = is_forward() && !terms_->degrees.empty();
    for (VertexId i = begin; divides && i < end; ++i) {
      if (terms_->degrees[i] == 0) continue;
      S* const row = sums + i * stride;
      for (std::int64_t j = 0; j < problem_.features; ++j) {
        row[j] /= static_cast<S>(terms_->degrees[i]);
      }
    }
    if (!problem_.is_plain()) finisher_.finish(call, sums, stride, begin, end);
    if (!wide_.empty()) finisher_.store_bf16(call, sums, stride, begin, end);
  }

  SpmmProblem problem_;
  std::shared_ptr<const EdgeTerms> terms_;
  RowFinisher<T> finisher_;
  mutable Buffer<S> wide_;  ///< sums, where Y cannot hold them
};

template <class T>
class EdgeDots final : public EdgeValueGradients {
  using S = SumOf<T>;

 public:
  explicit EdgeDots(const SpmmProblem& problem)
      : features_(problem.features), terms_(edge_terms(problem)) {}

  void run(const SpmmGradInputs& inputs, const Operand& edges, Stream) const override {
    const EdgeTerms& terms = *terms_;
    visit_weight(terms.function, [&](auto function) {
      const auto derivative = [&](S value, S row_number, S col_number) {
        return function.by_value(value, row_number, col_number);
      };
      const std::int64_t grain = 1 + min_parallel_work / (1 + features_);
      parallel_for(terms.num_edges, grain, [&](EdgeOffset k) {
        const VertexId row = terms.rows[k], col = terms.cols[k];
        const double dot = dot_of(inputs.grad_y.as<T>().row(row), inputs.x.as<T>().row(col));
        const S value = value_of<T>(terms, inputs.edge_values, k);
        const S factor = weight_of(terms, derivative, value, row, col) * share_of<S>(terms, row);
        edges.as<T>()(k, 0) = static_cast<T>(static_cast<S>(dot) * factor);
      });
    });
  }

 private:
  /// Four sums at a time, in fp64.
  double dot_of(const T* a, const T* b) const {
    double sums[4] = {};
    std::int64_t j = 0;
    const auto product = [&](std::int64_t at) {
      return static_cast<double>(static_cast<S>(a[at])) *
             static_cast<double>(static_cast<S>(b[at]));
    };
    for (; j + 4 <= features_; j += 4) {
      for (std::int64_t i = 0; i < 4; ++i) sums[i] += product(j + i);
    }
    for (; j < features_; ++j) sums[0] += product(j);
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
  }

  std::int64_t features_;
  std::shared_ptr<const EdgeTerms> terms_;
};

}  // namespace

std::unique_ptr<const PreparedSpmm> prepare_spmm_by_edges(const SpmmProblem& problem) {
  return visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<SpmmByEdges<T>>(problem);
  });
}

std::unique_ptr<const EdgeValueGradients> cpu_edge_dots(const SpmmProblem& problem) {
  return visit_precision(problem.precision,
                         [&]<class T>() -> std::unique_ptr<const EdgeValueGradients> {
                           return std::make_unique<EdgeDots<T>>(problem);
                         });
}

}  // namespace tessera::ops
