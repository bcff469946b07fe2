// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cpu.hpp"

#include <algorithm>
#include <type_traits>

#include "graph/weight_functions.hpp"
#include "ops/dense/row_ranges.hpp"
#include "ops/plan/check.hpp"
#include "ops/rows/row_schedule.hpp"
#include "ops/rows/scales.hpp"
#include "ops/spmm/edge_blocks.hpp"
#include "ops/spmm/edge_terms.hpp"
#include "ops/spmm/finish_rows.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

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
      : problem_(problem), terms_(edge_terms(problem)), finisher_(problem, num_results(), true) {}

  void run(const SpmmCall& call, Stream, const WorkspaceView&) const override {
    if (problem_.features == 0) return;
    const Operand reduced = finisher_.begin(call);
    const std::int64_t work = (terms_->num_edges + num_results()) * problem_.features;
    const std::int64_t tasks =
        work < min_parallel_work ? 1 : std::clamp<std::int64_t>(num_threads(), 1, num_results());
    const bool divides = problem_.is_forward() && !terms_->degrees.empty();
    visit_weight(terms_->function, [&](auto function) {
      parallel_tasks(tasks, [&](std::int64_t task) {
        const auto begin = static_cast<VertexId>(num_results() * task / tasks);
        const auto end = static_cast<VertexId>(num_results() * (task + 1) / tasks);
        begin_rows(function, call, reduced, begin, end);
        add_edges(function, call, reduced, begin, end);
        if (divides) divide_rows(reduced, begin, end);
        finisher_.finish(call, reduced, begin, end);
      });
    });
  }

  std::int64_t own_bytes() const noexcept override { return finisher_.bytes(); }

 private:
  std::int64_t num_results() const noexcept {
    return problem_.is_forward() ? terms_->num_rows : terms_->num_cols;
  }

  /// Zeros, or the term of the loop that a rule adds.
  template <class Function>
  void begin_rows(Function function, const SpmmCall& call, const Operand& reduced, VertexId begin,
                  VertexId end) const {
    for (VertexId i = begin; i < end; ++i) {
      S* const row = static_cast<S*>(reduced.data) + i * reduced.stride;
      const S loop = terms_->loops.empty() ? S(0) : static_cast<S>(terms_->loops[i]);
      if (loop == S(0)) {
        std::fill_n(row, problem_.features, S(0));
        continue;
      }
      S weight = weight_of(*terms_, function, loop, i, i);
      if (!problem_.is_forward()) weight *= share_of<S>(*terms_, i);
      const T* const x = call.x.as<T>().row(i);
      for (std::int64_t j = 0; j < problem_.features; ++j) row[j] = weight * static_cast<S>(x[j]);
    }
  }

  template <class Function>
  void add_edges(Function function, const SpmmCall& call, const Operand& reduced, VertexId begin,
                 VertexId end) const {
    const EdgeTerms& terms = *terms_;
    const VertexId* const from = (problem_.is_forward() ? terms.cols : terms.rows).data();
    const VertexId* const to = (problem_.is_forward() ? terms.rows : terms.cols).data();
    EdgeAdder<T> adder(
        {call.x.data, call.x.stride, reduced.data, reduced.stride, problem_.features});
    for (EdgeOffset k = 0; k < terms.num_edges; ++k) {
      if (to[k] < begin || to[k] >= end) continue;
      S weight = weight_of(terms, function, value_of<T>(terms, call.edge_values, k), terms.rows[k],
                           terms.cols[k]);
      if (!problem_.is_forward()) weight *= share_of<S>(terms, terms.rows[k]);
      adder.add(from[k], to[k], weight);
    }
    adder.flush();
  }

  void divide_rows(const Operand& reduced, VertexId begin, VertexId end) const {
    for (VertexId i = begin; i < end; ++i) {
      if (terms_->degrees[i] == 0) continue;
      S* const row = static_cast<S*>(reduced.data) + i * reduced.stride;
      for (std::int64_t j = 0; j < problem_.features; ++j) {
        row[j] /= static_cast<S>(terms_->degrees[i]);
      }
    }
  }

  SpmmProblem problem_;
  std::shared_ptr<const EdgeTerms> terms_;
  RowFinisher<T> finisher_;
};

/// Four sums at a time, in fp64.
template <class T>
double dot_of(const T* a, const T* b, std::int64_t features) {
  using S = SumOf<T>;
  double sums[4] = {};
  std::int64_t j = 0;
  const auto product = [&](std::int64_t at) {
    return static_cast<double>(static_cast<S>(a[at])) * static_cast<double>(static_cast<S>(b[at]));
  };
  for (; j + 4 <= features; j += 4) {
    for (std::int64_t i = 0; i < 4; ++i) sums[i] += product(j + i);
  }
  for (; j < features; ++j) sums[0] += product(j);
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

template <class T>
void find_edge_dots(const EdgeTerms& terms, const SpmmGradInputs& inputs,
                    const Operand& gradients) {
  using S = SumOf<T>;
  const std::int64_t features = inputs.x.cols;
  visit_weight(terms.function, [&](auto function) {
    const auto derivative = [&](S value, S row_number, S col_number) {
      return function.by_value(value, row_number, col_number);
    };
    const std::int64_t grain = 1 + min_parallel_work / (1 + features);
    parallel_for(terms.num_edges, grain, [&](EdgeOffset k) {
      const VertexId row = terms.rows[k], col = terms.cols[k];
      const double dot =
          dot_of(inputs.grad_y.as<T>().row(row), inputs.x.as<T>().row(col), features);
      const S value = value_of<T>(terms, inputs.edge_values, k);
      const S factor = weight_of(terms, derivative, value, row, col) * share_of<S>(terms, row);
      gradients.as<T>()(k, 0) = static_cast<T>(static_cast<S>(dot) * factor);
    });
  });
}

}  // namespace

std::unique_ptr<const PreparedSpmm> prepare_spmm_by_edges(const SpmmProblem& problem) {
  return prepare_as<PreparedSpmm, SpmmByEdges>(problem.precision, problem);
}

EdgeValueGradients edge_dots(const SpmmProblem& problem) {
#ifdef TESSERA_WITH_CUDA
  if (problem.device.kind == DeviceKind::cuda) return cuda_edge_dots(problem);
#endif
  return visit_precision(problem.precision, [&]<class T>() -> EdgeValueGradients {
    return [terms = edge_terms(problem)](const SpmmGradInputs& inputs, const Operand& gradients,
                                         Stream) { find_edge_dots<T>(*terms, inputs, gradients); };
  });
}

}  // namespace tessera::ops
