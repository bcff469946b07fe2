// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/tall/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>

#include "graph/degrees.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/spmm/cuda/kernels.hpp"
#include "ops/spmm/cuda/weights.hpp"
#include "ops/spmm/row_order.hpp"
#include "ops/windows/panels.hpp"
#include "ops/windows/rest_rows.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

/// What work costs one processor, for 64 rows: a start, and bytes of a row of X in one launch's
/// width.
struct Rate {
  double start_us;
  double us_per_byte;

  double operator()(double bytes) const { return start_us + us_per_byte * bytes; }
};

/// What cutting windows costs (merge.cuh).
struct Cuts {
  /// What a block that adds up the pieces of a window of 64 rows comes too late by, how fast their
  /// sums move, and how many windows are cut where most are not.
  double merge_us;
  double slot_bytes_per_us;
  double some_windows;
  /// As `TallCoefficients::power`, where pieces fill blocks (tiles/pieces.hpp).
  double filled_power;
};

/// By the size of features.
struct Rates {
  Rate tile;    ///< 64 columns
  Rate window;  ///< starting it and storing its sums
  double rest_bytes_per_us;
  double values_us;  ///< more for a tile with values
  Cuts cuts;
};

struct TallCoefficients {
  double start_us;  ///< launching, and filling the first stages
  double start_us_per_byte;
  double moved_bytes_per_us = streamed_bytes_per_us;
  /// How much longer a tile takes a block than a processor that it shares with others; a block of
  /// four groups has it for itself.
  double block_tile_share;
  double last_wave;  ///< of a wave of windows that is not full, where they are even
  /// All blocks together and the one with the longest piece do not wait for each other to the end:
  /// the longer of both counts, and some of the other.
  double power;
  /// What rows of tall windows share: a window of 128 rows takes 1.5 times the tiles of one of 64.
  double shared_of_groups;
  /// Rows that three columns of a window have in common where half of its quads have empty places.
  double common_rows;
  /// Rows of X that windows ask for again after they left the second-level cache.
  double cached_bytes = cached_bytes_kept;
  double missed_bytes_per_us;
  double
      missed_power;    ///< of that beside everything else: the longer counts, and some of the other
  double third_plane;  ///< more work
  double rest_launch_us;
  double rest_least_bytes;  ///< rows of fewer are gathered no faster
  /// What its longest row keeps a block of the rest busy for, by edges.
  double rest_edge_us;
  double rest_edge_us_per_byte;
  double value_us;             ///< more for each value of a tile
  double half_scaled, scaled;  ///< times as long with scales of sources
  /// What features that a kernel has room for cost where there are none, of others.
  double unused_features;
  /// A residual is read when a window ends, while others have tiles: the longer counts, and some of
  /// the other.
  double residual_bytes_per_us;
  double half_residual_power, full_residual_power;
  /// Features of Y where its rows fill no units, and how many times as long those of a residual
  /// take, too.
  double single_features_per_us;
  double single_residual;
  /// Putting values of a run in order.
  double pack_launch_us;
  double packed_values_per_us;
  Rates half;
  Rates full;
  /// How many times what the model says each policy takes, in the order of `tall_policies`.
  std::array<double, tall_policies.size()> factors;

  void scale(DeviceRatio ratio) {
    moved_bytes_per_us *= ratio.memory;
    missed_bytes_per_us *= ratio.memory;
    cached_bytes *= ratio.l2;
    packed_values_per_us *= ratio.memory;
    residual_bytes_per_us *= ratio.memory;
    single_features_per_us *= ratio.memory;
    half.cuts.slot_bytes_per_us *= ratio.processors;
    full.cuts.slot_bytes_per_us *= ratio.processors;
    half.rest_bytes_per_us *= ratio.processors;
    full.rest_bytes_per_us *= ratio.processors;
  }
};

