// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "ops/aggregate_update/cuda/fused/prepare.hpp"
#include "ops/aggregate_update/cuda/kernels.hpp"
#include "ops/aggregate_update/cuda/windows/cost.hpp"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/cuda/parts.hpp"
#include "ops/spmm/cuda/tall/weights.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::ops {
namespace {

constexpr auto window_keys = collect_keys<WindowUpdateKey>([](auto add) {
  for (const int width : window_update_widths) {
    for (const int cols : window_update_cols) {
      add(WindowUpdateKey{width, cols});
      add(WindowUpdateKey{width, cols, true});
      add(WindowUpdateKey{width, cols, false, false, true});
      add(WindowUpdateKey{width, cols, true, false, true});
      if (width == 64) add(WindowUpdateKey{width, cols, false, true});
    }
  }
});

/// The narrowest that holds so many columns; 0: none.
template <std::size_t count>
int narrowest(const int (&widths)[count], std::int64_t columns) {
  const int* const found = std::lower_bound(std::begin(widths), std::end(widths), columns);
  return found == std::end(widths) ? 0 : *found;
}

/// Long stages leave no room for two weights beside those of another block.
WindowUpdateKey key_for(const AggregateUpdateProblem& problem, const TallPolicy& policy) {
  WindowUpdateKey key;
  key.width = narrowest(window_update_widths, problem.gathered());
  key.cols = narrowest(window_update_cols, problem.written());
  key.scaled = !column_scales(window_sums(problem)).empty();
  key.warps = policy.warps;
  key.long_stages = key.width == 64 && !key.scaled && !problem.options.root && !key.warps;
  return key;
}

WindowUpdateFunction function_for(const WindowUpdateKey& key) {
  return kernels_of<window_keys>(
      key, []<WindowUpdateKey k>() { return WindowUpdateKernels<k>::function(); });
}

std::int32_t weight_bytes(const AggregateUpdateProblem& problem) {
  return static_cast<std::int32_t>(
      update_weight_bytes(Precision::bf16, problem.gathered(),
                          narrowest(window_update_cols, problem.written()), problem.options.root));
}

/// Of a processor's shared memory the driver keeps some for each block.
std::int32_t most_block_bytes(Device device) {
  constexpr std::int64_t kept_by_the_driver = 1024;
  return static_cast<std::int32_t>(device_traits(device).shared_bytes_per_processor -
                                   kept_by_the_driver);
}

/// For rows off 16-byte boundaries: row by row, or, without wgmma, one product after the sums.
std::unique_ptr<const PreparedAggregateUpdate> prepare_any_rows(
    const AggregateUpdateProblem& problem, const TallPolicy& policy) {
  return policy.warps ? prepare_occasional_update(problem) : prepare_fused_update(problem, false);
}

WindowUpdateLaunch::Store store_of(const UpdateLaunch& update) {
  const UpdateLaunch::Features& features = update.features;
  const Activation activation = update.epilogue.formula.activation;
  const auto on_boundaries_of = [&](std::size_t columns) {
    const auto divides = [&](std::int64_t count) {
      return count % static_cast<std::int64_t>(columns) == 0;
    };
    const auto begins = [&](const void* at) {
      return reinterpret_cast<std::uintptr_t>(at) % (columns * 2) == 0;
    };
    return divides(features.cols) && divides(features.y_stride) && begins(features.y);
  };
  constexpr std::uint16_t minus_infinity = 0xff80;
  WindowUpdateLaunch::Store store;
  store.usual = (activation == Activation::none || activation == Activation::relu) &&
                !update.epilogue.formula.drops && on_boundaries_of(4) &&
                reinterpret_cast<std::uintptr_t>(update.epilogue.bias) % 8 == 0;
  store.whole_units = on_boundaries_of(8);
  store.least = activation == Activation::relu ? std::uint16_t{0} : minus_infinity;
  return store;
}

/// The same sums as those of A + I without a term for the rows themselves, where that is a pattern
/// and most of these rows are among the columns of their window anyway.
AggregateUpdateProblem with_rows_among_columns(const AggregateUpdateProblem& problem) {
  if (!rows_may_be_columns(problem)) return problem;
  Graph looped = with_self_loops(problem.graph);
  const bool had_loops = looped.num_edges() != problem.graph.num_edges() + problem.graph.num_rows();
  if (had_loops) return problem;
  AggregateUpdateProblem same = problem;
  same.graph = std::move(looped);
  same.options.self = false;
  return same;
}

/// Windows of 128 rows on tensor cores, sums and product one after the other where they are.
class WindowAggregateUpdate final : public PreparedAggregateUpdate {
 public:
  WindowAggregateUpdate(const AggregateUpdateProblem& problem, const TallPolicy& policy)
      : problem_(with_rows_among_columns(problem)),
        function_(function_for(key_for(problem, policy))),
        weight_bytes_(weight_bytes(problem)),
        windows_(prepare_windows(
            window_sums(problem_), policy,
            {key_for(problem, policy).width, function_.max_steps,
             function_.resident_blocks(weight_bytes_, most_block_bytes(problem.options.device))})),
        any_rows_(prepare_any_rows(problem, policy)) {
    workspace_.cover(windows_->workspace());
    workspace_.cover(any_rows_->workspace());
  }

