// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/plan/cost_fits.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

struct EdgesCoefficients {
  double launch_us;
  double memory_bytes_per_us;
  /// What a warp waits for one batch of loads, and how much longer each further warp makes it for
  /// 32-bit features. A kept row is asked for only when it is needed, after all others.
  double latency_us, kept_latency_us;
  double round_us, kept_round_us;
  double half_round;  ///< of a round with 16-bit features
  /// How much longer where every edge has another target: for rows of both ends, and for rows in
  /// several chunks.
  double both_ends, chunks_of_both;
  /// The share of the blocks held at once by a GPU that waits for nothing but its own loads,
  /// and how much of a last wave that is not full counts.
  double first_wave, last_wave;
  double instructions_per_us;  ///< of one scheduler; a processor has four
  /// Instructions per feature, per kept vector, per edge and per tile.
  double per_feature, per_kept_vector, per_edge, per_tile;
  GatherRates gathers;  ///< of rows of V
  double moved_share;   ///< of the time that U, V and the results take from and to memory
  double power;         ///< the slowest of all counts, and a little of the others
  double sums_per_us;
  /// Streams of rows: what gathering takes, instructions of an edge and of each feature of a lane.
  double stream_start_us;  ///< more than others need to begin
  GatherRates stream_gathers;
  double stream_edge, stream_feature;
  double stream_power;
  double full_stream, half_stream;  ///< how many times what comes of both

  void scale(DeviceRatio ratio) {
    memory_bytes_per_us *= ratio.memory;
    gathers.scale(ratio);
    sums_per_us *= ratio.memory;
    stream_gathers.scale(ratio);
  }
};

constexpr Fitted<EdgesCoefficients> coefficients = {
    fitted_on_h200("2026-11-17",
                   "58 graphs of 34 to 1.8 M vertices at 32 and 128 features; what caches give, to "
                   "24 of 12,000 to 980,000 vertices at 32 to 256"),
    {.launch_us = 7.1,
     .memory_bytes_per_us = 4.1e6,
     .latency_us = 0.558,
     .kept_latency_us = 0.553,
     .round_us = 0.672,
     .kept_round_us = 0.554,
     .half_round = 0.949,
     .both_ends = 1.47,
     .chunks_of_both = 1.43,
     .first_wave = 0.998,
     .last_wave = 0.732,
     .instructions_per_us = 1830,
     .per_feature = 1.398,
     .per_kept_vector = 5.549,
     .per_edge = 8.669,
     .per_tile = 82.984,
     .gathers = {.near_bytes_per_us = 15.2e6,
                 .cached_bytes_per_us = 9.38e6,
                 .missed_bytes_per_us = 3.8e6,
                 .near_bytes = 147e3,
                 .cached_bytes = 44.6e6,
                 .window_bytes = std::numeric_limits<double>::infinity()},
     .moved_share = 0.956,
     .power = 1.973,
     .sums_per_us = 4e5,
     .stream_start_us = 1.5,
     .stream_gathers = {.near_bytes_per_us = 13.3e6,
                        .cached_bytes_per_us = 8.74e6,
                        .missed_bytes_per_us = 7e6,
                        .near_bytes = 147e3,
                        .cached_bytes = 44.6e6,
                        .window_bytes = std::numeric_limits<double>::infinity()},
     .stream_edge = 14.14,
     .stream_feature = 1.266,
     .stream_power = 1.663,
     .full_stream = 0.949,
     .half_stream = 1.134}};

/// Blocks that a processor holds at once, by the registers that nvcc 13.0 gives the kernels for
/// sm_90 (plain ones: one head, no scales).
constexpr PolicyFactors<vector_policies.size()> resident_blocks = {
    {8, 6, 4, 4, 6, 3, 4, 3, 3, 2, 4, 4}, {5, 5, 3, 4, 5, 3, 4, 2, 2, 2, 3, 4}};

/// For policies with single features, from what a lane holds.
constexpr double scalar_resident_blocks = 4;

double num_tiles(const SddmmProblem& problem, const EdgesPolicy& policy) {
  return std::ceil(static_cast<double>(problem.graph.num_edges()) / policy.tile());
}

/// How a policy goes over the features of a head.
struct Shape {
  double floats_per_vector;
  double chunks;
};

Shape shape_of(const SddmmProblem& problem, const EdgesPolicy& policy, std::int64_t vector_bytes) {
  const double floats_per_vector =
      static_cast<double>(vector_bytes) / static_cast<double>(element_bytes(problem));
  const double vectors = static_cast<double>(head_width(problem)) / floats_per_vector;
  return {floats_per_vector, std::max(1.0, std::ceil(vectors / (policy.lanes * policy.vectors)))};
}

/// Blocks come in waves, of as many as the GPU holds at once: where the last one has few, the
/// others wait for it all the same.
double waves_of(const SddmmProblem& problem, const EdgesPolicy& policy,
                const EdgesCoefficients& fit, const DeviceTraits& traits) {
  const bool half = element_bytes(problem) == 2;
  const bool scalar =
      std::find(vector_policies.begin(), vector_policies.end(), policy) == vector_policies.end();
  const double resident =
      scalar ? scalar_resident_blocks : resident_blocks.of(vector_policies, policy, half);
  const double tiles_of_warp = tiles_per_warp(problem.graph.num_edges(), policy.tile(), traits);
  const double blocks = std::ceil(num_tiles(problem, policy) / (edges_block_warps * tiles_of_warp));
  const double waves = blocks / (traits.processors * resident);
  return (waves + fit.last_wave * (std::ceil(waves) - waves)) * tiles_of_warp;
}