constexpr Fitted<TallCoefficients> coefficients = {
    fitted_on_h200(
        "2026-11-15",
        "37 graphs of 34 to 1.7 M vertices, ten of them generated, at 16 to 256 features; splits "
        "by columns on 2026-11-17, reddit- and proteins-size at 128, the latter at 32; low degrees "
        "and blocks of four groups on 2026-11-17, five generated graphs at 128; quads on "
        "2026-11-17, reddit- and proteins-size and their communities at 64 to 512, those of 128 "
        "rows also on 59 matrices at 128; rows that leave the cache on 2026-11-17, 95 cases of 35 "
        "graphs, most of them at 128; features that are not there on 2026-11-17, three graphs at "
        "16 to 320, and their results to DD and molecules-size on 2026-11-18; waves of even "
        "windows on 2026-11-18, 60 graphs at 64 and 128; cut windows of 16-bit features on "
        "2026-11-18, eight graphs in two orders at 128"),
    {.start_us = 1.655,
     .start_us_per_byte = 0.001986,
     .block_tile_share = 1.5,
     .last_wave = 0.65,
     .power = 1.6,
     .shared_of_groups = 0.5,
     .common_rows = 5,
     .missed_bytes_per_us = 5.77e6,
     .missed_power = 1.28,
     .third_plane = 0.36,
     .rest_launch_us = 3,
     .rest_least_bytes = 160,
     .rest_edge_us = 0.007,
     .rest_edge_us_per_byte = 6e-5,
     .value_us = 2.1e-4,
     .half_scaled = 1.8,
     .scaled = 1.1,
     .unused_features = 0.6,
     .residual_bytes_per_us = 1e6,
     .half_residual_power = 1.2,
     .full_residual_power = 1.5,
     .single_features_per_us = 1e6,
     .single_residual = 1.4,
     .pack_launch_us = 4,
     .packed_values_per_us = 3.5e5,
     .half = {{0.074, 0.00079}, {0.064, 0.00246}, 9e6, 0.22, {4, 8e6, 0.2, 6}},
     .full = {{0.054, 0.0012}, {0.09, 0.00261}, 9.5e6, 0.36, {1, 2e6, 0.32, 1.6}},
     .factors = {1.06, 1.01, 1.06, 1.33, 1, 1.4, 0.87, 1, 1.4}}};

double factor_of(const TallCoefficients& fit, const TallPolicy& policy) {
  for (std::size_t i = 0; i < tall_policies.size(); ++i) {
    if (std::string_view(tall_policies[i].name) == policy.name) return fit.factors[i];
  }
  return 1;
}

/// With scales of sources, which 16-bit features are multiplied by before they are summed.
double factor_of(const TallCoefficients& fit, const TallPolicy& policy,
                 const SpmmProblem& problem) {
  const bool widened = bytes_per_element(problem.precision) == 2 && !policy.quads;
  const double scaled = widened ? fit.half_scaled : fit.scaled;
  return factor_of(fit, policy) * (has_column_scales(problem) ? scaled : 1);
}

/// How a launch is divided, and what its parts take.
struct TallShape {
  TallShape(const SpmmProblem& problem, const TallPolicy& policy, const TallCoefficients& fit)
      : sizes(sizes_of(problem)),
        rates(sizes.half() ? fit.half : fit.full),
        groups(policy.height / 64) {
    const std::int64_t widest = policy.planes == 3 ? 64 : 128;
    const std::int64_t wide = features_of_widest(problem.features, widest, problem.precision);
    add_panels(static_cast<double>(wide), widest, fit);
    add_panels(sizes.features - static_cast<double>(wide), widest, fit);
    const double planes = policy.planes == 3 ? 1 + fit.third_plane : 1;
    tile_us = rates.tile(chunk_bytes) *
              (fit.shared_of_groups + (1 - fit.shared_of_groups) * groups) * planes;
    window_us = rates.window(chunk_bytes) * groups;
    if (!fills_units(problem.features, problem.precision)) {
      const double stored = problem.epilogue.residual ? 1 + fit.single_residual : 1;
      copy_us =
          predicted_copy_us(static_cast<double>(bytes_of_units(problem)), fit.moved_bytes_per_us) +
          stored * sizes.targets * sizes.features / fit.single_features_per_us;
    }
  }

