// SPDX-License-Identifier: Apache-2.0
#include "ops/rows/cut.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

/// What rows that wait for each other are weighed with, times inside of a processor; rows/cost.cpp
/// predicts those of launches.
struct CutCoefficients {
  double warp_us;         ///< a warp's start and end, with two offsets, ids, a store
  double listed_warp_us;  ///< where one load brings what three did
  double step_us;         ///< one step of its loop, while others wait for theirs
  double feature_us;      ///< of a lane, in each step
  double waited_step_us;  ///< one step of the last row that is done
};

constexpr Fitted<CutCoefficients> coefficients = {
    fitted_on_h200("2026-11-15", "row kernels on eight graphs at 16 to 256 features"),
    {.warp_us = 1.28,
     .listed_warp_us = 1.1,
     .step_us = 0.1,
     .feature_us = 0.0175,
     .waited_step_us = 0.5}};

constexpr std::array short_steps_tried = {1, 2, 4, 8, 16};
constexpr int min_wide_steps = 2;
constexpr int max_wide_steps = 64;
/// Putting pieces together takes the time of a few steps, so none has fewer.
constexpr int min_piece_steps = 6;

/// Steps over `count` edges; a step is a power of two.
EdgeOffset steps_of(EdgeOffset count, int step) {
  return (count + step - 1) >> std::countr_zero(static_cast<unsigned>(step));
}

RowsWork operator+(const RowsWork& a, const RowsWork& b) {
  return {a.warps + b.warps, a.steps + b.steps};
}

/// Rows of one degree that are not short.
RowsWork wide_rows_work(EdgeOffset degree, double rows, const RowsPolicy& policy,
                        const RowsCut& cut) {
  const int warp_step = whole_warp(policy).step();
  if (degree <= cut.wide_row(policy)) {
    return {rows, rows * static_cast<double>(steps_of(degree, warp_step))};
  }
  const int block_warps = cut.block_threads / 32;
  const EdgeOffset piece = cut.piece(policy);
  const EdgeOffset pieces = (degree + piece - 1) / piece;
  const EdgeOffset steps = steps_of(degree, warp_step * block_warps);
  return {rows * static_cast<double>(block_warps * pieces),
          rows * static_cast<double>(block_warps * steps)};
}

/// All rows that are not short.
RowsWork wide_work(const DegreeStatistics& degrees, const RowsPolicy& policy, const RowsCut& cut) {
  RowsWork work;
  const EdgeOffset short_row = cut.short_row(policy);
  for (auto count = degrees.counts.rbegin(); count != degrees.counts.rend(); ++count) {
    if (count->degree <= short_row) break;
    work = work + wide_rows_work(count->degree, static_cast<double>(count->rows), policy, cut);
  }
  return work;
}

/// Rows of one degree that are short, as if all rows were in the order of their degrees.
RowsWork ordered_rows_work(const DegreeCount& count, const RowsPolicy& policy) {
  const double warps = static_cast<double>(count.rows) / policy.teams();
  return {warps, warps * static_cast<double>(steps_of(count.degree, policy.step()))};
}

/// All rows that are short, as if they were in the order of their degrees: the warps are as many in
/// any order.
RowsWork ordered_short_work(const RowLengths& rows, const RowsPolicy& policy, const RowsCut& cut) {
  RowsWork work;
  for (const DegreeCount& count : rows.degrees.counts) {
    if (count.degree <= cut.short_row(policy)) work = work + ordered_rows_work(count, policy);
  }
  // Without a list, a warp has its rows whether they are short or not.
  if (!policy.listed) {
    const std::int64_t num_rows = rows.degrees.num_rows;
    work.warps = static_cast<double>((num_rows + policy.teams() - 1) / policy.teams());
  }
  return work;
}

