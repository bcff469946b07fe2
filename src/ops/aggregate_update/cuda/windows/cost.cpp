// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cuda/windows/cost.hpp"

#include <array>

#include "ops/aggregate_update/cuda/windows/launch.hpp"
#include "ops/spmm/cuda/tall/cost.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

/// What the product adds to the windows: by its multiplications and additions, planes counted, and
/// by the bytes that it reads and writes besides the sums, which are stored only where they are
/// kept.
struct WindowCoefficients {
  double windows;  ///< how many times what sums alone take
  double half_per_us;
  double full_per_us;
  double moved_bytes_per_us;

  WindowCoefficients scaled(DeviceRatio ratio) const {
    WindowCoefficients scaled = *this;
    scaled.half_per_us *= ratio.processors;
    scaled.full_per_us *= ratio.processors;
    scaled.moved_bytes_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<WindowCoefficients>, 1> coefficients = {
    {{fitted_on_h200("2026-11-17", "an estimate: not timed"),
      {.windows = 1.5, .half_per_us = 150e6, .full_per_us = 50e6, .moved_bytes_per_us = 3e6}}}};

}  // namespace

SpmmProblem window_sums(const AggregateUpdateProblem& problem) {
  SpmmProblem sums = sums_problem(problem, problem.gathered());
  sums.epilogue = {};
  return sums;
}

double predicted_window_update_us(const AggregateUpdateProblem& problem,
                                  const DeviceTraits& traits) {
  const WindowCoefficients fit = coefficients_for(coefficients, traits);
  const AggregateUpdateOptions& options = problem.options;
  const auto bytes = static_cast<double>(bytes_per_element(options.precision));
  const auto rows = static_cast<double>(problem.num_targets());
  const auto inner = static_cast<double>(problem.gathered());
  const auto cols = static_cast<double>(problem.written());
  const double products = options.root ? 2 : 1;
  const double own = (options.self ? 1 : 0) + (options.root ? 1 : 0);
  const double moved = rows * bytes * (cols + inner * (own + (problem.keeps_sums() ? 0 : -1)));
  return fit.windows * predict_tall_us(window_sums(problem), window_update_policy, traits) +
         2 * products * rows * inner * cols / (bytes == 2 ? fit.half_per_us : fit.full_per_us) +
         moved / fit.moved_bytes_per_us;
}

}  // namespace tessera::ops