  /// Panels of the narrowest kernel that takes so many features, or of the widest.
  void add_panels(double some, std::int64_t widest, const TallCoefficients& fit) {
    if (some == 0 && chunks > 0) return;
    const auto limit = static_cast<double>(widest);
    const double panels = std::max(1.0, std::ceil(some / limit));
    const double used = some / panels;
    const double width = used <= 32 ? 32 : used <= 64 ? 64 : limit;
    const double bytes = (used + fit.unused_features * (width - used)) * sizes.element_bytes;
    chunk_bytes = (chunks * chunk_bytes + panels * bytes) / (chunks + panels);
    chunks += panels;
  }

  PassSizes sizes;
  const Rates& rates;
  double groups;
  double chunks = 0;
  double chunk_bytes = 0;  ///< of a row in each of them, in the mean
  double tile_us = 0;      ///< of one processor, as the next
  double window_us = 0;
  /// Of X, where its rows fill no whole units, and of Y feature by feature.
  double copy_us = 0;
};

/// How many places a window has in quads for each of its columns. Columns share a quad unless three
/// of them have a row in common, which is the rarer the fewer rows use a column: where `edges` are
/// spread evenly, three columns have density^3 of a window's rows in common.
double places_per_column(const TallPolicy& policy, const tiles::WindowSample& sample, double edges,
                         const TallCoefficients& fit) {
  if (!policy.quads) return 1;
  const double density =
      std::min(1.0, (edges - sample.rest_edges) / std::max(1.0, sample.columns * policy.height));
  const double common = policy.height * density * density * density;
  return 1 + common / (common + fit.common_rows);
}

/// What all windows of a launch take where a tile takes `tile_us`.
double work_us_of(const TallShape& shape, const TallPolicy& policy, const TallWork& work,
                  double tile_us, double processors, const TallCoefficients& fit) {
  double work_us =
      shape.chunks * (work.columns / 64 * tile_us + work.windows * shape.window_us) / processors +
      work.other_us;
  // Windows longer than a block's share are cut (tiles/pieces.cpp). A piece keeps its block busy to
  // the end, and its sums are written and read.
  const double steps = work.columns / 16;
  const double blocks = 4 * processors / shape.groups / shape.chunks;
  const double cut = std::max(static_cast<double>(policy.min_cut_steps), steps / blocks);
  const double longest = work.longest_columns / 16;
  // Where windows are even, all blocks wait for the last wave of them.
  const double waves =
      work.windows * shape.chunks * shape.groups / ((shape.sizes.half() ? 4.0 : 3.0) * processors);
  if (waves > 1 && work.other_us == 0) {
    const double even =
        std::min(1.0, work.columns / work.windows / std::max(1.0, work.longest_columns));
    work_us *= 1 + fit.last_wave * even * even * (std::ceil(waves) / waves - 1);
  }
  const double share = shape.groups == 4 ? 1 : fit.block_tile_share;
  const double longest_us = (std::min(longest, cut) / 4 + 2) * share * tile_us;
  const Cuts& cuts = shape.rates.cuts;
  const bool fills = longest > cut && cut > static_cast<double>(policy.min_cut_steps);
  const double power = fills ? cuts.filled_power : fit.power;
  work_us = side_by_side({work_us, longest_us}, power);
  if (longest > cut) {
    const double cut_share = steps / std::max(1.0, work.windows) > cut ? 1.0 : cuts.some_windows;
    const double slot_bytes = policy.height * shape.sizes.features * 4;
    work_us += cuts.merge_us * shape.groups +
               cut_share * steps / cut * 2 * slot_bytes / cuts.slot_bytes_per_us;
  }
  return std::max(work_us, work.moved_bytes / fit.moved_bytes_per_us);
}

/// All work, with reading a residual if there is one.
double with_residual(const SpmmProblem& problem, double work_us, const TallCoefficients& fit) {
  if (!problem.epilogue.residual) return work_us;
  const PassSizes sizes = sizes_of(problem);
  return side_by_side({work_us, sizes.targets * sizes.row_bytes / fit.residual_bytes_per_us},
                      sizes.half() ? fit.half_residual_power : fit.full_residual_power);
}

double start_us_of(const TallShape& shape, const TallCoefficients& fit) {
  return fit.start_us + fit.start_us_per_byte * shape.chunk_bytes + shape.copy_us;
}

