// SPDX-License-Identifier: Apache-2.0
#include "ops/aggregate_update/cost.hpp"

#include <algorithm>
#include <array>

#include "ops/tuning.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

/// A product of many rows with a small matrix on a GPU.
struct ProductCoefficients {
  double launch_us;
  double moved_bytes_per_us;
  double half_moved_bytes_per_us;  ///< by BLAS with 16 bits
  /// Multiplications and additions: our own kernels for up to 64 columns and, which read rows
  /// twice, for up to 128; BLAS in fp32 and with 16 bits.
  double streamed_per_us;
  double twice_streamed_per_us;
  double fp32_per_us;
  double half_per_us;

  ProductCoefficients scaled(DeviceRatio ratio) const {
    ProductCoefficients scaled = *this;
    scaled.moved_bytes_per_us *= ratio.memory;
    scaled.half_moved_bytes_per_us *= ratio.memory;
    scaled.streamed_per_us *= ratio.processors;
    scaled.twice_streamed_per_us *= ratio.processors;
    scaled.fp32_per_us *= ratio.processors;
    scaled.half_per_us *= ratio.processors;
    return scaled;
  }
};

constexpr std::array<Fitted<ProductCoefficients>, 1> coefficients = {
    {{fitted_on_h200(
          "2026-11-18",
          "molecules, two unions and communities at 64 and 96 features, 33 graphs at 64"),
      {.launch_us = 4,
       .moved_bytes_per_us = 4.2e6,
       .half_moved_bytes_per_us = 5e6,
       .streamed_per_us = 120e6,
       .twice_streamed_per_us = 55e6,
       .fp32_per_us = 29e6,
       .half_per_us = 300e6}}}};

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
  const bool first = problem.keeps_sums() || problem.gathered() <= problem.written();
  const auto rows = static_cast<double>(first ? problem.num_targets() : problem.num_sources());
  const auto inner = static_cast<double>(problem.gathered());
  const auto cols = static_cast<double>(problem.written());
  const auto bytes = static_cast<double>(bytes_per_element(problem.options.precision));
  const double per_us = bytes == 2 ? fit.half_per_us : fp32_per_us(problem, rows, fit);
  const double moved = bytes == 2 ? fit.half_moved_bytes_per_us : fit.moved_bytes_per_us;
  return fit.launch_us +
         std::max(rows * (inner + cols) * bytes / moved, 2 * rows * inner * cols / per_us);
}

double num_products(const AggregateUpdateProblem& problem) { return problem.options.root ? 2 : 1; }

}  // namespace

double predicted_products_us(const AggregateUpdateProblem& problem) {
  const AggregateUpdateOptions& options = problem.options;
  if (options.device.kind != DeviceKind::cpu) {
    return predicted_products_us(problem, device_traits(options.device));
  }
  constexpr double per_us = 20e3;  // of one core
  const auto rows = static_cast<double>(problem.num_targets());
  return 2 * num_products(problem) * rows *
         static_cast<double>(problem.gathered() * problem.written()) / (per_us * num_threads());
}

double predicted_products_us(const AggregateUpdateProblem& problem, const DeviceTraits& traits) {
  const AggregateUpdateOptions& options = problem.options;
  const ProductCoefficients fit = coefficients_for(coefficients, traits);
  const bool finishes = problem.is_forward() &&
                        (options.activation != Activation::none || options.dropout > 0) &&
                        (problem.keeps_sums() || options.root || options.in <= options.out);
  const double y_bytes = static_cast<double>(problem.num_targets()) *
                         static_cast<double>(problem.written()) *
                         static_cast<double>(bytes_per_element(options.precision));
  const double pass = finishes ? fit.launch_us + 2 * y_bytes / fit.moved_bytes_per_us : 0;
  return num_products(problem) * product_us(problem, fit) + pass;
}

}  // namespace tessera::ops
