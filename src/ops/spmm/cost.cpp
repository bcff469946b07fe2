// SPDX-License-Identifier: Apache-2.0
#include "ops/spmm/cpu.hpp"

#include <algorithm>
#include <vector>

#include "tessera/core/parallel.hpp"

namespace tessera::ops {
namespace {

constexpr double near_cache_bytes = 2 << 20;
constexpr double far_cache_bytes = 8 << 20;

// Nanoseconds on one core, from timings on graphs with 4 to 66 edges per row.
constexpr double ns_per_gathered_byte = 0.028;
constexpr double ns_per_edge = 0.4;
constexpr double ns_per_row = 4;
constexpr double ns_per_packed_byte = 0.15;

/// What a gathered byte costs in addition where x does not stay in a cache.
double ns_per_missed_byte(double x_bytes) {
  if (x_bytes <= near_cache_bytes) return 0.004;
  return x_bytes <= far_cache_bytes ? 0.012 : 0.03;
}

/// The share of distinct sources among neighbouring edges: 1 where every edge brings a new row of
/// x, near 0 where rows share their sources and caches serve them whatever the size of x.
double distinct_share(const Graph& graph) {
  constexpr EdgeOffset window = 2048;
  constexpr EdgeOffset windows = 8;
  const EdgeOffset edges = graph.num_edges();
  if (edges == 0) return 0;
  const EdgeOffset length = std::min(window, edges);
  EdgeOffset distinct = 0;
  std::vector<VertexId> sources;
  for (EdgeOffset i = 0; i < windows; ++i) {
    const VertexId* const first = graph.col_indices().data() + (edges - length) / windows * i;
    sources.assign(first, first + length);
    std::sort(sources.begin(), sources.end());
    distinct += std::unique(sources.begin(), sources.end()) - sources.begin();
  }
  return static_cast<double>(distinct) / static_cast<double>(windows * length);
}

/// One pass over the edges for `features` features, with an x of `x_bytes`.
double pass_ns(const SpmmProblem& problem, double features, double x_bytes) {
  const auto edges = static_cast<double>(problem.graph.num_edges());
  const auto rows = static_cast<double>(problem.graph.num_rows());
  const double gathered =
      edges * features * static_cast<double>(bytes_per_element(problem.precision));
  const double missed =
      x_bytes <= near_cache_bytes ? gathered : gathered * distinct_share(problem.graph);
  return gathered * ns_per_gathered_byte + missed * ns_per_missed_byte(x_bytes) +
         edges * ns_per_edge + rows * ns_per_row;
}

double bytes_of_x(const SpmmProblem& problem, double features) {
  const Graph& graph = problem.graph;
  const VertexId rows = problem.pass == SpmmPass::forward ? graph.num_cols() : graph.num_rows();
  return static_cast<double>(rows) * features *
         static_cast<double>(bytes_per_element(problem.precision));
}

}  // namespace

std::int64_t packed_tile_width(const SpmmProblem& problem) {
  const std::int64_t step = 128 / static_cast<std::int64_t>(bytes_per_element(problem.precision));
  const double bytes_per_step = bytes_of_x(problem, static_cast<double>(step));
  const auto steps = static_cast<std::int64_t>(near_cache_bytes / std::max(1.0, bytes_per_step));
  return step * std::max<std::int64_t>(1, steps);
}

double predict_spmm_rows_us(const SpmmProblem& problem) {
  const auto features = static_cast<double>(problem.features);
  return pass_ns(problem, features, bytes_of_x(problem, features)) * 1e-3 / num_threads();
}

double predict_spmm_tiles_us(const SpmmProblem& problem) {
  const auto features = static_cast<double>(problem.features);
  const double width = std::min(features, static_cast<double>(packed_tile_width(problem)));
  const double tiles = width == 0 ? 0 : features / width;
  const double passes = tiles * pass_ns(problem, width, bytes_of_x(problem, width));
  const double packing = bytes_of_x(problem, features) * ns_per_packed_byte;
  return (passes + packing) * 1e-3 / num_threads();
}

double predict_spmm_by_rows_us(const Coo& edges, std::int64_t features) {
  const auto count = static_cast<double>(edges.num_edges());
  const double row_bytes = static_cast<double>(features) * static_cast<double>(sizeof(float));
  const double x_bytes = static_cast<double>(edges.num_cols()) * row_bytes;
  const double ns = count * row_bytes * (ns_per_gathered_byte + ns_per_missed_byte(x_bytes)) +
                    count * ns_per_edge + static_cast<double>(edges.num_rows()) * ns_per_row;
  return ns * 1e-3 / num_threads();
}

/// Every edge reads and writes a row of the sums besides what it gathers, and every task looks at
/// all ids.
double predict_spmm_by_edges_us(const SpmmProblem& problem) {
  const auto features = static_cast<double>(problem.features);
  const double edges =
      static_cast<double>(problem.edges ? problem.edges->num_edges() : problem.graph.num_edges());
  const double rows = problem.edges ? problem.edges->num_rows() : problem.graph.num_rows();
  const double moved = 3 * edges * features * static_cast<double>(sizeof(float));
  const double x_bytes = rows * features * static_cast<double>(sizeof(float));
  const double added_ns =
      moved * (ns_per_gathered_byte + ns_per_missed_byte(x_bytes)) + edges * 4 * ns_per_edge;
  return (added_ns + rows * ns_per_row) * 1e-3 / num_threads() + edges * ns_per_edge * 1e-3;
}

/// Scattering pays where rows of dY would be gathered from beyond the nearest caches, and where the
/// sums, which are gone through once per `scatter_chain` rows, are few beside the edges.
double predict_spmm_scatter_us(const SpmmProblem& problem) {
  constexpr double near_bytes = 1 << 20;
  const Graph& graph = problem.graph;
  const double rows_us = predict_spmm_rows_us(problem);
  const auto features = static_cast<double>(problem.features);
  if (bytes_of_x(problem, features) < near_bytes) return 2 * rows_us;
  const std::int64_t chains = graph.num_rows() / scatter_chain + 1;
  const double swept = static_cast<double>(chains) * static_cast<double>(graph.num_cols());
  return rows_us * (0.3 + 2 * swept / std::max(1.0, static_cast<double>(graph.num_edges())));
}

}  // namespace tessera::ops
