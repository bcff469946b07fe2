// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cuda/nm/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/spmm/cuda/nm/launch.hpp"
#include "ops/spmm/cuda/tile_side.hpp"
#include "ops/tuning.hpp"
#include "tessera/tiles/quad_tiles.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct NmCoefficients {
  double start_us;
  double moved_bytes_per_us;
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
  /// Places of quads for each distinct column.
  double padding;

  NmCoefficients scaled(DeviceRatio ratio) const {
    NmCoefficients scaled = *this;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<NmCoefficients>, 1> coefficients = {
    {{fitted_on_h200(
          "2026-11-16",
          "an upper bound from the fit of windows of 8 rows: 32 columns a step, 16 rows; "
          "padding measured on 156 matrices"),
      {.start_us = 9.0,
       .moved_bytes_per_us = 3.1e6,
       .step_us = 0.0022,
       .step_us_per_byte = 0.0014,
       .window_us = 0.0065,
       .window_us_per_byte = 0.000134,
       .warp_step_us = 0.24,
       .warp_piece_us = 0.57,
       .second_launch_us = 1.1,
       .padding = 1.05}}}};

}  // namespace

double predict_nm_us(const SpmmProblem& problem, const DeviceTraits& traits) {
  const NmCoefficients fit = coefficients_for(coefficients, traits);
  const bool forward = problem.pass == SpmmPass::forward;
  const tiles::WindowSample sample =
      tiles::sample_windows(problem.graph, nm_height, tile_side(problem.pass));
  const auto features = static_cast<double>(problem.features);
  const auto rows =
      static_cast<double>(forward ? problem.graph.num_rows() : problem.graph.num_cols());
  const double chunks = std::max(1.0, std::ceil(features / nm_widths.back()));
  const double chunk_bytes = 2 * std::clamp<double>(features, nm_widths.front(), nm_widths.back());
  const double windows = std::ceil(rows / nm_height);
  // The last step of a window is half full.
  const double steps = fit.padding * sample.columns / tiles::quad_step_columns + windows / 2;
  const double work_us = chunks / traits.processors *
                         (steps * (fit.step_us + fit.step_us_per_byte * chunk_bytes) +
                          windows * (fit.window_us + fit.window_us_per_byte * chunk_bytes));
  // X and Y move once.
  const auto vertices =
      static_cast<double>(problem.graph.num_rows()) + static_cast<double>(problem.graph.num_cols());
  const double move_us = vertices * features * 2 / fit.moved_bytes_per_us;
  const double longest = fit.padding * sample.longest_columns / tiles::quad_step_columns + 1;
  const auto cut = static_cast<double>(nm_min_cut_steps);
  double longest_us = std::min(longest, cut) * fit.warp_step_us;
  if (longest > cut) longest_us += fit.second_launch_us + longest / cut * fit.warp_piece_us;
  return fit.start_us + std::max(work_us, move_us) + longest_us;
}

}  // namespace tessera::ops
