// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/short/cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct ShortCoefficients {
  double start_us;
  double moved_bytes_per_us = streamed_bytes_per_us;
  /// What a processor needs for a step and to finish a window: a part for each, and one for each
  /// byte of a row of X in one launch's width.
  double step_us;
  double step_us_per_byte;
  double window_us;
  double window_us_per_byte;
  /// What one warp needs for a step and to add up a piece, beyond what others do meanwhile.
  double warp_step_us;
  double warp_piece_us;
  double second_launch_us;
  double padding = 1.05;  ///< places for each distinct column
  /// Rows of X that windows ask for again after they left the second-level cache.
  double cached_bytes = cached_bytes_kept;
  // Of all encodings alike.
  double missed_bytes_per_us = streamed_bytes_per_us;
  double full_steps = 1.5;  ///< how many times as long a step takes in fp32, for the same bytes
  double power = 4.223;     ///< the longer of working and moving counts, and a little of the other
  /// A residual, read when a window ends, by kernels that hold up to 128 bytes of a row and by
  /// wider ones, which have few registers left.
  double residual_bytes_per_us = 3e6;
  double wide_residual_bytes_per_us = 1e6;
  double single_bytes_per_us = 3e5;  ///< more for Y where its rows fill no loads: by features

  void scale(DeviceRatio ratio) {
    moved_bytes_per_us *= ratio.memory;
    missed_bytes_per_us *= ratio.memory;
    residual_bytes_per_us *= ratio.memory;
    wide_residual_bytes_per_us *= ratio.memory;
    single_bytes_per_us *= ratio.memory;
    cached_bytes *= ratio.l2;
  }
};

constexpr Fitted<ShortCoefficients> coefficients_of_bits = {
    fitted_on_h200("2026-11-15",
                   "37 graphs of 34 to 1.7 M vertices, ten of them generated, at 16 to 256 "
                   "features; residuals on 2026-11-18, amazon- and molecules-size at 64 and 96"),
    {.start_us = 1.829,
     .step_us = 0.0009891,
     .step_us_per_byte = 0.0003246,
     .window_us = 0.003247,
     .window_us_per_byte = 6.702e-05,
     .warp_step_us = 0.1111,
     .warp_piece_us = 0.2869,
     .second_launch_us = 1.053,
     .padding = 1,
     .cached_bytes = std::numeric_limits<double>::infinity()}};

constexpr Fitted<ShortCoefficients> coefficients_of_quads = {
    fitted_on_h200(
        "2026-11-17",
        "59 matrices of 10 k to 115 k rows in bf16 and 16 of them in another order, bf16 and fp32, "
        "at 128 features; padding measured on 156 matrices; residuals, and rows that fill no "
        "loads, on 2026-11-18, amazon- and molecules-size at 64 to 96"),
    {.start_us = 1.3,
     .step_us = 0.0022,
     .step_us_per_byte = 0.00063,
     .window_us = 0.007,
     .window_us_per_byte = 0.0005,
     .warp_step_us = 0.29,
     .warp_piece_us = 0.57,
     .second_launch_us = 1.1}};

constexpr Fitted<ShortCoefficients> coefficients_of_valued_quads = {
    fitted_on_h200("2026-11-17",
                   "DD and NCI-balanced-union at 64 features in bf16, steps as of patterns"),
    {.start_us = 2.0,
     .step_us = 0.006,
     .step_us_per_byte = 0.00063,
     .window_us = 0.007,
     .window_us_per_byte = 0.0005,
     .warp_step_us = 0.36,
     .warp_piece_us = 0.57,
     .second_launch_us = 1.1}};

const Fitted<ShortCoefficients>& coefficients_of(ShortEncoding encoding) {
  switch (encoding) {
    case ShortEncoding::bits: return coefficients_of_bits;
    case ShortEncoding::quads: return coefficients_of_quads;
    case ShortEncoding::valued_quads: break;
  }
  return coefficients_of_valued_quads;
}

/// Of the narrowest kernel that takes so many features: lanes without any load others.
double kernel_width(double features, double narrowest, double widest) {
  double width = std::min(narrowest, widest);
  while (width < features && width < widest) width *= 2;
  return width;
}

}  // namespace

ShortShape shape_of(ShortEncoding encoding) {
  if (encoding == ShortEncoding::bits) return {8, tiles::step_columns, 32, 32};
  return {16, tiles::quad_step_columns, 64, 16};
}

double predict_short_us(const SpmmProblem& problem, ShortEncoding encoding,
                        const DeviceTraits& traits) {
  const ShortCoefficients fit = coefficients_of(encoding).on(traits);
  const ShortShape shape = shape_of(encoding);
  const PassSizes sizes = sizes_of(problem);
  const tiles::Side side = tile_side(problem.pass);
  const tiles::WindowSample sample = tiles::sample_windows(problem.graph, shape.height, side);
  const double widest = 2 * max_short_width / sizes.element_bytes;
  const double chunks = std::max(1.0, std::ceil(sizes.features / widest));
  const double chunk_bytes =
      sizes.element_bytes * kernel_width(sizes.features, shape.min_width, widest);
  const double windows = std::ceil(sizes.targets / shape.height);
  // The last step of a window is half full.
  const double steps = fit.padding * sample.columns / shape.step_columns + windows / 2;
  const double full = sizes.half() ? 1 : fit.full_steps;
  const double work_us = chunks / traits.processors *
                         (full * steps * (fit.step_us + fit.step_us_per_byte * chunk_bytes) +
                          windows * (fit.window_us + fit.window_us_per_byte * chunk_bytes));
  // X and Y move once.
  const double move_us = sizes.vertices * sizes.row_bytes / fit.moved_bytes_per_us;
  // The longest window keeps a warp busy, or several and one that adds up.
  const double longest = fit.padding * sample.longest_columns / shape.step_columns + 1;
  const auto cut = static_cast<double>(shape.min_cut_steps);
  double longest_us = std::min(longest, cut) * fit.warp_step_us;
  if (longest > cut) longest_us += fit.second_launch_us + longest / cut * fit.warp_piece_us;
  const double cached_rows = fit.cached_bytes / std::max(1.0, sizes.row_bytes);
  const double missed = gather_shares(problem.graph, side, 0, cached_rows).missed;
  const double gather_us =
      std::hypot(work_us, missed * sizes.edges * sizes.row_bytes / fit.missed_bytes_per_us);
  const double y_bytes = sizes.targets * sizes.row_bytes;
  double ends_us = 0;
  if (encoding != ShortEncoding::bits && copies_x(problem)) {
    ends_us +=
        predicted_copy_us(static_cast<double>(bytes_of_copy(problem)), fit.moved_bytes_per_us) +
        y_bytes / fit.single_bytes_per_us;
  }
  if (problem.epilogue.residual) {
    ends_us +=
        y_bytes / (chunk_bytes > 128 ? fit.wide_residual_bytes_per_us : fit.residual_bytes_per_us);
  }
  return fit.start_us + side_by_side({gather_us, move_us}, fit.power) + longest_us + ends_us;
}

}  // namespace tessera::ops
