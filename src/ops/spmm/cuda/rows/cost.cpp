// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/rows/cost.hpp"

#include <algorithm>

#include "graph/access.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/rows/launch.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/weights.hpp"

namespace tessera::ops {
namespace {

/// docs/benchmarking.md says how well they choose.
struct RowsCoefficients {
  double launch_us;
  double unlisted_us;         ///< more, where a row's place has to be looked up first
  double warp_us;             ///< a warp's start and end, with two offsets, ids, a store
  double listed_warp_us;      ///< where one load brings what three did
  double step_us;             ///< one step of its loop, while others wait for theirs
  double feature_us;          ///< of a lane, in each step
  double half_feature_us;     ///< more, to widen one of 16 bits
  double last_step_us;        ///< of the longest row, which others do not hide
  double last_vector_us;      ///< more, for each further vector of a lane
  double moved_bytes_per_us;  ///< X, Y and a list once, from and to memory
  double index_bytes_per_us =
      streamed_bytes_per_us;  ///< lists and columns, for each part of the rows but the first
  /// A residual, read when a row ends, and how much more for each further part of a row, and in 32
  /// bits for each further vector of a lane: in 16 bits those cost nothing that was seen.
  double residual_bytes_per_us = streamed_bytes_per_us;
  double residual_further;
  /// More for each further part of rows that fill no whole lines of the cache: it begins inside of
  /// a line, which is then asked for twice.
  double cut_bytes;
  double value_us;  ///< for an edge that has a value, in each part of the rows
  double scale_us;  ///< the same for the scale of its source
  GatherRates gathers;
  /// The longest of waiting, gathering and moving decides, and a little of the others.
  double power;
  double shifted;  ///< how many times as long rows take that are shifted in registers
  double copied_bytes_per_us = streamed_bytes_per_us;  ///< X to rows that fill units
  double unaligned_bytes_per_us;  ///< more for each part of rows of Y that begin on no boundary
  double unaligned_residual;      ///< of that, more for those of a residual
  /// How many times what is counted the kernels take of eight lanes, and in fp32 of four that hold
  /// two vectors each, as the compiler made them.
  double eight_lanes, four_double_lanes;

