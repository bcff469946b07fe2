// SPDX-License-Identifier: Apache-2.0
#include "ops/sddmm/cuda/edges/cost.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <vector>

#include "ops/sddmm/cuda/edges/panels.hpp"
#include "ops/tuning.hpp"

namespace tessera::ops {
namespace {

struct EdgesCoefficients {
  double launch_us;
  double memory_bytes_per_us;
  /// One batch of loads. A kept row is asked for only when it is needed, after all others.
  double round_us;
  double kept_round_us;
  double instructions_per_us;  ///< of one scheduler; a processor has four
  /// Rows of V as they come for every edge: from L1 and L2 while they fit there, else from memory.
  double cached_bytes;
  double cached_bytes_per_us;
  double gathered_bytes_per_us;
  double power;  ///< the slowest of waiting, issuing and moving counts, and a little of the others
  double sums_per_us;

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
    {{fitted_on_h200("2026-11-15",
                     "13 graphs at 16 to 256 features, with both ends from one matrix"),
      {.launch_us = 7.6,
       .memory_bytes_per_us = 4.1e6,
       .round_us = 0.39,
       .kept_round_us = 0.78,
       .instructions_per_us = 963,
       .cached_bytes = 40e6,
       .cached_bytes_per_us = 16.3e6,
       .gathered_bytes_per_us = 10.3e6,
       .power = 3.5,
       .sums_per_us = 4e5}}}};

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
  return {floats_per_vector,
          std::max(1.0, std::ceil(vectors / (policy.lanes * policy.vectors)))};
}

/// How long the warps wait for their loads, if nothing else takes time.
double waiting_us(const SddmmProblem& problem, const EdgesPolicy& policy, const Shape& shape,
                  const EdgesCoefficients& fit, double processors) {
  const double round_us = policy.keeps ? fit.kept_round_us : fit.round_us;
  const double registers = 26 + policy.vectors * shape.floats_per_vector + 3.0 * policy.batch +
                           policy.batch * policy.vectors * 4.0 * (policy.keeps ? 1 : 2) +
                           (element_bytes(problem) == 2 ? 4 : 0);
  const double blocks = std::clamp(std::floor(65536 / (registers * edges_block_threads)), 1.0, 6.0);
  const double warps = processors * edges_block_warps * blocks;
  const double rounds =
      shape.chunks * static_cast<double>(problem.heads) * policy.edges / policy.batch;
  return std::max(1.0, num_tiles(problem, policy) / warps + 0.4) * round_us * rounds;
}

/// How long issuing the instructions takes, if nothing else does.
double issuing_us(const SddmmProblem& problem, const EdgesPolicy& policy, const Shape& shape,
                  const EdgesCoefficients& fit, double processors) {
  const double instructions_per_us = processors * 4 * fit.instructions_per_us;
  const double per_edge =
      policy.vectors * (1.1 * shape.floats_per_vector + (policy.keeps ? 12 : 0)) + 19.5;
  return num_tiles(problem, policy) * static_cast<double>(problem.heads) *
         (shape.chunks * policy.edges * per_edge + 30) / instructions_per_us;
}

double row_bytes(const SddmmProblem& problem) {
  return static_cast<double>(problem.features * element_bytes(problem));
}

double source_bytes(const SddmmProblem& problem) {
  return static_cast<double>(problem.graph.num_cols()) * row_bytes(problem);
}

double moving_us(const SddmmProblem& problem, const EdgesCoefficients& fit) {
  const double rate = source_bytes(problem) > fit.cached_bytes ? fit.gathered_bytes_per_us
                                                               : fit.cached_bytes_per_us;
  return static_cast<double>(problem.graph.num_edges()) * row_bytes(problem) / rate;
}

double predicted_us(const SddmmProblem& problem, const EdgesPolicy& policy,
                    std::int64_t vector_bytes, double moving, const EdgesCoefficients& fit,
                    double processors) {
  const Shape shape = shape_of(problem, policy, vector_bytes);
  const double sum =
      std::pow(waiting_us(problem, policy, shape, fit, processors), fit.power) +
      std::pow(issuing_us(problem, policy, shape, fit, processors), fit.power) +
      std::pow(moving, fit.power);
  return fit.launch_us + std::pow(sum, 1 / fit.power);
}

struct Reuse {
  double factor = 1;
};

Reuse measured_reuse(const Graph& graph) {
  constexpr VertexId samples = 16;
  std::int64_t edges = 0;
  std::int64_t distinct = 0;
  std::vector<VertexId> sources;
  for (VertexId i = 0; i < samples; ++i) {
    const auto row =
        static_cast<VertexId>(std::int64_t{graph.num_rows()} * (2 * i + 1) / (2 * samples));
    const EdgeOffset begin = graph.row_offsets()[row];
    const EdgeOffset end = panel_end(graph, begin, row);
    sources.assign(graph.col_indices().data() + begin, graph.col_indices().data() + end);
    std::sort(sources.begin(), sources.end());
    edges += end - begin;
    distinct += std::unique(sources.begin(), sources.end()) - sources.begin();
  }
  return {distinct > 0 ? static_cast<double>(edges) / static_cast<double>(distinct) : 1.0};
}

}  // namespace

int tiles_per_warp(EdgeOffset num_edges, int tile, const DeviceTraits& traits) {
  const double resident_warps = traits.processors * 32;
  constexpr double rounds = 4;
  const double tiles = static_cast<double>(num_edges) / tile;
  return static_cast<int>(std::clamp(tiles / (resident_warps * rounds), 1.0, 16.0));
}

double panel_reuse(const Graph& graph) {
  if (graph.num_rows() == 0) return 1;
  const auto make = [&]() -> std::shared_ptr<const void> {
    return std::make_shared<Reuse>(measured_reuse(graph));
  };
  return std::static_pointer_cast<const Reuse>(graph.derived("reuse in panels of sddmm", make))
      ->factor;
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
  const double moving = std::max(moving_us(problem, fit) / panel_reuse(problem.graph),
                                 source_bytes(problem) / fit.memory_bytes_per_us);
  return predicted_us(problem, policy, 16, moving, fit, traits.processors);
}

double predict_edge_sums_us(const SddmmProblem& problem, const DeviceTraits& traits) {
  const EdgesCoefficients fit = coefficients_for(coefficients, traits);
  return fit.launch_us + static_cast<double>(problem.graph.num_edges()) *
                             static_cast<double>(problem.heads) / fit.sums_per_us;
}

}  // namespace tessera::ops
