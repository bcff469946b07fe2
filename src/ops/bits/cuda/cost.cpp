// SPDX-License-Identifier: Apache-2.0
#include "ops/bits/cuda/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/bits/cuda/pairs_shape.hpp"
#include "ops/plan/cost_fits.hpp"
#include "ops/plan/counts.hpp"
#include "ops/spmm/parts.hpp"

namespace tessera::ops {
namespace {

struct Sizes {
  explicit Sizes(const BitOptions& options)
      : rows(static_cast<double>(options.rows)),
        cols(static_cast<double>(options.cols)),
        depth(static_cast<double>(options.depth)),
        depth_of_a(static_cast<double>(ops::depth_of_a(options))) {}

  double blocks(double height, double width) const {
    return std::ceil(rows / height) * std::ceil(cols / width);
  }

  double rows, cols, depth, depth_of_a;
};

/// What nothing overlaps at the end of a product: its result to memory.
double stored_us(const BitOptions& options, const DeviceTraits& traits) {
  const double bytes = gives_codes(options.output) ? 1 : 4;
  return moved_us(bytes * static_cast<double>(options.rows) * static_cast<double>(options.cols),
                  traits);
}

/// A product: what it counts, and its result.
double product_us(const CountFit& fit, int launches, const std::array<double, 3>& counts_us,
                  const BitOptions& options, const DeviceTraits& traits) {
  return counted_us(fit, launches, counts_us) +
         counted_us(cost_fits::bit_stored, 0, {stored_us(options, traits)});
}

/// Planes to bytes, where planes come.
double spread_us(const BitProblem& problem, const DeviceTraits& traits) {
  if (problem.options.b_bytes) return 0;
  const double bytes =
      Sizes(problem.options).depth * static_cast<double>(padded_bytes(problem.options.cols));
  return counted_us(cost_fits::bit_spread, 1, {moved_us(bytes, traits)});
}

/// Sums of 32 bits, of which lanes have many to store at the end.
double sums_us(const BitProblem& problem, const DeviceTraits& traits) {
  return gives_codes(problem.options.output) ? 0 : stored_us(problem.options, traits);
}

/// Products of blocks on wgmma, of which all processors have as many turns as the busiest one.
double turns_on_wgmma(const BitOptions& options, BitBlocks blocks, const DeviceTraits& traits) {
  const double parts = blocks_of_tile(options, blocks, traits);
  const double tiles = Sizes(options).blocks(blocks.rows, blocks.width);
  return std::ceil(parts * tiles / std::max(1, traits.processors)) / parts;
}

/// Products of blocks on mma.sync, by steps of K.
double turns_of_pairs(const Sizes& sizes, int a_planes, int b_planes, const DeviceTraits& traits) {
  constexpr double most_blocks = 4, reserved_bytes = 1024;
  const double bytes = pairs_shared_bytes(a_planes, b_planes) + reserved_bytes;
  const double room = std::floor(static_cast<double>(traits.shared_bytes_per_processor) / bytes);
  return turns_of(sizes.blocks(pairs_rows, pairs_rows), std::clamp(room, 1.0, most_blocks), traits);
}

/// Depth in whole stages.
double staged_depth(double depth, int a_planes, int b_planes, double of_step) {
  const double stage = pairs_shape(a_planes, b_planes).steps * of_step;
  return std::ceil(depth / stage) * stage;
}

}  // namespace

int blocks_of_tile(const BitOptions& options, BitBlocks blocks, const DeviceTraits& traits) {
  if (!blocks.halves) return 1;
  const double tiles = Sizes(options).blocks(blocks.rows, blocks.width);
  const double turns = std::ceil(static_cast<double>(options.depth) / 1024) * options.b_bits;
  const bool fits =
      tiles * 2 <= traits.processors || (blocks.rows == 64 && tiles <= traits.processors);
  return fits && turns >= 16 ? 2 : 1;
}

double predict_planes_us(const BitProblem& problem, BitBlocks blocks, const DeviceTraits& traits) {
  const BitOptions& options = problem.options;
  const double steps = turns_on_wgmma(options, blocks, traits) * options.a_bits * options.b_bits *
                       std::ceil(Sizes(options).depth_of_a / 1024);
  return product_us(cost_fits::bit_gemm_planes, 1, {steps * step_us, stored_us(options, traits)},
                    options, traits);
}

double predict_bytes_us(const BitProblem& problem, BitBlocks blocks, const DeviceTraits& traits) {
  const BitOptions& options = problem.options;
  const double steps = turns_on_wgmma(options, blocks, traits) * blocks.width / 64 *
                       std::ceil(Sizes(options).depth_of_a / 512);
  return product_us(cost_fits::bit_gemm_bytes, 2, {steps * step_us}, options, traits);
}

double predict_pairs_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitOptions& options = problem.options;
  const Sizes sizes(options);
  const double steps = turns_of_pairs(sizes, options.a_bits, options.b_bits, traits) *
                       staged_depth(sizes.depth_of_a, options.a_bits, options.b_bits, 256) / 256;
  const double a_bytes = options.a_bits * sizes.rows * sizes.depth_of_a / 8;
  const double pairs = steps * options.a_bits * options.b_bits;
  return product_us(cost_fits::bit_gemm_pairs, 1,
                    {steps * step_us, pairs * step_us, moved_us(a_bytes, traits)}, options, traits);
}

