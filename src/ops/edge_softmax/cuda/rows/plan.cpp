// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/launch.hpp"

#include <utility>

#include <fmt/format.h>

#include "ops/cuda/kernel_table.hpp"
#include "ops/edge_softmax/cuda/kernels.hpp"
#include "ops/edge_softmax/cuda/rows/cost.hpp"

namespace tessera::ops {
namespace {

constexpr auto softmax_keys = collect_keys<SoftmaxKey>([](auto add) {
  for (const Precision precision : kernel_precisions) {
    for (const bool backward : {false, true}) add(SoftmaxKey{precision, backward});
  }
});

SoftmaxFunction function_of(Precision precision, bool backward, std::size_t team) {
  const SoftmaxKey key = {stored_as(precision), backward};
  return kernels_of<softmax_keys>(key,
                                  []<SoftmaxKey k>() { return SoftmaxKernels<k>::all(); })[team];
}

class CudaSoftmaxRows final : public PreparedCudaSoftmax {
 public:
  CudaSoftmaxRows(const EdgeSoftmaxProblem& problem, std::size_t team)
      : options_(problem.options),
        forward_(function_of(options_.precision, false, team)),
        backward_(function_of(options_.precision, true, team)),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        cuts_(cuda::cut_long_rows(problem.graph.row_offsets().span(),
                                  longest_softmax_row(problem, softmax_teams[team]),
                                  options_.place())),
        slots_(workspace_.add<float>(checked_area(cuts_.num_slots, 2 * options_.heads))) {}

  void run(ConstOperand scores, Operand weights, Stream stream,
           const WorkspaceView& workspace) const override {
    run_scaled(scores, 1, weights, {}, stream, workspace);
  }

  void run_scaled(ConstOperand scores, float scale, Operand weights, Operand log_sum, Stream stream,
                  const WorkspaceView& workspace) const override {
    SoftmaxLaunch launch = launch_into(weights, workspace);
    launch.first = {scores.data, scores.stride};
    launch.scale = scale;
    launch.log_sum = static_cast<float*>(log_sum.data);
    launch.log_sum_stride = log_sum.stride;
    forward_(launch, stream);
  }

  void run_backward(ConstOperand weights, ConstOperand grad_weights, Operand grad_scores,
                    Stream stream, const WorkspaceView& workspace) const override {
    SoftmaxLaunch launch = launch_into(grad_scores, workspace);
    launch.first = {weights.data, weights.stride};
    launch.second = {grad_weights.data, grad_weights.stride};
    backward_(launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  SoftmaxLaunch launch_into(const Operand& result, const WorkspaceView& workspace) const {
    SoftmaxLaunch launch;
    launch.rows = cuts_.rows(*rows_);
    launch.heads = options_.heads;
    launch.result = result.data;
    launch.result_stride = result.stride;
    launch.slots = slots_.in(workspace);
    return launch;
  }

  EdgeSoftmaxOptions options_;
  SoftmaxFunction forward_;
  SoftmaxFunction backward_;
  std::shared_ptr<const cuda::DeviceRows> rows_;
  cuda::Cuts cuts_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

std::string why_not(const EdgeSoftmaxProblem& problem, int team) {
  if (problem.options.precision == Precision::fp64) return "fp64 exists on the CPU only";
  if (padded_heads(problem) > team) {
    return fmt::format("{} heads do not fit its teams of {} lanes", problem.options.heads, team);
  }
  return {};
}

double predicted_us(const EdgeSoftmaxProblem& problem, int team) {
  return predict_softmax_us(problem, team, device_traits(problem.options.device));
}

template <std::size_t index>
EdgeSoftmaxKernel kernel_of_team() {
  constexpr int team = softmax_teams[index];
  return {
      {fmt::format("edge_softmax/cuda/rows_{}", team),
       fmt::format("a team of {} lanes per row, all heads side by side; long rows in pieces", team),
       "edge_softmax", DeviceKind::cuda, true},
      [](const EdgeSoftmaxProblem& problem) { return why_not(problem, softmax_teams[index]); },
      [](const EdgeSoftmaxProblem& problem) { return predicted_us(problem, softmax_teams[index]); },
      [](const EdgeSoftmaxProblem& problem) -> std::unique_ptr<const PreparedEdgeSoftmax> {
        return std::make_unique<CudaSoftmaxRows>(problem, index);
      }};
}

}  // namespace

void append_cuda_edge_softmax_kernels(std::vector<EdgeSoftmaxKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(kernel_of_team<i>()), ...); }
  (std::make_index_sequence<softmax_teams.size()>{});
}

}  // namespace tessera::ops
