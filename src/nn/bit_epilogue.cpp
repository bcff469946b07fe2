// SPDX-License-Identifier: Apache-2.0
#include "nn/bit_epilogue.hpp"

#include <algorithm>

namespace tessera::nn {
namespace {

struct Columns {
  std::vector<double> scale;
  std::vector<std::vector<double>> terms;
  std::vector<double> bias;
};

/// (m + s q) summed over sources: s Q + m times the weight of the row, and once more `own` m.
Columns of_sums(const BitStep& step, float own) {
  Columns columns;
  std::vector<double> lower;
  for (std::int64_t j = 0; j < step.out; ++j) {
    const std::size_t range = step.input.range_of(0, j);
    columns.scale.push_back(step.input.scale[range]);
    lower.push_back(step.input.lower[range]);
  }
  if (std::any_of(lower.begin(), lower.end(), [](double m) { return m != 0; })) {
    for (const double m : lower) columns.bias.push_back(own * m);
    columns.terms.push_back(std::move(lower));
  }
  return columns;
}

/// (m + s q) (n + u w) summed over K: s u S + s n (sum of q) + m (u (sum of w) + K n).
Columns of_product(const BitStep& step, bool scales_rows) {
  Columns columns;
  const double s = step.input.scale.front();
  const double m = step.input.lower.front();
  Matrix<std::int64_t> sums(step.out, 1);
  ops::bit_row_sums(step.weights, sums);
  std::vector<double> of_codes, constant;
  for (std::int64_t j = 0; j < step.out; ++j) {
    const double u = step.weight_ranges.scale[static_cast<std::size_t>(j)];
    const double n = step.weight_ranges.lower[static_cast<std::size_t>(j)];
    columns.scale.push_back(s * u);
    of_codes.push_back(s * n);
    constant.push_back(m *
                       (u * static_cast<double>(sums(j, 0)) + static_cast<double>(step.in) * n));
  }
  columns.terms.push_back(std::move(of_codes));
  if (m == 0) return columns;
  if (scales_rows) {
    columns.terms.push_back(std::move(constant));
  } else {
    columns.bias = std::move(constant);
  }
  return columns;
}

}  // namespace

EpilogueNumbers epilogue_numbers(const BitStep& step, bool scales_rows, float own) {
  Columns columns = step.aggregates ? of_sums(step, own) : of_product(step, scales_rows);
  if (!step.bias.empty()) {
    columns.bias.resize(step.bias.size());
    for (std::size_t j = 0; j < step.bias.size(); ++j) columns.bias[j] += step.bias[j];
  }
  EpilogueNumbers numbers;
  numbers.cols = step.out;
  numbers.terms = static_cast<std::int64_t>(columns.terms.size());
  numbers.bias = !columns.bias.empty();
  numbers.norm = !step.norm_scale.empty();
  const auto append = [&](const auto& values) {
    for (const auto value : values) numbers.all.push_back(static_cast<float>(value));
  };
  append(columns.scale);
  for (const std::vector<double>& term : columns.terms) append(term);
  append(columns.bias);
  append(step.norm_scale);
  append(step.norm_shift);
  return numbers;
}

ops::BitEpilogue EpilogueNumbers::parts(const float* at, Device device) const {
  const auto take = [&](std::int64_t rows) {
    const MatrixView<const float> part(at, rows, cols, device);
    at += rows * cols;
    return part;
  };
  ops::BitEpilogue epilogue;
  epilogue.col_scale = take(1);
  if (terms > 0) epilogue.col_terms = take(terms);
  if (bias) epilogue.bias = take(1);
  if (norm) {
    epilogue.norm_scale = take(1);
    epilogue.norm_shift = take(1);
  }
  return epilogue;
}

}  // namespace tessera::nn
