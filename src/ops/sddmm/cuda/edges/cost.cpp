// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include "ops/gathers.hpp"
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
  double half_round;  ///< of a round with 16-bit features
  /// The share of the blocks held at once by a GPU that waits for nothing but its own loads,
  /// and how much of a last wave that is not full counts.
  double first_wave, last_wave;
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
  double by_panels;  ///< how many times what the model says edges ordered by panels take
  /// Streams of rows: what gathering takes, instructions per edge and per vector, and how many
  /// times what comes of both each policy takes.
  GatherRates stream_gathers;
  double stream_edge, stream_vector;
  double stream_power;
  PolicyFactors<stream_policies.size()> stream_factors;
  PolicyFactors<vector_policies.size()> factors;

  EdgesCoefficients scaled(DeviceRatio ratio) const {
    EdgesCoefficients scaled = *this;
    scaled.memory_bytes_per_us *= ratio.memory;
    scaled.cached_bytes_per_us *= ratio.processors;
    scaled.gathered_bytes_per_us *= ratio.memory;
    scaled.sums_per_us *= ratio.memory;
    scaled.stream_gathers = stream_gathers.scaled(ratio.processors, ratio.memory);
    return scaled;
  }
};

constexpr std::array<Fitted<EdgesCoefficients>, 1> coefficients = {
    {{fitted_on_h200(
          "2026-11-16",
          "27 graphs of 34 to 870 k vertices at 32 and 128 features, and the fit before to "
          "37 graphs at 16 to 256 for policies of other widths; panels and policies of 128 fp32 "
          "features on 2026-11-17 to five generated graphs more"),
      {.launch_us = 7.1,
       .memory_bytes_per_us = 4.1e6,
       .latency_us = 0.5155,
       .kept_latency_us = 0.6013,
       .round_us = 0.4607,
       .kept_round_us = 0.4873,
       .half_round = 1.041,
       .first_wave = 0.9441,
       .last_wave = 0.6057,
       .instructions_per_us = 1902,
       .per_feature = 1.976,
       .per_kept_vector = 6.969,
       .per_edge = 10.6,
       .per_tile = 73.73,
       .cached_bytes = 40e6,
       .cached_bytes_per_us = 45.87e6,
       .gathered_bytes_per_us = 13.16e6,
       .reuse_exponent = 1.183,
       .moved_share = 0.5683,
       .power = 1.085,
       .sums_per_us = 4e5,
       .by_panels = 1.25,
       .stream_gathers = {.near_bytes_per_us = 26.8e6,
                          .cached_bytes_per_us = 9.5e6,
                          .missed_bytes_per_us = 3.9e6,
                          .near_bytes = 147e3,
                          .cached_bytes = 49.5e6},
       .stream_edge = 14,
       .stream_vector = 6,
       .stream_power = 2.5,
       .stream_factors = {{3, 3, 3, 3, 3, 3, 3}, {3, 3, 3, 3, 3, 3, 3}},
       .factors = {{1,    1,    1.2,   1.02, 1.08,  1.12, 0.82, 1.03,  0.869, 0.935, 1.16,
                    0.98, 1.12, 0.983, 1.07, 0.919, 1.07, 1.05, 0.866, 0.9,   0.928, 0.978},
                   {1,     1.14, 1.05, 1.09,  0.966, 1.24, 0.775, 0.881, 0.825, 1.08,  1.22,
                    0.908, 1.11, 1.05, 0.931, 1,     1,    1,     1.04,  0.847, 0.995, 1}}}}}};

/// Blocks that a processor holds at once, by the registers that nvcc 13.0 gives the kernels for
/// sm_90 (plain ones: edges in the order of CSR, one head, no scales).
constexpr PolicyFactors<vector_policies.size()> resident_blocks = {
    {8, 6, 4, 4, 4, 3, 6, 4, 3, 4, 3, 4, 3, 3, 4, 2, 3, 3, 4, 4, 4, 4},
    {5, 5, 3, 3, 4, 2, 5, 3, 3, 4, 2, 4, 2, 2, 3, 2, 2, 2, 3, 4, 4, 4}};

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
                    const DeviceTraits& traits) {
  const Shape shape = shape_of(problem, policy, vector_bytes);
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const auto results = edges * static_cast<double>(problem.heads * element_bytes(problem));
  const double target_bytes = static_cast<double>(problem.graph.num_rows()) * row_bytes(problem);
  const double moved = target_bytes + source_bytes(problem) + results;
  const double sum =
      std::pow(waiting_us(problem, policy, shape, fit, traits), fit.power) +
      std::pow(issuing_us(problem, policy, shape, fit, traits.processors), fit.power) +
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
  return predicted_us(problem, policy, vector_bytes, moving_us(problem, fit), fit, traits);
}

double predict_panels_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                         const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  const double moving = std::max(moving_us(problem, fit) / tiles::panel_reuse(problem.graph),
                                 source_bytes(problem) / fit.memory_bytes_per_us);
  return fit.by_panels * predicted_us(problem, policy, 16, moving, fit, traits);
}

int stream_steps(EdgeOffset num_edges, const StreamPolicy& policy, const DeviceTraits& traits) {
  // So many runs that the last ones, which end one after the other, are a small part of all.
  const double runs = traits.processors * 24.0 * (32.0 / policy.lanes) * 4;
  const double steps = static_cast<double>(num_edges) / (runs * stream_edges);
  return static_cast<int>(std::clamp(steps, 1.0, 16.0));
}

double predict_stream_us(const SddmmProblem& problem, const StreamPolicy& policy,
                         const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const double bytes = row_bytes(problem);
  const double gathering =
      edges * bytes * fit.stream_gathers.us_per_byte(problem.graph, tiles::Side::forward, bytes);
  const double issuing = edges * policy.lanes / 32 *
                         (fit.stream_edge + fit.stream_vector * policy.vectors) /
                         (traits.processors * 4 * fit.instructions_per_us);
  const double moved = static_cast<double>(problem.graph.num_rows()) * bytes +
                       source_bytes(problem) + edges * static_cast<double>(element_bytes(problem));
  const double sum = std::pow(gathering, fit.stream_power) + std::pow(issuing, fit.stream_power) +
                     std::pow(moved / fit.memory_bytes_per_us, fit.stream_power);
  const bool half = element_bytes(problem) == 2;
  return fit.launch_us +
         fit.stream_factors.of(stream_policies, policy, half) * std::pow(sum, 1 / fit.stream_power);
}

double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  return fit.launch_us + static_cast<double>(problem.graph.num_edges()) *
                             static_cast<double>(problem.heads) / fit.sums_per_us;
}

}  // namespace tessera::ops
