// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/launch.hpp"

#include <limits>

#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/edge_softmax/cuda/rows/cost.hpp"
#include "ops/edge_softmax/kernel.hpp"

namespace tessera::ops {
namespace {

SoftmaxFunction function_of(Precision precision, bool backward, std::size_t team) {
  const SoftmaxKey key = {stored_as(precision), backward};
  return kernels_of<flagged_keys<SoftmaxKey>, SoftmaxKernels>(key)[team];
}

struct ChosenTeam {
  std::size_t index = 0;
  double us = std::numeric_limits<double>::infinity();
};

/// The fastest of those that hold all heads of an edge, or 32 of them.
ChosenTeam chosen_team(const EdgeSoftmaxProblem& problem) {
  ChosenTeam chosen;
  for (std::size_t i = 0; i < softmax_teams.size(); ++i) {
    if (padded_heads(problem) > softmax_teams[i]) continue;
    const double us =
        predict_softmax_us(problem, softmax_teams[i], device_traits(problem.options.device));
    if (us < chosen.us) chosen = {i, us};
  }
  return chosen;
}

class CudaSoftmaxRows final : public PreparedEdgeSoftmax {
 public:
  explicit CudaSoftmaxRows(const EdgeSoftmaxProblem& problem)
      : CudaSoftmaxRows(problem, chosen_team(problem).index) {}
  CudaSoftmaxRows(const EdgeSoftmaxProblem& problem, std::size_t team)
      : options_(problem.options),
        forward_(function_of(options_.precision, false, team)),
        backward_(function_of(options_.precision, true, team)),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        cuts_(cuda::cut_long_rows(problem.graph.row_offsets().span(),
                                  longest_softmax_row(problem, softmax_teams[team]),
                                  options_.place())),
        slots_(workspace_.add<float>(checked_area(cuts_.num_slots, 2 * options_.heads))) {}

  void run_scaled(ConstOperand scores, double scale, Operand weights, Operand log_sum,
                  Stream stream, const WorkspaceView& workspace) const override {
    SoftmaxLaunch launch = launch_into(weights, workspace);
    launch.first = {scores.data, scores.stride};
    launch.scale = static_cast<float>(scale);
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

std::string why_not(const EdgeSoftmaxProblem& problem) {
  return problem.options.precision == Precision::fp64 ? "fp64 exists on the CPU only" : "";
}

}  // namespace

void append_cuda_edge_softmax_kernels(std::vector<EdgeSoftmaxKernel>& table) {
  constexpr auto predict = [](const EdgeSoftmaxProblem& problem, const DeviceTraits&) {
    return chosen_team(problem).us;
  };
  table.push_back(cuda_kernel<EdgeSoftmaxKernel, why_not, predict, prepared<CudaSoftmaxRows>>(
      cuda_info("edge_softmax", "rows",
                "4 to 32 lanes per row, all heads side by side; long rows in pieces")));
}

}  // namespace tessera::ops
