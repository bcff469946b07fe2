// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cuda/array.hpp"
#include "ops/scales.hpp"
#include "ops/spmm/cuda/instances.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/schedule.hpp"
#include "tessera/core/error.hpp"

namespace tessera::ops {
namespace {

const RowsFunctions& functions_of(Precision precision, bool aligned, bool weighted) {
  switch (precision) {
    case Precision::bf16:
      if (aligned) return weighted ? rows_bf16_aligned_weighted : rows_bf16_aligned_pattern;
      return weighted ? rows_bf16_scalar_weighted : rows_bf16_scalar_pattern;
    case Precision::fp16:
      if (aligned) return weighted ? rows_fp16_aligned_weighted : rows_fp16_aligned_pattern;
      return weighted ? rows_fp16_scalar_weighted : rows_fp16_scalar_pattern;
    default:
      if (aligned) return weighted ? rows_fp32_aligned_weighted : rows_fp32_aligned_pattern;
      return weighted ? rows_fp32_scalar_weighted : rows_fp32_scalar_pattern;
  }
}

/// Sums over rows of A, or over its columns in the backward pass, by one policy.
class CudaRows final : public PreparedSpmm {
 public:
  CudaRows(const SpmmProblem& problem, std::size_t policy) : problem_(problem), policy_(policy) {
    const Graph& graph = problem.graph;
    const bool forward = problem.pass == SpmmPass::forward;
    rows_ = forward ? cuda::device_rows(graph, problem.device)
                    : cuda::device_columns(graph, problem.device);
    values_ = cuda::to_device(graph.values().span(), problem.device);
    row_scale_ =
        cuda::to_device((forward ? graph.row_scale() : graph.col_scale()).span(), problem.device);
    if (!forward && problem.reduction == Reduction::mean) {
      col_scale_ = cuda::to_device(mean_scale<float>(graph).span(), problem.device);
    } else {
      col_scale_ =
          cuda::to_device((forward ? graph.col_scale() : graph.row_scale()).span(), problem.device);
    }
    const auto offsets = forward ? graph.row_offsets().span() : graph.csc().col_offsets.span();
    const double gathered = static_cast<double>(graph.num_edges()) *
                            static_cast<double>(problem.features) *
                            static_cast<double>(bytes_per_element(problem.precision));
    const RowsSchedule schedule =
        make_rows_schedule(offsets, rows_policies[policy], steps_before_cut(gathered));
    long_row_ = schedule.long_row;
    pieces_ = cuda::to_device(std::span<const LongPiece>(schedule.pieces), problem.device);
    split_rows_ = cuda::to_device(std::span<const SplitRow>(schedule.split_rows), problem.device);
    slots_ = Buffer<float>(checked_area(schedule.num_slots, problem.features),
                           default_memory(problem.device));
    synchronise(problem.device);
  }

  void run(const SpmmCall& call, Stream stream) const override {
    if (problem_.features == 0) return;
    check_row_bytes(call.x);
    RowsLaunch launch;
    launch.num_rows = rows_->num_rows;
    launch.offsets = rows_->offsets();
    launch.indices = rows_->indices.data();
    if (call.edge_values.absent()) {
      launch.graph_values = values_.data();
    } else {
      launch.stored_values = call.edge_values.data;
      launch.value_stride = call.edge_values.stride;
    }
    launch.positions = rows_->positions.data();
    launch.col_scale = col_scale_.data();
    launch.row_scale = row_scale_.data();
    launch.mean = problem_.pass == SpmmPass::forward && problem_.reduction == Reduction::mean;
    launch.x = call.x.data;
    launch.x_stride = call.x.stride;
    launch.y = call.y.data;
    launch.y_stride = call.y.stride;
    launch.features = problem_.features;
    launch.long_row = long_row_;
    launch.pieces = pieces_.data();
    launch.num_pieces = pieces_.size();
    launch.split_rows = split_rows_.data();
    launch.num_split_rows = split_rows_.size();
    launch.slots = const_cast<float*>(slots_.data());
    const bool aligned =
        on_boundaries(call.x.data, call.x.stride) && on_boundaries(call.y.data, call.y.stride);
    functions_of(problem_.precision, aligned, launch.weighted())[policy_](launch, stream);
  }

