// SPDX-License-Identifier: Apache-2.0
#include "describe.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "numbers.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/core/printable.hpp"
#include "tessera/data/classes.hpp"

namespace tessera::app {
namespace {

template <class T>
std::int64_t bytes_of(const SharedArray<T>& array) {
  return array.size() * static_cast<std::int64_t>(sizeof(T));
}

std::int64_t bytes_of(const Graph& graph) {
  return bytes_of(graph.row_offsets()) + bytes_of(graph.col_indices()) + bytes_of(graph.values()) +
         bytes_of(graph.row_scale()) + bytes_of(graph.col_scale()) + bytes_of(graph.edge_ids());
}

std::int64_t bytes_of(const Matrix<float>& matrix) {
  return matrix.size() * static_cast<std::int64_t>(sizeof(float));
}

template <class Predicate>
std::int64_t count_where(std::int64_t count, Predicate&& holds) {
  return parallel_reduce(
      count, std::int64_t{1} << 16, std::int64_t{0},
      [&](std::int64_t begin, std::int64_t end) {
        std::int64_t found = 0;
        for (std::int64_t i = begin; i < end; ++i) found += holds(i) ? 1 : 0;
        return found;
      },
      [](std::int64_t a, std::int64_t b) { return a + b; });
}

void add_features(const Features& features, DatasetSummary& summary) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    const float* const values = (*dense)->data();
    summary.feature_kind = "dense";
    summary.feature_nonzeros =
        count_where((*dense)->size(), [&](std::int64_t i) { return values[i] != 0; });
    summary.memory_bytes += bytes_of(**dense);
  } else if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    summary.feature_kind = "sparse";
    summary.feature_nonzeros = sparse->num_edges();
    summary.memory_bytes += bytes_of(*sparse);
  }
}

void add_labels(const Labels& labels, DatasetSummary& summary) {
  if (const auto* classes = std::get_if<ClassLabels>(&labels)) {
    const std::vector<std::int64_t> values = class_values(classes->span());
    summary.classes = std::ssize(values);
    summary.labelled = count_where(
        classes->size(), [&](std::int64_t i) { return class_of((*classes)[i], values) >= 0; });
    summary.memory_bytes += bytes_of(*classes);
  } else if (const auto* several = std::get_if<MultiLabels>(&labels)) {
    const Matrix<float>& matrix = **several;
    summary.classes = matrix.cols();
    summary.labelled = count_where(matrix.rows(), [&](std::int64_t i) {
      return std::any_of(matrix.row(i), matrix.row(i) + matrix.cols(),
                         [](float label) { return label != 0; });
    });
    summary.memory_bytes += bytes_of(matrix);
  }
}

}  // namespace

DatasetSummary summarise(const Dataset& dataset) {
  DatasetSummary summary;
  summary.memory_bytes = bytes_of(dataset.graph) + bytes_of(dataset.train) +
                         bytes_of(dataset.validation) + bytes_of(dataset.test) +
                         bytes_of(dataset.graph_ids) + bytes_of(dataset.graph_labels);
  for (const VertexSplit& split : dataset.splits) {
    summary.memory_bytes +=
        bytes_of(split.train) + bytes_of(split.validation) + bytes_of(split.test);
  }
  for (const auto& [name, extra] : dataset.extras) summary.memory_bytes += bytes_of(extra.bytes);
  summary.graph_classes = std::ssize(class_values(dataset.graph_labels.span()));
  if (dataset.edge_features.matrix != nullptr) {
    summary.memory_bytes += bytes_of(*dataset.edge_features.matrix);
  }
  for (const Targets* targets : {&dataset.targets, &dataset.graph_targets}) {
    if (!targets->empty()) summary.memory_bytes += bytes_of(*targets->matrix);
  }
  add_features(dataset.features, summary);
  add_labels(dataset.labels, summary);
  return summary;
}

Json brief_json(const Dataset& dataset) {
  return {{"name", dataset.name},
          {"vertices", dataset.graph.num_rows()},
          {"columns", dataset.graph.num_cols()},
          {"edges", dataset.graph.num_edges()},
          {"features", dataset.num_features()}};
}

std::string headline(const Dataset& dataset) {
  const Graph& graph = dataset.graph;
  const std::string shape = graph.is_square()
                                ? fmt::format("{} vertices", grouped(graph.num_rows()))
                                : fmt::format("{} rows, {} columns", grouped(graph.num_rows()),
                                              grouped(graph.num_cols()));
  return fmt::format("{}: {}, {} edges", printable(dataset.name), shape,
                     grouped(graph.num_edges()));
}

}  // namespace tessera::app
