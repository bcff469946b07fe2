// SPDX-License-Identifier: Apache-2.0
#include "tessera/train/model_input.hpp"

#include "graph/symmetry.hpp"

namespace tessera::train {
namespace {

/// The mean of every column, without the cells that were filled in. Sums go down the columns, as
/// those of a reader of tables do, so that what it filled in comes out again.
std::vector<float> column_means(const Matrix<float>& features,
                                const SharedArray<std::int64_t>& filled) {
  const auto width = static_cast<std::size_t>(features.cols());
  std::vector<double> sums(width, 0.0);
  std::vector<std::int64_t> counts(width, 0);
  std::int64_t next = 0;
  for (std::int64_t cell = 0; cell < features.size(); ++cell) {
    if (next < filled.size() && filled[next] == cell) {
      ++next;
      continue;
    }
    const auto column = static_cast<std::size_t>(cell) % width;
    sums[column] += features.data()[cell];
    ++counts[column];
  }
  std::vector<float> means(width, 0.0f);
  for (std::size_t j = 0; j < width; ++j) {
    if (counts[j] > 0) means[j] = static_cast<float>(sums[j] / static_cast<double>(counts[j]));
  }
  return means;
}

std::vector<float> column_means(const SparseFeatures& features) {
  std::vector<double> sums(static_cast<std::size_t>(features.num_cols()), 0.0);
  for (VertexId row = 0; row < features.num_rows(); ++row) {
    for (EdgeOffset e = features.row_offsets()[row]; e < features.row_offsets()[row + 1]; ++e) {
      sums[static_cast<std::size_t>(features.col_indices()[e])] += features.weight(row, e);
    }
  }
  std::vector<float> means;
  for (const double sum : sums) means.push_back(static_cast<float>(sum / features.num_rows()));
  return means;
}

}  // namespace

GraphForm form_of(const Graph& graph) {
  const detail::Symmetry symmetry = detail::symmetry_of(graph);
  return {!symmetry.of_pattern(), symmetry.loops > 0, graph.is_weighted()};
}

ModelInput input_of(const Dataset& dataset) {
  ModelInput input{dataset.feature_names, dataset.category_prefixes};
  if (input.feature_names.empty()) return input;
  if (const auto* const dense = std::get_if<DenseFeatures>(&dataset.features)) {
    input.means = column_means(**dense, dataset.filled_cells);
  } else if (const auto* const sparse = std::get_if<SparseFeatures>(&dataset.features)) {
    input.means = column_means(*sparse);
  }
  return input;
}

}  // namespace tessera::train