  void scale(DeviceRatio ratio) {
    moved_bytes_per_us *= ratio.memory;
    index_bytes_per_us *= ratio.memory;
    copied_bytes_per_us *= ratio.memory;
    unaligned_bytes_per_us *= ratio.memory;
    residual_bytes_per_us *= ratio.memory;
    // All processors together take what the second-level cache gives; each alone could take more.
    constexpr double alone = 1.6;
    const double cached_bytes_per_us = gathers.cached_bytes_per_us;
    gathers.scale(ratio);
    if (ratio.processors < 1) {
      gathers.cached_bytes_per_us = cached_bytes_per_us * std::min(1.0, alone * ratio.processors);
    }
    value_us /= ratio.processors;
    scale_us /= ratio.processors;
  }
};

constexpr Fitted<RowsCoefficients> coefficients = {
    fitted_on_h200(
        "2026-11-17",
        "40 graphs of 34 to 1.8 M vertices, 14 of them generated, at 32 and 128 features; policies "
        "of other widths to 37 graphs at 16 to 256 on 2026-11-15; what warps wait for, and vectors "
        "of 16-bit rows, to 25 matrices at 128; parts of rows to eight graphs at 64 to 256, "
        "residuals to 15 at 64, what caches give and lists of rows to 42 graphs and some of them "
        "in other orders, most of them at 128; rows that are shifted or copied to four generated "
        "ones at 7 to 96, and their results to DD and molecules-size at 89 and 74 on 2026-11-18; "
        "parts that begin inside of lines to 54 graphs at 41 and 100 on 2026-11-18"),
    {.launch_us = 0.736,
     .unlisted_us = 0.1989,
     .warp_us = 1.48,
     .listed_warp_us = 1.3,
     .step_us = 0.388,
     .feature_us = 0.03,
     .half_feature_us = 0.0085,
     .last_step_us = 0.1565,
     .last_vector_us = 0.1936,
     .moved_bytes_per_us = 5.65e6,
     .residual_further = 0.4,
     .cut_bytes = 48,
     .value_us = 6.5e-6,
     .scale_us = 5e-6,
     .gathers = {.near_bytes_per_us = 40.5e6,
                 .cached_bytes_per_us = 10.5e6,
                 .missed_bytes_per_us = 4.54e6},
     .power = 2.573,
     .shifted = 2,
     .unaligned_bytes_per_us = 3.8e6,
     .unaligned_residual = 0.65,
     .eight_lanes = 0.92,
     .four_double_lanes = 1.287}};

double factor_of(const RowsCoefficients& fit, const RowsPolicy& policy, double feature_bytes) {
  constexpr RowsPolicy eight = {8, 1, 4, 16, 1, true}, four_double = {4, 1, 4, 16, 2, true};
  if (policy == eight) return fit.eight_lanes;
  return policy == four_double && feature_bytes == 4 ? fit.four_double_lanes : 1;
}

double feature_bytes_of(const SpmmProblem& problem) {
  return static_cast<double>(bytes_per_element(problem.precision));
}

std::int64_t row_bytes_of(const SpmmProblem& problem) {
  return problem.features * static_cast<std::int64_t>(bytes_per_element(problem.precision));
}

/// Whether parts of rows begin where lines of the cache do.
bool fills_lines(const SpmmProblem& problem) {
  constexpr std::int64_t line_bytes = 128;
  return row_bytes_of(problem) % line_bytes == 0;
}

/// Whether rows of X begin on no boundary of a policy's loads.
bool begin_anywhere(const SpmmProblem& problem, const RowsPolicy& policy) {
  return row_bytes_of(problem) % policy.bytes != 0;
}

bool picks(const SpmmProblem& problem) {
  return problem.reduction == Reduction::max || problem.reduction == Reduction::min;
}

/// What the warps of a launch take if they wait for nothing but each other.
double waiting_us(const RowsWork& work, const SpmmProblem& problem, const RowsPolicy& policy,
                  const RowsCoefficients& fit, double processors) {
  const double feature_bytes = feature_bytes_of(problem);
  const double features =
      takes_elements(problem, policy) ? 1 : policy.bytes / feature_bytes * policy.vectors;
  const double feature_us = fit.feature_us + (feature_bytes == 2 ? fit.half_feature_us : 0);
  const double of_warp_us = policy.listed ? fit.listed_warp_us : fit.warp_us;
  return (work.warps * of_warp_us + work.steps * (fit.step_us + features * feature_us)) /
         (processors * resident_warps(policy));
}

/// What an edge gathers for each byte of its row of X: the gradient of max and min asks who won,
/// too.
double bytes_gathered(const SpmmProblem& problem) {
  if (!picks(problem) || problem.pass == SpmmPass::forward) return 1;
  return 1 + sizeof(VertexId) / feature_bytes_of(problem);
}

std::int64_t parts_of_rows(const SpmmProblem& problem, const RowsPolicy& policy) {
  const std::int64_t lanes = lanes_wanted(problem, policy);
  const std::int64_t at_once = std::int64_t{policy.lanes} * policy.vectors;
  return (lanes + at_once - 1) / at_once;
}
double blocks_of_features(const SpmmProblem& problem, const RowsPolicy& policy) {
  return static_cast<double>(parts_of_rows(problem, policy));
}

/// The row of X of an edge. Rows come part by part, all rows of one part before the next: of a part
/// more rows are in the cache.
double gathering_us(const SpmmProblem& problem, const RowsPolicy& policy,
                    const RowsCoefficients& fit) {
  const auto row_bytes = static_cast<double>(row_bytes_of(problem));
  const double part_bytes =
      std::max(1.0, std::min(row_bytes, double(policy.lanes * policy.vectors * policy.bytes)));
  const double cuts = std::max(0.0, blocks_of_features(problem, policy) - 1);
  const double again = fills_lines(problem) ? 0 : cuts * fit.cut_bytes;
  const double gathered = bytes_gathered(problem);
  return gathered * (row_bytes + again) *
         fit.gathers.us_per_byte(problem.graph, tile_side(problem.pass), gathered * part_bytes);
}

/// Whether a policy takes rows of X in several parts: any number of the widest, or some narrower
/// ones, of which more fit into the cache. Lanes with several vectors want whole parts.
bool takes_parts(const RowsPolicy& policy, std::int64_t wanted) {
  constexpr std::int64_t most_parts = 4;
  const std::int64_t lanes = std::int64_t{policy.lanes} * policy.vectors;
  if (lanes >= wanted) return false;
  if (policy.vectors > 1) return lanes == 32 && wanted % lanes == 0;
  if (lanes == 16) return true;
  return lanes >= 8 && policy.bytes == 16 && most_parts * lanes >= wanted;
}

}  // namespace

ProblemRows::ProblemRows(const SpmmProblem& problem) {
  const bool forward = problem.pass == SpmmPass::forward;
  offsets = forward ? problem.graph.row_offsets() : detail::GraphAccess::col_offsets(problem.graph);
  degrees = forward ? row_degrees(problem.graph) : column_degrees(problem.graph);
}

bool takes_elements(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (!begin_anywhere(problem, policy)) return false;
  return picks(problem) ||
         (problem.features <= policy.lanes && policy.lanes < 2 * problem.features);
}

std::int64_t lanes_wanted(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (takes_elements(problem, policy)) return problem.features;
  return (row_bytes_of(problem) + policy.bytes - 1) / policy.bytes;
}

bool lanes_fit(const SpmmProblem& problem, const RowsPolicy& policy) {
  if (begin_anywhere(problem, policy) &&
      kernel_of(policy, RowStarts::units) != kernel_of(policy, RowStarts::boundaries)) {
    return false;
  }
  const std::int64_t wanted = std::max<std::int64_t>(1, lanes_wanted(problem, policy));
  const std::int64_t lanes = std::int64_t{policy.lanes} * policy.vectors;
  const bool fits = policy.vectors == 1 ? lanes >= wanted && lanes < 2 * wanted : lanes == wanted;
  return fits || takes_parts(policy, wanted);
}

RowsCut rows_cut(const SpmmProblem& problem, const RowLengths& rows, const RowsPolicy& policy,
                 const DeviceTraits& traits) {
  return choose_cut(rows, policy, blocks_of_features(problem, policy), traits);
}

RowsCut rows_cut(const SpmmProblem& problem, const RowsPolicy& policy, const DeviceTraits& traits) {
  const ProblemRows rows(problem);
  return rows_cut(problem, rows.lengths(), policy, traits);
}

double RowsUnitCost::operator()(double rows, double edges) const {
  const double waiting = rows * row_us + (edges / step + rows / 2) * step_us;
  const double gathering = edges * edge_us;
  return side_by_side({waiting, gathering}, power);
}

RowsUnitCost rows_unit_cost(const SpmmProblem& problem, const RowsPolicy& policy,
                            const DeviceTraits& traits) {
  const RowsCoefficients fit = coefficients.on(traits);
  const double factor = factor_of(fit, policy, feature_bytes_of(problem));
  const double shifted =
      begin_anywhere(problem, policy) && !takes_elements(problem, policy) ? fit.shifted : 1;
  const double share = shifted * factor * blocks_of_features(problem, policy) / policy.teams();
  const auto waiting = [&](const RowsWork& work) {
    return share * waiting_us(work, problem, policy, fit, traits.processors);
  };
  RowsUnitCost cost;
  cost.row_us = waiting({1, 0});
  cost.step_us = waiting({0, 1});
  cost.edge_us = shifted * factor * gathering_us(problem, policy, fit);
  cost.step = policy.step();
  cost.power = fit.power;
  return cost;
}

namespace {

/// What rows on boundaries take, and what it takes to bring others there: a copy of X first, or
/// shifting what is loaded.
struct RowsTimes {
  double start_us = 0;
  double work_us = 0;
  double copying_us = 0;
  double shifting_us = 0;

