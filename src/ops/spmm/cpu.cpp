// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ops/check.hpp"
#include "ops/spmm/by_rows.hpp"
#include "ops/spmm/kernel.hpp"

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

double predicted_rows_us(const SpmmProblem& problem) {
  return static_cast<double>(problem.graph.num_edges() * problem.features) * 1e-3;
}

double predicted_tiles_us(const SpmmProblem& problem) { return 2 * predicted_rows_us(problem); }

std::unique_ptr<const PreparedSpmm> prepare_rows(const SpmmProblem& problem) {
  return prepare_spmm_by_rows(problem, {problem.features, false});
}

std::unique_ptr<const PreparedSpmm> prepare_tiles(const SpmmProblem& problem) {
  return prepare_spmm_by_rows(problem, {64, true});
}

}  // namespace

std::span<const SpmmKernel> spmm_kernels() {
  static const std::array<SpmmKernel, 2> table = {{
      {{"spmm/cpu/rows", "rows in ranges of equal edges, sums in vector registers", "spmm",
        DeviceKind::cpu, true},
       why_not_rows,
       predicted_rows_us,
       prepare_rows},
      {{"spmm/cpu/tiles", "the same on slices of features, copied so that they stay in the caches",
        "spmm", DeviceKind::cpu, true},
       why_not_tiles,
       predicted_tiles_us,
       prepare_tiles},
  }};
  return table;
}

}  // namespace tessera::ops
