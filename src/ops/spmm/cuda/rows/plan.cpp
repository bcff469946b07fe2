// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/launch.hpp"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/rows/row_lists.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/cuda/rows/policy.hpp"
#include "ops/spmm/parts.hpp"

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

/// Reduces rows of A, or its columns in the backward pass, by one policy.
class CudaRows final : public PreparedSpmm {
 public:
  CudaRows(const SpmmProblem& problem, const RowsPolicy& policy, const RowLengths& rows,
           VertexId sorted_rows, bool follows = false, std::string note = {})
      : problem_(problem), policy_(policy), matrix_(problem), follows_(follows) {
    const DeviceTraits& traits = device_traits(problem.device);
    const RowsPolicy taken = chosen_parts(problem, rows, policy, traits).taken;
    parts_beside_ = taken != policy;
    note_ = std::move(note);
    if (parts_beside_) note_ += "; parts of rows beside each other";
    rows_ = ScheduledRows(matrix_.rows(), rows, policy, rows_cut(problem, rows, taken, traits),
                          problem.place(), sorted_rows);
    for (const RowStarts starts : row_starts) {
      for (const bool weighted : {false, true}) {
        functions_[static_cast<int>(starts)][weighted ? 1 : 0] = function(starts, weighted);
      }
    }
    if (!follows && copies_rows(problem, rows, taken, traits)) {
      x_units_ = workspace_.add<std::byte>(bytes_of_units(problem));
    }
    // A best product has its source beside it.
    const std::int64_t words = problem_.finds_best() ? 2 : 1;
    slots_ = workspace_.add<float>(checked_area(rows_.num_slots() * words, problem.features));
    workspace_.add_counters(rows_.num_split_rows() * num_blocks_of_features());
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0) return;
    check_reach(call.x, "x");
    check_reach(call.y, "y");
    RowStarts starts = starts_of(call);
    SpmmCall gathered = call;
    if (starts == RowStarts::anywhere && x_units_.size > 0) {
      gathered.x = copy_to_units(call.x, x_units_.in(workspace), stream);
      starts = problem_.is_plain() ? RowStarts::units : RowStarts::boundaries;
    }
    RowsLaunch launch = matrix_.launch(gathered);
    launch.work = rows_.work();
    launch.work.slots = slots_.in(workspace);
    launch.work.num_done = workspace.counters;
    launch.work.parts_beside = parts_beside_;
    launch.work.follows = follows_;
    launch.features.rows_in_blocks =
        static_cast<VertexId>(rows_in_blocks(call.x, problem_.features));
    set_epilogue(problem_, call, launch.epilogue);
    functions_[static_cast<int>(starts)][is_weighted(launch) ? 1 : 0](launch, stream);
  }

 private:
  /// An epilogue looks itself how it may store.
  RowStarts starts_of(const SpmmCall& call) const {
    const bool on =
        on_boundaries(call.x, problem_.features, policy_.bytes) &&
        (!problem_.is_plain() || on_boundaries(call.y, problem_.features, policy_.bytes)) &&
        on_boundaries(call.winners, problem_.features) &&
        on_boundaries(call.won_by, problem_.features);
    if (on) return RowStarts::boundaries;
    return has_winners(problem_.reduction) || takes_elements(problem_, policy_)
               ? RowStarts::elements
               : RowStarts::anywhere;
  }

  /// Weights of rows scale sums when they are done, but take part in comparisons.
  bool is_weighted(const RowsLaunch& launch) const {
    return launch.matrix.weighted() ||
           (problem_.finds_best() && launch.epilogue.row_scale != nullptr);
  }

  /// Where there is no kernel without weights, the one with them; null where there is none of
  /// either, which nobody asks for.
  RowsFunction function(RowStarts starts, bool weighted) const {
    RowsKey key = {stored_as(problem_.precision), starts, reduction(weighted),
                   !problem_.is_plain()};
    if (!is_compiled(key)) key.reduction = reduction(true);
    if (!is_compiled(key)) return nullptr;
    const RowsPolicy* const first =
        has_winners(problem_.reduction) ? best_policies.data() : rows_policies.data();
    return kernels_of<rows_keys, RowsKernels>(key)[static_cast<std::size_t>(&policy_ - first)];
  }

  RowsReduction reduction(bool weighted) const {
    if (!has_winners(problem_.reduction)) {
      return weighted ? RowsReduction::weighted_sum : RowsReduction::pattern_sum;
    }
    if (problem_.finds_best()) return weighted ? RowsReduction::best : RowsReduction::pattern_best;
    return weighted ? RowsReduction::winner_sum : RowsReduction::pattern_winner_sum;
  }

  /// At most: where rows are not on boundaries, a lane takes one feature.
  std::int64_t num_blocks_of_features() const {
    return (problem_.features + policy_.lanes - 1) / policy_.lanes;
  }

  SpmmProblem problem_;
  const RowsPolicy& policy_;  ///< of `rows_policies` or `best_policies`
  DeviceMatrix matrix_;
  bool follows_;
  bool parts_beside_ = false;
  ScheduledRows rows_;
  RowsFunction functions_[row_starts.size()][2] = {};  ///< by where rows begin, weighted or not
  WorkspacePart<float> slots_;
  WorkspacePart<std::byte> x_units_;  ///< a copy of X, where its rows fill no whole units
};

