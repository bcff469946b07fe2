// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/cost.hpp"

#include <algorithm>
#include <cmath>

#include "ops/plan/cost_fits.hpp"
#include "ops/plan/tuning.hpp"
#include "ops/spmm/parts.hpp"

namespace tessera::ops {
namespace {

struct BitCoefficients {
  double launch_us;
  double start_us;            ///< until the first products, and for storing the last
  double count_per_us;        ///< products of bits in one processor, by pairs of planes on wgmma
  double tall_count_per_us;   ///< the same in tall blocks
  double pair_per_us;         ///< the same on mma.sync
  double byte_per_us;         ///< products of bytes in one processor
  double pair_depth_us;       ///< mma.sync: a block's time for each unit of depth ...
  double pair_plane_us;       ///< ... and for each pair of planes besides
  double byte_pair_depth_us;  ///< the same of bytes
  double convert_us;          ///< planes to bytes, per million of them
  double spread_us;           ///< the same in rows
  double spread_pair_us;      ///< and for products of bytes
  double gather_bytes_per_us;
  double window_share;     ///< of what windows of 16-bit features take
  double tall_start_us;    ///< on wgmma: until the first products ...
  double tall_32_share;    ///< ... and the share, of up to 32 columns ...
  double tall_64_share;    ///< ... of up to 64 ...
  double tall_128_share;   ///< ... of up to 128 ...
  double tall_wide_share;  ///< ... and of more, for which the pattern is expanded again
  double finish_us;        ///< per million sums that become codes or values
  double rows_share;       ///< of what rows of 16-bit features of as many bytes take
  double rows_us;          ///< more than that: lanes finish 16 sums at the end ...
  double edge_us;          ///< ... and per million edges
  double narrow_edge_us;   ///< the same where lanes have 8 columns

  void scale(DeviceRatio ratio) {
    gather_bytes_per_us *= ratio.memory;
    finish_us /= ratio.processors;
  }
};

constexpr Fitted<BitCoefficients> coefficients = {
    fitted_on_h200(
        "2026-11-17",
        "2048, 8192 and 16384 squared bits by 32 and 128 columns of 1, 2, 4 and 8 bits; sums over "
        "14 graphs of 3 thousand to 1.7 million vertices at 16 to 256 columns of 8 bits"),
    {.launch_us = 2,
     .start_us = 3,
     .count_per_us = 3.5e7,
     .tall_count_per_us = 4.8e7,
     .pair_per_us = 6e6,
     .byte_per_us = 4.95e6,
     .pair_depth_us = 2.4e-3,
     .pair_plane_us = 0.95e-3,
     .byte_pair_depth_us = 2.2e-2,
     .convert_us = 1.5,
     .spread_us = 0.5,
     .spread_pair_us = 0.9,
     .gather_bytes_per_us = 7e6,
     .window_share = 1.04,
     .tall_start_us = 1,
     .tall_32_share = 0.88,
     .tall_64_share = 0.82,
     .tall_128_share = 0.775,
     .tall_wide_share = 0.81,
     .finish_us = 0.22,
     .rows_share = 1.08,
     .rows_us = 0.8,
     .edge_us = 1.2,
     .narrow_edge_us = 0.8}};

struct Sizes {
  explicit Sizes(const BitOptions& options)
      : rows(static_cast<double>(options.rows)),
        cols(static_cast<double>(options.cols)),
        depth(static_cast<double>(options.depth)) {}

  double blocks(double height, double width) const {
    return std::ceil(rows / height) * std::ceil(cols / width);
  }