/// The time that all warps need for the work.
double weighed_us(const RowsWork& work, const RowsPolicy& policy, const CutCoefficients& fit,
                  double processors) {
  const double one_step_us = fit.step_us + fit.feature_us * (policy.bytes / 4) * policy.vectors;
  const double of_warp_us = policy.listed ? fit.listed_warp_us : fit.warp_us;
  return (work.warps * of_warp_us + work.steps * one_step_us) /
         (processors * resident_warps(policy));
}

}  // namespace

EdgeOffset RowsCut::piece(const RowsPolicy& policy) const {
  return EdgeOffset{std::max(wide_steps, min_piece_steps)} * whole_warp(policy).step() *
         (block_threads / 32);
}

double resident_warps(const RowsPolicy& policy) {
  return policy.unroll * policy.vectors > 4 ? 32 : 44;
}

namespace {

/// What cuts of one policy cost, as if all rows were in the order of their degrees; those beyond
/// `longest` count as if they were as long as that. The rows that are short and those that are not
/// are added up from both ends of the degrees, once for all cuts that differ in where they meet.
class OrderedCuts {
 public:
  OrderedCuts(const DegreeStatistics& degrees, EdgeOffset longest, const RowsPolicy& policy)
      : policy_(policy), counts_(degrees.counts), short_(counts_.size() + 1) {
    for (DegreeCount& count : counts_) count.degree = std::min(count.degree, longest);
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      short_[i + 1] = short_[i] + ordered_rows_work(counts_[i], policy_);
    }
    wide_.resize(short_.size());
  }

  /// From now on for cuts with this many steps of wide rows.
  void set_wide(const RowsCut& cut) {
    for (std::size_t i = counts_.size(); i > 0; --i) {
      const DegreeCount& count = counts_[i - 1];
      wide_[i - 1] =
          wide_[i] + wide_rows_work(count.degree, static_cast<double>(count.rows), policy_, cut);
    }
  }

  RowsWork work(const RowsCut& cut) const {
    const auto first_wide = std::partition_point(
        counts_.begin(), counts_.end(),
        [&](const DegreeCount& count) { return count.degree <= cut.short_row(policy_); });
    const auto i = static_cast<std::size_t>(first_wide - counts_.begin());
    return short_[i] + wide_[i];
  }

 private:
  const RowsPolicy& policy_;
  std::vector<DegreeCount> counts_;
  std::vector<RowsWork> short_;  ///< of all degrees before
  std::vector<RowsWork> wide_;   ///< of this degree and all after it
};

}  // namespace

RowsCut choose_cut(const RowLengths& rows, const RowsPolicy& policy, double blocks_of_features,
                   const DeviceTraits& traits) {
  const CutCoefficients fit = coefficients.on(traits);
  const double processors = traits.processors;
  const bool whole = policy.team() == 32;
  OrderedCuts cuts(rows.degrees, EdgeOffset{max_wide_steps} * whole_warp(policy).step() * 4,
                   policy);
  RowsCut best;
  double best_us = std::numeric_limits<double>::infinity();
  for (int wide = min_wide_steps; wide <= max_wide_steps; wide *= 2) {
    cuts.set_wide({wide, wide, 128});
    for (const int steps : short_steps_tried) {
      const RowsCut cut = {whole ? wide : steps, wide, 128};
      const double us = weighed_us(cuts.work(cut), policy, fit, processors) * blocks_of_features +
                        fit.waited_step_us * cut.waited_steps();
      if (us < best_us) {
        best = cut;
        best_us = us;
      }
      if (whole) break;
    }
    // More steps of a warp change nothing where no row needs them.
    if (!whole && rows.degrees.longest() <= RowsCut{wide, wide}.wide_row(policy)) break;
  }
  // Where all warps fit at once, only the longest row counts: more of them share it.
  if (work_of(rows, policy, best).warps * blocks_of_features <
      processors * resident_warps(policy)) {
    best.block_threads = max_rows_block_threads;
  }
  return best;
}

RowsWork work_of(const RowLengths& rows, const RowsPolicy& policy, const RowsCut& cut) {
  return ordered_short_work(rows, policy, cut) + wide_work(rows.degrees, policy, cut);
}

}  // namespace tessera::ops