  std::int64_t workspace_bytes() const noexcept override {
    return slots_.size() * static_cast<std::int64_t>(sizeof(float));
  }

 private:
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
  std::shared_ptr<const cuda::DeviceRows> rows_;
  Buffer<float> values_;
  Buffer<float> row_scale_;
  Buffer<float> col_scale_;
  EdgeOffset long_row_ = 0;
  Buffer<LongPiece> pieces_;
  Buffer<SplitRow> split_rows_;
  Buffer<float> slots_;
};

/// Lanes that one row of X keeps busy: 16 bytes each, or a feature each where rows are not on
/// 16-byte boundaries.
std::int64_t lanes_wanted(const SpmmProblem& problem) {
  const std::int64_t bytes =
      problem.features * static_cast<std::int64_t>(bytes_per_element(problem.precision));
  return bytes % 16 == 0 ? bytes / 16 : problem.features;
}

std::string why_not(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (problem.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (problem.reduction == Reduction::max || problem.reduction == Reduction::min) {
    return "sums and means only";
  }
  if (problem.heads > 1) return "several values per edge";
  if (problem.edge_rows) return "features of edges, not of vertices";
  const std::int64_t wanted = lanes_wanted(problem);
  const std::int64_t fitting = static_cast<std::int64_t>(std::min<std::uint64_t>(
      32, std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(1, wanted)))));
  const bool half_of_wide = fitting == 32 && policy.lanes == 16;
  if (policy.lanes == fitting || half_of_wide) return {};
  return fmt::format("its {} lanes an edge do not fit {} features", policy.lanes, problem.features);
}

/// The cost model. Rows are loaded from L2 at its bandwidth, or at the pace at which teams wait for
/// their loads, whichever is slower.
double predicted_us(const SpmmProblem& problem, const RowsPolicy& policy) {
  constexpr double launch_us = 3;
  constexpr double gather_bytes_per_us = 9e6;
  constexpr double step_us = 0.7;  // one step of a team's loop
  constexpr double team_us = 1.2;  // its start and end
  // Deep unrolling takes registers, and so leaves room for fewer teams.
  const double resident_lanes = 132.0 * (policy.unroll > 4 ? 1024 : 1536);
  const Graph& graph = problem.graph;
  const auto edges = static_cast<double>(graph.num_edges());
  const auto rows =
      static_cast<double>(problem.pass == SpmmPass::forward ? graph.num_rows() : graph.num_cols());
  const double mean_degree = rows > 0 ? edges / rows : 0;
  const double steps = rows * std::ceil(mean_degree / policy.step());
  const double blocks = std::ceil(static_cast<double>(lanes_wanted(problem)) / policy.lanes);
  const double waiting =
      (rows * team_us + steps * step_us) * policy.team() * blocks / resident_lanes;
  const double moving = edges * static_cast<double>(problem.features) *
                        static_cast<double>(bytes_per_element(problem.precision)) /
                        gather_bytes_per_us;
  return launch_us + std::max(waiting, moving) + 0.1 * waiting;
}

template <std::size_t index>
SpmmKernel kernel_of_policy() {
  constexpr RowsPolicy policy = rows_policies[index];
  SpmmKernel kernel;
  kernel.info.name = fmt::format("spmm/cuda/rows_{}x{}x{}{}", policy.lanes, policy.edges,
                                 policy.unroll, policy.shared_ids ? "_shared" : "");
  kernel.info.description = fmt::format(
      "sums in registers, {} lanes an edge, {} edges of a row at once, {} loads in flight{}",
      policy.lanes, policy.edges, policy.unroll, policy.shared_ids ? ", ids passed round" : "");
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.why_not = [](const SpmmProblem& problem) {
    return why_not(problem, rows_policies[index]);
  };
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predicted_us(problem, rows_policies[index]);
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<CudaRows>(problem, index);
  };
  return kernel;
}

}  // namespace

void append_cuda_rows_kernels(std::vector<SpmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) {
    (table.push_back(kernel_of_policy<i>()), ...);
  }
  (std::make_index_sequence<rows_policies.size()>{});
}

}  // namespace tessera::ops
