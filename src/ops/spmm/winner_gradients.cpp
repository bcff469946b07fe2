// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/winner_gradients.hpp"

#include "ops/check.hpp"
#include "ops/scales.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

template <class T>
void run_as(const SpmmProblem& problem, const SpmmGradInputs& inputs,
            const Operand& grad_edge_values) {
  using S = SumOf<T>;
  const Graph& graph = problem.graph;
  const auto grad_y = inputs.grad_y.as<T>();
  const auto x = inputs.x.as<T>();
  const auto result = grad_edge_values.as<T>();
  parallel_for(graph.num_rows(), 64, [&](std::int64_t row) {
    const S row_scale = graph.has_row_scale() ? static_cast<S>(graph.row_scale()[row]) : S(1);
    for (EdgeOffset edge = graph.row_offsets()[row]; edge < graph.row_offsets()[row + 1]; ++edge) {
      const VertexId col = graph.col_indices()[edge];
      double sum = 0;
      for (std::int64_t k = 0; k < problem.features; ++k) {
        if (inputs.winners(row, k) != col) continue;
        sum += static_cast<double>(grad_y(row, k)) * static_cast<double>(x(col, k));
      }
      const S col_scale = graph.has_col_scale() ? static_cast<S>(graph.col_scale()[col]) : S(1);
      result(edge, 0) = static_cast<T>(static_cast<S>(sum) * row_scale * col_scale);
    }
  });
}

class CpuWinnerGradients final : public EdgeValueGradients {
 public:
  explicit CpuWinnerGradients(const SpmmProblem& problem) : problem_(problem) {}

  void run(const SpmmGradInputs& inputs, const Operand& grad_edge_values, Stream) const override {
    visit_precision(problem_.precision,
                    [&]<class T>() { run_as<T>(problem_, inputs, grad_edge_values); });
  }

 private:
  SpmmProblem problem_;
};

}  // namespace

std::unique_ptr<const EdgeValueGradients> cpu_winner_gradients(const SpmmProblem& problem) {
  return std::make_unique<CpuWinnerGradients>(problem);
}

}  // namespace tessera::ops
