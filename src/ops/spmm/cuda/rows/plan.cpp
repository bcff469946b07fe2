// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/launch.hpp"

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "core/cuda_handles.hpp"
#include "cuda/array.hpp"
#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/rows/cost.hpp"
#include "ops/spmm/cuda/rows/instances.hpp"
#include "ops/spmm/cuda/rows/matrix.hpp"
#include "ops/spmm/cuda/rows/schedule.hpp"
#include "ops/spmm/cuda/rows/short_rows.hpp"

namespace tessera::ops {
namespace {

/// The table of a precision, for both kinds of tables.
template <class Functions>
const Functions& of_precision(Precision precision, const Functions& fp32, const Functions& bf16,
                              const Functions& fp16) {
  if (precision == Precision::bf16) return bf16;
  return precision == Precision::fp16 ? fp16 : fp32;
}

const RowsFunctions& rows_functions(Precision precision, bool aligned) {
  return aligned ? of_precision(precision, rows_fp32_aligned, rows_bf16_aligned, rows_fp16_aligned)
                 : of_precision(precision, rows_fp32_scalar, rows_bf16_scalar, rows_fp16_scalar);
}

const BestFunctions& best_functions(Precision precision, bool aligned) {
  return aligned ? of_precision(precision, best_fp32_aligned, best_bf16_aligned, best_fp16_aligned)
                 : of_precision(precision, best_fp32_scalar, best_bf16_scalar, best_fp16_scalar);
}

bool of_winners(const SpmmProblem& problem) {
  return problem.reduction == Reduction::max || problem.reduction == Reduction::min;
}

const RowsPolicy& policy_of(const SpmmProblem& problem, std::size_t index) {
  return of_winners(problem) ? best_policies[index] : rows_policies[index];
}

Buffer<RowStart> short_rows(const RowsSchedule& schedule, const cuda::DeviceRows& matrix,
                            const RowsPolicy& policy, const RowsCut& cut, const Place& place) {
  const cuda_backend::CurrentDevice current(place.device.index);
  const auto firsts = cuda::to_device(std::span<const std::int32_t>(schedule.short_firsts), place);
  Buffer<RowStart> list(schedule.num_short, place);
  if (list.empty()) return list;
  list_short_rows({matrix.num_rows, matrix.offsets(), matrix.indices.data(), cut.short_row(policy),
                   policy.step(), firsts.data(), list.data()},
                  place.stream);
  return list;
}

/// Reduces rows of A, or its columns in the backward pass, by one policy.
class CudaRows final : public PreparedSpmm {
 public:
  CudaRows(const SpmmProblem& problem, std::size_t policy)
      : problem_(problem), policy_(policy), matrix_(problem) {
    const RowsPolicy& shape = policy_of(problem, policy);
    const bool forward = problem.pass == SpmmPass::forward;
    const SharedArray<EdgeOffset> offsets =
        forward ? problem.graph.row_offsets() : detail::GraphAccess::col_offsets(problem.graph);
    const auto degrees = forward ? row_degrees(problem.graph) : column_degrees(problem.graph);
    const Place place = problem.place();
    cut_ = rows_cut(problem, shape, device_traits(problem.device)).cut;
    const RowsSchedule schedule = make_rows_schedule({offsets.span(), *degrees}, shape, cut_);
    pieces_ = cuda::to_device(std::span<const LongPiece>(schedule.pieces), place);
    split_rows_ = cuda::to_device(std::span<const SplitRow>(schedule.split_rows), place);
    wide_rows_ = cuda::to_device(std::span<const RowSlice>(schedule.wide_rows), place);
    if (shape.listed) {
      short_rows_ = short_rows(schedule, matrix_.rows(), shape, cut_, place);
    }
    // A best product has its source beside it.
    const std::int64_t words = of_winners(problem) && forward ? 2 : 1;
    slots_ = workspace_.add<float>(checked_area(schedule.num_slots * words, problem.features));
    workspace_.add_counters(split_rows_.size() * num_blocks_of_features());
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (problem_.features == 0) return;
    check_reach(call.x, "x");
    check_reach(call.y, "y");
    RowsLaunch launch = matrix_.launch(call);
    const RowsPolicy& policy = policy_of(problem_, policy_);
    const auto block_warps = static_cast<unsigned>(cut_.block_threads / 32);
    launch.block_threads = static_cast<unsigned>(cut_.block_threads);
    launch.pieces = pieces_.data();
    launch.num_pieces = static_cast<std::uint32_t>(pieces_.size());
    launch.wide_rows = wide_rows_.data();
    launch.num_wide = static_cast<std::uint32_t>(wide_rows_.size());
    launch.num_wide_blocks = (launch.num_wide + block_warps - 1) / block_warps;
    launch.short_rows = short_rows_.data();
    launch.num_short = static_cast<std::uint32_t>(policy.listed ? short_rows_.size()
                                                                : std::int64_t{launch.num_rows});
    launch.short_row = cut_.short_row(policy);
    launch.split_rows = split_rows_.data();
    launch.slots = slots_.in(workspace);
    launch.num_done = workspace.counters;
    launch.epilogue = epilogue_launch(problem_, call);
    // An epilogue looks itself how it may store.
    const bool aligned =
        on_boundaries(call.x, problem_.features, policy.bytes) &&
        (!problem_.is_plain() || on_boundaries(call.y, problem_.features, policy.bytes));
    function(aligned, launch.weighted())(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  RowsFunction function(bool aligned, bool weighted) const {
    if (of_winners(problem_)) {
      const BestFunctions& functions = best_functions(problem_.precision, aligned);
      if (!problem_.is_plain()) return functions.with_epilogue[policy_];
      return (problem_.pass == SpmmPass::forward ? functions.best : functions.won)[policy_];
    }
    const RowsFunctions& functions = rows_functions(problem_.precision, aligned);
    if (!problem_.is_plain()) {
      return (weighted ? functions.weighted_with_epilogue
                       : functions.pattern_with_epilogue)[policy_];
    }
    return (weighted ? functions.weighted : functions.pattern)[policy_];
  }

  /// At most: where rows are not on boundaries, a lane takes one feature.
  std::int64_t num_blocks_of_features() const {
    const std::int64_t lanes = policy_of(problem_, policy_).lanes;
    return (problem_.features + lanes - 1) / lanes;
  }

  SpmmProblem problem_;
  std::size_t policy_;
  DeviceMatrix matrix_;
  RowsCut cut_;
  Buffer<LongPiece> pieces_;
  Buffer<SplitRow> split_rows_;
  Buffer<RowSlice> wide_rows_;
  Buffer<RowStart> short_rows_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

/// Whether a policy takes rows of X in several parts: any number of the widest, or some narrower
/// ones, of which more fit into the cache. Lanes with several vectors want whole parts.
bool takes_parts(const RowsPolicy& policy, std::int64_t wanted) {
  constexpr std::int64_t most_parts = 4;
  const std::int64_t lanes = std::int64_t{policy.lanes} * policy.vectors;
  if (lanes >= wanted) return false;
  if (policy.vectors > 1) return lanes == 32 && wanted % lanes == 0;
  if (lanes == 32) return true;
  return lanes >= 8 && policy.bytes == 16 && most_parts * lanes >= wanted;
}

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
  const std::int64_t wanted = std::max<std::int64_t>(1, lanes_wanted(problem, policy.bytes));
  const std::int64_t lanes = std::int64_t{policy.lanes} * policy.vectors;
  const bool fits = policy.vectors == 1 ? lanes >= wanted && lanes < 2 * wanted : lanes == wanted;
  if (fits || takes_parts(policy, wanted)) return {};
  return fmt::format("its {} lanes per edge do not fit {} features", lanes, problem.features);
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
    return std::make_unique<CudaRows>(problem, index);
  };
  return kernel;
}

template <std::size_t index>
SpmmKernel sum_kernel() {
  constexpr RowsPolicy policy = rows_policies[index];
  SpmmKernel kernel = kernel_with_policy<index>();
  kernel.info.name = "spmm/cuda/rows_" + name_of(policy);
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

void append_cuda_rows_kernels(std::vector<SpmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(sum_kernel<i>()), ...); }
  (std::make_index_sequence<rows_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(best_kernel<i>()), ...); }
  (std::make_index_sequence<best_policies.size()>{});
}

}  // namespace tessera::ops
