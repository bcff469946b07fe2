// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/launch.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/parts.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/cuda/rows/scheduled_rows.hpp"

namespace tessera::ops {
namespace {

constexpr auto rows_keys = collect_keys<RowsKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const RowsReduction reduction : {RowsReduction::pattern_sum, RowsReduction::weighted_sum,
                                          RowsReduction::best, RowsReduction::winner_sum}) {
      for (int flags = 0; flags < 4; ++flags) {
        const RowsKey key = {precision, (flags & 1) != 0, reduction, (flags & 2) != 0};
        if (is_compiled(key)) add(key);
      }
    }
  }
});

bool of_winners(const SpmmProblem& problem) {
  return problem.reduction == Reduction::max || problem.reduction == Reduction::min;
}

const RowsPolicy& policy_of(const SpmmProblem& problem, std::size_t index) {
  return of_winners(problem) ? best_policies[index] : rows_policies[index];
}

/// Reduces rows of A, or its columns in the backward pass, by one policy.
class CudaRows final : public PreparedSpmm {
 public:
  CudaRows(const SpmmProblem& problem, std::size_t policy, const RowLengths& rows,
           bool follows = false)
      : problem_(problem), policy_(policy), matrix_(problem), follows_(follows) {
    const RowsPolicy& shape = policy_of(problem, policy);
    const bool forward = problem.pass == SpmmPass::forward;
    rows_ = ScheduledRows(matrix_.rows(), rows, shape,
                          rows_cut(problem, rows, shape, device_traits(problem.device)),
                          problem.place());
    for (const bool aligned : {false, true}) {
      for (const bool weighted : {false, true}) {
        functions_[aligned ? 1 : 0][weighted ? 1 : 0] = function(aligned, weighted);
      }
    }
    // A best product has its source beside it.
    const std::int64_t words = of_winners(problem) && forward ? 2 : 1;
    slots_ = workspace_.add<float>(checked_area(rows_.num_slots() * words, problem.features));
    workspace_.add_counters(rows_.num_split_rows() * num_blocks_of_features());
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0) return;
    check_reach(call.x, "x");
    check_reach(call.y, "y");
    RowsLaunch launch = matrix_.launch(call);
    const RowsPolicy& policy = policy_of(problem_, policy_);
    launch.work = rows_.work();
    launch.work.slots = slots_.in(workspace);
    launch.work.num_done = workspace.counters;
    launch.work.follows = follows_;
    set_epilogue(problem_, call, launch.epilogue);
    // An epilogue looks itself how it may store.
    const bool aligned =
        on_boundaries(call.x, problem_.features, policy.bytes) &&
        (!problem_.is_plain() || on_boundaries(call.y, problem_.features, policy.bytes)) &&
        on_boundaries(call.winners, problem_.features) &&
        on_boundaries(call.won_by, problem_.features);
    functions_[aligned ? 1 : 0][launch.matrix.weighted() ? 1 : 0](launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  RowsFunction function(bool aligned, bool weighted) const {
    const bool epilogue = !problem_.is_plain();
    const RowsKey key = {stored_as(problem_.precision), aligned,
                         reduction(weighted || (epilogue && !aligned)), epilogue};
    return kernels_of<rows_keys>(key, []<RowsKey k>() { return RowsKernels<k>::all(); })[policy_];
  }

  RowsReduction reduction(bool weighted) const {
    if (!of_winners(problem_)) {
      return weighted ? RowsReduction::weighted_sum : RowsReduction::pattern_sum;
    }
    return problem_.pass == SpmmPass::forward ? RowsReduction::best : RowsReduction::winner_sum;
  }

  /// At most: where rows are not on boundaries, a lane takes one feature.
  std::int64_t num_blocks_of_features() const {
    const std::int64_t lanes = policy_of(problem_, policy_).lanes;
    return (problem_.features + lanes - 1) / lanes;
  }

  SpmmProblem problem_;
  std::size_t policy_;
  DeviceMatrix matrix_;
  bool follows_;
  ScheduledRows rows_;
  RowsFunction functions_[2][2] = {};  ///< for rows on boundaries or not, weighted or not
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

constexpr VertexId most_listed_rows = 1 << 24;  ///< half a gigabyte

std::string why_not(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.features > max_blocks_of_features * policy.lanes) return "too many features";
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_features) return "features of edges, not of vertices";
  if (!takes(policy, static_cast<int>(bytes_per_element(problem.precision)))) {
    return "lanes of 8 bytes are for 16-bit features";
  }
  if (policy.listed && problem.graph.num_rows() > most_listed_rows) {
    return fmt::format("lists more than {} rows", most_listed_rows);
  }
  return lanes_fit(problem, policy) ? "" : "its lanes per edge do not fit the features";
}

std::string name_of(const RowsPolicy& policy) {
  std::string name = fmt::format("{}x{}x{}", policy.lanes, policy.edges, policy.unroll);
  if (policy.shared_ids) name += "_shared";
  if (policy.bytes == 8) name += "_narrow";
  if (policy.vectors == 2) name += "_double";
  if (policy.listed) name += "_listed";
  return name;
}

std::string work_split(const RowsPolicy& policy) {
  std::string split =
      fmt::format("{} lanes of {} bytes per edge, {} edges of a row at once, {} in flight",
                  policy.lanes, policy.bytes * policy.vectors, policy.edges, policy.unroll);
  if (policy.shared_ids) split += ", ids passed round";
  if (policy.listed) split += ", rows by their length";
  return split;
}

/// What kernels of both kinds have in common.
template <std::size_t index>
SpmmKernel kernel_with_policy() {
  SpmmKernel kernel;
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predicted_rows_us(problem, policy_of(problem, index), device_traits(problem.device));
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    const ProblemRows rows(problem);
    return std::make_unique<CudaRows>(problem, index, rows.lengths());
  };
  return kernel;
}

template <std::size_t index>
SpmmKernel sum_kernel() {
  constexpr RowsPolicy policy = rows_policies[index];
  SpmmKernel kernel = kernel_with_policy<index>();
  kernel.info.name = "spmm/cuda/" + name_of_rows(index);
  kernel.info.description = "sums in registers, " + work_split(policy);
  kernel.why_not = [](const SpmmProblem& problem) {
    if (of_winners(problem)) return std::string("sums and means only");
    return why_not(problem, rows_policies[index]);
  };
  return kernel;
}

template <std::size_t index>
SpmmKernel best_kernel() {
  constexpr RowsPolicy policy = best_policies[index];
  SpmmKernel kernel = kernel_with_policy<index>();
  kernel.info.name = "spmm/cuda/best_" + name_of(policy);
  kernel.info.description = "largest or smallest product in registers, " + work_split(policy);
  kernel.why_not = [](const SpmmProblem& problem) {
    if (!of_winners(problem)) return std::string("max and min only");
    return why_not(problem, best_policies[index]);
  };
  return kernel;
}

}  // namespace

std::unique_ptr<const PreparedSpmm> prepare_some_rows(const SpmmProblem& problem,
                                                      std::size_t policy, const RowLengths& rows,
                                                      bool follows) {
  return std::make_unique<CudaRows>(problem, policy, rows, follows);
}

std::string name_of_rows(std::size_t policy) { return "rows_" + name_of(rows_policies[policy]); }

void append_cuda_rows_kernels(std::vector<SpmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(sum_kernel<i>()), ...); }
  (std::make_index_sequence<rows_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(best_kernel<i>()), ...); }
  (std::make_index_sequence<best_policies.size()>{});
}

}  // namespace tessera::ops
