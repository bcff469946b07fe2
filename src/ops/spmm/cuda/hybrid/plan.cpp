// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "ops/cuda/cuda_kernel.hpp"
#include "ops/rows/row_lists.hpp"
#include "ops/spmm/cuda/hybrid/cost.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/parts.hpp"
#include "tiles/cuda/device_tiles.hpp"

namespace tessera::ops {
namespace {

/// Some windows on tensor cores, the rows of the others on CUDA cores. The first launch has the
/// windows, whose blocks stay; the rows of the second fill the places that they leave.
class CudaHybrid final : public PreparedSpmm {
 public:
  CudaHybrid(const SpmmProblem& problem, const HybridPolicy& policy) {
    const DeviceTraits traits = device_traits(problem.device);
    const WindowedRows windowed(problem, policy);
    // Both parts read them, and tiles are made of them where they are there already.
    const auto kept = tiles::side_rows(problem.graph, tile_side(problem.pass), problem.place());
    const auto tiles = tiles::device_tiles(
        windowed.graph, {policy.tall.height, windowed.side, policy.tall.min_uses}, problem.place());
    const WindowCosts costs = window_costs(problem, policy, traits);
    WindowCores cores = choose_cores(windowed.offsets.span(), tiles->host.step_offsets.span(),
                                     policy.tall.height, costs);
    const bool both = cores.tensor.windows > 0 && cores.cuda.windows > 0;
    if (cores.tensor.windows > 0) {
      tensor_ =
          prepare_some_windows(problem, policy.tall, {cores.on_tensor_cores, both, windowed.order});
      of_tensor_ = workspace_.add_beside(tensor_->workspace());
    }
    std::string name = "none";
    if (!cores.cuda_rows.empty()) {
      if (windowed.order != nullptr) {
        for (VertexId& row : cores.cuda_rows) row = windowed.order->rows[row];
      }
      const ProblemRows rows(problem);
      const SomeRows others(rows.offsets.span(), std::move(cores.cuda_rows));
      const std::size_t best = best_rows_policy(problem, others.lengths(), traits);
      cuda_ = prepare_some_rows(problem, best, others.lengths(), list_window_rows, both);
      of_cuda_ = workspace_.add_beside(cuda_->workspace());
      name = name_of_rows(best);
    }
    note_ = described(cores, costs, policy, name);
  }

  void run(const SpmmCall& call, Stream stream, const WorkspaceView& workspace) const override {
    if (tensor_ != nullptr) tensor_->run(call, stream, of_tensor_.in(workspace));
    if (cuda_ != nullptr) cuda_->run(call, stream, of_cuda_.in(workspace));
  }

 private:
  static std::string described(const WindowCores& cores, const WindowCosts& costs,
                               const HybridPolicy& policy, const std::string& rows_name) {
    const std::int64_t windows = cores.tensor.windows + cores.cuda.windows;
    const auto edges = static_cast<double>(cores.tensor.edges + cores.cuda.edges);
    const double share = edges == 0 ? 0 : 100 * static_cast<double>(cores.tensor.edges) / edges;
    return fmt::format(
        "; {} of {} windows of {} rows on tensor cores ({:.0f} % of the edges, {:.2f} per column, "
        "{:.1f} us), the others on CUDA cores ({:.2f} per column, {:.1f} us, {}): a column there "
        "counts {:.3f} ns, an edge here {:.3f}",
        cores.tensor.windows, windows, policy.tall.height, share, cores.tensor.intensity(),
        cores.tensor.predicted_us, cores.cuda.intensity(), cores.cuda.predicted_us, rows_name,
        1e3 * costs.tall.column_us, 1e3 * costs.rows.edge_us);
  }

  std::unique_ptr<const PreparedSpmm> tensor_;
  std::unique_ptr<const PreparedSpmm> cuda_;
  WorkspaceShare of_tensor_, of_cuda_;
};

/// All rows on CUDA cores, listed in an order of the plan's own: neighbours in the list share
/// sources, which are then in the cache. Every sum is added up as without an order.
std::unique_ptr<const PreparedSpmm> prepare_ordered_rows(const SpmmProblem& problem) {
  const auto order = row_order(problem);
  const SpmmProblem ordered = in_row_order(problem);
  const std::size_t policy =
      best_rows_policy(ordered, ProblemRows(ordered).lengths(), device_traits(problem.device));
  const ProblemRows rows(problem);
  const SomeRows listed(rows.offsets.span(), {order->rows.begin(), order->rows.end()});
  return prepare_some_rows(
      problem, policy, listed.lengths(),
      sorted_neighbours(ordered.graph, tiles::Side::forward, problem.precision), false,
      "; by " + name_of_rows(policy));
}

/// Lists of rows have 32 bytes for each.
constexpr VertexId most_rows = 1 << 24;

std::string why_not(const SpmmProblem& problem, const HybridPolicy& policy) {
  if (std::string reason = why_not_tall(problem, policy.tall); !reason.empty()) return reason;
  if (std::max(problem.graph.num_rows(), problem.graph.num_cols()) > most_rows) {
    return fmt::format("lists more than {} rows", most_rows);
  }
  return policy.ordered ? why_not_ordered(problem) : "";
}

KernelInfo info_of(const HybridPolicy& policy) {
  return windows_info(
      "spmm", policy.name,
      fmt::format("each window of {} rows{} on {} or on CUDA cores, whichever should be faster for "
                  "it, {} steps before a window is cut",
                  policy.tall.height, policy.ordered ? ", in an order of its own," : "",
                  policy.tall.warps ? "mma.sync" : "wgmma", policy.tall.min_cut_steps));
}

std::string why_not_ordered_rows(const SpmmProblem& problem) {
  if (std::string reason = why_not_listed_rows(problem); !reason.empty()) return reason;
  return why_not_ordered(problem);
}

}  // namespace

void append_cuda_hybrid_kernels(std::vector<SpmmKernel>& table) {
  table.push_back(
      cuda_kernel<SpmmKernel, why_not_ordered_rows, predict_ordered_rows_us, prepare_ordered_rows>(
          cuda_info(
              "spmm", "ordered_rows",
              "sums in registers, rows in an order of its own, by the lists of rows that should "
              "be fastest")));
  append_kernels<why_not, predict_hybrid_us, prepared<CudaHybrid>, hybrid_policies>(table, info_of);
}

}  // namespace tessera::ops
