// SPDX-License-Identifier: Apache-2.0
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/cuda_handles.hpp"
#include "ops/cuda/boundaries.hpp"
#include "ops/cuda/kernel_table.hpp"
#include "ops/sddmm/cuda/kernels.hpp"
#include "ops/sddmm/cuda/on_tiles.hpp"
#include "ops/sddmm/cuda/panels/cost.hpp"
#include "ops/sddmm/cuda/panels/cut.hpp"
#include "ops/sddmm/cuda/panels/order.hpp"

namespace tessera::ops {
namespace {

const PanelsKernel& kernel_of(Precision precision, std::size_t policy) {
  return kernels_of<kernel_precisions>(stored_as(precision), []<Precision stored>() {
    return PanelsKernels<stored>::all();
  })[policy];
}

/// Dot products by one policy, panel by panel. Operands lie on 16-byte boundaries.
class CudaPanels final : public PreparedSddmm {
 public:
  CudaPanels(const SddmmProblem& problem, std::size_t policy)
      : kernel_(kernel_of(problem.precision, policy)) {
    launch_.rows = panel_rows(panel_policies[policy].row_bytes(), device_traits(problem.device));
    panels_ = device_panels(problem.graph, launch_.rows, problem.place());
    launch_.pieces = panels_->pieces.data();
    launch_.num_pieces = panels_->pieces.size();
    launch_.order = panels_->order.data();
    const cuda_backend::CurrentDevice current(problem.device.index);
    kernel_.allow(launch_.rows);
  }

  void run(const ConstOperand& u, const ConstOperand& v, const Operand& edges,
           Stream stream) const override {
    PanelsLaunch launch = launch_;
    launch.u = u.data;
    launch.u_stride = u.stride;
    launch.v = v.data;
    launch.v_stride = v.stride;
    launch.edges = edges.data;
    launch.edges_stride = edges.stride;
    kernel_.start(launch, stream);
  }

 private:
  const PanelsKernel& kernel_;
  std::shared_ptr<const DevicePanels> panels_;
  PanelsLaunch launch_;
};

std::string why_not(const SddmmProblem& problem, const PanelPolicy& policy) {
  if (std::string reason = why_not_on_tiles(problem); !reason.empty()) return reason;
  if (problem.heads != 1) return "one head only";
  if (head_bytes(problem) != policy.row_bytes()) {
    return fmt::format("rows of {} bytes only", policy.row_bytes());
  }
  const int rows = panel_rows(policy.row_bytes(), device_traits(problem.device));
  if (longest_panel(problem.graph, rows) >= most_panel_edges) return "more than 2^23 edges a panel";
  return {};
}

template <std::size_t index>
SddmmKernel panels_kernel() {
  constexpr PanelPolicy policy = panel_policies[index];
  SddmmKernel kernel;
  kernel.info.name =
      fmt::format("sddmm/cuda/panels_{}x{}x{}", policy.lanes, policy.vectors, policy.depth);
  kernel.info.description = fmt::format(
      "rows of one end in shared memory, edges by the other, {} lanes per edge with {} vectors "
      "each",
      policy.lanes, policy.vectors);
  kernel.info.op = "sddmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.why_not = [](const SddmmProblem& problem) {
    return why_not(problem, panel_policies[index]);
  };
  kernel.predicted_us = [](const SddmmProblem& problem) {
    return predict_panels_us(problem, panel_policies[index], device_traits(problem.device));
  };
  kernel.prepare = [](const SddmmProblem& problem) -> std::unique_ptr<const PreparedSddmm> {
    return std::make_unique<CudaPanels>(problem, index);
  };
  return kernel;
}

}  // namespace

void append_cuda_panels_kernels(std::vector<SddmmKernel>& table) {
  [&]<std::size_t... i>(std::index_sequence<i...>) { (table.push_back(panels_kernel<i>()), ...); }
  (std::make_index_sequence<panel_policies.size()>{});
}

}  // namespace tessera::ops
