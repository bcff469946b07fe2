// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include "ops/plan/check.hpp"
#include "ops/spmm/cpu.hpp"
#include "ops/spmm/kernel.hpp"
#ifdef TESSERA_WITH_CUDA
#include "ops/spmm/cuda/kernels.hpp"
#endif

namespace tessera::ops {
namespace {

std::string why_not_rows(const SpmmProblem& problem) {
  if (problem.output() == Precision::fp16) return "fp16 exists on the GPU only";
  return why_not_cpu_precision(problem.precision);
}

std::string why_not_tiles(const SpmmProblem& problem) {
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_features) return "features of edges, not of vertices";
  return why_not_rows(problem);
}

std::string why_not_scatter(const SpmmProblem& problem) {
  if (problem.is_forward()) return "for the backward pass only";
  if (has_winners(problem.reduction)) return "max and min";
  if (!problem.is_plain()) return "no epilogue";
  if (problem.precision == Precision::bf16) return "features in bf16";
  return why_not_tiles(problem);
}

std::string why_not_edges(const SpmmProblem& problem) {
  if (has_winners(problem.reduction)) return "max and min";
  return why_not_tiles(problem);
}

std::unique_ptr<const PreparedSpmm> prepare_rows(const SpmmProblem& problem) {
  return prepare_spmm_by_rows(problem, false);
}

std::unique_ptr<const PreparedSpmm> prepare_tiles(const SpmmProblem& problem) {
  return prepare_spmm_by_rows(problem, true);
}

}  // namespace

std::span<const SpmmKernel> spmm_kernels() {
  static const std::vector<SpmmKernel> table = [] {
    std::vector<SpmmKernel> kernels = {
        {{"spmm/cpu/rows", "rows in ranges of equal edges, sums in vector registers", "spmm",
          DeviceKind::cpu, true},
         why_not_rows,
         predict_spmm_rows_us,
         prepare_rows},
        {{"spmm_backward/cpu/scatter", "each row of dY is added to the sums of its sources",
          "spmm_backward", DeviceKind::cpu, true},
         why_not_scatter,
         predict_spmm_scatter_us,
         prepare_spmm_scatter},
        {{"spmm/cpu/tiles",
          "the same on slices of features, copied so that they stay in the caches", "spmm",
          DeviceKind::cpu, true},
         why_not_tiles,
         predict_spmm_tiles_us,
         prepare_tiles},
        {{.name = "spmm/cpu/scatter",
          .description = "edges in the order in which they are, each added to its target",
          .op = "spmm",
          .device = DeviceKind::cpu,
          .deterministic = true,
          .strict = false},
         why_not_edges,
         predict_spmm_by_edges_us,
         prepare_spmm_by_edges},
    };
#ifdef TESSERA_WITH_CUDA
    append_cuda_rows_kernels(kernels);
    append_cuda_heads_kernels(kernels);
    append_cuda_tall_kernels(kernels);
    append_cuda_short_kernels(kernels);
    append_cuda_hybrid_kernels(kernels);
    append_cuda_scatter_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