std::string why_not_any_policy(const SpmmProblem& problem) {
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_features) return "features of edges, not of vertices";
  return problem.features > max_features_of_rows ? "too many features" : "";
}

std::string why_not_sums(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (std::string reason = why_not_listed_rows(problem); !reason.empty()) return reason;
  if (!takes(policy, static_cast<int>(bytes_per_element(problem.precision)))) {
    return "lanes of 8 bytes are for 16-bit features";
  }
  return lanes_fit(problem, policy) ? "" : "its lanes per edge do not fit the features";
}

std::string name_of(const RowsPolicy& policy) {
  std::string name = fmt::format("rows_{}x{}x{}", policy.lanes, policy.edges, policy.unroll);
  if (policy.bytes == 8) name += "_narrow";
  if (policy.vectors == 2) name += "_double";
  if (policy.listed) name += "_listed";
  return name;
}

std::string work_split(const RowsPolicy& policy) {
  std::string split =
      fmt::format("{} lanes of {} bytes per edge, {} edges of a row at once, {} in flight",
                  policy.lanes, policy.bytes * policy.vectors, policy.edges, policy.unroll);
  if (policy.listed) split += ", rows by their length";
  return split;
}

std::unique_ptr<const PreparedSpmm> prepare_rows(const SpmmProblem& problem,
                                                 const RowsPolicy& policy) {
  const ProblemRows rows(problem);
  return std::make_unique<CudaRows>(
      problem, policy, rows.lengths(),
      sorted_neighbours(problem.graph, tile_side(problem.pass), problem.precision));
}

double predict_us(const SpmmProblem& problem, const RowsPolicy& policy,
                  const DeviceTraits& traits) {
  const ProblemRows rows(problem);
  return chosen_parts(problem, rows.lengths(), policy, traits).us;
}

/// The narrowest that holds a row, or the widest.
const RowsPolicy& best_policy(const SpmmProblem& problem) {
  const auto holds = [&](const RowsPolicy& policy) {
    return policy.lanes >= lanes_wanted(problem, policy);
  };
  return *std::find_if(best_policies.begin(), best_policies.end() - 1, holds);
}

std::string why_not_best(const SpmmProblem& problem) {
  if (!has_winners(problem.reduction)) return "max and min only";
  return why_not_any_policy(problem);
}

double predict_best_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  return predict_us(problem, best_policy(problem), traits);
}

std::unique_ptr<const PreparedSpmm> prepare_best(const SpmmProblem& problem) {
  return prepare_rows(problem, best_policy(problem));
}

}  // namespace

std::string why_not_listed_rows(const SpmmProblem& problem) {
  return has_winners(problem.reduction) ? "sums and means only" : why_not_any_policy(problem);
}

std::unique_ptr<const PreparedSpmm> prepare_some_rows(const SpmmProblem& problem,
                                                      std::size_t policy, const RowLengths& rows,
                                                      VertexId sorted_rows, bool follows,
                                                      std::string note) {
  return std::make_unique<CudaRows>(problem, rows_policies[policy], rows, sorted_rows, follows,
                                    std::move(note));
}

std::string name_of_rows(std::size_t policy) { return name_of(rows_policies[policy]); }

void append_cuda_rows_kernels(std::vector<SpmmKernel>& table) {
  append_kernels<why_not_sums, predict_us, prepare_rows, rows_policies>(
      table, [](const RowsPolicy& policy) {
        return cuda_info("spmm", name_of(policy), "sums in registers, " + work_split(policy));
      });
  table.push_back(cuda_kernel<SpmmKernel, why_not_best, predict_best_us, prepare_best>(
      cuda_info("spmm", "best",
                "largest or smallest product in registers, as many lanes per edge as fit the "
                "features")));
}

}  // namespace tessera::ops
