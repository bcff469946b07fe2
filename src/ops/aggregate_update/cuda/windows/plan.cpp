// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "ops/aggregate_update/cuda/kernels.hpp"
#include "ops/aggregate_update/cuda/windows/cost.hpp"
#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/spmm/parts.hpp"
#include "tessera/graph/transform.hpp"

namespace tessera::ops {
namespace {

constexpr auto window_keys = collect_keys<WindowUpdateKey>([](auto add) {
  for (const auto& [width, cols] : {std::pair{64, 64}, {64, 32}, {128, 32}}) {
    add(WindowUpdateKey{width, cols});
    add(WindowUpdateKey{width, cols, true});
    add(WindowUpdateKey{width, cols, false, false, true});
    add(WindowUpdateKey{width, cols, true, false, true});
    if (width == 64) add(WindowUpdateKey{width, cols, false, true});
  }
});

/// What the weights fill up to.
int padded_cols(const AggregateUpdateProblem& problem) {
  return narrowest(window_update_cols, problem.written());
}

/// Long stages leave no room for two weights beside those of another block.
WindowUpdateKey key_for(const AggregateUpdateProblem& problem, const TallPolicy& policy) {
  WindowUpdateKey key;
  key.width = narrowest(window_update_widths, problem.gathered());
  key.part_cols = update_part_cols(key.width, padded_cols(problem));
  key.scaled = has_column_scales(window_sums(problem));
  key.warps = policy.warps;
  key.long_stages = key.width == 64 && !key.scaled && !problem.options.root && !key.warps;
  return key;
}

WindowUpdateFunction function_for(const WindowUpdateKey& key) {
  return kernels_of<window_keys, WindowUpdateKernels>(key);
}

std::int32_t weight_bytes(const AggregateUpdateProblem& problem) {
  return static_cast<std::int32_t>(update_weight_bytes(Precision::bf16, problem.gathered(),
                                                       padded_cols(problem), problem.options.root));
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

WindowUpdateLaunch::Store store_of(const AggregateUpdateProblem& problem,
                                   const AggregateUpdateCall& call) {
  const ActivationFormula& formula = call.formula;
  const bool is_relu = formula.activation == Activation::relu;
  constexpr std::uint16_t minus_infinity = 0xff80;
  WindowUpdateLaunch::Store store;
  store.usual = (is_relu || formula.activation == Activation::none) && !formula.drops &&
                on_boundaries(call.y, problem.written(), 8) && on_boundaries(call.bias, 0, 8);
  store.whole_units = on_boundaries(call.y, problem.written(), 16);
  store.least = is_relu ? std::uint16_t{0} : minus_infinity;
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
    launch.store = store_of(problem_, call);
    launch.weight_bytes = weight_bytes_;
    launch.padded_cols = padded_cols(problem_);
    launch.padded_features =
        static_cast<std::int32_t>(update_weight_lines(Precision::bf16, problem_.gathered(), false));
    launch.block_bytes = 128 * static_cast<std::int32_t>(update_weight_lines(
                                   Precision::bf16, problem_.gathered(), problem_.options.root));
    function_.launch(launch, stream);
  }

  std::int64_t own_bytes() const noexcept override { return any_rows_->own_bytes(); }

 private:
  AggregateUpdateProblem problem_;
  WindowUpdateFunction function_;
  std::int32_t weight_bytes_;
  std::unique_ptr<const PreparedWindows> windows_;
  std::unique_ptr<const PreparedAggregateUpdate> any_rows_;
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

}  // namespace

void append_cuda_window_aggregate_update(std::vector<AggregateUpdateKernel>& table) {
  append_kernels<why_not_windows, predicted_window_update_us, prepared<WindowAggregateUpdate>,
                 window_update_policies>(table, [](const TallPolicy& policy) {
    return windows_info(
        "aggregate_update", policy.name,
        fmt::format("windows of {} rows summed on tensor cores ({}) and multiplied where their "
                    "sums are, weights in shared memory",
                    policy.height, policy.warps ? "mma.sync" : "wgmma"));
  });
}

}  // namespace tessera::ops
