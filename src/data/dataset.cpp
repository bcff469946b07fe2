// SPDX-License-Identifier: Apache-2.0
#include "tessera/data/dataset.hpp"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <ostream>
#include <type_traits>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/classes.hpp"
#include "tessera/data/feature_columns.hpp"

#include "graph/requirements.hpp"

namespace tessera {
namespace {

constexpr std::int64_t grain = 1 << 16;

template <class Integer>
std::int64_t highest(const SharedArray<Integer>& values) {
  const auto larger = [](std::int64_t a, std::int64_t b) { return std::max(a, b); };
  return parallel_reduce(
      values.size(), grain, std::int64_t{-1},
      [&](std::int64_t begin, std::int64_t end) {
        return std::int64_t{*std::max_element(values.begin() + begin, values.begin() + end)};
      },
      larger);
}

/// The position of the first value outside [lowest, end_value), or -1.
template <class Integer>
std::int64_t first_outside(const SharedArray<Integer>& values, std::int64_t lowest,
                           std::int64_t end_value) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  const std::int64_t first = parallel_reduce(
      values.size(), grain, none,
      [&](std::int64_t begin, std::int64_t end) {
        const auto* const found =
            std::find_if(values.begin() + begin, values.begin() + end,
                         [&](Integer value) { return value < lowest || value >= end_value; });
        return found == values.begin() + end ? none : found - values.begin();
      },
      [](std::int64_t a, std::int64_t b) { return std::min(a, b); });
  return first == none ? -1 : first;
}

[[noreturn]] void reject(const std::string& part, const std::string& problem,
                         const std::string& fix) {
  throw Error(ErrorCode::bad_data, problem, part, fix);
}

void require_size(const std::string& part, std::int64_t size, std::int64_t vertices) {
  if (size != vertices) {
    reject(part, fmt::format("{} rows for {} vertices", size, vertices),
           "give one row for each vertex");
  }
}

void validate_features(const Features& features, std::int64_t vertices) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    if (*dense == nullptr)
      reject("features", "dense features without a matrix", "leave them empty");
    require_size("features", (*dense)->rows(), vertices);
  } else if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    sparse->validate();
    require_size("features", sparse->num_rows(), vertices);
  }
}

void validate_class_labels(const ClassLabels& labels, std::int64_t vertices) {
  require_size("labels", labels.size(), vertices);
  // Class numbers size the last layer of a model: a wild one must not pass.
  const std::int64_t wrong = first_outside(labels, -1, std::numeric_limits<std::int32_t>::max());
  if (wrong >= 0) {
    reject("labels",
           fmt::format("label {} of vertex {} is no class number (>= 0, or -1 for none)",
                       labels[wrong], wrong),
           "number the classes from 0");
  }
}

void validate_multi_labels(const MultiLabels& labels, std::int64_t vertices) {
  if (labels == nullptr) reject("labels", "multi-label without a matrix", "leave them empty");
  require_size("labels", labels->rows(), vertices);
  parallel_ranges(labels->size(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      const float value = labels->data()[i];
      if (value != 0.0F && value != 1.0F) {
        reject("labels",
               fmt::format("multi-label {} of vertex {} is neither 0 nor 1", value,
                           i / labels->cols()),
               "give 1 for each label that a vertex has, and 0 for the others");
      }
    }
  });
}

/// Names are there for all or for none. Classes without a vertex may have names, too.
void validate_names(const Dataset& dataset) {
  const auto require = [](const char* part, const Names& names, std::int64_t count, bool fits) {
    if (names.empty() || fits) return;
    reject(part, fmt::format("{} names for {}", names.size(), count),
           "give names to all of them, or to none");
  };
  const std::int64_t vertices = dataset.graph.num_rows();
  const std::int64_t classes = dataset.graph_class_names().empty()
                                   ? dataset.num_classes()
                                   : highest(dataset.graph_labels) + 1;
  const std::int64_t features = dataset.num_features();
  require("vertex names", dataset.vertex_names, vertices, dataset.vertex_names.size() == vertices);
  require("class names", dataset.class_names, classes, dataset.class_names.size() >= classes);
  require("feature names", dataset.feature_names, features,
          dataset.feature_names.size() == features);
  validate_feature_columns(dataset.feature_names, dataset.category_prefixes);
}