double predict_byte_pairs_us(const BitProblem& problem, const DeviceTraits& traits) {
  const BitOptions& options = problem.options;
  const Sizes sizes(options);
  const double steps =
      turns_of_pairs(sizes, 1, 1, traits) * staged_depth(sizes.depth_of_a, 1, 1, 32) / 32;
  const double codes = (sizes.rows + sizes.cols) * sizes.depth;
  return product_us(cost_fits::bit_gemm_byte_pairs, 3,
                    {steps * step_us, moved_us(codes, traits), stored_us(options, traits)}, options,
                    traits);
}

SpmmProblem as_features(const BitProblem& problem) {
  SpmmProblem features;
  features.graph = problem.graph;
  features.precision = Precision::fp16;
  features.features = padded_bytes(problem.options.cols) / 2;
  features.set_place(problem.options.place());
  return features;
}

/// Bytes take more instructions of an edge than features.
double predict_bit_rows_us(const BitProblem& problem, const RowsPolicy& policy,
                           const DeviceTraits& traits) {
  constexpr double edges_per_us = 1e6;
  const double edges = static_cast<double>(problem.graph.num_edges()) / edges_per_us /
                       ratio_to_h200(traits).processors;
  return spread_us(problem, traits) +
         counted_us(policy.bytes == 8 ? cost_fits::bit_aggregate_rows_narrow
                                      : cost_fits::bit_aggregate_rows,
                    1,
                    {predicted_rows_us(as_features(problem), policy, traits), edges,
                     sums_us(problem, traits)});
}

double predict_bit_lists_us(const BitProblem& problem, const DeviceTraits& traits) {
  return chained_launch_us + spread_us(problem, traits) + stored_us(problem.options, traits);
}

double predict_bit_wide_us(const BitProblem& problem, const DeviceTraits& traits) {
  const double gathered = static_cast<double>(problem.graph.num_edges()) *
                          (static_cast<double>(padded_bytes(problem.options.cols)) * 2 + 4);
  return chained_launch_us + 2 * spread_us(problem, traits) + moved_us(gathered, traits) +
         stored_us(problem.options, traits);
}

namespace {

/// As windows of 16-bit features, which take twice the bytes.
double windows_us(const BitProblem& problem, const CountFit& fit, std::int64_t cols,
                  const DeviceTraits& traits) {
  SpmmProblem half = as_features(problem);
  half.features = cols;
  return spread_us(problem, traits) +
         counted_us(fit, 1,
                    {predict_tall_us(half, tall_policies[0], traits), sums_us(problem, traits)});
}

}  // namespace

double predict_bit_windows_us(const BitProblem& problem, const DeviceTraits& traits) {
  return windows_us(problem, cost_fits::bit_aggregate_windows, problem.options.cols, traits);
}

/// Of more than 64 columns whole blocks are computed.
double predict_bit_tall_us(const BitProblem& problem, const DeviceTraits& traits) {
  const std::int64_t cols = problem.options.cols;
  const std::int64_t computed = cols <= 64 ? cols : (cols + 127) / 128 * 128;
  return windows_us(problem, cost_fits::bit_aggregate_tall, computed, traits);
}

}  // namespace tessera::ops
