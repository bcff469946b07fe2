// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.hpp"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "ops/spmm/cuda/instances.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/matrix.hpp"
#include "ops/spmm/cuda/rows_cost.hpp"
#include "ops/spmm/cuda/schedule.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

/// Of both kinds of tables.
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

/// Reduces rows of A, or its columns in the backward pass, by one policy.
class CudaRows final : public PreparedSpmm {
 public:
  CudaRows(const SpmmProblem& problem, std::size_t policy)
      : problem_(problem), policy_(policy), matrix_(problem) {
    const Graph& graph = problem.graph;
    const bool forward = problem.pass == SpmmPass::forward;
    const auto offsets = forward ? graph.row_offsets().span() : graph.csc().col_offsets.span();
    const double gathered = static_cast<double>(graph.num_edges()) *
                            static_cast<double>(problem.features) *
                            static_cast<double>(bytes_per_element(problem.precision));
    const RowsSchedule schedule =
        make_rows_schedule(offsets, policy_of(problem, policy), steps_before_cut(gathered));
    long_row_ = schedule.long_row;
    pieces_ = cuda::to_device(std::span<const LongPiece>(schedule.pieces), problem.device);
    split_rows_ = cuda::to_device(std::span<const SplitRow>(schedule.split_rows), problem.device);
    // A best product has its source beside it.
    const std::int64_t words = of_winners(problem) && forward ? 2 : 1;
    slots_ = Buffer<float>(checked_area(schedule.num_slots * words, problem.features),
                           default_memory(problem.device));
    num_done_ = Buffer<unsigned>(split_rows_.size() * num_blocks_of_features(),
                                 default_memory(problem.device));
    fill_zero(num_done_.data(), static_cast<std::size_t>(num_done_.size()) * sizeof(unsigned),
              problem.device);
    synchronise(problem.device);
  }

  void run(const SpmmCall& call, Stream stream) const override {
    if (problem_.features == 0) return;
    check_row_bytes(call.x);
    RowsLaunch launch = matrix_.launch(call);
    launch.long_row = long_row_;
    launch.pieces = pieces_.data();
    launch.num_pieces = pieces_.size();
    launch.split_rows = split_rows_.data();
    launch.slots = slots_.data();
    launch.num_done = num_done_.data();
    const bool aligned =
        on_boundaries(call.x.data, call.x.stride) && on_boundaries(call.y.data, call.y.stride);
    function(aligned, launch.weighted())(launch, stream);
  }

  std::int64_t workspace_bytes() const noexcept override {
    return (slots_.size() + num_done_.size()) * static_cast<std::int64_t>(sizeof(float));
  }

 private:
  RowsFunction function(bool aligned, bool weighted) const {
    if (of_winners(problem_)) {
      const BestFunctions& functions = best_functions(problem_.precision, aligned);
      return (problem_.pass == SpmmPass::forward ? functions.best : functions.won)[policy_];
    }
    const RowsFunctions& functions = rows_functions(problem_.precision, aligned);
    return (weighted ? functions.weighted : functions.pattern)[policy_];
  }

  /// At most: where rows are not on boundaries, a lane takes one feature.
  std::int64_t num_blocks_of_features() const {
    const std::int64_t lanes = policy_of(problem_, policy_).lanes;
    return (problem_.features + lanes - 1) / lanes;
  }

  /// The kernels multiply a column id by the distance between rows with 32 bits each.
  static void check_row_bytes(const ConstOperand& x) {
    const auto bytes = x.stride * static_cast<std::int64_t>(bytes_per_element(x.precision));
    if (bytes > std::numeric_limits<std::uint32_t>::max()) {
      throw Error(ErrorCode::unsupported, fmt::format("rows of {} bytes", bytes), "x",
                  "use rows of less than 4 GiB");
    }
  }

  /// Whether every row starts, and the last feature ends, on a 16-byte boundary.
  bool on_boundaries(const void* data, std::int64_t stride) const {
    const auto size = static_cast<std::int64_t>(bytes_per_element(problem_.precision));
    return reinterpret_cast<std::uintptr_t>(data) % 16 == 0 && stride * size % 16 == 0 &&
           problem_.features * size % 16 == 0;
  }

  SpmmProblem problem_;
  std::size_t policy_;
  DeviceMatrix matrix_;
  EdgeOffset long_row_ = 0;
  Buffer<LongPiece> pieces_;
  Buffer<SplitRow> split_rows_;
  mutable Buffer<float> slots_;  ///< the workspace of a run, as `num_done_`
  mutable Buffer<unsigned> num_done_;
};

std::string why_not(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.features > std::numeric_limits<std::int32_t>::max() / 2) return "too many features";
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_rows) return "features of edges, not of vertices";
  const std::int64_t wanted = lanes_wanted(problem);
  const std::int64_t fitting = static_cast<std::int64_t>(std::min<std::uint64_t>(
      32, std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, wanted)))));
  const bool half_of_wide = fitting == 32 && policy.lanes == 16;
  if (policy.lanes == fitting || half_of_wide) return {};
  return fmt::format("its {} lanes an edge do not fit {} features", policy.lanes, problem.features);
}

std::string name_of(const RowsPolicy& policy) {
  return fmt::format("{}x{}x{}{}", policy.lanes, policy.edges, policy.unroll,
                     policy.shared_ids ? "_shared" : "");
}

std::string work_split(const RowsPolicy& policy) {
  return fmt::format("{} lanes an edge, {} edges of a row at once, {} loads in flight{}",
                     policy.lanes, policy.edges, policy.unroll,
                     policy.shared_ids ? ", ids passed round" : "");
}

/// What kernels of both kinds have in common.
template <std::size_t index>
SpmmKernel kernel_with_policy() {
  SpmmKernel kernel;
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predicted_rows_us(problem, policy_of(problem, index));
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

std::unique_ptr<const PreparedSpmm> prepare_cuda_rows(const SpmmProblem& problem) {
  std::size_t best = 0;
  double best_us = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < rows_policies.size(); ++i) {
    if (!why_not(problem, rows_policies[i]).empty()) continue;
    const double us = predicted_rows_us(problem, rows_policies[i]);
    if (us < best_us) {
      best = i;
      best_us = us;
    }
  }
  return std::make_unique<CudaRows>(problem, best);
}

void append_cuda_rows_kernels(std::vector<SpmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(sum_kernel<i>()), ...); }
  (std::make_index_sequence<rows_policies.size()>{});
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(best_kernel<i>()), ...); }
  (std::make_index_sequence<best_policies.size()>{});
}

}  // namespace tessera::ops