/// How long the warps wait for their loads, if nothing else takes time.
double waiting_us(const SddmmProblem& problem, const EdgesPolicy& policy, const Shape& shape,
                  const EdgesCoefficients& fit, const DeviceTraits& traits) {
  const bool half = element_bytes(problem) == 2;
  const double latency_us = policy.keeps ? fit.kept_latency_us : fit.latency_us;
  const double round_us =
      (policy.keeps ? fit.kept_round_us : fit.round_us) * (half ? fit.half_round : 1);
  const double rounds =
      shape.chunks * static_cast<double>(problem.heads) * policy.edges / policy.batch;
  const double others = std::max(0.0, waves_of(problem, policy, fit, traits) - fit.first_wave);
  const double targets_per_edge =
      std::min(1.0, static_cast<double>(problem.graph.num_rows()) /
                        static_cast<double>(std::max<EdgeOffset>(1, problem.graph.num_edges())));
  const double longer = 1 + targets_per_edge * ((policy.keeps ? 0 : fit.both_ends) +
                                                (shape.chunks > 1 ? fit.chunks_of_both : 0));
  return longer * rounds * (latency_us + round_us * others);
}

/// How long issuing the instructions takes, if nothing else does.
double issuing_us(const SddmmProblem& problem, const EdgesPolicy& policy, const Shape& shape,
                  const EdgesCoefficients& fit, double processors) {
  const double instructions_per_us = processors * 4 * fit.instructions_per_us;
  const double per_edge = policy.vectors * (fit.per_feature * shape.floats_per_vector +
                                            (policy.keeps ? fit.per_kept_vector : 0)) +
                          fit.per_edge;
  return num_tiles(problem, policy) * static_cast<double>(problem.heads) *
         (shape.chunks * policy.edges * per_edge + fit.per_tile) / instructions_per_us;
}

/// Policies for single features have none of their own.
CostFit fit_of(const EdgesPolicy& policy) {
  static_assert(cost_fits::sddmm_vectors.size() == vector_policies.size());
  const auto found = std::find(vector_policies.begin(), vector_policies.end(), policy);
  if (found == vector_policies.end()) return {"sddmm/scalars", 6, 1};
  return cost_fits::sddmm_vectors[static_cast<std::size_t>(found - vector_policies.begin())];
}

/// From and to memory: U, V and the results, a number per edge and head.
double moved_us(const PassSizes& sizes, double heads, const EdgesCoefficients& fit) {
  const double moved = sizes.vertices * sizes.row_bytes + sizes.edges * heads * sizes.element_bytes;
  return fit.moved_share * moved / fit.memory_bytes_per_us;
}

double gathering_us(const SddmmProblem& problem, const GatherRates& gathers) {
  const PassSizes sizes = sizes_of(problem);
  return sizes.edges * sizes.row_bytes *
         gathers.us_per_byte_beside_targets(problem.graph, sizes.row_bytes);
}

}  // namespace

int tiles_per_warp(EdgeOffset num_edges, int tile, const DeviceTraits& traits) {
  const double resident_warps = traits.processors * 32;
  constexpr double rounds = 4;
  const double tiles = static_cast<double>(num_edges) / tile;
  return static_cast<int>(std::clamp(tiles / (resident_warps * rounds), 1.0, 16.0));
}

double predict_edges_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                        std::int64_t vector_bytes, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients.on(traits);
  const Shape shape = shape_of(problem, policy, vector_bytes);
  const PassSizes sizes = sizes_of(problem);
  const double us = side_by_side({waiting_us(problem, policy, shape, fit, traits),
                                  issuing_us(problem, policy, shape, fit, traits.processors),
                                  gathering_us(problem, fit.gathers),
                                  moved_us(sizes, static_cast<double>(problem.heads), fit)},
                                 fit.power);
  return fitted_us(fit_of(policy), fit.launch_us + us);
}

int stream_steps(const Graph& graph, const DeviceTraits& traits) {
  // Where neighbouring targets share sources, warps of a block should have them at the same time:
  // 32 edges each. Elsewhere longer runs keep rows of U longer, as long as there are enough of them
  // that the last ones, which end one after the other, are a small part of all.
  constexpr double sharing = 0.45;
  const bool shares = gather_shares(graph, tiles::Side::forward, 0, 0).near > sharing;
  const double most = shares ? 1 : 4;
  const double runs = traits.processors * 24.0 * (32.0 / stream_lanes) * 4;
  const double steps = static_cast<double>(graph.num_edges()) / (runs * stream_edges);
  return static_cast<int>(std::clamp(steps, 1.0, most));
}

double predict_stream_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients.on(traits);
  const PassSizes sizes = sizes_of(problem);
  const double lane_features = 16.0 * stream_vectors / sizes.element_bytes;
  const double issuing = sizes.edges * stream_lanes / 32 *
                         (fit.stream_edge + fit.stream_feature * lane_features) /
                         (traits.processors * 4 * fit.instructions_per_us);
  const double us =
      side_by_side({gathering_us(problem, fit.stream_gathers), issuing, moved_us(sizes, 1, fit)},
                   fit.stream_power);
  const double share = sizes.half() ? fit.half_stream : fit.full_stream;
  return fitted_us(cost_fits::sddmm_stream, fit.launch_us + fit.stream_start_us + share * us);
}

double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients.on(traits);
  return fit.launch_us + static_cast<double>(problem.graph.num_edges()) *
                             static_cast<double>(problem.heads) / fit.sums_per_us;
}

}  // namespace tessera::ops
