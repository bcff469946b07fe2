// SPDX-License-Identifier: Apache-2.0
#include "train/feature_cells.hpp"

#include <algorithm>

namespace tessera::train {

FeatureCells::FeatureCells(const Dataset& dataset)
    : width_(dataset.num_features()),
      rows_(dataset.graph.num_rows()),
      sparse_(std::get_if<SparseFeatures>(&dataset.features)),
      filled_(dataset.filled_cells) {
  if (const auto* const dense = std::get_if<DenseFeatures>(&dataset.features))
    dense_ = dense->get();
}

void FeatureCells::read(std::int64_t vertex, Row& row) const {
  row.values.assign(static_cast<std::size_t>(width_), 0.0f);
  row.missing.assign(static_cast<std::size_t>(width_), 0);
  if (dense_ != nullptr) {
    std::copy_n(dense_->row(vertex), width_, row.values.begin());
    const auto* cell = std::lower_bound(filled_.begin(), filled_.end(), vertex * width_);
    for (; cell != filled_.end() && *cell < (vertex + 1) * width_; ++cell) {
      row.missing[static_cast<std::size_t>(*cell % width_)] = 1;
    }
  } else if (sparse_ != nullptr) {
    const auto v = static_cast<VertexId>(vertex);
    for (EdgeOffset e = sparse_->row_offsets()[v]; e < sparse_->row_offsets()[v + 1]; ++e) {
      row.values[static_cast<std::size_t>(sparse_->col_indices()[e])] = sparse_->weight(v, e);
    }
  }
}

std::set<float> FeatureCells::different(std::int64_t feature) const {
  std::set<float> values;
  for (std::int64_t vertex = 0; vertex < rows_; ++vertex) {
    const bool missing =
        std::binary_search(filled_.begin(), filled_.end(), vertex * width_ + feature);
    if (!missing) values.insert(value(vertex, feature));
  }
  return values;
}

bool FeatureCells::any(std::int64_t feature) const {
  const std::set<float> values = different(feature);
  return std::any_of(values.begin(), values.end(), [](float value) { return value != 0; });
}

float FeatureCells::value(std::int64_t vertex, std::int64_t feature) const {
  if (dense_ != nullptr) return dense_->row(vertex)[feature];
  const auto v = static_cast<VertexId>(vertex);
  const auto columns = sparse_->neighbours(v);
  const auto place = std::lower_bound(columns.begin(), columns.end(), feature);
  if (place == columns.end() || *place != feature) return 0;
  return sparse_->weight(v, sparse_->row_offsets()[v] + (place - columns.begin()));
}

}  // namespace tessera::train
