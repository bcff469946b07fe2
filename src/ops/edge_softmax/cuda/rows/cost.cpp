// SPDX-License-Identifier: Apache-2.0
#include "ops/edge_softmax/cuda/rows/cost.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "graph/degrees.hpp"
#include "ops/plan/cost_formula.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

/// Lanes load so many numbers before they wait (kernel.cuh): a batch.
constexpr int batch = 4;

struct SoftmaxCoefficients {
  double launch_us;
  double moved_bytes_per_us = streamed_bytes_per_us;
  double batch_us;  ///< of a warp, as the next of a processor
  /// How many times as long 16-bit numbers take a team of a whole warp, and any a team of four
  /// lanes, which exchange least.
  double half_warp;
  double four_lanes;
  double alone_us;  ///< of a warp that has a processor for itself
  double resident_warps;
  double power;   ///< the slowest of all counts, and a little of the others
  double cut_us;  ///< launches for rows that are cut
  double cut_batch_us;
  double slot_us;  ///< of a part of the longest row, of which each part reads all others

  void scale(DeviceRatio ratio) { moved_bytes_per_us *= ratio.memory; }
};

constexpr Fitted<SoftmaxCoefficients> coefficients = {
    fitted_on_h200("2026-11-17",
                   "all sizes of teams, 1 and 8 heads, nine graphs of even and skewed degrees; 16 "
                   "bits by whole warps on 2026-11-18, 30 graphs"),
    {.launch_us = 3,
     .batch_us = 0.0457,
     .half_warp = 1.25,
     .four_lanes = 0.8,
     .alone_us = 0.8,
     .resident_warps = 48,
     .power = 3,
     .cut_us = 8.3,
     .cut_batch_us = 0.1,
     .slot_us = 0.1}};

/// What warps of several rows go through.
struct RowBatches {
  double of_warp = 0;  ///< in the mean: a warp waits for the longest of its rows
  double longest = 0;
  double cut = 0;  ///< of rows that are cut, by all of them
};

/// Rows come to warps in any order, so that the longest of `rows` has no more edges than `share`
/// of all rows with the probability share^rows.
RowBatches row_batches(const DegreeStatistics& degrees, EdgeOffset longest_row, double heads,
                       double team, double rows) {
  RowBatches found;
  const auto num_rows = static_cast<double>(std::max<std::int64_t>(1, degrees.num_rows));
  double share = static_cast<double>(degrees.rows_beyond(longest_row)) / num_rows;
  double before = std::pow(share, rows);
  for (const DegreeCount& count : degrees.counts) {
    const double numbers = static_cast<double>(count.degree) * heads;
    if (count.degree > longest_row) {
      found.cut += static_cast<double>(count.rows) * numbers / (32 * batch);
      continue;
    }
    share += static_cast<double>(count.rows) / num_rows;
    const double up_to_here = std::pow(share, rows);
    found.longest = std::max(1.0, std::ceil(numbers / (team * batch)));
    found.of_warp += (up_to_here - before) * found.longest;
    before = up_to_here;
  }
  return found;
}

}  // namespace

std::int64_t padded_heads(const EdgeSoftmaxProblem& problem) {
  const auto heads = static_cast<std::uint64_t>(std::min<std::int64_t>(problem.options.heads, 32));
  return static_cast<std::int64_t>(std::bit_ceil(heads));
}

EdgeOffset longest_softmax_row(const EdgeSoftmaxProblem& problem, int team) {
  constexpr EdgeOffset steps = 32;
  return std::max<EdgeOffset>(64, steps * team / padded_heads(problem));
}

/// Numbers move at the bandwidth of memory, or warps take them at the pace of their instructions,
/// or the longest row waits for one batch after the other.
double predict_softmax_us(const EdgeSoftmaxProblem& problem, int team, const DeviceTraits& traits) {
  const SoftmaxCoefficients fit = coefficients.on(traits);
  const Graph& graph = problem.graph;
  const auto heads = static_cast<double>(padded_heads(problem));
  const PassSizes sizes(graph, tiles::Side::forward, problem.options.heads,
                        problem.options.precision);
  const double head_blocks = std::ceil(sizes.features / 32);
  const RowBatches batches = row_batches(*row_degrees(graph), longest_softmax_row(problem, team),
                                         heads, team, 32.0 / team);
  const double warps = sizes.targets * team / 32;
  const double of_team = sizes.half() && team == 32 ? fit.half_warp
                         : team == 4                ? fit.four_lanes
                                                    : 1;
  const double batch_us = fit.batch_us * of_team;
  const double working = (warps * batches.of_warp * batch_us + batches.cut * fit.cut_batch_us) *
                         head_blocks / traits.processors;
  const double moving = 2 * sizes.edges * sizes.row_bytes / fit.moved_bytes_per_us;
  // Between two batches of a warp come those of all others on its processor.
  const double others = std::min(fit.resident_warps, warps / traits.processors);
  const double waiting = std::min(batches.longest * std::max(fit.alone_us, others * fit.batch_us),
                                  batches.longest * fit.alone_us + working);
  double joining = 0;
  if (batches.cut > 0) {
    const double parts = static_cast<double>(row_degrees(graph)->longest()) /
                         static_cast<double>(longest_softmax_row(problem, team));
    joining = fit.cut_us + std::ceil(parts) * fit.slot_us;
  }
  return fit.launch_us + joining + side_by_side({working, moving, waiting}, fit.power);
}

}  // namespace tessera::ops
