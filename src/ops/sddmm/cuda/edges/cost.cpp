// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/tuning.hpp"
#include "tiles/panels.hpp"
#include "tiles/sample.hpp"

namespace tessera::ops {
namespace {

struct EdgesCoefficients {
  double launch_us;
  double memory_bytes_per_us;
  /// What a warp waits for one batch of loads, and how much longer each further warp makes it for
  /// 32-bit features. A kept row is asked for only when it is needed, after all others.
  double latency_us, kept_latency_us;
  double round_us, kept_round_us;
  double half_round;           ///< of a round with 16-bit features
  double instructions_per_us;  ///< of one scheduler; a processor has four
  /// Instructions per feature, per kept vector, per edge and per tile.
  double per_feature, per_kept_vector, per_edge, per_tile;
  /// Rows of V as they come for every edge: from L1 and L2 while they fit there, else from memory.
  /// Those that neighbouring rows share come faster, by a power of how often they do.
  double cached_bytes;
  double cached_bytes_per_us;
  double gathered_bytes_per_us;
  double reuse_exponent;
  double moved_share;  ///< of the time that U, V and the results take from and to memory
  double power;        ///< the slowest of all counts, and a little of the others
  double sums_per_us;
  PolicyFactors<vector_policies.size()> factors;

  EdgesCoefficients scaled(DeviceRatio ratio) const {
    EdgesCoefficients scaled = *this;
    scaled.memory_bytes_per_us *= ratio.memory;
    scaled.cached_bytes_per_us *= ratio.processors;
    scaled.gathered_bytes_per_us *= ratio.memory;
    scaled.sums_per_us *= ratio.memory;
    return scaled;
  }
};

constexpr std::array<Fitted<EdgesCoefficients>, 1> coefficients = {
    {{fitted_on_h200(
          "2026-11-15",
          "37 graphs of 34 to 1.7 M vertices, ten of them generated, at 16 to 256 features"),
      {.launch_us = 7.3,
       .memory_bytes_per_us = 4.1e6,
       .latency_us = 0.6874,
       .kept_latency_us = 0.9231,
       .round_us = 0.2287,
       .kept_round_us = 0.2241,
       .half_round = 0.5204,
       .instructions_per_us = 963,
       .per_feature = 1.858,
       .per_kept_vector = 12.92,
       .per_edge = 11.69,
       .per_tile = 75.73,
       .cached_bytes = 40e6,
       .cached_bytes_per_us = 31.84e6,
       .gathered_bytes_per_us = 8.567e6,
       .reuse_exponent = 0.7409,
       .moved_share = 0.759,
       .power = 1.694,
       .sums_per_us = 4e5,
       .factors = {{1,     1,    0.955, 0.998, 1.05,  1.07,  1.01,  1,     0.928, 0.923, 1.02,
                    0.943, 1.03, 1,     1.12,  0.926, 0.985, 0.984, 0.763, 1.05,  0.935, 1.05},
                   {1.01,  0.904, 0.98, 1.08, 1.07, 1.12,  0.785, 0.933, 1.01, 0.948, 1.08,
                    0.922, 1.09,  1.02, 1.05, 1,    0.996, 0.976, 0.874, 0.87, 0.942, 1.05}}}}}};

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

/// How long the warps wait for their loads, if nothing else takes time.
double waiting_us(const SddmmProblem& problem, const EdgesPolicy& policy, const Shape& shape,
                  const EdgesCoefficients& fit, double processors) {
  const bool half = element_bytes(problem) == 2;
  const double latency_us = policy.keeps ? fit.kept_latency_us : fit.latency_us;
  const double round_us =
      (policy.keeps ? fit.kept_round_us : fit.round_us) * (half ? fit.half_round : 1);
  const double registers = 26 + policy.vectors * shape.floats_per_vector + 3.0 * policy.batch +
                           policy.batch * policy.vectors * 4.0 * (policy.keeps ? 1 : 2) +
                           (half ? 4 : 0);
  const double blocks = std::clamp(std::floor(65536 / (registers * edges_block_threads)), 1.0, 6.0);
  const double warps = processors * edges_block_warps * blocks;
  const double rounds =
      shape.chunks * static_cast<double>(problem.heads) * policy.edges / policy.batch;
  const double others = std::max(0.0, num_tiles(problem, policy) / warps - 0.5);
  return rounds * (latency_us + round_us * others);
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

double row_bytes(const SddmmProblem& problem) {
  return static_cast<double>(problem.features * element_bytes(problem));
}

double source_bytes(const SddmmProblem& problem) {
  return static_cast<double>(problem.graph.num_cols()) * row_bytes(problem);
}

/// Rows of V that neighbouring rows of U share.
double neighbours_reuse(const Graph& graph) {
  constexpr int neighbours = 64;
  const tiles::WindowSample sample = tiles::sample_windows(graph, neighbours, tiles::Side::forward);
  return static_cast<double>(graph.num_edges()) / std::max(1.0, sample.columns);
}

double moving_us(const SddmmProblem& problem, const EdgesCoefficients& fit) {
  const double rate = source_bytes(problem) > fit.cached_bytes ? fit.gathered_bytes_per_us
                                                               : fit.cached_bytes_per_us;
  return static_cast<double>(problem.graph.num_edges()) * row_bytes(problem) /
         (rate * std::pow(std::max(1.0, neighbours_reuse(problem.graph)), fit.reuse_exponent));
}

double predicted_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                    std::int64_t vector_bytes, double moving, const EdgesCoefficients& fit,
                    double processors) {
  const Shape shape = shape_of(problem, policy, vector_bytes);
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const auto results = edges * static_cast<double>(problem.heads * element_bytes(problem));
  const double target_bytes = static_cast<double>(problem.graph.num_rows()) * row_bytes(problem);
  const double moved = target_bytes + source_bytes(problem) + results;
  const double sum = std::pow(waiting_us(problem, policy, shape, fit, processors), fit.power) +
                     std::pow(issuing_us(problem, policy, shape, fit, processors), fit.power) +
                     std::pow(moving, fit.power) +
                     std::pow(fit.moved_share * moved / fit.memory_bytes_per_us, fit.power);
  const double factor = fit.factors.of(vector_policies, policy, element_bytes(problem) == 2);
  return fit.launch_us + factor * std::pow(sum, 1 / fit.power);
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
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  return predicted_us(problem, policy, vector_bytes, moving_us(problem, fit), fit,
                      traits.processors);
}

double predict_panels_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                         const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  const double moving = std::max(moving_us(problem, fit) / tiles::panel_reuse(problem.graph),
                                 source_bytes(problem) / fit.memory_bytes_per_us);
  return predicted_us(problem, policy, 16, moving, fit, traits.processors);
}

double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  return fit.launch_us + static_cast<double>(problem.graph.num_edges()) *
                             static_cast<double>(problem.heads) / fit.sums_per_us;
}

}  // namespace tessera::ops
