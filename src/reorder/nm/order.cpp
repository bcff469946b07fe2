// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <limits>
#include <memory>
#include <numeric>

#include <fmt/format.h>

#include "graph/requirements.hpp"
#include "graph/symmetry.hpp"
#include "reorder/nm/adjacency.hpp"
#include "reorder/nm/budget.hpp"
#include "reorder/nm/group_repair.hpp"
#include "reorder/nm/grouping.hpp"
#include "reorder/nm/paper.hpp"
#include "reorder/nm/parts.hpp"
#include "reorder/nm/spreading.hpp"
#include "tessera/core/error.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/reorder/nm.hpp"

namespace tessera::reorder {
namespace {

using detail::Budget;
using Clock = Budget::Clock;

Graph pattern_of(const Graph& graph, bool ignore_loops) {
  tessera::detail::require_square(graph, "N:M");
  const Graph both_ways =
      tessera::detail::undirected(graph.with_scales({}, {}).with_values({}).with_edge_ids({}));
  if (!ignore_loops || tessera::detail::symmetry_of(both_ways).loops == 0) return both_ways;
  return without_self_loops(both_ways);
}

bool groups_columns(const NmPattern& pattern, const NmOptions& options) {
  return options.algorithm == NmAlgorithm::group && pattern.v == 1;
}

/// A pattern that cannot conform is only improved, with a small part of the steps.
double part_of_steps(bool is_possible, const NmOptions& options) {
  return options.effort * (is_possible ? 1.0 : 0.01);
}

Budget budget_for(const Graph& graph, const NmPattern& pattern, bool is_possible,
                  Clock::time_point start, const NmOptions& options) {
  // Grouping takes most of its steps for what a few long rows leave, however large the rest is. It
  // places columns with no less than all of them, and fixes what is left with a part.
  const bool groups = groups_columns(pattern, options);
  const double base_steps = groups ? 3e7 : 2e7;
  // Graphs of millions of columns end without a time limit, too.
  const double steps_of_columns =
      groups ? std::min(1e9, 1000.0 * static_cast<double>(graph.num_rows())) : 0;
  const double steps_per_edge = groups ? 8 : 40;
  const double part = part_of_steps(is_possible, options);
  const double steps =
      (groups ? std::max(1.0, part) : part) *
      (base_steps + steps_of_columns + steps_per_edge * static_cast<double>(graph.num_edges()));
  const auto deadline = options.time_limit_seconds > 0
                            ? start + std::chrono::duration_cast<Clock::duration>(
                                          std::chrono::duration<double>(options.time_limit_seconds))
                            : Clock::time_point::max();
  return Budget(static_cast<std::int64_t>(steps), deadline, options.stop);
}

struct Found {
  std::vector<VertexId> order;
  std::int64_t iterations = 0;
  bool stopped = false;  ///< besides what the budget knows
};

/// Groups that violate: first as they were placed, then dealt to hands, then the better of both
/// with all of the steps that are left.
Found repair_groups(const detail::Adjacency& adjacency, int group_size,
                    std::vector<VertexId> members, std::uint64_t seed, bool may_deal,
                    Budget& budget) {
  using detail::GroupRepair;
  const auto repair_of = [&](std::vector<VertexId> start) {
    auto repair =
        std::make_unique<GroupRepair>(adjacency, adjacency, group_size, std::move(start), seed);
    repair->fix_few(budget);
    return repair;
  };
  std::unique_ptr<GroupRepair> best = repair_of(std::move(members));
  std::int64_t swaps = 0;
  if (best->fewest_violations() > 0 && may_deal && !budget.is_spent()) {
    detail::GroupedParts dealt = detail::group_dealt(adjacency, group_size, seed, budget);
    std::unique_ptr<GroupRepair> other = repair_of(std::move(dealt.order));
    if (other->fewest_violations() < best->fewest_violations()) std::swap(best, other);
    swaps = dealt.swaps + other->swaps();
  }
  if (best->fewest_violations() > 0) best->fix_many(budget);
  return {best->members_at_best(), swaps + best->swaps()};
}

Found group_columns(const detail::Adjacency& adjacency, const NmPattern& pattern,
                    std::uint64_t seed, double repair_part, Budget& budget) {
  if (auto parts =
          detail::group_parts(adjacency, pattern.m, seed, budget.deadline(), budget.stop())) {
    return {std::move(parts->order), parts->swaps, parts->stopped};
  }
  detail::Grouping grouping(adjacency, adjacency, pattern.m, seed);
  if (grouping.place(budget, detail::usual_placing_part) || budget.is_spent()) {
    return {grouping.order()};
  }
  budget.keep(repair_part);
  const bool may_deal = repair_part == 1 && adjacency.size > 2 * detail::columns_per_hand;
  return repair_groups(adjacency, pattern.m, grouping.order(), seed, may_deal, budget);
}

Found spread_entries(const detail::Adjacency& adjacency, const NmPattern& pattern,
                     std::uint64_t seed, Budget& budget) {
  const Permutation start = Permutation::random(adjacency.size, seed);
  detail::Spreading spreading(adjacency, pattern,
                              {start.new_to_old().begin(), start.new_to_old().end()}, seed);
  spreading.run(budget);
  return {spreading.order(), spreading.swaps()};
}

Found find_order(const Graph& graph, const NmPattern& pattern, const NmOptions& options,
                 bool is_possible, Budget& budget) {
  if (options.algorithm == NmAlgorithm::paper) {
    detail::PaperResult result = detail::order_as_paper(graph, pattern, budget);
    return {std::move(result.order), result.passes};
  }
  const detail::Adjacency adjacency(graph);
  if (!groups_columns(pattern, options)) {
    return spread_entries(adjacency, pattern, options.seed, budget);
  }
  const double repair_part = std::min(1.0, part_of_steps(is_possible, options));
  return group_columns(adjacency, pattern, options.seed, repair_part, budget);
}

void check_options(const NmOptions& options) {
  if (!(options.effort > 0 && options.effort <= 1e6)) {
    throw Error(ErrorCode::invalid_argument, fmt::format("an effort of {}", options.effort), "N:M",
                "use a number above 0, at most 1000000");
  }
  if (!(options.time_limit_seconds >= 0)) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("a time limit of {} seconds", options.time_limit_seconds), "N:M",
                "use 0 for none");
  }
}

}  // namespace

