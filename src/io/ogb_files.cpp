// SPDX-License-Identifier: Apache-2.0
#include "io/ogb_files.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "tessera/io/index_file.hpp"

#include "io/file.hpp"
#include "io/number_table.hpp"

namespace tessera::io {
namespace {

namespace fs = std::filesystem;

/// Whether they are numbers to predict: some have fractions.
bool has_fractions(const Matrix<float>& matrix) {
  return std::any_of(matrix.data(), matrix.data() + matrix.size(), [](float value) {
    return std::isfinite(value) && value != std::floor(value);
  });
}

Labels labels_of(std::shared_ptr<const Matrix<float>> matrix, const std::string& path) {
  if (matrix->cols() > 1) return matrix;
  Buffer<std::int64_t> classes(matrix->rows());
  for (std::int64_t i = 0; i < matrix->rows(); ++i) {
    const float value = matrix->data()[i];
    const bool missing = std::isnan(value);
    if (!missing && (value < -1 || value >= 1 << 24 || value != std::floor(value))) {
      damaged(fmt::format("{}: row {}", path, i + 1),
              fmt::format("label {} is no class number", value));
    }
    classes[i] = missing ? -1 : static_cast<std::int64_t>(value);
  }
  return ClassLabels(std::move(classes));
}

}  // namespace

std::string find_ogb_file(const std::string& folder, const std::string& name) {
  for (const char* const below : {"raw/", ""}) {
    for (const char* const ending : {".csv.gz", ".csv"}) {
      const fs::path path = fs::path(folder) / (below + name + ending);
      std::error_code ignored;
      if (fs::is_regular_file(path, ignored)) return path.string();
    }
  }
  return {};
}

void read_ogb_features(const std::string& folder, VertexId vertices, const ReadOptions& options,
                       Dataset& dataset) {
  const std::string path = find_ogb_file(folder, "node-feat");
  if (path.empty()) return;
  NumberTable table(path, options.progress);
  table.require_rows(vertices, "vertices");
  auto matrix = table.reals(MissingNumber::not_a_number);
  if (!std::all_of(matrix->data(), matrix->data() + matrix->size(),
                   [](float value) { return std::isfinite(value); })) {
    damaged(path, "holds a feature that is no finite number");
  }
  dataset.features = std::shared_ptr<const Matrix<float>>(std::move(matrix));
}

void read_ogb_labels(const std::string& folder, VertexId vertices, const ReadOptions& options,
                     Dataset& dataset) {
  const std::string path = find_ogb_file(folder, "node-label");
  if (path.empty()) return;
  NumberTable table(path, options.progress);
  table.require_rows(vertices, "vertices");
  auto matrix = table.reals(MissingNumber::not_a_number);
  if (has_fractions(*matrix)) {
    dataset.targets.matrix = std::move(matrix);
  } else {
    dataset.labels = labels_of(std::move(matrix), path);
  }
}

void read_ogb_parts(const std::string& folder, Dataset& dataset) {
  const auto part = [&](const char* name) {
    const std::string path = find_ogb_file(folder, name);
    if (path.empty()) return std::vector<std::int64_t>();
    InputFile{path};  // A file without a byte is damaged, other than a list without a line.
    return read_index_file(path);
  };
  dataset.train = part("train");
  dataset.validation = part("valid");
  dataset.test = part("test");
}

}  // namespace tessera::io
