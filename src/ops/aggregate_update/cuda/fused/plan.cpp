// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "cuda/array.hpp"
#include "cuda/wgmma_device.hpp"
#include "graph/access.hpp"
#include "graph/degrees.hpp"
#include "ops/aggregate_update/cost.hpp"
#include "ops/aggregate_update/cuda/fused/launch.hpp"
#include "ops/aggregate_update/cuda/fused/schedule.hpp"
#include "ops/aggregate_update/cuda/kernels.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/parts.hpp"

namespace tessera::ops {
namespace {

constexpr auto update_keys = collect_keys<UpdateKey>([](auto add) {
  for (const Precision precision : {Precision::fp32, Precision::bf16}) {
    for (const int cols : update_widths) add(UpdateKey{precision, cols});
  }
});

UpdateFunction function_for(const AggregateUpdateProblem& problem) {
  const UpdateKey key = {stored_as(problem.options.precision), update_width(problem.written())};
  return kernels_of<update_keys, UpdateKernels>(key);
}

/// Sums and product of 64 rows at a time by one kernel.
class FusedAggregateUpdate final : public PreparedAggregateUpdate {
 public:
  FusedAggregateUpdate(const AggregateUpdateProblem& problem, bool listed)
      : problem_(problem),
        function_(function_for(problem)),
        matrix_(sums_problem(problem, problem.gathered())),
        rows_(listed ? problem.num_targets() : 0, problem.options.place()) {
    if (rows_.size() > 0) {
      list_update_rows(matrix_.rows(),
                       update_groups(update_width(problem.written())) * update_window_rows,
                       rows_.data(), problem.options.place().stream);
    }
    const Graph& graph = problem.graph;
    const auto degrees = problem.is_forward() ? row_degrees(graph) : column_degrees(graph);
    if (degrees->longest() <= longest_update_row) return;
    const SharedArray<EdgeOffset> offsets =
        problem.is_forward() ? graph.row_offsets() : detail::GraphAccess::col_offsets(graph);
    const UpdateSchedule schedule = make_update_schedule(offsets.span());
    const Place place = problem.options.place();
    pieces_ = cuda::to_device(schedule.pieces, place);
    long_rows_ = cuda::to_device(schedule.long_rows, place);
    slots_ = workspace_.add<float>(checked_area(pieces_.size(), problem.gathered()));
  }

  void run(const AggregateUpdateCall& call, Stream stream,
           const WorkspaceView& workspace) const override {
    if (problem_.num_targets() == 0) return;
    check_reach(call.x, "x");
    SpmmCall sums;
    sums.x = call.x;
    sums.y = call.y;
    const RowsLaunch rows = matrix_.launch(sums);
    UpdateLaunch launch = update_operands(problem_, call);
    launch.work.blocks = static_cast<unsigned>(device_traits(problem_.options.device).processors);
    launch.work.rows = rows_.data();
    launch.work.weighted = rows.matrix.weighted();
    launch.work.longest_row = longest_update_row;
    launch.work.pieces = pieces_.data();
    launch.work.num_pieces = static_cast<std::int32_t>(pieces_.size());
    launch.work.long_rows = long_rows_.data();
    launch.work.num_long = static_cast<std::int32_t>(long_rows_.size());
    launch.work.slots = slots_.in(workspace);
    launch.matrix = rows.matrix;
    launch.epilogue.mean = rows.epilogue.mean;
    launch.epilogue.row_scale = rows.epilogue.row_scale;
    function_(launch, stream);
  }

 private:
  AggregateUpdateProblem problem_;
  UpdateFunction function_;
  DeviceMatrix matrix_;
  Buffer<RowSlice> rows_;
  Buffer<UpdatePiece> pieces_;
  Buffer<cuda::CutRow> long_rows_;
  WorkspacePart<float> slots_;
};

std::string why_not_fused(const AggregateUpdateProblem& problem) {
  if (std::string reason = why_not_update(problem); !reason.empty()) return reason;
  const bool on_wgmma = cuda::has_wgmma(problem.options.device);
  return on_wgmma ? "" : "needs a GPU with wgmma (compute capability 9.0)";
}

}  // namespace

UpdateLaunch update_operands(const AggregateUpdateProblem& problem,
                             const AggregateUpdateCall& call) {
  UpdateLaunch launch;
  launch.features.x = call.x.data;
  launch.features.x_stride = call.x.stride;
  launch.features.x_rows = call.x.rows;
  launch.features.inner = problem.gathered();
  launch.features.aligned = on_boundaries(call.x, problem.gathered());
  launch.features.y = call.y.data;
  launch.features.y_stride = call.y.stride;
  launch.features.cols = problem.written();
  launch.features.aggregated = call.aggregated.data;
  launch.features.aggregated_stride = call.aggregated.stride;
  launch.features.self = problem.options.self;
  launch.features.self_scale = call.self_scale.data;
  launch.weights.weight = call.weight.data;
  launch.weights.stride = call.weight.stride;
  launch.weights.root = problem.options.root ? call.root_weight.data : nullptr;
  launch.weights.root_stride = call.root_weight.stride;
  launch.weights.inner_in_row = problem.is_forward();
  launch.epilogue.bias = call.bias.data;
  launch.epilogue.formula = call.formula;
  launch.epilogue.output = stored_as(problem.options.precision);
  return launch;
}

std::string why_not_update(const AggregateUpdateProblem& problem) {
  const AggregateUpdateOptions& options = problem.options;
  const Precision precision = stored_as(options.precision);
  if (precision == Precision::fp16) return "fp16 has too small a range for sums in planes";
  if (problem.written() == 0) return "no columns to write";
  if (update_width(problem.written()) == 0) {
    return fmt::format("rows of more than {} columns", update_widths[std::size(update_widths) - 1]);
  }
  const std::int64_t bytes = update_shared_bytes(precision, problem.gathered(),
                                                 update_width(problem.written()), options.root);
  if (bytes > most_update_shared_bytes) {
    return fmt::format("weights of {} bytes do not fit into shared memory", bytes);
  }
  return {};
}

std::unique_ptr<const PreparedAggregateUpdate> prepare_fused_update(
    const AggregateUpdateProblem& problem, bool listed) {
  return std::make_unique<FusedAggregateUpdate>(problem, listed);
}

void append_cuda_fused_aggregate_update(std::vector<AggregateUpdateKernel>& table) {
  constexpr auto prepare = [](const AggregateUpdateProblem& problem) {
    return prepare_fused_update(problem, true);
  };
  table.push_back(
      cuda_kernel<AggregateUpdateKernel, why_not_fused, predicted_fused_update_us, prepare>(
          cuda_info("aggregate_update", "fused",
                    "64 rows at a time summed in registers and multiplied there on tensor cores, "
                    "weights in shared memory")));
}

}  // namespace tessera::ops
