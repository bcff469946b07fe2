// SPDX-License-Identifier: Apache-2.0
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/parts.hpp"
#include "ops/spmm/cuda/rows/scheduled_rows.hpp"
#include "ops/spmm/row_order.hpp"

namespace tessera::ops {
namespace {

/// All rows on CUDA cores, listed in an order of the plan's own: neighbours in the list share
/// sources, which are then in the cache. Every sum is added up as without an order.
class OrderedRows final : public PreparedSpmm {
 public:
  explicit OrderedRows(const SpmmProblem& problem) {
    const auto order = row_order(problem);
    const SpmmProblem ordered = in_row_order(problem);
    const std::size_t policy =
        best_rows_policy(ordered, ProblemRows(ordered).lengths(), device_traits(problem.device));
    const ProblemRows rows(problem);
    const SomeRows listed(rows.offsets.span(), {order->rows.begin(), order->rows.end()});
    sums_ = prepare_some_rows(
        problem, policy, listed.lengths(),
        sorted_neighbours(ordered.graph, tiles::Side::forward, problem.precision), false);
    note_ = fmt::format("; by {}", name_of_rows(policy));
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    sums_->run(call, stream, workspace);
  }
  WorkspaceNeed workspace() const override { return sums_->workspace(); }
  std::string note() const override { return note_; }

 private:
  std::unique_ptr<const PreparedSpmm> sums_;
  std::string note_;
};

}  // namespace

void append_cuda_ordered_rows_kernel(std::vector<SpmmKernel>& table) {
  SpmmKernel kernel;
  kernel.info.name = "spmm/cuda/ordered_rows";
  kernel.info.description =
      "sums in registers, rows in an order of its own, by the lists of rows that should be fastest";
  kernel.info.op = "spmm";
  kernel.info.device = DeviceKind::cuda;
  kernel.why_not = [](const SpmmProblem& problem) -> std::string {
    if (std::string reason = why_not_listed_rows(problem); !reason.empty()) return reason;
    return why_not_ordered(problem);
  };
  kernel.predicted_us = [](const SpmmProblem& problem) {
    return predict_ordered_rows_us(problem, device_traits(problem.device));
  };
  kernel.prepare = [](const SpmmProblem& problem) -> std::unique_ptr<const PreparedSpmm> {
    return std::make_unique<OrderedRows>(problem);
  };
  table.push_back(std::move(kernel));
}

}  // namespace tessera::ops
