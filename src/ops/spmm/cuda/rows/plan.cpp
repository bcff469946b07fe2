// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/launch.hpp"

#include <algorithm>
#include <array>
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
#include "ops/spmm/cuda/tile_side.hpp"
#include "ops/spmm/cuda/units_of_x.hpp"

namespace tessera::ops {
namespace {

constexpr std::array row_starts = {RowStarts::boundaries, RowStarts::units, RowStarts::anywhere,
                                   RowStarts::elements};

constexpr auto rows_keys = collect_keys<RowsKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const RowsReduction reduction :
         {RowsReduction::pattern_sum, RowsReduction::weighted_sum, RowsReduction::pattern_best,
          RowsReduction::best, RowsReduction::pattern_winner_sum, RowsReduction::winner_sum}) {
      for (const RowStarts starts : row_starts) {
        for (const bool epilogue : {false, true}) {
          const RowsKey key = {precision, starts, reduction, epilogue};
          if (is_compiled(key)) add(key);
        }
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
           VertexId sorted_rows, bool follows = false)
      : problem_(problem), policy_(policy), matrix_(problem), follows_(follows) {
    const RowsPolicy& shape = policy_of(problem, policy);
    rows_ = ScheduledRows(matrix_.rows(), rows, shape,
                          rows_cut(problem, rows, shape, device_traits(problem.device)),
                          problem.place(), sorted_rows);
    for (const RowStarts starts : row_starts) {
      for (const bool weighted : {false, true}) {
        functions_[static_cast<int>(starts)][weighted ? 1 : 0] = function(starts, weighted);
      }
    }
    if (!follows && copies_rows(problem, rows, shape, device_traits(problem.device))) {
      x_units_ = workspace_.add<std::byte>(bytes_of_units(problem));
    }
    // A best product has its source beside it.
    const std::int64_t words = finds_best() ? 2 : 1;
    slots_ = workspace_.add<float>(checked_area(rows_.num_slots() * words, problem.features));
    workspace_.add_counters(rows_.num_split_rows() * num_blocks_of_features());
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0) return;
    check_reach(call.x, "x");
    check_reach(call.y, "y");
    const RowsPolicy& policy = policy_of(problem_, policy_);
    RowStarts starts = starts_of(call, policy);
    SpmmCall gathered = call;
    if (starts == RowStarts::anywhere && x_units_.size > 0) {
      gathered.x = copy_to_units(call.x, x_units_.in(workspace), stream);
      starts = problem_.is_plain() ? RowStarts::units : RowStarts::boundaries;
    }
    RowsLaunch launch = matrix_.launch(gathered);
    launch.work = rows_.work();
    launch.work.slots = slots_.in(workspace);
    launch.work.num_done = workspace.counters;
    launch.work.follows = follows_;
    launch.features.rows_in_blocks =
        static_cast<VertexId>(rows_in_blocks(call.x, problem_.features));
    set_epilogue(problem_, call, launch.epilogue);
    functions_[static_cast<int>(starts)][is_weighted(launch) ? 1 : 0](launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  /// An epilogue looks itself how it may store.
  RowStarts starts_of(const SpmmCall& call, const RowsPolicy& policy) const {
    const bool on =
        on_boundaries(call.x, problem_.features, policy.bytes) &&
        (!problem_.is_plain() || on_boundaries(call.y, problem_.features, policy.bytes)) &&
        on_boundaries(call.winners, problem_.features) &&
        on_boundaries(call.won_by, problem_.features);
    if (on) return RowStarts::boundaries;
    return of_winners(problem_) || takes_elements(problem_, policy) ? RowStarts::elements
                                                                    : RowStarts::anywhere;
  }

  bool finds_best() const { return of_winners(problem_) && problem_.pass == SpmmPass::forward; }
  /// Weights of rows scale sums when they are done, but take part in comparisons.
  bool is_weighted(const RowsLaunch& launch) const {
    return launch.matrix.weighted() || (finds_best() && launch.epilogue.row_scale != nullptr);
  }

  /// Where there is no kernel without weights, the one with them; null where there is none of
  /// either, which nobody asks for.
  RowsFunction function(RowStarts starts, bool weighted) const {
    RowsKey key = {stored_as(problem_.precision), starts, reduction(weighted),
                   !problem_.is_plain()};
    if (!is_compiled(key)) key.reduction = reduction(true);
    if (!is_compiled(key)) return nullptr;
    return kernels_of<rows_keys>(key, []<RowsKey k>() { return RowsKernels<k>::all(); })[policy_];
  }

  RowsReduction reduction(bool weighted) const {
    if (!of_winners(problem_)) {
      return weighted ? RowsReduction::weighted_sum : RowsReduction::pattern_sum;
    }
    if (finds_best()) return weighted ? RowsReduction::best : RowsReduction::pattern_best;
    return weighted ? RowsReduction::winner_sum : RowsReduction::pattern_winner_sum;
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
  RowsFunction functions_[row_starts.size()][2] = {};  ///< by where rows begin, weighted or not
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
  WorkspacePart<std::byte> x_units_;  ///< a copy of X, where its rows fill no whole units
};

std::string why_not_rows(const SpmmProblem& problem) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.heads > 1) return "several values per edge";
  return problem.edge_features ? "features of edges, not of vertices" : "";
}

std::string why_not_lists(const SpmmProblem& problem) {
  constexpr VertexId most_rows = 1 << 24;  // half a gigabyte
  if (problem.graph.num_rows() <= most_rows) return {};
  return fmt::format("lists more than {} rows", most_rows);
}

constexpr const char* sums_only = "sums and means only";

std::string why_not(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (std::string reason = why_not_rows(problem); !reason.empty()) return reason;
  if (problem.features > max_blocks_of_features * policy.lanes) return "too many features";
  if (!takes(policy, static_cast<int>(bytes_per_element(problem.precision)))) {
    return "lanes of 8 bytes are for 16-bit features";
  }
  if (policy.listed) {
    if (std::string reason = why_not_lists(problem); !reason.empty()) return reason;
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
    return std::make_unique<CudaRows>(
        problem, index, rows.lengths(),
        sorted_neighbours(problem.graph, tile_side(problem.pass), problem.precision));
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
    if (of_winners(problem)) return std::string(sums_only);
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

std::string why_not_listed_rows(const SpmmProblem& problem) {
  if (of_winners(problem)) return sums_only;
  if (std::string reason = why_not_rows(problem); !reason.empty()) return reason;
  if (problem.features > max_features_of_rows) return "too many features";
  return why_not_lists(problem);
}

std::unique_ptr<const PreparedSpmm> prepare_some_rows(const SpmmProblem& problem,
                                                      std::size_t policy, const RowLengths& rows,
                                                      VertexId sorted_rows, bool follows) {
  return std::make_unique<CudaRows>(problem, policy, rows, sorted_rows, follows);
}

std::string name_of_rows(std::size_t policy) { return "rows_" + name_of(rows_policies[policy]); }

void append_cuda_rows_kernels(std::vector<SpmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(sum_kernel<i>()), ...); }
  (std::make_index_sequence<rows_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(best_kernel<i>()), ...); }
  (std::make_index_sequence<best_policies.size()>{});
}

}  // namespace tessera::ops
