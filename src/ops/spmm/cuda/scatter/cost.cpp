// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/scatter/cost.hpp"

#include <algorithm>

#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

struct ScatterCoefficients {
  double launch_us;           ///< of its two or three kernels
  double least_edge_bytes;    ///< a shorter row takes as long as one of so many bytes
  double added_bytes_per_us;  ///< of fp32 sums, by atomics in L2
  double swept_bytes_per_us = streamed_bytes_per_us;  ///< rows that are cleared, and finished
  double reduce_launch_us;                            ///< of a kernel on rows
  double gathered_bytes_per_us;
  double conversion_us;  ///< of a graph of no edges, with planning
  double sorted_edges_per_us;

  void scale(DeviceRatio ratio) {
    added_bytes_per_us *= ratio.processors;
    gathered_bytes_per_us *= ratio.processors;
    swept_bytes_per_us *= ratio.memory;
    sorted_edges_per_us *= ratio.memory;
  }
};

constexpr Fitted<ScatterCoefficients> coefficients = {
    fitted_on_h200("2026-11-16",
                   "both forms on cora, pubmed and amazon-size at 16 and 64 features"),
    {.launch_us = 3,
     .least_edge_bytes = 64,
     .added_bytes_per_us = 1.35e6,
     .reduce_launch_us = 2.5,
     .gathered_bytes_per_us = 8e6,
     .conversion_us = 225,
     .sorted_edges_per_us = 1200}};

/// Of edges in no order, or of a graph.
struct Shape {
  double edges;
  double rows;
};

Shape shape_of(const SpmmProblem& problem) {
  const auto of = [&](const auto& edges) -> Shape {
    const bool forward = problem.pass == SpmmPass::forward;
    return {static_cast<double>(edges.num_edges()),
            static_cast<double>(forward ? edges.num_rows() : edges.num_cols())};
  };
  return problem.edges ? of(*problem.edges) : of(problem.graph);
}

}  // namespace

double predict_scatter_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  const ScatterCoefficients fit = coefficients.on(traits);
  const Shape shape = shape_of(problem);
  const double row_bytes =
      static_cast<double>(problem.features) * static_cast<double>(sizeof(float));
  const bool finishes = !problem.is_plain() || problem.reduction == Reduction::mean ||
                        bytes_per_element(problem.output()) != static_cast<int>(sizeof(float));
  const double sweeps = finishes ? 4 : 1;
  return fit.launch_us +
         shape.edges * std::max(row_bytes, fit.least_edge_bytes) / fit.added_bytes_per_us +
         sweeps * shape.rows * row_bytes / fit.swept_bytes_per_us;
}

FormCosts predict_forms_on(const DeviceTraits& traits, const SpmmProblem& problem, double passes) {
  const ScatterCoefficients fit = coefficients.on(traits);
  const Shape shape = shape_of(problem);
  const double row_bytes = static_cast<double>(problem.features) *
                           static_cast<double>(bytes_per_element(problem.precision));
  FormCosts costs;
  costs.scatter_us = passes * predict_scatter_us(problem, traits);
  costs.reduce_us = passes * (fit.reduce_launch_us +
                              shape.edges * std::max(row_bytes, fit.least_edge_bytes) /
                                  fit.gathered_bytes_per_us +
                              shape.rows * row_bytes / fit.swept_bytes_per_us);
  costs.conversion_us = passes * (fit.conversion_us + shape.edges / fit.sorted_edges_per_us);
  return costs;
}

}  // namespace tessera::ops
