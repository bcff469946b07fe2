// SPDX-License-Identifier: Apache-2.0
#include "labels_needed.hpp"

#include <algorithm>
#include <cmath>
#include <set>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/data/feature_columns.hpp"
#include "tessera/train/problem.hpp"

namespace tessera::app {
namespace {

/// Columns with more different values are hardly classes.
constexpr std::size_t most_classes = 20;
constexpr std::size_t most_shown = 6;

/// How many different whole numbers a feature has; 0 where it has others, or too many.
std::size_t count_whole(const Dataset& dataset, const Matrix<float>& features, std::int64_t j) {
  std::set<float> values;
  for (std::int64_t row = 0; row < features.rows(); ++row) {
    const std::int64_t cell = row * features.cols() + j;
    const auto& filled = dataset.filled_cells;
    if (std::binary_search(filled.begin(), filled.end(), cell)) continue;
    const float value = features.row(row)[j];
    if (value != std::floor(value)) return 0;
    values.insert(value);
    if (values.size() > most_classes) return 0;
  }
  return values.size();
}

/// "'churn' (2 values)" for every column that could be the label.
std::vector<std::string> possible_labels(const Dataset& dataset) {
  const auto* const features = std::get_if<DenseFeatures>(&dataset.features);
  std::vector<std::string> found;
  if (features == nullptr || dataset.feature_names.empty()) return found;
  for (const FeatureColumn& column :
       feature_columns(dataset.feature_names, dataset.category_prefixes)) {
    const std::size_t values = column.has_categories()
                                   ? column.categories.size()
                                   : count_whole(dataset, **features, column.first);
    if (values < 2 || values > most_classes) continue;
    if (found.size() == most_shown) {
      found.emplace_back("others");
      break;
    }
    found.push_back(fmt::format("'{}' ({} values)", column.name, values));
  }
  return found;
}

std::string how_to_get_labels(const DataOptions& data, const Dataset& dataset) {
  const std::vector<std::string> columns = possible_labels(dataset);
  const std::string possible = columns.empty()
                                   ? std::string(", a column of classes")
                                   : fmt::format("; it could be {}", fmt::join(columns, ", "));
  if (!data.tables.nodes.empty()) return "name their column with --label COLUMN" + possible;
  if (!dataset.feature_names.empty()) {
    return "convert its tables again with --label COLUMN" + possible;
  }
  return "give a table of the vertices (--nodes FILE --label COLUMN), an array y in an .npz, or y "
         "to tessera.save in Python";
}

}  // namespace

void require_labels(const DataOptions& data, const std::string& task, const Dataset& dataset) {
  const train::Task learned = train::parse_task(task);
  if (learned == train::Task::links || train::is_graph_task(dataset, learned) ||
      !dataset.targets.empty() || !std::holds_alternative<std::monostate>(dataset.labels)) {
    return;
  }
  throw Error(ErrorCode::invalid_argument, "has no labels to learn from",
              data.tables.nodes.empty() ? data.source : data.tables.nodes,
              how_to_get_labels(data, dataset));
}

}  // namespace tessera::app