void validate_edge_features(const Dataset& dataset) {
  const EdgeFeatures& features = dataset.edge_features;
  const char* const part = "edge_attr";
  if (features.matrix == nullptr) {
    if (!features.names.empty())
      reject(part, "names of features that edges do not have", "drop them");
    return;
  }
  const Matrix<float>& matrix = *features.matrix;
  if (matrix.rows() != dataset.graph.num_edges()) {
    reject(part, fmt::format("{} rows for {} edges", matrix.rows(), dataset.graph.num_edges()),
           "give one row for each edge");
  }
  parallel_ranges(matrix.size(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (std::isfinite(matrix.data()[i])) continue;
      reject(part,
             fmt::format("feature {} of edge {} is {}", i % matrix.cols(), i / matrix.cols(),
                         matrix.data()[i]),
             "give finite features");
    }
  });
  if (!features.names.empty() && features.names.size() != matrix.cols()) {
    reject(part, fmt::format("{} names for {} features", features.names.size(), matrix.cols()),
           "give names to all of them, or to none");
  }
  validate_feature_columns(features.names, features.category_prefixes);
}

void validate_targets(const Targets& targets, const char* part, const char* item,
                      std::int64_t items) {
  if (targets.empty()) {
    if (!targets.names.empty()) reject(part, "names of numbers that are not there", "drop them");
    return;
  }
  const Matrix<float>& matrix = *targets.matrix;
  if (matrix.rows() != items || matrix.cols() == 0) {
    reject(part,
           fmt::format("{} x {} numbers for {} {}", matrix.rows(), matrix.cols(), items, item),
           "give one row for each, of one number at least");
  }
  parallel_ranges(matrix.size(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t i = begin; i < end; ++i) {
      if (!std::isinf(matrix.data()[i])) continue;
      reject(part,
             fmt::format("number {} of row {} is {}", i % matrix.cols(), i / matrix.cols(),
                         matrix.data()[i]),
             "give finite numbers, and not-a-number where one is missing");
    }
  });
  if (!targets.names.empty() && targets.names.size() != matrix.cols()) {
    reject(part, fmt::format("{} names for {} columns", targets.names.size(), matrix.cols()),
           "give names to all of them, or to none");
  }
}

void validate_filled_cells(const Dataset& dataset) {
  const SharedArray<std::int64_t>& cells = dataset.filled_cells;
  if (cells.empty()) return;
  const char* const fix = "give vertex * features + feature of dense features, rising";
  if (!std::holds_alternative<DenseFeatures>(dataset.features)) {
    reject("filled_cells", "cells of features that are not dense", fix);
  }
  const bool rising =
      std::adjacent_find(cells.begin(), cells.end(), std::greater_equal<>()) == cells.end();
  const std::int64_t count = std::get<DenseFeatures>(dataset.features)->size();
  if (!rising || cells[0] < 0 || cells.back() >= count) {
    reject("filled_cells", fmt::format("do not rise within the {} numbers of the features", count),
           fix);
  }
}

struct SplitPart {
  const char* name;
  const SharedArray<std::int64_t>& vertices;
};

/// Every vertex is in at most one part, and there once: a test on what was trained on says nothing.
void validate_split(const std::vector<SplitPart>& parts, std::int64_t vertices) {
  constexpr std::uint8_t in_none = 0;
  const char* const one_part = "put every vertex into one part at most, once";
  std::vector<std::uint8_t> part_of;
  for (std::size_t p = 0; p < parts.size(); ++p) {
    const auto& [name, members] = parts[p];
    const std::int64_t wrong = first_outside(members, 0, vertices);
    if (wrong >= 0) {
      reject(name, fmt::format("vertex {} is not one of the {} vertices", members[wrong], vertices),
             "count vertices from 0");
    }
    if (!members.empty()) part_of.resize(static_cast<std::size_t>(vertices), in_none);
    for (const std::int64_t vertex : members) {
      std::uint8_t& mark = part_of[static_cast<std::size_t>(vertex)];
      if (mark == p + 1) {
        reject(name, fmt::format("vertex {} occurs more than once", vertex), one_part);
      }
      if (mark != in_none) {
        reject(name,
               fmt::format("vertex {} is in the part for {}, too", vertex, parts[mark - 1u].name),
               one_part);
      }
      mark = static_cast<std::uint8_t>(p + 1);
    }
  }
}

