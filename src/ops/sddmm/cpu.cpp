// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "ops/plan/check.hpp"
#include "ops/rows/row_schedule.hpp"
#include "ops/rows/scales.hpp"
#include "ops/sddmm/edges.hpp"
#include "ops/sddmm/kernel.hpp"
#include "tessera/core/parallel.hpp"
#ifdef TESSERA_WITH_CUDA
#include "ops/sddmm/cuda/kernels.hpp"
#endif

namespace tessera::ops {
namespace {

template <class T>
class SddmmByRows final : public PreparedSddmm {
  using S = SumOf<T>;

 public:
  explicit SddmmByRows(const SddmmProblem& problem) : problem_(problem) {
    const Graph& graph = problem.graph;
    schedule_ = make_row_schedule(graph.num_rows(), graph.row_offsets().data());
    if (problem.factor == EdgeFactor::none) return;
    row_scale_ = problem.factor == EdgeFactor::mean_scales ? mean_scale<S>(graph)
                                                           : scale_as<S>(graph.row_scale());
    col_scale_ = scale_as<S>(graph.col_scale());
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream) const override {
    const Graph& graph = problem_.graph;
    SddmmEdges operands;
    operands.row_offsets = graph.row_offsets().data();
    operands.col_indices = graph.col_indices().data();
    operands.num_edges = graph.num_edges();
    operands.features = problem_.features;
    operands.heads = problem_.heads;
    operands.u = u.data;
    operands.u_stride = u.stride;
    operands.v = v.data;
    operands.v_stride = v.stride;
    operands.edges = edges.data;
    operands.edges_stride = edges.stride;
    operands.row_scale = row_scale_.data();
    operands.col_scale = col_scale_.data();
    const auto& functions = sddmm_edges().of<T>();
    const SddmmFunction function =
        problem_.function == EdgeFunction::dot ? functions.dot : functions.add;
    const auto task = [&](std::int64_t i) {
      function(operands, schedule_.ranges[static_cast<std::size_t>(i)]);
    };
    const auto count = static_cast<std::int64_t>(schedule_.ranges.size());
    const bool few =
        graph.num_edges() * std::max<std::int64_t>(problem_.features, 8) < min_parallel_work;
    parallel_for(count, few ? count : 1, task);
  }

 private:
  SddmmProblem problem_;
  RowSchedule schedule_;
  SharedArray<S> row_scale_;
  SharedArray<S> col_scale_;
};

std::string why_not(const SddmmProblem& problem) {
  return why_not_cpu_precision(problem.precision);
}

/// Gathering a source's features dominates; each edge costs a little besides.
double predicted_us(const SddmmProblem& problem) {
  const double bytes = static_cast<double>(problem.graph.num_edges()) *
                       (static_cast<double>(problem.features) *
                            static_cast<double>(bytes_per_element(problem.precision)) +
                        32);
  return bytes * 4e-5 / num_threads();
}

std::unique_ptr<const PreparedSddmm> prepare(const SddmmProblem& problem) {
  return prepare_as<PreparedSddmm, SddmmByRows>(problem.precision, problem);
}

}  // namespace

std::span<const SddmmKernel> sddmm_kernels() {
  static const std::vector<SddmmKernel> table = [] {
    std::vector<SddmmKernel> kernels = {
        {{"sddmm/cpu/rows",
          "rows in ranges of equal edges, four edges at a time in vector registers", "sddmm",
          DeviceKind::cpu, true},
         why_not,
         predicted_us,
         prepare},
    };
#ifdef TESSERA_WITH_CUDA
    append_cuda_sddmm_kernels(kernels);
    append_cuda_list_kernels(kernels);
    append_cuda_tall_dots_kernels(kernels);
    append_cuda_short_dots_kernels(kernels);
#endif
    return kernels;
  }();
  return table;
}

}  // namespace tessera::ops
