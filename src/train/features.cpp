// SPDX-License-Identifier: Apache-2.0
#include "train/features.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"
#include "tessera/graph/transform.hpp"
#include "tessera/ops/rounding.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t grain = 1 << 10;

const Matrix<float>* dense_of(const Features& features) {
  const auto* const dense = std::get_if<DenseFeatures>(&features);
  return dense == nullptr ? nullptr : dense->get();
}

std::span<const float> row_of(MatrixView<const float> matrix, std::int64_t row) {
  return {matrix.row(row), static_cast<std::size_t>(matrix.cols)};
}

std::span<const float> row_of(const Graph& sparse, std::int64_t row) {
  if (!sparse.has_values()) return {};
  const EdgeOffset begin = sparse.row_offsets()[row];
  return {sparse.values().data() + begin,
          static_cast<std::size_t>(sparse.row_offsets()[row + 1] - begin)};
}

/// Calls `visit(row, values)` for the stored values of every row, on all threads.
template <class Visit>
void for_each_row(const Features& features, Visit&& visit) {
  if (const Matrix<float>* dense = dense_of(features)) {
    parallel_for(dense->rows(), grain, [&](std::int64_t row) { visit(row, row_of(*dense, row)); });
  } else if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    parallel_for(sparse->num_rows(), grain,
                 [&](std::int64_t row) { visit(row, row_of(*sparse, row)); });
  }
}

/// What a row's values are multiplied by.
float row_factor(std::span<const float> values) {
  double sum = 0;
  for (const float value : values) sum += std::abs(static_cast<double>(value));
  return sum > 0 ? static_cast<float>(1 / sum) : 1.0f;
}

Features normalised_dense(const Matrix<float>& from) {
  auto to = std::make_shared<Matrix<float>>(from.rows(), from.cols());
  row_normalise(from, *to);
  return DenseFeatures(std::move(to));
}

void require_finite_row(std::int64_t row, std::span<const float> values) {
  const auto wrong =
      std::find_if(values.begin(), values.end(), [](float value) { return !std::isfinite(value); });
  if (wrong == values.end()) return;
  throw Error(ErrorCode::bad_data, fmt::format("vertex {} has a feature of {}", row, *wrong),
              "features", "replace what is infinite or not a number");
}

Features normalised_sparse(const Graph& from) {
  Buffer<float> values(from.num_edges());
  parallel_for(from.num_rows(), grain, [&](std::int64_t row) {
    const EdgeOffset begin = from.row_offsets()[row];
    const EdgeOffset end = from.row_offsets()[row + 1];
    const float factor = from.has_values()
                             ? row_factor(row_of(from, row))
                             : 1.0f / static_cast<float>(std::max<EdgeOffset>(end - begin, 1));
    for (EdgeOffset k = begin; k < end; ++k) {
      values[k] = factor * (from.has_values() ? from.values()[k] : 1.0f);
    }
  });
  return from.with_values(std::move(values));
}

Features taken_dense(const Matrix<float>& from, std::span<const VertexId> vertices) {
  auto to = std::make_shared<Matrix<float>>(std::ssize(vertices), from.cols());
  parallel_for(to->rows(), grain, [&](std::int64_t i) {
    const auto values = row_of(from, vertices[static_cast<std::size_t>(i)]);
    std::copy(values.begin(), values.end(), to->row(i));
  });
  return DenseFeatures(std::move(to));
}

}  // namespace

void require_finite(const Features& features) { for_each_row(features, require_finite_row); }

void require_finite(MatrixView<const float> features) {
  parallel_for(features.rows, grain,
               [&](std::int64_t row) { require_finite_row(row, row_of(features, row)); });
}

bool any_negative(const Features& features) {
  std::atomic<bool> found{false};
  for_each_row(features, [&](std::int64_t, std::span<const float> values) {
    if (std::any_of(values.begin(), values.end(), [](float value) { return value < 0; })) {
      found.store(true, std::memory_order_relaxed);
    }
  });
  return found.load();
}

Features row_normalised(const Features& features) {
  if (const Matrix<float>* dense = dense_of(features)) return normalised_dense(*dense);
  if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    return normalised_sparse(*sparse);
  }
  return features;
}

void round_features(MatrixView<const float> from, int bits, std::vector<float>& reach,
                    MatrixView<float> to) {
  constexpr auto whole = ops::RoundingRange::matrix;
  const bool given = !reach.empty();
  reach.resize(2);
  const MatrixView<float> range(reach.data(), 1, 2);
  if (given) {
    ops::round_within(from, bits, whole, range, to);
  } else {
    ops::round_to_codes(from, bits, whole, range, to);
  }
}

Features rounded(const Features& features, int bits, std::vector<float>& reach) {
  if (const Matrix<float>* dense = dense_of(features)) {
    auto to = std::make_shared<Matrix<float>>(dense->rows(), dense->cols());
    round_features(*dense, bits, reach, *to);
    return DenseFeatures(std::move(to));
  }
  const auto* sparse = std::get_if<SparseFeatures>(&features);
  if (sparse == nullptr) return features;
  if (!sparse->has_values()) {
    if (reach.empty()) reach = {1, 0};
    // Ones have a code of their own in their own range.
    if (reach == std::vector<float>{1, 0}) return features;
  }
  Buffer<float> values(sparse->num_edges());
  if (sparse->has_values()) {
    std::copy_n(sparse->values().data(), values.size(), values.data());
  } else {
    std::fill_n(values.data(), values.size(), 1.0f);
  }
  const MatrixView<float> numbers(values.data(), values.size(), 1);
  round_features(numbers, bits, reach, numbers);
  return sparse->with_values(std::move(values));
}

void row_normalise(MatrixView<const float> from, MatrixView<float> to) {
  parallel_for(from.rows, grain, [&](std::int64_t row) {
    const auto values = row_of(from, row);
    const float factor = row_factor(values);
    std::transform(values.begin(), values.end(), to.row(row),
                   [factor](float value) { return value * factor; });
  });
}

Features one_hot(std::span<const std::int64_t> columns, std::int64_t width) {
  const std::int64_t rows = std::ssize(columns);
  Buffer<EdgeOffset> offsets(rows + 1);
  offsets[0] = 0;
  std::vector<VertexId> cols;
  for (std::int64_t i = 0; i < rows; ++i) {
    const std::int64_t column = columns[static_cast<std::size_t>(i)];
    if (column >= 0) cols.push_back(static_cast<VertexId>(column));
    offsets[i + 1] = std::ssize(cols);
  }
  std::vector<float> values(cols.size(), 1.0f);
  return Graph(static_cast<VertexId>(rows), static_cast<VertexId>(width), std::move(offsets),
               std::move(cols), std::move(values));
}

Features take_rows(const Features& features, std::span<const VertexId> vertices) {
  if (const Matrix<float>* dense = dense_of(features)) return taken_dense(*dense, vertices);
  if (const auto* sparse = std::get_if<SparseFeatures>(&features)) {
    return selected_rows(*sparse, vertices);
  }
  return features;
}

}  // namespace tessera::train
