// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/row_order.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

#include "core/on_device.hpp"
#include "graph/access.hpp"
#include "ops/plan/tune.hpp"
#include "ops/spmm/trial.hpp"
#include "tessera/core/measure.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/reorder/layout.hpp"
#include "tiles/window_columns.hpp"

namespace tessera::ops {
namespace {

struct FoundLayout {
  reorder::Layout layout;
  double seconds = 0;
};

/// The same for both passes: layouts ignore direction.
std::shared_ptr<const FoundLayout> found_layout(const Graph& graph) {
  return detail::GraphAccess::kept(graph, "layout of rows", [&] {
    const Stopwatch watch;
    FoundLayout found;
    found.layout = reorder::best_layout(graph);
    found.seconds = watch.seconds();
    return found;
  });
}

Graph in_order(const tiles::SideRows& side, const SharedArray<VertexId>& order) {
  Buffer<EdgeOffset> offsets(std::int64_t{side.num_rows} + 1);
  offsets[0] = 0;
  const auto begin_of = [&](std::int64_t row) {
    return side.offsets[static_cast<std::size_t>(row)];
  };
  for (std::int64_t i = 0; i < side.num_rows; ++i) {
    offsets[i + 1] = offsets[i] + begin_of(order[i] + 1) - begin_of(order[i]);
  }
  Buffer<VertexId> columns(offsets[side.num_rows]);
  parallel_for(side.num_rows, 256, [&](std::int64_t i) {
    std::copy(side.indices.begin() + begin_of(order[i]),
              side.indices.begin() + begin_of(std::int64_t{order[i]} + 1),
              columns.begin() + offsets[i]);
  });
  return Graph(side.num_rows, side.num_cols, std::move(offsets), std::move(columns));
}

bool names_ordered(const std::string& kernel) {
  return kernel.find("/ordered") != std::string::npos;
}

/// Whether the options admit a kernel that can solve the problem in another order.
bool any_can_use(const SpmmProblem& problem, const PlanOptions& options,
                 std::span<const SpmmKernel> kernels) {
  SpmmProblem ordered = problem;
  ordered.reorders = true;
  return std::any_of(kernels.begin(), kernels.end(), [&](const SpmmKernel& kernel) {
    if (!names_ordered(kernel.info.name) || !is_asked_for(kernel.info, options)) return false;
    if (repeats_edges(problem) && !kernel.info.repeated_edges) return false;
    Offer offer;
    offer.info = &kernel.info;
    if (!is_admissible(offer, options)) return false;
    return kernel.why_not(ordered).empty();
  });
}

/// The most that an order can save of a run by rows, to which a row of X for each edge comes from
/// L2 at some 12 bytes per picosecond.
double most_saved_seconds(const SpmmProblem& problem) {
  constexpr double gathered_bytes_per_second = 12e12;
  return most_saved_share * static_cast<double>(problem.graph.num_edges()) *
         static_cast<double>(problem.features) *
         static_cast<double>(bytes_per_element(problem.precision)) / gathered_bytes_per_second;
}

}  // namespace

std::string why_not_ordered(const SpmmProblem& problem) {
  if (problem.graph.num_rows() != problem.graph.num_cols()) {
    return "rows and columns that are not the same vertices";
  }
  if (problem.reorders) return {};
  const double saved = most_saved_seconds(problem);
  if (saved == 0) return "rows keep their order: there is nothing to gain";
  return fmt::format(
      "rows keep their order: another makes up for its time after {:.0f} epochs at the earliest",
      std::ceil(predicted_order_seconds(problem.graph) / saved));
}

std::shared_ptr<const RowOrder> row_order(const SpmmProblem& problem) {
  const auto make = [&] {
    const auto found = found_layout(problem.graph);
    RowOrder order;
    order.rows = found->layout.order.new_to_old();
    order.method = found->layout.method;
    order.seconds = found->seconds;
    order.graph = in_order(tiles::rows_of(problem.graph, tile_side(problem.pass)), order.rows);
    return order;
  };
  const char* const key = problem.is_forward() ? "rows in order" : "columns in order";
  return detail::GraphAccess::kept(problem.graph, key, make, Keeping::for_users);
}

SpmmProblem in_row_order(const SpmmProblem& problem) {
  SpmmProblem ordered = problem;
  ordered.graph = row_order(problem)->graph;
  ordered.pass = SpmmPass::forward;
  return ordered;
}

/// By measured orders: the densest graphs take least for an edge, and bisection takes
/// nearly half of it. Few rows keep few threads busy: cora takes a tenth of a second on 16.
double predicted_order_seconds(const Graph& graph) {
  constexpr double seconds_per_edge = 5.5e-6;
  constexpr double rows_of_a_thread = 4096;
  const double threads = std::clamp(graph.num_rows() / rows_of_a_thread, 1.0, nominal_threads);
  return static_cast<double>(graph.num_edges()) * seconds_per_edge / threads;
}

bool may_pay(const SpmmProblem& problem, const PlanOptions& options,
             std::span<const SpmmKernel> kernels) {
  if (problem.device.kind != DeviceKind::cuda) return false;
  if (names_ordered(options.kernel)) return true;
  return static_cast<double>(options.epochs) * most_saved_seconds(problem) >
             predicted_order_seconds(problem.graph) &&
         any_can_use(problem, options, kernels);
}

bool should_reorder(const SpmmProblem& problem, const PlanOptions& options) {
  if (options.store != nullptr && options.kernel.empty()) {
    require_available(options.device);
    refuse_while_recording();
    const PlanKey key =
        plan_key(SpmmTrial::op(problem), problem.graph, SpmmTrial::details(problem), options);
    if (const auto stored = recall(*options.store, key, options.stored_only)) {
      return names_ordered(stored->kernel);
    }
  }
  if (problem.device.kind != DeviceKind::cuda) return false;
  require_available(options.device);
  const OnDevice current(options.device);
  return may_pay(problem, options, spmm_kernels());
}

std::string note_on_order(const SpmmProblem& problem, const Explanation& explanation,
                          const PlanOptions& options) {
  if (!problem.reorders || !why_not_ordered(problem).empty()) return {};
  bool was_candidate = false;
  double ordered_us = 0, other_us = std::numeric_limits<double>::infinity();
  for (const Candidate& candidate : explanation.candidates) {
    if (names_ordered(candidate.kernel)) {
      was_candidate = was_candidate || candidate.predicted_us > 0;
      if (candidate.verdict == "chosen") ordered_us = candidate.predicted_us;
    } else if (candidate.predicted_us > 0) {
      other_us = std::min(other_us, candidate.predicted_us);
    }
  }
  if (!was_candidate) return {};
  const auto order = row_order(problem);
  const std::string found =
      fmt::format("{:.2g} s went into an order of rows ({})", order->seconds, order->method);
  if (ordered_us == 0) return "; " + found + ", but the old one stays: it should be no slower";
  if (!std::isfinite(other_us) || other_us <= ordered_us) return "; " + found;
  const double saved_us = other_us - ordered_us;
  const std::string saved =
      saved_us < 1 ? fmt::format("{:.3f}", saved_us) : fmt::format("{:.1f}", saved_us);
  return fmt::format(
      "; {}, which {:.0f} runs make up for at {} us less each; {} epochs are planned", found,
      std::ceil(order->seconds * 1e6 / saved_us), saved, options.epochs);
}

}  // namespace tessera::ops
