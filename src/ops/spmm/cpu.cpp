// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ops/check.hpp"
#include "ops/spmm/by_rows.hpp"
#include "ops/spmm/kernel.hpp"
#include "ops/spmm/scatter.hpp"

namespace tessera::ops {
namespace {

std::string why_not_rows(const SpmmProblem& problem) {
  return why_not_cpu_precision(problem.precision);
}

std::string why_not_tiles(const SpmmProblem& problem) {
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_rows) return "features of edges, not of vertices";
  return why_not_cpu_precision(problem.precision);
}

std::string why_not_scatter(const SpmmProblem& problem) {
  if (problem.pass == SpmmPass::forward) return "a forward pass";
  if (problem.reduction == Reduction::max || problem.reduction == Reduction::min) {
    return "max and min";
  }
  if (problem.precision == Precision::bf16) return "features in bf16";
  return why_not_tiles(problem);
}

double predicted_rows_us(const SpmmProblem& problem) {
  return static_cast<double>(problem.graph.num_edges() * problem.features) * 1e-3;
}

double predicted_tiles_us(const SpmmProblem& problem) { return 2 * predicted_rows_us(problem); }

/// It pays where rows of dY would be gathered from beyond the nearest caches, and where the sums,
/// which are gone through once per `scatter_chain` rows, are few beside the edges.
double predicted_scatter_us(const SpmmProblem& problem) {
  constexpr std::int64_t near_bytes = 1 << 20;
  const Graph& graph = problem.graph;
  const std::int64_t dy_bytes = graph.num_rows() * problem.features *
                                static_cast<std::int64_t>(bytes_per_element(problem.precision));
  if (dy_bytes < near_bytes) return 2 * predicted_rows_us(problem);
  const std::int64_t chains = graph.num_rows() / scatter_chain + 1;
  const auto swept = static_cast<double>(chains * graph.num_cols() * problem.features);
  return 0.3 * predicted_rows_us(problem) + 2e-3 * swept;
}

std::unique_ptr<const PreparedSpmm> prepare_rows(const SpmmProblem& problem) {
  return prepare_spmm_by_rows(problem, {problem.features, false});
}

std::unique_ptr<const PreparedSpmm> prepare_tiles(const SpmmProblem& problem) {
  return prepare_spmm_by_rows(problem, {64, true});
}

}  // namespace

std::span<const SpmmKernel> spmm_kernels() {
  static const std::array<SpmmKernel, 3> table = {{
      {{"spmm/cpu/rows", "rows in ranges of equal edges, sums in vector registers", "spmm",
        DeviceKind::cpu, true},
       why_not_rows,
       predicted_rows_us,
       prepare_rows},
      {{"spmm_backward/cpu/scatter", "each row of dY is added to the sums of its sources",
        "spmm_backward", DeviceKind::cpu, true},
       why_not_scatter,
       predicted_scatter_us,
       prepare_spmm_scatter},
      {{"spmm/cpu/tiles", "the same on slices of features, copied so that they stay in the caches",
        "spmm", DeviceKind::cpu, true},
       why_not_tiles,
       predicted_tiles_us,
       prepare_tiles},
  }};
  return table;
}

}  // namespace tessera::ops
