// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/cost.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ops/plan/cost_fits.hpp"
#include "ops/plan/counts.hpp"
#include "ops/plan/gathers.hpp"
#include "ops/plan/tuning.hpp"

namespace tessera::ops {
namespace {

struct EdgesCoefficients {
  double instructions_per_us;  ///< of one scheduler; a processor has four
  /// Instructions per feature, per kept vector, per edge and per tile.
  double per_feature, per_kept_vector, per_edge, per_tile;
  GatherRates gathers;  ///< of rows of V
  double sums_per_us;
  double stream_edge, stream_feature;  ///< streams of rows: per edge, per feature of a lane

  void scale(DeviceRatio ratio) {
    gathers.scale(ratio);
    sums_per_us *= ratio.memory;
  }
};

constexpr Fitted<EdgesCoefficients> coefficients = {
    fitted_on_h200("2026-11-17",
                   "58 graphs of 34 to 1.8 M vertices at 32 and 128 features; what caches give, to "
                   "24 of 12,000 to 980,000 vertices at 32 to 256"),
    {.instructions_per_us = 1830,
     .per_feature = 1.398,
     .per_kept_vector = 5.549,
     .per_edge = 8.669,
     .per_tile = 82.984,
     .gathers = {.near_bytes_per_us = 15.2e6,
                 .cached_bytes_per_us = 9.38e6,
                 .missed_bytes_per_us = 3.8e6,
                 .window_bytes = std::numeric_limits<double>::infinity()},
     .sums_per_us = 4e5,
     .stream_edge = 14.14,
     .stream_feature = 1.266}};

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
CountFit fit_of(const EdgesPolicy& policy) {
  static_assert(cost_fits::sddmm_vectors.size() == vector_policies.size());
  const auto found = std::find(vector_policies.begin(), vector_policies.end(), policy);
  if (found == vector_policies.end()) return {"sddmm/scalars", {2, 0.3, 0.5}};
  return cost_fits::sddmm_vectors[static_cast<std::size_t>(found - vector_policies.begin())];
}

/// From and to memory: U, V and the results, a number per edge and head.
double moved_once_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const PassSizes sizes = sizes_of(problem);
  const double results = sizes.edges * static_cast<double>(problem.heads) * sizes.element_bytes;
  return moved_us(sizes.vertices * sizes.row_bytes + results, traits);
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

/// What warps wait for is hidden by others, but for a part of each of these.
double predict_edges_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                        std::int64_t vector_bytes, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients.on(traits);
  const Shape shape = shape_of(problem, policy, vector_bytes);
  return counted_us(fit_of(policy), 1,
                    {issuing_us(problem, policy, shape, fit, traits.processors),
                     gathering_us(problem, fit.gathers), moved_once_us(problem, traits)});
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
  return counted_us(cost_fits::sddmm_stream, 1,
                    {issuing, gathering_us(problem, fit.gathers), moved_once_us(problem, traits)});
}

double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients.on(traits);
  return chained_launch_us + static_cast<double>(problem.graph.num_edges()) *
                                 static_cast<double>(problem.heads) / fit.sums_per_us;
}

}  // namespace tessera::ops