  void run(const AggregateUpdateCall& call, Stream stream,
           const WorkspaceView& workspace) const override {
    if (problem_.num_targets() == 0) return;
    const bool aligned =
        on_boundaries(call.x, problem_.gathered()) &&
        (call.aggregated.absent() || on_boundaries(call.aggregated, problem_.gathered()));
    if (!aligned) return any_rows_->run(call, stream, workspace);
    SpmmCall sums;
    sums.x = call.x;
    WindowUpdateLaunch launch{
        windows_->launch(sums, workspace), update_operands(problem_, call), {}};
    launch.store = store_of(launch.update);
    launch.weight_bytes = weight_bytes_;
    launch.padded_features =
        static_cast<std::int32_t>(update_weight_lines(Precision::bf16, problem_.gathered(), false));
    launch.block_bytes = 128 * static_cast<std::int32_t>(update_weight_lines(
                                   Precision::bf16, problem_.gathered(), problem_.options.root));
    function_.launch(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }
  std::int64_t own_bytes() const noexcept override { return any_rows_->own_bytes(); }

 private:
  AggregateUpdateProblem problem_;
  WindowUpdateFunction function_;
  std::int32_t weight_bytes_;
  std::unique_ptr<const PreparedWindows> windows_;
  std::unique_ptr<const PreparedAggregateUpdate> any_rows_;
  WorkspaceNeed workspace_;
};

std::string why_not_windows(const AggregateUpdateProblem& problem, const TallPolicy& policy) {
  if (std::string reason = why_not_update(problem); !reason.empty()) return reason;
  if (stored_as(problem.options.precision) != Precision::bf16) {
    return "bf16 only: sums of fp32 leave no registers for products";
  }
  const std::int64_t inner = problem.gathered();
  if (inner == 0 || inner % 8 != 0) return "rows of features that do not fill 16 bytes";
  if (narrowest(window_update_widths, inner) == 0) {
    return fmt::format("rows of more than {} features",
                       window_update_widths[std::size(window_update_widths) - 1]);
  }
  if (problem.graph.num_edges() == 0) return "no edges";
  if (std::string reason = why_not_tall(window_sums(problem), policy); !reason.empty()) {
    return reason;
  }
  const std::int32_t stage_bytes = function_for(key_for(problem, policy)).stage_bytes;
  const std::int32_t most_bytes = most_block_bytes(problem.options.device);
  if (weight_bytes(problem) + stage_bytes > most_bytes) {
    return fmt::format(
        "weights of {} bytes leave no room for stages of {} in the {} bytes of shared memory that "
        "a block of this GPU may have",
        weight_bytes(problem), stage_bytes, most_bytes);
  }
  return {};
}

template <std::size_t index>
AggregateUpdateKernel kernel_of_policy() {
  constexpr const TallPolicy& policy = window_update_policies[index];
  AggregateUpdateKernel kernel;
  kernel.info.name = fmt::format("aggregate_update/cuda/{}", policy.name);
  kernel.info.description = fmt::format(
      "windows of {} rows summed on tensor cores ({}) and multiplied where their sums are, weights "
      "in shared memory",
      policy.height, policy.warps ? "mma.sync" : "wgmma");
  kernel.info.op = "aggregate_update";
  kernel.info.device = DeviceKind::cuda;
  kernel.info.strict = false;
  kernel.info.exact_nonfinite = false;
  kernel.info.repeated_edges = false;
  kernel.why_not = [](const AggregateUpdateProblem& problem) {
    return why_not_windows(problem, policy);
  };
  kernel.predicted_us = [](const AggregateUpdateProblem& problem) {
    return predicted_window_update_us(problem, policy, device_traits(problem.options.device));
  };
  kernel.prepare =
      [](const AggregateUpdateProblem& problem) -> std::unique_ptr<const PreparedAggregateUpdate> {
    return std::make_unique<WindowAggregateUpdate>(problem, policy);
  };
  return kernel;
}

}  // namespace

void append_cuda_window_aggregate_update(std::vector<AggregateUpdateKernel>& table) {
  table.push_back(kernel_of_policy<0>());
  table.push_back(kernel_of_policy<1>());
}

}  // namespace tessera::ops