double NmOrder::improvement() const noexcept {
  if (before.vectors == 0) return 1;
  return 1 - static_cast<double>(after.vectors) / static_cast<double>(before.vectors);
}

Graph padded(const Graph& graph, std::int64_t padding) {
  if (padding == 0) return graph;
  tessera::detail::require_square(graph, "padding");
  tessera::detail::require_no_scales(graph, "padding");
  const std::int64_t size = graph.num_rows() + padding;
  if (padding < 0 || size > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::invalid_argument,
                fmt::format("{} vertices after {} more", size, padding), "padding");
  }
  std::vector<EdgeOffset> offsets(graph.row_offsets().begin(), graph.row_offsets().end());
  offsets.resize(static_cast<std::size_t>(size) + 1, graph.num_edges());
  Graph result(static_cast<VertexId>(size), static_cast<VertexId>(size), std::move(offsets),
               graph.col_indices(),
               graph.has_values() ? PlacedArray<float>(graph.values()) : PlacedArray<float>());
  return graph.has_edge_ids() ? result.with_edge_ids(graph.edge_ids()) : result;
}

NmOrder order_nm(const Graph& graph, const NmPattern& pattern, const NmOptions& options) {
  pattern.validate();
  check_options(options);
  report(options.progress, "fitting " + to_string(pattern), 0, graph.num_rows());
  NmOrder result;
  result.pattern = pattern;
  result.algorithm = options.algorithm;
  Graph to_fit = pattern_of(graph, options.ignore_loops);
  result.before = count_violations(to_fit, pattern);
  const auto start = Clock::now();
  if (const auto obstacle = find_obstacle(to_fit, pattern)) {
    if (options.pad && obstacle->padding > 0) {
      result.padding = obstacle->padding;
      to_fit = padded(to_fit, result.padding);
    } else {
      result.obstacle = obstacle->reason;
    }
  }
  if (result.before.conforms()) {
    result.order = Permutation::identity(to_fit.num_rows());
    result.after = result.before;
    return result;
  }
  const bool is_possible = result.obstacle.empty();
  Budget budget = budget_for(to_fit, pattern, is_possible, start, options);
  Found found = find_order(to_fit, pattern, options, is_possible, budget);
  result.order = Permutation(std::move(found.order));
  result.iterations = found.iterations;
  result.seconds = std::chrono::duration<double>(Clock::now() - start).count();
  result.stopped = budget.out_of_time() || found.stopped;
  result.after = count_violations(permuted(to_fit, result.order), pattern);
  if (result.after.vectors > result.before.vectors && result.padding == 0 &&
      result.after.meta_blocks >= result.before.meta_blocks) {
    result.order = Permutation::identity(to_fit.num_rows());
    result.after = result.before;
  }
  report(options.progress, "fitting " + to_string(pattern), graph.num_rows(), graph.num_rows());
  return result;
}

}  // namespace tessera::reorder
