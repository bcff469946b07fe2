// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/random.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/build.hpp"
#include "tessera/graph/generate.hpp"
#include "tessera/nn/config.hpp"
#include "tessera/train/options.hpp"

/// Small data sets that can be learnt in a few epochs.
namespace tessera::test {

/// Communities are classes; features are noisy marks of the class. Every third vertex is for
/// training, the others for validation and test in turn.
inline Dataset learnable_vertices(VertexId vertices = 120, std::uint64_t seed = 1) {
  generate::BlockModel model;
  model.vertices = vertices;
  model.communities = 3;
  model.mean_degree = 6;
  model.seed = seed;
  Dataset dataset;
  dataset.name = "learnable";
  dataset.graph = generate::build(model);
  const std::vector<std::int32_t> communities = generate::communities(model);
  std::vector<std::int64_t> labels(communities.begin(), communities.end());
  constexpr std::int64_t width = 9;
  auto features = std::make_shared<Matrix<float>>(vertices, width, 0.0f);
  const Random random(seed, 77);
  std::vector<std::int64_t> parts[3];
  for (std::int64_t v = 0; v < vertices; ++v) {
    for (std::int64_t f = 0; f < width; ++f) {
      const auto element = static_cast<std::uint64_t>(v * width + f);
      const bool own = f % 3 == labels[static_cast<std::size_t>(v)];
      (*features)(v, f) = static_cast<float>(random.uniform(element)) + (own ? 0.6f : 0.0f);
    }
    parts[v % 3].push_back(v);
  }
  dataset.features = DenseFeatures(std::move(features));
  dataset.labels = ClassLabels(std::move(labels));
  dataset.train = parts[0];
  dataset.validation = parts[1];
  dataset.test = parts[2];
  return dataset;
}

/// The same with features kept sparse: those above a half.
inline Dataset with_sparse_features(Dataset dataset) {
  const DenseFeatures dense = std::get<DenseFeatures>(dataset.features);
  std::vector<VertexId> rows, cols;
  std::vector<float> values;
  for (std::int64_t v = 0; v < dense->rows(); ++v) {
    for (std::int64_t f = 0; f < dense->cols(); ++f) {
      if ((*dense)(v, f) <= 0.5f) continue;
      rows.push_back(static_cast<VertexId>(v));
      cols.push_back(static_cast<VertexId>(f));
      values.push_back((*dense)(v, f));
    }
  }
  dataset.features = from_coo(static_cast<VertexId>(dense->rows()),
                              static_cast<VertexId>(dense->cols()), rows, cols, values);
  return dataset;
}

/// The same with three yes/no labels: the class itself, and its neighbour in number.
inline Dataset learnable_multi_labels(VertexId vertices = 120) {
  Dataset dataset = learnable_vertices(vertices);
  const ClassLabels classes = std::get<ClassLabels>(dataset.labels);
  auto targets = std::make_shared<Matrix<float>>(classes.size(), 3, 0.0f);
  for (std::int64_t v = 0; v < classes.size(); ++v) {
    (*targets)(v, classes[v]) = 1;
    (*targets)(v, (classes[v] + 1) % 3) = 1;
  }
  dataset.labels = MultiLabels(std::move(targets));
  return dataset;
}

/// Molecules, half of them with a second kind of vertex: labels 1 and 2, as files have them.
inline Dataset learnable_graphs(std::int64_t graphs = 60, std::uint64_t seed = 1) {
  generate::Molecules parameters;
  parameters.graphs = graphs;
  parameters.mean_vertices = 8;
  parameters.seed = seed;
  auto molecules = generate::build(parameters);
  Dataset dataset;
  dataset.name = "molecules";
  dataset.graph = molecules.graph;
  std::vector<std::int64_t> graph_labels, labels;
  for (std::int64_t g = 0; g < graphs; ++g) graph_labels.push_back(1 + g % 2);
  const Random random(seed, 78);
  for (std::size_t v = 0; v < molecules.graph_ids.size(); ++v) {
    const bool second = graph_labels[static_cast<std::size_t>(molecules.graph_ids[v])] == 2;
    labels.push_back(second && random.uniform(v) < 0.7 ? 1 : 0);
  }
  dataset.graph_ids = std::move(molecules.graph_ids);
  dataset.graph_labels = std::move(graph_labels);
  dataset.labels = ClassLabels(std::move(labels));
  return dataset;
}

inline nn::ModelConfig small_model(nn::ModelKind kind, bool graph_task = false) {
  nn::ModelConfig config = nn::paper_defaults(kind, "", graph_task);
  config.hidden = 8;
  if (config.heads > 1) config.heads = 2;
  if (config.layers > 2) config.layers = 2;
  return config;
}

inline train::TrainOptions short_training(std::int64_t epochs = 30) {
  train::TrainOptions options;
  options.optimiser.learning_rate = 0.02;
  options.epochs = epochs;
  return options;
}

}  // namespace tessera::test
