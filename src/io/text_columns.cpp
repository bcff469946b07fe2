// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <utility>

#include "io/table_columns.hpp"

namespace tessera::io {
namespace {

/// The values as numbers, not-a-number where one is missing; nothing where one is no finite number.
std::optional<std::vector<float>> as_numbers(const TextColumn& column) {
  std::vector<float> numbers;
  for (const std::string& text : column.values) {
    const std::string word = lower_case(text);
    if (word == "true" || word == "false") {
      numbers.push_back(word == "true" ? 1.0f : 0.0f);
      continue;
    }
    const auto number = is_missing(text) ? std::optional(std::nanf("")) : parse_real(text);
    if (!number || std::isinf(*number)) return {};
    numbers.push_back(*number);
  }
  return numbers;
}

void fill_with_mean(std::vector<float>& numbers) {
  double sum = 0;
  std::int64_t count = 0;
  for (const float number : numbers) {
    if (std::isnan(number)) continue;
    sum += number;
    ++count;
  }
  const auto mean = static_cast<float>(count == 0 ? 0.0 : sum / static_cast<double>(count));
  std::replace_if(
      numbers.begin(), numbers.end(), [](float number) { return std::isnan(number); }, mean);
}

std::vector<std::string> categories_of(const TextColumn& column) {
  std::vector<std::string> categories;
  for (const std::string& text : column.values) {
    if (!is_missing(text)) categories.push_back(text);
  }
  const std::size_t present = categories.size();
  std::sort(categories.begin(), categories.end());
  categories.erase(std::unique(categories.begin(), categories.end()), categories.end());
  const bool all_different = categories.size() == present && present > 2;
  if (all_different || categories.size() > max_categories) categories.clear();
  return categories;
}

bool take_labels(const TextColumn& column, Dataset& dataset) {
  if (!is_label_word(lower_case(column.name)) || column.values.empty()) return false;
  const auto numbers = as_numbers(column);
  std::vector<std::int64_t> classes;
  if (numbers && std::all_of(numbers->begin(), numbers->end(), [](float number) {
        return std::isnan(number) ||
               (number == std::floor(number) && number >= -1 && number < 0x7fffff00);
      })) {
    for (const float number : *numbers) {
      classes.push_back(std::isnan(number) ? -1 : static_cast<std::int64_t>(number));
    }
    dataset.labels = ClassLabels(std::move(classes));
    return true;
  }
  // Fractions are no classes, and what is to be found out must not be a feature.
  if (numbers) return true;
  const std::vector<std::string> categories = categories_of(column);
  if (categories.empty()) return false;
  for (const std::string& text : column.values) {
    const auto found = std::lower_bound(categories.begin(), categories.end(), text);
    const bool known = found != categories.end() && *found == text;
    classes.push_back(known ? found - categories.begin() : -1);
  }
  dataset.labels = ClassLabels(std::move(classes));
  dataset.class_names = Names(categories);
  return true;
}

}  // namespace

bool is_label_word(std::string_view name) {
  return name == "label" || name == "class" || name == "y";
}

void add_columns(std::vector<TextColumn> columns, Dataset& dataset) {
  std::vector<std::string> names;
  std::vector<std::vector<float>> features;
  bool labelled = false;
  for (TextColumn& column : columns) {
    if (!labelled && take_labels(column, dataset)) {
      labelled = true;
      continue;
    }
    if (auto numbers = as_numbers(column)) {
      fill_with_mean(*numbers);
      names.push_back(column.name);
      features.push_back(std::move(*numbers));
      continue;
    }
    for (const std::string& category : categories_of(column)) {
      names.push_back(column.name + "=" + category);
      features.emplace_back();
      for (const std::string& text : column.values) {
        features.back().push_back(text == category ? 1.0f : 0.0f);
      }
    }
  }
  if (features.empty()) return;
  auto matrix = std::make_shared<Matrix<float>>(std::ssize(features.front()), std::ssize(features));
  for (std::int64_t row = 0; row < matrix->rows(); ++row) {
    for (std::int64_t col = 0; col < matrix->cols(); ++col) {
      matrix->row(row)[col] =
          features[static_cast<std::size_t>(col)][static_cast<std::size_t>(row)];
    }
  }
  dataset.features = DenseFeatures(std::move(matrix));
  dataset.feature_names = Names(names);
}

}  // namespace tessera::io
