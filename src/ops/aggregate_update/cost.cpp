// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cost.hpp"

#include <algorithm>

#include "ops/plan/cost_fit.hpp"
#include "ops/plan/tuning.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// A product of many rows with a small matrix on a GPU.
struct ProductCoefficients {
  double launch_us;
  double moved_bytes_per_us = streamed_bytes_per_us;
  /// Multiplications and additions: our own kernels for up to 64 columns and, which read rows
  /// twice, for up to 128; BLAS in fp32 and with 16 bits.
  double streamed_per_us;
  double twice_streamed_per_us;
  double fp32_per_us;
  double half_per_us;

  void scale(DeviceRatio ratio) {
    moved_bytes_per_us *= ratio.memory;
    streamed_per_us *= ratio.processors;
    twice_streamed_per_us *= ratio.processors;
    fp32_per_us *= ratio.processors;
    half_per_us *= ratio.processors;
  }
};

constexpr Fitted<ProductCoefficients> coefficients = {
    fitted_on_h200("2026-11-18",
                   "molecules, two unions and communities at 64 and 96 features, 33 graphs at 64"),
    {.launch_us = chained_launch_us,
     .streamed_per_us = 120e6,
     .twice_streamed_per_us = 55e6,
     .fp32_per_us = 29e6,
     .half_per_us = 300e6}};

/// Multiplications and additions of a product in fp32, by whom it comes (gemm/cuda/products.cu).
double fp32_per_us(const AggregateUpdateProblem& problem, double rows,
                   const ProductCoefficients& fit) {
  constexpr double many_rows = 32768;
  const std::int64_t cols = problem.written();
  if (rows < many_rows) return fit.fp32_per_us;
  if (cols <= 64) return fit.streamed_per_us;
  const bool twice =
      cols <= 128 && problem.gathered() <= 96 && problem.options.precision != Precision::tf32;
  return twice ? fit.twice_streamed_per_us : fit.fp32_per_us;
}

double product_us(const AggregateUpdateProblem& problem, const ProductCoefficients& fit) {
  const PassSizes sizes = sizes_of(problem);
  const bool first = problem.keeps_sums() || problem.gathered() <= problem.written();
  const double rows = first ? sizes.targets : sizes.sources;
  const auto cols = static_cast<double>(problem.written());
  const double per_us = sizes.half() ? fit.half_per_us : fp32_per_us(problem, rows, fit);
  return fit.launch_us +
         std::max(rows * (sizes.features + cols) * sizes.element_bytes / fit.moved_bytes_per_us,
                  2 * rows * sizes.features * cols / per_us);
}

double num_products(const AggregateUpdateProblem& problem) { return problem.options.root ? 2 : 1; }

}  // namespace

double predicted_products_us(const AggregateUpdateProblem& problem) {
  const AggregateUpdateOptions& options = problem.options;
  if (options.device.kind != DeviceKind::cpu) {
    return predicted_products_us(problem, device_traits(options.device));
  }
  constexpr double per_us = 20e3;  // of one core
  return 2 * num_products(problem) * static_cast<double>(problem.num_targets()) *
         static_cast<double>(problem.gathered() * problem.written()) / (per_us * num_threads());
}

double predicted_products_us(const AggregateUpdateProblem& problem, const DeviceTraits& traits) {
  const AggregateUpdateOptions& options = problem.options;
  const ProductCoefficients fit = coefficients.on(traits);
  const bool finishes = problem.is_forward() &&
                        (options.activation != Activation::none || options.dropout > 0) &&
                        (problem.keeps_sums() || options.root || options.in <= options.out);
  const PassSizes sizes = sizes_of(problem);
  const double y_bytes =
      sizes.targets * static_cast<double>(problem.written()) * sizes.element_bytes;
  const double pass = finishes ? fit.launch_us + 2 * y_bytes / fit.moved_bytes_per_us : 0;
  return num_products(problem) * product_us(problem, fit) + pass;
}

}  // namespace tessera::ops
