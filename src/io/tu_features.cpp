// SPDX-License-Identifier: Apache-2.0
#include "io/tu_features.hpp"

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/data/feature_columns.hpp"

#include "core/listing.hpp"
#include "io/number_table.hpp"
#include "io/reading_notes.hpp"

namespace tessera::io {
namespace {

constexpr std::int64_t grain = 1 << 12;
/// More features of labels than this are kept sparse or not at all.
constexpr std::int64_t most_dense_labels = 4096;

/// A column of labels, as the place of each among the different ones.
struct LabelColumn {
  std::string name;
  std::vector<std::int64_t> values;  ///< the different ones, rising
  std::vector<std::int64_t> places;  ///< of each vertex
};

std::vector<LabelColumn> read_labels(const std::string& path, std::int64_t vertices,
                                     const char* items, const ReadOptions& options) {
  if (path.empty()) return {};
  NumberTable table(path, options.progress);
  table.require_rows(vertices, items);
  const std::vector<std::int64_t> numbers = table.integers();
  const std::int64_t width = table.num_columns();
  std::vector<LabelColumn> columns;
  for (std::int64_t j = 0; j < width; ++j) {
    LabelColumn column{width == 1 ? "label" : fmt::format("label {}", j + 1), {}, {}};
    for (std::int64_t v = 0; v < vertices; ++v) {
      column.places.push_back(numbers[static_cast<std::size_t>(v * width + j)]);
    }
    column.values = column.places;
    std::sort(column.values.begin(), column.values.end());
    column.values.erase(std::unique(column.values.begin(), column.values.end()),
                        column.values.end());
    parallel_for(vertices, grain, [&](std::int64_t v) {
      std::int64_t& place = column.places[static_cast<std::size_t>(v)];
      place = std::lower_bound(column.values.begin(), column.values.end(), place) -
              column.values.begin();
    });
    columns.push_back(std::move(column));
  }
  return columns;
}

/// What the features are called, and where those of each column of labels begin.
struct Layout {
  std::vector<std::string> names;
  std::vector<std::int32_t> prefixes;
  std::vector<std::int64_t> firsts;

  Layout(std::int64_t attributes, const std::vector<LabelColumn>& labels) {
    for (std::int64_t j = 0; j < attributes; ++j) {
      names.push_back(fmt::format("attribute {}", j + 1));
      prefixes.push_back(-1);
    }
    for (const LabelColumn& column : labels) {
      firsts.push_back(std::ssize(names));
      for (const std::int64_t value : column.values) {
        names.push_back(category_feature(column.name, fmt::to_string(value)));
        prefixes.push_back(static_cast<std::int32_t>(column.name.size()));
      }
    }
  }

  std::int64_t width() const { return std::ssize(names); }
};

/// One 1 for each vertex and column.
SparseFeatures sparse_labels(const std::vector<LabelColumn>& labels, const Layout& layout,
                             std::int64_t vertices) {
  const std::int64_t columns = std::ssize(labels);
  Buffer<EdgeOffset> offsets(vertices + 1);
  Buffer<VertexId> features(vertices * columns);
  Buffer<float> values(vertices * columns, 1.0f);
  parallel_for(vertices + 1, grain, [&](std::int64_t v) { offsets[v] = v * columns; });
  parallel_for(vertices, grain, [&](std::int64_t v) {
    for (std::size_t j = 0; j < labels.size(); ++j) {
      const std::int64_t feature = layout.firsts[j] + labels[j].places[static_cast<std::size_t>(v)];
      features[v * columns + static_cast<std::int64_t>(j)] = static_cast<VertexId>(feature);
    }
  });
  return {static_cast<VertexId>(vertices), static_cast<VertexId>(layout.width()),
          std::move(offsets), std::move(features), std::move(values)};
}

DenseFeatures beside(const Matrix<float>& attributes, const std::vector<LabelColumn>& labels,
                     const Layout& layout) {
  auto matrix = std::make_shared<Matrix<float>>(attributes.rows(), layout.width());
  parallel_for(matrix->rows(), grain, [&](std::int64_t v) {
    float* const out = matrix->row(v);
    std::copy_n(attributes.row(v), attributes.cols(), out);
    std::fill(out + attributes.cols(), out + matrix->cols(), 0.0f);
    for (std::size_t j = 0; j < labels.size(); ++j) {
      out[layout.firsts[j] + labels[j].places[static_cast<std::size_t>(v)]] = 1;
    }
  });
  return matrix;
}

std::string note_on(std::int64_t attributes, const std::vector<LabelColumn>& labels,
                    const char* items) {
  std::vector<std::string> parts;
  if (attributes > 0) parts.push_back(counted(attributes, "attribute", "attributes"));
  for (const LabelColumn& column : labels) {
    parts.push_back(fmt::format(
        "{} of column '{}'", counted(std::ssize(column.values), "value", "values"), column.name));
  }
  return fmt::format("features of {}, one each: {}", items, listed(parts));
}

}  // namespace

TuFeatures read_tu_features(const TuTables& tables, std::int64_t rows, const char* items,
                            const ReadOptions& options) {
  const std::vector<LabelColumn> columns = read_labels(tables.labels, rows, items, options);
  std::shared_ptr<Matrix<float>> numbers;
  if (!tables.attributes.empty()) {
    NumberTable table(tables.attributes, options.progress);
    table.require_rows(rows, items);
    numbers = table.reals();
  }
  const std::int64_t width = numbers == nullptr ? 0 : numbers->cols();
  const Layout layout(width, columns);
  if (layout.width() == 0) return {};
  if (numbers == nullptr && tables.may_be_sparse) {
    return {sparse_labels(columns, layout, rows), Names(layout.names), layout.prefixes,
            note_on(width, columns, items)};
  }
  if (layout.width() - width > most_dense_labels) {
    throw Error(
        ErrorCode::unsupported,
        fmt::format("holds {} different labels of {}, {} are possible{}", layout.width() - width,
                    items, most_dense_labels, tables.may_be_sparse ? " beside attributes" : ""),
        tables.labels, "take the file out of the folder, or that of the attributes");
  }
  if (numbers == nullptr) numbers = std::make_shared<Matrix<float>>(rows, 0);
  return {beside(*numbers, columns, layout), Names(layout.names),
          columns.empty() ? SharedArray<std::int32_t>() : layout.prefixes,
          note_on(width, columns, items)};
}

}  // namespace tessera::io
