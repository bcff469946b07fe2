// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <memory>
#include <string>

#include "tessera/core/parallel.hpp"

#include "ops/edge_difference/kernel.hpp"
#include "ops/plan/check.hpp"

namespace tessera::ops {
namespace {

/// Row by row: backward sums what ends in a vertex over its row, and what begins in it over its
/// column, so that nobody writes to a row of somebody else's.
template <class T>
class DifferenceByRows final : public PreparedEdgeDifference {
 public:
  explicit DifferenceByRows(const EdgeDifferenceProblem& problem) : graph_(problem.graph) {
    if (problem.options.backward) csc_ = graph_.csc();  // made here, since runs allocate nothing
  }

  void run(ConstOperand x, Operand differences, Stream, const WorkspaceView&) const override {
    const MatrixView<const T> from = x.as<T>();
    const MatrixView<T> to = differences.as<T>();
    parallel_for(graph_.num_rows(), even_grain(graph_.num_rows(), 64), [&](std::int64_t row) {
      for (EdgeOffset e = graph_.row_offsets()[row]; e < graph_.row_offsets()[row + 1]; ++e) {
        const T* const source = from.row(graph_.col_indices()[e]);
        for (std::int64_t f = 0; f < from.cols; ++f) to(e, f) = from(row, f) - source[f];
      }
    });
  }

  void run_backward(ConstOperand grad_differences, Operand grad_x, Stream,
                    const WorkspaceView&) const override {
    const MatrixView<const T> grad = grad_differences.as<T>();
    const MatrixView<T> to = grad_x.as<T>();
    parallel_for(graph_.num_rows(), even_grain(graph_.num_rows(), 64), [&](std::int64_t v) {
      for (std::int64_t f = 0; f < to.cols; ++f) to(v, f) = T{0};
      for (EdgeOffset e = graph_.row_offsets()[v]; e < graph_.row_offsets()[v + 1]; ++e) {
        for (std::int64_t f = 0; f < to.cols; ++f) to(v, f) += grad(e, f);
      }
      for (EdgeOffset k = csc_.col_offsets[v]; k < csc_.col_offsets[v + 1]; ++k) {
        const T* const leaving = grad.row(csc_.csr_positions[k]);
        for (std::int64_t f = 0; f < to.cols; ++f) to(v, f) -= leaving[f];
      }
    });
  }

 private:
  Graph graph_;
  Csc csc_;
};

std::string why_not_rows(const EdgeDifferenceProblem& problem) {
  const Precision precision = problem.options.precision;
  if (precision == Precision::fp32 || precision == Precision::fp64) return "";
  return "takes fp32 and fp64 only";
}

/// About a nanosecond for each number on one core.
double predicted_rows_us(const EdgeDifferenceProblem& problem) {
  const std::int64_t numbers = problem.graph.num_edges() * problem.options.features;
  return static_cast<double>(numbers) * 1e-3 / num_threads();
}

std::unique_ptr<const PreparedEdgeDifference> prepare_rows(const EdgeDifferenceProblem& problem) {
  if (problem.options.precision == Precision::fp64) {
    return std::make_unique<DifferenceByRows<double>>(problem);
  }
  return std::make_unique<DifferenceByRows<float>>(problem);
}

}  // namespace

std::span<const EdgeDifferenceKernel> cpu_edge_difference_kernels() {
  static const std::array<EdgeDifferenceKernel, 1> table = {{
      {{"edge_difference/cpu/rows", "row by row, backward also column by column", "edge_difference",
        DeviceKind::cpu, true},
       why_not_rows,
       predicted_rows_us,
       prepare_rows},
  }};
  return table;
}

}  // namespace tessera::ops
