// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tessera/core/random.hpp"
#include "tessera/data/dataset.hpp"
#include "tessera/graph/build.hpp"

/// Small data sets that have, between them, every optional part.
namespace tessera::test {

struct GraphShape {
  VertexId rows = 0;
  VertexId cols = 0;
  int draws = 0;
  bool values = false;
  bool edge_ids = false;
};

inline Graph random_graph(const GraphShape& shape, std::uint64_t seed) {
  const Random random(seed);
  std::vector<VertexId> rows, cols;
  std::vector<float> values;
  for (int k = 0; k < shape.draws; ++k) {
    const auto element = static_cast<std::uint64_t>(3 * k);
    rows.push_back(
        static_cast<VertexId>(random.below(element, static_cast<std::uint64_t>(shape.rows))));
    cols.push_back(
        static_cast<VertexId>(random.below(element + 1, static_cast<std::uint64_t>(shape.cols))));
    if (shape.values) values.push_back(static_cast<float>(random.normal(element + 2)));
  }
  return from_coo(shape.rows, shape.cols, rows, cols, values,
                  {Duplicates::first, shape.edge_ids, {}});
}

inline std::shared_ptr<const Matrix<float>> random_matrix(std::int64_t rows, std::int64_t cols,
                                                          std::uint64_t seed, bool zero_or_one) {
  auto matrix = std::make_shared<Matrix<float>>(rows, cols);
  const Random random(seed);
  for (std::int64_t i = 0; i < matrix->size(); ++i) {
    const auto element = static_cast<std::uint64_t>(i);
    matrix->data()[i] = zero_or_one ? static_cast<float>(random.below(element, 2))
                                    : static_cast<float>(random.normal(element));
  }
  return matrix;
}

template <class T>
ExtraArray extra_array(std::string type, std::vector<std::int64_t> shape,
                       const std::vector<T>& values) {
  Buffer<std::byte> bytes(static_cast<std::int64_t>(values.size() * sizeof(T)));
  if (!values.empty()) std::memcpy(bytes.data(), values.data(), values.size() * sizeof(T));
  return {std::move(type), std::move(shape), std::move(bytes)};
}

inline Dataset graph_alone(std::string name, Graph graph) {
  Dataset dataset;
  dataset.name = std::move(name);
  dataset.graph = std::move(graph);
  return dataset;
}

inline std::vector<float> random_scale(VertexId count, std::uint64_t seed) {
  std::vector<float> scale;
  for (VertexId i = 0; i < count; ++i) {
    scale.push_back(static_cast<float>(Random(seed).uniform(static_cast<std::uint64_t>(i))));
  }
  return scale;
}

inline Dataset with_everything() {
  Dataset dataset = graph_alone("everything", random_graph({33, 33, 200, true, true}, 1));
  dataset.graph = dataset.graph.with_scales(random_scale(33, 2), random_scale(33, 3));
  dataset.features = random_matrix(33, 5, 4, false);
  std::vector<std::int64_t> labels;
  for (std::int64_t i = 0; i < 33; ++i) labels.push_back(i % 4 - 1);
  dataset.labels = ClassLabels(labels);
  dataset.train = std::vector<std::int64_t>{32, 0, 5};
  dataset.validation = std::vector<std::int64_t>{7};
  dataset.test = std::vector<std::int64_t>{1, 2};
  dataset.graph_ids = std::vector<std::int32_t>(33, 1);
  dataset.graph_labels = std::vector<std::int64_t>{5, -1};
  std::vector<std::string> names;
  for (int i = 0; i < 33; ++i)
    names.push_back(i == 3 ? "" : "vertex \"" + std::to_string(i * i) + "\"");
  dataset.vertex_names = Names(names);
  dataset.class_names = Names({"red", "green", "blue, light", "unused"});
  dataset.feature_names = Names({"a", "b", "c=1", "c=2", "d"});
  dataset.category_prefixes = std::vector<std::int32_t>{-1, -1, 1, 1, -1};
  dataset.filled_cells = std::vector<std::int64_t>{1, 5, 9, 160};
  dataset.extras["truths"] = extra_array<std::uint8_t>("|b1", {2, 3}, {1, 0, 1, 0, 0, 1});
  dataset.extras["local_info"] = extra_array<std::int16_t>("<i2", {3}, {-5, 0, 7});
  dataset.extras["scalar"] = extra_array<double>("<f8", {}, {0.25});
  dataset.extras["nothing"] = extra_array<std::int64_t>("<i8", {0, 3}, {});
  dataset.edge_features = {random_matrix(dataset.graph.num_edges(), 2, 10, false),
                           Names({"length", "kind=x"}), std::vector<std::int32_t>{-1, 4}};
  dataset.edges_stored = 200;
  return dataset;
}

inline Dataset with_sparse_features_and_multi_labels() {
  Dataset dataset = graph_alone("sparse", random_graph({17, 17, 40, false, false}, 5));
  dataset.features = random_graph({17, 31, 60, true, false}, 6);
  dataset.labels = random_matrix(17, 3, 7, true);
  return dataset;
}

inline std::vector<Dataset> small_datasets() {
  std::vector<Dataset> datasets;
  datasets.push_back(with_everything());
  datasets.push_back(with_sparse_features_and_multi_labels());
  datasets.push_back(graph_alone("no_vertices", Graph()));
  datasets.push_back(graph_alone("one_vertex", random_graph({1, 1, 0, false, false}, 1)));
  datasets.push_back(graph_alone("one_loop", random_graph({1, 1, 1, true, false}, 1)));
  datasets.push_back(graph_alone("no_edges", random_graph({15, 15, 0, false, false}, 1)));
  datasets.push_back(graph_alone("rectangular", random_graph({16, 31, 70, true, true}, 8)));
  datasets.push_back(graph_alone("no_rows", random_graph({0, 4, 0, false, false}, 1)));
  Dataset narrow = graph_alone("no_features", random_graph({4, 4, 6, false, false}, 9));
  narrow.features = random_matrix(4, 0, 1, false);
  datasets.push_back(std::move(narrow));
  return datasets;
}

}  // namespace tessera::test