void validate_splits(const Dataset& dataset, std::int64_t vertices) {
  const auto validate_one = [&](const VertexSplit& split) {
    validate_split({{"train", split.train}, {"validation", split.validation}, {"test", split.test}},
                   vertices);
  };
  const VertexSplit first{dataset.train, dataset.validation, dataset.test};
  validate_one(first);
  for (const VertexSplit& split : dataset.splits) validate_one(split);
  if (!dataset.splits.empty() && dataset.splits.front() != first) {
    reject("splits", "the first of several splits is not train, validation and test",
           "make them the same, or leave out the others");
  }
}

/// Graphs of a union do not touch: they are pooled, batched and judged one by one.
void validate_union_edges(const Dataset& dataset) {
  const Graph& graph = dataset.graph;
  if (!graph.is_square()) return;
  const SharedArray<std::int32_t>& ids = dataset.graph_ids;
  parallel_ranges(graph.num_rows(), grain, [&](std::int64_t begin, std::int64_t end) {
    for (std::int64_t row = begin; row < end; ++row) {
      for (EdgeOffset e = graph.row_offsets()[row]; e < graph.row_offsets()[row + 1]; ++e) {
        const VertexId source = graph.col_indices()[e];
        if (ids[source] == ids[row]) continue;
        reject("graph_ids",
               fmt::format("an edge leads from vertex {} of graph {} to vertex {} of "
                           "graph {}",
                           source, ids[source], row, ids[row]),
               "give vertices that edges connect the same graph");
      }
    }
  });
}

void validate_union(const Dataset& dataset, std::int64_t vertices) {
  if (dataset.graph_ids.empty()) {
    const bool says_graphs = !dataset.graph_labels.empty() || !dataset.graph_targets.empty();
    if (says_graphs && vertices > 0) {
      reject(dataset.graph_labels.empty() ? "graph_targets" : "graph_labels",
             "labels of graphs without graph ids",
             "say which graph each vertex belongs to (graph_ids)");
    }
    return;
  }
  require_size("graph_ids", dataset.graph_ids.size(), vertices);
  // Without labels the ids alone say how many graphs there are, and none of them is empty.
  const bool says_graphs = !dataset.graph_labels.empty() || !dataset.graph_targets.empty();
  const std::int64_t graphs = says_graphs ? dataset.num_graphs() : vertices;
  const std::int64_t wrong = first_outside(dataset.graph_ids, 0, graphs);
  if (wrong >= 0) {
    reject("graph_ids",
           fmt::format("vertex {} belongs to graph {}, but there are at most {}", wrong,
                       dataset.graph_ids[wrong], graphs),
           "number graphs from 0, and give each of them a label");
  }
  validate_union_edges(dataset);
}

template <class T>
bool same_matrix(const std::shared_ptr<const Matrix<T>>& a,
                 const std::shared_ptr<const Matrix<T>>& b) {
  if (a == b) return true;
  return a != nullptr && b != nullptr && a->rows() == b->rows() && a->cols() == b->cols() &&
         std::equal(a->data(), a->data() + a->size(), b->data());
}

/// Matrices are compared by their elements, everything else by its own ==.
template <class Variant>
bool same_content(const Variant& a, const Variant& b) {
  if (a.index() != b.index()) return false;
  return std::visit(
      [&](const auto& left) {
        using Part = std::decay_t<decltype(left)>;
        const Part& right = std::get<Part>(b);
        if constexpr (std::is_same_v<Part, std::shared_ptr<const Matrix<float>>>) {
          return same_matrix(left, right);
        } else {
          return left == right;
        }
      },
      a);
}

void require_finite_weights(const Graph& graph) {
  const char* const fix = "give every edge and vertex a finite weight, or use --nonfinite allow";
  detail::require_finite(graph.values().span(), "values", "graph", fix);
  detail::require_finite(graph.row_scale().span(), "row_scale", "graph", fix);
  detail::require_finite(graph.col_scale().span(), "col_scale", "graph", fix);
}

}  // namespace

std::int64_t Dataset::num_features() const {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    return *dense == nullptr ? 0 : (*dense)->cols();
  }
  if (const auto* sparse = std::get_if<SparseFeatures>(&features)) return sparse->num_cols();
  return 0;
}

std::int64_t Dataset::num_classes() const {
  if (const auto* classes = std::get_if<ClassLabels>(&labels)) return highest(*classes) + 1;
  if (const auto* multi = std::get_if<MultiLabels>(&labels)) {
    return *multi == nullptr ? 0 : (*multi)->cols();
  }
  return 0;
}

