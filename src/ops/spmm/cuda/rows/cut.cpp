// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/cut.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

/// What rows that wait for each other are weighed with; rows/cost.cpp predicts times.
struct CutCoefficients {
  double warp_us;         ///< a warp's start and end, with two offsets, ids, a store
  double listed_warp_us;  ///< where one load brings what three did
  double step_us;         ///< one step of its loop, while others wait for theirs
  double feature_us;      ///< of a lane, in each step
  double waited_step_us;  ///< one step of the last row that is done

  /// All of them are times inside of a processor.
  CutCoefficients scaled(DeviceRatio) const { return *this; }
};

constexpr std::array<Fitted<CutCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-15", "row kernels on eight graphs at 16 to 256 features"),
      {.warp_us = 1.28,
       .listed_warp_us = 1.1,
       .step_us = 0.1,
       .feature_us = 0.0175,
       .waited_step_us = 0.5}}}};

constexpr std::array short_steps_tried = {1, 2, 4, 8, 16};
constexpr int min_wide_steps = 2;
constexpr int max_wide_steps = 64;
/// Putting pieces together takes the time of a few steps, so none has fewer.
constexpr int min_piece_steps = 6;

EdgeOffset steps_of(EdgeOffset count, EdgeOffset step) { return (count + step - 1) / step; }

/// Adds a row that is not short.
void add_wide_row(RowsWork& work, EdgeOffset degree, const RowsPolicy& policy, const RowsCut& cut,
                  double rows) {
  const EdgeOffset warp_step = whole_warp(policy).step();
  if (degree <= cut.wide_row(policy)) {
    work.warps += rows;
    work.steps += rows * static_cast<double>(steps_of(degree, warp_step));
    return;
  }
  const EdgeOffset block_warps = cut.block_threads / 32;
  const EdgeOffset pieces = steps_of(degree, cut.piece(policy));
  const EdgeOffset steps = steps_of(degree, warp_step * block_warps);
  work.warps += rows * static_cast<double>(block_warps * pieces);
  work.steps += rows * static_cast<double>(block_warps * steps);
}

/// As if all rows were in the order of their degrees; those beyond `longest` count as if they were
/// as long as that.
RowsWork ordered_work(const DegreeStatistics& degrees, EdgeOffset longest, const RowsPolicy& policy,
                      const RowsCut& cut) {
  RowsWork work;
  const EdgeOffset short_row = cut.short_row(policy);
  for (const DegreeCount& count : degrees.counts) {
    const EdgeOffset degree = std::min(count.degree, longest);
    const auto rows = static_cast<double>(count.rows);
    if (degree > short_row) {
      add_wide_row(work, degree, policy, cut, rows);
    } else {
      work.warps += rows / policy.teams();
      work.steps += rows / policy.teams() * static_cast<double>(steps_of(degree, policy.step()));
    }
  }
  return work;
}

RowsWork unordered_work(std::span<const EdgeOffset> offsets, const RowsPolicy& policy,
                        const RowsCut& cut) {
  RowsWork work;
  const EdgeOffset short_row = cut.short_row(policy);
  const auto teams = static_cast<std::size_t>(policy.teams());
  for (std::size_t row = 0; row + 1 < offsets.size();) {
    const std::size_t end = std::min(row + teams, offsets.size() - 1);
    EdgeOffset longest = 0;
    for (; row < end; ++row) {
      const EdgeOffset degree = offsets[row + 1] - offsets[row];
      if (degree <= short_row) {
        longest = std::max(longest, degree);
      } else {
        add_wide_row(work, degree, policy, cut, 1);
      }
    }
    work.warps += 1;
    work.steps += static_cast<double>(steps_of(longest, policy.step()));
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

RowsCut choose_cut(const RowLengths& rows, const RowsPolicy& policy, double blocks_of_features,
                   const DeviceTraits& traits) {
  const CutCoefficients fit = coefficients_for(coefficients, traits);
  const double processors = traits.processors;
  const bool whole = policy.team() == 32;
  const EdgeOffset longest = EdgeOffset{max_wide_steps} * whole_warp(policy).step() * 4;
  RowsCut best;
  double best_us = std::numeric_limits<double>::infinity();
  for (int wide = min_wide_steps; wide <= max_wide_steps; wide *= 2) {
    for (const int steps : short_steps_tried) {
      const RowsCut cut = {whole ? wide : steps, wide, 128};
      const RowsWork work = ordered_work(rows.degrees, longest, policy, cut);
      const double us = weighed_us(work, policy, fit, processors) * blocks_of_features +
                        fit.waited_step_us * cut.waited_steps();
      if (us < best_us) {
        best = cut;
        best_us = us;
      }
      if (whole) break;
    }
  }
  // Where all warps fit at once, only the longest row counts: more of them share it.
  const double warps = work_of(rows, policy, best).warps * blocks_of_features;
  if (warps < processors * resident_warps(policy)) best.block_threads = max_rows_block_threads;
  return best;
}

RowsWork work_of(const RowLengths& rows, const RowsPolicy& policy, const RowsCut& cut) {
  if (!policy.listed) return unordered_work(rows.offsets, policy, cut);
  return ordered_work(rows.degrees, rows.degrees.longest(), policy, cut);
}

}  // namespace tessera::ops