/// What gathering takes that windows leave to CUDA cores, in parts of rows that the cache has room
/// for where there are such.
double rest_us_of(const PassSizes& sizes, const Rates& rates, double edges,
                  const DeviceTraits& traits, const TallCoefficients& fit) {
  const auto part_features = static_cast<double>(
      rest_width(static_cast<std::int64_t>(sizes.features), sizes.sources,
                 static_cast<int>(sizes.element_bytes), static_cast<double>(traits.l2_bytes)));
  const double part_bytes = sizes.sources * part_features * sizes.element_bytes;
  const double missed = std::max(0.0, 1 - fit.cached_bytes / std::max(1.0, part_bytes));
  return std::hypot(
      edges * std::max(sizes.row_bytes, fit.rest_least_bytes) / rates.rest_bytes_per_us,
      missed * edges * sizes.row_bytes / fit.missed_bytes_per_us);
}

}  // namespace

TallWindowCost tall_window_cost(const SpmmProblem& problem, const TallPolicy& policy,
                                const DeviceTraits& traits) {
  const TallCoefficients fit = coefficients.on(traits);
  const TallShape shape(problem, policy, fit);
  const double us = factor_of(fit, policy) * shape.chunks / traits.processors;
  return {us * shape.tile_us / 64, us * shape.window_us};
}

double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy, const TallWork& work,
                       const DeviceTraits& traits) {
  const TallCoefficients fit = coefficients.on(traits);
  const TallShape shape(problem, policy, fit);
  const double work_us = work_us_of(shape, policy, work, shape.tile_us, traits.processors, fit);
  return start_us_of(shape, fit) +
         factor_of(fit, policy, problem) * with_residual(problem, work_us, fit);
}

double predict_tall_us(const SpmmProblem& problem, const TallPolicy& policy,
                       const DeviceTraits& traits) {
  const TallCoefficients fit = coefficients.on(traits);
  const TallShape shape(problem, policy, fit);
  const PassSizes& sizes = shape.sizes;
  const tiles::Side side = tile_side(problem.pass);
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, policy.height, side, policy.min_uses);
  const TallWork work = {std::max(1.0, std::ceil(sizes.targets / policy.height)), sample.columns,
                         sample.longest_columns, sizes.vertices * sizes.row_bytes};
  const double tiles = sample.columns / 64;
  const double values_us =
      shape.rates.values_us + fit.value_us * sizes.edges / std::max(1.0, tiles);
  const double tile_us = shape.tile_us * places_per_column(policy, sample, sizes.edges, fit) +
                         (policy.valued ? values_us : 0);
  double work_us = work_us_of(shape, policy, work, tile_us, traits.processors, fit);
  // Where all columns are gathered by windows, those that few of them share come from memory.
  if (policy.min_uses == 1) {
    const double missed =
        gather_shares(problem.graph, side, 0, fit.cached_bytes / sizes.row_bytes).missed;
    work_us =
        side_by_side({work_us, missed * sizes.edges * sizes.row_bytes / fit.missed_bytes_per_us},
                     fit.missed_power);
  }
  if (policy.valued && problem.edge_values_expected) {
    work_us += fit.pack_launch_us + sizes.edges / fit.packed_values_per_us;
  }
  work_us = with_residual(problem, work_us, fit);
  const double windows_us = start_us_of(shape, fit) + factor_of(fit, policy, problem) * work_us;
  if (policy.min_uses == 1) return windows_us;
  // CUDA cores come first, and their sums are written and read once, of rows with such edges.
  const auto degrees =
      side == tiles::Side::forward ? row_degrees(problem.graph) : column_degrees(problem.graph);
  const auto longest_row = static_cast<double>(degrees->longest());
  const double rest_rows = std::min(sizes.targets, sample.rest_edges);
  return windows_us + fit.rest_launch_us + rest_rows * sizes.features * 8 / fit.moved_bytes_per_us +
         std::max(rest_us_of(sizes, shape.rates, sample.rest_edges, traits, fit),
                  longest_row * (fit.rest_edge_us + fit.rest_edge_us_per_byte * sizes.row_bytes));
}

double predict_ordered_tall_us(const SpmmProblem& problem, const TallPolicy& policy,
                               const DeviceTraits& traits) {
  return predict_tall_us(in_row_order(problem), policy, traits);
}

}  // namespace tessera::ops