std::int64_t Dataset::num_graphs() const {
  if (!graph_labels.empty()) return graph_labels.size();
  if (!graph_targets.empty()) return graph_targets.matrix->rows();
  return graph_ids.empty() ? 1 : highest(graph_ids) + 1;
}

Names Dataset::graph_class_names() const {
  const bool unlabelled = std::holds_alternative<std::monostate>(labels);
  return unlabelled && !graph_labels.empty() ? class_names : Names();
}

void Dataset::validate(Nonfinite weights) const {
  graph.validate();
  if (weights == Nonfinite::reject) require_finite_weights(graph);
  const std::int64_t vertices = graph.num_rows();
  validate_features(features, vertices);
  if (const auto* classes = std::get_if<ClassLabels>(&labels)) {
    validate_class_labels(*classes, vertices);
  } else if (const auto* multi = std::get_if<MultiLabels>(&labels)) {
    validate_multi_labels(*multi, vertices);
  }
  validate_splits(*this, vertices);
  validate_union(*this, vertices);
  validate_names(*this);
  validate_filled_cells(*this);
  validate_edge_features(*this);
  validate_targets(targets, "targets", "vertices", vertices);
  validate_targets(graph_targets, "graph_targets", "graphs", num_graphs());
}

std::string target_name(const Names& names, std::int64_t count, std::int64_t column) {
  if (!names.empty()) return std::string(names[column]);
  return count == 1 ? "value" : fmt::format("value_{}", column);
}

bool Targets::has_any(std::int64_t row) const {
  const float* const first = matrix->row(row);
  return std::any_of(first, first + matrix->cols(), [](float value) { return !std::isnan(value); });
}

bool operator==(const Targets& a, const Targets& b) {
  if (a.empty() || b.empty()) return a.empty() == b.empty() && a.names == b.names;
  const auto same = [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); };
  return a.names == b.names && a.matrix->rows() == b.matrix->rows() &&
         a.matrix->cols() == b.matrix->cols() &&
         std::equal(a.matrix->data(), a.matrix->data() + a.matrix->size(), b.matrix->data(), same);
}

bool operator==(const EdgeFeatures& a, const EdgeFeatures& b) {
  return same_matrix(a.matrix, b.matrix) && a.names == b.names &&
         a.category_prefixes == b.category_prefixes;
}

bool operator==(const Dataset& a, const Dataset& b) {
  return a.graph == b.graph && same_content(a.features, b.features) &&
         same_content(a.labels, b.labels) && a.train == b.train && a.validation == b.validation &&
         a.test == b.test && a.splits == b.splits && a.graph_ids == b.graph_ids &&
         a.graph_labels == b.graph_labels && a.vertex_names == b.vertex_names &&
         a.class_names == b.class_names && a.feature_names == b.feature_names &&
         a.category_prefixes == b.category_prefixes && a.filled_cells == b.filled_cells &&
         a.extras == b.extras && a.edge_features == b.edge_features && a.targets == b.targets &&
         a.graph_targets == b.graph_targets;
}

std::ostream& operator<<(std::ostream& out, const Dataset& dataset) {
  out << (dataset.name.empty() ? "data set" : dataset.name) << ": " << dataset.graph;
  if (dataset.num_features() > 0) {
    const bool dense = std::holds_alternative<DenseFeatures>(dataset.features);
    out << ", " << dataset.num_features() << (dense ? " dense" : " sparse") << " features";
  }
  if (const std::int64_t features = dataset.edge_features.count(); features > 0) {
    out << ", " << features << " features of edges";
  }
  const auto* const labels = std::get_if<ClassLabels>(&dataset.labels);
  const std::int64_t classes =
      labels == nullptr ? dataset.num_classes() : std::ssize(class_values(labels->span()));
  if (classes > 0) {
    out << ", " << classes << " classes" << (dataset.is_multi_label() ? " (multi-label)" : "");
  }
  for (const Targets* targets : {&dataset.targets, &dataset.graph_targets}) {
    if (!targets->empty()) out << ", " << targets->count() << " numbers to predict";
  }
  if (!dataset.train.empty() || !dataset.validation.empty() || !dataset.test.empty()) {
    out << ", split " << dataset.train.size() << " / " << dataset.validation.size() << " / "
        << dataset.test.size();
    if (!dataset.splits.empty()) out << ", the first of " << dataset.splits.size();
  }
  if (dataset.num_graphs() > 1) out << ", " << dataset.num_graphs() << " graphs";
  return out;
}

}  // namespace tessera
