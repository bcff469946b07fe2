// SPDX-License-Identifier: Apache-2.0
#include "train/edges.hpp"

#include <limits>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"

#include "train/features.hpp"
#include "train/standardise.hpp"

namespace tessera::train {
namespace {

[[noreturn]] void reject(const std::string& problem, const std::string& where,
                         const std::string& fix) {
  throw Error(ErrorCode::invalid_argument, problem, where, fix);
}

/// Of edges in the graphs of a union that are for training; of one graph all of them.
Features seen_in_training(const Problem& problem) {
  if (!problem.graph_task) return problem.edge_features;
  std::vector<bool> trained(static_cast<std::size_t>(problem.num_items), false);
  for (const std::int64_t graph : problem.split.train) {
    trained[static_cast<std::size_t>(graph)] = true;
  }
  std::vector<VertexId> edges;
  for (VertexId v = 0; v < problem.graph.num_rows(); ++v) {
    if (!trained[static_cast<std::size_t>(problem.graph_ids[v])]) continue;
    for (EdgeOffset e = problem.graph.row_offsets()[v]; e < problem.graph.row_offsets()[v + 1];
         ++e) {
      edges.push_back(static_cast<VertexId>(e));
    }
  }
  return take_rows(problem.edge_features, edges);
}

/// As many rows as there are edges, and nothing in them.
Graph rows_of_edges(const Graph& graph) {
  const auto rows = static_cast<VertexId>(graph.num_edges());
  return Graph(rows, rows, Buffer<EdgeOffset>(rows + std::int64_t{1}, 0), Buffer<VertexId>());
}

}  // namespace

void require_edges(const Dataset& dataset, const nn::ModelConfig& config) {
  if (!nn::reads_edges(config) || dataset.edge_features.count() > 0) return;
  reject(
      fmt::format("{} reads features of edges, and the data has none", nn::to_string(config.kind)),
      dataset.name, "read them with the edges (--edge-features), or use gin");
}

void note_edges(const Dataset& dataset, const nn::ModelConfig& config, Problem& problem) {
  if (nn::reads_edges(config) || dataset.edge_features.count() == 0) return;
  problem.notes.push_back(fmt::format("features of edges play no part in {} (--model gine)",
                                      nn::to_string(config.kind)));
}

void take_edges(const Dataset& dataset, Problem& problem) {
  if (dataset.edge_features.count() == 0) return;
  // Batches pick them by numbers of 32 bits.
  if (dataset.graph.num_edges() > std::numeric_limits<VertexId>::max()) {
    throw Error(ErrorCode::unsupported,
                fmt::format("features of {} edges", dataset.graph.num_edges()), dataset.name,
                "use a graph of fewer than 2^31 edges, or leave them out");
  }
  problem.edge_features = dataset.edge_features.matrix;
  problem.edge_input = input_of(edges_as_vertices(dataset));
}

Normalisation edge_normalisation(const TrainOptions& options, const Problem& problem) {
  if (problem.edge_features == nullptr) return {};
  Normalise kind = options.normalise;
  if (kind == Normalise::automatic) {
    const bool has_names = !problem.graph_task && !problem.edge_input.feature_names.empty();
    kind = has_names ? Normalise::standard : Normalise::off;
  }
  if (kind != Normalise::standard) return {kind, {}, {}};
  return standard_normalisation(seen_in_training(problem));
}

void normalise_edges(const Normalisation& normalisation, Problem& problem) {
  if (problem.edge_features == nullptr) return;
  problem.edge_normalisation = normalisation;
  Features features = problem.edge_features;
  if (normalisation.kind == Normalise::standard) {
    features = standardised(features, normalisation, "edge");
  }
  if (normalisation.kind == Normalise::rows) features = row_normalised(features);
  problem.edge_features = std::get<DenseFeatures>(std::move(features));
}

std::shared_ptr<const step::Tensor> features_of_edges(const Problem& problem,
                                                      const step::Placement& placement) {
  if (problem.edge_features == nullptr) return nullptr;
  auto features = std::make_shared<step::Tensor>(placement);
  features->upload(*problem.edge_features, placement.stream);
  return features;
}

Dataset edges_as_vertices(const Dataset& dataset) {
  Dataset edges;
  edges.name = "edges of " + dataset.name;
  edges.graph = rows_of_edges(dataset.graph);
  if (dataset.edge_features.matrix != nullptr) edges.features = dataset.edge_features.matrix;
  edges.feature_names = dataset.edge_features.names;
  edges.category_prefixes = dataset.edge_features.category_prefixes;
  return edges;
}

AlignedData with_aligned_edges(const ModelInput& edges, AlignedData data) {
  AlignedData found = aligned(edges, edges_as_vertices(data.dataset));
  if (const auto* const matrix = std::get_if<DenseFeatures>(&found.dataset.features)) {
    data.dataset.edge_features = {*matrix, found.dataset.feature_names,
                                  found.dataset.category_prefixes};
  }
  for (const std::string& note : found.notes) data.notes.push_back("of edges: " + note);
  return data;
}

}  // namespace tessera::train
