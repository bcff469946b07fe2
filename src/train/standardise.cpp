// SPDX-License-Identifier: Apache-2.0
#include "train/standardise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "tessera/core/error.hpp"
#include "tessera/core/parallel.hpp"

namespace tessera::train {
namespace {

constexpr std::int64_t grain = 1 << 10;

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// What is known of the numbers that a column stores.
struct Column {
  double sum = 0;
  double squares = 0;  ///< of distances from the mean
  float low = std::numeric_limits<float>::infinity();
  float high = -std::numeric_limits<float>::infinity();
  std::int64_t count = 0;

  void add(const Column& other) {
    sum += other.sum;
    squares += other.squares;
    low = std::min(low, other.low);
    high = std::max(high, other.high);
    count += other.count;
  }
};

/// Rows of numbers with the columns they belong to: dense ones, and those of sparse features.
class DenseRows {
 public:
  explicit DenseRows(MatrixView<const float> matrix) : matrix_(matrix) {}
  std::int64_t rows() const { return matrix_.rows; }
  std::int64_t cols() const { return matrix_.cols; }
  template <class Visit>
  void visit(std::int64_t row, Visit&& visit) const {
    const float* const values = matrix_.row(row);
    for (std::int64_t col = 0; col < matrix_.cols; ++col) visit(col, values[col]);
  }

 private:
  MatrixView<const float> matrix_;
};

class SparseRows {
 public:
  explicit SparseRows(const Graph& graph) : graph_(graph) {}
  std::int64_t rows() const { return graph_.num_rows(); }
  std::int64_t cols() const { return graph_.num_cols(); }
  template <class Visit>
  void visit(std::int64_t row, Visit&& visit) const {
    for (EdgeOffset k = graph_.row_offsets()[row]; k < graph_.row_offsets()[row + 1]; ++k) {
      visit(graph_.col_indices()[k], graph_.has_values() ? graph_.values()[k] : 1.0f);
    }
  }

 private:
  const Graph& graph_;
};

/// `update(column, col, value)` for every stored number. Rows are cut into at most 16 ranges, which
/// depend on their number alone, so that sums have the same bits for any number of threads.
template <class Rows, class Update>
std::vector<Column> over_columns(const Rows& rows, Update&& update) {
  const std::int64_t range = std::max<std::int64_t>(grain, (rows.rows() + 15) / 16);
  std::vector<std::vector<Column>> parts(at((rows.rows() + range - 1) / range));
  parallel_ranges(rows.rows(), range, [&](std::int64_t begin, std::int64_t end) {
    std::vector<Column>& part = parts[at(begin / range)];
    part.resize(at(rows.cols()));
    for (std::int64_t row = begin; row < end; ++row) {
      rows.visit(row, [&](std::int64_t col, float value) { update(part[at(col)], col, value); });
    }
  });
  std::vector<Column> all(at(rows.cols()));
  for (const std::vector<Column>& part : parts) {
    for (std::size_t col = 0; col < all.size(); ++col) all[col].add(part[col]);
  }
  return all;
}

/// Numbers that are not stored are 0.
template <class Rows>
Normalisation standard_of(const Rows& rows) {
  const auto total = static_cast<double>(rows.rows());
  std::vector<Column> columns = over_columns(rows, [](Column& column, std::int64_t, float value) {
    column.sum += static_cast<double>(value);
    column.low = std::min(column.low, value);
    column.high = std::max(column.high, value);
    ++column.count;
  });
  Normalisation result{Normalise::standard, std::vector<double>(columns.size(), 0.0),
                       std::vector<double>(columns.size(), 1.0)};
  for (std::size_t col = 0; col < columns.size(); ++col) {
    if (rows.rows() > 0) result.means[col] = columns[col].sum / total;
  }
  const std::vector<Column> distances =
      over_columns(rows, [&](Column& column, std::int64_t col, float value) {
        const double distance = static_cast<double>(value) - result.means[at(col)];
        column.squares += distance * distance;
      });
  for (std::size_t col = 0; col < columns.size(); ++col) {
    Column& column = columns[col];
    const std::int64_t zeros = rows.rows() - column.count;
    if (zeros > 0) column.add({0, 0, 0.0f, 0.0f, 0});
    if (!(column.low < column.high)) continue;
    const double mean = result.means[col];
    const double squares = distances[col].squares + static_cast<double>(zeros) * mean * mean;
    result.factors[col] = 1 / std::sqrt(squares / total);
  }
  return result;
}

/// Whose feature a number is.
struct Cell {
  const char* of;
  std::int64_t row, col;
};

[[noreturn]] void reject(const Cell& cell, float value, double mean) {
  throw Error(ErrorCode::bad_data,
              fmt::format("{} {}: feature {} is {}, too far from the mean {} to be scaled", cell.of,
                          cell.row, cell.col, value, mean),
              "features", "use data of the kind the model was trained on");
}

float scaled(const Cell& cell, float value, const Normalisation& n) {
  const double mean = n.means[at(cell.col)];
  const auto result =
      static_cast<float>((static_cast<double>(value) - mean) * n.factors[at(cell.col)]);
  if (!std::isfinite(result)) reject(cell, value, mean);
  return result;
}

bool keeps_zeros(const Normalisation& n) {
  return std::all_of(n.means.begin(), n.means.end(), [](double mean) { return mean == 0; });
}

Features scaled_sparse(const Graph& from, const Normalisation& n, const char* of) {
  Buffer<float> values(from.num_edges());
  parallel_for(from.num_rows(), grain, [&](std::int64_t row) {
    EdgeOffset k = from.row_offsets()[row];
    SparseRows(from).visit(row, [&](std::int64_t col, float value) {
      values[k++] = scaled({of, row, col}, value, n);
    });
  });
  return from.with_values(std::move(values));
}

Matrix<float> dense_of(const Graph& sparse) {
  Matrix<float> dense(sparse.num_rows(), sparse.num_cols(), 0.0f);
  parallel_for(sparse.num_rows(), grain, [&](std::int64_t row) {
    SparseRows(sparse).visit(row, [&](std::int64_t col, float value) { dense(row, col) = value; });
  });
  return dense;
}

Features scaled_dense(MatrixView<const float> from, const Normalisation& n, const char* of) {
  auto to = std::make_shared<Matrix<float>>(from.rows, from.cols);
  standardise(from, n, *to, of);
  return DenseFeatures(std::move(to));
}

}  // namespace

Normalisation standard_normalisation(const Features& features) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    return standard_of(DenseRows(**dense));
  }
  Normalisation result = standard_of(SparseRows(std::get<SparseFeatures>(features)));
  std::fill(result.means.begin(), result.means.end(), 0.0);
  return result;
}

Features standardised(const Features& features, const Normalisation& normalisation,
                      const char* of) {
  if (const auto* dense = std::get_if<DenseFeatures>(&features)) {
    return scaled_dense(**dense, normalisation, of);
  }
  const Graph& sparse = std::get<SparseFeatures>(features);
  if (keeps_zeros(normalisation)) return scaled_sparse(sparse, normalisation, of);
  return scaled_dense(dense_of(sparse), normalisation, of);
}

void standardise(MatrixView<const float> from, const Normalisation& normalisation,
                 MatrixView<float> to, const char* of) {
  parallel_for(from.rows, grain, [&](std::int64_t row) {
    const float* const values = from.row(row);
    float* const results = to.row(row);
    for (std::int64_t col = 0; col < from.cols; ++col) {
      results[col] = scaled({of, row, col}, values[col], normalisation);
    }
  });
}

}  // namespace tessera::train