  double us() const { return start_us + work_us + std::min(copying_us, shifting_us); }
};

RowsTimes times_of(const SpmmProblem& problem, const RowLengths& rows, const RowsPolicy& policy,
                   const DeviceTraits& traits) {
  const RowsCoefficients fit = coefficients.on(traits);
  const PassSizes sizes = sizes_of(problem);
  const double row_bytes = sizes.row_bytes;
  const auto num_rows = static_cast<double>(rows.degrees.num_rows);
  const auto num_edges = static_cast<double>(rows.degrees.num_edges);
  const double parts = blocks_of_features(problem, policy);
  const double list_bytes = policy.listed ? num_rows * sizeof(RowStart) : 0;
  // Every part of the rows reads them and the columns again, before it can ask for anything else.
  const double index_bytes = list_bytes + num_edges * sizeof(VertexId);
  const double indices_us = (parts - 1) * index_bytes / fit.index_bytes_per_us;
  const double moved = (num_rows + sizes.sources) * row_bytes + list_bytes;
  const RowsCut cut = rows_cut(problem, rows, policy, traits);
  const RowsWork work = work_of(rows, policy, cut);
  const double waiting = parts * waiting_us(work, problem, policy, fit, traits.processors);
  const double gathering = num_edges * gathering_us(problem, policy, fit);
  const bool valued = problem.graph.has_values() || problem.edge_values_expected;
  const double weights =
      parts * num_edges *
      ((valued ? fit.value_us : 0) + (has_column_scales(problem) ? fit.scale_us : 0));
  const double last_us =
      cut.waited_steps() * (fit.last_step_us + fit.last_vector_us * (policy.vectors - 1));
  const double factor = factor_of(fit, policy, sizes.element_bytes);
  RowsTimes times;
  times.start_us = fit.launch_us + (policy.listed ? 0 : fit.unlisted_us) + last_us;
  const double further = (sizes.half() ? 0 : policy.vectors - 1) + parts - 1;
  const double residual_us =
      problem.epilogue.residual
          ? num_rows * row_bytes / fit.residual_bytes_per_us * (1 + fit.residual_further * further)
          : 0;
  times.work_us =
      factor * side_by_side({waiting, gathering, moved / fit.moved_bytes_per_us}, fit.power) +
      indices_us + weights + residual_us;
  if (begin_anywhere(problem, policy) && !takes_elements(problem, policy)) {
    times.copying_us =
        predicted_copy_us(static_cast<double>(bytes_of_units(problem)), fit.copied_bytes_per_us);
    times.shifting_us = (fit.shifted - 1) * times.work_us;
    times.work_us += parts * num_rows * row_bytes / fit.unaligned_bytes_per_us *
                     (1 + (problem.epilogue.residual ? fit.unaligned_residual : 0));
  }
  return times;
}

}  // namespace

bool copies_rows(const SpmmProblem& problem, const RowLengths& rows, const RowsPolicy& policy,
                 const DeviceTraits& traits) {
  const RowsTimes times = times_of(problem, rows, policy, traits);
  return times.copying_us < times.shifting_us;
}

double predicted_rows_us(const SpmmProblem& problem, const RowLengths& rows,
                         const RowsPolicy& policy, const DeviceTraits& traits) {
  return times_of(problem, rows, policy, traits).us();
}

PartsOfRows chosen_parts(const SpmmProblem& problem, const RowLengths& rows,
                         const RowsPolicy& policy, const DeviceTraits& traits) {
  const PartsOfRows apart = {policy, predicted_rows_us(problem, rows, policy, traits)};
  const std::int64_t parts = parts_of_rows(problem, policy);
  const bool may = policy.takes_parts_beside() && !takes_elements(problem, policy) &&
                   (problem.is_forward() || !picks(problem));
  if (!may || fills_lines(problem) || parts == 0 || parts % policy.teams() != 0) return apart;
  const RowsPolicy whole = with_parts_beside(policy);
  const PartsOfRows beside = {whole, predicted_rows_us(problem, rows, whole, traits)};
  return beside.us < apart.us ? beside : apart;
}

double predicted_rows_us(const SpmmProblem& problem, const RowsPolicy& policy,
                         const DeviceTraits& traits) {
  const ProblemRows rows(problem);
  return predicted_rows_us(problem, rows.lengths(), policy, traits);
}

}  // namespace tessera::ops