  double rows, cols, depth;
};

/// Products that the busiest processor has, of a depth in whole steps.
double busiest(const BitOptions& options, BitBlocks blocks, const DeviceTraits& traits,
               double step = 1024) {
  const double tiles = Sizes(options).blocks(blocks.rows, blocks.width);
  const double tile = static_cast<double>(blocks.rows) * blocks.width;
  // Where there are too few blocks for all processors two may share K.
  const double parts = blocks.halves ? 2 : 1;
  const double waves = std::ceil(parts * tiles / std::max(1, traits.processors)) / parts;
  return waves * tile * std::ceil(static_cast<double>(depth_of_a(options)) / step) * step;
}

/// Planes to bytes, where planes come.
double spread_us(const BitProblem& problem, const BitCoefficients& fit) {
  if (problem.options.b_bytes) return 0;
  return fit.launch_us + fit.spread_us * 1e-6 * Sizes(problem.options).depth *
                             static_cast<double>(padded_bytes(problem.options.cols));
}

/// The result, which nothing overlaps at the end.
double stored_us(const BitProblem& problem, const BitCoefficients& fit) {
  const Sizes sizes(problem.options);
  const double bytes = gives_codes(problem.options.output) ? 1 : 4;
  return bytes * sizes.rows * sizes.cols / fit.gather_bytes_per_us;
}

/// What sums become in registers.
double finished_us(const BitProblem& problem, const BitCoefficients& fit) {
  if (problem.options.output == BitOutput::sums32) return 0;
  const Sizes sizes(problem.options);
  return fit.finish_us * 1e-6 * sizes.rows * sizes.cols;
}

}  // namespace

double predict_planes_us(const BitProblem& problem, BitBlocks blocks, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  const double pairs = problem.options.a_bits * problem.options.b_bits;
  const double rate = blocks.rows > 64 ? fit.tall_count_per_us : fit.count_per_us;
  return fit.launch_us + fit.start_us + pairs * busiest(problem.options, blocks, traits) / rate;
}

double predict_bytes_us(const BitProblem& problem, BitBlocks blocks, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  const Sizes sizes(problem.options);
  const double bytes = sizes.cols * sizes.depth;
  return 2 * fit.launch_us + fit.start_us + fit.convert_us * bytes * 1e-6 +
         busiest(problem.options, blocks, traits) / fit.byte_per_us;
}

double predict_pairs_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  const double pairs = problem.options.a_bits * problem.options.b_bits;
  const auto depth = static_cast<double>(depth_of_a(problem.options));
  // Few blocks wait for their loads, many for the matrix units.
  return fit.launch_us + fit.start_us +
         std::max(depth * (fit.pair_depth_us + fit.pair_plane_us * pairs),
                  pairs * busiest(problem.options, {64, 64}, traits, 256) / fit.pair_per_us);
}

double predict_byte_pairs_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  const Sizes sizes(problem.options);
  const double codes = (sizes.rows + sizes.cols) * sizes.depth;
  const double blocks = sizes.blocks(64, 64);
  constexpr double blocks_of_processor = 4;
  const double waves =
      std::max(1.0, blocks / (blocks_of_processor * std::max(1, traits.processors)));
  return 3 * fit.launch_us + fit.start_us + fit.spread_pair_us * codes * 1e-6 +
         waves * sizes.depth * fit.byte_pair_depth_us;
}

SpmmProblem as_features(const BitProblem& problem) {
  SpmmProblem features;
  features.graph = problem.graph;
  features.precision = Precision::fp16;
  features.features = padded_bytes(problem.options.cols) / 2;
  features.set_place(problem.options.place());
  return features;
}

double predict_bit_rows_us(const BitProblem& problem, const RowsPolicy& policy,
                           const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  // Rows of few bytes come no faster than somewhat longer ones, and bytes take more instructions.
  const double edges = 1e-6 * static_cast<double>(problem.graph.num_edges());
  const double as_numbers =
      spread_us(problem, fit) +
      fit.rows_share * predicted_rows_us(as_features(problem), policy, traits);
  if (policy.bytes == 8) {
    return fitted_us(cost_fits::bit_aggregate_rows_narrow, as_numbers + fit.narrow_edge_us * edges);
  }
  return fitted_us(cost_fits::bit_aggregate_rows,
                   as_numbers + fit.rows_us + fit.edge_us * edges + finished_us(problem, fit));
}

double predict_bit_lists_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  return fit.launch_us + spread_us(problem, fit) + stored_us(problem, fit) +
         finished_us(problem, fit);
}

double predict_bit_wide_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  const double gathered = static_cast<double>(problem.graph.num_edges()) *
                          (static_cast<double>(padded_bytes(problem.options.cols)) * 2 + 4);
  return fit.launch_us + 2 * spread_us(problem, fit) + gathered / fit.gather_bytes_per_us +
         stored_us(problem, fit);
}

namespace {

/// As windows of 16-bit features, which take twice the bytes.
double windows_us(const BitProblem& problem, double share, std::int64_t cols,
                  const BitCoefficients& fit, const DeviceTraits& traits) {
  SpmmProblem half = as_features(problem);
  half.features = cols;
  return spread_us(problem, fit) + share * predict_tall_us(half, tall_policies[0], traits) +
         finished_us(problem, fit);
}

}  // namespace

double predict_bit_windows_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  return fitted_us(cost_fits::bit_aggregate_windows,
                   windows_us(problem, fit.window_share, problem.options.cols, fit, traits));
}

double predict_bit_tall_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitCoefficients fit = coefficients.on(traits);
  const std::int64_t cols = problem.options.cols;
  const double share = cols <= 32    ? fit.tall_32_share
                       : cols <= 64  ? fit.tall_64_share
                       : cols <= 128 ? fit.tall_128_share
                                     : fit.tall_wide_share;
  // Of more than 64 columns whole blocks are computed.
  const std::int64_t computed = cols <= 64 ? cols : (cols + 127) / 128 * 128;
  return fitted_us(cost_fits::bit_aggregate_tall,
                   fit.tall_start_us + windows_us(problem, share, computed, fit, traits));
}

}  // namespace tessera::ops
