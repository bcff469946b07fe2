// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>

#include "ops/check.hpp"
#include "ops/row_schedule.hpp"
#include "ops/scales.hpp"
#include "ops/sddmm/edges.hpp"
#include "ops/sddmm/kernel.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// Below this many products a run takes a few microseconds, less than waking threads.
constexpr std::int64_t min_parallel_work = 1 << 16;

template <class T>
SddmmFunction of_type(const SddmmFunctions& functions) {
  if constexpr (std::is_same_v<T, double>) return functions.fp64;
  if constexpr (std::is_same_v<T, float>) return functions.fp32;
  if constexpr (std::is_same_v<T, Bfloat16>) return functions.bf16;
}

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
    const SddmmEdgesTable& table = sddmm_edges();
    const SddmmFunction function =
        of_type<T>(problem_.function == EdgeFunction::dot ? table.dot : table.add);
    const auto task = [&](std::int64_t i) {
      function(operands, schedule_.ranges[static_cast<std::size_t>(i)]);
    };
    const auto count = static_cast<std::int64_t>(schedule_.ranges.size());
    if (graph.num_edges() * std::max<std::int64_t>(problem_.features, 8) >= min_parallel_work) {
      parallel_tasks(count, task);
    } else {
      for (std::int64_t i = 0; i < count; ++i) task(i);
    }
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
  return visit_precision(problem.precision, [&]<class T>() -> std::unique_ptr<const PreparedSddmm> {
    return std::make_unique<SddmmByRows<T>>(problem);
  });
}

}  // namespace

std::span<const SddmmKernel> cpu_sddmm_kernels() {
  static const std::array<SddmmKernel, 1> table = {{
      {{"sddmm/cpu/rows", "rows in ranges of equal edges, four edges at a time in vector registers",
        "sddmm", DeviceKind::cpu, true},
       why_not,
       predicted_us,
       prepare},
  }};
  return table;
}

}  // namespace tessera::ops
