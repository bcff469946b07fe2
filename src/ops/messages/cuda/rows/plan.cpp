// SPDX-License-Identifier: Apache-2.0
#include "ops/messages/cuda/rows/launch.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <limits>

#include "graph/access.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/cuda_kernel.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/messages/cuda/rows/cost.hpp"
#include "ops/messages/kernel.hpp"

namespace tessera::ops {
namespace {

/// A team takes this many edges of one row, or cuts it.
constexpr EdgeOffset longest_row = 256;

MessageRowsOf reading(const ConstOperand& operand) { return {operand.data, operand.stride}; }

class CudaMessages final : public PreparedMessages {
 public:
  explicit CudaMessages(const MessagesProblem& problem)
      : options_(problem.options),
        rows_(cuda::device_rows(problem.graph, options_.place())),
        by_target_(cuda::cut_long_rows(problem.graph.row_offsets().span(), longest_row,
                                       options_.place())) {
    if (options_.backward) {
      columns_ = cuda::device_columns(problem.graph, options_.place());
      by_source_ = cuda::cut_long_rows(detail::GraphAccess::col_offsets(problem.graph).span(),
                                       longest_row, options_.place());
    }
    slots_ = workspace_.add<float>(
        checked_area(std::max(by_target_.num_slots, by_source_.num_slots), options_.features));
  }

  void run(const MessagesInputs& inputs, Operand y, Stream stream,
           const WorkspaceView& workspace) const override {
    if (options_.features == 0) return;
    MessagesLaunch launch = launch_of(inputs, workspace);
    launch.rows = by_target_.rows(*rows_);
    launch.others = rows_->indices.data();
    launch.sums = y.data;
    launch.sums_stride = y.stride;
    start({inputs.x, inputs.edge_features, y}, false, launch, stream);
  }

  void run_backward(const MessagesInputs& inputs, ConstOperand grad_y,
                    const MessagesGradOutputs& gradients, Stream stream,
                    const WorkspaceView& workspace) const override {
    if (options_.features == 0) return;
    MessagesLaunch launch = launch_of(inputs, workspace);
    launch.rows = by_source_.rows(*columns_);
    launch.others = columns_->indices.data();
    launch.positions = columns_->positions.data();
    launch.grad_y = reading(grad_y);
    launch.sums = gradients.x.data;
    launch.sums_stride = gradients.x.stride;
    launch.grad_edges = gradients.edge_features.data;
    launch.grad_edges_stride = gradients.edge_features.stride;
    start({inputs.x, inputs.edge_features, grad_y, gradients.x, gradients.edge_features}, true,
          launch, stream);
  }

  WorkspaceNeed workspace() const override { return workspace_; }

 private:
  MessagesLaunch launch_of(const MessagesInputs& inputs, const WorkspaceView& workspace) const {
    MessagesLaunch launch;
    launch.features = static_cast<int>(options_.features);
    launch.x = reading(inputs.x);
    launch.edges = reading(inputs.edge_features);
    launch.edge_rows = inputs.edge_rows;
    launch.slots = slots_.in(workspace);
    return launch;
  }

  /// With wide loads where all rows lie on their boundaries.
  void start(std::initializer_list<ConstOperand> operands, bool backward, MessagesLaunch& launch,
             Stream stream) const {
    const bool aligned = std::all_of(operands.begin(), operands.end(), [&](const auto& operand) {
      return operand.absent() || on_boundaries(operand, options_.features);
    });
    const std::int64_t width = aligned ? 16 / bytes_per_element(options_.precision) : 1;
    const std::int64_t vectors = (options_.features + width - 1) / width;
    launch.lanes = static_cast<int>(
        std::bit_ceil(static_cast<std::uint64_t>(std::min<std::int64_t>(vectors, 32))));
    const MessagesPasses passes = kernels_of<flagged_keys<MessagesKey>, MessagesKernels>(
        MessagesKey{stored_as(options_.precision), aligned});
    const auto message = static_cast<std::size_t>(options_.message);
    (backward ? passes.backward : passes.forward)[message](launch, stream);
  }

  MessagesOptions options_;
  std::shared_ptr<const cuda::DeviceRows> rows_, columns_;
  cuda::Cuts by_target_, by_source_;
  WorkspaceNeed workspace_;
  WorkspacePart<float> slots_;
};

std::string why_not(const MessagesProblem& problem) {
  const bool fits = problem.options.features <= std::numeric_limits<std::int32_t>::max() / 2;
  return fits ? "" : "takes 2^30 features at most";
}

}  // namespace

void append_cuda_messages_kernels(std::vector<MessagesKernel>& table) {
  table.push_back(cuda_kernel<MessagesKernel, why_not, predict_messages_us, prepared<CudaMessages>>(
      cuda_info("messages", "rows",
                "lanes of a row side by side over its features; long rows in pieces")));
}

}  // namespace tessera::ops
